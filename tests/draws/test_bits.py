"""The operating system is the one source of bits: seeded generators and clocks that stand still change nothing."""

import random
import time

import numpy as np
import pytest

from tests.draws.cases import ROWS

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter_ns")


@pytest.mark.parametrize("name", ROWS)
def test_generators_that_are_seeded_alike_change_nothing(name, monkeypatch):
    row = ROWS[name]
    records, mechanism = row.records(), row.made(row.adjacencies[-1])
    for clock in CLOCKS:
        monkeypatch.setattr(time, clock, lambda: 1)
    values = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        values.append([row.release_of(mechanism, records).value for _ in range(row.certain)])
    assert not np.array_equal(*values)
