"""Compares a private table with a synthetic one: computes the numbers of `kngjax.owner.utility`. Owner-only."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.data import formulas
from kngjax.data.records import Records
from kngjax.owner.nonprivate import fit
from kngjax.owner.utility_report import UtilityReport
from kngjax.study.synthesis import distances

Columns = Mapping[str, np.ndarray]


def compare(plan: Any, real: Columns, drawn: Columns, formula: str | None) -> UtilityReport:
    """Compares the columns of both tables, and a regression if one is named. Raises as `kngjax.owner.utility`.

    **Arguments:** `plan`: a `SynthesisPlan`. `real`: the private columns as `drawn` has them, a table.
    """
    kinds = {column.name: column for column in plan.columns}
    coded = {name: distances.coded(real[name], drawn[name], _labels(kinds[name])) for name in kinds}
    pairs = [(one, other) for place, one in enumerate(coded) for other in list(coded)[:place]]
    overlap, moved = None, None
    if formula is not None:
        overlap, moved = _of_regression(plan, formula, real, drawn)
    return UtilityReport(
        pmse_ratio=distances.pmse_ratio(_features(kinds, real, real), _features(kinds, drawn, real)),
        one_way={name: distances.total_variation(*_places(code)) for name, code in coded.items()},
        two_way={
            (one, other): distances.total_variation(*distances.paired(coded[one], coded[other])) for one, other in pairs
        },
        overlap=overlap,
        moved=moved,
        margins={name: (code.labels, code.frequencies(0), code.frequencies(1)) for name, code in coded.items()},
    )


def _labels(column: Any) -> list[str] | None:
    return [str(label) for label in column.labels] if column.is_parent else None


def _places(code: distances.Coded) -> tuple[np.ndarray, np.ndarray]:
    return code.real, code.drawn


def _features(kinds: Mapping[str, Any], columns: Columns, real: Columns) -> np.ndarray:
    """The columns as numbers, those of numbers standardised by the private ones, with squares and products."""
    blocks = []
    for name, column in kinds.items():
        if column.facts[1] is not None:
            shown = np.array([str(value) for value in columns[name].tolist()], object)
            blocks.append(np.column_stack([shown == label for label in column.facts[1][1:]]).astype(float))
        else:
            middle, spread = real[name].mean(), real[name].std()
            one = (columns[name] - middle) / (spread if spread > 0.0 else 1.0)
            blocks.append(np.column_stack([one, one**2]))
    products = [
        (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
        for place, first in enumerate(blocks)
        for second in blocks[:place]
    ]
    return np.hstack([*blocks, *products])


def _of_regression(plan: Any, formula: str, real: Columns, drawn: Columns) -> tuple[dict[str, float], dict[str, float]]:
    """Computes for each coefficient the overlap of its two intervals, and how many standard errors it moved."""
    read = formulas.read(formula, *plan.facts)
    if read.response not in real or read.response not in plan.facts[0]:
        raise ValueError(f"{read.response!r}, the response of {formula!r}, is no column of numbers of the table")
    fits = []
    for columns in (real, drawn):
        cells = {name: column if name in plan.facts[0] else column.astype(str) for name, column in columns.items()}
        response = columns[read.response].astype(float)
        x = read.design.matrix_of(cells)
        kept = response > 0.0 if read.transform == "log" else np.ones(len(response), bool)
        y = np.log(response[kept]) if read.transform == "log" else response
        fits.append(fit(kng.SquaredLoss(), Records(read.design.with_constant(x[kept]), y)))
    first, second = fits
    errors = first.standard_errors
    shared = distances.overlaps(first.theta, errors, second.theta, second.standard_errors)
    away = np.abs(second.theta - first.theta) / np.where(errors > 0.0, errors, 1.0)
    names = read.design.basis_names
    return dict(zip(names, shared.tolist(), strict=True)), dict(zip(names, away.tolist(), strict=True))
