"""Independence samplers: the proposal density, what is refused, and what a chain reports of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.data.admission import Facts
from kngjax.owner import nonprivate
from kngjax.releases.routes.sampled import SampledRoute
from kngjax.samplers.chains.independence import IndependenceNoise, IndependenceState
from kngjax.samplers.target import Target
from tests.oracles.goodness_of_fit import assert_mean_within
from tests.statistical.problems import problem

BOX, NORMAL = kng.Box(-30.0, 30.0), kng.BaseMeasure(dist.Normal(0.0, 4.0))


# With the sampler as an argument, so that one program serves all tests of a density.
INIT = jax.jit(lambda sampler, target, centre, key: sampler.start(target, centre, key))
NOISE = jax.jit(lambda sampler, key, target, state, number: sampler.noise(key, target, state, number), static_argnums=4)


def started(sampler, built, data):
    target = built.target(data)
    return target, INIT(sampler, target, nonprivate.minimiser(built.loss, data), kng.research_key(0))


both_samplers = pytest.mark.parametrize(
    "sampler",
    [kng.IndependenceMH(mixture=0.3), pytest.param(kng.GradientSpace(), marks=pytest.mark.slow)],
    ids=lambda part: type(part).__name__,
)


def noise_of(sampler, target, state, seed, num_sweeps):
    return NOISE(sampler, kng.research_key(seed), target, state, num_sweeps)


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        ("kng", BOX),
        pytest.param("kng", NORMAL, marks=pytest.mark.slow),
        pytest.param("exponential", BOX, marks=pytest.mark.slow),
    ],
    ids=["kng", "normal", "exponential"],
)
def test_the_proposal_density_integrates_to_one_and_is_that_of_the_proposals(mechanism, domain):
    """log q = log f - log weight, by quadrature: an importance-weighted mean needs both of its components right."""
    sampler = kng.IndependenceMH(mixture=0.3)
    built, data = problem("quantile", mechanism, 1, domain=domain)
    target, state = started(sampler, built, data)
    edges = np.linspace(-30.0, 30.0, 20_001)
    middles = jnp.asarray(0.5 * (edges[1:] + edges[:-1]))[:, None]
    weighted = jax.jit(
        lambda points: jax.lax.map(lambda p: sampler.weigh(target, state.proposal, p), points, batch_size=5000)
    )(middles)
    masses = np.exp(np.asarray(weighted.log_density - weighted.log_weight)) * 3e-3
    np.testing.assert_allclose(masses.sum(), 1.0, atol=1e-5)
    # Of a start the promise asks for a weight of no more than its own.
    start = state.current
    assert start.log_weight <= sampler.weigh(target, state.proposal, start.theta).log_weight + 1e-9
    candidates = noise_of(sampler, target, state, 1, 2000).candidates
    uniform = np.interp(np.asarray(candidates.theta)[:, 0], edges, np.concatenate([[0.0], np.cumsum(masses)]))
    assert_mean_within(np.column_stack([uniform, (uniform - 0.5) ** 2]), [0.5, 1.0 / 12.0])


@pytest.mark.default_cases(1)
@both_samplers
def test_a_step_goes_to_the_candidate_or_stays_and_says_so(sampler):
    """By default of the density of the test above, and with as many candidates, so that they share programs."""
    is_default = isinstance(sampler, kng.IndependenceMH)
    built, data = problem("quantile", "kng", 1, domain=BOX) if is_default else problem("logistic", "kng", 2)
    target, state = started(sampler, built, data)
    noise, step = noise_of(sampler, target, state, 2, 2000), jax.jit(sampler.step)
    weigh, log_density = jax.jit(sampler.weigh), jax.jit(Target.log_density)
    visited, accepted = [], []
    for number in range(20):
        before, one = state, jax.tree.map(lambda part, number=number: part[number], noise)
        state, info = step(target, state, one)
        candidate = one.candidates
        expected = before.current.log_weight - candidate.log_weight < one.thresholds
        assert info.acceptance == expected
        np.testing.assert_array_equal(
            sampler.position(target, state), candidate.theta if expected else before.current.theta
        )
        again = weigh(target, state.proposal, sampler.position(target, state))
        np.testing.assert_allclose(state.current.log_weight, again.log_weight, rtol=1e-9)
        np.testing.assert_allclose(info.log_density, again.log_density, rtol=1e-9)
        np.testing.assert_allclose(info.log_density, log_density(target, state.current.theta), rtol=1e-9)
        visited.append(np.asarray(state.current.theta))
        accepted.append(bool(expected))
    assert 0 < sum(accepted) <= 20
    assert len(np.unique(visited, axis=0)) in (sum(accepted), sum(accepted) + 1)


@pytest.mark.slow
@both_samplers
def test_what_may_not_be_visited_is_left_at_once_and_never_entered(sampler):
    built, data = problem("logistic", "kng", 2)
    target, state = started(sampler, built, data)
    barred = state.current._replace(log_weight=jnp.asarray(-jnp.inf))
    for here, there, expected in (
        (barred, state.current, 1.0),
        (state.current, barred, 0.0),
        (barred, barred, 0.0),
        (state.current, state.current, 1.0),
    ):
        noise = IndependenceNoise(there, jnp.asarray(1e-3))
        assert sampler.step(target, IndependenceState(here, state.proposal), noise)[1].acceptance == expected


@pytest.mark.slow
def test_proposals_outside_the_domain_are_barred():
    built, data = problem("pseudo_huber", "kng", 2, domain=kng.L2Ball(0.9))
    for sampler in (kng.GradientSpace(), kng.IndependenceMH()):
        target, state = started(sampler, built, data)
        candidates = noise_of(sampler, target, state, 4, 400).candidates
        inside = np.asarray(jax.vmap(built.domain.contains)(candidates.theta))
        assert 0.02 < inside.mean() < 0.98 or isinstance(sampler, kng.GradientSpace)
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
            r"smooth strictly convex loss, and QuantileLoss is not one.*ask for sampler=kngjax\.LineGibbs",
        ),
        ("pseudo_huber", "exponential", r"exponential mechanism.*ask for sampler=kngjax\.EnsembleWalk\(\)"),
    ],
)
def test_gradient_space_refuses_what_it_cannot_serve(loss, mechanism, message):
    built, data = problem(loss, mechanism, 2)
    with pytest.raises(ValueError, match=message):
        kng.sample(built, data, key=kng.research_key(0), sampler=kng.GradientSpace())


def test_gradient_space_refuses_hubers_loss_and_single_precision():
    mechanism = kng.KNG(kng.HuberLoss(0.5), kng.Bounds(), kng.Box(-1.0, 1.0), 1.0, "replace")
    data = mechanism.prepare(None, np.linspace(-1.0, 1.0, 20))
    with pytest.raises(ValueError, match="not one, as PseudoHuberLoss is"):
        kng.GradientSpace().check(mechanism.target(data))
    built, data = problem("pseudo_huber", "kng", 2)
    target = built.target(data)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        kng.GradientSpace().check(target)


@pytest.mark.parametrize("settings", [{"scale": 0.9}, {"scale": np.inf}, {"mixture": 0.0}, {"mixture": 1.0}], ids=str)
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        kng.IndependenceMH(**settings)


def test_a_certificate_says_that_proposals_were_made_from_private_estimates():
    built, data = problem("quantile", "kng", 2)
    del data
    certificate = SampledRoute(built, Facts(2), kng.IndependenceMH(), "").certify()
    assert any("they are made from the private data" in line for line in certificate.unproved)
    assert not any("their rule is public" in line for line in certificate.unproved)
    assert not certificate.exact


@pytest.mark.slow
def test_draws_from_the_base_measure_keep_their_weight_whatever_became_of_the_law():
    """q ≥ m·ν: with no numbers in θ̂ or H, and y beyond all squares, a share m of the candidates can be accepted."""
    sampler = kng.IndependenceMH(mixture=0.3)
    built = kng.KNG(kng.HuberLoss(0.5), kng.Bounds(x=(-1.0, 1.0), intercept=False), kng.Box(-2.0, 2.0), 1.0, "replace")
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    data = built.prepare(x, 1.7e308 * np.sign(x[:, 0] + 0.1))
    target = built.target(data)
    law = sampler.proposal(target, nonprivate.centre(built.loss, data, (-2.0, 2.0)))
    # As responses are clipped for it.
    assert np.all(np.isfinite(law.centre))
    candidates = jax.jit(sampler.candidates, static_argnums=3)
    for planted in ("nothing", *law._fields):
        changed = {} if planted == "nothing" else {planted: jnp.nan * getattr(law, planted)}
        found = candidates(target, law._replace(**changed), kng.research_key(4), 1000)
        assert_draws_from_the_base_measure_count(found, not changed)


def assert_draws_from_the_base_measure_count(found, has_law):
    weights, inside = np.asarray(found.log_weight), np.all(np.abs(np.asarray(found.theta)) <= 2.0, axis=1)
    assert np.all(weights[~inside] == -np.inf)
    usable = weights > -np.inf
    if not has_law:
        assert_mean_within(usable, 0.3)
        # log f - log m - log ν, all of it: no share of what is no number.
        expected = np.asarray(found.log_density)[usable] - np.log(0.3 / 4.0)
        np.testing.assert_allclose(weights[usable], expected, rtol=1e-12)
    assert usable.mean() >= 0.25
    # The promise: no weight is above e^R/m, so that draws from ν are accepted often enough.
    largest = np.max(np.asarray(found.log_density)[usable]) - np.log(0.3 / 4.0)
    assert np.max(weights) <= largest + 1e-12
