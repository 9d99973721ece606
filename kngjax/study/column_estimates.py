"""Chooses the mechanism for a mean or quantiles of a column, by public facts alone."""

from typing import Any

import kngjax as kng
from kngjax.study.analyses import Analysis, Part, names_of_values
from kngjax.study.regressions import levels_of
from kngjax.study.responses import Response
from kngjax.study.sums_and_variances import bounds_of_values


def mean(response: Response, epsilon: Any, adjacency: str) -> Analysis:
    """Plans the mean of a column within its bounds: K-norm noise under replace, KNG under add_remove."""
    low, high = _ends(response)
    bounds = bounds_of_values(response, (low, high))
    if adjacency == kng.Adjacency.REPLACE.value:
        made = kng.KNormMechanism(bounds, epsilon, adjacency)
    else:
        made = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box([low], [high]), epsilon, adjacency)
    names = names_of_values(made, response.name)
    return Analysis(names[0], response, None, (Part("mean", made),), names_of_values=names)


def quantile(response: Response, tau: Any, epsilon: Any, adjacency: str, budget: str = "split") -> Analysis:
    """Plans quantiles of a column at the levels τ. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
    levels = levels_of(tau)
    _ends(response)
    bounds = kng.Bounds(**response.bounds_of_quantiles, missing_y=response.substitute)
    several = len(levels) > 1
    made = kng.PrivateQuantile(
        levels if several else min(levels), bounds, epsilon, adjacency, budget if several else "joint"
    )
    names = names_of_values(made, response.name)
    title = f"quantiles of {response.name}" if several else names[0]
    return Analysis(title, response, None, (Part("quantile", made),), names_of_values=names)


def quantile_interval(
    response: Response, tau: Any, epsilon: Any, facts: Any, level: Any, spread: Any, force: bool
) -> Analysis:
    """Plans an interval that holds a quantile. **Arguments:** `facts`: of the table. Others: as of its mechanism."""
    _ends(response)
    bounds = kng.Bounds(**response.bounds_of_quantiles, missing_y=response.substitute)
    known = None if facts.adjacency is kng.Adjacency.REPLACE else facts.count
    given: dict[str, Any] = {"num_records": known, "spread": spread, "force": bool(force), "miss": facts.miss}
    made = kng.QuantileInterval(tau, bounds, epsilon, facts.adjacency, level, **given)
    ends = names_of_values(made, response.name)
    title = f"{level:g} interval of the {ends[0].removesuffix(', lower end')}"
    return Analysis(title, response, None, (Part("ends", made),), names_of_values=ends)


def _ends(response: Response) -> tuple[float, float]:
    if response.levels is not None:
        return 0.0, 1.0
    assert response.ends is not None
    return response.ends
