"""Summaries have facts in two columns, a line a row, and numbered notes; notebooks get real tables, escaped."""

import re

import numpy as np
import pandas as pd

from kngjax.core.summary_table import WIDTH, SummaryTable, names_of

FACTS = [("mechanism", "KNG"), ("epsilon", "1"), ("guarantee", "a sentence " * 20)]
ROWS = [("north", 1.23456, 12.0), ("south", float("nan"), float("inf"))]
TABLE = SummaryTable("Private mean", FACTS, ("region", "estimate", "upper"), ROWS, notes=["the last"])


def test_short_facts_stand_in_two_columns_and_long_ones_are_notes():
    lines = str(TABLE).splitlines()
    assert lines[0].strip() == "Private mean"
    assert re.split(r"\s{2,}", lines[2])[::2] == ["mechanism:", "epsilon:"]
    assert lines[2].endswith(" 1")
    [first] = [place for place, line in enumerate(lines) if line.startswith("[1] guarantee: a sentence")]
    assert lines[-1] == "[2] the last"
    assert all(line.startswith("    ") for line in lines[first + 1 : -1])
    assert all(len(line) <= WIDTH for line in lines)


def test_each_row_is_a_line_whose_numbers_are_below_their_heads():
    head, rule, *rows = TABLE.numbers().splitlines()
    assert rule == "-" * WIDTH
    assert [row.split() for row in rows] == [["north", "1.2346", "12"], ["south", "-", "inf"]]
    assert {len(line) for line in (head, *rows)} == {len(head)}


def test_names_that_would_make_a_table_too_wide_for_a_terminal_take_several_lines():
    names = ("a regression with a formula " * 3, "a mechanism by a draw " * 4)
    wide = SummaryTable("Plan", (), ("release", "mechanism", "epsilon"), [(*names, "0.25"), ("sum", "", "0.25")], 2)
    head, rule, *rows = wide.numbers().splitlines()
    assert 2 < len(rows) < 8
    assert max(map(len, (head, rule, *rows))) <= 100
    assert [row.split()[-1] for row in (rows[0], rows[-1])] == ["0.25", "0.25"]
    # Nothing is cut off.
    words = " ".join(" ".join(row[: head.index("mechanism")] for row in rows).split())
    assert words == f"{names[0].strip()} sum"


def test_a_frame_keeps_the_keys_that_tell_rows_apart_and_columns_with_numbers():
    frame = pd.DataFrame({"region": ["a", "b"], "what": "mean", "estimate": [1, 2], "noise": np.nan})
    found = SummaryTable.of_frame("Of groups", (), frame, 2)
    assert (found.heads, found.keys) == (("region", "estimate"), 1)
    assert found.rows == [("a", 1), ("b", 2)]
    # A single row keeps its names.
    assert SummaryTable.of_frame("Of one", (), frame.head(1), 2).heads == ("region", "what", "estimate")


def test_a_notebook_gets_tables_with_captions_and_scopes_and_nothing_unescaped():
    text = "<script>"
    hostile = SummaryTable(text, [(text, text)], (text, text), [(text, text)], notes=[text])
    html = hostile._repr_html_()
    assert text not in html
    assert html.count("&lt;script&gt;") == 8
    for part in ("<caption>", 'scope="col"', 'scope="row"', "<thead>", "<tbody>", "<li>"):
        assert part in html
    assert TABLE._repr_html_().count("<table>") == TABLE._repr_html_().count("<caption>") == 2
    assert SummaryTable("of facts", FACTS)._repr_html_().count("<table>") == 1


def test_numbers_without_names_have_their_places():
    assert names_of(None, 2) == ("value[0]", "value[1]")
    assert names_of(("a", "b"), 2) == ("a", "b")
