"""Intervals of regressions of studies: what they cost, own units, bands, refusals, and how often they hold."""

import dataclasses
import functools
import json
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.inference.covariances import family_of
from kngjax.study.views.interval_frames import frames_of, in_words
from tests.words import words_of

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60)}
LEVELS = {"region": ("north", "south"), "parttime": ("no", "yes")}
FORMULA = "log(wage) ~ education + poly(experience, 2)"
PARABOLA = "log(wage) ~ poly(experience, 2)"
INTERACTION = "log(wage) ~ county * education"
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
COUNTIES = np.random.default_rng(2).choice(["a", "b", "c"], len(MANY))


def study(frame=PEOPLE, **changed):
    return kng.Study(frame, **({"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed))


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(100), adjacency="replace", dataset="people")


@pytest.fixture(scope="module")
def by_sums():
    return study(MANY).linear_regression(PARABOLA, epsilon=60, scale=0.4, intervals=kng.Sandwich(share=0.4))


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


def test_without_intervals_there_are_none_and_why_is_told():
    fit = study().linear_regression("log(wage) ~ education", epsilon=4)
    assert "interval" not in words_of(fit)
    assert fit.to_frame().columns.tolist() == ["coefficient", "estimate"]
    for ask in (fit.conf_int, fit.intervals, lambda: fit.predict_interval({"education": 3.0})):
        with pytest.raises(ValueError, match=r"second release without a guarantee: ask for them beforehand"):
            ask()
    with pytest.raises(AttributeError, match="second release"):
        _ = fit.bse


def test_where_only_another_version_knows_an_interval_it_is_the_whole_line():
    none = kng.inference.NoInterval("another version released it")
    frame = frames_of({"robust": none}, ["intercept", "education"])["robust"]
    assert frame.to_numpy().tolist() == [[-np.inf, np.inf]] * 2
    assert in_words({"robust": none}, [], []) == "from -inf to inf, since another version released it"


def test_other_regressions_take_them():
    one = study(adjacency="add_remove", num_records=6000)
    found = one.logistic_regression("parttime ~ education", epsilon=8, intervals=True)
    interval = found.conf_int(0.99)
    assert interval.loc["education", "lower"] < 0.1 < interval.loc["education", "upper"]
    probabilities = found.predict_interval({"education": [0.0, 18.0]})
    assert np.all((probabilities > 0.0) & (probabilities < 1.0))
    assert np.all(probabilities["lower"] < probabilities["upper"])


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


def three_levels():
    return study(MANY.assign(county=COUNTIES), levels=LEVELS | {"county": ("a", "b", "c")})


@pytest.fixture(scope="module")
def by_county():
    return three_levels().linear_regression(INTERACTION, epsilon=8, scale=0.4, intervals=True)


def test_one_debit_pays_for_the_estimate_and_for_its_intervals(ledger):
    asked = study(ledger=ledger)
    fit = asked.quantile_regression("log(wage) ~ education", tau=[0.3, 0.7], epsilon=8, intervals=True)
    kinds = [[part.certificate.mechanism["type"] for part in one.parts] for one in fit.releases]
    assert kinds == [["KNG", "BlockSums", "KNormMechanism"]] * 2
    assert fit.guarantee.epsilon == pytest.approx(8.0, abs=1e-9)
    spent = [float(one.certificate.mechanism["epsilon"]) for release in fit.releases for one in release.parts]
    assert sum(spent) <= 8.0
    assert spent == pytest.approx([2.4, 1.4, 0.2] * 2)
    assert len(ledger.releases()) == 2
    with pytest.raises(kng.ledger.BudgetExceeded):
        asked.mean("education", epsilon=92.1)
    asked.mean("education", epsilon=91.9)


def test_categories_and_their_slopes_reach_the_certificate_and_make_blocks_of_numbers(by_county):
    """By brute force over records: the numbers make up Σwxx', and of exclusive ones a record has one at most."""
    summing = by_county.releases[0].parts[1].certificate.mechanism
    covariance = json.loads(by_county.releases[0].to_json())["making"]["covariance"]
    assert (covariance["indicators"], covariance["slopes"]) == ([[1, 2]], [[4, 5]])
    generator = np.random.default_rng(0)
    level, number = generator.integers(0, 3, 500), generator.uniform(-1.0, 1.0, 500)
    dummies = np.column_stack([level == 1, level == 2]).astype(float)
    x = np.column_stack([np.ones(500), dummies, number, dummies * number[:, None]])
    weights = generator.uniform(0.0, 1.0, 500)
    way, mechanism = kng.Sandwich(indicators=((1, 2),), slopes=((4, 5),)), by_county.releases[0]._making.mechanism
    columns = way.columns(x, weights, mechanism)
    # Of the 21 products those of two levels of one column are 0, and the square of a level is the level.
    assert columns.shape[1] == len(summing["bounds"]["x_lower"]) == 17
    made = family_of(way.products(mechanism), None).matrices(columns.sum(axis=0))
    # Products are rounded to multiples of 2^-21 of a power of two that none exceeds, here 1: n are off by 2^-22 √n.
    np.testing.assert_allclose(made, (weights[:, None] * x).T @ x, atol=5.0 * 2.0**-22 * np.sqrt(len(x)))
    exclusive = [list(group) for group in summing["exclusive"]]
    # The constant and the number, each by the levels and by the slopes; slopes squared; and the levels by the slopes.
    assert sorted(len(group) for group in exclusive) == [2, 2, 2, 2, 2, 4]
    for group in exclusive:
        assert np.count_nonzero(columns[:, group], axis=1).max() == 1


def test_a_study_without_a_constant_has_intervals_of_every_level(by_county):
    assert np.isfinite(by_county.to_frame().drop(columns="coefficient")).all(axis=None)
    fit = study(MANY).linear_regression("log(wage) ~ 0 + region + parttime", epsilon=8, scale=0.4, intervals=True)
    found = fit.conf_int()
    assert found.index.tolist() == ["region[north]", "region[south]", "parttime[yes]"]
    means = np.log(MANY["wage"]).groupby([MANY["region"], MANY["parttime"]]).mean()
    # Medians and means are alike here, and of a sum of so many records known to hundredths.
    for name in ("north", "south"):
        assert (
            found.loc[f"region[{name}]", "lower"] - 0.1
            < means[name, "no"]
            < found.loc[f"region[{name}]", "upper"] + 0.1
        )
    assert ((found["upper"] - found["lower"]) < 0.1).all()


def test_the_middle_of_an_interval_is_the_estimate_that_is_printed(by_sums):
    [release] = by_sums.releases
    found = release.intervals(0.95)
    middle = (found.lower + found.upper) / 2.0
    np.testing.assert_array_equal(by_sums.basis_params["robust"], middle)
    assert not np.array_equal(middle, release.value)
    np.testing.assert_array_equal(by_sums.params, by_sums.design.own_units_matrix @ middle)
    at_ten = np.array([1.0, 10.0, 100.0]) @ by_sums.params.to_numpy()
    assert by_sums.predict({"experience": [10.0]}).iloc[0] == pytest.approx(at_ten, rel=1e-12)
    assert "estimate: the middle of the interval of each released coefficient" in words_of(by_sums)


def test_results_show_their_intervals_and_survive_json(by_sums):
    text = words_of(by_sums)
    assert "interval: each 0.95, by the Hessian H at the released value (0.4 of epsilon); explain() says how" in text
    assert "drawn given its noise" not in text
    full = by_sums.explain(level=0.9)
    assert "interval: each 0.9, by the Hessian H at the released value (0.4 of epsilon), drawn given its noise" in full
    assert "; assumed: records are independent" in full
    assert "pull of a ridge; intercept, experience: a sum of several of these" in text
    assert "intercept, experience: by draws of a sum of several released coefficients" in full
    assert by_sums.summary().heads == ("coefficient", "estimate", "std. error", "lower", "upper")
    assert "each 0.9, by the Hessian H at" in words_of(by_sums.summary(level=0.9))
    assert by_sums.to_frame().columns.tolist() == ["coefficient", "estimate", "std. error", "lower", "upper", "level"]
    found = by_sums.intervals(0.9)
    assert isinstance(found, kng.inference.Interval)
    assert found.names == ("intercept", "experience", "experience^2")
    again = kng.Results.from_json(by_sums.to_json())
    assert str(again) == str(by_sums)
    assert again._repr_html_() == by_sums._repr_html_()
    pd.testing.assert_frame_equal(again.to_frame(), by_sums.to_frame())
    assert again.guarantee == by_sums.guarantee


def test_curves_have_bands(by_sums):
    mpl.use("Agg")
    axes = by_sums.plot(original=True, level=0.8)
    (band,) = axes.collections
    ends = by_sums.predict_interval({"experience": np.array([0.0, 60.0])}, 0.8, original=True)
    vertices = band.get_paths()[0].vertices
    at_zero = np.unique(vertices[vertices[:, 0] == 0.0, 1])
    np.testing.assert_allclose(at_zero, ends.iloc[0], rtol=1e-9)
    # Predictions of probabilities have another name than the release.
    assert len(kng.Results(dataclasses.replace(by_sums.view, link="odds")).plot().collections) == 1


def test_what_depends_on_epsilon_and_n_is_made_for_what_the_estimate_has_of_them():
    plan = study().plan()
    [part] = plan.linear_regression("log(wage) ~ education", epsilon=2.0, intervals=kng.Sandwich(share=0.45)).parts
    made = part.plan.making()
    # A twentieth is for the sampling variances.
    assert [float(made.mechanism.epsilon), *made.epsilons] == pytest.approx([1.0, 0.9, 0.1], abs=1e-12)
    assert float(made.mechanism.noise_share) == 0.75
    [alone] = plan.linear_regression("log(wage) ~ education", epsilon=1.0).parts
    assert float(made.mechanism.loss.k) == pytest.approx(float(alone.mechanism.loss.k), rel=1e-9)
    [part] = plan.quantile_regression("log(wage) ~ education", tau=0.5, epsilon=2.0, scale=0.4, intervals=True).parts
    assert part.plan.making().bandwidth == pytest.approx(2.1 * 0.4 * 6000**-0.2)


def test_previews_tell_widths():
    preview = study().preview().linear_regression("log(wage) ~ education", epsilon=3, scale=0.4, intervals=True)
    assert preview.width.shape == (2, 1)
    assert 1.0 < preview.width.to_numpy().max() < 3.0
    text = preview.explain()
    assert "the intervals would be up to" in words_of(text)
    # The whole of epsilon, not what is left to the estimate.
    assert "of 6,000 records at epsilon = 3, previewed" in text
    without = study().preview().linear_regression("log(wage) ~ education", epsilon=3, scale=0.4)
    with pytest.raises(ValueError, match="ask with intervals=True"):
        _ = without.width


def test_noise_is_previewed_of_what_the_estimate_has():
    """At half of epsilon, .45 being for H and .05 for the variances, it is twice as large."""
    asked = functools.partial(
        study().preview(design=people(500)).quantile_regression, "log(wage) ~ education", tau=0.5, scale=0.4
    )
    without, found = asked(epsilon=3), asked(epsilon=3, intervals=kng.Sandwich(share=0.45))
    np.testing.assert_allclose(found.noise / without.noise, 2.0, rtol=0.05)
    np.testing.assert_allclose(found.standard_error / without.standard_error, 1.0, rtol=0.05)
    np.testing.assert_allclose(found.epsilon_for(0.4) / without.epsilon_for(0.4), 2.0, rtol=0.05)


REFUSED = {
    "no covariance": ({"intervals": 3}, {}, TypeError, "intervals must be True, False, or a covariance"),
    "a share": ({"intervals": kng.Sandwich(share=1e-3)}, {}, ValueError, "no intervals are offered of .*robust"),
    "many terms": (
        {"intervals": True, "formula": "log(wage) ~ education * experience * region * parttime"},
        {},
        ValueError,
        r"no intervals are offered of .* times H .* About [\d,]+ records or epsilon = [\d.,]+ would do, as would fewer",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_public_facts_refuse_costs_nothing(why, ledger):
    asked, facts, error, words = REFUSED[why]
    with pytest.raises(error, match=words):
        study(ledger=ledger, **facts).linear_regression(
            **{"formula": "log(wage) ~ education", "epsilon": 1, "scale": 0.4} | asked
        )
    assert not ledger.read().what
    assert not ledger.releases()


def test_of_records_with_weights_smooth_regressions_have_intervals_and_others_are_refused_for_nothing(ledger):
    asked = study(ledger=ledger, weights="experience", missing={"experience": 0.0})
    with pytest.raises(ValueError, match="QuantileLoss has no intervals here where records have weights"):
        asked.quantile_regression("log(wage) ~ education", tau=0.5, epsilon=8, scale=0.4, intervals=True)
    with pytest.raises(ValueError, match="of records with weights have no intervals here"):
        asked.mean("education", epsilon=8, intervals=True)
    assert not ledger.read().what
    assert not ledger.releases()
    found = asked.linear_regression("log(wage) ~ education", epsilon=60, scale=0.4, intervals=True).conf_int()
    assert found.loc["education", "lower"] < TRUTH[1] < found.loc["education", "upper"]


def settled(count, epsilon, **asked):
    """Settles a regression of so many records, none of which is looked at."""
    plan = study(adjacency="add_remove", num_records=count).plan()
    plan.linear_regression(FORMULA, epsilon=epsilon, scale=0.4, intervals=True, **asked)
    [step] = plan.settled().steps()
    return step


def test_a_refusal_names_how_many_records_and_which_epsilon_do_and_a_larger_share_is_taken_before():
    with pytest.raises(ValueError, match="Nothing was spent; force=True releases them all the same") as told:
        settled(2000, 1.0)
    [(count, epsilon)] = re.findall(r"About ([\d,]+) records or epsilon = ([\d.,]+) would do", str(told.value))
    count, epsilon = int(count.replace(",", "")), float(epsilon.replace(",", ""))
    assert settled(count, 1.0).part.plan.making().covariance.share == 0.45
    assert settled(2000, epsilon).part.plan.making().covariance.share in (0.35, 0.45)
    with pytest.raises(ValueError, match="no intervals are offered"):
        settled(int(0.8 * count), 1.0)
    assert settled(3 * count, 1.0).part.plan.making().covariance.share == 0.35
    assert "no intervals are offered" in settled(2000, 1.0, force=True).analysis.expected.warning


def test_what_fails_on_values_says_one_text_and_its_debit_stays(ledger):
    broken = PEOPLE.assign(wage=np.where(np.arange(len(PEOPLE)) == 7, np.nan, PEOPLE["wage"]))
    with pytest.raises(kng.ReleaseFailed) as caught:
        study(broken, ledger=ledger).linear_regression("log(wage) ~ education", epsilon=4, intervals=True)
    assert str(caught.value) == FAILED_OF_FRAME
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(ledger.read().what) == 1
    assert not ledger.releases()


@pytest.mark.slow
def test_intervals_of_a_study_hold_as_often_as_they_say():
    """Of tables of 6,000 records each, by the parts that a study is made of: no coefficient below 3 errors."""
    tables, names = 100, NAMES[1:]
    asked = study().plan().linear_regression(FORMULA, epsilon=8, scale=0.4, intervals=True)
    held = []
    for seed in range(tables):
        fit = kng.Results.of("regression")(asked, asked.release(people(6000, seed), None))
        found = fit.conf_int().loc[names]
        held.append((found["lower"] < TRUTH[1:]) & (found["upper"] > TRUTH[1:]))
    shares = np.mean(held, axis=0)
    assert np.all(shares >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / tables)), shares


def test_coefficients_are_drawn_with_their_intervals(by_sums):
    mpl.use("Agg")
    axes = by_sums.plot_coefficients(level=0.8)
    names = [one for one in by_sums.params.index if one != "intercept"]
    assert [one.get_text() for one in axes.get_xticklabels()] == names
    [points] = axes.containers
    np.testing.assert_allclose(points[0].get_ydata(), by_sums.params[names])
    [bars] = points[2]
    ends = by_sums.conf_int(0.8).loc[names].to_numpy()
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()], ends)
    with pytest.raises(ValueError, match=r"names has \['wage'\], which are no coefficients"):
        by_sums.plot_coefficients(["wage"])
