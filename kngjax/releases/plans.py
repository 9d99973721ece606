"""Plans of several releases of the same records, which `kngjax.release` carries out by one debit."""

import abc
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.errors import holding_no_records
from kngjax.data.admission import Facts
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.releases.certificate import Certificate


class AbstractReleasePlan(abc.ABC):
    """Several releases that belong together. All of it is public."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name in {"release", "certify"} & vars(cls).keys():
            setattr(cls, name, holding_no_records(vars(cls)[name]))

    @abc.abstractmethod
    def release(self, X: Any, y: Any, *, ledger: Ledger | Reservation | None, progress: bool | None) -> Any:
        """Releases what the plan makes of the records, by one debit. Raises as `kngjax.release`."""

    @abc.abstractmethod
    def certify(self, X: Any, y: Any) -> Any:
        """Certifies what the plan will release, before a value is looked at."""


class AbstractDrawing(abc.ABC):
    """Every public setting of several releases of the same records that belong together. `mechanism`: of the first."""

    mechanism: Any

    @abc.abstractmethod
    def check(self, X: Any, y: Any) -> None:
        """Raises `UnfitType` for what records cannot be taken from as they are asked for; sees no value."""

    @abc.abstractmethod
    def certify(self, facts: Facts) -> list[Certificate]:
        """Certifies all releases, before a value is looked at."""

    @abc.abstractmethod
    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        """States what a ledger debits for all releases together, and whether it is proved that they cost no more."""

    @abc.abstractmethod
    def draw(self, X: Any, y: Any, progress: bool | None) -> list[Any]:
        """The releases. Private until all are kept: whether a later one fails may depend on the data."""
