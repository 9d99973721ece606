"""How wide intervals will be, by each way to make them, from public facts alone."""

from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.inference import groups_of_records as groups
from kngjax.inference.covariances import Sandwich
from kngjax.inference.errors_of_release import interval_of_sums
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.intervals import Interval
from kngjax.inference.settings import Setting

LEVEL = 0.95
# Released sums have noise, so that a width has some: the median of so many.
_TABLES = 3

Combinations = Float[np.ndarray, "combinations dimension"] | None


def width_of_sums(
    making: Any, setting: Setting, num_records: int, combinations: Combinations = None
) -> Float[np.ndarray, " combinations"]:
    """Of a 95% interval from noisy sums, on records as is assumed; infinite where the noise would drown them.

    **Arguments:** `making`: a `SumsMaking`. `setting`: of its mechanism. `combinations`: A, for those of Aθ.
    """
    dimension, covariance, mechanism = making.dimension, making.covariance, making.mechanism
    theta, _ = mechanism.typical_values(dimension)
    curvature_unit, square_unit = making.curvature.units(theta)
    assert setting.rows is not None
    assert setting.law is not None
    # Every record with the mean curvature and squared score.
    means = setting.law.curvature / curvature_unit, setting.law.score_square / square_unit
    each = (np.full(len(setting.rows), one) for one in means)
    parts = num_records * covariance.mean_sums(setting.rows, *each, mechanism.bounds, mechanism.adjacency)
    # Of no number that is public under add_remove the noise knows nothing.
    count = num_records if mechanism.adjacency is Adjacency.REPLACE else None
    given = mechanism, making.noise(), making.summing, covariance, making.curvature
    noises = covariance.noise_draws(making.summing, np.random.default_rng(1), _TABLES)
    found = [interval_of_sums(theta, parts + noise, *given, count, LEVEL, combinations) for noise in noises]
    none = np.full(dimension if combinations is None else len(combinations), np.inf)
    widths = [one.upper - one.lower if isinstance(one, Interval) else none for one in found]
    return np.median(widths, axis=0)


def widths_by_groups(
    setting: Setting, num_records: int, combinations: Combinations = None
) -> dict[int, Float[np.ndarray, " combinations"]]:
    """2·t_{m-1}·SE·√(1 + m·ratio²) for each number m of groups that has enough records; ratio is noise over SE."""
    expected = setting.expected(num_records, and_far=False)
    need = groups.records_needed(setting.mechanism)
    numbers = range(groups.FEWEST, min(groups.MOST, num_records // need) + 1)
    if expected is None:
        return {}
    noise, errors = (_variances(one, combinations) for one in (expected.noise.covariance, expected.sampling))
    return {m: 2.0 * scipy.stats.t.ppf(0.5 + LEVEL / 2.0, m - 1) * np.sqrt(errors + m * noise) for m in numbers}


def width_without_privacy(
    setting: Setting, num_records: int, combinations: Combinations = None
) -> Float[np.ndarray, " combinations"]:
    """2·1.96·SE, of the estimate that has no noise."""
    errors = np.sqrt(_variances(setting.sampling(num_records), combinations))
    return 2.0 * scipy.stats.norm.ppf(0.5 + LEVEL / 2.0) * errors


def _variances(covariance: np.ndarray, combinations: Combinations) -> np.ndarray:
    return np.diag(covariance if combinations is None else combinations @ covariance @ combinations.T)


def best_number_of_groups(mechanism: Any, num_records: int) -> int:
    """The one whose widest interval is least. Raises ValueError where there are too few records for any."""
    setting = Setting.of(mechanism, None, None)
    best = None if setting is None else _best(widths_by_groups(setting, num_records))
    if best is None:
        groups.require_enough(mechanism, groups.FEWEST, num_records)
        raise ValueError(
            f"how wide intervals of {type(mechanism).__name__} are is not known beforehand: give Groups(5)"
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

    **Arguments:** `mechanism`: at the whole ε, one that groups serve. `by_sums`: a `SumsMaking` of it. `design`,
    `residual`: as of `kngjax.preview`. `combinations`: A, for the widths of Aθ.
    """
    setting = Setting.of(mechanism, design, residual)
    if setting is None:
        return by_sums.covariance
    of_sums = width_of_sums(by_sums, setting.of_mechanism(by_sums.mechanism), num_records, combinations)
    of_groups = widths_by_groups(setting, num_records, combinations)
    best = _best(of_groups)
    if best is None and not np.all(np.isfinite(of_sums)):
        raise ValueError(
            f"of {num_records} records no intervals are expected at this epsilon, by public facts: name a covariance, "
            "like kngjax.Sandwich(), to release the estimate nevertheless"
        )
    if best is None or np.max(of_sums / of_groups[best]) <= 1.0:
        return by_sums.covariance
    return Groups(best)
