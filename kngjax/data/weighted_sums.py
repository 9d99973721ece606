"""Sums over records weighted by a function of each record and of public numbers, exactly."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from kngjax.core.balls import power_of_two
from kngjax.data.exact_sums import gram, weighted_gram_of

# Binary digits of a weighted row's largest number: two cuts of `kngjax.data.exact_sums` hold them.
_DIGITS = 43
# Few enough records that what is made of them stays in a processor's cache.
_RECORDS = 1 << 13


class RootWeights(NamedTuple):
    """Computes √s for the weights s = 1/max(m, |y - x'θ|)^{2q} of reweighted least squares. Public.

    **Arguments:** `least`: m > 0. `power`: q > 0. `largest`: U, which no root exceeds.
    """

    least: float
    power: float
    largest: float

    @classmethod
    def of(cls, cap: float, power: float) -> "RootWeights | None":
        """m = 1/κ and q = 1 - p/2, hence s ≤ κ^{2-p}; None beyond float64's numbers."""
        with np.errstate(over="ignore"):
            least = float(np.float64(1.0) / np.float64(cap))
        if not 0.0 < least < math.inf:
            return None
        largest = float(_inverse_powers(np.array([least]), 1.0 - 0.5 * power)[0])
        return cls(least, 1.0 - 0.5 * power, largest) if 0.0 < largest < math.inf else None

    def __call__(
        self, columns: Float[np.ndarray, "dimension records"], y: Float[np.ndarray, " records"], theta: np.ndarray
    ) -> Float[np.ndarray, " records"]:
        """u, with 0 ≤ u ≤ U: of each record by itself, whichever records stand beside it, and however many. Private.

        Every operation takes one number of each record, and IEEE 754 says what it gives: products and differences of
        columns one after another, |·|, the larger of two, 1/√ for q = ½, and else C's pow of one number at a time. No
        product of matrices, and no vectorised power, whose last numbers may be computed by other means than the rest.
        A residual that is no number, of a θ beyond float64's numbers, counts as infinite, so that u = 0.
        """
        with np.errstate(all="ignore"):
            residuals = y.copy()
            for column, coefficient in zip(columns, theta, strict=True):
                residuals -= column * coefficient
            residuals[np.isnan(residuals)] = np.inf
            roots = _inverse_powers(np.maximum(self.least, np.abs(residuals)), self.power)
        return np.minimum(roots, self.largest)


def _inverse_powers(distances: np.ndarray, power: float) -> np.ndarray:
    if power == 0.5:
        return 1.0 / np.sqrt(distances)
    return np.array([math.pow(distance, -power) for distance in distances.tolist()])


class WeightedRows(NamedTuple):
    """Computes the rows u·z of records z, rounded to a public grid of 2^-43 of their largest numbers. Public.

    Column j is v = 2^e·⌊fl(u·z)·2^-e⌉. Rounding to nearest is odd and rises with what is rounded, 0 ≤ u ≤ U and
    |z| ≤ Z, so |v| is at most what U and Z give: V, in `sizes`. A sensitivity is proved of rows within these sizes, and
    no error of rounding is left to be covered.

    **Arguments:** `exponents`: e, of every column. `sizes`: V.
    """

    exponents: tuple[int, ...]
    sizes: tuple[Fraction, ...]

    @classmethod
    def of(cls, largest_root: float, largest: list[float]) -> "WeightedRows | None":
        """**Arguments:** `largest_root`: U. `largest`: Z of every column. None beyond float64's numbers."""
        sizes = [largest_root * size for size in largest]
        if not all(1e-250 < size < 1e250 for size in sizes):
            return None
        exponents = tuple(math.frexp(size)[1] - _DIGITS for size in sizes)
        wholes = (round(math.ldexp(size, -e)) for size, e in zip(sizes, exponents, strict=True))
        return cls(exponents, tuple(whole * power_of_two(e) for whole, e in zip(wholes, exponents, strict=True)))

    def squared_length(self, largest_root: float, square: Fraction) -> Fraction:
        """Bounds from above sup Σ_j v_j² over x with Σ_j x_j² ≤ X², of all columns but the last, which is y's.

        |v_j - u·x_j| ≤ 2^e_j: half of that by rint, and 2^-10 of it by the product's rounding. So the length is at most
        UX + h with h² = Σ_j 4^e_j, and its square at most (1 + t)U²X² + (1 + 1/t)h² for every t > 0; with t = 2^-40
        that is hardly more than U²X². And it is at most Σ_j V_j².

        **Arguments:** `largest_root`: U. `square`: X².
        """
        share = power_of_two(-40)
        steps = sum((power_of_two(2 * e) for e in self.exponents[:-1]), Fraction(0))
        near = (1 + share) * Fraction(largest_root) ** 2 * square + (1 + 1 / share) * steps
        return min(near, sum((size**2 for size in self.sizes[:-1]), Fraction(0)))

    def gram(
        self,
        columns: Float[np.ndarray, "columns records"],
        weigh: Callable[[Float[np.ndarray, "columns some"]], Float[np.ndarray, " some"] | float],
        shares: Float[np.ndarray, " records"] | None = None,
    ) -> Shaped[np.ndarray, "columns columns"]:
        """Computes Σ v v', or Σ w v v', exactly. Private.

        **Arguments:** `columns`: z. `weigh`: a function from some records' columns to their u. `shares`: w, None for 1.
        """
        total = np.zeros((len(columns), len(columns)), object)
        for start in range(0, columns.shape[1], _RECORDS):
            some = slice(start, start + _RECORDS)
            rows = self._wholes(columns[:, some], weigh(columns[:, some])).T
            total = total + (gram(rows) if shares is None else weighted_gram_of(rows, shares[some]))
        units = np.array([power_of_two(e) for e in self.exponents], object)
        return total * units[:, None] * units[None]

    def _wholes(self, columns: np.ndarray, roots: np.ndarray | float) -> np.ndarray:
        """v·2^-e."""
        wholes = np.multiply(columns, roots)
        # By powers of two, so that nothing is rounded but by rint.
        wholes *= np.ldexp(1.0, [-e for e in self.exponents])[:, None]
        return np.rint(wholes, out=wholes)
