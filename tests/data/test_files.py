"""Files: a record of a CSV file is a line, and no cell of it reaches another record, whatever reads the file."""

import csv
import io
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kngjax as kng
from kngjax.data import cells, csv_files, files

READERS = ("polars", "pandas", "pyarrow")


def written(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.fixture
def only(monkeypatch):
    """Leave one library to read files with."""

    def hide(reader):
        for other in READERS:
            if other != reader:
                monkeypatch.setattr(files, f"_read_by_{other}", missing)

    def missing(*_):
        raise ImportError

    return hide


def texts(path):
    return {name: list(column) for name, column in csv_files.columns(path).items()}


@pytest.mark.parametrize("reader", READERS)
def test_every_library_gives_the_same_text(tmp_path, only, reader):
    only(reader)
    frame = files.read(written(tmp_path, b'\xef\xbb\xbfa,b\r\n1,"x, ""y"""\r\nNA,\n 7 ,\xe9t\xc3\xa9\n,,\n'))
    assert type(frame).__module__.split(".")[0] == reader
    columns = {name: frame[name].to_pylist() if reader == "pyarrow" else list(frame[name]) for name in ("a", "b")}
    assert columns == {"a": ["1", "NA", " 7 ", None], "b": ['x, "y"', "", "\ufffdt\u00e9", None]}


def test_no_cell_decides_which_library_reads_a_file(tmp_path):
    """Of a byte that is no UTF-8, an identifier in bytes and a column that pandas had for an index."""
    ages, found = pa.array([5.0, 3.0]), []
    identifiers = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"1" * 16, b"2" * 16], pa.binary(16)))
    index = pd.DataFrame({"age": [5.0, 3.0], "wage": 1}).set_index("age")
    metadata = pa.Table.from_pandas(index).schema.metadata
    for cell in (b"a", b"a\xff"):
        notes = pa.array([cell, b"b"], pa.binary()).view(pa.string())
        table = pa.table({"age": ages, "id": identifiers, "note": notes}).replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(table, tmp_path / "data.parquet")
        frame = files.read(tmp_path / "data.parquet")
        assert isinstance(frame, pa.Table)
        found.append([cells.numbers(frame[name]) for name in ("age", "id")])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0][0], [5.0, 3.0])


@pytest.mark.parametrize(
    "line",
    ['"1,2', '"1"2,3', "1", "1,2,3", '1,"2', '"1\n2",3', "", '""",2'],
    ids=repr,
)
def test_a_line_that_cannot_be_read_is_a_record_of_missing_cells(tmp_path, line):
    """And the lines around it are read as ever: a reader that went on in search of a quote would lose them."""
    path = written(tmp_path, f'a,b\n1,2\n{line}\n3,"4"\n'.encode())
    broken = [None] * len(line.split("\n"))
    assert texts(path) == {"a": ["1", *broken, "3"], "b": ["2", *broken, "4"]}
    (block,) = csv_files.numbers(path, ["b", "a"])
    np.testing.assert_array_equal(block["a"], [1.0, *[math.nan] * len(broken), 3.0])
    np.testing.assert_array_equal(block["b"], [2.0, *[math.nan] * len(broken), 4.0])


@pytest.mark.parametrize("content", [b"", b'"a\n1\n', b"a,a\n1,2\n"], ids=["empty", "open quote", "a name twice"])
def test_a_header_that_is_none_is_refused(tmp_path, content):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=r"cannot be read as CSV$"):
        files.read(path)
    with pytest.raises(ValueError, match=r"reading the stream failed|two columns of one name"):
        list(kng.stream(path).chunks())


def test_one_column_keeps_its_empty_lines(tmp_path):
    path = written(tmp_path, b'a\n1\n\n"3"\n4')
    assert texts(path) == {"a": ["1", "", "3", "4"]}
    (block,) = csv_files.numbers(path, ["a"])
    np.testing.assert_array_equal(block["a"], [1.0, math.nan, 3.0, 4.0])
    assert texts(written(tmp_path, b"a,b\n")) == {"a": [], "b": []}


WORDS = ("1e999", "NA", "true", "12345678901234567890")
CELLS = st.text('01.5eE+-"x, \té\r\x00\ufeff', max_size=5) | st.sampled_from(WORDS)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3).map(",".join), max_size=8), st.sampled_from(("\n", "\r\n")))
def test_the_quick_way_for_streams_is_the_rule(tmp_path_factory, lines, end):
    path = written(tmp_path_factory.mktemp("lines"), end.join(["a,b", *lines]).encode())
    blocks = list(csv_files.numbers(path, ["a", "b"]))
    for name, column in csv_files.columns(path).items():
        found = np.concatenate([np.empty(0), *(block[name] for block in blocks)])
        assert found.tobytes() == cells.numbers(list(column)).tobytes()


def test_blocks_end_with_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "_BLOCK", 5)
    path = written(tmp_path, b"a,b\n" + b"".join(b"%d,%d\n" % (row, -row) for row in range(50)))
    blocks = list(csv_files.numbers(path, ["b"]))
    assert len(blocks) > 10
    np.testing.assert_array_equal(np.concatenate([block["b"] for block in blocks]), -np.arange(50))


@pytest.mark.slow
def test_one_line_is_one_record_however_long(tmp_path):
    """2^24 carriage returns once summed to nothing in 64 bits, and Arrow then made a record of each."""
    path = written(tmp_path, b"a\n5\n" + b"1\r" * (2**24 + 1) + b"\n5\n")
    found = np.concatenate([block["a"] for block in csv_files.numbers(path, ["a"])])
    assert found.shape == (3,)
    np.testing.assert_array_equal(found, [5.0, math.nan, 5.0])


def test_text_that_is_no_utf8_in_a_parquet_file_is_one_cell(tmp_path):
    """polars refuses the file: another library reads it, and the record stays one with a missing cell."""
    text = pa.array([b"1", b"\xff", b"3"]).view(pa.string())
    pa.parquet.write_table(pa.table({"a": text}), tmp_path / "data.parquet")
    frame = files.read(tmp_path / "data.parquet")
    np.testing.assert_array_equal(cells.numbers(frame["a"]), [1.0, math.nan, 3.0])
    chunks = kng.stream(tmp_path / "data.parquet", columns=["a"]).chunks()
    np.testing.assert_array_equal(cells.numbers(next(chunks)[0]["a"]), [1.0, math.nan, 3.0])


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.text('ab", é', max_size=5), min_size=1, max_size=4), st.booleans())
def test_what_pythons_writer_writes_is_read(cells_of_line, everything):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL).writerow(cells_of_line)
    assert csv_files._split(text.getvalue()) == cells_of_line


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(
        st.from_regex(r"\s?[+-]?[0-9]{0,25}\.?[0-9]{0,35}([eE][+-]?[0-9]{1,4})?\s?", fullmatch=True)
        | st.floats().map(repr)
        | st.text(max_size=4)
        | st.none(),
        max_size=6,
    )
)
def test_arrows_way_from_text_to_numbers_is_the_rule(texts):
    expected = np.array([cells.number(text) for text in texts], dtype=float)
    for kind in (pa.string(), pa.large_string()):
        assert cells.numbers(pa.array(texts, kind)).tobytes() == expected.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["unknown", "True", "", "NA", '"', "1e999", "x" * 10**6, str(2**64 + 1)])
@pytest.mark.parametrize("reader", READERS)
def test_one_odd_cell_leaves_every_other_record(tmp_path, only, reader, odd):
    """What a reader that guesses types did: it made text of the column, and of everybody the reference level."""
    only(reader)
    from kngjax.data.terms import Categorical, Design, Polynomial

    design = Design((Categorical("g", (0, 1), missing=0), Polynomial("v", 0, 9, missing=4)))
    lines = [f"{row % 2},{row % 10}" for row in range(40)]
    before = design.matrix(files.read(written(tmp_path, "\n".join(["g,v", *lines]).encode())))
    for changed in (f"{odd},3", f"1,{odd}"):
        content = "\n".join(["g,v", *lines[:17], changed, *lines[18:]]).encode()
        after = design.matrix(files.read(written(tmp_path, content)))
        assert np.delete(before, 17, axis=0).tobytes() == np.delete(after, 17, axis=0).tobytes()
    assert before[:, 0].sum() == 20
