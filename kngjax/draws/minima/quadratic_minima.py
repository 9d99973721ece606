"""Minimisers of strongly convex quadratics over Θ, in balls that contain what real arithmetic gives.

θ minimises ½θ'Mθ - v'θ over a convex Θ if and only if it meets the conditions of Karush, Kuhn and Tucker, and there is
but one. Which of them hold with equality is guessed in float64, and is right if all others hold strictly, which balls
tell. A wrong guess is told from a right one by as many digits as that takes, and the next one is tried: there are
finitely many, and where v has a density a condition holds with neither equality nor a margin with probability 0.
A coefficient that an equality fixes, such as one at an end of its interval, is known as a fraction.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from flint import arb, arb_mat, ctx

from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.core.compiling import Compiled
from kngjax.draws.linear_algebra import dot, shifted, solved, times
from kngjax.draws.uniforms import GUARD_DIGITS
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.scaled_norms import norm_in_balls
from kngjax.mechanisms.minimisers import quadratic_minimiser

Place = arb | Fraction
# Steps of Newton's method: some five are needed, and a root that is not found by then is found with more digits.
_MOST_STEPS = 100
# A coefficient or a slope that is smaller, in units of the largest one, is guessed to be 0.
_NEXT_TO_ZERO = 1e-9


def minimum(domain: AbstractDomain, matrix: arb_mat, vector: Sequence[arb]) -> list[Place] | None:
    """argmin {½θ'Mθ - v'θ : θ ∈ Θ}, each coefficient in a ball or a fraction; None where more digits are needed.

    **Arguments:** `domain`: Θ, with an `exact_shape`. `matrix`: balls of M, positive definite. `vector`: of v.
    """
    dimension = len(vector)
    shape = domain.exact_shape(dimension)
    assert shape is not None
    # On a line every ball is an interval.
    radius = None if shape.radius is None or dimension == 1 else Fraction(shape.radius)
    try:
        inside = solved(matrix, vector)
        if radius is None:
            is_inside = _all(_between(place, *ends) for place, ends in zip(inside, shape.sides, strict=True))
        else:
            size = sum((abs(place) ** shape.power for place in inside), arb(0))
            is_inside = _is_positive(ball_of(radius**shape.power) - size)
        if is_inside is None:
            return None
        if is_inside:
            return list(inside)
        if radius is not None and shape.power == 2:
            return _on_sphere(matrix, vector, radius)
        guess = _guess(domain, matrix, vector)
        if radius is None:
            return _first(_on_face(matrix, vector, shape.sides, face) for face in _faces(_ends(guess, shape.sides)))
        return _first(_on_facet(matrix, vector, radius, face) for face in _faces(_signs(guess)) if any(face))
    except ZeroDivisionError:
        # The matrix is not known well enough to be solved.
        return None


def _first(found: Iterator[list[Place] | bool | None]) -> list[Place] | None:
    """The first that is not certainly wrong, unless it is undecided."""
    for answer in found:
        if answer is None or isinstance(answer, list):
            return answer
    raise AssertionError("no face of the domain has the minimiser")


def _faces(guess: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yields all of {-1, 0, 1}^d, beginning with points that differ from the guess in few places."""
    for number in range(len(guess) + 1):
        for places in itertools.combinations(range(len(guess)), number):
            for changes in itertools.product((1, 2), repeat=number):
                face = list(guess)
                for place, change in zip(places, changes, strict=True):
                    face[place] = (face[place] + 1 + change) % 3 - 1
                yield tuple(face)


def _on_face(
    matrix: arb_mat, vector: Sequence[arb], sides: Sequence[tuple[Fraction, Fraction]], face: Sequence[int]
) -> list[Place] | bool | None:
    """θ with θ_j at the lower (-1) or upper (1) end or between, if it is the minimiser; False if it is certainly not.

    So it is if free coefficients lie between their ends, and the gradient points out of Θ at the others.
    """
    free = [j for j, side in enumerate(face) if side == 0]
    theta: list[Place] = [sides[j][side > 0] if side else Fraction(0) for j, side in enumerate(face)]
    slope = _slope(matrix, theta, vector)
    if free:
        for j, place in zip(free, solved(_part(matrix, free, free), [-slope[j] for j in free]), strict=True):
            theta[j] = place
        slope = _slope(matrix, theta, vector)
    is_right = _all(
        _between(_ball(theta[j]), *sides[j]) if side == 0 else _is_positive(-side * slope[j])
        for j, side in enumerate(face)
    )
    return theta if is_right else is_right


def _on_facet(
    matrix: arb_mat, vector: Sequence[arb], radius: Fraction, face: Sequence[int]
) -> list[Place] | bool | None:
    """θ with ‖θ‖_1 = r and these signs, if it is the minimiser; False if it is certainly not.

    So it is if M θ - v = -μσ on its support, with μ > 0 and the signs σ, and |Mθ - v| < μ elsewhere.
    """
    support = [j for j, sign in enumerate(face) if sign]
    theta: list[Place] = [Fraction(0) for _ in face]
    if len(support) == 1:
        (place,) = support
        theta[place] = face[place] * radius
        multiplier = -face[place] * _slope(matrix, theta, vector)[place]
    else:
        bordered = [[matrix[i, j] for j in support] + [arb(face[i])] for i in support]
        bordered.append([arb(face[j]) for j in support] + [arb(0)])
        *places, multiplier = solved(arb_mat(bordered), [vector[j] for j in support] + [ball_of(radius)])
        for j, place in zip(support, places, strict=True):
            theta[j] = place
    slope = _slope(matrix, theta, vector)
    is_right = _all(
        _is_positive(sign * _ball(theta[j])) if sign else _is_positive(multiplier - abs(slope[j]))
        for j, sign in enumerate(face)
    )
    is_right = _all([is_right, _is_positive(multiplier)])
    return theta if is_right else is_right


def _on_sphere(matrix: arb_mat, vector: Sequence[arb], radius: Fraction) -> list[Place] | None:
    """θ = (M + μI)^{-1}v with μ > 0 such that |θ| = r, where that of μ = 0 is longer.

    |θ| falls as μ grows, so μ lies between a number where it is certainly longer and one where it is shorter. Newton's
    method for 1/|θ| = 1/r, which is concave in μ, climbs to it from 0.
    """
    goal, size = ball_of(radius), len(vector)
    centre = arb_mat([[matrix[i, j].mid() for j in range(size)] for i in range(size)])
    middle, at = [number.mid() for number in vector], arb(0)
    for _ in range(_MOST_STEPS):
        theta = solved(shifted(centre, at), middle)
        length = norm_in_balls("length", theta)
        bend = dot(theta, solved(shifted(centre, at), theta))
        step = ((length / goal - 1) * length**2 / bend).mid()
        at = (at + step).mid()
        if abs(step) <= at * arb(2) ** -_known_digits():
            break
    # Fewer digits are known of a small μ than of v, but enough digits of v give them all.
    for digits in (_known_digits() * share // 8 for share in (8, 7, 6, 4, 2)):
        width = at * arb(2) ** -digits
        longer = norm_in_balls("length", solved(shifted(matrix, at - width), vector))
        shorter = norm_in_balls("length", solved(shifted(matrix, at + width), vector))
        if longer > goal and shorter < goal:
            return list(solved(shifted(matrix, at + width * arb(0, 1)), vector))
    return None


def _known_digits() -> int:
    """Estimates how many binary digits of v are known: they grow with the precision, without limit."""
    return ctx.prec - GUARD_DIGITS - 6


def _guess(domain: AbstractDomain, matrix: arb_mat, vector: Sequence[arb]) -> tuple[np.ndarray, np.ndarray]:
    """Approximates θ and Mθ - v; zeros where float64 does not find them."""
    table = np.array([[float(entry.mid()) for entry in row] for row in matrix.tolist()])
    slope = np.array([float(number.mid()) for number in vector])
    with float64():
        theta = np.asarray(_minimiser(domain, table, slope))
    theta = np.where(np.isfinite(theta), theta, 0.0)
    return theta, table @ theta - slope


@Compiled
def _minimiser(domain, matrix, vector):
    return jnp.asarray(quadratic_minimiser(domain, matrix, vector)[0])


def _ends(guess: tuple[np.ndarray, np.ndarray], sides: Sequence[tuple[Fraction, Fraction]]) -> list[int]:
    """Guesses at which end each coefficient is."""
    widths = [float(upper - lower) for lower, upper in sides]
    pairs = zip(guess[0].tolist(), sides, widths, strict=True)
    near = [
        (place - float(ends[0]) <= _NEXT_TO_ZERO * width, float(ends[1]) - place <= _NEXT_TO_ZERO * width)
        for place, ends, width in pairs
    ]
    return [-1 if lower else int(upper) for lower, upper in near]


def _signs(guess: tuple[np.ndarray, np.ndarray]) -> list[int]:
    """The sign that each coefficient seems to have."""
    theta = guess[0]
    largest = float(np.max(np.abs(theta)))
    return [int(np.sign(one)) if abs(one) > _NEXT_TO_ZERO * largest else 0 for one in theta.tolist()]


def _all(answers) -> bool | None:
    """False if one is certainly false, True if all are certainly true, None otherwise."""
    answers = list(answers)
    if False in answers:
        return False
    return None if None in answers else True


def _is_positive(number: arb) -> bool | None:
    if number > 0:
        return True
    return False if number < 0 else None


def _between(place: arb, lower: Fraction, upper: Fraction) -> bool | None:
    return _all([_is_positive(place - ball_of(lower)), _is_positive(ball_of(upper) - place)])


def _slope(matrix: arb_mat, theta: Sequence[Place], vector: Sequence[arb]) -> list[arb]:
    """Mθ - v."""
    image = times(matrix, [_ball(place) for place in theta])
    return [one - number for one, number in zip(image, vector, strict=True)]


def _ball(place: Place) -> arb:
    return ball_of(place) if isinstance(place, Fraction) else place


def _part(matrix: arb_mat, rows: Sequence[int], columns: Sequence[int]) -> arb_mat:
    return arb_mat([[matrix[i, j] for j in columns] for i in rows])
