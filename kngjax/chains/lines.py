"""The density of a piecewise-constant score along a line, exactly: its segments, their masses, a draw.

Along θ + tv the indicators 1{y_i ≤ x_i'θ} change at the breakpoints t_i = (y_i - x_i'θ)/(x_i'v) and nowhere else. On
the segments between them the gradient is constant, so the KNG log-density is constant and that of the exponential
mechanism is linear.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, cumulative_sums, record_sums
from kngjax.data.records import Records
from kngjax.geometry.segments import draw, log_mass
from kngjax.losses.base import AbstractPredictorLoss


class Segments(NamedTuple):
    """The log-density on [edges_k, edges_{k+1}] is levels_k + slopes_k·(t - edges_k), up to a constant.

    **Arguments:** `edges`: shape (n + 2,), increasing, in steps from the current coordinate; `levels`, `slopes`: shape
    (n + 1,).
    """

    edges: Float[Array, " edges"]
    levels: Float[Array, " segments"]
    slopes: Float[Array, " segments"]


def line_segments(target: Target, theta: Vector, direction: Vector) -> Segments:
    """Returns the segments of the line {θ + tv} within the domain, by one sort of the breakpoints; O(n log n + nd).

    **Arguments:** `theta`: a point of Θ, shape (d,); `direction`: v ≠ 0, shape (d,).
    """
    loss, data = target.loss, target.data
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(data, Records)
    x = jnp.asarray(data.x)
    slope, residual = x @ direction, jnp.asarray(data.y) - data.predictors(theta)
    left, right = target.domain.chord(theta, direction)

    flat = slope == 0
    breakpoints = jnp.where(flat, jnp.inf, residual / jnp.where(flat, 1.0, slope))
    crossing = (breakpoints > left) & (breakpoints < right)
    # Just right of the left end, y_i ≤ x_i'θ holds for these rows:
    below = jnp.where(slope > 0, breakpoints <= left, jnp.where(slope < 0, breakpoints > left, residual <= 0))
    first, jump = loss.score_step()
    turn = jnp.where(crossing, jump * jnp.sign(slope), 0.0)
    breakpoints = jnp.where(crossing, breakpoints, right)
    order = jnp.argsort(breakpoints, stable=False)
    edges = jnp.concatenate([left[None], breakpoints[order], right[None]])
    scores = jnp.where(below, jump, 0.0) + first

    if target.norm is None:
        slopes = -target.rate * _cumulate(record_sums(scores, slope), (turn * slope)[order])
        levels = _cumulate(jnp.zeros(()), (slopes * jnp.diff(edges))[:-1])
        return Segments(edges, levels, slopes)
    gradients = _cumulate(record_sums(scores, x), (turn[:, None] * x)[order])
    levels = -target.rate * jax.vmap(target.norm)(gradients)
    return Segments(edges, levels, jnp.zeros_like(levels))


def _cumulate(first: Array, increments: Array) -> Array:
    """first, first + increments_0, first + increments_0 + increments_1, …"""
    sums = cumulative_sums(increments)
    return jnp.concatenate([first[None], jnp.broadcast_to(first, sums.shape) + sums])


def cumulative_masses(segments: Segments) -> Float[Array, " segments"]:
    """Cumulative sums of the segments' masses ∫ exp(level + slope·(t - edge)) dt, up to a common factor."""
    lengths = jnp.diff(segments.edges)
    # From the higher end of each segment, so that nothing overflows.
    tops = segments.levels + jnp.maximum(segments.slopes * lengths, 0.0)
    log_masses = tops + log_mass(jnp.abs(segments.slopes), lengths)
    return cumulative_sums(jnp.where(lengths > 0, jnp.exp(log_masses - jnp.max(log_masses)), 0.0))


def draw_on_line(
    segments: Segments, cumulative: Float[Array, " segments"], uniforms: Float[Array, "2"]
) -> Float[Array, ""]:
    """Returns an exact draw of the step t by inversion: a segment by its mass, then a point by its exponential law."""
    number = jnp.searchsorted(cumulative, uniforms[0] * cumulative[-1], side="right")
    number = jnp.minimum(number, cumulative.shape[0] - 1)
    return draw(uniforms[1], segments.slopes[number], segments.edges[number], segments.edges[number + 1])
