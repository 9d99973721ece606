"""Noise on symmetric matrices that are exact, rounded to a public grid: the laws of `kngjax.mechanisms.noise`."""

import abc
import dataclasses
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of, square
from kngjax.data.distinct_products import symmetric
from kngjax.data.exact_sums import Exact
from kngjax.draws.grid_cells import Grid, cell_of
from kngjax.draws.linear_algebra import dot
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.noisy_sums import Kind, NoisyNumbers, normal_noise
from kngjax.draws.uniforms import Bits, Uniform


class AbstractNoisyMatrix(abc.ABC):
    """Noise on a symmetric matrix, rounded once. Public."""

    @property
    @abc.abstractmethod
    def exponents(self) -> list[int]:
        """Lists the exponents of its grids, one for each kind of entry."""

    @abc.abstractmethod
    def draw_triangle(self, entries: Exact, bits: Bits) -> Float[np.ndarray, " entries"]:
        """Returns the entries on and above the diagonal, row by row and private, plus noise."""

    def draw(self, matrix: Exact, bits: Bits) -> Float[np.ndarray, "dimension dimension"]:
        """Returns the matrix, which is private, plus noise."""
        return symmetric(self.draw_triangle(matrix[np.triu_indices(len(matrix))], bits), len(matrix))


@dataclasses.dataclass(frozen=True)
class NoisyTriangle(AbstractNoisyMatrix):
    """Independent noise on the diagonal and on what is above it.

    **Arguments:** `diagonal`, `above`: their noise. `dimension`: of how many columns.
    """

    diagonal: NoisyNumbers
    above: NoisyNumbers
    dimension: int

    @classmethod
    def of(cls, kind: Kind, scale_squared: Fraction, dimension: int) -> "NoisyTriangle | None":
        """Makes Gaussian noise, isotropic in Frobenius norm (half the variance off the diagonal), or Laplace noise."""
        off_diagonal = scale_squared / 2 if kind == "gaussian" else scale_squared
        diagonal = NoisyNumbers.of(kind, scale_squared, dimension)
        above = NoisyNumbers.of(kind, off_diagonal, dimension * (dimension - 1) // 2)
        return None if diagonal is None or above is None else cls(diagonal, above, dimension)

    @property
    def exponents(self):
        return [part.grid.exponents[0] for part in (self.diagonal, self.above) if part.grid.exponents]

    def draw_triangle(self, entries, bits):
        values = np.zeros(len(entries))
        is_diagonal = np.equal(*np.triu_indices(self.dimension))
        for part, where in ((self.diagonal, is_diagonal), (self.above, ~is_diagonal)):
            values[where] = part.draw(entries[where], bits)
        return values


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
        grid = Grid.for_noise(normal_noise(2 * degrees * scale**2, number))
        return None if grid is None else cls(dimension, degrees, scale, grid)

    @property
    def exponents(self):
        return [self._grid.exponents[0]]

    def draw_triangle(self, entries, bits):
        rows, columns = np.triu_indices(self._dimension)

        def places(factor: list[list[arb]]) -> list[arb]:
            scale, found = ball_of(self._scale), []
            for row, column, place in zip(rows.tolist(), columns.tolist(), entries, strict=True):
                mean = self._degrees * self._scale if row == column else 0
                found.append(ball_of(Fraction(place) - mean) + scale * dot(factor[row], factor[column]))
            return found

        noise = _BartlettFactor(self._dimension, self._degrees, bits)
        return self._grid.values(cell_of(self._grid, noise.balls, places))


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
            length = -2 * product.log()
            if degrees % 2:
                length += square(next(normals))
            rows.append([next(normals) for _ in range(row)] + [length.sqrt()])
        return rows
