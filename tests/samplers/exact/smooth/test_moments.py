"""The parts of the radius by fourth moments: records' parabolas on dense grids, forms over all directions."""

import jax
import numpy as np
import pytest

from kngjax.samplers.exact.smooth import moments
from tests.losses.test_curvature_facts import NAMES
from tests.statistical.problems import LOSSES

RESPONSES = {"logistic": 1.0, "poisson": 2.0}
PREDICTORS = np.linspace(-2.5, 2.5, 40)
SHARES = np.concatenate([-np.geomspace(1e-3, 1.0, 1500)[::-1], np.geomspace(1e-3, 1.0, 1500)])

PARABOLAS = jax.jit(jax.vmap(moments.parabola, (None, 0, 0, 0, 0, None)))
SCORES = jax.jit(jax.vmap(jax.vmap(lambda loss, *record: loss.record_score(*record), (None, 0, None)), (None, 0, 0)))


def gaps(name, reach, square, is_even=False):
    """a and the least of κ̄(u) - cu + bu² over |u| ≤ reach for every record."""
    loss = LOSSES[name]
    y, full = np.full(40, RESPONSES.get(name, 0.2)), np.ones(40)
    found = PARABOLAS(loss, PREDICTORS, y, reach * full, square * full, is_even)
    a, c, b = jax.tree.map(np.array, found)
    assert not is_even or (np.all(b >= 0.0) and np.all(c == 0.0))
    steps = reach * SHARES
    rises = np.array(SCORES(loss, PREDICTORS[:, None] + steps, y)) - np.array(SCORES(loss, PREDICTORS[:, None], y))
    means = rises / steps
    rounding = 4e-16 * 10.0 / np.abs(steps).min()
    return a, np.min(means - c[:, None] * steps + b[:, None] * steps**2, axis=1) + rounding, means, b


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 30])
@pytest.mark.parametrize("scale", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_even", [False, True])
def test_no_step_within_reach_contradicts_a_parabola(name, scale, dimension, is_even):
    a, least, means, b = gaps(name, scale * dimension**0.5, 3.0 * dimension / (dimension + 2.0) * scale**2, is_even)
    assert np.all(a <= least)
    # It is near: a tenth more would not be certain, save where the least of κ̄ is all that it says.
    near = (a > 0.0) & (b > 0.0)
    if name != "poisson" and scale < 1.0 and near.any():
        assert np.mean(1.1 * a[near] > least[near]) > 0.9
    # Never worse than the least of κ̄, and better on the average of directions.
    square = 3.0 * dimension / (dimension + 2.0) * scale**2
    assert np.all(a - b * min(square, 0.9 * (scale * dimension**0.5) ** 2) >= 0.9 * means.min(axis=1) - 1e-12)


@pytest.mark.default_cases("pseudo_huber")
@pytest.mark.parametrize("name", NAMES)
def test_parabolas_hold_where_nothing_is_left_of_the_curvature(name):
    a, least, *_ = gaps(name, 40.0, 100.0)
    assert np.all(np.isfinite(a))
    assert np.all(a <= least)


def random_parts(dimension, generator, count=60):
    """Σa vv', Σc v⊗E, Σb E⊗E, and P at directions."""
    v = generator.standard_normal((count, dimension)) / np.sqrt(count)
    a, c, b = generator.uniform(0.5, 1.0, count), generator.normal(size=count), generator.uniform(0.0, 2.0, count)
    rows, columns = np.triu_indices(dimension)
    entries = v[:, rows] * v[:, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))
    parts = (v.T * a) @ v, (v.T * c) @ entries, (entries.T * b) @ entries

    def polynomial(e, radius):
        along = e @ v.T
        return along**2 @ a + radius * along**3 @ c - radius**2 * along**4 @ b

    return parts, polynomial


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_no_direction_contradicts_the_bound_of_a_form(dimension):
    generator = np.random.default_rng(dimension)
    e = generator.standard_normal((40_000, dimension))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    for radius in (0.0, 0.5, 2.0, 5.0):
        parts, polynomial = random_parts(dimension, generator)
        bound = moments.least_of_form(moments.lift(parts[0]), *parts[1:], radius)
        assert bound <= polynomial(e, radius).min() + 1e-12


def test_the_bound_of_a_form_is_attained_in_two_dimensions():
    """There a quartic without odd part has the least that its relaxation says, so that a tenth more is too much."""
    generator = np.random.default_rng(0)
    angles = np.linspace(0.0, np.pi, 20_000)
    e = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    (second, third, fourth), _ = random_parts(2, generator)
    entries = np.stack([e[:, 0] ** 2, np.sqrt(2.0) * e[:, 0] * e[:, 1], e[:, 1] ** 2], axis=1)
    for radius in (0.0, 0.5, 2.0):
        bound = moments.least_of_form(moments.lift(second), 0.0 * third, fourth, radius)
        values = np.einsum("ij,jk,ik->i", e, second, e) - radius**2 * np.einsum("ij,jk,ik->i", entries, fourth, entries)
        assert abs(bound - values.min()) < 1e-6
