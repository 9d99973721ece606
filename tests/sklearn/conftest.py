"""Fixed bits, so that statistical tests are the same in every run, and a ledger."""

import random

import pytest

import kngjax as kng
from tests.inference.quicker import arithmetic_checked_once, coarse_previews  # noqa: F401


@pytest.fixture(autouse=True)
def fixed_bits(monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(10.0), adjacency="replace", dataset="people")


@pytest.fixture
def spent(ledger):
    """What the ledger says was spent of ε, so far."""
    return lambda: sum(kng.Guarantee.composed([part]).epsilon * count for part, count in ledger.read().parts)
