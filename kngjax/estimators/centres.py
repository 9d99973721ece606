"""Where the ridge of objective perturbation pulls coefficients to, by public facts alone."""

from typing import Any

import numpy as np

import kngjax as kng
from kngjax.losses.base import AbstractResidualLoss


def public_centre(loss: Any, bounds: kng.Bounds, dimension: int) -> np.ndarray | None:
    """The middle of the response's bounds as the intercept, and 0 for all else, where x'θ is a response; else None.

    That is the centre of a study's Θ: the regression that says the same of every record. Logarithms of odds are pulled
    to 0, even odds, and those of a mean count too, since of counts at most their bound is known, and most lie far below
    the middle.

    **Arguments:** `bounds`: of a basis whose columns are 0 at the middle of their bounds.
    """
    low, high = bounds.y_lower, bounds.y_upper
    if not isinstance(loss, AbstractResidualLoss) or low is None or high is None or not bounds.intercept:
        return None
    centre = np.zeros(dimension)
    centre[0] = middle_of((float(low), float(high)))
    return centre


def middle_of(ends: tuple[float, float]) -> float:
    """Half of the way from one end to the other."""
    return 0.5 * (ends[0] + ends[1])
