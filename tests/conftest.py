"""Tests compute in float64 but for rooms that run as users do, and an array of the wrong rank is an error."""

import collections
import gc
import os
import pathlib
import shutil
import tempfile

# Before NumPy is loaded: threads of its products wait for each other, and take processors from other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# On some processors XLA writes to stderr, of each program that it has kept, that preferences are no features.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import jax
import pytest

from kngjax.core import side_doors
from tests import type_checks
from tests.budget import (  # noqa: F401
    pytest_runtest_call,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_terminal_summary,
)

# Tests of one file share a precision. These rooms keep JAX's default, as nearly all users do; what they import and
# make when they are collected holds no array of JAX.
jax.config.update("jax_enable_x64", True)
ROOMS_AS_USERS_HAVE_THEM = ("command", "data", "study", "owner", "releases", "sklearn")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The same examples in every run, however slow the machine.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fixed")

# Linux allows 65,530 mappings a process, and every compiled program takes several: without a limit of our own the
# compiler aborts after some thousand programs.
MOST_MAPPINGS = 40_000
TESTS_BETWEEN_CHECKS = 20
_TESTS = pathlib.Path(__file__).parent
_MAPPINGS = pathlib.Path("/proc/self/maps")
_PROGRAMS = "KNGJAX_PROGRAMS_OF_TESTS"

# Most of the time of tests is compiling, of default and of slow ones: together half the time of XLA's defaults or less.
# Tests that are marked with `runs_long` run longer than they compile: all is optimised for them.
QUICK_COMPILING = ["--xla_cpu_parallel_codegen_split_count=1"]
# XLA aborts on a flag that it no longer knows.
if jax.__version_info__ < (0, 11):
    QUICK_COMPILING.append("--xla_cpu_use_fusion_emitters=false")


def pytest_addoption(parser):
    parser.addoption(
        "--processor-seconds", type=pathlib.Path, metavar="FILE", help="write the processor seconds of each test there"
    )


def pytest_configure(config):
    """Types are checked but in slow tests, which call what others call; what CI does not run compiles as for users."""
    if config.option.markexpr != "slow":
        type_checks.check_package("kngjax")
        type_checks.check_package("audits")
    if config.option.markexpr in ("slow", "not slow"):
        os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_COMPILING))
        # Of processes that tests start, and of this one, which has read it.
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
        jax.config.update("jax_disable_most_optimizations", os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "true")
    keep_programs()


def keep_programs():
    """Compiles a program once in a run, whichever test and worker asks for it.

    Releases refuse to run beside a cache on a disk; this folder alone is none to them, and any other still is.
    """
    if _PROGRAMS not in os.environ:
        os.environ[_PROGRAMS] = tempfile.mkdtemp(prefix="programs-of-tests-")
    folder = os.environ[_PROGRAMS]
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    setting = side_doors._setting
    side_doors._setting = lambda name: "" if (value := setting(name)) == folder else value


def pytest_unconfigure(config):
    """The run that made the folder of programs, and none of its workers, removes it."""
    if not hasattr(config, "workerinput") and (folder := os.environ.pop(_PROGRAMS, None)):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def precision(request):
    """JAX's default precision in one room of three, float64 in the others."""
    room = request.path.relative_to(_TESTS).parts[0]
    if room not in ROOMS_AS_USERS_HAVE_THEM or request.node.get_closest_marker("float64"):
        yield
        return
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture
def in_float64():
    """JAX in float64, for a test that compares more digits than float32 has, wherever it stands."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def optimised_programs(request):
    """Tests that run longer than they compile have their programs compiled well."""
    if os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS") != "true" or not request.node.get_closest_marker("runs_long"):
        yield
        return
    # What other tests compiled would be run as it is.
    jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


def first_cases(cases, number):
    """So many of these cases, each in turn the one that shows most values of parameters that none before it has.

    Among such cases it is the first of those whose values were shown least often.
    """
    # One value of a parameter is one object in all cases; pytest counts cases in `indices`, and not values.
    values = {case: [(name, id(value)) for name, value in case.callspec.params.items()] for case in cases}
    chosen, shown = [], collections.Counter()
    while len(chosen) < min(number, len(cases)):
        rest = [case for case in cases if case not in chosen]
        counts = [[shown[value] for value in values[case]] for case in rest]
        chosen.append(rest[max(range(len(rest)), key=lambda place: (counts[place].count(0), -sum(counts[place])))])
        shown.update(values[chosen[-1]])
    return chosen


def named_cases(cases, names):
    """The cases of these names, as they stand in brackets behind the test's."""
    found = {case.callspec.id: case for case in cases}
    if unknown := set(names) - found.keys():
        raise pytest.UsageError(f"{cases[0].nodeid}: no such cases: {', '.join(sorted(unknown))}")
    return [found[name] for name in names]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem():
    """Of a test that is marked with `default_cases`, the other cases are slow, whatever was asked for."""
    made = yield
    cases = [
        case
        for case in (made if isinstance(made, list) else [])
        if case.get_closest_marker("default_cases") and not case.get_closest_marker("slow")
    ]
    if cases:
        wanted = cases[0].get_closest_marker("default_cases").args
        quick = first_cases(cases, *wanted) if isinstance(wanted[0], int) else named_cases(cases, wanted)
        for case in cases:
            if case not in quick:
                case.add_marker("slow")
    return made


def pytest_collection_finish():
    """What is imported stays: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def few_compiled_programs(request):
    """Forget compiled programs before there are too many for one process."""
    yield
    session = request.session
    session.tests_since_check = getattr(session, "tests_since_check", 0) + 1
    if session.tests_since_check < TESTS_BETWEEN_CHECKS or not _MAPPINGS.exists():
        return
    session.tests_since_check = 0
    with _MAPPINGS.open("rb") as lines:
        if sum(1 for _ in lines) > MOST_MAPPINGS:
            jax.clear_caches()
            gc.collect()
