"""A random walk of an ensemble of points, for every density."""

import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.chains.base import AbstractChainSampler, Info
from kngjax.chains.ensemble import combinations, half_size, halves
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector


class EnsembleWalkState(NamedTuple):
    """**Arguments:** `members`: shape (members, d); `log_densities`: of each member."""

    members: Float[Array, "members dimension"]
    log_densities: Float[Array, " members"]


class EnsembleWalkNoise(NamedTuple):
    """**Arguments:** `weights`: normal, shape (sweeps, members, half); `thresholds`: exponential."""

    weights: Float[Array, "*sweeps members half"]
    thresholds: Float[Array, "*sweeps members"]


class EnsembleWalk(AbstractChainSampler):
    """Makes Metropolis moves θ_i → θ_i + (2.38/√d)·N(0, Σ̂) with Σ̂ the covariance of the ensemble's other half.

    This is the walk move of Goodman and Weare (2010), with 2(d + 2) points. It has no step size to tune, and the same
    law in every linear basis, so correlated features do no harm. `CoordinateWalk` crawls along the ridges of ‖∇ℓ‖_∞;
    `EnsembleWalk` moves across all coordinates at once. Releases publish the first point.

    **Arguments:** `num_sweeps`: sweeps before a release, None for 500d; each moves every point once. Measured
    autocorrelation times are 6d sweeps in well-identified problems and up to 200d where n is a few hundred.
    `num_warmup`: sweeps that `sample` discards.
    """

    num_sweeps: int | None = eqx.field(static=True, default=None)
    num_warmup: int = eqx.field(static=True, default=500)

    sweeps_a_block: ClassVar[int] = 100
    takes_weights: ClassVar[bool] = True

    def check(self, target: Target) -> None:
        return None

    def release_sweeps(self, dimension: int) -> int:
        return 500 * dimension if self.num_sweeps is None else self.num_sweeps

    def noise(self, key: PRNGKeyArray, target: Target, state: EnsembleWalkState, num_sweeps: int) -> EnsembleWalkNoise:
        weight_key, threshold_key = jax.random.split(key)
        half = half_size(target.dimension)
        return EnsembleWalkNoise(
            jax.random.normal(weight_key, (num_sweeps, 2 * half, half)),
            jax.random.exponential(threshold_key, (num_sweeps, 2 * half)),
        )

    def num_points(self, dimension: int) -> int:
        return 2 * half_size(dimension)

    def init(
        self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray
    ) -> EnsembleWalkState:
        return EnsembleWalkState(points, jax.vmap(target.log_density)(points))

    def step(
        self, target: Target, state: EnsembleWalkState, noise: EnsembleWalkNoise
    ) -> tuple[EnsembleWalkState, Info]:
        members, log_densities = state
        scale = 2.38 / math.sqrt(target.dimension)
        num_accepted = jnp.zeros(())
        for moving, resting in halves(target.dimension):
            proposed = members[moving] + scale * combinations(noise.weights[moving], members[resting])
            proposed_log_densities = jax.vmap(target.log_density)(proposed)
            accept = log_densities[moving] - proposed_log_densities < noise.thresholds[moving]
            members = members.at[moving].set(jnp.where(accept[:, None], proposed, members[moving]))
            log_densities = log_densities.at[moving].set(
                jnp.where(accept, proposed_log_densities, log_densities[moving])
            )
            num_accepted += jnp.sum(accept)
        return EnsembleWalkState(members, log_densities), Info(log_densities[0], num_accepted / members.shape[0])

    def position(self, target: Target, state: EnsembleWalkState) -> Float[Array, " dimension"]:
        return state.members[0]
