"""Private records: public bounds, the one gate that every record passes, passes over engines, shards."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
