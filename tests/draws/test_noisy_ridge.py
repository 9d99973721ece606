"""Output perturbation of a ridge regression on a grid: what neighbours do to it, its noise and its refusals."""

from fractions import Fraction

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.draws.noisy_minimizers import NoisyRidge
from tests.draws.test_ada_ssp_draw import assert_delta_is_met

PLANE = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
LINE = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)


def ridge(bounds=PLANE, adjacency="add_remove", regularization=120.0, epsilon=1.0, max_records=50, **changes):
    settings = {"delta": 1e-3, "max_records": max_records, **changes}
    return kng.OutputPerturbation(kng.SquaredLoss(), bounds, regularization, epsilon, adjacency=adjacency, **settings)


def way_of(mechanism) -> NoisyRidge:
    way = proved_draw(mechanism, Schema(mechanism.dimension))
    assert way is not None
    return way


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_no_neighbours_are_farther_apart_than_the_noise_hides(adjacency):
    """In fractions, through the very path of releases: (±a, 1) beside a record at the other end, for all a."""
    mechanism = ridge(LINE, adjacency, 60.0, max_records=200)
    way, found = way_of(mechanism), []
    for size in np.linspace(0.06, 0.26, 15):
        x, y = np.full((199, 1), size), np.ones(199)
        more = np.append(x, [[1.0]], axis=0), np.append(y, -1.0)
        less = (x, y) if adjacency == "add_remove" else (np.append(x, [[-1.0]], axis=0), np.append(y, -1.0))
        one, two = (way.location(way.prepare(*data))[0] for data in (more, less))
        found.append((one - two) ** 2 / way.noise.scale_squared)
    hidden = 2 * mechanism.guarantee.exact_rho
    assert max(found) <= hidden
    # An exchange is stated as a removal and an addition.
    assert max(found) > (0.98 if adjacency == "add_remove" else 0.3) * hidden
    assert_delta_is_met(hidden, 1.0, Fraction("0.001"), 1e-6)


def test_the_minimiser_is_that_of_the_normal_equations():
    """By Cramer's rule, of numbers that float64 cannot solve for, in any order and division."""
    bounds = kng.Bounds(x=([2.0**40], [2.0**40 + 1.0]), y=(0.1, 0.3))
    mechanism = ridge(bounds, regularization=1e-9, max_records=10)
    way, generator = way_of(mechanism), np.random.default_rng(0)
    x, y = 2.0**40 + generator.uniform(size=(9, 1)), generator.uniform(0.1, 0.3, 9)
    rows = [(Fraction(1), Fraction(float(a)), Fraction(float(b))) for a, b in zip(x[:, 0], y, strict=True)]
    a, b, c, p, q = (sum(row[i] * row[j] for row in rows) for i, j in [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2)])
    a, c = a + Fraction(1e-9), c + Fraction(1e-9)
    expected = [(c * p - b * q) / (a * c - b * b), (a * q - b * p) / (a * c - b * b)]
    assert way.location(way.prepare(x, y)) == expected
    order = generator.permutation(9)
    stream = kng.stream(iter([(x[order[:4]], y[order[:4]]), (x[order[4:]], y[order[4:]])]))
    assert way.location(way.prepare(x[order], y[order])) == expected
    assert way.location(way.prepare(stream, None)) == expected


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_the_noise_is_that_which_the_certificate_tells(adjacency):
    mechanism = ridge(adjacency=adjacency)
    way, x = way_of(mechanism), np.linspace(-1.0, 1.0, 30)
    assert float(way.noise.scale_squared) == pytest.approx(1.0 / float(mechanism.gamma_for(2)), rel=1e-12)
    certificate = kng.certify(mechanism, x[:, None], x)
    assert (certificate.assurance, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-3)
    assert certificate.rounding is None
    assert any("max_records" in assumption for assumption in certificate.assumptions)
    with jax.enable_x64(False):
        assert way_of(mechanism).noise == way.noise


def test_what_is_not_built_is_rounded_as_before():
    hull = kng.Bounds(y=(-1.0, 1.0), hull=kng.geometry.FeatureHull.powers(4, 0.0, 1.0))
    mechanism = ridge(hull)
    assert proved_draw(mechanism, Schema(mechanism.dimension)) is None


def test_more_records_than_were_promised_are_refused():
    x = np.linspace(-1.0, 1.0, 51)
    with pytest.raises(kng.ReleaseFailed):
        kng.release(ridge(), x[:, None], x)
