"""What losses declare of their second derivative, against grids and finite differences."""

import functools

import jax
import numpy as np
import pytest

from tests.statistical.problems import LOSSES

NAMES = [name for name, loss in LOSSES.items() if loss.has_curvature_facts]
PREDICTORS = np.linspace(-3.0, 3.0, 41)
RESPONSES = {"logistic": (0.0, 1.0), "poisson": (0.0, 2.0, 9.0)}
STEPS = np.concatenate([-np.geomspace(1e-3, 12.0, 60)[::-1], np.geomspace(1e-3, 12.0, 60)])
REACHES = (1e-12, 1e-6, 0.01, 0.3, 1.0, 4.0, 12.0)


def pairs(name):
    """η and y of every record that is tried, each of shape (records,)."""
    grid = np.meshgrid(PREDICTORS, RESPONSES.get(name, (-2.0, 0.0, 0.7)), indexing="ij")
    return grid[0].ravel(), grid[1].ravel()


@jax.jit
def _facts(loss, predictors, responses, reach):
    return jax.vmap(loss.curvature_facts, (0, 0, None))(predictors, responses, reach)


def facts(name, reach):
    return jax.tree.map(np.array, _facts(LOSSES[name], *pairs(name), reach))


@functools.partial(jax.jit, static_argnames="differentiate")
def _over(loss, predictors, responses, differentiate):
    function = jax.grad(loss.record_curvature) if differentiate else loss.record_curvature
    return jax.vmap(jax.vmap(function, (0, None)))(predictors, responses)


def over(name, steps, differentiate=False):
    """ρ''(η + u, y), or its derivative, shape (records, steps)."""
    predictors, responses = pairs(name)
    return np.array(_over(LOSSES[name], predictors[:, None] + steps, responses, differentiate))


def test_every_smooth_loss_declares_them():
    assert [name for name, loss in LOSSES.items() if loss.is_smooth and not loss.is_quadratic] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_logarithm_of_the_second_derivative_lies_above_a_parabola_everywhere(name):
    found = facts(name, 1.0)
    # Beyond, float64 has no digits left of it.
    logs = np.log(np.maximum(over(name, np.append(0.0, STEPS)), 1e-290))
    here, there = logs[:, :1], logs[:, 1:]
    excess = there - here - found.slope[:, None] * STEPS + 0.5 * found.bend[:, None] * STEPS**2
    assert np.all(found.bend >= 0.0)
    assert np.all(excess >= -1e-9 * (1.0 + np.abs(there)))
    # It touches: twice the slope, or half the bend, would not do.
    near = np.abs(STEPS) < 2e-3
    assert np.all(np.abs(excess[:, near]) < 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reach", REACHES)
def test_the_mean_of_the_second_derivative_over_a_segment_is_no_less(name, reach):
    shares = np.concatenate([-np.linspace(0.05, 1.0, 20)[::-1], np.linspace(0.05, 1.0, 20)])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # The mean between η and η + u by Gauss and Legendre's rule.
    points = (shares[:, None] * reach * 0.5 * (nodes + 1.0)).ravel()
    values = over(name, points).reshape(-1, shares.size, nodes.size)
    means = values @ weights / 2.0
    least, declared = means.min(axis=1), facts(name, reach).mean
    assert np.all(declared >= 0.0)
    assert np.all(declared <= least * (1.0 + 1e-9) + 1e-14)
    assert np.all(declared >= 0.999 * least - 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reach", [0.3, 4.0])
def test_the_third_derivative_is_no_larger(name, reach):
    steps = np.linspace(-reach, reach, 401)
    found = np.abs(over(name, steps, differentiate=True))
    declared = facts(name, reach).third
    assert np.all(found.max(axis=1) <= declared * (1.0 + 1e-12))
    assert np.max(found.max(axis=1) / declared) > 0.99
