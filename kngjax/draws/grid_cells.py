"""Statistics plus noise, rounded to a public grid: the cell of what real arithmetic gives."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of, power_of_two
from kngjax.data.exact_sums import nearest
from kngjax.draws.noises import draw_noise
from kngjax.draws.uniforms import Bits, T, decided
from kngjax.geometry.scaled_norms import AbstractScaledNoise

# Cells are so many binary digits finer than what noise a mechanism adds for a single record.
_DIGITS = 40
# Beyond these powers of two float64 has fewer digits, or no number.
_SMALLEST, _LARGEST = -960, 960


class Grid(NamedTuple):
    """The multiples of 2^e_j of each coordinate. Public. **Arguments:** `exponents`: e, of shape (d,)."""

    exponents: tuple[int, ...]

    @classmethod
    def for_noise(cls, noise: AbstractScaledNoise, digits: int | None = None) -> "Grid | None":
        """Returns a grid finer than such noise by 2^-digits, or 2^-40; None without noise or beyond float64's range.

        Where the noise is that of one record, the records' number does not enter: it need not be known. Nor does the
        proof need any fineness.
        """
        if not noise.is_everywhere:
            return None
        squares = [noise.scale_squared * weight**2 for weight in noise.weights]
        return cls.for_squares(squares, digits)

    @classmethod
    def for_squares(cls, squares: Sequence[Fraction], digits: int | None = None) -> "Grid | None":
        """Returns a grid finer than noise with these squared lengths in its coordinates, all of them positive."""
        digits = _DIGITS if digits is None else digits
        exponents = [(one.numerator.bit_length() - one.denominator.bit_length()) // 2 - digits for one in squares]
        return cls(tuple(exponents)) if all(_SMALLEST < e < _LARGEST for e in exponents) else None

    def exact_values(self, cell: Sequence[int]) -> list[Fraction]:
        """Returns the grid's numbers of a cell."""
        return [number * power_of_two(e) for number, e in zip(cell, self.exponents, strict=True)]

    def values(self, cell: Sequence[int]) -> Float[np.ndarray, " dimension"]:
        """Returns the float64 numbers nearest to the grid's, the largest ones beyond: functions of the cell alone."""
        return np.nan_to_num(nearest(np.array([*self.exact_values(cell), None], object)[:-1]))

    def cell(self, places: Sequence[arb | Fraction]) -> list[int] | None:
        """k with t_j in [(k_j - ½)h_j, (k_j + ½)h_j), h_j = 2^e_j, for all t in these balls; None if it is not known.

        So t has the law of real arithmetic, rounded, if its balls contain what real arithmetic gives. A fraction is
        what real arithmetic gives.
        """
        found = []
        for place, exponent in zip(places, self.exponents, strict=True):
            if isinstance(place, Fraction):
                found.append(math.floor(place * power_of_two(-exponent) + Fraction(1, 2)))
                continue
            steps = place * ball_of(power_of_two(-exponent)) + arb(0.5)
            number = steps.floor().unique_fmpz() if steps.is_finite() else None
            if number is None:
                return None
            found.append(int(number))
        return found


def draw_cell(location: Sequence[Fraction], noise: AbstractScaledNoise, grid: Grid, bits: Bits) -> list[int]:
    """Returns the cell of T + z in real arithmetic: what is proved of any function of T + z holds of it.

    **Arguments:** `location`: T, private. `noise`: of z; its weights and scale are exact, z_j = λ·w_j·(standard z)_j.
    `bits`: fair and independent.
    """
    if not noise.is_everywhere:
        # No bounds lead here.
        raise AssertionError("there is no noise")
    return cell_of(
        grid,
        draw_noise(noise, bits).balls,
        lambda standard: [
            ball_of(middle) + a * z for middle, a, z in zip(location, noise.ball_scales, standard, strict=True)
        ],
    )


def cell_of(grid: Grid, drawn: Callable[[int], T], places: Callable[[T], Sequence[arb | Fraction] | None]) -> list[int]:
    """Returns the cell of a function of noise in real arithmetic.

    **Arguments:** `drawn`: the noise in balls, from so many digits. `places`: balls that contain what the function
    makes of all in such balls; None where more digits are needed.
    """

    def attempt(digits: int) -> list[int] | None:
        found = places(drawn(digits))
        return None if found is None else grid.cell(found)

    return decided(attempt)
