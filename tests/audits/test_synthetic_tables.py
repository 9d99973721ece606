"""Audits of synthetic tables: the laws of all releases enumerated on small neighbouring tables."""

import collections
import itertools

import pandas as pd
import pytest

import kngjax as kng
from audits.synthetic_tables import TableLaws, losses_of
from kngjax.study.synthesis import parts

ADJACENCIES = ("replace", "add_remove")
EPSILON = 8.0
CURVES = "number, beside heaps"
# A number at the heap, and three beside it, of which one is of another level.
RECORDS = (("a", 0.5), ("a", 0.1), ("a", 0.9), ("b", 0.4))
# Numbers that go from below all others to above them.
APART = {("a", 0.1): 1, ("b", 0.4): 2, ("a", 0.9): 1}, {("b", 0.4): 2, ("a", 0.9): 2}


def plan(adjacency, share=0.1):
    """A table of two levels, and by these one of a heap, and three curves of the numbers beside it."""
    columns = [
        kng.synthesis.Category("level", ["a", "b"], other="b", share=share),
        kng.synthesis.Numeric("number", 0.0, 1.0, heaps=[0.5], levels=[0.25, 0.5, 0.75]),
    ]
    rows = {} if adjacency == "replace" else {"rows": 0.05}
    return kng.synthesis.plan(columns, epsilon=EPSILON, adjacency=adjacency, **rows)


def frame(counts):
    return pd.DataFrame([record for record, count in counts.items() for _ in range(count)], columns=["level", "number"])


def neighbours(records, number, adjacency):
    """All pairs of tables of so many of these records, or of one more."""
    for rest in itertools.combinations_with_replacement(records, number - 1):
        for one, other in itertools.combinations((*records, None), 2):
            if adjacency == "add_remove" and other is None:
                yield collections.Counter([*rest, one]), collections.Counter(rest)
            if adjacency == "replace" and other is not None:
                yield collections.Counter([*rest, one]), collections.Counter([*rest, other])


def worst(laws, records, number, adjacency):
    """The largest loss of all parts together, and of each the largest one."""
    together, each, known = 0.0, collections.Counter(), {}

    def of(counts):
        name = frozenset(counts.items())
        if name not in known:
            known[name] = laws.laws(frame(counts))
        return known[name]

    for one, other in neighbours(records, number, adjacency):
        losses = losses_of(of(one), of(other))
        together = max(together, *map(sum, zip(*losses.values(), strict=True)))
        for label, loss in losses.items():
            each[label] = max(each[label], *loss)
    return together, each


def shares(made):
    """The parts of ε that the plan gives to each release."""
    return {part.label: float(part.epsilon) for part in made.parts()}


def test_two_neighbours_cost_no_more_than_epsilon():
    made = plan("replace")
    one, other = (frame(collections.Counter(some)) for some in (RECORDS[:2], (RECORDS[0], RECORDS[3])))
    losses, given = TableLaws(made, 2).losses(one, other), shares(made)
    assert max(losses["level"]) == pytest.approx(given["level"])
    assert all(max(losses[label]) <= share + 1e-9 for label, share in given.items())


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pair_of_small_tables_costs_more_than_epsilon(adjacency):
    made = plan(adjacency)
    together, each = worst(TableLaws(made, 3), RECORDS, 3, adjacency)
    assert 0.5 * EPSILON < together <= EPSILON + 1e-9
    given = shares(made)
    assert all(each[label] <= share + 1e-9 for label, share in given.items())
    # Counts need all of it.
    assert all(each[label] == pytest.approx(share) for label, share in given.items() if label != CURVES)
    assert each[CURVES] > (0.4 if adjacency == "replace" else 0.8) * given[CURVES]


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pair_of_other_small_tables_does(adjacency, number):
    made = plan(adjacency, share=0.5)
    together, each = worst(TableLaws(made, number), RECORDS, number, adjacency)
    assert together <= EPSILON + 1e-9
    assert all(each[label] <= share + 1e-9 for label, share in shares(made).items())


@pytest.mark.slow
def test_an_exchanged_record_beside_the_heaps_costs_both_of_its_steps():
    """At all of their share for one record more or less, as under add_remove, the curves cost more than it."""
    made = plan("replace")
    assert max(TableLaws(made, 4).losses(*map(frame, APART))[CURVES]) <= shares(made)[CURVES]
    whole = plan("add_remove")
    assert max(TableLaws(whole, 4).losses(*map(frame, APART))[CURVES]) > 1.3 * shares(whole)[CURVES]


def test_halved_noise_is_seen(monkeypatch):
    """Of counts at twice their rate."""
    monkeypatch.setattr(parts, "inward", lambda epsilon: float(2 * epsilon))
    made = plan("replace")
    losses = TableLaws(made, 2).losses(frame({RECORDS[0]: 2}), frame({RECORDS[0]: 1, RECORDS[3]: 1}))
    assert max(losses["level"]) > 1.9 * shares(made)["level"]


def test_too_many_outcomes_are_refused():
    with pytest.raises(ValueError, match="more than 2\\^16 outcomes"):
        TableLaws(plan("replace"), 300).loss(frame({RECORDS[0]: 2}), frame({RECORDS[1]: 2}))
