"""Intervals of the groups of a table: one debit, the price of the worst pair of tables, a row a group, and no leak."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.releases.group_plans import plan_of_groups
from kngjax.releases.release import plan_for
from tests.made_once import MadeOnce
from tests.study.test_regression_intervals import PEOPLE, study
from tests.words import words_of

FORMULA = "log(wage) ~ education"
NUMBERS = ["estimate", "std. error", "lower", "upper", "level"]
ADJACENCIES = ("replace", "add_remove")


def by_region(adjacency, frame=PEOPLE, **changed):
    """Each group has 3,000 records, as public facts say, whatever the frame holds."""
    return study(frame, adjacency=adjacency, **changed).by("region", num_records=3000)


def fitted(adjacency, frame=PEOPLE, **changed):
    return by_region(adjacency, frame, **changed).linear_regression(
        FORMULA, epsilon=8, scale=0.4, intervals=kng.Sandwich(share=0.4), force=True
    )


@pytest.fixture(scope="module")
def lines():
    return by_region("replace").quantile_regression(FORMULA, tau=[0.4, 0.6], epsilon=40, scale=0.4, intervals=True)


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """Fits with their ledgers of the ε that they cost, by adjacency."""
    room = tmp_path_factory.mktemp("ledgers")

    def made(adjacency):
        ledger = kng.Ledger.create(room / adjacency, kng.Budget.pure(8), adjacency=adjacency, dataset="people")
        return fitted(adjacency, ledger=ledger), ledger

    return MadeOnce({case: lambda case=case: made(case) for case in ADJACENCIES})


def epsilons(fit):
    """Those of every mechanism of each group."""
    return [
        [float(part.certificate.mechanism["epsilon"]) for release in one.releases for part in release.parts]
        for one in fit.each
    ]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_epsilon_is_of_all_groups_with_what_their_intervals_are_made_of(paid, adjacency):
    fit, ledger = paid[adjacency]
    # Under replace an exchanged record may change two groups, so that each has half of it.
    own = 4.0 if adjacency == "replace" else 8.0
    assert all(sum(group) <= own for group in epsilons(fit))
    assert epsilons(fit) == [pytest.approx([0.55 * own, 0.4 * own, 0.05 * own])] * 2
    assert (fit.guarantee.epsilon, fit.guarantee.delta, fit.guarantee.adjacency) == (8.0, 0.0, adjacency)
    parts = [part for release in fit.releases for part in release.parts]
    assert {part.certificate.membership.together for part in parts} == {fit.guarantee}
    assert {part.certificate.mechanism["adjacency"] for part in parts} == {"add_remove"}
    book = ledger.verify()
    assert (len(book.reserved), book.spent.epsilon) == (1, 8.0)
    (kept,) = ledger.releases().values()
    assert [json.dumps(one, sort_keys=True) for one in json.loads(kept)] == [part.to_json() for part in parts]
    with pytest.raises(kng.ledger.BudgetExceeded):
        fitted(adjacency, ledger=ledger)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_epsilon_and_delta_of_adassp_are_those_of_all_groups_with_their_sums(tmp_path, adjacency):
    """Its noise is Gaussian and may be stated at any δ, and an exchange at that where twice its ε holds."""
    plan = study(adjacency=adjacency).plan()
    given = {"epsilon": 8, "method": "adassp", "delta": 1e-6, "intervals": True, "force": True}
    plan.by("region", num_records=3000).linear_regression(FORMULA, **given)
    [step] = plan.steps()
    cost, _ = step.owed(0)
    assert (cost.adjacency, cost.epsilon <= 8.0, cost.delta <= 1e-6) == (adjacency, True, True)
    paid = kng.Ledger.create(
        tmp_path / "people", kng.Budget.approximate(8, 1e-6), adjacency=adjacency, dataset="people"
    )
    paid.reserve(cost, "intervals of groups")


@pytest.mark.default_cases("all-replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("empty", ["one", "all"])
def test_a_group_of_no_record_is_released_like_any_other(empty, adjacency):
    """No output tells that a group is empty, also where all are."""
    fit = fitted(adjacency, PEOPLE[PEOPLE["region"] != "south"][:40] if empty == "one" else PEOPLE[:0])
    shapes = [
        [(part.certificate.mechanism["type"], part.certificate.assurance, part.value.shape) for part in one.parts]
        for one in fit.releases
    ]
    assert shapes[0] == shapes[1]
    assert all(np.isfinite(part.value).all() for one in fit.releases for part in one.parts)
    found = fit.conf_int()
    assert found.index.tolist() == ["north", "south"]
    assert np.isfinite(found.to_numpy()).all()


@pytest.mark.parametrize("broken", ["cell", "level"])
def test_what_fails_in_one_group_says_one_text_releases_nothing_and_stays_spent(tmp_path, broken):
    ledger = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(20), adjacency="replace", dataset="people")
    last = PEOPLE.index == PEOPLE[PEOPLE["region"] == "south"].index[-1]
    frame = PEOPLE.assign(wage=PEOPLE["wage"].mask(last)) if broken == "cell" else PEOPLE.assign(region="east")
    with pytest.raises(kng.ReleaseFailed) as caught:
        fitted("replace", frame, ledger=ledger)
    assert str(caught.value) == FAILED_OF_FRAME
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert (len(ledger.verify().reserved), ledger.releases()) == (1, {})


def test_what_public_facts_refuse_costs_nothing(tmp_path):
    paid = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(20), adjacency="replace", dataset="people")
    with pytest.raises(ValueError, match=r"no intervals are offered of .*"):
        study(ledger=paid).by("region", num_records=3000).linear_regression(
            FORMULA, epsilon=2, scale=0.4, intervals=kng.Sandwich(share=1e-3)
        )
    with pytest.raises(TypeError, match="intervals must be"):
        study(ledger=paid).by("region").linear_regression(FORMULA, epsilon=2, intervals="yes")
    mean = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 1.0, "replace")
    plans = [[plan_for(kng.WithIntervals(mean, kng.Sandwich()), 10)]] * 2
    with pytest.raises(ValueError, match="number of records of a group is private"):
        plan_of_groups(plans, study().by("region")._grouping.division, mean.adjacency)
    assert not paid.read().what


def test_each_group_has_its_row_and_its_own_interval(lines):
    found, labels = lines.conf_int(0.9), ("tau = 0.4", "tau = 0.6")
    assert list(found.index.names) == ["region", "coefficient"]
    assert found.columns.tolist() == [(label, end) for label in labels for end in ("lower", "upper")]
    for key in ("north", "south"):
        pd.testing.assert_frame_equal(found.loc[key], lines[key].conf_int(0.9))
        assert set(lines.intervals(0.9)[key]) == set(labels)
    summary = lines.summary(0.9)
    assert summary.heads == ("region", "release", "coefficient", "estimate", "std. error", "lower", "upper")
    assert [row[:3] for row in summary.rows] == [
        *zip(*(lines.to_frame()[name] for name in summary.heads[:3]), strict=True)
    ]
    assert "interval: each 0.9, by the Hessian H at" in words_of(summary)
    frame = lines.to_frame(0.9)
    assert frame.columns.tolist() == ["region", "release", "coefficient", *NUMBERS]
    assert (frame["lower"] < frame["estimate"]).all()
    ten = lines.contrast({"education": 10.0}, 0.9)
    assert ten.columns.tolist() == ["region", "release", "contrast", *NUMBERS]
    slopes = frame[frame["coefficient"] == "education"].reset_index(drop=True)
    np.testing.assert_allclose(ten[NUMBERS[:4]], 10.0 * slopes[NUMBERS[:4]], rtol=1e-9)
    tests = lines.wald_test("education")
    assert [[*tests[key]] for key in ("north", "south")] == [[*labels]] * 2
    assert tests["north"]["tau = 0.4"].pvalue == lines["north"].wald_test("education")["tau = 0.4"].pvalue
    again = pickle.loads(pickle.dumps(lines))
    assert again.to_json() == lines.to_json()
    assert again.guarantee == lines.guarantee
    pd.testing.assert_frame_equal(again.conf_int(0.9), found)


def test_of_one_release_the_names_of_its_numbers_have_the_ends(paid):
    fit, _ = paid["add_remove"]
    found = fit.conf_int()
    assert found.columns.tolist() == [(of, end) for of in ("intercept", "education") for end in ("lower", "upper")]
    assert found.index.name == "region"
    for key in ("north", "south"):
        own = fit[key].conf_int()
        assert found.loc[key].to_numpy().tolist() == own.to_numpy().ravel().tolist()
    assert ((found["education", "lower"] < fit.params["education"]).all(), len(fit.params)) == (True, 2)
    assert [row[0] for row in fit.summary().rows if row[1] == "education"] == list(fit.keys())


def test_bands_are_those_of_each_rows_own_group(lines):
    new = pd.DataFrame({"region": ["south", "north", "south"], "education": [3.0, 9.0, 12.0]}, index=[5, 6, 7])
    found = lines.predict_interval(new, 0.9, original=True)
    assert found.index.tolist() == [5, 6, 7]
    for key in ("north", "south"):
        own = new["region"] == key
        pd.testing.assert_frame_equal(found[own], lines[key].predict_interval(new[own], 0.9, original=True))


def test_groups_without_intervals_say_how_they_are_asked_for():
    lines = by_region("replace").linear_regression(FORMULA, epsilon=8, method="adassp", delta=1e-6, force=True)
    with pytest.raises(ValueError, match="intervals=True"):
        lines.conf_int()
    mean = by_region("replace").mean("education", epsilon=8)
    with pytest.raises(ValueError, match="is released with an estimate or not at all"):
        mean.conf_int()
    assert "interval" not in dict(lines.summary().facts)


@pytest.mark.parametrize("count", [0, -3, True])
def test_what_is_said_of_groups_is_a_whole_number(count):
    with pytest.raises(ValueError, match=r"by\(num_records=\) must be whole numbers of at least 1.*clip\(lower=1\)"):
        study(PEOPLE).by("region", num_records=count)
