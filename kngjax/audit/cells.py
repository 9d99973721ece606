"""A lower bound on ε from draws that are counted in cells: for laws with atoms, and sets of no simple shape."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

# Of all cells together, at about most, where draws are no atoms.
_CELLS = 256
# Numbers of which a coordinate takes no more are counted one by one.
_FEW_VALUES = 64

Draws = Float[np.ndarray, "draws dimension"]


@dataclasses.dataclass(frozen=True)
class Cells:
    """Cells of the space of outcomes, by cuts of each coordinate: at its values where it has few, else at quantiles.

    **Arguments:** `cuts`: of each coordinate, in increasing order; a cell has its lower end.
    """

    cuts: tuple[Float[np.ndarray, " cuts"], ...]

    @classmethod
    def of(cls, draws: Draws) -> "Cells":
        """**Arguments:** `draws`: that choose the cuts, and are not those that a bound is computed of."""
        parts = max(2, round(_CELLS ** (1.0 / draws.shape[1])))
        cuts = []
        for column in draws.T:
            values = np.unique(column)
            few = len(values) <= _FEW_VALUES
            cuts.append(values if few else np.unique(np.quantile(column, np.arange(1, parts) / parts)))
        return cls(tuple(cuts))

    def counts(self, draws: Draws) -> Int[np.ndarray, " cells"]:
        """How many of the draws are in each cell."""
        places = [np.searchsorted(cuts, column, "right") for cuts, column in zip(self.cuts, draws.T, strict=True)]
        shape = tuple(len(cuts) + 1 for cuts in self.cuts)
        return np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape)))


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
        found = _bounds(np.cumsum(named[places]), half, np.cumsum(other[places]), half, risk)
        chosen = places[: int(np.argmax(found)) + 1]
        named, other = tested[order], tested[1 - order]
        counts = (
            named[chosen].sum(keepdims=True),
            int(named.sum()),
            other[chosen].sum(keepdims=True),
            int(other.sum()),
        )
        bounds.append(float(_bounds(*counts, risk)[0]))
    return max(bounds)


def _bounds(named: np.ndarray, of_named: int, other: np.ndarray, of_other: int, risk: float) -> np.ndarray:
    """log(P/Q) from counts of so many draws each; -inf where none is counted."""
    lower = np.where(named > 0, stats.beta.ppf(risk, np.maximum(named, 1), of_named - named + 1), 0.0)
    upper = np.where(other < of_other, stats.beta.isf(risk, other + 1, np.maximum(of_other - other, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(lower) - np.log(upper)
