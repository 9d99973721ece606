"""The walk: many chains at once do what one chain does, and both what a plain loop over moves does."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.data.records import QuadraticSummary
from kngjax.owner import nonprivate
from kngjax.releases.chains import advance, start_chains
from tests.statistical.problems import problem

NUM_SWEEPS, NUM_CHAINS = 4, 3


def chains(sampler, built, data, num_chains=NUM_CHAINS, num_sweeps=NUM_SWEEPS):
    """The target, states of chains and the randomness of their sweeps."""
    target, centre = built.target(data), nonprivate.minimiser(built.loss, data)
    states = start_chains(built, data, sampler, centre, kng.research_key(0), num_chains)
    return target, states, sampler.noises(kng.research_key(1), target, states, num_sweeps)


def by_loop(log_density, data, theta, steps, uniforms):
    """Moves one after the other, each with a log-density from scratch: θ, log f and the share accepted of a sweep."""
    theta, accepted, here = np.array(theta), 0, float(log_density(theta, data))
    for coordinate, (step, uniform) in enumerate(zip(steps, uniforms, strict=True)):
        moved = theta.copy()
        moved[coordinate] += step
        there = float(log_density(moved, data))
        if there > -np.inf and here - there < -np.log1p(-uniform):
            theta, here, accepted = moved, there, accepted + 1
    return theta, here, accepted / theta.size


CASES = {
    "sufficient statistic": ("squared", "kng", kng.L1Ball(2.0)),
    "its loss": ("squared", "exponential", kng.Box(-2.0, 2.5)),
    "residuals": ("quantile", "kng", kng.BaseMeasure(dist.Normal(0.0, 2.0))),
    "their loss": ("pseudo_huber", "exponential", kng.L2Ball(2.0)),
}


QUICK, LONG = ("sufficient statistic", "their loss"), ("its loss", "residuals")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("case", "tuning"),
    [
        *((case, "limit_law") for case in QUICK),
        ("residuals", "public"),
        *((case, "limit_law") for case in LONG),
    ],
)
def test_sweeps_of_many_chains_are_those_of_a_loop_over_moves(case, tuning):
    loss, mechanism, domain = CASES[case]
    built, data = problem(loss, mechanism, 3, domain=domain)
    sampler = kng.chains.CoordinateWalk(tuning=tuning, smallest_scale=1e-2)
    target, states, noises = chains(sampler, built, data)
    together, apart = jax.jit(sampler.steps), jax.jit(jax.vmap(sampler.step, (None, 0, -1)))
    log_density = jax.jit(built.log_density)
    shares = []
    for sweep in range(NUM_SWEEPS):
        noise = jax.tree.map(lambda part, sweep=sweep: part[sweep], noises)
        before, (states, info) = states, together(target, states, noise)
        np.testing.assert_allclose(apart(target, before, noise)[0].theta, states.theta, rtol=1e-12)
        for chain in range(NUM_CHAINS):
            own = jax.tree.map(lambda part, chain=chain: part[:, chain], noise)
            expected = by_loop(log_density, data, before.theta[chain], own.steps, own.uniforms)
            np.testing.assert_allclose(states.theta[chain], expected[0], rtol=1e-12)
            np.testing.assert_allclose(info.log_density[chain], expected[1], rtol=1e-9)
            np.testing.assert_allclose(info.acceptance[chain], expected[2])
            shares.append(expected[2])
    assert 0.0 < np.mean(shares) < 1.0


@pytest.mark.slow
def test_noise_has_its_scales():
    """Normal steps whose log scales are uniform over the range, and uniform numbers, of all chains."""
    built, data = problem("squared", "kng", 3)
    sampler = kng.chains.CoordinateWalk(tuning="public", smallest_scale=1e-3)
    _, states, noises = chains(sampler, built, data, num_chains=20, num_sweeps=1000)
    assert noises.steps.shape == noises.uniforms.shape == (1000, 3, 20)
    # E log|σN| = mean log scale - (γ + log 2)/2; its variance is that of log|N|, π²/8, and of the uniform log scale.
    logs = np.log(np.abs(np.asarray(noises.steps)))
    span = np.asarray(states.log_largest - states.log_smallest)[0]
    centre = np.asarray(states.log_smallest)[0] + 0.5 * span - 0.5 * (np.euler_gamma + np.log(2.0))
    error = np.sqrt((np.pi**2 / 8.0 + span**2 / 12.0) / 20_000)
    assert np.all(np.abs(logs.mean(axis=(0, 2)) - centre) < 6.0 * error)
    assert abs(np.asarray(noises.uniforms).mean() - 0.5) < 6.0 / np.sqrt(12.0 * 60_000)
    fixed = chains(kng.chains.CoordinateWalk(), built, data, num_chains=20, num_sweeps=1000)
    scaled = np.asarray(fixed[2].steps) / np.exp(np.asarray(fixed[1].log_smallest)[0])[None, :, None]
    assert np.all(np.abs(scaled.std(axis=(0, 2)) - 1.0) < 6.0 / np.sqrt(40_000))


def large_problem(num_records=1e7, dimension=12, correlation=0.9):
    """Statistics of ten million records with correlated features: X'Xθ - X'y cancels seven digits."""
    covariance = correlation * np.ones((dimension, dimension)) + (1.0 - correlation) * np.eye(dimension)
    covariance[0, 1:] = covariance[1:, 0] = 0.0
    gram = num_records * covariance / 3.0
    estimate = np.linspace(-0.1, 0.1, dimension)
    built = kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0), 1.0, "replace")
    return built, QuadraticSummary(np.asarray(num_records), gram, gram @ estimate, np.asarray(num_records))


@pytest.mark.slow
def test_single_precision_moves_as_double_does_at_ten_million_records():
    built, data = large_problem()
    target, states, noises = chains(kng.chains.CoordinateWalk(precision="float32"), built, data, 50, 1)
    noise = jax.tree.map(lambda part: part[0], noises)
    assert noise.steps.dtype == noise.uniforms.dtype == jnp.float32
    single, info = jax.jit(kng.chains.CoordinateWalk(precision="float32").steps)(target, states, noise)
    wide = jax.tree.map(lambda part: part.astype(float), noise)
    double, expected = jax.jit(kng.chains.CoordinateWalk().steps)(target, states, wide)
    assert single.theta.dtype == jnp.float64
    scale = np.exp(np.asarray(states.log_smallest))
    same = np.all(np.abs(single.theta - double.theta) < 1e-5 * scale, axis=1)
    # An error of 1e-4 in log f turns one decision in ten thousand; 600 are made.
    assert same.mean() > 0.95
    assert np.max(np.abs(info.log_density - expected.log_density)[same]) < 1e-4
    assert 0.2 < info.acceptance.mean() < 0.95
    # Without centring, log f itself is off by more than any of that.
    lost = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), target)
    naive = jax.vmap(lost.log_density)(double.theta.astype(jnp.float32))
    assert np.median(np.abs(naive - expected.log_density)) > 1e-3


def test_single_precision_is_refused_where_it_has_no_place():
    sampler = kng.chains.CoordinateWalk(precision="float32")
    with pytest.raises(ValueError, match="releases are computed in float64"):
        sampler.for_release()
    robust, records = problem("pseudo_huber", "kng", 2)
    with pytest.raises(ValueError, match="PseudoHuberLoss has none"):
        sampler.check(robust.target(records))
    built, _ = problem("squared", "kng", 2)
    x, y = np.linspace(-1.0, 1.0, 20)[:, None], np.linspace(-1.0, 1.0, 20)
    with pytest.raises(ValueError, match="releases are computed in float64"):
        kng.release(built, x, y, sampler=sampler)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_block_of_sweeps_keeps_every_chain_in_the_domain_and_moving(precision):
    built, data = problem("squared", "kng", 3, domain=kng.L1Ball(1.2))
    sampler = kng.chains.CoordinateWalk(precision=precision)
    states = chains(sampler, built, data)[1]
    states, thetas, info = advance(built, data, sampler, states, kng.research_key(3), 1, 40, 2)
    assert thetas.shape == (40, NUM_CHAINS, 3)
    assert np.max(np.abs(thetas).sum(axis=-1)) <= 1.2 * (1.0 + (1e-6 if precision == "float32" else 0.0))
    assert np.all(np.asarray(thetas).std(axis=0) > 0.0)
    assert info.log_density.shape == info.acceptance.shape == (40, NUM_CHAINS)
    np.testing.assert_array_equal(thetas[-1], states.theta)
