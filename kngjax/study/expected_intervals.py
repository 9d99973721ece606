"""Says beforehand what intervals of means and quantiles results will print, by public facts and assumptions alone."""

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from kngjax.inference.given_sums import DRAWS, ends_of_draws, means_given
from kngjax.inference.noise_of_sums import noise_of_deviations
from kngjax.inference.response_laws import nodes_and_weights, quantiles_of
from kngjax.inference.score_laws import Responses
from kngjax.mechanisms.interval_ranks import ranks_for
from kngjax.mechanisms.quantile_interval import QuantileInterval
from kngjax.study.analyses import Analysis, Part
from kngjax.study.column_estimates import CentredSquares
from kngjax.study.responses import Response
from kngjax.study.views.new_cells import numbers_in

# Of ranks whose noise is next to none.
_NO_NOISE = 64.0


def interval_in_words(
    analysis: Analysis, part: Part, count: int | None, design: Any, residual: Any, times: float
) -> str | None:
    """Says how wide the interval will be that a release of a mean or an interval of a quantile prints.

    None of other releases, and where nobody said how many records there are. **Arguments:** as of
    `kngjax.study.expectations.preview_of`.
    """
    mechanism, response = part.mechanism, analysis.response
    if count is None:
        return None
    if isinstance(mechanism, QuantileInterval):
        heaps = response.heaps_in_words(mechanism.count(count)) if isinstance(response, Response) else ""
        return "\n".join([_of_quantile(mechanism, count, residual, times), *([f"dither: {heaps}."] if heaps else [])])
    if isinstance(response, CentredSquares) and part.label == "mean":
        return _of_mean(mechanism, response, count, _moments(analysis, response, design, residual))
    return None


def is_refused(part: Part, count: int | None) -> bool:
    """Tells whether a release of an interval of a quantile would be refused, as so few records have none."""
    mechanism = part.mechanism
    if not count or not isinstance(mechanism, QuantileInterval) or mechanism.force:
        return False
    return mechanism.refusal(count) is not None


def _of_quantile(mechanism: QuantileInterval, count: int, residual: Any, times: float) -> str:
    """Says between which quantiles of the values the interval lies, and how wide it is of values of a law."""
    number, tau = mechanism.count(count), float(mechanism.tau)
    if (why := mechanism.refusal(count, times)) is not None:
        return f"no interval: {why}."
    ranks = mechanism.ranks(count)
    said = (
        f"its ends are near the values of rank {ranks.lower:,} and {ranks.upper:,} of {number:,}, about the "
        f"{ranks.lower / number:.3g}- and the {ranks.upper / number:.3g}-quantile"
    )
    if (without := ranks_for(number, tau, _NO_NOISE, mechanism.level)) is not None:
        said += (
            f", {(ranks.upper - ranks.lower) / (without.upper - without.lower):.3g} times as far apart as they were "
        )
        said += "without privacy"
    if residual is None:
        return f"{said}. How far apart these values are is private: preview(residual=) takes their law."
    law = _normal(residual) or residual
    lower, upper = (float(quantiles_of(law, rank / number, 1)[0]) for rank in ranks)
    width = upper - lower + float(mechanism.bounds.dither or 0.0)
    return f"{said}. Of values of the law that was given it is about {width:.3g} wide."


def _of_mean(mechanism: Any, columns: CentredSquares, count: int, given: tuple[float, float] | None) -> str:
    """Says which standard error and width follow from sums that come out as expected.

    **Arguments:** `given`: what `_moments` returns.
    """
    deviations = np.asarray(mechanism.noise.deviations(mechanism.dimension, None))

    def width_of(mean: float, variance: float) -> float:
        random = np.random.default_rng(0)
        sums = count * np.array([1.0, mean, variance + mean**2 - 0.5 * columns.half_width**2])
        drawn = sums - noise_of_deviations(deviations, random, DRAWS)
        lower, upper = ends_of_draws(means_given(drawn, columns.half_width, random, True), 0.95)
        return float(upper - lower)

    def words_of(width: float) -> str:
        return f"{width / 3.92:.3g}, a 95% interval {width:.3g} wide,"

    said = f"of {count:,} records the standard error will be about"
    if given is not None:
        width, without = width_of(*given), 3.92 * (given[1] / count) ** 0.5
        rest = f", {width / without:.3g} times as wide as without privacy" if without else ""
        return f"{said} {words_of(width)} of values such as were described{rest}."
    even, none = width_of(0.0, columns.half_width**2 / 3.0), width_of(0.0, 0.0)
    return (
        f"{said} {words_of(even)} if values spread evenly over their bounds, and {words_of(none)} if they hardly vary "
        f"about the middle. A column {columns.name!r} of design=, or residual=, says how yours lie."
    )


def _moments(analysis: Analysis, columns: CentredSquares, design: Any, residual: Any) -> tuple[float, float] | None:
    """Returns the mean about the middle of the bounds and the variance of described values; None where none were.

    Raises ValueError for cells that are no numbers, and for a law without a scatter.
    """
    response, half = columns.response, columns.half_width
    assert isinstance(response, Response)
    name = response.column
    described = isinstance(design, Mapping) or hasattr(design, "columns")
    values = numbers_in(design, name, name in analysis.dates) if described else None
    if values is not None:
        if not (values.size and np.all(np.isfinite(values))):
            raise ValueError(f"column {name!r} of design= has cells that are no number, or none at all")
        values = np.clip(values - columns.middle, -half, half)
        return float(np.mean(values)), float(np.var(values))
    if residual is None:
        return None
    if (law := _normal(residual)) is not None:
        return 0.0, min(law.stdev, half) ** 2
    values, weights = map(
        np.ravel, nodes_and_weights(residual, 1, (columns.middle - half, columns.middle + half), False)
    )
    mean = float(np.sum(weights * values))
    return mean - columns.middle, float(np.sum(weights * (values - mean) ** 2))


def _normal(residual: Any) -> NormalDist | None:
    """Returns the normal law with a number as its scale; None of all else. Raises ValueError unless it is positive."""
    return Responses.normal(float(residual), "").law if isinstance(residual, int | float | np.number) else None
