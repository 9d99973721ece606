"""Persons with any number of rows: each has one vote, which the rows of one person share equally.

Row t of a person's m rows has the weight ⌊(t+1)S/m⌋ - ⌊tS/m⌋ in units u, with S = min(m, k)/u whole: so the weights of
a person add up to min(m, k), exactly and whatever m is, and each is at most 1. They depend on that person's rows alone,
on what analyses read of them and on nothing else, as their order is one of their own bits: a table has the same
weights wherever it rests. `docs/proofs/persons.md` argues what follows for privacy.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import narwhals as nw
import numpy as np
from jaxtyping import Float, Int, UInt64

from kngjax.accounting.adjacency import RECORD
from kngjax.core.errors import UnfitShape, UnfitType, hiding
from kngjax.core.modules import AbstractModule
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.representation import ShownAsTyped
from kngjax.data import cells, weights
from kngjax.data.column_types import Holds, holds
from kngjax.data.dates import plain
from kngjax.data.named_columns import Columns

DROP = "drop"
NO_PARTS = (
    "rows of one person may lie in several parts of a stream, of shards and of some tables on engines, and shares of a "
    "vote take them all: give a Study a frame, files, or a query of DuckDB, Polars or, where "
    "spark.io.encryption.enabled is set, Spark, whose identifiers are whole numbers or text"
)
DIFFERENT = "person must be one identifier a record, and there are more or fewer of them than records"
NOBODY = (
    "no row has an identifier: whole numbers and texts are such, while empty text, missing cells and other numbers are "
    "none"
)
_AS_A_SERIES = "pass it as a series, person=table['patient_id']"
_OF_IDENTIFIERS = (
    "identifiers of persons must be whole numbers, text or categories: of other numbers two persons may have one after "
    "rounding, and a column of whole numbers with missing cells is one of pandas' type Int64"
)


def _without_spaces(name: Any) -> Any:
    return name.strip() if isinstance(name, str) else name


class Unit(ShownAsTyped, AbstractModule):
    """Names whom a guarantee protects: neighbouring data sets differ in one of them. Public.

    **Arguments:** `name`: the unit in words, like "patient". `most_rows`: None where each row is one unit. Otherwise an
    identifier says which rows are of one unit, and their weights add up to this number k, or to the number of rows if
    that is smaller. Noise grows with k; 1 is the best choice unless persons have few rows that differ much. `column`:
    the name of the column of identifiers, if there is one. `missing`: "drop" leaves rows without an identifier out;
    None makes a release of such rows fail. `groups`: over how many groups of the table the rows of one unit may be
    spread, each group having a mechanism of its own. Raises TypeError and ValueError for other arguments.
    """

    name: str = eqx.field(static=True, default="person", converter=_without_spaces)
    most_rows: int | None = eqx.field(static=True, default=None, converter=plain)
    column: str | None = eqx.field(static=True, default=None)
    missing: Any = eqx.field(static=True, default=None)
    groups: int | None = eqx.field(static=True, default=None, metadata={"only_if_given": True})

    def __check_init__(self):
        name, most_rows, groups = self.name, self.most_rows, self.groups
        if not isinstance(name, str) or not name:
            raise TypeError(f"a unit has a name in words, like 'patient', not {name!r}")
        if not (most_rows is None or type(most_rows) is int):
            raise TypeError(f"most_rows must be a whole number or None, not {most_rows!r}")
        if most_rows is not None and not 1 <= most_rows <= 1000:
            raise ValueError(f"most_rows must be between 1 and 1000, not {most_rows}")
        if most_rows is not None and name == RECORD:
            raise ValueError("a unit with several rows is no record: name whom they are of, like 'patient'")
        if self.missing not in (None, DROP):
            raise ValueError(f"missing must be 'drop' or None for rows without an identifier, not {self.missing!r}")
        if most_rows is None and not (self.column is None and self.missing is None and groups is None):
            raise ValueError("column, missing and groups are of identifiers: give most_rows=1 too")
        if groups is not None and not (type(groups) is int and groups >= 1):
            raise ValueError(f"groups must be a whole number from 1, or None, not {groups!r}")

    def over_groups(self, number: int) -> "Unit":
        """Copies the unit for rows of one that may be spread over so many groups, of each group that it knows of."""
        return Unit(self.name, self.most_rows, self.column, self.missing, number * (self.groups or 1))

    @property
    def in_votes(self) -> str:
        """Tells how many votes the rows of one have together, in words."""
        return "one vote" if self.most_rows == 1 else f"up to {self.most_rows} votes"

    def explain(self) -> tuple[str, ...]:
        """Says in sentences for a certificate which rows are of one unit, and how they count."""
        if self.most_rows is None:
            return (f"each record is one {self.name}, a row or made of all rows of one, and no two records are of one",)
        what = "one identifier" if self.column is None else f"one value of {self.column!r}"
        left = "are left out" if self.missing == DROP else "make a release fail"
        votes = f"{self.most_rows} votes, or as many as they are if these are fewer"
        share = self.in_votes if self.most_rows == 1 else votes
        return (
            f"rows of one {self.name} are those with {what}, letter by letter; rows without {left}",
            f"the rows of one {self.name} share {share}: each counts times its weight, a multiple of "
            f"{weights.unit(self.most_rows):g}, and what a {self.name} adds lies where convex combinations of what "
            f"records add do{'' if self.most_rows == 1 else f', {self.most_rows} times'}; so the sensitivity to one "
            f"{self.name}, however many rows, is "
            + ("that to one record" if self.most_rows == 1 else f"that to one record of weight {self.most_rows}"),
        )


def votes_of(unit: Any, weight: Any, missing_weight: Any) -> tuple[Any, Any]:
    """Returns W and the policy of missing weights: for persons both follow from the unit, else they are as given.

    Raises TypeError for what is no unit, and ValueError for other weights beside persons.
    """
    if not isinstance(unit, Unit | None):
        raise TypeError(f"unit must be a kngjax.Unit or its name, like 'patient', not a {type(unit).__name__}")
    if unit is None or unit.most_rows is None:
        return weight, missing_weight
    votes, policy = float(unit.most_rows), 0.0 if unit.missing == DROP else None
    if any(given is not None and given != known for given, known in ((weight, votes), (missing_weight, policy))):
        raise ValueError("rows of persons have shares of a vote for weights: leave weight and missing_weight out")
    return votes, policy


@owner_only
class Identifiers(OwnerOnly):
    """Identifiers of persons, in the place of weights: which rows are one person's. Private.

    **Arguments:** `cells`: one a row.
    """

    cells: Any


@owner_only
class Shares(OwnerOnly):
    """Weights of rows that were made of identifiers. Private.

    **Arguments:** `weights`: one a row, NaN of a row without identifier. `persons`: N, how many there are. `codes`: the
    number of each row's person, as of `codes_of`.
    """

    weights: Float[np.ndarray, " rows"]
    persons: int
    codes: Int[np.ndarray, " rows"]

    def some(self, rows: Any, instead: Any = None) -> "Shares":
        """Returns the shares of some rows, in as many persons' votes. **Arguments:** `instead`: of their weights."""
        weights = self.weights[rows] if instead is None else instead
        return Shares(weights, self.persons, self.codes[rows])


def with_persons(X: Any, person: Any) -> Any:
    """Returns X, or X with the identifiers of persons. Private."""
    if person is None:
        return X
    if isinstance(X, weights.WeightedTable):
        raise UnfitShape("of persons the weights are shares of their votes: give person or weights, not both")
    return weights.WeightedTable(X, Identifiers(person))


def opened(largest: Any, unit: Any, X: Any) -> tuple[Any, Any]:
    """Returns the table and its weights, or identifiers, which are None where the bounds declare none. Private.

    **Arguments:** `largest`, `unit`: W and the unit of the bounds, or None. Raises UnfitShape where one of the two is
    missing or is of the other kind.
    """
    has_persons = isinstance(X, weights.WeightedTable) and isinstance(X.weights, Identifiers | Shares)
    of_persons = largest is not None and unit is not None and unit.most_rows is not None
    if of_persons and not has_persons:
        raise UnfitShape(
            "the bounds are for rows of persons, Bounds(..., unit=): say which rows are of one, release(mechanism, X, "
            "y, person=...)"
        )
    if has_persons and not of_persons:
        raise UnfitShape(
            "identifiers of persons were given, and the bounds are for records: Bounds(..., unit=kngjax.Unit('person', "
            "most_rows=1))"
        )
    if not isinstance(X, weights.WeightedTable):
        if largest is not None:
            raise UnfitShape(
                "the bounds are for records with weights, Bounds(..., weight=...): give them, release(mechanism, X, y, "
                "weights=...)"
            )
        return X, None
    if largest is None:
        raise UnfitShape(
            "weights were given, and the bounds do not say how large one may be: Bounds(..., weight=...) with a public "
            "maximum"
        )
    return X.table, X.weights


def count_of(person: Any) -> int:
    """Counts the persons that identifiers are of; raises UnfitShape if there is none.

    Private but where neighbouring tables have as many.
    """
    if isinstance(person, Shares):
        return person.persons
    number = hiding(lambda: int(np.max(codes_of(person.cells), initial=-1)) + 1, UnfitType(_OF_IDENTIFIERS))
    if number == 0:
        raise UnfitShape(NOBODY)
    return number


def shares(codes: Int[np.ndarray, " rows"], most_rows: int, marks: UInt64[np.ndarray, " rows"]) -> Shares:
    """Shares the votes of each person among that person's rows, in the order of their marks. Private.

    **Arguments:** `codes`: from `codes_of`. `most_rows`: k. `marks`: whole numbers made of all that is read of a row,
    as `kngjax.data.marks.mixed`: rows with the same ones may exchange their shares.
    """
    known = codes >= 0
    counts = np.bincount(codes[known])
    order = np.lexsort((marks, codes))[len(codes) - int(known.sum()) :]
    starts = np.cumsum(counts) - counts
    m = np.repeat(counts, counts)
    place = np.arange(len(m)) - np.repeat(starts, counts)
    step = weights.unit(most_rows)
    whole = np.minimum(m, most_rows) * round(1.0 / step)
    made = np.full(len(codes), np.nan)
    # Below 2^63 for up to 2^43 rows.
    made[order] = ((place + 1) * whole // m - place * whole // m) * step
    return Shares(made, int(np.count_nonzero(counts)), codes)


def sums_by_person(
    rows: Float[np.ndarray, "rows columns"], codes: Int[np.ndarray, " rows"], persons: int
) -> Float[np.ndarray, "persons columns"]:
    """Adds up the rows of each person, in their order: a map of these rows alone. Private.

    Persons without rows have zeros. **Arguments:** `codes`: of rows, below 0 of those that are nobody's. `persons`: how
    many there are.
    """
    known = codes >= 0
    _, places = np.unique(codes[known], return_inverse=True)
    return np.stack([np.bincount(places, column[known], persons) for column in rows.T], axis=1)


def numbered(given: Any, numbers: Callable[[Any], Any]) -> Any:
    """Makes numbers of weights, by a function, and of identifiers, by `codes_of`; leaves shares as they are."""
    if isinstance(given, Shares):
        return given
    return codes_of(given.cells) if isinstance(given, Identifiers) else numbers(given)


def shared(
    given: Any, is_kept: np.ndarray, unit: Unit | None, missing: float | None, marks: Callable[[], np.ndarray]
) -> Any:
    """Weights of the records that are left, with the public value in place of NaN; persons share votes among these.

    **Arguments:** `given`: of all records, from `numbered`. `is_kept`: marks the records that are left. `missing`: the
    policy of missing weights. `marks`: makes those of the records that are left, as of `shares`. Private.
    """
    policy = np.nan if missing is None else missing
    if not isinstance(given, Shares) and (unit is None or unit.most_rows is None):
        weight = given[is_kept]
        return np.where(np.isnan(weight), policy, weight)
    is_made = isinstance(given, Shares)
    made = given.some(is_kept) if is_made else shares(given[is_kept], (unit and unit.most_rows) or 1, marks())
    return made.some(slice(None), np.where(np.isnan(made.weights), policy, made.weights))


def codes_of(identifiers: Any) -> Int[np.ndarray, " rows"]:
    """Numbers the persons from 0, shape (n,), -1 where a cell is no identifier: missing, empty, or of another type.

    Exact: by equality of whole numbers and of texts, letter by letter, and a text is no number. Private.
    """
    native = cells.as_chunked_array(nw.to_native(identifiers, pass_through=True))
    if (texts := cells.distinct_texts(native)) is not None:
        places, differ = texts
        # Of the last place, -1, cells are missing.
        are_some = np.array([*map(bool, differ), False])
        return np.where(are_some, np.cumsum(are_some) - 1, -1)[places]
    series = nw.from_native(native, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        has_all = series.dtype.is_integer() and not series.is_null().any()
        native = series.to_numpy() if has_all else cells.objects(series)
    if isinstance(native, np.ndarray) or (hasattr(native, "__array__") and not isinstance(native, Sequence)):
        found = np.asarray(native)
        if found.dtype.kind in "iu":
            return np.unique(found, return_inverse=True)[1].astype(np.int64)
        native = found.tolist()
    seen: dict[Any, int] = {}
    return np.fromiter((_code(cell, seen) for cell in native), np.int64, len(native))


def _code(cell: Any, seen: dict[Any, int]) -> int:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str):
        # Of a class of its own, text is read as Arrow does, where another cell lets it.
        cell = str.__str__(cell)
    if type(cell) not in (int, str, bytes) or cell in ("", b""):
        return -1
    return seen.setdefault(cell, len(seen))


def check_identifiers(table: Any, unit: Unit) -> None:
    """Raises `UnfitShape` or `UnfitType` for an absent column of identifiers and for its type; sees no value."""
    if unit.column not in table.columns:
        raise UnfitShape(f"identifiers are to be in the column {unit.column!r}, which the data do not have")
    require_identifiers(table[unit.column])


def count_in(table: Any, unit: Unit) -> int:
    """Counts the persons of a table; public under replace alone. **Arguments:** `unit`: with a column."""
    if isinstance(table, Columns) and table.engine is not None:
        return len(table)
    whole = table.opened() if isinstance(table, Columns) and unit.column not in table.known else table
    return count_of(Identifiers(whole[unit.column or ""]))


def require_identifiers(column: Any) -> None:
    """Raises UnfitType, by the type alone, for what cannot be identifiers of persons."""
    if isinstance(column, str | bytes):
        raise UnfitType(f"person must be one identifier a record, and not the name of a column: {_AS_A_SERIES}")
    kind = holds(column)
    if kind is Holds.NUMBERS:
        series = cells.as_series(nw.to_native(column, pass_through=True))
        if series.dtype.is_integer() if isinstance(series, nw.Series) else np.dtype(series.dtype).kind in "iu":
            return
    if kind is not Holds.CELLS:
        raise UnfitType(_OF_IDENTIFIERS)
