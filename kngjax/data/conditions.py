"""Conditions on records, as "wage > 500 and region == 'north'": their grammar is Python's, their meaning is here.

    x > 5, x >= 5, x < 5, x <= 5, x == 5     a number against a public one
    d > '2020-01-31'                         the same of days, where the bounds of d are dates
    c == 'north', c != 'north'               whether a category has one of its public levels
    ... and ...                              all of several

A column of any name is written between backticks, as in formulas: `house size` >= 500. Each condition is a map of one
record by itself. Nothing else is read, so that none can see two records.
"""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.errors import about
from kngjax.data import cells, dates, expressions
from kngjax.data.missing import ByColumn, policy_in
from kngjax.data.terms import Categorical, Indicator
from kngjax.data.terms.base import AbstractColumnTerm

_ALLOWED = (
    "like \"wage > 500\", \"region == 'north'\", or several with 'and' between them; a name with spaces or signs in it "
    'stands between backticks, "`house size` > 500"'
)


@dataclass(frozen=True)
class Condition:
    """Describes a condition on one column. Public.

    **Arguments:** `term`: of zeros and ones, one of which is 1 where it holds; or none, if `is_negated`.
    """

    term: AbstractColumnTerm
    is_negated: bool = False

    def of(self, table: Any) -> Float[np.ndarray, " records"]:
        """Returns 1 where private cells of its column meet it, 0 where not, NaN where records are dropped, shape (n,).

        Raises ValueError for missing cells without a policy; the message tells no value.
        """
        found = self.term.columns_of(table[self.term.column]).sum(axis=1)
        return 1.0 - found if self.is_negated else found


def read(
    text: Any, levels: Mapping[str, Sequence[Any]], missing: ByColumn, of_dates: Collection[str] = ()
) -> tuple[Condition, ...]:
    """Reads the conditions that are all to hold. No data are looked at.

    **Arguments:** all public. `levels`: those of each category. `missing`: by column what a missing cell counts as, or
    "drop"; "drop" alone is for all columns. `of_dates`: the columns whose bounds are dates, in days. Raises ValueError
    for whatever is not in the list of this module, and for levels that are not declared; TypeError for what is no text.
    """
    expressions.require_readable(text, "a condition", _ALLOWED)
    try:
        node = expressions.parsed(text)
    except SyntaxError:
        raise _refusal(text) from None
    nodes = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    return tuple(_condition(text, one, levels, missing, of_dates) for one in nodes)


def _condition(
    text: str, node: ast.expr, levels: Mapping[str, Sequence[Any]], missing: ByColumn, of_dates: Collection[str]
) -> Condition:
    try:
        column, comparison, value = expressions.comparison(node)
    except ValueError:
        raise _refusal(text) from None
    policy = policy_in(missing, column)
    if column in levels:
        return _of_level(text, column, comparison, value, tuple(levels[column]), policy)
    if column in of_dates and isinstance(value, str):
        value = dates.days(value)
        if value != value:
            raise ValueError(
                f"in {text!r}: {column!r} has dates, and is compared with one as \"{column} > '2020-01-31'\" writes it"
            )
    if isinstance(value, str):
        refusal = ValueError(
            f"in {text!r}: {column!r} is compared with text and has no public levels: levels={{{column!r}: (...)}}"
        )
        raise about(refusal, "levels", column)
    if comparison is None or comparison == "!=":
        raise _refusal(text)
    return Condition(Indicator(column, comparison, value, missing=policy))


def _of_level(
    text: str, column: str, comparison: str | None, value: Any, levels: tuple[Any, ...], policy: Any
) -> Condition:
    place = cells.place_of(value, levels)
    if comparison not in ("==", "!=") or place < 0:
        shown = ", ".join(map(repr, levels))
        raise ValueError(f"in {text!r}: {column!r} is a category, compared by == or != with one of its levels {shown}")
    ordered = (levels[place], *levels[:place], *levels[place + 1 :])
    # It has columns of all levels but the first.
    return Condition(Categorical(column, ordered, missing=policy), comparison == "==")


def _refusal(text: str) -> ValueError:
    return ValueError(f"{text!r} is no condition of one record at a time that is read here: write one {_ALLOWED}")
