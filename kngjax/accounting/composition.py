"""Computes what several releases of the same records cost together, from sums alone. Imports no JAX."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting import conversions
from kngjax.accounting.conversions import Asked
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
    - `other_losses`, `other_failures`: Σε and Σδ over the parts without ρ that state a finite ε.
    - `has_unknown`: whether a part has neither a finite ε nor a ρ.
    """

    losses: Fraction | None
    failures: Fraction
    rho: Fraction | None
    gaussian_rho: Fraction | None
    sure_losses: Fraction | None
    sure_failures: Fraction
    other_losses: Fraction
    other_failures: Fraction
    has_unknown: bool

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
            len(others) < len(without),
        )

    def at(self, asked: Asked, given: float) -> float:
        """Computes ε at δ, or δ at ε: the best of three sums.

        Σε at Σδ; Σρ, as zCDP, of the parts that have it, at what the others leave of δ, plus their Σε; and √Σμ² of the
        Gaussian parts by their exact profile, at what the others leave of δ, plus their Σε.
        """
        found = [conversions.TRIVIAL[asked]]
        if self.losses is not None:
            found.append(conversions.OF_STATED[asked]((outward(self.losses), outward(self.failures)), given))
        if self.rho is not None and not self.has_unknown:
            profile = _gaussian if self.rho == self.gaussian_rho else _zcdp
            found.append(_with_others(profile(self.rho, asked), self.other_losses, self.other_failures, asked, given))
        if self.gaussian_rho is not None and self.sure_losses is not None:
            profile = _gaussian(self.gaussian_rho, asked)
            found.append(_with_others(profile, self.sure_losses, self.sure_failures, asked, given))
        return min(found)


def _gaussian(rho: Fraction, asked: Asked) -> Callable[[float], float]:
    # μ² = 2ρ.
    return functools.partial(conversions.OF_GAUSSIAN[asked], root_outward(2 * rho))


def _zcdp(rho: Fraction, asked: Asked) -> Callable[[float], float]:
    return functools.partial(conversions.OF_ZCDP[asked], outward(rho))


def _with_others(
    profile: Callable[[float], float], losses: Fraction, failures: Fraction, asked: Asked, given: float
) -> float:
    """Converts by a profile, at what other parts, of Σε and Σδ, leave of the given δ or ε; adds their Σε or Σδ."""
    added, spent = (losses, failures) if asked == "epsilon" else (failures, losses)
    left = exactly(given) - spent
    found = profile(inward(left)) if left >= 0 else math.inf
    return found if found == math.inf else outward(added + exactly(found))


def _losses(parts: Iterable[tuple[Any, int]]) -> Fraction | None:
    """Σε as stated, None where some ε is infinite."""
    every = tuple(parts)
    finite = all(part.exact_epsilon is not None for part, _ in every)
    return total((part.exact_epsilon, count) for part, count in every) if finite else None
