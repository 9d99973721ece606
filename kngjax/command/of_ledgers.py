"""Runs subcommands of ledgers, without JAX, each of which returns its exit status."""

import argparse
import csv
import json
import sys

from kngjax.ledger.book import COLUMNS
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger


def create(options: argparse.Namespace) -> int:
    """Makes a new ledger."""
    epsilon, delta, rho = options.epsilon, options.delta, options.rho
    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise ValueError("name the budget: --epsilon, --epsilon with --delta, or --rho")
    if options.by_zcdp and delta is None:
        raise ValueError("--by-zcdp needs --epsilon and --delta, of which rho follows")
    if options.distance is not None and rho is None:
        raise ValueError("--distance goes with --rho")
    if rho is not None:
        budget = Budget.zcdp(rho, options.distance or 0)
    elif delta is None:
        budget = Budget.pure(epsilon)
    else:
        budget = (Budget.converted if options.by_zcdp else Budget.approximate)(epsilon, delta)
    ledger = Ledger.create(
        options.file,
        budget,
        adjacency=options.adjacency,
        dataset=options.dataset,
        unit=options.unit,
        unproved="allow" if options.allow_unproved else "refuse",
    )
    print(ledger.read().explain())
    return 0


def show(options: argparse.Namespace) -> int:
    """Prints what is spent of a budget and what is left, or a line for each debit."""
    book = Ledger(options.file).read()
    if not options.csv:
        print(book.explain())
        return 0
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(book.rows())
    return 0


def releases(options: argparse.Namespace) -> int:
    """Prints the releases that were paid for, as JSON."""
    book = Ledger(options.file).read()
    entries = [
        {
            "reservation": number,
            "what": book.what[number].get("what"),
            "certificate": committed["certificate"],
            "release": json.loads(committed["release"]),
        }
        for number, committed in sorted(book.released.items())
    ]
    print(json.dumps(entries, indent=2))
    return 0


def verify(options: argparse.Namespace) -> int:
    """Follows the chain of digests and adds up again."""
    book = Ledger(options.file).verify(options.head)
    print(
        f"The ledger holds: {book.num_rows} rows, each with the digest of the one before; {book.left} is left.\n"
        f"Every release protects one {book.unit}.\n"
        f"Head: {book.head}\n"
        "A file set back to an earlier copy is found only by a head noted elsewhere: --head DIGEST."
    )
    return 0
