"""Checks of the public numbers that losses are made of."""

import operator
from typing import Any

import numpy as np

from kngjax.core.arrays import is_traced

# Within them float64 has squares and cubes of a width and of what it divides, so that no proof ends at its limits.
SMALLEST_WIDTH, LARGEST_WIDTH = 1e-100, 1e100


def check_level(tau: Any) -> None:
    """Raises ValueError unless τ is one number strictly between 0 and 1."""
    if np.ndim(tau):
        raise ValueError(
            "a quantile loss is of one level tau: make a mechanism for each, or PrivateQuantile([...]) of numbers alone"
        )
    if not is_traced(tau) and not 0 < float(tau) < 1:
        raise ValueError(f"tau must lie strictly between 0 and 1, got {float(tau)}")


def check_positive(name: str, value: Any, unit: str = "") -> None:
    """Raises ValueError unless it is one positive and finite number. **Arguments:** `unit`: in words, after a comma."""
    if not is_traced(value) and (np.ndim(value) or not 0.0 < float(value) < np.inf):
        raise ValueError(f"{name} must be one positive and finite number{unit}, got {value}")


def check_width(name: str, width: Any) -> None:
    """Raises ValueError unless it is one number from 1e-100 to 1e100. **Arguments:** `width`: in the units of y."""
    check_positive(name, width, ", in the units of y")
    if not is_traced(width) and not SMALLEST_WIDTH <= float(width) <= LARGEST_WIDTH:
        raise ValueError(
            f"{name} must lie between {SMALLEST_WIDTH:g} and {LARGEST_WIDTH:g}, where float64 has its powers, got "
            f"{float(width):g}: give y in other units"
        )


def whole_sizes(num_records: Any, dimension: Any) -> tuple[int, int]:
    """n and d as whole numbers; raises TypeError for others, and ValueError below 1."""
    count, size = operator.index(num_records), operator.index(dimension)
    if count < 1 or size < 1:
        raise ValueError(f"num_records and dimension must be at least 1, got {num_records} and {dimension}")
    return count, size
