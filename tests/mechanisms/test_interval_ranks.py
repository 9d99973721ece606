"""Ranks of intervals: against enumeration of the law of two ranks and the binomial law."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.mechanisms import interval_ranks
from kngjax.mechanisms.interval_ranks import Ranks

RATE, LEVEL = 0.4, 0.9


def enumerated_noise(rate, reach):
    """P(R = a) by adding up exp(-c(|a| + |b - a| + |b|)/2) over all b."""
    numbers = np.arange(-reach, reach + 1)
    a, b = np.meshgrid(numbers, numbers, indexing="ij")
    weights = np.exp(-0.5 * rate * (abs(a) + abs(b - a) + abs(b))).sum(axis=1)
    return numbers, weights / weights.sum()


def enumerated_miss(num_records, tau, rank, rate):
    numbers, weights = enumerated_noise(rate, 150)
    counts = np.arange(num_records + 1)
    binomial = stats.binom.pmf(counts, num_records, tau)
    return float(np.sum(binomial[:, None] * weights[None, :] * (counts[:, None] <= rank + numbers[None, :])))


@pytest.mark.parametrize("rate", [0.15, 0.5, 3.0])
def test_the_noise_of_a_rank_is_that_of_pairs(rate):
    numbers, expected = enumerated_noise(rate, 400)
    offsets, probabilities = interval_ranks.rank_noise(rate)
    found = np.interp(numbers, offsets, probabilities, left=0.0, right=0.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.85])
@pytest.mark.parametrize("num_records", [90, 151])
def test_ranks_are_the_narrowest_that_have_the_level(num_records, tau):
    tail = 0.5 * (1.0 - LEVEL)
    ranks = interval_ranks.ranks_for(num_records, tau, RATE, LEVEL)
    assert ranks is not None
    sides = ((tau, ranks.lower), (1.0 - tau, num_records - ranks.upper))
    for share, rank in sides:
        missed = [enumerated_miss(num_records, share, rank + step, RATE) for step in (0, 1)]
        assert missed[0] <= tail < missed[1]
        assert interval_ranks.miss_probability(num_records, share, rank, RATE) == pytest.approx(missed[0], abs=1e-10)


def test_ranks_are_mirrored_with_the_level_of_the_quantile():
    one, other = (interval_ranks.ranks_for(400, tau, RATE, LEVEL) for tau in (0.2, 0.8))
    assert one is not None
    assert other == Ranks(400 - one.upper, 400 - one.lower)


def test_more_noise_and_more_certainty_make_wider_intervals():
    for settings in (((0.2, LEVEL), (0.4, LEVEL), (0.8, LEVEL)), ((0.4, 0.99), (0.4, 0.95), (0.4, 0.8))):
        found = [interval_ranks.ranks_for(500, 0.5, *one) for one in settings]
        for wide, narrow in itertools.pairwise(found):
            assert wide is not None
            assert narrow is not None
            assert wide.lower < narrow.lower < narrow.upper < wide.upper


@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_more_records_than_the_ranks_were_made_for_miss_less_often(tau):
    """Under add_remove levels are those of a number that there are at least."""
    stated, rate = 2000, 0.25
    ranks = interval_ranks.ranks_for(stated, tau, rate, 0.95)
    assert ranks is not None

    def missed(count):
        lower, upper = (count * rank / stated for rank in ranks)
        below = interval_ranks.miss_probability(count, tau, lower, rate)
        return below + interval_ranks.miss_probability(count, 1.0 - tau, count - upper, rate)

    assert max(missed(count) for count in range(stated, stated + 400, 7)) < 0.05 + 1e-3
    assert missed(2 * stated) < 0.01
    # Half as many: what the documentation says of a wrong number.
    assert 0.14 < missed(stated // 2) < 0.22


@pytest.mark.parametrize("width", [0.1, 1000.0])
def test_an_end_beyond_all_values_is_as_likely_as_enumeration_says(width):
    """n values evenly on [0, 1], and bounds that reach farther below them."""
    count, rate, ranks = 60, 0.5, Ranks(20, 32)
    lengths = np.full(count + 1, 1.0 / count)
    lengths[0] = width
    i, j = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
    a, b = i - ranks.lower, j - ranks.upper
    masses = lengths[i] * lengths[j] * np.exp(-0.5 * rate * (abs(a) + abs(b - a) + abs(b))) * (i <= j)
    masses[i == j] /= 2.0
    found = interval_ranks.beyond_probability(count, ranks, rate, width)
    mirrored = interval_ranks.beyond_probability(count, Ranks(count - ranks.upper, count - ranks.lower), rate, width)
    assert mirrored == pytest.approx(found, rel=1e-12)
    assert found == pytest.approx(masses[0].sum() / masses[1:].sum(), rel=0.05)


def test_what_would_do_does_and_less_does_not():
    settings = (0.9, 0.5, 0.95, 1000.0)
    assert not interval_ranks.holds(200, *settings)
    records = interval_ranks.records_needed(200, *settings)
    assert records is not None
    assert interval_ranks.holds(records, *settings)
    assert not interval_ranks.holds(math.floor(0.95 * records), *settings)
    rate = interval_ranks.rate_needed(200, *settings)
    assert rate is not None
    assert interval_ranks.holds(200, 0.9, rate, *settings[2:])
    assert not interval_ranks.holds(200, 0.9, 0.97 * rate, *settings[2:])
    assert interval_ranks.rate_needed(3, *settings) is None
    assert interval_ranks.records_needed(10, 0.5, 1e-6, 0.95, 1000.0) is None


def test_blocks_of_ranks_miss_no_less_often_and_hardly_oftener(monkeypatch):
    exact = [interval_ranks.miss_probability(20_000, 0.5, rank, 0.01) for rank in (9_000, 9_500, 9_900)]
    monkeypatch.setattr(interval_ranks, "_MOST_BLOCKS", 300)
    interval_ranks._in_blocks.cache_clear()
    blocks = [interval_ranks.miss_probability(20_000, 0.5, rank, 0.01) for rank in (9_000, 9_500, 9_900)]
    interval_ranks._in_blocks.cache_clear()
    assert all(one <= other <= 1.2 * one + 1e-6 for one, other in zip(exact, blocks, strict=True))


@pytest.mark.parametrize("blocks", [2**9, pytest.param(interval_ranks._MOST_BLOCKS, marks=pytest.mark.slow)])
def test_next_to_no_epsilon_is_told_in_time(blocks, monkeypatch):
    monkeypatch.setattr(interval_ranks, "_MOST_BLOCKS", blocks)
    interval_ranks._in_blocks.cache_clear()
    bounds = kng.Bounds(y=(0.0, 10.0))
    assert "too few" in kng.QuantileInterval(0.5, bounds, 1e-3, "replace").refusal(1000)
    assert kng.QuantileInterval(0.5, bounds, 1e-6, "replace", force=True).ranks(1000) == Ranks(1, 999)
    interval_ranks._in_blocks.cache_clear()
