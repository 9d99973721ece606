"""Whoever never heard of 64-bit types still gets releases computed in them, and nothing of them stays behind."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[1]
LOSSES = ("squared", "pseudo-Huber")
BUDGETS = ("split", "joint")


def build(name):
    if name in BUDGETS:
        return kng.PrivateQuantile([0.25, 0.5], kng.Bounds(y=(-1.0, 1.0)), 1.0, "replace", budget=name)
    loss = {"squared": kng.SquaredLoss(), "pseudo-Huber": kng.PseudoHuberLoss(0.7)}
    bounds = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0))
    return kng.KNG(loss[name], bounds, kng.Box(-3.0, 3.0), 1.0, "replace")


def records(name):
    random = np.random.default_rng(5)
    X, y = random.uniform(size=(50, 1)), random.uniform(-1.0, 1.0, 50)
    return (None if name in BUDGETS else X), y


def research_draws(name):
    mechanism = build(name)
    data = mechanism.prepare(*records(name))
    return kng.sample(mechanism, data, key=kng.research_key(6), num_draws=3, num_chains=2, num_warmup=4).theta


PROGRAM = """
import gc, json
import jax, numpy as np
import kngjax as kng
from tests import test_precision as here

found = {}
for name in here.LOSSES + here.BUDGETS:
    mechanism = here.build(name)
    released = kng.release(mechanism, *here.records(name))
    draws = here.research_draws(name)
    own = mechanism.log_density(np.zeros(2), mechanism.prepare(*here.records(name)))
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


@pytest.fixture(scope="module")
def elsewhere():
    """What a fresh process without the flag finds."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_the_flag_stays_as_it_was(elsewhere):
    assert elsewhere["flag"] is False


@pytest.mark.parametrize("name", LOSSES + BUDGETS)
def test_releases_have_all_53_bits_and_are_numpy(elsewhere, name):
    value = np.array(elsewhere[name]["value"])
    assert np.all(value != value.astype(np.float32))
    assert elsewhere[name]["types"] == ["ndarray float64"] * 2


@pytest.mark.parametrize("name", LOSSES + BUDGETS)
def test_draws_are_those_of_a_process_with_the_flag(elsewhere, name):
    np.testing.assert_allclose(elsewhere[name]["draws"], research_draws(name), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", LOSSES + BUDGETS)
def test_no_array_of_64_bits_stays_alive(elsewhere, name):
    assert elsewhere[name]["alive"] == []


@pytest.mark.parametrize("name", LOSSES + BUDGETS)
def test_what_the_caller_computes_follows_her_own_setting(elsewhere, name):
    assert elsewhere[name]["own"] == "float32"
    assert build(name).log_density(np.zeros(2), build(name).prepare(*records(name))).dtype == np.float64
