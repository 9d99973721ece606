"""Previews a plan's intervals, whether they are offered and how wide they would be, from public facts alone."""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.covariances import PublishedMoments
from kngjax.inference.far_draws import LITTLE, levels_off
from kngjax.inference.interval_plans import AbstractIntervalPlan, RegressionPlan
from kngjax.inference.offers import Offer, offer_of, usual_setting
from kngjax.inference.score_laws import scatter_is_known
from kngjax.inference.settings import Scenario
from kngjax.inference.widths import width_of, width_without_privacy

Widths = Float[np.ndarray, " combinations"]

_NOT_FORESEEN = "not foreseen: how wide intervals will be, as"
LEAVE = (
    "The mechanism alone has an estimate without intervals. Nothing was spent; WithIntervals(..., force=True) releases "
    "it all the same, with intervals that may be very wide"
)


@dataclasses.dataclass(frozen=True, eq=False)
class IntervalPreview:
    """Widths of 95% intervals over those without privacy, previewed. All of it is public.

    **Arguments:** `making`: of the plan, at n. `setting`: what is assumed, of the plan's own mechanism at the whole ε.
    `num_records`: n. `combinations`: A, for intervals of Aθ; None for those of θ. `times`: ε of all groups over that of
    one, of which the plan is; what is said of ε is in terms of the former.
    """

    making: AbstractIntervalPlan
    setting: Scenario
    num_records: int
    combinations: Any = None
    times: float = 1.0

    @functools.cached_property
    def offer(self) -> Offer | None:
        """Returns what the public rule says of a regression's; None for means, which always have intervals."""
        if not isinstance(self.making, RegressionPlan):
            return None
        given = self.making.usual.num_records, self.making.bandwidth
        return offer_of(self.setting, self.making.covariance, self.setting.epsilon, *given)

    @functools.cached_property
    def _is_far(self) -> bool:
        """Tells whether an estimate may be drawn from far off, where sums at the estimate say nothing of its error.

        Noise of KNG has density ∝ exp(-c‖z‖)/det H of z, and intervals from sums take H as it is at the released value.
        Where that is far off, scores have reached their ends and H is nearly 0: such values are not covered, and the
        sums released at them look the better determined the less is left of H beside their noise. So they must be rare.
        """
        mechanism = self.making.mechanism
        if not levels_off(mechanism):
            return False
        return (self.setting.of_mechanism(mechanism).far_share(self.num_records) or 0.0) > LITTLE

    @property
    def is_offered(self) -> bool:
        """Tells whether the public rule offers these intervals, or nobody knows how wide they would be."""
        return not self._is_far and (self.offer is None or self.offer.is_made)

    @functools.cached_property
    def width(self) -> Widths | None:
        """Previews the width of the plan's interval for each coefficient; infinite where the rule offers none.

        None where nobody knows.
        """
        given = self.num_records, self.combinations
        without = width_without_privacy(self.setting, *given)
        if not self.is_offered:
            return np.full(len(without), np.inf)
        found = width_of(self.making, self.setting.of_mechanism(self.making.mechanism), *given)
        return None if found is None else found / without

    def why_not(self, what: str) -> str | None:
        """Says why no intervals are offered of an estimate, and what would do; None where they are."""
        if self.is_offered:
            return None
        counted = self.setting.mechanism.bounds.counted
        if self.offer is None or self._is_far:
            return (
                f"no intervals are offered of {what}: of {self.num_records:,} {counted} an estimate at this epsilon "
                f"may come from far off, where no sums tell its error: a larger epsilon, more {counted} or a smaller "
                "domain would do, or kngjax.ObjectivePerturbation"
            )
        return self.offer.refusal(
            what, self.times * self.setting.epsilon, self.num_records, counted, "; ".join(self.setting.words)
        )

    def explain(self, is_guess: bool = False) -> str:
        """Says in words how wide the plan's intervals would be.

        **Arguments:** `is_guess`: whether the width rests on records that nobody described.
        """
        if (why := self.why_not(self.setting.mechanism.__class__.__name__)) is not None:
            return f"{why[0].upper()}{why[1:]}."
        if self.width is None:
            return "How wide the intervals will be is not known beforehand."
        who = "By a guess of what was not described, the" if is_guess else "The"
        return f"{who} intervals would be up to {np.max(self.width):.3g} times as wide as without privacy."


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
    if isinstance(making.covariance, PublishedMoments):
        return f"{_NOT_FORESEEN} they follow from what {type(making.mechanism).__name__} publishes"
    return None


def require_offer(making: AbstractIntervalPlan, mechanism: Any, num_records: int, setting: Scenario | None) -> None:
    """Raises ValueError for intervals that are not offered, saying which n and which ε would do.

    Nothing is raised where `why_not_foreseen` says why. **Arguments:** `making`: of the plan. `mechanism`: its own, at
    the whole ε. `num_records`: n, or a guess of it. `setting`: what is assumed; None for what is usual.
    """
    setting = usual_setting(mechanism, num_records) if setting is None else setting
    if setting is None:
        return
    if (why := IntervalPreview(making, setting, num_records).why_not(type(mechanism).__name__)) is not None:
        raise ValueError(f"{why}. {LEAVE}")
