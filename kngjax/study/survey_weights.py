"""Weights of a study's records: a column of the table, and what analyses become that honour it."""

import abc
import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.core.errors import about
from kngjax.data import cells, persons
from kngjax.data.marks import mixed
from kngjax.data.missing import policy_in
from kngjax.data.named_columns import Columns
from kngjax.study.analyses import Analysis, Part
from kngjax.study.classifications import AnyRow
from kngjax.study.column_estimates import CentredSquares, names_of_sums
from kngjax.study.regressions import equal_parts
from kngjax.study.responses import check_column


class AbstractRowWeights(abc.ABC):
    """Gives each record of an analysis a weight that a column says. Public.

    `column`: its name. `kind`: in words. `unit`: of persons whose rows share votes; None for other weights.
    """

    column: str
    unit: kng.Unit | None = None
    kind: ClassVar[str]
    no_intervals: ClassVar[str] = (
        "means and sums of records with weights have no intervals here: a Study without weights has some, of another "
        "question, as every record counts alike there"
    )

    def refusal(self, mechanism: Any) -> str:
        """Says why a mechanism is not proved with them."""
        return f"takes no {self.kind}: make a Study without them for it"

    @property
    def person(self) -> str | None:
        """Returns the column that identifies persons; None where each record has a weight of its own."""
        return self.unit and self.unit.column

    @abc.abstractmethod
    def check(self, table: nw.DataFrame | Columns) -> None:
        """Raises `UnfitShape` or `UnfitType` for an absent column and for a type that cannot be read; sees no value."""

    @abc.abstractmethod
    def cells_of(self, table: nw.DataFrame | Columns, read: Sequence[np.ndarray], is_kept: np.ndarray) -> Any:
        """Returns the weight of each record. Private.

        **Arguments:** `read`: all numbers that are read of a record. `is_kept`: tells which ones no policy drops.
        """

    @abc.abstractmethod
    def declared_in(self, bounds: kng.Bounds) -> kng.Bounds:
        """Copies bounds of records so that they declare the weights."""

    @property
    def has_processes(self) -> bool:
        """Tells whether quantile processes are proved with them."""
        return self.unit is not None and self.unit.most_rows == 1

    def has_public_total(self, analysis: Analysis) -> bool:
        """Tells whether the sum of the weights is public."""
        return self.has_processes and analysis.adjacency is kng.Adjacency.REPLACE

    def count(self, table: Any) -> int:
        """Tells how many records a table has, or persons; public under replace alone."""
        return len(table) if self.unit is None else persons.count_in(table, self.unit)

    def given_to(self, analysis: Analysis) -> Analysis:
        """Changes an analysis so that each record counts times its weight.

        Raises ValueError, by public facts alone, for an analysis that is not proved with weights: the default for a
        mechanism that is not named here.
        """
        made = analysis
        if not self.has_processes and any(isinstance(part.plan, kng.QuantileProcess) for part in analysis.parts):
            raise ValueError(
                f"a quantile process takes no {self.kind}: ask for quantile_regression, which takes them, or make a "
                "Study without them"
            )
        if isinstance(columns := analysis.response, CentredSquares) and not self.has_public_total(analysis):
            # The sum of the weights is private, whatever n is.
            columns = CentredSquares(columns.response, has_ones=True)
            made = dataclasses.replace(made, response=columns, names_of_values=names_of_sums(columns, "weights"))
        single = tuple(one for part in analysis.parts for one in _one_by_one(part))
        parts = tuple(part.changed(functools.partial(self._weighted, made), self.declared_in) for part in single)
        unweighted = dataclasses.replace(analysis, parts=single, weights=None)
        return dataclasses.replace(made, parts=parts, weights=self, unweighted=unweighted)

    def _weighted(self, analysis: Analysis, mechanism: Any) -> Any:
        make = _WITH_WEIGHTS.get(type(mechanism))
        if make is None:
            raise ValueError(f"{analysis.title} by {type(mechanism).__name__} {self.refusal(mechanism)}")
        columns = analysis.response
        bounds = columns.bounds if isinstance(columns, CentredSquares) else mechanism.bounds
        return make(mechanism, self.declared_in(bounds))


@dataclasses.dataclass(frozen=True)
class SurveyWeights(AbstractRowWeights):
    """Describes a column of weights, each clipped to its public bounds. Public.

    **Arguments:** `column`: its name. `bounds`: the least and the largest weight, at least 0. `missing`: what a cell
    counts as that is missing or no number; None to refuse such cells.
    """

    column: str
    bounds: tuple[float, float]
    missing: float | None = None
    kind: ClassVar[str] = "weights"

    @classmethod
    def of(cls, column: Any, bounds: Any, missing: Any, what: str = "weights") -> "SurveyWeights | None":
        """Makes the weights of a study; None where it names no column. "drop" leaves a record out by the weight 0.

        **Arguments:** `what`: the argument that names the column. Raises TypeError or ValueError for a column without
        bounds or with negative ones.
        """
        if column is None:
            return None
        if not isinstance(column, str):
            raise TypeError(f"{what} must be the name of a column of the table, not a {type(column).__name__}")
        if column not in bounds:
            example = "(0, 10)" if what == "weights" else "(0.1, 10)"
            words = f"{what}={column!r} needs public bounds, bounds={{{column!r}: {example}}}"
            raise about(ValueError(words), "bounds", column)
        low, high = (float(end) for end in bounds[column])
        if low < 0.0:
            raise ValueError(f"{what} must be at least 0: the bounds of {column!r} begin at {low:g}")
        policy = policy_in(missing, column)
        number = 0.0 if policy == "drop" else policy
        if number is not None and not (isinstance(number, int | float) and (number == 0.0 or low <= number <= high)):
            raise ValueError(f"missing: {policy!r} is neither 0 nor a weight within the bounds [{low:g}, {high:g}]")
        return cls(column, (low, high), number)

    def check(self, table: nw.DataFrame | Columns) -> None:
        check_column(table, self.column, "weights=")

    def cells_of(self, table: nw.DataFrame | Columns, read: Sequence[np.ndarray], is_kept: np.ndarray) -> np.ndarray:
        """Returns the weight of each record, NaN where there is none and no policy. Private."""
        found = np.clip(cells.numbers(table[self.column]), *self.bounds)
        return found if self.missing is None else np.where(np.isnan(found), self.missing, found)

    def declared_in(self, bounds: kng.Bounds) -> kng.Bounds:
        return bounds.weighing(self.bounds[1], self.missing)


@dataclasses.dataclass(frozen=True)
class Persons(AbstractRowWeights):
    """Describes a column of identifiers, whose rows share the votes of one person. Public. **Arguments:** `unit`: with
    a column.

    Shares are of the whole table: those of a person in several groups add up over all groups.
    """

    unit: kng.Unit
    kind: ClassVar[str] = "rows of persons"
    no_intervals: ClassVar[str] = (
        "intervals of a mean by persons need a public number of these, each with one vote: adjacency='replace', "
        "most_rows=1 and no groups; conf_int() without intervals=True is of the table's own mean"
    )

    def refusal(self, mechanism: Any) -> str:
        return f"takes no {self.kind}: {mechanism.no_persons}"

    @property
    def column(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.unit.column or ""

    def check(self, table: nw.DataFrame | Columns) -> None:
        persons.check_identifiers(table, self.unit)

    def cells_of(
        self, table: nw.DataFrame | Columns, read: Sequence[np.ndarray], is_kept: np.ndarray
    ) -> persons.Shares:
        """Returns the share of each record that no policy drops, in its person's votes. Private."""
        codes = persons.codes_of(table[self.column])
        made = persons.shares(np.where(is_kept, codes, -1), self.unit.most_rows or 1, mixed(read))
        # Of a record that is dropped nothing is read; of one without identifier that there is none.
        return made.some(slice(None), np.where(is_kept, made.weights, 0.0))

    def declared_in(self, bounds: kng.Bounds) -> kng.Bounds:
        return bounds.protecting(self.unit)

    def given_to(self, analysis: Analysis) -> Analysis:
        """Changes an analysis so that rows share votes; raises ValueError where an identifier is a term of it."""
        if isinstance(analysis.response, AnyRow):
            return analysis.protecting(kng.Unit(self.unit.name))
        if self.column in analysis.columns:
            raise ValueError(f"{self.column!r} identifies each {self.unit.name}: it is no column to analyse")
        return super().given_to(analysis)


def _one_by_one(part: Part) -> list[Part]:
    """Quantiles of several levels as a release each, of an equal part of ε; any other part as it is."""
    mechanism = part.mechanism
    if not isinstance(mechanism, kng.PrivateQuantile) or np.size(mechanism.tau) == 1:
        return [part]
    if mechanism.budget != "split":
        raise ValueError(
            "with weights quantiles of several levels are not drawn together: leave budget='joint' out, and each is "
            "released by itself with an equal part of epsilon"
        )
    levels = np.asarray(mechanism.tau).tolist()
    shares = equal_parts(float(mechanism.epsilon), len(levels))
    return [
        Part(
            f"tau = {level!r}",
            kng.PrivateQuantile(level, mechanism.bounds, share, mechanism.adjacency, allow_large_epsilon=True),
        )
        for level, share in zip(levels, shares, strict=True)
    ]


def _remade(mechanism: Any, bounds: kng.Bounds) -> Any:
    """Makes the same mechanism for bounds that declare weights: of Σ w ρ(x'θ, y), Σ w xx', or sums of w in cells."""
    names = inspect.signature(type(mechanism)).parameters
    settings = {name: getattr(mechanism, name) for name in names if hasattr(mechanism, name)}
    return type(mechanism)(**settings | {"bounds": bounds, "allow_large_epsilon": True})


def _mean(mechanism: Any, bounds: kng.Bounds) -> Any:
    """Makes KNG of the mean Σw_i x_i/Σw_i, which minimises the weighted squared distance, within the bounds of x."""
    theta = kng.Box(np.asarray(bounds.x_lower), np.asarray(bounds.x_upper))
    return _minimised(kng.SquaredDistanceLoss(), theta, mechanism, bounds)


def _quantile(mechanism: Any, bounds: kng.Bounds) -> Any:
    """Makes KNG of one quantile, which minimises the weighted check loss, within the bounds of y."""
    theta = kng.Box(float(bounds.y_lower or 0.0), float(bounds.y_upper or 0.0))
    return _minimised(kng.QuantileLoss(float(np.asarray(mechanism.tau).item())), theta, mechanism, bounds)


def _minimised(loss: Any, theta: kng.Box, mechanism: Any, bounds: kng.Bounds) -> kng.KNG:
    return kng.KNG(loss, bounds, theta, mechanism.epsilon, mechanism.adjacency, allow_large_epsilon=True)


_WITH_WEIGHTS: dict[type, Callable[[Any, kng.Bounds], Any]] = {
    kng.KNG: lambda one, bounds: (_remade if one.loss.has_response else _mean)(one, bounds),
    # The mean is a sum where the total of the weights is public.
    kng.KNormMechanism: lambda one, bounds: (_remade if one.statistic == "sum" or bounds.has_one_vote else _mean)(
        one, bounds
    ),
    kng.PrivateQuantile: _quantile,
    **dict.fromkeys((kng.ObjectivePerturbation, kng.AdaSSP, kng.GeometricMechanism), _remade),
}
