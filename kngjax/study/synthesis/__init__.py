"""Synthetic tables: columns that are drawn one after the other from released tables and quantile curves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
