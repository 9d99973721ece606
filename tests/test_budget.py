"""The budget of processor seconds: what is listed, what fails, and where."""

import time
from types import SimpleNamespace

import pytest

from tests import budget


class Item:
    def __init__(self, seconds, markexpr="not slow", files=()):
        marker = SimpleNamespace(args=(seconds, "a test of the budget"))
        self.markers = {"takes": marker}
        self.user_properties = []
        self.config = SimpleNamespace(option=SimpleNamespace(markexpr=markexpr, file_or_dir=list(files)))

    def get_closest_marker(self, name):
        return self.markers.get(name)


def run(item, seconds):
    """The hook around a call that computes for so many seconds."""
    running = budget.pytest_runtest_call(item)
    next(running)
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    with pytest.raises(StopIteration):
        running.send(None)


def test_a_call_within_its_budget_is_not_listed():
    item = Item(0.5)
    run(item, 0.0)
    assert not item.user_properties


def test_a_call_beyond_its_budget_is_listed_and_beyond_twice_as_much_fails(monkeypatch):
    item = Item(0.1)
    run(item, 0.11)
    assert dict(item.user_properties)["over budget"] > 0.1
    monkeypatch.setattr(budget, "slowness", lambda: 1.0)
    with pytest.raises(pytest.fail.Exception, match="processor seconds of"):
        run(Item(0.01), 0.04)
    monkeypatch.setattr(budget, "slowness", lambda: 3.0)
    run(Item(0.01), 0.04)
    with pytest.raises(pytest.fail.Exception, match="processor seconds of"):
        run(Item(0.01), 0.07)


def test_a_slow_processor_is_told_by_a_loop_and_a_fast_one_has_the_same_budget(monkeypatch):
    for seconds, expected in ((0.15, 3.0), (0.01, 1.0)):
        budget.slowness.cache_clear()
        monkeypatch.setattr(budget, "_loop", lambda seconds=seconds: seconds)
        assert budget.slowness() == pytest.approx(expected)
    budget.slowness.cache_clear()


@pytest.mark.parametrize("item", [Item(0.01, files=["tests/test_budget.py"]), Item(0.01, markexpr="slow")])
def test_a_test_that_runs_by_itself_or_at_night_is_listed_alone(item):
    run(item, 0.04)
    assert item.user_properties


def test_slow_tests_have_no_budget_and_others_two_seconds():
    item = Item(1.0)
    item.markers = {}
    assert budget.budget_of(item) == 2.0
    item.markers = {"slow": True}
    assert budget.budget_of(item) == float("inf")
