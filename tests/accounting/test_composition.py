"""Composition is associative and order-free, exactly, and covers what explicit mechanisms tell together."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.accounting import Adjacency, Guarantee, conversions
from tests.accounting.guarantees_drawn import FAILURES, LOSSES, SIMPLE, hockey_stick, made, product


@st.composite
def groupings(draw, count):
    """Numbers below `count` in some order, in groups, of which the first two may be one."""
    order = draw(st.permutations(range(count)))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, count - 1)), max_size=3)))
    groups = [order[first:last] for first, last in zip([0, *cuts], [*cuts, count], strict=True)]
    return [group for group in groups if group]


CASES = st.lists(SIMPLE, min_size=1, max_size=6).flatmap(
    lambda recipes: st.tuples(st.just(recipes), groupings(len(recipes)), groupings(len(recipes)))
)


def together(parts, groups):
    composed = [Guarantee.composed([parts[place] for place in group]) for group in groups]
    return Guarantee.composed([Guarantee.composed(composed[:2]), *composed[2:]])


@pytest.mark.slow
@given(CASES)
def test_order_and_grouping_do_not_matter(case):
    parts = [made(recipe) for recipe in case[0]]
    first, second = together(parts, case[1]), together(parts, case[2])
    assert first == second == Guarantee.composed(parts)
    assert hash(first) == hash(second)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())
    assert first.at(delta=1e-4) == second.at(delta=1e-4)
    assert first.at(epsilon=1.0) == second.at(epsilon=1.0)
    if all(part.exact_rho is not None for part in parts):
        assert first.exact_rho == sum(part.exact_rho for part in parts)
    else:
        assert first.rho is None
    assert first.exact_delta == sum(part.exact_delta for part in parts)


@pytest.mark.slow
@given(st.lists(SIMPLE, min_size=1, max_size=6))
@settings(max_examples=60)
def test_round_trips_are_exact(recipes):
    parts = [made(recipe) for recipe in recipes]
    for guarantee in (*parts, Guarantee.composed(parts)):
        fields = json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))
        back = Guarantee.from_dict(fields)
        assert back == guarantee
        assert back.to_dict() == fields
        assert back.explain() == guarantee.explain()


@given(st.lists(SIMPLE, min_size=1, max_size=4), st.floats(1e-6, 0.5))
def test_more_releases_cost_more(recipes, delta):
    parts = [made(recipe) for recipe in recipes]
    whole = Guarantee.composed(parts)
    # A table's own ε at δ is not used where it is stated at another δ, nor bounded range's profile.
    assert whole.at(delta=delta) >= max(part.at(delta=delta) for part in parts) * (1.0 - 1e-9)
    assert whole.epsilon >= max(part.epsilon for part in parts)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.05, 1.5)), min_size=1, max_size=5), st.floats(0.0, 6.0))
def test_pure_and_bounded_range_releases_together(kinds, epsilon):
    """Randomised responses, and pairs of bounded range that attain it at some ε, drawn independently."""
    parts, first, second = [], np.ones(1), np.ones(1)
    for is_ranged, bound in kinds:
        top = 0.75 * bound if is_ranged else bound
        width = bound if is_ranged else 2.0 * bound
        # Two outcomes with log-ratios top and top - width.
        likely = -math.expm1(top - width) / -math.expm1(-width)
        other = likely * math.exp(-top)
        first, second = (
            np.outer(law, [place, 1.0 - place]).ravel() for law, place in ((first, likely), (second, other))
        )
        parts.append((Guarantee.bounded_range if is_ranged else Guarantee.pure)(bound, "replace"))
    delta = hockey_stick(first, second, epsilon)
    whole = Guarantee.composed(parts)
    assert delta <= whole.at(epsilon=epsilon) * (1.0 + 1e-9) + 1e-14
    if delta > 1e-12:
        assert whole.at(delta=delta * (1.0 - 1e-9)) >= epsilon * (1.0 - 1e-6) - 1e-6


@pytest.mark.parametrize("bound", [0.3, 1.0, 2.0])
def test_a_constant_four_times_too_small_would_show(bound):
    """ρ = ε²/8 is right for bounded range alone: eight randomised responses exceed what it would promise."""
    likely = 1.0 / (1.0 + math.exp(-bound))
    laws = product([likely, 1.0 - likely], 8), product([1.0 - likely, likely], 8)
    whole = Guarantee.composed([Guarantee.pure(bound, "replace")] * 8)
    exceeded = []
    for epsilon in np.linspace(0.0, 8.0 * bound, 40):
        delta = hockey_stick(*laws, epsilon)
        assert delta <= whole.at(epsilon=float(epsilon)) * (1.0 + 1e-9) + 1e-14
        exceeded.append(delta > conversions.zcdp_delta(whole.rho / 4.0, float(epsilon)))
    assert any(exceeded)


@pytest.mark.slow
@given(st.lists(st.floats(0.05, 3.0), min_size=1, max_size=5), st.floats(1e-10, 0.1))
def test_gaussian_releases_add_their_squares(shifts, delta):
    whole = Guarantee.composed([Guarantee.gaussian(mu, "replace") for mu in shifts])
    assert whole.mu == pytest.approx(math.sqrt(sum(mu**2 for mu in shifts)), rel=1e-14)
    assert whole.at(delta=delta) == pytest.approx(conversions.gaussian_epsilon(whole.mu, delta), rel=1e-9)


def test_parts_without_rho_add_to_the_others():
    zcdp, approximate = Guarantee.zcdp("0.1", "replace"), Guarantee.approximate("0.5", "1e-7", "replace")
    whole = Guarantee.composed([zcdp, approximate, approximate])
    assert (whole.rho, whole.epsilon, whole.delta) == (None, math.inf, 2e-7)
    assert whole.at(delta=1e-6) == pytest.approx(1.0 + zcdp.at(delta=8e-7), rel=1e-12)
    assert whole.at(epsilon=3.0) == pytest.approx(2e-7 + zcdp.at(epsilon=2.0), rel=1e-12)
    assert whole.at(delta=1e-7) == math.inf
    assert whole.at(epsilon=0.9) == 1.0
    # Of a part that states nothing finite nothing follows.
    unknown = Guarantee.composed([zcdp, Guarantee.pure(40, "replace").within("0.1")])
    assert (unknown.at(delta=0.5), unknown.at(epsilon=3.0)) == (math.inf, 1.0)


def test_failures_that_add_up_to_one_promise_nothing():
    with pytest.raises(ValueError, match="do not fit together"):
        Guarantee.composed([Guarantee.approximate(1.0, 0.5, "replace")] * 2)


def laws_in_a_row(draws):
    return [np.array(row) / np.sum(row) for row in draws]


ROWS = st.lists(st.lists(st.floats(0.02, 1.0), min_size=4, max_size=4), min_size=3, max_size=3).map(laws_in_a_row)


@given(ROWS, st.floats(0.0, 4.0))
def test_an_exchange_is_a_removal_and_an_addition(laws, epsilon):
    """Any three laws: what is known of the two steps covers the whole, for each way of knowing it."""
    steps = (laws[0], laws[1]), (laws[1], laws[2])
    delta = hockey_stick(laws[0], laws[2], epsilon)
    ratios = [np.log(one / other) for one, other in steps]
    largest, widest = max(np.max(np.abs(ratio)) for ratio in ratios), max(np.ptp(ratio) for ratio in ratios)
    grid = (0.05, 0.2, 0.5, 1.0, 1.5, 3.0)
    profile = [(place, max(hockey_stick(*step, place) for step in steps)) for place in grid]
    known = []
    if largest > 1e-6:
        known = [Guarantee.pure(float(largest), "add_remove"), Guarantee.bounded_range(float(widest), "add_remove")]
    known += [
        Guarantee.approximate(*row, "add_remove")
        for row in profile
        if row[1] > 1e-12 and (1.0 + math.exp(row[0])) * row[1] < 0.999
    ]
    for guarantee in known:
        exchanged = guarantee.to_replace()
        assert exchanged.adjacency is Adjacency.REPLACE
        assert delta <= exchanged.at(epsilon=epsilon) + 1e-13


@given(st.floats(0.05, 2.0), st.floats(1e-6, 0.05))
def test_the_factor_of_delta_is_attained(epsilon, delta):
    """P_1 = e^ε P_2 + δ and P_0 = e^ε P_1 + δ on a set."""
    last = 1e-3
    middle = math.exp(epsilon) * last + delta
    first = math.exp(epsilon) * middle + delta
    exchanged = Guarantee.approximate(epsilon, delta, "add_remove").to_replace()
    assert hockey_stick([first, 1.0 - first], [last, 1.0 - last], 2.0 * epsilon) == pytest.approx(exchanged.delta)
    assert exchanged.exact_epsilon == 2 * Fraction(repr(epsilon))
    assert exchanged.delta >= (1.0 + math.exp(epsilon)) * delta * (1.0 - 1e-15)


@given(st.floats(0.05, 3.0), st.floats(0.0, 5.0))
def test_gaussian_shifts_double(mu, epsilon):
    assert Guarantee.gaussian(mu, "add_remove").to_replace() == Guarantee.gaussian(2 * Fraction(repr(mu)), "replace")
    zcdp = Guarantee.zcdp(mu, "add_remove").to_replace()
    assert zcdp.exact_rho == 4 * Fraction(repr(mu))


@pytest.mark.slow
@given(st.lists(SIMPLE, min_size=1, max_size=4))
def test_compositions_are_exchanged_part_by_part(recipes):
    parts = [made(recipe, "add_remove") for recipe in recipes]
    parts = [part for part in parts if part.epsilon < 5.0 or part.kind != "approximate"]
    if parts:
        exchanged = [part.to_replace() for part in parts]
        assert Guarantee.composed(parts).to_replace() == Guarantee.composed(exchanged)
        assert all(one.to_replace() is one for one in exchanged)


def test_adjacencies_do_not_mix_and_nothing_leads_back():
    replace, add_remove = Guarantee.pure(1.0, "replace"), Guarantee.pure(1.0, "add_remove")
    with pytest.raises(ValueError, match=r"one and the same adjacency.*to_replace\(\)"):
        Guarantee.composed([replace, add_remove])
    assert Guarantee.composed([replace, add_remove.to_replace()]).epsilon == 3.0
    with pytest.raises(ValueError, match="the number of records is private under the one and not under the other"):
        replace.to_add_remove()
    assert add_remove.to_add_remove() is add_remove
    with pytest.raises(ValueError, match="there are none here"):
        Guarantee.composed([])
    with pytest.raises(ValueError, match="nothing is left"):
        Guarantee.approximate(3.0, 0.1, "add_remove").to_replace()
    with pytest.raises(ValueError, match="nothing is left"):
        Guarantee.approximate(710.0, 1e-320, "add_remove").to_replace()


@pytest.mark.slow
@given(LOSSES, FAILURES)
def test_stated_numbers_are_checked(mu, delta):
    free = Guarantee.gaussian(mu, "replace", delta=delta)
    assert Guarantee.gaussian(mu, "replace", free.epsilon + 1.0, delta).epsilon >= free.epsilon + 1.0
    assert free.epsilon == pytest.approx(free.at(delta=free.delta), rel=1e-9)
    if free.epsilon > 1e-3:
        for make in (Guarantee.gaussian, Guarantee.zcdp):
            with pytest.raises(ValueError, match=r"this (gaussian|zcdp) guarantee is not"):
                make(mu, "replace", 0.9 * free.epsilon * (1.0 if make == Guarantee.gaussian else 0.0), delta)
