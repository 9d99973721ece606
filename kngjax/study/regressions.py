"""Chooses the mechanism of a regression by public facts: the loss, the number of coefficients, n and ε."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

import kngjax as kng
from kngjax.accounting.exact_costs import inward
from kngjax.core.errors import about
from kngjax.data.formulas import Formula
from kngjax.data.schema import EMPTY, Schema
from kngjax.data.terms import Design, Product
from kngjax.draws.box_draws import BoxDraw
from kngjax.inference.score_laws import SCATTER
from kngjax.losses.base import AbstractResidualLoss
from kngjax.mechanisms.parameters import require_part, require_positive, whole_epsilon
from kngjax.study.analyses import Analysis, Part, bounds_of, of_level
from kngjax.study.responses import Response

# With more than so many widths, coefficients of a basis within [-1, 1] would leave the response's bounds by far.
_WIDTHS = 1.5
# The bound of the coefficients of log odds.
_LARGEST_LOGARITHM = 10.0
# The factor of the bandwidth, with a centre in the middle of the response's bounds. Measured by
# `benchmarks.ridge_centre` at ε of 1, 3 and 10 and levels .1, .5 and .9, on two tables of wages and on t residuals
# whose spread varies, with good and poor guesses of the scale: errors are 1.1 times those of the best bandwidth in the
# geometric mean, and 2.1 times at most.
_SHRINKAGE = 1.25
# Up to so many coefficients the pseudo-Huber loss is drawn by KNG, by boxes, while n·ε and n are at most these: with
# more information objective perturbation, in a hundredth of the time, loses a tenth at most, and with less up to a
# half. So it loses of log odds all along, where its ridge pulls to none, and of few records it errs a third as much.
# Four coefficients would take 40 to 140 s of a processor by boxes on wages and salaries. From five on KNG searches in
# the space of gradients, for as long as the records make it: a full set of dummies with an intercept, separated
# classes, wrong units. Objective perturbation ends soon for all of them.
_MOST_SMOOTH, _MOST_INFORMATION, _MOST_RECORDS = 3, 5_000.0, 10_000
# And so it does where the worst records may need more boxes than e to the power of these. The worst that were found
# have columns that are other than 0 in 5 to 50 records alone, and responses at both ends of their bounds: 20,000 of
# them take 9 s of a slow processor at 7.7 with two coefficients, 47 s at 10 with three, and minutes beyond.
_MOST_LOG_ALONG = {1: 0.0, 2: 6.0, 3: 10.0}
# KNG draws quantile losses on a lattice up to so many coefficients.
MOST_QUANTILES = 4
# At most so much of ε is spent on a smaller ridge: beyond, noise moves coefficients that no record tells apart by more
# than Θ is wide.
_MOST_ON_RIDGE, _WIDENED = 6.0, 2.0**10
# What of an estimate's ε is for noise where H is released beside it, with which the ridge is taken off: measured as the
# best of .5, .62 and .75 on wages with ten coefficients.
_NOISE_SHARE = 0.75
# A threshold beside H is made for about what the estimate keeps of ε, and is at least so many guessed deviations: below
# H is too small next to its noise.
_KEPT, _LEAST_THRESHOLD = 0.5, 1.2
# KNG draws least squares up to so many coefficients, beyond which the search depends on how Θ holds the estimate.
_MOST_SQUARED = 5


@dataclasses.dataclass(frozen=True)
class Regression:
    """States what is regressed on what, and plans it by one of several losses. Public.

    **Arguments:** `count`: n, or a guess of it under add_remove; None where nobody said one. `domain`: Θ; None makes it
    of the bounds of the response. `scale`: how far responses scatter about the regression, a public guess, or None for
    a tenth of the width of their bounds. `for_intervals`: whether as much of ε as serves intervals best is spent on
    noise, not on a small ridge.
    """

    formula: Formula
    response: Response
    adjacency: str
    count: int | None
    domain: Any = None
    scale: float | None = None
    for_intervals: bool = False

    def quantiles(self, tau: Any, epsilon: Any) -> Analysis:
        """Plans each level τ: by KNG up to four coefficients, then by objective perturbation.

        Objective perturbation takes a smoothed quantile loss, whose bandwidth goes by `scale`.
        """
        refuse_levels(self.response, "quantile regression")
        levels = levels_of(tau)
        dimension, parts = len(self.formula.design.names), []
        for level, share in zip(levels, equal_parts(epsilon, len(levels)), strict=True):
            loss: Any = kng.QuantileLoss(level)
            if dimension > MOST_QUANTILES:
                loss = self._smoothed(level, share)
            parts.append(Part(of_level(level), self._made(loss, share)))
        remake = None if dimension <= MOST_QUANTILES else self._again("quantiles", tau)
        return self._planned("quantile regression", *parts, scale=self.scale, remake=remake)

    def linear(self, epsilon: Any, method: str = "robust", delta: Any = None) -> Analysis:
        """Plans the mean by the pseudo-Huber loss, "robust", by least squares, "squared", or by AdaSSP, "adassp".

        The threshold of "robust" goes by `scale`; "adassp", from noisy sums, needs `delta`.
        """
        if method not in ("robust", "squared", "adassp"):
            raise ValueError(f'method must be "robust", "squared" or "adassp", not {method!r}')
        if (delta is None) is (method == "adassp"):
            given = f"{method} takes no delta"
            raise ValueError('method="adassp" needs a delta, like 1e-6' if delta is None else given)
        low, high = self._ends
        if method == "adassp":
            made = kng.AdaSSP(bounds_of(self.formula.design, self.response), epsilon, delta, self.adjacency)
            return self._planned("linear regression", Part(method, made))
        loss: Any = kng.SquaredLoss()
        if method == "robust":
            count, guess, kept = self._known_count, self._scale, float(epsilon) * (_KEPT if self.for_intervals else 1.0)
            threshold = kng.PseudoHuberLoss.public_threshold(count, len(self.formula.design.names), guess, kept)
            if self.for_intervals:
                threshold = max(threshold, _LEAST_THRESHOLD * guess)
            # Beyond the width of the bounds of y the loss is least squares, and noise alone grows with it.
            loss = kng.PseudoHuberLoss(min(threshold, high - low))
        part, remake = Part(method, self._made(loss, epsilon)), self._again("linear") if method == "robust" else None
        return self._planned("linear regression", part, scale=self.scale, remake=remake)

    def logistic(self, epsilon: Any) -> Analysis:
        """Plans the log odds of the second of two levels of the response."""
        column = self.response.column
        if self.response.levels is None:
            words = (
                f"logistic regression needs the two levels of {column!r}, levels={{{column!r}: ('no', 'yes')}}: "
                "coefficients are those of the second one"
            )
            raise about(ValueError(words), "levels", column)
        part = Part("log odds", self._made(kng.LogisticLoss(), epsilon))
        return self._planned("logistic regression", part, link="odds")

    def poisson(self, epsilon: Any) -> Analysis:
        """Plans the log mean of counts, or of rates, whose exposures are the weights of the records."""
        refuse_levels(self.response, "Poisson regression")
        high, exposure = self._ends[1], self.response.exposure
        # No mean exceeds the bound by more than 1 count for the largest exposure. Θ is not needed: it would cut the
        # smaller means too.
        most = 1.0 if exposure is None else exposure.bounds[1]
        loss = kng.CappedPoissonLoss(math.log1p(high * most) - math.log(most))
        bounds = bounds_of(self.formula.design, self.response)
        made = kng.ObjectivePerturbation(
            loss, bounds, self.domain, epsilon, self.adjacency, noise_share=self._least_share
        )
        return self._planned("Poisson regression", Part("log rate", made), link="rate")

    def _planned(self, title: str, *parts: Part, **facts: Any) -> Analysis:
        return Analysis(title, self.response, self.formula.design, parts, self.formula.text, **facts)

    def _again(self, method: str, *given: Any) -> Callable[..., Analysis]:
        # No lambda, so that a plan can be pickled.
        return functools.partial(self._remade, method, given)

    def _remade(self, method: str, given: tuple[Any, ...], epsilon: Any, count: int | None) -> Analysis:
        return getattr(dataclasses.replace(self, count=count), method)(*given, epsilon)

    def _smoothed(self, level: float, epsilon: float) -> kng.SmoothedQuantileLoss:
        """Chooses the bandwidth at which the bias of the ridge and the bias of smoothing are about equal."""
        count, scale, dimension = self._known_count, self._scale, len(self.formula.design.names)
        narrow = kng.SmoothedQuantileLoss.public_bandwidth(level, count, dimension, scale)
        # A ridge shrinks by some d²/(hn(e^{ε/2} - 1)), smoothing moves quantiles by some h², outer ones by more: they
        # balance here.
        outer, gain = 2.0 * math.sqrt(level * (1.0 - level)), math.expm1(min(epsilon / 2.0, _MOST_ON_RIDGE))
        balanced = scale * outer * math.cbrt(_SHRINKAGE * dimension**2 / (count * gain))
        return kng.SmoothedQuantileLoss(level, max(narrow, balanced))

    def _made(self, loss: Any, epsilon: Any) -> Any:
        """Makes KNG where it ends in seconds for all records that were tried, else objective perturbation."""
        response, design, is_of_odds = self.response, self.formula.design, isinstance(loss, kng.LogisticLoss)
        of_response: dict[str, Any] | None = {} if is_of_odds else None
        if loss.score_is_piecewise_constant:
            of_response = response.bounds_of_quantiles
        bounds, dimension, theta = bounds_of(design, response, of_response), len(design.names), self.domain
        if theta is None:
            theta = kng.Box(-_LARGEST_LOGARITHM, _LARGEST_LOGARITHM) if is_of_odds else domain_of(response, design)
        if dimension <= _most_of_kng(loss, epsilon, self.count) and not self.for_intervals:
            made = kng.KNG(loss, bounds, theta, epsilon, self.adjacency)
            if not loss.is_smooth or loss.is_quadratic or _needs_few_boxes(made, dimension):
                return made
        if self.domain is None and not loss.is_quadratic:
            theta = _widened(theta, dimension)
        share = max(self._least_share, 1.0 - _MOST_ON_RIDGE / float(epsilon))
        centre = public_centre(loss, bounds, dimension)
        return kng.ObjectivePerturbation(loss, bounds, theta, epsilon, self.adjacency, noise_share=share, centre=centre)

    @property
    def _least_share(self) -> float:
        return _NOISE_SHARE if self.for_intervals else 0.5

    @property
    def _ends(self) -> tuple[float, float]:
        return required_ends(self.response)

    @property
    def _scale(self) -> float:
        if self.scale is not None:
            what = "how far responses scatter about the regression, a public guess"
            return float(require_positive("scale", self.scale, what))
        low, high = self._ends
        return SCATTER * (high - low)

    @property
    def _known_count(self) -> int:
        if self.count is None:
            words = (
                "under add_remove the number of records is not public: give a public guess of it beside adjacency, "
                "num_records=10_000; a wrong one costs accuracy, and no privacy"
            )
            raise about(ValueError(words), "num_records")
        if self.count < 1:
            raise ValueError(EMPTY)
        return self.count


def _widened(theta: kng.Box, dimension: int) -> kng.Box:
    """Widens Θ so far that hardly any estimate is projected onto it.

    Where columns add up to one, coefficients may all move together and mean the same. Noise moves them together by
    much, and coefficients that were each projected into Θ would mean something else.
    """
    lower, upper = (np.broadcast_to(np.asarray(end, np.float64), (dimension,)) for end in (theta.lower, theta.upper))
    middle, reach = 0.5 * (lower + upper), 0.5 * _WIDENED * (upper - lower)
    return kng.Box(middle - reach, middle + reach)


def _needs_few_boxes(mechanism: Any, dimension: int) -> bool:
    """Whether boxes serve, and few enough of them whatever the records are. Public."""
    drawn = BoxDraw.of(mechanism, Schema(dimension))
    return drawn is not None and drawn.log_along <= _MOST_LOG_ALONG[dimension]


def _most_of_kng(loss: Any, epsilon: Any, count: int | None) -> int:
    """The most coefficients with which a study draws this loss by KNG. **Arguments:** `count`: n, or a guess of it."""
    if loss.score_is_piecewise_constant:
        return MOST_QUANTILES
    if loss.is_quadratic:
        return _MOST_SQUARED
    if isinstance(loss, kng.LogisticLoss) or count is None:
        return 0
    return _MOST_SMOOTH if count <= _MOST_RECORDS and count * float(epsilon) <= _MOST_INFORMATION else 0


def domain_of(response: Response, design: Design) -> kng.Box:
    """Makes Θ of the response's bounds: the intercept lies about their middle, and each coefficient within some widths.

    Without an intercept, where all predictions begin at 0, a coefficient lies within as many times the farther bound.
    """
    low, high = required_ends(response)
    # A column moves predictions by half of its width, 1, and without an intercept by the whole of its size, 1.
    across = 0.5 * (high - low) if design.intercept else max(abs(low), abs(high))
    reach, centre = 2.0 * across * _widths(design), np.zeros(len(design.names))
    if design.intercept:
        centre[0] = middle_of((low, high))
    return kng.Box(centre - reach, centre + reach)


def _widths(design: Design) -> Float[np.ndarray, " coefficients"]:
    """Bounds the coefficient of each basis column, in widths of the response, that of the constant first.

    A product of m categories, zeros and ones, has coefficients of up to 2^(m - 1) widths for values within the bounds.
    """
    widths = [_WIDTHS] * design.intercept
    for term in design.terms:
        factors = term.factors if isinstance(term, Product) else (term,)
        categories = sum(bool(np.all(factor.bounds[0] >= 0.0)) for factor in factors)
        widths += [max(_WIDTHS, 2.0 ** (categories - 1))] * len(term.basis_names)
    return np.array(widths)


def levels_of(tau: Any) -> tuple[float, ...]:
    """Reads quantile levels; raises ValueError for none, and for two that are the same."""
    given = np.atleast_1d(require_part("tau", tau))
    try:
        levels = tuple(float(level) for level in given)
    except (TypeError, ValueError):
        levels = ()
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"tau must be one level or several different ones, like [0.1, 0.5], not {tau!r}")
    return levels


def refuse_levels(response: Response, what: str) -> None:
    """Raises ValueError for a response of levels. **Arguments:** `what`: the analysis, in words."""
    if response.levels is not None:
        raise ValueError(f"{what} needs a response of numbers, and {response.column!r} has levels")


def required_ends(response: Response) -> tuple[float, float]:
    """Returns the bounds of the response; raises ValueError where it has none."""
    column = response.column
    if response.ends is None:
        words = f"the response {column!r} needs public bounds in own units, bounds={{{column!r}: (lower, upper)}}"
        raise about(ValueError(words), "bounds", column)
    return response.ends


def equal_parts(total: Any, number: int) -> Sequence[float]:
    """Divides a whole into equal parts that do not add up to more."""
    return [inward(whole_epsilon(total) / number)] * number


def public_centre(loss: Any, bounds: kng.Bounds, dimension: int) -> np.ndarray | None:
    """Returns the middle of the response's bounds as the intercept, and 0 for all else, where x'θ is a response.

    That is the centre of a study's Θ: the regression that predicts the same of every record. Otherwise the result is
    None, which pulls coefficients to 0: log odds to even odds, and logarithms of mean counts too, since at most a bound
    of the counts is known, and most counts lie far below its middle.

    **Arguments:** `bounds`: of a basis whose columns are 0 at the middle of their bounds.
    """
    low, high = bounds.y_lower, bounds.y_upper
    if not isinstance(loss, AbstractResidualLoss) or low is None or high is None or not bounds.intercept:
        return None
    centre = np.zeros(dimension)
    centre[0] = middle_of((float(low), float(high)))
    return centre


def middle_of(ends: tuple[float, float]) -> float:
    """Returns half of the way from one end to the other."""
    return 0.5 * (ends[0] + ends[1])
