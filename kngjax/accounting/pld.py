"""Events and privacy loss distributions of Google's dp-accounting, from plain numbers. Imports no JAX.

dp-accounting is an extra, imported where it is used. Its distributions round outward on a grid of losses.
"""

import functools
import importlib
import math
from collections.abc import Callable, Iterable
from typing import Any

from kngjax.accounting import conversions
from kngjax.accounting.composition import total
from kngjax.accounting.exact_costs import outward, root_outward
from kngjax.accounting.kinds import Kind

Row = tuple[float, float]
# Points of a profile at which it is computed: chords in between are outward by (ε/rows)².
_ROWS = 400
# A zCDP profile has no last ε: the points end at this δ, which counts as a failure beyond it.
_TAIL = 1e-16


def _library(name: str) -> Any:
    try:
        return importlib.import_module(f"dp_accounting{name}")
    except ImportError:
        raise ImportError(
            "privacy loss distributions and events need Google's dp-accounting: pip install 'kngjax[accounting]'"
        ) from None


def distribution_of(guarantee: Any, interval: float) -> Any:
    """The distribution of a guarantee: see `Guarantee.to_pld`. Raises ValueError where no finite ε is stated."""
    match guarantee.kind:
        case Kind.BOUNDED_RANGE:
            return bounded_range(guarantee.epsilon, interval)
        case Kind.ZCDP:
            return zcdp(guarantee.rho, interval)
        case Kind.GAUSSIAN:
            return gaussian(guarantee.mu, interval)
        case Kind.COMPOSED:
            return compose(_distributions(guarantee, interval))
    if guarantee.exact_epsilon is None:
        raise ValueError("a guarantee that states no finite epsilon has no distribution: state it at some delta")
    return row(guarantee.epsilon, guarantee.delta, interval)


def _distributions(guarantee: Any, interval: float) -> Iterable[tuple[Any, int]]:
    """The distributions of the parts of a composition; zCDP parts and Gaussian parts are added up first."""
    for kind, sum_of in ((Kind.ZCDP, zcdp), (Kind.GAUSSIAN, gaussian)):
        if rho := total((part.exact_rho, count) for part, count in guarantee.parts if part.kind is kind):
            yield sum_of(root_outward(2 * rho) if kind is Kind.GAUSSIAN else outward(rho), interval), 1
    for part, count in guarantee.parts:
        if part.kind not in (Kind.ZCDP, Kind.GAUSSIAN):
            yield distribution_of(part, interval), count


def event_of(guarantee: Any) -> Any:
    """The event of a guarantee: see `Guarantee.to_dp_event`. Raises ValueError where there is no ρ."""
    if not guarantee.parts and guarantee.rho is None:
        raise ValueError(f"dp-accounting has no event for a guarantee of kind {guarantee.kind}: take to_pld()")
    library = _library(".dp_event")
    if guarantee.parts:
        events = [library.SelfComposedDpEvent(event_of(part), count) for part, count in guarantee.parts]
        return library.ComposedDpEvent(events)
    is_gaussian = guarantee.kind is Kind.GAUSSIAN
    return library.GaussianDpEvent(1.0 / guarantee.mu) if is_gaussian else library.ZCDpEvent(guarantee.rho)


def gaussian(mu: float, interval: float) -> Any:
    """The distribution of N(0, 1) against N(μ, 1)."""
    return _library(".pld.privacy_loss_distribution").from_gaussian_mechanism(
        1.0 / mu, value_discretization_interval=interval
    )


def row(epsilon: float, delta: float, interval: float) -> Any:
    """The distribution that dominates all that is (ε, δ)-DP."""
    parameters = _library(".pld.common").DifferentialPrivacyParameters(epsilon, delta)
    return _library(".pld.privacy_loss_distribution").from_privacy_parameters(parameters, interval)


def bounded_range(bound: float, interval: float) -> Any:
    """A distribution that dominates all that is η-bounded-range.

    For no pair of neighbours is the profile of `conversions.bounded_range_delta` attained at every ε; but as it is
    convex in e^ε it is some pair's, and pairs that dominate compose (Zhu, Dong and Wang 2022, Theorems 10 and 14).
    """
    return _of_profile(functools.partial(conversions.bounded_range_delta, bound), bound, interval)


def zcdp(rho: float, interval: float) -> Any:
    """A distribution that dominates all that is ρ-zCDP, with the profile of the optimal Rényi conversion."""
    last = conversions.zcdp_epsilon(rho, _TAIL)
    return _of_profile(functools.partial(conversions.zcdp_delta, rho), last, interval)


def _of_profile(delta_at: Callable[[float], float], last: float, interval: float) -> Any:
    """A distribution that dominates all that has this profile: chords between points of the grid, and their mirrors."""
    places = sorted({math.ceil(last * number / _ROWS / interval) for number in range(_ROWS + 1)})
    corners = _corners((number * interval, delta_at(number * interval)) for number in places)
    numbers = [round(epsilon / interval) for epsilon, _ in corners]
    losses = [*(-number for number in reversed(numbers) if number > 0), *numbers]
    mirrored = [
        -math.expm1(-epsilon) + math.exp(-epsilon) * delta for epsilon, delta in reversed(corners) if epsilon > 0.0
    ]
    library = _library(".pld.pld_pmf")
    mass = library.create_pmf_pessimistic_connect_dots(interval, losses, [*mirrored, *(low for _, low in corners)])
    return _library(".pld.privacy_loss_distribution").PrivacyLossDistribution(mass)


def _corners(rows: Iterable[Row]) -> list[Row]:
    """The rows on the lower convex hull, in e^ε, of falling δ and of (-1, 1), where mirror chords meet."""
    hull: list[Row] = []
    for row in rows:
        if row[1] >= 1.0 or (hull and row[1] >= hull[-1][1]):
            continue
        while hull and _log_fall(hull[-2] if len(hull) > 1 else None, hull[-1]) <= _log_fall(hull[-1], row):
            hull.pop()
        hull.append(row)
    return hull


def _log_fall(first: Row | None, second: Row) -> float:
    """log of the fall of δ by e^ε between two rows; from (-1, 1) for None."""
    epsilon, delta = second
    if first is None:
        return math.log1p(-delta) - epsilon - math.log1p(math.exp(-epsilon))
    width = -math.expm1(first[0] - epsilon)
    return math.log(first[1] - delta) - epsilon - math.log(width)


def compose(parts: Iterable[tuple[Any, int]]) -> Any:
    """The distribution of a composition of parts, each with how many times it happens."""
    total: Any = None
    for part, count in parts:
        many = part if count == 1 else part.self_compose(count)
        total = many if total is None else total.compose(many)
    return total
