"""Studies: names, units, budgets and refusals; and that what is released is what the mechanism alone releases."""

import copy
import math
import pickle
import random

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.estimators.estimate_results import EstimateResults
from kngjax.estimators.regression_results import RegressionResults
from kngjax.estimators.study import PublicFacts

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60), "sick": (0, 30)}
LEVELS = {"region": ("north", "south", "west"), "parttime": ("no", "yes")}
FORMULA = "log(wage) ~ education + poly(experience, 2)"
SECRET = 4711.25


@pytest.fixture(autouse=True)
def fixed_bits(monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)


def people(count=4000):
    random = np.random.default_rng(0)
    education, experience = random.integers(6, 19, count), random.uniform(0, 50, count)
    region, noise = random.choice(LEVELS["region"], count), 0.4 * random.standard_normal(count)
    logarithm = 4.5 + 0.09 * education + 0.06 * experience - 0.001 * experience**2 + 0.1 * (region == "south") + noise
    return pd.DataFrame(
        {
            "wage": np.exp(logarithm),
            "education": education.astype(float),
            "experience": experience,
            "region": region,
            "parttime": np.where(random.uniform(size=count) < 1 / (1 + np.exp(2 - 0.1 * education)), "yes", "no"),
            "sick": random.poisson(np.exp(1.0 - 0.05 * education)).astype(float),
        }
    )


PEOPLE = people()


def study(frame=PEOPLE, **changed):
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed
    return kng.Study(frame, **facts)


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency="replace", dataset="people")


def test_quantile_regression_has_names_and_own_units():
    fit = study().quantile_regression(FORMULA, tau=[0.1, 0.5], epsilon=20)
    assert list(fit.params.columns) == ["tau = 0.1", "tau = 0.5"]
    assert list(fit.params.index) == ["intercept", "education", "experience", "experience^2"]
    truth = [4.5, 0.09, 0.06, -0.001]
    np.testing.assert_allclose(fit.params["tau = 0.5"], truth, atol=0.25)
    assert fit.params["tau = 0.1"]["intercept"] < fit.params["tau = 0.5"]["intercept"]
    assert fit.guarantee.epsilon == 20
    assert [one.certificate.epsilon for one in fit.releases] == [10.0, 10.0]
    assert {one.certificate.mechanism["type"] for one in fit.releases} == {"KNG"}
    with pytest.raises(ValueError, match=r"releases\[0\]"):
        _ = fit.certificate
    text = str(fit.summary())
    for words in (FORMULA, "pure 20-differential privacy", "exact_with_rounding", "wage in [20, 20000]", "tau = 0.1"):
        assert words in text
        assert words in fit._repr_html_()


def test_predictions_are_the_public_basis_times_what_was_released():
    fit = study().quantile_regression(FORMULA + " + region", tau=0.5, epsilon=8)
    new = PEOPLE.iloc[[5, 17, 3]]
    own = fit.params
    expected = (
        own["intercept"]
        + own["education"] * new["education"]
        + own["experience"] * new["experience"]
        + own["experience^2"] * new["experience"] ** 2
        + own["region[south]"] * (new["region"] == "south")
        + own["region[west]"] * (new["region"] == "west")
    )
    found = fit.predict(new)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert list(found.index) == [5, 17, 3]
    np.testing.assert_allclose(fit.predict(pl.DataFrame(new.to_dict("list"))), found, rtol=1e-12)
    np.testing.assert_allclose(fit.predict(new, original=True), np.exp(found), rtol=1e-12)
    beyond = fit.predict({"education": 99.0, "experience": [-5.0, 0.0], "region": "north"})
    assert beyond[0] == beyond[1] == fit.predict({"education": 18, "experience": 0, "region": "north"})[0]


@pytest.mark.parametrize("method", ["robust", "squared", "adassp"])
def test_linear_regression_by_each_method(method):
    delta = {"delta": 1e-6} if method == "adassp" else {}
    fit = study().linear_regression("log(wage) ~ education", epsilon=10, method=method, **delta)
    assert fit.params.name == method
    assert abs(fit.params["education"] - 0.09) < 0.06
    assert fit.certificate.epsilon == 10
    assert fit.certificate.assurance == "exact_with_rounding"


def test_which_mechanism_serves_follows_from_public_facts():
    plan = study().plan()
    plan.linear_regression("log(wage) ~ poly(experience, 2)", epsilon=1)
    plan.linear_regression(FORMULA, epsilon=1)
    plan.linear_regression(FORMULA + " + region", epsilon=1)
    plan.linear_regression(FORMULA + " + region", epsilon=50)
    plan.quantile_regression(FORMULA + " + region", tau=0.5, epsilon=1)
    plan.logistic_regression("parttime ~ education", epsilon=1)
    plan.logistic_regression("parttime ~ region * education", epsilon=1)
    kinds = [cost.split(",")[0] for _, cost in plan.rows()]
    objective = "ObjectivePerturbation"
    assert kinds[:-1] == ["KNG", objective, objective, "KNG", objective, "KNG", objective]
    assert plan.cost.epsilon == 56
    assert "all together: pure 56-differential privacy" in repr(plan)


def test_smoothed_quantiles_are_drawn_by_kng_where_that_asks_for_no_wider_bandwidth():
    """With zeros and ones, or at a high level, few records lie about the line: exact draws would not end."""
    cuts = ("fair", "good", "very good", "premium", "ideal")
    bounds = {"carat": (0.2, 5), **dict.fromkeys("abcd", (0, 1))}

    def made(count, formula, tau):
        one = kng.Study(pd.DataFrame(index=range(count)), bounds=bounds, levels={"cut": cuts}, adjacency="replace")
        [part] = one.plan().quantile_regression(formula, tau=tau, epsilon=1).parts
        return type(part.mechanism), float(part.mechanism.loss.bandwidth) / 0.48

    balanced = (1.25 * 25 / (53_940 * (math.exp(0.5) - 1.0))) ** (1 / 3)
    assert made(53_940, "carat ~ cut", 0.5) == (kng.ObjectivePerturbation, pytest.approx(balanced))
    assert made(53_940, "carat ~ a + b + c + d", 0.5) == (kng.KNG, pytest.approx(120 * 25 / 53_940))
    assert made(53_940, "carat ~ a + b + c + d", 0.9) == (kng.ObjectivePerturbation, pytest.approx(0.6 * balanced))
    assert made(10**6, "carat ~ cut", 0.5) == (kng.KNG, pytest.approx(0.05 / 1.8138, rel=1e-3))


def test_smoothing_and_shrinkage_are_balanced_where_objective_perturbation_serves():
    fit = study().quantile_regression(FORMULA + " + region", tau=0.5, epsilon=2)
    assert fit.certificate.mechanism["type"] == "ObjectivePerturbation"
    # With the narrow bandwidth of KNG shrinkage alone would move the intercept by .17.
    np.testing.assert_allclose(fit.params["intercept"], 4.5, atol=0.12)
    np.testing.assert_allclose(fit.params[["region[south]", "region[west]"]], [0.1, 0.0], atol=0.05)
    np.testing.assert_allclose(fit.params["education"], 0.09, atol=0.02)


def test_ridges_pull_to_the_middle_of_the_bounds_where_a_response_is_predicted():
    plan, formula = study().plan(), FORMULA.removeprefix("log(wage) ~ ") + " + region"
    centres = [
        part.mechanism.centre
        for one in (
            plan.linear_regression(f"wage ~ {formula}", epsilon=1),
            plan.quantile_regression(f"log(wage) ~ {formula}", tau=[0.1, 0.5], epsilon=1),
            plan.linear_regression(f"wage ~ {formula}", epsilon=1, domain=kng.Box(-1.0, 1.0)),
            plan.logistic_regression(f"parttime ~ {formula}", epsilon=1),
            plan.poisson_regression(f"sick ~ {formula}", epsilon=1, domain=kng.L1Ball(6.0)),
        )
        for part in one.parts
    ]
    logarithm = 0.5 * (math.log(20) + math.log(20_000))
    assert [None if one is None else one[0] for one in centres] == [10_010, *[logarithm] * 2, 10_010, None, None]
    assert all(one is None or one[1:].tolist() == [0.0] * 5 for one in centres)
    # A scale and Θ in place of bounds leave the middle of the response open.
    bounds = {name: ends for name, ends in BOUNDS.items() if name != "wage"}
    given = {"epsilon": 1, "tau": 0.5, "scale": 100.0, "domain": kng.Box(-1e4, 1e4)}
    (part,) = study(bounds=bounds).plan().quantile_regression(f"wage ~ {formula}", **given).parts
    assert part.mechanism.centre is None


def test_logistic_and_poisson_regression_predict_means():
    fit = study().logistic_regression("parttime ~ education", epsilon=20)
    np.testing.assert_allclose(fit.params, [-2.0, 0.1], atol=0.5)
    eta = fit.params["intercept"] + fit.params["education"] * 12
    np.testing.assert_allclose(fit.predict({"education": 12})[0], 1 / (1 + math.exp(-eta)), rtol=1e-9)
    fit = study().poisson_regression("sick ~ education", epsilon=20)
    np.testing.assert_allclose(fit.params, [1.0, -0.05], atol=0.5)
    eta = fit.params["intercept"] + fit.params["education"] * 12
    np.testing.assert_allclose(fit.predict({"education": 12})[0], math.exp(eta), rtol=1e-9)


def test_means_and_quantiles():
    found = study().mean("education", epsilon=10)
    assert abs(found.value - PEOPLE["education"].mean()) < 0.05
    assert found.certificate.mechanism["type"] == "KNormMechanism"
    assert abs(study().mean("parttime", epsilon=10).value - (PEOPLE["parttime"] == "yes").mean()) < 0.01
    quartiles = study().quantile("wage", tau=[0.25, 0.75], epsilon=20)
    np.testing.assert_allclose(quartiles.params, PEOPLE["wage"].quantile([0.25, 0.75]), rtol=0.05)
    assert list(quartiles.params.index) == ["0.25-quantile of wage", "0.75-quantile of wage"]
    assert quartiles.certificate.assurance == "exact_with_rounding"
    assert abs(study().median("education", epsilon=10).value - 12) <= 1
    added = study(adjacency="add_remove").mean("education", epsilon=10)
    assert added.certificate.mechanism["type"] == "KNG"
    assert abs(added.value - PEOPLE["education"].mean()) < 0.1


def test_results_survive_json_and_pickle():
    regression = study().quantile_regression("wage ~ poly(education, 2)*region + I(experience > 9)", tau=0.5, epsilon=9)
    estimate = study().mean("wage", epsilon=1)
    for kind, fit in ((RegressionResults, regression), (EstimateResults, estimate)):
        for again in (kind.from_json(fit.to_json()), pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
            assert again.to_json() == fit.to_json()
            assert str(again.summary()) == str(fit.summary())
            pd.testing.assert_frame_equal(again.to_frame(), fit.to_frame())
    new = PEOPLE.iloc[:9]
    again = RegressionResults.from_json(regression.to_json())
    pd.testing.assert_series_equal(again.predict(new), regression.predict(new))
    assert list(regression.to_frame().columns) == ["release", "coefficient", "value"]


def test_each_analysis_is_debited_and_an_empty_ledger_refuses_before_a_value_is_seen(ledger):
    one = study(ledger=ledger)
    one.quantile_regression("wage ~ education", tau=[0.25, 0.75], epsilon=0.6)
    one.mean("wage", epsilon=0.3)
    assert len(ledger.releases()) == 3
    broken = PEOPLE.assign(wage=np.nan)
    with pytest.raises(kng.BudgetExceeded):
        study(broken, ledger=ledger).mean("wage", epsilon=0.2)
    with pytest.raises(kng.ReleaseFailed) as failed:
        study(broken, ledger=ledger).mean("wage", epsilon=0.05)
    assert str(failed.value) == FAILED_OF_FRAME
    # What failed stays spent.
    with pytest.raises(kng.BudgetExceeded):
        one.mean("wage", epsilon=0.1)
    one.mean("wage", epsilon=0.05)


def test_a_plan_spends_nothing_and_runs_whole_or_not_at_all(ledger):
    plan = study(ledger=ledger).plan()
    assert repr(plan) == "<Plan: nothing is planned>"
    plan.mean("wage", epsilon=0.5)
    plan.quantile_regression("wage ~ education", tau=0.5, epsilon=0.4)
    assert len(ledger.releases()) == 0
    mean, regression = plan.run()
    assert len(ledger.releases()) == 2
    assert isinstance(mean, EstimateResults)
    assert isinstance(regression, RegressionResults)
    with pytest.raises(kng.BudgetExceeded):
        plan.run()
    # Neither the part that there would be room for.
    plan = study(ledger=ledger).plan()
    plan.mean("wage", epsilon=0.05)
    plan.mean("education", epsilon=0.2)
    with pytest.raises(kng.BudgetExceeded):
        plan.run()
    assert len(ledger.releases()) == 2


def test_what_columns_and_settings_refuse_costs_nothing(ledger):
    rows = ledger.read().num_rows

    def refused(match, ask, **changed):
        with pytest.raises((ValueError, TypeError), match=match) as error:
            ask(study(ledger=ledger, **changed))
        assert str(SECRET) not in str(error.value)

    refused("needs public bounds", lambda one: one.mean("height", epsilon=1))
    refused("needs public bounds", lambda one: one.quantile_regression("wage ~ height", tau=0.5, epsilon=1))
    refused("'region' has 3 levels: .* histogram", lambda one: one.mean("region", epsilon=1))
    refused("needs the two levels", lambda one: one.logistic_regression("wage ~ education", epsilon=1))
    refused("method must be", lambda one: one.linear_regression("wage ~ education", epsilon=1, method="ols"))
    refused("needs a delta", lambda one: one.linear_regression("wage ~ education", epsilon=1, method="adassp"))
    refused("takes no delta", lambda one: one.linear_regression("wage ~ education", epsilon=1, delta=1e-6))
    refused(
        "names the column 'education'",
        lambda one: one.mean("education", epsilon=0.1),
        frame=pd.DataFrame({SECRET: [1.0]}),
    )
    refused(
        "must be a pandas", lambda one: one.mean("wage", epsilon=0.1), frame=np.ones((3, 1)), adjacency="add_remove"
    )
    refused("no record", lambda one: one.mean("wage", epsilon=0.1), frame=PEOPLE.iloc[:0])
    refused(
        "public guess of it, num_records",
        lambda one: one.linear_regression("wage ~ education", epsilon=0.1),
        adjacency="add_remove",
    )
    assert ledger.read().num_rows == rows
    with pytest.raises((ValueError, TypeError), match="adjacency"):
        kng.Study(PEOPLE)
    with pytest.raises(ValueError, match="leave num_records out"):
        study(num_records=9)


def test_labels_tell_levels_apart():
    fit = study().quantile_regression("wage ~ education", tau=[0.1, 0.1000000001], epsilon=2)
    assert fit.labels == ("tau = 0.1", "tau = 0.1000000001")
    assert fit.params.shape == fit.predict({"education": [9.0, 12.0]}).shape == (2, 2)
    for tau in ([0.5, 0.5], []):
        for ask in (
            study().quantile,
            lambda what, **given: study().quantile_regression(f"{what} ~ education", **given),
        ):
            with pytest.raises(ValueError, match="several different ones"):
                ask("wage", tau=tau, epsilon=1)


@pytest.mark.parametrize("guess", [4000, 10**7])
def test_a_guess_of_the_number_of_records_chooses_nothing_that_needs_it(guess):
    one = study(adjacency="add_remove", num_records=guess)
    plan = one.plan()
    plan.linear_regression(FORMULA + " + region", epsilon=1)
    plan.quantile_regression(FORMULA + " + region", tau=0.5, epsilon=1)
    plan.logistic_regression("parttime ~ region * education", epsilon=1)
    assert [cost.split(",")[0] for _, cost in plan.rows()[:-1]] == ["ObjectivePerturbation"] * 3


def test_poisson_regressions_of_categories_ask_for_a_domain():
    with pytest.raises(ValueError, match="give a public domain"):
        study().poisson_regression("sick ~ region", epsilon=1)
    fit = study().poisson_regression("sick ~ region", epsilon=50, domain=kng.L1Ball(2.0))
    assert abs(fit.predict({"region": "south"})[0] - PEOPLE["sick"].mean()) < 0.5


def test_public_facts_are_checked_and_plain(ledger):
    facts = {"bounds": {"wage": np.array([20, 20_000]), "education": (np.float32(0), 18)}, "levels": {}}
    fit = study(**facts).quantile_regression("wage ~ education", tau=0.5, epsilon=1)
    assert pickle.loads(pickle.dumps(fit)).to_json() == fit.to_json()
    for changed, match in (
        ({"missing": {"Wage": 3.0}}, "missing names"),
        ({"missing": 3.0}, "missing must be"),
        ({"levels": {"region": "north"}}, "must be several"),
        ({"bounds": {"wage": (0, 1, 2)}}, "pair of numbers"),
        ({"frame": PEOPLE["wage"]}, r"frame, not Series: give one with its column, series\.to_frame\(\)"),
        ({"frame": PEOPLE.to_numpy()}, r"not ndarray: name its columns, pandas\.DataFrame\(array, columns="),
        ({"frame": pl.LazyFrame(PEOPLE)}, r"not LazyFrame: collect it first, frame\.collect\(\)"),
        ({"bounds": {"wage": ("0", "1")}}, "must be finite numbers"),
        ({"bounds": {"wage": (1, 0)}}, "must be finite numbers"),
        ({"bounds": {"region": (0, 1)}}, "bounds and levels"),
        ({"ledger": "people.ledger"}, "ledger must be"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            study(**changed)
    # Who checks no types.
    with pytest.raises(TypeError, match=r"bounds must be by column, bounds=\{'age': \(0, 99\)\}, not a list"):
        PublicFacts.of([("wage", 0, 1)], {}, kng.Adjacency.REPLACE, None, 3)
    with pytest.raises(TypeError, match="levels must be by column"):
        PublicFacts.of({}, ["north"], kng.Adjacency.REPLACE, None, 3)
    twins = pd.DataFrame([[1.0, 2.0]], columns=["Smith 123", "Smith 123"])
    with pytest.raises(TypeError) as error:
        study(twins)
    assert "Smith" not in str(error.value)
    with pytest.raises(TypeError, match="all text or all finite numbers"):
        study(levels={"parttime": (None, "yes")}).mean("parttime", epsilon=1)


def frames_of(error):
    """The local variables of all frames that an error's traceback holds."""
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_name, traceback.tb_frame.f_locals
        traceback = traceback.tb_next


def test_errors_hold_no_records_and_an_unfit_process_spends_nothing(ledger, monkeypatch):
    broken = PEOPLE.assign(wage=np.nan)
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace", "ledger": ledger}
    for epsilon, kind in ((0.1, kng.ReleaseFailed), (5.0, kng.BudgetExceeded)):
        with pytest.raises(kind) as error:
            kng.quantile_regression("wage ~ education", broken, tau=0.5, epsilon=epsilon, **facts)
        for name, variables in frames_of(error.value):
            if not name.startswith("test_"):
                assert not [one for one in variables.values() if isinstance(one, pd.DataFrame | np.ndarray)], name
    rows = ledger.read().num_rows
    monkeypatch.setattr("kngjax.core.arithmetic.broken", lambda: ["addition of float64"])
    with pytest.raises(RuntimeError, match="nothing is spent"):
        study(ledger=ledger).mean("wage", epsilon=0.1)
    assert ledger.read().num_rows == rows


def test_what_was_released_before_a_failure_is_in_the_ledger(ledger, monkeypatch):
    release, made = kng.release, []

    def failing(*arguments, **settings):
        if made:
            raise KeyboardInterrupt
        made.append(release(*arguments, **settings))
        return made[0]

    with monkeypatch.context() as patched:
        patched.setattr(kng, "release", failing, raising=False)
        with pytest.raises(KeyboardInterrupt):
            study(ledger=ledger).quantile_regression("wage ~ education", tau=[0.1, 0.5, 0.9], epsilon=0.3, force=True)
    assert len(ledger.releases()) == 1
    # The third was not debited.
    study(ledger=ledger).mean("wage", epsilon=0.8)


def test_what_a_private_estimate_does_not_have_is_told():
    fit = study().mean("wage", epsilon=1)
    for name in ("resid", "bse", "rsquared", "nobs", "pvalues"):
        with pytest.raises(AttributeError, match="second release"):
            getattr(fit, name)
    with pytest.raises(AttributeError, match=r"quantile_interval of a column, kngjax\.WithIntervals"):
        _ = fit.conf_int
    with pytest.raises(AttributeError, match="has no colour"):
        _ = fit.colour


def test_missing_cells_count_as_what_was_declared():
    frame = PEOPLE.assign(wage=np.where(np.arange(len(PEOPLE)) % 2 == 0, np.nan, 100.0))
    found = study(frame, missing={"wage": 300.0}).mean("wage", epsilon=100)
    assert abs(found.value - 200) < 5
    dropped = study(frame, missing="drop", adjacency="add_remove").mean("wage", epsilon=100)
    assert abs(dropped.value - 100) < 5


def test_a_study_shows_no_data_and_is_not_pickled():
    frame = PEOPLE.iloc[:3].assign(wage=SECRET)
    one = study(frame)
    assert str(SECRET) not in repr(one)
    assert "wage in [20, 20000]" in repr(one)
    with pytest.raises(TypeError, match="private data"):
        pickle.dumps(one)


def test_curves_are_drawn():
    mpl.use("Agg")
    fit = study().quantile_regression(FORMULA, tau=[0.1, 0.9], epsilon=9)
    axes = fit.plot(x="experience", at={"education": 12}, original=True)
    assert [line.get_label() for line in axes.lines] == ["tau = 0.1", "tau = 0.9"]
    grid, curve = axes.lines[0].get_data()
    assert (grid[0], grid[-1]) == (0.0, 60.0)
    expected = fit.predict({"education": 12, "experience": grid}, original=True)["tau = 0.1"]
    np.testing.assert_allclose(curve, expected)


def test_several_columns_at_once_are_refused_in_words():
    with pytest.raises(TypeError, match=r"one column a call|violates type hint"):
        study().mean(["wage", "education"], epsilon=1)  # pyright: ignore[reportArgumentType]


def test_an_analysis_says_in_short_what_it_is():
    shown = repr(study().plan().linear_regression("log(wage) ~ education", epsilon=1))
    assert shown == "<Analysis: linear regression log(wage) ~ education, by KNG>"


def test_a_curve_over_the_only_column_of_numbers_needs_no_name():
    mpl.use("Agg")
    one = study().quantile_regression("log(wage) ~ education", tau=0.5, epsilon=20)
    assert one.plot().get_xlabel() == "education"
    two = study().quantile_regression("log(wage) ~ education + experience", tau=0.5, epsilon=20)
    with pytest.raises(ValueError, match="name the column of the horizontal axis"):
        two.plot()


@pytest.mark.parametrize("ask", ["mean", "median", "sum", "variance"])
def test_a_column_that_is_not_declared_is_refused_with_those_that_are(ask):
    with pytest.raises(ValueError, match=r"'wages' needs public bounds .*'wage', 'education'.* Did you mean 'wage'\?"):
        getattr(study().plan(), ask)("wages", epsilon=1)
