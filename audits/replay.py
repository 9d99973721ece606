"""Replayed sensitivity: where a mechanism goes on one data set, and what those points are worth on its neighbour."""

import dataclasses
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.chains.base import AbstractSampler
from kngjax.core.arrays import float64
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import QuadraticSummary
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.research import sample

# What float64 may add to a ratio that is 1 in real numbers, besides what sums of large terms lose.
_ROUNDING = 1e-9
_ROUNDING_OF_TERMS = 64 * sys.float_info.epsilon
# Points of R^d whose images under a domain's bijector are the ends of Θ.
_FAR = 12.0


@dataclasses.dataclass(frozen=True)
class Replay:
    """Holds the largest change that a replay found.

    **Arguments:** `ratio`: over ε, at most 1 if the sensitivity holds. `num_points`: θ tried. `rounding`: what float64
    may have added to the ratio, as sums of many large terms lose digits.
    """

    ratio: float
    num_points: int
    rounding: float = _ROUNDING

    @property
    def passed(self) -> bool:
        """Whether no point betrays the claim."""
        return self.ratio <= 1.0 + self.rounding


def replayed_sensitivity(
    mechanism: AbstractMechanism,
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    *,
    key: PRNGKeyArray,
    num_points: int = 400,
    sampler: AbstractSampler | None = None,
) -> Replay:
    """2c·‖∇ℓ(θ; D) - ∇ℓ(θ; D')‖_K/ε at its largest over many θ, c = ε/(2Δ): at most 1, whatever the dimension.

    For the exponential mechanism it is c·(max - min over θ of ℓ(θ; D) - ℓ(θ; D'))/ε, as a constant cancels.

    Half of the points are recorded draws on D, the others uniform on Θ, and a few at its ends; all are replayed on D'.
    Both data sets go the way of a release, through validation, clipping and summing, so that what is wrong there is
    found as well as a wrong constant.

    **Arguments:** `first`, `second`: pairs (X, y), of persons (X, y, identifiers), neighbours by the mechanism's
    adjacency, made up or simulated. `key`: a research key. `sampler`: that records; None for the mechanism's own.

    Raises TypeError for a mechanism that draws directly from its own law: `density_ratio` and `black_box` audit those.
    """
    require_typed_key(key)
    if not isinstance(mechanism, AbstractDensityMechanism):
        raise TypeError(f"{type(mechanism).__name__} has no score to replay: audit it by kngjax.audit.black_box")
    if mechanism.bounds.dither is not None:
        mechanism = dataclasses.replace(mechanism, bounds=mechanism.bounds.without_dither())
    data = [mechanism.prepare(X, y, person=one) for X, y, one in ((*first, None)[:3], (*second, None)[:3])]
    record_key, uniform_key = jax.random.split(key)
    half = max(num_points // 2, 4)
    with warnings.catch_warnings():
        # Points are wanted, and no draws of the law.
        warnings.simplefilter("ignore")
        recorded = sample(mechanism, data[0], key=record_key, sampler=sampler, num_draws=-(-half // 4), progress=False)
    dimension = data[0].dimension
    with float64():
        draw_key, sign_key = jax.random.split(uniform_key)
        uniform = mechanism.domain.draw(draw_key, (half,), dimension)
        # At the ends of Θ gradients are large, and one record's has their sign or the other.
        ends = _FAR * jax.random.rademacher(sign_key, (max(half // 4, 2), dimension)).at[:2].set([[-1], [1]])
        ends = jax.vmap(mechanism.domain.bijector(dimension))(ends)
        points = np.concatenate([recorded.theta.reshape(-1, dimension), uniform, ends])
        largest, terms = (float(found) for found in _largest_change(mechanism, *data, jnp.asarray(points)))
    epsilon = float(mechanism.epsilon)
    return Replay(largest / epsilon, len(points), _ROUNDING + _ROUNDING_OF_TERMS * terms / epsilon)


@jax.jit
def _largest_change(mechanism, first, second, points) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest change of log f, as of a bounded range; the largest sum of sizes of terms, where it is known."""
    here, there = mechanism.target(first), mechanism.target(second)

    def change(theta):
        if here.norm is None:
            return here.rate * (here.score(theta) - there.score(theta))
        gradients = here.loss.gradient(theta, first) - here.loss.gradient(theta, second)
        return 2.0 * here.rate * here.norm_at(theta)(gradients)

    def terms(theta):
        if not isinstance(first, QuadraticSummary):
            return jnp.zeros(())
        # With these signs nothing cancels.
        loud = QuadraticSummary(first.count, jnp.abs(first.gram), -jnp.abs(first.moment), first.sum_of_squares)
        if here.norm is None:
            return here.rate * jnp.abs(here.loss.value(jnp.abs(theta), loud))
        return 2.0 * here.rate * here.norm_at(theta)(here.loss.gradient(jnp.abs(theta), loud))

    changes, sizes = jax.lax.map(lambda theta: (change(theta), terms(theta)), points, batch_size=64)
    return jnp.max(changes) - (jnp.min(changes) if here.norm is None else 0.0), jnp.max(sizes)
