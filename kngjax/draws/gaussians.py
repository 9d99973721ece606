"""Ridge regressions with Gaussian noise, rounded to a public grid: the cell of what real arithmetic gives."""

from fractions import Fraction
from typing import Literal, NamedTuple

from flint import arb

from kngjax.core.balls import ball_of
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.cells import Grid
from kngjax.draws.noises import draw_noise
from kngjax.draws.uniforms import Bits, decided
from kngjax.geometry.abstract_norms import Noise

Rows = list[list[arb]]


class RidgeNoise(NamedTuple):
    """The law N(H^{-1}X'y, σ²H^{-p}) with H = X'X + λI. **Arguments:** `ridge`: λ > 0. `variance`: σ². `power`: p."""

    ridge: Fraction
    variance: Fraction
    power: Literal[1, 2]


def draw_ridge(sums: ExactSums, noise: RidgeNoise, grid: Grid, bits: Bits) -> list[int]:
    """The cell of a draw from this law in real arithmetic: what is proved of any function of such a draw holds of it.

    With LL' = H, L lower triangular, and z standard normal it is L'^{-1}(L^{-1}X'y + σz), or for p = 2
    L'^{-1}L^{-1}(X'y + σz). As λ > 0 some number of digits tells that every pivot of H is positive.

    **Arguments:** `sums`: X'X and X'y, private. `bits`: fair and independent.
    """
    standard = draw_noise(Noise("normal", (Fraction(1),) * sums.dimension, noise.variance), bits)

    def attempt(digits: int) -> list[int] | None:
        factor, deviation = _cholesky(sums, noise.ridge), ball_of(noise.variance).sqrt()
        moments, normals = [ball_of(number) for number in sums.moment], standard.balls(digits)
        if noise.power == 2:
            moments = [moment + deviation * z for moment, z in zip(moments, normals, strict=True)]
        whitened = _solve(factor, moments)
        if noise.power == 1:
            whitened = [middle + deviation * z for middle, z in zip(whitened, normals, strict=True)]
        return grid.cell(_solve_transposed(factor, whitened))

    return decided(attempt)


def ridge_estimate(sums: ExactSums, ridge: Fraction) -> list[arb]:
    """H^{-1}X'y in balls; no numbers where too few digits leave it open whether H is positive definite. Private."""
    factor = _cholesky(sums, ridge)
    return _solve_transposed(factor, _solve(factor, [ball_of(number) for number in sums.moment]))


def _cholesky(sums: ExactSums, ridge: Fraction) -> Rows:
    """L by rows, in balls: no numbers where too few digits leave it open whether a pivot is positive."""
    rows: Rows = []
    for index, numbers in enumerate(sums.gram):
        row: list[arb] = []
        for number, earlier in zip(numbers, rows, strict=False):
            row.append((ball_of(number) - _dot(row, earlier)) / earlier[-1])
        row.append((ball_of(numbers[index] + ridge) - _dot(row, row)).sqrt())
        rows.append(row)
    return rows


def _solve(factor: Rows, right: list[arb]) -> list[arb]:
    """L^{-1}v."""
    found: list[arb] = []
    for row, number in zip(factor, right, strict=True):
        found.append((number - _dot(row, found)) / row[-1])
    return found


def _solve_transposed(factor: Rows, right: list[arb]) -> list[arb]:
    """L'^{-1}v."""
    left = list(right)
    for index in reversed(range(len(left))):
        *row, pivot = factor[index]
        left[index] /= pivot
        for column, entry in enumerate(row):
            left[column] -= entry * left[index]
    return left


def _dot(first: list[arb], second: list[arb]) -> arb:
    """Computes the inner product over as many entries as the shorter vector has."""
    return sum((one * other for one, other in zip(first, second, strict=False)), arb(0))
