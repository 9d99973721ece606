"""A numerical check of what a loss declares, for losses that are not kngjax's: what proofs rest on, tried on a grid."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss, AbstractResidualLoss

# Of what is compared, and of what a derivative is compared with.
_ROUNDING, _DERIVATIVE = 1e-9, 1e-7
# No response that is tried, nor a usual kink, is at a predictor that is tried.
_SHIFT = 0.0003141592653589793
_PREDICTORS, _RESPONSES = 401, 13


def check_loss(
    loss: AbstractLoss,
    predictors: tuple[float, float] = (-10.0, 10.0),
    responses: Sequence[float] | Float[np.ndarray, " responses"] | None = None,
) -> tuple[str, ...]:
    """Says in words which facts that a loss ρ(η, y) declares are contradicted on a grid; an empty tuple if none is.

    Tried are: that `record_score` is ∂ρ/∂η and `record_curvature` its derivative; that ρ is convex in η, so that the
    score never falls as η grows; that scores lie in `score_interval` and values in `value_interval`, on the grid and on
    parts of it; that the curvature is at most `curvature_bound`; `score_step`, and `residual_minimiser`. It proves
    nothing: a grid may miss what is wrong, and every guarantee rests on the facts themselves. No data are involved.

    **Arguments:** `loss`: of x'θ. `predictors`: (lowest, highest) η, finite. `responses`: y that are tried, public;
    those without a meaning for the loss are left out. By default 13 from -3 to 3.

    Raises TypeError for a loss that is not of x'θ, and ValueError where no grid is left.
    """
    if not isinstance(loss, AbstractPredictorLoss):
        raise TypeError(f"check_loss takes a loss of x'theta, and {type(loss).__name__} is none")
    low, high = map(float, predictors)
    given = np.linspace(-3.0, 3.0, _RESPONSES) if responses is None else np.asarray(responses, np.float64)
    with_meaning = np.unique(given[np.isfinite(loss.responses(given))]) if given.ndim == 1 else given[:0]
    if not (-np.inf < low < high < np.inf and with_meaning.size):
        raise ValueError(
            "check_loss needs predictors=(lowest, highest), finite, and responses that the loss has a meaning for, got "
            f"predictors={predictors} and responses={responses}"
        )
    etas = np.linspace(low, high, _PREDICTORS) + _SHIFT * (high - low)
    with float64():
        return tuple(_contradictions(loss, etas, with_meaning))


@Compiled
def _tried(loss: AbstractPredictorLoss, etas: Any, responses: Any) -> Any:
    """Values, scores, curvatures and derivatives of the first two, of shape (responses, predictors)."""
    functions = loss.record_value, loss.record_score, loss.record_curvature
    functions += jax.grad(loss.record_value), jax.grad(loss.record_score)

    def at(eta: Any, y: Any) -> Any:
        return [jnp.asarray(function(eta, y), float) for function in functions]

    return jax.vmap(lambda y: jax.vmap(lambda eta: at(eta, y))(etas))(responses)


def _contradictions(loss: AbstractPredictorLoss, etas: np.ndarray, ys: np.ndarray) -> Iterator[str]:
    values, scores, curvatures, slopes, slopes_of_scores = map(np.asarray, _tried(loss, etas, ys))

    def where(wrong: np.ndarray) -> str:
        row, column = np.unravel_index(np.argmax(wrong), wrong.shape)
        return f"at eta = {etas[column]:.6g}, y = {ys[row]:.6g}"

    if (wrong := ~(np.isfinite(values) & np.isfinite(scores) & np.isfinite(curvatures))).any():
        yield f"a value, score or curvature is not finite {where(wrong)}"
        return
    if (wrong := _differ(scores, slopes)).any():
        yield f"record_score is not the derivative of record_value by the predictor {where(wrong)}"
    if not loss.score_is_piecewise_constant and (wrong := _differ(curvatures, slopes_of_scores)).any():
        yield f"record_curvature is not the derivative of record_score {where(wrong)}"
    slack = _ROUNDING * (1.0 + np.max(np.abs(scores)))
    if (wrong := np.diff(scores, axis=1) < -slack).any():
        yield f"the score is not monotone: it falls as the predictor grows, and the loss is not convex, {where(wrong)}"
    if (wrong := curvatures < -slack).any():
        yield f"record_curvature is negative: the loss is not convex {where(wrong)}"
    yield from _interval_contradictions(loss, etas, ys, values, scores, curvatures)
    if loss.score_is_piecewise_constant:
        first, jump = map(float, loss.score_step())
        expected = first + jump * (etas[None] >= ys[:, None])
        if (wrong := np.abs(scores - expected) > slack).any():
            yield f"the score is not what score_step says {where(wrong)}"
    if isinstance(loss, AbstractResidualLoss):
        least = float(loss.residual_value(loss.residual_minimiser()))
        if (wrong := values < least - _ROUNDING * (1.0 + abs(least))).any():
            yield f"the loss is smaller than at residual_minimiser {where(wrong)}"


def _interval_contradictions(
    loss: AbstractPredictorLoss,
    etas: np.ndarray,
    ys: np.ndarray,
    values: np.ndarray,
    scores: np.ndarray,
    curvatures: np.ndarray,
) -> Iterator[str]:
    """What lies outside of the declared intervals over the whole grid and over parts of it."""
    parts = [(slice(None), slice(None))]
    parts += [(rows, some) for rows in _slices(ys.size, 2) for some in _slices(etas.size, 8)]
    found: dict[str, str] = {}
    for rows, some in parts:
        predictor, response = _ends(etas[some]), _ends(ys[rows])
        place = f"for eta in [{predictor[0]:.6g}, {predictor[1]:.6g}], y in [{response[0]:.6g}, {response[1]:.6g}]"
        declared = {
            "score_interval does not hold the score": (scores, loss.score_interval(predictor, response)),
            "value_interval does not hold the value": (values, loss.value_interval(predictor, response)),
            "curvature_bound is exceeded": (curvatures, (-np.inf, loss.curvature_bound(predictor))),
        }
        for words, (numbers, interval) in declared.items():
            lowest, highest = (float(end) for end in interval)
            slack = _ROUNDING * (1.0 + np.max(np.abs(numbers[rows, some])))
            # Written so that NaN is a contradiction.
            if not (lowest - slack <= numbers[rows, some].min() and numbers[rows, some].max() <= highest + slack):
                found.setdefault(words, f"{words} {place}: declared [{lowest:.6g}, {highest:.6g}]")
    if not loss.needs_response_bounds:
        lowest, highest = (float(end) for end in loss.score_interval((-np.inf, np.inf), None))
        if not (
            lowest - _ROUNDING * (1.0 + abs(lowest)) <= scores.min()
            and scores.max() <= highest + _ROUNDING * (1.0 + abs(highest))
        ):
            found.setdefault("everywhere", "score_interval for every predictor and response does not hold the score")
    yield from found.values()


def _differ(declared: np.ndarray, derivative: np.ndarray) -> np.ndarray:
    return ~(np.abs(declared - derivative) <= _DERIVATIVE * (1.0 + np.abs(derivative)))


def _slices(number: int, parts: int) -> list[slice]:
    ends = np.unique(np.linspace(0, number, min(parts, number) + 1).astype(int))
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _ends(numbers: np.ndarray) -> tuple[float, float]:
    return float(numbers[0]), float(numbers[-1])
