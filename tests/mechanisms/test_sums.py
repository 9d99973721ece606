"""Sums plus K-norm noise, under both adjacencies: sensitivity, law, worst loss, and what is refused."""

import itertools
import random
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_same_law

ADJACENCIES = ("replace", "add_remove")
LOWER, UPPER = np.array([-1.0, 2.0]), np.array([0.5, 5.0])
BOUNDS = kng.Bounds(x=(LOWER, UPPER), intercept=False)
# By hand: the largest change of each coordinate.
CHANGES = {"replace": (1.5, 3.0), "add_remove": (1.0, 5.0)}
NORMS = {
    "default": (None, lambda v, w: np.max(np.abs(v) / w, axis=-1)),
    "L1": (kng.L1(), lambda v, w: np.sum(np.abs(v), axis=-1)),
    "L2": (kng.L2(), lambda v, w: np.sqrt(np.sum(v**2, axis=-1))),
}


def sum_of(adjacency, norm=None, epsilon=0.7, bounds=BOUNDS):
    return kng.KNormMechanism(bounds, epsilon, adjacency, norm, statistic="sum")


def neighbours(adjacency):
    """Changes of the sum by one record at corners of the bounds and within."""
    values = [np.linspace(low, high, 4) for low, high in zip(LOWER, UPPER, strict=True)]
    records = np.array(list(itertools.product(*values)))
    if adjacency == "add_remove":
        return np.concatenate([records, -records])
    return (records[:, None, :] - records[None, :, :]).reshape(-1, 2)


@pytest.mark.default_cases("default-add_remove", "L1-replace", "L2-add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", NORMS)
def test_the_sensitivity_is_the_largest_change_of_the_sum(adjacency, name):
    norm, gauge = NORMS[name]
    mechanism, widths = sum_of(adjacency, norm), np.array(CHANGES[adjacency])
    assert mechanism.sensitivity.value == pytest.approx(np.max(gauge(neighbours(adjacency), widths)), rel=1e-12)
    assert f"w = ({widths[0]:g}, {widths[1]:g})" in mechanism.sensitivity.derivation
    assert ("exchanging" in mechanism.sensitivity.derivation) == (adjacency == "replace")
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.rho) == (0.7, pytest.approx(0.245))


def test_a_hull_makes_a_smaller_sensitivity_than_its_box():
    triangle = kng.geometry.FeatureHull([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    bounds = kng.Bounds(hull=triangle, intercept=False)
    assert sum_of("add_remove", kng.L1(), bounds=bounds).sensitivity.value == pytest.approx(2.0)
    assert (
        sum_of("add_remove", kng.L1(), bounds=kng.Bounds(x=([0.0, 0.0], [2.0, 1.0]), intercept=False)).sensitivity.value
        == 3.0
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_is_that_of_the_bounds_in_fractions_whatever_n(adjacency):
    """ε is the decimal number that it prints as: at 0.7 a reach of 10/7 of a change."""
    widths = tuple(map(Fraction, CHANGES[adjacency]))
    for count in (1, 9):
        noise = sum_of(adjacency).noise_in_fractions(2, count)
        assert noise == ScaledNorm("maximum", widths, Fraction(100, 49))
    total = sum(widths)
    assert sum_of(adjacency, kng.L1()).noise_in_fractions(2, 5) == ScaledNorm(
        "sum", (Fraction(1), Fraction(1)), Fraction(100, 49) * total**2
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["default", "L1"])
def test_the_worst_loss_over_neighbours_is_epsilon_and_no_more(adjacency, name):
    """‖Σx - Σx'‖ of the noise's own norm over its scale, in fractions, for exact sums of neighbouring data sets."""
    mechanism = sum_of(adjacency, NORMS[name][0])
    noise = mechanism.noise_in_fractions(2, 3)
    way, worst = NoisyMean.of(mechanism, Schema(2)), Fraction(0)
    corners = np.array(list(itertools.product(*zip(LOWER - 9.0, UPPER + 9.0, strict=True))))
    for first, second in itertools.product(corners, repeat=2):
        here = np.array([first, [0.1, 3.3], [0.2, 4.9]])
        there = np.array([second, *here[1:]]) if adjacency == "replace" else here[1:]
        locations = [way.location(mechanism.intake.exact_sums(records)) for records in (here, there)]
        shares = [abs(one - two) / weight for one, two, weight in zip(*locations, noise.weights, strict=True)]
        distance = max(shares) if noise.kind == "maximum" else sum(shares)
        worst = max(worst, distance**2 / noise.scale_squared)
    assert worst == Fraction(7, 10) ** 2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_release_is_drawn_by_this_noise(adjacency, monkeypatch):
    """Of one column it is Laplace noise of scale Δ/ε; half of that is noticed."""
    bounds = kng.Bounds(x=([-2.0], [3.0]), intercept=False)
    mechanism, records = sum_of(adjacency, bounds=bounds), np.array([[-7.0], [0.25], [9.0]])
    bits = random.Random(7).getrandbits
    monkeypatch.setattr("secrets.randbits", bits)
    way = proved_draw(mechanism, mechanism.intake.check_schema(records, None))
    data = way.prepare(records, None)
    noise = np.array([kng.release(mechanism, records).value[0]] + [way.draw(data, bits)[0] for _ in range(400)]) - 1.25
    scale = (5.0 if adjacency == "replace" else 3.0) / 0.7
    assert_same_law(noise, stats.laplace(scale=scale).cdf)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(noise, stats.laplace(scale=0.5 * scale).cdf)


@pytest.mark.default_cases("default-replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", NORMS)
def test_noise_deviations_are_those_of_research_draws(adjacency, name):
    mechanism = sum_of(adjacency, NORMS[name][0])
    data = mechanism.prepare([[0.0, 2.0], [0.5, 4.0], [-1.0, 3.0]])
    draws = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=5000, num_chains=4).theta.reshape(-1, 2)
    found = mechanism.noise.deviations(2, None)
    # The kurtosis of these laws is below 6, so a standard error is below 1.2 % of 20,000 draws.
    np.testing.assert_allclose(np.std(draws, axis=0), found, rtol=0.06)
    np.testing.assert_allclose(np.mean(draws, axis=0), [-0.5, 9.0], atol=5.0 * np.max(found) / np.sqrt(20_000))
    means = kng.KNormMechanism(BOUNDS, 0.7, "replace", NORMS[name][0])
    if adjacency == "replace":
        np.testing.assert_allclose(means.noise.deviations(2, 10), found / 10.0, rtol=1e-12)
    assert means.noise.deviations(2, None) is None


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_density_is_normalised_and_about_the_sum(adjacency):
    mechanism = sum_of(adjacency, epsilon=2.0)
    data, widths = mechanism.prepare([[0.0, 2.0], [0.5, 4.0]]), np.array(CHANGES[adjacency])
    reach = 12.0
    line = reach * (2.0 * (np.arange(300) + 0.5) / 300 - 1.0)
    cells = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2) * widths + [0.5, 6.0]
    log_densities = np.asarray(jax.jit(jax.vmap(mechanism.log_density, (0, None)))(cells, data))
    volume = (line[1] - line[0]) ** 2 * widths.prod()
    assert np.sum(np.exp(log_densities)) * volume == pytest.approx(1.0, abs=4e-3)
    expected = -2.0 * np.max(np.abs(cells - [0.5, 6.0]) / widths, axis=1)
    np.testing.assert_allclose(log_densities - log_densities[0], expected - expected[0], atol=1e-9)


def test_under_add_remove_no_records_have_a_sum_and_a_column_of_ones_is_counted():
    bounds = kng.Bounds(x=([1.0, -1.0], [1.0, 2.0]), intercept=False)
    mechanism = sum_of("add_remove", bounds=bounds, epsilon=90.0)
    assert np.all(np.abs(kng.release(mechanism, np.zeros((0, 2))).value) < 2.0)
    found = kng.release(mechanism, np.column_stack([np.ones(50), np.full(50, 1.0)])).value
    np.testing.assert_allclose(found, [50.0, 50.0], atol=2.0)
    assert kng.release(mechanism, np.zeros((0, 2))).certificate.assurance == "proved"


def test_what_has_no_proof_is_refused():
    with pytest.raises(ValueError, match="statistic must be one of 'mean', 'sum'"):
        kng.KNormMechanism(BOUNDS, 1.0, "replace", statistic="median")
    with pytest.raises(ValueError, match="or statistic='sum'"):
        kng.KNormMechanism(BOUNDS, 1.0, "add_remove")
    with pytest.raises(ValueError, match="same lower and upper bound"):
        sum_of("replace", bounds=kng.Bounds(x=([1.0, 0.0], 1.0), intercept=False))


@pytest.mark.slow
def test_a_sum_in_float64_is_rounded_in_public_units():
    """An ellipsoid's sensitivity is not known in fractions."""
    mechanism = sum_of("add_remove", kng.Ellipsoid(np.eye(2)))
    released = kng.release(mechanism, np.tile([[0.5, 3.0]], (50, 1)))
    assert released.certificate.assurance == "in_reals"
    assert released.certificate.rounding.centre == (0.0, 0.0)
    assert np.all(np.abs(released.value - [25.0, 150.0]) < 300.0)
    assert mechanism.noise.deviations(2, None) is None
