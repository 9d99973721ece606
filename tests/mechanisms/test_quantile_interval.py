"""Intervals of quantiles: privacy of neighbours, refusals by public facts, and how often they hold the quantile."""

import inspect
import itertools
import math
import random

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.draws import exact_interval
from kngjax.draws.choice import proved_draw
from tests.draws.neighbours import log_pairs
from tests.oracles import goodness_of_fit as fit

LINE = kng.Bounds(y=(0.0, 1.0))
REPLACE, ADD_REMOVE = {"adjacency": "replace"}, {"adjacency": "add_remove", "num_records": 6}


def forced(epsilon=1.0, tau=0.5, adjacency=REPLACE):
    return kng.QuantileInterval(tau, LINE, epsilon, force=True, **adjacency)


def neighbours(values, adjacency):
    choices = np.arange(0, 17, 4) / 16.0
    if adjacency is REPLACE:
        # Values in one place are one case.
        for place, other in itertools.product(np.unique(values, return_index=True)[1], choices):
            yield np.array([*values[:place], other, *values[place + 1 :]])
    else:
        yield from (np.append(values, other) for other in choices)


def worst_loss(epsilon, adjacency, known_epsilon=None):
    """The largest |log P/P'| over neighbours, of values that show the extremes of the score."""
    mechanism = forced(known_epsilon or epsilon, adjacency=adjacency)
    worst = 0.0
    for low, high in itertools.product((0, 1, 3, 5), repeat=2):
        if low + high > 6:
            continue
        values = np.array([0.0] * low + [0.5] * (6 - low - high) + [1.0] * high)
        own, kept = log_pairs(mechanism, values, 2), np.triu_indices(4)
        for other in neighbours(values, adjacency):
            worst = max(worst, float(np.max(np.abs(own[kept] - log_pairs(mechanism, other, 2)[kept]))))
    return worst


@pytest.mark.parametrize("adjacency", [REPLACE, ADD_REMOVE], ids=["replace", "add_remove"])
def test_neighbours_differ_by_epsilon_at_most_and_nearly(adjacency):
    epsilon = 6.0
    worst = worst_loss(epsilon, adjacency)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst > 0.85 * epsilon


@pytest.mark.parametrize("adjacency", [REPLACE, ADD_REMOVE], ids=["replace", "add_remove"])
def test_the_law_is_that_of_two_quantiles_jointly(adjacency):
    """In real numbers: another formula, in float64, between the points of the grid."""
    mechanism = forced(2.0, adjacency=adjacency)
    values = np.array([1, 1, 4, 7, 12, 13]) / 16.0
    ours = log_pairs(mechanism, values, 4)
    law, data = mechanism.law(6), mechanism.prepare(None, values)
    for first, second in [(0, 3), (2, 2), (5, 14), (0, 15)]:
        theta = np.array([first + 0.25, second + 0.75]) / 16.0
        log_area = math.log(0.5 if first == second else 1.0) - 2 * math.log(16.0)
        expected = float(law.log_density(theta, data)) + log_area
        assert ours[first, second] == pytest.approx(expected, abs=1e-9)
        assert float(mechanism.log_density(theta, data)) + log_area == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(mechanism.jumps(data), [0.0, *values, 1.0])


def test_draws_for_research_have_the_law_of_a_release():
    values = np.random.default_rng(0).uniform(size=200)
    mechanism = kng.QuantileInterval(0.5, LINE, 2.0, "replace")
    data, way = mechanism.prepare(None, values), proved_draw(mechanism, mechanism.intake.check_schema(values))
    drawn, succeeded = mechanism.draws(data, kng.research_key(1), 800)
    assert succeeded
    pairs, bits = way.prepare(values, None), random.Random(5).getrandbits
    ours = np.array([way.draw_alone(pairs, bits) for _ in range(800)])
    for end in (0, 1):
        fit.assert_two_samples_agree(ours[:, end], np.asarray(drawn)[:, end])


def test_a_release_has_an_interval_and_keeps_it_in_json():
    values = np.random.default_rng(1).uniform(size=400)
    mechanism = kng.QuantileInterval(0.4, LINE, 1.0, "replace", 0.9)
    release = kng.release(mechanism, values)
    assert release.certificate.assurance == "proved"
    assert release.certificate.guarantee.epsilon == 1.0
    interval = release.intervals()
    assert isinstance(interval, kng.inference.Interval)
    np.testing.assert_array_equal([interval.lower[0], interval.upper[0]], release.value)
    assert interval.level == 0.9
    ranks = mechanism.ranks(400)
    assert f"ranks {ranks.lower} and {ranks.upper} of 400" in interval.method
    frame = interval.to_frame()
    assert frame.columns.tolist() == ["lower", "upper"]
    assert frame.index.tolist() == ["0.4-quantile"]
    assert "0.4-quantile" in repr(interval)
    assert "0.4-quantile" in interval._repr_html_()
    again = kng.Release.from_json(release.to_json()).intervals()
    assert repr(again) == repr(interval)
    other = release.intervals(0.95)
    assert isinstance(other, kng.inference.NoInterval)
    assert "0.9 before it was released" in repr(other)


def test_intervals_with_dither_are_wider_by_a_unit():
    values = np.round(np.random.default_rng(1).uniform(size=400), 1)
    bounds = kng.Bounds(y=(-0.05, 1.05), dither=0.1)
    release = kng.release(kng.QuantileInterval(0.5, bounds, 1.0, "add_remove", num_records=400), values)
    interval = release.intervals()
    assert isinstance(interval, kng.inference.Interval)
    np.testing.assert_allclose(
        [interval.lower[0], interval.upper[0]], release.value + np.array([-0.05, 0.05]), rtol=1e-12
    )
    assert any("at least num_records" in one for one in interval.assumptions)


def test_intervals_of_logarithms_are_wider_in_the_units_of_what_was_rounded():
    """Of numbers of which half are .05, a dither of .01 moves the logarithm of their median by log 1.1 and not .005."""
    values = np.log(np.r_[np.full(6000, 0.05), np.full(4000, 0.2)])
    bounds = kng.Bounds(y=(np.log(0.02), np.log(1.0)), dither=0.01, dither_of_log=True)
    release = kng.release(kng.QuantileInterval(0.5, bounds, 2.0, "replace"), values)
    interval = release.intervals()
    assert interval.lower[0] <= np.log(0.05) <= interval.upper[0]
    ends = np.exp(release.value) + np.array([-0.005, 0.005])
    np.testing.assert_allclose([interval.lower[0], interval.upper[0]], np.log(ends), rtol=1e-9)
    # A unit larger than the numbers: all that is known of the lower end is the bound.
    wide = kng.Bounds(y=(0.0, np.log(1000.0)), dither=100.0, dither_of_log=True)
    interval = kng.release(kng.QuantileInterval(0.5, wide, 2.0, "replace"), np.full(2000, np.log(40.0))).intervals()
    assert 0.0 <= interval.lower[0] <= np.log(40.0) <= interval.upper[0] < np.log(200.0)
    plain = bounds.without_dither()
    assert (plain.dither, plain.dither_of_log) == (None, False)
    assert bounds.dither_of_log


def test_other_releases_have_no_interval_and_say_so():
    found = kng.release(kng.PrivateQuantile(0.5, LINE, 1.0, "replace"), np.full(9, 0.5)).intervals()
    assert isinstance(found, kng.inference.NoInterval)
    assert "QuantileInterval" in found.reason


def test_too_few_records_are_refused_before_anything_is_spent(tmp_path):
    values, wide = np.random.default_rng(2).uniform(size=200), kng.Bounds(y=(0.0, 1000.0))
    ledger = kng.Ledger.create(tmp_path / "ledger", kng.Budget.pure(5.0), adjacency="replace", dataset="values")
    mechanism, head = kng.QuantileInterval(0.9, wide, 1.0, "replace"), ledger.head()
    with pytest.raises(
        ValueError, match=r"only 8 of them lie beyond .* It takes at least about 530 records or epsilon = "
    ) as refused:
        kng.release(mechanism, values, ledger=ledger)
    assert str(refused.value) == mechanism.refusal(200)
    assert ledger.head() == head
    with pytest.raises(ValueError, match="too few"):
        kng.certify(mechanism, values)
    with pytest.raises(ValueError, match="no two ranks have that level"):
        kng.release(kng.QuantileInterval(0.5, LINE, 1.0, "replace"), values[:20])
    # What the message says is enough.
    assert mechanism.refusal(530) is None
    epsilon = float(str(refused.value).split("epsilon = ")[2].split(";")[0])
    assert kng.QuantileInterval(0.9, wide, epsilon, "replace").refusal(200) is None
    # Public guesses of the spread count by their logarithm.
    assert kng.QuantileInterval(0.9, wide, 1.0, "replace", spread=100.0).refusal(450) is None
    assert kng.QuantileInterval(0.9, wide, 1.0, "replace").refusal(450) is not None


def test_what_is_forced_has_numbers_and_no_interval():
    values = np.random.default_rng(2).uniform(size=200)
    mechanism = kng.QuantileInterval(0.9, kng.Bounds(y=(0.0, 1000.0)), 1.0, "replace", force=True)
    release = kng.release(mechanism, values)
    assert release.value.shape == (2,)
    found = release.intervals()
    assert isinstance(found, kng.inference.NoInterval)
    assert "force=True: 200 records are too few" in found.reason
    few = forced(0.1, tau=0.98)
    for count in (3, 5, 20):
        ranks = few.ranks(count)
        assert 1 <= ranks.lower < ranks.upper <= count - 1
    with pytest.raises(ValueError, match="too few"):
        few.ranks(2)


def test_settings_out_of_range_are_refused_in_words():
    given = {"tau": 0.5, "bounds": LINE, "epsilon": 1.0, "adjacency": "replace"}
    for name, value, words in (
        ("tau", 1.0, "tau must lie strictly between 0 and 1"),
        ("level", 0.0, "level must lie"),
        ("adjacency", "add_remove", "give one that there are at least"),
        ("num_records", 9, "leave num_records out"),
        ("spread", 0.0, "spread must be a positive number"),
        ("bounds", kng.Bounds(x=(0.0, 1.0)), "bounds of the values alone"),
    ):
        with pytest.raises(ValueError, match=words):
            kng.QuantileInterval(**given | {name: value})
    with pytest.raises(TypeError, match="tau must be one number"):
        kng.QuantileInterval([0.2, 0.5], LINE, 1.0, "replace")
    narrow = kng.QuantileInterval(0.5, kng.Bounds(y=(1e9, np.nextafter(1e9, 2e9))), 1.0, "replace")
    with pytest.raises(ValueError, match="too near to each other"):
        kng.release(narrow, np.full(500, 1e9))
    with pytest.raises(ValueError, match="two ends"):
        forced().sensitivity_for(3)
    with pytest.raises(ValueError, match="not known beforehand"):
        forced().ranks()


def test_ranks_are_made_of_public_facts_alone():
    """Levels from the data would be a second release: two tables of one size have the same, and no data are asked."""
    mechanism = kng.QuantileInterval(0.5, LINE, 1.0, "replace")
    assert list(inspect.signature(mechanism.ranks).parameters) == ["num_records"]
    ways = [
        proved_draw(mechanism, mechanism.intake.check_schema(values))
        for values in (np.zeros(300), np.linspace(0.0, 1.0, 300))
    ]
    assert ways[0] == ways[1]
    assert ways[0].settings["ranks"] == list(mechanism.ranks(300))


def test_sensitivities_by_hand():
    assert forced().sensitivity_for(2).value == 2.0
    private = kng.QuantileInterval(0.5, LINE, 2.0, "add_remove", num_records=400)
    lower, upper = private.ranks()
    assert private.sensitivity_for(2).value == pytest.approx(2.0 * (1.0 - (upper - lower) / 400))
    way = proved_draw(private, Schema(2))
    assert way.rate * 2 * (400 - (upper - lower)) == 2 * 400


def test_more_records_than_whole_numbers_hold_make_a_release_fail(monkeypatch):

    private = kng.QuantileInterval(0.5, LINE, 3.0, "add_remove", num_records=100)
    monkeypatch.setattr(exact_interval, "MOST_RECORDS", 100)
    assert "at most 100 records" in " ".join(kng.certify(private, np.full(101, 0.5)).assumptions)
    with pytest.raises(kng.ReleaseFailed):
        kng.release(private, np.full(101, 0.5))


@pytest.mark.takes(4, "two hundred releases")
@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("tau", "count", "epsilon", "replicates"), [(0.5, 200, 1.0, 200), (0.9, 1000, 1.0, 1000), (0.5, 1000, 0.3, 1000)]
)
def test_intervals_hold_the_quantile_as_often_as_they_say(tau, count, epsilon, replicates):
    """Log-normal numbers; the level is a bound, which 3 standard errors below it would break."""
    generator, bits = np.random.default_rng(4), random.Random(4).getrandbits
    mechanism = kng.QuantileInterval(tau, kng.Bounds(y=(0.0, 1000.0)), epsilon, "replace")
    way = proved_draw(mechanism, mechanism.intake.check_schema(np.zeros(count)))
    truth = math.exp({0.5: 0.0, 0.9: 1.2815515655446004}[tau])
    held = 0
    for _ in range(replicates):
        low, high = way.draw_alone(way.prepare(generator.lognormal(size=count), None), bits)
        held += low <= truth <= high
    assert held / replicates > 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / replicates)


def test_a_preview_is_that_of_the_two_order_statistics():
    mechanism = kng.QuantileInterval(0.5, LINE, 1.0, "replace")
    found = kng.preview(mechanism, num_records=1000, residual=0.1)
    assert found.noise.shape == (2,)
    assert found.trusted
    with pytest.raises(ValueError, match="too few"):
        kng.preview(mechanism, num_records=20, residual=0.1)
    levels = mechanism.law(1000).tau
    np.testing.assert_allclose(levels, np.array(mechanism.ranks(1000)) / 1000)


@pytest.mark.parametrize("epsilon", [1e-100, 1e-25, 1.5178678626542285e-14])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_draw_fails_however_small_epsilon_is(epsilon, adjacency):
    """A block's end was beyond 64 binary digits: at the last of these 300 records were served, and 301 were not."""
    public = 100_000 if adjacency == "add_remove" else None
    mechanism = kng.QuantileInterval(0.5, kng.Bounds(y=(-5.0, 5.0)), epsilon, adjacency, num_records=public, force=True)
    facts = mechanism.intake.check_schema(np.zeros(301))
    way, bits = proved_draw(mechanism, facts), random.Random(0).getrandbits
    for count in (300, 301) if public else (301,):
        pairs = way.prepare(np.random.default_rng(0).uniform(-5.0, 5.0, count), None)
        low, high = way.draw_alone(pairs, bits)
        assert -5.0 <= low <= high <= 5.0


def test_what_a_bound_on_the_number_misses_is_counted_into_the_ranks():
    given = {"tau": 0.3, "bounds": LINE, "epsilon": 1.0, "adjacency": "add_remove", "num_records": 2000}
    counted, alone = kng.QuantileInterval(**given, miss=0.005), kng.QuantileInterval(**given, level=0.955)
    assert counted.ranks() == alone.ranks() != kng.QuantileInterval(**given).ranks()
    assert counted.level == 0.95
    for wrong in (given | {"miss": 0.05}, given | {"miss": -0.1}, given | {"num_records": None, "miss": 0.01}):
        with pytest.raises(ValueError, match=r"miss must be from 0|number of records"):
            kng.QuantileInterval(**wrong)
    with pytest.raises(ValueError, match="miss must be from 0"):
        kng.QuantileInterval(0.3, LINE, 1.0, "replace", miss=0.01)
