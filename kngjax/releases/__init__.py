"""Releases draws with their certificates: routes, rounding, what a ledger is debited; research and simulations too."""
