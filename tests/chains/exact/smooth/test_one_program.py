"""Exact draws of smooth losses in one program, mapped over data sets: against quadrature, and failing closed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.exact.smooth import one_program
from kngjax.chains.exact.smooth.proposals import solutions
from kngjax.chains.newton import evaluate
from tests.losses.test_curvature_facts import NAMES
from tests.statistical.problems import POINTS, Quadrature, assert_follows, problem, records

NUM_KEYS = 600


def data_sets(built, dimension, count):
    """Two of the same mechanism, stacked, and each by itself."""
    both = []
    for seed in (0, 1):
        x, y = records("pseudo_huber", dimension, count, seed)
        both.append(built.prepare(x if dimension > 1 else None, y))
    return jax.tree.map(lambda *parts: jnp.stack(parts), *both), both


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dimension"), [(name, 2 - place % 2) for place, name in enumerate(NAMES)])
def test_draws_of_every_loss_follow_the_density(name, dimension):
    number = 500
    built, data = problem(name, "kng", dimension, num_records=300)
    draws = kng.sample(built, data, key=kng.research_key(7), sampler=kng.chains.Exact(), num_draws=number, num_chains=1)
    found = np.asarray(draws.theta).reshape(number, dimension)
    assert_follows(found, Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "domain"),
    [
        (kng.L1(), kng.L2Ball(1.0)),
        (kng.L2(), kng.L1Ball(1.2)),
        (kng.LInf(), kng.L2Ball(1.0)),
        (kng.Ellipsoid([[2.0, 0.5], [0.5, 1.0]]), kng.L1Ball(1.2)),
    ],
    ids=repr,
)
def test_draws_follow_the_density_in_every_norm_where_the_domain_binds(norm, domain):
    built, data = problem("pseudo_huber", "kng", 2, domain=domain, num_records=150)
    built = eqx.tree_at(lambda part: part.norm, built, norm, is_leaf=lambda part: part is None)
    draw = jax.jit(lambda key: one_program.draws_in_one_program(built.target(data), key, 400, None))
    draws, succeeded = draw(kng.research_key(9))
    assert bool(succeeded)
    assert_follows(np.array(draws), Quadrature(built, data, -1.2, 1.2, POINTS[2]))


def test_solutions_are_exact_and_weighed_by_their_determinant():
    built, data = problem("pseudo_huber", "kng", 1, num_records=40)
    target = built.target(data)
    start = evaluate(target, built.loss.minimise(data))
    generator = np.random.default_rng(0)
    values = generator.normal(size=(128, 1)) * 8.0 / float(target.rate)
    bounds = generator.uniform(size=len(values))
    theta, log_ratios, unsettled, inside = jax.tree.map(np.array, jax.jit(solutions)(target, start, values, bounds))
    assert inside.sum() > 100
    assert not unsettled.any()
    gradients = np.array(jax.vmap(target.loss.gradient, (0, None))(theta, data))
    assert np.max(np.abs(gradients - values)[inside]) < 1e-12 / float(target.rate)

    # What they are accepted with, by NumPy.
    def log_determinant(theta):
        curvature = (1.0 + ((data.y - data.x @ theta) / built.loss.k) ** 2) ** -1.5
        return np.linalg.slogdet((data.x.T * curvature) @ data.x)[1]

    drops = log_determinant(np.asarray(start.theta)) - np.array([log_determinant(one) for one in theta])
    assert np.ptp(drops) > 0.05
    np.testing.assert_allclose(log_ratios, drops - bounds, atol=1e-10)


@pytest.mark.slow
def test_on_the_host_what_was_given_up_is_searched_again(monkeypatch):
    """By keys of their own, some times; what speaks against the proof is not."""
    built, data = problem("pseudo_huber", "kng", 1, num_records=20)
    target, keys = built.target(data), jax.random.split(kng.research_key(8), 40)
    monkeypatch.setattr(one_program, "_ROUNDS", 1)
    monkeypatch.setattr(one_program, "_FURTHER_ROUNDS", 0)
    found = [one_program.draws_on_the_host(target, key, 1, None) for key in keys]
    assert all(bool(succeeded) for _, succeeded in found)
    monkeypatch.setattr(one_program, "_MOST_SEARCHES", 1)
    once = [bool(one_program.draws_on_the_host(target, key, 1, None)[1]) for key in keys]
    assert 0 < sum(once) < 40
    monkeypatch.setattr(one_program, "_program", lambda *_: (np.full((1, 1), np.inf), np.asarray(False)))
    assert not one_program.draws_on_the_host(target, keys[0], 1, None)[1]


@pytest.mark.parametrize("settings", [{"max_proposals": 0}, {"max_proposals": 1.5}])
def test_limits_are_positive_whole_numbers(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        kng.chains.Exact(**settings)


def test_single_precision_is_refused():
    built, data = problem("pseudo_huber", "kng", 1, num_records=40)
    target = built.target(data)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        kng.chains.Exact().check(target)


@pytest.mark.slow
def test_draws_of_one_program_follow_the_density_whatever_the_centre():
    built, data = problem("pseudo_huber", "kng", 1)
    draw = jax.jit(lambda data, key: one_program.draws_in_one_program(built.target(data), key, 300, np.full(1, np.nan)))
    draws, succeeded = draw(data, kng.research_key(1))
    assert bool(succeeded)
    assert_follows(np.array(draws), Quadrature(built, data, -2.0, 2.5, POINTS[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "count", "epsilon", "num_draws"), [(1, 20, 1.0, 1), (1, 20, 1.0, 200), (2, 150, 3.0, 1)]
)
def test_draws_of_each_data_set_follow_its_density(dimension, count, epsilon, num_draws):
    """A third of all proposals are accepted, half of them gradients and half of them θ."""
    built, _ = problem("pseudo_huber", "kng", dimension, epsilon, num_records=count)
    stacked, each = data_sets(built, dimension, count)

    def draw(data, key):
        return kng.chains.Exact().draws(built.target(data), key, num_draws)

    keys = jax.random.split(kng.research_key(5), NUM_KEYS // num_draws)
    draws, succeeded = jax.jit(jax.vmap(jax.vmap(draw, (None, 0)), (0, None)))(stacked, keys)
    assert np.all(succeeded)
    for found, data in zip(np.array(draws), each, strict=True):
        assert_follows(found.reshape(-1, dimension), Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))


@pytest.mark.slow
@pytest.mark.parametrize("domain", [kng.Box(-0.2, 0.35), kng.Box(-0.2, 0.2)], ids=["edge", "outside"])
def test_where_the_domain_binds_what_was_not_given_up_follows_the_density(domain):
    """That a search succeeded says nothing of its draw."""
    built, data = problem("pseudo_huber", "kng", 1, domain=domain, epsilon=5.0)
    draw = jax.jit(jax.vmap(lambda key: kng.chains.Exact().draws(built.target(data), key, 1)))
    draws, succeeded = draw(jax.random.split(kng.research_key(5), NUM_KEYS))
    assert np.sum(succeeded) > NUM_KEYS // 5
    assert_follows(np.array(draws)[np.array(succeeded), 0], Quadrature(built, data, *domain_ends(domain), POINTS[1]))


def domain_ends(domain):
    return float(domain.lower), float(domain.upper)


@pytest.mark.slow
def test_what_was_found_within_few_rounds_has_the_same_law(monkeypatch):
    monkeypatch.setattr(one_program, "_ROUNDS", 1)
    monkeypatch.setattr(one_program, "_FURTHER_ROUNDS", 0)
    built, data = problem("pseudo_huber", "kng", 1, num_records=20)
    draw = jax.jit(jax.vmap(lambda key: one_program.draws_in_one_program(built.target(data), key, 1, None)))
    draws, succeeded = draw(jax.random.split(kng.research_key(8), 10 * NUM_KEYS))
    succeeded = np.array(succeeded)
    assert 0.02 < np.mean(succeeded) < 0.98
    assert np.all(np.isnan(np.array(draws)[~succeeded]))
    assert_follows(np.array(draws)[succeeded, 0], Quadrature(built, data, -2.0, 2.5, POINTS[1]))


@pytest.mark.slow
def test_an_envelope_that_is_too_low_gives_no_draws(monkeypatch):
    build = one_program.build

    def too_low(*arguments):
        envelope = build(*arguments)
        return envelope._replace(heights=envelope.heights - 0.1)

    built, data = problem("pseudo_huber", "kng", 1, num_records=300)
    monkeypatch.setattr(one_program, "build", too_low)
    draw = jax.jit(lambda key: one_program.draws_in_one_program(built.target(data), key, 300, None))
    draws, succeeded = draw(kng.research_key(1))
    assert not bool(succeeded)
    assert np.all(np.isinf(draws))
