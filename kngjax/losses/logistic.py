"""The logistic loss of binary regression."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import is_traced
from kngjax.data import cells
from kngjax.data.bounds import Bounds
from kngjax.data.missing import DROP
from kngjax.losses.base import AbstractPredictorLoss, CurvatureFacts, Interval, Number
from kngjax.losses.kernels import LOGISTIC
from kngjax.losses.smooth_scores import LogisticScore


class LogisticLoss(AbstractPredictorLoss):
    """ρ(η, y) = log(1 + e^η) - yη for y ∈ {0, 1}; score σ(η) - y.

    Score interval: σ ∈ (0, 1) and y ∈ {0, 1}, so s ∈ [-1, 1], whatever θ: only x needs bounds. (4ρ'')² + s⁴ is at most
    16σ²(1 - σ)² + max(σ, 1 - σ)⁴, which is largest near σ = .55, where it is 1.072.

    **Arguments:** `levels`: the two values of the response in the data, the value of y = 0 first, like (-1, 1) or
    ("no", "yes"). Public. Cells are compared with them one by one (`kngjax.data.cells`), and any other cell counts as
    missing. Raises TypeError unless both are text or both are finite numbers, ValueError unless there are two.
    """

    levels: tuple[Any, Any] = eqx.field(static=True, default=(0, 1), converter=tuple)

    value_needs_response_bounds: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def __check_init__(self):
        cells.require_levels("the levels of LogisticLoss", self.levels)
        if len(self.levels) != 2:
            raise ValueError(f"the levels of LogisticLoss must be two, like ('no', 'yes'), not {self.levels!r}")

    def verified_score(self) -> LogisticScore:
        return LogisticScore()

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"]:
        """Makes half of the responses 1."""
        return np.arange(count) % 2.0

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jax.nn.softplus(predictor) - response * predictor

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jax.nn.sigmoid(predictor) - response

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return LOGISTIC.density(predictor)

    def curvature_bound(self, predictor: Interval) -> Number:
        """1/4: σ(1 - σ) is largest at σ = ½."""
        return 0.25

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """Bounds the logistic density as `kngjax.losses.kernels` proves: ρ'' = σ(1 - σ) is the density at η."""
        return LOGISTIC.facts(jnp.asarray(predictor) + 0.0 * response, reach)

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        return jnp.asarray(-1.0), jnp.asarray(1.0)

    def value_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        """ρ is log(1 + e^-η) for y = 1 and log(1 + e^η) for y = 0: monotone in η, so extreme at the ends."""
        signed = jnp.stack([jnp.asarray(end) for end in (*predictor, -predictor[0], -predictor[1])])
        return jax.nn.softplus(jnp.min(signed)), jax.nn.softplus(jnp.max(signed))

    def response_interval(self, bounds: Bounds) -> Any:
        """[0, 1], whatever the levels."""
        return 0.0, 1.0

    @property
    def reads_text(self) -> bool:
        return any(isinstance(level, str) for level in self.levels)

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """0 or 1, the place of the cell's level; NaN where it has none."""
        places = cells.levels(column, self.levels)
        return np.where(places < 0, np.nan, places.astype(np.float64))

    def check_bounds(self, bounds: Bounds) -> None:
        super().check_bounds(bounds)
        if bounds.missing_y == DROP and any(cells.same_level(DROP, level) for level in self.levels):
            raise ValueError("'drop' is a level of LogisticLoss: missing_y='drop' would have two meanings")
        lower, upper = bounds.y_lower, bounds.y_upper
        if lower is None or upper is None or is_traced(lower, upper):
            return
        if (float(lower), float(upper)) != (0.0, 1.0):
            raise ValueError(
                "the logistic loss has responses 0 and 1, whatever its levels are, and these bounds of y are not "
                "(0, 1): leave y out"
            )
