"""Defines which data sets are neighbours. Imports no JAX."""

import enum


class Adjacency(enum.StrEnum):
    """Says which two data sets are neighbours.

    `replace`: one record is exchanged for another, n is public (Hamming distance 1; Reimherr and Awan 2019).
    `add_remove`: one record more or less, n is private (Wang 2019).
    """

    REPLACE = "replace"
    ADD_REMOVE = "add_remove"

    @classmethod
    def parse(cls, adjacency: "str | Adjacency | None") -> "Adjacency":
        """The adjacency that a caller named; there is no default, since it changes every sensitivity.

        Raises ValueError if none or an unknown one was named.
        """
        if adjacency is None:
            raise ValueError(
                "adjacency must be named: 'replace' (one record exchanged, n public) "
                "or 'add_remove' (one record more or less, n private). It changes every sensitivity."
            )
        try:
            return cls(adjacency)
        except ValueError:
            raise ValueError(f"adjacency must be 'replace' or 'add_remove', got {adjacency!r}") from None

    def public_count(self, num_records: int | None) -> int | None:
        """Gives n where neighbours share it, under replace; None under add_remove, where n is private."""
        return num_records if self is Adjacency.REPLACE else None

    @property
    def pairs(self) -> str:
        """The pairs of neighbours in words."""
        if self is Adjacency.REPLACE:
            return "two data sets of the same size that differ in one record"
        return "two data sets of which one has one record more"
