"""Tables give the same sums and records on every engine, whatever their parts, and fail in words without a cell."""

import pathlib
import pickle
import sys

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kngjax as kng
from kngjax.core.errors import UnfitShape
from kngjax.data.engines import local
from kngjax.data.streams import engine_of
from kngjax.data.tables import on_engine
from kngjax.data.weights import with_weights
from kngjax.data.work import NamedParts, Total, Work

SECRET = "123-45-6789"
NAMES = {"x": 'odd "name", a.b', "y": "y", "w": "w"}
BOUNDS = kng.Bounds(x={NAMES["x"]: (0.0, 1.0)}, y=(-2.0, 2.0))
LINE = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace")
MEDIAN = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace")
ROWS = 300


def table():
    generator = np.random.default_rng(0)
    columns = generator.uniform(-0.1, 1.1, ROWS), generator.normal(size=ROWS), generator.uniform(size=ROWS)
    return pa.table(dict(zip(NAMES.values(), columns, strict=True)))


def files(frame, folder, number=7):
    """Writes the rows in another order to so many files, and an empty one."""
    order = np.random.default_rng(1).permutation(len(frame))
    for part, rows in enumerate([*np.array_split(order, number), order[:0]]):
        pq.write_table(frame.take(rows), folder / f"part {part}.parquet", row_group_size=20)
    return folder


def relation(frame):
    connection = duckdb.connect()
    connection.register("people", frame)
    return connection.sql("SELECT * FROM people ORDER BY hash(y)")


ENGINES = {
    "a pattern of files": lambda frame, path: f"{files(frame, path)}/*.parquet",
    "a folder": files,
    "one file": lambda frame, path: files(frame, path, 1) / "part 0.parquet",
    "a dataset": lambda frame, path: pa.dataset.dataset(files(frame, path)),
    "Polars": lambda frame, path: pl.scan_parquet(files(frame, path)),
    "DuckDB": lambda frame, path: relation(frame),
    "DuckDB, over files": lambda frame, path: duckdb.connect().read_parquet(f"{files(frame, path)}/*.parquet"),
    "Dask": lambda frame, path: dd.from_pandas(frame.to_pandas(), npartitions=7, sort=False),
}
on_every_engine = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
CHOICE = {"columns": [NAMES["x"]], "response": "y"}


def by_size(records):
    order = np.lexsort((records.x[:, 1], records.y))
    return records.x[order], records.y[order]


@on_every_engine
def test_sums_and_records_are_those_in_memory_whatever_the_parts(make, tmp_path):
    frame = table()
    stream = kng.stream(make(frame, tmp_path), **CHOICE, chunk=64)
    X, y = frame.select([NAMES["x"]]), frame["y"]
    found, expected = LINE.intake.exact_sums(stream), LINE.intake.exact_sums(X, y)
    assert (found.count, found.squares) == (expected.count, expected.squares)
    np.testing.assert_array_equal(found.gram, expected.gram)
    np.testing.assert_array_equal(found.moment, expected.moment)
    gathered, known = MEDIAN.prepare(stream), MEDIAN.prepare(X, y)
    for one, other in zip(by_size(gathered), by_size(known), strict=True):
        np.testing.assert_array_equal(one, other)


@on_every_engine
def test_a_table_tells_its_columns_and_by_metadata_its_length(make, tmp_path):
    shown = on_engine(engine_of(make(table(), tmp_path)))
    assert set(shown.columns) == set(NAMES.values())
    if shown.engine.count() is None:
        with pytest.raises(UnfitShape, match="does not tell it without being read: state it"):
            len(shown)
    else:
        assert len(shown) == ROWS


def test_weights_are_a_column_of_the_stream():
    frame = table()
    bounds = kng.Bounds(x={NAMES["x"]: (0.0, 1.0)}, y=(-2.0, 2.0), weight=1.0)
    mechanism = kng.AdaSSP(bounds, 1.0, 1e-6, "replace")
    stream = kng.stream(relation(frame), **CHOICE, weights="w")
    found = mechanism.intake.exact_sums(stream)
    expected = mechanism.intake.exact_sums(with_weights(frame.select([NAMES["x"]]), frame["w"]), frame["y"])
    np.testing.assert_array_equal(found.gram, expected.gram)
    with pytest.raises(ValueError, match="the bounds do not say how large one may be"):
        LINE.intake.check_schema(stream)


def counted(pair):
    return Total(len(pair[1]), len(pair[1]))


def test_a_worker_replies_and_raises_nothing():
    """Not even the reader's own error, which quotes a cell; and it takes all that is left to take."""

    def batches(taken):
        for number in range(4):
            taken.append(number)
            if number == 3:
                raise ValueError(f"somebody's number is {SECRET}")
            yield pa.table({"y": [1.0]})

    def refuses(pair):
        raise ValueError(f"refused {SECRET}")

    for summarise in (counted, refuses):
        taken = []
        reply = Work(NamedParts(None, "y"), (), summarise, max).reply(batches(taken))
        assert pickle.loads(reply) is None
        assert taken == [0, 1, 2, 3]
    good = Work(NamedParts(None, "y"), (), counted, lambda one, two: one + two)
    assert pickle.loads(good.reply(iter([pa.table({"y": [1.0, 2.0]}), pa.table({"y": [3.0]})]))) == Total(3, 3)


class Changing(local.Chunks):
    """Gives other records in each pass, as many as before."""

    turns = 0

    def batches(self, choose):
        self.turns += 1
        return [pa.table({NAMES["x"]: [0.5, 0.25], "y": [0.5, self.turns / 2**40]})]


def test_records_that_change_between_passes_are_not_released():
    smooth = kng.ObjectivePerturbation(kng.HuberLoss(1.0), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "add_remove")
    stream = kng.stream(table(), **CHOICE)
    stream = stream._with(engine=Changing(stream.engine.source, 64))
    held = stream.held(None)
    assert smooth.intake.total(held, lambda rows: 1) == 1
    with pytest.raises(ValueError, match="were not the same in every pass"):
        smooth.intake.total(held, lambda rows: 1)
    with pytest.raises(kng.ReleaseFailed):
        kng.release(smooth, stream)


def test_fewer_records_than_a_source_declares_are_not_released(monkeypatch, tmp_path):
    stream = kng.stream(files(table(), tmp_path), **CHOICE)
    assert LINE.intake.check_schema(stream).num_records == ROWS
    (tmp_path / "part 3.parquet").unlink()
    with pytest.raises(ValueError, match="not as many as there should be"):
        LINE.intake.exact_sums(stream.held(ROWS))


@pytest.mark.parametrize("what", ["a cast", "a file"])
def test_what_an_engine_says_of_a_cell_is_told_nowhere(what, tmp_path, capfd):
    if what == "a cast":
        connection = duckdb.connect()
        connection.register("people", pa.table({"x": ["0.5"] * 3000 + [SECRET], "y": [0.5] * 3001}))
        source = connection.sql('SELECT CAST(x AS DOUBLE) AS "odd ""name"", a.b", y FROM people')
    else:
        source = files(table(), tmp_path)
        (source / "part 5.parquet").write_bytes(f"PAR1 {SECRET}".encode())
        source = pl.scan_parquet([source / f"part {number}.parquet" for number in (1, 5)])
    private = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove")
    for act in (private.prepare, lambda data: kng.release(private, data)):
        with pytest.raises((ValueError, kng.ReleaseFailed)) as caught:
            act(kng.stream(source, **CHOICE))
        error = caught.value
        while error is not None:
            assert SECRET not in str(error)
            error = error.__cause__ or error.__context__
    assert SECRET not in "".join(capfd.readouterr())


def test_patterns_match_files_of_one_kind(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("y\n1\n")
    with pytest.raises(ValueError, match="must end alike"):
        kng.stream(tmp_path / "a.*")
    for path in (tmp_path / "none.parquet", tmp_path / "none*.parquet"):
        with pytest.raises(FileNotFoundError, match="there is no file of data"):
            kng.stream(path)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"y\n{number}\n{number}\n")
    mean = kng.KNormMechanism(kng.Bounds(x=(0.0, 5.0), intercept=False), 1.0, "replace")
    assert mean.intake.exact_sums(kng.stream(f"{tmp_path}/[0-9].csv")).moment.tolist() == [6]


def test_files_of_a_table_have_the_same_columns(tmp_path):
    for name, column in (("0", "a"), ("1", "b")):
        pq.write_table(pa.table({column: [1.0]}), tmp_path / f"{name}.parquet")
    with pytest.raises(UnfitShape, match="have different columns"):
        on_engine(engine_of(tmp_path))
    for once in (table().to_reader(),):
        with pytest.raises(UnfitShape, match="can be read only once"):
            on_engine(engine_of(once))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_frame_of_spark_gives_the_same_in_any_number_of_parts(tmp_path, monkeypatch):
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession, functions  # pyright: ignore[reportMissingImports]

    root = str(pathlib.Path(__file__).parents[2])
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", root)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path)).getOrCreate()
    try:
        frame = table()
        (tmp_path / "people").mkdir()
        people = session.read.parquet(str(files(frame, tmp_path / "people")))
        expected = LINE.intake.exact_sums(frame.select([NAMES["x"]]), frame["y"])
        for parts in (1, 7):
            found = LINE.intake.exact_sums(kng.stream(people.repartition(parts), **CHOICE))
            np.testing.assert_array_equal(found.gram, expected.gram)
        with pytest.raises(TypeError, match="may differ whenever"):
            kng.stream(people.withColumn("y", functions.rand()), **CHOICE)
        with pytest.raises(TypeError, match="may differ whenever"):
            kng.stream(people.limit(10), **CHOICE)
    finally:
        session.stop()


def test_pandas_frames_of_dask_come_in_their_partitions():
    frame = dd.from_pandas(pd.DataFrame({"y": [1.0, 2.0, 4.0]}), npartitions=3)
    mean = kng.KNormMechanism(kng.Bounds(x=(0.0, 5.0), intercept=False), 1.0, "replace")
    assert mean.intake.exact_sums(kng.stream(frame)).moment.tolist() == [7]
