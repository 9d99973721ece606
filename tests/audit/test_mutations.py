"""Every planted bug is caught, by an audit that is silent without it."""

import contextlib

import pytest

from kngjax.audit.mutations import Mutation, mutations


@pytest.mark.default_cases(
    "factor 2 of an exchange missing",
    "bound 2(1-tau) of the paper",
    "sums in float32",
    "value off its lattice",
    "one record too many",
)
@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.name)
def test_the_planted_bug_is_caught(mutation):
    assert mutation.caught()


def test_an_audit_that_cries_without_a_bug_catches_nothing():
    assert not Mutation("none", contextlib.nullcontext, lambda: True).caught()
    assert not Mutation("none", contextlib.nullcontext, lambda: False).caught()
