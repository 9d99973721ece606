"""What is looked at of each record: a map of it by itself, by public facts.

It is the response of a regression or the column of a mean or quantile; tables and sums have others.
"""

import abc
import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import cells
from kngjax.data.columns import Columns
from kngjax.data.terms.base import is_number


class AbstractResponse(abc.ABC):
    """What an analysis takes of each record. Public."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is, in words."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    @abc.abstractmethod
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The public bounds, in own units and by name, that columns of numbers are clipped to."""

    @abc.abstractmethod
    def check(self, table: Any) -> None:
        """Raises `UnfitShape` or `UnfitType` for an absent column and for a type that cannot be read; sees no value."""

    @abc.abstractmethod
    def of_table(self, table: Any) -> np.ndarray:
        """What it is of each record, shape (n,) or (n, k), NaN where records are to be dropped. Private.

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
class Response(AbstractResponse):
    """A column of numbers, clipped to its bounds, or of two levels, which count as 0 and 1. Public.

    **Arguments:** `column`: its name. `transform`: "log", after clipping, or None. `bounds`: the least and the largest
    number, before any transformation. `levels`: two, in place of bounds, of which the second one counts as 1.
    `missing`: the number (or level) in place of a cell that is none, before any transformation; "drop", under
    add_remove; or None to refuse such cells. `dither`: the unit that numbers were rounded to, before any
    transformation, or None: quantiles get noise of this width on each, by `kngjax.data.dither`.

    **Raises:** ValueError for what of these does not fit together.
    """

    column: str
    transform: str | None = None
    bounds: tuple[float | int, float | int] | None = None
    levels: tuple[Any, ...] | None = None
    missing: str | float | int | bool | None = None
    dither: float | int | None = None

    def __post_init__(self) -> None:
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
        return (self.column,)

    @property
    def name(self) -> str:
        """What is regressed: "wage" or "log wage"."""
        return f"{self.transform} {self.column}" if self.transform else self.column

    @property
    def ends(self) -> tuple[float, float] | None:
        """The bounds of the transformed response; 0 and 1 of two levels; None where there are none."""
        if self.levels is not None:
            return 0.0, 1.0
        if self.bounds is None:
            return None
        lower, upper = (float(end) for end in self.bounds)
        return (math.log(lower), math.log(upper)) if self.transform == "log" else (lower, upper)

    @property
    def bounds_of_quantiles(self) -> dict[str, Any]:
        """The response's part of the bounds of a mechanism of quantiles, which takes noise on heaped responses.

        They reach half a unit beyond its own: what lies at a bound would be a heap again.
        """
        if self.dither is None or self.bounds is None:
            return {"y": self.ends}
        (lower, upper), half, is_log = self.bounds, self.dither / 2, self.transform == "log"
        ends = float(max(lower - half, lower / 2) if is_log else lower - half), float(upper + half)
        return {"y": tuple(map(math.log, ends)) if is_log else ends, "dither": self.dither, "dither_of_log": is_log}

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Its public bounds in own units, by its name, if it has some."""
        return {} if self.bounds is None else {self.column: (float(self.bounds[0]), float(self.bounds[1]))}

    @property
    def substitute(self) -> float | str | None:
        """What a missing response counts as after the transformation; "drop"; or None where there is no policy."""
        if self.missing in (None, "drop"):
            return self.missing
        if self.levels is not None:
            return float(cells.place_of(self.missing, self.levels) == 1)
        number = float(self.missing)
        return math.log(number) if self.transform == "log" else number

    def check(self, table: nw.DataFrame | Columns) -> None:
        check_column(table, self.column, "the response")

    def of_table(self, table: nw.DataFrame | Columns) -> np.ndarray:
        return self.of(table[self.column])

    def of(self, cells_of_it: Any) -> np.ndarray:
        """The transformed response, shape (n,), NaN where records are to be dropped. Private.

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
        if self.substitute == "drop":
            return y
        absent = np.isnan(y)
        if self.substitute is None and absent.any():
            raise ValueError(
                f"the response, column {self.column!r}, has cells that are missing, infinite or no number, or no "
                "declared level: give a public value in their place, missing = ..."
            )
        y[absent] = self.substitute
        return y
