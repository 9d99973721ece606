"""The papers' one-at-a-time random walk, for every density."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.chains.base import AbstractChainSampler, Info
from kngjax.chains.limit_law import limit_law_scales
from kngjax.chains.score_cache import score_cache
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.data.records import QuadraticSummary


class WalkState(NamedTuple):
    """**Arguments:** `theta`; `log_smallest`, `log_largest`: the range of log step scales; `centre`: where they hold.

    Each of shape (d,); the last three always the same.
    """

    theta: Float[Array, " dimension"]
    log_smallest: Float[Array, " dimension"]
    log_largest: Float[Array, " dimension"]
    centre: Float[Array, " dimension"]


class WalkNoise(NamedTuple):
    """**Arguments:** `steps`: normal, times the step scales; `uniforms` on [0, 1). Each of shape (sweeps, d)."""

    steps: Float[Array, "*sweeps dimension"]
    uniforms: Float[Array, "*sweeps dimension"]


class CoordinateWalk(AbstractChainSampler):
    """Makes Metropolis moves θ_j → θ_j + σ·N(0, 1), one coordinate after the other; d moves are one sweep.

    This is the sampler of Reimherr and Awan (2019, section 4.3). The gradient or the linear predictors are updated
    incrementally within a sweep and computed afresh at its start, so that rounding does not add up; randomness comes in
    blocks.

    **Arguments:**

    - `tuning`: "limit_law" takes σ_j from the K-norm law that Theorem 3.2 promises, with the Hessian at the
      non-private estimate, so it touches private data. "public" draws σ_j anew for every move, log-uniform between
      `smallest_scale` times the domain's width and that width: a symmetric proposal with steps of every size, which
      needs no tuning, at some cost in acceptance. Releases use "public".
    - `smallest_scale`: relative to the domain's width; public.
    - `precision`: "float32" computes the moves in single precision on θ - θ̂, for research on losses with a sufficient
      statistic; releases refuse it. With δ = θ - θ̂ the gradient is X'Xδ + ∇ℓ_n(θ̂), which does not cancel as
      X'Xθ - X'y does: log f is off by about 1e-6·max_j c·Σ_k |(X'X)_jk δ_k|/w_j, whatever n, and by less than 1e-4 for
      features that are no more correlated than .9; θ is drawn to seven digits of δ, and Θ is left by no more.
    - `num_sweeps`: sweeps before a release. `num_warmup`: sweeps that `sample` discards.
    """

    num_sweeps: int = eqx.field(static=True, default=5000)
    num_warmup: int = eqx.field(static=True, default=500)
    tuning: Literal["limit_law", "public"] = eqx.field(static=True, default="limit_law")
    smallest_scale: float = eqx.field(static=True, default=1e-7)
    precision: Literal["float64", "float32"] = eqx.field(static=True, default="float64")

    sweeps_a_block: ClassVar[int] = 500
    takes_weights: ClassVar[bool] = True

    def __check_init__(self):
        if self.tuning not in ("limit_law", "public"):
            raise ValueError(f"tuning must be 'limit_law' or 'public', got {self.tuning!r}")
        if not 0 < self.smallest_scale < 1:
            raise ValueError(f"smallest_scale must lie between 0 and 1, got {self.smallest_scale}")

        if self.precision not in ("float64", "float32"):
            raise ValueError(f"precision must be 'float64' or 'float32', got {self.precision!r}")

    def check(self, target: Target) -> None:
        if self.precision == "float32" and not isinstance(target.data, QuadraticSummary):
            raise ValueError(
                f"float32 is for losses with a sufficient statistic, and {type(target.loss).__name__} has none: leave "
                "precision out"
            )
        if self.precision == "float32" and target.pointwise is not None:
            raise ValueError("float32 needs one sensitivity for every theta: leave precision out")

    def for_release(self) -> "CoordinateWalk":
        if self.precision != "float64":
            raise ValueError("releases are computed in float64: leave precision='float32' out")
        return dataclasses.replace(self, tuning="public")

    def noise(self, key: PRNGKeyArray, target: Target, state: WalkState, num_sweeps: int) -> WalkNoise:
        return self._noise(key, num_sweeps, state.log_smallest, state.log_largest)

    def _noise(self, key: PRNGKeyArray, num_sweeps: int, log_smallest: Array, log_largest: Array) -> WalkNoise:
        dtype = jnp.float32 if self.precision == "float32" else float
        smallest, spread = (part.astype(dtype) for part in (jnp.exp(log_smallest), log_largest - log_smallest))
        keys, shape = jax.random.split(key, 3), (num_sweeps, *log_smallest.shape)
        steps = jax.random.normal(keys[0], shape, dtype) * jnp.broadcast_to(smallest, shape)
        if self.tuning == "public":
            steps *= jnp.exp(jax.random.uniform(keys[1], shape, dtype) * jnp.broadcast_to(spread, shape))
        return WalkNoise(steps, jax.random.uniform(keys[2], shape, dtype))

    def init(
        self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray
    ) -> WalkState:
        theta = jnp.asarray(points)[0]
        widths = target.domain.widths(target.dimension)
        if self.tuning == "public":
            return WalkState(theta, jnp.log(self.smallest_scale * widths), jnp.log(widths), jnp.asarray(centre))
        scales = jnp.log(limit_law_scales(target, centre))
        return WalkState(theta, scales, scales, jnp.asarray(centre))

    def step(self, target: Target, state: WalkState, noise: WalkNoise) -> tuple[WalkState, Info]:
        theta, info = self._sweep(target, state.theta, state.centre, noise, lambda function, in_axes: function)
        return state._replace(theta=theta), info

    def noises(self, key: PRNGKeyArray, target: Target, states: WalkState, num_sweeps: int) -> WalkNoise:
        # Chains come last: what a move does is then a loop over adjacent numbers, whatever the dimension.
        return self._noise(key, num_sweeps, states.log_smallest.T, states.log_largest.T)

    def steps(self, target: Target, states: WalkState, noises: WalkNoise) -> tuple[WalkState, Info]:
        over = functools.partial(jax.vmap, out_axes=-1)
        thetas, info = self._sweep(target, states.theta.T, states.centre[0], noises, over)
        return states._replace(theta=thetas.T), info

    def _sweep(
        self, target: Target, theta: Array, centre: Array, noise: WalkNoise, over: Callable[..., Callable[..., Any]]
    ) -> tuple[Array, Info]:
        if self.precision == "float64":
            return _sweep(target, theta, None, noise, over)
        origin = jnp.broadcast_to(jnp.expand_dims(centre, tuple(range(1, theta.ndim))), theta.shape)
        step, info = _sweep(_about(target, centre), (theta - origin).astype(jnp.float32), centre, noise, over)
        return origin + step, info

    def position(self, target: Target, state: WalkState) -> Float[Array, " dimension"]:
        return state.theta


def _about(target: Target, centre: Array) -> Target:
    """The density of δ = θ - θ̂ in single precision, up to a constant, but for the domain."""
    assert isinstance(target.data, QuadraticSummary)
    slope = target.loss.gradient(centre, target.data)
    data = QuadraticSummary(target.data.count, target.data.gram, -slope, jnp.zeros_like(slope[0]))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), dataclasses.replace(target, data=data))


def _sweep(
    target: Target, theta: Array, origin: Array | None, noise: WalkNoise, over: Callable[..., Callable[..., Any]]
) -> tuple[Array, Info]:
    """d moves of one chain, or of many in the last axis.

    **Arguments:** `theta`: shape (d,) or (d, chains), like the noise. `origin`: what a point of Θ is, less `theta`; or
    None. `over`: maps a function of one chain over chains, given the axes of its arguments.
    """
    cache = score_cache(target)
    make_cache, update_cache = over(cache.make, in_axes=-1), over(cache.update, in_axes=(-1, None, -1))

    def log_density_of_one(theta, cached):
        point = theta if origin is None else theta + origin.astype(theta.dtype)
        log_base = target.domain.log_density(point).astype(theta.dtype)
        return log_base - target.rate * cache.score(cached, theta)

    log_density = over(log_density_of_one, in_axes=-1)

    def move(walk, inputs):
        coordinate, step, uniform = inputs
        theta, cached, density = walk
        # The maps are around each part, and not around a move, so that no part has its chains elsewhere.
        proposal, cached_there = theta.at[coordinate].add(step), update_cache(cached, coordinate, step)
        proposed = log_density(proposal, cached_there)
        # log(f/f') < -log(1 - u), an exponential number.
        accept = uniform > 1.0 - jnp.exp(proposed - density)

        def chosen(new, old):
            return jnp.where(jnp.broadcast_to(accept, new.shape), new, old)

        return jax.tree.map(chosen, (proposal, cached_there, proposed), walk), accept

    cached = make_cache(theta)
    start = (theta, cached, log_density(theta, cached))
    inputs = (jnp.arange(target.dimension), noise.steps, noise.uniforms)
    (theta, _, density), accepted = jax.lax.scan(move, start, inputs)
    return theta, Info(density, jnp.mean(accepted, axis=0))
