"""A job written as a synthesis: [synthesis] with its columns in order, and which tables are drawn afterwards.

Keys are the arguments of `kngjax.synthesis` and of the kinds of columns, read off their signatures.
"""

import inspect
import pathlib
from dataclasses import dataclass
from typing import Any

from kngjax.command import registry
from kngjax.command.declared import Declared, Source, any_text
from kngjax.command.study_config import plain
from kngjax.command.toml import Text, read_table, refuse_unknown, shown

# What a column of a file is called, by its class.
KINDS = {"category": "Category", "ordinal": "Ordinal", "count": "Count", "numeric": "Numeric"}


@dataclass(frozen=True, kw_only=True)
class DrawSettings:
    """[synthesis.draws]: `tables` of `num_rows` rows each, from the key of `seed` and of those after it, to `file`.

    All of it is free, and public. Without `num_rows` tables have as many rows as the private one, or as was released.
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


@dataclass(frozen=True)
class Declaration:
    """Holds one table [[synthesis.columns]]: its kind, and the arguments of its class."""

    kind: str
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig(Declared):
    """All that a synthesis in a file declares in public.

    **Arguments:** `settings`: of [synthesis], without its columns. `columns`: in the order in which they are drawn.
    `draws`: of tables, or None.
    """

    settings: dict[str, Any]
    columns: tuple[Declaration, ...]
    draws: DrawSettings | None = None

    @property
    def public(self) -> dict[str, Any]:
        """All that decides what is released, JSON-ready; what is drawn from it afterwards is free."""
        columns = [{"kind": column.kind, **column.settings} for column in self.columns]
        return {"synthesis": self.settings | {"columns": columns}}

    @property
    def adjacency(self) -> str:
        return self.settings["adjacency"]

    @property
    def text_columns(self) -> tuple[str, ...]:
        each = [one.settings for one in self.columns if one.kind == "category"]
        return tuple(one["name"] for one in each if isinstance(one["levels"], list) and any_text(one["levels"]))

    @property
    def public_files(self) -> tuple[pathlib.Path, ...]:
        return ()


def read_synthesis(path: Any, tables: dict[str, Any]) -> SynthesisConfig:
    """Reads a synthesis from a file's tables; raises ValueError naming the table and key that is unknown or absent."""
    refuse_unknown(tables, ["data", "synthesis"], str(path), "table")
    data = read_table(Source, tables["data"], f"{path}: [data]") if "data" in tables else None
    table = tables["synthesis"]
    where = f"{path}: [synthesis]"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    own = [name for name in inspect.signature(registry.public("synthesis")).parameters if name != "columns"]
    refuse_unknown(table, [*own, "ledger", "columns", "draws"], where, "key")
    if table.get("adjacency") not in ("replace", "add_remove"):
        raise ValueError(
            f"{where} needs the key 'adjacency': 'replace' (one record exchanged, their number public) or 'add_remove' "
            "(one more or less)"
        )
    if "epsilon" not in table:
        raise ValueError(f"{where} needs the key 'epsilon': the total, in nats, of all columns together")
    if not isinstance(table.get("ledger"), str | None):
        raise ValueError(f"{where} ledger: must be the path of a ledger, not {shown(table['ledger'])}")
    columns = table.get("columns", [])
    if not isinstance(columns, list) or not columns or not all(isinstance(one, dict) for one in columns):
        raise ValueError(f"{path}: write each column as a table [[synthesis.columns]] of its own, in order")
    return SynthesisConfig(
        path=path,
        data=data,
        ledger=table.get("ledger"),
        settings={name: plain(table[name]) for name in own if name in table},
        columns=tuple(
            _column(one, f"{path}: [[synthesis.columns]] number {number}") for number, one in enumerate(columns, 1)
        ),
        draws=read_table(DrawSettings, table["draws"], f"{path}: [synthesis.draws]") if "draws" in table else None,
    )


def _column(table: dict[str, Any], where: str) -> Declaration:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        given = "" if kind is None else f"; not {shown(kind)}"
        raise ValueError(f"{where} needs the key 'kind', one of {', '.join(KINDS)}{given}")
    known = registry.public(KINDS[kind])
    settings = {name: plain(value) for name, value in table.items() if name != "kind"}
    parameters = inspect.signature(known).parameters
    refuse_unknown(settings, list(parameters), f"{where}, {kind},", "key")
    for name, one in parameters.items():
        if one.default is inspect.Parameter.empty and name not in settings:
            raise ValueError(f"{where}, {kind}, needs the key {name!r}")
    return Declaration(kind, settings)
