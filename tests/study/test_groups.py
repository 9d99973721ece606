"""Groups of a study: every record in its own group, one debit for all, and the price of the worst pair of tables."""

import copy
import itertools
import json
import math
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FRAME
from kngjax.releases import release as releasing
from kngjax.releases.group_plans import plan_of_groups
from tests.study.people import BOUNDS, PEOPLE, SECRET, study
from tests.words import words_of

REGIONS = ("north", "south", "west")
# Enough where only shapes matter.
FEW = PEOPLE[:90]
ADJACENCIES = ("replace", "add_remove")
# Groups of one column of two levels, and a column of numbers, for tables of a few records.
SMALL = {"bounds": {"v": (0, 1)}, "levels": {"g": ("a", "b"), "h": ("x", "y")}, "missing": {"g": "drop"}}


def ledger(tmp_path, budget, adjacency="replace"):
    return kng.Ledger.create(tmp_path / f"people {adjacency}", budget, adjacency=adjacency, dataset="people")


def medians(adjacency):
    """Of both groups of any table, at ε = 1 together."""
    return kng.Study(table([]), adjacency=adjacency, **SMALL).plan().by("g").median("v", epsilon=1.0)


def price(analysis):
    """What all groups cost together, and whether that is proved."""
    [step] = analysis.steps()
    return step.owed(0)


def table(records):
    return pd.DataFrame({"g": [group for group, _ in records], "v": [float(value) for _, value in records]})


def mechanisms(analysis):
    """One a group."""
    return [one.parts[0].mechanism for one in analysis.analyses]


def log_law(analysis, records):
    """log of the density of both groups' medians on each pair of halves of [0, 1], for values 0, 1/2 and 1.

    The exponential law of a median in closed form, of the ε and the records that the study gives to each group.
    """
    frame = table(records)
    places = analysis.grouping.places(analysis.check(frame))
    laws = []
    for place, (mechanism, one) in enumerate(zip(mechanisms(analysis), analysis.analyses, strict=True)):
        values = one.records(frame)[1][places == place]
        # Under add_remove one record changes |i - n/2| by at most 1/2.
        scores = np.array([abs((values <= end).sum() - len(values) / 2) for end in (0.25, 0.75)])
        laws.append(-float(mechanism.epsilon) * scores - np.log(np.mean(np.exp(-float(mechanism.epsilon) * scores))))
    return np.add.outer(*laws)


def neighbours(records, adjacency):
    """All tables with one record more, or with one record exchanged."""
    every = list(itertools.product(("a", "b", "elsewhere"), (0, 0.5, 1)))
    if adjacency == "add_remove":
        return [[*records, one] for one in every]
    return [[*records[:place], one, *records[place + 1 :]] for place in range(len(records)) for one in every]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pair_of_small_tables_costs_more_than_the_guarantee(adjacency):
    analysis = medians(adjacency)
    assert (price(analysis)[0].epsilon, price(analysis)[0].adjacency) == (1.0, adjacency)
    tables = [
        [],
        [("a", 0)],
        [("a", 0.5), ("b", 1)],
        [("a", 0), ("a", 1), ("elsewhere", 0)],
        [("b", 0.5), ("a", 1)] * 2,
    ]
    for records in tables:
        law = log_law(analysis, records)
        for other in neighbours(records, adjacency):
            assert np.max(np.abs(log_law(analysis, other) - law)) <= 1.0 + 1e-12


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_worst_pair_of_tables_costs_all_of_it(adjacency):
    """A 1/2 that leaves one group makes its upper half likelier, and so does a 1 that enters the other group."""
    rest = [("a", 0)] * 41 + [("a", 0.5)] * 40 + [("b", 0)] * 40 + [("b", 0.5)] * 40
    first, second = (rest, [*rest, ("b", 1)]) if adjacency == "add_remove" else ([("a", 0.5), *rest], [("b", 1), *rest])
    analysis = medians(adjacency)
    loss = np.max(np.abs(log_law(analysis, first) - log_law(analysis, second)))
    assert 0.999 < loss <= 1.0 + 1e-12


def drawn_from(monkeypatch, ask):
    """The records that each group's mechanism was given."""
    drawn, given = releasing.drawn, []

    def draw(way, certificate, names, X, y, progress):
        given.append(np.column_stack([part for part in (X, y) if part is not None]))
        return drawn(way, certificate, names, X, y, progress)

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "drawn", draw)
        ask()
    return given


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_each_record_is_in_the_group_of_its_own_levels_and_in_no_other(monkeypatch, adjacency):
    columns = {"g": ["b", None, "a", "b", " a ", "c"], "h": ["x", "y", "y", "y", "x", "x"], "v": [0, 1, 2, 3, 4, 5]}
    frame = pd.DataFrame(columns).assign(v=np.arange(6) / 8)

    def given(frame, *by, missing):
        own = kng.Study(frame, adjacency=adjacency, **SMALL | {"missing": missing})
        return [
            rows.ravel().tolist()
            for rows in drawn_from(monkeypatch, lambda: own.by(*by).mean("v", epsilon=1, force=True))
        ]

    assert given(frame, "g", missing={"g": "drop"}) == [[0.25, 0.5], [0.0, 0.375]]
    assert given(frame, "g", missing={"g": "b"}) == [[0.25, 0.5], [0.0, 0.125, 0.375, 0.625]]
    assert given(frame, "h", "g", missing={"g": "drop"}) == [[0.5], [0.0], [0.25], [0.375]]
    assert given(frame, "g", "h", missing="drop") == [[0.5], [0.25], [0.0], [0.375]]
    # One record moved changes the two groups that it left and entered, by itself alone.
    moved = frame.assign(g=["b", None, "b", "b", " a ", "c"])
    assert given(moved, "g", missing={"g": "drop"}) == [[0.5], [0.0, 0.25, 0.375]]
    table = pl.DataFrame(columns).with_columns(v=pl.Series(np.arange(6) / 8))
    for kind in (table, table.to_arrow()):
        assert given(kind, "g", missing={"g": "drop"}) == [[0.25, 0.5], [0.0, 0.375]]
    with pytest.raises(kng.ReleaseFailed):
        given(frame, "g", missing=None)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_epsilon_and_delta_are_of_all_groups_together(tmp_path, adjacency):
    paid = ledger(tmp_path, kng.Budget.approximate("1.6", "1e-6"), adjacency)
    by = study(FEW, adjacency=adjacency, ledger=paid).by("region", num_records=30)
    mean = by.mean("wage", epsilon=0.1, force=True)
    assert (mean.guarantee.epsilon, mean.guarantee.delta, mean.guarantee.adjacency) == (0.1, 0.0, adjacency)
    # Half of it for one group where an exchanged record may change two.
    own = 0.05 if adjacency == "replace" else 0.1
    assert {one.certificate.guarantee for one in mean.releases} == {kng.Guarantee.bounded_range(own, "add_remove")}
    quartiles = by.quantile("wage", tau=[0.25, 0.75], epsilon=0.5, force=True)
    assert 0.5 * (1.0 - 1e-12) <= quartiles.guarantee.epsilon <= 0.5
    sums = by.linear_regression("wage ~ education", method="adassp", epsilon=1, delta=1e-6, force=True)
    assert 0.99 < sums.guarantee.epsilon <= 1
    assert 0.999e-6 < sums.guarantee.delta <= 1e-6
    book = paid.verify()
    assert len(book.reserved) == 3
    assert book.spent.epsilon == pytest.approx(0.6 + sums.guarantee.epsilon, rel=1e-12)
    for results, kept in zip((mean, quartiles, sums), paid.releases().values(), strict=True):
        assert [json.dumps(one, sort_keys=True) for one in json.loads(kept)] == [
            one.to_json() for one in results.releases
        ]
        assert {one.certificate.membership.together for one in results.releases} == {results.guarantee}
    with pytest.raises(kng.ledger.BudgetExceeded):
        by.mean("wage", epsilon=0.1, force=True)
    assert paid.verify().head == book.head


def test_certificates_and_results_say_how_records_are_divided():
    mean = study().by("region").mean("wage", epsilon=1)
    words = ("divided by region, public levels north, south, west", "twice the worst of the groups", "pure 1-diff")
    certificate = mean["south"].certificate
    for text in (certificate.explain(), certificate._repr_html_(), words_of(mean.summary()), mean._repr_html_()):
        for word in words:
            assert word in text
    assert "region = south alone" in certificate.explain()
    assert kng.Release.from_json(mean.releases[1].to_json()).certificate == certificate
    assert "membership" not in study().mean("wage", epsilon=1).to_json()
    assert "worst of the groups" in words_of(study(adjacency="add_remove").by("region").mean("wage", epsilon=1))


@pytest.fixture(scope="module")
def lines():
    """Quartiles of wages on education in each region."""
    return study(FEW).by("region").quantile_regression("wage ~ education", tau=[0.25, 0.75], epsilon=30)


def test_results_have_the_shapes_of_groupby(lines):
    by = study().by("region")
    mean = by.mean("education", epsilon=30)
    pd.testing.assert_series_equal(
        mean.params, PEOPLE.groupby("region")["education"].mean().rename("mean of education"), atol=0.2
    )
    assert list(mean) == mean.keys() == list(REGIONS)
    assert len(mean) == len(mean.values()) == 3
    assert dict(mean.items())["west"] is mean["west"]
    with pytest.raises(KeyError, match="'north', 'south', 'west'"):
        _ = mean["east"]
    quartiles = study(FEW).by(["region", "parttime"]).quantile("wage", tau=[0.25, 0.75], epsilon=30)
    assert list(quartiles.params.index.names) == ["region", "parttime"]
    assert list(quartiles.params.columns) == ["0.25-quantile of wage", "0.75-quantile of wage"]
    assert (quartiles.params.loc["south", "no"] == quartiles["south", "no"].params).all()
    assert list(lines.params.index.names) == ["region", "coefficient"]
    pd.testing.assert_frame_equal(lines.params.loc["south"], lines["south"].params)
    assert list(lines.to_frame().columns) == ["region", "release", "coefficient", "estimate"]
    assert list(quartiles.to_frame().columns) == ["region", "parttime", "statistic", "estimate"]
    copies = [kng.Results.from_json(lines.to_json()), pickle.loads(pickle.dumps(quartiles)), copy.deepcopy(mean)]
    for again, fit in zip(copies, (lines, quartiles, mean), strict=True):
        assert again.to_json() == fit.to_json()
        assert str(again.summary()) == str(fit.summary())
        assert again.params.equals(fit.params)
    changed = json.loads(mean.to_json())
    for unfit, words in (
        ({"kind": "study"}, "not what Results.to_json"),
        ({"each": changed["each"][:2]}, "are 3 groups"),
    ):
        with pytest.raises(ValueError, match=words):
            kng.Results.from_json(json.dumps(changed | unfit))
    with pytest.raises(AttributeError, match="second release"):
        _ = lines.resid


def test_predictions_and_curves_are_those_of_each_rows_own_group(lines):
    mpl.use("Agg")
    new = PEOPLE.iloc[[5, 17, 3, 8]]
    found = lines.predict(new)
    for label, row in new.iterrows():
        pd.testing.assert_frame_equal(found.loc[[label]], lines[row["region"]].predict(new.loc[[label]]))
    np.testing.assert_allclose(lines.predict(pl.DataFrame(new.to_dict("list"))), found)
    same = lines.predict({"region": "west", "education": [1, 2]})
    np.testing.assert_allclose(same, lines["west"].predict({"education": [1, 2]}))
    with pytest.raises(ValueError, match=r"\['region'\] are not there"):
        lines.predict({"education": 1})
    with pytest.raises(ValueError, match="no declared level"):
        lines.predict({"region": "east", "education": 1})
    labels = [line.get_label() for line in lines.plot("education").get_lines()]
    assert labels[:3] == ["region = north, tau = 0.25", "region = north, tau = 0.75", "region = south, tau = 0.25"]
    assert lines.labels == tuple(labels)
    dropped = study(FEW, missing={"region": "drop"}).by("region")
    dropped = dropped.linear_regression("wage ~ education", epsilon=30, method="adassp", delta=1e-6, force=True)
    assert dropped.predict({"region": ["east", "west"], "education": 1}).isna().tolist() == [True, False]
    assert [line.get_label() for line in dropped.plot("education").get_lines()] == [
        f"region = {name}" for name in REGIONS
    ]
    with pytest.raises(AttributeError, match="the mean of wage has no predict, which results of the kind"):
        study().by("region").mean("wage", epsilon=1).predict(new)


ANALYSES = {
    "mean": lambda by: by.mean("wage", epsilon=1, force=True),
    "quantile": lambda by: by.quantile("wage", tau=[0.1, 0.5], epsilon=1, force=True),
    "median regression": lambda by: by.quantile_regression("wage ~ education", tau=0.5, epsilon=1, force=True),
    "joint quantiles": lambda by: by.quantile("wage", tau=[0.1, 0.5], epsilon=1, force=True, budget="joint"),
    "share": lambda by: by.mean("parttime", epsilon=1, force=True),
    "robust": lambda by: by.linear_regression("wage ~ education", epsilon=1, force=True),
    "squared": lambda by: by.linear_regression("wage ~ education", epsilon=1, force=True, method="squared"),
    "AdaSSP": lambda by: by.linear_regression("wage ~ education", epsilon=1, force=True, method="adassp", delta=1e-6),
    "logistic": lambda by: by.logistic_regression("parttime ~ education", epsilon=1, force=True),
    "Poisson": lambda by: by.poisson_regression("sick ~ education", epsilon=1, force=True),
    "robust with five": lambda by: by.linear_regression(
        "wage ~ education + poly(experience, 3)", epsilon=1, force=True
    ),
    "logistic with five": lambda by: by.logistic_regression(
        "parttime ~ education + poly(experience, 3)", epsilon=1, force=True
    ),
    "Poisson with five": lambda by: by.poisson_regression(
        "sick ~ education + poly(experience, 3)", epsilon=1, force=True
    ),
    "quantiles with five": lambda by: by.quantile_regression(
        "wage ~ education + poly(experience, 3)", tau=0.5, epsilon=1, force=True
    ),
}


@pytest.mark.default_cases("mean-replace", "quantile-replace", "median regression-add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("ask", list(ANALYSES.values()), ids=list(ANALYSES))
def test_a_group_of_no_record_is_released_like_any_other(ask, adjacency):
    """So that no output tells that it is empty, also where all are."""
    for frame in (PEOPLE[PEOPLE["region"] != "west"][:40], PEOPLE[:0]):
        if adjacency == "replace":
            facts = {"bounds": BOUNDS, "levels": study().facts.levels}
            by = kng.Study(frame, adjacency=adjacency, **facts).by("region", num_records=1000)
        else:
            by = study(frame, adjacency=adjacency).by("region", num_records=1000)
        results = ask(by)
        assert len(results.each) == 3
        assert all(np.isfinite(one.value).all() for one in results.releases)
        kinds = {(one.certificate.mechanism["type"], one.certificate.assurance) for one in results.releases}
        assert len(kinds) == 1
        assert {one.certificate.mechanism["adjacency"] for one in results.releases} == {"add_remove"}


def test_what_fails_in_one_group_releases_nothing_and_stays_spent(tmp_path, monkeypatch):
    paid = ledger(tmp_path, kng.Budget.pure(1))
    own = study(ledger=paid)
    drawn, count = releasing.drawn, iter(range(9))

    def second_fails(*given):
        if next(count) == 1:
            raise ValueError(f"{SECRET}")
        return drawn(*given)

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "drawn", second_fails)
        with pytest.raises(kng.ReleaseFailed) as failed:
            own.by("region").mean("wage", epsilon=0.25)
    assert str(failed.value) == FAILED_OF_FRAME
    assert failed.value.__cause__ is None
    # What depends on values is seen after the debit alone.
    with pytest.raises(kng.ReleaseFailed):
        study(PEOPLE.assign(region=["east", *PEOPLE["region"][1:]]), ledger=paid).by("region").mean(
            "wage", epsilon=0.25
        )
    with pytest.raises(kng.ReleaseFailed):
        study(PEOPLE.assign(wage=np.nan), ledger=paid).by("region").mean("wage", epsilon=0.25)
    assert (len(paid.verify().reserved), paid.releases()) == (3, {})
    own.by("region").mean("wage", epsilon=0.25)
    with pytest.raises(kng.ledger.BudgetExceeded):
        own.by("region").mean("wage", epsilon=0.25)


def test_no_debit_of_groups_pays_for_another_release(tmp_path, monkeypatch):
    paid = ledger(tmp_path, kng.Budget.pure(2), "add_remove")
    own = study(adjacency="add_remove", ledger=paid)
    mechanism = mechanisms(own.plan().by("region").mean("wage", epsilon=1))[0]
    wages = PEOPLE[["wage"]].to_numpy()
    drawn, tried = releasing.drawn, []

    def steal(*given):
        # While the groups are drawn, and before they are kept.
        with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
            kng.release(mechanism, wages, ledger=kng.ledger.Reservation(paid, max(paid.read().reserved)))
        tried.append(len(paid.releases()))
        return drawn(*given)

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "drawn", steal)
        own.by("region").mean("wage", epsilon=1)
    assert tried == [0, 0, 0]
    (number,) = paid.releases()
    with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
        kng.release(mechanism, wages, ledger=kng.ledger.Reservation(paid, number))
    book = paid.verify()
    assert (book.spent.epsilon, len(book.releases)) == (1.0, 1)
    own.by("region").mean("wage", epsilon=1)
    with pytest.raises(kng.ledger.BudgetExceeded):
        own.by("region").mean("wage", epsilon=0.1)


def test_a_reservation_pays_for_all_groups_once_and_only_at_their_price(tmp_path):
    paid = ledger(tmp_path, kng.Budget.pure(3))
    analysis = study().plan().by("region").mean("wage", epsilon=1)
    owed, proved = price(analysis)
    assert (owed.epsilon, proved) == (1.0, True)
    reserved = paid.reserve(owed)
    assert len(analysis.release(PEOPLE, [reserved])) == 3
    assert len(json.loads(paid.releases()[reserved.number])) == 3
    with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
        analysis.release(PEOPLE, [reserved])
    for other in (kng.Guarantee.bounded_range("0.5", "replace"), kng.Guarantee.pure(1, "replace")):
        with pytest.raises(ValueError, match="made for another guarantee"):
            analysis.release(PEOPLE, [paid.reserve(other)])


def test_releases_that_cost_more_than_was_reserved_are_not_kept(tmp_path, monkeypatch):
    paid = ledger(tmp_path, kng.Budget.pure(1))
    dear = mechanisms(study().plan().by("region").mean("wage", epsilon=2))[0]
    drawn, [certificate] = releasing.drawn, releasing.plan_for(dear).certificates
    with monkeypatch.context() as patched:
        patched.setattr(releasing, "drawn", lambda way, _, *given: drawn(way, certificate, *given))
        with pytest.raises(kng.ledger.LedgerError, match="another guarantee than was reserved"):
            study(ledger=paid).by("region").mean("wage", epsilon=1)
    assert (len(paid.verify().reserved), paid.releases()) == (1, {})


def test_public_sizes_of_groups_are_refused():
    mean = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 1.0, "replace")
    with pytest.raises(ValueError, match="number of records of a group is private"):
        plan_of_groups([[releasing.plan_for(mean)]] * 3, study().by("region")._grouping.division, mean.adjacency)


def test_what_public_facts_refuse_costs_nothing(tmp_path):
    paid = ledger(tmp_path, kng.Budget.pure(1))

    def refused(match, ask, kind=ValueError, **changed):
        with pytest.raises(kind, match=match):
            ask(study(ledger=paid, **changed))

    refused("groups are by public levels", lambda own: own.by("experience"))
    refused("one or several different columns", lambda own: own.by())
    refused("one or several different columns", lambda own: own.by("region", "region"))
    refused("leave it out", lambda own: own.by("region").linear_regression("wage ~ C(region)", epsilon=1))
    refused("leave it out", lambda own: own.by("parttime").mean("parttime", epsilon=1))
    refused("leave it out", lambda own: own.by("region").histogram("region", epsilon=1))
    refused("leave it out", lambda own: own.by("region").count("region == 'north'", epsilon=1))
    refused("'drop' or None", lambda own: own.by("region"), missing={"region": "east"})
    refused("a number for each group", lambda own: own.by("region", num_records={"north": 5}))
    refused("groups have no", lambda own: own.by("region").resid, AttributeError)
    refused("one positive real number", lambda own: own.by("region").mean("wage", epsilon="one"), TypeError)
    refused("which the data do not have", lambda own: own.by("region").mean("wage", epsilon=1), frame=PEOPLE[["wage"]])
    dates = PEOPLE.assign(region=pd.Timestamp("2026-01-01"))
    refused("neither numbers nor text", lambda own: own.by("region").mean("wage", epsilon=1), TypeError, frame=dates)
    assert paid.verify().num_rows == 1
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(study().by("region"))


def test_guesses_of_sizes_reach_the_mechanisms():
    own = study(adjacency="replace")
    analysis = (
        own.plan()
        .by("region", num_records={"north": 500, "south": 5000, "west": 500})
        .linear_regression("wage ~ education", epsilon=1)
    )
    thresholds = [float(mechanism.loss.k) for mechanism in mechanisms(analysis)]
    assert thresholds[0] == thresholds[2] != thresholds[1]
    equal = own.plan().by("region").linear_regression("wage ~ education", epsilon=1)
    third = own.plan().by("region", num_records=len(PEOPLE) // 3).linear_regression("wage ~ education", epsilon=1)
    assert [price(one) for one in (equal, third)] == [price(analysis)] * 2
    assert [float(one.loss.k) for one in mechanisms(equal)] == [float(one.loss.k) for one in mechanisms(third)]
    with pytest.raises(ValueError, match="public guess"):
        study(adjacency="add_remove").by("region").linear_regression("wage ~ education", epsilon=1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_plans_show_what_all_groups_cost_together(tmp_path, adjacency):
    paid = ledger(tmp_path, kng.Budget.pure(1), adjacency)
    plan = study(adjacency=adjacency, ledger=paid).plan()
    plan.by("region").mean("wage", epsilon=0.5)
    plan.mean("wage", epsilon=0.25)
    assert plan.cost.epsilon == 0.75
    assert plan.summary().rows[0][:4] == ("1. mean of wage by region", "KNG by QuadraticDraw", "proved", "0.5")
    grouped, whole = plan.run()
    assert isinstance(grouped, kng.Results)
    assert isinstance(whole, kng.Results)
    assert paid.verify().spent.epsilon == 0.75
    with pytest.raises(kng.ledger.BudgetExceeded):
        plan.run()
    assert math.isclose(paid.verify().spent.epsilon, 0.75)
