"""Small ledgers of invented data."""

from kngjax.accounting import Guarantee
from kngjax.ledger import Budget, Ledger

TENTH = Guarantee.bounded_range("0.1", "replace")
# Of no release.
DIGEST = "ab" * 32


def new(folder, budget=None, adjacency="replace", name="budget.ledger"):
    return Ledger.create(folder / name, budget or Budget.pure("0.3"), adjacency=adjacency, dataset="invented")
