"""Reads what a job's file says of a synthesis: its columns in order, and which tables are drawn of it.

Keys of a column are the arguments of its class, read off their signatures. What [study] says of the column of this name
need not be said again: its bounds, levels, and what a missing cell counts as.
"""

import inspect
import pathlib
from dataclasses import dataclass
from typing import Any

from kngjax.command import named_parts
from kngjax.command.toml import Text, check_keys, shown

# The method of [[analyses]] that is no method of a study.
SYNTHESIS = "synthesis"
# What a column of a file is called, by its class.
KINDS = {
    "category": "synthesis.Category",
    "ordinal": "synthesis.Ordinal",
    "count": "synthesis.Count",
    "numeric": "synthesis.Numeric",
}


@dataclass(frozen=True, kw_only=True)
class DrawSettings:
    """[analyses.draws]: the tables that are drawn of a synthesis, which cost nothing.

    **Arguments:** `tables`: how many are drawn. `num_rows`: of each; as many as the private table has, or as was
    released, if it is left out. `seed`: of the first table; the others have those after it. `file`: what a table is
    called beside releases.json; several have their number, like "synthetic_1.csv".
    """

    tables: int = 1
    num_rows: int | None = None
    seed: int = 0
    file: Text = "synthetic.csv"

    def __post_init__(self) -> None:
        for name, value, least in (("tables", self.tables, 1), ("num_rows", self.num_rows, 1), ("seed", self.seed, 0)):
            if value is not None and value < least:
                raise ValueError(f"{name}: must be at least {least}, not {value}")
        if pathlib.PurePath(self.file).name != self.file or not self.file.lower().endswith(".csv"):
            raise ValueError(
                f"file: must be a name that ends in .csv, like 'synthetic.csv', without a folder, not {self.file!r}: "
                "tables are written beside releases.json"
            )

    @property
    def files(self) -> tuple[str, ...]:
        """Names the file of each table: `file`, or of several tables with their numbers, "synthetic_1.csv"."""
        path = pathlib.PurePath(self.file)
        if self.tables == 1:
            return (self.file,)
        return tuple(f"{path.stem}_{number}{path.suffix}" for number in range(1, self.tables + 1))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Lists the seed of each table."""
        return tuple(range(self.seed, self.seed + self.tables))


def read_columns(columns: Any, study: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Reads the tables [[analyses.columns]], each with its `kind` and all that its class must be told.

    **Arguments:** `study`: [study]. Raises ValueError that starts with `where` and names the column and the key.
    """
    if not isinstance(columns, list) or not columns or not all(isinstance(one, dict) for one in columns):
        raise ValueError(f"{where}: write each column as a table [[analyses.columns]] of its own, in order")
    return [
        _column(one, study, f"{where}, [[analyses.columns]] number {number}")
        for number, one in enumerate(columns, start=1)
    ]


def _column(table: dict[str, Any], study: dict[str, Any], where: str) -> dict[str, Any]:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        given = "" if kind is None else f"; not {shown(kind)}"
        raise ValueError(f"{where} needs the key 'kind', one of {', '.join(KINDS)}{given}")
    known = inspect.signature(named_parts.public(KINDS[kind])).parameters
    said = {name: value for name, value in _said(study, table.get("name")).items() if name in known}
    settings = said | {name: value for name, value in table.items() if name != "kind"}
    check_keys(settings, known, f"{where}, {kind},")
    return {"kind": kind, **settings}


def _said(study: dict[str, Any], name: Any) -> dict[str, Any]:
    """Finds the facts that [study] says of a column, by the names of its class's arguments."""
    by_column = {key: one if isinstance(one := study.get(key), dict) else {} for key in ("bounds", "levels", "missing")}
    if not isinstance(name, str):
        return {}
    found = {key: one[name] for key, one in by_column.items() if name in one}
    if study.get("missing") == "drop":
        # It is refused in words, as every record of a synthesis is kept.
        found["missing"] = "drop"
    ends = found.pop("bounds", None)
    return found | (dict(zip(("low", "high"), ends, strict=True)) if isinstance(ends, list) and len(ends) == 2 else {})
