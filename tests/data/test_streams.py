"""Streamed records give the summary of those in memory without being there; the same is refused; reading is ahead."""

import decimal
import json
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import kngjax as kng
from kngjax.data.records import QuadraticSummary

SECRET = 987654.321
BOUNDS = kng.Bounds(x=(np.array([0.0, -1.0]), np.array([1.0, 2.0])), y=(0.0, 10.0))
WIDE = kng.Box(-20.0, 20.0)
SQUARED = kng.KNG(kng.SquaredLoss(), BOUNDS, WIDE, 1.0, "replace")
ADA_SSP = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace")
released_and_drawn = pytest.mark.parametrize(
    "mechanism", [ADA_SSP, pytest.param(SQUARED, marks=pytest.mark.slow)], ids=["AdaSSP", "KNG"]
)
MEAN = kng.KNormMechanism(kng.Bounds(x=(0.0, 5.0), intercept=False), 1.0, "replace")
ROWS, CHUNK = 1000, 64


def table(whole=False):
    random = np.random.default_rng(3)
    if whole:
        columns = [random.integers(low, high, ROWS) for low, high in ((0, 2), (-3, 4), (-5, 20))]
    else:
        columns = [random.uniform(low, high, ROWS).astype(np.float32) for low, high in ((-0.5, 2), (-3, 4), (-5, 20))]
    names = {"wage": columns[2], "age": columns[0], "of no use": np.full(ROWS, "text"), "height": columns[1]}
    return pa.table(names)


def cut(frame, chunk=CHUNK):
    return [frame.slice(start, chunk) for start in range(0, ROWS, chunk)]


def write(frame, path):
    if path.suffix == ".parquet":
        pa.parquet.write_table(frame, path, row_group_size=100)
    elif path.suffix == ".csv":
        # The decimals of a float32 are not its value.
        wide = [pa.field(one.name, pa.float64() if one.type == pa.float32() else one.type) for one in frame.schema]
        pa.csv.write_csv(frame.cast(pa.schema(wide)), path)
    else:
        pa.feather.write_feather(frame, path)
    return path


def folder(frame, path):
    path.mkdir()
    for number, part in enumerate(cut(frame, 300)):
        write(part, path / f"part-{number}.parquet")
    return path


CHOICE = {"columns": ["age", "height"], "response": "wage", "chunk": CHUNK}
SOURCES = {
    "Parquet": lambda frame, path: write(frame, path / "people.parquet"),
    "a path as text": lambda frame, path: str(write(frame, path / "people.parquet")),
    "a folder": lambda frame, path: folder(frame, path / "people"),
    "CSV": lambda frame, path: write(frame, path / "people.csv"),
    "Feather": lambda frame, path: write(frame, path / "people.feather"),
    "Arrow": lambda frame, path: write(frame, path / "people.arrow"),
    "dataset": lambda frame, path: pa.dataset.dataset(write(frame, path / "people.parquet")),
    "reader": lambda frame, path: pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(CHUNK)),
    "batches": lambda frame, path: frame.to_batches(CHUNK),
    "polars, lazy": lambda frame, path: pl.scan_parquet(write(frame, path / "people.parquet")),
    "polars": lambda frame, path: [pl.from_arrow(part) for part in cut(frame)],
    "pandas": lambda frame, path: (part.to_pandas() for part in cut(frame)),
    "one frame": lambda frame, path: frame,
}


def arrays(frame):
    return frame.select(["age", "height"]), frame["wage"]


def leaves(summary):
    return [np.asarray(part) for part in (summary.count, summary.gram, summary.moment, summary.sum_of_squares)]


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_summary_of_the_records_in_memory(make, tmp_path):
    whole, fractions = table(whole=True), table()
    (tmp_path / "whole").mkdir()
    streamed = SQUARED.prepare(kng.stream(make(whole, tmp_path / "whole"), **CHOICE))
    assert isinstance(streamed, QuadraticSummary)
    for found, expected in zip(leaves(streamed), leaves(SQUARED.prepare(*arrays(whole))), strict=True):
        np.testing.assert_array_equal(found, expected)
    # (m + K)·u of the sum of magnitudes, with m + K <= 2000 for every source here.
    streamed, memory = (
        SQUARED.prepare(kng.stream(make(fractions, tmp_path), **CHOICE)),
        SQUARED.intake.records(*arrays(fractions)),
    )
    magnitudes = [ROWS, np.abs(memory.x).T @ np.abs(memory.x), np.abs(memory.x).T @ memory.y, memory.y @ memory.y]
    for found, expected, size in zip(
        leaves(streamed), leaves(SQUARED.intake.summarise(memory)), magnitudes, strict=True
    ):
        assert np.all(np.abs(found - expected) <= 2 * 2000 * 2.0**-53 * size)


def test_pairs_of_arrays_and_every_loss_with_a_sufficient_statistic():
    X, y = (np.column_stack([c.to_numpy() for c in arrays(table(True))[0].columns]), table(True)["wage"].to_numpy())
    pairs = [(X[start : start + 90], y[start : start + 90]) for start in range(0, ROWS, 90)]
    for found, expected in zip(leaves(SQUARED.prepare(kng.stream(pairs))), leaves(SQUARED.prepare(X, y)), strict=True):
        np.testing.assert_array_equal(found, expected)
    alone = kng.stream([(part, None) for part, _ in pairs])
    for stream in (alone, kng.stream(cut(table(True)), columns=["age", "height"])):
        for found, expected in zip(leaves(MEAN.prepare(stream)), leaves(MEAN.prepare(X)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_columns_are_those_asked_for_in_that_order_or_all_but_the_response():
    wide = kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(-9.0, 9.0), y=(-9.0, 9.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
    frame = table(True).drop_columns(["of no use"])
    in_order = wide.prepare(kng.stream(cut(frame), response="wage"))
    swapped = wide.prepare(kng.stream(cut(frame), columns=["height", "age"], response="wage"))
    np.testing.assert_array_equal(in_order.gram, np.asarray(swapped.gram)[np.ix_([0, 2, 1], [0, 2, 1])])
    np.testing.assert_array_equal(in_order.moment, wide.prepare(*arrays(frame)).moment)
    only = kng.KNG(kng.SquaredLoss(), kng.Bounds(y=(0.0, 10.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
    mean = only.prepare(kng.stream(cut(frame), columns=[], response="wage"))
    np.testing.assert_array_equal(mean.moment, only.prepare(None, frame["wage"]).moment)


@released_and_drawn
def test_a_stream_is_released_like_records(mechanism):
    released = kng.release(mechanism, kng.stream(cut(table()), **CHOICE))
    assert released.certificate.exact
    assert released.value.shape == (3,)
    assert "stream" not in released.to_json().lower()


@pytest.mark.slow
def test_a_stream_serves_every_mechanism_of_the_moments():
    stream = kng.stream(cut(table()), **CHOICE)
    exponential = kng.ExponentialMechanism(kng.SquaredLoss(), BOUNDS, WIDE, 1.0, "replace")
    perturbation = kng.ObjectivePerturbation(kng.SquaredLoss(), BOUNDS, WIDE, 1.0, "replace")
    for mechanism in (exponential, perturbation):
        np.testing.assert_array_equal(mechanism.prepare(stream).gram, SQUARED.prepare(stream).gram)


@pytest.mark.slow
@released_and_drawn
def test_the_same_key_gives_the_same_draw_streamed_and_in_memory(mechanism):
    def draws(data):
        return kng.sample(mechanism, data, key=kng.research_key(0), num_draws=5).theta

    streamed, memory = mechanism.prepare(kng.stream(cut(table()), **CHOICE)), mechanism.prepare(*arrays(table()))
    np.testing.assert_array_equal(draws(streamed), draws(memory))


def test_more_records_than_promised_are_refused_though_no_chunk_has_so_many():
    for count, refused in ((ROWS, False), (ROWS - 1, True)):
        mechanism = kng.PosteriorSample(BOUNDS, 100.0, 0.01, "replace", max_records=count)
        stream = kng.stream(cut(table()), **CHOICE)
        if refused:
            with pytest.raises(ValueError, match="more records than max_records"):
                mechanism.prepare(stream)
        else:
            assert float(mechanism.prepare(stream).count) == ROWS


class Recorded:
    """An array whose conversion, the first step of summing it, is told to the test."""

    def __init__(self, number, events, reading):
        self.number, self.events, self.reading = number, events, reading

    def __array__(self, dtype=None, copy=None):
        self.events.append(f"sum {self.number}")
        # The next chunk is read meanwhile: who reads only after summing never gets there.
        assert self.reading[self.number + 1].wait(timeout=30)
        self.events.append(f"summed {self.number}")
        return np.full((2, 2), 0.5)


def test_the_next_chunk_is_read_while_the_last_is_summed_and_no_further():
    events, reading = [], [threading.Event() for _ in range(5)]

    def source():
        for number in range(4):
            events.append(f"read {number}")
            reading[number].set()
            yield Recorded(number, events, reading), np.zeros(2)
        reading[4].set()

    assert float(SQUARED.prepare(kng.stream(source())).count) == 8.0
    for number in range(3):
        assert events.index(f"read {number + 1}") < events.index(f"summed {number}")
    for number in range(2):
        assert events.index(f"summed {number}") < events.index(f"read {number + 2}")


def broken(at=3):
    for number, part in enumerate(cut(table())):
        if number == at:
            raise OSError(f"somebody earns {SECRET}")
        yield part


def spoiled(column, value, at=3):
    parts = cut(table())
    place = parts[at].schema.get_field_index(column)
    parts[at] = parts[at].set_column(place, column, pa.array([value] * len(parts[at])))
    return parts


def renamed():
    first, *others = cut(table().drop_columns(["of no use"]))
    return [first, *(part.rename_columns(["wage", "height", "age"]) for part in others)]


REFUSED = {
    "NaN": (spoiled("age", np.nan), {}, ValueError, "missing, NaN or infinite"),
    "infinity": (spoiled("wage", np.inf), {}, ValueError, "missing, NaN or infinite"),
    "null": (spoiled("age", None), {}, (ValueError, TypeError), "missing|not numbers"),
    "text": (spoiled("age", str(SECRET)), {}, TypeError, r"columns of X at positions \[0\]"),
    "text in y": (spoiled("wage", str(SECRET)), {}, TypeError, "y is not a series of numbers"),
    "an absent column": (cut(table()), {"columns": ["age", "income"]}, ValueError, "the column 'income', which is not"),
    "an absent response": (cut(table()), {"response": "income"}, ValueError, "the column 'income', which is not there"),
    "a column that ends": (
        [*cut(table()), pa.table({"age": [SECRET]})],
        {},
        ValueError,
        "'height', which is not there",
    ),
    "a column too few": (cut(table()), {"columns": ["age"]}, ValueError, "X has 1 columns and bounds.x is for 2"),
    "no response": (cut(table()), {"response": None}, ValueError, "y is missing"),
    "other columns": (renamed(), {"columns": None}, ValueError, "different columns"),
    "nothing": ([], {}, ValueError, "the data are empty"),
    "no rows": ([table().slice(0, 0)] * 3, {}, ValueError, "the data are empty"),
    "pairs and names": ([(np.full((2, 2), SECRET), np.zeros(2))], {}, TypeError, "are of tables: leave them out"),
    "arrays": ([np.full((2, 3), SECRET)], {}, TypeError, "must be a data frame or a pair"),
}


def chain_of(error):
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(("source", "choice", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_that_no_message_tells_a_value(source, choice, error, message):
    own = error if isinstance(error, tuple) else (error,)
    released = (lambda stream: kng.release(SQUARED, stream), (*own, kng.ReleaseFailed))
    for use, kind in ((SQUARED.prepare, error), released):
        with pytest.raises(kind) as caught:
            use(kng.stream(source, **(CHOICE | choice)))
        told = kng.ReleaseFailed is type(caught.value) or re.search(message, str(caught.value))
        assert told, str(caught.value)
        assert not any("987654" in text or "321" in text for text in chain_of(caught.value))


def parted(path, *parts):
    path.mkdir()
    for number, part in enumerate(parts):
        pa.parquet.write_table(pa.table(part), path / f"{number}.parquet")
    return path


def reader(columns):
    frame = pa.table(columns)
    return pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches())


GOOD = {"age": [0.5], "height": [1.0], "wage": [2.0]}
WHOLE, TEXT, NOTHING = {"age": [1]}, {"age": ["987654.321"]}, {name: pa.array([], pa.float64()) for name in GOOD}
BEFORE = {
    "a reader of text": (lambda path: reader(GOOD | TEXT), TypeError, r"columns of X at positions \[0\]"),
    "a reader without a column": (lambda path: reader({"age": [0.5], "wage": [2.0]}), ValueError, "is not there"),
    "a folder with text": (lambda path: parted(path / "p", GOOD, GOOD | TEXT), TypeError, "are not numbers"),
    "a folder without a column": (lambda path: parted(path / "p", GOOD, WHOLE), ValueError, "which is not there"),
    "a dataset with text": (
        lambda path: pa.dataset.dataset(parted(path / "p", GOOD, GOOD | TEXT)),
        TypeError,
        "of another type than the dataset",
    ),
    "a dataset with fractions where the first file has none": (
        lambda path: pa.dataset.dataset(parted(path / "p", GOOD | WHOLE, GOOD)),
        TypeError,
        "of another type than the dataset",
    ),
    "a filtered dataset of two types": (
        lambda path: pa.dataset.dataset(
            parted(path / "p", GOOD, {"age": ["old"], "height": [0.5], "wage": [2.0]}),
        ).filter(pa.dataset.field("wage") > 0),
        TypeError,
        "of another type than the dataset",
    ),
    "a dataset without a column": (
        lambda path: pa.dataset.dataset(parted(path / "p", GOOD, {"age": [0.5], "wage": [2.0]})),
        ValueError,
        "which a file of the dataset has not",
    ),
    "nothing": (lambda path: [], ValueError, "the data are empty"),
    "chunks of nothing": (lambda path: [pa.table(NOTHING)] * 2, ValueError, "the data are empty"),
    "a folder of files of nothing": (lambda path: parted(path / "p", NOTHING, NOTHING), ValueError, "data are empty"),
    "a dataset of nothing": (
        lambda path: pa.dataset.dataset(parted(path / "p", NOTHING, NOTHING)),
        ValueError,
        "the data are empty",
    ),
    "CSV of nothing": (lambda path: write(pa.table(NOTHING), path / "p.csv"), ValueError, "the data are empty"),
    "Arrow of nothing": (lambda path: write(pa.table(NOTHING), path / "p.arrow"), ValueError, "the data are empty"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_a_source_declares_is_refused_before_it_is_paid_for(tmp_path, name):
    make, kind, message = BEFORE[name]
    ledger = kng.Ledger.create(
        tmp_path / "ledger", kng.Budget.approximate(9, "0.1"), adjacency="replace", dataset="invented"
    )
    with pytest.raises(kind, match=message) as caught:
        kng.release(ADA_SSP, kng.stream(make(tmp_path), **CHOICE), ledger=ledger)
    assert ledger.verify().num_rows == 1
    assert not any("987654" in text for text in chain_of(caught.value))


def test_files_whose_types_differ_and_fit_are_read(tmp_path):
    mixed = parted(tmp_path / "mixed", GOOD | WHOLE, GOOD)
    wide = pa.dataset.dataset(mixed, schema=pa.schema([(name, pa.float64()) for name in GOOD]))
    for source in (mixed, wide, wide.filter(pa.dataset.field("age") > 0.0)):
        stream = kng.stream(source, **CHOICE)
        ADA_SSP.intake.check_schema(stream)
        assert float(SQUARED.prepare(stream).count) == 2.0
    # Where n is private, no record is data like any other.
    private = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove")
    for source in ([], parted(tmp_path / "none", NOTHING)):
        assert private.intake.check_schema(kng.stream(source, **CHOICE)).num_records is None


def test_a_reader_that_fails_leaves_nothing_and_is_not_quoted():
    stream = kng.stream(broken(), **CHOICE)
    with pytest.raises(ValueError, match="failed with OSError, and nothing of it is used") as caught:
        SQUARED.prepare(stream)
    assert not any("987654" in text for text in chain_of(caught.value))
    # What is left of the source is not taken for the whole.
    with pytest.raises(ValueError, match="can be read only once: make a new stream"):
        SQUARED.prepare(stream)


def test_what_was_read_is_not_read_again_by_another_stream():
    """It would find what is left of the source, and under add_remove release that as the whole."""
    private = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove")
    chunks = [pa.table({name: [0.5] for name in GOOD})] * 3
    for make in (lambda: (chunk for chunk in chunks), lambda: iter(chunks), lambda: pa.Table.to_reader(chunks[0])):
        source = make()
        first, second = kng.stream(source, **CHOICE), kng.stream(source, **CHOICE)
        private.prepare(first)
        for stream in (second, kng.stream(source, **CHOICE)):
            with pytest.raises(ValueError, match="was read before, and can be read only once: make a new stream"):
                kng.release(private, stream)
        private.prepare(kng.stream(make(), **CHOICE))


@pytest.mark.slow
def test_a_file_that_breaks_in_the_middle_is_not_quoted(tmp_path):
    lines = ["age,height,wage"] + ["0.5,1,2"] * 20_000 + [f"0.5,{SECRET} cm,2"]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    (tmp_path / "people.parquet").write_text(f"no Parquet {SECRET}")
    for file in ("people.csv", "people.parquet"):
        with pytest.raises(ValueError, match=r"failed with Arrow|are missing|contain missing") as caught:
            SQUARED.prepare(kng.stream(tmp_path / file, **CHOICE))
        assert not any("987654" in text or " cm" in text for text in chain_of(caught.value))


@pytest.mark.slow
def test_types_of_a_csv_file_are_not_guessed_from_its_first_rows(tmp_path):
    lines = ["age,height,wage"] + ["1,1,2"] * 300_000 + ["0.5,,2.5"]
    (tmp_path / "people.csv").write_text("\n".join([*lines[:-1], "0.5,0.25,2.5"]))
    found = SQUARED.prepare(kng.stream(tmp_path / "people.csv", response="wage"))
    np.testing.assert_array_equal(np.asarray(found.gram)[0], [300_001.0, 300_000.5, 300_000.25])
    (tmp_path / "gap.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="missing, NaN or infinite"):
        SQUARED.prepare(kng.stream(tmp_path / "gap.csv", response="wage"))


def test_a_source_that_can_be_read_again_is():
    for source, again in ((cut(table()), True), (iter(cut(table())), False)):
        stream = kng.stream(source, **CHOICE)
        first = SQUARED.prepare(stream)
        if again:
            np.testing.assert_array_equal(first.gram, SQUARED.prepare(stream).gram)
        else:
            with pytest.raises(ValueError, match="make a new stream"):
                SQUARED.prepare(stream)


def test_where_the_records_are_needed_they_are_gathered():
    median = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace")
    found, expected = median.prepare(kng.stream(cut(table()), **CHOICE)), median.prepare(*arrays(table()))
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(found.y, expected.y)
    with pytest.raises(TypeError, match="takes no dither_key"):
        median.prepare(kng.stream(cut(table()), **CHOICE), dither_key=kng.research_key(0))


def test_a_stream_brings_its_own_responses_and_weights():
    stream = kng.stream(cut(table()), **CHOICE)
    with pytest.raises(ValueError, match="brings its own weights: name their column"):
        SQUARED.prepare(stream, weights=np.zeros(2))
    with pytest.raises(ValueError, match="brings its own responses"):
        SQUARED.prepare(stream, np.zeros(2))


def test_what_is_no_stream(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file of data"):
        kng.stream(tmp_path / "absent.parquet")
    (tmp_path / "people.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"must end in \.parquet, \.csv, \.arrow or \.feather"):
        kng.stream(tmp_path / "people.xlsx")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"the folder of data .*folder has no file that ends in \.parquet"):
        kng.stream(tmp_path / "folder")
    for source in (np.zeros((3, 2)), 3, None):
        with pytest.raises(TypeError, match="has no chunks: give a file"):
            kng.stream(source)
    with pytest.raises(TypeError, match=r"a list of names, like \['age'\]"):
        kng.stream([], columns="age")
    for columns in (["age", "age"], ["age", "wage"]):
        with pytest.raises(ValueError, match="each column once, and neither the response"):
            kng.stream([], columns=columns, response="wage")
    for chunk in (0, -1, True):
        with pytest.raises(ValueError, match="a whole number of rows, at least 1"):
            kng.stream([], chunk=chunk)
    assert "private" in repr(kng.stream(cut(table())))
    assert "of no use" not in repr(kng.stream(cut(table())))


def test_a_table_with_two_columns_of_one_name_is_refused_without_telling_it(tmp_path):
    frame = pa.Table.from_arrays([pa.array([SECRET])] * 3, names=["987654", "987654", "wage"])
    (tmp_path / "people.csv").write_text("987654,987654,wage\n1,2,3\n")
    pa.parquet.write_table(frame, tmp_path / "people.parquet")
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_file(file, frame.schema) as writer:
        writer.write_table(frame)
    for source in ([frame], *(tmp_path / f"people.{kind}" for kind in ("csv", "parquet", "arrow"))):
        with pytest.raises(ValueError, match="has two columns of one name") as caught:
            SQUARED.prepare(kng.stream(source, response="wage"))
        assert not any("987654" in text for text in chain_of(caught.value))


def test_decimals_and_booleans_are_numbers():
    frame = pa.table({"a": [decimal.Decimal("0.5")] * 4, "b": [True, False] * 2, "y": [1, 2, 3, 4]})
    summary = SQUARED.prepare(kng.stream(frame.to_batches(3), response="y"))
    np.testing.assert_array_equal(np.asarray(summary.gram)[0], [4.0, 2.0, 2.0])


def test_sums_are_the_same_to_the_bit_in_any_order_of_chunks_and_as_of_all_records():
    """Of numbers of 53 digits, where float64 sums would show every other order."""
    generator = np.random.default_rng(3)
    x, y = generator.lognormal(0.0, 3.0, (3000, 2)), generator.normal(size=3000)
    chunks = [
        (x[start:end], y[start:end]) for start, end in ((0, 1), (1, 500), (500, 1700), (1700, 2999), (2999, 3000))
    ]
    mechanism = kng.KNG(
        kng.SquaredLoss(), kng.Bounds(([0.0, 0.0], 1e3), (-9.0, 9.0)), kng.Box(-1.0, 1.0), 1.0, "replace"
    )
    expected = leaves(mechanism.prepare(x, y))
    turned = np.random.default_rng(0).permutation(len(x))
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1], [3, 4, 1, 0, 2]):
        for found, own in zip(leaves(mechanism.prepare(kng.stream([chunks[i] for i in order]))), expected, strict=True):
            np.testing.assert_array_equal(found, own)
    for data in (mechanism.prepare(x[turned], y[turned]), mechanism.prepare(kng.shard(x, y))):
        for found, own in zip(leaves(data), expected, strict=True):
            np.testing.assert_array_equal(found, own)


STATUS = pathlib.Path("/proc/self/status")
MEMORY = """
import json, pathlib, sys
import kngjax as kng
mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
grown = []
for path in sys.argv[1:]:
    counted = float(mechanism.prepare(kng.stream(path, response="y")).count)
    # What `resource` tells is no less than the memory of the process that started this one.
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    grown.append([counted, next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10])
print(json.dumps(grown))
"""


@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from Linux")
@pytest.mark.slow
def test_memory_is_that_of_a_few_chunks_however_long_the_file(tmp_path):
    """Peak memory in MiB after a file of 8 chunks, and after one that is ten times longer."""
    random, paths = np.random.default_rng(0), [tmp_path / "short.parquet", tmp_path / "long.parquet"]
    group = pa.table({name: random.uniform(size=2**17).astype(np.float32) for name in "abcdefghijky"})
    for path, groups in zip(paths, (4, 40), strict=True):
        with pa.parquet.ParquetWriter(path, group.schema) as writer:
            for _ in range(groups):
                writer.write_table(group)
    ran = subprocess.run([sys.executable, "-c", MEMORY, *map(str, paths)], check=True, capture_output=True, text=True)
    (few, before), (many, after) = json.loads(ran.stdout)
    assert (few, many) == (2**19, 10 * 2**19)
    # In memory as float32 the longer file has 240 MiB, as float64 480.
    assert after - before < 80.0


def test_a_chunk_may_be_empty_and_not_all_of_them():
    """Chunks may be groups of records, which one record may fill or leave empty."""
    mechanism = kng.KNormMechanism(kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False), 1.0, "replace")
    X = np.random.default_rng(0).uniform(size=(5, 2))
    pairs = [(X[:0], None), (X[:3], None), (X[3:3], None), (X[3:], None), (X[:0], None)]
    in_chunks, whole = mechanism.intake.exact_sums(kng.stream(pairs)), mechanism.intake.exact_sums(X)
    assert (in_chunks.count, in_chunks.moment.tolist()) == (whole.count, whole.moment.tolist())
    assert (in_chunks.gram.tolist(), in_chunks.squares) == (whole.gram.tolist(), whole.squares)
    assert kng.release(mechanism, kng.stream(pairs)).certificate.delta == 0.0
    for empty in (pairs[:1], [pairs[0], pairs[2]]):
        with pytest.raises(ValueError, match="the data are empty"):
            mechanism.intake.exact_sums(kng.stream(empty))
