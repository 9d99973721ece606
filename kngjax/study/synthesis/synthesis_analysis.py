"""A synthesis is one of the analyses of a study's table, by one debit."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.adjacency import Adjacency
from kngjax.data.passes import Passes
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release
from kngjax.study.checks import DeclaredColumn
from kngjax.study.steps import AbstractAnalysis, Step
from kngjax.study.synthesis.columns import Category
from kngjax.study.synthesis.plans import SynthesisPlan
from kngjax.study.synthesis.synthetic_tables import SyntheticTable


@dataclasses.dataclass(frozen=True)
class SynthesisAnalysis(AbstractAnalysis):
    """Releases all parts of a synthetic table by one debit. Public.

    **Arguments:** `synthesis`: its plan. `count`: n where it is public and known, else None.
    """

    synthesis: SynthesisPlan
    count: int | None
    title: str = "synthesis"

    @property
    def adjacency(self) -> Adjacency:
        """Returns the adjacency of the plan."""
        return self.synthesis.adjacency

    @property
    def what(self) -> str:
        return self.title

    @property
    def columns(self) -> list[DeclaredColumn]:
        """Lists what was said of each column, for the owner's check."""
        return [
            DeclaredColumn(one.name, None, one.levels, one.missing, has_others=True)
            if isinstance(one, Category)
            else DeclaredColumn(one.name, one.facts[0], None, getattr(one, "missing", None))
            for one in self.synthesis.columns
        ]

    @property
    def notes(self) -> list[str]:
        return [f"{self.title}, {part.label}: {part.what}" for part in self.synthesis.parts()]

    def check(self, frame: Any) -> Any:
        return self.synthesis.check(frame)

    def records(self, frame: Any) -> Any:
        values = self.synthesis.records(frame, self.count)
        if isinstance(values, Passes):
            return values
        if self.count is not None and any(len(one) != self.count for one in values.values()):
            raise RuntimeError("the frame has another number of records than its releases are certified for")
        return values

    def steps(self, number: int | None = None) -> list[Step]:
        return [Step(self.title if number is None else f"{number}. {self.title}", self)]

    def words_of(self, part: None) -> dict[str, Any]:
        return {"synthesis": self.synthesis.to_dict()}

    def plan_of(self, part: None, num_records: int | None) -> Plan:
        return self.synthesis.plan_for(self.count)

    def prepare(self, part: None, records: Any) -> None:
        """Does nothing: values that were read need no preparation."""

    def made_by(self, steps: Sequence[Any]) -> "SynthesisAnalysis":
        return self

    def table(self, releases: Sequence[Release]) -> SyntheticTable:
        """Makes the table of the releases of all parts."""
        return SyntheticTable(self.synthesis, releases, self.count)
