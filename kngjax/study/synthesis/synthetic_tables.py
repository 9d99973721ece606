"""A released synthetic table: as many tables of rows as are wanted, drawn from one release."""

import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

import kngjax as kng
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.later import pd, plt
from kngjax.core.pictures import axes_of, style
from kngjax.core.randomness import require_typed_key
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.mechanisms.parameters import check_count
from kngjax.owner.utility_report import UtilityReport
from kngjax.study.synthesis.columns import AbstractColumn
from kngjax.study.synthesis.comparisons import compare
from kngjax.study.synthesis.drawing import drawn_values
from kngjax.study.synthesis.parts import AbstractPart, RowsPart
from kngjax.study.synthesis.plans import SynthesisPlan

# More rows would not fit into memory, and would end the process that has the data.
MOST_ROWS = 10**8


class SyntheticTable(AbstractKeptAsJson, AbstractSummarised):
    """Holds the counts and curves that `kngjax.synthesize` released, with their certificates. Draws of them are free.

    **Arguments:** `plan`: public. `releases`: those of the plan's parts, in order. `num_records`: n where it is public;
    None where the number of rows is released too.
    """

    def __init__(self, plan: SynthesisPlan, releases: Any, num_records: int | None):
        if not isinstance(plan, SynthesisPlan) or not all(isinstance(one, kng.Release) for one in releases):
            raise TypeError("a synthetic table is made by kngjax.synthesize(plan, frame), or read by from_json")
        self.plan, self.num_records = plan, num_records
        self._parts = plan.parts(num_records)
        self.releases: Mapping[str, kng.Release] = dict(
            zip((part.label for part in self._parts), releases, strict=True)
        )

    @property
    def certificates(self) -> dict[str, kng.releases.Certificate]:
        """Returns the certificate of each release, by its label."""
        return {label: release.certificate for label, release in self.releases.items()}

    @functools.cached_property
    def cost(self) -> kng.Guarantee:
        """Composes the guarantees of all releases; tables that are drawn from them add nothing."""
        return self.plan.owed(list(self.certificates.values()))[0]

    @property
    def guarantee(self) -> kng.Guarantee:
        """Returns `cost`, under the name that it has in other results."""
        return self.cost

    @property
    def num_rows(self) -> int:
        """Returns the number of rows of a table that is drawn without another number.

        It is n where that is public, else the released number, clipped to what the plan promises in public.
        """
        if self.num_records is not None:
            return self.num_records
        return int(np.clip(self.releases["rows"].value[0], 1, min(self.plan.max_records or MOST_ROWS, MOST_ROWS)))

    def draw(self, num_rows: int | None = None, *, key: PRNGKeyArray) -> "pd.DataFrame":
        """Draws a table of synthetic rows; another key draws another one. Free: post-processing of the releases.

        **Arguments:** `num_rows`: `num_rows` of this object if left out. `key`: `kngjax.research_key(seed)`; it may be
        public.
        """
        return pd.DataFrame(self.columns_of(num_rows, key))

    def columns_of(self, num_rows: int | None, key: PRNGKeyArray) -> dict[str, np.ndarray]:
        """Draws the columns of a table, as `draw` does, into arrays by name."""
        require_typed_key(key)
        rows = self.num_rows if num_rows is None else int(check_count("num_rows", num_rows, "how many rows to draw"))
        if rows > MOST_ROWS:
            raise ValueError(
                f"num_rows must be at most {MOST_ROWS:,}, not {rows:,}: draw several tables, by other keys"
            )
        values = drawn_values(self.plan.columns, self._of_columns, rows, key)
        return {column.name: column.shown(values[column.name]) for column in self.plan.columns}

    def compared(self, frame: Any, formula: str | None = None, key: PRNGKeyArray | None = None) -> UtilityReport:
        """Compares a draw of this table with the private one, for `kngjax.owner.utility`. FOR THE DATA OWNER ONLY."""
        real = self.plan.shown(frame)
        rows = len(next(iter(real.values())))
        return compare(self.plan, real, self.columns_of(rows, kng.research_key(0) if key is None else key), formula)

    @functools.cached_property
    def _of_columns(self) -> dict[str, list[tuple[AbstractPart, kng.Release]]]:
        """The parts of each column, with what was released."""
        found: dict[str, list[tuple[AbstractPart, kng.Release]]] = {column.name: [] for column in self.plan.columns}
        for part in self._parts:
            if not isinstance(part, RowsPart):
                found[part.column_name].append((part, self.releases[part.label]))
        return found

    def summary(self) -> SummaryTable:
        """Lays out a line for each release, what it cost, and the sum."""
        return self.plan.table_of("Synthetic table", self._parts, self.certificates)

    def explain(self) -> str:
        """Returns the summary, and the certificate of each release as text."""
        every = [f"{label}\n{certificate.explain()}" for label, certificate in self.certificates.items()]
        return "\n\n".join([str(self.summary()), *every])

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.plan.columns)
        return (
            f"<SyntheticTable of {names}; {self.num_rows} rows; {self.cost.explain()}; draw(key=...) makes tables, and "
            "summary() says more>"
        )

    def plot(self, key: PRNGKeyArray | None = None) -> Any:
        """Draws a table and plots its columns, levels as bars and numbers as histograms; returns Matplotlib's axes."""
        drawn = self.columns_of(None, kng.research_key(0) if key is None else key)
        every = self.plan.columns
        axes = np.atleast_1d(plt.subplots(1, len(every), figsize=(3.2 * len(every), 3.0), layout="constrained")[1])
        for column, axis in zip(every, axes, strict=True):
            _draw_margin(axis, column, drawn[column.name])
        return axes

    def to_json(self) -> str:
        """Returns the plan and all releases with their certificates: canonical JSON."""
        fields = {
            "plan": self.plan.to_dict(),
            "num_records": self.num_records,
            "releases": [json.loads(one.to_json()) for one in self.releases.values()],
        }
        return json.dumps(fields, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "SyntheticTable":
        """Reads the text of `to_json`; raises ValueError for other text, such as the name of a file."""
        try:
            fields = json.loads(text)
        except ValueError:
            raise ValueError(
                "this is no JSON: text must be what to_json() returned, of a file pathlib.Path(name).read_text()"
            ) from None
        if not isinstance(fields, dict) or not {"plan", "num_records", "releases"} <= fields.keys():
            raise ValueError("this JSON is of no synthetic table: text must be what SyntheticTable.to_json() returned")
        releases = [kng.Release.from_json(json.dumps(one)) for one in fields["releases"]]
        return cls(SynthesisPlan.from_dict(fields["plan"]), releases, fields["num_records"])


def _draw_margin(axis: Any, column: AbstractColumn, values: np.ndarray) -> None:
    """Draws the margin of one column on its axis."""
    if column.is_parent:
        labels = [str(label) for label in column.labels]
        shown = [str(value) for value in values.tolist()]
        axes_of(axis).bar(labels, [shown.count(label) for label in labels], **style(0))
    else:
        axes_of(axis).hist(values, bins=40, **style(0))
    axis.set_title(column.name)
