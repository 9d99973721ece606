"""A lower bound on ε from draws that are counted in cells: for laws with atoms, and sets of no simple shape."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from kngjax.audit.log_ratios import log_ratio_bound

# Of k coordinates, none with few values, each is cut into 256^(1/k) parts: about so many cells, or 2^k of k > 8.
_CELLS = 256
# Numbers of which a coordinate takes no more are counted one by one.
_FEW_VALUES = 64

Draws = Float[np.ndarray, "draws dimension"]


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the space of outcomes, by cuts of each coordinate: at its values where it has few, else at quantiles.

    All cells without a training draw are taken as one: there may be 65^k of k coordinates.

    **Arguments:** `cuts`: of each coordinate, in increasing order; a cell has its lower end. `known`: of the cells that
    have training draws how many cuts are at most as large as each coordinate, in lexicographic order.
    """

    cuts: tuple[Float[np.ndarray, " cuts"], ...]
    known: Int[np.ndarray, "cells dimension"]

    @classmethod
    def of(cls, draws: Draws) -> "Cells":
        """**Arguments:** `draws`: that choose the cuts, and are not those that a bound is computed of."""
        parts = max(2, round(_CELLS ** (1.0 / draws.shape[1])))
        cuts = []
        for column in draws.T:
            values = np.unique(column)
            few = len(values) <= _FEW_VALUES
            cuts.append(values if few else np.unique(np.quantile(column, np.arange(1, parts) / parts)))
        return cls(tuple(cuts), np.unique(_places(cuts, draws), axis=0))

    def counts(self, draws: Draws) -> Int[np.ndarray, " cells_and_rest"]:
        """How many of the draws are in each known cell, and at last how many are in none of them."""
        number = len(self.known)
        rows = np.concatenate([self.known, _places(self.cuts, draws)])
        distinct, rows_of = np.unique(rows, axis=0, return_inverse=True)
        cells = np.full(len(distinct), number)
        cells[rows_of.ravel()[:number]] = np.arange(number)
        return np.bincount(cells[rows_of.ravel()[number:]], minlength=number + 1)


def bound_by_cells(first: Draws, second: Draws, confidence: float) -> float:
    """max log(P(A)/Q(A)) over both orders of two laws, P(A) bounded from below and Q(A) from above, for a union A.

    From independent draws. Cells are put in the order of the ratio of their counts in the first half of the draws, and
    A is made of as many of them as bound ε best there; the second half bounds P(A) and Q(A) (Clopper and Pearson).

    **Arguments:** `confidence`: the probability, over draws, that ε is at least the bound; four confidence bounds share
    the rest.
    """
    half = min(len(first), len(second)) // 2
    cells = Cells.of(np.concatenate([first[:half], second[:half]]))
    trained = [cells.counts(one[:half]) for one in (first, second)]
    tested = [cells.counts(one[half:]) for one in (first, second)]
    risk, bounds = (1.0 - confidence) / 4.0, [0.0]
    for order in (0, 1):
        named, other = trained[order], trained[1 - order]
        places = np.argsort((other + 0.5) / (named + 0.5), kind="stable")
        found = log_ratio_bound(np.cumsum(named[places]), half, np.cumsum(other[places]), half, risk)
        chosen = places[: int(np.argmax(found)) + 1]
        named, other = tested[order], tested[1 - order]
        counts = (
            named[chosen].sum(keepdims=True),
            int(named.sum()),
            other[chosen].sum(keepdims=True),
            int(other.sum()),
        )
        bounds.append(float(log_ratio_bound(*counts, risk)[0]))
    return max(bounds)


def _places(cuts, draws: Draws) -> Int[np.ndarray, "draws dimension"]:
    """By coordinate how many cuts are at most as large."""
    columns = [np.searchsorted(ends, column, "right") for ends, column in zip(cuts, draws.T, strict=True)]
    return np.stack(columns, axis=1)
