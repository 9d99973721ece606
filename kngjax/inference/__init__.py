"""Previews releases from public facts, makes confidence intervals, and gives likelihoods without the records."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
