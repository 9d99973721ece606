"""Whoever never heard of 64-bit types still gets releases computed in them, and nothing of them stays behind."""

import functools
import gc
import json
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[2]
BUDGETS = ("split", "joint")


def build(name):
    if name in BUDGETS:
        return kng.PrivateQuantile([0.25, 0.5], kng.Bounds(y=(-1.0, 1.0)), 1.0, "replace", budget=name)
    loss = {"median": kng.QuantileLoss(0.5), "squared": kng.SquaredLoss(), "pseudo-Huber": kng.PseudoHuberLoss(0.7)}
    x, columns = (None, None) if name == "median" else ((0.0, 1.0), 1)
    bounds = kng.Bounds(x=x, y=(-1.0, 1.0), columns=columns)
    return kng.KNG(loss[name], bounds, kng.Box(-3.0, 3.0), 1.0, "replace")


def records(name):
    random = np.random.default_rng(5)
    X, y = random.uniform(size=(50, 1)), random.uniform(-1.0, 1.0, 50)
    return (None if name in (*BUDGETS, "median") else X), y


def sampler(name):
    """One that computes in JAX."""
    if name in BUDGETS:
        return None
    return kng.chains.EnsembleWalk(num_sweeps=4) if name == "pseudo-Huber" else kng.chains.Exact()


def origin(name):
    return np.zeros(1 if name == "median" else 2)


def research_draws(name):
    mechanism = build(name)
    data = mechanism.prepare(*records(name))
    return kng.sample(mechanism, data, key=kng.research_key(6), num_draws=3, num_chains=2, num_warmup=4).theta


PROGRAM = """
import gc, json, sys
import jax, numpy as np
import kngjax as kng
from tests.core import test_precision as here

found = {}
for name in sys.argv[1:]:
    mechanism = here.build(name)
    released = kng.release(mechanism, *here.records(name), sampler=here.sampler(name))
    draws = here.research_draws(name)
    own = mechanism.log_density(here.origin(name), mechanism.prepare(*here.records(name)))
    found[name] = {
        "value": released.value.tolist(),
        "types": [type(part).__name__ + " " + str(part.dtype) for part in (released.value, draws)],
        "draws": draws.tolist(),
        "own": str(own.dtype),
    }
    del own
    gc.collect()
    found[name]["alive"] = [str(array.dtype) for array in jax.live_arrays() if array.dtype.itemsize == 8]
found["flag"] = jax.config.jax_enable_x64
print(json.dumps(found))
"""


QUICK, LONG = ("median", "split"), ("squared", "pseudo-Huber", "joint")
every_mechanism = pytest.mark.parametrize("name", [*QUICK, *LONG])


@functools.cache
def found_elsewhere(group):
    """What a fresh process without the flag finds of these mechanisms."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *group], check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def elsewhere(name):
    return found_elsewhere(QUICK if name in QUICK else LONG)


def test_without_the_flag_draws_have_all_53_bits_and_leave_no_array_of_64():
    """In this process: a fresh one, that never heard of 64-bit types, takes seconds."""
    with jax.enable_x64(False):
        before = [array for array in jax.live_arrays() if array.dtype.itemsize == 8]
        draws = research_draws("split")
        gc.collect()
        known = set(map(id, before))
        assert [array for array in jax.live_arrays() if array.dtype.itemsize == 8 and id(array) not in known] == []
        assert jax.config.jax_enable_x64 is False
    assert (type(draws), draws.dtype) == (np.ndarray, np.float64)
    assert np.all(draws != draws.astype(np.float32))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(research_draws("split"), draws)


@pytest.mark.slow
@every_mechanism
def test_the_flag_stays_as_it_was(name):
    assert elsewhere(name)["flag"] is False


@pytest.mark.slow
@every_mechanism
def test_draws_have_all_53_bits_and_are_numpy(name):
    draws = np.array(elsewhere(name)[name]["draws"])
    assert np.all(draws != draws.astype(np.float32))
    assert elsewhere(name)[name]["types"] == ["ndarray float64"] * 2


@pytest.mark.slow
@every_mechanism
def test_draws_are_those_of_a_process_with_the_flag(name):
    np.testing.assert_allclose(elsewhere(name)[name]["draws"], research_draws(name), rtol=1e-12, atol=0)


@pytest.mark.slow
@every_mechanism
def test_no_array_of_64_bits_stays_alive(name):
    assert elsewhere(name)[name]["alive"] == []


@pytest.mark.slow
@every_mechanism
def test_what_the_caller_computes_follows_her_own_setting(name):
    assert elsewhere(name)[name]["own"] == "float32"
    assert build(name).log_density(origin(name), build(name).prepare(*records(name))).dtype == np.float64
