"""The command line: TOML jobs, plans, reports, ledgers."""
