"""The report is the owner's; its summaries are NumPy's; it refuses what makes no sense; everybody is bounded."""

import copy
import itertools
import pickle
import sys

import matplotlib
import numpy as np
import pytest

import kngjax as kng
from kngjax.owner.per_instance import everyone, ridge

matplotlib.use("Agg")

BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))


def records(n=25, columns=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, columns))
    return X, np.clip(X.sum(axis=1) * 0.4 + 0.3 * random.standard_normal(n), -1.0, 1.0)


def posterior(bounds=BOUNDS, adjacency="add_remove", regularization=2.0, max_records=40):
    return kng.PosteriorSample(bounds, regularization, 3.0, adjacency, max_records)


def output(metric="identity", adjacency="add_remove", bounds=BOUNDS):
    return kng.OutputPerturbation(kng.SquaredLoss(), bounds, 80.0, 4.0, 1e-4, adjacency, metric, 40)


@pytest.fixture(scope="module")
def report():
    return kng.per_instance_privacy(posterior(), *records())


@pytest.mark.slow
def test_the_public_names():
    assert isinstance(kng.per_instance_privacy(posterior(), *records()), kng.owner.per_instance.PerInstanceReport)
    assert kng.owner.per_instance.facts.total_variation_bound(0.0, 0.0) == 0.0


@pytest.mark.slow
def test_shapes(report):
    assert report.epsilon.shape == report.leverage.shape == report.residual.shape == (25,)
    assert report.delta_at(0.1).shape == (25,)
    assert report.renyi([2.0, 3.0]).shape == (25, 2)
    assert report.renyi(2.0).shape == (25, 1)
    assert all(type(part) is np.ndarray for part in (report.epsilon, report.delta_at(0.1), report.renyi(2.0)))


def test_reports_say_whose_they_are(report):
    for shown in (repr(report), repr(report.summary()), report.summary().explain()):
        assert "OWNER ONLY" in shown
    assert "removed from the data" in repr(report)
    assert not any(f"{value:.3f}" in repr(report) + repr(report.summary()) for value in report.epsilon)


@pytest.mark.parametrize("write", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda write: write.__name__)
def test_neither_reports_nor_summaries_are_pickled(report, write):
    for private in (report, report.summary()):
        with pytest.raises(TypeError, match=r"not pickled.*save_for_owner"):
            write(private)


def test_the_owner_can_keep_it(report, tmp_path):
    report.save_for_owner(tmp_path / "report.npz")
    with np.load(tmp_path / "report.npz") as kept:
        np.testing.assert_array_equal(kept["epsilon"], report.epsilon)
        np.testing.assert_array_equal(kept["residual"], report.residual)
        assert float(kept["delta"]) == 1e-6


def test_summary(report):
    summary = report.summary(levels=(0.1, 0.5), orders=(1, 2.5))
    epsilon = report.epsilon
    np.testing.assert_allclose(
        [summary.mean, summary.variance, summary.maximum], [epsilon.mean(), epsilon.var(), epsilon.max()]
    )
    assert summary.quantiles == {0.1: np.quantile(epsilon, 0.1), 0.5: np.median(epsilon)}
    np.testing.assert_allclose(list(summary.moments.values()), [epsilon.mean(), np.mean(epsilon**2.5)])
    assert summary.worst_case == posterior().epsilon_at(1e-6, 3)
    assert "differential privacy, any data" in summary.explain()


def test_the_most_exposed(report):
    worst = report.worst(4)
    assert np.array_equal(worst, np.argsort(report.epsilon)[::-1][:4])
    assert len(report.worst(1000)) == 25
    with pytest.raises(ValueError, match="k must be a whole number"):
        report.worst(0)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["identity", "hessian", "hessian_squared"])
def test_nobody_within_the_bounds_exceeds_the_bound(metric):
    """Hundreds of records and every corner, against the largest attained and the bound."""
    X, y = records()
    mechanism = posterior() if metric == "hessian" else output(metric)
    random, corners = np.random.default_rng(2), np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    trials = np.vstack([random.uniform(-1.0, 1.0, (500, 2)), corners[:, :2]])
    ends = np.append(random.choice([-1.0, 1.0], 500), corners[:, 2])
    report = kng.per_instance_privacy(mechanism, X, y, targets=(trials, ends), delta=1e-4)
    assert np.max(report.epsilon) <= report.for_all.bound
    # Here a corner is the worst; what is called attained is a record's.
    np.testing.assert_allclose(report.for_all.attained, np.max(report.epsilon), rtol=1e-8)
    assert report.for_all.attained <= report.for_all.bound <= report.worst_case * (1.0 + 1e-9)
    assert "all vertices" in report.for_all.method


@pytest.mark.parametrize("intercept", [-2.0, 2.0])
def test_the_largest_residual_is_at_either_end_of_y(intercept):
    """|±1 ∓ 2.5|, of predictors within half of the intercept."""
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
    assert everyone.largest_residual(bounds, np.array([intercept, 0.5])) == pytest.approx(3.5, rel=1e-12)


@pytest.mark.slow
def test_many_columns_have_too_many_corners():
    X, y = records(30, columns=14)
    mechanism = posterior()
    report = kng.per_instance_privacy(mechanism, X, y)
    assert "farthest along some directions" in report.for_all.method
    corners = np.random.default_rng(3).choice([-1.0, 1.0], (4000, 14))
    others = kng.per_instance_privacy(mechanism, X, y, targets=(corners, np.repeat([-1.0, 1.0], 2000)))
    assert np.max(others.epsilon) <= report.for_all.bound
    # A handful of corners chosen well does nearly as well as thousands at random.
    assert report.for_all.attained > 0.9 * np.max(others.epsilon)


@pytest.mark.slow
def test_what_replace_is_not():
    report = kng.per_instance_privacy(posterior(adjacency="replace"), *records())
    same = kng.per_instance_privacy(posterior(), *records())
    assert "and not exchanged for another" in repr(report)
    np.testing.assert_array_equal(report.epsilon, same.epsilon)
    assert report.worst_case > same.worst_case


def test_mechanisms_know_nothing_of_a_smaller_delta_than_their_own():
    assert output().epsilon_at(1e-6, 3) is None
    assert output().epsilon_at(1e-3, 3) == 4.0


@pytest.mark.slow
def test_a_guarantee_says_nothing_of_smaller_delta():
    assert kng.per_instance_privacy(output(), *records(), delta=1e-6).worst_case is None
    assert kng.per_instance_privacy(output(), *records(), delta=1e-3).worst_case == 4.0


def test_figures(report):
    other = kng.per_instance_privacy(posterior(regularization=4.0), *records())
    figure = report.plot_boxes({"isotropic": other})
    (axes,) = figure.axes
    assert "OWNER ONLY" in axes.get_title()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["PosteriorSample", "isotropic"]
    heights = {line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"}
    assert heights == {report.worst_case, other.worst_case}
    # The median is drawn where NumPy has it.
    assert any(np.allclose(line.get_ydata(), np.median(report.epsilon)) for line in axes.get_lines())
    figure = report.plot_influence(worst=3)
    exposed = figure.axes[0].get_lines()[1]
    np.testing.assert_array_equal(exposed.get_xdata(), report.leverage[report.worst(3)])
    np.testing.assert_array_equal(figure.axes[1].get_lines()[0].get_xdata(), np.abs(report.residual))
    figure.canvas.draw()


def test_figures_need_matplotlib(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"kngjax\[plots\]"):
        report.plot_boxes()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, np.nan])
def test_delta_is_a_probability(report, delta):
    with pytest.raises(ValueError, match="delta must"):
        kng.per_instance_privacy(posterior(), *records(), delta=delta)
    with pytest.raises(ValueError, match="delta must"):
        report.epsilon_at(delta)


def test_targets_of_the_wrong_form():
    X, y = records()
    with pytest.raises(ValueError, match=r"targets give 4 coefficients .* the data 3"):
        kng.per_instance_privacy(posterior(), X, y, targets=(np.zeros((2, 3)), np.zeros(2)))
    with pytest.raises(ValueError, match=r"targets must be a pair \(X, y\)"):
        kng.per_instance_privacy(posterior(), X, y, targets=X)
    named = kng.Bounds(x=(-np.ones(2), np.ones(2)), y=(-1.0, 1.0))
    with pytest.raises(ValueError, match=r"X has 3 columns and bounds\.x is for 2"):
        kng.per_instance_privacy(posterior(named), X, y, targets=(np.zeros((2, 3)), np.zeros(2)))
    with pytest.raises(ValueError, match="NaN"):
        kng.per_instance_privacy(posterior(), X, y, targets=(np.full((1, 2), np.nan), np.zeros(1)))


def test_singular_designs():
    X, y = records()
    with pytest.raises(ValueError, match="singular to working precision: give a larger regularization"):
        ridge.design(np.ones((2, 2)), np.ones(2), 0.0)
    # Alone in its column, and next to no ridge: without this person the design is singular.
    x = np.column_stack([X, np.eye(25)[0]])
    found = ridge.design(x.T @ x, x.T @ y, 1e-12)
    with pytest.raises(ValueError, match="without one of its people it is"):
        ridge.influences(x, y, found, inside=True)


def test_what_is_no_mechanism_for_it():
    X, y = records()
    kng_mechanism = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.Box(-2.0, 2.0), 1.0, "replace")
    with pytest.raises(ValueError, match="no per-instance profile is known for KNG"):
        kng.per_instance_privacy(kng_mechanism, X, y)
    with pytest.raises(ValueError, match="method must be one of exact, first_order"):
        kng.per_instance_privacy(posterior(), X, y, method="newton")
    with pytest.raises(ValueError, match="max_records"):
        kng.per_instance_privacy(posterior(max_records=10), X, y)


def test_bad_questions(report):
    for bad in (-0.1, np.inf, np.nan, [0.1, 0.2]):
        with pytest.raises(ValueError, match="epsilon must be one number"):
            report.delta_at(bad)
    for bad in (1.0, [2.0, 0.5], np.inf, [[2.0]]):
        with pytest.raises(ValueError, match="alphas must be finite numbers above 1"):
            report.renyi(bad)
