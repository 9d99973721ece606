"""What fails is told from what somebody ends from outside, whatever thread it is in; and neither holds the records."""

import asyncio
import functools
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import kngjax as kng
from kngjax.core import errors
from kngjax.core.errors import bare, holding_no_records, is_from_outside, run_hiding_errors, run_telling_refusals
from tests.held_by_errors import records_held
from tests.offenders import every_case

COUNT = 311
X = np.linspace(0.0, 1.0, COUNT)[:, None]
MEAN = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.25, "replace")


class TimeIsUp(Exception):
    """Raised by a caller's own timeout."""


class Panic(BaseException):
    """Raised by a compiled reader, though it is no Exception."""


def ring(signum, frame):
    raise TimeIsUp


class Bell:
    def __call__(self, signum, frame):
        raise TimeIsUp

    def ring(self, signum, frame):
        raise TimeIsUp


HANDLERS = {
    "a function": ring,
    "a partial function": functools.partial(ring),
    "a method": Bell().ring,
    "an object": Bell(),
    "a lambda": lambda signum, frame: ring(signum, frame),
}


@pytest.fixture
def handled():
    """Sets a handler of SIGUSR1, and the one before in the end."""
    before = signal.getsignal(signal.SIGUSR1)
    yield functools.partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


class Slow:
    """Private values that are read for so long that the caller's patience ends."""

    def __init__(self, end):
        self.end = end

    def __array__(self, dtype=None, copy=None):
        values = X.copy()
        self.end()
        return values


def test_a_callers_own_timeout_is_raised_as_it_is_and_holds_no_records(handled, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(9), adjacency="replace", dataset="people")
    with every_case() as case:
        for name, handler in HANDLERS.items():
            with case(name):
                handled(handler)
                with pytest.raises(TimeIsUp) as caught:
                    kng.release(MEAN, Slow(lambda: signal.raise_signal(signal.SIGUSR1)), ledger=ledger)
                assert (caught.value.__context__, caught.value.__cause__) == (None, None)
                assert records_held(caught.value, COUNT) == []
    assert float(ledger.read().spent.exact_epsilon) == 0.25 * len(HANDLERS)


def thrown(kind):
    raise kind("0.98")


INTERRUPTIONS = [KeyboardInterrupt, SystemExit, asyncio.CancelledError]


@pytest.mark.parametrize("kind", INTERRUPTIONS)
def test_what_ends_the_work_from_outside_holds_no_records(kind):
    with pytest.raises(kind) as caught:
        kng.release(MEAN, Slow(lambda: thrown(kind)))
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert records_held(caught.value, COUNT) == []


@pytest.mark.parametrize("kind", [TimeIsUp, TimeoutError, Panic, MemoryError])
def test_whatever_else_is_raised_is_one_constant_text(kind):
    with pytest.raises(kng.ReleaseFailed) as caught:
        kng.release(MEAN, Slow(lambda: thrown(kind)))
    assert records_held(caught.value, COUNT) == []
    assert not is_from_outside(caught.value)


def test_a_timeout_is_one_through_several_calls(handled):
    """What was bared once has no frame any more by which it could be told."""
    handled(ring)

    @holding_no_records
    def inner():
        signal.raise_signal(signal.SIGUSR1)

    for run in (run_hiding_errors, run_telling_refusals):
        with pytest.raises(TimeIsUp) as caught:
            run(inner)
        assert is_from_outside(bare(caught.value))


def test_warnings_are_silent_until_the_last_of_several_threads_is_done():
    """As of two releases: the first one that ends leaves the other silent, whoever sets filters meanwhile."""
    first_is_done, second_is_inside = threading.Event(), threading.Event()

    def loud(number):
        warnings.warn(f"0.98 is large, {number}", RuntimeWarning, stacklevel=1)

    def first():
        second_is_inside.wait(5)
        loud(1)

    def second():
        with warnings.catch_warnings():
            second_is_inside.set()
        first_is_done.wait(5)
        loud(2)

    def run_first():
        run_hiding_errors(first)
        first_is_done.set()

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=run_first), threading.Thread(target=run_hiding_errors, args=(second,))]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        assert heard == []
        loud(3)
        assert len(heard) == 1


def test_no_filter_of_warnings_stays():
    """Whatever else changes filters meanwhile, and whoever has them copied."""
    before = list(warnings.filters)
    copied = warnings.catch_warnings()

    def work():
        copied.__enter__()
        warnings.filterwarnings("error", "a text of its own")

    run_hiding_errors(work)
    assert warnings.filters[1:] == before
    copied.__exit__(None, None, None)
    assert warnings.filters == before


def test_filters_that_another_thread_restores_are_silent_too():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        # Pytest's own filters stand before those of a user's process.
        warnings.filters.insert(0, errors.silence.from_the_beginning)
        others = warnings.catch_warnings()
        others.__enter__()

        def work():
            others.__exit__(None, None, None)
            warnings.warn("0.98 is large", RuntimeWarning, stacklevel=1)

        run_hiding_errors(work)
        assert not heard
        warnings.warn("heard again", RuntimeWarning, stacklevel=1)
    assert [str(one.message) for one in heard] == ["heard again"]
