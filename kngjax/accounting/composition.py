"""Computes what several releases of the same records cost together, from sums alone. Imports no JAX."""

import dataclasses
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting import conversions
from kngjax.accounting.exact_costs import exactly, inward, outward, root_outward
from kngjax.accounting.kinds import Kind


def total(numbers: Iterable[tuple[Fraction, int]]) -> Fraction:
    """Σ of exact numbers with how many times each."""
    return sum((count * number for number, count in numbers), Fraction(0))


@dataclasses.dataclass(frozen=True)
class Sums:
    """The sums over a composition's parts, exact.

    Later releases and their numbers may depend on earlier outcomes. Each of three sums then bounds the whole, as long
    as it stays within a limit that was fixed beforehand: Σε at Σδ (Rogers et al. 2016), Σρ (Feldman and Zrnic 2021;
    Whitehouse et al. 2023) and Σμ² of Gaussian DP (Smith and Thakurta 2022).

    Σρ and Σμ² may be mixed with Σε, Σδ of other parts. An (ε_k, δ_k)-DP step from P_k to Q_k has a law
    P'_k ≤ e^{ε_k}Q_k within δ_k of P_k in total variation. Replace P_k by P'_k in one transcript, which moves it by
    Σδ_k, and Q_k by P'_k in the other, whose density falls by at most e^{Σε_k}. Both transcripts then take these steps
    alike, so the other steps have the profile δ' of their sum: P(A) ≤ e^{ε + Σε_k}Q(A) + δ'(ε) + Σδ_k.

    **Arguments:**

    - `losses`, `failures`: Σε and Σδ over all parts as stated; None where some ε is infinite.
    - `rho`: Σρ over the parts that have a ρ, None if none has; `gaussian_rho`: over the Gaussian ones alone.
    - `sure_losses`, `sure_failures`: Σε and Σδ over the parts that are not Gaussian; None where some ε is infinite.
    - `other_losses`, `other_failures`: Σε and Σδ over the parts without ρ, but for those of `tables`.
    - `tables`: profiles of the parts that state no finite ε and have no ρ.
    """

    losses: Fraction | None
    failures: Fraction
    rho: Fraction | None
    gaussian_rho: Fraction | None
    sure_losses: Fraction | None
    sure_failures: Fraction
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
        gaussian = [(part, count) for part, count in every if part.kind is Kind.GAUSSIAN]
        sure = [(part, count) for part, count in every if part.kind is not Kind.GAUSSIAN]
        return cls(
            _losses(every),
            total((part.exact_delta, count) for part, count in every),
            total((part.exact_rho, count) for part, count in with_rho) if with_rho else None,
            total((part.exact_rho, count) for part, count in gaussian) if gaussian else None,
            _losses(sure),
            total((part.exact_delta, count) for part, count in sure),
            total((part.exact_epsilon, count) for part, count in others),
            total((part.exact_delta, count) for part, count in others),
            tuple(part.table for part, count in without if part.exact_epsilon is None for _ in range(count)),
        )

    def epsilon_at(self, delta: float) -> float:
        """ε at δ: the best of three sums.

        Σε at Σδ; Σρ, as zCDP, of the parts that have it, at what the others leave of δ, plus their Σε; and √Σμ² of the
        Gaussian parts by their exact profile, at what the others leave of δ, plus their Σε.
        """
        return min(self._stated_epsilon(delta), self._converted_epsilon(delta), self._gaussian_epsilon(delta))

    def delta_at(self, epsilon: float) -> float:
        """δ at ε, by the same three sums."""
        return min(1.0, self._stated_delta(epsilon), self._converted_delta(epsilon), self._gaussian_delta(epsilon))

    @property
    def _groups(self) -> int:
        return len(self.tables) + (self.rho is not None)

    def _row(self) -> conversions.Table:
        assert self.losses is not None
        return ((outward(self.losses), outward(self.failures)),)

    def _stated_epsilon(self, delta: float) -> float:
        return math.inf if self.losses is None else conversions.table_epsilon(self._row(), delta)

    def _stated_delta(self, epsilon: float) -> float:
        return 1.0 if self.losses is None else conversions.table_delta(self._row(), epsilon)

    def _converted_epsilon(self, delta: float) -> float:
        remainder = exactly(delta) - self.other_failures
        if not self._groups or remainder < 0:
            return math.inf
        # Any way to divide δ is valid.
        share = inward(remainder / self._groups)
        losses = [conversions.table_epsilon(table, share) for table in self.tables]
        if self.rho is not None:
            # μ² = 2ρ.
            losses.append(
                conversions.gaussian_epsilon(root_outward(2 * self.rho), share)
                if self.rho == self.gaussian_rho
                else conversions.zcdp_epsilon(outward(self.rho), share)
            )
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
            failures.append(
                conversions.gaussian_delta(root_outward(2 * self.rho), share)
                if self.rho == self.gaussian_rho
                else conversions.zcdp_delta(outward(self.rho), share)
            )
        return outward(self.other_failures + total((exactly(failure), 1) for failure in failures))

    def _gaussian_epsilon(self, delta: float) -> float:
        left = exactly(delta) - self.sure_failures
        if self.gaussian_rho is None or self.sure_losses is None or left < 0:
            return math.inf
        loss = conversions.gaussian_epsilon(root_outward(2 * self.gaussian_rho), inward(left))
        return outward(self.sure_losses + exactly(loss)) if loss < math.inf else math.inf

    def _gaussian_delta(self, epsilon: float) -> float:
        left = exactly(epsilon) - (self.sure_losses or 0)
        if self.gaussian_rho is None or self.sure_losses is None or left < 0:
            return 1.0
        failure = conversions.gaussian_delta(root_outward(2 * self.gaussian_rho), inward(left))
        return outward(self.sure_failures + exactly(failure))


def _losses(parts: Iterable[tuple[Any, int]]) -> Fraction | None:
    """Σε as stated, None where some ε is infinite."""
    every = tuple(parts)
    finite = all(part.exact_epsilon is not None for part, _ in every)
    return total((part.exact_epsilon, count) for part, count in every) if finite else None
