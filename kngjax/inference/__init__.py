"""What a release will be worth, from public facts alone: noise, standard errors, and what is little but noise."""
