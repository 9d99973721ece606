"""What several releases of the same records cost together, from sums alone. Imports no JAX."""

import dataclasses
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting import conversions
from kngjax.accounting.exact import exactly, inward, outward, root_outward
from kngjax.accounting.kinds import Kind


def total(numbers: Iterable[tuple[Fraction, int]]) -> Fraction:
    """Σ of exact numbers with how many times each."""
    return sum((count * number for number, count in numbers), Fraction(0))


@dataclasses.dataclass(frozen=True)
class Sums:
    """The sums over a composition's parts, exact.

    **Arguments:**

    - `losses`, `failures`: Σε and Σδ over all parts as stated; None where some ε is infinite.
    - `rho`: Σρ over the parts that have a ρ, None if none has; `is_gaussian`: whether those are all Gaussian.
    - `other_losses`, `other_failures`: Σε and Σδ over the parts without ρ, but for those of `tables`.
    - `tables`: profiles of the parts that state no finite ε and have no ρ.
    """

    losses: Fraction | None
    failures: Fraction
    rho: Fraction | None
    is_gaussian: bool
    other_losses: Fraction
    other_failures: Fraction
    tables: tuple[conversions.Table, ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[Any, int]]) -> "Sums":
        """The sums over guarantees with how many times each."""
        every = tuple(parts)
        with_rho = [(part, count) for part, count in every if part.exact_rho is not None]
        without = [(part, count) for part, count in every if part.exact_rho is None]
        others = [(part, count) for part, count in without if part.exact_epsilon is not None]
        finite = all(part.exact_epsilon is not None for part, _ in every)
        return cls(
            total((part.exact_epsilon, count) for part, count in every) if finite else None,
            total((part.exact_delta, count) for part, count in every),
            total((part.exact_rho, count) for part, count in with_rho) if with_rho else None,
            all(part.kind is Kind.GAUSSIAN for part, _ in with_rho),
            total((part.exact_epsilon, count) for part, count in others),
            total((part.exact_delta, count) for part, count in others),
            tuple(part.table for part, count in without if part.exact_epsilon is None for _ in range(count)),
        )

    def epsilon_at(self, delta: float) -> float:
        """ε at δ: the better of Σε at Σδ, and of Σρ converted at what the others leave of δ, plus their Σε."""
        return min(self._stated_epsilon(delta), self._converted_epsilon(delta))

    def delta_at(self, epsilon: float) -> float:
        """δ at ε, by the same two ways."""
        return min(1.0, self._stated_delta(epsilon), self._converted_delta(epsilon))

    @property
    def _groups(self) -> int:
        return len(self.tables) + (self.rho is not None)

    @property
    def _root(self) -> float:
        # μ² = 2ρ.
        return root_outward(2 * (self.rho or Fraction(0)))

    def _row(self) -> conversions.Table:
        assert self.losses is not None
        return ((outward(self.losses), outward(self.failures)),)

    def _stated_epsilon(self, delta: float) -> float:
        return math.inf if self.losses is None else conversions.table_epsilon(self._row(), delta)

    def _stated_delta(self, epsilon: float) -> float:
        return 1.0 if self.losses is None else conversions.table_delta(self._row(), epsilon)

    def _converted_epsilon(self, delta: float) -> float:
        left = exactly(delta) - self.other_failures
        if not self._groups or left < 0:
            return math.inf
        # Any way to divide δ is valid.
        share = inward(left / self._groups)
        losses = [conversions.table_epsilon(table, share) for table in self.tables]
        if self.rho is not None:
            convert = conversions.gaussian_epsilon if self.is_gaussian else conversions.zcdp_epsilon
            losses.append(convert(self._root if self.is_gaussian else outward(self.rho), share))
        if math.inf in losses:
            return math.inf
        return outward(self.other_losses + total((exactly(loss), 1) for loss in losses))

    def _converted_delta(self, epsilon: float) -> float:
        room = exactly(epsilon) - self.other_losses
        if not self._groups or room < 0:
            return 1.0
        share = inward(room / self._groups)
        failures = [conversions.table_delta(table, share) for table in self.tables]
        if self.rho is not None:
            convert = conversions.gaussian_delta if self.is_gaussian else conversions.zcdp_delta
            failures.append(convert(self._root if self.is_gaussian else outward(self.rho), share))
        return outward(self.other_failures + total((exactly(failure), 1) for failure in failures))
