"""Boxes cover Θ once, and their floors hold, against balls of many digits."""

import random

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.mechanisms.smooth_draws import noise_of
from kngjax.samplers.grid.smooth import boxes
from kngjax.samplers.grid.smooth.records import THIRD, PseudoHuberRecords
from kngjax.samplers.grid.smooth.regions import Gauge, Region

K = 0.3


def covered(d, norm, domain, seed=0, shift=1.0, factor=None, n=300):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (n, d)) * np.geomspace(1.0, 0.2, d)
    y = x @ np.full(d, shift) + 0.2 * generator.standard_normal(n)
    records = PseudoHuberRecords.of(x, y, K)
    bounds = kng.Bounds(x=([-1.0] * d, [1.0] * d), intercept=False)
    mechanism = kng.KNG(kng.PseudoHuberLoss(K), bounds, domain, 10.0 * d, "replace", norm)
    noise = noise_of(mechanism, d)
    assert noise is not None
    gauge, region = Gauge(noise), Region(domain.exact_shape(d))
    theta = np.full(d, 0.15)
    factor = np.linalg.inv(np.linalg.cholesky(x.T @ x)) if factor is None else factor
    with ctx.workprec(128):
        found, log_mass = boxes.cover(records, gauge, region, theta, np.tril(factor))
    return records, gauge, region, found, log_mass


CASES = [
    (1, None, kng.L1Ball(0.5)),
    (2, None, kng.Box([-1.0, -0.5], [0.4, 0.6])),
    (2, kng.L1(), kng.L1Ball(0.6)),
    (2, kng.L2(), kng.L2Ball(0.5)),
    (3, None, kng.Box([-0.2] * 3, [0.3] * 3)),
]


@pytest.mark.parametrize(("d", "norm", "domain"), CASES)
def test_floors_hold_at_ends_and_random_points_of_boxes(d, norm, domain):
    records, gauge, _, found, _ = covered(d, norm, domain)
    assert len(found.floors) > 5
    generator, tight = np.random.default_rng(1), np.inf
    heaviest = np.argsort(found.floors - np.log(found.halves).sum(axis=1))[:60]
    with ctx.workprec(200):
        for box in heaviest:
            for share in (*generator.choice([-1.0, 1.0], (2, d)), generator.uniform(-1.0, 1.0, d)):
                place = [
                    arb(m) + arb(h) * arb(s)
                    for m, h, s in zip(found.middles[box], found.halves[box], share, strict=True)
                ]
                theta = boxes.moved(found.theta, found.factor, place)
                level = gauge(records.evaluate_in_balls(theta, with_hessian=False).gradient)
                assert level >= arb(float(found.floors[box]))
                tight = min(tight, float(level) - float(found.floors[box]))
    # Some floor is nearly reached.
    assert tight < 1.0


@pytest.mark.parametrize(("d", "norm", "domain"), CASES)
def test_every_point_of_the_domain_lies_in_one_box(d, norm, domain):
    _, _, region, found, log_mass = covered(d, norm, domain)
    generator = np.random.default_rng(2)
    # All ends are exact, so that boxes that meet have the same.
    ends = np.concatenate([found.middles - found.halves, found.middles + found.halves])
    unit = found.halves.min() / 2.0
    np.testing.assert_array_equal(ends / unit, np.round(ends / unit))
    for _ in range(300):
        theta = generator.uniform(region.shape.lower, region.shape.upper)
        if region.contains([arb(float(one)) for one in theta]):
            u = np.linalg.solve(found.factor.T, theta - found.theta)
            assert np.sum(np.all(np.abs(u - found.middles) < found.halves, axis=1)) == 1
    total = sum(found.masses(), arb(0))
    assert float(total.log()) == pytest.approx(log_mass, abs=1e-9)


def test_points_are_uniform_in_their_box():
    _, _, _, found, _ = covered(2, None, kng.Box([-1.0, -0.5], [0.4, 0.6]))
    bits, drawn = random.Random(0).getrandbits, []
    with ctx.workprec(128):
        for _ in range(300):
            theta = np.array([float(one) for one in found.draw(3, bits).balls(64)])
            u = np.linalg.solve(found.factor.T, theta - found.theta)
            drawn.append((u - found.middles[3]) / found.halves[3])
    assert np.max(np.abs(drawn)) <= 1.0 + 1e-9
    # Means and squares of 300 uniform numbers, to five standard deviations.
    np.testing.assert_allclose(np.mean(drawn, axis=0), 0.0, atol=5 / np.sqrt(3 * 300))
    np.testing.assert_allclose(np.mean(np.square(drawn), axis=0), 1 / 3, atol=5 * np.sqrt(4 / 45 / 300))


def test_the_third_derivative_is_bounded_by_no_more_than_it_must_be():
    q = np.linspace(0.0, 5.0, 100_001)
    third = 3.0 * q * (1.0 + q * q) ** -2.5
    assert THIRD - 2e-5 < third.max() < THIRD
