"""The operating system is the one source of bits: seeded generators and a clock that stands still change nothing.

Each way to draw in float64 (directly, on the host, by a sampler, by a chain) is tried, since each takes its bits
elsewhere; `tests/draws/test_bits.py` tries those of which every rounding is proved.
"""

import random
import time
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases import rounding

VALUES = np.linspace(-1.0, 1.0, 9)
NUMBERS, COLUMN = kng.Bounds(y=(-1.0, 1.0)), kng.Bounds(x=([-1.0], [1.0]), intercept=False)
MEDIAN = kng.KNG(kng.QuantileLoss(0.5), NUMBERS, kng.Box(-1.0, 1.0), 1.0, "replace")
WAYS = {
    "direct": (kng.KNormMechanism(COLUMN, 1.0, "replace", kng.Ellipsoid([[1.0]])), None),
    "on the host": (kng.PrivateQuantile([0.3, 0.6], NUMBERS, 1.0, "replace"), None),
    "sampled": (MEDIAN, kng.chains.Exact()),
    "chain": (MEDIAN, kng.chains.EnsembleWalk(num_sweeps=3)),
}


def data_of(mechanism):
    return {"y": VALUES} if mechanism.loss.has_response else {"X": VALUES[:, None]}


@pytest.mark.parametrize("name", WAYS)
def test_generators_that_are_seeded_alike_change_nothing(name, monkeypatch):
    mechanism, sampler = WAYS[name]
    # The offset of the rounding has bits of its own, which would hide that the draw has none.
    monkeypatch.setattr(rounding, "_offset", lambda: Fraction(0))
    for clock in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter_ns"):
        monkeypatch.setattr(time, clock, lambda: 1)
    assert kng.certify(mechanism, **data_of(mechanism), sampler=sampler).assurance != "proved"
    values = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        values.append(kng.release(mechanism, **data_of(mechanism), sampler=sampler, progress=False).value)
    assert not np.array_equal(*values)
