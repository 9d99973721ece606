"""Splines, indicators, logarithms and products: their columns, exact bounds, and coefficients in own units."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.data.terms import Categorical, Design, Indicator, Polynomial, Product, Spline

AGE, REGION = Polynomial("age", 18, 80, degree=2), Categorical("region", ("north", "south", "west"))
INCOME = Polynomial("income", 100, 10_000, transform="log")
SPLINE = Spline("tenure", 0, 40, knots=(5, 10, 20))
EVERYTHING = Design(
    (
        AGE,
        REGION,
        INCOME,
        SPLINE,
        Indicator("age", ">=", 65),
        Product((AGE, REGION)),
        Product((INCOME, REGION)),
        Product((AGE, INCOME)),
    )
)


def records(count=60, seed=0):
    random = np.random.default_rng(seed)
    return {
        "age": random.uniform(0.0, 100.0, count),
        "region": random.choice(["north", "south", "west"], count),
        "income": np.exp(random.uniform(0.0, 12.0, count)),
        "tenure": random.uniform(-5.0, 50.0, count),
    }


def de_boor(v, knots, degree):
    """All B-splines at one number, by the recursion in Python."""
    spans = [
        float(low <= v < high or (v == high == knots[-1] and low < high)) for low, high in itertools.pairwise(knots)
    ]
    for order in range(1, degree + 1):
        spans = [
            (spans[k] * (v - knots[k]) / (knots[k + order] - knots[k]) if spans[k] else 0.0)
            + (
                spans[k + 1] * (knots[k + order + 1] - v) / (knots[k + order + 1] - knots[k + 1])
                if spans[k + 1]
                else 0.0
            )
            for k in range(len(knots) - order - 1)
        ]
    return spans


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_splines_are_those_of_the_recursion(degree):
    spline = Spline("v", -2, 7, knots=(0.5, 1, 6), degree=degree)
    knots = [-2.0] * (degree + 1) + [0.5, 1.0, 6.0] + [7.0] * (degree + 1)
    v = np.concatenate([np.linspace(-2.0, 7.0, 91), [0.5, 1.0, 6.0]])
    columns = spline.columns_of(v)
    assert columns.shape[1] == degree + 3 == len(spline.names)
    np.testing.assert_allclose(columns, [de_boor(one, knots, degree)[1:] for one in v], atol=1e-14)
    # The first, which is left out, is what the others lack to 1: so at the ends.
    np.testing.assert_array_equal(spline.columns_of([-2.0, -9.0]), np.zeros((2, degree + 3)))
    np.testing.assert_array_equal(spline.columns_of([7.0, 1e300])[:, -1], [1.0, 1.0])


def test_an_indicator_compares_with_a_public_number():
    ages = [64.9, 65, "65.0", 66, np.nan]
    for comparison, expected in {">": "00011", ">=": "01111", "<": "10000", "<=": "11100", "==": "01100"}.items():
        found = Indicator("age", comparison, 65, missing=70).columns_of(ages)
        assert "".join(str(int(one)) for one in found[:, 0]) == expected, comparison
    dropped = Indicator("age", "<", 65, missing="drop").columns_of(ages)
    assert np.isnan(dropped[-1, 0])
    assert not np.isnan(dropped[:-1]).any()


def test_a_logarithm_is_clipped_in_own_units():
    found = INCOME.columns_of([1.0, 100.0, 1000.0, 10_000.0, 1e9])
    np.testing.assert_allclose(found[:, 0], [-1.0, -1.0, 0.0, 1.0, 1.0], atol=1e-15)
    for lower, upper in ((0, 1), (-1, 1)):
        with pytest.raises(ValueError, match="positive bounds"):
            Polynomial("v", lower, upper, transform="log")
    with pytest.raises(ValueError, match="transform"):
        Polynomial("v", 1, 2, transform="sqrt")


def test_products_are_products():
    table = pl.DataFrame(records())
    matrix = EVERYTHING.matrix(table)
    names = EVERYTHING.basis_names[1:]
    for name, column in zip(names, matrix.T, strict=True):
        if ":" in name:
            left, right = name.split(":")
            np.testing.assert_array_equal(column, matrix[:, names.index(left)] * matrix[:, names.index(right)])
    assert EVERYTHING.columns == ("age", "region", "income", "tenure")


def test_bounds_hold_everywhere_and_are_reached():
    corners = {
        "age": np.linspace(18.0, 80.0, 125),
        "region": ["north", "south", "west"],
        "income": [100.0, 1000.0, 10_000.0],
    }
    grid = list(itertools.product(*corners.values()))
    columns = {name: np.array([row[k] for row in grid]) for k, name in enumerate(corners)}
    design = Design((AGE, REGION, INCOME, Product((AGE, REGION)), Product((AGE, INCOME))))
    matrix = design.matrix_of(columns)
    np.testing.assert_array_equal(matrix.min(axis=0), design.lower)
    np.testing.assert_array_equal(matrix.max(axis=0), design.upper)
    everything = EVERYTHING.matrix(pl.DataFrame(records(5000)))
    assert np.all(everything >= EVERYTHING.lower)
    assert np.all(everything <= EVERYTHING.upper)


def test_coefficients_in_own_units_predict_the_same():
    random = np.random.default_rng(1)
    theta, table = random.normal(size=len(EVERYTHING.names)), records()
    own = dict(zip(EVERYTHING.names, EVERYTHING.in_own_units(theta), strict=True))
    age, income = np.clip(table["age"], 18, 80), np.log(np.clip(table["income"], 100, 10_000))
    values = {"intercept": 1.0, "age": age, "age^2": age**2, "log(income)": income, "age >= 65": table["age"] >= 65}
    values |= {f"region[{level}]": table["region"] == level for level in REGION.levels}
    values |= dict(zip(SPLINE.names, SPLINE.columns_of(table["tenure"]).T, strict=True))

    def value(name):
        return np.prod([np.broadcast_to(values[part], age.shape) for part in name.split(":")], axis=0)

    by_own = sum(coefficient * value(name) for name, coefficient in own.items())
    by_basis = theta[0] + EVERYTHING.matrix_of(table) @ theta[1:]
    np.testing.assert_allclose(by_own, by_basis, rtol=1e-9, atol=1e-9)


@settings(max_examples=12)
@given(st.integers(0, 59), st.sampled_from(["age", "region", "income", "tenure"]), st.sampled_from([0, 1, 2, 3]))
def test_one_record_moves_no_other(row, column, seed):
    before = records()
    after = {name: values.copy() for name, values in before.items()}
    after[column][row] = records(4, seed=9)[column][seed]
    one, other = (EVERYTHING.matrix(pl.DataFrame(table)) for table in (before, after))
    rest = np.arange(60) != row
    assert one[rest].tobytes() == other[rest].tobytes()


def test_hulls_hold_all_records():
    design = Design((INCOME, REGION, Polynomial("age", 18, 80), Product((INCOME, REGION)), SPLINE))
    hull = design.hull()
    matrix = design.matrix(pl.DataFrame(records(2000)))
    start = 0
    for block, centre, facets in zip(hull.blocks, hull.centres, hull.facets, strict=True):
        stop = start + block.shape[1]
        assert np.max((matrix[:, start:stop] - centre) @ np.asarray(facets).T) <= 1.0 + 1e-9
        start = stop
    assert start == matrix.shape[1]


def test_terms_that_make_no_sense():
    for knots in ((0, 5), (5, 5), (7, 5), (5, 40)):
        with pytest.raises(ValueError, match="knots of column 'v' must increase"):
            Spline("v", 0, 40, knots=knots)
    with pytest.raises(TypeError, match="knots"):
        Spline("v", 0, 40, knots=("5",))
    with pytest.raises(ValueError, match="comparison"):
        Indicator("v", "!=", 0)
    with pytest.raises(ValueError, match="finite"):
        Indicator("v", ">", np.inf)
    with pytest.raises(ValueError, match="different columns"):
        Product((AGE, Indicator("age", ">", 65)))
    with pytest.raises(ValueError, match="two terms or more"):
        Product((AGE,))
    with pytest.raises(TypeError, match="terms of one column"):
        Product((AGE, Product((INCOME, REGION))))
    with pytest.raises(ValueError, match="needs the coefficient 'region"):
        Design((AGE, Product((AGE, REGION))))
    # Of zeros and ones alone the product has no part in others.
    Design((REGION, Product((REGION, Indicator("age", ">", 65)))))


def test_what_is_missing_in_a_product():
    drop = [Polynomial("age", 18, 80, missing="drop"), Categorical("region", REGION.levels, missing="north")]
    design = Design((*drop, Product(tuple(drop))))
    matrix = design.matrix_of({"age": np.array([np.nan, 30.0]), "region": np.array(["south", "nowhere"])})
    assert np.isnan(matrix[0]).tolist() == [True, False, False, True, True]
    assert matrix[1, 1:].tolist() == [0.0] * 4
    assert design.terms[-1].substitutes == ["drop", "drop"]
    assert Product((AGE, REGION)).substitutes == [None] * 4
