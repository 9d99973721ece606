"""Processes that race for one budget, and processes that are killed: never a release too many, never a debit lost."""

import dataclasses
from fractions import Fraction

import pytest

from audits import ledger_strain
from kngjax.ledger.ledgers import Ledger

WHOLE = ledger_strain.Strain(
    writers=2,
    kills=3,
    kills_between=1,
    allowed=10,
    reservations=9,
    releases=8,
    rows_reserved=10,
    rows_released=9,
    spent=Fraction(1),
    budget=Fraction(1),
    verified=True,
    trouble="",
    crashes=0,
    seconds=1.0,
)


def check_race(folder, found):
    assert found.passed, found.explain()
    assert found.kills == 0
    exactly = (found.reservations, found.releases, found.rows_reserved, found.rows_released)
    assert exactly == (found.allowed,) * 4
    assert found.spent == found.budget == 1
    (path,) = folder.glob("*.ledger")
    assert len(Ledger(path).verify().released) == found.allowed


def check_storm(found, kills):
    assert found.passed, found.explain()
    assert found.kills == kills
    # Each kill loses one release at most, whose debit stays.
    assert found.rows_reserved == found.allowed
    assert found.spent == found.budget
    assert found.rows_reserved - found.rows_released <= kills


def test_processes_make_as_many_releases_as_one_budget_allows(tmp_path):
    check_race(tmp_path, ledger_strain.race(tmp_path, writers=3, allowed=12))


@pytest.mark.takes(6, "processes of their own, each of which imports the package")
def test_a_storm_of_kills_never_overspends(tmp_path):
    check_storm(ledger_strain.kill_storm(tmp_path, kills=2, writers=2, allowed=300), 2)


@pytest.mark.slow
def test_a_long_race(tmp_path):
    check_race(tmp_path, ledger_strain.race(tmp_path, writers=8, allowed=400))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_long_storm_of_kills(tmp_path, seed):
    found = ledger_strain.kill_storm(tmp_path, kills=80, writers=4, allowed=1000, seed=seed)
    check_storm(found, 80)
    # Some of them where it matters most.
    assert found.kills_between > 0


@pytest.mark.parametrize(
    "change",
    [
        {"spent": Fraction(11, 10)},
        {"rows_reserved": 11},
        {"rows_reserved": 8},
        {"rows_released": 7},
        {"rows_released": 11},
        {"verified": False, "trouble": "the chain breaks"},
        {"crashes": 1},
    ],
)
def test_what_fails_a_strain(change):
    assert WHOLE.passed
    found = dataclasses.replace(WHOLE, **change)
    assert not found.passed
    assert "of 10 allowed" in found.explain()
