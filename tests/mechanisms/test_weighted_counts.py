"""Sums of weights in public cells plus geometric noise: worst loss, law, exact sums, and what they are multiples of."""

import itertools
import math
import random
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.data import weights
from kngjax.data.records import Records
from kngjax.data.weights import with_weights
from kngjax.draws.choice import proved_draw
from tests.oracles.goodness_of_fit import assert_same_law

ADJACENCIES = ("replace", "add_remove")
# No multiple of its unit, 2^-18: the largest one is a little less.
LARGEST = 2.7
THREE = kng.Bounds(y=(0.0, 2.0), weight=LARGEST)
UNIT = 2.0**-18
MOST = math.floor(LARGEST / UNIT)


def test_the_unit_is_public_and_no_weight_exceeds_its_largest_multiple():
    mechanism = kng.GeometricMechanism(THREE, 1.0, "add_remove")
    assert (mechanism.unit, mechanism.most_units) == (UNIT, MOST)
    assert weights.clipped(np.array([99.0]), LARGEST)[0] == MOST * UNIT < LARGEST
    assert mechanism.sensitivity.value == MOST * UNIT
    assert "A record counts as its weight" in mechanism.sensitivity.derivation
    assert kng.GeometricMechanism(THREE, 1.0, "replace").sensitivity.value == 2 * MOST * UNIT
    assert kng.GeometricMechanism(THREE, 1.0, "replace", [1]).sensitivity.value == MOST * UNIT
    plain = kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0)), 1.0, "replace")
    assert (plain.unit, plain.most_units) == (1.0, 1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("counted", [None, [1], [2, 0]])
def test_the_worst_loss_over_neighbours_is_epsilon_exactly(adjacency, counted, monkeypatch):
    """In fractions, of the rate that draws are asked for: log P(θ)/P'(θ) is at most rate·Σ|c - c'|, far from both."""
    mechanism, asked = kng.GeometricMechanism(THREE, 0.3, adjacency, counted), []
    monkeypatch.setattr(
        "kngjax.draws.noisy_counts.draw_two_sided_geometric", lambda rate, bits: asked.append(rate) or 0
    )
    way = proved_draw(mechanism, mechanism.intake.check_schema(with_weights([0.0], [1.0]), None))

    def units(cells, given):
        return way.wholes(way.prepare(with_weights(np.array(cells), given), None), random.Random(0).getrandbits)

    records = list(itertools.product((0.0, 1.0, 2.0), (-1.0, 0.0, 0.7, LARGEST, 99.0)))
    sums = [units(*zip((1.0, 0.3), record, strict=True)) for record in records]
    others = sums if adjacency == "replace" else [units([1.0], [0.3])]
    worst = max(sum(abs(a - b) for a, b in zip(first, second, strict=True)) for first in sums for second in others)
    assert len(set(asked)) == 1
    assert worst * asked[0] == Fraction(3, 10)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_release_adds_independent_noise_of_this_size_to_each_sum(adjacency, monkeypatch):
    """Of units so small that the law is hardly another than Laplace's; half of the noise is noticed."""
    monkeypatch.setattr("secrets.randbits", random.Random(3).getrandbits)
    cells = 600
    mechanism = kng.GeometricMechanism(kng.Bounds(y=(5.0, 4.0 + cells), weight=LARGEST), 0.9, adjacency)
    y, given = np.repeat(np.arange(5, 5 + cells), 2), np.tile([0.7, 9.0], cells)
    released = kng.release(mechanism, y, weights=given)
    assert released.certificate.assurance == "proved"
    assert f"whole numbers of units of {UNIT:g}" in released.certificate.explain()
    np.testing.assert_array_equal(released.value / UNIT, np.rint(released.value / UNIT))
    noise = released.value - (np.rint(0.7 / UNIT) + MOST) * UNIT
    scale = MOST * UNIT * (2.0 if adjacency == "replace" else 1.0) / 0.9
    assert_same_law(noise, stats.laplace(scale=scale).cdf)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(noise, stats.laplace(scale=0.5 * scale).cdf)
    assert abs(np.mean(np.sign(noise[:-1:2]) * np.sign(noise[1::2]))) < 5.0 / math.sqrt(cells / 2)
    np.testing.assert_allclose(mechanism.noise.deviations(cells, None), math.sqrt(2.0) * scale, rtol=1e-6)


def test_sums_of_weights_are_exact_each_record_by_itself():
    mechanism = kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0), weight=3.0, missing_weight=0.5), 1.0, "add_remove")
    found = mechanism.prepare([0, 1, 1, -9, 2.0], weights=[1.0, 2.5, None, -4.0, 99.0])
    assert np.asarray(found.counts).tolist() == [1.0, 3.0, 3.0]
    assert found.num_records == 5
    # In fractions, of weights that no float64 sum adds up without rounding in units of 1.
    generator = np.random.default_rng(0)
    y, given = generator.integers(0, 3, 5000).astype(float), generator.uniform(0.0, 3.0, 5000)
    rounded = weights.clipped(given, 3.0)
    expected = [sum((Fraction(w) for w in rounded[y == cell].tolist()), Fraction(0)) for cell in range(3)]
    order = generator.permutation(5000)
    for place in (np.arange(5000), order):
        counts = mechanism.prepare(None, y[place], weights=given[place]).counts
        assert [Fraction(one) for one in np.asarray(counts).tolist()] == expected


def test_weights_of_1_count_records_and_none_at_all_nothing():
    ones = kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0), weight=1.0), 1.0, "add_remove")
    plain = kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0)), 1.0, "add_remove")
    y = [0, 1, 1, 2, 2, 2]
    np.testing.assert_array_equal(ones.prepare(y, weights=np.ones(6)).counts, plain.prepare(y).counts)
    assert np.all(np.isfinite(kng.release(ones, [], weights=[]).value))
    with pytest.raises(TypeError, match="where the bounds declare them"):
        ones.intake.summarise(Records(np.ones((2, 1)), np.zeros(2)))
    with pytest.raises(ValueError, match="pass the values alone"):
        kng.release(ones, y, y, weights=np.ones(6))


def test_research_draws_and_log_masses_are_of_multiples_of_the_unit():
    mechanism = kng.GeometricMechanism(THREE, 1.2, "replace")
    with float64():
        data = mechanism.prepare([0, 1, 1], weights=[1.0, 2.0, 0.5])
        draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=1500, num_chains=4).theta.reshape(-1, 3)
        np.testing.assert_array_equal(draws / UNIT, np.rint(draws / UNIT))
        centre = np.asarray(data.counts)
        assert centre.tolist() == [1.0, 2.5, 0.0]
        np.testing.assert_allclose(np.std(draws, axis=0), mechanism.noise.deviations(3, None), rtol=0.1)
        log_mass = jax.jit(mechanism.log_density)
        steps = [float(log_mass(centre + np.array([k * UNIT, 0.0, 0.0]), data)) for k in (0, 5, 0.5)]
    assert steps[1] - steps[0] == pytest.approx(-5.0 * 1.2 / (2 * MOST), rel=1e-6)
    assert steps[2] == -np.inf
