"""Scores of records that straddle a window, and of the sums of others, are those of all records, wherever asked."""

import dataclasses
import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

from kngjax.draws.lattice import check_scores, surroundings, windows
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from kngjax.draws.lattice.problems import WholeRecords
from kngjax.draws.lattice.scores import WEIGHT_UNITS, GradientNorm
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.lattice.windows import Sample, Window, WindowScore, added, divided, look_here, sample

# Of Θ, by d, in whole numbers.
SIDES = {1: 200, 2: 12, 3: 4}
KINDS = ("spread", "rounded", "equal", "one response", "at the ends", "a column of zeros", "signs", "straight line")


def records_of(kind, d, number=150, seed=0):
    generator = np.random.default_rng([seed, d])
    x = generator.integers(-8 if kind == "signs" else 0, 9, (number, d))
    x[:, 0] = 8
    y = x @ generator.integers(-SIDES[d] // 2, SIDES[d] // 2 + 1, d) + generator.integers(-30 // d, 30 // d + 1, number)
    if kind == "rounded":
        x, y = x // 4 * 4, y // 16 * 16
    elif kind == "equal":
        x, y = x[:1].repeat(number, 0), y[:1].repeat(number)
    elif kind == "one response":
        y[generator.random(number) < 0.7] = 0
    elif kind == "at the ends":
        y = np.where(generator.random(number) < 0.5, 8 * d * SIDES[d] + 1, -8 * d * SIDES[d] - 1)
    elif kind == "a column of zeros":
        x[np.abs(y - np.median(y)) < 20, -1] = 0
    elif kind == "straight line":
        y = x @ np.arange(1, d + 1)
    return WholeRecords(x.astype(np.int64), y.astype(np.int64))


def domain_of(d, radius=None):
    side = np.full(d, SIDES[d])
    return DomainLattice((0,) * d, -side, side, radius, 1)


def norm_of(kind, d):
    if kind == "sum":
        return GradientNorm(np.array(8 * WEIGHT_UNITS, object), np.array([1] * d, object))
    return GradientNorm([8 * WEIGHT_UNITS] * d)


def windowed(records, domain, norm, tau, rate, ends):
    """Places the score of a sample in the window that reaches from its middle so far, on Θ."""
    some = look_here(records)(sample, Sample.plus)
    near = QuantileScore(some.rows[:, :-1], some.rows[:, -1], tau, norm, 1, some.counts, some.largest).near(
        domain, rate
    )
    assert isinstance(near, QuantileScore)
    outer = near.coordinates.around(domain.low, domain.high)
    low, high = np.maximum(near.origin - ends[0], outer[0]), np.minimum(near.origin + ends[1], outer[1])
    window = Window.of(near.coordinates, low, high, some.largest)
    (found,) = look_here(records)(functools.partial(divided, [window]), added)
    middle = near.coordinates.matrix @ near.origin
    return WindowScore(near, window, found, middle, look_here(records), domain)


@pytest.mark.parametrize("d", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_score_and_every_bound_hold_of_all_records(kind, d, monkeypatch):
    monkeypatch.setattr(check_scores, "_cones", lambda *_: None)
    monkeypatch.setattr(windows, "FEW", 20)
    monkeypatch.setattr(windows, "_BLOCK", 41)
    generator = np.random.default_rng(d)
    points = np.array(list(itertools.product(range(-SIDES[d], SIDES[d] + 1), repeat=d)))
    outside = beyond = 0
    for trial in range(3):
        records, tau = records_of(kind, d, seed=trial), Fraction(1 + trial % 3, 4)
        domain, norm = domain_of(d, SIDES[d] if trial % 2 else None), norm_of(("sum", "maximum")[trial % 2], d)
        inside = points[domain.contains_each(points)]
        full = QuantileScore(records.x, records.y, tau, norm)
        scores = np.array([full.at(k, full._records.everything, full._closed[0]) for k in inside])
        score = windowed(records, domain, norm, tau, 0.001, generator.integers(trial, SIDES[d] // 2 + trial, (2, d)))
        boxes, _ = surroundings.surrounded(score, domain, 0.001)
        for _ in range(3):
            places = inside @ score.coordinates.inverse.T
            holds = [np.all((low <= places) & (places <= high), axis=1) for low, high in zip(*boxes[:2], strict=True)]
            assert np.all(np.sum(holds, axis=0) == 1)
            for box, held in enumerate(holds):
                assert np.all(int(boxes.lower[box]) <= scores[held])
                for place in generator.permutation(np.flatnonzero(held))[:2]:
                    assert score.at(inside[place], boxes.runs[box], boxes.sums[box]) == scores[place]
            is_out = ~score._holds(boxes.low, boxes.high)
            outside, beyond = outside + np.sum(is_out), beyond + np.sum(boxes.lower[is_out] > 0)
            # Halves of all, each at a place of its own.
            axis = generator.integers(0, d, len(boxes.low))
            rows = np.arange(len(axis))
            high, low = boxes.high.copy(), boxes.low.copy()
            high[rows, axis] = generator.integers(boxes.low[rows, axis], boxes.high[rows, axis] + 1)
            low[rows, axis] = high[rows, axis] + 1
            lows, highs = np.concatenate([boxes.low, low]), np.concatenate([high, boxes.high])
            is_some = np.all(lows <= highs, axis=1)
            parents = np.tile(rows, 2)[is_some]
            made = score.parts(lows[is_some], highs[is_some], [boxes.runs[one] for one in parents], boxes.sums[parents])
            boxes = made._replace(lower=np.maximum(made.lower, boxes.lower[parents]))
    assert outside > 0
    assert beyond > 0 or kind not in ("signs", "straight line")


def test_samples_and_windows_are_the_same_in_any_order_and_blocks(monkeypatch):
    monkeypatch.setattr(windows, "FEW", 30)
    for kind in KINDS:
        records = records_of(kind, 2, 400)
        window = Window.of(
            QuantileScore(*records, Fraction(1, 2), norm_of("sum", 2)).coordinates,
            -np.ones(2, int),
            np.full(2, 3),
            np.full(2, 8.0),
        )
        made = []
        for block, order in (
            (1000, np.arange(400)),
            (7, np.random.default_rng(1).permutation(400)),
            (61, np.arange(400)[::-1]),
        ):
            monkeypatch.setattr(windows, "_BLOCK", block)
            look = look_here(records.at(order))
            some, (found,) = look(sample, Sample.plus), look(functools.partial(divided, [window]), added)
            rows, counts = windows.counted(some.rows, some.counts)
            made.append([*some[:2], np.sort(some.marks), rows, counts, *found])
            # With all of their records, as many as are asked for and no others.
            assert len(rows) == min(30, len(np.unique(np.column_stack(records), axis=0)))
            every = np.column_stack(records)
            assert [np.sum(np.all(every == row, axis=1)) for row in rows] == counts.tolist()
            assert int(np.sum(found.counts)) + round(np.sum(found.sums[:, 0]) / 8) == 400
        for other in made[1:]:
            for one, two in zip(made[0], other, strict=True):
                np.testing.assert_array_equal(one, two)


def test_records_of_numbers_that_are_rounded_straddle_unless_whole_numbers_say_otherwise():
    """X'Um goes beyond 2^53 on its way to less: Y lies on X'k of points of the window, or next to it."""
    generator = np.random.default_rng(4)
    wrong = {"as it is": 0, "without": 0}
    for _ in range(80):
        matrix = np.eye(3, dtype=np.int64)
        for _ in range(6):
            one, other = generator.choice(3, 2, replace=False)
            matrix[:, one] += int(generator.integers(-300, 300)) * matrix[:, other]
        x = generator.integers(-(2**18), 2**18, (20, 3))
        centre = np.rint(np.linalg.solve(matrix.astype(float), generator.integers(-(2**20), 2**20, 3))).astype(np.int64)
        low, high = centre - generator.integers(1, 4, 3), centre + generator.integers(1, 4, 3)
        ends = np.array(list(itertools.product(*zip(low.tolist(), high.tolist(), strict=True))), object)
        predicted = x.astype(object) @ matrix.astype(object) @ ends.T
        least, most = predicted.min(axis=1), predicted.max(axis=1)
        y = np.where(
            generator.random(20) < 0.5, least - generator.integers(-1, 2, 20), most + generator.integers(-1, 2, 20)
        )
        if max(abs(int(one)) for one in y) > 2**52:
            continue
        coordinates = dataclasses.replace(LatticeCoordinates.own(3), matrix=matrix)
        window = Window.of(coordinates, low, high, np.max(np.abs(x), axis=0).astype(float))
        right = np.array([np.where(y <= least, 1, 0), np.where(y > most, 1, 0)], bool)
        for name, tried in (("as it is", window), ("without", window._replace(error=0.0))):
            for row in range(20):
                found = divided([tried], WholeRecords(x[row : row + 1], y[row : row + 1].astype(np.int64)))[0]
                closed = [bool(np.array_equal(found.sums[side], x[row])) and not len(found.counts) for side in (0, 1)]
                wrong[name] += any(is_closed and not right[side, row] for side, is_closed in enumerate(closed))
    assert wrong["as it is"] == 0
    assert wrong["without"] > 0
