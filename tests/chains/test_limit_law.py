"""Theorem 3.2: the law about the estimate is the mechanism's when n is large; and where chains start."""

import dataclasses

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.limit_law import (
    INFLATION,
    inverse_directions,
    limit_law_scales,
    scattered,
    sound_hessian,
    starts,
)
from kngjax.losses.base import AbstractRowLoss
from kngjax.owner import nonprivate
from tests.losses.test_contradictions import Welsch
from tests.oracles.goodness_of_fit import assert_two_samples_agree
from tests.statistical.problems import POINTS, Quadrature, assert_follows, problem


def about(target, centre, number):
    """Points of the limit law, as wide as starts are."""
    base_key, own_key = jax.random.split(kng.research_key(0))
    anywhere = target.domain.draw(base_key, (number,), target.dimension)
    return np.asarray(scattered(target, centre, sound_hessian(target, centre), own_key, anywhere, INFLATION)[0])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["kng", "exponential"])
def test_for_the_squared_loss_the_limit_law_is_exact(mechanism):
    built, data = problem("squared", mechanism, 2, num_records=4000)
    target = built.target(data)
    centre = nonprivate.minimiser(built.loss, data)
    found = about(target, centre, 4000)
    exact = kng.sample(built, data, key=kng.research_key(1), sampler=kng.chains.Exact(), num_draws=4000, num_chains=1)
    for coordinate in range(2):
        narrowed = centre[coordinate] + (found[:, coordinate] - centre[coordinate]) / INFLATION
        assert_two_samples_agree(narrowed, exact.theta[0, :, coordinate])


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain", [kng.L1Ball(0.5), kng.L2Ball(0.5), kng.Box(-0.5, 0.5)], ids=lambda part: type(part).__name__
)
def test_starts_lie_in_the_domain_and_never_coincide(domain):
    built, data = problem("quantile", "kng", 2, domain=domain)
    centre = nonprivate.minimiser(built.loss, data)
    assert not bool(domain.contains(centre))
    found = about(built.target(data), centre, 200)
    assert np.all(np.asarray(jax.vmap(domain.contains)(found)))
    assert len(np.unique(found.round(12), axis=0)) == 200
    assert np.linalg.matrix_rank(found - found.mean(axis=0)) == 2


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


# Without warm-up, so that one program makes all sweeps.
WALK = kng.chains.CoordinateWalk(num_warmup=0)


def two_modes(generator):
    """Responses near -2 and near 2, of a loss that is not convex."""
    return Welsch(), 2.0 * np.where(np.arange(50) < 30, -1.0, 1.0) + 0.1 * generator.standard_normal(50)


def one_mode(generator):
    return kng.PseudoHuberLoss(0.5), generator.standard_normal(50)


def drawn(records, sampler, num_draws, num_chains=8):
    """Some chains of KNG of these records, which are drawn from; and the log-density at some points."""
    loss, y = records(np.random.default_rng(0))
    built = kng.KNG(loss, kng.Bounds(y=(-4.0, 4.0)), kng.Box(-4.0, 4.0), 2.0, "replace")
    data, settings = built.prepare(None, y), {"num_chains": num_chains, "sampler": sampler, "progress": False}
    draws = kng.sample(built, data, key=kng.research_key(0), num_draws=num_draws, **settings)
    return draws, lambda points: np.asarray(jax.vmap(lambda theta: built.log_density(theta, data))(points[:, None]))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("records", "sampler", "num_chains", "ends"),
    [
        (two_modes, WALK, 8, (1.1, np.inf)),
        (two_modes, WALK, 200, (1.1, np.inf)),
        (one_mode, WALK, 8, (0.99, 1.05)),
        (two_modes, kng.chains.NUTS(), 8, (1.1, np.inf)),
        (two_modes, kng.chains.HMC(), 8, (1.1, np.inf)),
    ],
    ids=["two modes", "two modes, many chains", "one mode", "NUTS", "HMC"],
)
def test_r_hat_of_a_short_run_sees_modes_that_chains_do_not_go_between(records, sampler, num_chains, ends):
    """Of all chains about one estimate it was 1.00 to 1.03, at a Kolmogorov distance of .6 and more.

    And of NUTS 1.00 at .25, whose chains all ended in one mode while their steps were adapted.
    """
    assert ends[0] < drawn(records, sampler, 500, num_chains)[0].rhat()[0] < ends[1]


@pytest.mark.slow
def test_an_ensemble_goes_between_modes_and_what_needs_convexity_is_refused():
    draws, log_density = drawn(two_modes, kng.chains.EnsembleWalk(), 1000)
    points = np.linspace(-4.0, 4.0, 801)
    masses = np.exp(log_density(points) - log_density(points).max())
    below = np.searchsorted(np.sort(draws.theta.ravel()), points, side="right") / draws.theta.size
    assert np.abs(below - np.cumsum(masses) / masses.sum()).max() < 0.06
    assert draws.rhat()[0] < 1.05
    for sampler in (kng.chains.Exact(), kng.chains.GradientSpace()):
        with pytest.raises(ValueError, match="not monotone"):
            drawn(two_modes, sampler, 10)


@pytest.mark.parametrize(("mechanism", "num_chains"), [("kng", 1), ("kng", 200), ("exponential", 1)])
def test_starts_follow_the_law_that_is_twice_as_wide(mechanism, num_chains):
    """And do so about an estimate that is none, which the base measure makes up for; also where many chains start."""
    built, data = problem("pseudo_huber", mechanism, 1)
    wider = dataclasses.replace(built, epsilon=built.epsilon / (INFLATION if mechanism == "kng" else INFLATION**2))
    law = Quadrature(wider, data, -2.0, 2.5, POINTS[1])
    start = jax.jit(
        jax.vmap(lambda target, centre, key: starts(target, centre, key, 1, num_chains)[0], (None, None, 0))
    )
    centre, keys = nonprivate.minimiser(built.loss, data), jax.random.split(kng.research_key(3), 400)
    assert_follows(np.asarray(start(built.target(data), centre, keys)), law)
    anywhere = np.asarray(start(built.target(data), np.full(1, np.nan), keys))
    assert np.all((anywhere >= -2.0) & (anywhere <= 2.5))


class MedianByRow(AbstractRowLoss):
    """Half the absolute residual, as a loss that might see the row."""

    def record_value(self, predictor, response, row):
        return 0.5 * abs(response - predictor)

    def score_interval(self, predictor, response, rows):
        return -0.5, 0.5

    def gradient_is_piecewise_constant(self, dimension):
        return True


@pytest.mark.float64
def test_a_loss_of_rows_whose_gradient_jumps_has_the_hessian_of_what_is_expected_of_it():
    """Its own curvature is 0, and chains that begin by that scatter over all of Θ and stay there."""
    generator = np.random.default_rng(0)
    x, noise = generator.uniform(0.0, 1.0, (4000, 1)), generator.standard_normal(4000)
    y = 1.0 + 2.0 * x[:, 0] + noise
    bounds, box = kng.Bounds(x=(0.0, 1.0), columns=1), kng.Box(-10.0, 10.0)
    target = kng.KNG(MedianByRow(), bounds, box, 1.0, "replace")
    target = target.target(target.prepare(x, y))
    found = sound_hessian(target, np.array([1.0, 2.0]))
    design = np.column_stack([np.ones(4000), x])
    # f(0)·X'X of normal errors; differences reach a fifth of a deviation to each side.
    np.testing.assert_allclose(found, design.T @ design / np.sqrt(2.0 * np.pi), rtol=0.1)
