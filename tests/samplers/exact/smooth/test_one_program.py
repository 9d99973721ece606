"""Exact draws of smooth losses in one program, mapped over data sets: against quadrature, and failing closed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.samplers.exact.smooth import one_program
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
        return kng.Exact().draws(built.target(data), key, num_draws)

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
    draw = jax.jit(jax.vmap(lambda key: kng.Exact().draws(built.target(data), key, 1)))
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
