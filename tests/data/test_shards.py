"""Rows spread over devices: the same draws up to rounding; and refusals before anything is spent."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[2]
BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-2.0, 2.0), columns=2)
BOX = kng.Box(-3.0, 3.0)
ROWS = 1003  # divisible by neither 2 nor 8
COUNTS = (1, 2, 8)
# Without a row of zeros on any device: the bandwidth that scales the start of a chain for quantiles sees those.
EVEN = 1000
LOSSES = {
    "squared": kng.SquaredLoss(),
    "pseudo-Huber": kng.PseudoHuberLoss(0.7),
    "quantile": kng.QuantileLoss(0.3),
}


def mechanism(name, epsilon=1.0):
    return kng.KNG(LOSSES[name], BOUNDS, BOX, epsilon, "replace")


def rows(count=ROWS):
    random = np.random.default_rng(8)
    X = random.uniform(-1.0, 1.0, (ROWS, 2))
    return X[:count], (X @ [1.0, -0.5] + 0.3 * random.standard_normal(ROWS) + 0.2)[:count]


def slopes(mechanism, data):
    theta = np.array([0.1, 0.4, -0.3])
    with jax.enable_x64(True):
        gradient = jax.jit(lambda loss, data: loss.gradient(theta, data))(mechanism.loss, data)
        return [*np.array(gradient).tolist(), float(jax.jit(mechanism.log_density)(theta, data))]


def draws(mechanism, data, sampler=None):
    """Of few sweeps, after which rounding has not grown."""
    key, sizes = kng.research_key(1), {"num_draws": 3, "num_chains": 2, "num_warmup": 2}
    return kng.sample(mechanism, data, key=key, sampler=sampler, **sizes).theta.tolist()


def first_devices(count):
    return jax.sharding.Mesh(np.array(jax.devices()[:count]), ("rows",), axis_types=(AxisType.Auto,))


DEVICES = """
import gc, json, sys
import jax
import kngjax as kng
from tests.data import test_shards as here

name, found = sys.argv[1], {"devices": jax.device_count(), "wide": jax.config.jax_enable_x64}
for loss in here.LOSSES:
    for count in here.COUNTS:
        data = here.mechanism(loss).prepare(kng.shard(*here.rows(), here.first_devices(count)))
        found[f"{loss} {count}"] = here.slopes(here.mechanism(loss), data)
    parts = data.x.addressable_shards if hasattr(data, "x") else []
    found[f"{loss} shapes"] = sorted({part.data.shape for part in parts})
    del data, parts
mechanism = here.mechanism(name)
found["draws"] = here.draws(mechanism, mechanism.prepare(kng.shard(*here.rows(here.EVEN))))
gc.collect()
found["alive"] = [str(array.dtype) for array in jax.live_arrays() if array.dtype.itemsize == 8]
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "pseudo-Huber", "quantile"])
def test_one_two_and_eight_devices_give_the_same_up_to_rounding(name):
    """In a process with eight virtual devices and without the flag of 64-bit types."""
    # Compiling as this process does, so that sums are rounded alike.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, name],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"XLA_FLAGS": flags},
        timeout=300,
    )
    found = json.loads(done.stdout)
    assert (found["devices"], found["wide"]) == (8, False)
    for loss in LOSSES:
        assert found[f"{loss} shapes"] == ([] if loss == "squared" else [[126, 3]])
        expected = slopes(mechanism(loss), mechanism(loss).prepare(*rows()))
        for count in COUNTS:
            np.testing.assert_allclose(found[f"{loss} {count}"], expected, rtol=1e-12)
    expected = draws(mechanism(name), mechanism(name).prepare(*rows(EVEN)))
    np.testing.assert_allclose(found["draws"], expected, rtol=1e-12 if name == "squared" else 1e-9)
    assert found["alive"] == []


def test_what_is_refused():
    explicit = jax.make_mesh((1,), ("rows",))
    with pytest.raises(ValueError, match="must have Auto axes"):
        kng.shard(*rows(), explicit)
    with pytest.raises(TypeError, match="give X and y as they are"):
        kng.PrivateQuantile(0.5, kng.Bounds(y=(-2.0, 2.0)), 1.0, "replace").prepare(kng.shard(rows()[1]))
    perturbation = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.7), BOUNDS, BOX, 1.0, "replace")
    with pytest.raises(TypeError, match="give X and y as they are"):
        perturbation.prepare(kng.shard(*rows()))
    with pytest.raises(ValueError, match="bring their own responses"):
        mechanism("squared").prepare(kng.shard(*rows()), rows()[1])
    with pytest.raises(TypeError, match="shards are for research"):
        kng.release(mechanism("squared"), kng.shard(*rows()))
    assert "private" in repr(kng.shard(*rows()))


class OfSeveralProcesses(jax.Array):
    """Rows of which other processes hold a part, which this one cannot read."""

    is_fully_addressable = property(lambda self: False)

    def __init__(self, *shape):
        self._shape = shape

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: np.dtype(float))

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the data were touched")


@pytest.mark.parametrize("part", ["X", "y", "weights"])
def test_rows_of_several_processes_are_refused_before_anything_is_spent(part, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "budget", kng.Budget.pure(1), adjacency="replace", dataset="invented")
    X, y = rows()
    table, column = OfSeveralProcesses(ROWS, 2), OfSeveralProcesses(ROWS)
    given = {"X": (table, y, None), "y": (X, column, None), "weights": (X, y, column)}
    X, y, weights = given[part]
    bounds = BOUNDS if weights is None else kng.Bounds(x=(-1.0, 1.0), y=(-2.0, 2.0), columns=2, weight=2.0)
    refused = kng.KNG(kng.SquaredLoss(), bounds, BOX, 1.0, "replace")
    with pytest.raises(TypeError, match=r"is spread over several processes, .* keep all rows on one host, or read"):
        kng.release(refused, X, y, weights=weights, ledger=ledger)
    assert ledger.verify().num_rows == 1


def test_a_mesh_of_other_processes_is_refused(monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with pytest.raises(ValueError, match=r"devices of other processes, .* keep all rows on one host"):
        kng.shard(*rows())
