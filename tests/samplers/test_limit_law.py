"""Theorem 3.2: the law about the estimate, from which chains start, is the mechanism's when n is large."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.owner import nonprivate
from kngjax.samplers.limit_law import INFLATION, inverse_directions, limit_law_draws, limit_law_scales
from tests.oracles.goodness_of_fit import assert_two_samples_agree
from tests.statistical.problems import problem


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["kng", "exponential"])
def test_for_the_squared_loss_the_limit_law_is_exact(mechanism):
    built, data = problem("squared", mechanism, 2, num_records=4000)
    target = built.target(data)
    centre = nonprivate.minimiser(built.loss, data)
    starts = np.asarray(limit_law_draws(target, centre, kng.research_key(0), 4000))
    exact = kng.sample(built, data, key=kng.research_key(1), sampler=kng.Exact(), num_draws=4000, num_chains=1)
    for coordinate in range(2):
        narrowed = centre[coordinate] + (starts[:, coordinate] - centre[coordinate]) / INFLATION
        assert_two_samples_agree(narrowed, exact.theta[0, :, coordinate])


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain", [kng.L1Ball(0.5), kng.L2Ball(0.5), kng.Box(-0.5, 0.5)], ids=lambda part: type(part).__name__
)
def test_starts_lie_in_the_domain_and_never_coincide(domain):
    built, data = problem("quantile", "kng", 2, domain=domain)
    centre = nonprivate.minimiser(built.loss, data)
    assert not bool(domain.contains(centre))
    starts = np.asarray(limit_law_draws(built.target(data), centre, kng.research_key(0), 200))
    assert np.all(np.asarray(jax.vmap(domain.contains)(starts)))
    assert len(np.unique(starts.round(12), axis=0)) == 200
    assert np.linalg.matrix_rank(starts - starts.mean(axis=0)) == 2


def test_each_inverse_direction_moves_one_coordinate_of_the_gradient():
    built, data = problem("squared", "kng", 3)
    centre = nonprivate.minimiser(built.loss, data)
    directions = np.asarray(inverse_directions(built.target(data), centre))
    moved = directions @ np.asarray(data.gram)
    np.testing.assert_allclose(moved, np.diag(np.diagonal(moved)), atol=1e-6 * np.abs(moved).max())


@pytest.mark.slow
def test_scales_shrink_with_n_and_respect_the_domain():
    scales = {}
    for num_records in (40, 4000):
        built, data = problem("pseudo_huber", "kng", 2, num_records=num_records)
        centre = nonprivate.minimiser(built.loss, data)
        scales[num_records] = np.asarray(limit_law_scales(built.target(data), centre))
    assert np.all(scales[4000] < 0.05 * scales[40])
    built, data = problem("pseudo_huber", "kng", 2, epsilon=1e-9)
    assert np.all(np.asarray(limit_law_scales(built.target(data), np.zeros(2))) <= 4.5)
