"""Counts and tables of a study: what is counted, names, consistency, costs, refusals."""

import datetime
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
from kngjax.data import cells
from kngjax.inference import known_noise
from kngjax.study.classifications import Axis, Classification
from tests.words import words_of

BOUNDS, LEVELS = {"wage": (0, 1000), "age": (0, 99)}, {"region": ("north", "south", "west"), "sex": ("f", "m")}
ADJACENCIES = ("replace", "add_remove")
# Beyond the noise of 60 numbers at this ε there is nothing to see.
SHARP = 60.0


def people(count=500):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "wage": random.uniform(-50, 1100, count),
            "age": random.integers(0, 100, count).astype(float),
            "region": random.choice(LEVELS["region"], count),
            "sex": random.choice(LEVELS["sex"], count),
        }
    )


PEOPLE = people()


def study(frame=PEOPLE, **changed):
    return kng.Study(frame, **{"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_are_of_the_records_that_meet_the_condition(adjacency):
    one = study(adjacency=adjacency)
    found = one.count("wage > 500 and region == 'north'", epsilon=SHARP)
    assert found.value == int(((PEOPLE["wage"] > 500) & (PEOPLE["region"] == "north")).sum())
    assert type(found.value) is int
    assert found.params.index.tolist() == ["wage > 500 and region == 'north'"]
    assert found.certificate.sensitivity.value == 1.0
    assert found.certificate.mechanism["type"] == "GeometricMechanism"
    deviation = 1 / (math.sqrt(2) * math.sinh(0.5))
    np.testing.assert_allclose(one.count("sex == 'f'", epsilon=1).noise, [deviation])
    if adjacency == "add_remove":
        assert one.count(epsilon=SHARP).value == len(PEOPLE)
        assert study(PEOPLE.iloc[:0], adjacency=adjacency).count(epsilon=SHARP).value == 0
    else:
        with pytest.raises(ValueError, match=r"public: it is len\(frame\)"):
            one.count(epsilon=1)


DAY = datetime.timedelta(days=1)
DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 7, 1), datetime.date(2021, 1, 1)]


def days_of(**changed):
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=366)})
    return study(frame, bounds={"day": (DAYS[0], DAYS[-1])}, levels={}, **changed)


def test_dates_are_cut_and_compared_as_they_are_written():
    one = days_of()
    for edges in (DAYS, ["2020-01-01", "2020-07-01", "2021-01-01"], np.array(DAYS, "datetime64[D]")):
        assert one.histogram("day", epsilon=SHARP, edges=edges).params.tolist() == [182, 184]
    assert one.count("day >= '2020-07-01' and day < '2020-08-01'", epsilon=SHARP).value == 31


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
def test_tables_are_those_of_pandas(adjacency, convert):
    one = study(convert(PEOPLE), adjacency=adjacency)
    table = one.crosstab("region", "sex", epsilon=SHARP).to_table()
    pd.testing.assert_frame_equal(table, pd.crosstab(PEOPLE["region"], PEOPLE["sex"]), check_dtype=True)
    edges = [0, 100, 250.5, 1000]
    found = one.histogram("wage", epsilon=SHARP, edges=edges)
    clipped = PEOPLE["wage"].clip(0, 1000)
    assert found.params.tolist() == np.histogram(clipped, edges)[0].tolist()
    assert found.params.index.tolist() == ["[0, 100)", "[100, 250.5)", "[250.5, 1000]"]
    assert found.clipped == {"wage": (0.0, 1000.0)}
    assert (
        one.histogram("age", epsilon=SHARP, edges=4).params.tolist()
        == np.histogram(PEOPLE["age"], 4, (0, 99))[0].tolist()
    )
    three = one.crosstab("region", "wage", "sex", epsilon=SHARP, edges={"wage": 2})
    frame = PEOPLE.assign(wage=np.where(clipped < 500, "[0, 500)", "[500, 1000]"))
    expected = pd.crosstab([frame["region"], frame["wage"]], frame["sex"])
    np.testing.assert_array_equal(three.to_table(), expected)
    assert three.params.loc["south", "[500, 1000]", "m"] == expected.loc[("south", "[500, 1000]"), "m"]
    numbers = ["estimate", "std. error", "lower", "upper", "level"]
    assert three.to_frame().columns.tolist() == ["region", "wage", "sex", *numbers]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_have_intervals_of_the_table_and_of_the_population(adjacency):
    found = study(PEOPLE, adjacency=adjacency).crosstab("region", "sex", epsilon=1.0)
    own, population = found.conf_int(), found.conf_int(0.95, of="population")
    rate = 1.0 / (2 if adjacency == "replace" else 1)
    margin = known_noise.margin_of_count(rate, 0.95)
    assert (own["upper"] - found.params).eq(margin).all()
    assert (population["lower"] < own["lower"]).all()
    assert (own["upper"] < population["upper"]).all()
    pd.testing.assert_frame_equal(found.to_frame().set_index(["region", "sex"])[["lower", "upper"]], own)
    assert "each holds the table's own count with probability 0.95" in words_of(found)
    # The noise's own deviation, and not a part of the ends, which are cut at 0.
    assert found.to_frame()["std. error"].tolist() == pytest.approx([math.sqrt(0.5) / math.sinh(rate / 2.0)] * 6)
    assert [*found.nonnegative().to_frame().columns] == ["region", "sex", "estimate"]
    wide = found.conf_int(0.999)
    assert (wide["upper"] > own["upper"]).all()
    for unfit in ({"level": 1.0}, {"of": "people"}):
        with pytest.raises(ValueError, match="level must lie" if "level" in unfit else "intervals are of the"):
            found.conf_int(**unfit)


def test_a_large_count_is_printed_in_full():
    region = pl.DataFrame({"region": ["south"] * 123_456})
    counted = kng.Study(region, levels={"region": ("south", "north")}, adjacency="add_remove").histogram(
        "region", epsilon=1
    )
    upper = int(counted.to_frame()["upper"][0])
    assert f"{upper}\n" in str(counted)


def test_sums_of_weights_have_intervals_of_the_table_alone():
    facts = {"adjacency": "add_remove", "weights": "age", "bounds": {"age": (0, 99)}}
    one = kng.Study(PEOPLE, levels={"sex": ("f", "m")}, **facts).histogram("sex", epsilon=SHARP)
    expected = PEOPLE.groupby("sex")["age"].sum()
    surely = one.conf_int(1.0 - 1e-12)
    assert ((surely["lower"] <= expected) & (expected <= surely["upper"])).all()
    assert (surely["upper"] - surely["lower"] < 200.0).all()
    with pytest.raises(ValueError, match="how weights vary is not released"):
        one.conf_int(of="population")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_is_that_of_one_record_in_one_cell(adjacency):
    found = study(adjacency=adjacency).crosstab("region", "sex", epsilon=0.5)
    change = 2 if adjacency == "replace" else 1
    assert found.certificate.sensitivity.value == change
    assert found.certificate.epsilon == 0.5
    np.testing.assert_allclose(found.noise, 1 / (math.sqrt(2) * math.sinh(0.25 / change)))
    assert found.noise.index.equals(found.params.index)
    text = words_of(found.summary())
    for words in ("cross table of region by sex", "pure 0.5-differential privacy", "proved", "noise"):
        assert words in text
        assert words in found._repr_html_()


def place_of(values, **axis):
    return Axis("x", **axis).places(values).tolist()


def test_each_record_lies_in_a_cell_by_itself():
    rows = PEOPLE.to_dict("records")
    axes = (
        Axis("region", LEVELS["region"]),
        Axis("wage", edges=(0, 10, 500, 1000), missing=5.0),
        Axis("sex", ("f", "m")),
    )
    response = Classification(axes)
    import narwhals as nw

    frame = nw.from_native(PEOPLE)
    together = response.of_table(frame)
    alone = [response.of_table(nw.from_native(pd.DataFrame([row])))[0] for row in rows[:40]]
    assert together[:40].tolist() == alone
    for row, place in zip(rows, together, strict=True):
        wage = (row["wage"] >= 10) + (row["wage"] >= 500)
        assert place == 6 * LEVELS["region"].index(row["region"]) + 2 * wage + (row["sex"] == "m")
    changed = PEOPLE.copy()
    changed.loc[3, ["region", "wage", "sex"]] = ["north", np.nan, "m"]
    others = np.arange(len(PEOPLE)) != 3
    np.testing.assert_array_equal(response.of_table(nw.from_native(changed))[others], together[others])


def test_cells_that_are_no_level_and_no_number():
    assert place_of(["a", "b", "c"], levels=("a", "b"), missing="b") == [0, 1, 1]
    assert place_of(["a", None, "c"], levels=("a", "b"), missing="drop") == [0, -1, -1]
    assert place_of([-5.0, 0.0, 0.5, 1.0, 2.0, 9.0, np.nan], edges=(0, 1, 2), missing=1.5) == [0, 0, 0, 1, 1, 1, 1]
    assert place_of([np.inf, 0.5], edges=(0, 1, 2), missing="drop") == [-1, 0]
    for axis in ({"levels": ("a", "b")}, {"edges": (0, 1, 2)}):
        with pytest.raises(ValueError, match="missing, infinite, no number or no declared level"):
            place_of(["c"], **axis)


def test_missing_cells_are_dropped_or_count_as_was_declared(tmp_path):
    frame = PEOPLE.assign(region=np.where(np.arange(len(PEOPLE)) < 100, "elsewhere", PEOPLE["region"]))
    found = study(frame, missing={"region": "west"}).histogram("region", epsilon=SHARP).params
    kept = PEOPLE["region"].iloc[100:].value_counts()
    assert found.tolist() == [kept["north"], kept["south"], kept["west"] + 100]
    dropped = study(frame, missing="drop", adjacency="add_remove").crosstab("region", "sex", epsilon=SHARP)
    assert dropped.params.sum() == len(PEOPLE) - 100
    assert "their records are left out" in dropped.certificate.explain()
    assert (
        study(frame, missing="drop", adjacency="add_remove").count("region == 'west'", epsilon=SHARP).value
        == kept["west"]
    )
    with pytest.raises(ValueError, match="leaves records with missing cells out"):
        study(frame, missing="drop").histogram("region", epsilon=1)
    ledger = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency="replace", dataset="people")
    with pytest.raises(kng.ReleaseFailed) as error:
        study(frame, ledger=ledger).histogram("region", epsilon=1)
    assert str(error.value) == FAILED_OF_FRAME
    # The debit, and that it was drawn from.
    assert ledger.read().num_rows == 3


def test_counts_made_consistent_say_so_and_cost_nothing(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency="replace", dataset="people")
    found = study(ledger=ledger).crosstab("region", "sex", epsilon=0.004)
    rows = ledger.read().num_rows
    assert found.params.min() < 0
    assert found.adjustments == ()
    whole = found.nonnegative()
    assert whole.params.dtype == np.int64
    assert whole.params.tolist() == np.maximum(found.params, 0).tolist()
    total = whole.with_total(len(PEOPLE))
    assert total.params.sum() == pytest.approx(len(PEOPLE))
    assert total.params.min() >= 0
    margin = PEOPLE["region"].value_counts().to_dict()
    both = total.with_margin("region", margin).with_margin("sex", {"m": 240, "f": 260})
    np.testing.assert_allclose(both.to_table().sum(axis=1), [margin[level] for level in LEVELS["region"]], atol=1e-6)
    np.testing.assert_allclose(both.to_table().sum(axis=0), [260, 240], atol=1e-6)
    assert both.noise is None
    assert "made consistent with: no count below 0, a total of 500, margins of region, margins of sex" in words_of(both)
    assert ledger.read().num_rows == rows
    assert both.releases == found.releases
    # The last word on a margin counts, and a released histogram is one.
    again = found.with_margin("sex", {"m": 1, "f": 2}).with_margin("sex", study().histogram("sex", epsilon=SHARP))
    np.testing.assert_allclose(again.to_table().sum(axis=0), PEOPLE["sex"].value_counts()[["f", "m"]], atol=1e-6)
    for changed, message in (
        (lambda: found.with_margin("wage", {}), "no column of a table of two and more"),
        (lambda: study().histogram("sex", epsilon=1).with_margin("sex", {"f": 1, "m": 2}), "no column of a table"),
        (lambda: found.with_margin("sex", {"f": 1}), "a count for each of f, m"),
        (lambda: found.with_margin("sex", {"f": 1, "x": 2}), "a count for each of f, m"),
        (lambda: found.with_margin("sex", {"f": 1, "m": 2}).with_total(9), "contradict each other"),
        (lambda: study().count("sex == 'f'", epsilon=1).with_total(9), "a single count"),
    ):
        with pytest.raises(ValueError, match=message):
            changed()


def test_results_go_through_json_and_pickle():
    for found in (
        study().crosstab("region", "wage", epsilon=1, edges={"wage": 3}).nonnegative().with_total(500),
        study().count("sex == 'f'", epsilon=1),
        study().crosstab("region", "sex", epsilon=1).with_margin("sex", {"f": 1, "m": 2}),
        study(levels={"grade": (1, 2)}, bounds={}, frame=PEOPLE.assign(grade=1)).histogram("grade", epsilon=1),
    ):
        text = found.to_json()
        again = kng.Results.from_json(text)
        assert json.loads(again.to_json()) == json.loads(text)
        pd.testing.assert_series_equal(again.params, found.params)
        assert pickle.loads(pickle.dumps(found)).to_json() == text
        assert again.axes == found.axes
        with pytest.raises(AttributeError, match="second release"):
            _ = found.nobs
    with pytest.raises(ValueError, match="take params"):
        _ = study().histogram("sex", epsilon=1).value


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_plan_costs_what_its_parts_do_and_looks_at_nothing(adjacency, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency=adjacency, dataset="people")
    plan = study(adjacency=adjacency, ledger=ledger).plan()
    plan.count("sex == 'f'", epsilon=0.1)
    plan.histogram("region", epsilon=0.2)
    plan.crosstab("region", "sex", epsilon=0.3)
    plan.sum("wage", epsilon=0.1)
    plan.variance("wage", epsilon=0.1)
    assert plan.cost.epsilon == pytest.approx(0.8)
    assert ("2. histogram of region, count", "GeometricMechanism by Direct", "proved", "0.2") in [
        row[:4] for row in plan.summary().rows
    ]
    assert ledger.read().num_rows == 1
    assert len(plan.run()) == 5
    assert len(ledger.releases()) == 5
    with pytest.raises(kng.ledger.BudgetExceeded):
        plan.run()


def test_what_public_facts_decide_is_refused_in_words(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "people", kng.Budget.pure(1.0), adjacency="replace", dataset="people")
    one = study(ledger=ledger)
    days, dates = days_of(ledger=ledger), study(PEOPLE.assign(sex=pd.Timestamp("2020-01-01")), ledger=ledger)
    for ask, message in (
        (lambda: one.histogram("name", epsilon=1), "needs public levels"),
        (lambda: one.histogram("sex", epsilon=1, edges=3), "leave its edges out"),
        (lambda: one.histogram("wage", epsilon=1, edges=1), "at least two intervals"),
        (lambda: one.histogram("wage", epsilon=1, edges=[0, 500]), "three numbers or more"),
        (lambda: one.histogram("wage", epsilon=1, edges=[0, 500, 400, 1000]), "must increase"),
        (
            lambda: one.histogram("wage", epsilon=1, edges=[0, 500, 900]),
            "from one public bound to the other, 0 to 1000",
        ),
        (lambda: one.histogram("wage", epsilon=1, edges="auto"), "a number of intervals"),
        (lambda: one.histogram("wage", epsilon=1, edges=DAYS), "are dates, and its bounds are numbers"),
        (lambda: days.histogram("day", epsilon=1, edges=[*DAYS[:2], "soon"]), "dates where its bounds are dates"),
        (lambda: days.histogram("day", epsilon=1, edges=[*DAYS, DAYS[-1] + DAY]), "2020-01-01 to 2021-01-01, as"),
        (lambda: one.histogram("wage", epsilon=1, edges=[0, math.nan, 1000]), "three numbers or more"),
        (lambda: study(missing={"wage": 2000.0}).histogram("wage", epsilon=1), "between its edges"),
        (lambda: one.crosstab("sex", epsilon=1), "two columns or more"),
        (lambda: one.crosstab("sex", "sex", epsilon=1), "each once"),
        (lambda: one.crosstab("sex", "region", epsilon=1, edges={"wage": 3}), r"edges name \['wage'\]"),
        (lambda: one.crosstab("wage", "age", epsilon=1, edges={"wage": 2000, "age": 2000}), "count at most 1,000,000"),
        (lambda: one.count("wage > other", epsilon=1), "no condition"),
        (lambda: one.count("height > 2", epsilon=1), "the data do not have"),
        (lambda: study(PEOPLE[["sex"]]).crosstab("sex", "region", epsilon=1), "the data do not have"),
        (lambda: dates.histogram("sex", epsilon=1), "neither numbers nor text"),
        (lambda: one.histogram("sex", epsilon=0), "epsilon must be positive"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask()
    assert ledger.read().num_rows == 1


def test_bars_are_drawn():
    mpl.use("Agg")
    one = study()
    axes = one.histogram("region", epsilon=SHARP).plot()
    assert [bar.get_height() for bar in axes.patches] == [
        (PEOPLE["region"] == level).sum() for level in LEVELS["region"]
    ]
    table = one.crosstab("region", "sex", epsilon=SHARP)
    axes = table.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["f", "m"]
    assert [bar.get_height() for bar in axes.patches] == table.to_table().to_numpy().T.ravel().tolist()
    with pytest.raises(ValueError, match="one or two columns"):
        one.count("sex == 'f'", epsilon=1).plot()


def test_levels_are_compared_as_everywhere():
    assert cells.same_level(1, "01")
    found = study(PEOPLE.assign(grade=["1", "01"] * 250), levels={"grade": (1, 2)}, bounds={})
    assert found.histogram("grade", epsilon=SHARP).params.to_dict() == {1: 500, 2: 0}
    assert found.count("grade == 1", epsilon=SHARP).value == 500
