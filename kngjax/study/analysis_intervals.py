"""Regressions with intervals: how H is known, and a plan for each of their releases, by public facts alone."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import kngjax as kng
from kngjax.inference.interval_choices import public_bandwidth
from kngjax.study.analyses import Analysis, Part
from kngjax.study.expectations import setting_of
from kngjax.study.public_facts import PublicFacts

# Times n·ε²: no variance of so few records is worth a part of ε, as its noise is as large as the most that it can be.
_FEW = 8.0


def with_intervals(analysis: Analysis, asked: Any, facts: PublicFacts) -> Analysis:
    """Adds to an analysis the releases that intervals need, for the same ε; returns it as it is without intervals.

    **Arguments:** `asked`: False; True for `kngjax.Sandwich()`; or a covariance, as `kngjax.WithIntervals` takes it.
    Raises TypeError for anything else, and ValueError, of public facts alone, for what is not served.
    """
    if asked is False:
        return analysis
    require_way(asked)
    if analysis.design is None and facts.weights is not None and not facts.weights.has_public_total(analysis):
        raise ValueError(facts.weights.no_intervals)
    if analysis.design is None and asked is True and _is_bounded_best(analysis, facts.count):
        return analysis
    covariance = kng.Sandwich() if asked is True else asked
    if (design := analysis.design) is not None:
        covariance = dataclasses.replace(covariance, indicators=design.indicators, slopes=design.slopes)
    return _with(analysis, covariance, facts.count)


def require_way(asked: Any) -> None:
    """Raises TypeError for what says nothing of intervals: neither True nor False, nor a covariance."""
    if not isinstance(asked, bool | kng.Sandwich):
        raise TypeError(
            f"intervals must be True, False, or a covariance like kngjax.Sandwich(share=0.45), not {asked!r}"
        )


def _is_bounded_best(analysis: Analysis, count: int | None) -> bool:
    """Whether the bound of the variance of a mean, which is free, serves as well as a noisy variance.

    So it does where nε² ≤ 8, and always of a category, whose two levels are at the bounds.
    """
    is_few = count is not None and count * float(analysis.parts[0].mechanism.epsilon) ** 2 <= _FEW
    return is_few or getattr(analysis.response, "levels", None) is not None


def _with(analysis: Analysis, covariance: Any, count: int | None) -> Analysis:
    """Plans every part of an analysis with intervals. **Arguments:** `count`: n, or a guess of it."""
    parts = tuple(_planned(analysis, place, covariance, count) for place in range(len(analysis.parts)))
    remade = analysis.remake and functools.partial(_remade, analysis.remake, covariance)
    return dataclasses.replace(analysis, parts=parts, remake=remade)


def _remade(remake: Callable[..., Analysis], covariance: Any, epsilon: float, count: int) -> Analysis:
    return _with(remake(epsilon=epsilon, count=count), covariance, count)


def _planned(analysis: Analysis, place: int, covariance: Any, count: int | None) -> Part:
    """Gives a part its plan, whose estimate has the settings of all of ε, as H is the larger for them.

    Raises ValueError where no mechanism serves the part's share of ε.
    """
    part, design = analysis.parts[place], analysis.design
    chosen = _with_bandwidth(analysis, part, covariance, count)
    setting = setting_of(analysis, part, count)
    own = None if design is None else design.own_units_matrix
    # Whether they are offered is decided by `kngjax.study.expectations`.
    plan = kng.WithIntervals(part.mechanism, chosen, count, force=True, setting=setting, combinations=own)
    return dataclasses.replace(part, mechanism=plan.making().mechanism, plan=plan)


def _with_bandwidth(analysis: Analysis, part: Part, covariance: Any, count: int | None) -> Any:
    """The covariance with a bandwidth for the scatter that was guessed, where it needs one and has none.

    Raises ValueError where nothing says one.
    """
    needs = part.mechanism.loss.score_is_piecewise_constant and covariance.bandwidth is None
    if not needs:
        return covariance
    lacks = None
    if count is None:
        lacks = "how many records there are is private under add_remove: give a public guess of it, num_records=10_000"
    if analysis.scale is None and part.mechanism.bounds.y_lower is None:
        lacks = "how far responses scatter is not known without bounds of them: give a public guess of it, scale=2.0"
    if lacks is not None:
        raise ValueError(
            f"{lacks}, for the bandwidth of the quantile loss's curvature; or that, in units of the response, "
            "intervals=kngjax.Sandwich(bandwidth=0.5)"
        )
    if analysis.scale is None or count is None:
        return covariance
    return dataclasses.replace(covariance, bandwidth=public_bandwidth(float(analysis.scale), count))
