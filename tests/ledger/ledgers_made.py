"""Small ledgers of invented data."""

from kngjax.accounting import Guarantee
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger

TENTH = Guarantee.bounded_range("0.1", "replace")
# In the place of a release, and of a digest.
RELEASED = '{"value":[0.5]}'
DIGEST = "ab" * 32


def new(folder, budget=None, adjacency="replace", name="budget.ledger", unproved="refuse"):
    return Ledger.create(
        folder / name, budget or Budget.pure("0.3"), adjacency=adjacency, dataset="invented", unproved=unproved
    )
