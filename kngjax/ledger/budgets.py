"""A budget states in exact numbers what a ledger may spend, and decides which releases stay within it. Imports no JAX.

Every rule is a filter that holds though later releases, their numbers included, depend on earlier outcomes:

- *pure*: Σε ≤ E, all δ = 0 and no distances. The privacy loss of a transcript is at most its own Σε.
- *zcdp*: Σρ ≤ R (Rogers et al. 2016; Feldman and Zrnic 2021; Whitehouse et al. 2023) and Ση ≤ H.
- *approximate*: Σε ≤ E and Σδ ≤ D of what each guarantee states (Rogers et al. 2016); a law within η of an (ε, δ)-DP
  one states (ε, δ + (1 + e^ε)η), so there is no more to hold.
- *converted*: Ση ≤ H and Σρ ≤ R, where R is the most that zCDP may be to be (E, D - (1 + e^E)H)-DP, found once, when
  the ledger is made; or else Ση ≤ H and Σε ≤ E with all δ = 0. Transcripts that end in the second way have a loss of at
  most E, so they add nothing to δ(E) = ∫(P - e^E Q)₊; those that end in the first have the densities that they would
  have if releases stopped where Σρ would pass R, which is R-zCDP. So δ(E) ≤ D - (1 + e^E)H, and with the distances D.

Distances (`Guarantee.within`): ε, δ and ρ above are those of the laws that the releases are near. Draw the transcript
together with one in which every release follows that law, so that while they agree the next release differs with
probability at most its η. The filter ends both where Ση would pass H, so they differ with probability at most H, which
is what a budget of zCDP with a distance promises: a law within H in total variation of an R-zCDP one.

`Guarantee.at` takes the best of several sums *after* the releases. As a rule for when to stop that is not known to
hold: of two filters with δ > 0 each, one path may end in the one and one in the other, and their δ add up. So a ledger
has one rule, fixed when it is made.
"""

import dataclasses
import enum
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting.composition import Sums, total
from kngjax.accounting.conversions import zcdp_rho
from kngjax.accounting.exact_costs import Number, exactly, inward, with_both_orders
from kngjax.accounting.guarantees import Guarantee

Parts = Iterable[tuple[Guarantee, int]]


class Rule(enum.StrEnum):
    """Names how releases add up: see `kngjax.ledger.budgets`."""

    PURE = "pure"
    ZCDP = "zcdp"
    APPROXIMATE = "approximate"
    CONVERTED = "converted"


@dataclasses.dataclass(frozen=True)
class Budget:
    """States the most that all releases of a ledger may cost together. Public.

    `pure`, `zcdp`, `approximate` and `converted` make budgets. Numbers are exact: a float means the decimal that it
    prints as, so that three releases at 0.1 fit a budget of 0.3.

    **Arguments:** `rule`; `epsilon`, `delta`, `rho`: what the rule holds against, None or 0 where it needs none;
    `distance`: the most that Ση may be, of zcdp and converted budgets.
    """

    rule: Rule
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    distance: Fraction = Fraction(0)

    def __post_init__(self):
        needs_epsilon, needs_rho = self.rule is not Rule.ZCDP, self.rule in (Rule.ZCDP, Rule.CONVERTED)
        needs_delta = self.rule in (Rule.APPROXIMATE, Rule.CONVERTED)
        for name, number, needed in (("epsilon", self.epsilon, needs_epsilon), ("rho", self.rho, needs_rho)):
            if needed != (number is not None) or (number is not None and number <= 0):
                raise ValueError(f"the {name} of a budget must be positive, got {number}")
        if needs_delta != (self.delta > 0) or self.delta >= 1:
            raise ValueError(f"the delta of a budget must lie strictly between 0 and 1, got {self.delta}")
        if not 0 <= self.distance < 1 or (self.distance and not needs_rho):
            raise ValueError(f"the distance of a budget of zCDP must lie in [0, 1), got {self.distance}")

    @classmethod
    def pure(cls, epsilon: Number) -> "Budget":
        """Makes a budget of pure ε-DP for all releases together."""
        return cls(Rule.PURE, exactly(epsilon, "epsilon"), Fraction(0), None)

    @classmethod
    def zcdp(cls, rho: Number, distance: Number = 0) -> "Budget":
        """Makes a budget of ρ-zCDP, within a distance in total variation. KNG at ε costs ε²/8 of it.

        **Arguments:** `distance`: the most that the distances of all releases may add up to, as those of outputs that
        are rounded in float64; 0 admits laws that have a ρ themselves, as on a lattice.
        """
        return cls(Rule.ZCDP, None, Fraction(0), exactly(rho, "rho"), exactly(distance, "distance"))

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> "Budget":
        """Makes a budget of (ε, δ)-DP, which holds the sums of ε and of δ that releases state."""
        return cls(Rule.APPROXIMATE, exactly(epsilon, "epsilon"), exactly(delta, "delta"), None)

    @classmethod
    def converted(cls, epsilon: Number, delta: Number, distance: Number | None = None) -> "Budget":
        """Makes a budget of (ε, δ)-DP for many small releases, by the largest ρ that is (ε, δ)-DP, or by Σε ≤ ε.

        **Arguments:** `distance`: H, as of `zcdp`, for which (1 + e^ε)H of δ is kept; None keeps a tenth of δ.

        Raises ValueError where H leaves nothing of δ, or (ε, δ) nothing that float64 could say of ρ.
        """
        exact = exactly(epsilon, "epsilon"), exactly(delta, "delta")
        weight = with_both_orders(exact[0], Fraction(1, 2)) * 2
        if distance is None:
            # Beyond that e^ε is no float64.
            distance = exact[1] / 10 / weight if exact[0] <= _LARGEST else Fraction(0)
        held = exactly(distance, "distance")
        kept = exact[1] - (held * weight if exact[0] <= _LARGEST or held == 0 else 1)
        if kept <= 0 < exact[1]:
            raise ValueError(f"(1 + e^epsilon) times the distance {digits(held)} leaves nothing of delta = {delta}")
        return cls(Rule.CONVERTED, *exact, exactly(zcdp_rho(inward(exact[0]), inward(kept))), held)

    def admits(self, parts: Parts) -> bool:
        """Tells whether releases with these guarantees, each so many times, stay within the budget."""
        stated, sums, distance = _sums_of(parts)
        fits_epsilon = self.epsilon is not None and sums.losses is not None and sums.losses <= self.epsilon
        fits_rho = self.rho is not None and sums.rho is not None and sums.rho <= self.rho
        match self.rule:
            case Rule.PURE:
                return fits_epsilon and stated.failures == 0 and distance == 0
            case Rule.ZCDP:
                return fits_rho and distance <= self.distance
            case Rule.APPROXIMATE:
                fits_stated = stated.losses is not None and stated.losses <= (self.epsilon or 0)
                return fits_stated and stated.failures <= self.delta
        return distance <= self.distance and (fits_rho or (fits_epsilon and sums.failures == 0))

    def amounts(self, parts: Parts) -> list[tuple[str, Fraction, Fraction]]:
        """Lists each number that the budget holds, with what these releases take of it and the whole."""
        stated, sums, distance = _sums_of(parts)
        found = []
        if self.epsilon is not None and self.rule is not Rule.CONVERTED:
            found.append(("epsilon", stated.losses or Fraction(0), self.epsilon))
        if self.rule is Rule.APPROXIMATE:
            found.append(("delta", stated.failures, self.delta))
        if self.rho is not None:
            found.append(("rho", sums.rho or Fraction(0), self.rho))
        if self.distance:
            found.append(("distance", distance, self.distance))
        return found

    def left(self, parts: Parts) -> str:
        """Says in words how much of the budget these releases leave, at least: each number is rounded down."""
        return " and ".join(
            f"{digits(_downward(whole - taken, whole))} of {name} = {digits(whole)}"
            for name, taken, whole in self.amounts(parts)
        )

    def price(self, parts: Parts) -> str:
        """Says in words what these releases cost, in the numbers that this budget adds up."""
        stated, sums, distance = _sums_of(parts)
        rho = "no known rho" if sums.rho is None else f"rho = {digits(sums.rho)}"
        if self.rule is Rule.ZCDP:
            return rho + _if_any(distance, "at a distance of")
        epsilon = "no finite epsilon" if stated.losses is None else f"epsilon = {digits(stated.losses)}"
        words = epsilon + _if_any(stated.failures, "at delta =")
        return f"{rho}{_if_any(distance, 'at a distance of')} and {words}" if self.rule is Rule.CONVERTED else words

    def advice(self, parts: Parts) -> str:
        """Advises on the kind of budget that would take such releases; empty where this budget is only too small."""
        stated, sums, distance = _sums_of(parts)
        if self.rule is Rule.PURE and (stated.failures or distance):
            return (
                "A pure budget takes no release with a delta, and outputs rounded in float64 have one: the ledger "
                "needs Budget.approximate, or Budget.converted for many small releases"
            )
        if self.rho is not None and sums.rho is None:
            return "This budget adds up rho, which is not known of this release: it needs Budget.approximate"
        if self.rho is not None and distance > self.distance:
            return (
                "Outputs rounded in float64 lie within a distance in total variation of the law: the ledger needs a "
                "budget that holds it, as Budget.zcdp(rho, distance=...)"
            )
        return ""

    def explain(self) -> str:
        """Explains the budget in words."""
        epsilon = "" if self.epsilon is None else digits(self.epsilon)
        match self.rule:
            case Rule.PURE:
                return f"pure epsilon = {epsilon}, by the sum of epsilon"
            case Rule.ZCDP:
                words = f"rho = {digits(self.rho or Fraction(0))} of zCDP, by the sum of rho"
                return words + _if_any(self.distance, "within a total variation of")
            case Rule.APPROXIMATE:
                return f"epsilon = {epsilon} at delta = {digits(self.delta)}, by the sums of epsilon and of delta"
        return (
            f"epsilon = {epsilon} at delta = {digits(self.delta)}, by the sum of rho up to {float(self.rho or 0):.6g}, "
            f"or by the sum of pure epsilon" + _if_any(self.distance, "of laws within a total variation of")
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-ready dictionary with exact fractions."""
        return {name: None if one is None else str(one) for name, one in vars(self).items()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Budget":
        """Reads what `to_dict` writes."""
        numbers = {name: text and Fraction(text) for name, text in fields.items() if name != "rule"}
        return cls(Rule(fields["rule"]), **numbers)


# The largest ε for which e^ε is a float64.
_LARGEST = 700
# The most digits of a fraction that are shown; `to_dict` has it whole.
_LONGEST = 12


def _sums_of(parts: Parts) -> tuple[Sums, Sums, Fraction]:
    """Adds up what releases state, what the laws that they are near cost, and their distances from these laws.

    The sum of ρ of the laws is None unless every law has one.
    """
    every = tuple(parts)
    pairs = [(*part.apart(), count) for part, count in every]
    sums = Sums.of((ideal, count) for ideal, _, count in pairs)
    has_rho = all(ideal.exact_rho is not None for ideal, _, _ in pairs)
    sums = dataclasses.replace(sums, rho=(sums.rho or Fraction(0)) if has_rho else None)
    return Sums.of(every), sums, total((distance, count) for _, distance, count in pairs)


def _downward(number: Fraction, whole: Fraction) -> Fraction:
    """Rounds a part of a whole down to a decimal with as many places as eight digits of the whole have."""
    places = 7 - math.floor(math.log10(whole.numerator) - math.log10(whole.denominator))
    return Fraction(math.floor(number * Fraction(10) ** places)) / Fraction(10) ** places


def _if_any(number: Fraction, words: str) -> str:
    return f" {words} {digits(number)}" if number else ""


def digits(number: Fraction) -> str:
    """Writes a fraction as an exact decimal or a short fraction, else as a decimal that is about as large."""
    try:
        text = repr(float(number))
    except OverflowError:
        return str(number)
    if Fraction(text) == number:
        return text.removesuffix(".0")
    exact = str(number)
    return f"about {float(number):.12g}" if len(exact) > _LONGEST else f"{exact} (about {float(number):.6g})"
