"""[intervals] of a job: which covariance the intervals of its regressions are made of, and their level."""

import hashlib
import pathlib
from dataclasses import dataclass
from typing import Any

from kngjax.command import named_parts
from kngjax.command.toml import Text, beside, convert, shown
from kngjax.data import files

COVARIANCES = {
    "sandwich": "Sandwich",
    "groups": "Groups",
    "independent_errors": "inference.IndependentErrors",
    "public_design": "inference.PublicDesign",
}


# Keys that a study says elsewhere, and where.
_ELSEWHERE = {
    "num_records": "a guess of the number of records is said once, in the table [study]",
    "force": "is said of each analysis, force = true in [[analyses]]",
}


@dataclass(frozen=True)
class Intervals:
    """[intervals]: `covariance` with the settings of its constructor, or none for the narrowest one; `level`.

    **Arguments:** `asked`: a covariance, or True for the narrowest. `written`: what the file says of it, JSON-ready.
    `level`: of what is printed and drawn; every other can be had of what was released. `file`: that of public rows.
    """

    asked: Any
    written: dict[str, Any]
    level: float = 0.95
    file: pathlib.Path | None = None


def read_intervals(table: Any, where: str, path: pathlib.Path, private: str | None = None) -> Intervals:
    """Reads [intervals] from a table of the file, or from true. Raises ValueError that names the table and the key.

    **Arguments:** `where`: the file and the table. `path`: of the file, beside which a file of public rows is looked
    for. `private`: the path of [data], which it must not be.
    """
    if table is True:
        table = {}
    if not isinstance(table, dict):
        raise ValueError(f'{where} must be a table, like {{ covariance = "sandwich", share = 0.3 }}')
    for name, words in _ELSEWHERE.items():
        if name in table:
            raise ValueError(f"{where} {name}: {words}")
    kind, level = table.get("covariance"), table.get("level", 0.95)
    others = {name: value for name, value in table.items() if name not in ("covariance", "level")}
    if kind is not None and (not isinstance(kind, str) or kind not in COVARIANCES):
        raise ValueError(f"{where} covariance: must be one of {', '.join(COVARIANCES)}; not {shown(kind)}")
    if kind is None and others:
        raise ValueError(
            f"{where} needs the key 'covariance', one of {', '.join(COVARIANCES)}, for {', '.join(others)}"
        )
    try:
        share = convert(level, float)
    except ValueError as error:
        raise ValueError(f"{where} level: {error}") from None
    if not 0.0 < share < 1.0:
        raise ValueError(f"{where} level: must lie between 0 and 1, like 0.95, not {shown(level)}")
    if kind is None:
        return Intervals(True, {"covariance": "narrowest"}, share)
    made = named_parts.public(COVARIANCES[kind])
    try:
        rows, known, file = {}, {}, None
        if kind == "public_design":
            rows, known, file = _public_rows(others.pop("rows", None), path, private)
        given = named_parts.settings(made, others)
        return Intervals(made(**rows, **given), {"covariance": kind} | known | given, share, file)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{where} {error}") from None


def _public_rows(
    named: Any, path: pathlib.Path, private: str | None
) -> tuple[dict[str, Any], dict[str, str], pathlib.Path]:
    """The frame of a file of public records, what of it decides which job this is, its name and content, and the file.

    Raises ValueError for the file of [data], and for one that cannot be read.
    """
    if named is None:
        raise ValueError(
            'rows: must name a file of public records, rows = "FILE.csv", with the columns of the terms in own units'
        )
    try:
        file = beside(path, convert(named, Text))
    except ValueError as error:
        raise ValueError(f"rows: {error}") from None
    if private is not None and beside(path, private).resolve() == file.resolve():
        raise ValueError(f"rows: {named} is the file of [data], and its records are private: name public ones")
    try:
        frame = files.read_public(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"rows: {error}") from None
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"rows": frame}, {"rows": file.name, "sha256_of_rows": digest}, file
