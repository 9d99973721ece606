"""Noise on responses: uniform, each record's own, new each time, and no threat to the guarantee."""

import numpy as np
import pytest

import kngjax as kng
from audits.replay import replayed_sensitivity
from kngjax.data import prepare
from kngjax.data.records import prepare_simulated
from tests.oracles.goodness_of_fit import assert_same_law

WIDTH = 100.0
WIDE = kng.Bounds(y=(-1e6, 1e6), dither=WIDTH)


def noise(count, bounds=WIDE, **settings):
    return np.asarray(prepare(bounds, None, np.full(count, 500.0), **settings).y) - 500.0


def test_the_noise_is_uniform_new_and_each_records_own():
    drawn = noise(20_000, dither_key=kng.research_key(0))
    assert_same_law(drawn, lambda value: np.clip(value / WIDTH + 0.5, 0.0, 1.0))
    np.testing.assert_array_equal(noise(20_000, dither_key=kng.research_key(0)), drawn)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.04
    first, second = noise(2000), noise(2000)
    for one in (first, second):
        assert np.max(np.abs(one)) <= 50.0
        # Of standard deviation 28.9, and distinct to the last.
        assert np.unique(one).size == 2000
        assert abs(one.std() - WIDTH / np.sqrt(12.0)) < 2.0
    assert not np.any(first == second)


def test_what_is_noisy_is_clipped_and_nothing_else_is_noisy():
    y, x = np.array([0.0, 0.0, 7.0, 10.0]), np.arange(4.0)[:, None]
    bounds = kng.Bounds(x=(0.0, 3.0), y=(0.0, 10.0), dither=2.0)
    records = prepare(bounds, x, y)
    assert np.all((records.y >= 0.0) & (records.y <= 10.0))
    assert np.all(np.abs(records.y - y) <= 1.0)
    np.testing.assert_array_equal(records.x[:, 1], x[:, 0])
    np.testing.assert_array_equal(prepare(kng.Bounds(x=(0.0, 3.0), y=(0.0, 10.0)), x, y).y, y)
    assert repr(bounds) == "Bounds(x=(0.0, 3.0), y=(0.0, 10.0), dither=2.0)"
    assert bounds.for_dimension(2).dither == 2.0


def test_logarithms_get_the_noise_of_what_they_are_of():
    """Of a heap at 500 and of one at 50,000 it is as wide, and nothing is below the bounds."""
    bounds = kng.Bounds(y=(np.log(450.0), np.log(60_000.0)), dither=100.0, dither_of_log=True)
    key = kng.research_key(0)
    for value in (500.0, 50_000.0):
        drawn = np.exp(np.asarray(prepare(bounds, None, np.full(20_000, np.log(value)), dither_key=key).y))
        assert_same_law((drawn - value) / 100.0, lambda part: np.clip(part + 0.5, 0.0, 1.0))
    low = np.asarray(prepare(bounds, None, np.full(2000, np.log(10.0))).y)
    assert np.all(low == np.log(450.0))
    made = bounds.for_dimension(1)
    assert (float(made.dither), made.dither_of_log) == (100.0, True)
    assert "what each response is the logarithm of got its own uniform noise of width 100" in made.explain_dither()[0]
    for given in ({"dither_of_log": True, "y": (0.0, 1.0)}, {"dither_of_log": True, "dither": 1.0}):
        with pytest.raises(ValueError, match="dither_of_log is for responses that are logarithms"):
            kng.Bounds(**given)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan, [1.0, 2.0]])
def test_widths_that_are_none(wrong):
    with pytest.raises(ValueError, match=r"dither (must be one positive and finite number|.*rescale)"):
        kng.Bounds(y=(0.0, 1.0), dither=wrong)


@pytest.mark.parametrize("wrong", [True, "1", float])
def test_what_is_no_number_is_no_width(wrong):
    with pytest.raises(TypeError, match="dither must be a number"):
        kng.Bounds(y=(0.0, 1.0), dither=wrong)


GRID = np.linspace(-1.0, 2.0, 3001)


def law_of_median(values, rate):
    """exp(-rate·|#{y ≤ θ} - n/2|) on a grid of θ."""
    density = np.exp(-rate * np.abs(np.sum(values[:, None] <= GRID, axis=0) - 0.5 * len(values)))
    return density / density.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "rate"), [("replace", 0.5), ("add_remove", 1.0)])
def test_neighbours_stay_within_epsilon_for_every_noise_and_on_average(adjacency, rate):
    """What is released has the average of laws over the noise, and each pair of them keeps to ε = 1 by itself."""
    mechanism = kng.PrivateQuantile(0.5, kng.Bounds(y=(-1.0, 2.0), dither=1.0), 1.0, adjacency)
    here, there = np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    pairs = []
    for seed in range(60):
        # One key gives the records that both data sets have the same noise.
        one, other = (
            np.asarray(mechanism.intake.records(None, y, dither_key=kng.research_key(seed)).y) for y in (here, there)
        )
        assert np.count_nonzero(one != other) == 1
        pairs.append([law_of_median(values, rate) for values in (one, other if adjacency == "replace" else one[:-1])])
    ratios = [np.max(np.abs(np.log(one / other))) for one, other in pairs]
    average = np.max(np.abs(np.log(np.divide(*np.mean(pairs, axis=0)))))
    assert max(ratios) <= 1.0 + 1e-9
    assert 0.2 < average <= max(ratios) + 1e-12


def test_releases_say_what_noise_there_was():
    y = np.repeat([0.0, 1.0, 2.0], 30)
    bounds = kng.Bounds(y=(-0.5, 2.5), dither=1.0)
    for mechanism in (
        kng.PrivateQuantile(0.5, bounds, 5.0, "replace"),
        kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 3.0), 5.0, "add_remove"),
        kng.ExponentialMechanism(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 3.0), 5.0, "replace"),
    ):
        certificate = kng.certify(mechanism, None, y)
        assert "each response got its own uniform noise of width 1 before it was clipped" in certificate.explain()
        assert certificate.mechanism["bounds"]["dither"] == 1.0
    assert -0.5 <= kng.release(kng.PrivateQuantile(0.5, bounds, 5.0, "replace"), y=y).value[0] <= 2.5
    plain = kng.PrivateQuantile(0.5, kng.Bounds(y=(-0.5, 2.5)), 5.0, "replace")
    assert "uniform noise" not in kng.certify(plain, y=y).explain()


def test_where_heaps_do_no_harm_noise_is_refused():
    bounds = kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), columns=1, dither=0.1)
    for loss in (kng.SquaredLoss(), kng.SmoothedQuantileLoss(0.5, 0.1), kng.PseudoHuberLoss(0.1)):
        with pytest.raises(ValueError, match=r"dither is for mechanisms of the quantile loss.*" + type(loss).__name__):
            kng.KNG(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(ValueError, match="dither is for mechanisms of the quantile loss"):
        kng.AdaSSP(bounds, 1.0, 1e-6, "replace")
    with pytest.raises(ValueError, match="simulations add no noise to responses"):
        prepare_simulated(bounds, np.zeros((2, 1)), np.zeros(2))
    mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(TypeError, match=r"shards take no Bounds\(\.\.\., dither=\.\.\.\)"):
        mechanism.prepare(kng.shard(np.zeros((4, 1)), np.zeros(4)))


@pytest.mark.slow
def test_noise_on_heaped_incomes_brings_the_median_back():
    """Rounded to hundreds, a tenth of them 0: without noise releases miss the median, whatever n."""
    random = np.random.default_rng(0)
    incomes = np.where(random.uniform(size=5000) < 0.1, 0.0, np.exp(random.normal(7.5, 0.6, 5000)))
    heaped = np.round(incomes, -2)
    errors = {}
    for dither in (None, 100.0):
        mechanism = kng.PrivateQuantile(0.5, kng.Bounds(y=(-50.0, 2e4), dither=dither), 1.0, "replace")
        keys = [kng.research_key(seed) for seed in range(40)]
        draws = [
            kng.sample(mechanism, mechanism.prepare(y=heaped, dither_key=key), key=key, num_draws=1, num_chains=1).theta
            for key in keys
        ]
        errors[dither] = np.median(np.abs(np.ravel(draws) - np.median(incomes)))
    assert errors[100.0] < 100.0
    assert errors[None] > 3.0 * errors[100.0]


def test_audits_leave_the_noise_out():
    """Drawn for either data set by itself it would make every record another one."""
    pair = [(None, np.append(np.linspace(0.0, 1.0, 9), last)) for last in (0.0, 2.0)]
    bounds = kng.Bounds(y=(-0.5, 2.5), dither=1.0)
    quantile = kng.PrivateQuantile(0.5, bounds, 1.0, "replace")
    assert kng.audit.black_box(quantile, *pair, key=kng.research_key(0), num_draws=1000).passed


@pytest.mark.slow
def test_replayed_audits_leave_the_noise_out():
    pair = [(None, np.append(np.linspace(0.0, 1.0, 9), last)) for last in (0.0, 2.0)]
    bounds = kng.Bounds(y=(-0.5, 2.5), dither=1.0)
    line = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 3.0), 1.0, "replace")
    assert replayed_sensitivity(line, *pair, key=kng.research_key(0), num_points=20).passed
