"""Which cases of a long table run by default."""

import itertools
from types import SimpleNamespace

import pytest

from tests.conftest import first_cases, left_out

LOSSES, ADJACENCIES = ("quantile", "squared", "logistic"), ("replace", "add_remove")
CASES = list(itertools.product(LOSSES, ADJACENCIES))


class Case:
    def __init__(self, loss, adjacency):
        self.callspec = SimpleNamespace(params={"loss": loss, "adjacency": adjacency})


@pytest.mark.parametrize("number", range(1, 9))
def test_first_cases_show_every_value_as_early_as_can_be(number):
    cases = [Case(*case) for case in CASES]
    chosen = [tuple(case.callspec.params.values()) for case in first_cases(cases, number)]
    assert len(set(chosen)) == min(number, len(CASES))
    assert len({loss for loss, _ in chosen}) == min(number, len(LOSSES))
    assert len({adjacency for _, adjacency in chosen}) == min(number, len(ADJACENCIES))
    assert chosen == [tuple(case.callspec.params.values()) for case in first_cases(cases, number)]


def test_tests_with_default_cases_are_left_out_of_slow_ones():
    items = []
    for name in ("long", "both"):
        for case in CASES:
            items.append(Case(*case))
            items[-1].name = items[-1].originalname = name
            items[-1].parent = SimpleNamespace(nodeid="file")
    kept = [item.originalname for item in items if item not in left_out(items, 2, {("file", "both")})]
    assert kept == ["long"] * 2
    assert len(items) - len(left_out(items, 2, ())) == 4
    assert not left_out(items, len(CASES), ())
