"""Computes the mean scores and curvatures of one record, for a loss and an assumed law of responses."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.inference.response_laws import density_of, quantiles_of
from kngjax.losses.base import AbstractPredictorLoss

# The scatter of responses about a regression that is assumed where nobody gives one, in widths of their bounds.
SCATTER = 0.1
_NUMBER = 1000
_HALF = 200
# How far predictors are searched at least: these are logarithms of odds or of rates, or on the scale of responses.
_FARTHEST = 15.0


@dataclass(frozen=True)
class Responses:
    """Describes the law of responses about a regression without slopes. Public.

    **Arguments:** `quantiles`: equally likely values. `density`: of the law, None where it has none. `words`: what was
    assumed. `law`: of residuals itself, None of responses.
    """

    quantiles: Float[np.ndarray, " values"]
    density: Callable[[float], float] | None
    words: str
    law: Any = None

    @classmethod
    def of(cls, residual: Any, loss: Any, bounds: Bounds) -> "Responses":
        """Returns the law that the user gives, else the usual one of the loss.

        `residual` is a NumPyro distribution, or the scale of a normal one. Raises ValueError where it is None and the
        responses have no bounds to tell their scatter.
        """
        if isinstance(residual, Responses):
            return residual
        usual = loss.usual_responses(bounds, _NUMBER) if isinstance(loss, AbstractPredictorLoss) else None
        is_scatter = isinstance(residual, int | float | np.number)
        if usual is not None and (residual is None or is_scatter):
            # A standard deviation does not describe responses that are 0 or 1, or counts.
            return cls(usual, None, f"a response with mean {np.mean(usual):.3g} wherever the features lie")
        if residual is None:
            if bounds.y_lower is None or bounds.y_upper is None:
                raise ValueError(
                    "how far responses scatter about the regression is not known: give residual=2.0, a standard "
                    "deviation, or a NumPyro distribution"
                )
            residual = SCATTER * (float(bounds.y_upper) - float(bounds.y_lower))
            return cls.normal(residual, f"residuals normal with deviation {residual:.3g}, a tenth of the bounds of y")
        if is_scatter:
            return cls.normal(float(residual), f"residuals normal with deviation {residual:.3g}")
        if not hasattr(residual, "sample"):
            raise ValueError(
                "residual must be a positive number, the standard deviation of normal residuals, or a NumPyro "
                f"distribution, like 2.0 or Laplace(0.0, 2.0), not {residual!r}"
            )
        return cls._given(residual, "residuals" if usual is None else "responses")

    @classmethod
    def of_rates(cls, most: float, exposure: float) -> "Responses":
        """Rates of mean a tenth of the largest, as counts of records that all have this exposure have them."""
        rates = np.random.default_rng(0).poisson(0.1 * most * exposure, _NUMBER) / exposure
        return cls(np.sort(rates), None, f"a rate of {np.mean(rates):.3g} wherever the features lie")

    @classmethod
    def normal(cls, scale: float, words: str) -> "Responses":
        """Makes the law N(0, scale²)."""
        if not 0.0 < scale < np.inf:
            raise ValueError(f"residuals must scatter by a positive finite number, not {scale}")
        law = NormalDist(0.0, scale)
        return cls(np.array([law.inv_cdf(level) for level in _levels()]), law.pdf, words, law)

    @classmethod
    def _given(cls, law: Any, what: str) -> "Responses":
        def density(value: float) -> float:
            return float(density_of(law, value))

        return cls(quantiles_of(law, _levels(), _NUMBER), density, f"{what} by {type(law).__name__}", law)

    def quantile(self, level: float) -> float:
        """Returns the value that a share of about `level` does not exceed."""
        return float(np.quantile(self.quantiles, level))


@dataclass(frozen=True)
class ScoreLaw:
    """Holds expectations of one record at the best predictor c, E s(c) = 0: E ρ'', E s², and E s(c + t) at steps t.

    **Arguments:** `best`: c. `curvature`: E ρ''. `score_square`: E s². `steps`: t, increasing. `scores`: E s(c + t).
    """

    best: float
    curvature: float
    score_square: float
    steps: Float[np.ndarray, " steps"]
    scores: Float[np.ndarray, " steps"]

    @classmethod
    def of(cls, loss: AbstractPredictorLoss, responses: Responses, farthest: float) -> "ScoreLaw":
        """Computes a record's expectations for a loss. **Arguments:** `farthest`: the largest |t| that matters."""
        values = (
            responses.quantiles if len(responses.quantiles) <= _NUMBER else np.quantile(responses.quantiles, _levels())
        )
        best = _zero(loss, values)
        spread = float(np.std(values)) or 1.0
        # Dense about 0.
        half = np.sinh(np.linspace(0.0, np.arcsinh(max(farthest, spread) / (0.05 * spread)), _HALF + 1)) * 0.05 * spread
        steps = np.concatenate([-half[:0:-1], half])
        with float64(), quick_compilation():
            curvature, score_square = map(float, _curvature_and_square(loss, best, values))
            if loss.score_is_piecewise_constant:
                low, jump = map(float, loss.score_step())
                assert responses.density is not None
                curvature = jump * responses.density(responses.quantile(-low / jump))
            scores = np.array(_mean_scores(loss, best + steps, values))
        return cls(best, curvature, score_square, steps, scores)

    def mean_score(self, steps: np.ndarray) -> np.ndarray:
        """Computes E s(c + t)."""
        return np.interp(steps, self.steps, self.scores)


@Compiled
def _mean_scores(loss: AbstractPredictorLoss, predictors: Any, values: Any) -> Any:
    return jax.vmap(lambda one: jnp.mean(jax.vmap(lambda value: loss.record_score(one, value))(values)))(predictors)


@Compiled
def _curvature_and_square(loss: AbstractPredictorLoss, predictor: Any, values: Any) -> Any:
    curvatures = jax.vmap(lambda value: loss.record_curvature(predictor, value))(values)
    return jnp.mean(curvatures), jnp.mean(jax.vmap(lambda value: loss.record_score(predictor, value))(values) ** 2)


def _zero(loss: AbstractPredictorLoss, values: np.ndarray) -> float:
    """Finds c with E s(c) = 0, or the nearest; the score does not fall."""
    low, high = min(-_FARTHEST, float(np.min(values))), max(_FARTHEST, float(np.max(values)))
    for _ in range(4):
        grid = np.linspace(low, high, 2 * _HALF + 1)
        with float64(), quick_compilation():
            scores = np.array(_mean_scores(loss, grid, values))
        place = int(np.clip(np.searchsorted(scores >= 0.0, True), 1, len(grid) - 1))
        low, high = grid[place - 1], grid[place]
    return float(0.5 * (low + high))


def _levels(number: int = _NUMBER) -> np.ndarray:
    return (np.arange(number) + 0.5) / number


def scatter_is_known(mechanism: Any) -> bool:
    """Says whether public facts tell how far responses scatter, where the mechanism's loss has some."""
    loss, bounds = mechanism.loss, mechanism.bounds
    if bounds.y_lower is not None or not isinstance(loss, AbstractPredictorLoss):
        return True
    return loss.usual_responses(bounds, 2) is not None
