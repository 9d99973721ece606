"""Statistics plus noise, rounded to a public grid: the cell of what real arithmetic gives."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.geometry.abstract_norms import Noise
from kngjax.releases.grid.noises import draw_noise
from kngjax.releases.grid.uniforms import decided
from kngjax.releases.lattice.finite import Bits, ball_of
from kngjax.releases.lattice.units import scale

# Cells are so many binary digits finer than what noise a mechanism adds for a single record.
_DIGITS = 40
# Beyond these powers of two float64 has fewer digits, or no number.
_SMALLEST, _LARGEST = -960, 960


class Grid(NamedTuple):
    """The multiples of 2^e_j of each coordinate. Public. **Arguments:** `exponents`: e, of shape (d,)."""

    exponents: tuple[int, ...]

    @classmethod
    def for_noise(cls, noise: Noise) -> "Grid | None":
        """One that is much finer than such noise of one record; None without noise, or beyond float64's numbers.

        The records' number does not enter: it need not be known. Nor does the proof need any fineness.
        """
        if not noise.is_everywhere:
            return None
        squares = [noise.scale_squared * weight**2 for weight in noise.weights]
        exponents = [(one.numerator.bit_length() - one.denominator.bit_length()) // 2 - _DIGITS for one in squares]
        return cls(tuple(exponents)) if all(_SMALLEST < e < _LARGEST for e in exponents) else None

    def values(self, cell: Sequence[int]) -> Float[np.ndarray, " dimension"]:
        """The float64 numbers nearest to the grid's: functions of the cell alone."""
        return np.array([float(number * scale(e)) for number, e in zip(cell, self.exponents, strict=True)])


def draw_cell(location: Sequence[Fraction], noise: Noise, grid: Grid, bits: Bits) -> list[int]:
    """k with P(k) = P(T + z in the cell of k), where T_j + z_j in [(k_j - ½)h_j, (k_j + ½)h_j), h_j = 2^e_j.

    So it has the law of T + z in real arithmetic, rounded, and what is proved of any function of T + z holds of it.

    **Arguments:** `location`: T, private. `noise`: of z; its weights and scale are exact, z_j = λ·w_j·(standard z)_j.
    `bits`: fair and independent.
    """
    if not noise.is_everywhere:
        # No bounds lead here.
        raise AssertionError("there is no noise")
    standard = draw_noise(noise, bits)

    def attempt(digits: int) -> list[int] | None:
        length = ball_of(noise.scale_squared).sqrt()
        found = []
        for middle, weight, exponent, z in zip(
            location, noise.weights, grid.exponents, standard.balls(digits), strict=True
        ):
            unit = scale(exponent)
            place = ball_of(middle / unit + Fraction(1, 2)) + length * z * ball_of(weight / unit)
            cell = place.floor().unique_fmpz() if place.is_finite() else None
            if cell is None:
                return None
            found.append(int(cell))
        return found

    return decided(attempt)
