"""kngjax: statistical estimates under differential privacy, correctly and fast, in JAX.

loss -> gradient -> norm -> sensitivity -> log-density on a domain -> sampler -> release with a certificate
"""

import lazy_loader

__version__ = "0.1.0"

# The public names stand in __init__.pyi; each is imported when first used, so that `kngjax --help` loads no JAX.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
