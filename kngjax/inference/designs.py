"""Public rows of features, in place of the records': spread evenly over the bounds, given, or made by a function."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.randomness import research_key
from kngjax.data.bounds import Bounds
from kngjax.data.terms import Design

NUM_ROWS = 4096
# The share of the records that a level has.
_RARE = 0.1


def rows_of(design: Any, bounds: Bounds, dimension: int | None) -> Float[np.ndarray, "rows dimension"]:
    """Makes rows of d features, the intercept's 1 first, clipped to the bounds.

    **Arguments:** all public. `design`: None for rows spread evenly over the bounds of each column, independently;
    terms, for what is usual of columns in their own units (`usual_columns`); an array of rows, (m, k); or a function of
    a key and a number of rows to one. `dimension`: d, if it is known.

    Raises ValueError where the number of columns is open, for another number of columns, and for a hull without rows.
    """
    if design is None and bounds.x_lower is None:
        given = np.zeros((1, 0))
    elif design is None:
        given = _in_box(bounds, dimension)
    elif isinstance(design, Design):
        given = design.matrix_of(usual_columns(design))
    else:
        made = design(research_key(0), NUM_ROWS) if callable(design) else design
        given = np.asarray(made, np.float64)
    if given.ndim != 2 or not np.all(np.isfinite(given)) or len(given) == 0:
        raise ValueError(f"the design must be rows of finite numbers, shape (rows, columns), not {given.shape}")
    found = given.shape[1] + bounds.intercept
    if dimension is not None and found != dimension:
        raise ValueError(f"the design has {given.shape[1]} columns, and {dimension - bounds.intercept} are bounded")
    rows = np.hstack([np.ones((len(given), int(bounds.intercept))), given])
    with float64():
        lower, upper = (np.asarray(side) for side in bounds.features(found))
    return np.clip(rows, lower, upper)


def usual_columns(design: Design, ranges: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Makes cells for each column of a design, in own units, as a typical table has them and not as the best case.

    Numbers are spread evenly over the middle half of their bounds, and each level but the first has a tenth of the
    records, or an equal share of fewer: bounds are public, and so wider than what is found within them.

    **Arguments:** `ranges`: bounds of columns that terms name thresholds of and nothing else. Without them such a
    column lies on either side of a threshold equally often.
    """
    columns = {}
    for place, name in enumerate(design.columns):
        random = np.random.default_rng(place)
        if name in design.ranges or name in (ranges or {}):
            low, high = design.ranges[name] if name in design.ranges else (ranges or {})[name]
            columns[name] = low + (high - low) * (0.25 + 0.5 * _even(random))
            continue
        if thresholds := design.thresholds(name):
            sides = np.array([end for threshold in thresholds for end in (threshold - 1, threshold, threshold + 1)])
            columns[name] = random.permutation(np.resize(sides, NUM_ROWS))
            continue
        first, *others = design.range_of(name).tolist()
        rows = int(min(_RARE, 1.0 / (1 + len(others))) * NUM_ROWS)
        cells = np.full(NUM_ROWS, first, dtype=object)
        cells[: rows * len(others)] = np.repeat(np.array(others, dtype=object), rows)
        columns[name] = random.permutation(cells)
    return columns


def _in_box(bounds: Bounds, dimension: int | None) -> np.ndarray:
    if bounds.hull is not None:
        raise ValueError("the features lie in a hull, of which no even rows are made: give public rows, design=rows")
    if dimension is None:
        raise ValueError(
            "the bounds of x leave the number of columns open: give Bounds(..., columns=5), or public rows, design=rows"
        )
    with float64():
        lower, upper = (np.asarray(side)[int(bounds.intercept) :] for side in bounds.features(dimension))
    columns = [
        low + (high - low) * _even(np.random.default_rng(j))
        for j, (low, high) in enumerate(zip(lower, upper, strict=True))
    ]
    return np.column_stack(columns) if columns else np.zeros((1, 0))


def _even(random: np.random.Generator) -> np.ndarray:
    """Spreads numbers evenly over [0, 1], in random order."""
    return random.permutation((np.arange(NUM_ROWS) + 0.5) / NUM_ROWS)
