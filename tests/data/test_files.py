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
from kngjax.data.csv_dialects import ENCODINGS, Dialect
from kngjax.data.tables import opened


def written(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


def texts(path, *dialect):
    table = opened(files.read(path, *dialect))
    return {name: list(table[name]) for name in table.columns}


def numbers(path, column, **settings):
    """The numbers of a column, which the way for streams and that into memory read alike, bit for bit."""
    dialect = Dialect(**settings)
    blocks = [block[column] for block in csv_files.numbers(path, [column], dialect)]
    found = np.concatenate([np.empty(0), *blocks])
    assert found.tobytes() == cells.numbers(opened(files.read(path, dialect))[column]).tobytes()
    return found.tolist()


def test_every_cell_is_text(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbf a,b\t\r\n1,"x, ""y"""\r\nNA,\n 7 ,\xe9t\xc3\xa9\n,,\n')
    assert texts(path) == {"a": ["1", "NA", " 7 ", None], "b": ['x, "y"', "", "\ufffdt\u00e9", None]}


RECORDS = "name;wage\nM\u00fcller;1.234,5\nzo\u00eb;-0,25e1\n\u0141;1.234\n;7\nx;12.34\ny;1234.5\nz;true\n"
GERMAN = {"separator": ";", "decimal": ",", "thousands": "."}
NAN = math.nan
# The file, how it is said to be written, and the numbers of its column "wage".
DIALECTS = {
    "semicolons, decimal commas and dots of thousands": (
        RECORDS.encode(),
        GERMAN,
        [1234.5, -2.5, 1234, 7, NAN, NAN, 1],
    ),
    "no thousands": (RECORDS.encode(), GERMAN | {"thousands": None}, [NAN, -2.5, NAN, 7, NAN, NAN, 1]),
    "commas of thousands": (
        b'wage\n"1,234"\n"12,34"\n"1,234,567.5"\n1e3\n',
        {"thousands": ","},
        [1234, NAN, 1234567.5, 1e3],
    ),
    "spaces that do not break": ("wage\n1\u00a0234\n5 678\n".encode(), {"thousands": "\u00a0"}, [1234, NAN]),
    "tabs": (b'name\twage\n"a\tb"\t1\nc,d\t2\n', {"separator": "\t"}, [1, 2]),
    "bars": (b"wage|name\n1|x\n2|y|z\n", {"separator": "|"}, [1, NAN]),
    "two bytes a unit, by the mark": (RECORDS.encode("utf-16"), GERMAN, [1234.5, -2.5, 1234, 7, NAN, NAN, 1]),
    "big ends first, by the mark": (b"\xfe\xff" + "wage\r\n1\r\n\u0a0a\r\n2".encode("utf-16-be"), {}, [1, NAN, 2]),
    "half of a pair": ("wage\n".encode("utf-16") + b"\x00\xd8\n\x005\x00\n\x00", {}, [NAN, 5]),
    "letters of Windows": (
        RECORDS.replace("\u0141", "L").encode("cp1252"),
        GERMAN | {"encoding": "cp1252"},
        [1234.5, -2.5, 1234, 7, NAN, NAN, 1],
    ),
    "a line before the header": (b"sep=,\nwage ,age\n10,30\n20,1\n", {}, [10, 20]),
    "such a line in two bytes a unit": ("sep=;\r\nwage;age\r\n10;30\r\n".encode("utf-16"), {"separator": ";"}, [10]),
    "such a line among the records": (b"wage\nsep=\n20\n", {}, [NAN, 20]),
    "line breaks in quotes": (b'wage,note\n10,"one\ntwo, ""x""\n"\n20,\n', {"quoted_line_breaks": True}, [10, 20]),
    "line breaks in quotes, and CR": (
        b'wage,note\r\n10,"one\r\n\r\n"\r\n20,"\n"\r\n',
        {"quoted_line_breaks": True},
        [10, 20],
    ),
}


@pytest.mark.parametrize(("content", "settings", "expected"), DIALECTS.values(), ids=DIALECTS)
def test_a_file_is_read_as_it_is_written(tmp_path, content, settings, expected):
    np.testing.assert_array_equal(numbers(written(tmp_path, content), "wage", **settings), expected)


def test_letters_are_those_of_the_encoding(tmp_path):
    for encoding in ("utf-8", "utf-16", "cp1250", "gb18030"):
        path = written(
            tmp_path,
            "a\n\u0141\u00f3d\u017a\n".encode(encoding) if encoding != "gb18030" else "a\n\u57ce\n".encode(encoding),
        )
        assert texts(path, Dialect(encoding=encoding)) == {
            "a": ["\u57ce" if encoding == "gb18030" else "\u0141\u00f3d\u017a"]
        }


UNMARKED = "a,b\n1,\u4e0a\u010a2\n"
# Bytes, and an encoding in which the byte of a line's end is a part of other letters of theirs.
OTHER_UNITS = {
    "no mark": (UNMARKED.encode("utf-16-le"), "utf-16", "encoding: the file has no mark of UTF-16: write it with"),
    "big ends first, no mark": (UNMARKED.encode("utf-16-be"), "utf-8", "header look like UTF-16 without its mark"),
    "no mark, read by bytes": (UNMARKED.encode("utf-16-le"), "latin-1", "header look like UTF-16 without its mark"),
    "a mark, read by bytes": (UNMARKED.encode("utf-16"), "latin-1", "encoding: the file has the mark of UTF-16: leave"),
    "four bytes a letter": (UNMARKED.encode("utf-32"), "utf-8", "header look like UTF-16 without its mark"),
}


@pytest.mark.parametrize(("content", "encoding", "words"), OTHER_UNITS.values(), ids=OTHER_UNITS)
def test_no_encoding_makes_several_lines_of_a_record(tmp_path, content, encoding, words):
    path, dialect = written(tmp_path, content), Dialect(encoding=encoding)
    with pytest.raises(ValueError, match=rf"data\.csv: .*{words}"):
        files.read(path, dialect)
    if encoding != "utf-16":
        with pytest.raises(ValueError, match=words):
            list(csv_files.numbers(path, ["a"], dialect))


def test_no_encoding_takes_a_quote_from_a_record(tmp_path):
    """It would join the next records to it, as the filler of Hangul, A4 D4, did: six more bytes were its own."""
    rows = ["1,x", '2,"y"', '3,"\n"', '4,"z"']
    for encoding in ENCODINGS:
        if encoding == "utf-16":
            continue
        for cell in (b"\xa4\xd4", "\u4f64\u0531".encode(), "\u4e0a0".encode(), b"\x8f", b"z"):
            content = "\n".join(["a,b", rows[0], '9,"cell"', *rows[1:], ""]).encode().replace(b"cell", cell)
            found = texts(written(tmp_path, content), Dialect(encoding=encoding, quoted_line_breaks=True))
            assert found["a"][0:1] + found["a"][2:] == ["1", "2", "3", "4"]
            assert found["b"][0:1] + found["b"][2:] == ["x", "y", "\n", "z"]


def test_columns_of_text_stay_as_they_are_written(tmp_path):
    table = files.read(written(tmp_path, b"v;code\n1,5;250,00\n"), Dialect(separator=";", decimal=","), ("code",))
    assert (table["v"], table["code"]) == (["1.5"], ["250,00"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"separator": ""}, "separator: must be one of ','"),
        ({"decimal": "'"}, "decimal: must be one of"),
        ({"thousands": "x"}, "thousands: must be one of"),
        ({"thousands": "."}, "another mark than that of decimals"),
        ({"encoding": "rot13"}, "encoding: must be one of 'utf-8'"),
        ({"encoding": "utf-16-le"}, "encoding: must be one of"),
    ],
)
def test_what_no_file_can_be_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Dialect(**settings)


@pytest.mark.parametrize("settings", [{"decimal": ","}, {"thousands": ","}], ids=str)
def test_a_mark_of_numbers_may_lie_between_cells_too_where_cells_that_hold_it_are_quoted(tmp_path, settings):
    path = written(tmp_path, b'wage,age\n"1,250",40\n7,41\n')
    assert numbers(path, "wage", **settings) == [1.25 if "decimal" in settings else 1250.0, 7.0]


CUT = ['"1,2', '1,"2', '"1\n2",3', '""",2', '1,4"2', '1,"one\n2,3\nend"']


@pytest.mark.parametrize("line", CUT, ids=repr)
def test_a_line_with_an_odd_number_of_quotes_is_no_record(tmp_path, line):
    """Whatever reads the file fails once its values count: it may be a piece of a record, or of two."""
    path = written(tmp_path, f'a,b\n1,2\n{line}\n3,"4"\n'.encode())
    table = files.read(path)
    assert len(table) == 3 + line.count("\n")
    with pytest.raises(ValueError, match=r"lines have an odd number of quotes, record 2 first: .*quoted_line_breaks"):
        opened(table)
    with pytest.raises(ValueError, match="odd number of quotes"):
        list(csv_files.numbers(path, ["a"]))
    with pytest.raises(ValueError, match="odd number of quotes"):
        list(csv_files.numbers(path, ["a"], Dialect(thousands=",")))
    with pytest.raises(ValueError, match="reading the stream failed with ValueError, and nothing"):
        kng.stream(path).collected(lambda pair: [pair])


# The header line with the settings, and what the owner is told of it.
HEADERS = {
    "wage;age": (
        {},
        "one column, 'wage;age': cells lie between commas. If cells lie between ';', say separator = \";\".",
    ),
    "wage\tage": ({}, 'say separator = "\\t".'),
    "wage,age": ({"separator": "|"}, "'wage,age': cells lie between '|'. If cells lie between ',', say separator"),
    "sep=,": ({}, "2 columns, '10', '30': cells lie between commas."),
    "sep=": ({}, "one column, 'sep=': cells lie between commas."),
    "-,-": ({}, "2 columns, '-', '-': cells lie between commas. If the names stand in a later line, take out those"),
    '"wage': ({}, "The first line of the file is no header that could be read"),
    "L\ufffdn": ({}, 'say encoding, like "cp1252"'),
    "w\x00a\x00": ({}, "look like UTF-16 without its mark"),
    "wage , age": ({}, "The header was read as 2 columns, 'wage', 'age': cells lie between commas."),
}


@pytest.mark.parametrize("header", HEADERS, ids=repr)
def test_the_header_is_shown_as_it_was_read(tmp_path, header):
    settings, words = HEADERS[header]
    assert words in csv_files.header_in_words(written(tmp_path, f"{header}\n10,30\n".encode()), Dialect(**settings))


def test_tables_that_pythons_writer_writes_are_read(tmp_path):
    """With line breaks, quotes and separators in cells, each record by itself: one more moves no other."""
    generator = np.random.default_rng(5)
    for trial in range(60):
        separator, end = ",;\t|"[trial % 4], ("\n", "\r\n")[trial % 2]
        # A bare CR before LF would be the line's end.
        quoting = csv.QUOTE_MINIMAL if trial % 2 else csv.QUOTE_ALL
        letters = np.array([*'ab \u00e9"\n\r', separator, "\r\n"])
        rows = [["".join(generator.choice(letters, generator.integers(5))) for _ in range(3)] for _ in range(8)]
        for kept in (rows, rows[:3] + rows[4:]):
            text = io.StringIO()
            csv.writer(text, delimiter=separator, lineterminator=end, quoting=quoting).writerows(
                [["x", "y", "z"], *kept]
            )
            path = written(tmp_path, text.getvalue().encode(("utf-8", "utf-16")[trial % 3 == 0]))
            found = texts(path, Dialect(separator=separator, quoted_line_breaks=True))
            assert list(map(list, zip(*found.values(), strict=True))) == kept


def test_a_stream_is_told_how_its_file_is_written(tmp_path):
    path = written(tmp_path, b"a;b\n1,5;2\n")
    stream = kng.stream(path, ["a"], "b", csv={"separator": ";", "decimal": ","})
    [(X, y)] = stream.collected(lambda pair: [pair])
    assert (cells.numbers(X["a"]).tolist(), cells.numbers(y).tolist()) == ([1.5], [2.0])
    for wrong in ({"quoted_line_breaks": True}, {"separator": "x"}):
        with pytest.raises(ValueError, match=r"^csv"):
            kng.stream(path, csv=wrong)
    with pytest.raises(ValueError, match="the source is none: leave csv out"):
        kng.stream([pd.DataFrame({"a": [1.0]})], csv={"separator": ";"})


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
    ['"1"2,3', "1", "1,2,3", "", 'a"b"c,1'],
    ids=repr,
)
def test_a_line_that_cannot_be_read_is_a_record_of_missing_cells(tmp_path, line):
    """And the lines around it are read as ever: a reader that went on in search of a quote would lose them."""
    path = written(tmp_path, f'a,b\n1,2\n{line}\n3,"4"\n'.encode())
    assert texts(path) == {"a": ["1", None, "3"], "b": ["2", None, "4"]}
    np.testing.assert_array_equal(numbers(path, "a"), [1.0, math.nan, 3.0])
    np.testing.assert_array_equal(numbers(path, "b"), [2.0, math.nan, 4.0])


@pytest.mark.parametrize("content", [b"", b'"a\n1\n', b"a,a\n1,2\n"], ids=["empty", "open quote", "a name twice"])
def test_a_header_that_is_none_is_refused(tmp_path, content):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=r"cannot be read as CSV$"):
        files.read(path)
    with pytest.raises(ValueError, match=r"reading the stream failed|two columns of one name"):
        kng.stream(path).collected(lambda pair: [pair])


def test_one_column_keeps_its_empty_lines(tmp_path):
    path = written(tmp_path, b'a\n1\n\n"3"\n4')
    assert texts(path) == {"a": ["1", "", "3", "4"]}
    (block,) = csv_files.numbers(path, ["a"])
    np.testing.assert_array_equal(block["a"], [1.0, math.nan, 3.0, 4.0])
    assert texts(written(tmp_path, b"a,b\n")) == {"a": [], "b": []}


WORDS = ("1e999", "NA", "true", "12345678901234567890")
CELLS = st.text("01.5eE+-x, \té\r\x00\ufeff", max_size=5) | st.sampled_from(WORDS)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3).map(",".join), max_size=8), st.sampled_from(("\n", "\r\n")))
def test_the_quick_way_for_streams_is_the_rule(tmp_path_factory, lines, end):
    path = written(tmp_path_factory.mktemp("lines"), end.join(["a,b", *lines]).encode())
    blocks = list(csv_files.numbers(path, ["a", "b"]))
    for name, column in texts(path).items():
        found = np.concatenate([np.empty(0), *(block[name] for block in blocks)])
        assert found.tobytes() == cells.numbers(column).tobytes()


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
    chunks = kng.stream(tmp_path / "data.parquet", columns=["a"]).collected(lambda pair: [pair])
    np.testing.assert_array_equal(cells.numbers(chunks[0][0]["a"]), [1.0, math.nan, 3.0])


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
@pytest.mark.parametrize("odd", ["unknown", "True", "", "NA", '""', "1e999", "x" * 10**6, str(2**64 + 1)])
def test_one_odd_cell_leaves_every_other_record(tmp_path, odd):
    """What a reader that guesses types did: it made text of the column, and of everybody the reference level."""
    from kngjax.data.terms import Categorical, Design, Polynomial

    design = Design((Categorical("g", (0, 1), missing=0), Polynomial("v", 0, 9, missing=4)))
    lines = [f"{row % 2},{row % 10}" for row in range(40)]
    before = design.matrix(files.read(written(tmp_path, "\n".join(["g,v", *lines]).encode())))
    for changed in (f"{odd},3", f"1,{odd}"):
        content = "\n".join(["g,v", *lines[:17], changed, *lines[18:]]).encode()
        after = design.matrix(files.read(written(tmp_path, content)))
        assert np.delete(before, 17, axis=0).tobytes() == np.delete(after, 17, axis=0).tobytes()
    assert before[:, 0].sum() == 20
