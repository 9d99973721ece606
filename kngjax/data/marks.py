"""Whole numbers made of the bits of records tell whether two passes saw the same ones, and put them in one order."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import UInt64

from kngjax.data.persons import Shares

MODULUS = 2**64


def mixed(columns: Iterable[Any]) -> UInt64[np.ndarray, " records"]:
    """Mixes the bits of each record's numbers to one whole number below 2^64. Private.

    **Arguments:** `columns`: arrays of numbers, shape (n,) or (n, k).
    """
    made = None
    for one in columns:
        for column in np.atleast_2d(np.asarray(one, np.float64).T):
            bits = np.ascontiguousarray(column).view(np.uint64)
            # A product by an odd number and a shift mix all digits of what is there with those of the next column.
            mixture = bits >> np.uint64(29)
            mixture ^= bits
            if made is not None:
                mixture ^= made
            mixture *= np.uint64(0x9E3779B97F4A7C15)
            mixture ^= mixture >> np.uint64(32)
            made = mixture
    assert made is not None
    return made


def counted_and_marked(records: Any) -> tuple[int, int]:
    """Counts records, and adds up what their bits are `mixed` to, modulo 2^64: the same in any order. Private.

    **Arguments:** `records`: arrays of numbers, in tuples and dictionaries, None where there are none; of persons
    `Shares` too, and then persons are counted.
    """
    found = jax.tree.leaves(records)
    columns = [one.weights if isinstance(one, Shares) else one for one in found]
    count = next((one.persons for one in found if isinstance(one, Shares)), len(columns[0]))
    return count, int(mixed(columns).sum(dtype=np.uint64))
