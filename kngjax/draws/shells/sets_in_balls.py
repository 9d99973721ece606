"""The two sets that points are drawn from, in balls: balls of the norm of gradients, and Θ."""

import abc
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of, largest
from kngjax.draws.noises import AbstractStandardNoise, LengthNoise, StandardNormalNoise, SumNoise, draw_noise
from kngjax.draws.shells.matrices import upward
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape


def length(vector: Sequence[arb]) -> arb:
    """(Σ v_j²)^½; balls of what is next to 0 would reach below it."""
    return sum((v * v for v in vector), arb(0)).nonnegative_part().sqrt()


class NearPoint(NamedTuple):
    """Float64 numbers, and how far each of them is from what it stands for at most. Private where that is."""

    values: Float[np.ndarray, " dimension"]
    errors: Float[np.ndarray, " dimension"]

    def __repr__(self) -> str:
        return "<NearPoint; OWNER ONLY>"


def near_balls(balls: Sequence[arb]) -> NearPoint:
    """Returns float64 numbers about the middles of balls; infinitely far off where a ball is not finite."""
    values = [float(one.mid()) if one.is_finite() else 0.0 for one in balls]
    errors = [upward((one - arb(near)).abs_upper()) for one, near in zip(balls, values, strict=True)]
    return NearPoint(np.array(values), np.array(errors))


def round_volume(dimension: int) -> arb:
    """Returns the volume of {v ∈ R^d : |v| ≤ 1}."""
    half = arb(dimension) / 2
    return arb.pi() ** half / (half + 1).gamma()


def between(inner: arb, outer: arb, power: int, uniform: arb) -> arb:
    """(a^p + U(b^p - a^p))^{1/p}: a radius of a point that is uniform between two balls."""
    low, high = inner**power, outer**power
    return (low + uniform * (high - low)).root(power)


class ScaledNormInBalls(NamedTuple):
    """‖z‖ = c·‖z‖_K, of which KNG's density is exp(-‖G(θ)‖). **Arguments:** `noise`: with density ∝ exp(-‖z‖)."""

    noise: ScaledNorm

    @property
    def dimension(self) -> int:
        return len(self.noise.weights)

    @property
    def scales(self) -> list[arb]:
        """a, where ‖z‖ is the largest |z_j|/a_j, their sum, or the root of the sum of their squares."""
        root = ball_of(self.noise.scale_squared).sqrt()
        return [root * ball_of(weight) for weight in self.noise.weights]

    def __call__(self, z: Sequence[arb]) -> arb:
        """‖z‖."""
        return self._standard([one / a for one, a in zip(z, self.scales, strict=True)])

    def dual(self, slope: Sequence[arb]) -> arb:
        """sup {b'z : ‖z‖ ≤ 1}."""
        sizes = [abs(b * a) for b, a in zip(slope, self.scales, strict=True)]
        kind = self.noise.kind
        return sum(sizes, arb(0)) if kind == "maximum" else largest(sizes) if kind == "sum" else length(sizes)

    @property
    def volume(self) -> arb:
        """Computes the volume of {z : ‖z‖ ≤ 1}."""
        dimension, total = self.dimension, arb(1)
        for a in self.scales:
            total *= a
        if self.noise.kind == "length":
            return total * round_volume(dimension)
        total *= arb(2) ** dimension
        return total / arb(dimension).fac() if self.noise.kind == "sum" else total

    def direction(self, drawn: AbstractStandardNoise, digits: int) -> list[arb]:
        """z/‖z‖ of such noise: as that of a uniform point of the ball."""
        standard = drawn.balls(digits)
        size = self._standard(standard)
        return [a * one / size for one, a in zip(standard, self.scales, strict=True)]

    def draw(self, bits: Bits) -> AbstractStandardNoise:
        """Draws the noise that `direction` turns into a unit vector."""
        return draw_noise(self.noise, bits)

    def _standard(self, z: Sequence[arb]) -> arb:
        sizes, kind = [abs(one) for one in z], self.noise.kind
        return largest(sizes) if kind == "maximum" else sum(sizes, arb(0)) if kind == "sum" else length(sizes)


class AbstractUniformPoint(abc.ABC):
    """Holds a uniform point of Θ, to as many digits as are asked for."""

    @abc.abstractmethod
    def balls(self, digits: int) -> list[arb]:
        """Balls that contain its coordinates, from so many digits: of the same point each time."""

    def near(self) -> NearPoint:
        """Returns float64 numbers about its coordinates, from 64 digits."""
        return near_balls(self.balls(64))


class _PointOfBox(AbstractUniformPoint):
    def __init__(self, lower: np.ndarray, upper: np.ndarray, bits: Bits):
        self._lower, self._upper = lower, upper
        self._shares = [Uniform(bits) for _ in lower]

    def balls(self, digits):
        ends = [(arb(low), arb(high)) for low, high in zip(self._lower.tolist(), self._upper.tolist(), strict=True)]
        pairs = zip(ends, self._shares, strict=True)
        return [low + (high - low) * share.ball(digits) for (low, high), share in pairs]

    def near(self) -> NearPoint:
        """Returns float64 numbers about its coordinates.

        Each U is off by 2^-52, the computed width of its side by u relatively, the product by u, and the sum by u.
        """
        width = self._upper - self._lower
        values = self._lower + width * np.array([share.near() for share in self._shares])
        return NearPoint(values, 2.0**-50 * (np.abs(self._lower) + width))


class _PointOfBall(AbstractUniformPoint):
    """A direction times the radius U^{1/d}; the direction is that of noise whose norm is that of the ball."""

    def __init__(self, radius: Fraction, dimension: int, power: int, bits: Bits):
        self._radius, self._dimension, self._power = radius, dimension, power
        self._noise = (SumNoise if power == 1 else LengthNoise)(dimension, bits)
        self._share = Uniform(bits)

    def balls(self, digits):
        noise = self._noise.balls(digits)
        size = sum((abs(one) for one in noise), arb(0)) if self._power == 1 else length(noise)
        factor = ball_of(self._radius) * self._share.ball(digits).root(self._dimension) / size
        return [factor * one for one in noise]


class ShapeInBalls(NamedTuple):
    """Θ. **Arguments:** `shape`: public."""

    shape: Shape

    @property
    def dimension(self) -> int:
        return len(self.shape.lower)

    @property
    def _ends(self) -> tuple[list[Fraction], list[Fraction]]:
        return [Fraction(float(v)) for v in self.shape.lower], [Fraction(float(v)) for v in self.shape.upper]

    @property
    def volume(self) -> arb:
        """Computes the Lebesgue measure of Θ."""
        dimension = self.dimension
        if self.shape.radius is None:
            total = arb(1)
            for low, high in zip(*self._ends, strict=True):
                total *= ball_of(high - low)
            return total
        size = arb(self.shape.radius) ** dimension
        return size * (2**dimension / arb(dimension).fac() if self.shape.power == 1 else round_volume(dimension))

    @property
    def scales(self) -> Float[np.ndarray, "dimension dimension"]:
        """Returns half of each side of Θ, on a diagonal."""
        return np.diag(self.shape.upper / 2 - self.shape.lower / 2)

    def contains(self, theta: Sequence[arb]) -> bool | None:
        """Tells whether θ lies in Θ; None if the balls leave it open."""
        if self.shape.radius is not None:
            power = self.shape.power
            size, most = sum((abs(t) ** power for t in theta), arb(0)), arb(self.shape.radius) ** power
            return True if size <= most else False if size > most else None
        inside = True
        for t, low, high in zip(theta, self.shape.lower, self.shape.upper, strict=True):
            if t < arb(float(low)) or t > arb(float(high)):
                return False
            inside = inside and bool(t >= arb(float(low))) and bool(t <= arb(float(high)))
        return True if inside else None

    def least(self, slope: Sequence[arb]) -> arb:
        """min b'θ over Θ."""
        if self.shape.radius is None:
            products = [
                (b * arb(float(low))).min(b * arb(float(high)))
                for b, low, high in zip(slope, self.shape.lower, self.shape.upper, strict=True)
            ]
            return sum(products, arb(0))
        reach = largest([abs(b) for b in slope]) if self.shape.power == 1 else length(slope)
        return -arb(self.shape.radius) * reach

    def farthest(
        self, rows: Float[np.ndarray, "*rows dimension"], theta: Float[np.ndarray, " dimension"]
    ) -> np.ndarray:
        """sup {|x'(t - θ)| : t ∈ Θ} of each row x, rounded up by far more than float64 errs."""
        sizes = np.abs(rows)
        if self.shape.radius is None:
            reach = sizes @ np.maximum(np.abs(self.shape.upper - theta), np.abs(self.shape.lower - theta))
        else:
            dual = sizes.max(axis=-1) if self.shape.power == 1 else np.sqrt(np.square(sizes).sum(axis=-1))
            reach = self.shape.radius * dual + np.abs(rows @ theta) + 1e-9 * (sizes @ np.abs(theta))
        return reach * (1.0 + 1e-9) + 1e-200

    def nearby(self, theta: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """θ, or about the last point but 2% on the way to it from the middle of Θ."""
        middle = self.shape.lower / 2 + self.shape.upper / 2
        away, half = theta - middle, self.shape.upper / 2 - self.shape.lower / 2
        if not np.all(np.isfinite(away)):
            return middle
        if self.shape.radius is None:
            size = float(np.max(np.abs(away / half)))
        else:
            size = float(np.linalg.norm(away, self.shape.power)) / self.shape.radius
        return theta if size < 0.98 else middle + away * (0.98 / size)

    def draw(self, bits: Bits) -> AbstractUniformPoint:
        """Draws a uniform point of Θ."""
        if self.shape.radius is None:
            return _PointOfBox(np.asarray(self.shape.lower, float), np.asarray(self.shape.upper, float), bits)
        return _PointOfBall(Fraction(self.shape.radius), self.dimension, self.shape.power, bits)


class RoundDirection:
    """A uniform point of the sphere |v| = 1."""

    def __init__(self, dimension: int, bits: Bits):
        self._normals = StandardNormalNoise(dimension, bits)

    def balls(self, digits: int) -> list[arb]:
        """Returns balls that contain the point's coordinates, from so many digits."""
        normals = self._normals.balls(digits)
        size = length(normals)
        return [one / size for one in normals]
