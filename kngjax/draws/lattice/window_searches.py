"""Searches for windows that hold next to all of a law, each look at all records one pass."""

import functools
from collections.abc import Generator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.scores import GradientNorm
from kngjax.draws.lattice.surroundings import surrounded
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.lattice.windows import Divided, Look, Sample, Window, WindowScore, added, divided

# Most of Newton's steps with all records; the last one is this short, in units of the law's width.
_STEPS, _SHORT = 4, 32.0
# Windows reach so far, in units of the law's width, for no coefficient, and so many times as far for each; a first
# window that is too narrow is followed by so many, each so many times as wide.
_REACH, _DEEPER, _WIDER, _TRIES = 32.0, 3.0, 4.0, 3
# Of so large a share of all records nothing is spared.
_MOST = 0.5


class Level(NamedTuple):
    """States the law of one quantile loss. **Arguments:** as of `QuantileScore` and of `first_boxes`."""

    tau: Fraction
    norm: GradientNorm
    domain: DomainLattice
    rate: float


@owner_only
class QuantileScores(OwnerOnly):
    """Holds what is drawn from of many records. Private.

    **Arguments:** `num_records`: n. `dimension`: d of one score. `scores`: one of each level.
    """

    num_records: int
    dimension: int
    scores: list[QuantileScore]


def scores_of(some: Sample, levels: list[Level], look: Look) -> list[QuantileScore] | None:
    """Finds the score of each level, in passes that serve all of them; None where all records have to be there.

    Looks are chosen by a sample and by sums that are the same in any order of the records, and so are the scores.
    """
    searches = [_search(some, level, look) for level in levels]
    scores, asked, replies = {}, {}, dict.fromkeys(range(len(levels)))
    while len(scores) < len(levels):
        for number, reply in replies.items():
            try:
                asked[number] = searches[number].send(reply)
            except StopIteration as end:
                scores[number] = end.value
        if any(score is None for score in scores.values()):
            return None
        waiting = [number for number in asked if number not in scores]
        if waiting:
            of = functools.partial(divided, [asked[number] for number in waiting])
            replies = dict(zip(waiting, look(of, added), strict=True))
    return [scores[number] for number in range(len(levels))]


def _search(some: Sample, level: Level, look: Look) -> Generator[Window, Any, QuantileScore | None]:
    """Asks what windows make of all records until one holds the law, and returns the score; None if none spares much.

    Float64 decides what is asked, and speed alone rests on it.
    """
    tau, norm, domain, rate = level
    known, columns = int(np.sum(some.counts)), (some.rows[:, :-1], some.rows[:, -1])
    if known == some.number:
        return QuantileScore(*columns, tau, norm, 1, some.counts)
    near = QuantileScore(*columns, tau, norm, 1, some.counts * (some.number / known), some.largest).near(domain, rate)
    if not isinstance(near, QuantileScore):
        # A heap's hyperplanes straddle every window about it.
        return None
    coordinates, unit = near.coordinates, 1.0 / near.importance()
    inverse = np.linalg.pinv(near.curvature)
    point = best = coordinates.matrix @ near.origin
    length = np.inf
    for _ in range(_STEPS):
        found: Divided = yield Window.at(point)
        slopes = found.gradient(tau)
        size = float(slopes @ inverse @ slopes)
        if not size < length:
            break
        best, length = point, size
        point = domain.nearest(np.nan_to_num(point - inverse @ slopes))
        if np.all(np.abs(coordinates.inverse @ (point - best)) <= _SHORT * unit):
            best = point
            break
    ends = coordinates.around(domain.low, domain.high)
    place, reach = coordinates.inverse @ best, _REACH * _DEEPER ** len(unit)
    for _ in range(_TRIES):
        far = np.ceil(np.minimum(reach * unit, 2.0**60)).astype(np.int64)
        low, high = np.maximum(place - far, ends[0]), np.minimum(place + far, ends[1])
        window = Window.of(coordinates, low, high, some.largest)
        found = yield window
        if len(found.rows) > _MOST * some.number:
            return None
        score = WindowScore(near, window, found, best, look, domain)
        if surrounded(score, domain, rate)[1]:
            return score
        place, best, reach = score.origin, coordinates.matrix @ score.origin, reach * _WIDER
    return None
