"""Sums of records with weights plus K-norm noise: sensitivity, worst loss, law, and what is refused."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.data.weights import with_weights
from kngjax.draws.choice import proved_draw
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_same_law

ADJACENCIES = ("replace", "add_remove")
LOWER, UPPER, LARGEST = np.array([-1.0, 2.0, 1.0]), np.array([0.5, 5.0, 1.0]), 2.5
BOUNDS = kng.Bounds(x=(LOWER, UPPER), intercept=False, weight=LARGEST)
# By hand: the largest change of each coordinate. A column of ones is that of the sum of the weights.
CHANGES = {"replace": (3.75, 12.5, 2.5), "add_remove": (2.5, 12.5, 2.5)}
NORMS = {
    "default": (None, lambda v, w: np.max(np.abs(v) / w, axis=-1)),
    "L1": (kng.L1(), lambda v, w: np.sum(np.abs(v), axis=-1)),
    "L2": (kng.L2(), lambda v, w: np.sqrt(np.sum(v**2, axis=-1))),
}


def sum_of(adjacency, norm=None, epsilon=0.7, bounds=BOUNDS):
    return kng.KNormMechanism(bounds, epsilon, adjacency, norm, statistic="sum")


def changes_of(adjacency):
    """Changes of the sum by one record at corners of the bounds and within, with weights of all sizes."""
    values = [np.linspace(low, high, 3) for low, high in zip(LOWER, UPPER, strict=True)]
    records = np.array([w * np.array(x) for x in itertools.product(*values) for w in (0.0, 1.0, LARGEST)])
    if adjacency == "add_remove":
        return records
    return (records[:, None, :] - records[None, :, :]).reshape(-1, 3)


@pytest.mark.default_cases("default-replace", "L1-add_remove", "L2-replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", NORMS)
def test_the_sensitivity_is_the_largest_change_of_the_weighted_sum(adjacency, name):
    norm, gauge = NORMS[name]
    mechanism, widths = sum_of(adjacency, norm), np.array(CHANGES[adjacency])
    assert mechanism.sensitivity.value == pytest.approx(np.max(gauge(changes_of(adjacency), widths)), rel=1e-12)
    derivation = mechanism.sensitivity.derivation
    assert f"w = ({widths[0]:g}, {widths[1]:g}, {widths[2]:g})" in derivation
    assert "times their weights, each from 0 to 2.5" in derivation


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_is_that_of_the_changes_in_fractions(adjacency):
    widths = tuple(map(Fraction, CHANGES[adjacency]))
    assert sum_of(adjacency).noise_in_fractions(3, 9) == ScaledNorm("maximum", widths, Fraction(100, 49))
    total = sum(widths)
    assert sum_of(adjacency, kng.L1()).noise_in_fractions(3, 9) == ScaledNorm(
        "sum", (Fraction(1),) * 3, Fraction(100, 49) * total**2
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["default", "L1"])
def test_the_worst_loss_over_neighbours_is_epsilon_and_no_more(adjacency, name):
    """‖Σwx - Σw'x'‖ of the noise's own norm over its scale, in fractions, for exact sums of neighbouring data sets."""
    mechanism = sum_of(adjacency, NORMS[name][0])
    noise = mechanism.noise_in_fractions(3, 3)
    way, worst = NoisyMean.of(mechanism, Schema(3)), Fraction(0)
    corners = itertools.product(*zip(LOWER - [9, 9, 0], [9.5, 14.0, 1.0], strict=True), (-1.0, 1.0, 99.0))
    rest = np.array([[0.1, 3.3, 1.0, 0.7], [0.2, 4.9, 1.0, 2.0]])
    tables = [np.vstack([first, rest]) for first in corners] + [rest]
    places = [way.location(mechanism.intake.exact_sums(with_weights(rows[:, :3], rows[:, 3]))) for rows in tables]
    pairs = itertools.combinations(places[:-1], 2) if adjacency == "replace" else ((one, places[-1]) for one in places)
    for locations in pairs:
        shares = [abs(one - two) / weight for one, two, weight in zip(*locations, noise.weights, strict=True)]
        distance = max(shares) if noise.kind == "maximum" else sum(shares)
        worst = max(worst, distance**2 / noise.scale_squared)
    assert worst <= Fraction(7, 10) ** 2
    # In the l1 norm the box around all changes is longer than any of them, of which none is at its corner.
    assert worst == Fraction(7, 10) ** 2 or (name == "L1" and adjacency == "replace" and worst > Fraction(6, 10) ** 2)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_release_is_drawn_by_this_noise(adjacency, monkeypatch):
    """Of one column it is Laplace noise of scale Δ/ε; half of that is noticed."""
    bounds = kng.Bounds(x=([-2.0], [3.0]), intercept=False, weight=LARGEST)
    mechanism = sum_of(adjacency, bounds=bounds)
    records = with_weights(np.array([[-7.0], [0.25], [9.0]]), [1.0, 2.0, 9.0])
    bits = random.Random(7).getrandbits
    monkeypatch.setattr("secrets.randbits", bits)
    way = proved_draw(mechanism, mechanism.intake.check_schema(records, None))
    data, released = way.prepare(records, None), kng.release(mechanism, records)
    assert released.certificate.assurance == "proved"
    assert any("counts times its own weight" in one for one in released.certificate.assumptions)
    # -2 + .5 + 7.5
    noise = np.array([released.value[0]] + [way.draw(data, bits)[0] for _ in range(400)]) - 6.0
    scale = (12.5 if adjacency == "replace" else 7.5) / 0.7
    assert_same_law(noise, stats.laplace(scale=scale).cdf)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(noise, stats.laplace(scale=0.5 * scale).cdf)
    assert mechanism.noise.deviations(1, None)[0] == pytest.approx(2.0**0.5 * scale)


def test_weights_of_1_are_no_weights():
    x, plain = np.array([[0.25, 3.0, 1.0]]), kng.Bounds(x=(LOWER, [0.5, 5.0, 2.0]), intercept=False)
    ones = kng.Bounds(x=(LOWER, [0.5, 5.0, 2.0]), intercept=False, weight=1.0)
    values = []
    for bounds, given in ((plain, None), (ones, [1.0])):
        mechanism, table = sum_of("add_remove", bounds=bounds), with_weights(x, given)
        way = proved_draw(mechanism, mechanism.intake.check_schema(table, None))
        values.append(way.draw_alone(way.prepare(table, None), random.Random(1).getrandbits))
    np.testing.assert_array_equal(*values)


def test_weighted_means_are_refused():
    for adjacency in ADJACENCIES:
        with pytest.raises(ValueError, match="statistic='sum'"):
            kng.KNormMechanism(BOUNDS, 1.0, adjacency)
    with pytest.raises(ValueError, match="sum of the weights is private"):
        kng.KNormMechanism(BOUNDS, 1.0, "replace")
