"""Named columns of cells that are no data frame: of an array, of a list of rows, of a table that rests elsewhere."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Columns:
    """Columns of cells by name, of one length, as a `Design` and a response read them. Private.

    **Arguments:** `columns`: their names, public. `rows`: their length, 0 while it is not known. `column_of`: a column
    of cells by its name: an array, a list or a series. `after_debit`: the columns whose values count, of the same names
    and length, where these here show their types alone; asked for once the release is paid. `engine`: where the cells
    rest, if these columns show types alone, and the cells are read in passes. `counted`: counts the rows of such a
    table. `others`: of several files the columns of all but the first. `known`: columns whose cells here are those that
    count.
    """

    columns: tuple[str, ...]
    rows: int
    column_of: Callable[[str], Any]
    after_debit: "Callable[[], Columns] | None" = None
    engine: Any = None
    counted: Callable[[], int] | None = None
    others: tuple[Any, ...] = ()
    known: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.rows if self.counted is None else self.counted()

    def __getitem__(self, name: str) -> Any:
        return self.column_of(name)

    def opened(self) -> "Columns":
        """Returns the columns whose values count: once the release is paid."""
        return self if self.after_debit is None else self.after_debit()

    def __repr__(self) -> str:
        return f"<Columns {', '.join(self.columns)}; OWNER ONLY, holds private data>"


def like(table: Any, column_of: Callable[[str], Any]) -> Columns:
    """Copies the names and the length of a table, of narwhals or `Columns`, for other cells."""
    if isinstance(table, Columns):
        return Columns(table.columns, table.rows, column_of, counted=table.counted)
    return Columns(tuple(table.columns), len(table), column_of)
