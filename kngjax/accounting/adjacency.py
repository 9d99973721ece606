"""Defines which data sets are neighbours. Imports no JAX."""

import enum
from collections.abc import Iterable
from typing import Any

# What neighbours differ in where nothing else is said.
RECORD = "record"
# Units whose plural no rule gives.
_PLURALS = {"child": "children", "man": "men", "woman": "women"}


class Adjacency(enum.StrEnum):
    """Says which two data sets are neighbours.

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

    def public_count(self, num_records: int | None) -> int | None:
        """Gives n where neighbours share it, under replace; None under add_remove, where n is private."""
        return num_records if self is Adjacency.REPLACE else None

    @property
    def event(self) -> str:
        """The step from a data set to a neighbour in words."""
        return "exchanging one record" if self is Adjacency.REPLACE else "one record more or less"

    def pairs(self, unit: str = RECORD) -> str:
        """The pairs of neighbours in words. **Arguments:** `unit`: whom a guarantee protects."""
        if unit != RECORD:
            several = plural(unit)
            if self is Adjacency.REPLACE:
                return f"two tables of the same number of {several} that differ in all rows of one {unit}, however many"
            return f"two tables of which one has one {unit} more, with all rows of that {unit}, however many"
        if self is Adjacency.REPLACE:
            return "two data sets of the same size that differ in one record"
        return "two data sets of which one has one record more"


def plural(unit: str) -> str:
    """Names several units, by their last word."""
    *others, last = unit.split(" ")
    if last in _PLURALS:
        return " ".join([*others, _PLURALS[last]])
    if unit.endswith("y") and unit[-2:-1] not in "aeiou":
        return f"{unit[:-1]}ies"
    return unit + ("es" if unit.endswith(("s", "x", "z", "ch", "sh")) else "s")


def one_unit(guarantees: Iterable[Any]) -> str:
    """The unit that all these guarantees protect; raises ValueError where they protect different ones."""
    units = sorted({one.unit for one in guarantees})
    if len(units) > 1:
        raise ValueError(
            f"guarantees that protect different units do not compose: one of {' and one of '.join(units)}. Of a table "
            "of persons name them in every release, unit="
        )
    return units[0] if units else RECORD
