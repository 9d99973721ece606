"""The inverse of the gradient map: solutions solve, what has no solution is told apart, determinants are Jacobians."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import kngjax as kng
from kngjax.chains.newton import descend, evaluate, log_determinant, solve
from kngjax.owner import nonprivate
from tests.statistical import problems

LOSSES = {
    "squared": kng.SquaredLoss(),
    "pseudo_huber": kng.PseudoHuberLoss(k=0.3),
    "logistic": kng.LogisticLoss(),
    "poisson": kng.PoissonLoss(),
    "smoothed_quantile": kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.25),
    "gaussian_quantile": kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.4, kernel="gaussian"),
}
# ∂ρ/∂η by NumPy and SciPy.
SCORES = {
    "squared": lambda eta, y: eta - y,
    "pseudo_huber": lambda eta, y: (eta - y) / np.sqrt(1.0 + ((y - eta) / 0.3) ** 2),
    "logistic": lambda eta, y: special.expit(eta) - y,
    "poisson": lambda eta, y: np.exp(eta) - y,
    "smoothed_quantile": lambda eta, y: special.expit((eta - y) / 0.25) - 0.3,
    "gaussian_quantile": lambda eta, y: stats.norm.cdf((eta - y) / 0.4) - 0.3,
}
TRUTH = np.array([0.2, 0.5, -0.4])


def records(name, num_records=200):
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, (num_records, 2))
    predictor = TRUTH[0] + x @ TRUTH[1:]
    if name == "logistic":
        return x, (generator.uniform(size=num_records) < special.expit(predictor)).astype(float)
    if name == "poisson":
        return x, generator.poisson(np.exp(predictor)).clip(0, 9).astype(float)
    return x, predictor + generator.normal(size=num_records)


def target_of(name, domain=None, data=None):
    bounds = kng.Bounds(x=(-1.0, 1.0), y={"squared": (-9.0, 9.0), "poisson": (0.0, 9.0)}.get(name))
    mechanism = kng.KNG(LOSSES[name], bounds, domain or kng.Box(-2.0, 2.0), 1.0, "replace")
    return mechanism.target(mechanism.prepare(*(data or records(name))))


def intercept_target(y, domain):
    """Logistic regression on the intercept alone: ∇ℓ(θ) = nσ(θ) - Σy, so everything is known in closed form."""
    mechanism = kng.KNG(kng.LogisticLoss(), kng.Bounds(), domain, 1.0, "replace")
    return mechanism.target(mechanism.prepare(None, y))


def from_the_interior(target, values):
    start = evaluate(target, target.domain.interior_point(target.dimension))
    return jax.jit(jax.vmap(solve, in_axes=(None, None, 0)))(target, start, jnp.asarray(values))


def test_the_smooth_losses_are_those_tested():
    smooth = {name for name in kng.__all__ if name.endswith("Loss") and getattr(kng, name).is_smooth}
    assert {type(loss).__name__ for loss in LOSSES.values()} == smooth


@pytest.mark.default_cases("pseudo_huber")
@pytest.mark.parametrize("name", LOSSES)
def test_solutions_solve_and_are_those_that_were_hidden(name):
    x, y = records(name)
    design = np.column_stack([np.ones(len(y)), x])
    hidden = np.random.default_rng(4).uniform(-2.0, 2.0, (40, 3))
    values = np.stack([SCORES[name](design @ theta, y) @ design for theta in hidden])
    solution = from_the_interior(target_of(name), values)
    assert np.all(solution.found)
    assert not np.any(solution.unsettled)
    assert np.max(solution.num_evaluations) < 30
    found = np.asarray(solution.point.theta)
    reached = np.stack([SCORES[name](design @ theta, y) @ design for theta in found])
    np.testing.assert_allclose(reached, values, atol=1e-5)
    np.testing.assert_allclose(found, hidden, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_the_determinant_is_that_of_the_gradient_map(name):
    target = target_of(name)
    for theta in np.random.default_rng(5).uniform(-1.5, 1.5, (5, 3)):
        jacobian = jax.jacfwd(lambda point: target.loss.gradient(point, target.data))(jnp.asarray(theta))
        sign, expected = np.linalg.slogdet(jacobian)
        assert sign == 1.0
        np.testing.assert_allclose(log_determinant(evaluate(target, theta)), expected, rtol=1e-10)


@pytest.mark.slow
def test_records_in_blocks_add_up():
    """20,001 records are a block and a rest; one by one they give the same."""
    target = target_of("pseudo_huber", data=records("pseudo_huber", 20_001))
    point = evaluate(target, TRUTH)
    x, y = np.asarray(target.data.x), np.asarray(target.data.y)
    np.testing.assert_allclose(point.gradient, SCORES["pseudo_huber"](x @ TRUTH, y) @ x, rtol=1e-9, atol=1e-9)
    curvatures = (1.0 + ((y - x @ TRUTH) / 0.3) ** 2) ** -1.5
    inverse = np.linalg.inv(np.linalg.cholesky((x * curvatures[:, None]).T @ x))
    np.testing.assert_allclose(point.inverse_factor, inverse, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("domain", [kng.Box(-3.0, 3.0), kng.BaseMeasure(dist.Normal(0.0, 3.0))], ids=["box", "normal"])
def test_on_one_coefficient_exactly_the_solvable_values_are_solved(domain):
    y = np.repeat([0.0, 1.0], [12, 18])
    values = np.linspace(-25.0, 20.0, 401)
    expected = special.logit(np.clip((values + 18.0) / 30.0, 0.0, 1.0))
    solution = from_the_interior(intercept_target(y, domain), values[:, None])
    inside = np.abs(expected) <= (3.0 if isinstance(domain, kng.Box) else np.inf)
    solvable = np.isfinite(expected)
    np.testing.assert_array_equal(solution.found, inside & solvable)
    np.testing.assert_allclose(
        np.asarray(solution.point.theta)[inside & solvable, 0], expected[inside & solvable], atol=1e-5
    )
    # On a bounded domain there is a proof that a value has no solution; on the whole line the search just ends.
    unsettled = np.zeros(401, bool) if isinstance(domain, kng.Box) else ~solvable
    np.testing.assert_array_equal(solution.unsettled, unsettled)


@pytest.mark.slow
def test_separable_responses_have_no_estimate_and_this_is_proved():
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    target = target_of("logistic", kng.L2Ball(5.0), (np.tile(x, 2), (x[:, 0] > 0).astype(float)))
    start = evaluate(target, np.zeros(3))
    assert not np.all(np.isfinite(start.inverse_factor)), "two equal columns are no full rank"
    x = np.column_stack([x, np.cos(9.0 * x)])
    target = target_of("logistic", kng.L2Ball(5.0), (x, (x[:, 0] > 0).astype(float)))
    solution = solve(target, evaluate(target, np.zeros(3)), np.zeros(3))
    assert not solution.found
    assert not solution.unsettled


def test_a_wild_response_changes_nothing_but_its_own_score():
    """One response of 1e300: sums of losses have no digits left, the gradients all of them."""
    x, y = records("pseudo_huber")
    y[0] = 1e300
    design = np.column_stack([np.ones(len(y)), x])
    hidden = np.array([0.1, 0.4, -0.5])
    residuals = design[1:] @ hidden - y[1:]
    value = (residuals / np.sqrt(1.0 + (residuals / 0.3) ** 2)) @ design[1:] - 0.3 * design[0]
    # As many values as other tests have, for which a program was compiled.
    solution = from_the_interior(target_of("pseudo_huber", data=(x, y)), np.tile(value, (40, 1)))
    assert np.all(solution.found)
    np.testing.assert_allclose(solution.point.theta[0], hidden, atol=1e-6)


@pytest.mark.slow
def test_steps_that_overflow_are_shortened():
    """Poisson: from a start far below, the full Newton step would reach e^(10^5)."""
    mechanism = kng.KNG(kng.PoissonLoss(), kng.Bounds(y=(0.0, 9.0)), kng.Box(-12.0, 3.0), 1.0, "replace")
    target = mechanism.target(mechanism.prepare(None, np.full(20, 4.0)))
    solution = solve(target, evaluate(target, np.array([-10.0])), np.zeros(1))
    assert solution.found
    np.testing.assert_allclose(solution.point.theta, np.log([4.0]), atol=1e-5)


@pytest.mark.default_cases("quantile-kng", "logistic-exponential")
@pytest.mark.parametrize("mechanism", problems.MECHANISMS)
@pytest.mark.parametrize("loss", problems.LOSSES)
def test_newton_steps_within_a_program_come_near_the_minimiser(loss, mechanism):
    """Nearer than the mechanism's noise: the loss there is that of the minimiser but for a small part of 1/c."""
    built, data = problems.problem(loss, mechanism, 3, num_records=400)
    target, best = built.target(data), nonprivate.minimiser(built.loss, data)
    found = np.asarray(jax.jit(descend)(target))
    excess = float(built.loss.value(found, data) - built.loss.value(best, data))
    assert excess < 1e-3 * (1.0 if loss == "quantile" else 1e-3) * abs(float(built.loss.value(best, data)))
