"""Θ in fractions: what lies in it, how far it reaches, and laws of some coordinates that fall off beyond it.

For every slope q and pull r ≥ 0, and with ρ(θ) = Σ|θ_j| on the l1 ball and ½Σθ_j² on the l2 ball, the law
∝ exp(q'θ - rρ(θ)) is one of independent numbers; on a box they end with it, and r is 0. With q = 0 and r the number of
coordinates over the radius, or its square, it is about as wide as Θ.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import exp, expm1, fsum, hypot, inf, log, pi

from flint import arb

from kngjax.accounting.exact_costs import root_upward
from kngjax.core.balls import ball_of, power_of_two
from kngjax.draws.grid_cells import Grid
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.shapes import Shape

# Cells are so many binary digits finer than Θ is wide.
_DIGITS = 40
_MARGIN = Fraction(1, 2**20)
# Slopes count as no steeper where float64 looks for an envelope.
_LONGEST = 1e300
Places = Callable[[int], list[arb]]


@dataclasses.dataclass(frozen=True)
class AbstractBody(abc.ABC):
    """Draws points of Θ from simple laws, and bounds linear functions on it. Public. **Arguments:** `shape`: Θ."""

    shape: Shape

    def grid(self) -> Grid:
        """Returns a grid that is much finer than Θ."""
        widths = [2 * half for half in self.shape.half_widths]
        return Grid(tuple(one.numerator.bit_length() - one.denominator.bit_length() - _DIGITS for one in widths))

    @abc.abstractmethod
    def inward(self, cell: Sequence[int], grid: Grid) -> list[int]:
        """Returns the cell, or one next to it, whose grid point lies in Θ if the cell has a point of Θ."""

    @abc.abstractmethod
    def most(self, slopes: Sequence[Fraction], pull: Fraction, axes: Sequence[int]) -> Fraction:
        """Bounds v'θ + rρ(θ_N) from above on Θ. **Arguments:** `slopes`: v, 0 on N. `pull`: r. `axes`: N."""

    @abc.abstractmethod
    def draw(self, axes: Sequence[int], slopes: Sequence[Fraction], pull: Fraction, bits: Bits) -> Places:
        """Draws θ_N with density ∝ exp(q'θ_N - rρ(θ_N)), as balls from so many digits.

        **Arguments:** `axes`: N. `slopes`: q, one an axis of N. `pull`: r; on the l1 ball more than each |q_j|, on the
        l2 ball positive.
        """

    @abc.abstractmethod
    def fall(self, places: Sequence[arb], pull: Fraction) -> arb:
        """rρ(θ_N)."""

    @abc.abstractmethod
    def log_mass(self, reaches: Sequence[float], pull: float) -> float:
        """Computes log ∫ exp(q'θ_N - rρ(θ_N)), rounded, in half widths. **Arguments:** `reaches`: q times those."""

    @abc.abstractmethod
    def about_most(self, reaches: Sequence[float], pull: float, blur: float) -> float:
        """Computes about what `most` is beyond the middle, in units of the half widths; r is of ρ in those, too.

        Smooth in both on the scale of `blur`, and no less.
        """

    @abc.abstractmethod
    def widened(self, reaches: Sequence[float], pull: float) -> float:
        """Returns an r, in units of the half widths, that makes a law of these slopes, and all of them for r > 0."""

    @property
    @abc.abstractmethod
    def unit_of_pull(self) -> Fraction:
        """ρ of a half width."""

    @abc.abstractmethod
    def wide_enough(self, slopes: Sequence[Fraction], pull: Fraction) -> Fraction:
        """Returns this r if it makes a law of these slopes, else one that does."""

    @abc.abstractmethod
    def best_pull(self, number: int) -> float:
        """Returns the r, in units of the half widths, for which the law of so many axes is closest to Θ."""


class BoxBody(AbstractBody):
    """lower ≤ θ ≤ upper."""

    def inward(self, cell, grid):
        sides = zip(cell, grid.exponents, self.shape.sides, strict=True)
        units = [(number, low / power_of_two(e), high / power_of_two(e)) for number, e, (low, high) in sides]
        return [max(-(-low // 1), min(number, high // 1)) for number, low, high in units]

    def most(self, slopes, pull, axes):
        pairs = zip(slopes, self.shape.sides, strict=True)
        return sum((max(slope * low, slope * high) for slope, (low, high) in pairs), Fraction(0))

    def draw(self, axes, slopes, pull, bits):
        uniforms = [Uniform(bits) for _ in axes]
        sides = [self.shape.sides[axis] for axis in axes]

        def places(digits):
            triples = zip(uniforms, sides, slopes, strict=True)
            return [_on_segment(uniform.ball(digits), *side, slope) for uniform, side, slope in triples]

        return places

    def fall(self, places, pull):
        return arb(0)

    def log_mass(self, reaches, pull):
        return _total(log_sinh(reach) for reach in reaches)

    def about_most(self, reaches, pull, blur):
        return _total(hypot(reach, blur) for reach in reaches)

    @property
    def unit_of_pull(self):
        return Fraction(1)

    def widened(self, reaches, pull):
        return 0.0

    def wide_enough(self, slopes, pull):
        return Fraction(0)

    def best_pull(self, number):
        return 0.0


class AbstractBallBody(AbstractBody):
    """Σ|θ_j|^power ≤ size."""

    @property
    def radius(self) -> Fraction:
        return self.shape.sides[0][1]

    @property
    def _size(self) -> Fraction:
        assert self.shape.size is not None
        return self.shape.size

    def inward(self, cell, grid):
        """Moves the cell a step towards 0 along every axis if the grid's point lies outside.

        It is at most half a step from θ along each axis, so that the step takes each coordinate to between 0 and θ_j.
        """
        if sum(abs(number) ** self.shape.power for number in grid.exact_values(cell)) <= self._size:
            return list(cell)
        return [number - (number > 0) + (number < 0) for number in cell]

    def best_pull(self, number):
        return float(number)


class SumBody(AbstractBallBody):
    """Σ|θ_j| ≤ radius."""

    def most(self, slopes, pull, axes):
        return self.radius * max(pull if axes else Fraction(0), *map(abs, slopes))

    def draw(self, axes, slopes, pull, bits):
        """Returns the difference of two exponential numbers of the rates r - q and r + q."""
        pairs = [(Uniform(bits), Uniform(bits)) for _ in axes]

        def places(digits):
            both = zip(pairs, slopes, strict=True)
            return [
                down.ball(digits).log() / ball_of(pull + slope) - up.ball(digits).log() / ball_of(pull - slope)
                for (up, down), slope in both
            ]

        return places

    def fall(self, places, pull):
        return ball_of(pull) * sum((abs(place) for place in places), arb(0))

    def log_mass(self, reaches, pull):
        if not reaches:
            return 0.0
        if any(abs(reach) >= pull for reach in reaches):
            return inf
        return _total(log(2.0 * pull) - log(pull - reach) - log(pull + reach) for reach in reaches)

    def about_most(self, reaches, pull, blur):
        largest = max(pull, 0.0, *map(abs, reaches))
        if blur == 0.0:
            return largest
        return largest + blur * log(fsum(exp((abs(size) - largest) / blur) for size in (pull, *reaches)))

    @property
    def unit_of_pull(self):
        return self.radius

    def widened(self, reaches, pull):
        return max(map(abs, reaches)) + pull

    def wide_enough(self, slopes, pull):
        return max(pull, max(map(abs, slopes)) * (1 + _MARGIN), 1 / self.radius)


class LengthBody(AbstractBallBody):
    """Σθ_j² ≤ radius²."""

    def most(self, slopes, pull, axes):
        """√(R² - s)|v| + ½rs is largest over 0 ≤ s ≤ R² at √(R² - s) = |v|/r, or at s = 0 where that is beyond R."""
        square = sum((slope**2 for slope in slopes), Fraction(0))
        if axes and square <= pull**2 * self._size:
            return square / (2 * pull) + pull * self._size / 2
        return root_upward(square * self._size)

    def draw(self, axes, slopes, pull, bits):
        """Normal numbers about q/r, of the variance 1/r."""
        normals = StandardNormalNoise(len(axes), bits)

        def places(digits):
            deviation = 1 / ball_of(pull).sqrt()
            pairs = zip(normals.balls(digits), slopes, strict=True)
            return [ball_of(slope / pull) + deviation * normal for normal, slope in pairs]

        return places

    def fall(self, places, pull):
        return ball_of(pull / 2) * sum((place * place for place in places), arb(0))

    def log_mass(self, reaches, pull):
        if not reaches:
            return 0.0
        length = hypot(*reaches)
        return 0.5 * len(reaches) * (log(2.0 * pi) - log(pull)) + 0.5 * length * (length / pull)

    def about_most(self, reaches, pull, blur):
        length = hypot(*reaches, blur)
        return 0.5 * (pull + length * (length / pull)) if pull > 0.0 and length <= pull else length

    @property
    def unit_of_pull(self):
        return self._size

    def widened(self, reaches, pull):
        return hypot(*reaches) + pull

    def wide_enough(self, slopes, pull):
        return max(pull, 1 / self._size)


_BODIES: dict[int, type[AbstractBody]] = {0: BoxBody, 1: SumBody, 2: LengthBody}


def body_of(shape: Shape) -> AbstractBody:
    """Θ of this shape."""
    # A ball in one dimension is a segment.
    return BoxBody(Shape(shape.sides)) if len(shape.sides) == 1 else _BODIES[shape.power](shape)


def _on_segment(uniform: arb, low: Fraction, high: Fraction, slope: Fraction) -> arb:
    """The number between low and high with density ∝ exp(qt) of a uniform one: from the end where it is highest."""
    if slope == 0:
        return ball_of(low) + uniform * ball_of(high - low)
    step = steps_down(uniform, ball_of(abs(slope)), ball_of(high - low))
    return ball_of(high) - step if slope > 0 else ball_of(low) + step


def steps_down(uniform: arb, rate: arb, length: arb) -> arb:
    """Returns the number in [0, length] with density ∝ exp(-rate·t) of a uniform one."""
    # exp(-rate·t) is uniform on [exp(-rate·length), 1].
    return -(uniform + (1 - uniform) * (-rate * length).exp()).log() / rate


def log_sinh(reach: float) -> float:
    """log ∫ exp(gu) du over [-1, 1]."""
    size = min(abs(reach), _LONGEST)
    return log(2.0) if size < 1e-9 else size + log(-expm1(-2.0 * size)) - log(size)


def _total(numbers: Iterable[float]) -> float:
    """Sums numbers with correct rounding; infinite where float64 has no sum, as choices by it must not fail."""
    try:
        return fsum(numbers)
    except (OverflowError, ValueError):
        return inf
