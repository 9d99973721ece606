"""Which cases of a long table run by default."""

import itertools
from types import SimpleNamespace

import pytest

from tests.conftest import first_cases

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
