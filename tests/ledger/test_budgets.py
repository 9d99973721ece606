"""Budgets: exact sums, rules that hold for adaptive choices, and what each refuses."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.accounting import Guarantee
from kngjax.ledger.budgets import Budget, digits
from tests.accounting.guarantees_drawn import SIMPLE, made

PURE = Guarantee.pure("0.1", "replace")
RANGE = Guarantee.bounded_range("0.1", "replace")
APPROXIMATE = Guarantee.approximate("0.1", "1e-7", "replace")
ZCDP = Guarantee.zcdp("0.01", "replace")
GAUSSIAN = Guarantee.gaussian("0.1", "replace", delta="1e-6")


@pytest.mark.parametrize("epsilon", [0.1, "0.1", Fraction(1, 10)])
def test_three_tenths_hold_three_tenths_and_no_fourth(epsilon):
    # 0.1 + 0.1 + 0.1 > 0.3 in float64.
    one, budget = Guarantee.pure(epsilon, "replace"), Budget.pure(0.3)
    assert budget.admits([(one, 3)])
    assert budget.admits([(one, 1)] * 3)
    assert not budget.admits([(one, 4)])
    assert not budget.admits([(one, 3), (Guarantee.pure("1e-300", "replace"), 1)])
    assert Budget.pure(1).admits([(Guarantee.pure(Fraction(1, 3), "replace"), 3)])


def test_what_each_rule_takes_of_a_guarantee():
    assert Budget.zcdp("0.005").admits([(PURE, 1)])
    assert Budget.zcdp("0.00125").admits([(RANGE, 1)])
    assert not Budget.zcdp("0.00124").admits([(RANGE, 1)])
    assert not Budget.zcdp(10).admits([(APPROXIMATE, 1)])
    assert not Budget.zcdp(10).admits([(PURE, 1), (APPROXIMATE, 1)])
    for one in (APPROXIMATE, ZCDP, GAUSSIAN):
        assert not Budget.pure(100).admits([(one, 1)])
    assert Budget.approximate("0.3", "2e-7").admits([(APPROXIMATE, 2), (RANGE, 1)])
    assert not Budget.approximate("0.3", "1.9e-7").admits([(APPROXIMATE, 2)])
    # Stated at no delta at all.
    assert not Budget.approximate(100, "0.1").admits([(ZCDP, 1)])
    assert Budget.approximate(GAUSSIAN.epsilon, "1e-6").admits([(GAUSSIAN, 1)])


def test_a_converted_budget_is_what_zcdp_allows():
    budget = Budget.converted(1, 1e-6, 0)
    order = 1.0 + np.logspace(-3, 4, 400_001)

    def log_delta(rho):
        """Canonne, Kamath and Steinke (2020), Proposition 12."""
        excess = order - 1.0
        return np.min(excess * (order * rho - 1.0) + order * np.log1p(-1.0 / order) - np.log(excess))

    # The grid of orders is off by some 1e-9.
    assert log_delta(float(budget.rho)) <= math.log(1e-6) + 1e-8
    assert log_delta(float(budget.rho) * (1.0 + 1e-6)) > math.log(1e-6)
    most = budget.rho // RANGE.exact_rho
    assert most > 10
    assert budget.admits([(RANGE, int(most))])
    assert not budget.admits([(RANGE, int(most) + 1)])
    # By the sum of pure epsilon, where that is less.
    assert budget.admits([(PURE, 10)])
    assert Budget.converted("0.1", 1e-6).admits([(PURE, 1)])


def test_two_ways_of_adding_up_are_not_mixed_where_both_have_a_delta():
    # Two filters with a delta each: paths that end in the one and in the other may use up both.
    spent = [(Guarantee.approximate("0.5", "1e-6", "replace"), 1)]
    assert not Budget.converted(1, "1e-6").admits(spent)
    assert not Budget.approximate(1, "1e-6").admits([(RANGE, 11)])
    assert Guarantee.composed([RANGE] * 11).at(delta=1e-6) < 1.0


@settings(max_examples=25)
@given(st.lists(st.tuples(SIMPLE, st.integers(1, 3)), max_size=4), st.integers(1, 60), st.integers(1, 30))
def test_the_sums_are_exact(recipes, epsilon, delta):
    parts = [(made(recipe), count) for recipe, count in recipes]
    losses, failures = [], Fraction(0)
    for one, count in parts:
        losses += [one.exact_epsilon] * count
        failures += one.exact_delta * count
    finite = None not in losses
    total = sum((loss for loss in losses if loss is not None), Fraction(0))
    limits = Fraction(epsilon, 10), Fraction(delta, 10**6)
    assert Budget.pure(limits[0]).admits(parts) == (finite and total <= limits[0] and failures == 0)
    assert Budget.approximate(*limits).admits(parts) == (finite and total <= limits[0] and failures <= limits[1])
    rhos = [one.exact_rho for one, count in parts for _ in range(count)]
    assert Budget.zcdp(limits[0]).admits(parts) == (None not in rhos and sum(rhos) <= limits[0])


ETA = Fraction(1, 10**8)


@pytest.mark.parametrize("one", [PURE, RANGE, ZCDP], ids=lambda one: str(one.kind))
def test_a_distance_is_held_by_budgets_with_room_for_it(one):
    near = one.within(ETA)
    assert not Budget.pure(100).admits([(near, 1)])
    assert not Budget.zcdp(100).admits([(near, 1)])
    budget = Budget.zcdp(10 * one.exact_rho, distance=3 * ETA)
    assert budget.admits([(near, 3)])
    assert budget.admits([(Guarantee.composed([near] * 3), 1), (one, 7)])
    assert not budget.admits([(near, 4)])
    assert not budget.admits([(near, 3), (one, 8)])
    assert not Budget.converted(1, 1e-6, 0).admits([(near, 1)])
    held = Budget.converted(1, 1e-6, 3 * ETA)
    assert held.admits([(near, 1)])
    assert not held.admits([(near, 4)])


def test_a_near_release_costs_its_delta_in_an_approximate_budget():
    near = PURE.within(ETA)
    assert near.delta == pytest.approx((1.0 + math.exp(0.1)) * 1e-8)
    assert Budget.approximate("0.3", 3 * near.exact_delta).admits([(near, 3)])
    assert not Budget.approximate("0.3", 3 * near.exact_delta - Fraction(1, 10**30)).admits([(near, 3)])
    assert not Budget.approximate("0.29", "1e-3").admits([(near, 3)])


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), ("0.01", "1e-9"), (8, 1e-3), (300, 1e-6)])
def test_a_converted_budget_keeps_a_part_of_delta_for_distances(epsilon, delta):
    """The rho and the distance together are within (ε, δ): halving what is kept would not be."""
    budget = Budget.converted(epsilon, delta)
    whole = Guarantee.zcdp(budget.rho, "replace").within(budget.distance)
    assert whole.at(epsilon=float(budget.epsilon)) <= float(budget.delta) * (1.0 + 1e-9)
    further = Guarantee.zcdp(budget.rho, "replace").within(budget.distance * 2)
    assert further.at(epsilon=float(budget.epsilon)) > float(budget.delta) * 1.05
    # All of it without distances.
    assert budget.rho < Budget.converted(epsilon, delta, 0).rho
    with pytest.raises(ValueError, match="leaves nothing of delta"):
        Budget.converted(epsilon, delta, delta)


@pytest.mark.parametrize("epsilon", ["1e-320", "1e-160"])
def test_a_converted_budget_too_small_for_float64_is_refused(epsilon):
    with pytest.raises(ValueError, match="than float64 can say"):
        Budget.converted(epsilon, 1e-9)


ADVICE = [
    (Budget.pure(1), PURE.within(ETA), r"takes no release with a delta.*Budget\.approximate"),
    (Budget.pure(1), APPROXIMATE, r"Budget\.approximate"),
    (Budget.zcdp(1), PURE.within(ETA), r"Budget\.zcdp\(rho, distance=...\)"),
    (Budget.zcdp(1), APPROXIMATE, r"rho, which is not known.*Budget\.approximate"),
    (Budget.converted(1, 1e-6), APPROXIMATE, r"rho, which is not known"),
    (Budget.approximate(1, 1e-6), ZCDP, "^$"),
    (Budget.pure("0.05"), PURE, "^$"),
]


@pytest.mark.parametrize(("budget", "one", "words"), ADVICE)
def test_a_refusal_names_the_budget_that_would_take_it(budget, one, words):
    assert not budget.admits([(one, 1)])
    assert re.search(words, budget.advice([(one, 1)]))


BUDGETS = {
    "zcdp with a distance": Budget.zcdp(1, distance="1e-6"),
    "pure": Budget.pure("0.3"),
    "zcdp": Budget.zcdp(Fraction(1, 3)),
    "approximate": Budget.approximate(1, "1e-6"),
    "converted": Budget.converted(1, "1e-6"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_its_record_and_explains_itself(name):
    budget = BUDGETS[name]
    assert Budget.from_dict(budget.to_dict()) == budget
    assert budget.admits([])
    assert budget.explain()
    assert budget.left([])
    assert budget.price([(RANGE, 2)])


def test_words():
    assert Budget.pure("0.3").left([(PURE, 2)]) == "0.1 of epsilon = 0.3"
    assert Budget.approximate(1, "1e-6").left([(APPROXIMATE, 1)]) == "0.9 of epsilon = 1 and 9e-07 of delta = 1e-06"
    assert Budget.zcdp("0.01").price([(RANGE, 2)]) == "rho = 0.0025"
    assert Budget.pure(1).price([(ZCDP, 1)]) == "no finite epsilon"
    assert Budget.pure(1).left([(Guarantee.pure(0.5000000023283065, "replace"), 1)]) == "0.4999999 of epsilon = 1"
    assert Budget.pure(1).left([(Guarantee.pure(0.99999999999999994, "replace"), 1)]) == "0 of epsilon = 1"
    assert Budget.pure(Fraction(1, 3)).left([(PURE, 1)]) == "0.23333333 of epsilon = 1/3 (about 0.333333)"
    assert digits(Fraction(1, 3)) == "1/3 (about 0.333333)"
    assert digits(Fraction(1, 3**90)) == "about 1.14574263767e-43"
    assert digits(Fraction(10) ** 400) == "1" + "0" * 400


REFUSED = {
    "distance of one": lambda: Budget.zcdp(1, distance=1),
    "negative distance": lambda: Budget.zcdp(1, distance=-1),
    "zero": lambda: Budget.pure(0),
    "negative": lambda: Budget.zcdp(-1),
    "NaN": lambda: Budget.pure(math.nan),
    "infinite": lambda: Budget.zcdp(math.inf),
    "no delta": lambda: Budget.approximate(1, 0),
    "delta of one": lambda: Budget.approximate(1, 1),
    "converted without delta": lambda: Budget.converted(1, 0),
    "words": lambda: Budget.pure("much"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_budget(name):
    with pytest.raises(ValueError, match=r"must|meets|distance"):
        REFUSED[name]()
