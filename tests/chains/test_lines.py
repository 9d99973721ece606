"""The density along a line, segment by segment, against the log-density itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.lines import cumulative_masses, draw_on_line, line_segments
from tests.oracles.goodness_of_fit import assert_same_law
from tests.statistical.problems import problem

DIRECTIONS = [np.array([1.0, 0.0]), np.array([0.0, -1.0]), np.array([0.7, -0.3])]


def line(mechanism: str, direction: np.ndarray, domain=None):
    built, data = problem("quantile", mechanism, 2, domain=domain)
    theta = np.array([0.1, 0.4])
    segments = jax.jit(lambda target: line_segments(target, theta, direction))(built.target(data))
    return built, data, theta, segments


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["kng", "exponential"])
@pytest.mark.parametrize("direction", DIRECTIONS, ids=str)
def test_levels_and_slopes_are_those_of_the_log_density(mechanism, direction):
    built, data, theta, segments = line(mechanism, direction)
    edges = np.asarray(segments.edges)
    lengths = np.diff(edges)
    steps = edges[:-1] + np.random.default_rng(0).uniform(0.05, 0.95, lengths.size) * lengths
    predicted = np.asarray(segments.levels + segments.slopes * (steps - edges[:-1]))
    points = jnp.asarray(theta + steps[:, None] * direction)
    actual = np.asarray(jax.vmap(lambda point: built.log_density(point, data))(points))
    wide = lengths > 1e-9
    differences = (predicted - actual)[wide]
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain", [kng.Box(-2.0, 2.5), kng.L1Ball(2.0), kng.L2Ball(2.0)], ids=lambda part: type(part).__name__
)
def test_the_line_ends_where_the_domain_does(domain):
    _, _, theta, segments = line("kng", DIRECTIONS[2], domain)
    for end, outwards in ((segments.edges[0], -1e-9), (segments.edges[-1], 1e-9)):
        assert bool(domain.contains(theta + (end - outwards) * DIRECTIONS[2]))
        assert not bool(domain.contains(theta + (end + outwards) * DIRECTIONS[2]))


@pytest.mark.parametrize("mechanism", ["kng", "exponential"])
def test_draws_on_a_line_follow_the_conditional_density(mechanism):
    built, data, theta, segments = line(mechanism, DIRECTIONS[2])
    uniforms = jax.random.uniform(kng.research_key(1), (1000, 2))
    draw = jax.vmap(draw_on_line, in_axes=(None, None, 0))
    steps = np.asarray(jax.jit(draw)(segments, cumulative_masses(segments), uniforms))
    grid = np.linspace(float(segments.edges[0]), float(segments.edges[-1]), 4001)
    middles = jnp.asarray(theta + 0.5 * (grid[1:] + grid[:-1])[:, None] * DIRECTIONS[2])
    values = np.asarray(jax.lax.map(lambda point: built.log_density(point, data), middles, batch_size=1000))
    masses = np.exp(values - values.max())
    cumulative = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    assert_same_law(steps, lambda step: np.interp(step, grid, cumulative))


@pytest.mark.slow
def test_a_direction_in_which_nothing_crosses_is_uniform_on_the_chord():
    """Features that are all zero along the direction: the density is constant on the line."""
    mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(0.0, 1.0)), kng.Box(0.0, 1.0), 1.0, "replace")
    data = mechanism.prepare(np.zeros((5, 1)), np.linspace(-1.0, 1.0, 5))
    segments = line_segments(mechanism.target(data), np.array([0.5, 0.25]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(cumulative_masses(segments)[-1], 1.0)
    np.testing.assert_allclose(draw_on_line(segments, cumulative_masses(segments), jnp.array([0.3, 0.2])), -0.05)
