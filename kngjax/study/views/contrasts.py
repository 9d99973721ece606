"""Sums of coefficients with public weights, as they are asked for: by names, by weights of names, or as a matrix."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kngjax.core.later import pd


def sums_of(asked: Any, names: Sequence[str]) -> "pd.DataFrame":
    """Makes a matrix of weights: a row a sum, named by what it is, a column for each coefficient.

    **Arguments:** `asked`: a name or a list of names, for these by themselves; a mapping of names to weights, for one
    sum; a frame with a column for each of some coefficients; or numbers, one for each coefficient, in a row or in rows.
    `names`: of the coefficients. Raises ValueError for unknown names, other shapes, and numbers that are not finite.
    """
    if isinstance(asked, str):
        asked = [asked]
    if isinstance(asked, Mapping):
        table = pd.DataFrame([dict(asked)], [_in_words(asked)])
    elif isinstance(asked, pd.DataFrame):
        table = asked.set_axis([str(name) for name in asked.index], axis=0)
    elif isinstance(asked, list | tuple) and asked and all(isinstance(one, str) for one in asked):
        table = pd.DataFrame(np.eye(len(asked)), list(asked), list(asked))
    else:
        rows = np.atleast_2d(np.asarray(asked, np.float64))
        if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
            raise ValueError(f"a sum needs a weight for each of {', '.join(names)}, not an array of shape {rows.shape}")
        table = pd.DataFrame(rows, [f"c{place}" for place in range(len(rows))], list(names))
    if unknown := [name for name in table if name not in names]:
        raise ValueError(f"there is no coefficient {unknown[0]!r}; there are {', '.join(names)}")
    if not table.columns.is_unique or not table.size:
        raise ValueError("name each coefficient once, and one at least")
    weights = table.reindex(columns=list(names), fill_value=0.0).astype(np.float64).rename_axis(index="contrast")
    if not np.all(np.isfinite(weights)):
        raise ValueError("weights must be finite numbers")
    return weights


def _in_words(weights: Mapping[str, Any]) -> str:
    """Writes a sum as "a - 2 b"."""
    said = ""
    for name, weight in weights.items():
        sign = "-" if float(weight) < 0.0 else "+"
        times = "" if abs(float(weight)) == 1.0 else f"{abs(float(weight)):g} "
        said += f" {sign} {times}{name}" if said else f"{'-' * (sign == '-')}{times}{name}"
    return said
