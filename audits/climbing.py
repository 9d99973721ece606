"""Climbing pairs: neighbours whose records make a sum that adds one number after another climb, pair by pair.

After 2^p records of 1 come pairs of small numbers 0.6u and -0.4u with u the spacing of floats from 2^p on. A running
sum that has reached 2^p goes up by u and stays there, pair by pair; one that begins with 0 in place of the first 1
is below 2^p, where floats are twice as dense, and does not climb as far (after Casacuberta et al. 2022).
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.data.records import QuadraticSummary
from kngjax.mechanisms.base import AbstractMechanism


def climbing_pair(power: int, stride: int = 1) -> tuple[Float[np.ndarray, " records"], Float[np.ndarray, " records"]]:
    """Two columns of 2^(power + 1) numbers in [-1, 1] that differ in the first, 1 against 0.

    **Arguments:** `power`: p. `stride`: of the small numbers only each so many is none of 0, and the ones are as many
    in all: against sums that add so many rows at a time.
    """
    ones, unit = 2**power, 2.0 ** (power - 52)
    small = np.zeros(ones)
    small[::stride] = np.where(np.arange(ones)[::stride] // stride % 2, -0.4 * unit, 0.6 * unit)
    column = np.concatenate([np.ones(ones), small])
    other = column.copy()
    other[0] = 0.0
    return column, other


def largest_change(mechanism: AbstractMechanism, first: tuple[Any, Any], second: tuple[Any, Any]) -> float:
    """By how much the computed sums of columns and of products of two prepared data sets differ, at most.

    **Arguments:** `mechanism`: of a quadratic loss. `first`, `second`: pairs (X, y).
    """
    here, there = (mechanism.prepare(*pair) for pair in (first, second))
    assert isinstance(here, QuadraticSummary)
    assert isinstance(there, QuadraticSummary)
    changes = (np.asarray(here.moment) - there.moment, np.asarray(here.gram) - there.gram)
    return float(max(np.max(np.abs(change)) for change in changes))
