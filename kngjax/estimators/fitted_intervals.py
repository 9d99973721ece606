"""Intervals of released regressions, with names: of coefficients in own units, and of predictions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

import kngjax as kng
from kngjax.estimators.carrying_out import Released

if TYPE_CHECKING:
    import pandas as pd

Found = Mapping[str, kng.Interval | kng.NoInterval]


def intervals_of(
    releases: Mapping[str, Released], level: float, combinations: Float[np.ndarray, "combinations dimension"]
) -> dict[str, kng.Interval | kng.NoInterval]:
    """Computes intervals of Aθ from each release, by label; raises ValueError for one that was made without intervals.

    **Arguments:** `releases`: by label. `level`: of each interval by itself. `combinations`: A.
    """
    found = {}
    for label, one in releases.items():
        if not isinstance(one, kng.ReleaseWithIntervals):
            raise ValueError(
                "this regression was released without intervals, and standard errors of its records would be a second "
                "release without a guarantee: ask for them beforehand, intervals=True, which costs a part of the "
                "same epsilon"
            )
        found[label] = one.intervals(level, combinations)
    return found


def frames_of(found: Found, index: Any) -> "dict[str, pd.DataFrame]":
    """Columns lower and upper by label, from -inf to inf where the release says nothing: never NaN."""
    import pandas as pd

    frames = {}
    for label, one in found.items():
        whole = np.full(len(index), np.inf)
        lower, upper = (one.lower, one.upper) if isinstance(one, kng.Interval) else (-whole, whole)
        frames[label] = pd.DataFrame({"lower": lower, "upper": upper}, index=index)
    return frames


def side_by_side(frames: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """Returns the only frame, or several side by side below their labels."""
    import pandas as pd

    return next(iter(frames.values())) if len(frames) == 1 else pd.concat(frames, axis=1)


def in_words(found: Found, names: Sequence[str], mixed: Sequence[bool]) -> str:
    """Says how intervals were made and what they assume, or why there are none.

    **Arguments:** `mixed`: which of the coefficients of these names are sums of several of the basis.
    """
    each: dict[str, list[str]] = {}
    for label, one in found.items():
        each.setdefault(_in_words(one), []).append(label)
    lines = [words if len(each) == 1 else f"{', '.join(labels)}: {words}" for words, labels in each.items()]
    sums = [name for name, is_mixed in zip(names, mixed, strict=True) if is_mixed]
    if sums and any(isinstance(one, kng.Interval) for one in found.values()):
        lines.append(
            f"those of {', '.join(sums)} are of sums of several released coefficients, whose errors go together"
        )
    return "; ".join(lines)


def _in_words(one: kng.Interval | kng.NoInterval) -> str:
    if isinstance(one, kng.NoInterval):
        return f"from -inf to inf, since {one.reason}"
    return f"each {one.level:.12g}, by {one.method}; assumed: {'; '.join(one.assumptions)}"
