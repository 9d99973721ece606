"""What is to be released from a table, said in full before the table is looked at: terms, response, mechanisms."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.core.errors import UNREADABLE, UnfitShape, UnfitType
from kngjax.data.admission import EMPTY
from kngjax.data.terms import Design
from kngjax.estimators.carrying_out import Records, carry_out
from kngjax.estimators.responses import Response
from kngjax.releases import totals
from kngjax.releases.debits import owed, settings


@dataclass(frozen=True)
class Part:
    """One release of an analysis. Public.

    **Arguments:** `label`: its name in tables. `mechanism`: its settings. `epsilon`: its exact part of a total, where
    one was declared.
    """

    label: str
    mechanism: Any
    epsilon: Fraction | None = None


@dataclass(frozen=True)
class Analysis:
    """Releases from one table that belong together, as quantile regressions of several levels do. Public.

    **Arguments:** `title`: what it is, in words. `response`: the column of the regression, or of the mean or quantile.
    `design`: the terms; None where there are none. `parts`: one a release. `formula`: as it was written, or None.
    `names_of_values`: of what is released, where that is no regression. `link`: what a prediction is the mean by,
    "identity", "odds" (their logarithm is predicted) or "rate" (its logarithm is). `sampler`: what is asked for of each
    release, or None.
    """

    title: str
    response: Response
    design: Design | None
    parts: tuple[Part, ...]
    formula: str | None = None
    names_of_values: tuple[str, ...] | None = None
    link: str = "identity"
    sampler: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """What a released value consists of, in own units."""
        if self.names_of_values is not None:
            return self.names_of_values
        return (self.response.name,) if self.design is None else self.design.names

    def steps(self, number: int | None = None) -> list["Step"]:
        """Its releases, each with its debit. **Arguments:** `number`: of the analysis, where there are several."""
        start = "" if number is None else f"{number}. {self.what}, "
        return [Step(f"{start}{part.label}", self, part) for part in self.parts]

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Of the releases, before any is debited. **Arguments:** `num_records`: used where it is public."""
        return [one for step in self.steps() for one in step.certificates(num_records)]

    @property
    def what(self) -> str:
        """Its title with the formula, if there is one."""
        return self.title if self.formula is None else f"{self.title} {self.formula}"

    def check(self, frame: Any) -> nw.DataFrame:
        """The table of a frame, if its columns and types serve; not a value is looked at.

        Raises `UnfitType` for what is no frame and for columns of dates or lists; `UnfitShape` for absent columns, and
        for no record where n is public, under replace.
        """
        table = table_of(frame)
        self.response.check(table)
        if self.design is not None:
            self.design.check(frame)
        if len(table) == 0 and any(part.mechanism.adjacency is kng.Adjacency.REPLACE for part in self.parts):
            raise UnfitShape(EMPTY)
        return table

    def records(self, frame: Any) -> tuple[np.ndarray | None, np.ndarray]:
        """The basis columns (n, k), None without terms, and the transformed response (n,). Private.

        What is dropped is NaN. Each record is mapped by itself. Raises as `check`, and ValueError for missing cells
        without a policy; no message tells a value.
        """
        table = self.check(frame)
        x = None if self.design is None else self.design.matrix(frame)
        return x, self.response.of(table[self.response.column])

    def release(self, frame: Any, ledger: kng.Ledger | None) -> list[kng.Release]:
        """All releases, in order, as `kngjax.estimators.carrying_out.carry_out`."""
        try:
            made = carry_out(self.steps(), frame, ledger)
        finally:
            # Frames of a traceback hold their local variables.
            del frame
        return [one for releases in made.values() for one in releases]


@dataclass(frozen=True)
class Step:
    """One release of an analysis: what one debit pays for. Public. **Arguments:** `label`: its name among all steps."""

    label: str
    analysis: Analysis
    part: Part

    @property
    def words(self) -> dict[str, Any]:
        """What a ledger is told of its debit."""
        about = {"analysis": self.analysis.title, "formula": self.analysis.formula}
        return about | {"response": self.analysis.response.name, "mechanism": settings(self.part.mechanism)}

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Of its only release, before it is debited. **Arguments:** `num_records`: used where it is public."""
        return [totals.certify(self.part.mechanism, self.analysis.sampler, num_records)]

    def owed(self, num_records: int) -> tuple[kng.Guarantee, bool]:
        """What a ledger debits, and whether it is proved to cost no more."""
        return owed(*self.certificates(num_records))

    def release(
        self, records: Records, debit: kng.Reservation | None, progress: bool | None = None
    ) -> list[kng.Release]:
        """The release, after its debit. Raises as `kngjax.release`."""
        mechanism = self.part.mechanism
        inputs = arguments(mechanism, *records.of(self.analysis))
        return [kng.release(mechanism, *inputs, sampler=self.analysis.sampler, ledger=debit, progress=progress)]


# How what is often given in place of a frame becomes one.
_FRAMES = {
    "ndarray": ": name its columns, pandas.DataFrame(array, columns=['age', 'height'])",
    "Series": ": give one with its column, series.to_frame()",
    "LazyFrame": ": collect it first, frame.collect()",
}


def table_of(frame: Any) -> nw.DataFrame:
    """A frame as a table; raises `UnfitType` for what is none, without a word of it."""
    try:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
    except Exception:
        # The words of other packages may tell a frame's own names.
        raise UnfitType(UNREADABLE) from None
    if not isinstance(table, nw.DataFrame):
        advice = _FRAMES.get(type(frame).__name__, "")
        raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}{advice}")
    return table


def arguments(mechanism: Any, x: np.ndarray | None, y: np.ndarray) -> tuple[Any, Any]:
    """X and y as `kngjax.release` takes them of this mechanism: a mean has columns alone. Private."""
    return (x, y) if mechanism.loss.has_response else (y[:, None], None)


def bounds_of(design: Design | None, response: Response, with_response: bool = True) -> kng.Bounds:
    """The public promises of the basis columns and of the transformed response.

    The policy of missing cells is applied where cells become columns; here the certificate is told of it, in units of
    the basis.
    """
    ends = response.ends if with_response else None
    if design is None:
        return kng.Bounds(y=ends, missing_y=response.substitute)
    columns, missing = design.basis_names[1:], [policy for term in design.terms for policy in term.substitutes]
    return kng.Bounds(
        (design.lower, design.upper), ends, columns=columns, missing=missing, missing_y=response.substitute
    )
