"""What certificates say of heights and floors, against 200 binary digits at points of Θ."""

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.draws.shells import matrices
from kngjax.draws.shells.shell_certificate import certify
from kngjax.draws.shells.solutions import estimate
from tests.oracles.shell_problems import LOSSES, moderate, parts, problem


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("skew", [0.0, 0.5])
@pytest.mark.parametrize("d", [1, 3])
def test_heights_and_floors_hold_at_points_of_the_domain(d, skew, loss):
    """log det R^{-2} - log det H(θ) ≤ E and ‖G(θ)‖ ≥ T at random points."""
    mechanism, x, y = problem(400, d, min(100.0, moderate(loss, 60.0)), skew=skew, loss=loss)
    way, records, _ = parts(mechanism, x, y)
    gauge, region = way.noise, way.shape
    generator, tight = np.random.default_rng(2), -np.inf
    with ctx.workprec(200):
        certificate = certify(records, gauge, region, estimate(records) + 0.01)
        assert certificate is not None
        factor = matrices.matrix(certificate.factor)
        for size in np.geomspace(1e-3, 3.0, 16):
            theta = certificate.theta + size * generator.dirichlet(np.ones(d)) * generator.choice([-1, 1], d)
            ball = [arb(float(one)) for one in theta]
            if region.contains(ball) is not True:
                continue
            there = records.evaluate_in_balls(ball)
            level = gauge(there.gradient)
            assert there.hessian is not None
            height = certificate.height(np.array([float(level) * (1 + 1e-12)]))[0]
            ratio = -matrices.log_determinant(matrices.congruent(factor, there.hessian))
            if np.isfinite(height):
                assert ratio <= height
                tight = max(tight, float(ratio) / height)
            away = np.linalg.norm(np.linalg.solve(certificate.factor.T, theta - certificate.theta))
            for radius in certificate.radii:
                assert radius.radius > away * (1 - 1e-9) or level >= certificate.floor(radius)
    # The bound is of use, and not far off for some of them.
    assert tight > 0.05


@pytest.mark.parametrize("loss", LOSSES)
def test_heights_are_nearly_reached_where_the_hessian_changes_most(loss):
    """With one coefficient and one record, log w falls along its tangent as fast as heights say, up to its bend."""
    mechanism, _, _ = problem(400, 1, min(100.0, moderate(loss, 60.0)), loss=loss)
    x, y = np.ones((400, 1)), np.full(400, 1.0 if loss == "logistic" else 0.3)
    way, records, _ = parts(mechanism, x, y)
    gauge, region = way.noise, way.shape
    scale = {"pseudo-Huber": 0.3, "logistic": 1.0, "quantile": 0.2, "Poisson": 1.0}[loss]
    centre = (0.3 if loss in ("pseudo-Huber", "quantile") else 0.0) + (0.8 if loss != "Poisson" else 0.0) * scale
    with ctx.workprec(200):
        certificate = certify(records, gauge, region, np.array([centre]))
        assert certificate is not None
        factor, shares = matrices.matrix(certificate.factor), []
        for size in (0.003, 0.01, 0.03):
            for sign in (-1.0, 1.0):
                there = records.evaluate_in_balls([arb(float(centre + sign * size * scale))])
                assert there.hessian is not None
                height = certificate.height(np.array([float(gauge(there.gradient)) * (1 + 1e-12)]))[0]
                ratio = -matrices.log_determinant(matrices.congruent(factor, there.hessian))
                assert ratio <= height
                shares.append(float(ratio) / height)
    assert max(shares) > 0.0


def test_steep_weights_make_wide_floors_and_no_radius_is_lost_to_collinear_columns():
    """Columns that are nearly one, and one of zeros, which makes no certificate."""
    generator = np.random.default_rng(3)
    mechanism, x, y = problem(800, 3, 60.0)
    x[:, 1] = np.clip(x[:, 0] + 1e-3 * generator.standard_normal(800), -1.0, 1.0)
    way, records, _ = parts(mechanism, x, y)
    with ctx.workprec(128):
        assert certify(records, way.noise, way.shape, np.zeros(3)) is not None
    x[:, 1] = 0.0
    way, records, _ = parts(mechanism, x, y)
    with ctx.workprec(128):
        assert certify(records, way.noise, way.shape, np.zeros(3)) is None


@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2()])
def test_the_spread_is_at_least_that_of_random_points_of_the_ball(norm):
    mechanism, x, y = problem(400, 3, 60.0, norm=norm)
    way, records, _ = parts(mechanism, x, y)
    gauge, region = way.noise, way.shape
    generator = np.random.default_rng(4)
    with ctx.workprec(128):
        certificate = certify(records, gauge, region, np.zeros(3))
        assert certificate is not None
        reached = 0.0
        for z in (*generator.standard_normal((60, 3)), *np.eye(3), *generator.choice([-1.0, 1.0], (8, 3))):
            unit = z / float(gauge([arb(float(one)) for one in z]))
            reached = max(reached, float(np.linalg.norm(certificate.factor @ unit)))
        assert 0.95 * certificate.spread < reached <= certificate.spread
