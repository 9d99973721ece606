"""Envelopes of curves' draws, kept: of few records on a coarse lattice there are few, and many draws are quicker so."""

import dataclasses
from collections.abc import Hashable

from kngjax.releases.curves.halving import Curves, Halving
from kngjax.releases.curves.levels import Node
from kngjax.releases.lattice.envelope import Envelope
from kngjax.releases.lattice.problems import WholeRecords


def keeping(made: Halving) -> Halving:
    """The same, which keeps every envelope that it draws from, and so the records: for data sets that are made up.

    An envelope has no state that a draw changes: with the same bits it draws what a new one of the same records draws.

    **Arguments:** `made`: how curves are drawn.
    """
    kept: dict[Hashable, Envelope] = {}

    def envelope(node: Node, records: WholeRecords, curves: Curves) -> Envelope:
        beside = (None if index is None else curves[index].tobytes() for index in (node.below, node.above))
        members = made.members(node, records, curves)
        name = (node.index, members.x.tobytes(), members.y.tobytes(), *beside)
        if name not in kept:
            kept[name] = made.envelope(node, records, curves)
        return kept[name]

    copy = dataclasses.replace(made)
    # It is frozen.
    object.__setattr__(copy, "envelope", envelope)
    return copy
