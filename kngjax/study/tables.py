"""Makes the mechanisms of counts and tables, with whole noise on each count, by public facts alone."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.accounting.adjacency import plural
from kngjax.core.errors import about
from kngjax.data import conditions, dates
from kngjax.study.analyses import Analysis, Part
from kngjax.study.classifications import AnyRow, Axis, Classification, Meets

# The number of intervals where nobody says how many.
_INTERVALS = 10


def count(facts: Any, where: str | None, epsilon: Any, of: str = "rows") -> Analysis:
    """Plans a count of the records, or of those that meet a condition.

    **Arguments:** `facts`: a `PublicFacts`. `of`: "rows", of which those of one person share votes, or "persons" by any
    of their rows.
    """
    unit, adjacency = facts.unit_of_rows, facts.adjacency.value
    if of not in ("rows", "persons") or (of == "persons" and unit is None):
        raise ValueError(f"of must be 'rows', or of a study with person= also 'persons', not {of!r}")
    # Under replace the sum of weights is not public as the number of records is.
    has_weights = facts.weights is not None and of == "rows" and not (unit is not None and unit.most_rows == 1)
    if where is None and adjacency == kng.Adjacency.REPLACE.value and not has_weights:
        counted = "records is public: it is len(frame)"
        if unit is not None:
            votes = "" if of == "persons" else f", and all rows of one {unit.name} count as one"
            counted = f"{plural(unit.name)} is public{votes}"
        raise ValueError(
            f"under replace the number of {counted}. A count of some of them needs a condition, like "
            "count(\"region == 'north'\", epsilon=1)"
        )
    read = () if where is None else conditions.read(where, facts.levels, facts.missing, facts.dates)
    response: Any = Meets(where or "", read, "records" if unit is None else "votes")
    if unit is not None and of == "persons":
        response = AnyRow(response, unit)
    bounds = kng.Bounds(y=(0.0, 1.0), missing_y=response.substitute)
    made = kng.GeometricMechanism(bounds, epsilon, adjacency, counted=[1])
    title, condition = "number of records", f" where {where}" if where else ""
    if unit is not None:
        several = plural(unit.name)
        title, condition = {
            "persons": (f"number of {several}", condition and f" with a row{condition}"),
            "rows": (f"votes of {several}", condition and f" in rows{condition}"),
        }[of]
    return Analysis(f"{title}{condition}", response, None, (Part("count", made),), names_of_values=(response.name,))


def table(axes: Sequence[Axis], epsilon: Any, adjacency: str, title: str) -> Analysis:
    """Plans counts of the records in each cell of a table: each record is in one cell."""
    response = Classification(tuple(axes))
    cells = math.prod(response.shape)
    bounds = kng.Bounds(y=(0.0, cells - 1.0), missing_y=response.substitute)
    made = kng.GeometricMechanism(bounds, epsilon, adjacency)
    return Analysis(f"{title} of {response.name}", response, None, (Part("count", made),), names_of_values=())


def axis(facts: Any, column: str, edges: Any) -> Axis:
    """Returns the side of a table that a column makes.

    **Arguments:** `facts`: a `PublicFacts`. `edges`: of a column of numbers, in how many equal intervals its bounds are
    to be cut, ten if left out; or the ends of the intervals, from one bound to the other, as dates or days where bounds
    are dates. Raises ValueError for a column without bounds and levels, and for edges of levels or beside the bounds.
    """
    policy, of_dates = facts.policy_of(column), facts.dates
    if column in facts.levels:
        if edges is not None:
            raise ValueError(f"{column!r} is a category, whose public levels make the table: leave its edges out")
        return Axis(column, levels=tuple(facts.levels[column]), missing=policy)
    if column not in facts.bounds:
        raise about(
            ValueError(
                f"column {column!r} needs public levels, levels={{{column!r}: (...)}}, or public bounds in own units, "
                f"bounds={{{column!r}: (lower, upper)}}; none may be read off the data"
            ),
            "levels",
            column,
        )
    low, high = facts.bounds[column]
    number = _INTERVALS if edges is None else edges
    if isinstance(number, int | np.integer) and not isinstance(number, bool):
        if number < 2:
            raise ValueError(f"edges must be at least two intervals, or their ends, not {number}")
        ends = np.linspace(low, high, int(number) + 1).tolist()
        return Axis(column, edges=(low, *ends[1:-1], high), missing=policy)
    if isinstance(number, str) or not isinstance(number, Sequence | np.ndarray):
        raise TypeError(f"edges of {column!r} must be a number of intervals, or their ends, not {edges!r}")
    ends = tuple(map(dates.plain, number))
    if column in of_dates:
        ends = tuple(map(dates.code_in_days, ends))
    elif any(map(dates.is_date, ends)):
        raise TypeError(f"edges of {column!r} are dates, and its bounds are numbers: give dates as bounds, or numbers")
    made = Axis(column, edges=ends, missing=policy)
    if (ends[0], ends[-1]) != (low, high):
        first, last = ((column in of_dates and dates.written(end)) or f"{end:g}" for end in (low, high))
        raise ValueError(
            f"edges of {column!r} must go from one public bound to the other, {first} to {last}, as its numbers are "
            "clipped to them"
        )
    return made
