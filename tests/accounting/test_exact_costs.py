"""Decimals stay decimals: sums are exact, and floats bound them from outside and no further than they must."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kngjax.accounting import Guarantee
from kngjax.accounting.exact_costs import exactly, inward, outward, root_outward

POSITIVE = st.fractions(Fraction(1, 10**6), 10**6)


@pytest.mark.parametrize("tenth", ["0.1", 0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_tenth_three_times_fits_three_tenths(tenth):
    assert 0.1 + 0.1 + 0.1 > 0.3  # what is at stake
    for guarantee in (Guarantee.pure, Guarantee.bounded_range):
        three = Guarantee.composed([guarantee(tenth, "replace")] * 3)
        assert three.exact_epsilon == Fraction(3, 10)
        assert three.epsilon == 0.3
        assert three.at(delta=0.0) == 0.3
        assert three.epsilon <= 0.3 < Guarantee.composed([three, guarantee("1e-9", "replace")]).epsilon


@pytest.mark.slow
@given(st.integers(1, 60), st.integers(1, 10**6), st.integers(0, 9))
def test_any_number_of_equal_decimal_parts_fits_the_decimal_budget(count, number, places):
    part, budget = Decimal(number).scaleb(-places), Decimal(number * count).scaleb(-places)
    for given_part in (part, str(part), float(part)):
        whole = Guarantee.composed([Guarantee.pure(given_part, "replace")] * count)
        assert whole.epsilon == float(budget)
        assert whole.exact_rho == count * Fraction(part) ** 2 / 2 <= exactly(whole.rho)


@given(POSITIVE)
def test_rounding_goes_outward_and_by_one_float_at_most(number):
    high, low, root = outward(number), inward(number), root_outward(number)
    assert exactly(low) <= number <= exactly(high)
    assert exactly(math.nextafter(high, 0.0)) < number < exactly(math.nextafter(low, math.inf))
    assert exactly(math.nextafter(root, 0.0)) ** 2 < number <= exactly(root) ** 2


@given(st.floats(0.0, 1e300))
def test_floats_are_the_decimals_that_they_print_as(number):
    assert exactly(number) == Fraction(Decimal(repr(number)))
    assert outward(exactly(number)) == inward(exactly(number)) == number


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "many", "1/0"])
def test_what_is_no_finite_number_is_refused(wrong):
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        Guarantee.pure(wrong, "replace")


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="rho must be a number or its decimal digits, got bool"):
        Guarantee.zcdp(True, "replace")


def test_tiny_and_huge_numbers_round_outward_too():
    assert outward(Fraction("1e-400")) == 5e-324
    assert inward(Fraction("1e-400")) == 0.0
    assert outward(Fraction(10**400)) == math.inf
