"""Whether intervals are offered, which public facts decide before anything is paid for them."""

from typing import Any

from kngjax.inference.interval_choices import interval_plan_of
from kngjax.inference.interval_plans import RegressionPlan
from kngjax.inference.interval_previews import IntervalPreview
from kngjax.inference.offers import usual_setting
from kngjax.inference.score_laws import scatter_is_known
from kngjax.inference.settings import Scenario

_NOT_FORESEEN = "not foreseen: how wide intervals will be, as"
LEAVE = (
    "The mechanism alone has an estimate without intervals. Nothing was spent; WithIntervals(..., force=True) releases "
    "it all the same, with intervals that may be very wide"
)


def why_not_foreseen(making: Any, knows_count: bool) -> str | None:
    """Says why nobody knows beforehand how wide intervals will be; None where public facts tell.

    **Arguments:** all public. `knows_count`: whether the number of records is public or guessed.
    """
    if not isinstance(making, RegressionPlan):
        return None
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
    if making.covariance.is_public:
        return f"{_NOT_FORESEEN} they follow from what {type(making.mechanism).__name__} publishes"
    return None


def require_offer(mechanism: Any, covariance: Any, num_records: int, setting: Scenario | None = None) -> None:
    """Raises ValueError for intervals that are not offered, saying which n and which ε would do.

    Nothing is raised where `why_not_foreseen` says why. **Arguments:** as of `IntervalPreview.of`. `setting`: what is
    assumed; None for what is usual.
    """
    setting = usual_setting(mechanism, num_records) if setting is None else setting
    if setting is None:
        return
    making = interval_plan_of(mechanism, covariance, num_records, None, setting)
    if (why := IntervalPreview(making, setting, num_records).why_not(type(mechanism).__name__)) is not None:
        raise ValueError(f"{why}. {LEAVE}")
