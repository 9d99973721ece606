"""Reads [intervals] of a job: the covariance that intervals of its regressions are made of, and their level."""

from dataclasses import dataclass
from typing import Any

from kngjax.command import named_parts
from kngjax.command.toml import convert, shown

COVARIANCES = {"sandwich": "Sandwich"}

# Decides with the rest which job it is: releases of other versions, made otherwise, are not resumed.
_RELEASED = {"releases": "H, variances"}
# Keys that a study says elsewhere, and where.
_ELSEWHERE = {
    "num_records": "a guess of the number of records is said once, in the table [study]",
    "force": "is said of each analysis, force = true in [[analyses]]",
}


@dataclass(frozen=True)
class Intervals:
    """Holds [intervals]: `covariance` with the settings of its constructor, or none for the default; `level`.

    **Arguments:** `asked`: a covariance, or True for the default. `written`: what the file says of it, JSON-ready.
    `level`: of intervals that are printed and drawn; what was released has intervals of every other level too.
    """

    asked: Any
    written: dict[str, Any]
    level: float = 0.95


def read_intervals(table: Any, where: str) -> Intervals:
    """Reads [intervals] from a table of the file, or from true. Raises ValueError that names the table and the key.

    **Arguments:** `where`: the file and the table.
    """
    if table is True:
        table = {}
    if not isinstance(table, dict):
        raise ValueError(f'{where} must be a table, like {{ covariance = "sandwich", share = 0.45 }}')
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
        return Intervals(True, {"covariance": "sandwich"} | _RELEASED, share)
    made = named_parts.public(COVARIANCES[kind])
    try:
        given = named_parts.settings(made, others)
        return Intervals(made(**given), {"covariance": kind} | given | _RELEASED, share)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} {error}") from None
