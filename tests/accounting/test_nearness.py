"""Laws near others in total variation: at every ε, in sums, in JSON, and attained by explicit laws."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.accounting import Guarantee, Kind, compare
from tests.accounting.guarantees_drawn import SIMPLE, hockey_stick, made

ETA = Fraction(1, 10**6)
DISTANCES = st.one_of(st.floats(1e-12, 1e-3), st.integers(1, 99).map(lambda number: Fraction(number, 10**7 + 1)))


@given(st.floats(0.05, 3.0), st.floats(1e-6, 0.01), st.floats(0.0, 3.0))
def test_it_covers_what_moves_both_laws_and_not_much_more(bound, distance, epsilon):
    """Randomised response, of which one law gains η on one outcome and the other loses it there."""
    likely = 1.0 / (1.0 + math.exp(-bound))
    moved = (
        np.array([likely + distance, 1.0 - likely - distance]),
        np.array([1.0 - likely - distance, likely + distance]),
    )
    if moved[0][1] < 0.0:
        return
    near = Guarantee.pure(bound, "replace").within(distance)
    delta = hockey_stick(*moved, epsilon)
    assert delta <= near.at(epsilon=epsilon) + 1e-15
    if epsilon <= bound:
        # Attained: half the distance would be too little.
        assert delta > Guarantee.pure(bound, "replace").within(distance / 2.0).at(epsilon=epsilon)


@settings(max_examples=60)
@given(SIMPLE, DISTANCES)
def test_at_every_epsilon_it_is_the_other_law_and_the_distance(recipe, distance):
    ideal = made(recipe)
    near = ideal.within(distance)
    assert near.kind is Kind.NEAR
    assert near.exact_rho is None
    assert near.mu is None
    assert near.exact_distance == (Fraction(repr(distance)) if isinstance(distance, float) else distance)
    assert near.apart() == (ideal, near.exact_distance)
    for epsilon in (0.0, 0.3, 2.0):
        found = near.at(epsilon=epsilon)
        least = min(1.0, ideal.at(epsilon=epsilon) + (1.0 + math.exp(epsilon)) * float(distance))
        assert found <= least * (1.0 + 1e-11)
        assert (near.exact_epsilon is not None and epsilon >= near.exact_epsilon) or found >= least * (1.0 - 1e-12)
    for delta in (1e-7, 1e-2, 0.3):
        epsilon = near.at(delta=delta)
        if epsilon < math.inf:
            assert near.at(epsilon=epsilon) <= delta * (1.0 + 1e-11)
            assert epsilon >= ideal.at(delta=delta) * (1.0 - 1e-11)
        else:
            # None: not far from the ε of the other law at half of δ either.
            other = ideal.at(delta=delta / 2.0)
            assert (1.0 + math.exp(min(other, 700.0))) * float(distance) >= delta / 2.0 * (1.0 - 1e-9)
    if near.exact_epsilon is not None:
        assert near.exact_delta >= ideal.exact_delta + near.exact_distance * Fraction(1.0 + math.exp(ideal.epsilon))
        assert near.at(delta=near.delta) <= near.epsilon


def test_the_numbers_of_a_release():
    near = Guarantee.bounded_range(1, "replace").within("1e-7")
    assert near.epsilon == 1.0
    assert near.delta == pytest.approx((1.0 + math.e) * 1e-7, rel=1e-13)
    assert near.delta >= (1.0 + math.e) * 1e-7
    assert near.distance == 1e-7
    assert near.explain() == (
        "(1, 3.71829e-07)-differential privacy, as it lies within 1e-07 in total variation of pure 1-differential "
        "privacy, and 0.125-zCDP (bounded range, rho = epsilon^2/8), for any two data sets of the same size that "
        "differ in one record"
    )
    # A larger δ leaves a smaller ε.
    assert near.at(delta=1e-3) == pytest.approx(Guarantee.bounded_range(1, "replace").at(delta=1e-3 - 3.7e-7), rel=1e-4)


def test_distances_add_up():
    pure = Guarantee.pure("0.5", "replace")
    assert pure.within(0) is pure
    assert pure.within("1e-7").within("2e-7") == pure.within("3e-7")
    for wrong in (-1e-9, 1, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"distance|finite"):
            pure.within(wrong)
    with pytest.raises(ValueError, match="below 1"):
        pure.within("0.5").within("0.5")
    total = Guarantee.composed([pure.within("1e-7")] * 3 + [Guarantee.zcdp("0.1", "replace").within("2e-7")])
    assert total.exact_distance == Fraction(5, 10**7)
    assert total.exact_rho is None
    ideal, distance = total.apart()
    assert ideal == Guarantee.composed([pure] * 3 + [Guarantee.zcdp("0.1", "replace")])
    # At every ε the δ of the ideal transcript, and (1 + e^ε) times the sum of the distances.
    for epsilon in (1.0, 3.0, 5.0):
        expected = ideal.at(epsilon=epsilon) + (1.0 + math.exp(epsilon)) * float(distance)
        assert total.at(epsilon=epsilon) == pytest.approx(expected, rel=1e-9)
    assert total.within("1e-7") == ideal.within("6e-7")
    # Of three alike, what each states adds up to less than (1 + e^{3ε}) times the distances.
    three = Guarantee.composed([pure.within("1e-7")] * 3)
    assert three.exact_delta == 3 * pure.within("1e-7").exact_delta
    assert three.at(epsilon=1.5) == three.delta < (1.0 + math.exp(1.5)) * 3e-7


def test_what_is_near_no_longer_is_pure():
    """A law near a pure one may tell all with a small probability."""
    near = Guarantee.pure("0.5", "replace").within(ETA)
    assert (near.rho, near.at(delta=0.0)) == (None, math.inf)
    whole = Guarantee.composed([near, Guarantee.pure(1, "replace")])
    assert (whole.rho, whole.at(delta=0.0)) == (None, math.inf)
    assert compare(whole, 1e-4)["zcdp"] == math.inf
    with pytest.raises(ValueError, match="to_pld"):
        near.to_dp_event()


def test_no_finite_epsilon_is_stated_where_the_distance_leaves_none():
    far = Guarantee.pure(50, "replace").within(ETA)
    assert (far.epsilon, far.delta) == (math.inf, 1e-6)
    assert Guarantee.from_dict(json.loads(json.dumps(far.to_dict()))) == far
    assert far.at(epsilon=60.0) == 1.0
    assert Guarantee.composed([far, far]).at(delta=0.1) == math.inf
    with pytest.raises(ValueError, match="no finite epsilon"):
        far.to_pld()


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(SIMPLE, DISTANCES), min_size=1, max_size=4), st.sampled_from(["replace", "add_remove"]))
def test_round_trips_are_exact(recipes, adjacency):
    parts = [made(recipe, adjacency).within(distance) for recipe, distance in recipes]
    whole = Guarantee.composed(parts)
    for guarantee in (*parts, whole, Guarantee.composed([made(recipes[0][0], adjacency), *parts]), whole.within(ETA)):
        fields = json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))
        assert Guarantee.from_dict(fields) == guarantee
        if guarantee.exact_epsilon is None:
            continue
        with pytest.raises(ValueError, match="fit together"):
            Guarantee.from_dict(fields | {"delta": fields["distance"] / 2.0, "exactly": {}})


def test_a_near_law_without_its_distance_is_refused():
    fields = Guarantee.pure(1, "replace").within(ETA).to_dict()
    for name in ("distance", "ideal"):
        with pytest.raises((ValueError, KeyError)):
            Guarantee.from_dict({other: value for other, value in fields.items() if other != name})


def test_an_exchange_keeps_the_distance():
    one = Guarantee.gaussian("0.2", "add_remove", delta=1e-6).within(ETA)
    assert one.to_replace() == Guarantee.gaussian("0.4", "replace", delta=1e-6).within(ETA)
    pure = Guarantee.pure("0.5", "add_remove")
    assert pure.within(ETA).to_replace() == Guarantee.pure(1, "replace").within(ETA)


def test_what_a_composition_states_survives_an_exchange():
    """As of iterations with Gaussian noise, stated at the δ that was asked for."""
    stated = Guarantee.composed([Guarantee.gaussian("0.1", "add_remove")] * 10).stated("1e-6")
    twice = stated.to_replace()
    assert twice.exact_delta == Fraction(1, 10**6)
    assert twice.epsilon == Guarantee.gaussian("0.2", "replace").epsilon or twice.epsilon < math.inf
    assert twice.epsilon == Guarantee.composed([Guarantee.gaussian("0.2", "replace")] * 10).at(delta=1e-6)
    assert Guarantee.from_dict(json.loads(json.dumps(twice.to_dict()))) == twice
