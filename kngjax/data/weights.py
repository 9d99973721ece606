"""Weights of records: public facts about them, and what becomes of each one by itself.

A record that stands for many people, as in a survey, counts times its weight w: its loss and its gradient are w times
those of a record that stands for itself. One public number W bounds all weights, and sensitivities grow with it
(`kngjax.sensitivity.weighted`). A weight is clipped to [0, W] and rounded to a multiple of a public power of two, about
W·2^-20, and is at most W after that: a map of the record by itself, so that neighbours stay neighbours.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import is_traced, positive_parameter
from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.core.owner_only import OwnerOnly, owner_only

# Binary digits of a weight, relative to the power of two above W.
_DIGITS = 20
# Of the largest weight: in far other units nobody counts people.
_LEAST = 1e-12


@owner_only
class WeightedTable(OwnerOnly):
    """Describes a table whose records have weights, in the place of X. Private.

    So every path that takes X meets the weights too: who knows nothing of them refuses what is no table.

    **Arguments:** `table`: X, or None. `weights`: one cell a record.
    """

    table: Any
    weights: Any


def with_weights(X: Any, weights: Any) -> Any:
    """Returns X, or X with its weights. Private."""
    if weights is None:
        return X
    if isinstance(X, WeightedTable):
        raise UnfitShape("the weights of the records were given twice")
    return WeightedTable(X, weights)


def largest_weight(value: Any) -> Any:
    """Returns W of `Bounds(..., weight=W)`, None for records without weights.

    Raises TypeError for what is no number, ValueError unless it is one, positive and finite.
    """
    if value is None:
        return None
    made = positive_parameter("weight", value, "the largest weight that a record may have")
    if not is_traced(made) and not _LEAST <= float(made) <= 1.0 / _LEAST:
        raise ValueError(
            f"weight = {float(made):g} is out of range, {_LEAST:g} to {1.0 / _LEAST:g}. Only the ratios of weights to "
            "the largest count: divide all of them, and it, by one public number, so that it is about 1; of a sum "
            "multiply what is released by that number"
        )
    return made


def policy_of_weights(value: Any, largest: Any) -> float | None:
    """Checks the number that a missing weight, or one that is no number, counts as; None for no policy.

    Raises TypeError for what is no number, ValueError for one outside of [0, W], and where there are no weights.
    """
    if value is None:
        return None
    if largest is None:
        raise ValueError("missing_weight is for records with weights: give their public maximum, Bounds(..., weight=)")
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "fiu":
        raise TypeError(
            f"missing_weight must be a number or None, got {value!r}; 0 leaves such records out of all sums"
        )
    if not is_traced(largest) and not 0.0 <= float(number) <= float(largest):
        raise ValueError(f"missing_weight = {float(number):g} lies outside of [0, {float(largest):g}]")
    return float(number)


def clipped(weights: Float[np.ndarray, " records"], largest: Any) -> Float[np.ndarray, " records"]:
    """Clips each weight to [0, W], rounded to a multiple of `unit(W)` that is at most W. Private."""
    step = unit(largest)
    # Divided by a power of two, and rounded once.
    return np.minimum(np.rint(np.clip(weights, 0.0, float(largest)) / step), most_units(largest)) * step


def unit(largest: Any) -> float:
    """Returns the power of two that all weights are multiples of: W is at least 2^19 of them, and less than 2^20."""
    return math.ldexp(1.0, math.frexp(float(largest))[1] - _DIGITS)


def most_units(largest: Any) -> int:
    """Tells how many units a weight may have: ⌊W/u⌋."""
    return math.floor(float(largest) / unit(largest))


def explain(largest: Any, missing: float | None) -> str:
    """Says in one sentence for a certificate how weights count."""
    policy = "make a release fail" if missing is None else f"count as {missing!r}"
    return (
        f"each record counts times its own weight, which is private, at least 0, clipped to at most {float(largest):g} "
        f"and rounded to a multiple of {unit(largest):g}; weights that are missing or no number {policy}"
    )


def refuse(largest: Any, what: str) -> None:
    """Raises UnfitType where bounds declare weights: for what does not take them. **Arguments:** `what`: in words."""
    if largest is not None:
        raise UnfitType(
            f"{what} takes no weights of records and no rows of persons: leave Bounds(..., weight=...) and "
            "Unit(..., most_rows=...) out"
        )
