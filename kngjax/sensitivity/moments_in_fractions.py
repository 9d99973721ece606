"""Bounds the sensitivities of `kngjax.sensitivity.moments` in fractions, for draws whose proof has every rounding.

Bounds are the float64 numbers that they are, and a map to public units is of the float64 numbers that it consists of.
"""

import functools
import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.balls import ball_of, power_of_two, precision, upper_end
from kngjax.data.bounds import Bounds
from kngjax.data.public_units import PublicUnits
from kngjax.geometry.hulls_in_fractions import Corners, outer_corners
from kngjax.sensitivity import weighted
from kngjax.sensitivity.record_facts import feature_intervals, response_interval

_DIGITS = 128
# λ_min is rounded to multiples of about its sensitivity over 2 to this power. That much more noise it gets, and float64
# nearly always guesses which multiple is nearest.
_EIGENVALUE_DIGITS = 20


class SquaredRadii(NamedTuple):
    """X² = sup w‖x‖_2² and Y² = sup wy² of one record, w = 1 without weights.

    **Arguments:** `features`: X². `response`: Y².
    """

    features: Fraction
    response: Fraction

    @classmethod
    def of(cls, bounds: Bounds, dimension: int, units: PublicUnits | None = None) -> "SquaredRadii | None":
        """Computes the radii from bounds with a response; None for a hull of unknown corners and units without width.

        Σ_j (x_j - m_j)²/h_j² is convex, so it is largest at a corner of the bounds, or of the polytope about a hull
        of `kngjax.geometry.hulls_in_fractions`: block by block, as these vary freely. The intercept is 1 throughout.

        **Arguments:** `dimension`: d, the intercept included. `units`: m and h; None for records as they come.
        """
        features = squared_feature_radius(bounds, dimension, units)
        if features is None:
            return None
        middle, width = Fraction(0), Fraction(1)
        if units is not None:
            [middle], [width] = _numbers(units.y_middle), _numbers(units.y_half_width)
        if not width:
            return None
        largest = weighted.largest_in_fractions(bounds) or 1
        ends = response_interval(bounds)
        assert ends is not None
        return cls(features, largest * max(((end - middle) / width) ** 2 for end in ends))


def squared_feature_radius(bounds: Bounds, dimension: int, units: PublicUnits | None = None) -> Fraction | None:
    """X² alone, as of `SquaredRadii.of`, of bounds with a response or without one."""
    blocks = _blocks(bounds, dimension)
    if blocks is None:
        return None
    middles, widths = [Fraction(0)] * dimension, [Fraction(1)] * dimension
    if units is not None:
        middles, widths = _numbers(units.middles), _numbers(units.half_widths)
    if not all(widths):
        return None
    total, start = Fraction(0), 0
    for block in blocks:
        columns = range(start, start := start + len(block[0]))
        squares = (
            sum(((place - middles[j]) / widths[j]) ** 2 for j, place in zip(columns, corner, strict=True))
            for corner in block
        )
        total += max(squares)
    return (weighted.largest_in_fractions(bounds) or 1) * total


def _blocks(bounds: Bounds, dimension: int) -> tuple[Corners, ...] | None:
    """Corners of the blocks of features that vary freely, as `Bounds.feature_blocks` has them, each corner once."""
    if bounds.hull is not None:
        corners = outer_corners(bounds.hull)
        return None if corners is None else (((Fraction(1),),),) * int(bounds.intercept) + corners
    return tuple(tuple((end,) for end in dict.fromkeys(ends)) for ends in feature_intervals(bounds, dimension))


def _numbers(side: Any) -> list[Fraction]:
    return [Fraction(end) for end in np.atleast_1d(np.asarray(side, np.float64)).tolist()]


def squared_moment_changes(radii: SquaredRadii, adjacency: Adjacency) -> tuple[Fraction, Fraction]:
    """The squares of `kngjax.sensitivity.moments.moment_changes`: of X'X in the Frobenius norm, and of X'y."""
    x, y = radii
    return (2 * x**2, 4 * x * y) if adjacency is Adjacency.REPLACE else (x**2, x * y)


def squared_absolute_moment_changes(
    radii: SquaredRadii, total: Fraction, adjacency: Adjacency
) -> tuple[Fraction, Fraction]:
    """The squares of `kngjax.sensitivity.moments.absolute_moment_changes`: of X'X's upper triangle, and of X'y.

    **Arguments:** `total`: sup ‖x‖_1 of one record.
    """
    times = 4 if adjacency is Adjacency.REPLACE else 1
    return times * ((total**2 + radii.features) / 2) ** 2, times * total**2 * radii.response


def eigenvalue_step(radii: SquaredRadii) -> Fraction:
    """r, a power of two, that λ_min is rounded to multiples of: about X²/2^20."""
    size = radii.features.numerator.bit_length() - radii.features.denominator.bit_length()
    return power_of_two(size - _EIGENVALUE_DIGITS)


def rounded_eigenvalue_change(radii: SquaredRadii, step: Fraction) -> Fraction:
    """r⌈X²/r⌉: by how much one record changes the multiple of r that is nearest to the smallest eigenvalue of X'X.

    By `kngjax.sensitivity.moments.eigenvalue_change` λ' ≤ λ + X² ≤ λ + r⌈X²/r⌉. To round, halves upward, keeps order,
    and what is added here is a multiple of r, which comes out of it as it is.

    **Arguments:** `step`: r.
    """
    return step * -(-radii.features // step)


@functools.lru_cache(maxsize=64)
def ridge_change(
    radii: SquaredRadii, regularization: Fraction, num_others: Fraction, resolution: int = 4096
) -> Fraction:
    """A fraction that is at least sup ‖θ̂' - θ̂‖_2 when a record joins n others in a ridge regression.

    It is the bound of `kngjax.sensitivity.moments.ridge_changes`, evaluated in balls. With l = cX/λ for c ∈ [0, 1] and
    κ = X²/λ there is F(l) = κc(1 - c). On a cell [a, b] of c the bound is b·(X/λ)·Y(1 + √(nf))/(1 + κa² + f) with √f
    the smaller one of √(1/n + 1 + κa²) - 1/√n and √F, at the point of the cell nearest to ½. The ends of cells are
    float64 numbers, of which the first is 0 and the last is 1: whatever they are in between, they leave nothing out.

    **Arguments:** `regularization`: λ > 0. `num_others`: n ≥ 0.
    """
    span = np.log(1e3) + max(np.log(float(radii.features / regularization)), 0.0)
    ends = [0.0, *np.exp(-span * np.linspace(1.0, 0.0, resolution)).tolist()]
    with precision(_DIGITS):
        leverage, count = ball_of(radii.features / regularization), ball_of(num_others)
        size = ball_of(radii.features * radii.response).sqrt() / ball_of(regularization)
        largest = arb(0)
        for low, high in itertools.pairwise(ends):
            inside = arb(min(max(low, 0.5), high))
            spread = 1 + leverage * arb(low) ** 2
            # √f, the root of the fitted part of the leverage.
            root = arb(0)
            if num_others > 0:
                root = (1 / count + spread).sqrt() - (1 / count).sqrt()
                root = root.min((leverage * inside * (1 - inside)).sqrt())
            largest = largest.max(arb(high) * size * (1 + count.sqrt() * root) / (spread + root**2))
        return upper_end(largest)
