"""Engines count equal rows, and what is released is what a pass over all rows and a table in memory release."""

import datetime
import pathlib
import random
import sys
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kngjax as kng
from kngjax.data import cells
from kngjax.data.engines.local import Lazy, Relation
from kngjax.data.passes import Passes, showing_passes
from kngjax.data.work import Total, WholeTables
from kngjax.mechanisms import preparation
from tests.draws.cases import drawn_with

SECRET = "123-45-6789"
BIG = 2**53 + 1
LEVELS = ("a", "A", "ä", "1", "")
SCHEMA = pa.schema(
    {"n": pa.int64(), 'odd "name", a.b': pa.string(), "yes": pa.bool_(), "n___": pa.int8(), "day": pa.date32()}
)
NAMES = tuple(SCHEMA.names)
DAY = datetime.date(2020, 2, 29)
ROWS = st.tuples(
    st.sampled_from([None, 0, -1, 7, BIG, -(2**63), 2**63 - 1]),
    st.sampled_from([None, "a", "A", "a ", " a", "ä", "a\u0308", "1", "01", "", "\0"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, 0, -128, 127]),
    st.sampled_from([None, DAY, datetime.date(1, 1, 1)]),
)
PEOPLE = pa.table(
    {
        "age": pa.array(
            [None if one == 20 else one for one in np.random.default_rng(0).integers(20, 40, 700).tolist()]
        ),
        "region": pa.array(np.random.default_rng(1).choice(["north", "South", "south", "south ", "west"], 700)),
        "times": pa.array(np.random.default_rng(2).integers(0, 5, 700)),
        "wage": pa.array(np.random.default_rng(3).uniform(0.0, 9.0, 700)),
    }
)
FACTS = {
    "bounds": {"age": (20, 40), "times": (0, 4), "wage": (0, 9)},
    "levels": {"region": ("north", "south", "South", "west")},
    "missing": {"age": 30},
    "missing_codes": {"age": [39]},
}
GROUPED = {
    "histogram": lambda one: one.histogram("age", edges=4, epsilon=1.0),
    "cross table": lambda one: one.crosstab("region", "age", epsilon=1.0),
    "count": lambda one: one.count("age > 30 and region == 'south'", epsilon=1.0),
    "number": lambda one: one.count(epsilon=1.0),
    "mean": lambda one: one.mean("age", epsilon=1.0),
    "least squares": lambda one: one.linear_regression("age ~ region", method="adassp", delta=1e-6, epsilon=9.0),
    "groups": lambda one: one.by("region").histogram("age", epsilon=1.0),
}


def relation(table, rows=64, query="FROM people", settings_=""):
    connection = duckdb.connect()
    connection.execute(settings_)
    connection.register("people", table)
    return Relation(connection.sql(query), rows)


def lazy(table, rows=64):
    return Lazy(pl.DataFrame(table).lazy(), rows)


ENGINES = {"DuckDB": relation, "Polars": lazy}
on_both = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)


def read(table):
    n, text, yes, small, _ = (table[name] for name in NAMES)
    numbers = [np.nan_to_num(cells.numbers(one), nan=3.0) for one in (n, yes, small)]
    return None, np.column_stack([*numbers, cells.levels(text, LEVELS)]), None


def whole_sums(records):
    """Sums and products of whole numbers, of which none is rounded."""
    rows = np.array([[int(cell) for cell in row] for row in records[1]], object).reshape(-1, 4)
    return Total(0, rows.T @ rows)


def summed(engine, seen, is_grouped=True):
    made = Passes(engine, WholeTables(NAMES), (read,), marked=1, seen=seen, is_grouped=is_grouped)
    return made.total(whole_sums, is_exact=True)


def marked(engine, is_grouped):
    seen: dict[str, Any] = {}
    sums = summed(engine, seen, is_grouped)
    return seen.get("marks"), None if sums is None else sums.tolist()


@on_both
@settings(max_examples=12)
@given(rows=st.lists(st.tuples(ROWS, st.integers(1, 70)), max_size=6))
def test_counted_rows_give_the_sums_and_marks_of_all_rows(make, rows):
    every = [row for row, times in rows for _ in range(times)]
    table = pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in every], SCHEMA)
    engine = make(table)
    assert engine.grouped(lambda given: list(NAMES)) is not None
    found = marked(engine, True)
    assert found == marked(engine, False)
    if every:
        _, marks = found[0] or (0, 0)
        wholes = [[float(3 if cell is None else cell) for cell in (n, yes, small)] for n, _, yes, small, _ in every]
        places = [[cells.place_of(text, LEVELS)] for _, text, *_ in every]
        expected = whole_sums((None, np.column_stack([wholes, places]), None)).sum
        assert found == ((len(every), marks), expected.tolist())


def test_a_bar_does_not_tell_how_many_rows_are_different(capsys):
    made = Passes(relation(PEOPLE), WholeTables(("age",)), (_ages,), len(PEOPLE), marked=1, seen={}, is_grouped=True)
    with showing_passes(progress=True):
        made.total(_ones, is_exact=True)
    shown = capsys.readouterr().err
    assert "pass 1 over a relation of DuckDB" in shown
    assert "/" not in shown


def _ages(table):
    return None, np.nan_to_num(cells.numbers(table["age"])), None


def _ones(records):
    return Total(0, float(len(records[1])))


def study(frame, **changed):
    return kng.Study(frame, **({"adjacency": "add_remove", "num_records": 700} | FACTS | changed))


def released(frame, analysis, **changed):
    with drawn_with(random.Random(5).getrandbits):
        return [one.to_json() for one in analysis(study(frame, **changed)).releases]


@pytest.fixture
def by_groups_alone(monkeypatch):
    """Fails where a table is read row by row."""
    for kind in (Relation, Lazy):
        replies = kind.replies

        def of_groups(self, choose, work, moved, replies=replies):
            assert work.is_grouped
            return replies(self, choose, work, moved)

        monkeypatch.setattr(kind, "replies", of_groups)


@on_both
@pytest.mark.parametrize("name", GROUPED)
def test_releases_of_counted_rows_are_those_of_the_table_in_memory(name, make, by_groups_alone):
    assert released(make(PEOPLE).source, GROUPED[name]) == released(PEOPLE, GROUPED[name])


def test_whole_weights_count_too(by_groups_alone):
    for name in ("cross table", "mean"):
        sources = (PEOPLE, relation(PEOPLE).source, lazy(PEOPLE).source)
        found = [released(one, GROUPED[name], weights="times") for one in sources]
        assert found[0] == found[1] == found[2]


def test_counts_gather_no_records(monkeypatch):
    """Not even where cells are no whole numbers, and rows are read one by one."""
    analyses, table = (lambda one: one.histogram("wage", epsilon=1.0), GROUPED["number"]), PEOPLE.select(["wage"])
    expected = [released(table, one) for one in analyses]
    monkeypatch.setattr(preparation, "gathered", None)
    assert [released(relation(table).source, one) for one in analyses] == expected


@pytest.mark.parametrize("where", ["age > 99", "wage = (SELECT max(wage) FROM people)"])
def test_tables_with_next_to_no_record(where):
    engine = relation(PEOPLE, query=f"FROM people WHERE {where}")
    expected = released(engine.source.to_arrow_table(), GROUPED["cross table"])
    assert released(engine.source, GROUPED["cross table"]) == expected


KEPT = "NULL::DOUBLE NULL::DECIMAL(9,2) NULL::HUGEINT NULL::UHUGEINT NULL::TIMESTAMPTZ NULL::UUID NULL::BLOB [1]"
COUNTED = "NULL::TINYINT NULL::UBIGINT NULL::BIGINT NULL::VARCHAR NULL::DATE NULL::BOOLEAN"


def test_only_types_whose_equal_cells_have_equal_bits_are_counted():
    for cell in (*KEPT.split(), "NULL::ENUM('a','b')", "NULL::JSON", *COUNTED.split()):
        is_counted = cell in COUNTED
        engine = Relation(duckdb.sql(f"SELECT {cell} AS x, 1 AS y"), 64)
        assert (engine.grouped(lambda given: ["y", "x"]) is not None) is is_counted, cell
    kept = (pl.Float64, pl.Decimal(9, 2), pl.Categorical, pl.Enum(["a"]), pl.Int128, pl.Datetime, pl.List(pl.Int8))
    for kind in (*kept, pl.Int8, pl.UInt64, pl.String, pl.Date, pl.Boolean):
        engine = Lazy(pl.LazyFrame(schema={"x": kind, "y": pl.Int64}), 64)
        assert (engine.grouped(lambda given: ["y", "x"]) is None) is (kind in kept), kind
    for engine in (relation(PEOPLE), lazy(PEOPLE)):
        assert engine.grouped(lambda given: []) is None


@pytest.mark.parametrize("setting", ["", "SET default_collation = 'nocase'"])
def test_texts_that_a_collation_takes_for_equal_are_different(setting):
    query = "SELECT age, region COLLATE NOCASE.NOACCENT AS region FROM people" if not setting else "FROM people"
    engine = relation(PEOPLE, query=query, settings_=setting)
    sums = engine.source.aggregate("region, count(*)", "region").fetchall()
    assert len(sums) == 4
    grouped = engine.grouped(lambda given: ["region"])
    assert grouped is not None
    assert len(grouped.source.fetchall()) == 5
    assert released(engine.source, GROUPED["cross table"]) == released(PEOPLE, GROUPED["cross table"])


def test_many_different_rows_come_in_batches():
    table = pa.table({"age": np.arange(-2500, 2500), "region": ["north"] * 5000})
    for make in ENGINES.values():
        assert released(make(table).source, GROUPED["cross table"]) == released(table, GROUPED["cross table"])


@on_both
def test_what_an_engine_says_of_a_cell_is_told_nowhere(make, capfd):
    table = PEOPLE.append_column("text", pa.array(["30"] * 699 + [SECRET]))
    source = make(table).source
    if make is relation:
        failing = source.project("CAST(text AS BIGINT) AS age, region")
    else:
        failing = source.select(pl.col("text").cast(pl.Int64).alias("age"), "region")
    with pytest.raises(kng.ReleaseFailed) as caught:
        study(failing).crosstab("age", "region", epsilon=1.0)
    assert caught.value.__cause__ is None
    assert SECRET not in "".join([str(caught.value), *capfd.readouterr()])


def test_another_number_of_rows_than_was_stated_is_not_released():
    fewer = relation(PEOPLE, query="FROM people WHERE times > 0").source
    with pytest.raises(kng.ReleaseFailed):
        study(fewer, adjacency="replace").histogram("region", epsilon=1.0)


def test_records_that_get_noise_each_are_not_counted(monkeypatch):
    passes = Passes(relation(PEOPLE), WholeTables(("age",)), (lambda table: (None, table["age"]),), is_grouped=True)
    monkeypatch.setattr(Relation, "grouped", None)
    bounds = kng.Bounds(y=(0.0, 50.0), dither=1.0, missing_y=3.0)
    median = kng.PrivateQuantile(0.5, bounds, 1.0, "add_remove")
    assert median.intake.total(passes, lambda rows: rows.num_records, is_exact=True) == 700
    assert passes.mapped(_same, has_noise=True).total(lambda _: Total(0, 0), is_exact=True) == 0
    with pytest.raises(ValueError, match="TypeError"):
        passes.mapped(_same).total(lambda _: Total(0, 0), is_exact=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_spark_counts_equal_rows(tmp_path, monkeypatch, capfd):
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    from kngjax.data.engines.clusters import Spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2]))
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    encrypted = builder.config("spark.io.encryption.enabled", "true")
    session = encrypted.config("spark.sql.warehouse.dir", str(tmp_path)).getOrCreate()
    try:
        every = [
            (n, text, yes, small, DAY)
            for n in (None, BIG, -1)
            for text in (None, "a", "A", "a ", "ä")
            for yes in (None, True)
            for small in (None, 3)
        ] * 3
        schema = 'n long, `odd "name", a.b` string collate UTF8_LCASE_RTRIM, yes boolean, n___ byte, day date'
        frame = session.createDataFrame(every[7:], schema).repartition(5)
        found = marked(Spark(frame, 64), True)
        assert found == marked(Spark(frame, 64), False)
        assert found == marked(relation(pa.Table.from_pylist(_named(every[7:]), SCHEMA)), True)
        assert Spark(frame.selectExpr("1.5D AS n"), 64).grouped(list) is None
        people = session.createDataFrame(PEOPLE)
        for name in ("cross table", "mean", "groups"):
            assert released(people, GROUPED[name]) == released(PEOPLE, GROUPED[name])
        session.conf.set("spark.sql.ansi.enabled", "true")
        failing = people.selectExpr(f"CAST(IF(age = 25, '{SECRET}', '30') AS BIGINT) AS age", "region")
        capfd.readouterr()
        with pytest.raises(kng.ReleaseFailed):
            study(failing).crosstab("age", "region", epsilon=1.0)
        assert SECRET not in "".join(capfd.readouterr())
        plain = session.newSession()
        monkeypatch.setattr(type(plain.conf), "get", lambda self, name, other=None: other)
        assert Spark(people, 64).grouped(list) is None
    finally:
        session.stop()


def _same(records):
    return records


def _named(rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]
