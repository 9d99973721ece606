"""The experiment of the IRLS note runs from its file, and its parts are the note's."""

import csv

import numpy as np
import pytest

from experiments import __main__ as command
from experiments import irls2016
from tests.experiments.test_experiments import CONFIGS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:chains of", "ignore:published_wishart")
def test_figure_1_runs_and_zcdp_is_ahead(tmp_path):
    config = CONFIGS / "irls2016" / "figure1.toml"
    assert command.main([str(config), "--smoke", "--output", str(tmp_path)]) == 0
    with (tmp_path / "irls2016.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {row["method"]: float(row["log_likelihood"]) for row in rows if row["n"] == "30000"}
    assert found["IRLS without privacy"] == max(found.values())
    assert found[irls2016.BASIC] + 0.5 < found[irls2016.ZCDP] < found["IRLS without privacy"]
    assert found[irls2016.NOTED_BASIC] + 0.5 < found[irls2016.NOTED_ZCDP]
    near = {row["method"]: float(row["log_likelihood"]) for row in rows if row["n"] == "3000"}
    assert abs(near["KNG median regression"] - near["IRLS without privacy"]) < 0.1
    assert set(irls2016.STYLES) == {row["method"] for row in rows}
    assert (tmp_path / "irls2016.png").stat().st_size < 200_000


def test_the_simulation_fits_its_bounds():
    data = irls2016.simulated(500, 4, 0.01, np.random.default_rng(0))
    assert data.x.shape == (500, 4)
    assert data.test_x.shape == (50, 4)
    assert np.abs(data.x).max() <= 0.5 * (1.0 + 1e-12)
    assert max(np.abs(data.y).max(), np.abs(data.test_y).max()) == 1.0


def test_the_likelihood_is_that_of_a_normal():
    data = irls2016.simulated(100, 2, 0.01, np.random.default_rng(1))
    theta = np.array([[0.3, -0.2]])
    squares = ((data.test_y - data.test_x @ theta[0]) / data.deviation) ** 2
    expected = np.mean(-0.5 * squares - np.log(data.deviation * np.sqrt(2.0 * np.pi)))
    np.testing.assert_allclose(irls2016.log_likelihood(theta, data), expected)


def test_parts_of_the_note_by_hand():
    part = irls2016.advanced_part(0.9, 1e-6, 10)
    np.testing.assert_allclose(np.sqrt(20.0 * np.log(1e6)) * part + 10.0 * part * np.expm1(part), 0.9)
    # Without noise the second iterate solves the weighted equations of the first.
    data = irls2016.simulated(300, 3, 0.01, np.random.default_rng(2))
    none = np.random.default_rng(0)
    first, second = (irls2016.published_irls(data, 5.0, count, 1.0, none, has_noise=False) for count in (1, 2))
    weights = 1.0 / np.maximum(0.2, np.abs(data.y - data.x @ first))
    np.testing.assert_allclose((data.x.T * weights) @ (data.y - data.x @ second), 0.0, atol=1e-10)


def test_settings_that_are_missing_are_named(tmp_path):
    with pytest.raises(ValueError, match="irls2016 needs the settings"):
        irls2016.run({"sizes": [10]}, tmp_path, smoke=True)
