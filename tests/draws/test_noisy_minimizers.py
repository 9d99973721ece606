"""Output perturbation on a grid: how near its search comes to the minimiser, and its noise exactly."""

from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import float64
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.mechanisms.output_perturbation import TOLERANCE

LINE = kng.Bounds(x=([-1.0], [1.0]), intercept=False)
SPARE = exactly(TOLERANCE)


def output(loss, bounds=LINE, regularization=2.0, epsilon=1.5, delta=1e-4, adjacency="add_remove"):
    return kng.OutputPerturbation(loss, bounds, regularization, epsilon, delta, adjacency)


def test_the_search_ends_within_the_public_tolerance():
    """At most τ/λ away from the minimiser, which is ±k/λ here."""
    for scale in (1.0, 1e-40, 1e40):
        bounds = kng.Bounds(x=([-scale], [scale]), intercept=False)
        mechanism = output(kng.HuberLoss(0.3 * scale), bounds, regularization=2.0 * scale**2)
        way = proved_draw(mechanism, Schema(1, None))
        (place,) = way.location(way.prepare(np.array([[scale]]), np.array([1e6 * scale])))
        change, ridge = Fraction(0.3 * scale) * Fraction(scale), Fraction(2.0 * scale**2)
        assert abs(place - change / ridge) <= SPARE * change / ridge
        assert way.tolerance_squared == (SPARE * change) ** 2


def test_noise_is_that_of_the_float64_law_and_exact():
    cases = {
        "logistic": kng.LogisticLoss(),
        "Gaussian smoothed": kng.SmoothedQuantileLoss(0.3, 0.1, "gaussian"),
    }
    bounds = kng.Bounds(x=(np.array([-1.0, 0.0]), np.array([2.0, 0.5])))
    for loss, adjacency in zip(cases.values(), ("replace", "add_remove"), strict=True):
        mechanism = output(loss, bounds, adjacency=adjacency)
        way = proved_draw(mechanism, Schema(3, None))
        with float64():
            assert float(way.noise.scale_squared) == pytest.approx(1.0 / float(mechanism.gamma_for(3)), rel=1e-12)
        assert (way.noise.kind, way.noise.weights) == ("normal", (1, 1, 1))
    change = (2 * Fraction(0.3)) ** 2
    noise = proved_draw(output(kng.HuberLoss(0.3), adjacency="replace"), Schema(1, None)).noise
    shift = exactly(output(kng.HuberLoss(0.3)).guarantee.mu)
    assert noise.scale_squared == change * (1 + 2 * SPARE) ** 2 / 4 / shift**2


def test_what_is_not_certain_is_drawn_in_float64(monkeypatch):
    huber = output(kng.HuberLoss(0.3))
    assert proved_draw(huber, Schema(1, None)) is not None
    monkeypatch.setattr("kngjax.draws.noisy_sums.is_hidden", lambda *_: False)
    assert proved_draw(huber, Schema(1, None)) is None


def test_separable_responses_have_a_minimiser_of_any_size():
    """A tiny ridge, and a gradient that is nearly flat there."""
    line = np.linspace(-1.0, 1.0, 50)
    mechanism = output(kng.LogisticLoss(), regularization=1e-12)
    way = proved_draw(mechanism, Schema(1, None))
    data = way.prepare(line[:, None], (line > 0) * 1.0)
    (place,) = way.location(data)
    value, off = data.gradient(np.array([float(place)]))
    assert abs(value[0] + 1e-12 * float(place)) <= 1e-8 + off[0]


@pytest.mark.parametrize("in_passes", [False, True])
def test_a_minimiser_of_exactly_0_is_found(in_passes):
    """Of two records that pull as much in two directions: the middles of balls are 0 there."""
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1)
    mechanism = kng.OutputPerturbation(
        kng.PseudoHuberLoss(0.1), bounds, 1.0, 1.0, 1e-6, adjacency="add_remove", max_records=1000
    )
    X, y = np.array([[0.5], [0.5]] * 8), np.array([0.3, -0.3] * 8)
    data = (kng.stream([(X[::2], y[::2]), (X[1::2], y[1::2])]),) if in_passes else (X, y)
    assert np.all(np.isfinite(kng.release(mechanism, *data).value))
