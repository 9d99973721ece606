"""Computes from public facts alone the point to which the ridge of objective perturbation pulls coefficients."""

from typing import Any

import numpy as np

import kngjax as kng
from kngjax.losses.base import AbstractResidualLoss


def public_centre(loss: Any, bounds: kng.Bounds, dimension: int) -> np.ndarray | None:
    """Returns the middle of the response's bounds as the intercept, and 0 for all else, where x'θ is a response.

    That is the centre of a study's Θ: the regression that predicts the same of every record. Otherwise the result is
    None, which pulls coefficients to 0: log odds to even odds, and logarithms of mean counts too, since at most a bound
    of the counts is known, and most counts lie far below its middle.

    **Arguments:** `bounds`: of a basis whose columns are 0 at the middle of their bounds.
    """
    low, high = bounds.y_lower, bounds.y_upper
    if not isinstance(loss, AbstractResidualLoss) or low is None or high is None or not bounds.intercept:
        return None
    centre = np.zeros(dimension)
    centre[0] = middle_of((float(low), float(high)))
    return centre


def middle_of(ends: tuple[float, float]) -> float:
    """Returns half of the way from one end to the other."""
    return 0.5 * (ends[0] + ends[1])
