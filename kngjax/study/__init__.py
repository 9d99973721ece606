"""Offers what a statistician would write: a study of a table, regressions by formula, results with names."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
