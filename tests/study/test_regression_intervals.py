"""Intervals of regressions of studies: what they cost, own units, bands, refusals, and how often they hold."""

import dataclasses
import functools
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from kngjax.inference.foreseen_ends import OTHER_WAYS

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.study.views.interval_frames import frames_of, in_words

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60)}
LEVELS = {"region": ("north", "south"), "parttime": ("no", "yes")}
FORMULA = "log(wage) ~ education + poly(experience, 2)"
PARABOLA = "log(wage) ~ poly(experience, 2)"
NAMES = ["intercept", "education", "experience", "experience^2"]
TRUTH = np.array([4.5, 0.09, 0.06, -0.001])


def people(count=6000, seed=0):
    """Wages whose scatter grows with education, symmetric about the regression."""
    generator = np.random.default_rng(seed)
    education, experience = generator.uniform(0.0, 18.0, count), generator.uniform(0.0, 60.0, count)
    scatter = (0.2 + 0.02 * education) * generator.standard_normal(count)
    columns = np.column_stack([np.ones(count), education, experience, experience**2])
    return pd.DataFrame(
        {
            "wage": np.exp(columns @ TRUTH + scatter),
            "education": education,
            "experience": experience,
            "region": generator.choice(LEVELS["region"], count),
            "parttime": np.where(generator.uniform(size=count) < 1 / (1 + np.exp(1 - 0.1 * education)), "yes", "no"),
        }
    )


PEOPLE, MANY = people(), people(40_000, 1)


def study(frame=PEOPLE, **changed):
    return kng.Study(frame, **({"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed))


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(100), adjacency="replace", dataset="people")


@pytest.fixture(scope="module")
def by_sums():
    return study(MANY).linear_regression(PARABOLA, epsilon=60, scale=0.4, intervals=kng.Sandwich(share=0.4))


@pytest.fixture(scope="module")
def by_groups():
    return study().quantile_regression("log(wage) ~ education", tau=[0.3, 0.7], epsilon=8, intervals=kng.Groups(3))


def test_one_debit_pays_for_the_estimate_and_for_its_intervals(ledger):
    asked = study(ledger=ledger)
    fit = asked.quantile_regression("log(wage) ~ education", tau=[0.3, 0.7], epsilon=8, intervals=kng.Sandwich())
    assert [len(one.parts) for one in fit.releases] == [2, 2]
    assert fit.guarantee.epsilon == pytest.approx(8.0, abs=1e-9)
    spent = [float(one.certificate.mechanism["epsilon"]) for release in fit.releases for one in release.parts]
    assert sum(spent) <= 8.0
    assert spent == pytest.approx([2.8, 1.2, 2.8, 1.2])
    assert len(ledger.releases()) == 2
    with pytest.raises(kng.ledger.BudgetExceeded):
        asked.mean("education", epsilon=92.1)
    asked.mean("education", epsilon=91.9)


def test_a_debit_of_groups_is_that_of_one(ledger, by_groups):
    plan = study(ledger=ledger).plan()
    plan.quantile_regression("log(wage) ~ education", tau=0.3, epsilon=4, intervals=kng.Groups(4))
    assert "4 times KNG, proved: pure 4-differential privacy" in repr(plan)
    assert plan.cost.epsilon == 4.0
    assert by_groups.guarantee.epsilon == 8.0


def test_intervals_of_groups_are_those_of_their_coefficients_in_own_units(by_groups):
    found = by_groups.conf_int(level=0.9)
    assert found.columns.tolist() == [(f"tau = {tau}", end) for tau in (0.3, 0.7) for end in ("lower", "upper")]
    assert found.index.tolist() == ["intercept", "education"]
    for place, label in enumerate(by_groups.labels):
        # Education lies in [0, 18]: its basis column is education/9 - 1.
        intercept, slope = np.array([one.value for one in by_groups.releases[place].parts]).T
        own = np.array([intercept - slope, slope / 9.0])
        half = scipy.stats.t.ppf(0.95, 2) * own.std(axis=1, ddof=1) / np.sqrt(3.0)
        np.testing.assert_allclose(found[label, "lower"], own.mean(axis=1) - half, rtol=1e-9)
        np.testing.assert_allclose(found[label, "upper"], own.mean(axis=1) + half, rtol=1e-9)
        np.testing.assert_allclose(by_groups.params[label], own.mean(axis=1), rtol=1e-9)
        assert "how all do together" in by_groups.wald_test("education")[label].reason
    table = by_groups.contrast({"education": 18.0}, 0.9)
    assert table["release"].tolist() == ["tau = 0.3", "tau = 0.7"]
    np.testing.assert_allclose(table["lower"], 18.0 * found.loc["education"].xs("lower", level=1), rtol=1e-9)


def robust_by_hand(frame, threshold):
    """Coefficients of 1, experience and its square by Newton's method, and their sandwich covariance."""
    scaled = frame["experience"].to_numpy() / 30.0
    x = np.column_stack([np.ones(len(frame)), scaled, scaled**2])
    y, theta = np.log(frame["wage"].to_numpy()), np.array([5.0, 0.0, 0.0])
    for _ in range(60):
        residual = y - x @ theta
        root = np.sqrt(1.0 + (residual / threshold) ** 2)
        hessian = (x / root[:, None] ** 3).T @ x
        theta = theta + np.linalg.solve(hessian, x.T @ (residual / root))
    inverse = np.linalg.inv(hessian)
    scores = x * (residual / root)[:, None]
    own = np.diag([1.0, 1 / 30, 1 / 900])
    return own @ theta, own @ inverse @ (scores.T @ scores) @ inverse @ own


def test_with_little_noise_intervals_in_own_units_are_those_of_a_sandwich(by_sums):
    threshold = by_sums.certificate.mechanism["loss"]["k"]
    theta, covariance = robust_by_hand(MANY, threshold)
    found = by_sums.conf_int()
    assert found.index.tolist() == ["intercept", "experience", "experience^2"]
    # Noise for privacy is in them too: of the estimate next to none, of the sums some hundredths.
    np.testing.assert_allclose(found["upper"] - found["lower"], 2 * 1.96 * np.sqrt(np.diag(covariance)), rtol=0.15)
    assert np.all((found["lower"] < theta) & (theta < found["upper"]))
    rows = np.array([[1.0, 10.0, 100.0], [1.0, 40.0, 1600.0]])
    band = by_sums.predict_interval({"experience": [10.0, 40.0]})
    errors = np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
    np.testing.assert_allclose(band["upper"] - band["lower"], 2 * 1.96 * errors, rtol=0.15)
    exponential = by_sums.predict_interval({"experience": [10.0, 40.0]}, original=True)
    np.testing.assert_allclose(exponential, np.exp(band), rtol=1e-12)


def test_results_show_their_intervals_and_survive_json(by_sums, by_groups):
    text = str(by_sums)
    assert "interval: each 0.95, by H and J at the released value" in text
    assert "those of intercept, experience are of sums of several released coefficients" in text
    assert text.splitlines()[-5].split() == ["robust", "std.", "error", "lower", "upper"]
    assert "not stated: the intervals hold with it" in text
    assert "each 0.9, by H and J" in str(by_sums.summary(level=0.9))
    assert by_sums.to_frame().columns.tolist() == ["coefficient", "estimate", "std. error", "lower", "upper", "level"]
    found = by_sums.intervals(0.9)
    assert isinstance(found, kng.inference.Interval)
    assert found.names == ("intercept", "experience", "experience^2")
    assert set(by_groups.intervals()) == {"tau = 0.3", "tau = 0.7"}
    for fit in (by_sums, by_groups):
        again = kng.Results.from_json(fit.to_json())
        assert str(again) == str(fit)
        assert again._repr_html_() == fit._repr_html_()
        pd.testing.assert_frame_equal(again.to_frame(), fit.to_frame())
        assert again.guarantee == fit.guarantee


def test_curves_have_bands(by_sums, by_groups):
    mpl.use("Agg")
    axes = by_sums.plot(original=True, level=0.8)
    (band,) = axes.collections
    ends = by_sums.predict_interval({"experience": np.array([0.0, 60.0])}, 0.8, original=True)
    vertices = band.get_paths()[0].vertices
    at_zero = np.unique(vertices[vertices[:, 0] == 0.0, 1])
    np.testing.assert_allclose(at_zero, ends.iloc[0], rtol=1e-9)
    assert len(by_groups.plot(x="education").collections) == 2
    # Predictions of probabilities have another name than the release.
    assert len(kng.Results(dataclasses.replace(by_sums.view, link="odds")).plot().collections) == 1


def test_without_intervals_there_are_none_and_why_is_told():
    fit = study().linear_regression("log(wage) ~ education", epsilon=4)
    assert "interval" not in str(fit)
    assert fit.to_frame().columns.tolist() == ["coefficient", "estimate"]
    for ask in (fit.conf_int, fit.intervals, lambda: fit.predict_interval({"education": 3.0})):
        with pytest.raises(ValueError, match=r"second release without a guarantee: ask for them beforehand"):
            ask()
    with pytest.raises(AttributeError, match="second release"):
        _ = fit.bse


def test_what_depends_on_epsilon_and_n_is_made_for_what_the_estimate_has_of_them():
    plan = study().plan()
    [part] = plan.linear_regression(FORMULA, epsilon=2.0, intervals=kng.Sandwich(share=0.25)).parts
    [alone] = plan.linear_regression(FORMULA, epsilon=1.5).parts
    assert float(part.mechanism.epsilon) == pytest.approx(1.5, abs=1e-12)
    assert float(part.mechanism.loss.k) == pytest.approx(float(alone.mechanism.loss.k), rel=1e-9)
    [part] = plan.linear_regression("log(wage) ~ education", epsilon=2.0, intervals=kng.Groups(4)).parts
    [alone] = study(PEOPLE[:1500]).plan().linear_regression("log(wage) ~ education", epsilon=2.0).parts
    assert float(part.mechanism.loss.k) == pytest.approx(float(alone.mechanism.loss.k), rel=1e-9)
    [part] = plan.quantile_regression(FORMULA, tau=0.5, epsilon=2.0, scale=0.4, intervals=kng.Sandwich()).parts
    assert part.plan.making().bandwidth == pytest.approx(2.1 * 0.4 * 6000**-0.2)


def test_previews_and_plans_tell_widths_and_other_ways():
    preview = study().preview().linear_regression("log(wage) ~ education", epsilon=3, scale=0.4, intervals=True)
    assert preview.width.shape == (2, 1)
    assert 1.0 < preview.width.to_numpy().max() < 3.0
    text = preview.explain()
    assert "Intervals by Sandwich(share=0.3) would be up to" in text
    assert "By Groups(" in text
    # The whole of epsilon, not what is left to the estimate.
    assert "of 6,000 records at epsilon = 3, previewed" in text
    without = study().preview().linear_regression("log(wage) ~ education", epsilon=3, scale=0.4)
    with pytest.raises(ValueError, match="ask with intervals=True"):
        _ = without.width


@pytest.mark.parametrize(("covariance", "factor"), [(kng.Sandwich(share=0.4), 1.0 / 0.6), (kng.Groups(4), 2.0)])
def test_noise_is_previewed_of_what_the_estimate_has(covariance, factor):
    """At 0.6 of epsilon it is 1/0.6 times as large; as the mean of 4 of a quarter of the records each, 4/2 times."""
    preview = study().preview(design=people(300, 2))
    asked = functools.partial(preview.quantile_regression, "log(wage) ~ education", tau=0.5, scale=0.4)
    without, found = asked(epsilon=3), asked(epsilon=3, intervals=covariance)
    np.testing.assert_allclose(found.noise / without.noise, factor, rtol=0.05)
    np.testing.assert_allclose(found.standard_error / without.standard_error, 1.0, rtol=0.05)
    np.testing.assert_allclose(found.epsilon_for(0.4) / without.epsilon_for(0.4), factor, rtol=0.05)


REFUSED = {
    "no covariance": ({"intervals": 3}, {}, TypeError, "intervals must be True, False, or a covariance"),
    "weights": (
        {"intervals": True},
        {"weights": "experience", "missing": {"experience": 0.0}},
        ValueError,
        "records with weights have no intervals",
    ),
    "few records": ({"intervals": kng.Groups(400)}, {}, ValueError, "400 groups need"),
    "a share": ({"intervals": kng.Sandwich(share=1e-3)}, {}, ValueError, "no intervals are expected of robust"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_public_facts_refuse_costs_nothing(why, ledger):
    asked, facts, error, words = REFUSED[why]
    with pytest.raises(error, match=words):
        study(ledger=ledger, **facts).linear_regression("log(wage) ~ education", epsilon=1, **asked)
    assert not ledger.read().what


def test_a_refusal_names_other_ways_that_have_intervals_there_with_their_widths(ledger):
    asked = {"formula": "log(wage) ~ education", "epsilon": 1, "scale": 0.4}
    with pytest.raises(ValueError, match="There would be intervals=") as told:
        study(ledger=ledger).linear_regression(**asked, intervals=kng.Sandwich(share=1e-3))
    named = re.findall(r"intervals=(kngjax\.[\w.]+\([^()]*\)) up to ([\d.]+) times as wide", str(told.value))
    assert len(named) > 1
    assert "preview(design=...) of made-up rows like yours tells. Fewer terms or a larger" in str(told.value)
    for words, width in named[:2]:
        covariance, _ = OTHER_WAYS[words]
        found = study().preview().linear_regression(**asked, intervals=covariance).width
        assert float(np.max(found)) == pytest.approx(float(width), rel=0.01)
    assert not ledger.read().what


def test_where_sums_say_nothing_an_interval_is_the_whole_line_and_never_nan():
    none = kng.inference.NoInterval("the noise is as large")
    frame = frames_of({"robust": none}, ["intercept", "education"])["robust"]
    assert frame.to_numpy().tolist() == [[-np.inf, np.inf]] * 2
    assert in_words({"robust": none}, [], []) == "from -inf to inf, since the noise is as large"


def test_groups_of_estimates_with_ridges_have_none(ledger):
    long = "log(wage) ~ education + poly(experience, 2) + region + parttime"
    plan = study(ledger=ledger).plan()
    with pytest.raises(ValueError, match="ridge of ObjectivePerturbation moves every group's estimate"):
        plan.linear_regression(long, epsilon=1, intervals=kng.Groups(3))
    assert not ledger.read().what


def test_public_rows_in_own_units_become_those_of_the_basis_and_records_without_a_cell_are_left_out():
    cells = {"education": [9.0, 18.0, np.nan, 30.0], "region": ["south", "north", "north", "south"]}
    plan = study(adjacency="add_remove", num_records=6000, missing={"education": "drop"}).plan()
    given = {"epsilon": 8, "scale": 0.4, "intervals": kng.inference.PublicDesign(pd.DataFrame(cells), share=0.1)}
    [part] = plan.linear_regression("log(wage) ~ education + region", **given).parts
    # Clipped to the bounds as the records are.
    assert part.plan.covariance.settings() == {
        "type": "PublicDesign", "rows": [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], "share": 0.1, "bandwidth": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match="region"):
        plan.linear_regression(
            "log(wage) ~ region", **given | {"intervals": kng.inference.PublicDesign(PEOPLE[["wage"]])}
        )
    with pytest.raises(ValueError, match="is for a Study"):
        kng.WithIntervals(part.mechanism, given["intervals"])


@pytest.mark.parametrize("covariance", [kng.Sandwich(), kng.Groups(3)])
def test_what_fails_on_values_says_one_text_and_its_debit_stays(covariance, ledger):
    broken = PEOPLE.assign(wage=np.where(np.arange(len(PEOPLE)) == 7, np.nan, PEOPLE["wage"]))
    with pytest.raises(kng.ReleaseFailed) as caught:
        study(broken, ledger=ledger).linear_regression("log(wage) ~ education", epsilon=4, intervals=covariance)
    assert str(caught.value) == FAILED_OF_FRAME
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(ledger.read().what) == 1
    assert not ledger.releases()


def test_other_regressions_take_them():
    one = study(adjacency="add_remove", num_records=6000)
    found = one.logistic_regression("parttime ~ education", epsilon=8, intervals=True)
    interval = found.conf_int(0.99)
    assert interval.loc["education", "lower"] < 0.1 < interval.loc["education", "upper"]
    probabilities = found.predict_interval({"education": [0.0, 18.0]})
    assert np.all((probabilities > 0.0) & (probabilities < 1.0))
    assert np.all(probabilities["lower"] < probabilities["upper"])


@pytest.mark.slow
@pytest.mark.parametrize(("covariance", "tables"), [(kng.Sandwich(), 120), (kng.Groups(5), 40)], ids=["sums", "groups"])
def test_intervals_of_a_study_hold_as_often_as_they_say(covariance, tables):
    """Of tables of 3,000 records each, by the parts that a study is made of: no coefficient below 3 errors."""
    # Groups are of few coefficients, of which slopes are what they are with education left out.
    formula, names = (FORMULA, NAMES) if tables == 120 else ("log(wage) ~ poly(experience, 2)", NAMES[2:])
    truth = TRUTH[-len(names) :]
    asked = study(people(3000)).plan().linear_regression(formula, epsilon=4, scale=0.4, intervals=covariance)
    held = []
    for seed in range(tables):
        fit = kng.Results.of("regression")(asked, asked.release(people(3000, seed), None))
        found = fit.conf_int().loc[names]
        held.append((found["lower"] < truth) & (found["upper"] > truth))
    shares = np.mean(held, axis=0)
    assert np.all(shares >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / tables)), shares
    print(covariance, shares)


def test_without_bounds_of_the_response_a_domain_serves_and_a_bandwidth_gives_intervals():
    """By the plainest calls; what is refused names what serves."""
    bounds = {"education": (0, 18)}
    one = kng.Study(PEOPLE, bounds=bounds, adjacency="replace")
    asked = functools.partial(
        one.quantile_regression, "wage ~ education", tau=0.5, epsilon=5, domain=kng.Box(-1e4, 1e4)
    )
    assert "how far responses scatter about the regression is not known" in asked().expected.warning
    with pytest.raises(ValueError, match=r"kngjax\.Sandwich\(bandwidth=0\.5\)"):
        asked(intervals=True)
    assert isinstance(asked(intervals=kng.Sandwich(bandwidth=200.0)).intervals(), kng.inference.Interval)
    robust = kng.KNG(kng.PseudoHuberLoss(200.0), kng.Bounds(x=([0.0], [18.0])), kng.Box(-1e4, 1e4), 5.0, "replace")
    x, y = PEOPLE[["education"]].to_numpy(), PEOPLE["wage"].to_numpy()
    assert isinstance(kng.release(kng.WithIntervals(robust), x, y).intervals(), kng.inference.Interval)
