"""The attack on membership: its arithmetic by an oracle, what ε allows, and a planted leak that it sees."""

import random

import numpy as np
import pytest
from tqdm import tqdm

from benchmarks import membership

pytest.importorskip("sklearn")


def randomised_responses(epsilon, number):
    """Whether the target is there, told truly with probability e^ε/(1 + e^ε): what attains the largest advantage."""
    generator = np.random.default_rng(0)
    true = generator.random((2, number)) < 1.0 / (1.0 + np.exp(-epsilon))
    noise = generator.normal(size=(2, number))
    return np.stack([true[0], noise[0]], axis=1), np.stack([~true[1], noise[1]], axis=1)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_an_attack_on_randomised_responses_has_all_of_what_is_allowed(epsilon):
    found = membership.advantage(*randomised_responses(epsilon, 4000), membership.logistic)
    allowed = membership.allowed(epsilon)
    assert allowed == pytest.approx((np.exp(epsilon) - 1.0) / (np.exp(epsilon) + 1.0))
    assert abs(found.value - allowed) < 3.0 * found.error
    # Of two frequencies p and 1 - p.
    p = 1.0 / (1.0 + np.exp(-epsilon))
    assert found.error == pytest.approx(np.sqrt(2.0 * p * (1.0 - p) / 2000), rel=0.05)


def test_tables_of_one_law_have_no_advantage():
    """Each is guessed about by an attack that has not seen it: one that had would seem to know them."""
    given = np.random.default_rng(0).normal(size=(2, 60, 5))
    found = membership.advantage(*given, membership.forest)
    assert abs(found.value) < 3.0 * found.error


@pytest.fixture
def fixed_bits(monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)


def attacked(way, epsilon, number):
    with tqdm(disable=True) as bar:
        tables = membership.shadow_tables(membership.WAYS[way], epsilon, number, bar, with_numbers=False)
    return membership.advantage(*tables, membership.forest)


def test_names_that_only_some_tables_have_are_seen():
    """Levels read off the data leak a column that is 1 in each table of the target, and 0 in most others."""
    generator = np.random.default_rng(0)
    tables = generator.normal(size=(2, 40, 3))
    tables[0, :, 0], tables[1, :, 0] = 1.0, generator.random(40) < 0.1
    leak = membership.advantage(*tables, membership.forest)
    assert leak.value - 3.0 * leak.error > membership.allowed(0.2)


@pytest.mark.slow
def test_levels_of_the_data_are_seen(fixed_bits):
    """Tables of levels alone: names that only the target's tables have tell of it at an ε that allows little."""
    leak = attacked("levels of the data", 0.2, 40)
    assert leak.value - 3.0 * leak.error > membership.allowed(0.2)


@pytest.mark.slow
def test_public_levels_tell_no_more_than_allowed(fixed_bits):
    public = attacked("public levels", 0.2, 100)
    assert public.value - 3.0 * public.error < membership.allowed(0.2)


def test_the_two_tables_are_neighbours_and_the_target_is_like_nobody():
    one, other = (membership.people(each) for each in (membership.TARGET, membership.ORDINARY))
    assert (one != other).any(axis=1).sum() == 1
    assert all((one.iloc[:-1][name] != value).all() for name, value in membership.TARGET.items())
