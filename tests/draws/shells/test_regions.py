"""Rows move within Θ at most as far as is stated, from a point beside any side of it, and so certificates hold."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.draws.shells import matrices
from kngjax.draws.shells.sets_in_balls import farthest
from kngjax.draws.shells.shell_certificate import certify
from tests.oracles.shell_problems import moderate, parts, problem

ROWS = np.array([[1.0, 1.0], [0.9, -0.3], [-0.2, 0.7], [0.0, 0.1], [-1.0, 0.0]])
# Beside each side, in the middle, and at ends.
PLACES = [(0.9, 0.9), (-0.9, 0.8), (0.3, -0.65), (0.0, 0.0), (1.1, -0.7)]


def exact(row, point):
    return sum(Fraction(float(x)) * Fraction(float(t)) for x, t in zip(row, point, strict=True))


@pytest.mark.parametrize("theta", PLACES)
def test_a_row_moves_as_far_as_to_the_farthest_corner_of_a_box(theta):
    lower, upper = [-1.3, -0.7], [1.1, 0.95]
    found = farthest(kng.Box(lower, upper).exact_shape(2), ROWS, np.array(theta))
    for row, far in zip(ROWS, found, strict=True):
        corners = itertools.product(*zip(lower, upper, strict=True))
        reached = max(abs(exact(row, corner) - exact(row, theta)) for corner in corners)
        # The farthest corner of one coordinate need not be that of another: of both together where signs agree.
        alone = sum(
            abs(Fraction(float(x))) * max(abs(Fraction(end) - Fraction(t)) for end in (low, high))
            for x, t, low, high in zip(row, theta, lower, upper, strict=True)
        )
        assert reached <= Fraction(float(far))
        assert far <= float(alone) * (1.0 + 1e-6) + 1e-9


@pytest.mark.parametrize("theta", [(0.25, -0.4), (-0.6, 0.05), (0.0, 0.0), (0.0, -0.7)])
@pytest.mark.parametrize("power", [1, 2])
def test_a_row_moves_as_far_as_to_the_farthest_point_of_a_ball(power, theta):
    domain = kng.L1Ball(0.7) if power == 1 else kng.L2Ball(0.7)
    found = farthest(domain.exact_shape(2), ROWS, np.array(theta))
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points *= 0.7 / np.linalg.norm(points, power, axis=1, keepdims=True)
    reached = np.abs((points - theta) @ ROWS.T).max(axis=0)
    assert np.all(found >= reached)
    np.testing.assert_allclose(found, reached, rtol=1e-6)


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("loss", ["pseudo-Huber", "logistic"])
def test_heights_hold_on_all_of_a_domain_beside_one_side_of_which_the_minimum_lies(loss, side):
    """Far from θ₀ the Hessian of these losses is least: a cap on how far rows move must be that of the far side."""
    theta = np.array([0.4, 0.3])
    near, far = 0.05, 2.9
    lower, upper = (theta - far, theta + near) if side == "upper" else (theta - near, theta + far)
    mechanism, x, y = problem(400, 2, min(100.0, moderate(loss, 60.0)), domain=kng.Box(lower, upper), loss=loss)
    way, records, _ = parts(mechanism, x, y)
    gauge, region = way.noise, way.shape
    tried = 0
    with ctx.workprec(200):
        certificate = certify(records, gauge, region, theta)
        assert certificate is not None
        factor = matrices.matrix(certificate.factor)
        for share in np.linspace(0.05, 1.0, 12):
            for corner in itertools.product(*zip(lower, upper, strict=True)):
                ball = [arb(float(one)) for one in theta + share * (corner - theta)]
                if region.contains(ball) is False:
                    continue
                there = records.evaluate_in_balls(ball)
                level = gauge(there.gradient)
                height = certificate.height(np.array([float(level) * (1 + 1e-12)]))[0]
                if np.isfinite(height):
                    tried += 1
                    assert -matrices.log_determinant(matrices.congruent(factor, there.hessian)) <= height
                away = np.linalg.norm(np.linalg.solve(certificate.factor.T, np.array(ball, float) - theta))
                for radius in certificate.radii:
                    assert radius.radius > away * (1 - 1e-9) or level >= certificate.floor(radius)
    assert tried > 5
