"""Minimisers of quadratics over Θ beside all faces in fractions, the secular equation, and wrong guesses."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

import kngjax as kng
from kngjax.core.balls import ball_of
from kngjax.draws.minima import quadratic_minima
from kngjax.draws.minima.quadratic_minima import minimum


def problem(seed, dimension):
    """M and v as fractions, with a minimiser over R^d of a size of about 1."""
    generator = random.Random(seed)
    factor = [[Fraction(generator.randrange(-20, 21), 7) for _ in range(dimension)] for _ in range(dimension)]
    matrix = [
        [sum(factor[k][i] * factor[k][j] for k in range(dimension)) + (i == j) for j in range(dimension)]
        for i in range(dimension)
    ]
    return matrix, [Fraction(generator.randrange(-300, 301), 11) for _ in range(dimension)]


def solve(matrix, vector):
    if not vector:
        return []
    table = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in matrix])
    right = fmpq_mat([[fmpq(x.numerator, x.denominator)] for x in vector])
    return [Fraction(int(row[0].p), int(row[0].q)) for row in table.solve(right).tolist()]


def value(matrix, vector, theta):
    pairs = itertools.product(range(len(theta)), repeat=2)
    curved = sum(matrix[i][j] * theta[i] * theta[j] for i, j in pairs)
    return curved / 2 - sum(one * two for one, two in zip(vector, theta, strict=True))


def least_of_faces(matrix, vector, sides):
    """The best of the minimisers on all faces that lie in a box: by values, not by slopes."""
    best = None
    for face in itertools.product((-1, 0, 1), repeat=len(vector)):
        free = [j for j, side in enumerate(face) if side == 0]
        theta = [sides[j][side > 0] for j, side in enumerate(face)]
        right = [vector[j] - sum(matrix[j][k] * theta[k] for k in range(len(face)) if k not in free) for j in free]
        for j, place in zip(free, solve([[matrix[i][j] for j in free] for i in free], right), strict=True):
            theta[j] = place
        if all(lower <= place <= upper for place, (lower, upper) in zip(theta, sides, strict=True)):
            found = value(matrix, vector, theta), theta
            best = found if best is None or found[0] < best[0] else best
    return best[1]


def least_of_facets(matrix, vector, radius):
    """The best of the minimiser over R^d, if inside, and of those on the faces of an l1 ball, by values."""
    size, candidates = len(vector), [solve(matrix, vector)]
    for signs in itertools.product((-1, 0, 1), repeat=size):
        support = [j for j, sign in enumerate(signs) if sign]
        if not support:
            continue
        rows = [[matrix[i][j] for j in support] + [Fraction(signs[i])] for i in support]
        rows.append([Fraction(signs[j]) for j in support] + [Fraction(0)])
        places = solve(rows, [vector[j] for j in support] + [radius])
        theta = [Fraction(0)] * size
        for j, place in zip(support, places[:-1], strict=True):
            theta[j] = place
        if all(theta[j] * signs[j] >= 0 for j in support):
            candidates.append(theta)
    inside = [theta for theta in candidates if sum(map(abs, theta)) <= radius]
    return min(inside, key=lambda theta: value(matrix, vector, theta))


def in_balls(domain, matrix, vector, digits=64):
    """Of a v that is known to so many digits."""
    with ctx.workprec(digits + 64):
        table = arb_mat([[ball_of(entry) for entry in row] for row in matrix])
        return minimum(domain, table, [ball_of(one) + arb(0, arb(2) ** -digits) for one in vector])


def assert_contains(found, expected):
    assert found is not None
    with ctx.workprec(300):
        for place, true in zip(found, expected, strict=True):
            assert place == true if isinstance(place, Fraction) else place.contains(ball_of(true))
            assert isinstance(place, Fraction) or place.rad() < 1e-12


BOX = kng.Box(np.array([-0.5, -0.25, -2.0]), np.array([0.75, 0.5, 2.0]))


@pytest.mark.parametrize("is_misled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_over_boxes_it_is_the_best_of_all_faces(seed, is_misled, monkeypatch):
    """Also where the guess is of no use, and what is at an end is known as a fraction."""
    if is_misled:
        monkeypatch.setattr(quadratic_minima, "_guess", lambda *_: (np.array([9.0, 0.0, -9.0]), np.zeros(3)))
    matrix, vector = problem(seed, 3)
    sides = [(Fraction(lower), Fraction(upper)) for lower, upper in zip(BOX.lower, BOX.upper, strict=True)]
    expected = least_of_faces(matrix, vector, sides)
    found = in_balls(BOX, matrix, vector)
    assert_contains(found, expected)
    for place, true, ends in zip(found, expected, sides, strict=True):
        assert isinstance(place, Fraction) == (true in ends)


@pytest.mark.parametrize("is_misled", [False, True])
@pytest.mark.parametrize("radius", [0.5, 1.5, 1000.0])
def test_over_l1_balls_it_is_the_best_of_all_faces(radius, is_misled, monkeypatch):
    if is_misled:
        monkeypatch.setattr(quadratic_minima, "_guess", lambda *_: (np.array([1.0, 0.0, -1.0]), np.zeros(3)))
    kinds = set()
    for seed in range(4):
        matrix, vector = problem(seed, 3)
        expected = least_of_facets(matrix, vector, Fraction(radius))
        found = in_balls(kng.L1Ball(radius), matrix, vector)
        assert_contains(found, expected)
        kinds.add(sum(place != 0 for place in expected))
    assert len(kinds) > 1 or radius > 2


@pytest.mark.parametrize("radius", [0.01, 0.5, 1000.0])
def test_over_round_balls_it_solves_the_secular_equation(radius):
    """By bisection in fractions; inside, it is the minimiser over R^d."""
    for seed in range(6):
        matrix, vector = problem(seed, 3)

        def at(shift, matrix=matrix, vector=vector):
            return solve(
                [[x + (shift if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate(matrix)], vector
            )

        theta, lower, upper = at(Fraction(0)), Fraction(0), Fraction(2) ** 24
        if sum(one**2 for one in theta) > Fraction(radius) ** 2:
            for _ in range(75):
                middle = (lower + upper) / 2
                is_long = sum(one**2 for one in at(middle)) > Fraction(radius) ** 2
                lower, upper = (middle, upper) if is_long else (lower, middle)
            theta = at((lower + upper) / 2)
        found = in_balls(kng.L2Ball(radius), matrix, vector)
        np.testing.assert_allclose([float(place) for place in found], [float(one) for one in theta], rtol=1e-13)
        widths = []
        for digits in (64, 256):
            with ctx.workprec(400):
                places = in_balls(kng.L2Ball(radius), matrix, vector, digits)
                length = sum((place**2 for place in places), arb(0)).sqrt()
                assert length.overlaps(ball_of(Fraction(radius))) or length < radius
            widths.append(max(float(place.rad()) for place in places))
        assert widths[1] < widths[0] * 2.0**-180


@pytest.fixture
def no_guess(monkeypatch):
    """Searches begin anywhere, and compile nothing."""
    monkeypatch.setattr(quadratic_minima, "_guess", lambda domain, matrix, *_: (np.zeros(matrix.nrows()),) * 2)


@pytest.mark.usefixtures("no_guess")
def test_on_a_line_every_ball_is_an_interval_with_ends_that_are_known():
    for domain in (kng.Box(-0.1, 0.1), kng.L1Ball(0.1), kng.L2Ball(0.1)):
        for vector, expected in ((Fraction(3), Fraction(0.1)), (Fraction(-3), -Fraction(0.1)), (Fraction(0), 0)):
            (found,) = in_balls(domain, [[Fraction(2)]], [vector])
            assert found == expected if expected else found.contains(0)


@pytest.mark.usefixtures("no_guess")
def test_what_is_not_certain_takes_more_digits():
    """A minimiser within 2^-70 of a face's end is told by 128 digits and not by 64, on either side."""
    for domain in (kng.Box(-1.0, 1.0), kng.L1Ball(1.0), kng.L2Ball(1.0)):
        for beyond in (Fraction(-1, 2**70), Fraction(1, 2**70)):
            vector = [2 + 2 * beyond, Fraction(0)]
            matrix = [[Fraction(2), Fraction(0)], [Fraction(0), Fraction(2)]]
            assert in_balls(domain, matrix, vector) is None
            first, _ = in_balls(domain, matrix, [vector[0], Fraction(1, 2**100)], 256)
            with ctx.workprec(300):
                assert (
                    (first == 1)
                    if isinstance(first, Fraction)
                    else first.overlaps(ball_of(1 + min(beyond, Fraction(0))))
                )


def test_a_matrix_that_may_be_singular_takes_more_digits():
    with ctx.workprec(128):
        table = arb_mat([[arb(1), arb(1)], [arb(1), arb(1, 0.5)]])
        assert minimum(kng.Box(-1.0, 1.0), table, [arb(1), arb(1)]) is None


def test_all_faces_are_tried_once_the_likely_ones_first():
    faces = list(quadratic_minima._faces([1, 0]))
    assert faces[0] == (1, 0)
    assert sorted(faces) == sorted(itertools.product((-1, 0, 1), repeat=2))
    distances = [sum(one != two for one, two in zip(face, (1, 0), strict=True)) for face in faces]
    assert distances == sorted(distances)


def test_on_spheres_balls_contain_the_minimisers_for_every_vector_in_its_balls():
    """Multipliers move with the vector: what is known of those is as wide as it must be."""
    generator, found = np.random.default_rng(0), 0
    for _ in range(20):
        matrix = arb_mat(np.diag([1.0, 10.0 ** generator.uniform(0.0, 4.0)]).tolist())
        vector = [30.0 + generator.normal(), generator.normal()]
        for exponent in range(4, 50, 5):
            width = 2.0 ** (generator.random() - exponent)
            with ctx.workprec(128):
                places = quadratic_minima._on_sphere(matrix, [arb(one, width) for one in vector], Fraction(1))
            if places is None:
                continue
            found += 1
            with ctx.workprec(300):
                for signs in itertools.product((-1, 1), repeat=2):
                    ends = [arb(one) + sign * arb(width) for one, sign in zip(vector, signs, strict=True)]
                    true = quadratic_minima._on_sphere(matrix, ends, Fraction(1))
                    assert true is not None
                    assert all(place.overlaps(one) for place, one in zip(places, true, strict=True))
    assert found > 100
