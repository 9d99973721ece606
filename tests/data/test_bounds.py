"""Bounds are promises about one record: what they say, and which are none."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng


def test_scalars_and_arrays_and_the_intercept():
    scalars = kng.Bounds(x=(0.0, 1.0))
    assert (scalars.columns, scalars.dimension) == (None, None)
    lower, upper = scalars.features(3)
    np.testing.assert_array_equal(lower, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(upper, [1.0, 1.0, 1.0])
    mixed = kng.Bounds(x=(-1.0, np.array([1.0, 2.0])), intercept=False)
    assert (mixed.columns, mixed.dimension) == (2, 2)
    np.testing.assert_array_equal(mixed.features(2), [[-1.0, -1.0], [1.0, 2.0]])
    alone = kng.Bounds()
    assert (alone.columns, alone.dimension) == (0, 1)
    np.testing.assert_array_equal(alone.features(1), [[1.0], [1.0]])


def test_bounds_keep_all_their_digits():
    assert kng.Bounds(x=(0.1, 0.7)).x_lower.dtype == np.float64
    np.testing.assert_array_equal(kng.Bounds(x=[0, 1]).x_upper, 1.0)


def test_bounds_can_be_mapped_over():
    lowers = jnp.array([-1.0, -2.0])
    stacked = jax.vmap(lambda lower: kng.Bounds(x=(lower, 1.0)))(lowers)
    np.testing.assert_array_equal(jax.vmap(lambda bounds: bounds.features(2)[0][1])(stacked), lowers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": (1.0, 0.0)}, "bounds of x are reversed"),
        ({"x": (np.array([0.0, 2.0]), np.ones(2))}, "bounds of x are reversed"),
        ({"x": (0.0, np.inf)}, "bounds of x must be finite"),
        ({"x": (np.nan, 1.0)}, "bounds of x must be finite"),
        ({"x": (0.0, 0.0)}, r"bounds \(0, 0\) carries no information"),
        ({"x": (np.array([0.0, -1.0]), np.array([0.0, 1.0]))}, r"bounds \(0, 0\) carries no information"),
        ({"x": (np.zeros(2), np.ones(3))}, "have 2 lower and 3 upper values"),
        ({"x": (np.zeros((2, 2)), 1.0)}, "scalars or have one value a column"),
        ({"x": 1.0}, r"must be a pair \(lower, upper\)"),
        ({"x": (0.0, 0.5, 1.0)}, r"must be a pair \(lower, upper\)"),
        ({"intercept": False}, "neither x nor an intercept"),
        ({"y": (2.0, 1.0)}, "bounds of y are reversed"),
        ({"y": (1.0, 1.0)}, "bounds of y are equal"),
        ({"y": (0.0, np.inf)}, "bounds of y must be finite"),
        ({"y": (np.zeros(2), np.ones(2))}, "bounds of y must be two scalars"),
    ],
)
def test_bounds_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        kng.Bounds(**arguments)


def test_the_upper_bound_of_the_response_alone_may_not_be_an_array():
    with pytest.raises(ValueError, match="bounds of y must be two scalars"):
        kng.Bounds(y=(0.0, np.ones(2)))


def test_a_constant_column_other_than_zero_is_a_feature():
    assert kng.Bounds(x=(2.0, 2.0), intercept=False).features(1)[0] == 2.0


NAMED = {"education": (0, 18), "experience": (-1, 60)}


def test_bounds_by_name_are_those_of_the_columns_in_their_order():
    named = kng.Bounds(x=NAMED, y=(0.0, 9.0))
    np.testing.assert_array_equal(named.features(3), [[1.0, 0.0, -1.0], [1.0, 18.0, 60.0]])
    assert (named.names, named.columns, named.dimension) == (("education", "experience"), 2, 3)
    assert named.coefficients == ("intercept", "education", "experience")
    assert repr(named) == 'Bounds(x={"education": (0.0, 18.0), "experience": (-1.0, 60.0)}, y=(0.0, 9.0))'
    assert kng.Bounds(x=NAMED, intercept=False).coefficients == ("education", "experience")


def test_a_number_of_columns_or_their_names_fix_scalar_bounds():
    for columns, names in ((3, None), (["a", "b", "c"], ("a", "b", "c"))):
        bounds = kng.Bounds(x=(0.0, 2.0), columns=columns)
        np.testing.assert_array_equal(bounds.features(4), [[1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 2.0, 2.0]])
        assert (bounds.columns, bounds.names) == (3, names)


AMBIGUOUS = [[(1, 5), (2, 18)], ([0, 1], [1, 18]), ((0.0, 1.0), (2.0, 3.0))]


@pytest.mark.parametrize("x", AMBIGUOUS)
def test_lists_that_may_be_pairs_are_refused(x):
    with pytest.raises(ValueError, match=r"can be read in two ways.*by name, x=\{'age': \(0, 99\)"):
        kng.Bounds(x=x)
    arrays = kng.Bounds(x=tuple(np.array(side) for side in x))
    declared = kng.Bounds(x=x, columns=["a", "b"])
    for bounds in (arrays, declared):
        np.testing.assert_array_equal(bounds.x_lower, x[0])
        np.testing.assert_array_equal(bounds.x_upper, x[1])


def test_lists_that_can_be_no_pairs_are_lower_and_upper_bounds():
    for x in (([0, 0], [1, 1]), ([0, -1], [1, 18]), ([0, 1, 2], [1, 2, 3])):
        np.testing.assert_array_equal(kng.Bounds(x=x).x_upper, x[1])
    with pytest.raises(ValueError, match=r"pair \(lower, upper\), or by name, x="):
        kng.Bounds(x=[(0, 1), (0, 18), (1, 2)])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"x": {"a": 3.0}}, ValueError, "bounds of column 'a' must be a pair of numbers"),
        ({"x": {"a": (0.0, 1.0), "b": (1.0, 0.0)}}, ValueError, "bounds of x are reversed"),
        ({"x": {}}, ValueError, "need a column"),
        ({"x": {3: (0.0, 1.0)}}, TypeError, "names of columns must be text"),
        ({"x": NAMED, "columns": 2}, ValueError, "leave columns out"),
        ({"x": (0.0, 1.0), "columns": ["a", "a"]}, ValueError, "each column once"),
        ({"x": (0.0, 1.0), "columns": "ab"}, TypeError, "a number or a list of names"),
        ({"x": (0.0, 1.0), "columns": 0}, ValueError, "at least 1"),
        ({"x": (np.zeros(2), np.ones(2)), "columns": 3}, ValueError, "for 2 columns, and 3 are named"),
        ({"x": {"intercept": (0.0, 1.0)}}, ValueError, "may not be called 'intercept'"),
        ({"x": (2.0, 2.0), "columns": 1}, ValueError, "constant, as the intercept is"),
        ({"x": {"a": (0.0, 1.0), "b": (3.0, 3.0)}}, ValueError, "constant, as the intercept is"),
        (
            {"x": NAMED, "missing": 19.0},
            ValueError,
            r"missing = 19 lies outside of the bounds \[0, 18\] of column 'education'$",
        ),
        ({"x": NAMED, "missing": {"experience": -2.0}}, ValueError, r"bounds \[-1, 60\] of column 'experience'$"),
        ({"x": (0.0, np.ones(2)), "missing": [0.5, 2.0]}, ValueError, r"\[0, 1\] of column 1 \(from 0\)$"),
        ({"x": (0.0, 1.0), "missing": 50}, ValueError, r"missing = 50 lies outside of the bounds \[0, 1\]$"),
        ({"x": NAMED, "missing": {"age": 1.0}}, ValueError, r"missing names \['age'\], which are no columns"),
        ({"x": NAMED, "missing": [1.0]}, ValueError, "1 values for 2 columns"),
        ({"x": NAMED, "missing": "mean"}, TypeError, "a finite number, 'drop' or None"),
        ({"x": NAMED, "missing": np.nan}, TypeError, "a finite number"),
        ({"x": (0.0, 1.0), "missing": {"a": 0.5}}, ValueError, "needs the names of the columns"),
        ({"y": (0.0, 1.0), "missing_y": 2.0}, ValueError, "missing_y = 2 lies outside"),
    ],
)
def test_names_and_policies_that_are_none(arguments, kind, message):
    with pytest.raises(kind, match=message):
        kng.Bounds(**arguments)


def test_promises_do_not_move_with_the_arrays_they_were_made_of():
    shares = np.array([0.5, 0.25, 0.25])
    lower, upper, weights = np.zeros(2), np.array([1.0, 18.0]), np.array([1.0, 2.0])
    matrix, vertices = np.eye(2), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    parts = [
        kng.Bounds(x=(lower, upper)),
        kng.Box(lower, upper),
        kng.WeightedLInf(weights),
        kng.Ellipsoid(matrix),
        kng.geometry.FeatureHull(vertices),
        kng.Polytope(np.array([[1.0, 0.0], [0.0, 1.0]]) * weights),
        kng.BaseMeasure(dist.Normal(lower, weights)),
        kng.AdaSSP(kng.Bounds(x=(lower, upper), y=(0.0, 1.0)), 1.0, 1e-6, "replace", shares=shares),
    ]
    before = [[np.array(leaf) for leaf in jax.tree.leaves(part)] for part in parts]
    for array in (lower, upper, weights, matrix, vertices, shares):
        array += 7.0
    for part, leaves in zip(parts, before, strict=True):
        for leaf, was in zip(jax.tree.leaves(part), leaves, strict=True):
            np.testing.assert_array_equal(leaf, was)
    for part in parts[:4]:
        for leaf in jax.tree.leaves(part):
            with pytest.raises(ValueError, match="read-only"):
                leaf[...] = 0.0


def test_what_becomes_of_missing_values_is_said_in_one_sentence():
    assert kng.Bounds(x=NAMED).explain_missing() == (
        "cells that are missing, NaN, infinite, no number or no level: in X they make a release fail, in the response "
        "they make a release fail"
    )
    told = kng.Bounds(x=NAMED, missing={"education": 12}, missing_y="drop").explain_missing()
    assert "in education they count as 12.0, in experience they make a release fail" in told
    assert told.endswith("in the response their records are left out")
    assert "response" not in kng.Bounds(x=NAMED, intercept=False, missing="drop").explain_missing(has_response=False)


@pytest.mark.parametrize("x", [["a", "b"], ("0", "1"), {"a": ("0", "1")}, (["0"] * 3, ["1"] * 3)])
def test_text_is_no_bound(x):
    with pytest.raises(TypeError, match=r"bounds of x must be numbers, got .*text"):
        kng.Bounds(x=x)
