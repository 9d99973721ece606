"""A synthesis in a file: the plan of `kngjax.synthesis`, its release by `kngjax.synthesize`, and tables drawn of it."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import kngjax as kng
from kngjax.command import registry, resuming
from kngjax.command.planned import AbstractPlanned
from kngjax.command.synthesis_config import KINDS, SynthesisConfig
from kngjax.estimators.carrying_out import SharedRecords
from kngjax.estimators.checks import DeclaredColumn
from kngjax.estimators.synthesis.synthetic_tables import MOST_ROWS
from kngjax.releases import totals

LABEL = "synthesis"


@dataclasses.dataclass(frozen=True)
class AnalysisOfColumns:
    """Answers what a job asks of any analysis, for the columns of a plan. **Arguments:** `plan`: public."""

    plan: kng.SynthesisPlan

    def check(self, frame: Any) -> Any:
        """Returns the table of a frame, as `kngjax.SynthesisPlan.check` does."""
        return self.plan.check(frame)

    def records(self, frame: Any) -> Any:
        """The values of all columns. Private."""
        return self.plan.read(frame)


@dataclasses.dataclass(frozen=True)
class SynthesisStep:
    """The one release of a synthetic table, which one debit pays for.

    **Arguments:** all public. `analysis`: of the plan. `count`: n where it is public and known, else None.
    """

    analysis: AnalysisOfColumns
    count: int | None
    label: str = LABEL
    mechanisms: tuple[Any, ...] = ()
    sampler: Any = None

    @property
    def plan(self) -> kng.SynthesisPlan:
        """Returns the plan of all columns."""
        return self.analysis.plan

    @property
    def words(self) -> dict[str, Any]:
        """Describes the release for the ledger that pays for it."""
        return {"synthesis": self.plan.to_dict()}

    @property
    def law(self) -> kng.Guarantee:
        """States what all parts cost together."""
        return self.plan.cost

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Certifies each part, in order. **Arguments:** `num_records`: used where it is public."""
        return list(self.plan.certificates(self.plan.adjacency.public_count(num_records)).values())

    def owed(self, num_records: int) -> tuple[kng.Guarantee, bool]:
        """States what a ledger debits, and whether it is proved that the release costs no more."""
        return self.plan.owed(self.certificates(num_records))

    def prepare(self, records: Any) -> None:
        """Nothing can be amiss with values that were read."""

    def release(self, records: SharedRecords, debit: kng.Reservation | None, progress: bool | None = None) -> list[Any]:
        """The release, after its debit. Raises as `kngjax.synthesize`."""
        return [kng.synthesize(self.plan, records.frame, debit)]

    def kept(self, releases: Sequence[Any]) -> list[Any]:
        """Makes the released table of what a ledger keeps: the releases of all parts."""
        return [kng.SyntheticTable(self.plan, releases, self.count)]


class PlannedSynthesis(AbstractPlanned):
    """Plans the job of a file with [synthesis].

    **Arguments:** `num_records`: n, used where it is public.
    """

    def __init__(self, config: SynthesisConfig, num_records: int | None):
        self.config = config
        columns = [_made(column, number, config) for number, column in enumerate(config.columns, start=1)]
        try:
            self.plan = kng.synthesis(columns, **config.settings)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{config.path}: [synthesis] {registry.in_toml(str(error))}") from None
        if config.draws is not None and (rows := config.draws.num_rows or 0) > MOST_ROWS:
            raise ValueError(f"{config.path}: [synthesis.draws] num_rows: must be at most {MOST_ROWS:,}, not {rows:,}")
        count = self.plan.adjacency.public_count(num_records)
        self.steps = (SynthesisStep(AnalysisOfColumns(self.plan), count),)
        self.columns = [_declared(one) for one in columns]

    def results(self, made: Any) -> list[kng.SyntheticTable]:
        return [table for step in self.steps for table in made.get(step.label, ())]

    def lines(self, num_records: int) -> list[str]:
        (step,) = self.steps
        # Whatever public facts refuse.
        step.certificates(num_records)
        *rows, _ = self.plan.rows()
        return [f"{label}: {words}" for label, words in rows]

    def text(self, results: Sequence[kng.SyntheticTable]) -> str:
        return "\n\n".join(table.summary() for table in results)

    def to_dict(self, results: Sequence[kng.SyntheticTable]) -> dict[str, Any]:
        cost = totals.total(table.cost for table in results)
        (table,) = results or (None,)
        return {
            "missing": [] if results else [LABEL],
            "privacy": {
                "epsilon": None if cost is None or cost.exact_epsilon is None else cost.epsilon,
                "delta": None if cost is None else cost.delta,
                "adjacency": self.config.adjacency,
                "guarantee": None if cost is None else cost.to_dict(),
            },
            "synthesis": None if table is None else json.loads(table.to_json()),
        }


def _declared(column: Any) -> DeclaredColumn:
    if isinstance(column, kng.Category):
        return DeclaredColumn(column.name, None, column.levels, column.missing, has_others=True)
    return DeclaredColumn(column.name, column.facts[0], None, column.missing)


def _made(column: Any, number: int, config: SynthesisConfig) -> Any:
    try:
        return registry.public(KINDS[column.kind])(**column.settings)
    except (TypeError, ValueError) as error:
        where = f"{config.path}: [[synthesis.columns]] number {number}, {column.kind}: "
        raise type(error)(where + registry.in_toml(str(error))) from None


def refuse_to_replace(config: SynthesisConfig, directory: pathlib.Path) -> None:
    """Raises ValueError where a file lies in the place of a table that would be drawn: it may be that of the data."""
    for name in () if config.draws is None else config.draws.files:
        if (directory / name).exists():
            raise ValueError(
                f"{directory / name} exists: move it away, or give [synthesis.draws] another file; --resume and "
                "--force replace it"
            )


def write_draws(config: SynthesisConfig, table: kng.SyntheticTable, directory: pathlib.Path) -> list[pathlib.Path]:
    """Tables that are drawn of a release, which is free, as CSV files of an existing directory; returns their paths.

    **Arguments:** `table`: released. `config`: says how many, of how many rows, and from which keys.
    """
    if config.draws is None:
        return []
    paths = []
    for name, seed in zip(config.draws.files, config.draws.seeds, strict=True):
        paths.append(directory / name)
        drawn = table.draw(config.draws.num_rows, key=kng.research_key(seed))
        resuming.replace(paths[-1], drawn.to_csv(index=False))
    return paths
