"""Quantile processes of a study: what the mechanism alone releases, with names; one debit, refusals, files, plots."""

import json
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.data import terms
from tests.study.people import BOUNDS, LEVELS, people
from tests.words import words_of

PEOPLE = people(1000)
FORMULA = "log(wage) ~ education"
TAU = [0.25, 0.5, 0.75]
LABELS = ["tau = 0.25", "tau = 0.5", "tau = 0.75"]
LINE = terms.Design((terms.Polynomial("education", 0, 18),))
LOGARITHMS = (np.log(20.0), np.log(20_000.0))


def study(frame=PEOPLE, **changed):
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed
    return kng.Study(frame, **facts)


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """A fit at ε = 4, and the ledger of 4.5 that paid for it."""
    path = tmp_path_factory.mktemp("ledgers") / "people"
    ledger = kng.Ledger.create(path, kng.Budget.pure(4.5), adjacency="replace", dataset="people")
    return study(ledger=ledger).quantile_process(FORMULA, levels=TAU, epsilon=4), ledger


@pytest.fixture
def fit(paid):
    return paid[0]


def test_it_is_the_release_of_a_process_with_names_and_own_units(fit):
    assert isinstance(fit, kng.Results)
    assert list(fit.params.columns) == LABELS
    assert list(fit.params.index) == ["intercept", "education"]
    np.testing.assert_allclose(fit.params.loc["education"], 0.09, atol=0.06)
    middle, reach = sum(LOGARITHMS) / 2, 1.5 * (LOGARITHMS[1] - LOGARITHMS[0])
    box = kng.Box(np.array([middle, 0.0]) - reach, np.array([middle, 0.0]) + reach)
    bounds = kng.Bounds((LINE.lower, LINE.upper), y=LOGARITHMS, columns=LINE.basis_names[1:], missing=[None])
    process = kng.QuantileProcess(TAU, bounds, box, 4.0, "replace")
    assert fit.certificate == process.certify(LINE.matrix(PEOPLE), np.log(PEOPLE["wage"]))
    assert fit.releases[0].value.shape == (3, 2)
    np.testing.assert_array_equal(fit.basis_params.to_numpy().T, fit.releases[0].value)
    np.testing.assert_allclose(fit.params["tau = 0.5"], LINE.in_own_units(fit.releases[0].value[1]), rtol=1e-12)
    assert fit.to_frame().shape == (6, 3)
    text = words_of(fit.summary())
    words = (
        "Private quantile process",
        FORMULA,
        "QuantileProcess",
        "pure 4-differential privacy",
        "wage in [20, 20000]",
    )
    for word in (*words, "0.25, 0.75 at 1; 0.5 at 2", "proved", "not stated: it depends on"):
        assert word in text
        assert word in fit._repr_html_()
    with pytest.raises(AttributeError, match="a private estimate has no conf_int"):
        _ = fit.conf_int


def test_one_debit_pays_for_all_levels_and_the_ledger_keeps_them(paid):
    fit, ledger = paid
    assert len(ledger.releases()) == 1
    assert fit.guarantee.epsilon == pytest.approx(4.0, abs=1e-12)
    with pytest.raises(kng.ledger.BudgetExceeded):
        study(ledger=ledger).quantile_process(FORMULA, levels=TAU, epsilon=1)
    assert len(ledger.releases()) == 1
    plan = study().plan()
    plan.quantile_process(FORMULA, levels=TAU, epsilon=4)
    [step] = plan.settled().steps()
    kept = [kng.Release.from_json(json.dumps(one)) for one in json.loads(next(iter(ledger.releases().values())))]
    assert step.kept(kept) == [fit.releases[0]]
    assert step.is_in(fit)


@pytest.mark.filterwarnings("ignore:some new cells lie beyond")
def test_quantiles_keep_their_order_at_all_cells_and_levels(fit):
    new = {"education": np.linspace(-5.0, 25.0, 31)}
    found = fit.predict(new)
    assert list(found.columns) == LABELS
    x = LINE.matrix_of(new)
    expected = fit.basis_params.loc["intercept"].to_numpy() + x * fit.basis_params.loc["education P1"].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(np.diff(expected, axis=1) >= 0.0)
    between = fit.predict(new, [0.01, 0.25, 0.4, 0.5, 0.999])
    assert np.all(np.diff(between, axis=1) >= 0.0)
    np.testing.assert_allclose(between["tau = 0.25"], found["tau = 0.25"])
    assert np.all((between >= LOGARITHMS[0]) & (between <= LOGARITHMS[1]))
    rows = PEOPLE.iloc[[7, 3]]
    median = fit.predict(rows, 0.5, original=True)
    assert isinstance(median, pd.Series)
    assert list(median.index) == [7, 3]
    np.testing.assert_allclose(np.log(median), fit.predict(rows)["tau = 0.5"])
    assert fit.plot().get_ylabel() == "log wage"


def test_responses_are_drawn_from_the_released_quantiles(fit):
    rows = pd.DataFrame({"education": np.full(4000, 12.0)})
    drawn = fit.draw(rows, kng.research_key(0), original=True)
    assert drawn.name == "wage"
    assert drawn.between(20, 20_000).all()
    for label, level in zip(LABELS, TAU, strict=True):
        end = float(np.exp(fit.predict({"education": 12.0})[label].iloc[0]))
        # Five standard errors of a share of 4,000.
        assert abs(float((drawn <= end).mean()) - level) < 0.04
    again = fit.draw(rows, kng.research_key(0))
    np.testing.assert_allclose(np.log(drawn), again)


def test_files_and_pictures(fit):
    mpl.use("agg")
    again = kng.Results.from_json(fit.to_json())
    assert str(again) == str(fit)
    assert again.to_json() == fit.to_json()
    assert pickle.loads(pickle.dumps(fit)).releases == fit.releases
    np.testing.assert_array_equal(again.levels, TAU)
    axes = fit.plot(original=True)
    lines = np.array([line.get_ydata() for line in axes.lines])
    assert lines.shape[0] == 3
    assert np.all(np.diff(lines, axis=0) >= 0.0)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == LABELS
    assert axes.get_ylabel() == "wage"
    with pytest.raises(ValueError, match="at names"):
        fit.plot(at={"wage": 3})


def test_plans_and_previews_say_what_it_would_be_worth(fit):
    plan = study().plan()
    plan.quantile_process(FORMULA, levels=TAU, epsilon=1)
    [row, _] = plan.summary().rows
    assert row[0].endswith("tau = 0.25, 0.5, 0.75")
    assert row[1:4] == ("QuantileProcess by Lattice", "proved", "1")
    assert plan.cost.epsilon == pytest.approx(1.0)
    preview = study().preview(design=PEOPLE[:300], residual=0.5).quantile_process(FORMULA, levels=TAU, epsilon=4)
    assert list(preview.noise.columns) == LABELS
    assert fit.noise is None
    assert np.all(preview.noise["tau = 0.25"] > preview.noise["tau = 0.5"])
    # ε is that of all levels together, and noise falls with it.
    worst = float(preview.ratio.to_numpy().max())
    assert preview.epsilon_for(worst) == pytest.approx(4.0, rel=0.03)
    assert "QuantileProcess of 1,000 records at epsilon = 4, previewed" in repr(preview)


REFUSED = {
    "five coefficients": (
        {"formula": "log(wage) ~ education + poly(experience, 2) + I(sick > 5)"},
        "has 5 coefficients, and a quantile process takes up to 4: leave terms out, or ask for quantile_regression",
    ),
    "levels": ({"formula": "parttime ~ education"}, "a quantile process needs a response of numbers"),
    "order of levels": ({"levels": [0.5, 0.25]}, r"levels must increase, each given once: levels=\[0.25, 0.5\]"),
    "one level": ({"levels": [0.5]}, "a quantile process has at least two levels"),
    "few records": (
        {"levels": [0.001, 0.5, 0.999], "epsilon": 1},
        r"of 1000 records too few lie beyond .*Nothing was spent; force=True releases it all the same",
    ),
    "little ε": ({"epsilon": 0.01}, "too few lie beyond"),
    "a misspelt response": ({"formula": "log(wagee) ~ education"}, "'wagee' needs public bounds.* Did you mean 'wage'"),
    "unbounded": ({"formula": "tenure ~ education"}, "needs public bounds in own units"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_is_refused_in_words_and_costs_nothing(name, tmp_path):
    change, words = REFUSED[name]
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(50), adjacency="replace", dataset="people")
    given = {"formula": FORMULA, "levels": TAU, "epsilon": 4} | change
    with pytest.raises(ValueError, match=words):
        study(ledger=ledger).quantile_process(**given)
    assert not ledger.releases()
    ledger.require([kng.Guarantee.pure(50, kng.Adjacency.REPLACE)])


def test_weights_and_groups_are_refused():
    with pytest.raises(ValueError, match="a quantile process takes no weights: ask for quantile_regression"):
        study(weights="sick").quantile_process(FORMULA, levels=TAU, epsilon=4)
    with pytest.raises(ValueError, match="groups have no quantile process: ask for quantile_regression of each group"):
        study().by("region").quantile_process(FORMULA, levels=TAU, epsilon=4)
    with pytest.raises(TypeError, match="intervals"):
        study().quantile_process(FORMULA, levels=TAU, epsilon=4, intervals=True)


def test_names_of_other_methods_are_told_apart():
    for asked in (study(), study().plan(), study().by("region")):
        with pytest.raises(TypeError, match="quantile_process has no argument 'tau': it is called 'levels' there"):
            asked.quantile_process(FORMULA, tau=TAU, epsilon=4)
        with pytest.raises(TypeError, match="'order': curves are drawn by halving alone, so leave it out"):
            asked.quantile_process(FORMULA, levels=TAU, epsilon=4, order="joint")
    with pytest.raises(TypeError, match="quantile_regression has no argument 'levels': it is called 'tau' there"):
        study().quantile_regression(FORMULA, levels=TAU, epsilon=4)


def test_polynomials_lie_in_their_polytope_and_not_in_a_box():
    plan = study(missing={"wage": "drop", "experience": 20}, adjacency="add_remove", num_records=10**6).plan()
    plan.quantile_process("log(wage) ~ poly(experience, 2)", levels=TAU, epsilon=4)
    [step] = plan.steps()
    process = step.part.plan
    assert process.bounds.hull is not None
    assert process.max_records == 2 * 10**6
    assert process.bounds.missing_y == "drop"
    plan.quantile_process(FORMULA, levels=TAU, epsilon=4)
    assert plan.steps()[1].part.plan.bounds.hull is None


def test_heaps_and_force_and_private_numbers_of_records():
    few = study(PEOPLE[:60], adjacency="add_remove", num_records=60, dither={"wage": 5})
    with pytest.raises(ValueError, match="of 60 records too few lie beyond"):
        few.quantile_process(FORMULA, levels=TAU, epsilon=0.5)
    fit = few.quantile_process(FORMULA, levels=TAU, epsilon=0.5, force=True)
    assert "it was asked for by force=True" in words_of(fit)
    assert "uniform noise of width 5 on each" in words_of(fit)
    assert fit.certificate.num_records is None
