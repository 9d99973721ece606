"""Exact draws of smooth losses: against quadrature, with the acceptance that it predicts, and failing closed."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.samplers.exact.smooth import search
from tests.losses.test_curvature_facts import NAMES
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law
from tests.statistical.problems import Quadrature, problem

NUM_DRAWS = 2000
POINTS = {1: 20_000, 2: 700}
DOMAINS = {"box": kng.Box(-2.0, 2.5), "l1": kng.L1Ball(1.2), "l2": kng.L2Ball(1.0)}


def assert_follows(theta, law):
    uniforms = law.uniforms(theta)
    for uniform in uniforms:
        assert_same_law(uniform, lambda value: np.clip(value, 0.0, 1.0))
    if len(uniforms) == 2:
        counts, _, _ = np.histogram2d(*uniforms, bins=6, range=[(0.0, 1.0)] * 2)
        assert_cell_frequencies(counts.ravel(), np.full(36, 1.0 / 36.0))


def draws(mechanism, data, num_draws=NUM_DRAWS, seed=7, centre=None, proposals=3_000_000):
    target = mechanism.target(data)
    centre = mechanism.loss.minimise(data) if centre is None else centre
    envelope = search.prepare(target, centre)
    return envelope, search.search(target, envelope, kng.research_key(seed), num_draws, proposals)


@pytest.mark.parametrize("count", [40, 300])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.default_cases(2)
def test_draws_follow_the_density_and_are_as_many_as_quadrature_says(name, dimension, count):
    built, data = problem(name, "kng", dimension, num_records=count)
    envelope, found = draws(built, data)
    assert found.succeeded
    assert found.worst <= 0.0
    law = Quadrature(built, data, -2.0, 2.5, POINTS[dimension])
    assert_follows(found.draws, law)
