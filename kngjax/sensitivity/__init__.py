"""Bounds what one record can change in gradients, values and moments; every sensitivity has its one home here."""
