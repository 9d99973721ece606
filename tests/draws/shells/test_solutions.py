"""Where gradients have given values: balls of float64 contain those of many digits, and what is refused has none."""

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.draws.shells.solutions import enclose, estimate, refine
from kngjax.draws.shells.solutions import search as newton
from tests.oracles.shell_problems import LOSSES, gradients, parts, problem


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_solutions_are_within_balls_of_any_number_of_digits(d, loss):
    """Those of float64 contain those of 200 and of 400 binary digits, and the determinants there."""
    mechanism, x, y = problem(200, d, 100.0, skew=0.1, loss=loss)
    way, records, _ = parts(mechanism, x, y)
    region = way.shape
    generator = np.random.default_rng(d)
    certificate = way.envelope(records).certificate
    assert certificate is not None
    for _ in range(2):
        z = [arb(float(one)) for one in generator.normal(size=d)]
        with ctx.workprec(128):
            theta, evaluation, is_refused = newton(records, region, certificate, z)
            assert not is_refused
            solutions = [enclose(records, certificate, [arb(float(t)) for t in theta], evaluation, z)]
        for digits in (128, 400):
            with ctx.workprec(digits + 64):
                place, there, is_refused = refine(records, region, theta, z, digits)
                assert not is_refused
                solutions.append(enclose(records, certificate, place, there, z))
        first, *others = solutions
        assert first is not None
        assert all(ball.rad() < 2.0**-36 for ball in first.theta)
        assert first.log_ratio.rad() < 1e-9
        for digits, other in zip((128, 400), others, strict=True):
            assert other is not None
            assert all(wide.contains(narrow) for wide, narrow in zip(first.theta, other.theta, strict=True))
            assert first.log_ratio.contains(other.log_ratio)
            assert all(ball.rad() < 2.0 ** (30 - digits) for ball in other.theta)


@pytest.mark.parametrize("loss", LOSSES)
def test_points_that_are_off_are_enclosed_with_the_solution(loss):
    """From a θ some way off the ball is so wide that it holds the solution, and not wider than some times that."""
    mechanism, x, y = problem(500, 2, 100.0, loss=loss)
    way, records, _ = parts(mechanism, x, y)
    region = way.shape
    certificate = way.envelope(records).certificate
    assert certificate is not None
    z = [arb(0.3), arb(-0.2)]
    with ctx.workprec(192):
        theta, _, _ = newton(records, region, certificate, z)
        place, there, _ = refine(records, region, theta, z, 128)
        exact = enclose(records, certificate, place, there, z)
        assert exact is not None
        # In the metric: as far as predictors' weights may change by a tenth or so.
        size = 0.05 / records.score.steepness / certificate.longest
        for step in size * np.random.default_rng(1).choice([-1.0, 1.0], (6, 2)) @ certificate.factor:
            near = [arb(float(t)) for t in theta + step]
            found = enclose(records, certificate, near, records.evaluate_in_balls(near), z)
            assert found is not None
            assert all(wide.contains(narrow) for wide, narrow in zip(found.theta, exact.theta, strict=True))
            assert found.log_ratio.contains(exact.log_ratio)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_equation_that_has_no_solution_is_refused_with_proof(loss):
    """Most gradients are none of a θ here; and few equations are solved in a small domain."""
    mechanism, x, y = problem(300, 2, 50.0, domain=kng.L1Ball(0.51), loss=loss)
    way, records, _ = parts(mechanism, x, y)
    region = way.shape
    certificate = way.envelope(records).certificate
    assert certificate is not None
    for z in ([1e3, 0.0], [200.0, 190.0], [1e9, -1e9]):
        right = [arb(one) for one in z]
        with ctx.workprec(128), np.errstate(all="ignore"):
            theta, evaluation, is_refused = newton(records, region, certificate, right)
            solution = None
            if not is_refused and evaluation.hessian is not None:
                solution = enclose(records, certificate, [arb(float(t)) for t in theta], evaluation, right)
            # Where float64 overflows on the way it is left to more digits.
            assert is_refused or solution is None or region.contains(solution.theta) is False
            assert is_refused or solution is not None or loss == "Poisson"
        with ctx.workprec(192):
            place, there, is_refused = refine(records, region, certificate.theta, right, 128)
            solution = None if is_refused else enclose(records, certificate, place, there, right)
            assert is_refused or (solution is not None and region.contains(solution.theta) is False)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("far", [0.0, 40.0])
def test_estimates_are_where_gradients_are_nearly_0(loss, far):
    """From responses that are many bandwidths away, too."""
    mechanism, x, y = problem(20_000, 2, 50.0, loss=loss)
    if loss in ("pseudo-Huber", "quantile"):
        x[:, 0], y = 1.0, y + far
        mechanism = kng.KNG(
            LOSSES[loss], kng.Bounds(x=(-1.0, 1.0), columns=2, intercept=False), kng.L1Ball(3.0), 9.0, "replace"
        )
    _, records, _ = parts(mechanism, x, y)
    found = gradients(loss, x, y, estimate(records)[None])[0]
    assert np.max(np.abs(found)) < 1.0
