"""Formulas have the columns that formulaic makes of them, and neither more nor fewer."""

import itertools

import formulaic
import numpy as np
import pandas as pd
import pytest

from kngjax.data.formulas import read
from kngjax.data.terms import Categorical, Design, Polynomial, Product

LEVELS = {"a": ("p", "q"), "b": ("u", "v", "w"), "c": ("k", "l")}
# None is about zero, one does not hold it.
BOUNDS = {"x": (2, 5), "z": (-1, 3), "w": (-4, -1)}
OPERATORS = ("+", ":", "*", "/")


def full_crossing(seed: int = 0, copies: int = 12) -> pd.DataFrame:
    """All combinations of levels, each with several numbers."""
    random = np.random.default_rng(seed)
    crossed = pd.DataFrame(list(itertools.product(*LEVELS.values())), columns=list(LEVELS))
    frame = pd.concat([crossed] * copies, ignore_index=True)
    for column, (low, high) in BOUNDS.items():
        frame[column] = random.uniform(low, high, len(frame))
    return frame.astype({name: pd.CategoricalDtype(list(levels)) for name, levels in LEVELS.items()})


FRAME = full_crossing()


def of_formulaic(right: str) -> np.ndarray:
    return np.asarray(formulaic.model_matrix(right, FRAME), np.float64)


def of_kngjax(right: str) -> tuple[Design, np.ndarray]:
    design = read(f"y ~ {right}", {**BOUNDS, "y": (0, 1)}, LEVELS).design
    return design, design.with_constant(design.matrix(FRAME))


def random_formula(random: np.random.Generator) -> str:
    """Up to three factors, in up to three terms, with and without an intercept."""
    names = random.choice([*LEVELS, *BOUNDS], random.integers(1, 4), replace=False)
    pieces = []
    for _ in range(random.integers(1, 4)):
        chosen = random.permutation(names)[: random.integers(1, len(names) + 1)]
        piece = str(chosen[0])
        for name in chosen[1:]:
            piece = f"({piece}) {random.choice(OPERATORS)} {name}"
        pieces.append(piece)
    return random.choice(["", "", "0 + "]) + " + ".join(pieces)


def rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix / np.linalg.norm(matrix, axis=0)))


@pytest.mark.parametrize("seed", range(8))
def test_columns_span_what_those_of_formulaic_span(seed):
    random, through_origin = np.random.default_rng(seed), 0
    for right in {random_formula(random) for _ in range(25)}:
        theirs = of_formulaic(right)
        design, ours = of_kngjax(right)
        assert rank(ours) == ours.shape[1] == rank(theirs) == rank(np.hstack([ours, theirs])), right
        columns = ours[:, int(design.intercept) :]
        assert np.all(design.lower <= columns.min(axis=0)), right
        assert np.all(columns.max(axis=0) <= design.upper), right
        assert len(set(design.names)) == ours.shape[1]
        through_origin += not design.intercept
        assert design.intercept == (rank(np.column_stack([theirs, np.ones(len(theirs))])) == rank(theirs))
    assert through_origin


@pytest.mark.parametrize("function", ["poly(x, 2)", "bs(x, knots=[3])"])
@pytest.mark.parametrize(
    ("right", "is_same"),
    [
        ("{}", True),
        ("a*{}", True),
        ("a + a:{}", True),
        ("a/{}", True),
        ("z + z:{}", True),
        ("a:{}", False),
        ("{}/a", False),
        ("z:{}", False),
        ("0 + {}", False),
    ],
)
def test_functions_that_theirs_count_from_the_data_span_the_same_beside_their_margins(right, is_same, function):
    ours, theirs = of_kngjax(right.format(function))[1], of_formulaic(right.format(function))
    assert rank(ours) == ours.shape[1] == rank(theirs)
    assert (rank(np.hstack([ours, theirs])) == rank(ours)) is is_same


@pytest.mark.parametrize(
    ("right", "names"),
    [
        ("a + a:x", "intercept a[q] a[p]:x a[q]:x"),
        ("a/x", "intercept a[q] a[p]:x a[q]:x"),
        ("a*x", "intercept a[q] x a[q]:x"),
        ("x + x:a", "intercept x x:a[q]"),
        ("x:a", "intercept x:a[p] x:a[q]"),
        ("0 + a", "a[p] a[q]"),
        ("a - 1", "a[p] a[q]"),
        ("0 + a + b", "a[p] a[q] b[v] b[w]"),
        ("0 + a + a:x", "a[p] a[q] a[p]:x a[q]:x"),
        ("0 + x", "x"),
        ("x - 1", "x"),
        ("0 + x + z + x:z", "x z x:z"),
        ("0 + a:x", "a[p]:x a[q]:x"),
        ("0 + x + x:a", "x x:a[q]"),
        ("0 + poly(x, 2) + I(x > 3)", "x x^2 x > 3"),
        ("a:c", "intercept c[l] a[q]:c[k] a[q]:c[l]"),
        ("a/c", "intercept a[q] a[p]:c[l] a[q]:c[l]"),
        ("x:z", "intercept x:z"),
        ('C(b, Treatment("v"))', "intercept b[u] b[w]"),
        ('C(b, contr.treatment(base="w")) * x', "intercept b[u] b[v] x b[u]:x b[v]:x"),
        ("C(b, Treatment(reference='u'))", "intercept b[v] b[w]"),
        ("C(b, Treatment)", "intercept b[v] b[w]"),
        ("a + I(x > 3):a", "intercept a[q] a[p]:x > 3 a[q]:x > 3"),
        ("poly(x, 2):a", "intercept x:a[p] x:a[q] x^2:a[p] x^2:a[q]"),
        ("a + x:a + poly(x, 2)", "intercept a[q] x x^2 a[q]:x"),
        ("x:a + poly(x, 2):a", "intercept x:a[p] x:a[q] x^2:a[p] x^2:a[q]"),
    ],
)
def test_names_and_own_units(right, names):
    design, ours = of_kngjax(right)
    assert " ".join(design.names) == names
    values = {"intercept": np.ones(len(FRAME)), "x^2": FRAME.x**2, "x > 3": FRAME.x > 3}
    values |= {f"{c}[{level}]": FRAME[c] == level for c, levels in LEVELS.items() for level in levels}
    values |= {name: FRAME[name] for name in BOUNDS}
    own = np.column_stack([np.prod([values[part] for part in name.split(":")], axis=0) for name in design.names])
    theta = np.random.default_rng(0).normal(size=len(design.names))
    np.testing.assert_allclose(own @ design.in_own_units(theta), ours @ theta, rtol=1e-9, atol=1e-9)


def test_bounds_of_powers_from_zero_are_reached():
    grid = np.linspace(-3.0, 8.0, 1101)
    for lower, upper in ((2, 5), (-1, 3), (-3, -1), (-2, 2), (0, 4)):
        term = Polynomial("x", lower, upper, degree=3, from_zero=True)
        columns = term.columns_of(grid)
        np.testing.assert_allclose([columns.min(axis=0), columns.max(axis=0)], term.bounds, atol=1e-12)
        assert np.all((term.bounds[0] <= columns) & (columns <= term.bounds[1]))
        np.testing.assert_array_equal(columns[::7], term.columns_of(grid[::7]))
        hull = Design((Product((term, Categorical("a", ("p", "q"), full=True))),)).hull()
        assert not hull.outside(
            Product((term, Categorical("a", ("p", "q"), full=True))).of(
                {"x": grid, "a": np.resize(["p", "q"], len(grid))}
            )
        ).any()


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        ("x + poly(x, 2):a", "the same poly"),
        ("0 + x + poly(x, 2):a", "the same poly"),
        ('C(b, Treatment("t"))', "is none of 'u', 'v', 'w'"),
        ("C(b, Treatment())", "is not known"),
        ('C(b, Treatment("u", "v"))', "is not known"),
        ('C(b, Treatment("u")) + x:C(b, Treatment("v"))', "one thing in a product"),
        ("x:I(x > 3)", "different columns"),
    ],
)
def test_what_is_refused(right, reason):
    with pytest.raises(ValueError, match=reason):
        of_kngjax(right)


@pytest.mark.parametrize(
    ("terms", "own"),
    [
        ((Categorical("a", ("p", "q"), full=True),), None),
        ((Categorical("a", ("p", "q")),), (Categorical("a", ("p", "q")),)),
        ((Categorical("a", ("p", "q")),), (Polynomial("x", 0, 1), Categorical("a", ("p", "q")))),
        ((Polynomial("x", 0, 1),), (Categorical("a", ("p", "q"), full=True),)),
    ],
)
def test_designs_whose_columns_are_not_sums_of_one_another_are_refused(terms, own):
    with pytest.raises(ValueError, match=r"sums of others|needs the coefficient"):
        Design(terms, own)


@pytest.mark.parametrize("term", [Polynomial("x", 2, 5), Categorical("a", ("p", "q"), full=True)])
def test_columns_that_hold_a_constant_are_refused_without_an_intercept(term):
    with pytest.raises(ValueError, match="hold a constant, which an intercept takes up"):
        Design((term,), intercept=False)
