"""Intervals of released regressions, with names: of coefficients in own units, and of predictions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.with_intervals import ReleaseWithIntervals

if TYPE_CHECKING:
    import pandas as pd

Found = Mapping[str, Interval | NoInterval]


def intervals_of(
    releases: Mapping[str, Any], level: float, combinations: Float[np.ndarray, "combinations dimension"]
) -> dict[str, Interval | NoInterval]:
    """Computes intervals of Aθ from each release, by label; raises ValueError for one that was made without intervals.

    **Arguments:** `releases`: by label. `level`: of each interval by itself. `combinations`: A.
    """
    found = {}
    for label, one in releases.items():
        if not isinstance(one, ReleaseWithIntervals):
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
        lower, upper = (one.lower, one.upper) if isinstance(one, Interval) else (-whole, whole)
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
    lines = said_once({label: _in_words(one) for label, one in found.items()})
    sums = [name for name, is_mixed in zip(names, mixed, strict=True) if is_mixed]
    if sums and any(isinstance(one, Interval) for one in found.values()):
        lines.append(
            f"those of {', '.join(sums)} are of sums of several released coefficients, whose errors go together"
        )
    return "; ".join(lines)


def said_once(words: Mapping[str, str]) -> list[str]:
    """Says what several have in common once, behind their names; without them where all have it in common."""
    names: dict[str, list[str]] = {}
    for name, said in words.items():
        names.setdefault(said, []).append(name)
    return [said if len(names) == 1 else f"{', '.join(own)}: {said}" for said, own in names.items()]


def _in_words(one: Interval | NoInterval) -> str:
    if isinstance(one, NoInterval):
        return f"from -inf to inf, since {one.reason}"
    return f"each {one.level:.12g}, by {one.method}; assumed: {'; '.join(one.assumptions)}"
