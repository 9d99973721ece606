"""Ledgers: what they refuse, what is shared, and what stays spent."""

import copy
import dataclasses
import multiprocessing
import os
import pickle
import resource
import shutil
import sqlite3
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings

from kngjax.accounting import Guarantee
from kngjax.ledger import store
from kngjax.ledger.book import LedgerError
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import BudgetExceeded, Ledger
from tests.accounting.guarantees_drawn import SIMPLE, made
from tests.ledger.ledgers_made import RELEASED, TENTH, new


def test_three_releases_fit_and_the_fourth_is_told_what_is_left(tmp_path):
    ledger = new(tmp_path)
    for _ in range(3):
        ledger.reserve(Guarantee.bounded_range(0.1, "replace")).commit(RELEASED, exact=True)
    before = ledger.head()
    with pytest.raises(BudgetExceeded, match=r"0 of epsilon = 0\.3 is left, and epsilon = 0\.1 was asked"):
        ledger.reserve(TENTH)
    with pytest.raises(BudgetExceeded):
        ledger.require([Guarantee.pure("1e-30", "replace")])
    book = ledger.verify(before)
    assert book.spent.exact_epsilon == Fraction(3, 10)
    assert (book.num_rows, len(book.released), book.unfinished, book.head) == (7, 3, [], before)


def test_a_ledger_is_read_as_it_was_at_a_head(tmp_path):
    ledger = new(tmp_path)
    ledger.reserve(TENTH).commit(RELEASED, exact=True)
    before = ledger.read()
    ledger.reserve(TENTH)
    assert ledger.read(until=before.head) == before != ledger.read()
    assert before.budget.amounts(before.parts) == [("epsilon", Fraction(1, 10), Fraction(3, 10))]
    with pytest.raises(LedgerError, match="does not contain this head"):
        ledger.read(until="0" * 64)


def test_what_is_never_committed_stays_spent(tmp_path):
    ledger = new(tmp_path)
    ledger.reserve(TENTH)
    ledger.reserve_all([TENTH, TENTH])
    assert ledger.read().unfinished == [2, 3, 4]
    with pytest.raises(BudgetExceeded):
        ledger.reserve(TENTH)


def test_several_are_reserved_together_or_not_at_all(tmp_path):
    ledger = new(tmp_path)
    with pytest.raises(BudgetExceeded, match=r"0\.3 of epsilon = 0\.3 is left, and epsilon = 0\.4 was asked"):
        ledger.reserve_all([TENTH] * 4)
    assert ledger.read().num_rows == 1
    ledger.require([TENTH] * 3)
    assert [one.number for one in ledger.reserve_all([TENTH] * 3, ["a", "b", "c"])] == [2, 3, 4]
    assert [about["what"] for about in ledger.read().what.values()] == ["a", "b", "c"]


def test_a_reservation_is_for_one_release(tmp_path):
    ledger, other = new(tmp_path), new(tmp_path, name="other.ledger")
    first = ledger.reserve(TENTH)
    first.commit(RELEASED, exact=True)
    with pytest.raises(LedgerError, match="drawn from already"):
        first.commit(RELEASED, exact=True)
    with pytest.raises(LedgerError, match="drawn from already"):
        first.take()
    with pytest.raises(LedgerError, match="there is no reservation 2"):
        dataclasses.replace(first, ledger=other).commit(RELEASED, exact=True)
    with pytest.raises(ValueError, match="Expecting value"):
        ledger.reserve(TENTH).commit("value", exact=True)
    with pytest.raises(TypeError):
        ledger.reserve(0.1)
    assert ledger.verify().num_rows == 4


def test_a_reservation_is_for_one_draw_though_it_led_to_no_release(tmp_path):
    ledger = new(tmp_path)
    reservation = ledger.reserve(TENTH)
    reservation.take()
    with pytest.raises(LedgerError, match="drawn from already"):
        reservation.take()
    assert ledger.verify().unfinished == [2]
    reservation.commit(RELEASED, exact=True)
    with pytest.raises(LedgerError, match="drawn from already"):
        reservation.take()
    assert ledger.verify().num_rows == 4


@pytest.mark.parametrize("number", [2.0, "2", True])
def test_no_row_is_written_whose_digest_would_not_hold(tmp_path, number):
    ledger = new(tmp_path)
    debit = ledger.reserve(TENTH)
    with pytest.raises((TypeError, LedgerError)):
        dataclasses.replace(debit, number=number).commit(RELEASED, exact=True)
    assert ledger.verify().unfinished == [2]
    debit.commit(RELEASED, exact=True)


def test_adjacencies_are_not_mixed_but_by_an_explicit_reduction(tmp_path):
    replace, other = new(tmp_path), new(tmp_path, adjacency="add_remove", name="other.ledger")
    one = Guarantee.bounded_range("0.1", "add_remove")
    with pytest.raises(ValueError, match="reserve its to_replace"):
        replace.reserve(one)
    with pytest.raises(ValueError, match="nothing follows from it"):
        other.reserve(TENTH)
    reserved = replace.reserve(one.to_replace())
    assert reserved.covers(one)
    assert reserved.covers(one.to_replace())
    assert not reserved.covers(TENTH)
    assert not other.reserve(one).covers(TENTH)
    assert replace.verify().spent.exact_epsilon == Fraction(2, 10)


@pytest.mark.slow
@settings(max_examples=25)
@given(SIMPLE)
def test_no_digit_of_a_debit_is_lost(tmp_path_factory, recipe):
    asked = made(recipe)
    ledger = new(tmp_path_factory.mktemp("digits"), Budget.zcdp(10**6))
    if asked.exact_rho is None:
        with pytest.raises(BudgetExceeded):
            ledger.reserve(asked)
        return
    reserved = ledger.reserve(asked)
    assert reserved.covers(asked)
    ((kept, count),) = ledger.verify().parts
    assert (kept, count) == (reserved.guarantee, 1)
    assert kept.exact_rho >= asked.exact_rho
    assert kept.exact_delta >= asked.exact_delta


# One path, one budget


def copies(ledger):
    yield from (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), Ledger(ledger.path))
    # As scikit-learn's clone does with the arguments of an estimator.
    yield copy.deepcopy({"mechanism": "KNG", "ledger": ledger})["ledger"]


def test_copies_share_the_budget(tmp_path, monkeypatch):
    ledger = new(tmp_path, Budget.pure("0.6"))
    ledger.reserve(TENTH)
    for other in copies(ledger):
        assert other == ledger
        assert hash(other) == hash(ledger)
        other.reserve(TENTH)
    # Wherever the process goes.
    monkeypatch.chdir(os.sep)
    for other in copies(ledger):
        with pytest.raises(BudgetExceeded):
            other.reserve(TENTH)
    reservation = pickle.loads(pickle.dumps(Ledger(ledger.path).read().reserved))
    assert len(reservation) == 6


def test_another_file_under_the_name_is_refused(tmp_path):
    ledger = new(tmp_path)
    reservation = ledger.reserve(TENTH)
    ledger.path.unlink()
    with pytest.raises(FileNotFoundError, match="there is no ledger"):
        ledger.reserve(TENTH)
    assert not ledger.path.exists()
    new(tmp_path)
    for operation in (ledger.read, ledger.verify, ledger.head, lambda: ledger.reserve(TENTH)):
        with pytest.raises(LedgerError, match="it was replaced"):
            operation()
    with pytest.raises(LedgerError):
        reservation.commit(RELEASED, exact=True)


def test_a_ledger_is_never_made_over_another_file(tmp_path):
    ledger = new(tmp_path)
    ledger.reserve(TENTH)
    with pytest.raises(FileExistsError, match="is never reset"):
        new(tmp_path, Budget.pure(100))
    assert ledger.verify().num_rows == 2
    assert ledger.path.stat().st_mode & 0o077 == 0


# What is no ledger, and what cannot be written


def test_what_is_no_ledger(tmp_path):
    for name, content in (("empty", b""), ("text", b"epsilon = 3\n" * 400)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(LedgerError):
            Ledger(tmp_path / name)
        with pytest.raises(FileExistsError):
            new(tmp_path, name=name)
    with pytest.raises(FileNotFoundError, match="there is no ledger"):
        Ledger(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        new(tmp_path / "absent")
    with pytest.raises(TypeError):
        Ledger.create(tmp_path / "number", 3, adjacency="replace", dataset="invented")
    with pytest.raises(ValueError, match="adjacency must be"):
        new(tmp_path, adjacency="both")
    with pytest.raises(ValueError, match="dataset must be a public label"):
        Ledger.create(tmp_path / "unnamed", Budget.pure(1), adjacency="replace", dataset=" ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text"]


def test_a_second_name_of_the_file_is_refused(copied):
    os.link(copied, copied.with_name("second"))
    with pytest.raises(LedgerError, match="hard link"):
        Ledger(copied)


def test_a_symbolic_link_is_the_same_ledger(copied):
    copied.with_name("link").symlink_to(copied)
    assert Ledger(copied.with_name("link")) == Ledger(copied)


def test_nothing_is_spent_where_nothing_can_be_written(tmp_path, monkeypatch):
    ledger = new(tmp_path)
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with sqlite3.connect(ledger.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.reserve(TENTH)
        other.execute("ROLLBACK")
    other.close()
    # A disk that is full.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(LedgerError, match="nothing is released"):
            ledger.reserve(TENTH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ledger.verify().num_rows == 1
    ledger.reserve(TENTH)


def test_commits_are_synced_with_the_folder(tmp_path):
    ledger = new(tmp_path)
    with store._connected(ledger.path) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    ledger.reserve(TENTH)
    # The one file is all there is.
    assert [path.name for path in tmp_path.iterdir()] == ["budget.ledger"]


@pytest.mark.parametrize("operation", ["reserve", "read"])
def test_a_write_ahead_log_that_somebody_turned_on_is_turned_off(tmp_path, operation):
    """A copy of the one file then holds every debit."""
    ledger = new(tmp_path)
    outsider = sqlite3.connect(ledger.path)
    assert outsider.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    outsider.execute("SELECT count(*) FROM entry").fetchone()
    # Debits would stay in the log for as long as the outsider has the file open.
    with pytest.raises(LedgerError, match="other programs have it open: close them"):
        getattr(ledger, operation)(*[TENTH] * (operation == "reserve"))
    outsider.close()
    with sqlite3.connect(ledger.path) as once:
        assert once.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    once.close()
    ledger.reserve(TENTH)
    shutil.copy(ledger.path, tmp_path / "copy.ledger")
    assert len(Ledger(tmp_path / "copy.ledger").read().reserved) == 1
    assert Ledger(tmp_path / "copy.ledger").head() == ledger.head()
    assert not list(tmp_path.glob("*-wal"))


def test_what_a_reservation_covers_is_its_row(tmp_path):
    """Nothing in the object but the ledger and the number is believed."""
    ledger = new(tmp_path)
    reservation = ledger.reserve(Guarantee.pure("0.001", "replace"))
    dear = Guarantee.pure(50, "replace")
    with pytest.raises(TypeError):
        dataclasses.replace(reservation, guarantee=dear)
    for name, value in (("guarantee", dear), ("proved", True)):
        with pytest.raises(AttributeError):
            object.__setattr__(reservation, name, value)
    assert not reservation.covers(dear)
    assert reservation.guarantee == Guarantee.pure("0.001", "replace")
    for number in (1, 3, 99):
        forged = dataclasses.replace(reservation, number=number)
        for operation in (forged.take, lambda forged=forged: forged.covers(dear)):
            with pytest.raises(LedgerError, match=f"there is no reservation {number}"):
                operation()


def test_releases_are_kept(tmp_path, used):
    assert used.releases() == {2: RELEASED, 5: RELEASED}
    assert [number for number in used.read().reserved if number not in used.releases()] == [4]


def test_what_is_not_proved_is_refused_unless_it_was_allowed_and_then_said_of_every_sum(tmp_path):
    strict, lax = new(tmp_path), new(tmp_path, name="lax.ledger", unproved="allow")
    with pytest.raises(BudgetExceeded, match=r"nothing is proved.*unproved='allow'"):
        strict.reserve(TENTH, proved=False)
    assert strict.verify().num_rows == 1
    assert "NOT PROVED" not in strict.read().explain()
    lax.reserve(TENTH)
    assert lax.reserve(TENTH, proved=False).proved is False
    book = lax.verify()
    assert book.not_proved == [3]
    sums = [line for line in book.explain().splitlines() if line.startswith(("Budget", "Left", "Spent"))]
    assert len(sums) == 3
    assert all("NOT PROVED of 1 of the 2 debits" in line for line in (*sums, book.left))
    assert "nothing is proved" in repr(lax)
    with pytest.raises(BudgetExceeded, match="NOT PROVED of 1"):
        lax.reserve(Guarantee.pure("0.2", "replace"))
    with pytest.raises(ValueError, match="'refuse' or 'allow'"):
        new(tmp_path, name="other.ledger", unproved="perhaps")


def test_the_words_for_the_owner(used):
    said = used.read().explain()
    assert "Ledger of 'invented': one record is protected, adjacency replace." in said
    assert "Debits: 3, of which 2 led to a release and 1 did not; all are spent." in said
    assert used.head() in said
    assert repr(used) == f"<Ledger {str(used.path)!r}>"


def reserve_in_another_process(ledger):
    ledger.reserve(TENTH)
    return ledger.read().num_rows


@pytest.mark.slow
def test_a_ledger_goes_to_another_process(tmp_path):
    ledger = new(tmp_path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(reserve_in_another_process, (ledger,)) == 2
    assert ledger.read().num_rows == 2


def test_a_ledger_needs_no_jax(used):
    program = (
        "import sys; from kngjax.command.cli import main; "
        f"assert main(['ledger', 'show', {str(used.path)!r}]) == 0; print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"epsilon": 1.0}, r"Budget\.pure\(1\.0\)"),
        ({"epsilon": 1.0, "delta": 1e-6}, r"Budget\.approximate\(1\.0, 1e-06\)"),
        ({"rho": 0.5}, r"Budget\.zcdp\(0\.5\)"),
        ({"budgett": 1.0}, "has no argument budgett"),
        ({}, r"like Budget\.pure"),
    ],
)
def test_who_gives_the_numbers_of_a_budget_is_told_the_object(tmp_path, given, meant):
    with pytest.raises(TypeError, match=meant):
        Ledger.create(tmp_path / "ledger", adjacency="replace", dataset="people", **given)
    assert not (tmp_path / "ledger").exists()
