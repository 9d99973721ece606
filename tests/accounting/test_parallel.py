"""Mechanisms on disjoint groups: worst neighbours in fractions attain the price, and nothing costs more."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kngjax.accounting.guarantees import Guarantee, Kind
from kngjax.accounting.parallel import in_parallel, worst_of
from tests.accounting.guarantees_drawn import SIMPLE, hockey_stick, made

LOG_2 = math.log(2.0)
LARGEST = 4
# What a record may be: in a group, or in none.
KINDS = ("a", "b", None)


def count_law(count):
    """The count of one group with noise of ratio 2, cut to 0 ... LARGEST: ε = log 2 for one record more or less."""
    weights = [Fraction(1, 2 ** abs(output - count)) for output in range(LARGEST + 1)]
    # Tails beyond the ends belong to the ends, so that the law sums to what does not depend on the count.
    weights[0], weights[-1] = Fraction(2, 2**count), Fraction(2, 2 ** (LARGEST - count))
    return [weight / 3 for weight in weights]


def joint_law(table):
    """The law of the noisy counts of both groups, independent given the table."""
    laws = [count_law(table.count(group)) for group in ("a", "b")]
    return [first * second for first, second in itertools.product(*laws)]


def worst_ratio(pairs):
    return max(max(p / q, q / p) for one, two in pairs for p, q in zip(joint_law(one), joint_law(two), strict=True))


TABLES = [table for size in range(4) for table in itertools.combinations_with_replacement(KINDS, size)]


def test_one_record_more_costs_one_group_and_an_exchanged_one_two():
    """Of all pairs of tables of at most three records, exactly."""
    added = [(table, (*table, kind)) for table in TABLES for kind in KINDS]
    exchanged = [
        (table, (*table[:place], kind, *table[place + 1 :]))
        for table in TABLES
        for place in range(len(table))
        for kind in KINDS
    ]
    one = Guarantee.pure(LOG_2, "add_remove")
    together = Guarantee.parallel([one, one])
    assert worst_ratio(added) == 2
    assert worst_ratio(exchanged) == 4
    assert together.epsilon == LOG_2
    assert together.to_replace().epsilon == pytest.approx(math.log(4), rel=1e-15)


def test_parts_for_replace_are_refused_as_sizes_of_groups_are_private():
    """To publish n is free under replace; of two groups it tells for certain which one an exchanged record left."""
    sizes = lambda table: (table.count("a"), table.count("b"))  # noqa: E731
    assert sizes(("a", "a", "b")) != sizes(("a", "b", "b"))
    with pytest.raises(ValueError, match="sizes go from"):
        Guarantee.parallel([Guarantee.pure(1, "add_remove"), Guarantee.pure(1, "replace")])
    with pytest.raises(ValueError, match="at least one"):
        Guarantee.parallel([])


@given(st.lists(SIMPLE, min_size=1, max_size=4), st.floats(0.0, 5.0), st.floats(1e-9, 0.5))
@example([("pure", 1), ("zcdp", 1, 0)], 1.0, 1e-6)
def test_no_part_is_worse_than_all_together(recipes, epsilon, delta):
    parts = [made(recipe, "add_remove") for recipe in recipes]
    stated = max(part.exact_delta for part in parts)
    assume(all(part.exact_epsilon is not None or part.at(delta=float(stated)) < math.inf for part in parts))
    whole = Guarantee.parallel(parts)
    for part in parts:
        assert part.at(epsilon=epsilon) <= whole.at(epsilon=epsilon) * (1 + 1e-12) + 1e-300
        assert part.at(delta=delta) <= whole.at(delta=delta) * (1 + 1e-12)
        assert whole.rho is None or part.rho is None or part.rho <= whole.rho
    # None costs more than the dearest: all of one kind have its price.
    if len({recipe[0] for recipe in recipes}) == 1 and whole.kind in (Kind.PURE, Kind.BOUNDED_RANGE, Kind.APPROXIMATE):
        assert whole.exact_epsilon == max(part.exact_epsilon for part in parts)
        assert whole.exact_delta == max(part.exact_delta for part in parts)
    assert Guarantee.from_dict(whole.to_dict()) == whole


def test_equal_parts_keep_what_they_are():
    ranged = Guarantee.bounded_range("0.5", "add_remove")
    several = Guarantee.composed([ranged, ranged])
    for part in (ranged, several, Guarantee.gaussian(1, "add_remove", delta="1e-6"), Guarantee.zcdp(1, "add_remove")):
        assert Guarantee.parallel([part] * 50) == part
    # So that an exchange counts each of a group's releases by itself: bounded range twice, and twice again.
    assert Guarantee.parallel([several] * 3).to_replace() == Guarantee.composed([ranged.to_replace()] * 2)
    mixed = Guarantee.parallel([ranged, Guarantee.pure("0.25", "add_remove")])
    assert (mixed.kind, mixed.epsilon) == (Kind.PURE, 0.5)
    two = Guarantee.parallel([Guarantee.gaussian(1, "add_remove", delta="1e-6"), Guarantee.gaussian(2, "add_remove")])
    assert (two.kind, two.mu, two.delta) == (Kind.GAUSSIAN, 2.0, 1e-6)
    with pytest.raises(ValueError, match="nothing finite"):
        worst_of([Guarantee.pure(40, "add_remove").within("0.1"), Guarantee.approximate(1, 1e-3, "add_remove")])


def test_distances_of_the_two_groups_of_an_exchanged_record_add_up():
    """P(yes) is 2η in the one case and 0 in the other, within η of a law that never looks; in two groups 4η - 4η²."""
    distance = Fraction(1, 100)
    # Of the group that the record leaves while it is there, and of the one that it enters while it is not.
    often, never = [2 * distance, 1 - 2 * distance], [0, 1]
    before, after = (np.multiply.outer(one, one).ravel().astype(float) for one in (often, never))
    part = Guarantee.pure(1e-4, "add_remove").within(distance)
    twice = Guarantee.parallel([part] * 5).to_replace()
    assert hockey_stick(before, after, 0.0) == pytest.approx(0.0396)
    assert 0.0396 < twice.at(epsilon=0.0) < 0.0402
    assert part.to_replace().at(epsilon=0.0) < 0.0202
    assert Guarantee.parallel([part, Guarantee.pure(1, "add_remove")]).exact_distance == distance


def test_distances_of_all_groups_add_up_where_one_person_may_be_in_all():
    part = Guarantee.pure(1, "add_remove").within(Fraction(1, 100))
    assert Guarantee.parallel([part] * 5).exact_distance == Fraction(2, 100)
    assert in_parallel([part.of("patient")] * 5, shared=True).exact_distance == Fraction(5, 100)


def law_of_groups(scores, epsilon):
    """Of two exponential mechanisms, of the records that each record's coin gives them, coins averaged out."""
    every = []
    for coins in itertools.product((0, 1), repeat=len(scores)):
        laws = []
        for group in (0, 1):
            utility = sum((score for score, coin in zip(scores, coins, strict=True) if coin == group), np.zeros(4))
            law = np.exp(epsilon * utility)
            laws.append(law / law.sum())
        every.append(np.multiply.outer(*laws).ravel())
    return np.mean(every, axis=0)


def test_groups_by_coins_cost_what_bounded_range_costs_although_their_log_ratios_fill_more():
    epsilon, adjacency = 4.0, "add_remove"
    scores = [np.array(one, float) for one in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1])]
    one = Guarantee.bounded_range(epsilon, adjacency)
    first, second = (law_of_groups(every, epsilon) for every in (scores[:-1], scores))
    losses = np.log(second / first)
    assert np.max(losses) - np.min(losses) > 1.08 * epsilon
    assert np.max(np.abs(losses)) <= epsilon
    twice = Guarantee.composed([one, one])
    pairs = [(first, second), (second, first)]
    for of, stated in ((1, one), (2, twice)):
        for p, q in pairs:
            for _ in range(of - 1):
                p, q = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
            for at in np.linspace(0.0, of * epsilon, 9):
                assert np.sum(np.maximum(p - np.exp(at) * q, 0.0)) <= stated.at(epsilon=at) + 1e-12
            for order in (1.5, 2.0, 8.0):
                renyi = np.log(np.sum(p**order * q ** (1.0 - order))) / (order - 1.0)
                assert renyi <= float(stated.rho) * order + 1e-12
