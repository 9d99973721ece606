"""Keeps sums at θ for a walk, so that the score after a move of one coordinate costs no pass over X'θ."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.data.records import QuadraticSummary, Records, WeightedRecords
from kngjax.losses.base import AbstractRowLoss


class ScoreCache(NamedTuple):
    """**Arguments:** `make`: the cached array from θ. `update`: it after θ_coordinate grew by a step, from the cached
    array, the coordinate and the step. `score`: the target's score from the cached array and θ.
    """

    make: Callable[[Vector], Array]
    update: Callable[[Array, int | Array, Array], Array]
    score: Callable[[Array, Vector], Float[Array, ""]]


def score_cache(target: Target) -> ScoreCache:
    """Chooses what a walk keeps between moves of one coordinate.

    It is the gradient if there is a sufficient statistic, O(d) a move; the linear predictors in a regression, O(n) a
    move; and else θ itself.
    """
    loss, data = target.loss, target.data
    if isinstance(data, QuadraticSummary):
        gram = jnp.asarray(data.gram)
        return ScoreCache(
            data.gradient,
            lambda gradient, coordinate, step: gradient + step * gram[coordinate],
            _score(target, lambda gradient, theta: data.value(theta, gradient), lambda gradient: gradient),
        )
    if isinstance(loss, AbstractRowLoss) and isinstance(data, Records | WeightedRecords):
        x = jnp.asarray(data.rows.x)
        return ScoreCache(
            data.predictors,
            lambda predictors, coordinate, step: predictors + step * x[:, coordinate],
            _score(
                target,
                lambda predictors, _: loss.value_at(predictors, data),
                lambda predictors: loss.gradient_at(predictors, data),
            ),
        )
    return ScoreCache(
        jnp.asarray,
        lambda cached, coordinate, step: cached.at[coordinate].add(step),
        lambda _, theta: target.score(theta),
    )


def _score(
    target: Target, value: Callable[[Array, Vector], Array], gradient: Callable[[Array], Array]
) -> Callable[[Array, Vector], Float[Array, ""]]:
    if target.norm is None:
        return value
    return lambda cached, theta: target.score_from_gradient(gradient(cached), theta)
