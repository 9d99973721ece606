"""Releases draws with their certificates: the choice of a draw, rounding, debits; research and simulations too."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
