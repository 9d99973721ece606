"""The exact profile of Gaussian noise in balls, beside quadrature of its definition."""

import functools
from fractions import Fraction

import numpy as np
import pytest

from kngjax.accounting.gaussian_in_balls import is_hidden


@functools.cache
def rule():
    return np.polynomial.legendre.leggauss(400)


def profile_by_quadrature(shift, epsilon):
    """∫ max(0, φ(x - s) - e^ε φ(x)) dx, by Gauss and Legendre from where the integrand begins."""
    start = epsilon / shift + shift / 2.0
    nodes, weights = rule()
    x = start + (nodes + 1.0) * 20.0
    density = np.exp(-0.5 * (x - shift) ** 2) - np.exp(epsilon - 0.5 * x**2)
    return float(20.0 * weights @ density / np.sqrt(2.0 * np.pi))


@pytest.mark.parametrize(
    ("shift", "epsilon"), [(0.05, 0.0), (0.05, 0.3), (0.4, 1.0), (1.0, 0.3), (1.0, 4.0), (3.0, 0.0), (3.0, 4.0)]
)
def test_the_profile_is_that_of_its_definition(shift, epsilon):
    delta = profile_by_quadrature(shift, epsilon)
    square, level = Fraction(shift) ** 2, Fraction(epsilon)
    assert is_hidden(square, level, Fraction(delta) * Fraction(10**9 + 10, 10**9))
    assert not is_hidden(square, level, Fraction(delta) * Fraction(10**9 - 10, 10**9))


def test_tails_that_float64_cannot_tell_from_zero_are_told():
    # δ of s = 1 at ε = 60 is about e^-1774.
    assert is_hidden(Fraction(1), Fraction(60), Fraction(1, 10**760))
    assert not is_hidden(Fraction(1), Fraction(60), Fraction(1, 10**790))
    assert not is_hidden(Fraction(1), Fraction(60), Fraction(0))
