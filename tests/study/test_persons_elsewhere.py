"""Studies of persons whose rows lie anywhere on an engine release what those in memory do, to the bit."""

import functools
import pathlib
import random
import sys
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

import kngjax as kng
from kngjax.data import tables
from kngjax.data.engines.local import AbstractLocalEngine
from kngjax.data.streams import engine_of
from kngjax.study.carrying_out import Keeping, carry_out
from tests.draws.cases import drawn_with
from tests.words import words_of

PERSONS, ROWS = 300, 1300
FACTS: dict[str, Any] = {
    "bounds": {"cost": (0, 100), "age": (20, 80)},
    "levels": {"severe": ("no", "yes"), "ward": ("a", "b", "c")},
    "person": "patient",
    "unit": "patient",
}
SHARED = {"epsilon": 2.0, "force": True}
ANALYSES = {
    "mean": lambda one: one.mean("cost", **SHARED),
    "sum": lambda one: one.sum("cost", **SHARED),
    "count": lambda one: one.count("severe == 'yes'", epsilon=2.0),
    "cross table": lambda one: one.crosstab("ward", "severe", epsilon=2.0),
    "least squares": lambda one: one.linear_regression("cost ~ age + ward", method="adassp", delta=1e-6, **SHARED),
    "logistic": lambda one: one.logistic_regression("severe ~ age", **SHARED),
    "median": lambda one: one.median("cost", **SHARED),
    "groups": lambda one: one.by("ward").mean("severe", **SHARED),
    "groups of regressions": lambda one: one.by("severe").linear_regression(
        "cost ~ age", method="adassp", delta=1e-6, **SHARED
    ),
}


def visits():
    """One person has 200 rows, another 33, others some; whose cells and identifiers come in no order."""
    generator = np.random.default_rng(8)
    own = np.concatenate([np.arange(PERSONS), np.zeros(199, int), np.ones(32, int)])
    own = np.concatenate([own, generator.integers(2, PERSONS, ROWS - len(own))])[generator.permutation(ROWS)]
    return pa.table(
        {
            # Two texts that a collation takes for equal are two persons.
            "patient": np.array([f"{'Aa'[one % 2]}{one // 2}" for one in range(PERSONS)])[own],
            "cost": generator.uniform(-5, 105, ROWS).round(3),
            "age": generator.integers(15, 90, ROWS),
            "severe": generator.choice(["no", "yes"], ROWS),
            "ward": generator.choice(["a", "b", "c"], ROWS),
        }
    )


VISITS = visits()


def files(frame, folder, parts):
    """Writes the rows in another order to so many files, so that a person with many has some in each."""
    order = np.random.default_rng(parts).permutation(len(frame))
    for number, rows in enumerate(np.array_split(order, parts)):
        pq.write_table(frame.take(rows), folder / f"{number}.parquet")
    return f"{folder}/*.parquet"


def relation(frame, folder, parts):
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    return connection.read_parquet(files(frame, folder, parts))


ELSEWHERE = {
    "files": files,
    "a dataset": lambda frame, folder, parts: dataset.dataset(pathlib.Path(files(frame, folder, parts)).parent),
    "DuckDB": relation,
    "Polars": lambda frame, folder, parts: pl.scan_parquet(files(frame, folder, parts)),
}


def released(frame, analysis, adjacency="replace", **others: Any):
    is_counted = adjacency == "replace" and isinstance(frame, pa.Table)
    guess: dict[str, Any] = {} if is_counted else {"num_records": PERSONS}
    with drawn_with(random.Random(5).getrandbits):
        made = analysis(kng.Study(frame, adjacency=adjacency, **FACTS | guess | others))
    return [one.to_json() for one in made.releases]


@pytest.fixture(autouse=True)
def few_rows_a_batch(monkeypatch):
    monkeypatch.setattr(tables, "engine_of", functools.partial(engine_of, rows=130))


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("name", "parts"), [*((name, 7) for name in ANALYSES), ("mean", 1), ("mean", 64), ("least squares", 64)]
)
def test_releases_are_those_of_the_table_in_memory_to_the_bit(name, parts, adjacency, tmp_path):
    expected = released(VISITS, ANALYSES[name], adjacency)
    for make in ELSEWHERE.values() if name == "mean" else (files, relation):
        assert released(make(VISITS, tmp_path, parts), ANALYSES[name], adjacency) == expected


def test_the_order_of_rows_decides_nothing_in_memory_either():
    for name in ("mean", "groups"):
        expected = released(VISITS, ANALYSES[name])
        assert released(VISITS.take(np.random.default_rng(1).permutation(ROWS)), ANALYSES[name]) == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.dictionary(pa.int32(), pa.string())])
def test_identifiers_are_whole_numbers_and_categories_too(kind, tmp_path):
    numbers = pa.array(np.random.default_rng(2).integers(0, 200, ROWS))
    own = (numbers if pa.types.is_integer(kind) else numbers.cast(pa.string())).cast(kind)
    frame = VISITS.set_column(0, "patient", own)
    facts: dict[str, Any] = {"num_records": len(set(numbers.tolist()))}
    expected = released(frame, ANALYSES["sum"])
    for make in ELSEWHERE.values():
        assert released(make(frame, tmp_path, 5), ANALYSES["sum"], **facts) == expected
    connection = duckdb.connect()
    connection.register("visits", frame)
    connection.execute("CREATE TYPE levels AS ENUM (SELECT DISTINCT patient::VARCHAR FROM visits)")
    levels = connection.sql("SELECT * REPLACE (patient::VARCHAR::levels AS patient) FROM visits")
    assert released(levels, ANALYSES["sum"], **facts) == expected


def test_rows_without_identifier_are_left_out_or_make_a_release_fail(tmp_path):
    cells = VISITS["patient"].to_pylist()
    blank = pa.array([None if one == cells[0] else "" if one == cells[1] else one for one in cells], pa.string())
    frame = VISITS.set_column(0, "patient", blank)
    policy = {"missing": {"patient": "drop"}}
    expected = released(frame, ANALYSES["sum"], "add_remove", num_records=PERSONS, **policy)
    for make in ELSEWHERE.values():
        elsewhere = make(frame, tmp_path, 3)
        assert released(elsewhere, ANALYSES["sum"], "add_remove", **policy) == expected
        with pytest.raises(kng.ReleaseFailed):
            released(elsewhere, ANALYSES["sum"], "add_remove")


@pytest.mark.parametrize("make", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_number_of_persons_is_stated_and_held_to(make, tmp_path, monkeypatch):
    """Metadata tell rows, which are private; no row is read before a debit."""
    elsewhere = make(VISITS, tmp_path, 3)
    facts: dict[str, Any] = FACTS | {"adjacency": "replace"}
    with pytest.raises(ValueError, match=r"number of persons is public.*state it, num_records="):
        kng.Study(elsewhere, **facts)
    for name, count in (("mean", PERSONS - 1), ("groups", PERSONS + 1), ("mean", ROWS)):
        with pytest.raises(kng.ReleaseFailed) as failure:
            released(elsewhere, ANALYSES[name], num_records=count)
        assert str(PERSONS) not in str(failure.value)
    assert "300 persons, and num_records says 299" in words_of(
        kng.Study(elsewhere, **facts, num_records=299).check().summary()
    )
    assert kng.Study(elsewhere, **facts, num_records=PERSONS).check().fits
    monkeypatch.setattr(AbstractLocalEngine, "replies", None)
    assert "mean" in repr(kng.Study(elsewhere, **facts, num_records=PERSONS).plan().mean("cost", epsilon=1.0))


def test_a_bar_of_passes_tells_no_number_of_rows(tmp_path, capsys):
    facts: dict[str, Any] = FACTS | {"adjacency": "replace", "num_records": PERSONS}
    study = kng.Study(relation(VISITS, tmp_path, 3), **facts)
    plan = study.plan()
    plan.mean("cost", epsilon=1.0)
    assert carry_out(plan.steps(), study._frame, None, Keeping(progress=True))
    shown = capsys.readouterr().err
    assert "pass 1 over a relation of DuckDB" in shown
    assert str(ROWS) not in shown
    assert "1.30k" not in shown


def test_equal_rows_of_persons_are_never_counted_by_an_engine(tmp_path):
    """Counted rows come in any batch, also where levels of identifiers are declared."""
    table, sizes = (
        tables.on_its_engine(relation(VISITS, tmp_path, 3), PERSONS, "patient"),
        {"patient": 3.0, "ward": 3.0},
    )
    for person in ("patient", None):
        frame = table if person else tables.on_its_engine(relation(VISITS, tmp_path, 3), ROWS)
        assert tables.records_of(frame, list(sizes), len, sizes=sizes, person=person).is_grouped == (person is None)


def test_what_may_divide_a_person_is_refused_before_anything_is_spent(tmp_path):
    facts: dict[str, Any] = FACTS | {"adjacency": "add_remove", "num_records": PERSONS}
    for refused in (
        dd.from_pandas(VISITS.to_pandas(), npartitions=3),
        duckdb.connect().from_arrow(VISITS).project("* REPLACE (encode(patient) AS patient)"),
    ):
        with pytest.raises(TypeError, match="may lie in several parts"):
            kng.Study(refused, **facts)
    with pytest.raises(TypeError, match="must be whole numbers, text or categories"):
        kng.Study(pl.DataFrame(VISITS).lazy().with_columns(patient=pl.col("cost")), **facts)
    with pytest.raises(ValueError, match="which the data do not have"):
        kng.Study(pl.DataFrame(VISITS).lazy().drop("patient"), **facts).mean("cost", epsilon=1.0)
    # What was opened without persons is in batches of any rows.
    plan = kng.Study(VISITS, **facts).plan()
    plan.mean("cost", epsilon=1.0)
    [step] = plan.steps()
    opened = tables.on_its_engine(relation(VISITS, tmp_path, 3))
    for use in (step.analysis.check, step.analysis.records):
        with pytest.raises(TypeError, match="may lie in several parts"):
            use(opened)
    mechanism = kng.AdaSSP(
        kng.Bounds(x={"age": (0, 90)}, y=(0, 100), unit=kng.Unit("patient", 1)), 1.0, 1e-6, "replace"
    )
    with pytest.raises(TypeError, match="may lie in several parts"):
        kng.release(mechanism, kng.stream(VISITS, columns=["age"], response="cost"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_frame_of_spark_releases_the_same_in_any_number_of_parts(tmp_path, monkeypatch):
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2]))
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path),
        "spark.io.encryption.enabled": "true",
        # Without these small tables are put together in one part.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        (tmp_path / "visits").mkdir()
        files(VISITS, tmp_path / "visits", 7)
        frame = session.read.parquet(str(tmp_path / "visits"))
        for parts in (1, 7, 64):
            for name in ("mean", "groups"):
                expected = released(VISITS, ANALYSES[name])
                assert released(frame.repartition(parts), ANALYSES[name]) == expected
    finally:
        session.stop()
