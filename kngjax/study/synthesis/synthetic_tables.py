"""A released synthetic table: as many tables of rows as are wanted, drawn from one release."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.errors import FAILED_OF_SYNTHESIS, holding_no_records, run_telling_refusals
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.later import pd, plt
from kngjax.core.pictures import axes_of, style
from kngjax.core.randomness import require_typed_key
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.data.tables import on_its_engine
from kngjax.mechanisms.parameters import check_count
from kngjax.owner.utility_report import UtilityReport
from kngjax.study.synthesis.columns import AbstractColumn
from kngjax.study.synthesis.comparisons import compare
from kngjax.study.synthesis.numbers import AbstractCurvedColumn
from kngjax.study.synthesis.parts import CurvesPart, TablePart
from kngjax.study.synthesis.plans import SynthesisPlan

# More rows would not fit into memory, and would end the process that has the data.
MOST_ROWS = 10**8


class SyntheticTable(AbstractKeptAsJson, AbstractSummarised):
    """Holds the counts and curves that `kngjax.synthesize` released, with their certificates. Draws of them are free.

    **Arguments:** `plan`: public. `releases`: those of the plan's parts, in order. `num_records`: n where it is public;
    None where the number of rows is released too.
    """

    title = "synthetic table"

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
        values: dict[str, np.ndarray] = {}
        for number, column in enumerate(self.plan.columns):
            # Each column has a key of its own.
            keys = jax.random.split(jax.random.fold_in(key, number))
            found: Any = None
            for part in (one for one in self._parts if one.column_name == column.name):
                released = self.releases[part.label]
                if isinstance(part, TablePart):
                    parents = [parent.places(values[parent.name]) for parent in part.columns[:-1]]
                    kept = np.flatnonzero(column.drawn)
                    places = drawn_places(released.value.reshape(part.shape)[..., kept], parents, keys[0], rows)
                    found = column.of_places(kept[places])
                elif isinstance(part, CurvesPart) and isinstance(column, AbstractCurvedColumn):
                    x = part.matrix(values)
                    drawn = kng.releases.QuantileCurves(released).draw(np.zeros((rows, 0)) if x is None else x, keys[1])
                    own = column.of_drawn(drawn)
                    found = own if found is None else np.where(np.isnan(found), own, found)
            values[column.name] = found
        return {column.name: column.shown(values[column.name]) for column in self.plan.columns}

    def compared(self, frame: Any, formula: str | None = None, key: PRNGKeyArray | None = None) -> UtilityReport:
        """Compares a draw of this table with the private one, for `kngjax.owner.utility`. FOR THE DATA OWNER ONLY."""
        real = self.plan.shown(frame)
        rows = len(next(iter(real.values())))
        return compare(self.plan, real, self.columns_of(rows, kng.research_key(0) if key is None else key), formula)

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


def probabilities(counts: Float[np.ndarray, "... levels"]) -> Float[np.ndarray, "... levels"]:
    """Turns noisy counts into probabilities: counts below 0 are 0, and where none is left all are equal."""
    kept = np.maximum(counts, 0.0)
    totals = kept.sum(axis=-1, keepdims=True)
    even = np.full(kept.shape, 1.0 / kept.shape[-1])
    return np.where(totals > 0.0, kept / np.where(totals > 0.0, totals, 1.0), even)


def drawn_places(
    released: Float[np.ndarray, "... levels"], parents: Sequence[Int[np.ndarray, " rows"]], key: PRNGKeyArray, rows: int
) -> Int[np.ndarray, " rows"]:
    """Returns a level for each row, drawn by `probabilities` at the row's own levels of the parents."""
    upper = np.cumsum(probabilities(released), axis=-1)
    upper /= upper[..., -1:]
    with float64():
        uniform = np.asarray(jax.random.uniform(key, (rows,)))
    *shape, number = upper.shape
    cells = np.ravel_multi_index(tuple(parents), tuple(shape)) if parents else np.zeros(rows, np.int64)
    order = np.argsort(cells, kind="stable")
    found, starts = np.unique(cells[order], return_index=True)
    places = np.empty(rows, np.int64)
    for cell, chosen in zip(found, np.split(order, starts[1:]), strict=bool(rows)):
        places[chosen] = np.searchsorted(upper.reshape(-1, number)[cell], uniform[chosen], side="right")
    return places


@holding_no_records(failed=FAILED_OF_SYNTHESIS)
def synthesize(
    plan: SynthesisPlan,
    frame: Any,
    ledger: kng.Ledger | kng.ledger.Reservation | None = None,
    rows: str | None = None,
    num_records: int | None = None,
) -> SyntheticTable:
    """Releases what a plan of `kngjax.synthesis.plan` says; tables are drawn from it for free, `table.draw(key=...)`.

    Columns, types and public facts are checked first, and refused in words: nothing is spent then. One debit of what
    all parts cost together comes before a value is looked at. The frame is read once, each cell by itself, and every
    part drawn by the operating system's randomness; all of them are kept at once, or none.

    **Arguments:** `plan`: public. `frame`: private; as of `kngjax.Study`. `ledger`: a budget, or a reservation of
    `plan.cost` made there. `rows`: "public" under replace, where the number of records is, "released" under add_remove;
    to say so is to be sure, and left out it is what the adjacency says. `num_records`: under replace n of a query,
    which does not tell it before it is run.

    Raises ValueError or TypeError for what is refused, BudgetExceeded, and `kngjax.ReleaseFailed`, one text whatever
    happened, once the debit is made.
    """
    if not isinstance(plan, SynthesisPlan):
        raise TypeError(f"plan must be made by kngjax.synthesis.plan(columns=[...], ...), not a {type(plan).__name__}")
    is_public = plan.adjacency is kng.Adjacency.REPLACE
    if rows not in (None, "public", "released"):
        raise ValueError(f'rows must be "public" or "released", not {rows!r}')
    if rows is not None and (rows == "public") != is_public:
        raise ValueError(
            'rows="released" is for add_remove: under replace the number of records is public'
            if is_public
            else 'rows="public" is for replace: under add_remove the number of records is private, and is released'
        )
    frame = on_its_engine(frame, num_records if is_public else None)
    table, refusal = run_telling_refusals(functools.partial(plan.check, frame))
    if refusal is not None:
        raise refusal
    count = len(table) if is_public else None
    released = plan.plan_for(count).release(functools.partial(plan.records, table), ledger, plan.words_of(None))
    return SyntheticTable(plan, released, count)
