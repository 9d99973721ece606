"""Samplers: they know a `Target` (a log-density, its domain, the structure of its loss), never a mechanism."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
