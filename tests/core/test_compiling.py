"""Which of its programs a function takes: a release compiles quickly, research well, the rest as JAX by default."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core import compiling
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.releases import chains
from tests.conftest import QUICK_COMPILING


@pytest.fixture
def no_flags(monkeypatch):
    if jax.default_backend() != "cpu":
        pytest.skip("programs are compiled quickly on processors alone")
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def halved():
    return Compiled(lambda values: values / 2.0)


def programs(function):
    return function._quick._cache_size(), function._well._cache_size()


@pytest.mark.usefixtures("no_flags")
def test_what_is_run_once_is_compiled_quickly_and_computes_the_same():
    function, values = halved(), np.arange(3.0)
    with quick_compilation():
        quick = function(values)
    assert programs(function) == (1, 0)
    np.testing.assert_array_equal(quick, function(values))
    assert programs(function) == (1, 1)


def test_who_chose_in_xla_flags_is_not_overruled(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
    function = halved()
    with quick_compilation():
        function(np.ones(2))
    function(np.ones(2))
    assert (*programs(function), function.plain._cache_size()) == (0, 0, 1)


@pytest.mark.usefixtures("no_flags")
def test_an_option_that_xla_does_not_know_is_no_failure(monkeypatch):
    monkeypatch.setitem(compiling.QUICKLY, "xla_of_another_year", 1)
    compiling._are_known.cache_clear()
    function = halved()
    with quick_compilation():
        function(np.ones(2))
    compiling._are_known.cache_clear()
    assert (*programs(function), function.plain._cache_size()) == (0, 0, 1)


@pytest.mark.usefixtures("no_flags")
def test_many_numbers_are_computed_by_the_program_that_runs_quickly(monkeypatch):
    monkeypatch.setattr(compiling, "MOST_NUMBERS", 3)
    function = halved()
    with quick_compilation():
        function(np.ones(4))
        function(np.ones(2))
    assert programs(function) == (1, 1)


def in_a_compiled_loop(function):
    return jax.lax.map(lambda number: number + jnp.sum(function(np.ones(3))), jnp.zeros(2))


INSIDE = {
    "Compiled": lambda inner: Compiled(lambda values: inner(values) + inner(np.ones(3)))(jnp.zeros(3)),
    "jit": lambda inner: jax.jit(lambda values: values + inner(np.ones(3)))(jnp.zeros(3)),
    "map": in_a_compiled_loop,
    "vmap": lambda inner: jax.vmap(inner)(jnp.ones((2, 3))),
    "eval_shape": lambda inner: jax.eval_shape(lambda: inner(np.ones(3))),
}


@pytest.mark.usefixtures("no_flags")
@pytest.mark.parametrize("way", INSIDE)
def test_inside_of_another_program_it_is_a_part_of_it(way):
    """JAX takes such options for whole programs alone, of which the first question whether XLA knows them is one."""
    compiling._are_known.cache_clear()
    inner = halved()
    with quick_compilation():
        INSIDE[way](inner)
    INSIDE[way](inner)
    assert programs(inner) == (0, 0)


@pytest.mark.usefixtures("no_flags")
def test_a_release_that_is_drawn_directly_compiles_quickly_and_research_where_it_reads_little(monkeypatch):
    bounds = kng.Bounds(x=([0.0], [1.0]), intercept=False)
    mechanism = kng.KNormMechanism(bounds, 1.0, "replace", kng.Ellipsoid([[1.0]]))
    x, drawn = np.linspace(0.0, 1.0, 7)[:, None], chains.compiled_independent_draws
    at_first = programs(drawn)
    kng.release(mechanism, x)
    released = programs(drawn)
    assert (released[0] > at_first[0], released[1]) == (True, at_first[1])
    data = mechanism.prepare(x)
    kng.sample(mechanism, data, key=kng.research_key(0), num_draws=2, num_chains=1)
    sampled = programs(drawn)
    assert (sampled[0] > released[0], sampled[1]) == (True, released[1])
    # So many draws of what the data hold are more.
    monkeypatch.setattr(compiling, "MOST_READ", 3 * sum(map(np.size, jax.tree.leaves(data))) - 1)
    kng.sample(mechanism, data, key=kng.research_key(0), num_draws=3, num_chains=1)
    assert (programs(drawn)[0], programs(drawn)[1] > sampled[1]) == (sampled[0], True)


@pytest.mark.usefixtures("no_flags")
@pytest.mark.parametrize("is_much", [False, True])
def test_many_sweeps_of_a_released_chain_run_by_the_program_that_runs_quickly(monkeypatch, is_much):
    bounds = kng.Bounds(x=([0.0], [1.0]), y=(0.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.L2Ball(1.0), 1.0, "replace")
    x, at_first = np.linspace(0.0, 1.0, 7), programs(chains.advance)
    settings = {"num_chains": 1, "num_discarded": 0, "num_kept": 1, "thinning": 2 + is_much, "progress": False}
    data, walk = mechanism.prepare(x[:, None], x), kng.chains.CoordinateWalk()
    monkeypatch.setattr(compiling, "MOST_READ", 10 if is_much else 10**6)
    with quick_compilation():
        chains.run_chains(mechanism, data, walk, np.zeros(2), kng.research_key(0), **settings)
    quick, well = (now - before for now, before in zip(programs(chains.advance), at_first, strict=True))
    assert (quick > 0, well > 0) == (not is_much, is_much)


def test_tests_compile_with_the_same_options():
    """But for those of JAX's own setting, which can be changed from test to test."""
    by_setting = {"xla_backend_optimization_level", "xla_llvm_disable_expensive_passes"}
    flags = [f"--{name}={str(value).lower()}" for name, value in compiling.QUICKLY.items() if name not in by_setting]
    assert sorted(flags) == sorted(QUICK_COMPILING)
