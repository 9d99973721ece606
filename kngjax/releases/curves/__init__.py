"""Curves of several levels, released together: `kngjax.QuantileProcess`."""
