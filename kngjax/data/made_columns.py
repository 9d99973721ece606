"""Columns that the package makes of validated records: they need no second validation, and are clipped all the same."""

import numpy as np
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.bounds import Bounds


@owner_only
class MadeColumns(OwnerOnly):
    """Numbers made of validated records, each by itself: `kngjax.data.records.prepare_rows` takes them as X. Private.

    They are float64 and none is missing, so that they only have to be clipped.

    **Arguments:** `numbers`: a row a column of X, which `clipped_to` writes to.
    """

    numbers: Float[np.ndarray, "columns records"]

    def clipped_to(self, bounds: Bounds) -> Float[np.ndarray, "records columns"]:
        """Clips every number to the bounds of its column, in place.

        Raises ValueError for another number of columns, and for bounds that ask for more than to be clipped.
        """
        if bounds.x_lower is None or bounds.intercept or bounds.hull is not None or bounds.weight is not None:
            raise ValueError("made columns are clipped to a box, and have neither an intercept, a hull nor weights")
        if bounds.dimension not in (None, number := len(self.numbers)):
            raise ValueError(f"there are {number} made columns, and bounds of {bounds.dimension}")
        sides = (np.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
        lower, upper = (np.broadcast_to(side, number).tolist() for side in sides)
        for column, least, most in zip(self.numbers, lower, upper, strict=True):
            np.clip(column, least, most, out=column)
        return self.numbers.T
