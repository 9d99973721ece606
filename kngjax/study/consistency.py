"""Released counts made consistent with what is known in public: the nearest that are, by least squares.

Post-processing of what was released costs no privacy. Where all noise has one variance, the nearest point of a convex
set that holds the true counts is never farther from them than what was released, and the linear part of it is the best
linear unbiased estimate (Hay, Rastogi, Miklau and Suciu 2010). Setting counts of 0 to no less than 0 biases
small ones upward; a known total takes most of that back.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

Table = Float[np.ndarray, "..."]
# The largest move in a step of all projections, as a part of the largest count.
_CLOSE = 1e-10
_MOST_STEPS = 20_000


def nearest(
    counts: Table, *, nonnegative: bool, total: float | None, margins: Mapping[int, Float[np.ndarray, " levels"]]
) -> Table:
    """Finds the counts with least Σ(x - c)² among those that meet the constraints.

    **Arguments:** `counts`: c. `nonnegative`: no count is below 0. `total`: what all add up to, or None. `margins`: by
    axis, what the counts of each of its levels add up to.

    Without margins the minimum is exact (Duchi et al. 2008, figure 1, with a total). With margins it is found by
    Dykstra's alternating projections (Boyle and Dykstra 1986), up to 10⁻¹⁰ of the largest count. Raises ValueError for
    a total and margins that contradict each other, or lie below 0 where counts may not, and where no solution is found.
    """
    _check(nonnegative, total, margins)
    if not margins:
        if total is None:
            return np.maximum(counts, 0.0) if nonnegative else counts
        return _on_simplex(counts, total) if nonnegative else counts + (total - counts.sum()) / counts.size
    steps: list[Callable[[Table], Table]] = [
        lambda x, axis=axis, margin=margin: _with_margin(x, axis, margin) for axis, margin in margins.items()
    ]
    if nonnegative:
        steps.append(lambda x: np.maximum(x, 0.0))
    return _dykstra(counts, steps)


def _check(nonnegative: bool, total: float | None, margins: Mapping[int, np.ndarray]) -> None:
    totals = ([] if total is None else [float(total)]) + [float(margin.sum()) for margin in margins.values()]
    if totals and max(totals) - min(totals) > 1e-9 * max(1.0, *map(abs, totals)):
        raise ValueError(
            f"the total and the margins contradict each other, they add up to {', '.join(f'{t:g}' for t in totals)}: "
            "make released margins consistent first, as by with_total"
        )
    smallest = min([0.0 if total is None else float(total), *(float(margin.min()) for margin in margins.values())])
    if nonnegative and smallest < 0.0:
        raise ValueError(f"no counts of 0 and more add up to {smallest:g}: make the total and the margins so first")


def _on_simplex(counts: Table, total: float) -> Table:
    """Projects counts to max(c - t, 0), with t such that these add up to the total."""
    falling = np.sort(counts.ravel())[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    # The most that stay above 0.
    number = np.flatnonzero(falling - shifts > 0.0)
    return np.maximum(counts - (shifts[number[-1]] if number.size else falling[0]), 0.0)


def _with_margin(counts: Table, axis: int, margin: np.ndarray) -> Table:
    """Adds to each count of a level an equal share of what they lack of the level's margin."""
    others = tuple(other for other in range(counts.ndim) if other != axis)
    share = (margin - counts.sum(axis=others)) * (margin.size / counts.size)
    return counts + share.reshape([-1 if place == axis else 1 for place in range(counts.ndim)])


def _dykstra(counts: Table, steps: list[Callable[[Table], Table]]) -> Table:
    found, corrections = counts, [np.zeros_like(counts) for _ in steps]
    close = _CLOSE * max(1.0, float(np.max(np.abs(counts))))
    for _ in range(_MOST_STEPS):
        # Where the point rests, corrections may still move: both must stop.
        moved = 0.0
        for place, step in enumerate(steps):
            shifted = found + corrections[place]
            new = step(shifted)
            moved = max(moved, float(np.max(np.abs(new - found))))
            found, corrections[place] = new, shifted - new
        if moved <= close:
            return found
    raise ValueError("no table was found that has these margins and no count below 0: give other margins")
