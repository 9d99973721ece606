"""Norms, polytopes, balls, hulls and domains with their base measures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
