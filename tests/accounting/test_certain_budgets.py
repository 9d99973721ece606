"""Budgets that are kept for certain: beside float64's accountants, a little above what they say and a little below."""

import math
from fractions import Fraction

import pytest

from kngjax.accounting import accountants, certain_budgets, conversions
from kngjax.accounting.certain_budgets import is_kept
from kngjax.accounting.guarantees import Adjacency, Guarantee

ADJACENCY = Adjacency.REPLACE
DELTA = Fraction(1, 10**6)
LITTLE = Fraction(1, 10**9)


def assert_bound(whole, epsilon, delta=DELTA):
    """That this ε is the least at which it is certain, to a part in 10⁹."""
    assert is_kept(whole, Fraction(epsilon) * (1 + LITTLE), delta)
    assert not is_kept(whole, Fraction(epsilon) * (1 - LITTLE), delta)


def test_pure_parts_add_up_without_error():
    """Ten times 1/10 is 1 in fractions, and in no binary arithmetic."""
    whole = Guarantee.composed([Guarantee.pure(0.1, ADJACENCY)] * 10)
    assert is_kept(whole, Fraction(1), Fraction(0))
    assert not is_kept(whole, Fraction(1) - Fraction(1, 10**30), Fraction(0))


def test_approximate_parts_add_up_without_error():
    whole = Guarantee.composed([Guarantee.approximate(0.1, 1e-7, ADJACENCY)] * 3)
    assert is_kept(whole, Fraction(3, 10), Fraction(3, 10**7))
    assert not is_kept(whole, Fraction(3, 10), Fraction(3, 10**7) - Fraction(1, 10**30))


@pytest.mark.parametrize("mu", [1e-3, 0.3, 4.0])
def test_gaussian_parts_are_as_one(mu):
    whole = Guarantee.composed([Guarantee.gaussian(mu, ADJACENCY)] * 9)
    assert_bound(whole, conversions.gaussian_epsilon(3.0 * mu, float(DELTA)))


def test_gaussian_parts_by_their_profile_leave_the_rest_to_others():
    parts = [Guarantee.gaussian(0.2, ADJACENCY), Guarantee.pure(0.05, ADJACENCY)]
    whole = Guarantee.composed([*parts, Guarantee.approximate(0.1, 4e-7, ADJACENCY)])
    assert_bound(whole, 0.15 + conversions.gaussian_epsilon(0.2, 6e-7))


@pytest.mark.parametrize(("loss", "count"), [(0.01, 400), (0.3, 100), (1e-4, 10_000)])
def test_many_pure_parts_are_zcdp(loss, count, monkeypatch):
    """By the best order, which is a few parts in 10⁹ of ε off in float64."""
    monkeypatch.setattr(certain_budgets, "_keep_by_law", lambda *_: False)
    whole = Guarantee.composed([Guarantee.pure(loss, ADJACENCY)] * count)
    assert_bound(whole, conversions.zcdp_epsilon(count * loss**2 / 2, float(DELTA)))


def test_zcdp_beside_parts_without_it(monkeypatch):
    monkeypatch.setattr(certain_budgets, "_keep_by_law", lambda *_: False)
    parts = [Guarantee.pure(0.01, ADJACENCY)] * 400 + [Guarantee.approximate(0.1, 4e-7, ADJACENCY)]
    assert_bound(Guarantee.composed(parts), 0.1 + conversions.zcdp_epsilon(400 * 0.01**2 / 2, 6e-7))


def test_advanced_composition():
    parts = [Guarantee.approximate(0.01, 1e-9, ADJACENCY)] * 100 + [Guarantee.approximate(0.02, 1e-9, ADJACENCY)] * 100
    whole = Guarantee.composed(parts)
    # The same δ' = 8·10⁻⁷ with δ = 1 - (1-δ')Π(1-δ_k), which is a little less than δ' + Σδ_k.
    less = -math.expm1(math.log1p(-8e-7) + 200 * math.log1p(-1e-9))
    assert_bound(whole, accountants.advanced_epsilon(whole, less))
    assert not is_kept(whole, Fraction(2), Fraction(200, 10**9))


def test_stated_gaussian_parts_are_checked():
    """Each states (ε_k, δ_k) by float64; with one that says more than is true nothing is certain by these sums."""
    loss = conversions.gaussian_epsilon(0.1, 1e-8)
    stated = Guarantee.gaussian(0.1, ADJACENCY, loss, 1e-8)
    low = Guarantee(stated.kind, ADJACENCY, stated.exact_epsilon, stated.exact_delta, stated.exact_rho * 2)
    wishart = Guarantee.approximate(0.1, 1e-8, ADJACENCY)
    assert certain_budgets._are_as_stated(((stated, 1), (wishart, 1)))
    assert not certain_budgets._are_as_stated(((low, 1), (wishart, 1)))
    assert not certain_budgets._are_as_stated(((Guarantee.gaussian(0.1, ADJACENCY), 1),))


@pytest.mark.parametrize(
    "part",
    [
        Guarantee.zcdp(0.1, ADJACENCY),
        Guarantee.pure(0.1, ADJACENCY).within(1e-9),
    ],
)
def test_of_other_kinds_nothing_is_certain(part):
    assert not is_kept(part, Fraction(50), Fraction(1, 2))


def test_without_delta_only_pure_parts_are_certain():
    assert not is_kept(Guarantee.gaussian(0.1, ADJACENCY), Fraction(50), Fraction(0))
    assert is_kept(Guarantee.pure(0.1, ADJACENCY), Fraction(1, 10), Fraction(0))
