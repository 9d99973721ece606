"""How like the private table a synthetic one is: for the data owner's eyes alone."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.randomness import research_key
from kngjax.data import formulas
from kngjax.data.records import Records
from kngjax.losses.squared import SquaredLoss
from kngjax.owner import distances
from kngjax.owner.nonprivate import fit

Columns = Mapping[str, np.ndarray]


@owner_only
class UtilityReport(OwnerOnly):
    """Owner-only: computed from the private table without noise.

    **Arguments:**

    - `pmse_ratio`: the mean square of (p̂ - c) over its mean for rows of the true model fitted to the private ones: 1 is
        ideal, 2 is as good as a new sample of as many people, and more is worse. p̂ is a logistic regression's
        probability that a row is synthetic, by all columns, squares and products, and c the part of the rows that are.
    - `one_way`: by column half the sum of the absolute differences between the frequencies of the two tables, of
        numbers between deciles of the private ones: 0 is alike, 1 is nothing in common. `two_way`: of pairs of columns.
    - `overlap`: by coefficient of a regression how far the 95% intervals of both tables overlap: 1 is the same, below
        0 they are apart; None where no formula was given. `moved`: how far a coefficient is off, in standard errors.
    """

    pmse_ratio: float
    one_way: dict[str, float]
    two_way: dict[tuple[str, str], float]
    overlap: dict[str, float] | None
    moved: dict[str, float] | None
    margins: dict[str, tuple[list[str], np.ndarray, np.ndarray]]
    instead: ClassVar[str] = "its numbers, for the owner, are pmse_ratio, one_way, two_way, overlap and moved"

    def plot(self) -> Any:
        """The frequencies of each column in both tables. Returns axes of Matplotlib; the picture is the owner's too."""
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(3.2 * len(self.margins), 3.0), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(self.margins)))
        for axis, (name, (labels, real, synthetic)) in zip(axes, self.margins.items(), strict=True):
            places = np.arange(len(labels))
            axis.bar(places - 0.2, real, 0.4, label="private")
            axis.bar(places + 0.2, synthetic, 0.4, label="synthetic")
            axis.set_xticks(places, labels, rotation=90)
            axis.set_title(name)
        axes[0].legend()
        return axes


def utility(table: Any, frame: Any, *, formula: str | None = None, key: PRNGKeyArray | None = None) -> UtilityReport:
    """How like the private table one synthetic table is, of as many rows. FOR THE DATA OWNER ONLY.

    Nothing of it has noise: to publish it, or to choose a plan by it, voids the guarantee of the releases.

    **Arguments:** `table`: from `kngjax.synthesize`, public. `frame`: private, as it was given. `formula`: a regression
    of a column of numbers on others, like "log(wage) ~ education + C(region)", by least squares in both tables with
    standard errors for unequal variances; None without one. `key`: of the table that is drawn.

    Raises as `table.plan.read`, and ValueError for a frame without records and for a formula that these columns do not
    have.
    """
    real = table.readings(frame)
    rows = len(next(iter(real.values())))
    if rows == 0:
        raise ValueError("the private table has no record: there is nothing to compare")
    drawn = table.columns_of(rows, research_key(0) if key is None else key)
    kinds = {column.name: column for column in table.plan.columns}
    coded = {name: distances.coded(real[name], drawn[name], _labels(kinds[name])) for name in kinds}
    pairs = [(one, other) for place, one in enumerate(coded) for other in list(coded)[:place]]
    overlap, moved = None, None
    if formula is not None:
        overlap, moved = _of_regression(table.plan, formula, real, drawn)
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
    """By coefficient the overlap of its two intervals, and how many standard errors it moved."""
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
        fits.append(fit(SquaredLoss(), Records(np.column_stack([np.ones(kept.sum()), x[kept]]), y)))
    first, second = fits
    errors = first.standard_errors
    shared = distances.overlaps(first.theta, errors, second.theta, second.standard_errors)
    away = np.abs(second.theta - first.theta) / np.where(errors > 0.0, errors, 1.0)
    names = read.design.basis_names
    return dict(zip(names, shared.tolist(), strict=True)), dict(zip(names, away.tolist(), strict=True))
