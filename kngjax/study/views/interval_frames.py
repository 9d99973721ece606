"""Intervals of released regressions, with names: of coefficients in own units, and of predictions."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from kngjax.core.later import pd
from kngjax.inference.given_sums import ends_of_draws
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.with_intervals import ReleaseWithIntervals

_USUAL = 0.95

Found = Mapping[str, Interval | NoInterval]


def require_intervals(releases: Iterable[Any]) -> None:
    """Raises ValueError unless all releases were made with intervals."""
    if not all(isinstance(one, ReleaseWithIntervals) for one in releases):
        raise ValueError(
            "this regression was released without intervals, and standard errors of its records would be a second "
            "release without a guarantee: ask for them beforehand, intervals=True, which costs a part of the same "
            "epsilon"
        )


def frames_of(found: Found, index: Any) -> "dict[str, pd.DataFrame]":
    """Columns lower and upper by label, from -inf to inf where the release says nothing: never NaN."""
    frames = {}
    for label, one in found.items():
        whole = np.full(len(index), np.inf)
        lower, upper = (one.lower, one.upper) if isinstance(one, Interval) else (-whole, whole)
        frames[label] = pd.DataFrame({"lower": lower, "upper": upper}, index=index)
    return frames


def tell_errors(releases: Iterable[Any]) -> bool:
    """Tells whether the widths of intervals tell how far their middles are off, of all of these releases."""
    return all(one.has_deviations for one in releases if isinstance(one, ReleaseWithIntervals))


def errors_of(ends: "pd.DataFrame", level: float = _USUAL) -> Any:
    """Computes the errors with which normal estimates had these intervals: (upper - lower)/3.92 of 95% intervals."""
    return (ends["upper"] - ends["lower"]) / (2.0 * NormalDist().inv_cdf(0.5 + 0.5 * level))


def with_errors(ends: "pd.DataFrame", error: Any) -> "pd.DataFrame":
    """Puts standard errors before columns lower and upper; NaN where none is told, so that tables have one shape."""
    return pd.DataFrame({"std. error": error, "lower": ends["lower"], "upper": ends["upper"]})


def rows_of(estimate: "pd.Series", ends: "pd.DataFrame | None", level: float) -> "pd.DataFrame":
    """Makes a row a number: its name, its estimate, and of an interval the standard error, the ends and the level.

    **Arguments:** `estimate`: by name. `ends`: of `with_errors` with the same index, or None. `level`: of the interval.
    """
    made = estimate.to_frame("estimate")
    if ends is not None:
        made = pd.concat([made, ends], axis=1).assign(level=level)
    return with_columns(estimate.index.to_frame(index=False), made.reset_index(drop=True))


def stacked(frames: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
    """Puts the rows of several releases below one another, behind a column with their labels."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    named = [with_columns(pd.DataFrame({"release": label}, one.index), one) for label, one in frames.items()]
    return pd.concat(named, ignore_index=True)


def with_columns(before: "pd.DataFrame", table: "pd.DataFrame") -> "pd.DataFrame":
    """Puts columns before those of a table; one that has the name of one of these is called "column NAME"."""
    named = [f"column {name}" if name in table else name for name in before]
    return pd.concat([before.set_axis(named, axis=1), table], axis=1)


def difference_of(name: str, estimates: Any, draws: Any, level: float) -> "pd.DataFrame":
    """Puts differences beside their standard errors and intervals, the quantiles of their draws.

    **Arguments:** `name`: of the row of a single one. `estimates`, `draws`: of each difference, a series and a frame.
    """
    made = pd.Series(np.ravel(estimates), [name] if draws.shape[1] == 1 else estimates.index, name="estimate")
    ends, wide = (
        pd.DataFrame(np.transpose(ends_of_draws(draws.to_numpy(), one)), made.index, ["lower", "upper"])
        for one in (level, _USUAL)
    )
    return made.to_frame().join(with_errors(ends, errors_of(wide)))


def side_by_side(frames: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """Returns the only frame, or several side by side below their labels."""
    return next(iter(frames.values())) if len(frames) == 1 else pd.concat(frames, axis=1)


def in_words(found: Found, names: Sequence[str], mixed: Sequence[bool], in_full: bool = True) -> str:
    """Says how intervals were made and what they assume, or why there are none.

    **Arguments:** `mixed`: which of the coefficients of these names are sums of several of the basis. `in_full`: False
    leaves out what they assume, and which are of sums.
    """
    lines = said_once({label: _in_words(one, in_full) for label, one in found.items()})
    sums = [name for name, is_mixed in zip(names, mixed, strict=True) if is_mixed]
    if in_full and sums and any(isinstance(one, Interval) for one in found.values()):
        lines.append(
            f"{', '.join(sums)}: by draws of a sum of several released coefficients, whose errors are correlated"
        )
    return "; ".join(lines)


def said_once(words: Mapping[str, str | Sequence[str]]) -> list[str]:
    """Says what several have in common once, behind their names; without them where all have it in common."""
    names: dict[str, list[str]] = {}
    for name, told in words.items():
        for said in [told] if isinstance(told, str) else told:
            names.setdefault(said, []).append(name)
    return [said if len(own) == len(words) else f"{', '.join(own)}: {said}" for said, own in names.items()]


def _in_words(one: Interval | NoInterval, in_full: bool) -> str:
    if isinstance(one, NoInterval):
        return f"from -inf to inf, since {one.reason}"
    if not in_full:
        return f"each {one.level:.12g}, by {one.method.partition(', ')[0]}"
    return f"each {one.level:.12g}, by {one.method}; assumed: {'; '.join(one.assumptions)}"
