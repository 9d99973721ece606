"""Public facts are said of a table without looking at it: bounds, levels, policies, weights, the adjacency."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.core.errors import about
from kngjax.data import dates, formulas
from kngjax.data.missing import Codes, codes_by_column, policy_in
from kngjax.data.terms.base import is_number
from kngjax.mechanisms.parameters import check_count
from kngjax.study.analyses import Analysis
from kngjax.study.checks import DeclaredColumn
from kngjax.study.counted_groups import CountedGroups
from kngjax.study.expectations import expecting
from kngjax.study.grouping import GroupedAnalysis
from kngjax.study.responses import Exposure, Response
from kngjax.study.survey_weights import AbstractRowWeights, Persons, SurveyWeights


@dataclasses.dataclass(frozen=True)
class PublicFacts:
    """Holds what is said of a table without looking at it, as `Study` takes it.

    **Arguments:** `count`: n where it is public, or a guess. `dates`: the columns whose bounds were dates; all bounds
    are numbers, in days. `miss`: as of `GroupSize`. `unit`: whom guarantees protect. Others as of `Study`.
    """

    bounds: dict[str, tuple[float | int, float | int]]
    levels: dict[str, tuple[Any, ...]]
    adjacency: kng.Adjacency
    missing: Mapping[str, Any] | str | None
    count: int | None
    weights: AbstractRowWeights | None = None
    dither: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    codes: Codes = dataclasses.field(default_factory=dict)
    dates: tuple[str, ...] = ()
    miss: float = 0.0
    unit: kng.Unit | None = None

    @classmethod
    def of(
        cls,
        bounds: Any,
        levels: Any,
        adjacency: kng.Adjacency,
        missing: Any,
        count: int | None,
        weights: Any = None,
        dither: Any = None,
        missing_codes: Any = None,
        unit: kng.Unit | None = None,
    ) -> "PublicFacts":
        """Checks public facts as `Study` is given them; raises TypeError or ValueError for wrong ones."""
        for name, given, example in (("bounds", bounds, "(0, 99)"), ("levels", levels, "('no', 'yes')")):
            if not isinstance(given, Mapping):
                raise TypeError(f"{name} must be by column, {name}={{'age': {example}}}, not a {type(given).__name__}")
        of_dates = dates.dated(bounds)
        ends: dict[str, tuple[float | int, float | int]] = {}
        for name, pair in bounds.items():
            words = f"the bounds of {name!r} must be a pair of numbers, like (0, 99), or of dates"
            low, high = map(dates.in_days, _plain(pair, words, 2))
            if not (is_number(low) and is_number(high) and math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"the bounds of {name!r} must be finite numbers, the lower one first, not {pair!r}")
            ends[name] = low, high
        choices = {
            name: _plain(given, f"the levels of {name!r} must be several, like ('north', 'south')")
            for name, given in levels.items()
        }
        if both := sorted(set(ends) & set(choices)):
            raise ValueError(f"columns {both} have bounds and levels: numbers have bounds, categories have levels")
        if isinstance(missing, Mapping):
            known = {*ends, *choices, None if unit is None else unit.column}
            if unknown := [name for name in missing if name not in known]:
                raise ValueError(f"missing names {unknown}, which have neither bounds nor levels")
            missing = {name: dates.in_days(dates.plain(value)) for name, value in missing.items()}
        elif missing not in (None, "drop"):
            raise TypeError("missing must be 'drop' or name columns, like missing={'age': 40}")
        if not isinstance(dither, Mapping | None):
            raise TypeError(f"dither must name columns, dither={{'carat': 0.01}}, not a {type(dither).__name__}")
        units = {name: dates.plain(unit) for name, unit in (dither or {}).items()}
        codes = codes_by_column(missing_codes, missing, choices, {**ends, **choices}, of_dates)
        weighing: Any = SurveyWeights.of(weights, ends, missing)
        if unit is not None and unit.column is not None:
            weighing = Persons(unit)
        if count is not None and adjacency is kng.Adjacency.ADD_REMOVE:
            count = int(check_count("num_records", count, "a public guess of how many there are, like 10_000"))
        made = cls(ends, choices, adjacency, missing, count, weighing, units, codes, of_dates, unit=unit)
        for name in units:
            _ = made.response(name)
        return made

    def policy_of(self, column: str) -> Any:
        """Returns what a missing cell of a column counts as; None where nothing was said."""
        return policy_in(self.missing, column)

    @property
    def unit_of_rows(self) -> kng.Unit | None:
        """Returns the unit that rows have identifiers of; None where each row counts by itself."""
        return None if self.unit is None or self.unit.column is None else self.unit

    def response(self, column: str, transform: str | None = None) -> Response:
        """Returns a column as a response; raises TypeError for several."""
        if isinstance(column, list | tuple | set | dict):
            raise TypeError(f"one column a call, by its name, not {column!r}")
        missing = self.policy_of(column)
        if column in self.levels:
            if len(self.levels[column]) != 2:
                raise ValueError(
                    f"column {column!r} has {len(self.levels[column])} levels: responses, means and sums are of "
                    "numbers, or of two levels, of which the second one counts as 1. histogram and crosstab count the "
                    "records of each level"
                )
            return Response(column, transform, None, self.levels[column], missing, self.dither.get(column))
        if transform == "log" and column not in self.bounds:
            raise self._undeclared(column)
        return Response(column, transform, self.bounds.get(column), None, missing, self.dither.get(column))

    def declared(self, column: str) -> Response:
        """Makes the `response` of a column with bounds or levels; raises ValueError, which names these, for another."""
        made = self.response(column)
        if column not in self.bounds and column not in self.levels:
            raise self._undeclared(column)
        return made

    def _undeclared(self, column: str) -> ValueError:
        every = [*self.bounds, *self.levels]
        there = f"; there are some of {', '.join(map(repr, every))}." if every else ""
        words = f"column {column!r} needs public bounds in own units, bounds={{{column!r}: (lower, upper)}}{there}"
        return about(ValueError(words + formulas.similar_to(column, every)), "bounds", column)

    def exposed(self, counts: Response, exposure: Any, most_rate: Any) -> tuple[Response, SurveyWeights]:
        """Counts as rates, and their exposures as weights: e·exp(η) - cη of a count c is e times the loss of c/e at η.

        **Arguments:** `exposure`: the name of a column with bounds above 0. `most_rate`: as of `poisson_regression`.
        Raises TypeError for what is no name, ValueError for bounds that do not serve, and for a study with weights.
        """
        weights = SurveyWeights.of(exposure, self.bounds, self.missing, "exposure")
        if weights is None:
            raise ValueError(
                "most_rate is the largest rate, counts for one unit of exposure: name the column of the exposure, "
                "exposure='years', or leave most_rate out"
            )
        if self.weights is not None:
            given = "person" if isinstance(self.weights, Persons) else "weights"
            raise ValueError(
                f"records have one weight each, and exposure={exposure!r} is one: ask a Study without "
                f"{given}={self.weights.column!r}" + (", of a table with one row of each" if given == "person" else "")
            )
        made = Exposure(weights.column, weights.bounds, most_rate, weights.missing)
        return dataclasses.replace(counts, exposure=made), weights

    def weighted(self, analysis: Any) -> Any:
        """Adds to an analysis the weights of the records, if they have some, and the codes of missing cells.

        The analyses of groups were given their weights one by one, and the weights of rates are their exposures. Raises
        where the analysis does not take weights.
        """
        if not isinstance(analysis, Analysis):
            return analysis
        coded = dataclasses.replace(analysis, codes=self.codes, dates=self.dates, sizes=self.sizes)
        weights = self.weights if coded.weights is None else coded.weights
        made = coded if weights is None else weights.given_to(coded)
        return made if self.unit is None or self.unit_of_rows is not None else made.protecting(self.unit)

    def over_groups(self, number: int) -> "PublicFacts":
        """Returns the facts of persons whose rows may be spread over so many groups."""
        assert self.unit is not None
        unit = self.unit.over_groups(number)
        return dataclasses.replace(self, unit=unit, weights=Persons(unit))

    def expecting(self, analysis: Any) -> Any:
        """Adds to an analysis what public facts say of it, or of each group; raises ValueError for little but noise."""
        if isinstance(analysis, CountedGroups):
            if (why := analysis.refusal(self.count)) is not None:
                raise ValueError(why)
            return analysis
        if isinstance(analysis, Analysis):
            return expecting(analysis, self.count)
        if not isinstance(analysis, GroupedAnalysis):
            return analysis
        # Groups of which the same is known share an analysis.
        known = {id(one): one for one in analysis.analyses}
        sizes = dict(zip(map(id, analysis.analyses), analysis.sizes, strict=True))
        analysis.require_intervals()
        made = {key: expecting(one, sizes[key].count, sizes[key], analysis.times) for key, one in known.items()}
        return dataclasses.replace(analysis, analyses=tuple(made[id(one)] for one in analysis.analyses))

    @property
    def sizes(self) -> dict[str, float]:
        """Counts the levels of each category, and the whole numbers or days within the bounds of each other column."""
        of_numbers = {name: high - low + 1.0 for name, (low, high) in self.bounds.items()}
        return of_numbers | {name: float(len(choices)) for name, choices in self.levels.items()}

    @property
    def columns(self) -> list[DeclaredColumn]:
        """Lists what was said of each column, for the owner's check."""
        whom, of_persons = self.unit_of_rows, []
        if whom is not None:
            of_persons = [DeclaredColumn(whom.column or "", missing=whom.missing, identifies=whom.name)]
        return of_persons + [
            DeclaredColumn(
                name,
                self.bounds.get(name),
                self.levels.get(name),
                self.policy_of(name),
                self.codes.get(name, ()),
                is_date=name in self.dates,
            )
            for name in (*self.bounds, *self.levels)
            if whom is None or name != whom.column
        ]

    def read(self, formula: str) -> tuple[formulas.Formula, Response]:
        """Returns the terms and the response of a formula."""
        read = formulas.read(formula, self.bounds, self.levels, self.missing)
        return read, self.response(read.response, read.transform)


def _plain(given: Any, words: str, number: int | None = None) -> tuple[Any, ...]:
    """Numbers of NumPy as Python's, which JSON has."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(f"{words}, not {given!r}")
    if number is not None and len(given) != number:
        raise ValueError(f"{words}, not {given!r}")
    return tuple(dates.plain(one) for one in given)
