"""Studies: names, units, budgets and refusals; and that what is released is what the mechanism alone releases."""

import itertools
import json
import math
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.special

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.releases import release as releasing
from kngjax.study.study import PublicFacts
from tests.study.people import BOUNDS, FORMULA, LEVELS, PEOPLE, SECRET, study
from tests.words import words_of

PARABOLA = "log(wage) ~ poly(experience, 2)"


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency="replace", dataset="people")


@pytest.fixture(scope="module")
def curves():
    """Two levels of a parabola, in one regression each."""
    return study().quantile_regression(PARABOLA, tau=[0.1, 0.5], epsilon=20)


@pytest.fixture(scope="module")
def smoothed():
    """A median of six coefficients, by objective perturbation of a smoothed loss."""
    return study().quantile_regression(FORMULA + " + region", tau=0.5, epsilon=8)


def test_quantile_regression_has_names_and_own_units(curves):
    assert list(curves.params.columns) == ["tau = 0.1", "tau = 0.5"]
    assert list(curves.params.index) == ["intercept", "experience", "experience^2"]
    # Education is 12 on average.
    np.testing.assert_allclose(curves.params["tau = 0.5"], [5.6, 0.06, -0.001], atol=0.15)
    assert curves.params["tau = 0.1"]["intercept"] < curves.params["tau = 0.5"]["intercept"]
    assert [one.certificate.epsilon for one in curves.releases] == [10.0, 10.0]
    with pytest.raises(ValueError, match=r"releases\[0\]"):
        _ = curves.certificate
    text = words_of(curves.summary())
    for words in (PARABOLA, "wage in [20, 20000]", "tau = 0.1"):
        assert words in text
        assert words in curves._repr_html_()


def test_predictions_are_the_public_basis_times_what_was_released(smoothed):
    fit, new = smoothed, PEOPLE.iloc[[5, 17, 3]]
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
    with pytest.warns(UserWarning, match=r"public bounds, education in \[0, 18\], experience in \[0, 60\]: there"):
        beyond = fit.predict({"education": 99.0, "experience": [-5.0, 0.0], "region": "north"})
    assert beyond[0] == beyond[1] == fit.predict({"education": 18, "experience": 0, "region": "north"})[0]


def test_which_mechanism_serves_follows_from_public_facts():
    plan = study().plan()
    plan.linear_regression("log(wage) ~ poly(experience, 2)", epsilon=1)
    plan.linear_regression(FORMULA, epsilon=1)
    plan.linear_regression(FORMULA + " + region", epsilon=1)
    plan.linear_regression(FORMULA + " + region", epsilon=50)
    plan.quantile_regression(FORMULA + " + region", tau=0.5, epsilon=1)
    plan.logistic_regression("parttime ~ education", epsilon=1)
    plan.logistic_regression("parttime ~ region * education", epsilon=1)
    kinds = [kind.split()[0] for _, kind, *_ in plan.summary().rows[:-1]]
    objective = "ObjectivePerturbation"
    assert kinds == ["KNG", *6 * [objective]]
    assert plan.cost.epsilon == 56
    assert plan.summary().rows[-1] == ("all together", "", "", "56", "0", plan.summary().rows[-1][-1])
    assert "all together: pure 56-differential privacy" in words_of(plan)


@pytest.mark.takes(4, "plans of three kinds of regressions with two to eight coefficients")
def test_no_search_whose_time_depends_on_the_records_is_taken_unasked():
    """KNG of many coefficients searches without end where designs are degenerate, classes separated or units wrong.

    Of few it takes seconds where records are many, and is no better there: beyond n = 10,000 and n·ε = 5,000.
    """
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"}
    sizes = ((1, 100, 50), (1, 101, 50), (2, 100, 50), (2, 10_000, 0.5), (2, 10_001, 0.1), (3, 10, 50), (8, 10**6, 50))
    for order, count, epsilon in sizes:
        plan = kng.Study(pd.DataFrame(index=range(count)), **facts).plan()
        terms, given = f"poly(experience, {order})", {"epsilon": epsilon, "force": True}
        asked = {
            "quantile": plan.quantile_regression(f"log(wage) ~ {terms}", tau=[0.5, 0.9], **given),
            "robust": plan.linear_regression(f"log(wage) ~ {terms}", **given),
            "squared": plan.linear_regression(f"log(wage) ~ {terms}", method="squared", **given),
            "odds": plan.logistic_regression(f"parttime ~ {terms}", **given),
        }
        is_few = count <= 10_000 and count * epsilon <= 5_000
        most = {"quantile": 4, "robust": 3 if is_few else 0, "squared": 5, "odds": 0}
        for name, analysis in asked.items():
            expected = kng.KNG if order + 1 <= most[name] else kng.ObjectivePerturbation
            assert {type(part.mechanism) for part in analysis.parts} == {expected}, name
            # As `docs/studies.md` has it.
            reach = 10.0 if name == "odds" else 1.5 * np.log(BOUNDS["wage"][1] / BOUNDS["wage"][0])
            reach *= 1024.0 if expected is kng.ObjectivePerturbation and name != "squared" else 1.0
            for theta in (part.mechanism.domain for part in analysis.parts):
                np.testing.assert_allclose(0.5 * (np.asarray(theta.upper) - np.asarray(theta.lower)), reach)
        [rate] = plan.poisson_regression(f"sick ~ {terms}", **given).parts
        assert type(rate.mechanism) is kng.ObjectivePerturbation


# With an intercept, and slopes within the bounds of log(wage), which are 6.9 wide.
@pytest.mark.parametrize(("terms", "narrowest"), [("education", 0.103), ("education + experience", 0.42)])
def test_a_threshold_far_below_the_width_of_the_bounds_is_not_for_boxes_whatever_n_is(terms, narrowest):
    """`Exact` took it, of which nothing is proved, or boxes, and both searched for minutes after the debit."""
    facts, kinds = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"}, []
    for count, scale in itertools.product((5, 10_000), (0.95 * narrowest, 1.1 * narrowest)):
        plan = kng.Study(pd.DataFrame(index=range(count)), **facts).plan()
        # ε is so small that the threshold is half of the scale.
        [part] = plan.linear_regression(f"log(wage) ~ {terms}", epsilon=1e-3, scale=scale, force=True).parts
        kinds.append(type(part.mechanism))
    assert kinds == 2 * [kng.ObjectivePerturbation, kng.KNG]


# Records of which no estimate is alone the best, or of which there is none in any domain.
DEGENERATE = {
    "a full set of dummies": lambda day, x: {f"w{i}": (day == i) * 1.0 for i in range(7)} | {"y": 5.0 + day},
    "all alike": lambda day, x: {f"w{i}": 0.0 * x for i in range(7)} | {"y": 0.0 * x},
    "at the ends": lambda day, x: {f"w{i}": (x > 0.5) * 1.0 for i in range(7)} | {"y": 20.0 * (x > 0.5)},
}


@pytest.mark.default_cases(1)
@pytest.mark.takes(6, "releases of eight coefficients, which compile one program")
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("method", ["robust", "squared"])
def test_degenerate_designs_are_released_soon(name, method):
    """The first of them ran for 580 seconds, after the debit."""
    generator = np.random.default_rng(7)
    frame = pd.DataFrame(DEGENERATE[name](generator.integers(0, 7, 4000), generator.uniform(size=4000)))
    bounds = {f"w{i}": (0, 1) for i in range(7)} | {"y": (0, 20)}
    one = kng.Study(frame, bounds=bounds, adjacency="replace")
    formula = "y ~ " + " + ".join(f"w{i}" for i in range(7))
    fit = one.linear_regression(formula, epsilon=20, method=method, force=True)
    if name == "a full set of dummies":
        predicted = fit.predict({f"w{i}": np.eye(7)[i] for i in range(7)})
        np.testing.assert_allclose(predicted, 5.0 + np.arange(7), atol=1.5)


def test_separated_classes_are_released_soon():
    frame = PEOPLE.assign(parttime=np.where(PEOPLE["experience"] > 25, "yes", "no"))
    fit = study(frame).logistic_regression("parttime ~ poly(experience, 4)", epsilon=20, force=True)
    assert np.all(np.isfinite(fit.params))


def test_smoothing_and_shrinkage_are_balanced_where_objective_perturbation_serves(smoothed):
    assert smoothed.certificate.mechanism["type"] == "ObjectivePerturbation"
    # With the narrow bandwidth of KNG shrinkage alone would move the intercept by .17.
    np.testing.assert_allclose(smoothed.params["intercept"], 4.5, atol=0.12)
    np.testing.assert_allclose(smoothed.params[["region[south]", "region[west]"]], [0.1, 0.0], atol=0.05)
    np.testing.assert_allclose(smoothed.params["education"], 0.09, atol=0.02)


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


@pytest.mark.parametrize(("response", "mean"), [("parttime", lambda eta: 1 / (1 + math.exp(-eta))), ("sick", math.exp)])
def test_logistic_and_poisson_regression_predict_means(response, mean):
    ask = study().logistic_regression if response == "parttime" else study().poisson_regression
    fit = ask(f"{response} ~ education", epsilon=20)
    eta = fit.params["intercept"] + fit.params["education"] * 12
    np.testing.assert_allclose(fit.predict({"education": 12})[0], mean(eta), rtol=1e-9)
    assert fit.predict({"education": 12}).name == ("probability" if response == "parttime" else "mean")


def through_origin(frame, response, mean, slope):
    """The coefficients of education and experience that solve X'(mean(Xθ) - y) = 0, by Newton's steps."""
    x, theta = frame[["education", "experience"]].to_numpy(), np.zeros(2)
    for _ in range(30):
        theta -= np.linalg.solve((x.T * slope(x @ theta)) @ x, x.T @ (mean(x @ theta) - response))
    return theta


@pytest.mark.parametrize(
    ("name", "response", "values", "mean", "slope", "given"),
    [
        ("linear_regression", "log(wage)", np.log(PEOPLE["wage"]), np.asarray, np.ones_like, {"method": "squared"}),
        (
            "logistic_regression",
            "parttime",
            PEOPLE["parttime"] == "yes",
            scipy.special.expit,
            lambda eta: scipy.special.expit(eta) * scipy.special.expit(-eta),
            {},
        ),
        ("poisson_regression", "sick", PEOPLE["sick"], np.exp, np.exp, {}),
    ],
)
def test_regressions_through_the_origin_are_those_of_newtons_steps(name, response, values, mean, slope, given):
    fit = getattr(study(), name)(f"{response} ~ 0 + education + experience", epsilon=50, **given)
    truth = through_origin(PEOPLE, values, mean, slope)
    np.testing.assert_allclose(fit.params, truth, atol=0.005)
    assert fit.params.index.tolist() == ["education", "experience"]
    assert fit.basis_params.index.tolist() == ["education/18", "experience/60"]
    assert fit.certificate.mechanism["bounds"]["intercept"] is False
    new = {"education": [6.0, 18.0], "experience": [40.0, 0.0]}
    eta = np.column_stack(list(new.values())) @ fit.params
    np.testing.assert_allclose(fit.predict(new), mean(eta), rtol=1e-9)
    again = kng.Results.from_json(fit.to_json())
    assert again.design == fit.design
    assert again.predict(new).equals(fit.predict(new))


def test_quantiles_and_intervals_through_the_origin():
    """Θ reaches three times the response's farthest bound, at the largest of a column, and curves would meet at 0."""
    formula, made = "log(wage) ~ 0 + education + experience", study()
    fit = made.quantile_regression(formula, tau=0.5, epsilon=30, scale=2.0, intervals=kng.Sandwich(share=0.3))
    x, y = PEOPLE[["education", "experience"]].to_numpy(), np.log(PEOPLE["wage"])
    balance = x.T @ ((y <= x @ fit.params) - 0.5) / len(x)
    np.testing.assert_array_less(np.abs(balance), [0.05, 0.15])
    assert np.all((fit.conf_int()["lower"] < fit.params) & (fit.params < fit.conf_int()["upper"]))
    assert np.all(fit.conf_int()["upper"] - fit.conf_int()["lower"] < [0.1, 0.03])
    band = fit.predict_interval({"education": 18.0, "experience": [0.0, 0.0]})
    np.testing.assert_allclose(band.loc[0], 18.0 * fit.conf_int().loc["education"], rtol=1e-9)
    preview = made.preview(design=PEOPLE[:300]).linear_regression(
        "log(wage) ~ x - 1".replace("x", "education"), epsilon=1
    )
    assert preview.noise.index.tolist() == ["education"]
    theta = made.plan().linear_regression(formula, epsilon=1).parts[0].mechanism.domain
    assert (theta.lower, theta.upper) == pytest.approx((-3.0 * np.log(20_000), 3.0 * np.log(20_000)))
    with pytest.raises(ValueError, match="all curves meet where the columns are 0"):
        made.quantile_process(formula, levels=[0.3, 0.5], epsilon=1)


def test_shares_and_means_under_add_remove():
    assert abs(study().mean("parttime", epsilon=10).value - (PEOPLE["parttime"] == "yes").mean()) < 0.01
    added = study(adjacency="add_remove").mean("education", epsilon=10)
    assert added.certificate.mechanism["type"] == "KNG"
    assert abs(added.value - PEOPLE["education"].mean()) < 0.1


def test_predictions_survive_json():
    plan = study().plan()
    analysis = plan.linear_regression("wage ~ poly(education, 2)*region + I(experience > 9)", epsilon=9)
    [release] = study().mean("wage", epsilon=1).releases
    fields = json.loads(release.to_json()) | {"value": np.linspace(-1.0, 1.0, len(analysis.names)).tolist()}
    regression = kng.Results.of("regression")(analysis, [kng.Release.from_json(json.dumps(fields))])
    again = kng.Results.from_json(regression.to_json())
    new = PEOPLE.iloc[:9]
    pd.testing.assert_series_equal(again.predict(new), regression.predict(new))
    assert again.params.equals(regression.params)
    assert list(regression.to_frame().columns) == ["coefficient", "estimate"]


def test_each_analysis_is_debited_and_an_empty_ledger_refuses_before_a_value_is_seen(ledger):
    one = study(ledger=ledger)
    one.histogram("region", epsilon=0.6)
    one.mean("wage", epsilon=0.3)
    assert len(ledger.releases()) == 2
    broken = PEOPLE.assign(wage=np.nan)
    with pytest.raises(kng.ledger.BudgetExceeded):
        study(broken, ledger=ledger).mean("wage", epsilon=0.2)
    with pytest.raises(kng.ReleaseFailed) as failed:
        study(broken, ledger=ledger).mean("wage", epsilon=0.05)
    assert str(failed.value) == FAILED_OF_FRAME
    # What failed stays spent.
    with pytest.raises(kng.ledger.BudgetExceeded):
        one.mean("wage", epsilon=0.1)
    one.mean("wage", epsilon=0.05)


def test_a_plan_spends_nothing_and_runs_whole_or_not_at_all(ledger):
    plan = study(ledger=ledger).plan()
    assert repr(plan) == "<Plan: nothing is planned>"
    plan.mean("wage", epsilon=0.5)
    plan.quantile("wage", tau=0.5, epsilon=0.4)
    assert len(ledger.releases()) == 0
    mean, median = plan.run()
    assert len(ledger.releases()) == 2
    assert (mean.labels, median.labels) == (("mean",), ("quantile",))
    assert isinstance(mean, kng.Results)
    with pytest.raises(kng.ledger.BudgetExceeded):
        plan.run()
    # Neither the part that there would be room for.
    plan = study(ledger=ledger).plan()
    plan.mean("wage", epsilon=0.05)
    plan.mean("education", epsilon=0.2)
    with pytest.raises(kng.ledger.BudgetExceeded):
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
        "public guess of it beside adjacency, num_records",
        lambda one: one.linear_regression("wage ~ education", epsilon=0.1),
        adjacency="add_remove",
    )
    assert ledger.read().num_rows == rows
    with pytest.raises((ValueError, TypeError), match="adjacency"):
        kng.Study(PEOPLE)
    with pytest.raises(ValueError, match="leave num_records out"):
        study(num_records=9)


def test_labels_tell_levels_apart():
    analysis = study().plan().quantile_regression("wage ~ education", tau=[0.1, 0.1000000001], epsilon=2)
    assert [part.label for part in analysis.parts] == ["tau = 0.1", "tau = 0.1000000001"]
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
    assert [kind.split()[0] for _, kind, *_ in plan.summary().rows[:-1]] == ["ObjectivePerturbation"] * 3


def test_poisson_regressions_need_no_domain_and_take_one():
    """Counts of a mean far below 1 whose coefficients are larger together than the logarithm of their bound."""
    random, count = np.random.default_rng(3), 6000
    frame = pd.DataFrame({"age": random.uniform(20, 80, count), "ill": random.choice(LEVELS["parttime"], count)})
    frame["ward"] = random.choice(["a", "b", "c", "d"], count)
    truth = -2.5 + 0.04 * (frame["age"] - 20) + 1.0 * (frame["ill"] == LEVELS["parttime"][1])
    frame["calls"] = np.minimum(random.poisson(np.exp(truth)), 10)
    facts = {
        "bounds": {"age": (20, 80), "calls": (0, 10)},
        "levels": {"ill": LEVELS["parttime"], "ward": tuple("abcd")},
    }
    one = kng.Study(frame, adjacency="replace", **facts)
    for domain in (None, kng.L1Ball(6.0)):
        fit = one.poisson_regression("calls ~ age + ill + ward", epsilon=20, domain=domain)
        assert fit.params["age"] == pytest.approx(0.04, abs=0.02)
        assert fit.params.iloc[2] == pytest.approx(1.0, abs=0.25)
        assert fit.params.iloc[3:].abs().max() < 0.25
        assert fit.releases[0].certificate.assurance == "proved"
    (part,) = study().plan().poisson_regression("sick ~ region", epsilon=50, domain=kng.L1Ball(2.0)).parts
    assert part.mechanism.domain == kng.L1Ball(2.0)


def test_public_facts_are_checked_and_plain(ledger):
    facts = {"bounds": {"wage": np.array([20, 20_000]), "education": (np.float32(0), 18)}, "levels": {}}
    fit = study(**facts).mean("education", epsilon=1)
    assert pickle.loads(pickle.dumps(fit)).to_json() == fit.to_json()
    for changed, match in (
        ({"missing": {"Wage": 3.0}}, "missing names"),
        ({"missing": 3.0}, "missing must be"),
        ({"levels": {"region": "north"}}, "must be several"),
        ({"bounds": {"wage": (0, 1, 2)}}, "pair of numbers"),
        ({"frame": PEOPLE["wage"]}, r"frame, not Series: give one with its column, series\.to_frame\(\)"),
        ({"frame": PEOPLE.to_numpy()}, r"not ndarray: name its columns, pandas\.DataFrame\(array, columns="),
        ({"frame": pa.table({"wage": [1.0]}).to_reader()}, "can be read only once: give a table"),
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
    for epsilon, kind in ((0.1, kng.ReleaseFailed), (5.0, kng.ledger.BudgetExceeded)):
        with pytest.raises(kind) as error:
            kng.Study(broken, **facts).mean("wage", epsilon=epsilon)
        for name, variables in frames_of(error.value):
            if not name.startswith("test_"):
                assert not [one for one in variables.values() if isinstance(one, pd.DataFrame | np.ndarray)], name
    rows = ledger.read().num_rows
    monkeypatch.setattr("kngjax.core.arithmetic.broken", lambda: ["addition of float64"])
    with pytest.raises(RuntimeError, match="nothing is spent"):
        study(ledger=ledger).mean("wage", epsilon=0.1)
    assert ledger.read().num_rows == rows


def test_what_was_released_before_a_failure_is_in_the_ledger(ledger, monkeypatch):
    drawn, made = releasing.drawn, []

    def failing(*arguments):
        if made:
            raise KeyboardInterrupt
        made.append(drawn(*arguments))
        return made[0]

    plan = study(ledger=ledger).plan()
    for column in ("wage", "education", "experience"):
        plan.mean(column, epsilon=0.1)
    with monkeypatch.context() as patched:
        patched.setattr(releasing, "drawn", failing)
        with pytest.raises(KeyboardInterrupt):
            plan.run()
    assert len(ledger.releases()) == 1
    # The third was not debited.
    study(ledger=ledger).mean("wage", epsilon=0.8)


def test_what_a_private_estimate_does_not_have_is_told():
    fit = study().mean("wage", epsilon=1)
    with pytest.raises(AttributeError, match=r"quantile_interval of a column, kngjax\.WithIntervals"):
        _ = fit.bse


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


def test_curves_are_drawn(curves, smoothed):
    mpl.use("Agg")
    axes = curves.plot(original=True)
    assert [line.get_label() for line in axes.lines] == ["tau = 0.1", "tau = 0.5"]
    grid, curve = axes.lines[0].get_data()
    assert (grid[0], grid[-1]) == (0.0, 60.0)
    expected = curves.predict({"experience": grid}, original=True)["tau = 0.1"]
    np.testing.assert_allclose(curve, expected)
    # Of several columns of numbers the horizontal axis needs a name.
    with pytest.raises(ValueError, match="name the column of the horizontal axis"):
        smoothed.plot()
    axes = smoothed.plot(x="experience", at={"education": 12, "region": "west"})
    grid, curve = axes.lines[0].get_data()
    np.testing.assert_allclose(curve, smoothed.predict({"education": 12, "experience": grid, "region": "west"}))


def test_several_columns_at_once_are_refused_in_words():
    with pytest.raises(TypeError, match=r"one column a call|violates type hint"):
        study().mean(["wage", "education"], epsilon=1)  # pyright: ignore[reportArgumentType]


def test_an_analysis_says_in_short_what_it_is():
    shown = repr(study().plan().linear_regression("log(wage) ~ education", epsilon=1))
    assert shown == "<Analysis: linear regression log(wage) ~ education, by KNG>"


@pytest.mark.parametrize("method", ["robust", "squared"])
def test_a_table_without_records_is_refused_in_words(method):
    with pytest.raises(ValueError, match="the data are empty"):
        study(PEOPLE.head(0)).linear_regression("wage ~ education", epsilon=1, method=method)


def test_medians_of_millions_are_drawn_exactly_on_a_pure_ledger(tmp_path):
    """Beyond 500,000 records there was none, and the advice named a sampler that a study does not take."""
    frame = pd.DataFrame({"x": np.zeros(3_000_000), "y": 0.0})
    pure = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(9), adjacency="replace", dataset="people")
    plan = kng.Study(frame, bounds={"x": (0, 10), "y": (-5, 15)}, adjacency="replace", ledger=pure).plan()
    plan.quantile_regression("y ~ x", tau=0.8, epsilon=1)
    [step] = plan.steps()
    [certificate] = step.certificates(len(frame))
    assert certificate.sampler["type"] == "Lattice"
    pure.require([step.owed(len(frame))[0]])
