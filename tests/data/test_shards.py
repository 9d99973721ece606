"""Rows spread over devices and over processes: the same draws up to rounding, one release, refusals of all together."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

import kngjax as kng
from kngjax.data import exact_sums

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
# What serves it where rows are spread over processes.
CHAINS = {"pseudo-Huber": kng.EnsembleWalk()}


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
value = kng.release(mechanism, kng.shard(*here.rows()), sampler=here.CHAINS.get(name)).value
found["released"] = [str(value.dtype), len(value)]
gc.collect()
found["alive"] = [str(array.dtype) for array in jax.live_arrays() if array.dtype.itemsize == 8]
print(json.dumps(found))
"""


def environment(flag="", **more):
    """Compiling as this process does, so that sums are rounded alike."""
    # Flags of blanks alone would be taken for the name of a file.
    return os.environ | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()} | more


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "pseudo-Huber", "quantile"])
def test_one_two_and_eight_devices_give_the_same_up_to_rounding(name):
    """In a process with eight virtual devices and without the flag of 64-bit types."""
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, name],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment("--xla_force_host_platform_device_count=8"),
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
    assert found["released"] == ["float64", 3]
    assert found["alive"] == []


PROCESS = """
import json, sys, tempfile
import jax, numpy as np
number, address, name, refusals = int(sys.argv[1]), *sys.argv[2:]
jax.distributed.initialize(address, 2, number)
import kngjax as kng
from kngjax.core import randomness
from tests.data import test_shards as here

X, y = here.rows()
own = slice(0, 400) if number == 0 else slice(400, None)
X, y = X[own], y[own]
squared, mechanism = here.mechanism("squared"), here.mechanism(name)
data = mechanism.prepare(kng.shard(X, y))
key = kng.shard(X, y).processes.secure_key()
# The first process's ledger pays for all.
ledger = None
if number == 0:
    path = tempfile.mkdtemp() + "/budget.ledger"
    budget = kng.Budget.approximate(1, "0.1")
    ledger = kng.Ledger.create(path, budget, adjacency="replace", dataset="invented", unproved="allow")
found = {
    "slopes": here.slopes(mechanism, data),
    "draws": here.draws(mechanism, data),
    "released": kng.release(mechanism, kng.shard(X, y), ledger=ledger, sampler=here.CHAINS.get(name)).to_json(),
    "rows of the ledger": None if ledger is None else ledger.verify().num_rows,
    "key": [randomness.is_secure(key), jax.random.key_data(key).tolist()],
}
stream = kng.stream([(X[:100], y[:100]), (X[100:], y[100:])])
found["summary"] = [np.asarray(part).tolist() for part in jax.tree.leaves(squared.prepare(kng.shard(stream)))]
found["whole sums"] = kng.Lattice().prepare(squared, kng.shard(stream)).to_text()
found["on the lattice"] = kng.release(squared, kng.shard(X, y), sampler=kng.Lattice()).to_json()
means = kng.KNormMechanism(kng.Bounds(x=(-1.0, 1.0), columns=X.shape[1], intercept=False), 1.0, "replace")
parts = kng.stream([(X[:100], None), (X[100:], None)])
found["means"] = [kng.release(means, kng.shard(own)).to_json() for own in (X, parts)]
one_sided = kng.shard(kng.stream(iter([(X if number == 0 else X[:0], None)])))
found["means of one process"] = [str(total) for total in means.exact_sums(one_sided).moment]
holed = y.copy()
if number == 1:
    holed[7] = np.nan
bounds = kng.Bounds((-1.0, 1.0), (-2.0, 2.0), intercept=number == 0, columns=1 + number)
few = kng.PosteriorSample(here.BOUNDS, 100.0, 0.01, "replace", max_records=here.ROWS - 1)
several = kng.shard(X, y).processes
found["flags of one, of none"] = [several.is_so_on_any(number == 1), several.is_so_on_any(False)]
attempts = {
    "NaN": lambda: kng.release(squared, kng.shard(X, holed)),
    "NaN prepared": lambda: squared.prepare(kng.shard(X, holed)),
    "NaN in rows": lambda: kng.release(
        here.mechanism("pseudo-Huber"), kng.shard(X, holed), sampler=kng.EnsembleWalk()
    ),
    "smooth, drawn exactly": lambda: kng.release(here.mechanism("pseudo-Huber"), kng.shard(X, y)),
    "smooth, Exact by name": lambda: kng.release(
        here.mechanism("pseudo-Huber"), kng.shard(X, y), ledger=ledger, sampler=kng.Exact()
    ),
    "other epsilons": lambda: kng.release(here.mechanism("squared", 1.0 + number), kng.shard(X, y)),
    "other intercepts": lambda: kng.release(
        kng.KNG(kng.SquaredLoss(), bounds, here.BOX, 1.0, "replace"), kng.shard(X[:, : 1 + number], y)
    ),
    "other columns": lambda: kng.release(squared, kng.shard(X[:, : 1 + number], y)),
    "too many": lambda: kng.release(few, kng.shard(X, y)),
    "quantile": lambda: kng.release(here.mechanism("quantile"), kng.shard(X, y)),
    "spent": lambda: kng.release(squared, kng.shard(X, y), ledger=ledger),
}
for attempt in attempts if refusals == "refusals" else ():
    try:
        attempts[attempt]()
    except Exception as error:
        found[attempt] = f"{type(error).__name__}: {error}"
print("FOUND" + json.dumps(found))
"""


def two_processes(*arguments):
    """What each of two processes with rows of its own finds."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(number), address, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(JAX_ENABLE_X64="1"),
        )
        for number in range(2)
    ]
    try:
        ended = [process.communicate(timeout=300) for process in running]
    finally:
        for process in running:
            process.kill()
    for process, (_, errors) in zip(running, ended, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(output.partition("FOUND")[2]) for output, _ in ended]


def check_processes(name, processes):
    whole = mechanism(name).prepare(*rows())
    expected, expected_draws = slopes(mechanism(name), whole), draws(mechanism(name), whole, CHAINS.get(name))
    for found in processes:
        np.testing.assert_allclose(found["slopes"], expected, rtol=1e-12)
        np.testing.assert_allclose(found["draws"], expected_draws, rtol=1e-12 if name == "squared" else 1e-9)
    # One release and not two: of one key, to the same bits.
    first, second = (kng.Release.from_json(found["released"]) for found in processes)
    assert first == second


@pytest.fixture(scope="module")
def processes():
    return two_processes("squared", "refusals")


@pytest.mark.slow
def test_two_processes_give_what_one_gives_up_to_rounding(processes):
    check_processes("squared", processes)


@pytest.mark.slow
def test_two_processes_add_up_gradients():
    check_processes("pseudo-Huber", two_processes("pseudo-Huber", "none"))


@pytest.mark.slow
def test_two_processes_stream_into_one_summary(processes):
    assert processes[0]["summary"] == processes[1]["summary"]
    whole = jax.tree.leaves(mechanism("squared").prepare(*rows()))
    for found, expected in zip(processes[0]["summary"], whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_two_processes_sum_on_the_lattice_to_the_bit_and_release_once(processes):
    alone = kng.Lattice().prepare(mechanism("squared"), kng.shard(*rows()))
    assert [found["whole sums"] for found in processes] == [alone.to_text()] * 2
    first, second = (kng.Release.from_json(found["on the lattice"]) for found in processes)
    assert first == second
    assert first.certificate.assurance == "exact_with_rounding"
    one, other = (found["means"] for found in processes)
    assert one == other
    # Drawn anew, each with every rounding.
    means = [kng.Release.from_json(text) for text in one]
    assert not np.array_equal(means[0].value, means[1].value)
    assert {mean.certificate.assurance for mean in means} == {"exact_with_rounding"}
    # What a process brings may be empty.
    expected = [str(total) for total in exact_sums.column_sums(np.clip(rows()[0][:400], -1.0, 1.0))]
    assert [found["means of one process"] for found in processes] == [expected] * 2


@pytest.mark.slow
def test_two_processes_share_one_secure_key(processes):
    (secure, first), (_, second) = (found["key"] for found in processes)
    assert secure
    assert first == second
    assert len(set(first)) > 4


EVERYWHERE = {
    "smooth, drawn exactly": "ValueError: no exact sampler is sure to serve this density",
    "smooth, Exact by name": "ValueError: Exact cannot draw from this density here: exact draws of this loss are "
    "searched for by one process, and these rows are spread over several",
    "other epsilons": "ValueError: the processes have different mechanisms",
    "other intercepts": "ValueError: the processes have different mechanisms",
    "other columns": "ValueError: ",
    "too many": "ReleaseFailed: the release did not complete",
    "NaN": "ReleaseFailed: the release did not complete",
    "NaN in rows": "ReleaseFailed: the release did not complete",
    "quantile": "TypeError: chains for QuantileLoss start from a linear programme",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "message"), EVERYWHERE.items())
def test_what_all_processes_refuse(processes, name, message):
    for found in processes:
        assert found[name].startswith(message)


@pytest.mark.slow
def test_a_refusal_of_one_process_is_one_of_all(processes):
    assert processes[1]["NaN prepared"].startswith("ValueError: the data contain missing, NaN or infinite values")
    assert processes[0]["NaN prepared"].startswith("UnfitShape: another process refused its rows")


@pytest.mark.slow
def test_what_is_so_on_one_process_all_know(processes):
    assert [found["flags of one, of none"] for found in processes] == [[True, False]] * 2


@pytest.mark.slow
def test_one_release_of_several_processes_is_debited_once(processes):
    assert [found["rows of the ledger"] for found in processes] == [3, None]
    assert processes[0]["spent"].startswith("BudgetExceeded: the budget does not allow this")
    assert processes[1]["spent"].startswith("RuntimeError: the first process was refused by its ledger")


def test_what_is_refused():
    explicit = jax.make_mesh((1,), ("rows",))
    with pytest.raises(ValueError, match="must have Auto axes"):
        kng.shard(*rows(), explicit)
    with pytest.raises(TypeError, match="give X and y as they are"):
        kng.PrivateQuantile(0.5, kng.Bounds(y=(-2.0, 2.0)), 1.0, "replace").prepare(kng.shard(rows()[1]))
    perturbation = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.7), BOUNDS, BOX, 1.0, "replace")
    with pytest.raises(TypeError, match="give X and y as they are"):
        perturbation.prepare(kng.shard(*rows()))
    with pytest.raises(ValueError, match="brings its own responses"):
        mechanism("squared").prepare(kng.shard(*rows()), rows()[1])
    with pytest.raises(TypeError, match="must be in memory all at once"):
        mechanism("quantile").prepare(kng.shard(kng.stream([rows()])))
    assert "private" in repr(kng.shard(*rows()))
