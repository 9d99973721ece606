"""Slice-Gibbs leaves the density invariant, whatever the norm, the domain and the middle of its radial moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.chains import slice_gibbs
from kngjax.chains.quadratic import quadratic_form
from kngjax.releases.default_sampler import default_sampler
from tests.chains.exact.test_envelopes import CASES, regression
from tests.oracles.goodness_of_fit import assert_same_law, assert_two_samples_agree

NUM_CHAINS, FEW = 3000, 800


def exact_draws(mechanism, data, seed=1, number=NUM_CHAINS):
    return kng.sample(
        mechanism, data, key=kng.research_key(seed), sampler=kng.chains.Exact(), num_draws=number, num_chains=1
    ).theta[0]


def drawn_by_rejection(mechanism, data, seed):
    """FEW independent draws of KNG on the l_1 ball of radius 1 from uniform points of it."""
    random, target = np.random.default_rng(seed), mechanism.target(data)
    points = random.dirichlet(np.ones(4), 120_000)[:, :3] * random.choice([-1.0, 1.0], (120_000, 3))
    lengths = np.abs(points @ np.asarray(data.gram) - np.asarray(data.moment)) / np.asarray(target.norm.weights)
    scores = float(target.rate) * lengths.max(axis=1)
    accepted = np.flatnonzero(random.exponential(size=120_000) > scores - scores.min())
    assert accepted.size >= FEW
    return points[accepted[:FEW]]


def slice_draws(mechanism, data, sweeps, seed=2):
    """Ends of as many independent chains."""
    sampler = kng.chains.SliceGibbs(num_warmup=sweeps - 1)
    key = kng.research_key(seed)
    draws = kng.sample(mechanism, data, key=key, sampler=sampler, num_draws=1, num_chains=NUM_CHAINS, progress=False)
    return draws.theta[:, 0]


def assert_same_joint_law(first, second):
    for coordinate in range(first.shape[1]):
        assert_two_samples_agree(first[:, coordinate], second[:, coordinate])
    assert_two_samples_agree(np.abs(first).sum(axis=1), np.abs(second).sum(axis=1))
    assert_two_samples_agree(first[:, 0] - first[:, 1], second[:, 0] - second[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "norm", "domain"), CASES)
def test_chains_end_in_the_law_of_exact_draws(kind, norm, domain):
    mechanism, data = regression(kind, norm, domain, shift=0.45)
    assert_same_joint_law(exact_draws(mechanism, data), slice_draws(mechanism, data, 30))


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 700, 3000])
def test_chains_agree_with_exact_draws_at_twelve_coefficients(n):
    mechanism, data = regression("kng", "default", "l1_ball", d=12, n=n, epsilon=1.0)
    assert_same_joint_law(exact_draws(mechanism, data), slice_draws(mechanism, data, 40))


@pytest.mark.takes(4.0, "compiles radial moves and whole sweeps")
@pytest.mark.default_cases(1)
@pytest.mark.parametrize("middle", [[0.0, 0.0, 0.0], [0.9, 0.0, 0.0], [5.0, -3.0, 1.0]])
def test_sweeps_leave_the_density_invariant_whatever_the_middle(middle):
    """Chains that start at exact draws; a middle within Θ, near its boundary, and far outside of it."""
    mechanism, data = regression("kng", "default", "l1_ball", shift=0.45)
    exact = drawn_by_rejection(mechanism, data, 1)

    @jax.jit
    def sweep(mechanism, data, theta, keys):
        target = mechanism.target(data)
        form = quadratic_form(target)
        point = jnp.asarray(middle)
        geometry = slice_gibbs.slice_geometry(target, form)._replace(middle=point, middle_image=form.images(point))

        def one(theta, key):
            state = slice_gibbs.state_at(geometry, theta)
            sampler = kng.chains.SliceGibbs()
            noise = sampler.noise(key, target, state, 9)
            # The radial move alone, many times, since it is what the middle bears upon; then whole sweeps.
            for number in range(noise.levels.shape[1]):
                radius = slice_gibbs.slice_radius(target, state, noise.levels[0, number])
                state = slice_gibbs.radial_move(target, state, radius, noise.uniforms[0, number])
            others = jax.tree.map(lambda part: part[1:], noise)
            return jax.lax.scan(lambda state, one: (sampler.step(target, state, one)[0], None), state, others)[0].theta

        return jax.vmap(one)(theta, keys)

    swept = sweep(mechanism, data, jnp.asarray(exact), jax.random.split(kng.research_key(3), FEW))
    assert np.all(np.abs(swept).sum(axis=1) <= 1.0 + 1e-9)
    assert np.mean(np.any(np.abs(swept - exact) > 1e-6, axis=1)) > 0.99
    assert_same_joint_law(drawn_by_rejection(mechanism, data, 4), np.asarray(swept))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kng.KNG, kng.ExponentialMechanism])
def test_an_unconstrained_score_is_gamma(kind):
    """Where Θ cuts nothing off, c·(score - smallest) is Gamma(d) for KNG, Gamma(d/2) for the exponential mechanism."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (20_000, 20))
    y = np.clip(0.01 * x.sum(axis=1) + 0.1 * random.standard_normal(20_000), -1.0, 1.0)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False)
    mechanism = kind(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), 20.0, "replace")
    data = mechanism.prepare(x, y)
    theta = slice_draws(mechanism, data, 40)
    assert np.abs(theta).sum(axis=1).max() < 0.8
    target = mechanism.target(data)
    scores = np.asarray(jax.vmap(target.score)(jnp.asarray(theta)))
    if kind is kng.ExponentialMechanism:
        scores = scores - float(target.score(jnp.linalg.solve(data.gram, data.moment)))
    assert_same_law(float(target.rate) * scores, stats.gamma(20 if kind is kng.KNG else 10).cdf)


@pytest.mark.slow
def test_few_sweeps_make_an_independent_draw_where_features_are_correlated():
    """Sweeps over the smallest effective sample size of a coefficient or of ‖θ‖_1."""
    random = np.random.default_rng(0)
    common, own = random.standard_normal((1200, 1)), random.standard_normal((1200, 11))
    x = 2.0 * stats.norm.cdf(np.sqrt(0.99) * common + np.sqrt(0.01) * own) - 1.0
    y = x @ np.linspace(-1.0, 1.0, 12)[:-1] + random.standard_normal(1200)
    for kind in (kng.KNG, kng.ExponentialMechanism):
        mechanism = kind(kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0), 1.0, "replace")
        data, sampler = mechanism.prepare(x, y / np.abs(y).max()), kng.chains.SliceGibbs()
        draws = kng.sample(mechanism, data, key=kng.research_key(2), sampler=sampler, num_draws=500, progress=False)
        norms = np.abs(draws.theta).sum(axis=2, keepdims=True)
        extended = kng.owner.Draws(np.concatenate([draws.theta, norms], axis=2), "SliceGibbs")
        assert draws.theta.shape[0] * 500 / extended.ess().min() < 4.5


def test_what_it_cannot_draw_from_is_refused():
    parts = (kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1), kng.L1Ball(1.0), 1.0, "replace")
    x, y = np.linspace(-1.0, 1.0, 12)[:, None], np.linspace(-0.5, 0.5, 12)
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    refused = {
        "squared loss on a uniform domain": kng.KNG(kng.QuantileLoss(0.5), *parts),
        "not of Polytope": kng.KNG(kng.SquaredLoss(), *parts, norm=kng.Polytope(corners)),
        "with pointwise_sensitivity": kng.KNG(kng.SquaredLoss(), *parts, pointwise_sensitivity=True),
    }
    for message, mechanism in refused.items():
        with pytest.raises(ValueError, match=message):
            kng.release(mechanism, x, y, sampler=kng.chains.SliceGibbs())


@pytest.mark.slow
def test_a_release_of_many_coefficients_is_of_this_chain():
    mechanism, _ = regression("kng", "default", "l1_ball")
    mechanism = kng.KNG(mechanism.loss, mechanism.bounds.for_dimension(21), mechanism.domain, 3.0, mechanism.adjacency)
    random = np.random.default_rng(0)
    records = random.uniform(-1.0, 1.0, (60, 20)), random.uniform(-1.0, 1.0, 60)
    assert isinstance(default_sampler(mechanism, 21)[0], kng.chains.SliceGibbs)
    release = kng.release(mechanism, *records, sampler=kng.chains.SliceGibbs(), progress=False)
    assert release.certificate.sampler["type"] == "SliceGibbs"
    assert not release.certificate.exact
    assert np.abs(release.value).sum() <= 1.0
