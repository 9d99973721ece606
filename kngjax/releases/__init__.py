"""Releases draws with their certificates: the choice of a draw, rounding, debits; research and simulations too."""
