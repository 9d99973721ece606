"""Releases draws with their certificates: the choice of a draw, rounding, what a ledger is debited; research and simulations too."""
