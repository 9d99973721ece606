"""A ledger that was used, and copies of its file to change."""

import shutil

import pytest

from tests.ledger.ledgers_made import RELEASED, TENTH, new


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Six rows: the budget, a reservation with its release, and another two of which one is released."""
    ledger = new(tmp_path_factory.mktemp("used"))
    ledger.reserve(TENTH, {"mechanism": "KNG"}).commit(RELEASED, exact=True)
    ledger.reserve(TENTH)
    ledger.reserve(TENTH).commit(RELEASED, exact=False)
    return ledger


@pytest.fixture
def copied(used, tmp_path):
    shutil.copy(used.path, tmp_path / "copy.ledger")
    return tmp_path / "copy.ledger"
