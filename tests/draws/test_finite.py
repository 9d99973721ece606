"""Exact draws: against exact probabilities, with chosen bits."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from kngjax.draws.finite import LevelLaw, below, happens
from tests.oracles.goodness_of_fit import assert_cell_frequencies


def bits_of(seed):
    return random.Random(seed).getrandbits


def scripted(*blocks):
    """The bits of these numbers, block by block, and then only zeros."""
    waiting = iter(blocks)
    return lambda width: next(waiting, 0) & (2**width - 1)


@pytest.mark.parametrize("number", [1, 2, 3, 10, 2**70 + 1])
def test_uniform_numbers_stay_below(number):
    bits = bits_of(0)
    assert all(0 <= below(number, bits) < number for _ in range(200))


def test_uniform_numbers_are_uniform():
    counts = np.bincount([below(6, bits_of(seed)) for seed in range(6000)], minlength=6)
    assert_cell_frequencies(counts, np.full(6, 1 / 6))


@pytest.mark.slow
@pytest.mark.parametrize("log_odds", [Fraction(1, 7), Fraction(2), Fraction(9, 2)])
def test_happens_with_the_exponentials_probability(log_odds):
    bits = bits_of(1)
    times = sum(happens(log_odds, bits) for _ in range(5_000))
    probability = math.exp(-log_odds)
    assert abs(times - 5_000 * probability) < 5 * math.sqrt(5_000 * probability * (1 - probability))


def test_a_certain_event_needs_no_bits():
    assert happens(Fraction(0), scripted())


@pytest.mark.parametrize(("last", "happened"), [(0, True), (2**128 - 1, False)])
def test_a_number_next_to_the_probability_is_known_to_more_bits(last, happened):
    """128 bits that agree with exp(-1) decide nothing; the next block does."""
    digits = 10**60
    exponential = sum(Fraction((-1) ** n, math.factorial(n)) for n in range(60))
    assert abs(exponential - Fraction(round(math.exp(-1) * 2**52), 2**52)) < Fraction(1, 2**51)
    first = int(exponential * 2**128)
    asked = []

    def bits(width):
        asked.append(width)
        return first if len(asked) == 1 else last

    assert happens(Fraction(1), bits) is happened
    assert len(asked) == 2
    assert digits


LEVELS, COUNTS, RATE = [0, 3, 4, 50, 4000], [2, 5, 1, 40, 10**9], Fraction(1, 11)


def test_levels_are_drawn_with_their_probabilities():
    law, bits = LevelLaw(LEVELS, COUNTS, RATE), bits_of(2)
    masses = np.array([count * math.exp(-RATE * level) for level, count in zip(LEVELS, COUNTS, strict=True)])
    counts = np.bincount([law.draw(bits) for _ in range(5_000)], minlength=5)
    assert counts[4] == 0
    assert_cell_frequencies(counts[:4], masses[:4] / masses[:4].sum())


def test_levels_far_out_are_reached_by_the_bits_that_lead_there():
    """Their mass is 10⁹·exp(-4000/11), about 2^-497 of the whole: 512 ones lead there, and 384 do not."""
    law = LevelLaw(LEVELS, COUNTS, RATE)
    ones = 2**128 - 1
    assert law.draw(scripted(ones, ones, ones, ones)) == 4
    assert law.draw(scripted(ones, ones, ones)) == 3
    assert law.draw(scripted()) == 0


def test_the_law_does_not_depend_on_where_levels_start():
    moved = LevelLaw([level + 10**12 for level in LEVELS], COUNTS, RATE)
    law = LevelLaw(LEVELS, COUNTS, RATE)
    for seed in range(50):
        assert law.draw(bits_of(seed)) == moved.draw(bits_of(seed))


@pytest.mark.parametrize("uniform", [Fraction(1, 3), Fraction(5, 7), Fraction(999, 1000)])
def test_draws_invert_the_distribution_function(uniform):
    masses = [Fraction(count) * Fraction(math.exp(-RATE * level)) for level, count in zip(LEVELS, COUNTS, strict=True)]
    below_it = [total <= uniform * sum(masses) for total in itertools.accumulate(masses)]
    law = LevelLaw(LEVELS, COUNTS, RATE)
    digits = iter(range(1, 100))

    def bits(width):
        number = next(digits)
        return int(uniform * 2 ** (width * number)) % 2**width

    assert law.draw(bits) == sum(below_it)
