"""Bounds are promises about one record: what they say, and which are none."""

import jax
import jax.numpy as jnp
import numpy as np
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
