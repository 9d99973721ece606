"""What a guarantee of one record says of several: against explicit laws on the way, and against an exchange."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.accounting import Guarantee, Kind
from kngjax.accounting.exchanges import of_records
from tests.accounting.guarantees_drawn import SIMPLE, hockey_stick, made


def numbers(guarantee):
    return guarantee.exact_epsilon, guarantee.exact_delta, guarantee.exact_rho, guarantee.exact_distance


@settings(max_examples=60)
@given(SIMPLE)
def test_two_records_are_an_exchange_and_one_is_itself(recipe):
    guarantee = made(recipe, "add_remove")
    assert of_records(guarantee, 1) is guarantee
    try:
        exchange = guarantee.to_replace()
    except ValueError:
        with pytest.raises(ValueError, match="nothing is left"):
            of_records(guarantee, 2)
        return
    two = of_records(guarantee, 2)
    assert numbers(two) == numbers(exchange)
    assert two.adjacency == guarantee.adjacency


@given(st.floats(0.05, 1.0), st.floats(1e-5, 1e-2), st.integers(2, 5))
def test_laws_that_lose_the_most_at_every_step_are_covered_and_no_less_would_do(epsilon, delta, number):
    """Each law gives the first outcome all that (ε, δ) allows beside the law before."""
    first = [1e-4]
    while len(first) <= number:
        first.append(math.exp(epsilon) * first[-1] + delta)
    if first[-1] > 0.5:
        return
    law, last = (1.0 - first[0], first[0]), (1.0 - first[-1], first[-1])
    bound = of_records(Guarantee.approximate(epsilon, delta, "replace"), number)
    assert bound.exact_epsilon == number * Fraction(repr(epsilon))
    lost = hockey_stick(law, last, bound.epsilon)
    assert bound.delta * (1.0 - 1e-9) <= lost <= bound.delta * (1.0 + 1e-9)


def test_a_great_many_records_take_no_time():
    """δ(e^{kε} - 1)/(e^ε - 1): a sum of a million terms took half a minute."""
    bound = of_records(Guarantee.approximate("1e-6", "1e-30", "replace"), 10**6)
    true = 1e-30 * math.expm1(1.0) / math.expm1(1e-6)
    assert true * (1.0 - 1e-12) <= bound.delta <= true * (1.0 + 1e-9)


def test_gaussian_noise_is_that_of_a_larger_sensitivity():
    guarantee = Guarantee.gaussian("0.1", "replace", delta="1e-6")
    assert of_records(guarantee, 7) == Guarantee.gaussian("0.7", "replace", delta="1e-6")
    assert of_records(Guarantee.zcdp("0.01", "replace"), 3).exact_rho == Fraction(9, 100)


def test_parts_and_distances_stay_what_they_are():
    both = Guarantee.composed([Guarantee.pure("0.1", "replace"), Guarantee.zcdp("0.01", "replace")]).stated("1e-6")
    near, three = both.within("1e-9"), of_records(both, 3)
    assert {part.kind: part.exact_rho for part, _ in three.parts} == {
        Kind.PURE: Fraction(9, 200),
        Kind.ZCDP: Fraction(9, 100),
    }
    assert three.exact_delta == Fraction(1, 10**6)
    assert of_records(near, 3).apart() == (three, Fraction(1, 10**9))
    patients = Guarantee.pure("0.1", "replace").of("patient")
    assert of_records(patients, 3).unit == "patient"


def test_where_nothing_is_left_it_says_so():
    with pytest.raises(ValueError, match="that many records differ"):
        of_records(Guarantee.approximate("1", "1e-6", "replace"), 20)
    with pytest.raises(ValueError, match="that many records differ"):
        of_records(Guarantee.approximate("1", "1e-6", "replace"), 10**9)
