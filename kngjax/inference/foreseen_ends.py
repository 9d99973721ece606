"""Whether intervals will have ends, which public facts decide before anything is paid for them."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kngjax.inference.covariances import IndependentErrors, Sandwich
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.interval_plans import AbstractIntervalPlan, SumsPlan
from kngjax.inference.interval_previews import IntervalPreview
from kngjax.inference.score_laws import scatter_is_known

# By which a release may have intervals where it has none by another way, and what each asks for.
OTHER_WAYS = {
    "kngjax.Sandwich(share=0.3)": (Sandwich(share=0.3), ""),
    "kngjax.Sandwich(share=0.3, noise='zcdp')": (
        Sandwich(share=0.3, noise="zcdp"),
        ", of zCDP and no pure ε: at δ = 10⁻⁶ their ε is larger than this epsilon",
    ),
    "kngjax.Groups()": (Groups(), ""),
    "kngjax.inference.IndependentErrors(share=0.3)": (
        IndependentErrors(share=0.3),
        ", if errors do not depend on features",
    ),
}
_NOT_FORESEEN = "not foreseen: whether intervals will have ends, as"

Previewed = Callable[[Any], IntervalPreview | None]


class WithoutEnds(NamedTuple):
    """Says why no intervals are expected. **Arguments:** `briefly`: that alone. `fully`: with what would do."""

    briefly: str
    fully: str


def why_without_ends(
    found: IntervalPreview | None, what: str, previewed: Previewed, argument: str
) -> WithoutEnds | None:
    """Says why no intervals are expected, and by which covariances some are; None where they are, or nobody knows.

    **Arguments:** all public. `found`: what is expected of them. `what`: the name of the estimate. `previewed`: what is
    expected of another covariance there; it may raise ValueError. `argument`: the name of that of the covariance.
    """
    if found is None or found.has_ends:
        return None
    briefly = f"no intervals are expected of {what}, as there is too much noise"
    assumed = f"of {found.num_records:,} records at epsilon = {found.setting.epsilon:g}"
    words = "; ".join(found.setting.words)
    return WithoutEnds(briefly, f"{briefly}, {assumed}, with {words}. {_other_ways(previewed, argument)}")


def _other_ways(previewed: Previewed, argument: str) -> str:
    """Lists the covariances that are expected to give intervals there, and how wide."""
    found = []
    for words, (covariance, asks) in OTHER_WAYS.items():
        try:
            one = previewed(covariance)
        except ValueError:
            continue
        if one is not None and one.width is not None and one.has_ends:
            width = float(np.max(one.width))
            found.append((width, f"{argument}={words} up to {width:.3g} times as wide as without privacy{asks}"))
    if not found:
        return "By no covariance there are any: fewer terms, more records or a larger epsilon would do"
    ways = "; ".join(words for _, words in sorted(found))
    unless = "wider or none where columns vary less, as preview(design=...) of made-up rows like yours tells"
    return f"There would be {ways}; {unless}. Fewer terms or a larger epsilon would do too"


def why_not_foreseen(making: AbstractIntervalPlan, knows_count: bool) -> str | None:
    """Says why nobody knows beforehand whether intervals will have ends; None where public facts tell.

    **Arguments:** all public. `knows_count`: whether the number of records is public or guessed.
    """
    if not knows_count:
        return (
            f"{_NOT_FORESEEN} the number of records is private and nobody guessed it: WithIntervals(..., "
            "num_records=10_000) would tell"
        )
    if not scatter_is_known(making.mechanism):
        return (
            f"{_NOT_FORESEEN} nobody said how far responses scatter: their bounds, Bounds(..., y=(lower, upper)), "
            "would tell"
        )
    if isinstance(making, SumsPlan) and not making.covariance.is_previewed:
        return f"{_NOT_FORESEEN} they follow from what {type(making.mechanism).__name__} publishes"
    return None


def require_ends(mechanism: Any, covariance: Any, num_records: int) -> None:
    """Raises ValueError for intervals that are expected to have no ends, naming covariances with which they have some.

    Nothing is raised where `why_not_foreseen` says why. **Arguments:** as of `IntervalPreview.of`.
    """
    if not scatter_is_known(mechanism):
        return
    previewed = functools.partial(IntervalPreview.of, mechanism, num_records=num_records)
    why = why_without_ends(previewed(covariance), type(mechanism).__name__, previewed, "covariance")
    if why is not None:
        raise ValueError(
            f"{why.fully}. The mechanism alone has an estimate without intervals. Nothing was spent; "
            "WithIntervals(..., force=True) releases it all the same, but not KNG whose estimate may come from far off"
        )
