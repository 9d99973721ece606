"""The active rows: the same density near the estimate, the same law by a chain, and nothing of them published."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.admission import Facts
from kngjax.owner import nonprivate
from kngjax.releases.routes.sampled import SampledRoute
from kngjax.samplers.chains.active_rows import active_rows
from tests.oracles.goodness_of_fit import assert_two_samples_agree

LOSS = kng.QuantileLoss(0.3)


def problem(dimension, n, kind="plain", norm=None, epsilon=1.0):
    random = np.random.default_rng(7)
    x = random.uniform(-1.0, 1.0, (n, dimension - 1))
    y = x.sum(axis=1) + random.standard_normal(n)
    if kind == "tied":
        x, y = np.round(4.0 * x) / 4.0, np.round(4.0 * y) / 4.0
    if kind == "wild":
        y[:3] = 1e300, -1e300, 1e12
    built = kng.KNG(
        LOSS, kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1), kng.Box(-4.0, 4.0), epsilon, "replace", norm
    )
    return built, built.prepare(x, y)


def estimate(built, data):
    return nonprivate.centre(built.loss, data, (-12.0, 12.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "norm"),
    [("plain", None), ("tied", kng.L2()), ("wild", kng.L1()), ("plain", kng.Ellipsoid(np.eye(3) + 0.5))],
    ids=["plain", "tied", "wild", "ellipsoid"],
)
def test_the_density_near_the_estimate_needs_the_active_rows_alone(kind, norm):
    built, data = problem(3, 20_000, kind, norm)
    target, centre = built.target(data), estimate(built, data)
    active = active_rows(target, centre, 1.25)
    assert active is not None
    assert active.y.size < data.y.size / 4
    noise = kng.k_norm_noise(target.norm, jax.random.key(0), target.rate / 1.25, (300,), 3)
    theta = centre + np.linalg.solve(active.law.factor @ active.law.factor.T, np.asarray(noise).T).T
    # To the region's edge, where a row that is missing would be seen first.
    gauges = np.asarray(jax.vmap(target.norm)(noise))
    edge = centre + (theta - centre) * (0.999999 * float(active.reach) / gauges)[:, None]
    for points in (theta, edge):
        inside = np.asarray(jax.vmap(lambda point: active.contains(target, point))(points))
        assert inside.mean() > 0.95
        here = jax.jit(jax.vmap(lambda point: active.log_density(target, point)))(points[inside])
        there = jax.jit(jax.vmap(target.log_density))(points[inside])
        np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-10)


def test_nothing_is_gathered_where_nothing_is_gained():
    few, data = problem(3, 60)
    assert active_rows(few.target(data), estimate(few, data), 1.25) is None
    smooth = dataclasses.replace(few, loss=kng.SmoothedQuantileLoss(0.3, 0.1))
    assert active_rows(smooth.target(data), np.zeros(3), 1.25) is None


@pytest.mark.slow
def test_candidates_weigh_the_same_with_and_without_the_active_rows():
    built, data = problem(2, 4000)
    target, centre = built.target(data), estimate(built, data)
    plain = kng.IndependenceMH(mixture=0.2)
    gathered = plain.gather(target, centre)
    assert gathered.active is not None

    @jax.jit
    def candidates(sampler, target, key):
        return sampler.candidates(target, sampler.proposal(target, centre), key, 200)

    slow, fast = (candidates(sampler, target, kng.research_key(1)) for sampler in (plain, gathered))
    np.testing.assert_array_equal(slow.theta, fast.theta)
    inside = np.asarray(jax.vmap(lambda theta: gathered.active.contains(target, theta))(fast.theta))
    np.testing.assert_allclose(fast.log_weight[inside], slow.log_weight[inside], rtol=1e-12, atol=1e-10)
    # Beyond the region a draw from ν weighs f/(m·ν), and others are barred.
    beyond, from_base = np.asarray(fast.log_weight)[~inside], np.asarray(fast.log_density)[~inside]
    base = np.log(0.2) + float(target.domain.log_density(centre))
    np.testing.assert_allclose(beyond[np.isfinite(beyond)], (from_base - base)[np.isfinite(beyond)], rtol=1e-9)
    assert 10 < np.sum(~inside) < 100
    # A start there has the weight that it has without the active rows, or a chain would never leave it.
    far, law = fast.theta[~inside][0], plain.proposal(target, centre)
    there = gathered.weigh_start(target, gathered.proposal(target, centre), far).log_weight
    np.testing.assert_allclose(there, plain.weigh(target, law, far).log_weight, rtol=1e-9)


def test_a_certificate_tells_nothing_of_the_rows():
    built, data = problem(3, 3000)
    gathered = kng.IndependenceMH().gather(built.target(data), estimate(built, data))
    assert gathered.active is not None
    one, other = (SampledRoute(built, Facts(3), each, "").certify() for each in (gathered, kng.IndependenceMH()))
    assert one == other
    assert "active" not in one.sampler


@pytest.mark.slow
def test_a_release_tells_nothing_of_the_rows():
    built, data = problem(2, 3000)
    released = kng.release(built, data.x[:, 1:], data.y, sampler=kng.IndependenceMH(num_sweeps=20))
    assert "active" not in released.certificate.sampler
    assert len(json.dumps(released.certificate.to_dict())) < 20_000


@pytest.mark.slow
@pytest.mark.runs_long
def test_exact_draws_independence_and_line_draws_agree():
    dimension = 3
    built, data = problem(dimension, 2000)
    exact = kng.sample(built, data, key=kng.research_key(0), sampler=kng.Exact(), num_draws=3000, num_chains=1)
    chains = {
        "independence": (kng.IndependenceMH(), {"num_draws": 2000, "num_chains": 8, "thinning": 20}),
        "lines": (kng.LineGibbs(), {"num_draws": 750, "num_chains": 8, "thinning": 4}),
    }
    for seed, (sampler, settings) in enumerate(chains.values(), start=1):
        draws = kng.sample(built, data, key=kng.research_key(seed), sampler=sampler, **settings)
        assert draws.rhat().max() < 1.02
        spacing = int(np.ceil(draws.theta.shape[0] * draws.theta.shape[1] / (draws.ess().min() / 2.0)))
        theta = draws.theta[:, ::spacing].reshape(-1, dimension)
        assert len(theta) > 500
        for coordinate in range(dimension):
            assert_two_samples_agree(exact.theta[0, :, coordinate], theta[:, coordinate])
        sizes = [np.abs(part - part.mean(axis=0)).max(axis=1) for part in (exact.theta[0], theta)]
        assert_two_samples_agree(*sizes)
