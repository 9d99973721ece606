"""Previews how wide intervals will be, by each way to make them, from public facts alone."""

from typing import Any

import numpy as np
import scipy.special
from jaxtyping import Float

from kngjax.inference import groups_of_records as groups
from kngjax.inference.covariances import Sandwich
from kngjax.inference.far_draws import LITTLE, levels_off
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.intervals import Interval
from kngjax.inference.intervals_from_sums import interval_of_sums
from kngjax.inference.score_laws import scatter_is_known
from kngjax.inference.scores_alone import square_units
from kngjax.inference.settings import Scenario

LEVEL = 0.95
# The most that `_bend` may be: the bias of groups' estimates, which no spread shows, over their mean's deviation.
_BENT = 0.15
# Released sums have noise, so that a width has some: the median of so many.
_TABLES = 3

Combinations = Float[np.ndarray, "combinations dimension"] | None


def width_of_sums(
    making: Any, setting: Scenario, num_records: int, combinations: Combinations = None
) -> Float[np.ndarray, " combinations"]:
    """Previews the width of a 95% interval from noisy sums, on records as is assumed.

    It is infinite where the noise would drown the sums, and where draws of the estimate may come from far off.

    **Arguments:** `making`: a `SumsPlan`. `setting`: of its mechanism. `combinations`: A, for those of Aθ.
    """
    dimension, covariance, mechanism = making.dimension, making.covariance, making.mechanism
    none = np.full(dimension if combinations is None else len(combinations), np.inf)
    if _is_far(setting, num_records):
        return none
    theta, _ = mechanism.noise.typical_values(dimension)
    if setting.rows is None or setting.law is None:
        # For a mean: the variance of each column.
        slope = mechanism.loss.gradient_slope
        parts = num_records * np.diag(setting.score_covariance) / slope**2 / square_units(theta, mechanism.bounds)
    else:
        # Every record with the mean curvature and squared score.
        curvature_unit, square_unit = making.curvature.units(theta)
        means = setting.law.curvature / curvature_unit, setting.law.score_square / square_unit
        each = (np.full(len(setting.rows), one) for one in means)
        parts = num_records * covariance.mean_sums(setting.rows, *each, mechanism.bounds, mechanism.adjacency)
    # Under add_remove n is not public, and intervals do without it.
    count = mechanism.adjacency.public_count(num_records)
    given = mechanism, making.noise(), making.summing, covariance, making.curvature
    noises = covariance.noise_draws(making.summing, np.random.default_rng(1), _TABLES)
    found = [interval_of_sums(theta, parts + noise, *given, count, LEVEL, combinations) for noise in noises]
    widths = [one.upper - one.lower if isinstance(one, Interval) else none for one in found]
    return np.median(widths, axis=0)


def widths_by_groups(
    setting: Scenario, num_records: int, combinations: Combinations = None
) -> dict[int, Float[np.ndarray, " combinations"]]:
    """2·t_{m-1}·SE·√(1 + m·ratio²) for each number m of groups that serves; ratio is noise over SE."""
    expected = setting.expected(num_records, and_far=False)
    need = groups.records_needed(setting.mechanism)
    numbers = range(groups.FEWEST, min(groups.MOST, num_records // need) + 1)
    if expected is None:
        return {}
    noise, errors = (_variances(one, combinations) for one in (expected.noise.covariance, expected.sampling))
    return {
        m: 2.0 * scipy.special.stdtrit(m - 1, 0.5 + LEVEL / 2.0) * np.sqrt(errors + m * noise)
        for m in numbers
        if _bend(setting, m, expected) <= _BENT
    }


def _bend(setting: Scenario, number: int, expected: Any) -> float:
    """Estimates the common bias of m groups' estimates, over the deviation of their mean.

    The gradient of a group is straight only as far as predictors move by less than L, `ScoreLaw.straight`. With T the
    third derivatives and u = H^{-1}z the estimate is θ̂ + u - ½H^{-1}T[u, u], and KNG has density ∝ exp(-c‖z‖)/det H of
    z, 1/det H ∝ 1 - tr H^{-1}T[u]: its bias is -½H^{-1}E T[u, u] - E u·tr H^{-1}T[u], of the order of 3v²/(2L) for
    predictors whose noise has variance v², and sampling adds a third of as much for its own s². The deviation of the
    mean of m is √((v² + s²)/m), so that the bias counts the more, the more groups there are: it is a multiple, as great
    as the loss is lopsided, of

        (v² + s²/3)·√m / (L·√(v² + s²)),   v² = m²·E x'Vx,   s² = m·E x'Sx

    with V and S the covariances of noise and sampling of all n records.

    **Arguments:** all public. `expected`: of all records together.
    """
    if setting.law is None or setting.rows is None:
        return 0.0
    gram = setting.rows.T @ setting.rows / len(setting.rows)
    noise = number**2 * float(np.sum(expected.noise.covariance * gram))
    sampling = number * float(np.sum(expected.sampling * gram))
    return (noise + sampling / 3.0) * np.sqrt(number / (noise + sampling)) / setting.law.straight


def require_near(mechanism: Any, num_records: int | None) -> None:
    """Raises ValueError where an estimate may come from far off, where sums at it say nothing of its error.

    Noise of KNG has density ∝ exp(-c‖z‖)/det H of z, and intervals from sums take H as it is at the released value.
    Where that is far off, scores have reached their ends and H is nearly 0: such values are not covered, and the sums
    released at them look the better determined the less is left of H beside their noise. So they must be rare.
    """
    if not (mechanism.loss.has_response and levels_off(mechanism)):
        return
    setting = _usual_setting(mechanism, num_records)
    if setting is None or num_records is None or not _is_far(setting, num_records):
        return
    raise ValueError(
        f"of {num_records} records an estimate at this epsilon may come from far off, where no sums tell its error: a "
        "larger epsilon, more records or a smaller domain would do, or kngjax.ObjectivePerturbation; without intervals "
        "release the mechanism alone"
    )


def _is_far(setting: Scenario, num_records: int) -> bool:
    return (setting.far_share(num_records) or 0.0) > LITTLE


def _usual_setting(mechanism: Any, num_records: int | None) -> Scenario | None:
    """Makes the usual assumptions; None where n, or how far responses scatter, is not public."""
    is_known = num_records is not None and scatter_is_known(mechanism)
    return Scenario.of(mechanism, None, None) if is_known else None


def require_straight(mechanism: Any, number: int, num_records: int | None) -> None:
    """Raises ValueError where so many groups would have estimates whose bias is not small beside their spread."""
    setting = _usual_setting(mechanism, num_records)
    if setting is None or num_records is None:
        return
    expected = setting.expected(num_records, and_far=False)
    if expected is None or _bend(setting, number, expected) <= _BENT:
        return
    most = next((m for m in range(number - 1, groups.FEWEST - 1, -1) if _bend(setting, m, expected) <= _BENT), None)
    do = "kngjax.Sandwich, " if most is None else f"{most} groups, "
    raise ValueError(
        f"the estimates of {number} groups of {num_records} records would all be off the same way by what their spread "
        f"does not show, as so few each are far from straight at this epsilon: {do}a larger epsilon or more records "
        "would do"
    )


def width_without_privacy(
    setting: Scenario, num_records: int, combinations: Combinations = None
) -> Float[np.ndarray, " combinations"]:
    """2·1.96·SE, of the estimate that has no noise."""
    errors = np.sqrt(_variances(setting.sampling(num_records), combinations))
    return 2.0 * scipy.special.ndtri(0.5 + LEVEL / 2.0) * errors


def _variances(covariance: np.ndarray, combinations: Combinations) -> np.ndarray:
    return np.diag(covariance if combinations is None else combinations @ covariance @ combinations.T)


def best_number_of_groups(mechanism: Any, num_records: int) -> int:
    """The one whose widest interval is least. Raises ValueError where there are too few records for any."""
    setting = _usual_setting(mechanism, num_records)
    best = None if setting is None else _best(widths_by_groups(setting, num_records))
    if best is None:
        groups.require_enough(mechanism, groups.FEWEST, num_records)
        require_straight(mechanism, groups.FEWEST, num_records)
        raise ValueError(
            f"how wide intervals of {type(mechanism).__name__} are is not known beforehand: give kngjax.Groups(5)"
        )
    return best


def _best(widths: dict[int, Float[np.ndarray, " combinations"]]) -> int | None:
    """The number of groups whose widest interval is least."""
    return min(widths, key=lambda number: float(np.max(widths[number])), default=None)


def narrowest(
    mechanism: Any,
    by_sums: Any,
    num_records: int,
    design: Any = None,
    residual: Any = None,
    combinations: Combinations = None,
) -> Sandwich | Groups:
    """The way that assumes nothing of the errors whose previewed intervals are narrower, in the worst coefficient.

    Sums where neither has any, which `kngjax.inference.foreseen_ends` refuses before anything is paid.

    **Arguments:** `mechanism`: at the whole ε, one that groups serve. `by_sums`: a `SumsPlan` of it. `design`,
    `residual`: as of `kngjax.preview`. `combinations`: A, for the widths of Aθ.
    """
    setting = Scenario.of(mechanism, design, residual)
    if setting is None:
        return by_sums.covariance
    of_sums = width_of_sums(by_sums, setting.of_mechanism(by_sums.mechanism), num_records, combinations)
    of_groups = widths_by_groups(setting, num_records, combinations)
    best = _best(of_groups)
    if best is None or np.max(of_sums / of_groups[best]) <= 1.0:
        return by_sums.covariance
    return Groups(best)
