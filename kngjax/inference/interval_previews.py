"""Previews the widths of a plan's intervals, beside those of other ways to make them, from public facts alone."""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.covariances import Sandwich
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.interval_plans import AbstractIntervalPlan, GroupsPlan, interval_plan_of
from kngjax.inference.settings import Scenario
from kngjax.inference.widths import width_without_privacy

Widths = Float[np.ndarray, " combinations"]


@dataclasses.dataclass(frozen=True, eq=False)
class IntervalPreview:
    """Widths of 95% intervals over those without privacy, previewed. All of it is public.

    **Arguments:** `making`: of the plan, at n. `setting`: what is assumed, of the plan's own mechanism at the whole ε.
    `num_records`: n. `combinations`: A, for intervals of Aθ; None for those of θ.
    """

    making: AbstractIntervalPlan
    setting: Scenario
    num_records: int
    combinations: Any = None

    @classmethod
    def of(
        cls, mechanism: Any, covariance: Any, num_records: int, design: Any = None, combinations: Any = None
    ) -> "IntervalPreview | None":
        """Previews a mechanism, at the whole ε, with this covariance; None where nothing of it is known beforehand.

        **Arguments:** `num_records`: n, or a guess of it. `design`: as of `kngjax.preview`. Raises as
        `kngjax.WithIntervals`.
        """
        making = interval_plan_of(mechanism, covariance, num_records, None)
        setting = Scenario.of(mechanism, design, None)
        return None if setting is None else cls(making, setting, num_records, combinations)

    @property
    def has_ends(self) -> bool:
        """Says whether each interval is expected to have ends, or nobody knows."""
        return self.width is None or bool(np.all(np.isfinite(self.width)))

    @functools.cached_property
    def width(self) -> Widths | None:
        """Previews the width of the plan's interval for each coefficient.

        It is infinite where no interval is expected, and None where nobody knows.
        """
        return self._of(self.making)

    @functools.cached_property
    def others(self) -> dict[str, Widths]:
        """Previews the widths of other ways that assume nothing of the errors, by name, where they serve."""
        found = {}
        for covariance in (Sandwich(), Groups()):
            if isinstance(covariance, Groups) is isinstance(self.making, GroupsPlan):
                continue
            try:
                making = interval_plan_of(self.setting.mechanism, covariance, self.num_records, None)
            except ValueError:
                continue
            width = self._of(making)
            if width is not None:
                found[_name(making)] = width
        return found

    def explain(self) -> str:
        """Says in words how wide the plan's intervals would be, and those of other ways."""
        if self.width is None:
            return f"Intervals by {_name(self.making)}: how wide they will be is not known beforehand."
        lines = [f"Intervals by {_name(self.making)} would be {_in_words(self.width)}."]
        lines += [f"By {name} they would be {_in_words(width)}." for name, width in self.others.items()]
        return " ".join(lines)

    def _of(self, making: AbstractIntervalPlan) -> Widths | None:
        given = self.setting, self.num_records, self.combinations
        widths = making.width(*given)
        return None if widths is None else widths / width_without_privacy(*given)


def _name(making: Any) -> str:
    if isinstance(making, GroupsPlan):
        return f"Groups({making.number})"
    return f"{type(making.covariance).__name__}(share={making.covariance.share:g})"


def _in_words(widths: Widths) -> str:
    if not np.all(np.isfinite(widths)):
        return "none at all, as there is too much noise"
    return f"up to {np.max(widths):.3g} times as wide as without privacy"
