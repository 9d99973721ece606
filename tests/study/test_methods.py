"""Properties that each method of a study has, over one table of all of them."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.command import job_file
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.study.study import Study
from tests.draws.cases import seeded
from tests.held_by_errors import records_held
from tests.made_once import MadeOnce
from tests.offenders import every_case
from tests.study.methods import METHODS
from tests.study.people import BOUNDS, LEVELS, PEOPLE, study
from tests.words import words_of

# No cell of which is declared.
BROKEN = PEOPLE.assign(wage=np.nan, education=np.nan, sick=np.nan, region="east", parttime="never")

# Previews of these have no column of noise, and results of those are never little but noise by public facts.
WITHOUT_NOISE_IN_PREVIEWS = ("sum", "variance")
NEVER_HOPELESS = ("count", "histogram", "crosstab", "interval")


def of_each_method(test):
    return pytest.mark.parametrize("name", METHODS)(test)


def ledger_of(path, method, epsilon=20.5):
    budget = kng.Budget.approximate(epsilon, method.delta) if method.delta else kng.Budget.pure(epsilon)
    return kng.Ledger.create(path, budget, adjacency="replace", dataset="people")


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """The results of each method at ε = 20, and the ledger of 20.5 that paid for them."""
    room = tmp_path_factory.mktemp("ledgers")

    def made(name):
        ledger = ledger_of(room / name.replace(" ", "-"), METHODS[name])
        with seeded(7):
            return METHODS[name].ask(study(ledger=ledger)), ledger

    return MadeOnce({name: lambda name=name: made(name) for name in METHODS})


@pytest.fixture
def asked(monkeypatch):
    """Studies answer with what would be released, and of which frame."""
    monkeypatch.setattr(Study, "_carry_out", lambda self, analysis, results: (analysis, self._frame))


def described(analysis):
    """All that is public of an analysis."""
    parts = [(part.label, part.settings) for part in analysis.parts]
    return analysis.what, analysis.names, analysis.link, analysis.force, parts


def test_each_method_that_spends_has_a_row():
    assert {method.name for method in METHODS.values()} == set(job_file.methods())


@of_each_method
def test_results_have_names_and_are_near_the_numbers_without_privacy(name, paid):
    method, (fit, _) = METHODS[name], paid[name]
    assert type(fit) is kng.Results
    assert fit.view.kind == method.kind
    index = fit.params.index
    assert tuple(index) == method.index
    assert fit.params.shape == method.expected().shape
    if method.columns is not None:
        assert tuple(fit.params.columns) == method.columns
    np.testing.assert_allclose(fit.params, method.expected(), rtol=0, atol=method.error)
    for release in fit.releases:
        assert release.certificate.mechanism["type"] == method.mechanism
        assert release.certificate.assurance == "proved"


@of_each_method
def test_one_debit_a_release_adds_up_to_the_guarantee_and_no_more_is_paid(name, paid):
    method, (fit, ledger) = METHODS[name], paid[name]
    assert 20.0 * (1.0 - 1e-12) <= fit.guarantee.epsilon <= 20.0
    assert (fit.guarantee.delta, fit.guarantee.adjacency) == (method.delta, kng.Adjacency.REPLACE)
    kept = list(ledger.releases().values())
    assert len(kept) == len(fit.releases) == method.releases
    assert ledger.verify().spent.epsilon == pytest.approx(20.0, rel=1e-12)
    if method.mechanism != "QuantileProcess":
        assert kept == [release.to_json() for release in fit.releases]
    rows = ledger.read().num_rows
    with pytest.raises(kng.ledger.BudgetExceeded):
        method.ask(study(ledger=ledger), 2)
    assert ledger.read().num_rows == rows


@of_each_method
def test_what_is_no_json_of_results_is_refused_in_words(name, paid):
    fit = paid[name][0]
    for text in (fit.to_json()[:-9], "results.json", "{}", "[]", '"text"', fit.to_json().replace(fit.view.kind, "new")):
        with pytest.raises(ValueError, match=r"the whole text of the file that it was written to, .*read_text\(\)"):
            kng.Results.from_json(text)


@pytest.mark.parametrize("intervals", [False, True])
def test_plans_can_be_pickled(intervals):
    frame = pd.DataFrame({"wage": np.full(5000, 300.0), "age": np.full(5000, 40.0)})
    study = kng.Study(frame, bounds={"wage": (20, 2000), "age": (18, 65)}, adjacency="replace")
    planned = study.plan().linear_regression("wage ~ age", epsilon=4, intervals=intervals)
    again = pickle.loads(pickle.dumps(planned))
    assert repr(again.parts[0].mechanism) == repr(planned.parts[0].mechanism)
    made = [repr(one.remake(epsilon=2.0, count=4000).parts[0].mechanism) for one in (planned, again)]
    assert made[0] == made[1] != repr(planned.parts[0].mechanism)


@of_each_method
def test_results_survive_json_pickle_and_copies(name, paid):
    fit = paid[name][0]
    for again in (kng.Results.from_json(fit.to_json()), pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert again.to_json() == fit.to_json()
        assert str(again.summary()) == str(fit.summary())
        assert again._repr_html_() == fit._repr_html_()
        pd.testing.assert_frame_equal(again.to_frame(), fit.to_frame())
        assert again.guarantee == fit.guarantee


@of_each_method
def test_summaries_say_what_was_released_its_price_and_how_it_was_drawn(name, paid):
    method, (fit, _) = METHODS[name], paid[name]
    columns = [column for column in (*BOUNDS, *LEVELS) if column in str(method.what)]
    price = "(20, 1e-06)-differential privacy" if method.delta else "pure 20-differential privacy"
    for text in (words_of(fit.summary()), fit._repr_html_()):
        for words in (*columns, price, method.mechanism, "proved"):
            assert words in text, words


@of_each_method
def test_what_has_no_second_release_is_told(name, paid):
    fit = paid[name][0]
    for attribute in ("resid", "bse", "rsquared", "nobs", "pvalues"):
        with pytest.raises(AttributeError, match="second release"):
            getattr(fit, attribute)
    with pytest.raises(AttributeError, match=r"has no colour$"):
        _ = fit.colour


@of_each_method
def test_what_results_of_another_kind_have_is_told(name, paid):
    fit = paid[name][0]
    asks = {
        "predict, which results of the kind groups, process, regression have": lambda: fit.predict({"education": 9}),
        "nonnegative, which results of the kind table have": lambda: fit.nonnegative(),
        "std, which results of the kind moment have": lambda: fit.std,
        "draw, which results of the kind process have": lambda: fit.draw({"education": 9}, kng.research_key(0)),
        "items, which results of the kind groups have": lambda: fit["north"],
    }
    for words, ask in asks.items():
        if words.split(",")[0] not in dir(fit):
            with pytest.raises(AttributeError, match=f"the {fit.title.replace('(', '.')}.* has no {words}"):
                ask()
    assert fit
    assert {"params", "to_json"} < set(dir(fit))


@of_each_method
def test_plans_and_studies_ask_for_the_same(name, asked):
    method = METHODS[name]
    analysis, frame = method.ask(study())
    assert frame is PEOPLE
    plan = study().plan()
    assert described(method.ask(plan)) == described(analysis)
    assert plan.cost.epsilon == pytest.approx(20.0, rel=1e-12)
    assert plan.cost.delta == method.delta
    assert method.mechanism in repr(plan)


@of_each_method
def test_groups_cost_together_what_was_asked_by_either_adjacency(name):
    method = METHODS[name]
    for adjacency, guess in ((kng.Adjacency.REPLACE, {}), (kng.Adjacency.ADD_REMOVE, {"num_records": 4000})):
        plan = study(adjacency=adjacency, levels=LEVELS | {"half": ("a", "b")}, **guess).plan()
        if method.groups:
            method.ask(plan.by("half", num_records=2000))
            # Gaussian noise of groups is stated at the δ of all, which leaves a part of ε.
            assert (17.0 if method.delta else 20.0 - 1e-12) < plan.cost.epsilon <= 20.0
            assert (plan.cost.delta <= method.delta, plan.cost.adjacency) == (True, adjacency)


# No number, or more than anybody would call privacy: whatever it is divided by.
WRONG_EPSILONS = (101, 150.0, 199, Fraction(301, 2), "2", b"2", True, np.True_, 0, -1.0, np.nan)


@of_each_method
def test_epsilon_is_a_number_and_has_a_cap_before_it_is_divided(name, tmp_path):
    method, guess = METHODS[name], {"adjacency": "add_remove", "num_records": 4000}
    ledger = ledger_of(tmp_path / "book", method, 1000)
    for facts in ({"ledger": ledger}, guess):
        made = study(levels=LEVELS | {"half": ("a", "b")}, **facts)
        for asked in (made, *([made.by("half", num_records=2000)] if method.groups else [])):
            for wrong in WRONG_EPSILONS:
                with pytest.raises((TypeError, ValueError), match=r"^epsilon"):
                    method.ask(asked, wrong, force=True) if method.hopeless else method.ask(asked, wrong)
    assert ledger.verify().num_rows == 1


@of_each_method
def test_a_column_that_is_not_declared_is_refused_by_its_name(name):
    method = METHODS[name]
    for one in (study(), study().plan(), study().preview(), study().by("parttime")):
        with pytest.raises(ValueError, match=r"public (levels|bounds)") as told:
            method.ask_misspelt(one)
        assert any(word in str(told.value) for word in ("edukation", "educatio", "wag", "regio", "partime"))


@of_each_method
def test_frames_that_do_not_serve_are_refused_before_the_debit(name, tmp_path):
    method = METHODS[name]
    ledger = ledger_of(tmp_path / "book", method, 100)
    for frame, words in (
        (PEOPLE[["experience"]], "which the data do not have"),
        (PEOPLE.iloc[:0], "no record|needs more records|at least 1, got 0"),
        (PEOPLE.assign(**dict.fromkeys(PEOPLE, pd.Timestamp("2026-01-01"))), "holds neither numbers nor text"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            method.ask(study(frame, ledger=ledger))
    assert ledger.verify().num_rows == 1


@of_each_method
def test_what_depends_on_values_fails_with_one_text_and_stays_spent(name, tmp_path):
    method = METHODS[name]
    ledger = ledger_of(tmp_path / "book", method, 100)
    with pytest.raises(kng.ReleaseFailed) as failed:
        method.ask(study(BROKEN, ledger=ledger))
    assert str(failed.value) == FAILED_OF_FRAME
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    traceback = failed.value.__traceback__.tb_next
    while traceback is not None:
        name, variables = traceback.tb_frame.f_code.co_name, traceback.tb_frame.f_locals
        if name != "ask":
            assert not [one for one in variables.values() if isinstance(one, pd.DataFrame | np.ndarray)], name
        traceback = traceback.tb_next
    assert not ledger.releases()
    assert len(ledger.verify().reserved) == 1


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITHOUT_NOISE_IN_PREVIEWS])
def test_previews_have_the_noise_that_results_show(name, paid):
    method, (fit, _) = METHODS[name], paid[name]
    preview = method.ask(study().preview())
    if name != "mean" and method.mechanism != "GeometricMechanism":
        # What a guess of the records would make of it stands nowhere.
        assert "not stated" in preview.explain()
        assert fit.noise is None
        assert "not stated: " in fit.noise_in_words
        return
    noise = preview.noise
    if method.mechanism == "GeometricMechanism":
        assert np.unique(fit.noise) == noise.to_numpy().item()
        return
    np.testing.assert_allclose(np.ravel(noise), np.ravel(fit.noise), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NEVER_HOPELESS])
def test_little_but_noise_is_refused_unless_it_is_forced(name):
    method = METHODS[name]
    plan, forced = study(PEOPLE[:60]).plan(), study(PEOPLE[:60]).plan()
    method.ask(plan, method.hopeless)
    with pytest.raises(ValueError, match=r"Nothing was spent; force=True"):
        plan.settled()
    method.ask(forced, method.hopeless, force=True)
    [(settled, _)] = forced.settled()._planned
    assert "force=True" in settled.expected.warning


# A number that no public setting has.
UNLIKE = 3989


@of_each_method
def test_no_error_holds_the_table(name, tmp_path):
    """Of a study, its groups and a plan: what is refused, what the budget forbids, and what fails."""
    method = METHODS[name]
    whole, broken = PEOPLE.head(UNLIKE), BROKEN.head(UNLIKE)
    poor = ledger_of(tmp_path / "poor", method, "0.01")
    few = {"method": "adassp", "delta": 2} if name == "AdaSSP" else {"epsilon": -1}
    asks = {
        "misspelt": (ValueError, lambda: method.ask_misspelt(study(whole))),
        "a setting": (ValueError, lambda: method.ask(study(whole), **few)),
        "an argument": (TypeError, lambda: method.ask(study(whole), frame=whole)),
        "no frame": (TypeError, lambda: study(whole.to_numpy())),
        "budget": (kng.ledger.BudgetExceeded, lambda: method.ask(study(whole, ledger=poor))),
        "values": (kng.ReleaseFailed, lambda: method.ask(study(broken))),
        "plan of a budget": (kng.ledger.BudgetExceeded, lambda: _run(study(whole, ledger=poor), method)),
    }
    if method.groups:
        by = "parttime" if name in ("count", "histogram") else "region"
        if name != "crosstab":
            asks["groups of values"] = (kng.ReleaseFailed, lambda: method.ask(study(broken).by(by, num_records=900)))
        asks["groups misspelt"] = (ValueError, lambda: method.ask_misspelt(study(whole).by("region")))
    if method.hopeless is not None:
        asks["hopeless"] = (ValueError, lambda: method.ask(study(PEOPLE.head(61)), method.hopeless))
    with every_case() as case:
        for way, (kind, ask) in asks.items():
            with case(way):
                with pytest.raises(kind) as caught:
                    ask()
                assert records_held(caught.value, 61 if way == "hopeless" else UNLIKE) == []


def _run(asked, method):
    plan = asked.plan()
    method.ask(plan)
    plan.run()
