"""Reads confidence intervals off a release and its certificate, which is free.

Intervals of regressions are computed in `kngjax.inference.intervals_from_sums`.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.later import pd
from kngjax.core.summary_table import AbstractSummarised, SummaryTable, names_of
from kngjax.inference.without_intervals import refusal_of
from kngjax.releases.certificate import Certificate
from kngjax.releases.release import Release

_OF_QUANTILES = (
    "the values are independent draws from one population, whose quantile it is, or from records that are",
    "no value is shared by many of them: of rounded values give Bounds(y=(lower, upper), dither=unit)",
    "the bounds hold the quantile: values beyond count as the bounds",
    "near the quantile values lie about evenly as far as noise for privacy reaches",
)
_AT_LEAST = (
    "there are at least num_records records: with half of them a 95% interval holds the quantile 83 times in 100"
)

_COUNTED = "num_records is less than a released count by what its noise may be; how often that is too little counts in"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Interval(AbstractSummarised):
    """Holds intervals that contain the estimand with probability `level`, over sampling and privacy noise together.

    The privacy of a release is proved for all data; this level is a statement about a population, under `assumptions`.

    **Arguments:** `lower`, `upper`: shape (d,). `level`: the probability. `method`: how they were made.
    `assumptions`: what the level rests on. `names`: of what is estimated.
    """

    lower: Float[np.ndarray, " dimension"]
    upper: Float[np.ndarray, " dimension"]
    level: float
    method: str
    assumptions: tuple[str, ...]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, release: Any, level: float | None = None) -> "Interval | NoInterval":
        """Makes the intervals of a release. **Arguments:** `level`: None for the one that it was made for.

        Raises TypeError for anything else, saying why it has none.
        """
        if not isinstance(release, Release):
            raise refusal_of(release)
        return _intervals_of(release.certificate, release.value, level)

    def to_frame(self) -> "pd.DataFrame":
        """Makes a frame of a row for each number, with columns lower and upper."""
        index = None if self.names is None else pd.Index(self.names, name="estimate")
        return pd.DataFrame({"lower": self.lower, "upper": self.upper}, index=index)

    def summary(self) -> SummaryTable:
        """Lays out the ends, a line a number, how they were made and what they rest on."""
        names, ends = names_of(self.names, len(self.lower)), (self.lower.tolist(), self.upper.tolist())
        facts, rows = [("level", f"{self.level:.12g}"), ("method", self.method)], [*zip(names, *ends, strict=True)]
        assumed = [f"assumed: {one}" for one in self.assumptions]
        return SummaryTable("Confidence intervals", facts, ("estimate", "lower", "upper"), rows, notes=assumed)


@dataclasses.dataclass(frozen=True)
class NoInterval:
    """States that a release has no interval. **Arguments:** `reason`: why."""

    reason: str

    def __repr__(self) -> str:
        return f"<no interval: {self.reason}>"


def _intervals_of(
    certificate: Certificate, value: Float[np.ndarray, " numbers"], level: float | None
) -> Interval | NoInterval:
    mechanism = certificate.mechanism
    if mechanism["type"] != "QuantileInterval":
        return NoInterval(
            f"a release of {mechanism['type']} has none: of a quantile release kngjax.QuantileInterval(tau, bounds, "
            "epsilon, adjacency), of a mean or a regression kngjax.WithIntervals(mechanism); and standard errors of "
            "the records would be a second release without a guarantee"
        )
    sampler, made_for = certificate.sampler, mechanism["level"]
    if sampler.get("refusal"):
        return NoInterval(f"it was released by force=True: {sampler['refusal'].split('. ')[0]}")
    if level is not None and level != made_for:
        return NoInterval(f"its ranks were chosen for the level {made_for:g} before it was released, not {level:g}")
    # The quantile of values lies at most this far from that of values with noise.
    bounds = mechanism["bounds"]
    half, of_log = 0.5 * (bounds.get("dither") or 0.0), bool(bounds.get("dither_of_log"))
    lower, upper = sampler["ranks"]
    method = f"two private order statistics, of ranks {lower} and {upper} of {sampler['num_records']}"
    if half:
        method += f", {half:g} wider on each side for the dither" + of_log * " of what the values are logarithms of"
    at_least = _COUNTED if mechanism.get("miss") else _AT_LEAST
    known = () if mechanism.get("num_records") is None else (at_least,)
    names = (f"{mechanism['tau']!r}-quantile",)
    lowest, highest = (
        _wider_logarithms(value, half, bounds["y_lower"]) if of_log else (value[:1] - half, value[1:] + half)
    )
    return Interval(lowest, highest, made_for, method, (*_OF_QUANTILES, *known), names)


def _wider_logarithms(
    ends: Float[np.ndarray, " two"], half: float, least: float
) -> tuple[Float[np.ndarray, " one"], Float[np.ndarray, " one"]]:
    """Returns log(e^a - w/2), or the lower bound of y where that is no number, and log(e^b + w/2).

    **Arguments:** `half`: w/2."""
    with np.errstate(divide="ignore", over="ignore"):
        lowest = ends[:1] + np.log(np.maximum(1.0 - half * np.exp(-ends[:1]), 0.0))
    lowest = np.maximum(lowest, least)
    return lowest, np.logaddexp(ends[1:], np.log(half))
