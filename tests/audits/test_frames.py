"""Pairs of frames that differ in one cell: the audit is silent, and sees a column that is made text as a whole."""

import narwhals as nw
import numpy as np

from audits import frames


def text_by_column(frame):
    """Text as `PublicPipeline` made it until 27 November 2026."""
    column = nw.from_native(frame, eager_only=True)["c"].cast(nw.String)
    return np.array(column.to_list(), dtype=object)[:, None]


def test_no_cell_changes_another_record():
    found = frames.frame_pairs(40)
    assert found.differences == ()
    assert found.passed
    assert found.tried == {"designs": 40, "a pipeline": 40}


def test_text_that_is_made_by_column_is_seen():
    found = frames.frame_pairs(400, places={"cast": text_by_column})
    assert any("pandas category of integers" in words for words in found.differences)
    assert not found.passed


def test_pairs_that_never_differ_are_no_pairs():
    assert not frames.frame_pairs(3, places={"constant": lambda frame: np.zeros((len(frame), 1))}).passed
