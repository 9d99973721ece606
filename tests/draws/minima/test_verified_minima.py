"""Minimisers in balls: gradients within their bounds, boxes that contain what 300 binary digits find."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from kngjax.core.balls import ball_of
from kngjax.data.records import Records
from kngjax.draws.minima import verified_minima
from kngjax.draws.minima.newton_searches import BallObjective, float_search
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.losses.verified_scores import fraction_of
from tests.oracles.smooth_minima import LOSSES, made, refined, true_gradient


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("in_floats", [True, False])
def test_boxes_contain_the_minimiser_for_every_noise_in_its_balls(name, in_floats, monkeypatch):
    """By float64, and record by record in balls."""
    if not in_floats:
        monkeypatch.setattr(CertifiedMinimizer, "_in_floats", lambda *_: None)
    for seed in range(2):
        objective, generator = made(name, 25, 2, seed), np.random.default_rng(seed)
        noise = generator.normal(size=2).tolist()
        search, digits = CertifiedMinimizer(objective), 64 if in_floats else 128
        with ctx.workprec(digits + 64):
            tilt = [arb(one, 2.0**-60) for one in noise]
            found = search.places(tilt) if in_floats else (search.places(tilt), search.places(tilt))[1]
        assert found is not None
        widest = max(float(place.rad()) for place in found)
        assert widest < (1e-12 if in_floats else 1e-16)
        with ctx.workprec(300):
            for move in (0, -1, 1):
                true = refined(objective, [arb(one) + move * arb(2) ** -60 for one in noise])
                assert all(place.contains(one) for place, one in zip(found, true, strict=True))


def test_more_digits_of_the_noise_give_smaller_boxes_without_limit():
    objective, search = made("pseudo-Huber", 30, 2), None
    search, widths = CertifiedMinimizer(objective), []
    for digits in (64, 128, 256, 512, 1024):
        with ctx.workprec(digits + 64):
            third = arb(1) / 3 + arb(0, arb(2) ** -digits)
            found = search.places([third, -third])
            assert found is not None
            widths.append(max(float(place.rad().log()) / math.log(2.0) for place in found))
    assert all(later < 1.7 * sooner for sooner, later in itertools.pairwise(widths))


@pytest.mark.parametrize("name", LOSSES)
def test_a_search_that_starts_far_off_ends_at_the_minimiser(name, monkeypatch):
    """A guess of no use costs steps in balls, and never a failure."""
    objective = made(name, 20, 2)
    expected = float_search(objective, np.zeros(2))
    monkeypatch.setattr(verified_minima, "float_search", lambda *_: np.array([1e3, -1e4]))
    search, found = CertifiedMinimizer(objective), None
    for digits in (64, 128, 256, 512):
        with ctx.workprec(digits + 64):
            found = search.places([arb(0), arb(0)]) or found
    assert found is not None
    np.testing.assert_allclose([float(one) for one in found], expected, rtol=1e-9)
    bound = Fraction(1, 10**30)
    place = CertifiedMinimizer(objective).near(bound)
    with ctx.workprec(300):
        gradient = true_gradient(objective, [ball_of(one) for one in place], [arb(0)] * 2)
        assert sum((one**2 for one in gradient), arb(0)) <= ball_of(bound)


@pytest.mark.parametrize("tolerance", [Fraction(1, 10**14), Fraction(1, 10**40)])
@pytest.mark.parametrize("name", ["logistic", "Huber"])
def test_what_is_near_has_a_gradient_of_no_more_than_the_tolerance(name, tolerance):
    """Separable responses with a small ridge, one record, none, and columns of very different sizes."""
    line = np.linspace(-1.0, 1.0, 30)[:, None]
    tables = {
        "separable": (np.hstack([np.ones_like(line), line]), (line[:, 0] > 0) * 1.0),
        "one": (np.array([[1.0, -1.0]]), np.array([1.0])),
        "none": (np.zeros((0, 2)), np.zeros(0)),
        "sizes": (np.hstack([line * 2.0**50, line**2 * 1e-50]), (line[:, 0] > 0.3) * 1.0),
        "alike": (np.hstack([line, line]), (line[:, 0] > 0.3) * 1.0),
    }
    for x, y in tables.values():
        objective = Objective.of(
            Records(x, y),
            LOSSES[name].verified_score(),
            Fraction(1, 10**6),
            2 * Fraction(np.max(np.abs(x), initial=1.0)) ** 2,
        )
        place = CertifiedMinimizer(objective).near(tolerance)
        with ctx.workprec(600):
            gradient = true_gradient(objective, [ball_of(one) for one in place], [arb(0)] * 2)
            assert sum((one**2 for one in gradient), arb(0)) <= ball_of(tolerance)


def test_records_are_not_shown():
    objective = made("Huber")
    assert "OWNER ONLY" in repr(objective)
    assert "OWNER ONLY" in repr(CertifiedMinimizer(objective))


def test_a_box_that_newtons_image_leaves_says_nothing():
    """θ² - 2 from 1 with slopes of [2, 2.2] over a box of half width .1: the root is outside of it."""
    hessian, residual = arb_mat([[arb(2.1, 0.1)]]), [arb(-1)]
    assert verified_minima._newton(hessian, residual, [arb(1)], [arb(0.1)]) is None
    # With slopes of [2, 2.4] over a half width of .4 the image [1.416, 1.5] lies outside, and the root at 1.4142.
    assert verified_minima._newton(arb_mat([[arb(2.2, 0.2)]]), residual, [arb(1)], [arb(0.4)]) is None
    (found,) = verified_minima._newton(arb_mat([[arb(2.4, 0.5)]]), residual, [arb(1)], [arb(0.6)])
    assert found.contains(arb(2).sqrt())
    assert float(fraction_of(found)) == pytest.approx(1.4, abs=0.1)


@pytest.mark.default_cases("pseudo-Huber")
@pytest.mark.parametrize("name", LOSSES)
def test_boxes_contain_the_minimisers_for_noise_of_which_little_is_known(name):
    """Slopes change over such a box: those at its middle would not do."""
    found = 0
    for seed, exponent in itertools.product(range(2), range(2, 13)):
        objective = made(name, 6, 1, seed, ridge=Fraction(1, 10))
        with ctx.workprec(128):
            places = CertifiedMinimizer(objective).places([arb(0.1, 2.0**-exponent)])
        if places is None:
            continue
        found += 1
        with ctx.workprec(300):
            for move in np.linspace(-1.0, 1.0, 5).tolist():
                (true,) = refined(objective, [arb(0.1) + arb(move) * arb(2) ** -exponent])
                assert places[0].contains(true)
    assert found >= 6


@pytest.mark.parametrize("in_floats", [True, False])
def test_what_is_near_is_no_farther_than_the_tolerance_at_any_step(in_floats, monkeypatch):
    """Whatever the search passes through: a tolerance of half of a gradient on its way is not met by that one."""
    objective, squares = made("pseudo-Huber", 20, 2), []
    gradient = BallObjective.gradient

    def seen(self, theta, tilt):
        found = gradient(self, theta, tilt)
        squares.append(sum((one**2 for one in found), arb(0)))
        return found

    if not in_floats:
        monkeypatch.setattr(verified_minima, "float_search", lambda *_: np.array([3.0, -2.0]))
    monkeypatch.setattr(BallObjective, "gradient", seen)
    CertifiedMinimizer(objective).near(Fraction(1, 10**100))
    bounds = [fraction_of(square) / 2 for square in squares if square > arb(10) ** -90]
    if in_floats:
        total, off = objective.gradient(theta := float_search(objective, np.zeros(2)))
        residual = np.abs(total + float(objective.ridge) * theta) + off
        bounds = [Fraction(float(residual @ residual)) / 2]
    assert bounds
    for bound in bounds:
        place = CertifiedMinimizer(objective).near(bound)
        with ctx.workprec(600):
            left = true_gradient(objective, [ball_of(one) for one in place], [arb(0)] * 2)
            assert sum((one**2 for one in left), arb(0)) <= ball_of(bound)
