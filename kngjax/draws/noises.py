"""Noise as functions of uniform numbers, in balls that contain what real arithmetic makes of them.

z ∈ R^d of independent normal numbers, or with density ∝ exp(-‖z‖), for ‖z‖ = max_j |z_j|, Σ_j |z_j|, (Σ_j z_j²)^½ and
the largest norm of a block of columns.
In polar coordinates ‖z‖ has the density ∝ r^(d-1)·e^-r, that of the sum of d exponential numbers -log U, and the point
of the unit sphere is drawn by itself; a radius of d + 1 of them goes with a uniform point of the unit ball.
"""

import abc
from collections.abc import Sequence

from flint import arb

from kngjax.draws.finite import below
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.blocks import Block, ScaledBlocks
from kngjax.geometry.scaled_norms import AbstractScaledNoise, ScaledNorm


class AbstractStandardNoise(abc.ABC):
    """Holds one draw of z, to as many digits as are asked for."""

    @abc.abstractmethod
    def balls(self, digits: int) -> list[arb]:
        """Balls that contain each z_j, from so many digits of every uniform number: of the same draw each time."""


class MaximumNoise(AbstractStandardNoise):
    """‖z‖ = max_j |z_j|: a uniform point of the cube, times a radius of d + 1 exponential numbers."""

    def __init__(self, dimension: int, bits: Bits):
        self._radius = [Uniform(bits) for _ in range(dimension + 1)]
        self._point = [Uniform(bits) for _ in range(dimension)]

    def balls(self, digits):
        radius = _exponential_sum(self._radius, digits)
        return [radius * (2 * uniform.ball(digits) - 1) for uniform in self._point]


class SumNoise(AbstractStandardNoise):
    """‖z‖ = Σ_j |z_j|: exponential numbers, each with a sign of its own."""

    def __init__(self, dimension: int, bits: Bits):
        self._sizes = [Uniform(bits) for _ in range(dimension)]
        self._signs = [1 - 2 * bits(1) for _ in range(dimension)]

    def balls(self, digits):
        return [sign * _exponential_sum([size], digits) for size, sign in zip(self._sizes, self._signs, strict=True)]


class StandardNormalNoise(AbstractStandardNoise):
    """Independent normal numbers, two at a time: √(-2 log U)·(cos 2πV, sin 2πV) (Box and Muller 1958)."""

    def __init__(self, dimension: int, bits: Bits):
        self._dimension = dimension
        self._pairs = [(Uniform(bits), Uniform(bits)) for _ in range((dimension + 1) // 2)]

    def balls(self, digits):
        normals: list[arb] = []
        for size, angle in self._pairs:
            length, turn = (2 * _exponential_sum([size], digits)).sqrt(), 2 * angle.ball(digits)
            normals += [length * turn.cos_pi(), length * turn.sin_pi()]
        return normals[: self._dimension]


class LengthNoise(AbstractStandardNoise):
    """‖z‖ = (Σ_j z_j²)^½: normal numbers over their length, times a radius of d exponential numbers."""

    def __init__(self, dimension: int, bits: Bits):
        self._radius = [Uniform(bits) for _ in range(dimension)]
        self._normals = StandardNormalNoise(dimension, bits)

    def balls(self, digits):
        normals = self._normals.balls(digits)
        factor = _exponential_sum(self._radius, digits) / sum((x * x for x in normals), arb(0)).sqrt()
        return [factor * normal for normal in normals]


class BlockNoise(AbstractStandardNoise):
    """‖z‖ is the largest norm of a block: uniform points of their balls, times a radius of D + 1 exponential numbers.

    The points are those of `kngjax.geometry.blocks.uniform_points`, of simplices: positive columns of an exchange are
    those of its columns that are among L of 2L things, all choices alike, by whole numbers without rounding.
    """

    def __init__(self, blocks: Sequence[Block], bits: Bits):
        simplices: list[dict[int, int]] = []
        for block in blocks:
            is_exchange, size = block.kind == "exchange", len(block.columns)
            signs = _exchanged(size, bits) if is_exchange else [1 - 2 * bits(1) for _ in range(size)]
            pairs = list(zip(block.columns, signs, strict=True))
            sides = [{column: sign for column, sign in pairs if sign == side} for side in (1, -1)]
            simplices += sides if is_exchange else [dict(pairs)]
        # A size for each column, and one more.
        self._simplices = [(signs, [Uniform(bits) for _ in range(len(signs) + 1)]) for signs in simplices if signs]
        self._radius = [Uniform(bits) for _ in range(1 + sum(len(signs) for signs in simplices))]

    def balls(self, digits):
        radius, found = _exponential_sum(self._radius, digits), dict[int, arb]()
        for signs, uniforms in self._simplices:
            sizes = [_exponential_sum([uniform], digits) for uniform in uniforms]
            unit = radius / sum(sizes, arb(0))
            found |= {column: sign * size * unit for (column, sign), size in zip(signs.items(), sizes, strict=False)}
        return [found[column] for column in sorted(found)]


def _exchanged(size: int, bits: Bits) -> list[int]:
    """Chooses L of 2L things, one after another: the sign of each of the first L, 1 where it is chosen."""
    signs, wanted = [], size
    for left in range(2 * size, size, -1):
        is_chosen = below(left, bits) < wanted
        wanted -= is_chosen
        signs.append(1 if is_chosen else -1)
    return signs


_STANDARD = {"maximum": MaximumNoise, "sum": SumNoise, "length": LengthNoise, "normal": StandardNormalNoise}


def draw_noise(noise: AbstractScaledNoise, bits: Bits) -> AbstractStandardNoise:
    """Draws standard noise of this kind."""
    if isinstance(noise, ScaledBlocks):
        return BlockNoise(noise.blocks, bits)
    assert isinstance(noise, ScaledNorm)
    return _STANDARD[noise.kind](len(noise.weights), bits)


def _exponential_sum(uniforms: list[Uniform], digits: int) -> arb:
    """-Σ log U: no number at all where digits leave it open whether a U is 0."""
    return -sum((uniform.ball(digits).log() for uniform in uniforms), arb(0))
