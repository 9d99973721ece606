"""Proved draws: each says whether it serves a mechanism, and draws one value from bits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
