"""Bounds and signs of check records: every pattern of open ones, and products that float64 rounds."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from kngjax.draws.lattice.check_records import CheckRecords, counted
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.cone_scores import ConeScore
from kngjax.draws.lattice.cones import Cones
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from kngjax.draws.lattice.runs import Runs
from kngjax.draws.lattice.scores import RESOLUTION, WEIGHT_UNITS, GradientNorm
from tests.draws.lattice.test_check_scores import scores_of


def opened(records, entries):
    """Each of some records by itself, on one box."""
    return records.open(Runs(entries, entries + 1, np.array([len(entries)])))


@pytest.mark.parametrize("columns", [(), (0,), (1,), (0, 1)], ids=str)
def test_equal_rows_are_counted_whichever_columns_differ(columns):
    random = np.random.default_rng(2)
    rows, counts = np.full((60, 2), 7), random.integers(1, 5, 60)
    rows[:, columns] = random.integers(-3, 4, (60, len(columns)))
    for times, given in ((np.ones(60, int), None), (counts, counts)):
        expected = np.unique(np.repeat(rows, times, axis=0), axis=0, return_counts=True)
        for found, one in zip(counted(rows, given), expected, strict=True):
            np.testing.assert_array_equal(found, one)
    assert [len(one) for one in counted(rows[:0])] == [0, 0]


def test_bounds_of_few_open_records_hold_for_every_pattern_of_their_signs():
    """One record outweighs a third of all, so that the heaviest are tried and the others taken by intervals."""
    generator, tau = np.random.default_rng(3), Fraction(3, 10)
    norm = GradientNorm([WEIGHT_UNITS, 2 * WEIGHT_UNITS])
    for _ in range(20):
        number = int(generator.integers(6, 9))
        features, responses = generator.integers(-3, 4, (number, 2)), np.arange(number)
        copies = generator.integers(1, 4, number)
        copies[generator.integers(number)] = 12
        records = CheckRecords(np.repeat(features, copies, 0), np.repeat(responses, copies), tau, norm, 1)
        closed = generator.integers(-40, 41, (1, 2)).astype(float)
        (lower,) = records.gradients(closed, opened(records, generator.permutation(number)))
        slopes = np.array(list(itertools.product((records.rise, records.fall), repeat=number)))
        sums = closed[0] + (slopes * records.counts) @ records.features
        about = norm(np.abs(sums).astype(np.int64))
        assert lower <= min(about)


@pytest.mark.parametrize("scales", [None, [1, 3]])
def test_a_bound_along_a_vector_is_that_of_the_worst_signs(scales):
    """The least G'v/‖v‖_* of all patterns of the signs of open records, in fractions: not more, and hardly less."""
    generator, weights = np.random.default_rng(4), [WEIGHT_UNITS, 2 * WEIGHT_UNITS]
    norm = GradientNorm(weights if scales is None else weights[0], None if scales is None else np.array(scales, object))
    # What R·‖G‖ multiplies each |G_j| by before it takes the largest, or the sum.
    factors = [Fraction(RESOLUTION, weight) for weight in (1, 2)]
    if scales is not None:
        factors = [Fraction(RESOLUTION * scale) for scale in scales]
    positive = 0
    for number in (0, 1, 2, 5, 8) * 10:
        features, copies = generator.integers(-3, 4, (9, 2)), generator.integers(1, 4, 9)
        tau = Fraction(3, 10)
        records = CheckRecords(np.repeat(features, copies, 0), np.repeat(np.arange(9), copies), tau, norm, 1)
        closed, vector = generator.integers(-90, 91, 2), generator.integers(-5, 6, 2)
        entries = generator.permutation(9)[:number]
        given = closed[None].astype(float), vector[None], opened(records, entries), records.features[entries] @ vector
        bound, doubtful = (int(records.along(*given, np.array([error]))[0]) for error in (0.0, 0.25))
        weighted = (records.features * records.counts[:, None]).astype(int)[entries]
        signs = itertools.product((int(records.rise), int(records.fall)), repeat=number)
        least = min(int((closed + np.array(some, int) @ weighted) @ vector) for some in signs)
        parts = [abs(int(step)) / factor for step, factor in zip(vector, factors, strict=True)]
        dual = (sum(parts) if scales is None else max(parts)) or 1
        assert max(least, 0) / dual * (1 - Fraction(1, 2**40)) - 2 <= bound <= max(least, 0) / dual
        # Where X_i'v may be off by a quarter each record may add less, by that and its slopes.
        less = Fraction(tau.denominator, 4) * int(np.sum(records.counts[entries]))
        assert doubtful <= max(least - less, 0) / dual
        positive += bound > 0
    assert positive > 10


def test_signs_are_not_told_by_products_that_float64_rounds():
    """Coordinates in which X'U times m cancels by forty binary digits, of records next to their responses."""
    generator, step = np.random.default_rng(8), 2**11
    matrix, inverse = np.array([[1, step], [step, step**2 + 1]]), np.array([[step**2 + 1, -step], [-step, 1]])
    for _ in range(20):
        x, k = generator.integers(1, 2**18, (30, 2)), generator.integers(-(2**14), 2**14, 2)
        score = QuantileScore(
            x, x @ k + generator.integers(-1, 2, 30), Fraction(1, 2), GradientNorm([2**18 * WEIGHT_UNITS] * 2)
        )
        score._place(LatticeCoordinates(matrix, inverse), np.zeros(2, np.int64))
        place = (inverse @ k)[None]
        boxes = score.parts(place, place, [score._records.everything], np.zeros((1, 2)))
        (level,) = scores_of(score, k[None])
        assert boxes.lower[0] <= level
        assert score.at(k, boxes.runs[0], boxes.sums[0]) == level


def test_signs_next_to_the_largest_residuals_are_those_of_whole_numbers():
    """r is next to 2^52, the largest of any plan, and n·r next to a power of 2, so that j·L/n is off by 1/2 or so."""
    generator, apex, sides = np.random.default_rng(2), np.array([-(2**23), 2**22]), np.array([11863400, 11863400])
    told = 0
    for _ in range(40):
        x = np.column_stack([2**28 + generator.integers(1, 99, 30), generator.integers(-1, 2, 30)])
        move = np.array([11863400 - generator.integers(1, 99), generator.integers(-(2**23), 2**23)])
        # Next to it, where no sign is told, and a little farther.
        y = x @ (apex + move) + generator.choice([-40, -1, 0, 1, 40], 30)
        records = CheckRecords(x, y, Fraction(1, 2), GradientNorm([2**29 * WEIGHT_UNITS] * 2), 1)
        score = ConeScore(records, Cones(apex, sides))
        assert 2**51 < np.max(np.abs(score._residuals)) < 2**52
        place = score.coordinates.of((apex + move)[None])
        boxes = score.parts(place, place, [records.everything], np.zeros((1, 2)))
        (level,) = scores_of(score, (apex + move)[None])
        assert boxes.lower[0] <= level
        assert score.at(apex + move, boxes.runs[0], boxes.sums[0]) == level
        told += len(records.counts) - int(Runs.of(boxes.runs).sizes()[0])
    assert told > 400


def test_a_vector_that_float64_does_not_hold_bounds_nothing():
    """Coordinates in which Um cancels from 2^54 to a few units, of records whose X'U is small."""
    # By 2^26 + 1 and 2^26 + 3, which have no common divisor, and U with X'U = (0, 1).
    first, second = 2**26 + 1, 2**26 + 3
    turn = pow(first, -1, second)
    matrix = np.array([[second, turn], [-first, (1 - first * turn) // second]])
    inverse = np.array([[matrix[1, 1], -matrix[0, 1]], [-matrix[1, 0], matrix[0, 0]]])
    assert np.array_equal(matrix @ inverse, np.eye(2))
    generator, found = np.random.default_rng(0), 0
    for _ in range(100):
        k = generator.integers(1, 9, 2)
        place = inverse @ k
        x = np.tile([2 * first, 2 * second], (100, 1))
        y = np.repeat([-(10**6), 2 * int(place[1]) + 1], [60, 40])
        score = QuantileScore(x, y, Fraction(1, 2), GradientNorm([2**29 * WEIGHT_UNITS] * 2))
        score._place(LatticeCoordinates(matrix, inverse), np.zeros(2, np.int64))
        low, high = place + np.array([[[0, -1]], [[0, 1]]])
        boxes = score.parts(low, high, [score._records.everything], np.zeros((1, 2)))
        (level,) = scores_of(score, k[None])
        assert boxes.lower[0] <= level
        found += np.max(np.abs(matrix).astype(float) @ np.abs(place)) > 2**53
    assert found > 50
