"""Which of its two programs a function takes: a release compiles quickly, all else as JAX does by default."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core import compiling
from kngjax.core.compiling import Compiled, programs_run_once


@pytest.fixture
def no_flags(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def halved():
    return Compiled(lambda values: values / 2.0)


def programs(function):
    return function._quick._cache_size(), function.optimised._cache_size()


@pytest.mark.usefixtures("no_flags")
def test_what_is_run_once_is_compiled_quickly_and_computes_the_same():
    function, values = halved(), np.arange(3.0)
    with programs_run_once():
        quick = function(values)
    assert programs(function) == (1, 0)
    np.testing.assert_array_equal(quick, function(values))
    assert programs(function) == (1, 1)


def test_who_chose_in_xla_flags_is_not_overruled(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
    function = halved()
    with programs_run_once():
        function(np.ones(2))
    assert programs(function) == (0, 1)


@pytest.mark.usefixtures("no_flags")
def test_inside_of_another_program_it_is_a_part_of_it():
    """JAX takes such options for whole programs alone."""
    inner = halved()
    outer = Compiled(lambda values: inner(values) + inner(np.ones(3)))
    with programs_run_once():
        np.testing.assert_array_equal(outer(jnp.zeros(3)), np.full(3, 0.5))
        np.testing.assert_array_equal(jax.vmap(inner)(jnp.ones((2, 3))), np.full((2, 3), 0.5))
        assert programs(outer) == (1, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_flags")
def test_a_release_compiles_quickly_and_research_does_not(monkeypatch):
    taken = []
    monkeypatch.setattr(Compiled, "__call__", _noting(taken))
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(), kng.Box(-1.0, 1.0), 1.0, "replace")
    y = np.linspace(-0.5, 0.7, 40)
    kng.release(mechanism, None, y, sampler=kng.Exact(), progress=False)
    assert taken
    assert all(taken)
    taken.clear()
    data = mechanism.prepare(None, y)
    kng.sample(mechanism, data, key=kng.research_key(0), sampler=kng.Exact(), num_draws=2, num_chains=1)
    assert taken
    assert not any(taken)


def _noting(taken):
    """A call that computes nothing quickly, and says whether it would have."""
    call = Compiled.__call__

    def noted(self, *arguments, **named):
        quick = compiling._ARE_RUN_ONCE.get() and compiling._is_for_us_to_say()
        taken.append(quick)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiling, "_is_for_us_to_say", lambda: False)
            return call(self, *arguments, **named)

    return noted
