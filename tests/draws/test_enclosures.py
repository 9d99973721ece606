"""Ten thousand enclosures of what draws look for: each contains what 200 binary digits find, and is as wide as said."""

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.draws.shells.solutions import enclose, refine
from kngjax.draws.shells.solutions import search as newton
from tests.oracles.shell_problems import LOSSES, parts, problem
from tests.oracles.smooth_minima import LOSSES as MINIMA
from tests.oracles.smooth_minima import made, refined

# In all, over the losses.
MANY = 4_000


def lengths(table, vector):
    """√(v'Tv), and √T_jj."""
    return np.sqrt(vector @ table @ vector), np.sqrt(np.diagonal(table))


def check_solutions(loss, number):
    """Of G(θ) = z. |δ_j| ≤ √(H^-1)_jj·|residual|_{H^-1}/(less than 1), with the residual's ball at its farthest."""
    mechanism, x, y = problem(40, 2, 100.0, skew=0.1, loss=loss)
    way, records, _ = parts(mechanism, x, y)
    region = way.shape
    certificate = way.envelope(records).certificate
    assert certificate is not None
    generator, found, shares = np.random.default_rng(1), 0, []
    for z in generator.normal(size=(number, 2)):
        right = [arb(float(one)) for one in z]
        with ctx.workprec(128):
            theta, there, is_refused = newton(records, region, certificate, right)
            if is_refused:
                continue
            solution = enclose(records, certificate, [arb(float(t)) for t in theta], there, right)
        assert solution is not None
        with ctx.workprec(264):
            place, exact, is_refused = refine(records, region, theta, right, 200)
            assert not is_refused
            true = enclose(records, certificate, place, exact, right)
        assert true is not None
        assert all(ball.rad() < 2.0**-150 for ball in true.theta)
        assert all(wide.contains(narrow) for wide, narrow in zip(solution.theta, true.theta, strict=True))
        assert solution.log_ratio.contains(true.log_ratio)
        rests = [float(abs(g - one).upper()) for g, one in zip(there.gradient, right, strict=True)]
        inverse = np.linalg.inv([[float(one.mid()) for one in row] for row in there.hessian.tolist()])
        # Whatever the signs of the residual.
        length = max(lengths(inverse, np.array([rests[0], sign * rests[1]]))[0] for sign in (-1.0, 1.0))
        shares += [
            float(ball.rad()) / (length * side)
            for ball, side in zip(solution.theta, lengths(inverse, np.zeros(2))[1], strict=True)
        ]
        found += 1
    return found, shares


def check_minimisers(name, number):
    """Of J with a linear term, by Newton's step: |H^-1| times the bound of the gradient."""
    objective, shares = made(name, 20, 2), []
    for tilt in np.random.default_rng(2).normal(size=(number, 2)):
        with ctx.workprec(128):
            places = CertifiedMinimizer(objective).places([arb(float(one)) for one in tilt])
        if places is None:
            continue
        with ctx.workprec(300):
            true = refined(objective, [arb(float(one)) for one in tilt])
            assert all(ball.contains(one) for ball, one in zip(places, true, strict=True))
        theta = np.array([float(one) for one in places])
        bound = objective.gradient(theta)[1]
        hessian = objective.slopes(theta, np.zeros(2))[0] + float(objective.ridge) * np.eye(2)
        shares += [
            float(ball.rad()) / size for ball, size in zip(places, np.abs(np.linalg.inv(hessian)) @ bound, strict=True)
        ]
    return shares


@pytest.mark.parametrize("number", [6, pytest.param(MANY // len(LOSSES), marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES)
def test_solutions_are_within_their_balls(loss, number):
    found, shares = check_solutions(loss, number)
    assert found > number / 2
    assert max(shares) < 4.0
    assert 0.9 < np.median(shares) < 1.1


@pytest.mark.parametrize("number", [6, pytest.param(MANY // len(MINIMA), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MINIMA)
def test_minimisers_are_within_their_boxes(name, number):
    shares = check_minimisers(name, number)
    assert len(shares) > number
    assert min(shares) > 0.99
    assert max(shares) < 1.01
