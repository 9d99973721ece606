"""Arithmetic that is not IEEE 754's, set as other libraries set it, is seen before anything is spent."""

import platform
import subprocess
import sys

import numpy as np
import pytest

import kngjax as kng
from kngjax.core import arithmetic

MEAN = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.25, "replace")

# Of this thread: the direction of rounding, or numbers below 2^-1022 as results (0x8000) and arguments (0x40) for 0.
SET = """
import ctypes, ctypes.util
import numpy as np
import kngjax as kng
from kngjax.core import arithmetic
assert arithmetic.broken() == []
libm = ctypes.CDLL(ctypes.util.find_library("m"))
state = (ctypes.c_uint32 * 8)()
assert libm.fegetenv(state) == 0
{change}
found = arithmetic.broken()
assert libm.fesetenv(state0) == 0 if "state0" in globals() else libm.fesetround(0) == 0
print(found)
"""
CHANGES = {
    "upward": "libm.fesetround(0x800)",
    "downward": "libm.fesetround(0x400)",
    "toward 0": "libm.fesetround(0xC00)",
    "small results are 0": "state0 = type(state)(*state); state[7] |= 0x8000; libm.fesetenv(state)",
    "small arguments are 0": "state0 = type(state)(*state); state[7] |= 0x40; libm.fesetenv(state)",
}


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="sets registers of x86-64")
@pytest.mark.parametrize("name", CHANGES)
def test_another_rounding_is_seen(name):
    program = SET.format(change=CHANGES[name])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert "float64" in done.stdout, done.stdout


def test_this_process_is_right():
    assert arithmetic.broken() == []


@pytest.mark.parametrize("name", arithmetic._OPERATIONS)
def test_one_unit_in_the_last_place_is_seen(name, monkeypatch):
    def off(x, y, right=arithmetic._OPERATIONS[name]):
        values = right(x, y)
        values[-1] = np.nextafter(values[-1], np.inf)
        return values

    monkeypatch.setitem(arithmetic._OPERATIONS, name, off)
    assert arithmetic.broken() == [f"{name} of float64"]


def test_products_of_more_digits_than_float64_has_are_seen(monkeypatch):
    """As a processor keeps them that computes in longer registers."""
    monkeypatch.setitem(arithmetic._OPERATIONS, "multiplication", lambda x, y: np.longdouble(x) * np.longdouble(y))
    assert "multiplication of float64" in arithmetic.broken()


def test_nothing_is_spent_where_arithmetic_is_wrong(tmp_path, monkeypatch):
    ledger = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(1), adjacency="replace", dataset="invented")
    monkeypatch.setitem(arithmetic._OPERATIONS, "division", lambda x, y: np.nextafter(x / y, 0.0))
    with pytest.raises(RuntimeError, match="division of float64"):
        kng.release(MEAN, np.full((5, 1), 0.5), ledger=ledger)
    assert ledger.verify().num_rows == 1
