"""What a release will be worth, from public facts alone; and its likelihood without the records, once published."""
