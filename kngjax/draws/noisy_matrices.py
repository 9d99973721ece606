"""Noise on symmetric matrices that are exact, rounded to a public grid: the laws of `kngjax.mechanisms.noise`."""

import abc
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of
from kngjax.data.exact_sums import Exact
from kngjax.draws.cells import Grid, draw_cell
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.uniforms import Bits, Uniform, decided
from kngjax.geometry.abstract_norms import Noise

Kind = Literal["gaussian", "laplace"]

_ONE = Fraction(1)


class NoisyNumbers(NamedTuple):
    """Independent noise of one size on several numbers, rounded once. Public. **Arguments:** `grid`: what to."""

    noise: Noise
    grid: Grid

    @classmethod
    def of(cls, kind: Kind, scale_squared: Fraction, number: int) -> "NoisyNumbers | None":
        """Normal noise of variance λ² or Laplace noise of scale λ; None where float64 might have no such numbers."""
        noise = Noise("normal" if kind == "gaussian" else "sum", (_ONE,) * number, scale_squared)
        grid = Grid.for_noise(noise)
        return None if grid is None else cls(noise, grid)

    def draw(self, location: Iterable[Any], bits: Bits) -> Float[np.ndarray, " numbers"]:
        """The location, which is private, plus noise. **Arguments:** `location`: whole numbers and fractions."""
        cell = draw_cell([Fraction(number) for number in location], self.noise, self.grid, bits)
        return self.grid.values(cell)


class AbstractNoisyMatrix(abc.ABC):
    """Noise on a symmetric matrix, rounded once. Public."""

    @property
    @abc.abstractmethod
    def exponents(self) -> list[int]:
        """Lists the exponents of its grids, one for each kind of entry."""

    @abc.abstractmethod
    def draw(self, matrix: Exact, bits: Bits) -> Float[np.ndarray, "dimension dimension"]:
        """The matrix, which is private, plus noise."""


class NoisyTriangle(AbstractNoisyMatrix):
    """Independent noise on the diagonal and on what is above it, mirrored below.

    **Arguments:** `diagonal`, `above`: their noise.
    """

    def __init__(self, diagonal: NoisyNumbers, above: NoisyNumbers):
        self._diagonal, self._above = diagonal, above

    @classmethod
    def of(cls, kind: Kind, scale_squared: Fraction, dimension: int) -> "NoisyTriangle | None":
        """Isotropic Gaussian noise in the Frobenius norm, of half the variance off the diagonal, or Laplace noise."""
        off_diagonal = scale_squared / 2 if kind == "gaussian" else scale_squared
        diagonal = NoisyNumbers.of(kind, scale_squared, dimension)
        above = NoisyNumbers.of(kind, off_diagonal, dimension * (dimension - 1) // 2)
        return None if diagonal is None or above is None else cls(diagonal, above)

    @property
    def exponents(self):
        return [part.grid.exponents[0] for part in (self._diagonal, self._above) if part.grid.exponents]

    def draw(self, matrix, bits):
        above = np.triu_indices(len(matrix), 1)
        result = np.diag(self._diagonal.draw(matrix.diagonal(), bits))
        result[above] = self._above.draw(matrix[above], bits)
        result.T[above] = result[above]
        return result


class NoisyByWishart(AbstractNoisyMatrix):
    """W - ksI with W of k degrees of freedom and scale s: its mean taken off.

    W = s·TT' with T lower triangular, of independent entries: normal below the diagonal, and on it T_ii² a chi-square
    number of k - i + 1 degrees of freedom (Bartlett 1933; Muirhead 1982, Theorem 3.2.14). That is -2 log of the product
    of half as many uniform numbers, and a normal number's square where the degrees are odd.

    **Arguments:** `scale`: s. `grid`: of the entries on and above the diagonal.
    """

    def __init__(self, dimension: int, degrees: int, scale: Fraction, grid: Grid):
        self._dimension, self._degrees, self._scale, self._grid = dimension, degrees, scale, grid

    @classmethod
    def of(cls, dimension: int, degrees: int, scale: Fraction) -> "NoisyByWishart | None":
        """Chooses the grid; None where float64 might have no such numbers. **Arguments:** `degrees`: k > d."""
        number = dimension * (dimension + 1) // 2
        grid = Grid.for_noise(Noise("normal", (_ONE,) * number, 2 * degrees * scale**2))
        return None if grid is None else cls(dimension, degrees, scale, grid)

    @property
    def exponents(self):
        return [self._grid.exponents[0]]

    def draw(self, matrix, bits):
        rows, columns = np.triu_indices(self._dimension)
        location = [Fraction(number) for number in matrix[rows, columns]]
        noise = _BartlettFactor(self._dimension, self._degrees, bits)

        def attempt(digits: int) -> list[int] | None:
            factor, scale = noise.balls(digits), ball_of(self._scale)
            places = []
            for row, column, place in zip(rows.tolist(), columns.tolist(), location, strict=True):
                product = sum((factor[row][k] * factor[column][k] for k in range(row + 1)), arb(0))
                mean = self._degrees * self._scale if row == column else 0
                places.append(ball_of(place - mean) + scale * product)
            return self._grid.cell(places)

        result = np.zeros((self._dimension, self._dimension))
        result[rows, columns] = self._grid.values(decided(attempt))
        result[columns, rows] = result[rows, columns]
        return result


class _BartlettFactor:
    """Holds one draw of T, to as many digits as are asked for."""

    def __init__(self, dimension: int, degrees: int, bits: Bits):
        self._degrees = [degrees - row for row in range(dimension)]
        self._uniforms = [[Uniform(bits) for _ in range(number // 2)] for number in self._degrees]
        odd = sum(number % 2 for number in self._degrees)
        self._normals = StandardNormalNoise(odd + dimension * (dimension - 1) // 2, bits)

    def balls(self, digits: int) -> list[list[arb]]:
        """Balls that contain the rows of T up to the diagonal: of the same draw each time."""
        normals = iter(self._normals.balls(digits))
        rows = []
        for row, (degrees, uniforms) in enumerate(zip(self._degrees, self._uniforms, strict=True)):
            product = arb(1)
            for uniform in uniforms:
                product *= uniform.ball(digits)
            square = -2 * product.log()
            if degrees % 2:
                square += next(normals) ** 2
            rows.append([next(normals) for _ in range(row)] + [square.sqrt()])
        return rows
