"""Named columns of cells that are no data frame: of an array, of a list of rows, or of what is made after a debit."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Columns:
    """Columns of cells by name, of one length, as a `Design` and a response read them. Private.

    **Arguments:** `columns`: their names, public. `rows`: their length. `column_of`: a column of cells by its name:
    an array, a list or a series. `after_debit`: the columns whose values count, of the same names and length, where
    these here show their types alone; asked for once the release is paid.
    """

    columns: tuple[str, ...]
    rows: int
    column_of: Callable[[str], Any]
    after_debit: "Callable[[], Columns] | None" = None

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, name: str) -> Any:
        return self.column_of(name)

    def __repr__(self) -> str:
        return f"<Columns {', '.join(self.columns)}; OWNER ONLY, holds private data>"


def opened(frame: Any) -> Any:
    """Gives the columns whose values count, of `Columns` that show their types alone before a debit; else the frame."""
    return frame if not isinstance(frame, Columns) or frame.after_debit is None else frame.after_debit()
