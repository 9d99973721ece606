"""The two sets that points are drawn from, in balls: balls of the norm of gradients, and Θ."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of
from kngjax.draws.noises import LengthNoise, SumNoise
from kngjax.draws.quadratic.bodies import BoxBody, Places
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.scaled_norms import ScaledNorm, norm_in_balls
from kngjax.geometry.shapes import Shape


def length(vector: Sequence[arb]) -> arb:
    """(Σ v_j²)^½."""
    return norm_in_balls("length", vector)


def round_volume(dimension: int) -> arb:
    """Returns the volume of {v ∈ R^d : |v| ≤ 1}."""
    half = arb(dimension) / 2
    return arb.pi() ** half / (half + 1).gamma()


def between(inner: arb, outer: arb, power: int, uniform: arb) -> arb:
    """(a^p + U(b^p - a^p))^{1/p}: a radius of a point that is uniform between two balls."""
    low, high = inner**power, outer**power
    return (low + uniform * (high - low)).root(power)


def unit_volume(gauge: ScaledNorm) -> arb:
    """Computes the volume of {z : ‖z‖ ≤ 1}."""
    dimension, total = len(gauge.weights), arb(1)
    for a in gauge.ball_scales:
        total *= a
    if gauge.kind == "length":
        return total * round_volume(dimension)
    total *= arb(2) ** dimension
    return total / arb(dimension).fac() if gauge.kind == "sum" else total


def unit_vector(kind: str, numbers: Sequence[arb]) -> list[arb]:
    """z/‖z‖: of noise that has this norm, as that of a uniform point of the ball."""
    size = norm_in_balls(kind, numbers)
    return [one / size for one in numbers]


def volume(shape: Shape) -> arb:
    """Computes the Lebesgue measure of Θ."""
    dimension = len(shape.sides)
    if shape.size is None:
        total = arb(1)
        for low, high in shape.sides:
            total *= ball_of(high - low)
        return total
    size = ball_of(shape.sides[0][1]) ** dimension
    return size * (2**dimension / arb(dimension).fac() if shape.power == 1 else round_volume(dimension))


def least(shape: Shape, slope: Sequence[arb]) -> arb:
    """min b'θ over Θ."""
    if shape.size is None:
        pairs = zip(slope, shape.sides, strict=True)
        return sum(((b * ball_of(low)).min(b * ball_of(high)) for b, (low, high) in pairs), arb(0))
    return -ball_of(shape.sides[0][1]) * norm_in_balls("maximum" if shape.power == 1 else "length", slope)


def farthest(
    shape: Shape, rows: Float[np.ndarray, "*rows dimension"], theta: Float[np.ndarray, " dimension"]
) -> np.ndarray:
    """sup {|x'(t - θ)| : t ∈ Θ} of each row x, rounded up by far more than float64 errs."""
    sizes = np.abs(rows)
    if shape.radius is None:
        reach = sizes @ np.maximum(np.abs(shape.upper - theta), np.abs(shape.lower - theta))
    else:
        dual = sizes.max(axis=-1) if shape.power == 1 else np.sqrt(np.square(sizes).sum(axis=-1))
        reach = shape.radius * dual + np.abs(rows @ theta) + 1e-9 * (sizes @ np.abs(theta))
    return reach * (1.0 + 1e-9) + 1e-200


def nearby(shape: Shape, theta: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
    """θ, or about the last point but 2% on the way to it from the middle of Θ."""
    middle, half = shape.lower / 2 + shape.upper / 2, shape.upper / 2 - shape.lower / 2
    away = theta - middle
    if not np.all(np.isfinite(away)):
        return middle
    # The norm of a box's half widths is the largest.
    size = float(np.linalg.norm(away / half, shape.power or np.inf))
    return theta if size < 0.98 else middle + away * (0.98 / size)


def uniform_point(shape: Shape, bits: Bits) -> Places:
    """Draws a uniform point of Θ, as balls from so many digits."""
    dimension = len(shape.sides)
    if shape.size is None:
        return BoxBody(shape).draw(range(dimension), [Fraction(0)] * dimension, Fraction(0), bits)
    # A direction times the radius U^{1/d}; the direction is that of noise whose norm is that of the ball.
    kind, noise = ("sum", SumNoise) if shape.power == 1 else ("length", LengthNoise)
    drawn, share = noise(dimension, bits), Uniform(bits)

    def places(digits: int) -> list[arb]:
        size = ball_of(shape.sides[0][1]) * share.ball(digits).root(dimension)
        return [size * one for one in unit_vector(kind, drawn.balls(digits))]

    return places
