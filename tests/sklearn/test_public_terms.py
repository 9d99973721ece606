"""A public design as a transformer: columns by record, names, bounds, missing cells."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.sklearn import PublicTerms

TERMS = (
    kng.terms.Polynomial("age", 20, 70, degree=2),
    kng.terms.Categorical("region", ("north", "south", "west")),
    kng.terms.Product(
        (kng.terms.Polynomial("age", 20, 70), kng.terms.Categorical("region", ("north", "south", "west")))
    ),
)
NAMES = ["age P1", "age P2", "region[south]", "region[west]"]
FRAME = pd.DataFrame(
    {"region": ["south", "north", "elsewhere", "west"], "age": [45.0, 70.0, 30.0, np.nan]}, index=[3, 1, 4, 9]
)


def test_columns_have_names_and_bounds():
    design = PublicTerms(terms=TERMS).set_output(transform="pandas")
    made = design.fit_transform(FRAME)
    assert made.columns[:4].tolist() == NAMES
    assert made.columns.tolist() == design.get_feature_names_out().tolist() == list(design.get_bounds_out())
    assert made.index.tolist() == [3, 1, 4, 9]
    np.testing.assert_allclose(made.loc[3], [0.0, -0.5, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(made.loc[1], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert design.get_bounds_out()["age P2"] == (-0.5, 1.0)
    assert design.get_bounds_out()["region[west]"] == (0.0, 1.0)
    polars = PublicTerms(terms=TERMS).set_output(transform="polars").fit_transform(pl.DataFrame(FRAME.to_dict("list")))
    assert isinstance(polars, pl.DataFrame)
    np.testing.assert_array_equal(polars.to_numpy(), made.to_numpy())


def test_missing_cells_are_nan_and_no_error():
    made = PublicTerms(terms=TERMS).transform(FRAME)
    assert np.isnan(made[2]).tolist() == [False, False, True, True, True, True]
    assert np.isnan(made[3]).tolist() == [True, True, False, False, True, True]
    filled = PublicTerms(terms=(kng.terms.Polynomial("age", 20, 70, missing=45.0),)).transform(FRAME)
    assert filled[3] == 0.0


def test_one_record_moves_its_own_row_alone():
    design = PublicTerms(terms=TERMS)
    before, changed = design.transform(FRAME), FRAME.copy()
    changed.loc[4, ["age", "region"]] = [69.0, "west"]
    after = design.transform(changed)
    assert not np.array_equal(after[2], before[2])
    np.testing.assert_array_equal(np.delete(after, 2, 0), np.delete(before, 2, 0))


def test_arrays_have_positions_and_what_is_no_term_is_refused():
    made = PublicTerms(terms=(kng.terms.Polynomial("x1", 0, 10),)).fit_transform(np.array([[5.0, 10.0], [5.0, 0.0]]))
    np.testing.assert_array_equal(made, [[1.0], [-1.0]])
    for terms in (None, (), "age"):
        with pytest.raises(ValueError, match="terms must be"):
            PublicTerms(terms=terms).fit(FRAME)
    with pytest.raises(ValueError, match="names the column 'age'"):
        PublicTerms(terms=TERMS).fit(FRAME[["region"]])
