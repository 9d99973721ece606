"""Envelopes of curves' draws, kept: of few records on a coarse lattice there are few, and many draws are quicker so."""

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from kngjax.releases.curves.halving import Curves, Halving
from kngjax.releases.curves.levels import Node
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.releases.lattice.envelope import Envelope
from kngjax.releases.lattice.problems import WholeRecords


def keeping(made: Halving | LocationScale) -> Any:
    """The same, which keeps every envelope that it draws from, and so the records: for data sets that are made up.

    An envelope has no state that a draw changes: with the same bits it draws what a new one of the same records draws.

    **Arguments:** `made`: how curves are drawn.
    """
    kept: dict[Hashable, Envelope] = {}

    def asked(name: Hashable, make: Callable[[], Envelope]) -> Envelope:
        if name not in kept:
            kept[name] = make()
        return kept[name]

    if isinstance(made, Halving):

        def envelope(node: Node, records: WholeRecords, curves: Curves) -> Envelope:
            beside = (None if index is None else curves[index].tobytes() for index in (node.below, node.above))
            name = (node.index, *_name(made.members(node, records, curves)), *beside)
            return asked(name, lambda: made.envelope(node, records, curves))

        return _with(dataclasses.replace(made), envelope=envelope)

    def location_envelope(records: WholeRecords) -> Envelope:
        return asked(_name(records), lambda: made.location_envelope(records))

    def scale_envelope(records: WholeRecords, location: np.ndarray) -> Envelope:
        return asked((*_name(records), location.tobytes()), lambda: made.scale_envelope(records, location))

    copy = dataclasses.replace(made, quantiles=keeping(made.quantiles))
    return _with(copy, location_envelope=location_envelope, scale_envelope=scale_envelope)


def _with(copy: Any, **methods: Callable[..., Envelope]) -> Any:
    """Its own methods in place of those of its class; frozen as it is."""
    for name, method in methods.items():
        object.__setattr__(copy, name, method)
    return copy


def _name(records: WholeRecords) -> tuple[bytes, bytes]:
    return records.x.tobytes(), records.y.tobytes()
