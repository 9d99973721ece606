"""Policies for missing cells say what NaN, an infinite cell or one that is no number counts as, column by column.

A policy maps each record by itself: a number in place of such cells, or "drop" for the record. Without a policy,
data that have such cells fail, which is one bit about them that nothing hides.

Codes are public too: cells that hold one, like 9999999 or "refused", are missing, each by itself alone.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from kngjax.data import cells, dates
from kngjax.data.named_columns import like

DROP = "drop"

Policy = float | str | None
Policies = Policy | tuple[Policy, ...]
# By column what a missing cell counts as, or "drop", alone for all columns too.
ByColumn = Mapping[str, Any] | str | None
# By column what stands for a missing cell.
Codes = Mapping[str, tuple[Any, ...]]


def policy_in(missing: ByColumn, column: str) -> Any:
    """Returns the policy of a column, of policies by name, "drop" for all, or None."""
    return missing if isinstance(missing, str) else (missing or {}).get(column)


def policies(missing: Any, names: Sequence[str] | None, columns: int | None) -> Policies:
    """Gives the policy of all columns of X, or a tuple with a policy for each.

    **Arguments:** `missing`: as in `kngjax.Bounds`. `names`: the names of the columns, where they are declared.
    `columns`: their number, where it is known. Raises TypeError for what is no policy, ValueError for unknown columns.
    """
    if isinstance(missing, Mapping):
        if names is None:
            raise ValueError("missing by name needs the names of the columns: Bounds(x={'age': (0, 99)}, ...)")
        if unknown := [name for name in missing if name not in names]:
            raise ValueError(f"missing names {unknown}, which are no columns of x")
        return tuple(_policy(missing.get(name)) for name in names)
    if isinstance(missing, Sequence | np.ndarray) and not isinstance(missing, str):
        if len(missing) != columns:
            raise ValueError(f"missing has {len(missing)} values for {columns} columns of x")
        return tuple(_policy(one) for one in missing)
    return _policy(missing)


def policy_of_response(missing_y: Any) -> Policy:
    """Returns the policy of the response: a number, or a level in words, or "drop", or None."""
    return missing_y if isinstance(missing_y, str) else _policy(missing_y)


def policy_of_each_column(missing: Policies, columns: int) -> tuple[Policy, ...]:
    """Returns the policy of each of so many columns."""
    return missing if isinstance(missing, tuple) else (missing,) * columns


def require_inside(
    name: str, missing: Policies, lower: Any, upper: Any, columns_named: Sequence[str] | None = None
) -> None:
    """Raises ValueError for a number in place of missing cells that lies outside of the bounds, where there are any.

    **Arguments:** `columns_named`: the names of the columns, where they are declared.
    """
    if lower is None:
        return
    columns = max(np.size(lower), np.size(upper), len(missing) if isinstance(missing, tuple) else 1)
    sides = (np.broadcast_to(np.asarray(side), (columns,)) for side in (lower, upper))
    for index, (policy, low, high) in enumerate(zip(policy_of_each_column(missing, columns), *sides, strict=True)):
        if isinstance(policy, float) and not low <= policy <= high:
            column = f" of column {index} (from 0)" * (columns > 1)
            column = column if columns_named is None else f" of column {columns_named[index]!r}"
            raise ValueError(f"{name} = {policy:g} lies outside of the bounds [{low:g}, {high:g}]{column}")


def fill_missing(
    columns: Float[np.ndarray, "records columns"], missing: Policies
) -> tuple[Float[np.ndarray, "records columns"], Bool[np.ndarray, " records"]]:
    """Returns the columns with the policies' public numbers in place of NaN, in place; and which records to drop."""
    absent = np.isnan(columns)
    drop = np.zeros(len(columns), bool)
    for index, policy in enumerate(policy_of_each_column(missing, columns.shape[1])):
        if policy == DROP:
            drop |= absent[:, index]
        elif policy is not None:
            columns[absent[:, index], index] = policy
    return columns, drop


def codes_by_column(
    given: Any,
    missing: Any,
    levels: Mapping[str, Sequence[Any]],
    known: Collection[str],
    of_dates: Collection[str] = (),
) -> Codes:
    """Returns the codes of each column, numbers of NumPy as Python's, dates as days; empty without any.

    **Arguments:** all public. `given`: by column one code or several, numbers or text. `missing`: the policies, as
    `Study` takes them. `levels`: those that were declared. `known`: the columns with bounds or levels. `of_dates`:
    those whose bounds were dates: codes are dates, text that writes one, or numbers of days. Raises TypeError
    for what are no codes; ValueError for other columns, for a code that is a declared level, and for a column without a
    policy, of which every release with such a cell would fail.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"missing_codes must name columns, missing_codes={{'wage': [9999999, -1]}}, not a {type(given).__name__}"
        )
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"missing_codes names {unknown}, which have neither bounds nor levels")
    found = {}
    for name, several in given.items():
        listed = list(several) if isinstance(several, list | tuple | set | frozenset | np.ndarray) else [several]
        own = tuple(dates.plain(one) for one in listed)
        if name in of_dates:
            own = tuple(map(dates.code_in_days, own))
            if any(code != code for code in own):
                raise TypeError(
                    f"missing_codes of column {name!r}, whose bounds are dates, must be dates, like '2020-01-31', or "
                    "days since 1970-01-01; text that is no date counts as missing without a code"
                )
        words = [code for code in own if isinstance(code, str)]
        finite = [code for code in own if isinstance(code, int | float) and np.isfinite(code)]
        for kind in (words, finite):
            cells.require_levels(f"missing_codes of column {name!r}", kind)
        if not own or len(words) + len(finite) < len(own):
            raise TypeError(f"missing_codes of column {name!r} must be finite numbers or text, like [9999999, -1]")
        if both := [code for code in own if any(cells.same_level(code, level) for level in levels.get(name, ()))]:
            raise ValueError(f"missing_codes of column {name!r}: {both[0]!r} is one of its levels")
        if policy_in(missing, name) is None:
            raise ValueError(f"missing_codes of column {name!r} need what a missing cell counts as: say it in missing")
        found[name] = own
    return found


def hold_code(column: Any, codes: Sequence[Any]) -> Bool[np.ndarray, " records"]:
    """Tells whether each cell, shape (n,), holds a code, by the rule of levels in `kngjax.data.cells`. Private.

    **Arguments:** `column`: private. `codes`: public.
    """
    return cells.levels(column, codes) >= 0


def without_codes(table: Any, codes: Codes) -> Any:
    """Returns the table in which cells that hold a code of their column are missing; a column's type is kept.

    **Arguments:** `table`: private, of narwhals or `Columns`. `codes`: public.
    """
    if not codes:
        return table

    def column_of(name: str) -> Any:
        column = table[name]
        if name not in codes or not cells.is_readable(column):
            return column
        held = hold_code(column, codes[name])
        values = objects(column) if cells._is_of_bools(column) else cells._values(column)
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            return np.where(held, np.nan, values)
        return [None if is_code else cell for cell, is_code in zip(values, held, strict=True)]

    return like(table, column_of)


def objects(column: Any) -> list[Any]:
    """Returns the cells as objects of Python, bools as bools, None or NaN where they are missing. Private."""
    values = cells._values(column)
    if cells._is_of_bools(column):
        return [None if np.isnan(value) else bool(value) for value in values]
    return list(values)


def explain_codes(codes: Codes, columns: Collection[str], of_dates: Collection[str] = ()) -> tuple[str, ...]:
    """Names the codes of these columns in one sentence for a certificate; none where they have none.

    **Arguments:** `of_dates`: the columns whose codes are days, of which the dates are told.
    """

    def word(name: str, code: Any) -> str:
        return (dates.written(code) if name in of_dates else None) or repr(code)

    own = {name: [word(name, code) for code in codes[name]] for name in codes if name in columns}
    each = [f"{' or '.join(words)} in {name}" for name, words in own.items()]
    return (f"cells that hold a code count as missing: {', '.join(each)}",) if each else ()


def explain(
    missing: Policies, names: Sequence[str] | None, missing_y: Policy, has_columns: bool, has_response: bool
) -> str:
    """Explains the policies in one sentence for a certificate."""
    parts = []
    if has_columns and not isinstance(missing, tuple):
        parts.append(f"in X {_in_words(missing)}")
    elif has_columns and isinstance(missing, tuple):
        labels = [f"column {index}" for index in range(len(missing))] if names is None else names
        parts += [f"in {label} {_in_words(policy)}" for label, policy in zip(labels, missing, strict=True)]
    if has_response:
        parts.append(f"in the response {_in_words(missing_y)}")
    return "cells that are missing, NaN, infinite, no number or no level: " + ", ".join(parts)


def _in_words(policy: Policy) -> str:
    if policy is None:
        return "they make a release fail"
    return "their records are left out" if policy == DROP else f"they count as {policy!r}"


def _policy(value: Any) -> Policy:
    if value is None or (isinstance(value, str) and value == DROP):
        return value
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "fiu" or not np.isfinite(number):
        raise TypeError(f"missing must be a finite number, 'drop' or None, one for all columns or one each: {value!r}")
    return float(number)
