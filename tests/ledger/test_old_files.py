"""Ledgers that earlier versions wrote: read, verified, continued, and no less strict."""

import pytest

from kngjax.accounting import Guarantee
from kngjax.ledger import store
from kngjax.ledger.book import BEFORE_ALL, Row, canonical
from kngjax.ledger.ledgers import BudgetExceeded, Ledger
from tests.ledger.ledgers_made import DIGEST, RELEASED, TENTH

BUDGETS = {
    "pure": {"rule": "pure", "epsilon": "3/10", "delta": "0", "rho": None},
    "zcdp": {"rule": "zcdp", "epsilon": None, "delta": "0", "rho": "1/8"},
    "converted": {"rule": "converted", "epsilon": "1", "delta": "1/1000000", "rho": "1/50"},
    "approximate": {"rule": "approximate", "epsilon": "1", "delta": "1/1000000", "rho": None},
}


def old(path, budget):
    """A file of format 1 with two releases, of which one came from a Markov chain, and one debit that led to none."""
    first = {"format": 1, "id": "0" * 32, "dataset": "invented", "unit": "record", "adjacency": "replace"}
    rows = [Row.following(1, "opened", None, None, first | {"budget": budget, "time": "2026"}, BEFORE_ALL)]

    def then(phase, reservation, guarantee, content):
        rows.append(Row.following(len(rows) + 1, phase, reservation, guarantee, content, rows[-1].digest))

    for exact in (True, False):
        then("reserved", None, canonical(TENTH.to_dict()), {"time": "2026", "what": None})
        then("released", len(rows), None, {"certificate": DIGEST, "exact": exact})
    store.create(path, rows[0])
    store.append(path, lambda book: (rows[1:], None))
    return Ledger(path)


@pytest.mark.parametrize("name", BUDGETS)
def test_an_old_file_is_read_verified_and_continued(tmp_path, name):
    ledger = old(tmp_path / "old.ledger", BUDGETS[name])
    book = ledger.verify()
    assert (len(book.reserved), len(book.released), book.releases) == (2, 2, {})
    assert book.not_proved == [4]
    assert "NOT PROVED of 1 of the 2 debits" in book.explain()
    ledger.reserve(TENTH).commit(RELEASED, exact=True)
    assert ledger.verify().releases == {6: RELEASED}


@pytest.mark.parametrize("name", BUDGETS)
def test_an_old_file_holds_no_distance_and_nothing_unproved(tmp_path, name):
    ledger = old(tmp_path / "old.ledger", BUDGETS[name])
    with pytest.raises(BudgetExceeded, match="nothing is proved"):
        ledger.reserve(TENTH, proved=False)
    near = Guarantee.pure("0.01", "replace").within("1e-9")
    if name == "approximate":
        ledger.reserve(near)
        assert ledger.verify().spent.delta == near.delta
    else:
        with pytest.raises(BudgetExceeded, match="rounded in float64"):
            ledger.reserve(near)
