"""Holds the foundations of every room: arrays and precision, keys, errors, objects that are the owner's alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["side_doors"])
