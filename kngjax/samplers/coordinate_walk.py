"""The papers' one-at-a-time random walk, for every density."""

import dataclasses
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax._arrays import Vector
from kngjax.samplers.base import AbstractChainSampler, Info
from kngjax.samplers.limit_law import limit_law_draws, limit_law_scales
from kngjax.target import Target


class WalkState(NamedTuple):
    """**Arguments:** `theta`; `log_smallest`, `log_largest`: the range of log step scales. Each of shape (d,)."""

    theta: Float[Array, " dimension"]
    log_smallest: Float[Array, " dimension"]
    log_largest: Float[Array, " dimension"]


class WalkNoise(NamedTuple):
    """**Arguments:** `normals`, `scales` uniform on (0, 1), `thresholds` exponential. Each of shape (sweeps, d)."""

    normals: Float[Array, "*sweeps dimension"]
    scales: Float[Array, "*sweeps dimension"]
    thresholds: Float[Array, "*sweeps dimension"]


class CoordinateWalk(AbstractChainSampler):
    """Metropolis moves θ_j → θ_j + σ·N(0, 1), one coordinate after the other; d moves are one sweep.

    The sampler of Reimherr and Awan (2019, section 4.3), with what it needs to be trusted: the gradient or the linear
    predictors are updated incrementally within a sweep and computed afresh at its start, and randomness comes in
    blocks.

    **Arguments:**

    - `tuning`: "limit_law" takes σ_j from the K-norm law that Theorem 3.2 promises, with the Hessian at the
      non-private estimate, so it touches private data. "public" draws σ_j anew for every move, log-uniform between
      `smallest_scale` times the domain's width and that width: a symmetric proposal with steps of every size, which
      needs no tuning, at some cost in acceptance. Releases use "public".
    - `smallest_scale`: relative to the domain's width; public.
    - `num_sweeps`: sweeps before a release. `num_warmup`: sweeps that `sample` discards.
    """

    num_sweeps: int = eqx.field(static=True, default=5000)
    num_warmup: int = eqx.field(static=True, default=500)
    tuning: Literal["limit_law", "public"] = eqx.field(static=True, default="limit_law")
    smallest_scale: float = eqx.field(static=True, default=1e-7)

    sweeps_a_block: ClassVar[int] = 500

    def __check_init__(self):
        if self.tuning not in ("limit_law", "public"):
            raise ValueError(f"tuning must be 'limit_law' or 'public', got {self.tuning!r}")
        if not 0 < self.smallest_scale < 1:
            raise ValueError(f"smallest_scale must lie between 0 and 1, got {self.smallest_scale}")

    def check(self, target: Target) -> None:
        return None

    def for_release(self) -> "CoordinateWalk":
        return dataclasses.replace(self, tuning="public")

    def noise(self, key: PRNGKeyArray, target: Target, state: WalkState, num_sweeps: int) -> WalkNoise:
        keys, shape = jax.random.split(key, 3), (num_sweeps, target.dimension)
        return WalkNoise(
            jax.random.normal(keys[0], shape),
            jax.random.uniform(keys[1], shape),
            jax.random.exponential(keys[2], shape),
        )

    def init(self, target: Target, centre: Vector, key: PRNGKeyArray) -> WalkState:
        return self.init_at(target, limit_law_draws(target, centre, key, 1)[0], centre)

    def init_at(self, target: Target, theta: Vector, centre: Vector) -> WalkState:
        """The chain's state at θ, tuned at the centre."""
        theta = jnp.asarray(theta)
        widths = target.domain.widths(target.dimension)
        if self.tuning == "public":
            return WalkState(theta, jnp.log(self.smallest_scale * widths), jnp.log(widths))
        scales = jnp.log(limit_law_scales(target, centre))
        return WalkState(theta, scales, scales)

    def step(self, target: Target, state: WalkState, noise: WalkNoise) -> tuple[WalkState, Info]:
        spread = state.log_largest - state.log_smallest
        steps = noise.normals * jnp.exp(state.log_smallest + noise.scales * spread)

        def move(coordinate, walk):
            theta, carry, log_density, accepted = walk
            step = steps[coordinate]
            moved = theta.at[coordinate].add(step)
            moved_carry = target.loss.moved(carry, target.data, coordinate, step)
            proposed = -target.rate * target.score_from(moved_carry, moved) + target.domain.log_density(moved)
            accept = log_density - proposed < noise.thresholds[coordinate]
            return (
                jnp.where(accept, moved, theta),
                jnp.where(accept, moved_carry, carry),
                jnp.where(accept, proposed, log_density),
                accepted + accept,
            )

        carry = target.loss.carry(state.theta, target.data)
        log_density = -target.rate * target.score_from(carry, state.theta) + target.domain.log_density(state.theta)
        start = (state.theta, carry, log_density, jnp.zeros((), jnp.int32))
        theta, _, log_density, accepted = jax.lax.fori_loop(0, target.dimension, move, start)
        info = Info(log_density, accepted / target.dimension, jnp.asarray(target.dimension), jnp.asarray(False))
        return state._replace(theta=theta), info

    def position(self, target: Target, state: WalkState) -> Float[Array, " dimension"]:
        return state.theta
