"""Tables of devices: bounds by the work that a program does, a kernel by the loop that it replaces, peers by means."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

import kngjax as kng
from benchmarks import _chain_peers, _chains, _limits, _pallas_walk, _workloads, gpu
from kngjax.chains.coordinate_walk import WalkNoise

LENGTHS = _chains.Lengths(300, 3, (4, 100, 1000), (4, 20, 100), (4, 100, 200))


class Device:
    """A card, by what JAX says of it."""

    platform = "gpu"

    def __init__(self, device_kind):
        self.device_kind = device_kind


def test_what_binds_is_the_slowest_of_memory_arithmetic_and_the_chain():
    peaks = _limits.Peaks(100.0, 1000.0, 2000.0, 0.01, 0.5, 50.0, "made up")
    assert peaks.allowed(_limits.Work(700.0, 2000.0, 10.0, 30.0)) == (7.0, "memory")
    assert peaks.allowed(_limits.Work(70.0, 2000.0, 10.0, 10.0)) == (2.0, "arithmetic")
    assert peaks.allowed(_limits.Work(70.0, 2000.0, 10.0, 30.0)) == (3.0, "chain")
    assert peaks.allowed(_limits.Work(700.0, 2000.0, crossed=400.0)) == (8.0, "link")
    assert peaks.launches(_limits.Work(0.0, 0.0, 10.0)) == 5.0


def test_cards_are_known_by_their_kind_and_nothing_else_is(monkeypatch):
    monkeypatch.setattr(_limits, "measured", lambda device: None)
    assert _limits.peaks(Device("NVIDIA H100 80GB HBM3")) == _limits.CARDS["H100"]
    assert _limits.peaks(Device("NVIDIA H200")) == _limits.CARDS["H200"]
    assert [_limits.peaks(Device(kind)) for kind in ("NVIDIA H100 PCIe", "NVIDIA GH200 480GB", "cpu")] == [None] * 3


def test_operations_of_gradient_norms_are_those_that_the_compiler_counts():
    """In one block of records, where no loop hides them; a square root or a quotient counts as one there."""
    sizes = _workloads.QUICK._replace(thetas=64, records=512, dimension=12)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), _workloads.BOUNDS, kng.L1Ball(1.0), 1.0, "replace")
    data = mechanism.prepare(*_workloads.records(512, 12))
    program = jax.jit(lambda thetas, data: jax.vmap(mechanism.log_density, (0, None))(thetas, data))
    counted = program.lower(jnp.zeros((64, 12)), data).cost_analysis()["flops"]
    work = _workloads.gradient_norms(sizes).work
    of_functions = 64 * 512 * (_workloads.SCORE - 6.0)
    np.testing.assert_allclose(work.operations - of_functions, counted, rtol=0.2)


def test_gradient_norms_are_those_of_numpy():
    """At the θ of the workload, one at a time."""
    found = _workloads.gradient_norms(_workloads.QUICK).make()(kng.research_key(0))
    thetas = np.asarray(0.05 * jax.random.normal(kng.research_key(0), (50, 3)))
    x, y = _workloads.records(1000, 3)
    x = np.insert(x, 0, 1.0, axis=1)
    residuals = thetas @ x.T - y
    gradients = (residuals / np.sqrt(1.0 + (residuals / 0.5) ** 2)) @ x
    # Of features within 1 and scores within k one record changes a coordinate of the gradient by 2k = 1 at most.
    base = kng.L1Ball(1.0).log_density(thetas[0])
    np.testing.assert_allclose(found - base, -0.5 * np.max(np.abs(gradients), axis=1), rtol=1e-10)


def test_one_kernel_takes_the_path_of_the_scan_and_of_numpy():
    """Of the same noise, and at the wall of Θ too."""
    given = _chains.problem(LENGTHS._replace(records=30, dimension=2, walks=(_pallas_walk.BLOCK, 0, 12)))
    density, starts = _pallas_walk.density(given.mechanism, given.data), given.starts.T
    noise = _chains.normal_noise(np.random.default_rng(1), given.scales, 12, _pallas_walk.BLOCK)
    found = np.asarray(_pallas_walk.sweeps(density, starts, noise, 12, interpret=True))
    by_numpy = _chains.numpy_walk(density, starts, noise)
    np.testing.assert_allclose(found, by_numpy, rtol=0.0, atol=1e-14)
    walk = kng.chains.CoordinateWalk()

    @jax.jit
    def scan(mechanism, data, thetas, noise):
        target = mechanism.target(data)
        states = jax.vmap(lambda theta: walk.init(target, theta[None], thetas[0], jax.random.key(0)))(thetas)
        return jax.lax.scan(lambda states, noise: (walk.steps(target, states, noise)[0], None), states, noise)[0].theta

    last = scan(given.mechanism, given.data, given.starts, WalkNoise(*noise))
    np.testing.assert_allclose(found[-1], np.asarray(last).T, rtol=0.0, atol=1e-14)
    assert 0.2 < np.mean(np.diff(found, axis=0) != 0.0) < 0.9
    proposed = np.abs(found[:-1, 0] + noise.steps[1:, 0]) + np.abs(found[:-1, 1])
    assert np.mean(proposed > density.radius[0]) > 0.01


def test_a_kernel_of_twelve_coefficients_is_one_that_triton_takes():
    """As far as a machine without a card can tell: it is lowered for one."""
    d, key = 12, np.array([1, 2], np.uint32)
    density = _pallas_walk.Density(np.eye(d), np.zeros(d), np.ones(d), np.ones(1))
    counters = _pallas_walk.Counters(key, np.ones(d))
    traced = _pallas_walk.sweeps.trace(density, np.zeros((d, 2 * _pallas_walk.BLOCK)), counters, 100)
    assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_words_of_counters_are_those_of_threefry():
    random = np.random.default_rng(0)
    key, counters = random.integers(0, 2**32, 2, np.uint32), random.integers(0, 2**32, (2, 50), np.uint32)
    words = _pallas_walk.threefry(tuple(jnp.asarray(word) for word in key), *map(jnp.asarray, counters))
    np.testing.assert_array_equal(np.concatenate(words), np.asarray(threefry_2x32(key, counters.ravel())))


def test_numbers_of_counters_have_their_laws():
    """Normal and uniform by Kolmogorov's distance, and uncorrelated; the distances of 20,000 numbers are below .014."""
    chains, moves = np.meshgrid(np.arange(200, dtype=np.uint32), np.arange(100))
    key = (jnp.uint32(5), jnp.uint32(7))
    step, uniform = _pallas_walk._drawn(key, jnp.asarray(2.0), jnp.ravel(chains), jnp.ravel(moves))
    ranks = (np.arange(step.size) + 0.5) / step.size
    assert np.max(np.abs(jax.scipy.stats.norm.cdf(jnp.sort(step) / 2.0) - ranks)) < 0.014
    assert np.max(np.abs(np.sort(uniform) - ranks)) < 0.014
    assert abs(np.corrcoef(step, uniform)[0, 1]) < 0.035
    assert abs(np.corrcoef(jnp.abs(step), uniform)[0, 1]) < 0.035
    steps = np.reshape(step, chains.shape)
    assert abs(np.corrcoef(steps[:-1].ravel(), steps[1:].ravel())[0, 1]) < 0.035
    assert abs(np.corrcoef(steps[:, :-1].ravel(), steps[:, 1:].ravel())[0, 1]) < 0.035


def test_a_table_has_what_was_found_and_why_the_rest_was_not(tmp_path, capsys):
    device = jax.devices()[0]
    rows = list(gpu.measured(device, True, ("gradient norms", "kngjax walk as one Pallas"), 1.0))
    assert [bool(row.note) for row in rows] == [False, True]
    first, kernel = rows
    assert 0.0 < first.warm < first.first
    assert first.binds == "arithmetic"
    assert first.moved == 8.0 * 1050 * 4
    assert "interpreted" in kernel.note
    late = list(gpu.measured(device, True, ("gradient norms",), 0.0))
    assert [row.note for row in late] == ["left out: the minutes were over"]
    gpu.write(rows, device, tmp_path)
    # A later run keeps what it has not measured.
    with gpu.write([*late, gpu.Row("another", warm=2.0)], device, tmp_path).open() as file:
        lines = list(csv.DictReader(file))
    assert [line["case"] for line in lines][1:] == ["kngjax walk as one Pallas kernel", "another"]
    assert (lines[2]["warm"], lines[2]["share"]) == ("2", "")
    assert lines[0]["case"] == "gradient norms, 50 thetas x 1000 records"
    assert float(lines[0]["moved"]) == first.moved
    assert f"jax {jax.__version__}" in lines[0]["versions"]
    assert "first" in capsys.readouterr().out


def test_what_cards_allow_is_predicted_for_every_workload():
    _, header, *lines = gpu.predicted()
    assert header.split() == ["H100", "H200", "launches"]
    assert len(lines) == len(_workloads.workloads(_workloads.CARD, True)) == 12
    # 10^10 records of 4d + 24 operations at 33.5 Tflop/s.
    assert "0.021 arithmetic" in next(line for line in lines if line.startswith("gradient norms"))


@pytest.mark.slow
def test_all_chains_draw_from_one_law():
    """Means of all methods within what effective draws leave open, of those that are installed."""
    given = _chains.problem(LENGTHS)
    methods = {**_chains.WALKS, **_chain_peers.WALKS, **_chains.OTHERS, **_chain_peers.OTHERS}
    means, errors = [], []
    for name, method in methods.items():
        if gpu.why_left_out(jax.devices()[0], name, np.inf):
            continue
        thetas = method(given)(1)
        draws = kng.owner.Draws(thetas, "")
        means.append(thetas.mean(axis=(0, 1)))
        errors.append(thetas.std(axis=(0, 1)) / np.sqrt(draws.ess()))
    means, errors = np.array(means), np.array(errors)
    assert len(means) >= 7
    reference = np.average(means, axis=0, weights=errors**-2.0)
    assert np.all(np.abs(means - reference) < 5.0 * errors)
