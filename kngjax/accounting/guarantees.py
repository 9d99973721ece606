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
    `composed`: several releases of the same records together; their ε and ρ add up.
    """

    BOUNDED_RANGE = "bounded_range"
    PURE = "pure"
    COMPOSED = "composed"


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """Pure ε-DP and ρ-zCDP of one draw from exactly a mechanism's law, for one adjacency.

    Made by `bounded_range`, `pure` or `composed`, which compute ρ.

    **Arguments:**

    - `epsilon`: the pure-DP parameter, in nats.
    - `rho`: the zCDP parameter.
    - `adjacency`: the pairs of data sets that it is stated for.
    - `kind`: where ρ comes from.
    """

    epsilon: float
    rho: float
    adjacency: Adjacency
    kind: Kind

    def __post_init__(self):
        factor = {Kind.BOUNDED_RANGE: 8.0, Kind.PURE: 2.0}.get(self.kind)
        sound = 0 < self.epsilon < math.inf and 0 < self.rho <= self.epsilon**2 / 2.0 * (1.0 + 1e-12)
        if factor is not None:
            sound = sound and math.isclose(self.rho, self.epsilon**2 / factor)
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
        return cls(epsilon, epsilon**2 / 8.0, adjacency, Kind.BOUNDED_RANGE)

    @classmethod
    def pure(cls, epsilon: float, adjacency: Adjacency) -> "Guarantee":
        """ε-DP, hence (ε²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4)."""
        return cls(epsilon, epsilon**2 / 2.0, adjacency, Kind.PURE)

    @classmethod
    def composed(cls, parts: Sequence["Guarantee"]) -> "Guarantee":
        """Several releases of the same records: Σε and Σρ. Raises ValueError if their adjacencies differ."""
        adjacencies = {part.adjacency for part in parts}
        if len(adjacencies) != 1:
            raise ValueError("only guarantees for one and the same adjacency compose")
        epsilon, rho = math.fsum(part.epsilon for part in parts), math.fsum(part.rho for part in parts)
        return cls(epsilon, rho, adjacencies.pop(), Kind.COMPOSED)

    @property
    def delta(self) -> float:
        """0: the guarantee is pure."""
        return 0.0

    def explain(self) -> str:
        """The guarantee in one sentence for a reader who knows differential privacy."""
        pairs = {
            Adjacency.REPLACE: "two data sets of the same size that differ in one record",
            Adjacency.ADD_REMOVE: "two data sets of which one has one record more",
        }[self.adjacency]
        reason = {
            Kind.BOUNDED_RANGE: "bounded range, rho = epsilon^2/8",
            Kind.PURE: "rho = epsilon^2/2",
            Kind.COMPOSED: "sums over the parts",
        }[self.kind]
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
        epsilon, rho = float(fields["epsilon"]), float(fields["rho"])
        return cls(epsilon, rho, Adjacency.parse(fields["adjacency"]), Kind(fields["kind"]))
