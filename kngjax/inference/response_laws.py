"""Expectations over the law of a response given features, by nodes and weights that can be differentiated."""

import math
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from kngjax.core.arrays import float64
from kngjax.core.randomness import research_key

# Nodes lie evenly in normal scores t, |t| ≤ 5.5: beyond are 4e-8 of the mass. For analytic functions the trapezoidal
# rule converges exponentially, and with kinks as the square of the step.
_STEP, _STEP_AT_KINKS, _FARTHEST = 0.25, 0.125, 5.5
# How far nodes reach for Student's t, in e = sinh(t), for its tails.
_FARTHEST_OF_T = 7.0
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
MOST_COUNTS = 2000
# How many values are drawn from laws without a quantile function.
_DRAWN = 40_000


def nodes_and_weights(
    law: Any, number: int, interval: tuple[float, float] | None, is_smooth: bool
) -> tuple[Float[Array, "rows nodes"], Float[Array, "rows nodes"]]:
    """Returns values y and weights w with E f(clip(y)) ≈ Σ_k w_k f(y_k) for each row, smooth in the law's parameters.

    Continuous laws have nodes at their quantiles Q(Φ(t)), Student's t at sinh(t) with its density as weight; from row
    to row the t are shifted, so that errors at kinks of f average out over rows. Counts are summed, with the mass
    beyond the upper bound at it.

    **Arguments:** `law`: a NumPyro distribution of batch shape () or (rows,). `number`: of rows. `interval`: what
    responses are clipped to; None where they are not. `is_smooth`: whether f itself has no kinks.

    Raises TypeError for what is no such distribution, ValueError for another batch shape and for counts without bounds.
    """
    from numpyro import distributions

    if not isinstance(law, distributions.Distribution):
        raise TypeError(
            f"record must give a NumPyro distribution, like Normal(x @ beta, sigma), not {type(law).__name__}"
        )
    if law.event_shape or law.batch_shape not in ((), (1,), (number,)):
        raise ValueError(
            f"record must give one law of a response for each of {number} rows, a distribution of batch shape "
            f"({number},), and this one has batch shape {law.batch_shape} and event shape {law.event_shape}"
        )
    if law.is_discrete:
        values, weights = _of_counts(law, interval, number)
    else:
        values, weights = _of_numbers(law, number, is_smooth and interval is None)
    if interval is not None:
        values = jnp.clip(values, *interval)
    return values, weights


def _of_numbers(law: Any, number: int, is_smooth: bool) -> tuple[Array, Array]:
    from numpyro import distributions

    step = _STEP if is_smooth else _STEP_AT_KINKS
    shifts = step * (np.arange(number) * _GOLDEN % 1.0)[:, None]
    if isinstance(law, distributions.StudentT):
        steps = shifts + np.arange(-_FARTHEST_OF_T, _FARTHEST_OF_T + 0.5 * step, step)
        loc, scale = (jnp.reshape(jnp.asarray(part), (-1, 1)) for part in (law.loc, law.scale))
        standard = distributions.StudentT(jnp.reshape(jnp.asarray(law.df), (-1, 1)))
        ends = jnp.asarray(np.sinh(steps))
        weights = jnp.exp(standard.log_prob(ends)) * np.cosh(steps)
        return loc + scale * ends, weights / jnp.sum(weights, axis=1, keepdims=True)
    steps = shifts + np.arange(-_FARTHEST, _FARTHEST + 0.5 * step, step)
    weights = np.exp(-0.5 * steps**2)
    weights = jnp.asarray(weights / weights.sum(axis=1, keepdims=True))
    if isinstance(law, distributions.Normal):
        # Q(Φ(t)) = μ + σt, which would else be the most of the work of a likelihood.
        loc, scale = (jnp.reshape(jnp.asarray(part), (-1, 1)) for part in (law.loc, law.scale))
        return loc + scale * jnp.asarray(steps), weights
    levels = np.array([[_normal_cdf(score) for score in row] for row in steps.tolist()])
    levels = jnp.asarray(levels.T)
    limits = jnp.finfo(levels.dtype)
    try:
        # Laws whose parameters are one a row broadcast over rows alone.
        values = jax.vmap(law.icdf)(jnp.clip(levels, limits.tiny, 1.0 - limits.epsneg)).T
    except (NotImplementedError, ImportError):
        raise ValueError(
            f"{type(law).__name__} has no quantile function in NumPyro: take a law of the response with icdf, or "
            "StudentT, or counts"
        ) from None
    return values, weights


def of_each(function: Any, predictors: Array, values: Array) -> Float[Array, "rows nodes"]:
    """Computes f(η_i, y_ik)."""
    return jax.vmap(jax.vmap(function, (None, 0)))(predictors, values)


def _normal_cdf(score: float) -> float:
    return 0.5 * math.erfc(-score / math.sqrt(2.0))


def _of_counts(law: Any, interval: tuple[float, float] | None, number: int) -> tuple[Array, Array]:
    if interval is None or not 0.0 <= interval[1] <= MOST_COUNTS:
        raise ValueError(
            "the law of a count is summed up to the bound of y: Bounds(..., y=...) of the release must end at "
            f"{MOST_COUNTS} at most"
        )
    last = math.floor(interval[1])
    counts = np.arange(last)
    weights = jnp.exp(jax.vmap(lambda count: law.log_prob(jnp.full(number, count)))(jnp.asarray(counts))).T
    rest = jnp.clip(1.0 - jnp.sum(weights, axis=1, keepdims=True), 0.0, 1.0)
    weights = jnp.concatenate([weights, rest], axis=1)
    return jnp.broadcast_to(jnp.asarray(np.append(counts, interval[1]), weights.dtype), weights.shape), weights


def quantiles_of(law: Any, level: Any, number: int) -> Float[np.ndarray, " rows"]:
    """Returns the quantile of each row's law, or of one law at each level.

    Of a law without a quantile function it is that of many draws. **Arguments:** `law`: of NumPyro, or a `NormalDist`.
    `level`: one, or for one law several. `number`: of rows, or of levels.
    """
    from numpyro import distributions

    if isinstance(law, NormalDist):
        return np.full(number, law.inv_cdf(level))
    with float64():
        if isinstance(law, distributions.StudentT):
            df, loc, scale = (np.asarray(part, np.float64) for part in (law.df, law.loc, law.scale))
            return np.broadcast_to(loc + scale * scipy.special.stdtrit(df, level), number)
        try:
            return np.broadcast_to(np.asarray(law.icdf(jnp.asarray(level)), np.float64), number)
        except (NotImplementedError, ImportError):
            drawn = np.asarray(law.sample(research_key(0), (_DRAWN,)), np.float64).reshape(_DRAWN, -1)
            return np.broadcast_to(np.ravel(np.quantile(drawn, level, axis=0)), number)


def density_of(law: Any, places: Any) -> np.ndarray:
    """Returns the density at each place; with one law for each row there is one place for each row."""
    if isinstance(law, NormalDist):
        return np.array([law.pdf(place) for place in np.ravel(places)]).reshape(np.shape(places))
    with float64():
        return np.asarray(np.exp(np.asarray(law.log_prob(jnp.asarray(places)))))
