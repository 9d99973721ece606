"""What is timed agrees with what it is timed against."""

import argparse
import pathlib
import time

import jax
import numpy as np
import pytest

import benchmarks
import kngjax as kng
from benchmarks import (
    _coverage_tables,
    _quick_releases,
    _table,
    cold_start,
    gpu,
    interval_coverage,
    peers,
    per_instance,
    preview_against_measured,
    smooth_losses,
    squared_loss,
    streaming,
    walk,
)
from benchmarks.__main__ import ROOMS, main
from kngjax.data.records import Records
from kngjax.inference import gaussian_sums
from kngjax.owner.per_instance import ridge


@pytest.mark.slow
def test_three_ways_to_the_same_epsilons():
    random = np.random.default_rng(0)
    x, y = random.uniform(-1.0, 1.0, (200, 3)), random.uniform(-1.0, 1.0, 200)
    design = ridge.design(x.T @ x, x.T @ y, 1.0)
    found = per_instance.by_kngjax(x, y, design)
    np.testing.assert_allclose(found, per_instance.by_scipy(x, y, design.theta, design.factor), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found, per_instance.by_loop(x, y, design.theta, design.factor), rtol=1e-6, atol=1e-9)
    assert np.min(found) > 0.0


def test_three_ways_through_a_file(tmp_path):
    path = str(tmp_path / "people.parquet")
    streaming.write(path, 70_000)
    streamed, whole = streaming.by_kngjax(path), streaming.in_memory(path)
    assert float(streamed.count) == streaming.by_scan(path) == 70_000
    np.testing.assert_allclose(streamed.gram, whole.gram, rtol=1e-12)
    np.testing.assert_allclose(streamed.moment, whole.moment, rtol=1e-12)


@pytest.mark.slow
def test_scaled_up_statistics_are_those_of_so_many_rows():
    large = squared_loss.data_set(400_000, 3, 0)
    assert float(large.count) == 400_000
    np.testing.assert_allclose(large.gram / 400_000, np.diag([1.0, 1 / 3, 1 / 3]), atol=0.02)
    correlated = squared_loss.data_set(4000, 4, 0, 0.9).gram
    assert 0.8 < correlated[1, 2] / np.sqrt(correlated[1, 1] * correlated[2, 2]) < 0.95


@pytest.mark.slow
def test_a_row_of_the_table_is_of_exact_draws():
    mechanism = squared_loss.mechanisms()["exponential"]
    acceptance, rate, seconds, found = squared_loss.exact_row(mechanism, 300, 3, 4)
    assert 0.05 < acceptance <= 1.0
    assert min(rate, seconds) > 0.0
    assert found


@pytest.mark.slow
def test_a_numpy_loop_and_numpyro_walk_about_the_same_place():
    """Means of all methods, of the same moves, within what chains of their length may differ by."""
    given = walk.problem(2000, 3, 6)
    methods = [walk.by_kngjax, walk.by_numpyro_compiled, walk.by_numpy]
    draws = [method(given, 1500)(1) for method in methods]
    assert [part.shape[0] for part in draws] == [6, 6, walk.NUMPY_CHAINS]
    spread = draws[1].reshape(-1, 3).std(axis=0)
    for part in draws:
        assert np.all(np.abs(part[:, part.shape[1] // 10 :].mean(axis=(0, 1)) - draws[1].mean(axis=(0, 1))) < spread)
        assert np.all(part.reshape(-1, 3).std(axis=0) < 2.0 * spread)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable:UserWarning")
def test_tables_of_walks_and_of_smooth_losses_have_a_row_a_method():
    table = walk.rows(num_chains=3, num_moves=60, num_records=500, dimension=3, rounds=1)
    assert [row["method"] for row in table] == list(walk.METHODS)
    table += smooth_losses.rows(num_records=3000, dimension=3, num_draws=50, nuts_draws=10, walk_sweeps=20)
    for row in table:
        assert row.get("note") == "not installed" or 0.0 < row["warm"] < np.inf
        assert row.get("effective", 1.0) >= 0.0


@pytest.mark.slow
def test_previews_are_compared_with_draws():
    table = preview_against_measured.salaries(4000)
    made = preview_against_measured.ways(table)
    found = preview_against_measured.compared(table, made["objective perturbation, pseudo-Huber"], 40)
    # Forty draws have an error of a ninth; years are guessed by somebody, and do not fill their bounds.
    np.testing.assert_allclose(found["measured"] / found["own rows"], 1.0, atol=0.5)
    assert np.all(found["even"][1:] < found["guess"][1:])
    few = preview_against_measured.compared(table, made["KNG, median"], 2)
    assert np.all(few["measured"] > 0.0)


COVERAGE = argparse.Namespace(epsilon=[1.0], replicates=3, seconds=np.inf, draws=200, seed=0, exact=False)


@pytest.fixture(scope="module")
def people():
    return _coverage_tables.t5(3)


@pytest.mark.default_cases("logistic")
@pytest.mark.parametrize("kind", ["logistic", "tau=.9", "AdaSSP"])
def test_quick_sums_are_those_of_the_columns_of_all_records(kind, people):
    mechanism, table = people.mechanism(kind, 1.0, 500), people.draw(np.random.default_rng(0), 500)
    theta, y, served = np.array([0.5, -0.2, 0.3]), table.response(kind), 0
    for covariance in (
        kng.Sandwich(),
        kng.Sandwich(noise="zcdp"),
        kng.inference.IndependentErrors(),
        kng.inference.PublicDesign(people.rows),
    ):
        if (
            kind == "AdaSSP"
            and not isinstance(covariance, kng.inference.IndependentErrors)
            and covariance != kng.Sandwich()
        ):
            continue
        making = kng.WithIntervals(mechanism, covariance).making(500)
        columns = making.covariance.columns(Records(table.x, y), theta, making.curvature, mechanism.adjacency)
        sums = columns.sum(axis=0)
        if making.covariance.is_gaussian:
            sums = 500.0 * gaussian_sums.mean_moments(columns)
        np.testing.assert_allclose(_quick_releases.sums_of(making, table.x, y, theta), sums, rtol=1e-9, atol=1e-9)
        served += 1
    assert served == (2 if kind == "AdaSSP" else 4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in _coverage_tables.KINDS if kind != "tau=.9"])
def test_quick_estimates_have_the_law_of_research_draws(kind, people):
    """In mean and deviation of every coefficient, within five errors of 600 draws each.

    Not of a quantile in a tail: of so few records sixteen proposals cut its far tail, as the table says.
    """
    count, number = 800, 600
    mechanism, table = people.mechanism(kind, 1.0, count), people.draw(np.random.default_rng(1), count)
    y, random = table.response(kind), np.random.default_rng(2)
    fit, quick = _quick_releases.fit_of(mechanism.loss, table.x, y), _quick_releases.QuickRelease(mechanism)
    found = np.array([quick(table.x, y, fit, random).value for _ in range(number)])
    data = mechanism.prepare(table.x[:, 1:], y)
    sampler = kng.chains.GradientSpace() if isinstance(mechanism, kng.KNG) else None
    options = {"sampler": sampler, "num_draws": number, "num_chains": 1, "progress": False}
    drawn = np.asarray(kng.sample(mechanism, data, key=kng.research_key(3), **options).theta[0])
    deviations = drawn.std(axis=0)
    gaps = (found.mean(axis=0) - drawn.mean(axis=0)) / deviations
    np.testing.assert_allclose(gaps, 0.0, atol=5.0 * np.sqrt(2.0 / number))
    # A deviation of 600 draws of K-norm noise has an error of a thirtieth or so.
    np.testing.assert_allclose(found.std(axis=0) / deviations, 1.0, atol=0.2)


def test_what_a_quick_mechanism_solves_is_where_the_gradient_is_the_noise(people):
    table = people.draw(np.random.default_rng(0), 300)
    noises = np.random.default_rng(1).uniform(-4.0, 4.0, (5, 3))
    for kind in ("pseudo-Huber", "tau=.9", "logistic", "AdaSSP"):
        loss, y = people.mechanism(kind, 1.0, 300).loss, table.response(kind)
        fit = _quick_releases.fit_of(loss, table.x, y)
        records = Records(table.x, y)
        for theta, noise in zip(
            _quick_releases.Equation(loss, table.x, y).solutions(fit.theta, fit.inverse, noises), noises, strict=True
        ):
            np.testing.assert_allclose(np.asarray(loss.gradient(theta, records)), noise, atol=2e-3)


@pytest.mark.default_cases("AdaSSP")
@pytest.mark.parametrize("kind", ["objective", "AdaSSP"])
def test_a_cell_of_coverage_has_a_row_a_way(kind, people):
    options = argparse.Namespace(**vars(COVERAGE) | {"kinds": [kind], "ways": ["sandwich", "groups"]})
    rows = list(interval_coverage.measured(people, 2000, options))
    assert [(row["kind"], row["way"]) for row in rows] == [
        (kind, way) for way in ("without privacy", "naive", "sandwich", "groups")
    ]
    assert set().union(*rows) <= set(interval_coverage.COLUMNS)
    assert [row["replicates"] for row in rows] == [3, 3, 3, 0]
    assert all(0.0 <= row["least"] <= row["coverage"] <= 1.0 for row in rows if row["replicates"])
    assert rows[2]["width"] > rows[1]["width"] == 1.0


def test_tables_of_several_seeds_are_pooled():
    size = {"table": "t5", "records": "10000", "columns": "4", "epsilon": "1.0", "kind": "median"}
    made = {"replicates": "100", "intervals": "100", "coverage": "0.9", "width": "1.2"}
    rows = [
        *({"way": "naive"} | made, {"way": "sandwich"} | made),
        {"way": "sandwich"} | made | {"replicates": "300", "intervals": "300", "coverage": "0.96", "width": "1.4"},
        {"way": "zcdp"} | made | {"intervals": "40"},
        {"way": "groups"} | made | {"replicates": "0", "intervals": "", "coverage": "", "width": ""},
        {"way": "public"} | made | {"intervals": "0", "coverage": "", "width": ""},
    ]
    *_, line = interval_coverage.in_markdown([size | row for row in rows])
    name = "t5, n = 10,000, d = 4, epsilon = 1, median"
    gaussian, public = ".900 / 1.2 (40 of 100)", "none of 100"
    assert line == f"| {name} | 400 | .900 | .945 / 1.35 | {gaussian} | refused |  | {public} |"


def test_the_one_command_knows_every_room():
    folder = pathlib.Path(benchmarks.__file__).parent
    built = {path.stem for path in folder.glob("*.py") if not path.name.startswith("_")}
    assert built <= set(ROOMS)


def test_the_one_command_refuses_rooms_that_it_does_not_know(capsys):
    with pytest.raises(SystemExit):
        main(["no_such_room"])
    assert "there is no room 'no_such_room'" in capsys.readouterr().err


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("way", ["statsmodels OLS, no privacy", "KNG, squared loss"])
def test_peers_are_timed(way):
    found = _table.measured(peers.WAYS[way], time.time() - 5.0, (300, 2, 10))
    # The process is said to have started five seconds ago.
    assert found["first"] > 5.0
    assert 0.0 < found["warm"] < found["first"]
    assert found["peak"] > 10.0
    assert (found["draws"] is None) == ("no privacy" in way)
    assert way in str(_table.Row(way, **found))


def test_what_is_not_installed_is_said_to_be_skipped():
    (row,) = peers.rows((300, 2, 10), None, [peers.DIFFPRIVLIB])
    assert row.first is None
    assert "skipped: not installed" in str(row)


def test_a_way_that_fails_says_why():
    row = _table.fresh("benchmarks.peers", "no such way", (1,))
    assert row.first is None
    assert "failed: KeyError: 'no such way'" in str(row)


@pytest.mark.slow
def test_the_table_of_devices(tmp_path):
    device = jax.devices()[0]
    (found,) = gpu.measured(device, True, ("CoordinateWalk, 4 ",))
    assert found.device == device.device_kind
    assert 0.0 < found.warm < found.first
    assert found.rate == pytest.approx(80 / found.warm)
    header, line = gpu.write([found], tmp_path / "results").read_text().splitlines()
    assert header == "device,case,first,warm,rate"
    assert line.startswith(f'{device.device_kind},"CoordinateWalk, 4 chains, d = 3",')


@pytest.mark.slow
def test_a_release_from_a_fresh_process_compiles_few_programs():
    run = cold_start.release(cold_start.CONFIG)
    assert 3 <= run.compilations <= 30
    assert 0.0 < run.compiling < run.wall
