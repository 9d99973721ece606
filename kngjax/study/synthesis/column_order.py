"""Checks the columns of a synthetic table together: their order, how they are written, and their shares of ε."""

import json
from fractions import Fraction

from kngjax.accounting.exact_costs import exactly
from kngjax.data import formulas
from kngjax.study.synthesis.columns import AbstractColumn

# Shares may miss 1 by so much, as three of .333333333 do.
_NEAR = Fraction(1, 10**6)


def check_order(columns: tuple[AbstractColumn, ...]) -> None:
    """Raises ValueError unless each has a name of its own, and parents that come before it and have levels."""
    known: dict[str, AbstractColumn] = {}
    later = {column.name for column in columns}
    for column in columns:
        later.discard(column.name)
        if column.name in known:
            raise ValueError(f"two columns are called {column.name!r}")
        if len(set(column.parents)) < len(column.parents):
            raise ValueError(f"parents of {column.name!r} must be all different, not {column.parents}")
        for parent in column.parents:
            if parent not in known:
                remedy = (
                    f" Put it before {column.name!r}." if parent in later else formulas.similar_to(parent, [*known])
                )
                raise ValueError(
                    f"{parent!r}, a parent of {column.name!r}, is no earlier column, and columns depend on earlier "
                    f"ones alone.{remedy}"
                )
            if not known[parent].is_parent:
                raise ValueError(
                    f"{parent!r}, a parent of {column.name!r}, has no table of levels: parents are Category and Ordinal"
                )
        known[column.name] = column


def check_written(column: AbstractColumn) -> None:
    """Raises TypeError for settings that no file has: a ledger is told of them, and tables are kept with them."""
    try:
        json.dumps(column.to_dict(), allow_nan=False)
    except (TypeError, ValueError):
        raise TypeError(
            f"all that is said of column {column.name!r} must be text, finite numbers of Python and lists of these: "
            "others cannot be written with the plan"
        ) from None


def shares_of(columns: tuple[AbstractColumn, ...], taken: Fraction) -> dict[str, Fraction]:
    """Returns the part of ε of each column by name; they add up to what is not taken. Raises ValueError for others."""
    given = {
        column.name: exactly(column.share, f"share of {column.name!r}")
        for column in columns
        if column.share is not None
    }
    for name, share in given.items():
        if not 0 < share <= 1:
            raise ValueError(f"share of {name!r} must be a part of epsilon, in (0, 1], not {float(share):g}")
    rest, others = 1 - taken - sum(given.values()), len(columns) - len(given)
    if others == 0 and abs(rest) <= _NEAR:
        return {name: share * (1 - taken) / sum(given.values()) for name, share in given.items()}
    if rest < 0 or (others and rest == 0) or (not others and rest):
        raise ValueError(
            f"the shares must add up to {float(1 - taken):g} of epsilon, and leave a part to columns without one: those"
            f" given add up to {float(sum(given.values())):g}"
        )
    return {column.name: given.get(column.name, rest / others if others else Fraction(0)) for column in columns}
