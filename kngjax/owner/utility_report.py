"""How like the private table a synthetic one is: for the data owner's eyes alone."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from kngjax.core.later import plt
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.pictures import HATCHES, axes_of, style


@owner_only
class UtilityReport(OwnerOnly):
    """Compares a synthetic table with the private one, without noise: owner-only.

    **Arguments:**

    - `pmse_ratio`: the mean square of (p̂ - c) over its mean for rows of the true model fitted to the private ones: 1 is
        ideal, 2 is as good as a new sample of as many people, and more is worse. p̂ is a logistic regression's
        probability that a row is synthetic, by all columns, squares and products; c is the share of synthetic rows.
    - `one_way`: for each column, half the sum of the absolute differences between the frequencies of both tables;
        numbers are cut at private deciles. 0 is alike, 1 is nothing in common. `two_way`: for pairs of columns.
    - `overlap`: for each coefficient of a regression, how far the 95% intervals of both tables overlap: 1 is the same,
        below 0 they are apart; None without a formula. `moved`: how far a coefficient is off, in standard errors.
    """

    pmse_ratio: float
    one_way: dict[str, float]
    two_way: dict[tuple[str, str], float]
    overlap: dict[str, float] | None
    moved: dict[str, float] | None
    margins: dict[str, tuple[list[str], np.ndarray, np.ndarray]]
    instead: ClassVar[str] = "its numbers, for the owner, are pmse_ratio, one_way, two_way, overlap and moved"

    def plot(self) -> Any:
        """Plots frequencies of each column in both tables; returns Matplotlib's axes. The picture is owner-only."""
        figure = plt.figure(figsize=(3.2 * len(self.margins), 3.0), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(self.margins)))
        for axis, (name, (labels, real, synthetic)) in zip(axes, self.margins.items(), strict=True):
            places = np.arange(len(labels))
            for number, (label, heights) in enumerate((("private", real), ("synthetic", synthetic))):
                looks = style(number, hatch=HATCHES)
                axes_of(axis).bar(places + 0.4 * number - 0.2, heights, 0.4, label=label, edgecolor="white", **looks)
            axis.set_xticks(places, labels, rotation=90)
            axis.set_title(name)
        axes[0].legend()
        return axes


def utility(
    table: Any, frame: Any, *, formula: str | None = None, key: PRNGKeyArray | None = None, drawn: Any = None
) -> UtilityReport:
    """Measures how like the private table a synthetic one of as many rows is. FOR THE DATA OWNER ONLY.

    The report has no noise: to publish it, or to choose a plan by it, voids the guarantee of the releases.

    **Arguments:** `table`: from `kngjax.synthesize`, public. `frame`: the private table. `formula`: a regression of a
    column of numbers on others, like "log(wage) ~ education + C(region)", by least squares in both tables with standard
    errors for unequal variances; or None. `key`: of the table that is drawn. `drawn`: a data frame with the same
    columns to compare instead, of any number of rows and any maker; `table` may then be the plan.

    Raises as `table.plan.read`, and ValueError for a frame without records, for a formula that these columns do not
    have, and for a key beside `drawn`.
    """
    if drawn is None:
        return table.compared(frame, formula, key)
    if key is not None:
        raise ValueError("key is of a table that is drawn here: leave it out, or leave out drawn=")
    return getattr(table, "plan", table).compared(frame, drawn, formula)
