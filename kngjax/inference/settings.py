"""States what a preview assumes, and derives what follows for any number of records and any ε."""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.terms import Design
from kngjax.inference.designs import rows_of
from kngjax.inference.estimands import bias_of, target_in_words
from kngjax.inference.far_draws import FarDraws, end_gap_share
from kngjax.inference.perturbed_minima import noise_of_minima
from kngjax.inference.score_laws import Responses, ScoreLaw
from kngjax.losses.base import AbstractPredictorLoss, AbstractResidualLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import found_contradictions
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.sensitivity import weighted

# The deviation of a number that lies evenly in an interval, over the interval's width.
EVEN = 1.0 / np.sqrt(12.0)
# Logarithms of odds and of rates are taken to lie within ±3: a factor of twenty.
_LARGEST_LOGARITHM = 3.0
# The factor by which variances of 200 draws err, in the worst of several coefficients.
_ERROR = 1.3
# From this n·ε/d on gradients are straight as far as noise reaches.
_STRAIGHT = 300.0


class Expected(NamedTuple):
    """Holds what is expected of one release. **Arguments:** `noise`: of privacy. `sampling`: the covariance of the
    estimate without privacy. `far`: the probability of a draw far off, None where that is not asked of the mechanism.
    """

    noise: ExpectedNoise
    sampling: Float[np.ndarray, "dimension dimension"]
    far: float | None


@dataclass(frozen=True)
class Scenario:
    """Joins a mechanism with public assumptions about one record.

    **Arguments:** `mechanism`. `hessian`, `score_covariance`: of one record on average, shape (d, d). `law`, `rows`: of
    a regression, else None. `room`: for each coefficient the deviation of a number of which nothing is known but what
    the bounds allow. `words`: what was assumed. `asked`: the `target` of `kngjax.preview` that the
    estimate stands for. `coefficients`: a guess of θ̃, where noise goes by it; else None.
    """

    mechanism: Any
    hessian: np.ndarray
    score_covariance: np.ndarray
    law: ScoreLaw | None
    rows: np.ndarray | None
    responses: Responses | None
    room: np.ndarray
    words: tuple[str, ...]
    asked: Any = None
    coefficients: np.ndarray | None = None

    @classmethod
    def of(
        cls, mechanism: AbstractMechanism, design: Any, residual: Any, target: Any = None, coefficients: Any = None
    ) -> "Scenario | None":
        """Makes the assumptions about a mechanism from the arguments of `kngjax.preview`; None for losses not served.

        Weights of records are taken to be all the largest.
        """
        found = cls._of(mechanism, design, residual, target)
        if found is not None and coefficients is not None:
            found = replace(found, coefficients=_guessed(coefficients, found.dimension))
        if found is None or weighted.most(mechanism.bounds) is None:
            return found
        return replace(found, words=(*found.words, _weights_in_words(mechanism.bounds)))

    @classmethod
    def _of(cls, mechanism: AbstractMechanism, design: Any, residual: Any, target: Any) -> "Scenario | None":
        loss = mechanism.loss
        if target is not None and not (mechanism.has_regressors and isinstance(loss, AbstractResidualLoss)):
            raise ValueError(f"target is for regressions with residuals, and {type(loss).__name__} has none here")
        if not loss.has_response:
            return None if loss.gradient_slope is None else cls._of_means(mechanism, design)
        if not mechanism.has_regressors:
            return cls._of_quantiles(mechanism, residual) if hasattr(mechanism, "tau") else None
        if not isinstance(loss, AbstractPredictorLoss):
            return None
        if any(one.fact == "convex" for one in found_contradictions(mechanism, mechanism.dimension or 2)):
            # The density may have other modes than that at the estimate, about which noise is foreseen.
            return None
        found = cls._of_regression(mechanism, design, residual)
        if not isinstance(loss, AbstractResidualLoss):
            return found
        target = loss.target if target is None else target
        if target is not None:
            _ = target_in_words(target)
        return replace(found, asked=target)

    @classmethod
    def _of_regression(cls, mechanism: Any, design: Any, residual: Any) -> "Scenario":
        bounds, loss = mechanism.bounds, mechanism.loss
        rows = rows_of(design, bounds, mechanism.dimension)
        if mechanism.dimension is None:
            # An ε that follows from other settings depends on d.
            bounds = bounds.for_dimension(rows.shape[1])
            mechanism = eqx.tree_at(lambda one: one.bounds, mechanism, bounds)
        responses = Responses.of(residual, loss, bounds)
        dimension, gram = rows.shape[1], rows.T @ rows / len(rows)
        domain = getattr(mechanism, "domain", None)
        with float64():
            sides = np.asarray(bounds.features(dimension))
            reach = None if domain is None else np.asarray(domain.widths(dimension)) / 2
        largest = np.max(np.abs(sides), axis=0)
        farthest = 0.0 if reach is None or not np.all(np.isfinite(reach)) else float(reach @ largest)
        law = ScoreLaw.of(loss, responses, farthest)
        # Whatever the units of the columns are.
        lengths = np.sqrt(np.diagonal(gram))
        if not np.all(lengths > 0.0) or np.linalg.cond(gram / np.outer(lengths, lengths)) > 1e12:
            raise ValueError("the rows of the design do not tell the coefficients apart: two columns say the same")
        words = _features_in_words(design), responses.words
        # Where no column is constant, all responses begin at 0, and columns move them by their whole size.
        constant = sides[0] == sides[1]
        half = np.where(constant, largest, (sides[1] - sides[0]) / 2) if np.any(constant) else largest
        size = _size(loss, bounds, reach, bool(np.any(constant)))
        room = 2.0 * EVEN * (size / half if size is not None else np.full(dimension, np.inf))
        hessian, squares = law.curvature * gram, law.score_square * gram
        return cls(mechanism, hessian, squares, law, rows, responses, room, words)

    @classmethod
    def _of_means(cls, mechanism: Any, design: Any) -> "Scenario":
        bounds, slope = mechanism.bounds, mechanism.loss.gradient_slope
        rows = rows_of(design, bounds, mechanism.dimension)
        dimension = rows.shape[1]
        with float64():
            lower, upper = (np.asarray(side) for side in bounds.features(dimension))
        covariance = np.cov(rows.T, bias=True).reshape(dimension, dimension)
        words = (_features_in_words(design),)
        room = EVEN * (upper - lower)
        return cls(mechanism, slope * np.eye(dimension), slope**2 * covariance, None, None, None, room, words)

    @classmethod
    def _of_quantiles(cls, mechanism: Any, residual: Any) -> "Scenario":
        responses = Responses.of(residual, mechanism.loss, mechanism.bounds)
        assert responses.density is not None
        levels = np.asarray(mechanism.tau, np.float64)
        densities = np.array([responses.density(responses.quantile(level)) for level in levels])
        covariance = np.minimum(levels[:, None], levels) - levels[:, None] * levels
        width = float(mechanism.bounds.y_upper) - float(mechanism.bounds.y_lower)
        room, words = np.full(len(levels), EVEN * width), (responses.words.replace("residuals", "values"),)
        return cls(mechanism, np.diag(densities), covariance, None, None, responses, room, words)

    @property
    def dimension(self) -> int:
        return len(self.hessian)

    @property
    def weight(self) -> float:
        """Returns the weight by which the mechanism multiplies every record's loss; 1 without weights."""
        return weighted.largest(self.mechanism.bounds)

    @functools.cached_property
    def epsilon(self) -> float:
        """Returns ε of the mechanism, which may take a search."""
        return float(self.mechanism.epsilon)

    def expected(self, num_records: int, and_far: bool = True) -> Expected | None:
        """Derives what is expected of n records; None where the noise is not known. `and_far`: with its `far`."""
        noise = self.mechanism.noise.expected(num_records * self.weight * self.hessian, num_records)
        if noise is None:
            return None
        if self.coefficients is not None and noise.at is not None:
            noise = noise._replace(covariance=noise.at(self.coefficients), growth=1.0)
        law, rows, tilt = self.law, self.rows, noise.tilt
        # ε last, which may take a search.
        if law is not None and rows is not None and tilt is not None and self._is_curved(num_records):
            # The equation is divided by W, for the loss without weights.
            solved = noise_of_minima(law, rows, num_records, tilt[0] / self.weight**2, tilt[1] / self.weight)
            # For many records the two are the same but for the error of few draws.
            larger = max(1.0, float(np.max(np.diag(solved) / np.diag(noise.covariance))) / _ERROR)
            noise = noise._replace(covariance=noise.covariance * larger)
        return Expected(noise, self.sampling(num_records), self.far_share(num_records) if and_far else None)

    def sampling(self, num_records: int) -> Float[np.ndarray, "dimension dimension"]:
        """Returns H^{-1}JH^{-1}, the covariance of the estimate of n records without privacy."""
        inverse = np.linalg.inv(num_records * self.hessian)
        return inverse @ (num_records * self.score_covariance) @ inverse

    def _is_curved(self, num_records: int) -> bool:
        return num_records * self.epsilon < _STRAIGHT * self.dimension

    def at(self, epsilon: float) -> "Scenario | None":
        """Returns the setting at another ε; None where the mechanism has none."""
        if epsilon == self.epsilon:
            return self
        moved = self.mechanism.at_epsilon(epsilon)
        return None if moved is None else self.of_mechanism(moved)

    def of_mechanism(self, mechanism: Any) -> "Scenario":
        """Returns the setting of a mechanism that differs in its ε alone."""
        made = replace(self, mechanism=mechanism)
        # Neither of these depends on ε.
        vars(made).update({name: vars(self)[name] for name in ("far_draws", "bias") if name in vars(self)})
        return made

    @functools.cached_property
    def far_draws(self) -> FarDraws | None:
        """Returns the facts of KNG far from the estimate; None for other mechanisms."""
        return None if self.rows is None or self.law is None else FarDraws.of(self.mechanism, self.rows, self.law)

    @property
    def target(self) -> str | None:
        """Says what θ* stands for, in words."""
        return None if self.asked is None else target_in_words(self.asked)

    @functools.cached_property
    def bias(self) -> Float[np.ndarray, " dimension"] | None:
        """Returns θ* less its target; None without a target, and without a law of residuals."""
        law = None if self.responses is None else self.responses.law
        if self.asked is None or law is None or self.rows is None:
            return None
        return bias_of(self.mechanism.loss, self.rows, law, self.asked)

    def far_share(self, num_records: int) -> float | None:
        """Returns the probability of a draw from far off; None for mechanisms of which that is not asked."""
        if (far := self.far_draws) is not None:
            return far.share(num_records, self.epsilon)
        if self.responses is None or self.law is not None:
            return None
        bounds = self.mechanism.bounds
        width = float(bounds.y_upper) - float(bounds.y_lower)
        rates = self.mechanism.rank_rates()
        shares = zip(rates, np.diag(self.hessian), np.asarray(self.mechanism.tau), strict=True)
        return float(max(end_gap_share(*share, num_records, width) for share in shares))


def _guessed(coefficients: Any, dimension: int) -> np.ndarray:
    guess = np.asarray(coefficients, np.float64)
    if guess.shape != (dimension,) or not np.all(np.isfinite(guess)):
        raise ValueError(f"coefficients must be a guess of each of {dimension} numbers, the intercept first")
    return guess


def _weights_in_words(bounds: Any) -> str:
    if bounds.of_persons:
        return f"each {bounds.protects} has all {bounds.unit.most_rows} votes: with fewer noise is larger"
    return "every record has the largest weight: with smaller ones noise is larger"


def _features_in_words(design: Any) -> str:
    if isinstance(design, Design):
        return (
            "numbers spread over the middle half of their bounds, and each level but the first with a tenth of the "
            "records: noise is larger of columns that vary less"
        )
    if design is None or not (callable(design) or hasattr(design, "shape") or isinstance(design, list)):
        return "features spread evenly over their bounds, at best: real ones fill less of them"
    return "features as in the public rows that were given"


def _size(loss: Any, bounds: Any, reach: np.ndarray | None, has_constant: bool) -> Any:
    """Bounds the effect of moving a column by half of its bounds: half of the width of the response.

    Without a constant column it is the effect of its whole size: as far as the response is from 0.
    """
    if loss.usual_responses(bounds, 2) is not None:
        return _LARGEST_LOGARITHM if reach is None else np.minimum(reach, _LARGEST_LOGARITHM)
    if bounds.y_lower is not None:
        low, high = float(bounds.y_lower), float(bounds.y_upper)
        return 0.5 * (high - low) if has_constant else max(abs(low), abs(high))
    return None if reach is None or not np.all(np.isfinite(reach)) else reach
