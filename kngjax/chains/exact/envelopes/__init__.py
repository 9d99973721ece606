"""Envelopes of the density of a quadratic loss: laws that are drawn from directly and lie above it, up to a factor."""
