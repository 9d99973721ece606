"""What is timed agrees with what it is timed against."""

import csv
import pathlib
import time

import numpy as np
import pytest

import benchmarks
import kngjax as kng
from benchmarks import (
    _table,
    cold_start,
    interval_coverage,
    peers,
    per_instance,
    persons,
    preview_against_measured,
)
from benchmarks.__main__ import ROOMS, main
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


@pytest.mark.takes(6, "studies are released and previewed whole")
def test_a_cell_of_coverage_is_of_whole_releases(monkeypatch, tmp_path, capsys):
    """Three tables, with a smaller population for the truth; and a cell that is refused."""
    whole = interval_coverage.t5(3)
    few = whole._replace(whole=whole.whole[:20_000])
    monkeypatch.setitem(interval_coverage.POPULATIONS, "t5", lambda d: few)
    arguments = ["interval_coverage", "t5:3:4000:1", "t5:3:200:.1", "--tables", "3", "--csv", str(tmp_path / "cells")]
    monkeypatch.setattr("sys.argv", arguments)
    interval_coverage.main()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("| t5 | 3 | 4000 | 1.0 | linear | replace | 3 |")
    assert "refused: " in second
    with (tmp_path / "cells").open(encoding="utf-8") as file:
        row, refused = csv.DictReader(file)
    assert 0.0 <= float(row["least"]) <= float(row["coverage"]) <= float(row["most"]) <= 1.0
    # Of three tables: robust intervals may be narrower than those of least squares, and H may be released too small.
    assert 0.5 < float(row["width"]) < 10.0
    assert refused["tables"] == "0"


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_the_fit_without_privacy_and_its_deviations_are_those_of_scipy(name):
    """Least squares in closed form; of the logistic loss the gradient is 0, and the covariance is that of White."""
    random = np.random.default_rng(0)
    x = np.column_stack([np.ones(2000), random.uniform(-1.0, 1.0, (2000, 2))])
    if name == "linear":
        loss, y = kng.SquaredLoss(), x @ [1.0, -0.5, 0.2] + random.standard_normal(2000) * (1.0 + x[:, 1])
        theta = np.linalg.lstsq(x, y)[0]
        score, curvature = x @ theta - y, np.ones(2000)
    else:
        loss, y = kng.LogisticLoss(), (random.uniform(size=2000) < 0.3 + 0.2 * x[:, 1]).astype(float)
        theta = interval_coverage.fitted(loss, x, y)[0]
        chance = 1.0 / (1.0 + np.exp(-x @ theta))
        score, curvature = chance - y, chance * (1.0 - chance)
    inverse = np.linalg.inv((x * curvature[:, None]).T @ x)
    found, covariance = interval_coverage.fitted(loss, x, y)
    np.testing.assert_allclose(found, theta, atol=1e-8)
    np.testing.assert_allclose(x.T @ score, 0.0, atol=1e-6)
    np.testing.assert_allclose(covariance, inverse @ ((x * score[:, None] ** 2).T @ x) @ inverse, rtol=1e-6)


def test_the_one_command_knows_every_room():
    folder = pathlib.Path(benchmarks.__file__).parent
    built = {path.stem for path in folder.glob("*.py") if not path.name.startswith("_")}
    assert built <= set(ROOMS)


def test_the_one_command_refuses_rooms_that_it_does_not_know(capsys):
    with pytest.raises(SystemExit):
        main(["no_such_room"])
    assert "there is no room 'no_such_room'" in capsys.readouterr().err


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("way", "sizes"),
    [
        (peers.SORT, (300,)),
        ("PrivateQuantile, five levels jointly", (300,)),
        ("a study's medians of five groups", (3000,)),
        ("statsmodels OLS, no privacy", (300, 2, 10)),
        ("KNG, squared loss", (300, 2, 10)),
    ],
)
def test_peers_are_timed(way, sizes):
    found = _table.measured(peers.WAYS[way], time.time() - 5.0, sizes)
    # The process is said to have started five seconds ago.
    assert found["first"] > 5.0
    assert 0.0 < found["warm"] < found["first"]
    assert found["peak"] > 10.0
    assert (found["draws"] is None) == ("no privacy" in way or way in peers.QUANTILES)
    assert way in str(_table.Row(way, **found))


def test_what_is_not_installed_is_said_to_be_skipped():
    (row,) = peers.rows((300, 2, 10), {}, [peers.DIFFPRIVLIB])
    assert row.first is None
    assert "skipped: not installed" in str(row)


def test_a_way_that_fails_says_why():
    row = _table.fresh("benchmarks.peers", "no such way", (1,))
    assert row.first is None
    assert "failed: KeyError: 'no such way'" in str(row)


@pytest.mark.slow
def test_a_release_from_a_fresh_process_compiles_few_programs():
    run = cold_start.release(cold_start.CONFIG)
    assert 3 <= run.compilations <= 30
    assert 0.0 < run.compiling < run.wall


def test_the_ways_to_protect_persons_are_compared_with_the_fit_of_one_vote():
    """The fit solves its equation, a way keeps what it says, and its errors fall with epsilon."""
    random = np.random.default_rng(0)
    table = persons.made_up(300, random)
    theta, error = persons.one_vote(table)
    sizes = np.bincount(table.person)
    residual = np.insert(table.x, 0, 1.0, axis=1) @ theta - table.y
    scores = (residual / np.sqrt(1.0 + (residual / persons.LOSS.k) ** 2) / sizes[table.person])[:, None] * table.x
    np.testing.assert_allclose(scores.sum(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(theta, [0.0, 0.5, 0.0], atol=5.0 * error.max())
    assert np.array_equal(np.bincount(persons.some(table, 3, random).person), np.minimum(sizes, 3))
    np.testing.assert_allclose(persons.means(table).y.mean(), np.sum(table.y / sizes[table.person]) / 300)
    # Cells of a row are numbers behind the two that name it.
    near, far = (list(persons.row("one vote", table, epsilon, 5, random).values())[2:] for epsilon in (50.0, 0.2))
    assert max(near) < max(far)
    for way in persons.WAYS:
        assert np.isfinite(persons.released(way, table, 1.0, random)).all()
