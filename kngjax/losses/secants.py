"""Bounds how much a score rises from one predictor to any other near it, every rounding included."""

from typing import Any

import numpy as np

from kngjax.core.verified import NEXT_TO_ZERO, UNIT, WIDER, Floats


def unimodal_secants(
    score: Any,
    predictor: Floats,
    error: Floats,
    radius: Floats,
    response: Floats,
    mode: Floats,
    third: float,
) -> tuple[Floats, Floats]:
    """The ends of `secants` of a score whose slope s' rises up to a mode and then falls, with |s''| at most `third`.

    The mean of s' over [η₀, η] rises with η > η₀ as long as s'(η) is above it, and then falls: it is least at an end,
    s'(η₀) or the mean up to the farthest η; and largest at an end if no mode lies between. The same for η < η₀. To move
    η₀ and η by the error moves means by that times `third`.
    """
    here, off = score.floats(predictor, np.zeros_like(predictor), response)
    least, most = score.slopes(predictor, np.zeros_like(predictor), response)
    widest = score.slopes(predictor, (error + radius) * WIDER, response)
    slack = (third * error) * WIDER + NEXT_TO_ZERO
    rounded = UNIT * (np.abs(predictor) + radius) * WIDER
    for sign in (-1.0, 1.0):
        there, more = score.floats(predictor + sign * radius, rounded, response)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mean = np.abs(there - here) / radius
            doubt = ((off + more) / radius + 4.0 * UNIT * mean) * WIDER
        least, most = np.minimum(least, mean - doubt), np.maximum(most, mean + doubt)
    between = np.abs(predictor - mode) <= (error + radius + rounded) * WIDER
    least = np.maximum(least - slack, widest[0])
    most = np.where(between, widest[1], np.minimum(most + slack, widest[1]))
    # Where the radius is next to 0 means are not known.
    known = np.isfinite(least) & np.isfinite(most)
    return np.where(known, np.maximum(least, 0.0), widest[0]), np.where(known, most, widest[1])
