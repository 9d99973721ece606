"""Synthetic tables: one debit, all parts or none, tables drawn for free, and near the data where ε is large."""

import dataclasses
import json
import pickle
import traceback

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_SYNTHESIS
from kngjax.study.synthesis.parts import CurvesPart, TablePart

ADJACENCIES = ("replace", "add_remove")
SHARP = 90.0
SECRET = 1234.5678


def people(count=1500):
    generator = np.random.default_rng(0)
    region = generator.choice(["north", "south", "west"], count, p=[0.6, 0.3, 0.1])
    education = generator.integers(0, 2, count) + 2 * (region == "south")
    wage = np.exp(3.0 + 0.5 * (region == "south") + 0.3 * generator.standard_normal(count))
    wage[generator.uniform(size=count) < np.where(region == "south", 0.4, 0.1)] = 0.0
    age = np.rint(generator.normal(30.0, 5.0, count))
    return pd.DataFrame({"region": region, "education": education, "age": age, "wage": wage})


PEOPLE = people()
THREE = (0.25, 0.5, 0.75)
REGION = kng.synthesis.Category("region", ["north", "south"])
EDUCATION = kng.synthesis.Ordinal("education", 0, 3, parents=["region"])
COLUMNS = (
    REGION,
    EDUCATION,
    kng.synthesis.Count("age", 0, 60, levels=(0.1, 0.25, 0.5, 0.75, 0.9)),
    kng.synthesis.Numeric(
        "wage", 1, 500, transform="log", heaps=[0], parents=["region"], given="I(education > 1)", levels=THREE
    ),
)


def plan(adjacency="replace", epsilon=SHARP, columns=(REGION, EDUCATION), **changed):
    return kng.synthesis.plan(list(columns), epsilon=epsilon, adjacency=adjacency, **changed)


TYPED = {
    "whole": ([0, 1], {}, np.int64, [0, 1]),
    "named": ([0, 1], {"other": 9, "missing": -1}, np.int64, [0, 1, 9, -1]),
    "bools": ([True, False], {}, np.bool_, [True, False]),
    "mixed": ([0, 1.5], {}, np.float64, [0.0, 1.5]),
    "large": ([0, 2**70], {}, object, [0, 2**70]),
    "unknown": ([0, 1], {"missing": "unknown"}, object, [0, 1, "other", "unknown"]),
    "one": ([7], {}, object, [7, "other"]),
    "text": (["a", "b"], {}, object, ["a", "b", "other"]),
    "child": ([0, 1], {"parents": ["whole"]}, np.int64, [0, 1]),
}


def test_drawn_columns_have_the_type_of_their_levels():
    # Of every level, of what is none, and of what is missing some cells, which a table of the right type has or not.
    cells = {name: [*levels, 77, "77.5", *levels] for name, (levels, *_) in TYPED.items()}
    for name, (_, settings, *_) in TYPED.items():
        cells[name] += [None] * ("missing" in settings)
    frame = pd.DataFrame({name: pd.Series(np.resize(np.array(one, object), 210)) for name, one in cells.items()})
    columns = [kng.synthesis.Category(name, levels, **settings) for name, (levels, settings, *_) in TYPED.items()]
    table = kng.synthesize(plan(columns=columns), frame)
    drawn = table.draw(500, key=kng.research_key(0))
    arrays = table.columns_of(500, kng.research_key(0))
    for name, (_, _, kind, values) in TYPED.items():
        assert arrays[name].dtype == kind, name
        assert {*arrays[name].tolist()} == {*values}, name
        assert {*map(type, arrays[name].tolist())} == {*map(type, values)}, name
    numbers = [name for name, (_, _, kind, _) in TYPED.items() if kind in (np.int64, np.float64)]
    assert drawn.select_dtypes("number").columns.tolist() == numbers
    assert pl.Series(arrays["bools"]).dtype == pl.Boolean


def ledger(tmp_path, budget, adjacency="replace"):
    return kng.Ledger.create(tmp_path / f"people {adjacency}", budget, adjacency=adjacency, dataset="people")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_where_epsilon_is_large_a_table_is_like_the_data(adjacency):
    table = kng.synthesize(plan(adjacency, columns=COLUMNS), PEOPLE)
    assert table.num_rows == (len(PEOPLE) if adjacency == "replace" else pytest.approx(len(PEOPLE), abs=5))
    drawn = table.draw(20_000, key=kng.research_key(0))
    assert list(drawn) == list(PEOPLE)
    assert set(drawn["region"]) == {"north", "south", "other"}
    # Five standard errors of a frequency of 20,000 rows, at most.
    near = {"abs": 5 * 0.5 / 20_000**0.5}
    south, of_people = drawn["region"] == "south", PEOPLE["region"] == "south"
    assert south.mean() == pytest.approx(of_people.mean(), **near)
    assert (drawn["region"] == "other").mean() == pytest.approx((PEOPLE["region"] == "west").mean(), **near)
    assert (drawn["education"][south] >= 2).all()
    for chosen, own in ((south, of_people), (~south, ~of_people)):
        at_heap = (drawn["wage"][chosen] == 0).mean()
        assert at_heap == pytest.approx((PEOPLE["wage"][own] == 0).mean(), abs=0.05)
        beside = np.log(drawn["wage"][chosen & (drawn["wage"] > 0)])
        fit = np.log(PEOPLE["wage"][own & (PEOPLE["wage"] > 0)])
        np.testing.assert_allclose(beside.quantile(THREE), fit.quantile(THREE), atol=0.1)
    assert drawn["age"].dtype.kind == "i"
    np.testing.assert_allclose(drawn["age"].quantile(THREE), PEOPLE["age"].quantile(THREE), atol=1.0)


def test_a_table_is_one_debit_and_draws_of_it_are_free(tmp_path):
    made = plan(epsilon=1.0)
    paid = ledger(tmp_path, kng.Budget.pure(1))
    table = kng.synthesize(made, PEOPLE, ledger=paid, rows="public")
    book = paid.verify()
    assert len(book.reserved) == 1
    assert table.cost == table.guarantee == made.cost
    [kept] = paid.releases().values()
    assert json.loads(kept) == [json.loads(one.to_json()) for one in table.releases.values()]
    first, second = (table.draw(key=kng.research_key(seed)) for seed in (0, 1))
    assert len(first) == len(second) == len(PEOPLE)
    assert not first.equals(second)
    assert first.equals(table.draw(key=kng.research_key(0)))
    assert len(paid.verify().reserved) == 1
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.synthesize(made, PEOPLE, ledger=paid)
    assert [list(one) for one in (table.certificates, table.releases)] == [["region", "education"]] * 2
    assert table.summary().rows[-1][0] == "all together"
    assert table.certificates["education"].explain() in table.explain()
    assert "rows; pure 1-differential privacy" in repr(table)
    assert "<table>" in table._repr_html_()


def test_a_table_is_read_from_its_json():
    table = kng.synthesize(
        plan(columns=(REGION, kng.synthesis.Numeric("wage", 1, 500, heaps=[0], levels=THREE))), PEOPLE
    )
    again = kng.synthesis.SyntheticTable.from_json(table.to_json())
    assert again == table
    assert hash(again) == hash(table)
    assert pickle.loads(pickle.dumps(table)) == table
    key = kng.research_key(3)
    pd.testing.assert_frame_equal(again.draw(50, key=key), table.draw(50, key=key))
    assert again.cost == table.cost
    with mpl.rc_context({"backend": "agg"}):
        assert [axis.get_title() for axis in table.plot()] == ["region", "wage"]
        mpl.pyplot.close("all")


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, lambda frame: frame.astype(object)])
def test_every_kind_of_frame_has_the_same_values(convert):
    read, expected = (plan(columns=COLUMNS).read(frame) for frame in (convert(PEOPLE), PEOPLE))
    for name, values in expected.items():
        np.testing.assert_array_equal(read[name], values)


def test_curves_are_of_the_records_beside_the_heaps_each_with_its_own_columns():
    made = plan(columns=COLUMNS)
    values, parts = made.read(PEOPLE), {part.label: part for part in made.parts()}
    curves, heaps = parts["wage, beside heaps"], parts["wage, heaps"]
    assert isinstance(curves, CurvesPart)
    x, y = curves.records(values, len(PEOPLE))
    beside = PEOPLE[PEOPLE["wage"] > 0]
    np.testing.assert_allclose(y, np.log(beside["wage"].clip(1, 500)))
    np.testing.assert_array_equal(x[:, 0], beside["education"] > 1)
    assert isinstance(heaps, TablePart)
    _, places = heaps.records(values, len(PEOPLE))
    expected = pd.crosstab(PEOPLE["region"], PEOPLE["wage"] > 0).to_numpy().ravel()
    np.testing.assert_array_equal(np.bincount(places.astype(int), minlength=6), expected)


def test_what_depends_on_values_is_one_text_after_the_debit(tmp_path):
    paid, made = ledger(tmp_path, kng.Budget.pure(SHARP * 9)), plan()
    for hostile in (np.nan, None, np.inf, "text"):
        frame = PEOPLE.assign(education=pd.Series([hostile, *PEOPLE["education"][1:-1], SECRET], dtype=object))
        with pytest.raises(kng.ReleaseFailed) as failed:
            kng.synthesize(made, frame, ledger=paid)
        assert str(failed.value) == FAILED_OF_SYNTHESIS
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
    assert (len(paid.verify().reserved), paid.releases()) == (4, {})
    # A policy, and levels that nobody declared, end in a table.
    kept = plan(columns=[REGION, kng.synthesis.Ordinal("education", 0, 3, missing=0)])
    frame = PEOPLE.assign(region=["nonsense", *PEOPLE["region"][1:]], education=[np.nan, *PEOPLE["education"][1:]])
    assert set(kng.synthesize(kept, frame, ledger=paid).releases) == {"region", "education"}


@pytest.mark.parametrize("text", ["table.json", "{}", "[]"])
def test_what_is_no_json_of_a_table_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"to_json\(\) returned"):
        kng.synthesis.SyntheticTable.from_json(text)


FEW = {
    "no column": (lambda: PEOPLE.drop(columns="education"), ValueError, "which the data do not have"),
    "no frame": (lambda: PEOPLE.to_numpy(), TypeError, "must be a pandas, polars or pyarrow frame"),
    "dates": (lambda: PEOPLE.assign(region=pd.Timestamp("2020-01-01")), TypeError, "neither numbers nor text"),
    "complex": (lambda: PEOPLE.assign(region=1j), TypeError, "neither numbers nor text"),
    "no records": (lambda: PEOPLE.iloc[:0], ValueError, "empty"),
}


@pytest.mark.parametrize("case", FEW)
def test_what_types_and_columns_refuse_costs_nothing(case, tmp_path):
    frame, kind, words = FEW[case]
    paid = ledger(tmp_path, kng.Budget.pure(SHARP))
    with pytest.raises(kind, match=words):
        kng.synthesize(plan(), frame(), ledger=paid)
    assert len(paid.verify().reserved) == 0


def test_levels_with_too_few_records_beyond_them_are_refused_by_public_facts(tmp_path):
    paid = ledger(tmp_path, kng.Budget.pure(1))
    few = plan(epsilon=0.1, columns=[kng.synthesis.Numeric("wage", 0, 500, levels=(0.01, 0.5))])
    with pytest.raises(ValueError, match=r"column 'wage'.*outermost are 0.5 and 0.5"):
        kng.synthesize(few, PEOPLE, ledger=paid)
    assert len(paid.verify().reserved) == 0


def test_no_more_rows_are_drawn_than_memory_or_the_plan_has():
    """Noise of any size on their number makes no table that ends the process, which has the data."""
    columns = [kng.synthesis.Category("region", ["north", "south"], other="south")]
    frame = pd.DataFrame({"region": ["north", "south"]})
    for _ in range(8):
        plan = kng.synthesis.plan(columns, epsilon=1e-40, adjacency="add_remove", max_records=40)
        table = kng.synthesize(plan, frame)
        assert table.num_rows in (1, 40)
        assert len(table.draw(key=kng.research_key(0))) == table.num_rows
        assert kng.synthesize(dataclasses.replace(plan, max_records=None), frame).num_rows in (1, 10**8)
    with pytest.raises(ValueError, match="num_rows must be at most 100,000,000"):
        table.draw(10**14, key=kng.research_key(0))


def test_rows_are_public_or_released_as_the_adjacency_says():
    with pytest.raises(ValueError, match="under add_remove the number of records is private"):
        kng.synthesize(plan("add_remove"), PEOPLE, rows="public")
    with pytest.raises(ValueError, match="is public"):
        kng.synthesize(plan(), PEOPLE, rows="released")
    with pytest.raises(ValueError, match="rows must be"):
        kng.synthesize(plan(), PEOPLE, rows="n")
    with pytest.raises(TypeError, match="plan"):
        kng.synthesize({"columns": []}, PEOPLE)  # pyright: ignore[reportArgumentType]
    table = kng.synthesize(plan("add_remove", columns=COLUMNS), PEOPLE.iloc[:0], rows="released")
    assert table.num_rows == 1
    assert table.draw(9, key=kng.research_key(0)).shape == (9, 4)
    with pytest.raises(TypeError, match="made by"):
        kng.synthesis.SyntheticTable(plan(), [1.0, 2.0], 5)
    with pytest.raises(ValueError, match="num_rows"):
        table.draw(0, key=kng.research_key(0))


def test_a_failure_in_one_part_releases_nothing_and_stays_spent(tmp_path, monkeypatch):
    paid, made = ledger(tmp_path, kng.Budget.pure(SHARP)), plan()

    def failing(*_):
        raise KeyError(f"{SECRET}")

    monkeypatch.setattr(TablePart, "records", failing)
    with pytest.raises(kng.ReleaseFailed) as failed:
        kng.synthesize(made, PEOPLE, ledger=paid)
    assert str(failed.value) == FAILED_OF_SYNTHESIS
    assert (len(paid.verify().reserved), paid.releases()) == (1, {})


BROKEN = PEOPLE.assign(education=np.nan)
BARE = kng.synthesis.plan([kng.synthesis.Numeric("wage", 0, 500, levels=(0.01, 0.5))], epsilon=0.1, adjacency="replace")
HELD = {
    "a failure": (plan(), BROKEN, {}, kng.ReleaseFailed),
    "levels with few records": (BARE, PEOPLE, {}, ValueError),
    "no plan": ({}, PEOPLE, {}, TypeError),
    "rows": (plan(), PEOPLE, {"rows": "released"}, ValueError),
    "no ledger": (plan(), PEOPLE, {"ledger": "people"}, TypeError),
}


@pytest.mark.parametrize("case", HELD)
def test_no_refusal_holds_the_records(case):
    """In a frame of its traceback, or of another error that it was raised of, whose frames lead back to these."""
    made, frame, changed, kind = HELD[case]
    with pytest.raises(kind) as refused:
        kng.synthesize(made, frame, **changed)
    error = refused.value
    assert error.__cause__ is error.__context__ is None
    for step, _ in traceback.walk_tb(error.__traceback__):
        if not step.f_code.co_name.startswith("test_"):
            held = [one for one in step.f_locals.values() if isinstance(one, pd.DataFrame | np.ndarray)]
            assert not held, step.f_code.co_name
