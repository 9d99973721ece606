"""The quadratic that stands in for the gradient: its derivatives, when it is taken, and the law of what it proposes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.expansion import Expansion, expansion
from kngjax.chains.newton import gradient, log_determinant, solve
from kngjax.data.schema import Schema
from kngjax.owner import nonprivate
from kngjax.releases.certificate import Certificate
from kngjax.releases.chains import advance, start_chains
from kngjax.releases.float64_draws import ChainDraw
from tests.oracles.goodness_of_fit import assert_mean_within, assert_two_samples_agree
from tests.statistical.problems import Quadrature, problem

SMOOTH = ["pseudo_huber", "logistic", "poisson", "smoothed_quantile", "gaussian_quantile"]


def expanded(loss, dimension=3, num_records=1500, **settings):
    """A mechanism, its data, the target, the estimate and the expansion there."""
    domain = kng.Box(-8.0, 8.0) if loss == "poisson" else None
    built, data = problem(loss, "kng", dimension, domain=domain, num_records=num_records, **settings)
    target, centre = built.target(data), nonprivate.minimiser(built.loss, data)
    return built, data, target, centre, expansion(target, centre)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    ["pseudo_huber", "poisson", "logistic", "smoothed_quantile"],
)
def test_it_is_taylors_polynomial_of_the_gradient(loss):
    _, data, target, centre, found = expanded(loss, num_records=1500 if loss != "poisson" else 20_000)
    assert found is not None

    def slope(theta):
        return target.loss.gradient(theta, data)

    centre = jnp.asarray(centre)
    np.testing.assert_allclose(found.gradient, slope(centre), atol=1e-7)
    np.testing.assert_allclose(found.hessian, jax.jacfwd(slope)(centre), rtol=1e-9)
    third = jax.jacfwd(jax.jacfwd(slope))(centre)
    np.testing.assert_allclose(found.third, third, rtol=1e-8, atol=1e-8 * np.max(np.abs(third)))
    # What is left falls with the cube of the step, and the determinant is that of the polynomial's own derivative.
    step = jnp.array([0.05, -0.08, 0.06])
    whole, half = (
        np.asarray(gradient(target, centre + s * step) - found.point(centre + s * step).gradient) for s in (1.0, 0.5)
    )
    assert 5.0 < np.linalg.norm(whole) / np.linalg.norm(half) < 12.0
    jacobian = jax.jacfwd(lambda theta: found.point(theta).gradient)(centre + step)
    np.testing.assert_allclose(log_determinant(found.point(centre + step)), np.linalg.slogdet(jacobian)[1], rtol=1e-10)


@pytest.mark.slow
def test_beyond_where_it_is_convex_there_is_no_point():
    """G(δ) = δ - δ²/2 rises to δ = 1: values above ½ have no solution, and beyond 1 none is taken."""
    _, _, target, _, _ = expanded("pseudo_huber", 1)
    found = Expansion(jnp.zeros(1), jnp.zeros(1), jnp.eye(1), -jnp.ones((1, 1, 1)))
    assert np.isfinite(found.point(jnp.array([0.9])).inverse_factor)
    assert np.isnan(log_determinant(found.point(jnp.array([1.1]))))
    for value, root in ((0.4, 1.0 - np.sqrt(0.2)), (-1.5, -1.0), (0.6, None)):
        solution = solve(target, found.point(jnp.zeros(1)), jnp.array([value]), found.point)
        assert bool(solution.found) == (root is not None)
        if root is not None:
            np.testing.assert_allclose(solution.point.theta[0], root, atol=1e-6)


@pytest.mark.slow
def test_it_is_taken_where_it_is_near_enough_and_the_estimate_lies_in_the_domain():
    assert expanded("pseudo_huber", 2, 3000)[-1] is not None
    assert expanded("pseudo_huber", 2, 30)[-1] is None
    assert expanded("squared", 2)[-1] is None
    built, data = problem("pseudo_huber", "kng", 2, num_records=3000, domain=kng.L2Ball(0.5))
    assert expansion(built.target(data), nonprivate.minimiser(built.loss, data)) is None
    assert kng.chains.GradientSpace().gather(*expanded("pseudo_huber", 2, 30)[2:4]).expansion is None
    assert "expansion" not in Certificate.of(ChainDraw(built, kng.chains.GradientSpace(), ""), Schema(2)).sampler


def with_expansion(built, data, mixture=0.05):
    target, centre = built.target(data), nonprivate.minimiser(built.loss, data)
    sampler = kng.chains.GradientSpace(mixture=mixture).gather(target, centre)
    assert sampler.expansion is not None
    return target, centre, sampler


def test_the_proposal_density_integrates_to_one_and_is_that_of_the_proposals():
    """log q = log f - log weight, by quadrature over Θ, and the weighted mean of proposals."""
    built, data = problem("logistic", "kng", 1, num_records=400)
    target, centre, sampler = with_expansion(built, data, 0.3)
    # The sampler holds arrays, so it is an argument.
    proposal = jax.jit(type(sampler).proposal)(sampler, target, centre)
    # By Simpson's rule on either side of the estimate, where the density has its edge.
    nodes = np.concatenate([np.linspace(-2.0, centre[0], 2001), np.linspace(centre[0], 2.5, 2001)[1:]])
    weigh = jax.jit(lambda points: jax.lax.map(lambda p: sampler.weigh(target, proposal, p), points, batch_size=1000))
    weighted = weigh(jnp.asarray(nodes)[:, None])
    heights, edges = np.exp(np.asarray(weighted.log_density - weighted.log_weight)), nodes[::2]
    masses = (heights[:-2:2] + 4.0 * heights[1::2] + heights[2::2]) * np.diff(edges) / 6.0
    np.testing.assert_allclose(masses.sum(), 1.0, atol=1e-5)
    np.testing.assert_allclose(
        weighted.log_density[:50], jax.jit(jax.vmap(target.log_density))(nodes[:50, None]), rtol=1e-9
    )
    candidates = jax.jit(type(sampler).candidates, static_argnums=4)(
        sampler, target, proposal, kng.research_key(1), 2000
    )
    uniform = np.interp(np.asarray(candidates.theta)[:, 0], edges, np.concatenate([[0.0], np.cumsum(masses)]))
    assert_mean_within(np.column_stack([uniform, (uniform - 0.5) ** 2]), [0.5, 1.0 / 12.0])


@pytest.mark.slow
@pytest.mark.parametrize("loss", SMOOTH)
def test_draws_follow_the_density_with_and_without(loss):
    """Ends of many chains against quadrature: at ε·n where the quadratic is refused a few times in a hundred.

    Without it for the losses of few records alone: it takes long, and quadrature says elsewhere what it gives.
    """
    num_records, num_chains = (20_000, 200) if loss == "poisson" else (600, 500)
    domain = kng.Box(-2.0, 2.5)
    built, data = problem(loss, "kng", 2, domain=domain, num_records=num_records)
    _, centre, sampler = with_expansion(built, data)
    law, ends = Quadrature(built, data, -2.0, 2.5, 400), []
    for one in (sampler, dataclasses.replace(sampler, expansion=None))[: 1 if loss == "poisson" else 2]:
        states = start_chains(built, data, one, centre, kng.research_key(2), num_chains)
        _, thetas, _ = advance(built, data, one, states, kng.research_key(3), 1, 1, 40)
        ends.append(law.uniforms(np.asarray(thetas[0])))
    for quick in ends[0]:
        assert_mean_within(np.column_stack([quick, (quick - 0.5) ** 2]), [0.5, 1.0 / 12.0])
    for slowly in ends[1:]:
        for quick, slow in zip(ends[0], slowly, strict=True):
            assert_two_samples_agree(quick, slow)
