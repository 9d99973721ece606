"""[intervals] of a job: which covariance the intervals of its regressions are made of, and their level."""

import hashlib
import pathlib
from dataclasses import dataclass
from typing import Any

from kngjax.command import registry
from kngjax.command.declared import Source, beside
from kngjax.command.toml import Text, convert, shown
from kngjax.data import files

COVARIANCES = {
    "sandwich": "Sandwich",
    "groups": "Groups",
    "independent_errors": "IndependentErrors",
    "public_design": "PublicDesign",
}


# What is said whatever the covariance is.
_OF_ALL = ("covariance", "level", "num_records", "force")


@dataclass(frozen=True)
class Intervals:
    """[intervals]: `covariance` with the settings of its constructor, or none for the narrowest one; `level`.

    **Arguments:** `asked`: a covariance, or True for the narrowest. `written`: what the file says of it, JSON-ready.
    `level`: of what is printed and drawn; every other can be had of what was released. `file`: that of public rows.
    `num_records`: a public guess of n under add_remove, where n is private; None under replace, and without one.
    `force`: whether to release also what public facts foresee to have no ends.
    """

    asked: Any
    written: dict[str, Any]
    level: float = 0.95
    file: pathlib.Path | None = None
    num_records: int | None = None
    force: bool = False


def read_intervals(table: Any, where: str, path: pathlib.Path, data: Source | None = None) -> Intervals:
    """Reads [intervals] from a table of the file, or from true. Raises ValueError that names the table and the key.

    **Arguments:** `where`: the file and the table. `path`: of the file, beside which a file of public rows is looked
    for. `data`: [data] of the file, which these must not be.
    """
    if table is True:
        table = {}
    if not isinstance(table, dict):
        raise ValueError(f'{where} must be a table, like {{ covariance = "sandwich", share = 0.3 }}')
    kind, level = table.get("covariance"), table.get("level", 0.95)
    others = {name: value for name, value in table.items() if name not in _OF_ALL}
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
    guess = _guess(table.get("num_records"), where)
    counted = {} if guess is None else {"num_records": guess}
    try:
        force = convert(table.get("force", False), bool)
    except ValueError as error:
        raise ValueError(f"{where} force: {error}") from None
    if kind is None:
        return Intervals(True, {"covariance": "narrowest"} | counted, share, None, guess, force)
    made = registry.public(COVARIANCES[kind])
    try:
        rows, known, file = {}, {}, None
        if kind == "public_design":
            rows, known, file = _public_rows(others.pop("rows", None), path, data)
        given = registry.settings(made, others)
        written = {"covariance": kind} | known | given | counted
        return Intervals(made(**rows, **given), written, share, file, guess, force)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{where} {error}") from None


def _guess(written: Any, where: str) -> int | None:
    """The public guess of n that a table has, or None."""
    try:
        guess = None if written is None else convert(written, int)
    except ValueError as error:
        raise ValueError(f"{where} num_records: {error}") from None
    if guess is not None and guess < 1:
        raise ValueError(f"{where} num_records: must be at least 1, a public guess of how many records there are")
    return guess


def _public_rows(
    named: Any, path: pathlib.Path, data: Source | None
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
    if data is not None and data.path is not None and beside(path, data.path).resolve() == file.resolve():
        raise ValueError(f"rows: {named} is the file of [data], and its records are private: name public ones")
    try:
        frame = files.read_public(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"rows: {error}") from None
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"rows": frame}, {"rows": file.name, "sha256_of_rows": digest}, file
