"""Output perturbation on a grid: its law by the normal distribution function, and the worst record exactly."""

import random
import secrets
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from flint import arb, ctx

import kngjax as kng
from kngjax.accounting.exact import exactly
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.data.admission import Facts
from kngjax.mechanisms.output_perturbation import TOLERANCE
from kngjax.samplers.grid import cells
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LINE = kng.Bounds(x=([-1.0], [1.0]), intercept=False)
SPARE = exactly(TOLERANCE)


def output(loss, bounds=LINE, regularization=2.0, epsilon=1.5, delta=1e-4, adjacency="add_remove"):
    return kng.OutputPerturbation(loss, bounds, regularization, epsilon, delta, adjacency)


def logistic(t, x, y):
    return np.sum(np.log1p(np.exp(x * t)) - y * x * t) + t * t


def pseudo_huber(t, x, y):
    return np.sum(0.25 * (np.sqrt(1.0 + ((y - x * t) / 0.5) ** 2) - 1.0)) + t * t


CASES = {"logistic": (kng.LogisticLoss(), logistic, 1.0), "pseudo-Huber": (kng.PseudoHuberLoss(0.5), pseudo_huber, 0.5)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_release_is_drawn_by_the_normal_law_about_the_minimiser(name, number, monkeypatch):
    """With the deviation of the exact profile by hand, on a grid about as coarse as the noise."""
    loss, objective, change = CASES[name]
    x, y = np.array([0.9, -0.7, 0.2, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])
    (middle,) = scipy.optimize.minimize(lambda t: objective(t[0], x, y), np.zeros(1), tol=1e-12).x

    def excess(shift):
        near, far = (scipy.stats.norm.cdf(sign * shift / 2 - 1.5 / shift) for sign in (1, -1))
        return near - np.exp(1.5) * far - 1e-4

    deviation = change / 2.0 / scipy.optimize.brentq(excess, 0.1, 2.0, xtol=1e-14)
    monkeypatch.setattr(cells, "_DIGITS", 1)
    monkeypatch.setattr("secrets.randbits", random.Random(5).getrandbits)
    released = [kng.release(output(loss), x[:, None], y) for _ in range(40)]
    certificate = released[0].certificate
    assert (certificate.assurance, certificate.epsilon, certificate.delta) == ("exact_with_rounding", 1.5, 1e-4)
    assert certificate.rounding is None
    assert "a minimiser that was not found" not in certificate.explain()
    unit = 2.0 ** certificate.sampler["grid_exponents"][0]
    # What a release does beside its draw takes most of its time.
    way = output(loss).on_grid(Facts(1, None))
    data = way.prepare(x[:, None], y)
    location = way.location(data)
    others = [way.grid.values(cells.draw_cell(location, way.noise, way.grid, secrets.randbits)) for _ in range(number)]
    values = [*(one.value[0] for one in released), *(value[0] for value in others)]
    places = np.array(values) / unit
    numbers = np.arange(-60, 61)
    np.testing.assert_array_equal(places, np.round(places))
    chances = np.diff(scipy.stats.norm.cdf((np.append(numbers, 61) - 0.5) * unit, middle, deviation))
    counts = np.array([np.sum(places == number) for number in numbers])
    assert_cell_frequencies(np.append(counts, len(places) - counts.sum()), np.append(chances, 1.0 - chances.sum()))


def profile(way, shift, epsilon):
    """δ(ε) of N(0, σ²) against N(shift, σ²), in balls."""
    move = ball_of(shift) / ball_of(way.noise.scale_squared).sqrt()
    near, far = ((-(sign * move / 2 - ball_of(epsilon) / move) / arb(2).sqrt()).erfc() / 2 for sign in (1, -1))
    return near - ball_of(epsilon).exp() * far


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_the_worst_record_meets_delta_and_none_exceeds_it(adjacency):
    """Huber's loss: one record far off moves the minimiser by k/λ from 0, or by twice that when it changes sides."""
    mechanism = output(kng.HuberLoss(0.3), adjacency=adjacency)
    way = mechanism.on_grid(Facts(1, None))
    far = np.array([1e6])
    places = [
        way.location(way.prepare(np.ones((len(y), 1)), y))[0]
        for y in ((far, -far) if adjacency == "replace" else (far, far[:0]))
    ]
    exact = Fraction(0.3) / 2 * (2 if adjacency == "replace" else 1)
    spare = Fraction(0.3) * SPARE
    moved = abs(places[0] - places[1])
    assert abs(moved - exact) <= 2 * spare
    with ctx.workprec(400):
        # What the proof allows: the two searches' errors point away from each other.
        worst = profile(way, exact * (1 + 2 * SPARE), Fraction(3, 2))
        assert worst <= ball_of(Fraction(1, 10**4))
        assert worst >= ball_of(Fraction(1, 10**4)) * (1 - arb(10) ** -8)
        assert profile(way, moved, Fraction(3, 2)) <= ball_of(Fraction(1, 10**4))


def test_the_search_ends_within_the_public_tolerance():
    """At most τ/λ away from the minimiser, which is ±k/λ here."""
    for scale in (1.0, 1e-40, 1e40):
        bounds = kng.Bounds(x=([-scale], [scale]), intercept=False)
        mechanism = output(kng.HuberLoss(0.3 * scale), bounds, regularization=2.0 * scale**2)
        way = mechanism.on_grid(Facts(1, None))
        (place,) = way.location(way.prepare(np.array([[scale]]), np.array([1e6 * scale])))
        change, ridge = Fraction(0.3 * scale) * Fraction(scale), Fraction(2.0 * scale**2)
        assert abs(place - change / ridge) <= SPARE * change / ridge
        assert way.tolerance_squared == (SPARE * change) ** 2


def test_noise_is_that_of_the_float64_law_and_exact():
    cases = {
        "logistic": kng.LogisticLoss(),
        "pseudo-Huber": kng.PseudoHuberLoss(0.7),
        "smoothed": kng.SmoothedQuantileLoss(0.3, 0.1),
        "Gaussian smoothed": kng.SmoothedQuantileLoss(0.3, 0.1, "gaussian"),
    }
    bounds = kng.Bounds(x=(np.array([-1.0, 0.0]), np.array([2.0, 0.5])))
    for loss in cases.values():
        for adjacency in ("replace", "add_remove"):
            mechanism = output(loss, bounds, adjacency=adjacency)
            way = mechanism.on_grid(Facts(3, None))
            with float64():
                assert float(way.noise.scale_squared) == pytest.approx(1.0 / float(mechanism.gamma_for(3)), rel=1e-12)
            assert (way.noise.kind, way.noise.weights) == ("normal", (1, 1, 1))
    change = (2 * Fraction(0.3)) ** 2
    noise = output(kng.HuberLoss(0.3), adjacency="replace").on_grid(Facts(1, None)).noise
    shift = exactly(output(kng.HuberLoss(0.3)).guarantee.mu)
    assert noise.scale_squared == change * (1 + 2 * SPARE) ** 2 / 4 / shift**2


def test_what_is_not_certain_is_drawn_in_float64(monkeypatch):
    huber = output(kng.HuberLoss(0.3))
    assert huber.on_grid(Facts(1, None)) is not None
    monkeypatch.setattr("kngjax.mechanisms.noise.calibration.is_hidden", lambda *_: False)
    assert huber.on_grid(Facts(1, None)) is None


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_one_record_or_none(name, number):
    released = kng.release(output(CASES[name][0]), np.ones((number, 1)), np.ones(number))
    assert released.certificate.assurance == "exact_with_rounding"


def test_separable_responses_have_a_minimiser_of_any_size():
    """A tiny ridge, and a gradient that is nearly flat there."""
    line = np.linspace(-1.0, 1.0, 50)
    mechanism = output(kng.LogisticLoss(), regularization=1e-12)
    way = mechanism.on_grid(Facts(1, None))
    data = way.prepare(line[:, None], (line > 0) * 1.0)
    (place,) = way.location(data)
    value, off = data.gradient(np.array([float(place)]))
    assert abs(value[0] + 1e-12 * float(place)) <= 1e-8 + off[0]
