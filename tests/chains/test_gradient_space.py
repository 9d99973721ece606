"""Proposals in the space of gradients: what a chain reports of itself, what is barred, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.gradient_space import GradientSpaceNoise, GradientSpaceState
from kngjax.chains.target import Target
from kngjax.data.schema import Schema
from kngjax.owner import nonprivate
from kngjax.releases.certificate import Certificate
from kngjax.releases.float64_draws import ChainDraw
from tests.statistical.problems import problem

SAMPLER = kng.chains.GradientSpace()
# With the sampler as an argument, so that one program serves all tests of a density.
INIT = jax.jit(lambda sampler, target, centre, key: sampler.start(target, centre, key))
NOISE = jax.jit(lambda sampler, key, target, state, number: sampler.noise(key, target, state, number), static_argnums=4)


def started(built, data):
    target = built.target(data)
    return target, INIT(SAMPLER, target, nonprivate.minimiser(built.loss, data), kng.research_key(0))


def noise_of(target, state, seed, num_sweeps):
    return NOISE(SAMPLER, kng.research_key(seed), target, state, num_sweeps)


@pytest.mark.takes(4.0, "compiles a chain's start, its proposals and a step")
def test_a_step_goes_to_the_candidate_or_stays_and_says_so():
    built, data = problem("logistic", "kng", 2)
    target, state = started(built, data)
    noise, step = noise_of(target, state, 2, 100), jax.jit(SAMPLER.step)
    weigh, log_density = jax.jit(SAMPLER.weigh), jax.jit(Target.log_density)
    visited, accepted = [], []
    for number in range(20):
        before, one = state, jax.tree.map(lambda part, number=number: part[number], noise)
        state, info = step(target, state, one)
        candidate = one.candidates
        expected = before.current.log_weight - candidate.log_weight < one.thresholds
        assert info.acceptance == expected
        np.testing.assert_array_equal(
            SAMPLER.position(target, state), candidate.theta if expected else before.current.theta
        )
        again = weigh(target, state.proposal, SAMPLER.position(target, state))
        np.testing.assert_allclose(state.current.log_weight, again.log_weight, rtol=1e-9)
        np.testing.assert_allclose(info.log_density, again.log_density, rtol=1e-9)
        np.testing.assert_allclose(info.log_density, log_density(target, state.current.theta), rtol=1e-9)
        visited.append(np.asarray(state.current.theta))
        accepted.append(bool(expected))
    assert 0 < sum(accepted) <= 20
    assert len(np.unique(visited, axis=0)) in (sum(accepted), sum(accepted) + 1)


@pytest.mark.slow
def test_what_may_not_be_visited_is_left_at_once_and_never_entered():
    built, data = problem("logistic", "kng", 2)
    target, state = started(built, data)
    barred = state.current._replace(log_weight=jnp.asarray(-jnp.inf))
    for here, there, expected in (
        (barred, state.current, 1.0),
        (state.current, barred, 0.0),
        (barred, barred, 0.0),
        (state.current, state.current, 1.0),
    ):
        noise = GradientSpaceNoise(there, jnp.asarray(1e-3))
        assert SAMPLER.step(target, GradientSpaceState(here, state.proposal), noise)[1].acceptance == expected


@pytest.mark.slow
def test_proposals_outside_the_domain_are_barred():
    built, data = problem("pseudo_huber", "kng", 2, domain=kng.L2Ball(0.9))
    target, state = started(built, data)
    candidates = noise_of(target, state, 4, 400).candidates
    inside = np.asarray(jax.vmap(built.domain.contains)(candidates.theta))
    assert np.all(np.isneginf(candidates.log_weight[~inside]))
    allowed = np.isfinite(candidates.log_weight)
    assert 0.02 < allowed.mean() < 0.98
    assert np.all(inside[allowed])


@pytest.mark.parametrize(
    ("loss", "mechanism", "message"),
    [
        (
            "quantile",
            "kng",
            r"declares is_smooth.* and QuantileLoss does not.*ask for sampler=kngjax\.chains\.LineGibbs",
        ),
        ("pseudo_huber", "exponential", r"exponential mechanism.*ask for sampler=kngjax\.chains\.EnsembleWalk\(\)"),
    ],
)
def test_gradient_space_refuses_what_it_cannot_serve(loss, mechanism, message):
    built, data = problem(loss, mechanism, 2)
    with pytest.raises(ValueError, match=message):
        kng.sample(built, data, key=kng.research_key(0), sampler=kng.chains.GradientSpace())


def test_gradient_space_refuses_hubers_loss_and_single_precision():
    mechanism = kng.KNG(kng.HuberLoss(0.5), kng.Bounds(), kng.Box(-1.0, 1.0), 1.0, "replace")
    data = mechanism.prepare(None, np.linspace(-1.0, 1.0, 20))
    with pytest.raises(ValueError, match=r"declares is_smooth.* and HuberLoss does not"):
        kng.chains.GradientSpace().check(mechanism.target(data))
    built, data = problem("pseudo_huber", "kng", 2)
    target = built.target(data)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        kng.chains.GradientSpace().check(target)


@pytest.mark.parametrize("mixture", [0.0, 1.0])
def test_settings_without_sense_are_refused(mixture):
    with pytest.raises(ValueError, match="mixture must lie strictly between 0 and 1"):
        kng.chains.GradientSpace(mixture=mixture)


def test_a_certificate_says_that_proposals_were_made_from_private_estimates():
    built, data = problem("logistic", "kng", 2)
    del data
    certificate = Certificate.of(ChainDraw(built, kng.chains.GradientSpace(), ""), Schema(2))
    assert any("they are made from the private data" in line for line in certificate.unproved)
    assert not any("their rule is public" in line for line in certificate.unproved)
    assert not certificate.exact
