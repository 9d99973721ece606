"""Plans of several releases of the same records, which `kngjax.release` carries out by one debit."""

import abc
from typing import Any

from kngjax.ledger.ledgers import Ledger, Reservation


class AbstractReleasePlan(abc.ABC):
    """Several releases that belong together. All of it is public."""

    @abc.abstractmethod
    def release(self, X: Any, y: Any, *, ledger: Ledger | Reservation | None, progress: bool | None) -> Any:
        """What the plan makes of the records, by one debit. Raises as `kngjax.release`."""

    @abc.abstractmethod
    def certify(self, X: Any, y: Any) -> Any:
        """What it will be, before a value is looked at."""
