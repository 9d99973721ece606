"""Public limits of thresholds and bandwidths."""

from typing import Any

import numpy as np

from kngjax.core.arrays import is_traced

# Within them float64 has squares and cubes of a width and of what it divides, so that no proof ends at its limits.
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100


def check_width(name: str, width: Any) -> None:
    """Raises ValueError unless it is one number from 1e-100 to 1e100. **Arguments:** `width`: in the units of y."""
    if is_traced(width):
        return
    if np.ndim(width) or not 0.0 < float(width) < np.inf:
        raise ValueError(f"{name} must be one positive and finite number, in the units of y, got {width}")
    if not SMALLEST_WIDTH <= float(width) <= LARGEST_WIDTH:
        raise ValueError(
            f"{name} must lie between {SMALLEST_WIDTH:g} and {LARGEST_WIDTH:g}, where float64 has its powers, got "
            f"{float(width):g}: give y in other units"
        )
