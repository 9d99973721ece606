"""Divides the records of a table into groups by public levels, and says what all groups cost together."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency
from kngjax.accounting.guarantees import Guarantee

Level = str | float | int | bool


def how_priced(adjacency: Adjacency, unit: str = RECORD) -> str:
    """Says what all groups together cost, by parallel composition, from what each costs for 'add_remove'."""
    if unit != RECORD:
        twice = "twice " if adjacency is Adjacency.REPLACE else ""
        return f"{twice}what the dearest group costs, as rows of one {unit} share that {unit}'s votes over all groups"
    if adjacency is Adjacency.REPLACE:
        return "parallel composition: twice the worst of the groups, as an exchanged record may change two of them"
    return "parallel composition: the worst of the groups"


def _divided(unit: str) -> str:
    return "records" if unit == RECORD else "rows"


@dataclasses.dataclass(frozen=True)
class Division:
    """Divides records into groups by the public levels of some of their columns.

    **Arguments:** `by`: the columns. `levels`: those that are declared of each column.
    """

    by: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]

    def __len__(self) -> int:
        return math.prod(map(len, self.levels))

    def groups(self) -> Iterator[tuple[Level, ...]]:
        """Lists the level of each column for every group, whether or not a record has these levels."""
        return itertools.product(*self.levels)

    def name(self, group: tuple[Level, ...]) -> str:
        """Names a group in words, like "region = north, sex = female"."""
        return ", ".join(f"{column} = {level}" for column, level in zip(self.by, group, strict=True))

    def explain(self, unit: str = RECORD) -> str:
        """Says in words how records are divided. **Arguments:** `unit`: whom guarantees protect."""
        columns = "; ".join(
            f"{column}, public levels {', '.join(map(str, levels))}"
            for column, levels in zip(self.by, self.levels, strict=True)
        )
        return f"{_divided(unit)} are divided by {columns}; each is in one group at most"

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-ready dictionary."""
        return {"by": list(self.by), "levels": [list(levels) for levels in self.levels]}


@dataclasses.dataclass(frozen=True)
class Membership:
    """Says in the certificate of a group's release which groups there are, and what all of them cost together.

    **Arguments:** `division`: into which groups. `group`: the level of each column that its records have. `together`:
    the guarantee of the releases of all groups.
    """

    division: Division
    group: tuple[Level, ...]
    together: Guarantee

    def explain(self) -> str:
        """Says in one sentence which group it is, and what all groups cost together."""
        division, together = self.division, self.together
        return (
            f"this value is of the {_divided(together.unit)} with {division.name(self.group)} alone: "
            f"{division.explain(together.unit)}. The releases "
            f"of all {len(division)} groups together are {together.explain()} "
            f"({how_priced(together.adjacency, together.unit)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-ready dictionary."""
        return {**self.division.to_dict(), "group": list(self.group), "together": self.together.to_dict()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Membership":
        """Reads what `to_dict` wrote."""
        division = Division(tuple(fields["by"]), tuple(map(tuple, fields["levels"])))
        return cls(division, tuple(fields["group"]), Guarantee.from_dict(fields["together"]))
