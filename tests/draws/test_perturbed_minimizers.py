"""Objective perturbation on a grid: its constants exactly, its minimisers, and what is said of its noise."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from flint import arb, ctx

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of, power_of_two
from kngjax.data.schema import Schema
from kngjax.draws import grid_cells, perturbed_minimizers
from kngjax.draws.choice import proved_draw
from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_two_samples_agree
from tests.oracles.perturbed_problems import LAWS, constants, law, squared, table

X = np.array([[0.9], [-0.7], [0.2], [1.0]])
Y = np.array([0.8, 0.3, -0.6, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("domain", [kng.Box(-0.5, 0.3), kng.L1Ball(0.6), kng.L2Ball(0.4)])
def test_in_the_plane_it_has_the_law_of_draws_in_float64(domain):
    """Inside and on faces."""
    mechanism, (x, y) = squared(domain, epsilon=20.0), table(2, 30)
    centre = [1e4, -2e4] if isinstance(domain, kng.L1Ball) else None
    mechanism = kng.ObjectivePerturbation(
        kng.SquaredLoss(), mechanism.bounds.for_dimension(2), domain, 20.0, "replace", centre=centre
    )
    way, bits = proved_draw(mechanism, Schema(2, 30)), random.Random(3).getrandbits
    data = way.prepare(x, y)
    drawn = np.array([way.draw(data, bits) for _ in range(1500)])
    with float64():
        others = np.asarray(mechanism.draws(mechanism.prepare(x, y), kng.research_key(1), 6000)[0])
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -0.5]):
        # Ties at the faces, told apart by uniform numbers.
        spread = np.random.default_rng(0).uniform(-1e-3, 1e-3, 7500)
        assert_two_samples_agree(drawn @ direction + spread[:1500], others @ direction + spread[1500:])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pseudo-Huber on R", "Huber", "smoothed", "Poisson", "expectile"])
def test_in_the_plane_other_losses_have_the_law_of_draws_in_float64(name):
    loss, bounds, domain = LAWS[name]
    centre = [25.0, -10.0] if name in ("Huber", "pseudo-Huber on R") else None
    parts = (loss, bounds.for_dimension(2), domain, 8.0, "replace", kng.L2())
    mechanism = kng.ObjectivePerturbation(*parts, centre=centre)
    x, y = table(2, 40)
    y = np.floor(3.0 * np.abs(y)) if name == "Poisson" else y
    way, bits = proved_draw(mechanism, Schema(2, 40)), random.Random(4).getrandbits
    data = way.prepare(x, y)
    drawn = np.array([way.draw(data, bits) for _ in range(400)])
    with float64():
        others = np.asarray(mechanism.draws(mechanism.prepare(x, y), kng.research_key(2), 4000)[0])
    for direction in ([1.0, 0.0], [1.0, -0.5]):
        spread = np.random.default_rng(0).uniform(-1e-3, 1e-3, 4400)
        assert_two_samples_agree(drawn @ direction + spread[:400], others @ direction + spread[400:])


@pytest.mark.parametrize(
    "loss",
    [kng.SquaredLoss(), kng.PseudoHuberLoss(0.5), kng.SmoothedQuantileLoss(0.3, 0.2)],
    ids=lambda one: type(one).__name__,
)
def test_a_public_shift_of_responses_and_centre_shifts_what_is_released(loss):
    """By exactly as much, of the same random numbers: what does not vary of a response costs nothing."""
    x, y = table(1, 50)
    x, y = np.round(64.0 * x) / 64.0, np.round(64.0 * y) / 64.0
    drawn = []
    for shift in (0.0, 1024.0):
        mechanism = kng.ObjectivePerturbation(
            loss, kng.Bounds(x=([-1.0], [1.0]), y=(shift - 1.0, shift + 1.0)),
            kng.Box([shift - 2.0, -2.0], [shift + 2.0, 2.0]), 3.0, "replace", centre=[shift + 0.5, 0.25],
        )  # fmt: skip
        way = proved_draw(mechanism, Schema(2, 50))
        data = way.prepare(x, y + shift)
        drawn.append([way.draw(data, random.Random(seed).getrandbits) - [shift, 0.0] for seed in range(6)])
    assert np.array_equal(*drawn)
    assert len(np.unique(drawn[0])) > 6


@pytest.mark.default_cases(9)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf([2.0, 0.3])], ids=repr)
def test_the_constants_are_those_of_the_float64_law_and_on_the_safe_side(norm, name):
    loss, bounds, domain = LAWS[name]
    for adjacency in ("replace", "add_remove"):
        mechanism = kng.ObjectivePerturbation(loss, bounds.for_dimension(2), domain, 1.3, adjacency, norm)
        way = proved_draw(mechanism, Schema(2, None))
        with float64():
            rate, ridge = float(mechanism.noise_rate(2)), float(mechanism.ridge(2))
            sides = np.asarray(mechanism.score_norm(2).box_sides(2) if norm is None else np.ones(2))
        assert float(way.law.ridge) == pytest.approx(ridge, rel=1e-12)
        scale = math.sqrt(way.law.noise.scale_squared)
        expected = np.array([2.0, 0.3]) if isinstance(norm, kng.WeightedLInf) else sides
        np.testing.assert_allclose([scale * float(w) * rate for w in way.law.noise.weights], expected, rtol=1e-12)


def test_nothing_of_the_noise_is_rounded_and_the_ridge_is_rounded_up():
    """|x| ≤ .1, |y| ≤ .3 and |θ| ≤ .7, none of which is a number of float64, and ε = .9."""
    bounds = kng.Bounds(x=([-0.1], [0.1]), y=(-0.3, 0.3), intercept=False)
    for adjacency, number in (("replace", 2), ("add_remove", 1)):
        law = proved_draw(squared(kng.Box(-0.7, 0.7)), Schema(1, 4)).law
        mechanism = kng.ObjectivePerturbation(
            kng.SquaredLoss(), bounds, kng.Box(-0.7, 0.7), 0.9, adjacency, noise_share=0.3
        )
        law = proved_draw(mechanism, Schema(1, 4)).law
        x, y, theta = Fraction(0.1), Fraction(0.3), Fraction(0.7)
        assert law.noise == ScaledNorm(
            "maximum", (number * x * (x * theta + y),), 1 / (Fraction(9, 10) * Fraction(3, 10)) ** 2
        )
        assert law.curvature == x**2
        with ctx.workprec(600):
            growth = ball_of(Fraction(7, 10) * Fraction(9, 10)).expm1()
            assert ball_of(law.ridge) * growth >= ball_of(x**2)
            assert ball_of(law.ridge) * growth <= ball_of(x**2) * (1 + arb(2) ** -120)
    smooth = kng.ObjectivePerturbation(kng.HuberLoss(0.3), bounds, None, 0.9, "replace", output_share=0.1)
    noise = proved_draw(smooth, Schema(1, 4)).law.noise
    assert noise == ScaledNorm("maximum", (2 * y * x,), 1 / (Fraction(81, 100) / 2) ** 2)


def test_what_float64_leaves_open_is_told_in_balls(monkeypatch):
    """The same uniform numbers, hence the same cell, whether float64 is asked at all or not."""
    mechanism, _ = law("pseudo-Huber on R")
    way = proved_draw(mechanism, Schema(1, 4))
    data = way.prepare(X, Y)
    values = [way.draw(data, random.Random(seed).getrandbits) for seed in range(20)]
    asked = []
    monkeypatch.setattr(CertifiedMinimizer, "_in_floats", lambda *_: asked.append(None))
    again = [way.draw(data, random.Random(seed).getrandbits) for seed in range(20)]
    assert len(asked) == 20
    assert np.array_equal(values, again)
    # A finer grid's numbers, rounded to this one: but for ties they are these.
    fine = perturbed_minimizers.SmoothMinimum(mechanism, way.law, grid_cells.Grid((way.grid.exponents[0] - 60,)))
    exact = [fine.grid.cell([Fraction(0)]) and fine.draw(data, random.Random(seed).getrandbits) for seed in range(20)]
    unit = float(power_of_two(way.grid.exponents[0]))
    np.testing.assert_allclose(np.array(values) / unit, np.floor(np.array(exact) / unit + 0.5), rtol=0, atol=1e-9)


def test_norms_without_a_proof_are_drawn_in_float64():
    loss, bounds, domain = LAWS["smoothed"]
    mechanism = kng.ObjectivePerturbation(loss, bounds, domain, 1.0, "replace", kng.Ellipsoid(np.eye(1)))
    assert kng.certify(mechanism, *table(1)).assurance == "in_reals"


def test_certificates_say_that_the_share_for_output_noise_is_not_spent():
    """Where it is not: of a search in float64 it is, and the squared loss has none."""

    def said(name, *norm, **settings):
        loss, bounds, domain = LAWS[name]
        parts = (loss, bounds.for_dimension(1), domain, 1.0, "replace", *norm)
        return kng.certify(kng.ObjectivePerturbation(*parts, **settings), *table(1)).explain()

    told = "What output_share = 0.125 sets aside of epsilon for output noise is not spent"
    assert told in " ".join(said("smoothed", output_share=0.125).split())
    assert "not spent" not in said("smoothed", kng.Ellipsoid(np.eye(1)))
    assert "not spent" not in said("squared")


def test_a_minimiser_far_out_is_projected(monkeypatch):
    """Public post-processing of the rounded minimiser over R^d, of which one in a hundred lies within Θ."""
    monkeypatch.setattr("secrets.randbits", random.Random(8).getrandbits)
    mechanism = kng.ObjectivePerturbation(
        kng.HuberLoss(0.5), kng.Bounds(x=([-1.0], [1.0]), intercept=False), kng.Box(-0.01, 0.02), 1e-3, "replace"
    )
    values = {float(kng.release(mechanism, X, Y).value[0]) for _ in range(12)}
    assert values <= {-0.01, 0.02}


def test_the_ridge_is_where_it_says():
    """Of b = 0 the minimiser of a plane, by SciPy."""
    mechanism, (x, y) = squared(kng.L2Ball(50.0)), table(2, 30)
    rate, ridge = constants(2, 50.0 * math.sqrt(2.0), "replace", 1.0)
    mechanism = kng.ObjectivePerturbation(
        kng.SquaredLoss(), mechanism.bounds.for_dimension(2), kng.L2Ball(50.0), 1.0, "replace"
    )
    way = proved_draw(mechanism, Schema(2, 30))
    assert float(way.law.noise.weights[0]) * math.sqrt(way.law.noise.scale_squared) == pytest.approx(1 / rate)
    with ctx.workprec(128):
        places = way.search(way.prepare(x, y)).places([arb(0), arb(0)])
    expected = scipy.optimize.minimize(
        lambda theta: 0.5 * np.sum((y - x @ theta) ** 2) + 0.5 * ridge * theta @ theta, np.zeros(2), tol=1e-14
    )
    np.testing.assert_allclose([float(place) for place in places], expected.x, rtol=1e-6)
