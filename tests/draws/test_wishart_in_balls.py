"""What Wishart noise hides, certain in balls: beside quadrature, and at the scale that float64 finds."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb, ctx
from scipy import integrate, stats

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.draws.wishart_in_balls import _above, _failures, wishart_hides
from kngjax.mechanisms.noise.matrix_noise import wishart_degrees, wishart_scale

LITTLE = Fraction(1, 10**8)
scale_of = jax.jit(wishart_scale, static_argnums=(3, 4))


def hides(epsilon, delta, scale, adjacency=Adjacency.ADD_REMOVE, dimension=3, change=2):
    degrees = wishart_degrees(dimension)
    return wishart_hides(
        Fraction(epsilon), Fraction(delta), Fraction(change), dimension, degrees, Fraction(scale), adjacency
    )


@pytest.mark.parametrize(("epsilon", "scale"), [(0.1, 0.5), (0.5, 0.2), (3.0, 0.05), (0.01, 3.0)])
def test_the_failure_is_that_of_quadrature(epsilon, scale):
    """∫ (f(v) - e^ε f(v - τ))_+ and the other way round, of 1002 degrees and s times them."""
    law = stats.chi2(1002, scale=scale)
    points = np.linspace(0.5, 1.5, 400_001) * 1002 * scale
    one, other = law.pdf(points), law.pdf(points - 2.0)
    grown = np.exp(epsilon)
    failure = max(
        integrate.simpson(np.maximum(first - grown * second, 0.0), x=points)
        for first, second in ((one, other), (other, one))
    )
    assert 1e-12 < failure < 1.0
    assert hides(epsilon, failure * 1.0001, scale)
    assert not hides(epsilon, failure * 0.9999, scale)


@pytest.mark.parametrize(("epsilon", "ratio", "half"), [("0.5", 10, 501), ("0.01", 1, 501), ("0.1", 1, 2), ("3", 2, 5)])
def test_both_directions_have_their_failures(epsilon, ratio, half):
    """∫ (f(v) - e^ε f(v - τ))_+, and the other way round where some outcome has a loss below -ε."""
    law = stats.chi2(2 * half)
    points = np.linspace(0.0, ratio + law.isf(1e-18), 200_001)
    one, other, grown = law.pdf(points), law.pdf(points - ratio), np.exp(float(epsilon))
    expected = [
        integrate.simpson(np.maximum(first - grown * second, 0.0), x=points)
        for first, second in ((one, other), (other, one))
    ]
    with ctx.workprec(200):
        found = [float(failure) for failure in _failures(Fraction(epsilon), Fraction(ratio), half)]
    if ratio / 2 <= float(epsilon):
        assert expected.pop() < 1e-12
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[0] == max(found)


@pytest.mark.parametrize("half", [1, 2, 501])
def test_tails_are_those_of_chi_square_numbers(half):
    with ctx.workprec(100):
        found = [float(_above(half, arb(2 * half * share))) for share in (0.0, 0.5, 0.9, 1.0, 1.1, 2.0)]
    expected = stats.chi2(2 * half).sf([2 * half * share for share in (0.0, 0.5, 0.9, 1.0, 1.1, 2.0)])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.default_cases("0.1-1e-07-3", "3.0-0.001-3")
@pytest.mark.parametrize("dimension", [1, 3, 12])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-7), (0.5, 1e-6), (3.0, 1e-3), (1e-3, 1e-9)])
def test_it_is_certain_at_the_scale_of_float64_and_at_none_that_is_smaller(dimension, epsilon, delta):
    with float64():
        scale = float(scale_of(epsilon, delta, 2.0, dimension, wishart_degrees(dimension)))
    assert hides(epsilon, delta, Fraction(scale) * (1 + LITTLE), dimension=dimension)
    # Where δ is tiny float64 rounds outward by more.
    assert not hides(epsilon, delta, Fraction(scale) * (1 - 100 * LITTLE), dimension=dimension)


def test_an_exchange_is_a_removal_and_an_addition():
    epsilon, delta, grown = 0.8, 1e-6, 1.0 + np.exp(0.4)
    with float64():
        scale = float(scale_of(0.4, delta / grown, 2.0, 3, wishart_degrees(3)))
    assert hides(epsilon, delta, Fraction(scale) * (1 + LITTLE), Adjacency.REPLACE)
    assert not hides(epsilon, delta, Fraction(scale) * (1 - LITTLE), Adjacency.REPLACE)


@pytest.mark.parametrize("degrees", [4, 7, 3])
def test_degrees_without_a_sum_or_without_privacy_are_refused(degrees):
    assert not wishart_hides(Fraction(50), Fraction(1, 2), Fraction(1), 3, degrees, Fraction(10**6), Adjacency.REPLACE)


def test_one_sided_noise_of_few_degrees_betrays_a_record():
    """P(V ≤ τ), whatever ε: of d + 3 degrees it is that of a chi-square number of 4 of them."""
    least = stats.chi2(4, scale=2.0).cdf(1.0)
    hidden = [
        wishart_hides(Fraction(90), Fraction(delta), Fraction(1), 3, 6, Fraction(2), Adjacency.ADD_REMOVE)
        for delta in (least * 0.999, least * 1.001)
    ]
    assert hidden == [False, True]
