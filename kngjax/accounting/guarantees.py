"""Privacy guarantees as exact numbers, each with the adjacency that it is stated for. Imports no JAX."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from kngjax.accounting import nearness, pld, profiles
from kngjax.accounting.adjacency import RECORD, one_unit
from kngjax.accounting.adjacency import Adjacency as Adjacency
from kngjax.accounting.composition import Sums, total
from kngjax.accounting.exact_costs import Number, exactly, inward, outward, root_outward
from kngjax.accounting.exchanges import convert_to_replace
from kngjax.accounting.json_fields import fields_of, rebuild
from kngjax.accounting.kinds import FACTORS
from kngjax.accounting.kinds import Kind as Kind
from kngjax.accounting.parallel import in_parallel
from kngjax.accounting.wording import figures, sentence
from kngjax.core.summary_table import SummaryTable

_UNFIT = "the numbers of a {} guarantee do not fit together"


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """States what was proved of the law of one draw, for one adjacency.

    Its constructors are `pure`, `bounded_range`, `approximate`, `zcdp`, `gaussian`, `composed`, `parallel`
    and `within`. Numbers are exact fractions; floats mean the decimals that they print as
    (`kngjax.accounting.exact_costs`).
    The properties `epsilon`, `delta`, `rho`, `mu` and `distance` are floats, rounded outward.

    **Arguments:**

    - `exact_epsilon`, `exact_delta`: the (ε, δ) at which it is stated; ε in nats, None if it is infinite there.
    - `exact_rho`: the zCDP parameter, None where none is known.
    - `adjacency`: the pairs of data sets that it is stated for. `kind`: what it rests on.
    - `parts`: of a composition, with how many times each, in a fixed order.
    - `exact_distance`: in total variation from the law that `ideal` is the guarantee of; summed in a composition.
    - `ideal`: the guarantee of that law, where `kind` is near; else None.
    - `unit`: whom it protects: one record, or one person with all records that are that person's.
    """

    kind: Kind
    adjacency: Adjacency
    exact_epsilon: Fraction | None
    exact_delta: Fraction
    exact_rho: Fraction | None
    parts: tuple[tuple["Guarantee", int], ...] = ()
    exact_distance: Fraction = Fraction(0)
    ideal: "Guarantee | None" = None
    unit: str = RECORD

    def __post_init__(self):
        epsilon, delta, rho = self.exact_epsilon, self.exact_delta, self.exact_rho
        sound = 0 <= delta < 1 and (epsilon is None or epsilon >= 0) and (rho is None or rho > 0)
        if self.kind in FACTORS:
            sound = sound and bool(epsilon) and delta == 0
        elif self.kind is Kind.APPROXIMATE:
            sound = sound and epsilon is not None and delta > 0
        if delta == 0 and epsilon is not None:
            sound = sound and rho is not None and 0 < rho <= epsilon**2 / 2
        is_near = self.kind is Kind.NEAR
        sound = sound and (self.kind is Kind.COMPOSED) == bool(self.parts) and is_near == (self.ideal is not None)
        if is_near or self.exact_distance:
            sound = sound and 0 < self.exact_distance < 1 and delta > 0 and rho is None
        if not sound:
            raise ValueError(_UNFIT.format(self.kind))

    @classmethod
    def pure(cls, epsilon: Number, adjacency: str | Adjacency) -> "Guarantee":
        """ε-DP, hence (ε²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4)."""
        return cls._from_loss(Kind.PURE, epsilon, adjacency)

    @classmethod
    def bounded_range(cls, epsilon: Number, adjacency: str | Adjacency) -> "Guarantee":
        """ε-bounded-range, hence ε-DP and (ε²/8)-zCDP.

        The log-ratio of two neighbouring densities varies over an interval of length at most ε, as for KNG and the
        exponential mechanism (`docs/proofs/kng.md`). By Hoeffding's lemma this is (ε²/8)-zCDP, where pure ε-DP alone
        gives (ε²/2)-zCDP (Durfee and Rogers 2019; Cesar and Rogers 2021, Lemma 3.4).
        """
        return cls._from_loss(Kind.BOUNDED_RANGE, epsilon, adjacency)

    @classmethod
    def _from_loss(cls, kind: Kind, epsilon: Number, adjacency: str | Adjacency) -> "Guarantee":
        exact = exactly(epsilon, "epsilon")
        return cls(kind, Adjacency.parse(adjacency), exact, Fraction(0), exact**2 / FACTORS[kind])

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number, adjacency: str | Adjacency) -> "Guarantee":
        """(ε, δ)-DP with 0 < δ < 1: P(D)(A) ≤ e^ε P(D')(A) + δ for every set A of outputs."""
        exact = exactly(epsilon, "epsilon"), exactly(delta, "delta")
        return cls(Kind.APPROXIMATE, Adjacency.parse(adjacency), *exact, None)

    @classmethod
    def zcdp(
        cls, rho: Number, adjacency: str | Adjacency, epsilon: Number | None = None, delta: Number = 0
    ) -> "Guarantee":
        """ρ-zCDP (Bun and Steinke 2016): D_α(P‖Q) ≤ αρ for all α > 1.

        **Arguments:** `delta`: at which `.epsilon` is stated; at 0 it is infinite. `epsilon`: None for the ε that
        follows there, or a larger one. Raises ValueError if a given ε is smaller.
        """
        return cls._state_at(Kind.ZCDP, exactly(rho, "rho"), adjacency, epsilon, delta)

    @classmethod
    def gaussian(
        cls, mu: Number, adjacency: str | Adjacency, epsilon: Number | None = None, delta: Number = 0
    ) -> "Guarantee":
        """μ-Gaussian DP, hence (μ²/2)-zCDP: no test tells P from Q better than N(0, 1) from N(μ, 1).

        Gaussian noise of deviation σ on a statistic of l2 sensitivity Δ has μ = Δ/σ, and of several such together
        μ² = Σμ_k² (Dong, Roth and Su 2022, Theorem 2.7, Corollary 3.3).

        **Arguments:** `epsilon`, `delta`: as for `zcdp`.
        """
        return cls._state_at(Kind.GAUSSIAN, exactly(mu, "mu") ** 2 / 2, adjacency, epsilon, delta)

    @classmethod
    def _state_at(
        cls,
        kind: Kind,
        rho: Fraction,
        adjacency: str | Adjacency,
        epsilon: Number | None,
        delta: Number,
    ) -> "Guarantee":
        bare = cls(kind, Adjacency.parse(adjacency), None, exactly(delta, "delta"), rho)
        return bare.stated(delta, epsilon)

    @classmethod
    def composed(cls, parts: Sequence["Guarantee"]) -> "Guarantee":
        """Composes several releases of the same records: Σε, Σδ and Σρ, exactly, in any order and grouping.

        For a certificate compose its `cost`, which is proved of the release. Distances of laws that are near others
        (`within`) add up.

        Later releases and their numbers may depend on earlier ones, as long as the sum that is used stays within a
        limit that was fixed beforehand (`kngjax.accounting.composition.Sums`). Raises ValueError if adjacencies differ,
        which `to_replace` may mend, and if Σδ ≥ 1.
        """
        return cls.counted((part, 1) for part in parts)

    @classmethod
    def counted(cls, parts: Iterable[tuple["Guarantee", int]]) -> "Guarantee":
        """Composes guarantees as `composed` does, each with how many times it counts, at least once."""
        counts: Counter[Guarantee] = Counter()
        for part, count in parts:
            counts.update({one: count * number for one, number in part.parts or ((part, 1),)})
        adjacencies = {part.adjacency for part in counts}
        if len(adjacencies) != 1:
            raise ValueError(
                "only guarantees for one and the same adjacency compose"
                + (": take to_replace() of those for 'add_remove'" if adjacencies else "; there are none here")
            )
        unit = one_unit(counts)
        ordered = tuple(sorted(counts.items(), key=lambda item: item[0]._order()))
        sums = Sums.of(ordered)
        has_rho = all(part.exact_rho is not None for part, _ in ordered)
        distance = total((part.exact_distance, count) for part, count in ordered)
        rho = sums.rho if has_rho else None
        numbers = sums.losses, sums.failures, rho
        return cls(Kind.COMPOSED, adjacencies.pop(), *numbers, ordered, distance, unit=unit)

    @classmethod
    def parallel(cls, parts: Iterable["Guarantee"]) -> "Guarantee":
        """Composes mechanisms for 'add_remove', each on one group: a public function of a record alone gives its group.

        The worst of their guarantees holds. Under 'replace' its `to_replace()` holds, 2ε for ε, since a record that
        leaves one group may enter another. `kngjax.accounting.parallel` has the proof. Raises ValueError for no parts,
        for parts for 'replace', under which the size of a group would be public, for distances that reach 1, and for
        parts that protect persons, who have all their votes in each group: compose those.
        """
        return in_parallel(parts)

    def _order(self) -> tuple[Any, ...]:
        numbers = (self.exact_epsilon, self.exact_delta, self.exact_rho, self.exact_distance)
        inner = () if self.ideal is None else self.ideal._order()
        parts = tuple((*part._order(), count) for part, count in self.parts)
        return str(self.kind), *(-1 if number is None else number for number in numbers), parts, inner

    def of(self, unit: str) -> "Guarantee":
        """Copies the guarantee for another unit, for which its numbers were proved."""
        parts, ideal = tuple((part.of(unit), count) for part, count in self.parts), self.ideal and self.ideal.of(unit)
        return self if unit == self.unit else dataclasses.replace(self, unit=unit, parts=parts, ideal=ideal)

    def within(self, distance: Number) -> "Guarantee":
        """The guarantee of a law that lies within η in total variation of one with this guarantee, on every data set.

        It is (ε, δ + (1 + e^ε)η)-DP at each (ε, δ) of the other; distances in a composition add up (`nearness.within`).

        **Arguments:** `distance`: η in [0, 1), public. Raises ValueError for others, and where all distances reach 1.
        """
        return nearness.within(self, distance).of(self.unit)

    def apart(self) -> tuple["Guarantee", Fraction]:
        """The guarantee of the law nearby and the distance from it; this guarantee and 0 if it is near no other law."""
        if self.exact_distance == 0 or self.ideal is not None:
            return self.ideal or self, self.exact_distance
        return Guarantee.counted((part.apart()[0], count) for part, count in self.parts), self.exact_distance

    @property
    def epsilon(self) -> float:
        """ε at `delta`, rounded outward; infinite where nothing finite is known there."""
        return math.inf if self.exact_epsilon is None else outward(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """δ at which `epsilon` is stated, rounded outward."""
        return outward(self.exact_delta)

    @property
    def rho(self) -> float | None:
        """ρ of zCDP, rounded outward; None where none is known."""
        return None if self.exact_rho is None else outward(self.exact_rho)

    @property
    def distance(self) -> float:
        """The distance in total variation from a law with a better guarantee, rounded outward; 0 unless by `within`."""
        return outward(self.exact_distance)

    @property
    def mu(self) -> float | None:
        """μ of Gaussian DP, rounded outward: of Gaussian guarantees and of compositions of such alone."""
        is_gaussian = all(part.kind is Kind.GAUSSIAN for part, _ in self.parts or ((self, 1),))
        return root_outward(2 * self.exact_rho) if is_gaussian and self.exact_rho else None

    def at(self, *, delta: float | None = None, epsilon: float | None = None) -> float:
        """ε at a given δ, or δ at a given ε, rounded outward. Infinite, or 1, where nothing better is known.

        Pure and approximate guarantees are converted by randomised response, the worst mechanism that has them; bounded
        range and Gaussian DP by their exact profiles; zCDP by the optimal Rényi conversion. A law near another takes
        that one's conversion, with room for (1 + e^ε)η. A composition takes the best of three sums: Σε at Σδ, and
        Σρ or √Σμ² for the parts that have it with Σε, Σδ for the others. These sums also hold if releases depend on
        earlier ones. If all numbers were fixed beforehand, `to_pld` may give less.

        **Arguments:** `delta`: in [0, 1). `epsilon`: in nats, at least 0. Give one of them, else ValueError.
        """
        if (delta is None) == (epsilon is None):
            raise ValueError("name either delta, for epsilon there, or epsilon, for delta there")
        if epsilon is not None:
            if not 0.0 <= epsilon < math.inf:
                raise ValueError(f"epsilon must be at least 0 and finite, got {epsilon}")
            return profiles.at(self, "delta", float(epsilon))
        if delta is None or not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be at least 0 and below 1, got {delta}")
        return profiles.at(self, "epsilon", float(delta))

    def stated(self, delta: Number, epsilon: Number | None = None) -> "Guarantee":
        """Restates this guarantee at another δ: with the ε that follows there, or with a larger one.

        **Arguments:** `delta`: in [0, 1). `epsilon`: None for `at(delta=delta)`. Raises ValueError for an ε that does
        not follow, and for pure, bounded-range and approximate guarantees, which are their two numbers.
        """
        if self.kind in FACTORS or self.kind is Kind.APPROXIMATE:
            raise ValueError(f"a guarantee of kind {self.kind} is what it states: ask at(delta=...) or at(epsilon=...)")
        exact = exactly(delta, "delta")
        least = self.at(delta=inward(exact))
        if epsilon is None:
            loss = exactly(least) if least < math.inf else None
        elif (loss := exactly(epsilon, "epsilon")) < 0 or (
            inward(loss) < least and self.at(epsilon=inward(loss)) > outward(exact)
        ):
            raise ValueError(
                f"this {self.kind} guarantee is not ({float(loss):g}, {float(exact):g})-differential privacy: epsilon "
                f"there is {least:.6g}"
            )
        return dataclasses.replace(self, exact_epsilon=loss, exact_delta=exact)

    def explain(self) -> str:
        """The guarantee in one sentence for a reader who knows differential privacy."""
        return sentence(self)

    __str__ = explain

    def to_replace(self) -> "Guarantee":
        """The guarantee when one record is exchanged for another, which is a removal and an addition.

        It has 2ε and (1 + e^ε)δ, 4ρ, 2μ (`kngjax.accounting.exchanges`). Raises ValueError where (1 + e^ε)δ ≥ 1.
        """
        if self.adjacency is Adjacency.REPLACE:
            return self
        return convert_to_replace(self).of(self.unit)

    def to_add_remove(self) -> "Guarantee":
        """Returns this guarantee if it is for 'add_remove'; raises ValueError for 'replace'.

        Under 'replace' all neighbours have the same n, so publishing n costs nothing. Under 'add_remove' no finite ε
        with δ < 1 covers it.
        """
        if self.adjacency is Adjacency.REPLACE:
            raise ValueError(
                "a guarantee for 'replace' says nothing of 'add_remove': to publish the number of records is private "
                "under the one and not under the other. State the mechanism itself for 'add_remove'"
            )
        return self

    def to_dp_event(self) -> Any:
        """An event of dp-accounting (an extra: `pip install 'kngjax[accounting]'`) that costs no less than this.

        Bounded range becomes a `ZCDpEvent` of ρ = ε²/8, zCDP one of its ρ, and pure ε-DP one of ρ = ε²/2. Gaussian DP
        becomes a `GaussianDpEvent` of 1/μ. The RDP accountant takes all of these. Numbers are for this guarantee's
        adjacency, whichever relation the accountant is told. Raises ValueError where there is no ρ; `to_pld` takes
        (ε, δ).
        """
        return pld.event_of(self)

    def to_pld(self, interval: float = 1e-4) -> Any:
        """A `PrivacyLossDistribution` of dp-accounting (an extra) that dominates every mechanism with this guarantee.

        For (ε, δ) it is made by `from_privacy_parameters`; for bounded range and zCDP from their profiles. For a
        composition it is valid if the parts' numbers were all fixed beforehand. zCDP parts and Gaussian parts are
        added up first. **Arguments:** `interval`: of its grid of losses, in nats, to which each part is rounded
        outward.
        """
        return pld.distribution_of(self, interval)

    def _repr_html_(self) -> str:
        return SummaryTable("Guarantee", figures(self), notes=[self.explain()])._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary. What floats cannot say is under "exactly", as fractions; an infinite ε is null."""
        return fields_of(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Guarantee":
        """The inverse of `to_dict`; refuses a record whose numbers do not fit together."""
        return rebuild(cls, fields)
