"""A job written as a study: [study] with public facts of the table, [[analyses]] with a method of `Study` each.

Keys are the arguments of `kngjax.Study` and of its methods, read off their signatures.
"""

import datetime
import inspect
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kngjax.command import registry
from kngjax.command.declared import Declared, Source, any_text
from kngjax.command.intervals_config import Intervals, read_intervals
from kngjax.command.toml import read_table, refuse_unknown, shown


@dataclass(frozen=True)
class Asked:
    """Holds one table [[analyses]]: a method of `Study` with its arguments.

    **Arguments:** `method`: of `Study`. `arguments`: as the file has them. `by`: the columns of groups; none without.
    `intervals`: what these arguments say of them, None where they say nothing, or that there are none. `num_records`:
    of each group, or by its level, a public guess; None without.
    """

    method: str
    arguments: dict[str, Any]
    by: tuple[str, ...] = ()
    intervals: Intervals | None = None
    num_records: int | dict[str, int] | None = None

    @property
    def several(self) -> tuple[str, ...]:
        """Names the method's arguments that take any number of values, which are lists in the file."""
        known = methods()[self.method].parameters.values()
        return tuple(one.name for one in known if one.kind is inspect.Parameter.VAR_POSITIONAL)

    @property
    def public(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        found = {"method": self.method, **plain(self.arguments)} | ({"by": list(self.by)} if self.by else {})
        found |= {} if self.num_records is None else {"num_records": self.num_records}
        # Of a file of public rows the name alone is among the arguments.
        digest = None if self.intervals is None else self.intervals.written.get("sha256_of_rows")
        return found if digest is None else found | {"sha256_of_rows": digest}


@dataclass(frozen=True, kw_only=True)
class StudyConfig(Declared):
    """All that a study in a file declares in public.

    **Arguments:** `study`: of [study], without the ledger. `intervals`: of all regressions that say nothing else, or
    None.
    """

    study: dict[str, Any]
    analyses: tuple[Asked, ...]
    intervals: Intervals | None = None

    @property
    def public(self) -> dict[str, Any]:
        """All that decides what is released, whatever the file is called; JSON-ready."""
        asked = [one.public for one in self.analyses]
        found = {"study": _as_json(plain(self.study)), "analyses": asked}
        return found if self.intervals is None else found | {"intervals": self.intervals.written}

    @property
    def adjacency(self) -> str:
        return self.study["adjacency"]

    @property
    def text_columns(self) -> tuple[str, ...]:
        levels = self.study.get("levels", {})
        return tuple(name for name, one in levels.items() if isinstance(one, list) and any_text(one))

    @property
    def public_files(self) -> tuple[pathlib.Path, ...]:
        every = [self.intervals, *(one.intervals for one in self.analyses)]
        return tuple(one.file for one in every if one is not None and one.file is not None)


def read_study(path: Any, tables: dict[str, Any]) -> StudyConfig:
    """Reads a study from a file's tables; raises ValueError naming the table and the key that is unknown or absent."""
    refuse_unknown(tables, ["data", "study", "analyses", "intervals"], str(path), "table")
    if absent := [name for name in ("study", "analyses") if name not in tables]:
        raise ValueError(f"{path}: the table [{absent[0]}] is missing")
    data = read_table(Source, tables["data"], f"{path}: [data]") if "data" in tables else None
    study, analyses = tables["study"], tables["analyses"]
    if not isinstance(study, dict):
        raise ValueError(f"{path}: [study] must be a table")
    # The frame is what the data are.
    known = [name for name in inspect.signature(registry.public("Study")).parameters if name != "frame"]
    refuse_unknown(study, known, f"{path}: [study]", "key")
    if study.get("adjacency") not in ("replace", "add_remove"):
        raise ValueError(
            f"{path}: [study] needs the key 'adjacency': 'replace' (one record exchanged, their number public) or "
            "'add_remove' (one more or less)"
        )
    if not isinstance(study.get("ledger"), str | None):
        raise ValueError(f"{path}: [study] ledger: must be the path of a ledger, not {shown(study['ledger'])}")
    if not isinstance(analyses, list) or not all(isinstance(one, dict) for one in analyses):
        raise ValueError(f"{path}: write each analysis as a table [[analyses]] of its own")
    asked = [
        _asked(one, f"{path}: [[analyses]] number {number}", path, data) for number, one in enumerate(analyses, start=1)
    ]
    others = {name: value for name, value in study.items() if name != "ledger"}
    intervals = None
    if "intervals" in tables:
        where = f"{path}: [intervals]"
        intervals = _without_guess(read_intervals(tables["intervals"], where, path, data), where)
        if not any("intervals" in methods()[one.method].parameters for one in asked):
            raise ValueError(f"{path}: [intervals] are of regressions, and none is asked for: leave that table out")
    given = {"path": path, "data": data, "ledger": study.get("ledger"), "study": others}
    return StudyConfig(**given, analyses=tuple(asked), intervals=intervals)


def methods() -> dict[str, inspect.Signature]:
    """Lists what can be asked of a study, each with its arguments: every method that spends an epsilon."""
    members = inspect.getmembers(registry.public("Study"), inspect.isfunction)
    signatures = {name: inspect.signature(member) for name, member in members if not name.startswith("_")}
    return {name: one for name, one in signatures.items() if "epsilon" in one.parameters}


def _asked(table: dict[str, Any], where: str, path: pathlib.Path, data: Source | None) -> Asked:
    known = methods()
    method = table.get("method")
    if not isinstance(method, str) or method not in known:
        given = "" if method is None else f"; not {shown(method)}"
        raise ValueError(f"{where} needs the key 'method', one of {', '.join(known)}{given}")
    parameters = [one for name, one in known[method].parameters.items() if name != "self"]
    by = table.get("by", [])
    if not isinstance(by, list) or not all(isinstance(one, str) for one in by):
        raise ValueError(f"{where}, {method}: 'by' must name one or several columns, like by = ['region']")
    sizes = table.get("num_records")
    arguments = {name: value for name, value in table.items() if name not in ("method", "by", "num_records")}
    refuse_unknown(arguments, [*(one.name for one in parameters), "by", "num_records"], f"{where}, {method},", "key")
    if sizes is not None and not (by and _are_counts(sizes)):
        raise ValueError(
            f"{where}, {method}: num_records: must be the number of records of each group of by = [...], or of each by "
            f"its level, like {{ north = 500, south = 700 }}; that of the table stands in [study]; not {shown(sizes)}"
        )
    for one in parameters:
        if one.default is inspect.Parameter.empty and one.name not in arguments:
            raise ValueError(f"{where}, {method}, needs the key {one.name!r}")
    own = _own_intervals(arguments, f"{where}, {method}: intervals:", path, data)
    made = Asked(method, arguments, tuple(by), own, sizes)
    for name in made.several:
        if not isinstance(arguments[name], list) or not all(isinstance(one, str) for one in arguments[name]):
            raise ValueError(f"{where}, {method}: {name!r} must name several columns, like {name} = ['age', 'region']")
    return made


def _are_counts(sizes: Any) -> bool:
    every = sizes.values() if isinstance(sizes, dict) else [sizes]
    return all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in every)


def _own_intervals(arguments: dict[str, Any], where: str, path: pathlib.Path, data: Source | None) -> Intervals | None:
    asked = arguments.get("intervals", False)
    if isinstance(asked, dict) and "level" in asked:
        raise ValueError(f"{where} the level is said once for all analyses, in the table [intervals]")
    return None if asked is False else _without_guess(read_intervals(asked, where, path, data), where)


def _without_guess(read: Intervals, where: str) -> Intervals:
    """Raises ValueError for a guess of n there, which of a study is of all of its analyses, and for force."""
    if read.num_records is not None:
        raise ValueError(f"{where} num_records: a guess of the number of records is said once, in the table [study]")
    if read.force:
        raise ValueError(f"{where} force: is said of each analysis, force = true in [[analyses]]")
    return read


def _as_json(value: Any) -> Any:
    """A plain value with dates as the file has them."""
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def plain(value: Any) -> Any:
    """A value of the file with floats for decimal numbers, as Python would write it."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value
