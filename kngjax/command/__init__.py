"""Runs the command line: jobs in TOML files, their plans, and ledgers."""
