"""Least squares of records with weights: sums, noise and neighbours of AdaSSP, ridge regressions and posteriors."""

import dataclasses
import itertools
import random
from fractions import Fraction

import equinox as eqx
import numpy as np
import pytest
from scipy import optimize, stats

import kngjax as kng
from audits.grid_laws.neighbours import moment_variances, moments_alone
from kngjax.core.arrays import float64
from kngjax.data import weights
from kngjax.data.records import Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.data.weights import with_weights
from kngjax.draws import grid_cells
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.choice import proved_draw
from kngjax.mechanisms import posterior_sample
from tests.oracles.goodness_of_fit import assert_cell_frequencies

N, LARGEST = 12, 4.0
GENERATOR = np.random.default_rng(3)
X = GENERATOR.uniform(-1.0, 1.0, (N, 1))
Y = np.clip(0.6 + 0.4 * X[:, 0] + 0.3 * GENERATOR.standard_normal(N), 0.0, 2.0)
WHOLE = GENERATOR.integers(0, 5, N).astype(float)
WEIGHTS = weights.clipped(GENERATOR.uniform(0.0, LARGEST, N), LARGEST)


def bounds_of(weight=LARGEST, size=1.0, response=2.0):
    return kng.Bounds(x=(np.array([-size]), size), y=(0.0, response), weight=weight)


MECHANISMS = {
    "AdaSSP": lambda bounds, adjacency: kng.AdaSSP(bounds, 1.0, 1e-6, adjacency),
    "AdaOPS": lambda bounds, adjacency: kng.AdaOPS(bounds, 1.0, 1e-6, adjacency),
    "posterior": lambda bounds, adjacency: kng.PosteriorSample(bounds, 900.0, 1e-4, adjacency, 100),
    "identity": lambda bounds, adjacency: kng.OutputPerturbation(
        kng.SquaredLoss(), bounds, 900.0, 1.0, 1e-6, adjacency, max_records=100
    ),
    "hessian": lambda bounds, adjacency: kng.OutputPerturbation(
        kng.SquaredLoss(), bounds, 900.0, 1.0, 1e-4, adjacency, "hessian", 100
    ),
    "hessian_squared": lambda bounds, adjacency: kng.OutputPerturbation(
        kng.SquaredLoss(), bounds, 900.0, 1.0, 1e-4, adjacency, "hessian_squared", 100
    ),
    "logistic": lambda bounds, adjacency: kng.OutputPerturbation(
        kng.LogisticLoss(), bounds, 30.0, 1.0, 1e-6, adjacency
    ),
}


def made(name, adjacency="add_remove", weight=LARGEST):
    return MECHANISMS[name](bounds_of(weight, response=1.0 if name == "logistic" else 2.0), adjacency)


def responses(name):
    return (Y > 0.6).astype(float) if name == "logistic" else Y


def drawn(way, X, y, number=3):
    data = way.prepare(X, y)
    return [way.draw_alone(data, random.Random(seed).getrandbits) for seed in range(number)]


@pytest.mark.default_cases("AdaSSP", "AdaOPS", "posterior", "identity", "logistic")
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_with_weights_of_1_are_those_without_and_of_whole_ones_those_of_repeated_records(name, monkeypatch):
    """From the same bits to the last digit: of weights up to 1, and of repeated records with the noise of up to W."""
    # No draw depends on the ε that a search finds, and balls confirm a larger one.
    monkeypatch.setattr(posterior_sample, "_stated_epsilon", lambda mechanism, dimension: 99.0)
    y, times = responses(name), WHOLE.astype(int)
    values = []
    for weight, given in ((1.0, np.ones(N)), (None, None)):
        mechanism, table = made(name, weight=weight), with_weights(X, given)
        values.append(drawn(proved_draw(mechanism, mechanism.intake.check_schema(table, y)), table, y))
    np.testing.assert_array_equal(*values)
    mechanism = made(name)
    way = proved_draw(mechanism, mechanism.intake.check_schema(with_weights(X, WHOLE), y))
    assert way.takes_weights
    without = eqx.tree_at(lambda part: part.bounds.weight, mechanism, None, is_leaf=lambda part: part is None)
    repeated = np.repeat(X, times, axis=0), np.repeat(y, times)
    if name == "AdaSSP":
        other = dataclasses.replace(way, mechanism=without)
        expected = moments_alone(other, other.prepare(*repeated))
        assert moments_alone(way, way.prepare(with_weights(X, WHOLE), y)) == expected
        return
    expected = drawn(dataclasses.replace(way, mechanism=without), *repeated)
    np.testing.assert_array_equal(drawn(way, with_weights(X, WHOLE), y), expected)


@pytest.mark.default_cases("identity-replace", "AdaOPS-add_remove")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in ("AdaSSP", "logistic")])
def test_what_is_proved_is_that_of_records_times_the_root_of_the_largest_weight(name, adjacency):
    """W = 4, and so bounds without weights, an intercept of 2 included, that are twice as large."""
    doubled = kng.Bounds(x=([2.0, -2.0], [2.0, 2.0]), y=(-4.0, 4.0), intercept=False)
    given = made(name, adjacency), MECHANISMS[name](doubled, adjacency)
    one, other = (mechanism.sensitivity_for(2).value for mechanism in given)
    assert one == pytest.approx(other, rel=1e-12)
    one, other = (mechanism.guarantee_for(2).epsilon for mechanism in given)
    assert one == pytest.approx(other, rel=1e-9)
    assert "weights w of at most 4" in given[0].sensitivity_for(2).derivation
    ways = [proved_draw(mechanism, Schema(2)) for mechanism in given]
    assert all(way is not None for way in ways)
    with float64():
        if name == "AdaOPS":
            one, other = ([float(part) for part in mechanism.plan(2)] for mechanism in given)
            assert ways[0].radii == ways[1].radii
        else:
            one, other = ([float(mechanism.gamma_for(2))] for mechanism in given)
            assert ways[0].noise == ways[1].noise or ways[0].noise.scale_squared == pytest.approx(
                float(ways[1].noise.scale_squared), rel=1e-12
            )
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("adjacency", ["add_remove", pytest.param("replace", marks=pytest.mark.slow)])
def test_a_bounded_score_moves_the_minimiser_by_the_largest_weight_more(adjacency):
    one, other = (made("logistic", adjacency, weight).sensitivity_for(2).value for weight in (LARGEST, None))
    assert one == pytest.approx(LARGEST * other, rel=1e-12)
    ways = [proved_draw(made("logistic", adjacency, weight), Schema(2)) for weight in (LARGEST, None)]
    assert float(ways[0].noise.scale_squared / ways[1].noise.scale_squared) == pytest.approx(LARGEST**2, rel=1e-12)


def squared_shift(way, first, second):
    """The squared distance in deviations of the means of all that is released of two data sets."""
    parts = zip(first, second, moment_variances(way), strict=True)
    return sum((a - b) ** 2 / spread for ones, twos, spread in parts for a, b in zip(ones, twos, strict=True))


LINE = kng.Bounds(x=([-1.5], [1.0]), y=(-0.5, 2.0), intercept=False, weight=LARGEST)


@pytest.mark.default_cases("line-add_remove", "plane-replace")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("bounds", [LINE, bounds_of()], ids=["line", "plane"])
def test_no_neighbours_of_adassp_are_farther_apart_than_the_noise_hides(bounds, adjacency):
    """In fractions, through the very path of releases. On a line one record more, of weight W, is as far as that."""
    mechanism = kng.AdaSSP(bounds, 0.5, 1e-6, adjacency, (0.2, 0.3, 0.5))
    way = proved_draw(mechanism, Schema(1 + bounds.intercept))
    assert isinstance(way, NoisyMoments)
    low, high, ends = float(bounds.x_lower[0]), 1.0, [float(bounds.y_lower), float(bounds.y_upper)]
    means = {}
    for corner in (None, *itertools.product((low, high), ends, (0.0, 1.3, 99.0))):
        rows = np.array([(low, 1.0, 2.0), (high, 0.5, 0.5), *([corner] if corner else [])])
        means[corner] = moments_alone(way, way.prepare(with_weights(rows[:, :1], rows[:, 2]), rows[:, 1]))
    without = means.pop(None)
    found = [
        squared_shift(way, one, other)
        for one, other in itertools.product(means.values(), means.values() if adjacency == "replace" else [without])
    ]
    hidden = 2 * mechanism.guarantee.exact_rho
    assert max(found) <= hidden
    # That λ_min is rounded costs a part in 2^19.
    closeness = {("line", "add_remove"): 1 - 2.0**-17, ("plane", "add_remove"): 0.7}
    assert max(found) >= hidden * closeness.get(("plane" if bounds.intercept else "line", adjacency), 0.3)
    # The noise is that of weights of 1 times W, as variances but for the rounding of λ_min.
    plain = proved_draw(
        kng.AdaSSP(eqx.tree_at(lambda part: part.weight, bounds, None), 0.5, 1e-6, adjacency, (0.2, 0.3, 0.5)),
        Schema(1 + bounds.intercept),
    )
    assert moment_variances(way)[1:] == [Fraction(LARGEST) ** 2 * one for one in moment_variances(plain)[1:]]


def shift_by_scipy(epsilon, delta):
    def spent(shift):
        first, second = stats.norm.cdf(np.array([0.5 * shift, -0.5 * shift]) - epsilon / shift)
        return first - np.exp(epsilon) * second - delta

    return optimize.brentq(spent, 1e-3, 10.0, xtol=1e-14)


@pytest.mark.parametrize("num_draws", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_noisy_moments_have_the_probabilities_of_the_normal_law_about_weighted_sums(num_draws, monkeypatch):
    """With deviations by hand: half of the noise, or sums without weights, are noticed."""
    monkeypatch.setattr(grid_cells, "_DIGITS", 1)
    mechanism = kng.AdaSSP(bounds_of(), 1.0, 1e-3, "replace", (0.2, 0.3, 0.5))
    way, bits = proved_draw(mechanism, Schema(2)), random.Random(3).getrandbits
    data = way.prepare(with_weights(X, WEIGHTS), Y)
    released = [way.noisy_moments(data, bits) for _ in range(num_draws)]
    numbers = np.array([[least, *moment, matrix[0, 0], matrix[0, 1]] for least, moment, matrix in released])
    features, about = np.column_stack([np.ones(N), X[:, 0]]), Y - 1.0
    gram, moment = (features.T * WEIGHTS) @ features, features.T @ (WEIGHTS * about)
    shift = shift_by_scipy(1.0, 1e-3)
    # |x|² ≤ 2 and |y| ≤ 1 in public units: W·2, 2W·√2 and √2·W·2.
    changes = LARGEST * np.array([2.0, 8.0**0.5, 8.0**0.5])
    on_least, on_moment, on_matrix = changes / (shift * np.sqrt([0.2, 0.3, 0.5]))
    means = [np.linalg.eigvalsh(gram)[0], *moment, gram[0, 0], gram[0, 1]]
    deviations = [on_least, on_moment, on_moment, on_matrix, on_matrix / np.sqrt(2.0)]
    exponents = np.array(way.settings["grid_exponents"])[[0, 1, 1, 2, 3]]
    for column, mean, deviation, unit in zip(numbers.T, means, deviations, 2.0**exponents, strict=True):
        first = round(mean / unit) - 6
        edges = (np.arange(first, first + 14) - 0.5) * unit
        chances = np.diff(stats.norm.cdf((edges - mean) / deviation))
        counts = np.array([np.sum(np.rint(column / unit) == first + number) for number in range(13)])
        assert_cell_frequencies(np.append(counts, len(column) - counts.sum()), np.append(chances, 1 - chances.sum()))


@pytest.mark.parametrize("name", ["AdaSSP", "posterior", "identity"])
def test_releases_are_proved_with_every_rounding_and_say_what_weights_do(name):
    mechanism = made(name, "replace")
    certificate = kng.release(mechanism, X, responses(name), weights=WEIGHTS).certificate
    assert certificate.assurance == "proved"
    assert certificate.mechanism["bounds"]["weight"] == LARGEST
    assert any("counts times its own weight" in one for one in certificate.assumptions)
    # No weight at all may be more than 0.
    assert np.all(np.isfinite(kng.release(mechanism, X, responses(name), weights=np.zeros(N)).value))


def test_moments_are_those_of_repeated_records():
    mechanism, times = made("AdaSSP"), WHOLE.astype(int)
    found = mechanism.prepare(X, Y, weights=WHOLE)
    without = eqx.tree_at(lambda part: part.bounds.weight, mechanism, None, is_leaf=lambda part: part is None)
    expected = without.prepare(np.repeat(X, times, axis=0), np.repeat(Y, times))
    np.testing.assert_allclose(found.gram, expected.gram, rtol=1e-14)
    np.testing.assert_allclose(found.moment, expected.moment, rtol=1e-14)


@pytest.mark.slow
def test_research_draws_are_about_the_weighted_regression():
    y = np.clip(0.3 + 0.5 * (X[:, 0] + 1.0) + 0.4 * (WHOLE > 2), 0.0, 2.0)
    features = np.column_stack([np.ones(N), X[:, 0]])
    expected = np.linalg.solve((features.T * WHOLE) @ features, features.T @ (WHOLE * y))
    mechanism = kng.AdaSSP(bounds_of(), 99.0, 0.5, "replace")
    # Of 3000 copies noise is small.
    data = mechanism.prepare(np.tile(X, (3000, 1)), np.tile(y, 3000), weights=np.tile(WHOLE, 3000))
    draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=20).theta
    np.testing.assert_allclose(draws.reshape(-1, 2).mean(axis=0), expected, atol=1e-3)


def test_records_without_weights_are_not_taken_for_weights_of_1():
    rows = Records(np.column_stack([np.ones(N), X]), Y)
    for name in ("AdaSSP", "posterior"):
        with pytest.raises(TypeError, match="where the bounds declare them"):
            made(name).intake.summarise(rows)
        with pytest.raises(TypeError, match="where the bounds declare them"):
            made(name, weight=None).intake.summarise(WeightedRecords(rows, WEIGHTS))
    with pytest.raises(TypeError, match="per_instance_privacy takes no weights"):
        kng.per_instance_privacy(made("posterior"), with_weights(X, WEIGHTS), Y)
