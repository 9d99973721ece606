"""Previews releases from public facts, makes confidence intervals, and gives likelihoods without the records."""
