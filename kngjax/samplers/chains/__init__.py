"""Markov chains, of which nothing is proved after finitely many sweeps."""
