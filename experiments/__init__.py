"""Experiments on public or simulated data: one module an experiment, run by `python -m experiments CONFIG.toml`."""
