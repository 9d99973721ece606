"""Gram matrices with Gaussian noise: how long a record may be, how far neighbours are apart, and the noise."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.kinds import Kind
from kngjax.draws.choice import proved_draw
from kngjax.mechanisms.gaussian_moments import GaussianMoments

LARGEST, SIZE = 3.0, 3
COLUMNS = kng.Bounds(x=([-2.0] * 6, [2.0] * 6), intercept=False)


def mechanism(adjacency="replace", mu=0.7, largest=LARGEST):
    return GaussianMoments(COLUMNS, mu, adjacency, largest, 2)


def fourth_powers(x):
    """Σ_b |x_b|⁴ of each record, in fractions."""
    lengths = np.array([[Fraction(float(number)) ** 2 for number in row] for row in x])
    return [sum(row[:SIZE]) ** 2 + sum(row[SIZE:]) ** 2 for row in lengths]


def test_records_are_as_long_as_they_may_be_and_each_depends_on_itself():
    made, generator = mechanism(), np.random.default_rng(0)
    x = generator.standard_normal((400, 6)) * generator.choice([1e-170, 1e-3, 0.6, 1.0, 40.0], (400, 1))
    # Just at the edge, where roundings decide.
    edge = x[:200] * (LARGEST / np.maximum(list(map(float, fourth_powers(x[:200]))), 1e-300))[:, None] ** 0.25
    x = np.vstack([x, edge])
    found = made.shortened(x)
    assert max(fourth_powers(found)) <= Fraction(LARGEST)
    lengths = np.array(list(map(float, fourth_powers(x))))
    step = 2.0**-40
    np.testing.assert_allclose(found[lengths < 2.9], x[lengths < 2.9], atol=step)
    long = lengths > 3.1
    np.testing.assert_allclose(list(map(float, fourth_powers(found[long]))), LARGEST, rtol=1e-9)
    np.testing.assert_allclose(found[long] * (lengths[long, None] / LARGEST) ** 0.25, x[long], rtol=1e-9, atol=1e-9)
    order = generator.permutation(len(x))
    assert made.shortened(x[order][:7]).tobytes() == found[order][:7].tobytes()


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_neighbours_are_farther_apart_than_the_noise_hides_and_some_are_as_far(adjacency):
    made, generator = mechanism(adjacency), np.random.default_rng(1)
    signs = generator.choice([-2.0, 0.0, 2.0], (30, 6))
    # Orthogonal in both blocks.
    signs = np.vstack([signs, [2.0, 0, 0, 0, 2.0, 0], [0, 2.0, 0, 0, 0, 2.0]])
    sums = [made.intake.exact_sums(np.vstack([np.full((1, 6), 0.1), row])).moment for row in signs]
    weights = np.tile([1, 2, 2, 1, 2, 1], 2)
    fewer = made.intake.exact_sums(np.full((1, 6), 0.1)).moment
    pairs = [(one, fewer) for one in sums] if adjacency == "add_remove" else itertools.combinations(sums, 2)
    squares = [(weights * (one - other) ** 2).sum() for one, other in pairs]
    # Noise of variance v on the diagonal and v/2 beside it: a squared length over v is at most μ².
    hidden = Fraction(7, 10) ** 2 * made.variance
    assert max(squares) <= hidden
    assert max(squares) > hidden * Fraction(999, 1000)
    assert made.variance == pytest.approx((2 if adjacency == "replace" else 1) * LARGEST / 0.49)


def test_the_guarantee_is_gaussian_and_pure_at_no_epsilon():
    made = mechanism()
    assert made.guarantee.kind is Kind.GAUSSIAN
    assert made.guarantee.exact_rho == Fraction(49, 200)
    assert made.guarantee.epsilon == np.inf
    assert "zCDP" in made.guarantee.explain()


def test_noise_is_that_of_the_variance_and_half_of_it_off_the_diagonal():
    made = mechanism()
    x = np.random.default_rng(2).uniform(-0.5, 0.5, (5, 6))
    way = proved_draw(made, made.intake.check_schema(x))
    data, bits = way.prepare(x, None), random.Random(3).getrandbits
    drawn = np.array([way.draw_alone(data, bits) for _ in range(400)])
    above = np.triu_indices(SIZE)
    means = np.concatenate([(x[:, part].T @ x[:, part])[above] for part in (slice(0, 3), slice(3, 6))])
    deviations = np.sqrt(float(made.variance) * np.tile([1, 0.5, 0.5, 1, 0.5, 1], 2))
    np.testing.assert_allclose(made.noise.deviations(12, None), deviations)
    assert np.max(np.abs(drawn.mean(axis=0) - means) / deviations) < 4.0 / 20.0
    # A deviation of 400 numbers has a standard error of 3.5 %.
    np.testing.assert_allclose(drawn.std(axis=0), deviations, rtol=0.15)


def test_the_research_draws_have_the_same_law():
    made, x = mechanism(), np.full((3, 6), 0.25)
    draws, succeeded = made.draws(made.prepare(x), kng.research_key(0), 4000)
    assert bool(succeeded)
    np.testing.assert_allclose(np.mean(draws, axis=0), 3.0 / 16.0, atol=4.0 * float(made.variance) ** 0.5 / 63.0)
    np.testing.assert_allclose(np.std(draws, axis=0), made.noise.deviations(12, None), rtol=0.06)


def test_settings_that_make_no_sense_are_refused():
    for words, change in (("blocks of columns", {"blocks": 4}), ("mu", {"mu": 0.0}), ("squares", {"largest": 1e300})):
        settings = {"mu": 1.0, "adjacency": "replace", "largest": 1.0, "blocks": 2} | change
        with pytest.raises(ValueError, match=words):
            GaussianMoments(COLUMNS, **settings)
