"""Whoever changes the file of a ledger is found out, or refused by its triggers; and where nothing can find it out."""

import dataclasses
import json
import shutil
import sqlite3

import pytest

from kngjax.accounting import Guarantee
from kngjax.ledger import store
from kngjax.ledger.book import LedgerError, Row, canonical
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger
from tests.ledger.ledgers_made import DIGEST, TENTH

COLUMNS = ("number", "phase", "reservation", "guarantee", "content", "previous", "digest")


def changed(path, statement, *values):
    """The file after a statement of somebody who takes the triggers away first, and puts them back."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        for trigger in ("entry_stays", "entry_is_fixed", "entry_follows"):
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement, values)
        for trigger in store.SCHEMA[1:]:
            connection.execute(trigger)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("row", range(1, 7))
@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_of_any_field_of_any_row_is_found(copied, row, column):
    ledger = Ledger(copied)
    with sqlite3.connect(copied) as connection:
        ((old,),) = connection.execute(f"SELECT {column} FROM entry WHERE number = ?", (row,)).fetchall()
    connection.close()
    new_values = {
        "number": 70,
        "phase": "released" if old == "reserved" else "reserved",
        "reservation": 4 if old is None else None,
        "guarantee": json.dumps(Guarantee.pure("1e-9", "replace").to_dict()),
        "content": "{}" if row != 1 else str(old).replace("3/10", "9/10"),
        "previous": DIGEST,
        "digest": DIGEST,
    }
    assert new_values[column] != old
    changed(copied, f"UPDATE entry SET {column} = ? WHERE number = ?", new_values[column], row)
    for operation in (ledger.verify, ledger.read, lambda: Ledger(copied), lambda: ledger.reserve(TENTH)):
        with pytest.raises(LedgerError, match="was changed"):
            operation()


def test_the_digest_is_of_every_field():
    row = Row.following(3, "released", 2, "{}", {}, DIGEST)
    others = {"number": 4, "phase": "reserved", "reservation": None, "guarantee": None, "content": "[]", "previous": ""}
    assert set(others) == set(COLUMNS) - {"digest"}
    digests = {dataclasses.replace(row, **{name: value}).computed() for name, value in others.items()}
    assert len(digests | {row.digest}) == len(others) + 1


@pytest.mark.parametrize("number", range(1, 6))
def test_a_row_with_its_own_digest_computed_again_is_found_by_the_next(copied, number):
    with sqlite3.connect(copied) as connection:
        (fields,) = connection.execute("SELECT * FROM entry WHERE number = ?", (number,)).fetchall()
    connection.close()
    row = Row(*fields)
    content = json.loads(row.content) | {"more": 1}
    digest = Row.following(number, row.phase, row.reservation, row.guarantee, content, row.previous).digest
    changed(copied, "UPDATE entry SET content = ?, digest = ? WHERE number = ?", canonical(content), digest, number)
    with pytest.raises(LedgerError, match=f"breaks at row {number + 1}"):
        Ledger(copied)


@pytest.mark.parametrize("row", range(1, 7))
def test_a_row_of_another_type_or_absent_is_found(copied, tmp_path, row):
    last = Ledger(copied).head()
    absent = shutil.copy(copied, tmp_path / "absent.ledger")
    changed(copied, "UPDATE entry SET content = cast(content AS BLOB) WHERE number = ?", row)
    with pytest.raises(LedgerError):
        Ledger(copied)
    changed(absent, "DELETE FROM entry WHERE number = ?", row)
    if row < 6:
        with pytest.raises(LedgerError):
            Ledger(absent)
        return
    # The last row leaves no gap: only a head that was noted elsewhere tells.
    assert Ledger(absent).verify().num_rows == 5
    with pytest.raises(LedgerError, match="was set back"):
        Ledger(absent).verify(last)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entry_stays",
        "DROP TRIGGER entry_is_fixed",
        "DROP TRIGGER entry_follows",
        "CREATE TABLE other (number INTEGER)",
        "CREATE TRIGGER theirs AFTER INSERT ON entry BEGIN SELECT 1; END",
        "ALTER TABLE entry ADD COLUMN more TEXT",
        "DROP TABLE entry",
    ],
)
def test_a_change_of_the_table_or_of_its_triggers_is_found(copied, statement):
    ledger = Ledger(copied)
    with sqlite3.connect(copied) as connection:
        connection.execute(statement)
    connection.close()
    for operation in (ledger.verify, lambda: ledger.reserve(TENTH)):
        with pytest.raises(LedgerError, match="triggers were changed"):
            operation()


def test_damaged_pages_are_found(copied):
    whole = copied.read_bytes()
    copied.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError):
        Ledger(copied)


def recomputed(path, change):
    """The file with every row changed and every digest computed again, which is what the chain cannot find out."""
    with sqlite3.connect(path) as connection:
        rows = [Row(*row) for row in connection.execute("SELECT * FROM entry ORDER BY number")]
    connection.close()
    previous = rows[0].previous
    for row in rows:
        content, guarantee = change(row)
        made = Row.following(row.number, row.phase, row.reservation, guarantee, content, previous)
        previous = made.digest
        changed(
            path,
            "UPDATE entry SET guarantee = ?, content = ?, previous = ?, digest = ? WHERE number = ?",
            *(made.guarantee, made.content, made.previous, made.digest, made.number),
        )


def test_a_chain_computed_again_is_found_by_a_noted_head_alone(copied):
    noted = Ledger(copied).head()

    def richer(row):
        content = json.loads(row.content)
        if row.number == 1:
            content["budget"]["epsilon"] = "9"
        return content, row.guarantee

    recomputed(copied, richer)
    assert Ledger(copied).verify().budget == Budget.pure(9)
    with pytest.raises(LedgerError, match="was set back, or changed"):
        Ledger(copied).verify(noted)


@pytest.mark.parametrize("guarantee", [Guarantee.pure("0.11", "replace"), Guarantee.pure("0.1", "add_remove")])
def test_debits_are_added_up_again_whatever_the_digests_say(copied, guarantee):
    text = json.dumps(guarantee.to_dict())
    with pytest.raises(LedgerError, match=r"more was spent|another adjacency"):
        recomputed(copied, lambda row: (json.loads(row.content), text if row.guarantee else None)), Ledger(copied)


@pytest.mark.parametrize(
    "statement",
    [
        *(f"UPDATE entry SET {column} = {column} WHERE number = 2" for column in COLUMNS),
        "DELETE FROM entry WHERE number = 6",
        "DELETE FROM entry",
        "INSERT OR REPLACE INTO entry SELECT * FROM entry WHERE number = 2",
        "INSERT OR REPLACE INTO entry SELECT 7, phase, reservation, guarantee, content, "
        "(SELECT digest FROM entry WHERE number = 6), digest FROM entry WHERE number = 3",
        "INSERT INTO entry SELECT 9, phase, NULL, guarantee, content, "
        "(SELECT digest FROM entry WHERE number = 6), digest FROM entry WHERE number = 2",
        "INSERT INTO entry SELECT 7, phase, NULL, guarantee, content, previous, digest FROM entry WHERE number = 2",
    ],
)
def test_triggers_refuse_what_is_no_next_row(copied, statement):
    with sqlite3.connect(copied) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert Ledger(copied).verify().num_rows == 6
