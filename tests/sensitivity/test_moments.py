"""What one record can do to moments and to a ridge regression: never more than is said, and that much."""

import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.sensitivity import moments
from tests.oracles.perturbed_ridge import ridge

BOUNDS = kng.Bounds(x=(np.array([-1.0, -2.0]), np.array([1.0, 0.5])), y=(-0.5, 1.5), intercept=False)
RADIUS, RESPONSE = np.sqrt(5.0), 1.5


def records(generator, count):
    """Records of the bounds, at their corners more often than not."""
    lower, upper = np.array([-1.0, -2.0, -0.5]), np.array([1.0, 0.5, 1.5])
    corners = np.where(generator.random((count, 3)) < 0.5, lower, upper)
    anywhere = generator.uniform(lower, upper, (count, 3))
    rows = np.where(generator.random((count, 1)) < 0.7, corners, anywhere)
    return rows[:, :2], rows[:, 2]


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_moments_change_by_no_more_and_that_much(adjacency):
    gram, moment = (float(value) for value in moments.moment_changes(BOUNDS, adjacency, 2))
    generator, grams, vectors = np.random.default_rng(0), [], []
    for _ in range(3000):
        (x, z), (y, w) = records(generator, 2)
        replaced = adjacency is Adjacency.REPLACE
        grams.append(np.linalg.norm(np.outer(x, x) - replaced * np.outer(z, z)))
        vectors.append(np.linalg.norm(x * y - replaced * z * w))
    assert max(grams) <= gram
    assert max(vectors) <= moment
    # These bounds are no balls: the farthest corners are not opposite to each other.
    assert max(grams) > 0.7 * gram
    assert max(vectors) > 0.5 * moment


def test_the_smallest_eigenvalue_changes_by_no_more():
    largest, generator = float(moments.eigenvalue_change(BOUNDS, 2)), np.random.default_rng(1)
    found = []
    for _ in range(2000):
        x, _ = records(generator, 4)
        before, after = (np.linalg.eigvalsh(part.T @ part)[0] for part in (x[:3], x))
        found.append(after - before)
    assert min(found) >= -1e-12
    assert max(found) <= largest


LINE = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)


def worst_on_the_line(regularization, num_others):
    """Data that attain the largest residual for a leverage: (±a, 1) along one direction, for a record (1, -1)."""
    for size in np.linspace(0.001, 1.0, 400):
        x, y = np.full((int(num_others), 1), size), np.ones(int(num_others))
        theta, precision = ridge(x, y, regularization)
        yield 1.0 / precision[0, 0], abs(-1.0 - theta[0]), abs((-1.0 - theta[0]) / (precision[0, 0] + 1.0))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("regularization", "num_others"), [(0.5, 20.0), (30.0, 50.0), (5.0, 3.0)])
def test_residuals_are_attained_on_the_line(regularization, num_others):
    for leverage, residual, _ in worst_on_the_line(regularization, num_others):
        bound = float(moments.largest_ridge_residual(LINE, regularization, num_others, jnp.asarray(leverage), 1))
        np.testing.assert_allclose(residual, bound, rtol=1e-9)


@pytest.mark.parametrize(("regularization", "num_others"), [(0.5, 20.0), (30.0, 50.0), (5.0, 3.0)])
def test_changes_of_a_ridge_regression_are_attained_on_the_line(regularization, num_others):
    bound = float(moments.ridge_changes(LINE, regularization, num_others, 1))
    attained = max(change for *_, change in worst_on_the_line(regularization, num_others))
    assert attained <= bound
    assert attained > 0.98 * bound


@pytest.mark.slow
@pytest.mark.parametrize("regularization", [0.3, 3.0])
def test_no_record_moves_a_ridge_regression_more(regularization):
    generator, ratios, residual_ratios = np.random.default_rng(2), [], []
    for num_others in (1, 2, 5, 20):
        change = float(moments.ridge_changes(BOUNDS, regularization, float(num_others), 2))
        for _ in range(300):
            x, y = records(generator, num_others + 1)
            if generator.random() < 0.5:
                x[:-1], y[:-1] = x[0], y[0]
            theta, precision = ridge(x[:-1], y[:-1], regularization)
            after, _ = ridge(x, y, regularization)
            leverage = x[-1] @ np.linalg.solve(precision, x[-1])
            most = moments.largest_ridge_residual(BOUNDS, regularization, float(num_others), jnp.asarray(leverage), 2)
            residual_ratios.append(abs(y[-1] - x[-1] @ theta) / float(most))
            ratios.append(np.linalg.norm(after - theta) / change)
    # Both are attained, but for rounding of NumPy's.
    assert max(ratios) <= 1.0 + 1e-12
    assert max(residual_ratios) <= 1.0 + 1e-12
    assert max(ratios) > 0.5
    assert max(residual_ratios) > 0.8
