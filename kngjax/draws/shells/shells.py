"""Asks for draws in the space of gradients, and says what is promised publicly for them."""

from typing import Any

import equinox as eqx

from kngjax.chains.advice import GRADIENTS_UNASKED
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped

# From n·ε of so many times d² on draws take a few proposals where columns are even. Measured.
GRADIENTS_IF_EVEN = 100
EVEN = (
    "promised: no column is rare or nearly collinear with others, and the scale on which the loss bends is about as "
    "wide as the residuals"
)


class Shells(ShownAsTyped, AbstractModule):
    """Asks a release of KNG with a smooth loss for a draw in the space of gradients, with every rounding in its proof.

    A release takes such a draw unasked where n is public and nε ≥ 1500·d², times half of the largest score of Poisson
    regression if that score is above 2. `Shells` adds what a caller knows of the population or the design, never of the
    records. Its settings are public and stand in the certificate. A false promise costs time, and no privacy.

    It serves KNG with PseudoHuberLoss, LogisticLoss, PoissonLoss, and SmoothedQuantileLoss with its logistic kernel, on
    Box, L1Ball and L2Ball with uniform measure, in the norms LInf, WeightedLInf, L1 and L2 and its own.

    **Arguments:** `least_records`: a number that n is at least, for add_remove, where n is private. `is_even`: whether
    the caller promises that no column is rare (a dummy of one in a hundred is) or nearly collinear with others, and
    that the scale on which the loss bends, k of PseudoHuberLoss or the bandwidth, is about as wide as the residuals.
    Then 100·d² is enough in the place of 1500·d².
    """

    least_records: int | None = eqx.field(static=True, default=None)
    is_even: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        number = self.least_records
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**63):
            raise ValueError(f"least_records must be a positive whole number or None, got {number!r}")
        if not isinstance(self.is_even, bool):
            raise ValueError(f"is_even must be True or False, got {self.is_even!r}")

    @property
    def enough(self) -> int:
        """Returns the least n·ε/d² at which draws take a few proposals."""
        return GRADIENTS_IF_EVEN if self.is_even else GRADIENTS_UNASKED

    @property
    def promised(self) -> dict[str, Any]:
        """Names for a certificate what is promised."""
        given: dict[str, Any] = {} if self.least_records is None else {"least_records": self.least_records}
        return given | ({"is_even": True} if self.is_even else {})

    def count(self, known: int | None) -> int | None:
        """Returns a number that n is at least; None if none was promised. **Arguments:** `known`: n, or None."""
        if known is None or self.least_records is None:
            return self.least_records if known is None else known
        return min(self.least_records, known)
