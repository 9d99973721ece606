"""What one record can change: in gradients, in values, in moments; every sensitivity has its one home here."""
