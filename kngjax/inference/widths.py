"""How wide intervals will be, by each way to make them, from public facts alone."""

from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Float

from kngjax.inference import groups_of_records as groups
from kngjax.inference.covariances import Sandwich
from kngjax.inference.errors_of_release import box_noise, interval_of_sums
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.intervals import Interval
from kngjax.inference.settings import Setting

LEVEL = 0.95


def width_of_sandwich(making: Any, setting: Setting, num_records: int) -> Float[np.ndarray, " dimension"]:
    """Of a 95% interval from noisy sums, on records as is assumed; infinite where the noise would drown them.

    **Arguments:** `making`: a `SumsMaking` of `Sandwich`. `setting`: of its mechanism.
    """
    dimension, covariance = making.dimension, making.covariance
    theta, _ = making.mechanism.typical_values(dimension)
    curvature_unit, square_unit = making.curvature.units(theta)
    hessian, score = (
        num_records * setting.hessian / curvature_unit,
        num_records * setting.score_covariance / square_unit,
    )
    parts = covariance.expected_sums(hessian, score)
    sums = parts + box_noise(making.summing, len(parts), np.random.default_rng(1), 1)[0]
    given = making.mechanism, making.noise(), making.summing, covariance, making.curvature
    found = interval_of_sums(theta, sums, *given, num_records, LEVEL)
    return found.upper - found.lower if isinstance(found, Interval) else np.full(dimension, np.inf)


def widths_by_groups(setting: Setting, num_records: int) -> dict[int, Float[np.ndarray, " dimension"]]:
    """2·t_{m-1}·SE·√(1 + m·ratio²) for each number m of groups that has enough records; ratio is noise over SE."""
    expected = setting.expected(num_records, and_far=False)
    need = groups.records_needed(setting.mechanism)
    numbers = range(groups.FEWEST, min(groups.MOST, num_records // need) + 1)
    if expected is None:
        return {}
    noise, errors = np.diag(expected.noise.covariance), np.diag(expected.sampling)
    return {m: 2.0 * scipy.stats.t.ppf(0.5 + LEVEL / 2.0, m - 1) * np.sqrt(errors + m * noise) for m in numbers}


def best_number_of_groups(mechanism: Any, num_records: int) -> int:
    """The one whose widest interval is least. Raises ValueError where there are too few records for any."""
    widths = widths_by_groups(Setting.of(mechanism, None, None) or _unknown(mechanism), num_records)
    if not widths:
        groups.require_enough(mechanism, groups.FEWEST, num_records)
        _unknown(mechanism)
    return min(widths, key=lambda number: float(np.max(widths[number])))


def narrowest(mechanism: Any, by_sums: Any, num_records: int, allows_groups: bool) -> Sandwich | Groups:
    """The way that assumes nothing of the errors whose previewed intervals are narrower, in the worst coefficient.

    **Arguments:** `by_sums`: a `SumsMaking` of the one.
    """
    setting = Setting.of(mechanism, None, None)
    if setting is None or not allows_groups:
        return by_sums.covariance
    of_sums = width_of_sandwich(by_sums, setting, num_records)
    of_groups = widths_by_groups(setting, num_records)
    best = min(of_groups, key=lambda number: float(np.max(of_groups[number])), default=None)
    if best is None and not np.all(np.isfinite(of_sums)):
        raise ValueError(
            f"of {num_records} records no intervals are expected at this epsilon, by public facts: name a covariance, "
            "like kngjax.Sandwich(), to release the estimate nevertheless"
        )
    if best is None or np.max(of_sums / of_groups[best]) <= 1.0:
        return by_sums.covariance
    return Groups(best)


def _unknown(mechanism: Any) -> Any:
    raise ValueError(f"how wide intervals of {type(mechanism).__name__} are is not known beforehand: give Groups(5)")
