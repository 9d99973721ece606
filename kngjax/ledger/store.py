"""The SQLite file of a ledger: durable rows that triggers keep from change, one writer at a time. Imports no JAX.

A rollback journal (`journal_mode=DELETE`) and no write-ahead log: between transactions the one file is the whole
ledger, so that a copy of it never lacks the last debits, and no shared memory is needed. `synchronous=EXTRA` also syncs
the folder when the journal is removed, which is the moment of the commit; with FULL a power cut right after it could
undo the last debit. A write-ahead log that somebody else turned on is turned off again by whoever opens the file next,
or nothing is done. Every operation opens and closes a connection of its own: nothing is carried over a fork or into a
pickle.
"""

import contextlib
import os
import pathlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import TypeVar

from kngjax.ledger.book import BEFORE_ALL, Book, LedgerError, Row

# How long to wait for other processes, in seconds.
PATIENCE = 60.0
WITHOUT_HEAD = "the ledger does not contain this head: it was set back, or changed from some row on"
SCHEMA = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, phase TEXT NOT NULL, reservation INTEGER UNIQUE, guarantee TEXT, "
    "content TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TRIGGER entry_stays BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    "CREATE TRIGGER entry_is_fixed BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    # INSERT OR REPLACE deletes without the trigger above.
    "CREATE TRIGGER entry_follows BEFORE INSERT ON entry WHEN "
    "NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entry) OR NEW.previous IS NOT "
    f"coalesce((SELECT digest FROM entry ORDER BY number DESC LIMIT 1), '{BEFORE_ALL}') OR "
    "EXISTS (SELECT 1 FROM entry WHERE reservation = NEW.reservation) "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
)
_INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)"
Result = TypeVar("Result")


def create(path: pathlib.Path, first: Row) -> None:
    """Makes a new file with one row, durable; raises FileExistsError where the file exists already."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for a ledger")
    try:
        # For the owner's eyes, and never over another ledger.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise FileExistsError(f"{path} exists already: open it with Ledger(path); a ledger is never reset") from None
    with _connected(path) as connection, _transaction(connection, "BEGIN IMMEDIATE"):
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute(_INSERT, _fields(first))
    sync_folder(path.parent)


def sync_folder(path: pathlib.Path) -> None:
    """Writes the names in a folder to the disk, as far as the system lets one."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: pathlib.Path, thorough: bool = False, until: str | None = None) -> Book:
    """Reads the book in the file.

    **Arguments:** `thorough`: also let SQLite check its pages. `until`: the digest of the last row that is read.
    """
    with _connected(path) as connection, _transaction(connection, "BEGIN"):
        if thorough and (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise LedgerError(f"the pages of {path} are damaged: {found[0][0]}")
        return _book(connection, path, until)


def append(path: pathlib.Path, following: Callable[[Book], tuple[list[Row], Result]]) -> Result:
    """Appends the rows that follow from what the file says now; durable when this returns, all of them or none.

    One writer at a time among all processes: the others wait, `PATIENCE` seconds at most.
    """
    with _connected(path) as connection:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            rows, result = following(_book(connection, path))
            connection.executemany(_INSERT, [_fields(row) for row in rows])
        return result


def _fields(row: Row) -> tuple[int | str | None, ...]:
    return row.number, row.phase, row.reservation, row.guarantee, row.content, row.previous, row.digest


def _book(connection: sqlite3.Connection, path: pathlib.Path, until: str | None = None) -> Book:
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    if tuple(statement for (statement,) in connection.execute(query)) != SCHEMA:
        raise LedgerError(f"{path} is no ledger, or its table or triggers were changed")
    try:
        rows = [Row(*row) for row in connection.execute("SELECT * FROM entry ORDER BY number")]
        if until is not None:
            place = next((number for number, row in enumerate(rows, start=1) if row.digest == until), None)
            if place is None:
                raise LedgerError(WITHOUT_HEAD)
            rows = rows[:place]
        return Book.of(rows)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LedgerError(f"a row of {path} cannot be read: the file was changed") from None


@contextlib.contextmanager
def _connected(path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no ledger {path}: make one with Ledger.create or 'kngjax ledger create'")
    if path.stat().st_nlink > 1:
        raise LedgerError(f"{path} has a second name (a hard link), and SQLite's journal goes by names: remove one")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.as_uri()}?mode=rw", timeout=PATIENCE, isolation_level=None, uri=True)
        ) as connection:
            for pragma in ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {pragma}")
            _require_rollback_journal(connection, path)
            yield connection
    except sqlite3.Error as error:
        reason = f"{error}" or type(error).__name__
        raise LedgerError(f"{path} cannot be used as a ledger, and nothing is released: {reason}") from None


def _require_rollback_journal(connection: sqlite3.Connection, path: pathlib.Path) -> None:
    """The mode is kept in the file: with a write-ahead log a copy of the one file could lack the last debits."""
    try:
        # Moves what the log holds into the file.
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    except sqlite3.OperationalError as error:
        mode = f"unknown: {error}"
    if mode != "delete":
        raise LedgerError(
            f"the journal of {path} is not SQLite's rollback journal ({mode}), so that a copy of the file could lack "
            "debits, and other programs have it open: close them, and nothing else need be done"
        )


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A failed commit may have ended the transaction by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
