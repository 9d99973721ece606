"""Columns of numbers of a synthetic table, which are drawn from released quantile curves."""

import abc
import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from kngjax.data.terms.base import is_number
from kngjax.study.responses import Response
from kngjax.study.synthesis.columns import (
    AbstractColumn,
    AbstractWholeNumbers,
    all_numbers,
    check_ends,
    check_whole,
    make_plain,
)

# The quantile levels of curves where none are named: three depths of a tree.
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


class AbstractCurvedColumn(AbstractColumn):
    """Describes a column of numbers that follow quantile curves at `levels`; those at `heaps` have a table."""

    levels: tuple[float, ...]
    heaps: tuple[float, ...] = ()

    @property
    @abc.abstractmethod
    def response(self) -> Response:
        """Describes the response whose quantiles the curves are."""

    @property
    def labels(self) -> tuple[Any, ...]:
        """Returns the heaps, then "other" for all numbers beside them; empty where there are no heaps."""
        return (*self.heaps, "other") if self.heaps else ()

    @property
    def is_parent(self) -> bool:
        return False

    def are_beside_heaps(self, values: np.ndarray) -> Bool[np.ndarray, " records"]:
        """Marks the values that follow the curves."""
        return ~np.isin(values, self.heaps)

    def places(self, values: np.ndarray) -> Int[np.ndarray, " records"]:
        places = np.full(values.shape, len(self.heaps))
        for place, heap in enumerate(self.heaps):
            places[values == heap] = place
        return places

    def of_places(self, places: Int[np.ndarray, " records"]) -> np.ndarray:
        """Returns the heap of each place, and NaN for the place beside the heaps."""
        return np.array([*self.heaps, np.nan], np.float64)[places]

    @abc.abstractmethod
    def of_drawn(self, drawn: np.ndarray) -> np.ndarray:
        """Turns draws from the curves into values of the column."""


@dataclasses.dataclass(frozen=True)
class Count(AbstractCurvedColumn, AbstractWholeNumbers):
    """Describes a column of many whole numbers, drawn from quantile curves; noise on each number undoes heaps.

    Each cell by itself is clipped to the bounds and rounded to the nearest whole number k; the curves are of k + u with
    u uniform on (-1/2, 1/2), drawn for each record by itself, which costs no privacy (`kngjax.data.dither` has the
    proof); what is drawn from them is rounded to the nearest whole number, which gives k back from k + u.

    **Arguments:** all public. `name`: of the column. `low`, `high`: the least and the largest number. `given`: the
    right side of a formula of earlier columns, like "C(region) + poly(education, 2)", of up to four coefficients with
    the intercept; None: the curves depend on nothing. `levels`: of the quantiles, at least two in increasing order.
    `missing`: the whole number that cells count as which are no number; None: they fail the release. `share`: its part
    of ε.
    """

    name: Any
    low: Any
    high: Any
    given: Any = None
    levels: Any = LEVELS
    missing: Any = None
    share: Any = None

    def __post_init__(self) -> None:
        make_plain(self)
        check_whole(self.name, self.low, self.high, self.missing)
        check_given(self.name, self.given)

    @property
    def response(self) -> Response:
        return Response(self.name, None, (self.low, self.high), dither=1)

    def of_drawn(self, drawn: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(drawn), self.low, self.high)


@dataclasses.dataclass(frozen=True)
class Numeric(AbstractCurvedColumn):
    """Describes a column of numbers, drawn from quantile curves, and from a table of heaps if some are named.

    Each cell by itself is the heap that it equals, or is clipped to the bounds. A table of counts says, for each
    combination of the parents, how many records are at each heap, and how many at none; the curves are of those at
    none.

    **Arguments:** all public. `name`: of the column. `low`, `high`: the least and the largest number, but for heaps.
    `transform`: "log" for curves of its logarithm, or None. `heaps`: numbers that many records may have, like 0; they
    may lie outside of the bounds. `parents`: names of earlier columns that the table of heaps is by. `given`: the right
    side of a formula of earlier columns, as of `Count`. `levels`: of the quantiles. `dither`: the unit that the numbers
    were rounded to, or None: curves are then of numbers with noise of this width, as they are nearly blind where very
    many records have few numbers. `missing`: the number that cells count as which are none; None: they fail the
    release. `share`: its part of ε, of which a table of heaps has a fourth.
    """

    name: Any
    low: Any
    high: Any
    transform: Any = None
    heaps: Any = ()
    parents: Any = ()
    given: Any = None
    levels: Any = LEVELS
    dither: Any = None
    missing: Any = None
    share: Any = None

    def __post_init__(self) -> None:
        make_plain(self)
        check_ends(self.name, self.low, self.high)
        check_given(self.name, self.given)
        if self.transform not in (None, "log"):
            raise ValueError(f"transform of {self.name!r} must be 'log' or None, not {self.transform!r}")
        if not all(is_number(heap) and math.isfinite(heap) for heap in self.heaps):
            raise ValueError(f"heaps of {self.name!r} must be finite numbers, like [0], not {self.heaps}")
        if len(set(map(float, self.heaps))) < len(self.heaps):
            raise ValueError(f"heaps of {self.name!r} must be all different, not {self.heaps}")
        if self.parents and not self.heaps:
            raise ValueError(
                f"parents of {self.name!r} are of the table of its heaps, and it has none: columns that its numbers "
                "depend on are named in a formula, given='C(region)'"
            )
        if self.missing is not None and not (is_number(self.missing) and math.isfinite(self.missing)):
            raise ValueError(f"missing of {self.name!r} must be a finite number or None, not {self.missing!r}")
        # Raises ValueError for bounds and a transform that do not fit together.
        _ = self.response

    @property
    def facts(self) -> tuple[tuple[float | int, float | int], None]:
        return (min(self.low, *self.heaps, self.high), max(self.high, *self.heaps, self.low)), None

    @property
    def response(self) -> Response:
        return Response(self.name, self.transform, (self.low, self.high), dither=self.dither)

    def read(self, column: Any) -> np.ndarray:
        numbers = all_numbers(self.name, column, self.missing)
        return np.where(self.are_beside_heaps(numbers), np.clip(numbers, self.low, self.high), numbers)

    def of_drawn(self, drawn: np.ndarray) -> np.ndarray:
        return np.clip(np.exp(drawn) if self.transform == "log" else drawn, self.low, self.high)


def check_given(name: str, given: Any) -> None:
    """Raises TypeError or ValueError unless this can be the right side of a formula, or None."""
    if not isinstance(given, str | None):
        raise TypeError(f"given of {name!r} must be the right side of a formula, like 'C(region)', not {given!r}")
    if given is not None and "~" in given:
        raise ValueError(f"given of {name!r} is the right side of a formula alone, like 'C(region)', not {given!r}")
