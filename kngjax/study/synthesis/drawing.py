"""Draws synthetic columns from releases: this is post-processing, which costs no privacy."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.study.synthesis.columns import AbstractColumn
from kngjax.study.synthesis.numbers import AbstractCurvedColumn
from kngjax.study.synthesis.parts import AbstractPart, CurvesPart, TablePart


def probabilities(counts: Float[np.ndarray, "... levels"]) -> Float[np.ndarray, "... levels"]:
    """Turns noisy counts into probabilities: counts below 0 are 0, and where none is left all are equal."""
    kept = np.maximum(counts, 0.0)
    totals = kept.sum(axis=-1, keepdims=True)
    even = np.full(kept.shape, 1.0 / kept.shape[-1])
    return np.where(totals > 0.0, kept / np.where(totals > 0.0, totals, 1.0), even)


def drawn_places(
    released: Float[np.ndarray, "... levels"], parents: Sequence[Int[np.ndarray, " rows"]], key: PRNGKeyArray, rows: int
) -> Int[np.ndarray, " rows"]:
    """Returns a level for each row, drawn by `probabilities` at the row's own levels of the parents."""
    upper = np.cumsum(probabilities(released), axis=-1)
    upper /= upper[..., -1:]
    with float64():
        uniform = np.asarray(jax.random.uniform(key, (rows,)))
    *shape, number = upper.shape
    cells = np.ravel_multi_index(tuple(parents), tuple(shape)) if parents else np.zeros(rows, np.int64)
    order = np.argsort(cells, kind="stable")
    found, starts = np.unique(cells[order], return_index=True)
    places = np.empty(rows, np.int64)
    for cell, chosen in zip(found, np.split(order, starts[1:]), strict=bool(rows)):
        places[chosen] = np.searchsorted(upper.reshape(-1, number)[cell], uniform[chosen], side="right")
    return places


def drawn_values(
    columns: Sequence[AbstractColumn],
    parts: Mapping[str, list[tuple[AbstractPart, kng.Release]]],
    rows: int,
    key: PRNGKeyArray,
) -> dict[str, np.ndarray]:
    """Draws the values of all columns by name, one column after the other.

    **Arguments:** `parts`: of each column, with what was released. `key`: each column's own is folded from it.
    """
    values: dict[str, np.ndarray] = {}
    for number, column in enumerate(columns):
        keys = jax.random.split(jax.random.fold_in(key, number))
        found: Any = None
        for part, release in parts[column.name]:
            if isinstance(part, TablePart):
                parents = [parent.places(values[parent.name]) for parent in part.columns[:-1]]
                kept = np.flatnonzero(column.drawn)
                places = drawn_places(release.value.reshape(part.shape)[..., kept], parents, keys[0], rows)
                found = column.of_places(kept[places])
            elif isinstance(part, CurvesPart) and isinstance(column, AbstractCurvedColumn):
                x = part.matrix(values)
                drawn = kng.releases.QuantileCurves(release).draw(np.zeros((rows, 0)) if x is None else x, keys[1])
                own = column.of_drawn(drawn)
                found = own if found is None else np.where(np.isnan(found), own, found)
        values[column.name] = found
    return values
