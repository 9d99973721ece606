"""Regressions with intervals: which covariance, and a plan for each of their releases, by public facts alone."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import numpy as np

import kngjax as kng
from kngjax.inference.covariances import AbstractSums
from kngjax.inference.groups_of_records import serves_groups
from kngjax.inference.interval_plans import GroupsPlan, interval_plan_of, public_bandwidth
from kngjax.inference.widths import narrowest
from kngjax.study.analyses import Analysis, Part
from kngjax.study.public_facts import PublicFacts


def with_intervals(analysis: Analysis, asked: Any, facts: PublicFacts) -> Analysis:
    """Adds to an analysis the releases that intervals need, for the same ε; returns it as it is without intervals.

    Settings that depend on ε and n, as thresholds and bandwidths, are made for the part of them that an estimate keeps:
    beside sums of scores it has a part of ε, and in groups a part of the records.

    **Arguments:** `asked`: False; True for the covariance whose previewed width is least; or a covariance, as
    `kngjax.WithIntervals` takes it. Raises TypeError for anything else, and ValueError, of public facts alone, for what
    is not served.
    """
    if asked is False:
        return analysis
    if asked is not True and not isinstance(asked, AbstractSums | kng.Groups):
        raise TypeError(
            "intervals must be True, False, or a covariance like kngjax.Sandwich(share=0.3) or kngjax.Groups(5), not "
            f"{asked!r}"
        )
    if facts.weights is not None:
        raise ValueError("records with weights have no intervals here: make a Study without weights for them")
    if isinstance(asked, kng.inference.PublicDesign):
        asked = asked.by_terms(analysis.design)
    return _with(analysis, None if asked is True else asked, facts.count)


def _with(analysis: Analysis, covariance: Any, count: int | None) -> Analysis:
    """Plans every part of an analysis with intervals.

    **Arguments:** `covariance`: None for the one whose previewed width is least. `count`: n, or a guess of it.
    """
    chosen = [
        _narrowest(analysis, place, count) if covariance is None else covariance for place in range(len(analysis.parts))
    ]
    parts = tuple(_planned(analysis, place, one, count) for place, one in enumerate(chosen))
    remake = None if analysis.remake is None else functools.partial(_remade, analysis, chosen)
    others = functools.partial(_with, analysis, count=count)
    return dataclasses.replace(analysis, parts=parts, remake=remake, with_covariance=others)


def _remade(analysis: Analysis, chosen: list[Any], epsilon: float, count: int) -> Analysis:
    """Remakes an analysis for another ε and n, as `Analysis.remake`, with the same covariances."""
    assert analysis.remake is not None
    made = analysis.remake(epsilon=epsilon, count=count)
    parts = tuple(_planned(made, place, one, count) for place, one in enumerate(chosen))
    return dataclasses.replace(made, parts=parts)


def _planned(analysis: Analysis, place: int, covariance: Any, count: int | None) -> Part:
    """Gives a part its plan; raises ValueError where no mechanism serves the part's share of ε or of the records."""
    part, made = analysis.parts[place], analysis
    # Whether they will have ends is decided by `kngjax.study.expectations`, which knows terms and scatter.
    chosen = _with_bandwidth(analysis, part, covariance, count)
    making = interval_plan_of(part.mechanism, chosen, count, None)
    number = making.number if isinstance(making, GroupsPlan) else 1
    # Whatever follows from n is settled here.
    settled = kng.Groups(number) if isinstance(making, GroupsPlan) else chosen
    if analysis.remake is not None and count is not None:
        whole = len(analysis.parts) * float(making.mechanism.epsilon)
        made = analysis.at(whole, max(count // number, 1))
        if made is None:
            raise ValueError(f"{analysis.title} has no mechanism at epsilon = {whole:g} of {count // number} records")
    of_share = made.parts[place].mechanism
    mechanism = eqx.tree_at(lambda one: one.epsilon, of_share, np.asarray(float(part.mechanism.epsilon)))
    plan = kng.WithIntervals(mechanism, settled, count, force=True)
    return dataclasses.replace(part, mechanism=plan.making().mechanism, plan=plan)


def _with_bandwidth(analysis: Analysis, part: Part, covariance: Any, count: int | None) -> Any:
    """The covariance with a bandwidth for the scatter that was guessed, where it needs one and has none.

    Raises ValueError where nothing says one.
    """
    needs = part.mechanism.loss.score_is_piecewise_constant and getattr(covariance, "bandwidth", 0.0) is None
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


def _narrowest(analysis: Analysis, place: int, count: int | None) -> Any:
    """Chooses the covariance that assumes nothing of the errors and has the least previewed width, in own units.

    If no covariance has a width, that is `Sandwich`, which `kngjax.study.expectations` refuses with advice.
    """
    if count is None:
        return kng.Sandwich()
    part, by_sums, design = analysis.parts[place], _planned(analysis, place, kng.Sandwich(), count), analysis.design
    assert design is not None
    if not serves_groups(part.mechanism):
        return kng.Sandwich()
    plan = by_sums.whole
    given = plan.mechanism, plan.making(), count
    own = design.own_units_matrix
    try:
        found = narrowest(*given, design, analysis.scale, own)
        _ = _planned(analysis, place, found, count)
    except ValueError:
        # So few records in each group that another mechanism serves them.
        return kng.Sandwich()
    return found
