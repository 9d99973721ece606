"""What is to be released from a table, said in full before the table is looked at: terms, response, mechanisms."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import UNREADABLE, UnfitShape, UnfitType, run_hiding_errors, run_telling_refusals
from kngjax.data.admission import EMPTY
from kngjax.data.columns import Columns
from kngjax.data.terms import Design
from kngjax.estimators.responses import Response
from kngjax.releases import totals
from kngjax.releases.debits import owed, settings


@dataclass(frozen=True)
class Part:
    """One release of an analysis. Public. **Arguments:** `label`: its name in tables. `mechanism`: its settings."""

    label: str
    mechanism: Any


@dataclass(frozen=True)
class Analysis:
    """Releases from one table that belong together, as quantile regressions of several levels do. Public.

    **Arguments:** `title`: what it is, in words. `response`: the column of the regression, or of the mean or quantile.
    `design`: the terms; None where there are none. `parts`: one a release. `formula`: as it was written, or None.
    `names_of_values`: of what is released, where that is no regression. `link`: what a prediction is the mean by,
    "identity", "odds" (their logarithm is predicted) or "rate" (its logarithm is).
    """

    title: str
    response: Response
    design: Design | None
    parts: tuple[Part, ...]
    formula: str | None = None
    names_of_values: tuple[str, ...] | None = None
    link: str = "identity"

    @property
    def names(self) -> tuple[str, ...]:
        """What a released value consists of, in own units."""
        if self.names_of_values is not None:
            return self.names_of_values
        return (self.response.name,) if self.design is None else self.design.names

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Of the releases, before any is debited. **Arguments:** `num_records`: used where it is public."""
        return [totals.certify(part.mechanism, None, num_records) for part in self.parts]

    def check(self, frame: Any) -> nw.DataFrame | Columns:
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
        if isinstance(frame, Columns) and frame.after_debit is not None:
            frame = frame.after_debit()
        table = self.check(frame)
        x = None if self.design is None else self.design.matrix(table)
        return x, self.response.of(table[self.response.column])

    def release(self, frame: Any, ledger: kng.Ledger | Sequence[kng.Reservation] | None) -> list[kng.Release]:
        """All releases, if the ledger allows all; each is debited right before it is drawn, and kept right after.

        **Arguments:** `frame`: private, or `Columns`. `ledger`: or one reservation for each part, made beforehand.

        So a failure costs one debit at most beside what was released, which is in `ledger.releases()`. Raises as
        `check`, `kngjax.Ledger.reserve` and `kngjax.release` do; what depends on values is `kngjax.ReleaseFailed`.
        """
        side_doors.refuse()
        arithmetic.require_right()
        made, refusal = [], None
        try:
            for release in self._releases(frame, ledger):
                made.append(release)
        except Exception as error:
            refusal = error.with_traceback(None)
        # Frames of a traceback hold their local variables.
        del frame
        if refusal is not None:
            raise refusal
        return made

    def _releases(self, frame: Any, ledger: kng.Ledger | Sequence[kng.Reservation] | None) -> Iterator[kng.Release]:
        table, refusal = run_telling_refusals(functools.partial(self.check, frame))
        if refusal is not None:
            raise refusal
        costs = [owed(certificate) for certificate in self.certificates(len(table))]
        if isinstance(ledger, kng.Ledger):
            ledger.require([cost for cost, _ in costs], proved=all(proved for _, proved in costs))
        prepared = None
        for number, (part, (cost, proved)) in enumerate(zip(self.parts, costs, strict=True)):
            words = {"analysis": self.title, "formula": self.formula, "response": self.response.name}
            words |= {"label": part.label, "mechanism": settings(part.mechanism)}
            if isinstance(ledger, kng.Ledger):
                debit = ledger.reserve(cost, words, proved=proved)
            else:
                debit = None if ledger is None else ledger[number]
            if prepared is None:
                prepared, refusal = run_hiding_errors(functools.partial(self.records, frame))
            if refusal is not None:
                raise refusal
            yield kng.release(part.mechanism, *arguments(part.mechanism, *prepared), ledger=debit)


def table_of(frame: Any) -> nw.DataFrame | Columns:
    """A frame as a table; raises `UnfitType` for what is none, without a word of it."""
    if isinstance(frame, Columns):
        return frame
    try:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
    except Exception:
        # The words of other packages may tell a frame's own names.
        raise UnfitType(UNREADABLE) from None
    if not isinstance(table, nw.DataFrame):
        raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}")
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
