"""Public facts of the columns of X as scikit-learn's users say them: by name, by position, or one for all."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kngjax.data.terms import Categorical, Design, Polynomial
from kngjax.data.terms.base import AbstractTerm, is_number


def design_of(names: Sequence[str], by_name: bool, bounds: Any, levels: Any, missing: Any) -> Design:
    """Makes a linear term of each numeric column and dummies of each category, in the order of X.

    **Arguments:** all public. `names`: of the columns. `by_name`: whether X has them, so that facts are found by name
    and never by position; else names are made up, and facts are by position. `bounds`: (lower, upper) for all columns
    without levels, a list of one pair a column (None where it has levels), or a mapping. `levels`: a mapping to the
    levels, the reference first. `missing`: what cells count as that are missing: one number for all columns of numbers,
    "drop", or a mapping.

    **Raises:** ValueError or TypeError for absent facts, for what are none, and for facts by position of named columns.
    """
    keys: list[Any] = list(names) if by_name else list(range(len(names)))
    choices = {key: tuple(map(plain, found)) for key, found in _mapping("levels", levels, keys, by_name).items()}
    ends = _bounds_of(bounds, keys, by_name, choices)
    terms: list[AbstractTerm] = []
    for key, name in zip(keys, names, strict=True):
        policy = _policy(missing, key, keys, by_name, key in choices)
        if key in choices:
            terms.append(Categorical(name, choices[key], policy))
        elif key in ends:
            terms.append(Polynomial(name, *ends[key], missing=policy))
        else:
            which = repr(name) if by_name else f"{key} (from 0)"
            raise ValueError(
                f"column {which} of X has neither bounds nor levels: give public ones, like bounds={{{key!r}: (0, 99)}}"
                f" or levels={{{key!r}: ('no', 'yes')}}; none may be read off the data"
            )
    return Design(tuple(terms))


def plain(value: Any) -> Any:
    """Turns a number of NumPy into Python's."""
    return value.item() if isinstance(value, np.generic) else value


def pair_of(name: str, given: Any) -> tuple[float | int, float | int]:
    """Returns a lower and an upper bound; raises ValueError or TypeError naming the argument."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence | np.ndarray) or len(given) != 2:
        raise ValueError(f"{name} must be a pair (lower, upper) of public numbers, like (0, 99), not {given!r}")
    low, high = map(plain, given)
    if not (is_number(low) and is_number(high) and math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be finite numbers, the lower one first, like (0, 99), not {given!r}")
    return low, high


def _bounds_of(given: Any, keys: list[Any], by_name: bool, choices: Mapping[Any, Any]) -> dict[Any, Any]:
    rest = [key for key in keys if key not in choices]
    if given is None or isinstance(given, Mapping):
        found = _mapping("bounds", given, keys, by_name)
        if both := [key for key in found if key in choices]:
            raise ValueError(f"columns {both} have bounds and levels: numbers have bounds, categories have levels")
        return {key: pair_of(f"bounds of column {key!r}", pair) for key, pair in found.items()}
    if isinstance(given, Sequence | np.ndarray) and len(given) == 2 and all(is_number(plain(one)) for one in given):
        return dict.fromkeys(rest, pair_of("bounds", given))
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(f"bounds must be a pair, a list of pairs or a mapping, not a {type(given).__name__}")
    if by_name:
        raise ValueError(
            "bounds are by position, and X has named columns, whose order may change: give them by name, like "
            f"bounds={{{keys[0]!r}: (0, 99)}}"
        )
    if len(given) != len(keys):
        raise ValueError(f"bounds has {len(given)} pairs, and X has {len(keys)} columns")
    return {key: pair_of(f"bounds of column {key}", given[key]) for key in rest}


def _mapping(argument: str, given: Any, keys: list[Any], by_name: bool) -> dict[Any, Any]:
    """Selects the entries of a mapping that are for columns of X; other names may be another step's columns."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be a mapping from columns, not a {type(given).__name__}")
    if not by_name and (names := [key for key in given if isinstance(key, str)]):
        raise ValueError(
            f"{argument} is by name, {names}, and X has no names of columns: pass a data frame (in a pipeline "
            f'set_output(transform="pandas")), or positions, like {argument}={{0: ...}}'
        )
    return {key: given[key] for key in keys if key in given}


def _policy(missing: Any, key: Any, keys: list[Any], by_name: bool, is_category: bool) -> Any:
    if isinstance(missing, Mapping):
        return plain(_mapping("missing", missing, keys, by_name).get(key))
    if isinstance(missing, str) and missing != "drop":
        raise ValueError(f'missing must be a number, "drop" or a mapping from columns, not {missing!r}')
    return None if is_category and missing != "drop" else plain(missing)
