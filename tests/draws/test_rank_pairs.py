"""Pairs by their ranks: counted and drawn as enumeration of all pairs says."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from kngjax.draws.exact_interval import MOST_RECORDS
from kngjax.draws.rank_pairs import RankPairs
from tests.oracles import goodness_of_fit as fit

LOW, HIGH = 0, 6
# D, C1 and C2, the values: with ties, with units of a third, all at one point, none, and at the ends.
CASES = {
    "ties": (1, (2, 4), [2, 2, 3, 5, 5, 5]),
    "thirds": (3, (5, 11), [0, 2, 2, 4, 6]),
    "one heap": (1, (1, 2), [4] * 7),
    "no value": (4, (0, 0), []),
    "at the ends": (2, (1, 3), [0, 0, 6]),
}
PAIRS = list(itertools.product(range(LOW, HIGH + 1), repeat=2))


def score(unit, centres, values, pair):
    """(|a| + |b - a| + |b|)/2, by counting."""
    a, b = (unit * sum(value <= k for value in values) - c for k, c in zip(pair, centres, strict=True))
    return (abs(a) + abs(b - a) + abs(b)) // 2


@pytest.mark.default_cases("ties", "thirds")
@pytest.mark.parametrize("name", CASES)
def test_blocks_hold_the_pairs_of_their_scores(name):
    unit, centres, values = CASES[name]
    pairs = RankPairs(np.array(values, np.int64), LOW, HIGH, unit, centres, Fraction(1, 3))
    scores = {pair: score(unit, centres, values, pair) for pair in PAIRS}
    assert {pair: pairs.score(*pair) for pair in PAIRS} == scores
    ranks = {k: sum(value <= k for value in values) for k in range(LOW, HIGH + 1)}
    for inner, outer in itertools.combinations(range(-1, max(scores.values()) + 3), 2):
        held = [pair for pair in PAIRS if inner < scores[pair] <= outer]
        assert pairs._count(inner, outer) == len(held)
        boxes = np.array(pairs._rectangles(inner, outer)).T
        for first, second in PAIRS:
            times = sum(a <= ranks[first] <= b and c <= ranks[second] <= d for a, b, c, d in boxes)
            assert times == ((first, second) in held)


@pytest.mark.default_cases("ties", "thirds")
@pytest.mark.parametrize("name", CASES)
def test_pairs_are_drawn_with_their_probabilities(name):
    unit, centres, values = CASES[name]
    rate, number = Fraction(2, 5 * unit), 2000
    pairs = RankPairs(np.array(values, np.int64), LOW, HIGH, unit, centres, rate)
    ordered = [pair for pair in PAIRS if pair[0] <= pair[1]]
    weights = np.array([math.exp(-float(rate) * score(unit, centres, values, pair)) for pair in ordered])
    bits = random.Random(3).getrandbits
    drawn = [pairs.draw(bits) for _ in range(number)]
    assert set(drawn) <= set(ordered)
    fit.assert_cell_frequencies([drawn.count(pair) for pair in ordered], weights / weights.sum())


@pytest.mark.slow
def test_what_lies_beyond_the_first_blocks_is_drawn_too():
    """At a high rate the first blocks end early, and what is left is one block."""
    values = np.repeat([2, 5], 40)
    pairs = RankPairs(values, LOW, HIGH, 1, (20, 60), Fraction(3))
    assert pairs._blocks[-1][1] - pairs._blocks[-1][0] > 1
    last = pairs._blocks[-1]
    pairs._blocks, pairs._law = [last], type(pairs._law)([last[0] + 1], [pairs._count(*last)], Fraction(0))
    pairs._rate = Fraction(0)
    drawn = {pairs.draw(random.Random(seed).getrandbits) for seed in range(400)}
    assert drawn == {pair for pair in PAIRS if pair[0] <= pair[1] and pairs.score(*pair) > last[0]}


def test_products_of_62_binary_digits_are_counted():
    """The largest that are allowed: all pairs are in one block, whose points are counted once."""
    most = MOST_RECORDS
    centres = most * (most // 2), most * (most - 1)
    pairs = RankPairs(np.array([1, 1, 2]), 0, 3, most, centres, Fraction(1, 10**400))
    assert [pairs._count(*block) for block in pairs._blocks] == [4 * 4]
    assert pairs.score(0, 3) == max(0, pairs.score(0, 3))
    draws = {pairs.draw(random.Random(seed).getrandbits) for seed in range(60)}
    assert draws == {(low, high) for low in range(4) for high in range(low, 4)}
