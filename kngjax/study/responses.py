"""Responses map each record by itself to the numbers that an analysis uses, by public facts.

The response is that of a regression, or the column of a mean or quantile; tables and sums have others.
"""

import abc
import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType, about
from kngjax.data import cells
from kngjax.data.named_columns import Columns
from kngjax.data.persons import Unit, count_in
from kngjax.data.terms.base import is_number

# The largest exposure: below a rate of e^-12 the loss goes on by its tangent, one event in 1,600 records of so much.
_LARGEST_EXPOSURE = 100.0


class AbstractResponse(abc.ABC):
    """Maps each record to the number or numbers that an analysis takes of it. Public.

    `unit`: of persons, with a column of identifiers, where each response is one of all rows of a person; or None.
    """

    unit: Unit | None = None

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Names the response in words."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Returns the columns that the response is made of."""

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Returns the public bounds, in own units and by name, that columns of numbers are clipped to."""
        return {}

    @property
    def told(self) -> tuple[str, ...]:
        """Says for certificates how the response is made of cells, beside bounds and policies."""
        return ()

    @abc.abstractmethod
    def check(self, table: Any) -> None:
        """Raises `UnfitShape` or `UnfitType` for an absent column and for a type that cannot be read; sees no value."""

    @property
    def person(self) -> str | None:
        """Returns the column that identifies the persons of the responses; None where these are of records."""
        return self.unit and self.unit.column

    def count(self, table: Any) -> int:
        """Tells how many records, or persons, responses are made of; public under replace alone."""
        return len(table) if self.unit is None else count_in(table, self.unit)

    @abc.abstractmethod
    def of_table(self, table: Any) -> np.ndarray:
        """Computes the response of each record, shape (n,) or (n, k), NaN where records are to be dropped. Private.

        Raises ValueError for missing cells without a policy; the message tells no value.
        """


def check_column(table: nw.DataFrame | Columns, column: str, what: str) -> None:
    """Raises `UnfitShape` or `UnfitType` for an absent column and for a type that cannot be read; sees no value.

    **Arguments:** `what`: the part of the analysis that names it, in words.
    """
    if column not in table.columns:
        # The data's own names are not listed: in a file without a header line they are somebody's record.
        raise UnfitShape(f"{what} names the column {column!r}, which the data do not have")
    if not cells.is_readable(table[column]):
        raise UnfitType(
            f"the type of column {column!r}, which {what} names, holds neither numbers nor text: convert it by a "
            "public rule"
        )


@dataclass(frozen=True)
class Exposure:
    """Describes a column by which counts are divided, record by record, as years under observation. Public.

    **Arguments:** `column`: its name. `bounds`: the least exposure, above 0, and the largest. `most_rate`: R, the
    largest rate, counts for one unit of exposure; None for as many as all bounds allow. `missing`: what an exposure
    counts as that is missing or no number, None to refuse such cells; 0 leaves the record out.

    **Raises:** ValueError for bounds that reach 0, for exposures in units of which a record has more than a hundred,
    and for an R that is not positive.
    """

    column: str
    bounds: tuple[float, float]
    most_rate: Any = None
    missing: float | None = None

    def __post_init__(self) -> None:
        low, high = self.bounds
        if low <= 0.0:
            words = (
                f"exposures are above 0: the bounds of {self.column!r} begin at {low:g}. Give the least exposure that "
                f"a record counts with, like bounds={{{self.column!r}: (0.1, 2)}}; smaller ones are raised to it"
            )
            raise about(ValueError(words), "bounds", self.column)
        if high > _LARGEST_EXPOSURE:
            unit = 10 ** math.ceil(math.log10(high))
            raise ValueError(
                f"the exposure {self.column!r} is up to {high:g}, in units so small that rates have no digits left: "
                f"divide the column and its bounds by {unit:,}, as days become years, and read rates of that unit"
            )
        if self.most_rate is not None and not (is_number(self.most_rate) and 0.0 < self.most_rate < math.inf):
            raise ValueError(
                f"most_rate must be the largest rate, counts for one unit of {self.column!r}, like 15.0, not "
                f"{self.most_rate!r}"
            )
        # As JSON has it: numbers of NumPy are none there.
        object.__setattr__(self, "most_rate", None if self.most_rate is None else float(self.most_rate))

    def ends(self, counts: tuple[float, float]) -> tuple[float, float]:
        """Returns the least and the largest rate of counts within these bounds; raises ValueError unless they differ.

        It raises ValueError too for an R by which even one count in the largest exposure would be clipped: rates would
        come out far too small. No rate is more than the largest count over the least exposure.
        """
        one = min(1.0, counts[1]) / self.bounds[1]
        if self.most_rate is not None and float(self.most_rate) < one:
            raise ValueError(
                f"most_rate = {self.most_rate:g} is below the rate of a record with one count in the largest exposure, "
                f"{one:g}, so that every count would be clipped: it is the largest rate of a single record, and not of "
                f"all together. One count in the least exposure has the rate {one * self.bounds[1] / self.bounds[0]:g}"
            )
        least, most = counts[0] / self.bounds[1], counts[1] / self.bounds[0]
        most = most if self.most_rate is None else min(most, float(self.most_rate))
        if most <= least:
            raise ValueError(f"most_rate = {most:g} is not above the least rate that the bounds allow, {least:g}")
        return least, most

    def rates(self, counts: np.ndarray, exposures: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
        """Counts over exposures, shape (n,), within their bounds; NaN where counts are. Private.

        Where an exposure is missing without a policy, or the record is left out, its weight says so, whatever the rate.
        """
        clipped = np.clip(exposures, *self.bounds)
        return np.clip(counts / np.where(np.isnan(clipped), self.missing or self.bounds[0], clipped), *ends)


@dataclass(frozen=True)
class Response(AbstractResponse):
    """Describes a column of numbers, clipped to its bounds, or of two levels, which count as 0 and 1. Public.

    **Arguments:** `column`: its name. `transform`: "log", after clipping, or None. `bounds`: the least and the largest
    number, before any transformation. `levels`: two, in place of bounds, of which the second one counts as 1.
    `missing`: the number (or level) in place of a cell that is none, before any transformation; "drop", under
    add_remove; or None to refuse such cells. `dither`: the unit that numbers were rounded to, before any
    transformation, or None: quantiles get noise of this width on each, by `kngjax.data.dither`. `exposure`: by which
    counts are divided, or None.

    **Raises:** ValueError for what of these does not fit together.
    """

    column: str
    transform: str | None = None
    bounds: tuple[float | int, float | int] | None = None
    levels: tuple[Any, ...] | None = None
    missing: str | float | int | bool | None = None
    dither: float | int | None = None
    exposure: Exposure | None = None

    def __post_init__(self) -> None:
        if self.exposure is not None:
            self._check_exposure(self.exposure)
        if self.dither is not None:
            self._check_dither(self.dither)
        if self.levels is not None:
            self._check_levels(self.levels)
        elif isinstance(self.missing, str | bool) and self.missing != "drop":
            raise ValueError(f'missing: must be a number or "drop", not {self.missing!r}')
        if self.transform == "log" and (self.bounds is None or self.bounds[0] <= 0):
            raise ValueError(
                f"log({self.column}) needs public bounds of {self.column!r} with a lower end above 0, where it is "
                "defined"
            )
        if self.bounds is not None and isinstance(self.missing, int | float):
            lower, upper = self.bounds
            if not lower <= self.missing <= upper:
                raise ValueError(f"missing: {self.missing!r} lies outside of the bounds [{lower!r}, {upper!r}]")

    def _check_exposure(self, exposure: Exposure) -> None:
        if self.levels is not None or self.transform is not None or self.bounds is None:
            raise ValueError(
                f"an exposure is of counts with public bounds, bounds={{{self.column!r}: (0, 30)}}, and of their "
                "column as it is, without log()"
            )
        if self.bounds[0] < 0:
            raise ValueError(f"counts are at least 0: the bounds of {self.column!r} begin at {self.bounds[0]:g}")
        if exposure.column == self.column:
            raise ValueError(f"the column {self.column!r} is the response and its exposure")

    def _check_dither(self, dither: Any) -> None:
        if not is_number(dither) or not 0.0 < dither < math.inf:
            raise ValueError(f"dither must be the unit that {self.column!r} was rounded to, like 0.01, not {dither!r}")
        if self.levels is not None or self.bounds is None:
            raise ValueError(f"dither is for columns of numbers, and {self.column!r} has no bounds")

    def _check_levels(self, levels: tuple[Any, ...]) -> None:
        if len(levels) != 2 or cells.same_level(*levels):
            raise ValueError(f"levels: must be two different levels, of which the second one counts as 1, not {levels}")
        cells.require_levels("levels", levels)
        if self.bounds is not None or self.transform is not None:
            raise ValueError("levels stand for 0 and 1: leave bounds and transform out")
        if "drop" in levels:
            raise ValueError('levels: "drop" may not be one, as missing = "drop" would have two meanings')
        is_level = cells.place_of(self.missing, levels) >= 0
        if self.missing not in (None, "drop") and not is_level:
            raise ValueError(f'missing: must be one of the levels or "drop", not {self.missing!r}')

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.exposure is None else (self.column, self.exposure.column)

    @property
    def name(self) -> str:
        """Names the response: "wage", "log wage" or "visits per years"."""
        if self.exposure is not None:
            return f"{self.column} per {self.exposure.column}"
        return f"{self.transform} {self.column}" if self.transform else self.column

    @property
    def ends(self) -> tuple[float, float] | None:
        """Returns the bounds of the transformed response; 0 and 1 of two levels; None where there are none."""
        if self.levels is not None:
            return 0.0, 1.0
        if self.bounds is None:
            return None
        lower, upper = (float(end) for end in self.bounds)
        if self.exposure is not None:
            return self.exposure.ends((lower, upper))
        return (math.log(lower), math.log(upper)) if self.transform == "log" else (lower, upper)

    @property
    def bounds_of_quantiles(self) -> dict[str, Any]:
        """Returns the response's part of the bounds of a mechanism of quantiles, which takes noise on heaped responses.

        They reach half a unit beyond its own: what lies at a bound would be a heap again.
        """
        if self.dither is None or self.bounds is None:
            return {"y": self.ends}
        (lower, upper), half, is_log = self.bounds, self.dither / 2, self.transform == "log"
        ends = float(max(lower - half, lower / 2) if is_log else lower - half), float(upper + half)
        return {"y": tuple(map(math.log, ends)) if is_log else ends, "dither": self.dither, "dither_of_log": is_log}

    def heaps_in_words(self, count: int | None) -> str:
        """Says why an interval of a quantile may hold too seldom, by public facts alone; empty where these say nothing.

        So it may where bounds are whole numbers, or days, and these are fewer than the records: then some are alike if
        values are whole, and ends avoid the heaps. **Arguments:** `count`: n, where it is public, or about how many.
        """
        if self.levels is not None:
            shares = f"histogram({self.column!r}, epsilon=...).shares()"
            return f"a quantile of two levels is one of them: {shares} has intervals"
        if self.dither is not None or self.bounds is None or not all(float(end).is_integer() for end in self.bounds):
            return ""
        whole = int(self.bounds[1] - self.bounds[0]) + 1
        if count is not None and count < whole:
            return ""
        return (
            f"none. If values of {self.column} are whole numbers, as their bounds are, many are one of {whole:,}, and "
            f"the interval holds too seldom: Study(..., dither={{{self.column!r}: 1}})"
        )

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Returns the public bounds of the column, by its name and in own units, and those of the exposure."""
        found = {} if self.bounds is None else {self.column: (float(self.bounds[0]), float(self.bounds[1]))}
        return found if self.exposure is None else found | {self.exposure.column: self.exposure.bounds}

    @property
    def told(self) -> tuple[str, ...]:
        if self.exposure is None or self.ends is None:
            return ()
        column, exposure, most = self.column, self.exposure.column, self.ends[1]
        in_place = "" if self.missing is None else f", where a missing {column} counts as {self.missing!r} before that"
        return (
            f"each response is a record's own rate, {column} / {exposure}, both clipped to their bounds, and clipped "
            f"to at most {most:g}; its weight is its {exposure}{in_place}",
        )

    @property
    def substitute(self) -> float | str | None:
        """Returns what a missing response counts as after the transformation; "drop"; or None where there is no policy.

        It is None for rates too, each of which has its own exposure: `told` says what a missing count counts as.
        """
        return self._in_place if self.exposure is None or self.missing == "drop" else None

    @property
    def _in_place(self) -> float | str | None:
        """Returns `substitute`, or for rates what a missing count counts as."""
        if self.missing in (None, "drop"):
            return self.missing
        if self.levels is not None:
            return float(cells.place_of(self.missing, self.levels) == 1)
        number = float(self.missing)
        return math.log(number) if self.transform == "log" else number

    def check(self, table: nw.DataFrame | Columns) -> None:
        check_column(table, self.column, "the response")
        if self.exposure is not None:
            check_column(table, self.exposure.column, "the exposure")

    def of_table(self, table: nw.DataFrame | Columns) -> np.ndarray:
        made, ends = self.of(table[self.column]), self.ends
        if self.exposure is None or ends is None:
            return made
        return self.exposure.rates(made, cells.numbers(table[self.exposure.column]), ends)

    def of(self, cells_of_it: Any) -> np.ndarray:
        """Computes the transformed response, shape (n,), NaN where records are dropped; of rates the counts. Private.

        **Arguments:** `cells_of_it`: its cells, private, shape (n,). Raises ValueError for missing cells without a
        policy; the message tells no value.
        """
        if self.levels is None:
            y = cells.numbers(cells_of_it)
        else:
            places = cells.levels(cells_of_it, self.levels)
            y = np.where(places < 0, np.nan, places.astype(np.float64))
        if self.bounds is not None:
            y = np.clip(y, *self.bounds)
        ends = self.ends
        if self.transform == "log" and ends is not None:
            # NumPy may round the logarithm of an end to another side.
            y = np.clip(np.log(y), *ends)
        if self._in_place == "drop":
            return y
        absent = np.isnan(y)
        if self._in_place is None and absent.any():
            raise ValueError(
                f"the response, column {self.column!r}, has cells that are missing, infinite or no number, or no "
                "declared level: give a public value in their place, missing = ..."
            )
        y[absent] = self._in_place
        return y
