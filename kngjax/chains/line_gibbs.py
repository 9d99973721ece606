"""Exact line draws for quantile losses in any dimension."""

import dataclasses
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.chains.advice import advice_for
from kngjax.chains.base import AbstractChainSampler, Info
from kngjax.chains.ensemble import combinations, half_size, halves
from kngjax.chains.limit_law import inverse_directions
from kngjax.chains.lines import cumulative_masses, draw_on_line, line_segments
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector


class LineGibbsState(NamedTuple):
    """**Arguments:** `members`: the ensemble, shape (members, d); `directions`: fixed ones, if any, as rows."""

    members: Float[Array, "members dimension"]
    directions: Float[Array, "directions dimension"]


class LineGibbsNoise(NamedTuple):
    """**Arguments:** `uniforms`: two for each line draw; `weights`: normal, of the members that span a direction."""

    uniforms: Float[Array, "*sweeps draws 2"]
    weights: Float[Array, "*sweeps draws half"]


class LineGibbs(AbstractChainSampler):
    """Draws θ exactly, in each move, from its conditional law along a line, which has a closed form.

    Along a line the log-density is piecewise constant (KNG) or piecewise linear (exponential mechanism) with one
    breakpoint a record, so one sort of the breakpoints gives the conditional exactly: no step size, no rejection. A
    line draw costs O(n log n + nd). The directions matter:

    - `directions="limit_law"`: H^{-1}e_j in turn, with H the Hessian at the non-private estimate. Each changes about
      one coordinate of the gradient, so correlated features do no harm; computed from private data, for research.
      A sweep is d line draws.
    - `directions="ensemble"`: 2(d + 2) points are moved together, each half along random combinations of the
      differences in the other half (adaptive direction sampling, Gilks, Roberts and George 1994). The law of the
      ensemble is the product of the density with itself; the kernel is the same for every linear change of basis and
      has nothing that was tuned. A sweep is one line draw for each point. Releases use it, and publish the first point.

    Plain coordinate directions get stuck: on the ridges of ‖∇ℓ‖_∞ every coordinate move raises some coordinate.

    **Arguments:** `num_sweeps`: sweeps before a release, None for 20d. Measured autocorrelation times of the ensemble
    are 2d to 4d sweeps at d ≤ 4 in well-identified problems, and up to 35d where n is a few hundred and features are
    correlated: give more sweeps there. `num_warmup`: sweeps that `sample` discards.
    """

    num_sweeps: int | None = eqx.field(static=True, default=None)
    num_warmup: int = eqx.field(static=True, default=20)
    directions: Literal["limit_law", "ensemble"] = eqx.field(static=True, default="limit_law")

    sweeps_a_block: ClassVar[int] = 8
    reads_a_sweep: ClassVar[int] = 30

    def __check_init__(self):
        if self.directions not in ("limit_law", "ensemble"):
            raise ValueError(f"directions must be 'limit_law' or 'ensemble', got {self.directions!r}")

    def check(self, target: Target) -> None:
        if not target.is_piecewise_linear:
            raise ValueError(
                "LineGibbs needs the quantile loss on a uniform domain (L1Ball, L2Ball, Box), where line conditionals "
                f"are known exactly: {advice_for(target)}"
            )

    def for_release(self) -> "LineGibbs":
        return dataclasses.replace(self, directions="ensemble")

    def release_sweeps(self, dimension: int) -> int:
        return 20 * dimension if self.num_sweeps is None else self.num_sweeps

    def noise(self, key: PRNGKeyArray, target: Target, state: LineGibbsState, num_sweeps: int) -> LineGibbsNoise:
        uniform_key, weight_key = jax.random.split(key)
        half = half_size(target.dimension)
        num_draws = target.dimension if self.directions == "limit_law" else 2 * half
        uniforms = jax.random.uniform(uniform_key, (num_sweeps, num_draws, 2))
        return LineGibbsNoise(uniforms, jax.random.normal(weight_key, (num_sweeps, num_draws, half)))

    def num_points(self, dimension: int) -> int:
        return 1 if self.directions == "limit_law" else 2 * half_size(dimension)

    def init(
        self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray
    ) -> LineGibbsState:
        if self.directions == "limit_law":
            return LineGibbsState(points, inverse_directions(target, centre))
        return LineGibbsState(points, jnp.zeros((0, target.dimension)))

    def step(self, target: Target, state: LineGibbsState, noise: LineGibbsNoise) -> tuple[LineGibbsState, Info]:
        members = state.members
        if self.directions == "limit_law":

            def along(coordinate, theta):
                return line_draw(target, theta, state.directions[coordinate], noise.uniforms[coordinate])

            members = jax.lax.fori_loop(0, target.dimension, along, members[0])[None]
        else:
            for moving, resting in halves(target.dimension):
                directions = combinations(noise.weights[moving], members[resting])
                moves = (members[moving], directions, noise.uniforms[moving])
                members = members.at[moving].set(jax.lax.map(lambda move: line_draw(target, *move), moves))
        return state._replace(members=members), Info(target.log_density(members[0]))

    def position(self, target: Target, state: LineGibbsState) -> Float[Array, " dimension"]:
        return state.members[0]


def line_draw(
    target: Target, theta: Vector, direction: Vector, uniforms: Float[Array, "2"]
) -> Float[Array, " dimension"]:
    """Returns an exact draw from the density restricted to the line {θ + tv}.

    The projection undoes the rounding that may leave the domain by a last bit. Along no direction θ stays.
    """
    length = jnp.linalg.norm(direction)
    unit = jnp.where(length > 0, direction / jnp.where(length > 0, length, 1.0), jnp.ones_like(direction))
    segments = line_segments(target, theta, unit)
    step = draw_on_line(segments, cumulative_masses(segments), uniforms)
    return jnp.where(length > 0, target.domain.project(theta + step * unit), theta)
