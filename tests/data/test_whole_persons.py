"""Batches that are cut anew hold all rows of a person, and shares are the same in all divisions into such batches."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kngjax.data.marks import mixed
from kngjax.data.persons import shares
from kngjax.data.work import whole_persons

MAKE = {
    "record batches": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "polars": pl.from_pandas,
    "pandas": lambda frame: frame,
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_every_person_is_in_one_batch_with_all_rows(make, rows):
    sizes = [1, 3, 1, 14, 7, 7, 1, 2, 40, 2, 1]
    frame = pd.DataFrame({"own": np.repeat(list("abcdefghijk"), sizes), "row": np.arange(sum(sizes))})
    batches = [make(frame.iloc[start : start + rows]) for start in range(0, len(frame), rows)]
    found = [pa.table(pl.DataFrame(one)).to_pylist() for one in whole_persons([batches[0][:0], *batches], "own")]
    assert [one for batch in found for one in batch] == frame.to_dict("records")
    persons = [{one["own"] for one in batch} for batch in found]
    assert sum(map(len, persons)) == len(sizes)
    # Each is as large as what came, or as one person and what came with the first and the last row.
    assert all(len(batch) <= max(sizes) + 2 * rows for batch in found)


def test_rows_without_identifier_divide_no_persons_rows_wherever_they_stand():
    every = ["a", None, "a"], [None], ["a", "b", None], [None, None, "b"]
    batches = [pa.table({"own": pa.array(cells, pa.string())}) for cells in every]
    found = [one["own"].to_pylist() for one in whole_persons(batches, "own")]
    assert [sorted(one) for one in found if None not in one] == [["a", "a", "a"], ["b", "b"]]
    assert [one for one in found if None in one] == [[None], [None], [None], [None, None]]


@pytest.mark.parametrize("cells", [[["a", "b"], ["a"]], [["b", "a"]], [["b"], [None], ["a"]], [["b", None, "a"]]])
def test_what_is_not_sorted_is_not_read(cells):
    """A person in two batches would have two votes."""
    with pytest.raises(ValueError, match="not sorted"):
        list(whole_persons([pa.table({"own": pa.array(one, pa.string())}) for one in cells], "own"))


@pytest.mark.parametrize("most_rows", [1, 3])
def test_shares_go_by_what_is_read_of_own_rows_whatever_their_order_and_the_others(most_rows):
    generator = np.random.default_rng(5)
    codes, cells = np.repeat([0, 1, 2], [7, 1, 300]), generator.normal(size=308)
    made = shares(codes, most_rows, mixed([cells]))
    totals = np.bincount(codes, made.weights)
    np.testing.assert_array_equal(totals, np.minimum([7, 1, 300], most_rows))
    assert made.persons == 3
    order = generator.permutation(308)
    again = shares(codes[order], most_rows, mixed([cells[order]]))
    np.testing.assert_array_equal(again.weights, made.weights[order])
    alone = shares(np.zeros(300, np.int64), most_rows, mixed([cells[codes == 2]]))
    np.testing.assert_array_equal(alone.weights, made.weights[codes == 2])
    # 2^19 is no multiple of 7, nor are three of them.
    assert len(set(made.weights[:7])) == 2
