"""Compares a private table with a synthetic one: computes the numbers of `kngjax.owner.utility`. Owner-only."""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Float, Int

import kngjax as kng
from kngjax.data import formulas
from kngjax.data.records import Records
from kngjax.owner.nonprivate import fit, minimiser
from kngjax.owner.utility_report import UtilityReport

Columns = Mapping[str, np.ndarray]


def compare(plan: Any, real: Columns, drawn: Columns, formula: str | None) -> UtilityReport:
    """Compares the columns of both tables, and a regression if one is named. Raises as `kngjax.owner.utility`.

    **Arguments:** `plan`: a `SynthesisPlan`. `real`: the private columns as `drawn` has them, a table.
    """
    kinds = {column.name: column for column in plan.columns}
    codes = {name: coded(real[name], drawn[name], _labels(kinds[name])) for name in kinds}
    pairs = [(one, other) for place, one in enumerate(codes) for other in list(codes)[:place]]
    overlap, moved = None, None
    if formula is not None:
        overlap, moved = _of_regression(plan, formula, real, drawn)
    return UtilityReport(
        pmse_ratio=pmse_ratio(_features(kinds, real, real), _features(kinds, drawn, real)),
        one_way={name: total_variation(code.real, code.drawn) for name, code in codes.items()},
        two_way={(one, other): total_variation(*paired(codes[one], codes[other])) for one, other in pairs},
        overlap=overlap,
        moved=moved,
        margins={name: (code.labels, code.frequencies(0), code.frequencies(1)) for name, code in codes.items()},
    )


def _labels(column: Any) -> list[str] | None:
    return [str(label) for label in column.labels] if column.is_parent else None


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
    shared = overlaps(first.theta, errors, second.theta, second.standard_errors)
    away = np.abs(second.theta - first.theta) / np.where(errors > 0.0, errors, 1.0)
    names = read.design.basis_names
    return dict(zip(names, shared.tolist(), strict=True)), dict(zip(names, away.tolist(), strict=True))


# Intervals that numbers are cut into.
_PARTS = 10


class Coded(NamedTuple):
    """Holds a column of both tables as places of levels, or of intervals of numbers, with their labels."""

    real: Int[np.ndarray, " rows"]
    drawn: Int[np.ndarray, " others"]
    labels: list[str]

    def frequencies(self, which: int) -> Float[np.ndarray, " labels"]:
        """Computes the frequency of each label in the private table, 0, or in the synthetic one, 1."""
        places = self[which]
        return np.bincount(places, minlength=len(self.labels)) / max(len(places), 1)


def coded(real: np.ndarray, drawn: np.ndarray, labels: list[str] | None) -> Coded:
    """Codes a column of both tables. **Arguments:** `labels`: levels as text; None cuts numbers at private deciles."""
    if labels is not None:
        index = {label: place for place, label in enumerate(labels)}
        first, second = (np.array([index[str(value)] for value in each.tolist()], np.int64) for each in (real, drawn))
        return Coded(first, second, labels)
    cuts = np.unique(np.quantile(real, np.arange(1, _PARTS) / _PARTS)) if len(real) else np.zeros(0)
    ends = ["", *(f"{cut:.4g}" for cut in cuts), ""]
    names = [f"{low}-{high}" for low, high in itertools.pairwise(ends)]
    return Coded(np.searchsorted(cuts, real, side="right"), np.searchsorted(cuts, drawn, side="right"), names)


def paired(first: Coded, second: Coded) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of both columns together, of both tables."""
    width = len(second.labels)
    return first.real * width + second.real, first.drawn * width + second.drawn


def total_variation(real: Int[np.ndarray, " rows"], drawn: Int[np.ndarray, " others"]) -> float:
    """Returns ½Σ|p - q| over places, p and q their frequencies."""
    size = int(max(real.max(initial=0), drawn.max(initial=0))) + 1
    one, other = (np.bincount(places, minlength=size) / max(len(places), 1) for places in (real, drawn))
    return float(np.abs(one - other).sum() / 2)


def pmse_ratio(real: Float[np.ndarray, "rows k"], drawn: Float[np.ndarray, "others k"]) -> float:
    """Returns the propensity score's mean square over its expectation under the true model (Snoke et al. 2018).

    pMSE = mean (p̂ - c)², c the part of the rows that is synthetic, p̂ by logistic regression on an intercept and k
    columns; its expectation is k(1 - c)²c/N for rows of the true model fitted to the private ones, and 1/(1 - c) times
    that for a new sample of the population. Columns that are functions of others are left out, and k counts the rest.
    """
    label = np.concatenate([np.zeros(len(real)), np.ones(len(drawn))])
    columns = np.vstack([real, drawn])
    columns = columns[:, columns.std(axis=0) > 0.0]
    scaled = np.column_stack([np.ones(len(columns)), (columns - columns.mean(0)) / columns.std(0)])
    basis, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    x = basis[:, sizes > 1e-9 * sizes[0]] * np.sqrt(len(scaled))
    rank, part = x.shape[1] - 1, float(label.mean())
    p = scipy.special.expit(x @ minimiser(kng.LogisticLoss(), Records(x, label)))
    expected = max(rank, 1) * (1.0 - part) ** 2 * part / len(x)
    return float(np.mean((p - part) ** 2) / expected)


def overlaps(
    first: np.ndarray, errors: np.ndarray, second: np.ndarray, others: np.ndarray, level: float = 0.95
) -> Float[np.ndarray, " d"]:
    """Returns the mean of the parts of two intervals that both have (Karr et al. 2006), below 0 where they are apart.

    An interval without width is in the other one as a whole, 1, or apart from it, minus infinity.
    """
    half = scipy.special.ndtri((1.0 + level) / 2.0)
    shared = np.minimum(first + half * errors, second + half * others) - np.maximum(
        first - half * errors, second - half * others
    )
    widths = [2.0 * half * each for each in (errors, others)]
    parts = [
        np.where(width > 0.0, shared / np.where(width > 0.0, width, 1.0), np.where(shared < 0.0, -np.inf, 1.0))
        for width in widths
    ]
    return (parts[0] + parts[1]) / 2.0
