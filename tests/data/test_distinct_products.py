"""Different numbers of Σ w xx': the matrices that they make, what one record changes of them, and what is exclusive."""

import itertools

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.data.bounds import Bounds
from kngjax.data.distinct_products import DistinctProducts
from kngjax.data.terms.categorical import Categorical
from kngjax.data.terms.design import Design
from kngjax.data.terms.indicator import Indicator
from kngjax.data.terms.polynomial import Polynomial
from kngjax.data.terms.product import Product
from kngjax.inference.covariances import family_of
from kngjax.mechanisms.block_sums import BlockSums

pytestmark = pytest.mark.float64
REPLACE, ADD_REMOVE = kng.Adjacency.REPLACE, kng.Adjacency.ADD_REMOVE


def one_hot(number, intercept, seed=0):
    """Categories of 2 and 3 levels beside their references, a number, slopes of it in the second, and an indicator."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 3, number)[:, None] == [1, 2]
    second = generator.integers(0, 4, number)[:, None] == [1, 2, 3]
    x = generator.uniform(-1.0, 2.0, (number, 1))
    yes = generator.integers(0, 2, (number, 1))
    columns = [first, second, x, second * x, yes]
    return np.column_stack([np.ones(number)] * intercept + columns).astype(float)


def products_of(intercept, adjacency, has_curvature=True):
    first = int(intercept)
    indicators = tuple(tuple(first + place for place in group) for group in ((0, 1), (2, 3, 4), (9,)))
    slopes = (tuple(first + place for place in (6, 7, 8)),)
    lower = np.array([1.0] * first + [0.0] * 5 + [-1.0] * 4 + [0.0])
    upper = np.array([1.0] * first + [1.0] * 5 + [2.0] * 4 + [1.0])
    return DistinctProducts(lower, upper, indicators, slopes, adjacency, has_curvature)


ALL = list(itertools.product((True, False), (REPLACE, ADD_REMOVE), (True, False)))


@pytest.mark.parametrize(("intercept", "adjacency", "has_curvature"), ALL)
def test_numbers_of_records_make_their_matrix(intercept, adjacency, has_curvature):
    """H of sums of numbers is Σ w xx': exactly of features in few digits, else up to 2^-22 of 4 a record."""
    made, x = products_of(intercept, adjacency, has_curvature), one_hot(300, intercept)
    x = np.round(x * 2.0**8) / 2.0**8
    w = np.random.default_rng(1).integers(0, 9, 300) / 8.0 if has_curvature else np.ones(300)
    expected = (x * w[:, None]).T @ x
    count = None if has_curvature else len(x)
    found = family_of(made, count).matrices(made.of(x, w).sum(axis=0))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-11)
    np.testing.assert_array_equal(made.numbers_of(expected), made.of(x, w).sum(axis=0))
    rough, any_w = one_hot(300, intercept), np.random.default_rng(2).uniform(0.0, 1.0, 300) if has_curvature else w
    exact = np.array([any_w * rough[:, j] * rough[:, k] for j, k in made.pairs]).T
    assert 0.0 < np.max(np.abs(made.of(rough, any_w) - exact)) <= 2.0**-22 * 4.0
    # None follows from the others, of slopes that are those of another number within other levels.
    generator, x = np.random.default_rng(3), one_hot(3000, intercept, 2)
    x[:, made.slopes[0]] = generator.uniform(-1.0, 2.0, (3000, 1)) * (generator.integers(0, 4, (3000, 1)) == [1, 2, 3])
    rows = made.of(x, generator.uniform(0.0, 1.0, 3000) if has_curvature else np.ones(3000))
    assert np.linalg.matrix_rank(rows) == rows.shape[1]


def test_numbers_are_as_few_as_can_be():
    """Of d = 11 with an intercept 66 products: none of two levels of one category, and a level's square is itself."""
    made = products_of(True, REPLACE)
    pairs = {tuple(pair) for pair in made.pairs.tolist()}
    assert len(pairs) == len(made.pairs) == 66 - (1 + 2) - (3 + 3) - 1 - 3
    assert (0, 1) in pairs
    assert {(1, 1), (1, 2), (3, 3), (3, 4), (10, 10), (7, 8)} & pairs == set()
    # Squares of slopes are numbers of their own, and without an intercept so are those of levels.
    assert (7, 7) in pairs
    assert (0, 0) in {tuple(pair) for pair in products_of(False, REPLACE).pairs.tolist()}
    # Where w = 1 and n is public no record changes the intercept's product with itself.
    assert (0, 0) not in {tuple(pair) for pair in products_of(True, REPLACE, False).pairs.tolist()}
    assert (0, 0) in {tuple(pair) for pair in products_of(True, ADD_REMOVE, False).pairs.tolist()}


@pytest.mark.parametrize(("intercept", "adjacency", "has_curvature"), ALL)
def test_of_exclusive_numbers_a_record_adds_to_one_at_most(intercept, adjacency, has_curvature):
    made = products_of(intercept, adjacency, has_curvature)
    rows = made.of(one_hot(500, intercept), np.ones(500))
    assert len(made.exclusive) > 5
    for group in made.exclusive:
        assert np.all(np.count_nonzero(rows[:, group], axis=1) <= 1)
    least, most = made.ends
    assert np.all((rows >= least) & (rows <= most))


def norm_of(changes, noise):
    """The norm of the blocks in NumPy, in which changes are at most 1, of noise for ε of 1."""
    shares, found = changes / [float(weight) for weight in noise.weights], []
    for kind, columns in noise.blocks:
        above, below = (np.maximum(sign * shares[:, list(columns)], 0.0).sum(axis=1) for sign in (1.0, -1.0))
        found.append(np.maximum(above, below) if kind == "exchange" else above + below)
    return np.max(found, axis=0)


@pytest.mark.parametrize("adjacency", [REPLACE, ADD_REMOVE])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_record_changes_the_released_numbers_by_more_than_1_and_some_do_by_as_much(intercept, adjacency):
    """All pairs of records at ends of their bounds, of which some have all levels at once, against the promise."""
    made = products_of(intercept, adjacency)
    kept = one_hot(60, intercept, 5)
    kept[:, 5 + intercept] = np.where(kept[:, 5 + intercept] > 0.5, 2.0, -1.0)
    kept[:, 6 + intercept : 9 + intercept] = kept[:, [5 + intercept]] * kept[:, 2 + intercept : 5 + intercept]
    broken = np.random.default_rng(6).choice([-9.0, 0.0, 1.0, 2.0], (30, kept.shape[1]))
    broken[:, 0] = 1.0 if intercept else broken[:, 0]
    x, w = np.vstack([kept, broken]), np.tile([1.0, 0.5, 0.0, 1.0, 1.0], 18)
    mechanism = BlockSums(Bounds(made.ends, intercept=False), 1.0, adjacency, made.exclusive)
    rows = made.of(x, w)
    stays = mechanism.intake.exact_sums(rows[:1]).moment
    sums = np.array(
        [(mechanism.intake.exact_sums(np.vstack([rows[:1], row])).moment - stays).astype(float) for row in rows]
    )
    pairs = np.array(list(itertools.permutations(range(len(x)), 2)))
    changes = sums if adjacency is ADD_REMOVE else sums[pairs[:, 0]] - sums[pairs[:, 1]]
    found = norm_of(changes, mechanism.noise_in_fractions(rows.shape[1], 1))
    assert found.max() == pytest.approx(1.0, abs=1e-12)
    # Without the promise kept by the mechanism the same records change more.
    unkept = np.clip(rows, *made.ends)
    changes = unkept if adjacency is ADD_REMOVE else unkept[pairs[:, 0]] - unkept[pairs[:, 1]]
    assert norm_of(changes, mechanism.noise_in_fractions(rows.shape[1], 1)).max() > 1.4


def test_noise_in_blocks_is_less_than_that_of_a_box():
    made = products_of(True, REPLACE)
    bounds = Bounds(made.ends, intercept=False)
    blocks, box = (BlockSums(bounds, 1.0, "replace", groups) for groups in (made.exclusive, ()))
    number = len(made.pairs)
    ratio = blocks.noise.deviations(number, None) / box.noise.deviations(number, None)
    inside = np.array([place for group in made.exclusive for place in group])
    assert np.all(ratio[inside] < 0.95)
    assert np.min(ratio[inside]) < 0.6
    # Numbers by themselves have the noise of as many numbers in either case.
    assert np.all(ratio <= 1.0 + 1e-12)


@pytest.mark.parametrize(("intercept", "adjacency", "has_curvature"), ALL)
def test_the_guess_is_a_positive_definite_matrix_of_the_family(intercept, adjacency, has_curvature):
    made = products_of(intercept, adjacency, has_curvature)
    family = family_of(made, 1)
    found = family.matrices(made.numbers_of(made.guess))
    np.testing.assert_allclose(found, made.guess, atol=1e-12)
    assert np.linalg.eigvalsh(made.guess)[0] > 0.0


def test_the_guess_is_the_mean_of_made_up_records():
    """Independent features, even within their bounds, and levels equally likely beside none."""
    made, generator, number = products_of(True, REPLACE), np.random.default_rng(0), 200_000
    x = generator.uniform(made.lower, made.upper, (number, 11))
    for group, is_mark in (((1, 2), True), ((3, 4, 5), True), ((10,), True), ((7, 8, 9), False)):
        marks = generator.integers(0, len(group) + 1, number)[:, None] == np.arange(1, len(group) + 1)
        x[:, group] = marks if is_mark else marks * x[:, group]
    np.testing.assert_allclose(x.T @ x / number, made.guess, atol=0.02)


@pytest.mark.parametrize(
    ("indicators", "slopes"), [(((1, 1),), ()), (((1, 2),), ((2, 3),)), (((11,),), ()), ((), ((-1,),))]
)
def test_columns_that_are_named_twice_or_are_none_are_refused(indicators, slopes):
    made = products_of(True, REPLACE)
    with pytest.raises(ValueError, match="indicators and slopes must be columns from 0 to 10, each at most once"):
        DistinctProducts(made.lower, made.upper, indicators, slopes, REPLACE)


def test_a_design_says_which_of_its_columns_exclude_one_another():
    region, age = Categorical("region", ("a", "b", "c")), Polynomial("age", 0, 80, degree=2)
    sex, old = Categorical("sex", ("f", "m")), Indicator("age", ">=", 65)
    terms = (region, age, sex, old, Product((age, region)), Product((region, sex)), Product((old, region)))
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"region": generator.choice(list("abc"), 500), "sex": generator.choice(["f", "m"], 500)})
    frame["age"] = generator.uniform(0, 80, 500)
    for intercept in (True, False):
        design = Design(terms if intercept else (*terms[:1], *terms[2:4]), intercept=intercept)
        x = design.with_constant(design.matrix(frame))
        assert set(np.unique(x[:, [column for group in design.indicators for column in group]])) == {0.0, 1.0}
        for group in (*design.indicators, *design.slopes):
            assert np.all(np.count_nonzero(x[:, group], axis=1) <= 1)
            assert np.all(np.count_nonzero(x[:, group], axis=0) > 0)
        columns = [column for group in (*design.indicators, *design.slopes) for column in group]
        assert len(set(columns)) == len(columns)
        if intercept:
            # Regions, sex, old, sex by region and old by region; each power of age by region.
            assert sorted(map(len, design.indicators)) == [1, 1, 2, 2, 2]
            assert [len(group) for group in design.slopes] == [2, 2]
            # All but the two powers of age and the constant.
            assert len(columns) == x.shape[1] - 3
