"""The regression basis: exact bounds and conversions, every kind of frame, errors that tell no value."""

import ast
import decimal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kngjax.data import terms
from kngjax.data.terms import Categorical, Design, Polynomial

SECRET = 4711.25  # a private value that no message may contain


@pytest.fixture
def design():
    return Design(
        (
            Polynomial("education", 0, 18),
            Polynomial("experience", -4, 60, degree=3),
            Categorical("region", ("north", "south", "west")),
        )
    )


def records(n=40):
    random = np.random.default_rng(3)
    return {
        "education": random.integers(0, 19, n),
        "experience": random.uniform(-4, 60, n),
        "region": random.choice(["north", "south", "west"], n),
        "wage": random.uniform(0, 1000, n),
    }


def as_polars_categorical(columns):
    return pl.DataFrame(columns).with_columns(pl.col("region").cast(pl.Categorical))


def as_arrow_dictionary(columns):
    table = pa.table(columns)
    position = table.column_names.index("region")
    return table.set_column(position, "region", table["region"].dictionary_encode())


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas of arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": lambda columns: pd.DataFrame(columns).astype({"region": "category"}),
    "pandas objects": lambda columns: pd.DataFrame(columns).astype({"region": object}),
    "polars": pl.DataFrame,
    "polars category": as_polars_categorical,
    "pyarrow": pa.table,
    "pyarrow dictionary": as_arrow_dictionary,
}


def test_names_in_both_bases(design):
    assert design.names == (
        "intercept",
        "education",
        "experience",
        "experience^2",
        "experience^3",
        "region[south]",
        "region[west]",
    )
    assert design.basis_names == (
        "intercept",
        "education P1",
        "experience P1",
        "experience P2",
        "experience P3",
        "region[south]",
        "region[west]",
    )


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_frame_gives_the_same_matrix(design, make):
    columns = records()
    u = (2 * columns["experience"] - 56) / 64
    expected = np.stack(
        [
            columns["education"] / 9 - 1,
            u,
            (3 * u**2 - 1) / 2,
            (5 * u**3 - 3 * u) / 2,
            columns["region"] == "south",
            columns["region"] == "west",
        ],
        axis=1,
    )
    matrix = design.matrix(make(columns))
    assert matrix.dtype == np.float64
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(matrix, design.matrix_of(columns))


@pytest.mark.parametrize("degree", range(1, 9))
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-4.0, 6.0), (-1.0, 1.0)])
def test_both_sets_of_coefficients_predict_the_same(degree, lower, upper):
    design = Design((Polynomial("v", lower, upper, degree), Categorical("group", (1, 2, 5))))
    random = np.random.default_rng(degree)
    theta = random.normal(size=len(design.names))
    v, group = random.uniform(lower, upper, 200), random.choice([1, 2, 5], 200)
    own = design.in_own_units(theta)
    powers = np.stack([v**power for power in range(degree + 1)], axis=1)
    by_powers = powers @ own[: degree + 1] + own[-2] * (group == 2) + own[-1] * (group == 5)
    by_basis = theta[0] + design.matrix_of({"v": v, "group": group}) @ theta[1:]
    np.testing.assert_allclose(by_powers, by_basis, rtol=1e-10, atol=1e-10)
    assert design.names[-1] == "group[5]"


def test_conversion_is_the_public_matrix_for_many_coefficients_at_once(design):
    thetas = np.random.default_rng(0).normal(size=(5, 7))
    many = design.in_own_units(thetas)
    for theta, own in zip(thetas, many, strict=True):
        np.testing.assert_allclose(own, design.own_units_matrix @ theta, rtol=1e-13)
    with pytest.raises(ValueError, match=r"shape \(3,\).*7 coefficients"):
        design.in_own_units(np.zeros(3))
    with pytest.raises(ValueError, match="7 coefficients"):
        design.in_own_units(1.0)


def test_the_bounds_of_the_first_polynomials():
    design = Design((Polynomial("v", 0, 1, 4),))
    np.testing.assert_allclose(design.lower, [-1, -1 / 2, -1, -3 / 7], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(design.upper, np.ones(4))


@pytest.mark.parametrize("degree", range(1, 9))
def test_bounds_are_attained_and_never_exceeded(degree):
    design = Design((Polynomial("v", -0.3, 17.1, degree), Categorical("w", (False, True))))
    grid = np.linspace(-0.3, 17.1, 100_001)
    matrix = design.matrix_of({"v": grid, "w": grid > 1})
    assert np.all(matrix >= design.lower)
    assert np.all(matrix <= design.upper)
    np.testing.assert_allclose(matrix.min(axis=0), design.lower, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(matrix.max(axis=0), design.upper)


finite = st.floats(-1e12, 1e12)


@pytest.mark.slow
@given(lower=finite, width=st.floats(1e-3, 1e12), values=st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_no_value_leaves_the_bounds(lower, width, values):
    design = Design((Polynomial("v", lower, lower + width, 8),))
    ends = [lower, lower + width]
    matrix = design.matrix_of({"v": np.array(values + ends)})
    assert np.all((design.lower <= matrix) & (matrix <= design.upper))
    np.testing.assert_array_equal(matrix[-2:, 0], [-1.0, 1.0])


def test_values_outside_are_clipped(design):
    inside = {"education": [0, 18], "experience": [-4.0, 60.0], "region": ["north", "south"]}
    outside = {"education": [-5, 90], "experience": [-1e9, 61.0], "region": ["north", "south"]}
    np.testing.assert_array_equal(design.matrix_of(outside), design.matrix_of(inside))


def test_a_frame_of_no_records(design):
    frame = pd.DataFrame(records()).head(0)
    assert design.matrix(frame).shape == (0, 6)


def test_single_values_fill_a_grid(design):
    ages = np.linspace(0, 60, 7)
    curve = design.matrix_of({"education": 12, "experience": ages, "region": "south"})
    full = {"education": np.full(7, 12), "experience": ages, "region": np.full(7, "south")}
    np.testing.assert_array_equal(curve, design.matrix_of(full))
    point = {"education": 12, "experience": 3.0, "region": "west"}
    assert design.matrix_of(point).shape == (1, 6)
    for wrong in (np.zeros(3), np.zeros((7, 1))):
        with pytest.raises(ValueError, match="one axis and one length"):
            design.matrix_of(full | {"education": wrong})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_numbers_and_bools_of_all_types(make):
    union, grade = Categorical("union", (False, True)), Categorical("grade", (1, 2))
    design = Design((Polynomial("v", 0, 10), union, grade))
    expected = np.array([[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    for values in (np.array([0, 10], np.uint8), np.array([0, 10], np.float32), [0, 10]):
        frame = make({"v": values, "union": [True, False], "grade": [1, 2]})
        np.testing.assert_array_equal(design.matrix(frame), expected)
    assert design.names == ("intercept", "v", "union[True]", "grade[2]")


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_decimals(make):
    frame = make({"v": [decimal.Decimal("0.0"), decimal.Decimal("10.0")]})
    np.testing.assert_array_equal(Design((Polynomial("v", 0, 10),)).matrix(frame), [[-1.0], [1.0]])


def test_nullable_bools_and_text_and_fixed_categories():
    design = Design((Categorical("union", (False, True)), Categorical("region", ("north", "south"))))
    union = pd.array([True, False], dtype="boolean")
    for frame in (
        pd.DataFrame({"union": union, "region": pd.array(["south", "north"], dtype="string")}),
        pd.DataFrame({"union": union.astype("bool[pyarrow]"), "region": ["south", "north"]}),
        pl.DataFrame(
            {"union": [True, False], "region": ["south", "north"]},
            schema_overrides={"region": pl.Enum(["north", "moon", "south"])},
        ),
    ):
        np.testing.assert_array_equal(design.matrix(frame), [[1.0, 1.0], [0.0, 0.0]])


def test_integers_beyond_the_digits_of_a_float_are_rounded_in_silence():
    values = [2**53 + 1, 0]
    design = Design((Polynomial("v", 0, 1),))
    for frame in (pa.table({"v": values}), pl.DataFrame({"v": values}), pd.DataFrame({"v": values})):
        np.testing.assert_array_equal(design.matrix(frame), [[1.0], [-1.0]])


MISSING = {
    "pandas NaN": pd.DataFrame({"v": [SECRET, np.nan]}),
    "pandas infinity": pd.DataFrame({"v": [SECRET, -np.inf]}),
    "pandas nullable": pd.DataFrame({"v": pd.array([SECRET, None], dtype="Float64")}),
    "pandas integers": pd.DataFrame({"v": pd.array([4711, None], dtype="Int64")}),
    "polars null": pl.DataFrame({"v": [SECRET, None]}),
    "polars NaN": pl.DataFrame({"v": [SECRET, float("nan")]}),
    "pyarrow null": pa.table({"v": [SECRET, None]}),
    "pyarrow infinity": pa.table({"v": [SECRET, float("inf")]}),
}
# By the rule of cells no different from the above.
MISSING |= {
    "pandas text": pd.DataFrame({"v": [str(SECRET), "NA"]}),
    "pandas objects": pd.DataFrame({"v": [SECRET, "unknown"]}, dtype=object),
    "polars text": pl.DataFrame({"v": [str(SECRET), "1e999"]}),
    "pyarrow text": pa.table({"v": [str(SECRET), ""]}),
}
MISSING_TEXT = (
    "column 'v' has cells that are missing, infinite, no number or no declared level: give the term a public value in "
    "their place, missing=..., or missing='drop' under add_remove."
)
LEVELS = {
    "pandas": pd.DataFrame({"v": ["a", None, "secret", "b"]}),
    "pandas objects": pd.DataFrame({"v": ["a", np.nan, 4711, "b"]}, dtype=object),
    "pandas category": pd.DataFrame({"v": pd.Categorical(["a", None, "secret", "b"])}),
    "polars": pl.DataFrame({"v": ["a", None, "secret", " b"]}),
    "pyarrow": pa.table({"v": ["a", None, "secret", "b"]}),
}


@pytest.mark.parametrize("frame", MISSING.values(), ids=MISSING)
def test_missing_numbers_are_refused_with_a_constant_text(frame):
    design = Design((Polynomial("v", 0, 1),))
    with pytest.raises(ValueError, match="are missing") as caught:
        design.matrix(frame)
    assert str(caught.value) == MISSING_TEXT


@pytest.mark.parametrize("frame", MISSING.values(), ids=MISSING)
def test_missing_numbers_have_one_public_policy(frame):
    """The first cell is far above the bounds."""
    replaced = Design((Polynomial("v", 0, 4, missing=1.0),))
    np.testing.assert_array_equal(replaced.matrix(frame), [[1.0], [-0.5]])
    dropped = Design((Polynomial("v", 0, 4, degree=2, missing="drop"), Categorical("v2", (0, 1))))
    matrix = dropped.matrix_of({"v": frame["v"], "v2": 1})
    np.testing.assert_array_equal(matrix, [[1.0, 1.0, 1.0], [np.nan, np.nan, 1.0]])


@pytest.mark.parametrize("frame", LEVELS.values(), ids=LEVELS)
def test_undeclared_levels_have_the_same_policies(frame):
    replaced = Design((Categorical("v", ("a", "b", "c"), missing="c"),))
    np.testing.assert_array_equal(replaced.matrix(frame), [[0, 0], [0, 1], [0, 1], [1, 0]])
    reference = Design((Categorical("v", ("a", "b", "c"), missing="a"),))
    np.testing.assert_array_equal(reference.matrix(frame), [[0, 0], [0, 0], [0, 0], [1, 0]])
    dropped = Design((Categorical("v", ("a", "b", "c"), missing="drop"),))
    np.testing.assert_array_equal(dropped.matrix(frame), [[0, 0], [np.nan] * 2, [np.nan] * 2, [1, 0]])


def test_policies_that_make_no_sense():
    for wrong in (-1, 1.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="missing of column 'v' must be between its bounds"):
            Polynomial("v", 0, 1, missing=wrong)
    for wrong in ("mean", True):
        with pytest.raises(TypeError, match="missing of column 'v' must be a number, 'drop' or None"):
            Polynomial("v", 0, 1, missing=wrong)
    for wrong in ("c", 1):
        with pytest.raises(ValueError, match="missing of column 'v' must be one of its levels"):
            Categorical("v", ("a", "b"), missing=wrong)
    with pytest.raises(ValueError, match="two meanings"):
        Categorical("v", ("keep", "drop"), missing="drop")


@pytest.mark.parametrize("frame", LEVELS.values(), ids=LEVELS)
def test_missing_levels_are_refused_with_a_constant_text(frame):
    design = Design((Categorical("v", ("a", "b")),))
    with pytest.raises(ValueError, match="missing") as caught:
        design.matrix(frame)
    assert str(caught.value) == MISSING_TEXT


@pytest.mark.parametrize("values", [[1.0, np.nan], np.array([1, None], dtype=object)])
def test_missing_levels_in_arrays(values):
    with pytest.raises(ValueError, match="column 'v' has cells that are missing"):
        Design((Categorical("v", (1, 2)),)).matrix_of({"v": values})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_the_wrong_kind(make):
    frame = make({"t": np.array([4711, 1], "datetime64[ms]")})
    for term in (Polynomial("t", 0, 1), Categorical("t", ("a", "b"))):
        for use in (Design((term,)).matrix, Design((term,)).check):
            with pytest.raises(TypeError, match="the type of column 't' holds neither numbers nor text") as caught:
                use(frame)
            assert "4711" not in str(caught.value)
            assert caught.value.__cause__ is None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("odd", ["unknown", "True", "secret", ""])
def test_a_cell_that_is_no_number_leaves_the_others_levels(make, odd):
    """A reader that guesses types would make text of the whole column for one such cell."""
    design = Design((Categorical("v", (0, 1), missing=0), Polynomial("w", 0, 2, missing=1)))
    before = design.matrix(make({"v": [0, 1, 0, 1], "w": [0, 1, 2, 1]}))
    after = design.matrix(make({"v": ["0", "1", odd, "1"], "w": ["0", "1", odd, "1"]}))
    np.testing.assert_array_equal(before[[0, 1, 3]], after[[0, 1, 3]])
    np.testing.assert_array_equal(after[2], [odd == "True", 0.0])


def test_numbers_have_the_levels_that_are_their_text_and_text_those_of_its_letters():
    design = Design((Categorical("v", ("1", "2", "02"), "1"),))
    np.testing.assert_array_equal(design.matrix_of({"v": np.array([1, 2])}), [[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(design.matrix_of({"v": ["02", "2", "2.0"]}), [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])


def test_absent_columns_and_other_data(design):
    frame = pd.DataFrame({"a": [SECRET], "b": [1.0], "c": [2.0]})
    with pytest.raises(ValueError, match="names the column 'education', which the data do not have"):
        design.matrix(frame)
    with pytest.raises(ValueError, match="names the column 'education'"):
        design.matrix_of({"a": 1.0})
    with pytest.raises(TypeError, match=r"pandas, polars or pyarrow frame, not ndarray") as caught:
        design.matrix(np.full((2, 2), SECRET))
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize("bounds", [(1, 1), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), (-1.7e308, 1.7e308)])
def test_bounds_must_be_finite_and_in_order(bounds):
    with pytest.raises(ValueError, match="bounds of column 'v' must be finite with lower < upper"):
        Polynomial("v", *bounds)


@pytest.mark.parametrize(("upper", "degree"), [(5e-324, 1), (1e-310, 1), (1e-200, 2)])
def test_bounds_too_near_for_coefficients_are_refused(upper, degree):
    """A release was paid for, and its coefficients were infinite or NaN."""
    for from_zero in (False, True):
        with pytest.raises(ValueError, match="near to each other that its coefficients would be infinite"):
            Polynomial("v", 0, upper, degree, from_zero=from_zero)
        assert np.all(np.isfinite(Polynomial("v", 0, 1.001e-30, 8, from_zero=from_zero).own_units))


@pytest.mark.parametrize("degree", [0, -1, 9])
def test_degrees_out_of_range(degree):
    with pytest.raises(ValueError, match="degree for column 'v' must be 1 to 8"):
        Polynomial("v", 0, 1, degree)


def test_arguments_of_other_types():
    # A run-time type checker, where one is on, may be the first to speak.
    for degree in (1.5, True, "2"):
        with pytest.raises(TypeError, match="degree"):
            Polynomial("v", 0, 1, degree)
    with pytest.raises(TypeError, match="lower"):
        Polynomial("v", "0", 1)
    with pytest.raises(TypeError, match="column"):
        Polynomial("", 0, 1)
    with pytest.raises(TypeError, match="levels"):
        Categorical("v", "ab")
    with pytest.raises(TypeError, match="terms"):
        Design(("education",))


def test_levels_must_be_several_different_and_of_one_kind():
    for levels in ((), ("a",)):
        with pytest.raises(ValueError, match="column 'v' needs two levels or more"):
            Categorical("v", levels)
    for levels in (
        ("a", "b", "a"),
        (1, True),
        ("a", " a"),
        (2**53, 2**53 + 1),
        ("\u00e9", "e\u0301"),
        ("a\u00a0", "a"),
    ):
        with pytest.raises(ValueError, match="levels of column 'v' must be all different"):
            Categorical("v", levels)
    for levels in (("01882", "1882"), ("1", "1.0"), ("true", "True", "1")):
        assert Categorical("v", levels).levels == levels
    for levels in (("a", 1), (1.0, np.nan), (0, 10**400)):
        with pytest.raises(TypeError, match="levels of column 'v' must be all text or all finite numbers"):
            Categorical("v", levels)


def test_designs_that_make_no_sense():
    with pytest.raises(ValueError, match="at least one term"):
        Design(())
    with pytest.raises(ValueError, match="column 'v' has two terms"):
        Design((Polynomial("v", 0, 1), Categorical("v", ("a", "b"))))
    with pytest.raises(ValueError, match="would be called 'intercept'"):
        Design((Polynomial("intercept", 0, 1),))
    with pytest.raises(ValueError, match=r"would be called 'v\^2'"):
        Design((Polynomial("v", 0, 1, 2), Polynomial("v^2", 0, 1)))


def test_terms_are_values(design):
    assert hash(design) == hash(Design(design.terms))
    assert Polynomial("v", 0, 1) == Polynomial("v", 0.0, 1.0)
    with pytest.raises(AttributeError):
        design.terms = ()


def test_the_module_is_plain_numpy():
    """But for the polytope that a design gives, in whose own module JAX is."""
    nodes = [
        node
        for file in Path(terms.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            rooms = [f"{node.module}.{alias.name}" for alias in node.names]
            imported |= set(rooms if node.module in ("kngjax", "kngjax.data") else [node.module])
    own = {name for name in imported if name.startswith("kngjax.data.terms")}
    foreign = {name for name in imported - own if name.split(".")[0] in ("jax", "equinox", "kngjax")}
    plain = {"kngjax.data.cells", "kngjax.data.named_columns", "kngjax.core.errors"}
    assert foreign == {*plain, "kngjax.geometry.feature_hulls"}
    program = "import sys, kngjax.data.terms; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "kngjax.data.terms" in loaded
    assert not {"jax", "equinox", "scipy", "kngjax.geometry.feature_hulls"} & set(loaded)
