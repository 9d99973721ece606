"""Sums on the lattice: those of fractions, and the same to the bit however the records are divided."""

import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.lattice import lattice_sums
from tests.draws.lattice import problems

BOXES = ([0.0, -3.0], [1.0, 2.0])
BOUNDS = kng.Bounds(x=BOXES, y=(-1.0, 1.0))
LATTICE = kng.draws.Lattice()
MECHANISMS = {
    "regression": kng.KNG(kng.SquaredLoss(), BOUNDS, kng.L1Ball(1.0), 1.0, "replace"),
    "exponential": kng.ExponentialMechanism(kng.SquaredLoss(), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "add_remove"),
    "means": kng.KNG(
        kng.SquaredDistanceLoss(), kng.Bounds(x=BOXES, intercept=False), kng.Box(-3.0, 3.0), 1.0, "replace"
    ),
}
ROWS = 1003


def rows(kind):
    generator = np.random.default_rng(4)
    # Some lie outside of the bounds.
    X = generator.uniform([-0.1, -3.2], [1.1, 2.1], (ROWS, 2))
    return X, None if kind == "means" else generator.uniform(-1.1, 1.1, ROWS)


def parts(X, y, count, order=slice(None)):
    cuts = [np.array_split(column, count) for column in (X, y) if column is not None]
    pairs = list(zip(*cuts, strict=True)) if y is not None else [(part, None) for part in cuts[0]]
    return pairs[order]


def by_fractions(kind, X, y):
    """n, X'X, X'y and y'y of records clipped and rounded to 2^-20 of their bounds, in those units."""
    spacings = [Fraction(1, 2**20), Fraction(4, 2**20)]
    rows = [
        [problems.to_lattice(min(max(value, low), high), step) / step for value, low, high, step in columns]
        for columns in (zip(row, (0.0, -3.0), (1.0, 2.0), spacings, strict=True) for row in X)
    ]
    if kind == "means":
        responses = [1] * len(rows)
    else:
        rows = [[2**20, *row] for row in rows]
        step = Fraction(1, 2**20)
        responses = [problems.to_lattice(min(max(value, -1.0), 1.0), step) / step for value in y]
    dimension = range(len(rows[0]))
    gram = [[sum(row[i] * row[j] for row in rows) for j in dimension] for i in dimension]
    moment = [sum(row[i] * value for row, value in zip(rows, responses, strict=True)) for i in dimension]
    return len(rows), gram, moment, sum(value * value for value in responses)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(MECHANISMS))
def test_sums_are_those_of_fractions_however_the_records_are_divided(kind):
    X, y = rows(kind)
    count, gram, moment, squares = by_fractions(kind, X, y)
    sources = [kng.stream(parts(X, y, number)) for number in (1, 2, 8)]
    sources += [kng.stream(parts(X, y, 8, order=slice(None, None, -1)))]
    for source in sources:
        found = LATTICE.prepare(MECHANISMS[kind], source)
        assert isinstance(found, ExactSums)
        assert (found.num_records, found.gram.tolist(), found.moment.tolist(), found.squares) == (
            count,
            gram,
            moment,
            squares,
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(MECHANISMS))
def test_the_same_bits_give_the_same_release_of_parts_and_of_records(kind):
    X, y = rows(kind)
    mechanism = MECHANISMS[kind]
    draws = [
        LATTICE.draw(mechanism, LATTICE.prepare(mechanism, *source), random.Random(7).getrandbits)
        for source in ((X, y), (kng.stream(parts(X, y, 8)),))
    ]
    np.testing.assert_array_equal(*draws)


def test_products_are_exact_beyond_53_bits():
    largest = np.full((9, 1), 2**25 + 1)
    assert lattice_sums.products(largest, largest).tolist() == [[9 * (2**25 + 1) ** 2]]
    generator = np.random.default_rng(0)
    for digits in (26, 27, 32, 45):
        left, right = (generator.integers(-(2**digits), 2**digits, (500, 3)) for _ in range(2))
        expected = [[sum(int(a) * int(b) for a, b in zip(u, v, strict=True)) for v in right.T] for u in left.T]
        assert lattice_sums.products(left, right).tolist() == expected


@pytest.mark.slow
def test_a_release_of_parts_takes_the_lattice_by_itself():
    X, y = rows("regression")
    released = kng.release(MECHANISMS["regression"], kng.stream(parts(X, y, 3)))
    assert released.certificate.assurance == "proved"
    bounds = kng.Bounds((-3.0, 2.0), (-1.0, 1.0), columns=X.shape[1])
    scalar = kng.KNG(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), 1.0, "replace")
    assert kng.release(scalar, kng.stream(parts(X, y, 3)), sampler=LATTICE).certificate.assurance == "proved"


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_parts_of_a_quantile_loss_are_those_of_the_records(adjacency):
    X, y = rows("regression")
    median = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, kng.L1Ball(1.0), 1.0, adjacency)
    lattice = LATTICE.resolve(median, 3, ROWS)
    prepared = [lattice.prepare(median, X, y), lattice.prepare(median, kng.stream(parts(X, y, 3)))]
    one, other = (lattice.problem(median, some).score._records for some in prepared)
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.responses, other.responses)
    certificate = kng.certify(median, kng.stream(parts(X, y, 3)))
    assert (certificate.assurance, certificate.sampler["type"]) == ("proved", "Lattice")


def test_what_parts_refuse():
    X, y = rows("regression")
    with pytest.raises(ValueError, match="brings its own responses"):
        LATTICE.prepare(MECHANISMS["regression"], kng.stream(parts(X, y, 2)), y)
    with pytest.raises(ValueError, match="the data are empty"):
        LATTICE.prepare(MECHANISMS["regression"], kng.stream([]))
    # Their plan is the same for every n, so that no number of records is too large.
    few = kng.draws.Lattice(max_records=ROWS - 1)
    few.draw(MECHANISMS["exponential"], few.prepare(MECHANISMS["exponential"], kng.stream(parts(X, y, 2))))
    whole = LATTICE.prepare(MECHANISMS["regression"], kng.stream(parts(X, y, 2)))
    with pytest.raises(TypeError, match="computed from private data"):
        list(whole)
    with pytest.raises(ValueError, match="different numbers of columns"):
        whole + LATTICE.prepare(MECHANISMS["means"], kng.stream([(X, None)]))
