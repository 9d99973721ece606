"""Arithmetic that is not IEEE 754's, set as other libraries set it, is seen before anything is spent."""

import math
import platform
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.core import arithmetic
from kngjax.draws.noisy_sums import NoisyMean

MEAN = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.25, "replace")

# Of this thread: the direction of rounding, or numbers below 2^-1022 as results (0x8000) and arguments (0x40) for 0.
SET = """
import ctypes, ctypes.util
import numpy as np
import kngjax as kng
from kngjax.core import arithmetic
{before}
libm = ctypes.CDLL(ctypes.util.find_library("m"))
state = (ctypes.c_uint32 * 8)()
assert libm.fegetenv(state) == 0
{change}
found = arithmetic.broken()
assert libm.fesetenv(state0) == 0 if "state0" in globals() else libm.fesetround(0) == 0
print(found)
"""
# Tried before, or for the first time where arithmetic is wrong: what is right must not come from it.
BEFORE = ("assert arithmetic.broken() == []", "pass")
CHANGES = {
    "upward": "libm.fesetround(0x800)",
    "downward": "libm.fesetround(0x400)",
    "toward 0": "libm.fesetround(0xC00)",
    "small results are 0": "state0 = type(state)(*state); state[7] |= 0x8000; libm.fesetenv(state)",
    "small arguments are 0": "state0 = type(state)(*state); state[7] |= 0x40; libm.fesetenv(state)",
}


@pytest.mark.default_cases("upward-pass", "small results are 0-assert arithmetic.broken() == []")
@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="sets registers of x86-64")
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", CHANGES)
def test_another_rounding_is_seen(name, before):
    program = SET.format(change=CHANGES[name], before=before)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    for name in arithmetic._OF_REALS:
        assert f"{name} of float64" in done.stdout, done.stdout
        assert f"{name} of Python's floats" in done.stdout, done.stdout


def test_this_process_is_right():
    assert arithmetic.broken() == []


@pytest.mark.parametrize("name", arithmetic._OF_REALS)
def test_one_unit_in_the_last_place_is_seen(name, monkeypatch):
    def off(x, y, right=arithmetic._BY_NUMPY[name]):
        values = right(x, y)
        values[-1] = np.nextafter(values[-1], np.inf)
        return values

    monkeypatch.setitem(arithmetic._BY_NUMPY, name, off)
    assert arithmetic.broken() == [f"{name} of float64"]


def of_bits(*bits):
    return np.array(bits, np.uint64).view(np.float64)


@pytest.mark.parametrize("share", [1.0, 0.5, 1.0 / 3.0, 2.0**-40])
def test_what_is_right_comes_from_whole_numbers(share):
    """As Python's own division of whole numbers and square root have it here, where nothing is broken."""
    generator = np.random.default_rng(5)
    for bits in [*generator.integers(0, 2**62, 200).tolist(), 0, 1, 2**52 - 1, 2**52, 2**52 + 1]:
        exact = Fraction(of_bits(bits).item()) * Fraction(share)
        assert of_bits(arithmetic._nearest(exact)).item() == float(exact)
        assert of_bits(arithmetic._nearest(-exact)).item() == -float(exact)
        assert of_bits(arithmetic._nearest_root(bits)).item() == math.sqrt(of_bits(bits).item())


def flushed(x, y, right):
    values = right(x, y)
    return np.where(np.abs(values) < 2.0**-1022, np.copysign(0.0, values), values)


def unsigned(x, y, right):
    """0 where float64 has -0."""
    return right(x, y) + 0.0


@pytest.mark.parametrize("wrong", [flushed, unsigned])
@pytest.mark.parametrize("name", arithmetic._OF_REALS)
def test_signs_of_zero_and_subnormal_numbers_are_seen_in_each_way(name, wrong, monkeypatch):
    """Wherever it is wrong: in whole arrays alone, next to each other or not, in what is left over, and in Python."""
    right = arithmetic._BY_NUMPY[name]
    ways = {
        "in one piece": lambda x: len(x) > 1 and x.strides == (8,),
        "of every other": lambda x: x.strides == (16,),
        "one at a time": lambda x: len(x) == 1,
        "left over": lambda x: len(x) == arithmetic._PAIRS,
    }
    for way, is_meant in ways.items():

        def changed(x, y, is_meant=is_meant, way=way):
            values = right(x, y)
            if is_meant(x):
                first = len(x) - 3 if way == "left over" else 0
                values[first:] = wrong(x, y, right)[first:]
            return values

        monkeypatch.setitem(arithmetic._BY_NUMPY, name, changed)
        assert arithmetic.broken() == [f"{name} of float64"], way
    monkeypatch.setitem(arithmetic._BY_NUMPY, name, right)
    by_python = arithmetic._BY_PYTHON[name]
    monkeypatch.setitem(arithmetic._BY_PYTHON, name, lambda x, y: float(wrong(np.array(x), np.array(y), by_python)))
    assert arithmetic.broken() == [f"{name} of Python's floats"]


def test_what_is_no_number_and_what_raises_is_seen(monkeypatch):
    def refuses(x, y):
        raise ZeroDivisionError

    monkeypatch.setitem(arithmetic._BY_NUMPY, "addition", lambda x, y: np.full(len(x), np.nan))
    monkeypatch.setitem(arithmetic._BY_PYTHON, "division", refuses)
    assert arithmetic.broken() == ["addition of float64", "division of Python's floats"]


def test_products_of_more_digits_than_float64_has_are_seen(monkeypatch):
    """As a processor keeps them that computes in longer registers."""
    monkeypatch.setitem(arithmetic._BY_NUMPY, "multiplication", lambda x, y: np.longdouble(x) * np.longdouble(y))
    assert "multiplication of float64" in arithmetic.broken()


def test_nothing_is_spent_where_arithmetic_is_wrong(tmp_path, monkeypatch):
    ledger = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(1), adjacency="replace", dataset="invented")
    monkeypatch.setitem(arithmetic._BY_NUMPY, "division", lambda x, y: np.nextafter(x / y, 0.0))
    with pytest.raises(RuntimeError, match="division of float64"):
        kng.release(MEAN, np.full((5, 1), 0.5), ledger=ledger)
    assert ledger.verify().num_rows == 1


def test_nothing_is_released_where_arithmetic_changes_during_the_draw(tmp_path, monkeypatch):
    """The debit stays, and nothing says why."""
    ledger = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(1), adjacency="replace", dataset="invented")
    drawn = []

    def draw(self, data, bits, right=NoisyMean.draw):
        drawn.append(right(self, data, bits))
        monkeypatch.setitem(arithmetic._BY_NUMPY, "division", lambda x, y: np.nextafter(x / y, 0.0))
        return drawn[-1]

    monkeypatch.setattr(NoisyMean, "draw", draw)
    with pytest.raises(kng.ReleaseFailed) as failed:
        kng.release(MEAN, np.full((5, 1), 0.5), ledger=ledger)
    assert len(drawn) == 1
    assert str(failed.value) == str(kng.ReleaseFailed())
    assert failed.value.__cause__ is failed.value.__context__ is None
    # The debit, and that it was drawn from.
    assert ledger.verify().num_rows == 3
