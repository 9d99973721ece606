"""A numerical check of what a loss declares, for losses that are not kngjax's: what proofs rest on, tried on a grid."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss, AbstractResidualLoss, AbstractRowLoss

# Of what is compared, and of what a derivative is compared with.
_ROUNDING, _DERIVATIVE = 1e-9, 1e-7
# No response that is tried, nor a usual kink, is at a predictor that is tried.
_SHIFT, _UNEVEN = 0.0003141592653589793, 1.0314159265358979
_PREDICTORS, _RESPONSES = 401, 13
# About each response and 0 predictors are tried at distances that fall by this factor: of whatever scale a loss is.
_FACTOR, _DISTANCES = 3.0, 32


class Contradiction(NamedTuple):
    """A fact that does not hold: `fact` is "finite", "derivatives", "convex", "intervals" or "others"."""

    fact: str
    words: str


class _Grid(NamedTuple):
    """Holds a loss and its derivatives at predictors `etas`, one a column, and responses `ys`, one a row."""

    etas: np.ndarray
    ys: np.ndarray
    values: np.ndarray
    scores: np.ndarray
    curvatures: np.ndarray


def check_loss(
    loss: AbstractLoss,
    predictors: tuple[float, float] = (-10.0, 10.0),
    responses: Sequence[float] | Float[np.ndarray, " responses"] | None = None,
    rows: Sequence[Sequence[float]] | Float[np.ndarray, "2 dimension"] | None = None,
) -> tuple[str, ...]:
    """Says in words which facts that a loss ρ(η, y) declares are contradicted on a grid; an empty tuple if none is.

    The check tries whether `record_score` is ∂ρ/∂η and `record_curvature` its derivative; whether ρ is convex in η, so
    that the score never falls as η grows; whether scores lie in `score_interval` and values in `value_interval`, on the
    grid and on parts of it; whether the curvature is at most `curvature_bound`; and `score_step`, `residual_minimiser`,
    `is_quadratic`, `is_half_square`, `is_homogeneous` and `verified_score`. It proves nothing, since a grid may miss a
    fault. Every guarantee rests on the facts themselves. No data are involved.

    **Arguments:** `loss`: of x'θ. `predictors`: (lowest, highest) η, finite. `responses`: public values of y to try, by
    default 13 from -3 to 3; values without a meaning for the loss are skipped. `rows`: for a loss that sees the row x,
    (lowest, highest) x, each of shape (d,), the intercept's 1 first. Rows at corners and within are tried.

    Raises TypeError for a loss that is not of x'θ, and ValueError where no grid is left, rows are missing or too many,
    or a setting is a vector.
    """
    if not isinstance(loss, AbstractRowLoss):
        raise TypeError(f"check_loss takes a loss of x'theta, and {type(loss).__name__} is none")
    ends = None if rows is None else np.asarray(rows, np.float64)
    if isinstance(loss, AbstractPredictorLoss) is not (ends is None):
        raise ValueError("rows=(lowest, highest) is for a loss that sees the row of features, and such a loss needs it")
    if ends is not None and (ends.ndim != 2 or len(ends) != 2 or not np.all(ends[0] <= ends[1])):
        raise ValueError(f"rows must be two rows of features, the lowest and the highest, got shape {ends.shape}")
    low, high = map(float, predictors)
    given = np.linspace(-3.0, 3.0, _RESPONSES) if responses is None else np.asarray(responses, np.float64)
    with_meaning = np.unique(given[np.isfinite(loss.responses(given))]) if given.ndim == 1 else given[:0]
    if not (-np.inf < low < high < np.inf and with_meaning.size):
        raise ValueError(
            "check_loss needs predictors=(lowest, highest), finite, and responses that the loss has a meaning for, got "
            f"predictors={predictors} and responses={responses}"
        )
    row = () if ends is None else (ends[0],)
    shape = jax.eval_shape(loss.record_value, low, with_meaning[0], *row).shape
    if shape:
        raise ValueError(
            f"loss must give one number for a record, and {type(loss).__name__} gives an array of shape {shape}: its "
            "settings must be single numbers, a loss for each value of k"
        )
    return tuple(found.words for found in contradictions(loss, (low, high), with_meaning, ends))


def contradictions(
    loss: AbstractRowLoss,
    predictors: tuple[float, float],
    responses: Float[np.ndarray, " responses"],
    rows: Float[np.ndarray, "2 dimension"] | None = None,
) -> tuple[Contradiction, ...]:
    """Finds what `check_loss` says in words. **Arguments:** `responses`: which have a meaning for the loss."""
    with float64():
        places = _places(*predictors, responses)
        if isinstance(loss, AbstractPredictorLoss):
            return tuple(_contradictions(loss, places, responses))
        assert rows is not None
        found: dict[str, Contradiction] = {}
        for row in _rows_within(*rows):
            for one in _contradictions(loss, places, responses, (row,), (tuple(rows),)):
                at = ", ".join(f"{number:.6g}" for number in row)
                words = one.words.partition(" at " if " at " in one.words else " for ")[0]
                # It declares no convexity.
                if one.fact != "convex":
                    found.setdefault(words, one._replace(words=f"{one.words}, x = ({at})"))
        return tuple(found.values())


def _rows_within(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Chooses rows between two: both, the middle, and a dozen each of corners and of rows within."""
    generator, shape = np.random.default_rng(0), (12, lowest.size)
    ends = np.outer([0.0, 0.5, 1.0], np.ones(lowest.size))
    shares = np.concatenate([ends, generator.integers(2, size=shape), generator.uniform(size=shape)])
    return np.unique(lowest + shares * (highest - lowest), axis=0)


def _places(low: float, high: float, ys: np.ndarray) -> np.ndarray:
    """Predictors in increasing order: even over the interval, and ever denser about each response and 0."""
    span = high - low
    even = np.linspace(low, high, _PREDICTORS + 2)[1:-1] + _SHIFT * span
    distances = span / _UNEVEN * _FACTOR ** -np.arange(1.0, _DISTANCES + 1.0)
    near = np.append(ys, 0.0)[:, None] + np.concatenate([-distances, distances])
    # In the place of those beyond the interval is a point within, so that few shapes are compiled.
    near = np.where((low < near) & (near < high), near, low + (0.5 + _SHIFT) * span)
    return np.sort(np.concatenate([even, near.ravel()]))


@Compiled
def _tried(loss: AbstractRowLoss, etas: Any, responses: Any, *row: Any) -> Any:
    """Values, scores, curvatures and derivatives of the first two, of shape (responses, predictors)."""
    functions = loss.record_value, loss.record_score, loss.record_curvature
    functions += jax.grad(loss.record_value), jax.grad(loss.record_score)

    def at(eta: Any, y: Any) -> Any:
        return [jnp.asarray(function(eta, y, *row), float) for function in functions]

    return jax.vmap(lambda y: jax.vmap(lambda eta: at(eta, y))(etas))(responses)


def _contradictions(
    loss: AbstractRowLoss, etas: np.ndarray, ys: np.ndarray, row: tuple[Any, ...] = (), rows: tuple[Any, ...] = ()
) -> Iterator[Contradiction]:
    """Finds contradictions on a grid; `row`, `rows`: for a loss that sees rows, one x, and the ends of all of them."""
    found = np.array(_tried(loss, etas, ys, *row))
    known = np.asarray(np.isfinite(found).all(axis=0))
    # Comparisons with NaN are false: nothing is said of what is not known.
    values, scores, curvatures, slopes, slopes_of_scores = np.where(known, found, np.nan)

    def where(wrong: np.ndarray) -> str:
        row, column = np.unravel_index(np.argmax(wrong), wrong.shape)
        return f"at eta = {etas[column]:.6g}, y = {ys[row]:.6g}"

    if not known.all():
        yield Contradiction("finite", f"a value, score or curvature is not finite {where(~known)}")
    if not known.any():
        return
    if (wrong := _differ(scores, slopes)).any():
        words = "record_score is not the derivative of record_value by the predictor"
        yield Contradiction("derivatives", f"{words} {where(wrong)}")
    if not loss.score_is_piecewise_constant and (wrong := _differ(curvatures, slopes_of_scores)).any():
        yield Contradiction("derivatives", f"record_curvature is not the derivative of record_score {where(wrong)}")
    slack = _ROUNDING * np.max(np.abs(scores), axis=1, where=known, initial=0.0)[:, None]
    if (wrong := np.diff(scores, axis=1) < -slack).any():
        words = "the score is not monotone: it falls as the predictor grows, and the loss is not convex,"
        yield Contradiction("convex", f"{words} {where(wrong)}")
    if (wrong := curvatures < -slack).any():
        yield Contradiction("convex", f"record_curvature is negative: the loss is not convex {where(wrong)}")
    grid = _Grid(etas, ys, values, scores, curvatures)
    yield from _interval_contradictions(loss, grid, rows)
    for words, wrong in _flags(loss, grid) if isinstance(loss, AbstractPredictorLoss) else ():
        if wrong.any():
            yield Contradiction("others", f"{words} {where(wrong)}")
    if isinstance(loss, AbstractResidualLoss):
        least = float(loss.residual_value(loss.residual_minimiser()))
        if (wrong := values < least - _ROUNDING * (1.0 + abs(least))).any():
            yield Contradiction("others", f"the loss is smaller than at residual_minimiser {where(wrong)}")


def _flags(loss: AbstractPredictorLoss, grid: _Grid) -> Iterator[tuple[str, np.ndarray]]:
    """Marks the points of a grid that contradict a loss's facts about its whole form."""
    etas, ys, values, scores, curvatures = grid
    if loss.score_is_piecewise_constant:
        try:
            first, jump = map(float, loss.score_step())
        except TypeError:
            first, jump = np.inf, 0.0
        expected = first + jump * (etas >= ys[:, None])
        yield "the score is not what score_step says", np.abs(scores - expected) > _ROUNDING * (1.0 + np.abs(scores))
    if loss.is_quadratic:
        yield (
            "is_quadratic is declared, and the curvature is not one number",
            _differ(curvatures, np.full_like(curvatures, np.nanmin(curvatures))),
        )
    if loss.is_half_square:
        yield "is_half_square is declared, and the value is another", _differ(values, 0.5 * (ys[:, None] - etas) ** 2)
    if loss.is_homogeneous:
        doubled = np.asarray(_tried(loss, 2.0 * etas, 2.0 * ys)[0])
        yield "is_homogeneous is declared, and twice (eta, y) has not twice the value", _differ(doubled, 2.0 * values)
    if (verified := loss.verified_score()) is not None:
        pairs = (np.ravel(pair) for pair in np.broadcast_arrays(etas, 0.0, ys[:, None]))
        with np.errstate(all="ignore"):
            numbers, off = (np.reshape(part, scores.shape) for part in verified.floats(*pairs))
        slack = off + _ROUNDING * (1.0 + np.abs(scores))
        yield "verified_score is not record_score", np.abs(numbers - scores) > slack


@Compiled
def _declared(loss: AbstractRowLoss, predictors: Any, responses: Any, *rows: Any) -> Any:
    """The declared intervals of scores, values and curvatures over parts of the grid, each of shape (parts, 2)."""

    def over(predictor: Any, response: Any) -> Any:
        intervals = (
            loss.score_interval(tuple(predictor), tuple(response), *rows),
            loss.value_interval(tuple(predictor), tuple(response), *rows),
            (-jnp.inf, loss.curvature_bound(tuple(predictor)) if isinstance(loss, AbstractPredictorLoss) else jnp.inf),
        )
        return [jnp.stack([jnp.asarray(end, float) for end in interval]) for interval in intervals]

    return jax.vmap(over)(predictors, responses)


def _interval_contradictions(loss: AbstractRowLoss, grid: _Grid, rows: tuple[Any, ...]) -> Iterator[Contradiction]:
    """Finds what lies outside of the declared intervals over the whole grid and over parts of it."""
    etas, ys, values, scores, curvatures = grid
    parts = [(slice(None), slice(None))]
    # Of one response by itself too: over several an end of another may hide what is wrong.
    of_responses = [*_slices(ys.size, 2), *_slices(ys.size, ys.size)]
    parts += [(some, columns) for some in of_responses for columns in _slices(etas.size, 8)]
    predictors, responses = (
        np.array([_ends(places[part[axis]]) for part in parts]) for places, axis in ((etas, 1), (ys, 0))
    )
    kinds = {
        "score_interval does not hold the score": scores,
        "value_interval does not hold the value": values,
        "curvature_bound is exceeded": curvatures,
    }
    for (words, numbers), ends in zip(
        kinds.items(), map(np.asarray, _declared(loss, predictors, responses, *rows)), strict=True
    ):
        for number, part in enumerate(parts):
            here, (lowest, highest) = numbers[part], ends[number]
            here = here[np.isfinite(here)]
            slack = _ROUNDING * (_size(numbers) + np.max(np.abs(here), initial=0.0))
            # Written so that a bound that is NaN is a contradiction.
            if here.size and not (lowest - slack <= here.min() and here.max() <= highest + slack):
                predictor, response = predictors[number], responses[number]
                place = f"eta in [{predictor[0]:.6g}, {predictor[1]:.6g}], y in [{response[0]:.6g}, {response[1]:.6g}]"
                yield Contradiction("intervals", f"{words} for {place}: declared [{lowest:.6g}, {highest:.6g}]")
                break
    if not loss.needs_response_bounds:
        lowest, highest = (float(end) for end in loss.score_interval((-np.inf, np.inf), None, *rows))
        if not (
            lowest - _ROUNDING * (1.0 + abs(lowest)) <= np.nanmin(scores)
            and np.nanmax(scores) <= highest + _ROUNDING * (1.0 + abs(highest))
        ):
            words = "score_interval for every predictor and response does not hold the score"
            yield Contradiction("intervals", words)


def _differ(declared: np.ndarray, derivative: np.ndarray) -> np.ndarray:
    return np.abs(declared - derivative) > _DERIVATIVE * (_size(derivative) + np.abs(derivative))


def _size(numbers: np.ndarray) -> float:
    """Estimates how large numbers are on the way to small results: 1, or the largest result where that is less."""
    return float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=0.0).clip(max=1.0))


def _slices(number: int, parts: int) -> list[slice]:
    ends = np.unique(np.linspace(0, number, min(parts, number) + 1).astype(int))
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _ends(numbers: np.ndarray) -> tuple[float, float]:
    return float(numbers[0]), float(numbers[-1])
