"""Privacy guarantees as plain numbers, each with the adjacency that it is stated for. Imports no JAX."""

import dataclasses
import enum
import math
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


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """A bounded-range guarantee: pure epsilon-DP and rho-zCDP with rho = epsilon² / 8, for one adjacency.

    KNG and the exponential mechanism draw from exp(-c s(θ; D)) with c times the change of s at most ε/2.
    The log-ratio of two neighbouring densities is c (s' - s) plus a constant, so it varies over an interval
    of length at most ε: the mechanism is ε-bounded-range. Hence it is ε-DP, and by Hoeffding's lemma
    (ε²/8)-zCDP, four times better than the ε²/2 that pure ε-DP gives in general (Durfee and Rogers 2019;
    Cesar and Rogers 2021, Lemma 3.4).

    **Arguments:**

    - `epsilon`: the pure-DP parameter, in nats.
    - `adjacency`: the pairs of data sets that it is stated for.
    """

    epsilon: float
    adjacency: Adjacency

    @property
    def rho(self) -> float:
        """The zCDP parameter ε²/8."""
        return self.epsilon**2 / 8.0

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
        return (
            f"pure {self.epsilon:g}-differential privacy, and {self.rho:.6g}-zCDP (bounded range, "
            f"rho = epsilon^2/8), for any {pairs}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "kind": "bounded_range",
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": str(self.adjacency),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Guarantee":
        """The inverse of `to_dict`; refuses a record whose rho is not what its epsilon implies."""
        guarantee = cls(float(fields["epsilon"]), Adjacency.parse(fields["adjacency"]))
        sound = guarantee.epsilon > 0 and math.isclose(fields["rho"], guarantee.rho)
        if fields.get("kind") != "bounded_range" or not sound:
            raise ValueError("this is no bounded-range guarantee: kind, epsilon and rho do not fit together")
        return guarantee
