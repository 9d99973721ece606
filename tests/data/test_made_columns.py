"""Columns that are made of validated records are clipped as anybody's table is, and nothing else is taken for them."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.number_columns import MadeColumns
from kngjax.data.records import prepare

BOUNDS = kng.Bounds(x=([-0.3, 0.0, 2.0], [0.7, 1e50, 2.5]), intercept=False)


def test_they_are_clipped_to_the_same_numbers_as_a_table():
    made = np.random.default_rng(0).standard_cauchy((200, 3)) * 3.0
    made[:2] = [[1e308, -1e308, 5e-324], [-0.0, 0.1, 2.2]]
    wanted = prepare(BOUNDS, made, None, has_response=False)
    columns = np.ascontiguousarray(made.T)
    found = prepare(BOUNDS, MadeColumns(columns), None, has_response=False)
    np.testing.assert_array_equal(found.x, wanted.x)
    np.testing.assert_array_equal(found.y, wanted.y)
    # In place, and each in one piece.
    assert np.shares_memory(found.x, columns)
    assert not np.array_equal(found.x, made)


def test_what_asks_for_more_than_to_be_clipped_is_refused():
    refused = [
        kng.Bounds(x=(-1.0, 1.0), columns=3),
        kng.Bounds(intercept=True),
        kng.Bounds(x=(-1.0, 1.0), columns=3, intercept=False, weight=2.0),
    ]
    for bounds in refused:
        with pytest.raises(ValueError, match="made columns are clipped to a box"):
            MadeColumns(np.zeros((3, 5))).clipped_to(bounds)
    # Bounds of one column are of no more than one.
    for number, bounds in ((2, BOUNDS), (3, kng.Bounds(x=([0.0], [1.0]), intercept=False))):
        with pytest.raises(ValueError, match=f"there are {number} made columns"):
            MadeColumns(np.zeros((number, 5))).clipped_to(bounds)
    assert "OWNER ONLY" in repr(MadeColumns(np.zeros((3, 5))))
