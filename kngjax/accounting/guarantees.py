"""Privacy guarantees as plain numbers, each with the adjacency that it is stated for. Imports no JAX."""

import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import Any


class Adjacency(enum.StrEnum):
    """Which two data sets are neighbours.

    `replace`: one record is exchanged for another, n is public (Hamming distance 1; Reimherr and Awan 2019).
    `add_remove`: one record more or less, n is private (Wang 2019).
    """

    REPLACE = "replace"
    ADD_REMOVE = "add_remove"

    @classmethod
    def parse(cls, adjacency: "str | Adjacency | None") -> "Adjacency":
        """The adjacency that a caller named; there is no default, since it changes every sensitivity.

        Raises ValueError if none or an unknown one was named.
        """
        if adjacency is None:
            raise ValueError(
                "adjacency must be named: 'replace' (one record exchanged, n public) "
                "or 'add_remove' (one record more or less, n private). It changes every sensitivity."
            )
        try:
            return cls(adjacency)
        except ValueError:
            raise ValueError(f"adjacency must be 'replace' or 'add_remove', got {adjacency!r}") from None


class Kind(enum.StrEnum):
    """What is known of a mechanism's log-ratios beyond |log f_D - log f_D'| ≤ ε.

    `bounded_range`: they vary by at most ε over the outputs, so ρ = ε²/8. `pure`: nothing more, so ρ = ε²/2.
    `approximate`: not even that, but with probability δ; nothing is said of ρ.
    `composed`: several releases of the same records together; their ε, δ and ρ add up.
    """

    BOUNDED_RANGE = "bounded_range"
    PURE = "pure"
    APPROXIMATE = "approximate"
    COMPOSED = "composed"


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-DP of one draw from exactly a mechanism's law, for one adjacency, and ρ-zCDP where that is known.

    Made by `bounded_range`, `pure`, `approximate` or `composed`, which compute ρ.

    **Arguments:**

    - `epsilon`: in nats. `delta`: 0 if the guarantee is pure.
    - `rho`: the zCDP parameter, None where none is known.
    - `adjacency`: the pairs of data sets that it is stated for.
    - `kind`: what it rests on.
    """

    epsilon: float
    delta: float
    rho: float | None
    adjacency: Adjacency
    kind: Kind

    def __post_init__(self):
        sound = 0 <= self.epsilon < math.inf and 0 <= self.delta < 1
        if self.delta > 0:
            sound = sound and self.rho is None and self.kind in (Kind.APPROXIMATE, Kind.COMPOSED)
        else:
            factor = {Kind.BOUNDED_RANGE: 8.0, Kind.PURE: 2.0}.get(self.kind)
            rho = math.nan if self.rho is None else self.rho
            sound = sound and self.epsilon > 0 and self.kind is not Kind.APPROXIMATE
            sound = sound and 0 < rho <= self.epsilon**2 / 2.0 * (1.0 + 1e-12)
            sound = sound and (factor is None or math.isclose(rho, self.epsilon**2 / factor))
        if not sound:
            raise ValueError(f"the numbers of a {self.kind} guarantee do not fit together")

    @classmethod
    def bounded_range(cls, epsilon: float, adjacency: Adjacency) -> "Guarantee":
        """ε-bounded-range, hence ε-DP and (ε²/8)-zCDP.

        KNG and the exponential mechanism draw from exp(-c s(θ; D)) with c times the change of s at most ε/2. The
        log-ratio of two neighbouring densities is c (s' - s) plus a constant, so it varies over an interval of length
        at most ε. By Hoeffding's lemma that is (ε²/8)-zCDP, four times better than what pure ε-DP gives in general
        (Durfee and Rogers 2019; Cesar and Rogers 2021, Lemma 3.4).
        """
        return cls(epsilon, 0.0, epsilon**2 / 8.0, adjacency, Kind.BOUNDED_RANGE)

    @classmethod
    def pure(cls, epsilon: float, adjacency: Adjacency) -> "Guarantee":
        """ε-DP, hence (ε²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4)."""
        return cls(epsilon, 0.0, epsilon**2 / 2.0, adjacency, Kind.PURE)

    @classmethod
    def approximate(cls, epsilon: float, delta: float, adjacency: Adjacency) -> "Guarantee":
        """(ε, δ)-DP with 0 < δ < 1: P(D)(A) ≤ e^ε P(D')(A) + δ for every set A of outputs."""
        return cls(epsilon, delta, None, adjacency, Kind.APPROXIMATE)

    @classmethod
    def composed(cls, parts: Sequence["Guarantee"]) -> "Guarantee":
        """Several releases of the same records: Σε, Σδ and Σρ. Raises ValueError if their adjacencies differ.

        Σδ ≥ 1 promises nothing and is refused too.
        """
        adjacencies = {part.adjacency for part in parts}
        if len(adjacencies) != 1:
            raise ValueError("only guarantees for one and the same adjacency compose")
        rhos = [part.rho for part in parts if part.rho is not None]
        rho = math.fsum(rhos) if len(rhos) == len(parts) else None
        epsilon, delta = math.fsum(part.epsilon for part in parts), math.fsum(part.delta for part in parts)
        return cls(epsilon, delta, rho, adjacencies.pop(), Kind.COMPOSED)

    def explain(self) -> str:
        """The guarantee in one sentence for a reader who knows differential privacy."""
        pairs = {
            Adjacency.REPLACE: "two data sets of the same size that differ in one record",
            Adjacency.ADD_REMOVE: "two data sets of which one has one record more",
        }[self.adjacency]
        if self.rho is None:
            return f"({self.epsilon:g}, {self.delta:g})-differential privacy, for any {pairs}"
        reason = {
            Kind.BOUNDED_RANGE: "bounded range, rho = epsilon^2/8",
            Kind.PURE: "rho = epsilon^2/2",
        }.get(self.kind, "sums over the parts")
        return f"pure {self.epsilon:g}-differential privacy, and {self.rho:.6g}-zCDP ({reason}), for any {pairs}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "kind": str(self.kind),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": str(self.adjacency),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Guarantee":
        """The inverse of `to_dict`; refuses a record whose numbers do not fit together."""
        if fields.get("kind") not in list(Kind):
            raise ValueError("this is no guarantee: kind, epsilon and rho do not fit together")
        rho = None if fields["rho"] is None else float(fields["rho"])
        epsilon, delta = float(fields["epsilon"]), float(fields["delta"])
        return cls(epsilon, delta, rho, Adjacency.parse(fields["adjacency"]), Kind(fields["kind"]))
