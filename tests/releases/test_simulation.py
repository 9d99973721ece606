"""Simulations against a loop over replicates, on one device and on eight, and what they refuse."""

import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.base import AbstractChainSampler, AbstractSampler, Info
from kngjax.chains.exact.smooth import one_program
from kngjax.data.records import Records, prepare, prepare_simulated
from kngjax.releases import replicates, simulation
from kngjax.releases.chains import estimate
from kngjax.releases.simulation import _measured, error

# Replicates are compared with single runs in the last digits of float64.
pytestmark = pytest.mark.float64

BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
THETA = np.array([0.1, 0.4])
KEY = kng.research_key(3)


def design(key, num_records):
    x_key, noise_key = jax.random.split(key)
    X = jax.random.uniform(x_key, (num_records, 1), minval=-1.2, maxval=1.2)
    return X, THETA[0] + THETA[1] * X[:, 0] + 0.5 * jax.random.normal(noise_key, (num_records,)), jnp.asarray(THETA)


def mechanism(**changes):
    settings = {"loss": kng.SquaredLoss(), "bounds": BOUNDS, "domain": kng.L1Ball(1.0), "epsilon": 1.0}
    return kng.KNG(**{**settings, "adjacency": "replace", **changes})


def promised(max_records):
    return kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 1.0, 1.0, 1e-5, "replace", max_records=max_records)


CASES: dict[str, tuple[kng.KNG | kng.ObjectivePerturbation, AbstractSampler | None]] = {
    "exact": (mechanism(), kng.chains.Exact()),
    "walk": (mechanism(loss=kng.PseudoHuberLoss(0.2)), kng.chains.CoordinateWalk(num_sweeps=20)),
    "smooth": (mechanism(loss=kng.PseudoHuberLoss(0.2)), kng.chains.Exact()),
    "direct": (kng.ObjectivePerturbation(kng.SquaredLoss(), BOUNDS, kng.L1Ball(1.0), 1.0, "replace"), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_each_replicate_is_one_draw_from_its_own_data(name):
    built, sampler = CASES[name]
    found = kng.simulate(design, built, 5, KEY, num_records=40, sampler=sampler, batch_size=2, progress=False)
    assert found.theta.shape == (1, 1, 5, 2)
    assert (found.sizes.tolist(), found.epsilons.tolist()) == ([40], [1.0])
    draw = jax.jit(lambda data, key: kng.draw(built, data, key, sampler)[0])
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 40), 5)):
        data_key, draw_key = jax.random.split(key)
        X, y, _ = design(data_key, 40)
        expected = draw(built.prepare(X, y), draw_key)
        np.testing.assert_allclose(found.theta[0, 0, number], expected, rtol=1e-8)
        np.testing.assert_allclose(found.measures["error"][0, 0, number], np.linalg.norm(expected - THETA), rtol=1e-8)
    np.testing.assert_array_equal(found.truth, np.broadcast_to(THETA, (1, 5, 2)))


def numbers(key, num_records):
    return None, jax.random.uniform(key, (num_records,)), jnp.array([0.2, 0.5])


def test_what_does_not_compile_is_drawn_on_the_host_from_each_replicates_own_data():
    generate, sampler, epsilons = numbers, None, [0.5, 1.0]
    built = kng.PrivateQuantile([0.2, 0.5], kng.Bounds(y=(0.0, 1.0)), 1.0, "replace")
    found = kng.simulate(
        generate, built, 3, KEY, num_records=40, sampler=sampler, epsilons=epsilons, batch_size=2, progress=False
    )
    assert found.theta.shape == (1, 2, 3, 2)
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 40), 3)):
        data_key, draw_key = jax.random.split(key)
        X, y, theta = generate(data_key, 40)
        data = built.prepare(*(part for part in (X, y) if part is not None))
        for place, part in enumerate(jax.random.split(draw_key, 2)):
            at = eqx.tree_at(lambda mechanism: mechanism.epsilon, built, np.asarray(epsilons[place]))
            centre = None if sampler is None else estimate(built, data)
            expected, succeeded = kng.draw(at, data, part, sampler, centre)
            assert succeeded
            np.testing.assert_allclose(found.theta[0, place, number], expected, rtol=1e-8)
            error_here = np.linalg.norm(np.asarray(expected) - theta)
            np.testing.assert_allclose(found.measures["error"][0, place, number], error_here, rtol=1e-8)


class AtCentre(AbstractChainSampler):
    """Stays at the estimate about which a chain starts."""

    num_sweeps: int | None = eqx.field(static=True, default=1)
    num_warmup: int = eqx.field(static=True, default=0)

    def check(self, target):
        return None

    def noise(self, key, target, state, num_sweeps):
        return jnp.zeros(num_sweeps)

    def init(self, target, points, centre, key):
        return centre

    def step(self, target, state, noise):
        return state, Info(noise, noise, jnp.asarray(1), jnp.asarray(False))

    def position(self, target, state):
        return state


def test_chains_start_about_an_estimate_from_the_records_and_not_about_the_truth():
    built = mechanism()
    found = kng.simulate(design, built, 3, KEY, num_records=200, sampler=AtCentre(), progress=False)
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 200), 3)):
        X, y, _ = design(jax.random.split(key)[0], 200)
        expected = kng.owner.nonprivate.minimiser(built.loss, built.prepare(X, y))
        assert np.linalg.norm(expected - THETA) > 1e-3
        np.testing.assert_allclose(found.theta[0, 0, number], expected, atol=1e-5)


@pytest.mark.slow
class Stop(Exception):
    """Raised where a sampler is known and nothing has been drawn."""


@pytest.mark.parametrize(
    ("epsilons", "taken"),
    [
        (None, kng.chains.EnsembleWalk),
        ([1.0, 9.0], kng.chains.EnsembleWalk),
        ([9.0], kng.chains.Exact),
    ],
)
def test_the_sampler_that_nobody_chose_serves_the_smallest_n_and_epsilon(monkeypatch, epsilons, taken):
    def stop(_, mechanism, sampler, *others):
        raise Stop(type(sampler))

    monkeypatch.setattr(simulation.SimulatedPart, "of", stop)
    with pytest.raises(Stop) as stopped:
        kng.simulate(
            design, mechanism(loss=kng.PseudoHuberLoss(0.2)), 2, KEY, num_records=[900, 9000], epsilons=epsilons
        )
    assert stopped.value.args == (taken,)


@pytest.mark.slow
def test_what_a_batch_gave_up_is_drawn_on_the_host_from_the_same_data(monkeypatch):
    """With one round for each draw, of which many find none; those that did stay."""
    built, epsilons = mechanism(loss=kng.PseudoHuberLoss(0.2)), [0.5, 1.0]
    settings = {"num_records": 30, "sampler": kng.chains.Exact(), "epsilons": epsilons, "progress": False}

    def simulated():
        return kng.simulate(lambda *given: design(*given), built, 6, KEY, **settings)

    monkeypatch.setattr(one_program, "_ROUNDS", 1)
    monkeypatch.setattr(one_program, "_FURTHER_ROUNDS", 0)
    found = simulated()
    monkeypatch.setattr(replicates, "_ended_on_the_host", lambda results, *_: results)
    batch = simulated()
    kept = ~np.isnan(batch.theta)
    assert 0 < kept[..., 0].sum() < 12
    np.testing.assert_array_equal(found.theta[kept], batch.theta[kept])
    np.testing.assert_array_equal(found.truth, batch.truth)
    np.testing.assert_allclose(found.measures["error"], np.linalg.norm(found.theta - THETA, axis=-1), rtol=1e-8)
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 30), 6)):
        X, y, _ = design(jax.random.split(key)[0], 30)
        data = built.prepare(X, y)
        for place, part in enumerate(jax.random.split(jax.random.fold_in(key, 2), 2)):
            if not kept[0, place, number, 0]:
                at = eqx.tree_at(lambda mechanism: mechanism.epsilon, built, np.asarray(epsilons[place]))
                expected, _ = kng.draw(at, data, part, kng.chains.Exact(), estimate(built, data))
                np.testing.assert_allclose(found.theta[0, place, number], expected, rtol=1e-8)


def test_what_contradicts_its_proof_is_not_drawn_again():
    theta = np.array([[[np.inf], [0.3]]])
    part = replicates.SimulatedPart(mechanism(), None, None, False, True)
    results = replicates._ended_on_the_host(theta, design, 5, part, jax.random.split(KEY, 1))
    np.testing.assert_array_equal(results, [[[np.nan], [0.3]]])
    ones = _measured((lambda theta, truth: jnp.ones(()),), results.swapaxes(0, 1)[None], np.zeros((1, 1, 1)))
    np.testing.assert_array_equal(ones[0], [[[np.nan], [1.0]]])


@pytest.mark.slow
def test_every_epsilon_sees_the_same_data_and_tables_have_standard_errors():
    measures = {"slope": lambda theta, truth: theta[1] - truth[1], "error": error}
    found = kng.simulate(
        design,
        mechanism(),
        6,
        KEY,
        num_records=[30, 60],
        epsilons=[0.5, 90.0],
        sampler=kng.chains.Exact(),
        measures=measures,
        progress=False,
    )
    assert found.theta.shape == (2, 2, 6, 2)
    np.testing.assert_allclose(found.measures["slope"], found.theta[..., 1] - THETA[1])
    rows = found.table()
    assert [(row["n"], row["epsilon"]) for row in rows] == [(30, 0.5), (30, 90.0), (60, 0.5), (60, 90.0)]
    assert rows[3]["error"] == pytest.approx(np.mean(found.measures["error"][1, 1]))
    spread = np.std(found.measures["error"][1, 1], ddof=1) / np.sqrt(6)
    assert rows[3]["error_standard_error"] == pytest.approx(spread)
    # At ε = 90 noise is small against that of ε = .5, and the data are the same: least squares on Θ.
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 60), 6)):
        X, y, _ = design(jax.random.split(key)[0], 60)
        fit = kng.owner.nonprivate.minimiser(kng.SquaredLoss(), mechanism().prepare(X, y))
        assert np.linalg.norm(found.theta[1, 1, number] - fit) < 0.2
    assert "2 sizes x 2 epsilons x 6 replicates" in repr(found)


@pytest.mark.parametrize("bounds", [BOUNDS, kng.Bounds(x=([-0.5], [0.2]), y=(-0.1, 0.3), intercept=False)])
def test_generated_records_are_clipped_as_prepared_ones_are(bounds):
    X, y, _ = design(kng.research_key(0), 50)
    found = jax.jit(lambda X, y: prepare_simulated(bounds, X, y))(X, y)
    expected = prepare(bounds, X, y)
    assert isinstance(found, Records)
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(found.y, expected.y)


def test_means_have_no_response_and_are_drawn_from_each_replicates_own_data():
    built = kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace")

    def uniform(key, num_records):
        return jax.random.uniform(key, (num_records, 2)), None, jnp.full(2, 0.5)

    found = kng.simulate(uniform, built, 4, KEY, num_records=500, batch_size=2, progress=False)
    assert (found.theta.shape, found.sizes.tolist(), found.epsilons.tolist()) == ((1, 1, 4, 2), [500], [1.0])
    assert np.all(found.measures["error"] < 0.2)
    # Each replicate is one draw from its own data.
    draw = jax.jit(lambda data, key: kng.draw(built, data, key)[0])
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 500), 4)):
        data_key, draw_key = jax.random.split(key)
        X, _, theta = uniform(data_key, 500)
        expected = draw(built.prepare(X), draw_key)
        np.testing.assert_allclose(found.theta[0, 0, number], expected, rtol=1e-8)
        np.testing.assert_allclose(found.measures["error"][0, 0, number], np.linalg.norm(expected - theta), rtol=1e-8)


def test_several_mechanisms_see_the_same_data_and_one_program_draws_for_every_n_epsilon_and_replicate():
    bounds = kng.Bounds(x=(0.0, 1.0), intercept=False)
    several = {
        "l_inf": kng.KNormMechanism(bounds, 1.0, "replace"),
        "l_2": kng.KNormMechanism(bounds, 2.0, "replace", kng.L2()),
    }

    def uniform(key, num_records):
        return jax.random.uniform(key, (num_records, 2)), None, jnp.full(2, 0.5)

    settings = {"num_records": [40, 70, 300], "progress": False}
    found = kng.simulate(uniform, several, 4, KEY, **settings)
    before = replicates._draws.plain._cache_size()
    for name, mechanism in several.items():
        alone = kng.simulate(uniform, mechanism, 4, KEY, **settings)
        np.testing.assert_array_equal(found[name].theta, alone.theta)
        np.testing.assert_array_equal(found[name].truth, found["l_2"].truth)
        again = kng.simulate(uniform, mechanism.at_epsilon(3.0), 3, kng.research_key(0), num_records=65, progress=False)
        assert again.theta.shape == (1, 1, 3, 2)
    assert replicates._draws.plain._cache_size() == before


def test_mechanisms_with_a_promise_of_n_are_drawn_from_as_many_records_as_they_allow():
    built = promised(40)
    found = kng.simulate(design, built, 2, KEY, num_records=40, progress=False)
    draw = jax.jit(lambda data, key: kng.draw(built, data, key)[0])
    for number, key in enumerate(jax.random.split(jax.random.fold_in(KEY, 40), 2)):
        data_key, draw_key = jax.random.split(key)
        expected = draw(built.prepare(*design(data_key, 40)[:2]), draw_key)
        np.testing.assert_allclose(found.theta[0, 0, number], expected, rtol=1e-8)


def test_records_that_several_mechanisms_take_in_their_own_ways_share_the_memory():
    """Of pseudo-Huber losses, whose data are the records: 40 times 3 numbers, with the intercept 120 of 8 bytes."""

    def batch(most, *losses):
        parts = {
            str(number): replicates.SimulatedPart(mechanism(loss=loss), None, None, False, False)
            for number, loss in enumerate(losses)
        }
        return replicates.batch_of(design, 40, parts, most, 64, KEY)

    several = [kng.PseudoHuberLoss(0.2 + number / 8) for number in range(8)]
    one = batch(64_000, several[0])
    assert one > 1
    assert batch(64_000, several[0], several[0], several[0]) == one
    assert batch(64_000, *several) < one
    # Sums leave no records behind: a dozen numbers.
    assert batch(64_000, kng.SquaredLoss()) == 64
    assert batch(500, kng.SquaredLoss()) < 64


def test_records_of_a_design_are_summed_up_in_small_groups_as_they_are_one_by_one(monkeypatch):
    built = kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace")

    def simulated():
        return kng.simulate(lambda *given: numbers_in_two(*given), built, 8, KEY, num_records=50, progress=False).theta

    def numbers_in_two(key, num_records):
        return jax.random.uniform(key, (num_records, 2)), None, jnp.zeros(2)

    whole = simulated()
    monkeypatch.setattr(replicates, "_RECORDS_TOGETHER", 100)
    np.testing.assert_allclose(simulated(), whole, rtol=1e-12)


PROGRAM = """
import sys, jax, numpy as np
import kngjax as kng
from tests.releases.test_simulation import CASES, KEY, design
assert len(jax.devices()) == int(sys.argv[1])
parts = [kng.simulate(design, *case[:1], 20, KEY, num_records=50, epsilons=[0.5, 2.0], sampler=case[1], batch_size=2,
                      progress=False).theta for case in CASES.values()]
np.save(sys.argv[2], np.stack(parts))
"""


@pytest.mark.slow
def test_results_are_the_same_to_the_bit_on_eight_devices(tmp_path):
    found = []
    for number in (1, 8):
        path = tmp_path / f"{number}.npy"
        own = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}"
        flags = {"XLA_FLAGS": own, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", PROGRAM, str(number), str(path)]
        subprocess.run(command, check=True, env={**os.environ, **flags}, timeout=600)
        found.append(np.load(path))
    np.testing.assert_array_equal(*found)
    assert np.all(np.isfinite(found[0]))


def posterior(bounds=None):
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1) if bounds is None else bounds
    return kng.PosteriorSample(bounds, 10.0, 0.01, "replace", 50)


def test_a_mechanism_of_at_most_so_many_records_is_drawn_from():
    found = kng.simulate(design, posterior(), 2, KEY, num_records=50, progress=False)
    assert np.all(np.isfinite(found.theta))
    np.testing.assert_allclose(found.epsilons, posterior().epsilon)


REFUSED = [
    ({"mechanism": posterior(), "sampler": None, "num_records": [40, 51], "batch_size": 1}, "more records than max"),
    ({"mechanism": posterior(BOUNDS), "sampler": None, "num_records": 40}, "scalar bounds leave open"),
    ({"num_replicates": 0}, "at least 1"),
    ({"num_records": []}, "at least 1"),
    ({"batch_size": 0}, "at least 1"),
    ({"mechanism": {}}, "no mechanism"),
    ({"measures": {"both": lambda theta, truth: theta - truth}}, r"'both' returns an array of shape \(2,\)"),
    ({"design": lambda *given: (design(*given)[0], None, jnp.zeros(2))}, "no y, and SquaredLoss has a response"),
    ({"mechanism": promised(9), "sampler": None}, "more records than max_records"),
    ({"epsilons": [-1.0]}, "epsilon must be positive"),
    ({"mechanism": mechanism(loss=kng.PseudoHuberLoss(0.2)), "float32": True}, "on the host"),
]


@pytest.mark.parametrize(("changes", "advice"), REFUSED)
def test_what_it_refuses(changes, advice):
    settings = {
        "design": design,
        "mechanism": mechanism(),
        "num_replicates": 3,
        "key": KEY,
        "sampler": kng.chains.Exact(),
    }
    with pytest.raises(ValueError, match=advice):
        kng.simulate(**{**settings, "num_records": 10, "progress": False, **changes})


@pytest.mark.parametrize(
    ("X", "y", "advice"),
    [
        (None, None, "neither"),
        (np.zeros((3, 2)), np.zeros(3), "2 columns"),
        (np.zeros((3, 1)), np.zeros((3, 1)), "must return"),
    ],
)
def test_designs_that_do_not_fit_the_bounds_are_named(X, y, advice):
    with pytest.raises(ValueError, match=advice):
        prepare_simulated(kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0)), X, y)
