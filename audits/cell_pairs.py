"""Pairs of tables that differ in one cell: how they came out, whether read from files or held in frames."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CellPairs:
    """Counts pairs of tables that differ in one cell, and tells those in which it reached another record.

    **Arguments:** `tried`: pairs, by reader or place where cells are read. `changed`: those in which the cell's own
    record became another. `differences`: pairs in which the number of records or another record changed, or that could
    not be read, in words.
    """

    tried: dict[str, int]
    changed: int
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """No other record changed; and the pairs are pairs: some records of their own did."""
        return not self.differences and self.changed > 0
