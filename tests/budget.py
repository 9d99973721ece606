"""Holds each default test to two seconds of a processor, so that the whole suite stays within minutes.

A test's call is timed by `getrusage`, with the processes that it starts and without its fixtures, which others share. A
test beyond its budget is listed. Beyond twice its budget, which allows for a busy machine, it fails where all default
tests run; a test run by itself compiles what it shares with others, and is listed alone. On a slow processor, which a
loop of known length tells, the limit is as much later: tests tell what is wrong, and never how fast a machine is.
"""

import functools
import json
import resource
import statistics
import time

import pytest

BUDGET, BUSY = 2.0, 2.0
# The seconds that `_loop` takes of a processor of which two seconds are meant.
_NOMINAL = 0.05
_START = pytest.StashKey[float]()


def processor_seconds():
    """The seconds that this process and its finished children have taken of a processor."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _loop():
    start, total = time.process_time(), 0
    for number in range(10**6):
        total += number * number % 7
    return time.process_time() - start


@functools.cache
def slowness():
    """How many times as long as a nominal processor this one takes, and no less than once."""
    return max(1.0, statistics.median(_loop() for _ in range(5)) / _NOMINAL)


def budget_of(item):
    """The seconds that a test may take, by its marker `takes(seconds, why)`; slow ones may take any number."""
    if item.get_closest_marker("slow"):
        return float("inf")
    marker = item.get_closest_marker("takes")
    return marker.args[0] if marker else BUDGET


def may_fail(config):
    """Budgets are enforced where no files are named and slow tests are left out."""
    return config.option.markexpr == "not slow" and not config.option.file_or_dir


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_START] = processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    start = processor_seconds()
    result = yield
    taken, budget = processor_seconds() - start, budget_of(item)
    if taken > budget:
        item.user_properties.append(("over budget", taken))
    if may_fail(item.config) and taken > BUSY * budget and taken > BUSY * budget * slowness():
        pytest.fail(f"took {taken:.1f} processor seconds of {budget:g}: make it smaller, or nightly (slow)", False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    result = yield
    item.user_properties.append(("seconds", processor_seconds() - item.stash[_START]))
    return result


def pytest_terminal_summary(terminalreporter, config):
    """Lists tests beyond their budgets, and writes all tests' seconds where `--processor-seconds` asks for them."""
    reports = [report for some in terminalreporter.stats.values() for report in some if hasattr(report, "when")]
    for report in [report for report in reports if report.when == "call"]:
        if taken := dict(report.user_properties).get("over budget"):
            terminalreporter.line(f"{report.nodeid} took {taken:.1f} processor seconds")
    if file := config.option.processor_seconds:
        # Reports of passed teardowns stand under "".
        ended = {report.nodeid: dict(report.user_properties) for report in reports if report.when == "teardown"}
        seconds = {name: found["seconds"] for name, found in sorted(ended.items()) if "seconds" in found}
        file.write_text(json.dumps(seconds, indent=0), encoding="utf-8")
        terminalreporter.line(f"{len(seconds)} tests took {sum(seconds.values()):.0f} processor seconds")
