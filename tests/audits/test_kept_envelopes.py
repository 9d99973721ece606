"""Kept envelopes draw what new ones draw, bit by bit, and are made no more often than they must."""

import random

import numpy as np

from audits.kept_envelopes import keeping
from audits.processes_told_apart import worst_pair
from kngjax.releases.lattice.envelope import Envelope


def test_with_the_same_bits_the_same_curves_are_drawn_of_whichever_data_set():
    """One object draws of both neighbours in turn, and of a third data set of as many records as the second."""
    made, *neighbours = worst_pair()
    pairs = [*neighbours, (None, np.append(neighbours[1][1][1:], 0.5))]
    kept, of_new, of_kept = keeping(made), random.Random(0), random.Random(0)
    for _ in range(3):
        for pair in pairs:
            records = made.prepare(*pair)
            expected = made.draw(records, of_new.getrandbits)
            np.testing.assert_array_equal(kept.draw(records, of_kept.getrandbits), expected)
    assert of_new.getrandbits(64) == of_kept.getrandbits(64)


def test_an_envelope_is_made_once(monkeypatch):
    """The first curve's is the same for all draws, and beside it are as many as Θ has points, at most."""
    made, pair, _ = worst_pair()
    number, original = [], Envelope.__init__

    def counted(self, *given, **others):
        number.append(self)
        original(self, *given, **others)

    monkeypatch.setattr(Envelope, "__init__", counted)
    kept, records, bits = keeping(made), made.prepare(*pair), random.Random(1).getrandbits
    for _ in range(100):
        kept.draw(records, bits)
    domain = made.plans[0].domain
    assert len(number) <= 1 + 2 * int(domain.high[0] - domain.low[0] + 1)
