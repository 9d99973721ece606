"""Estimates one column by public facts alone: mean, quantiles, sum, variance; sums of powers have K-norm noise."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

import kngjax as kng
from kngjax.data.named_columns import Columns
from kngjax.study.analyses import Analysis, Part, names_of_values
from kngjax.study.regressions import levels_of, required_ends
from kngjax.study.responses import AbstractResponse, Response


def mean(response: Response, epsilon: Any, adjacency: str) -> Analysis:
    """Plans the mean of a column within its bounds: K-norm noise under replace, KNG under add_remove."""
    bounds, (low, high) = bounds_of_values(response), required_ends(response)
    if adjacency == kng.Adjacency.REPLACE.value:
        made = kng.KNormMechanism(bounds, epsilon, adjacency)
    else:
        made = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box([low], [high]), epsilon, adjacency)
    return _of_column(response, "mean", made)


def quantile(response: Response, tau: Any, epsilon: Any, adjacency: str, budget: str = "split") -> Analysis:
    """Plans quantiles of a column at the levels τ. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
    levels = levels_of(tau)
    bounds = kng.Bounds(**response.bounds_of_quantiles, missing_y=response.substitute)
    if len(levels) == 1:
        return _of_column(response, "quantile", kng.PrivateQuantile(levels[0], bounds, epsilon, adjacency))
    made = kng.PrivateQuantile(levels, bounds, epsilon, adjacency, budget)
    return _of_column(response, "quantile", made, f"quantiles of {response.name}")


def quantile_interval(
    response: Response, tau: Any, epsilon: Any, facts: Any, level: Any, spread: Any, force: bool
) -> Analysis:
    """Plans an interval that holds a quantile. **Arguments:** `facts`: of the table. Others: as of its mechanism."""
    bounds = kng.Bounds(**response.bounds_of_quantiles, missing_y=response.substitute)
    known = None if facts.adjacency is kng.Adjacency.REPLACE else facts.count
    given: dict[str, Any] = {"num_records": known, "spread": spread, "force": bool(force), "miss": facts.miss}
    made = kng.QuantileInterval(tau, bounds, epsilon, facts.adjacency, level, **given)
    return _of_column(response, "ends", made, f"{level:g} interval of the {float(tau)!r}-quantile of {response.name}")


def _of_column(response: Response, label: str, mechanism: Any, title: str | None = None) -> Analysis:
    names = names_of_values(mechanism, response.name)
    return Analysis(title or names[0], response, None, (Part(label, mechanism),), names_of_values=names)


# A released variance has a figure from so many standard deviations of its noise away from where it is cut: noise alone
# brings few variances so far.
_CLEAR = 6.0
# A number of records is known if it exceeds its noise so many times: it divides twice.
_COUNTED = 20.0
# The squared noise of a mean may be at most this part of all other noise.
_STRAIGHT = 0.2


@dataclass(frozen=True)
class CentredSquares(AbstractResponse):
    """Columns whose sums make a variance: v and v² - ½h², with v = x - c about the middle c of the bounds c ± h.

    v lies in [-h, h], and v² - ½h² in [-½h², ½h²]: about the middle of what it can be, so that one record more changes
    its sum by half as much as that of v². Under add_remove there is a column of ones besides, first, whose sum is the
    number of records; and so there is where records have weights, whose sum is private under either adjacency.

    **Arguments:** `response`: the column, with its bounds. `has_ones`: whether there is a column of ones.
    """

    response: Response
    has_ones: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return self.response.columns

    @property
    def name(self) -> str:
        return self.response.name

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges

    @property
    def middle(self) -> float:
        """Returns the middle c of the bounds."""
        low, high = required_ends(self.response)
        return low + 0.5 * (high - low)

    @property
    def half_width(self) -> float:
        """Returns half of the width of the bounds, h."""
        low, high = required_ends(self.response)
        return max(high - self.middle, self.middle - low)

    @property
    def bounds(self) -> kng.Bounds:
        """Bounds the columns of the sums."""
        size, square = self.half_width, 0.5 * self.half_width**2
        upper = np.array([size, square])
        lower, substitute = -upper, self.response.substitute
        missing = substitute
        if isinstance(substitute, float):
            missing = self._columns(np.array([substitute]))[0].tolist()
        if self.has_ones:
            lower, upper = np.append(1.0, lower), np.append(1.0, upper)
        return kng.Bounds((lower, upper), intercept=False, columns=len(upper), missing=missing)

    def check(self, table: nw.DataFrame | Columns) -> None:
        self.response.check(table)

    def of_table(self, table: nw.DataFrame | Columns) -> Float[np.ndarray, "records columns"]:
        return self._columns(self.response.of_table(table))

    def _columns(self, values: np.ndarray) -> np.ndarray:
        size, moved = self.half_width, values - self.middle
        columns = [np.clip(moved, -size, size), np.clip(moved**2, 0.0, size**2) - 0.5 * size**2]
        ones = [np.where(np.isnan(values), np.nan, 1.0)] * self.has_ones
        return np.column_stack([*ones, *columns])


def total(response: Response, epsilon: Any, adjacency: str) -> Analysis:
    """Plans the sum of a column within its bounds. Numbers of people are counts: `tables` has whole ones."""
    refuse_categories(response)
    bounds = bounds_of_values(response)
    return _of_column(response, "sum", kng.KNormMechanism(bounds, epsilon, adjacency, statistic="sum"))


def variance(response: Response, epsilon: Any, adjacency: str) -> Analysis:
    """Plans one release of the sums that a variance is made of, with the number of records where that is private.

    The noise is uniform in boxes of the changes that one record can make, of a random size (the K-norm mechanism with
    the box as ball): under replace of [-2h, 2h] x [-h², h²]. The hull of all changes fills 5/6 of that box, so that a
    norm made to fit would have 9 % less noise, but not every rounding in its proof. Independent Laplace noise at ε/2
    each would have 41 % more.
    """
    refuse_categories(response)
    has_ones = adjacency == kng.Adjacency.ADD_REMOVE.value
    columns = CentredSquares(response, has_ones)
    made = kng.KNormMechanism(columns.bounds, epsilon, adjacency, statistic="sum")
    names = names_of_sums(columns, "ones")
    return Analysis(f"variance of {response.name}", columns, None, (Part("variance", made),), names_of_values=names)


def mean_by_sums(response: Response, epsilon: Any, refused: str | None) -> Analysis:
    """Plans one release of the sums of `variance` under add_remove, of which a mean follows with its interval.

    By one joint draw in the box of changes [-1, 1] x [-h, h] x [-½h², ½h²] the noise of the three sums has standard
    deviations √(20/3)/ε = 2.6/ε of these. Independent Laplace noise with .6, .2 and .2 of ε has 2.4/ε, 7.1/ε and
    7.1/ε: a little less of v, and where the mean is not in the middle of the bounds, at m, more in the mean by m times
    that of the number of records.

    **Arguments:** `refused`: why records with weights have none, in words; None where they have no weights.
    """
    if refused is not None:
        raise ValueError(refused)
    if response.levels is not None:
        raise ValueError(
            f"{response.column!r} is a category: shares of its levels have intervals for nothing, by "
            f"histogram({response.column!r}, epsilon=...).shares()"
        )
    made = variance(response, epsilon, kng.Adjacency.ADD_REMOVE.value)
    title, (part,) = f"mean of {response.name}", made.parts
    return dataclasses.replace(made, title=title, parts=(dataclasses.replace(part, label="mean"),))


def names_of_sums(columns: CentredSquares, ones: str) -> tuple[str, ...]:
    """Names the sums that a variance is made of. **Arguments:** `ones`: what a column of ones counts, in words."""
    name = columns.name
    return (f"sum of {ones}",) * columns.has_ones + (f"sum of v of {name}", f"sum of v^2 - h^2/2 of {name}")


def variance_of(sums: np.ndarray, half_width: float, count: int | None, ddof: float, weight: float = 1.0) -> Any:
    """½h² + S/n - (T/n)², within [0, h²], times n/(n - ddof), of sums T of v and S of v² - ½h².

    **Arguments:** all public or released. `sums`: (T, S), or where n is private, count None, (n, T, S), numbers or
    arrays; a noisy n counts as at least 1 + ddof. `weight`: the largest of a record: then n is the sum of the weights,
    at least that.
    """
    if count is None:
        number = np.maximum(sums[0], weight * (1.0 + ddof))
        first, second = sums[1:]
    else:
        number, (first, second) = float(count), sums
    square = half_width**2
    biased = np.clip(0.5 * square + second / number - (first / number) ** 2, 0.0, square)
    return biased * number / (number - ddof)


def least_noise(part: Part, count: int) -> float:
    """Returns the least standard deviation that the noise of a mean or variance of n records may have. Public.

    It is that of T/n, of a mean in the middle of the bounds, or of S/n. **Arguments:** `part`: which of the two.
    `count`: n; with weights every record is taken to have the largest, W, and n is nW.
    """
    mechanism = part.mechanism
    deviations = mechanism.noise.deviations(mechanism.dimension, count)
    weight = mechanism.bounds.weight
    return float(deviations[-2 if part.label == "mean" else -1]) / (count * (1.0 if weight is None else float(weight)))


def noise_of_variance(
    sums: Float[np.ndarray, " sums"],
    deviations: Float[np.ndarray, " sums"],
    half_width: float,
    count: int | None,
    ddof: float,
) -> float | str:
    """Returns the standard deviation of the noise of a released variance, by the sums that were released; or why none
    is known.

    To first order V = ½h² + S/n - (T/n)² moves by δS/n - 2(T/n)·δT/n, and where n has noise by (2(T/n)² - S/n)·δn/n
    besides; (δT/n)² has the deviation √2·Var(T/n) of a normal number. A variance next to where it is cut has another
    noise, and one that noise brought away from there tells of less: so it has a figure from six deviations away on, and
    then at most 4 in 100 releases have one that is off by a factor of 1.3.

    **Arguments:** all public or released. As of `variance_of`; `deviations`: of the noise of each sum.
    """
    number = float(count) if count is not None else float(sums[0])
    noises = deviations if count is None else np.append(0.0, deviations)
    if number <= _COUNTED * noises[0] or number <= ddof:
        return "the number of records has so much noise itself"
    (mean, square), own = sums[-2:] / number, noises / number
    least, most = -0.5 * half_width**2 + mean**2, 0.5 * half_width**2 + mean**2
    first = np.hypot(np.hypot(own[2], 2.0 * mean * own[1]), (2.0 * mean**2 - square) * own[0])
    second = math.sqrt(2.0) * own[1] ** 2
    if second > _STRAIGHT * first:
        return "the noise of the sums is so large that it does not go by them"
    noise = float(np.hypot(first, second))
    if not least + _CLEAR * noise < square < most - _CLEAR * noise:
        return "it is cut to what numbers in the bounds can have, or next to that"
    return noise * number / (number - ddof)


def refuse_categories(response: Response) -> None:
    """Raises ValueError for a category, which has no sum of numbers."""
    if response.levels is not None:
        column = response.column
        raise ValueError(f"{column!r} is a category: count its levels, by histogram({column!r}, epsilon=...)")


def bounds_of_values(response: Response) -> kng.Bounds:
    """Returns the bounds of a column whose mean or sum is asked for."""
    low, high = required_ends(response)
    return kng.Bounds(x=(np.array([low]), np.array([high])), intercept=False, missing=response.substitute)
