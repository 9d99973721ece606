"""Audits: attacks on a mechanism's guarantee by searching for the neighbouring data sets that betray it most.

An audit is evidence, not proof: what it finds is a lower bound on the true ε. It is there to catch a wrong constant.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
