"""The command line: TOML jobs, plans, reports, `kngjax trust`."""
