"""The geometric mechanism: its law, its worst loss, what it counts of each record, what it refuses, its release."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.draws.choice import proved_draw
from kngjax.draws.noisy_counts import draw_two_sided_geometric
from tests.oracles.goodness_of_fit import assert_cell_frequencies

ADJACENCIES = ("replace", "add_remove")
THREE = kng.Bounds(y=(0.0, 2.0))


def chances(rate, numbers):
    """P(z) ∝ e^(-rate·|z|), normalised by a sum and not by a formula."""
    total = sum(math.exp(-rate * abs(z)) for z in range(-5000, 5001))
    return np.array([math.exp(-rate * abs(z)) / total for z in numbers])


def assert_two_sided_geometric(noise, rate, reach=12):
    noise = np.asarray(noise)
    np.testing.assert_array_equal(noise, np.round(noise))
    inner = chances(rate, range(-reach, reach + 1))
    counts = [int(np.sum(noise == z)) for z in range(-reach, reach + 1)]
    assert_cell_frequencies(
        np.append(counts, len(noise) - sum(counts)), np.append(inner, max(1.0 - float(inner.sum()), 0.0))
    )


@pytest.mark.parametrize("rate", [Fraction(7, 3), Fraction(1, 50), Fraction(10**9, 7)])
def test_noise_of_large_and_small_rates(rate):
    bits = random.Random(1).getrandbits
    noise = np.array([draw_two_sided_geometric(rate, bits) for _ in range(400)])
    if rate > 100:
        assert not noise.any()
        return
    assert_two_sided_geometric(noise, float(rate), reach=40)


def test_noise_beyond_all_digits_of_float64_is_whole():
    found = draw_two_sided_geometric(Fraction(1, 10**40), random.Random(2).getrandbits)
    assert abs(found) > 10**35
    assert found % 1000 != 0
    mechanism = kng.GeometricMechanism(THREE, 1e-100, "add_remove")
    value = kng.release(mechanism, [0, 1, 1]).value
    assert np.all(np.isfinite(value))
    assert np.all(np.abs(value) > 1e90)


class Told:
    """A uniform number whose binary digits are given."""

    def __init__(self, number, digits):
        self.number, self.digits, self.asked = number, digits, 0

    def __call__(self, count):
        self.asked += count
        return (self.number >> (self.digits - self.asked)) & ((1 << count) - 1)


def test_the_edge_between_two_numbers_is_told_with_as_many_digits_as_it_takes(monkeypatch):
    """U a little above and below e^-rate, by 2^-300: G is 0 and 1."""
    from flint import arb, ctx, fmpz

    from kngjax.draws.noisy_counts import _geometric

    with ctx.workprec(2000):
        scaled = (-arb(1)).exp() * arb(2) ** 1024
        edge = int(scaled.floor().unique_fmpz() or fmpz(0))
    for beyond, expected in ((1 << 724, 0), (-(1 << 724), 1)):
        assert _geometric(Fraction(1), Told(edge + beyond, 1024)) == expected


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("counted", [None, [1], [2, 0]])
def test_the_worst_loss_over_all_neighbours_and_outputs_is_epsilon_exactly(adjacency, counted):
    """Every data set of up to three records in three cells, all its neighbours, and outputs around their counts.

    In fractions: log P(θ)/P'(θ) is rate·(Σ|θ - c'| - Σ|θ - c|), of a rate that the noise has by the test above.
    """
    mechanism = kng.GeometricMechanism(THREE, 0.3, adjacency, counted)
    rate = Fraction(3, 10) / int(mechanism.sensitivity.value)
    size = 3 if counted is None else len(counted)
    outputs = np.array(list(itertools.product(range(-1, 5), repeat=size)))

    def counts(records):
        cells = Counter(records)
        found = mechanism.prepare(np.array(records, float)).counts
        # What the library counts is what is there.
        assert list(found) == [cells[cell] for cell in (counted or [0, 1, 2])]
        return np.asarray(found)

    worst = 0
    for records in itertools.product(range(3), repeat=3):
        others = [records[1:]] if adjacency == "add_remove" else [(cell, *records[1:]) for cell in range(3)]
        for other in others:
            distances = [np.abs(outputs - counts(each)).sum(axis=1) for each in (records, other)]
            worst = max(worst, int(np.max(np.abs(distances[0] - distances[1]))))
    assert worst * rate == Fraction(3, 10)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_log_mass_is_the_law_of_research_draws_and_has_mass_one(adjacency):
    mechanism = kng.GeometricMechanism(kng.Bounds(y=(0.0, 1.0)), 1.2, adjacency)
    data = mechanism.prepare([0, 1, 1, 1])
    numbers = np.arange(-60, 65)
    thetas = np.stack(np.meshgrid(numbers, numbers, indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    log_masses = np.asarray(jax.jit(jax.vmap(mechanism.log_density, (0, None)))(thetas, data))
    assert np.sum(np.exp(log_masses)) == pytest.approx(1.0, abs=1e-9)
    rate = 0.6 if adjacency == "replace" else 1.2
    own = chances(rate, numbers - 1)[:, None] * chances(rate, numbers - 3)[None, :]
    np.testing.assert_allclose(np.exp(log_masses), own.ravel(), rtol=1e-9)
    assert mechanism.log_density(np.array([1.5, 3.0]), data) == -np.inf
    draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=1500, num_chains=4).theta.reshape(-1, 2)
    assert_two_sided_geometric((draws - [1.0, 3.0]).ravel(), rate)
    deviation = math.sqrt(
        sum(z**2 * chance for z, chance in zip(range(-99, 100), chances(rate, range(-99, 100)), strict=True))
    )
    np.testing.assert_allclose(mechanism.noise.deviations(2, None), [deviation, deviation], rtol=1e-9)


def test_half_of_the_noise_is_noticed():
    bits = random.Random(5).getrandbits
    mechanism = kng.GeometricMechanism(kng.Bounds(y=(0.0, 599.0)), 1.8, "replace")
    way = proved_draw(mechanism, mechanism.intake.check_schema([0.0], None))
    noise = way.draw(way.prepare([0.0], None), bits)[1:]
    assert_two_sided_geometric(noise, 0.9)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_two_sided_geometric(noise, 0.45)


def counts_of(values, **changed):
    bounds = kng.Bounds(y=(0.0, 2.0), **changed)
    mechanism = kng.GeometricMechanism(bounds, 1.0, "add_remove")
    return np.asarray(mechanism.prepare(values).counts).tolist()


def test_each_record_is_counted_by_itself():
    assert counts_of([0, 1, 1, 2.0]) == [1, 2, 1]
    assert counts_of(np.array([-7.0, 1e300, 2.0])) == [1, 0, 2]
    assert counts_of(pd.Series([True, False, True])) == [1, 2, 0]
    assert counts_of(["1", "x", "2"], missing_y=0) == [1, 1, 1]
    assert counts_of([1.5, None, np.inf, 1.0], missing_y="drop") == [0, 1, 0]
    assert counts_of([]) == [0, 0, 0]
    for values in ([0.5, 1.0], [math.nan, 1.0], [math.inf]):
        with pytest.raises(ValueError, match="missing, NaN or infinite"):
            counts_of(values)
    far = kng.GeometricMechanism(kng.Bounds(y=(-3.0, -1.0)), 1.0, "replace", [-1, -3])
    assert np.asarray(far.prepare([-1, -1, -2, -3]).counts).tolist() == [2, 1]


def test_simulated_cells_are_counted_as_recorded_ones_are():
    def design(key, count):
        y = jax.random.randint(key, (count,), 0, 3).astype(float)
        return None, y, jax.numpy.array([jax.numpy.sum(y == cell) for cell in (2, 0)]).astype(float)

    mechanism = kng.GeometricMechanism(THREE, 50.0, "add_remove", [2, 0])
    found = kng.simulate(design, mechanism, 8, kng.research_key(0), num_records=40, progress=False)
    np.testing.assert_array_equal(found.theta[:, 0], found.truth)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"bounds": kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0))}, "the public range of the cells alone"),
        ({"bounds": kng.Bounds()}, "the public range of the cells alone"),
        ({"bounds": kng.Bounds(y=(0.0, 1.5))}, "must be whole numbers"),
        ({"bounds": kng.Bounds(y=(0.0, 2.0**60))}, "must be whole numbers"),
        ({"bounds": kng.Bounds(y=(0.0, 1e6))}, "count at most 1,000,000"),
        ({"bounds": kng.Bounds(y=(0.0, 2.0), dither=1.0)}, "leave Bounds.* out"),
        ({"bounds": kng.Bounds(y=(0.0, 2.0), missing_y=0.5)}, "is no cell"),
        ({"bounds": kng.Bounds(y=(0.0, 2.0), missing_y="drop")}, "'drop' leaves records with missing cells out"),
        ({"counted": [3]}, "from 0 to 2, each once"),
        ({"counted": [0, 0]}, "from 0 to 2, each once"),
        ({"counted": []}, "at least one"),
        ({"counted": "12"}, "a list of cells"),
        ({"counted": [0.5]}, "whole numbers"),
        ({"counted": [True]}, "whole numbers"),
        ({"adjacency": None}, "adjacency must be named"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
    ],
)
def test_what_has_no_proof_or_no_meaning_is_refused(parts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kng.GeometricMechanism(**{"bounds": THREE, "epsilon": 1.0, "adjacency": "replace"} | parts)


def test_who_counts_alone_and_who_counts_all_change_by_what_is_said():
    def change(adjacency, bounds=THREE, counted=None):
        return kng.GeometricMechanism(bounds, 1.0, adjacency, counted).sensitivity

    assert [change("replace").value, change("replace", counted=[1]).value, change("add_remove").value] == [2, 1, 1]
    assert change("replace", kng.Bounds(y=(0.0, 1.0))).value == 2
    assert "takes 1 from one count and adds 1 to another" in change("replace").derivation
    assert "the only cell that is counted" in change("replace", counted=[1]).derivation
    assert "one record more or less changes one count by 1" in change("add_remove").derivation
    with pytest.raises(ValueError, match="3 cells are counted"):
        kng.GeometricMechanism(THREE, 1.0, "replace").sensitivity_for(2)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_release_is_whole_and_its_certificate_says_so(adjacency, tmp_path):
    mechanism, y = kng.GeometricMechanism(THREE, 0.1, adjacency), [0, 1, 1, 2]
    ledger = kng.Ledger.create(tmp_path / "ledger", kng.Budget.pure("0.1"), adjacency=adjacency, dataset="people")
    released = kng.release(mechanism, y, ledger=ledger)
    assert released.value.shape == (3,)
    np.testing.assert_array_equal(released.value, np.round(released.value))
    assert kng.Release.from_json(released.to_json()) == released
    certificate = released.certificate
    assert (certificate.assurance, certificate.delta, certificate.rounding) == ("proved", 0.0, None)
    assert (certificate.epsilon, certificate.cost.rho) == (0.1, pytest.approx(0.005))
    for part in ("no rounding enters their law", "two-sided geometric noise", "0.005-zCDP (rho = epsilon^2/2)"):
        assert part in certificate.explain()
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(mechanism, y, ledger=ledger)
    with pytest.raises(ValueError, match="leave the sampler out"):
        kng.release(mechanism, y, sampler=kng.chains.Exact())
    with pytest.raises(ValueError, match="pass the values alone"):
        kng.release(mechanism, y, y)
    with pytest.raises(TypeError, match="data from its own prepare"):
        mechanism.draws(kng.data.Records(np.zeros((2, 1)), np.zeros(2)), kng.research_key(0), 1)
