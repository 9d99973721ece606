"""What a ledger may spend, as exact numbers, and which releases together stay within it. Imports no JAX.

Every rule is a filter that holds though later releases, their numbers included, depend on earlier outcomes:

- *pure*: Σε ≤ E, all δ = 0. The privacy loss of a transcript is at most its own Σε.
- *zcdp*: Σρ ≤ R (Rogers et al. 2016; Whitehouse et al. 2023).
- *approximate*: Σε ≤ E and Σδ ≤ D of what each guarantee states (Rogers et al. 2016).
- *converted*: Σρ ≤ R, where R is the most that zCDP may be to be (E, D)-DP, found once, when the ledger is made; or
  else Σε ≤ E with all δ = 0. Transcripts that end in the second way have a loss of at most E, so they add nothing to
  δ(E) = ∫(P - e^E Q)₊; those that end in the first have the densities that they would have if releases stopped where Σρ
  would pass R, which is R-zCDP. So δ(E) ≤ D.

`Guarantee.at` takes the best of several sums *after* the releases. As a rule for when to stop that is not known to
hold: of two filters with δ > 0 each, one path may end in the one and one in the other, and their δ add up. So a ledger
has one rule, fixed when it is made.
"""

import dataclasses
import enum
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting.composition import Sums
from kngjax.accounting.conversions import zcdp_rho
from kngjax.accounting.exact import Number, exactly, inward
from kngjax.accounting.guarantees import Guarantee

Parts = Iterable[tuple[Guarantee, int]]


class Rule(enum.StrEnum):
    """How releases add up: see `kngjax.ledger.budgets`."""

    PURE = "pure"
    ZCDP = "zcdp"
    APPROXIMATE = "approximate"
    CONVERTED = "converted"


@dataclasses.dataclass(frozen=True)
class Budget:
    """The most that all releases of a ledger may cost together. Public.

    Made by `pure`, `zcdp`, `approximate` or `converted`. Numbers are exact; floats mean the decimals that they print
    as, so that three releases at 0.1 fit a budget of 0.3.

    **Arguments:** `rule`; `epsilon`, `delta`, `rho`: what the rule holds against, None or 0 where it needs none.
    """

    rule: Rule
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    def __post_init__(self):
        needs_epsilon, needs_rho = self.rule is not Rule.ZCDP, self.rule in (Rule.ZCDP, Rule.CONVERTED)
        needs_delta = self.rule in (Rule.APPROXIMATE, Rule.CONVERTED)
        for name, number, needed in (("epsilon", self.epsilon, needs_epsilon), ("rho", self.rho, needs_rho)):
            if needed != (number is not None) or (number is not None and number <= 0):
                raise ValueError(f"the {name} of a budget must be positive, got {number}")
        if needs_delta != (self.delta > 0) or self.delta >= 1:
            raise ValueError(f"the delta of a budget must lie strictly between 0 and 1, got {self.delta}")

    @classmethod
    def pure(cls, epsilon: Number) -> "Budget":
        """Pure ε-DP of all releases together."""
        return cls(Rule.PURE, exactly(epsilon, "epsilon"), Fraction(0), None)

    @classmethod
    def zcdp(cls, rho: Number) -> "Budget":
        """ρ-zCDP of all releases together: KNG at ε costs ε²/8 of it."""
        return cls(Rule.ZCDP, None, Fraction(0), exactly(rho, "rho"))

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> "Budget":
        """(ε, δ)-DP by the sums of what each release states."""
        return cls(Rule.APPROXIMATE, exactly(epsilon, "epsilon"), exactly(delta, "delta"), None)

    @classmethod
    def converted(cls, epsilon: Number, delta: Number) -> "Budget":
        """(ε, δ)-DP by the largest ρ that is (ε, δ)-DP, or by pure releases with Σε ≤ ε: for many small releases."""
        exact = exactly(epsilon, "epsilon"), exactly(delta, "delta")
        rho = exactly(zcdp_rho(inward(exact[0]), inward(exact[1])))
        return cls(Rule.CONVERTED, *exact, rho)

    def admits(self, parts: Parts) -> bool:
        """Whether releases with these guarantees, each so many times, stay within the budget."""
        every = tuple(parts)
        sums = Sums.of(every)
        rho = sums.rho if all(part.exact_rho is not None for part, _ in every) else None
        fits_epsilon = self.epsilon is not None and sums.losses is not None and sums.losses <= self.epsilon
        fits_rho = self.rho is not None and (not every or (rho is not None and rho <= self.rho))
        is_pure = sums.failures == 0
        match self.rule:
            case Rule.PURE:
                return fits_epsilon and is_pure
            case Rule.ZCDP:
                return fits_rho
            case Rule.APPROXIMATE:
                return fits_epsilon and sums.failures <= self.delta
        return fits_rho or (fits_epsilon and is_pure)

    def left(self, parts: Parts) -> str:
        """What is left after these releases, in words, exactly."""
        every = tuple(parts)
        sums = Sums.of(every)
        words = []
        if self.epsilon is not None and self.rule is not Rule.CONVERTED:
            words.append(f"{digits(self.epsilon - (sums.losses or 0))} of epsilon = {digits(self.epsilon)}")
        if self.rule is Rule.APPROXIMATE:
            words.append(f"{digits(self.delta - sums.failures)} of delta = {digits(self.delta)}")
        if self.rho is not None:
            words.append(f"{digits(self.rho - (sums.rho or 0))} of rho = {digits(self.rho)}")
        return " and ".join(words)

    def price(self, parts: Parts) -> str:
        """What these releases cost in this budget's own numbers, in words."""
        every = tuple(parts)
        sums = Sums.of(every)
        epsilon = "no finite epsilon" if sums.losses is None else f"epsilon = {digits(sums.losses)}"
        has_rho = all(part.exact_rho is not None for part, _ in every)
        rho = f"rho = {digits(sums.rho or Fraction(0))}" if has_rho else "no known rho"
        stated = f"{epsilon} at delta = {digits(sums.failures)}" if sums.failures else epsilon
        match self.rule:
            case Rule.ZCDP:
                return rho
            case Rule.CONVERTED:
                return f"{rho} and {stated}"
        return stated

    def explain(self) -> str:
        """The budget in words."""
        epsilon = "" if self.epsilon is None else digits(self.epsilon)
        match self.rule:
            case Rule.PURE:
                return f"pure epsilon = {epsilon}, by the sum of epsilon"
            case Rule.ZCDP:
                return f"rho = {digits(self.rho or Fraction(0))} of zCDP, by the sum of rho"
            case Rule.APPROXIMATE:
                return f"epsilon = {epsilon} at delta = {digits(self.delta)}, by the sums of epsilon and of delta"
        return (
            f"epsilon = {epsilon} at delta = {digits(self.delta)}, by the sum of rho up to {float(self.rho or 0):.6g}, "
            f"or by the sum of pure epsilon"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary with exact fractions."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {"rule": str(self.rule), **{name: None if x is None else str(x) for name, x in numbers.items()}}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Budget":
        """The inverse of `to_dict`."""
        epsilon, delta, rho = (None if (x := fields[name]) is None else Fraction(x) for name in _NUMBERS)
        return cls(Rule(fields["rule"]), epsilon, delta or Fraction(0), rho)


_NUMBERS = ("epsilon", "delta", "rho")


def digits(number: Fraction) -> str:
    """A fraction as a decimal where that is short and exact, else as a fraction with its decimal."""
    try:
        text = repr(float(number))
    except OverflowError:
        return str(number)
    if Fraction(text) == number:
        return text.removesuffix(".0")
    return f"{number} (about {float(number):.6g})"
