"""For the data owner's eyes: research draws, the estimate without privacy, each person's privacy, synthetic tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
