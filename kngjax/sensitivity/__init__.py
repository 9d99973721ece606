"""Bounds what one record can change in gradients, values and moments; every sensitivity has its one home here."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
