"""Corners, without rounding, of polytopes that contain whatever a `FeatureHull` lets through, rounding included."""

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from flint import arb, fmpq, fmpq_mat

from kngjax.core.balls import precision, upper_end
from kngjax.geometry.feature_hulls import SLACK, FeatureHull

Corners = tuple[tuple[Fraction, ...], ...]

# Products of fractions, about: some seconds.
_MOST_WORK = 10**7
_UNIT = Fraction(1, 2**53)
# Of corners.
_DIGITS = 128


def outer_corners(hull: FeatureHull) -> tuple[Corners, ...] | None:
    """Lists the corners of a polytope that contains a block's columns after `move_inside`, for each block.

    With facets F and the centre c of float64 numbers, P = {s : F_k's ≤ 1 for all k} and R_j = max {|s_j| : s ∈ P}, let
    L = max_k F_k'(x - c), so that |x_j - c_j| ≤ L·R_j. A row's length as float64 computes it, ℓ, is a sum of p products
    of differences: with u = 2^-53 it lies within (p+2)u·C·L of L, where C = max_k Σ_j |F_kj|R_j. A row is kept where
    ℓ ≤ 1 + SLACK; else x becomes c + (x - c)/ℓ with three roundings, of length at most (L/ℓ)(1 + 4uC) + u·C_0, where
    C_0 = max_k Σ_j |F_kj||c_j|. So all lengths are below 1 + 1.8·SLACK if (p+6)u(C + C_0) ≤ SLACK/4, and numbers that
    underflow change nothing of it. The corners are c + (1 + 2·SLACK)v, where v are the corners of P to 128 digits: with
    an error e of |e_j| ≤ 2^-126·R_j, so that F_k'e ≤ 2^-126·C, their hull contains (1 - 2^-126·C)P.

    None where that does not hold, where P is not bounded, as facets that were rounded might leave it, and where it has
    too many facets for all its corners to be found by trying.
    """
    found = tuple(
        _corners(tuple(map(tuple, np.asarray(facets, np.float64).tolist())), tuple(np.asarray(centre)[0].tolist()))
        for facets, centre in zip(hull.facets, hull.centres, strict=True)
    )
    return None if None in found else tuple(block for block in found if block is not None)


@functools.lru_cache(maxsize=64)
def _corners(facets: tuple[tuple[float, ...], ...], centre: tuple[float, ...]) -> Corners | None:
    number, dimension = len(facets), len(centre)
    if number == dimension + 1:
        work = number * dimension**3
    else:
        tried = math.comb(number, dimension), math.comb(number, dimension - 1) * dimension
        work = sum(tried) * (dimension**3 + number * dimension)
    if work > _MOST_WORK:
        return None
    rows = [[Fraction(slope) for slope in facet] for facet in facets]
    corners = list(dict.fromkeys(_vertices(rows, dimension)))
    if not corners or not _is_bounded(rows, len(corners), dimension):
        return None
    middle = [Fraction(place) for place in centre]
    reach = [max(abs(corner[column]) for corner in corners) for column in range(dimension)]
    size = max(
        sum(abs(slope) * (far + abs(place)) for slope, far, place in zip(row, reach, middle, strict=True))
        for row in rows
    )
    if (dimension + 6) * _UNIT * size > Fraction(SLACK) / 4:
        return None
    factor = 1 + 2 * Fraction(SLACK)
    return tuple(tuple(place + factor * step for place, step in zip(middle, corner, strict=True)) for corner in corners)


def _vertices(rows: list[list[Fraction]], dimension: int) -> Iterator[tuple[Fraction, ...]]:
    """Lists the vertices of {s | F_k's ≤ 1}, rounded: there d of the F_k's are 1. A vertex may come several times."""
    ones = fmpq_mat(dimension, 1, [fmpq(1)] * dimension)
    for chosen in itertools.combinations(range(len(rows)), dimension):
        try:
            place = _matrix([rows[index] for index in chosen]).solve(ones)
        except ZeroDivisionError:
            continue
        others = [row for index, row in enumerate(rows) if index not in chosen]
        if not others or all(length <= 1 for length in (_matrix(others) * place).entries()):
            with precision(_DIGITS):
                corner = tuple(upper_end(arb(step)) for step in place.entries())
            yield corner


def _is_bounded(rows: list[list[Fraction]], corners: int, dimension: int) -> bool:
    """Whether {s : F_k's ≤ 1}, which has corners, has no ray: on one all but one coordinate's worth of F_k's stay.

    With one facet more than coordinates it has no ray if each choice of all facets but one meets in a corner of its
    own: those are as many corners as a simplex has, and with a ray there would be fewer. Where all facets meet in one
    point, as those of a cone, each choice meets there.

    **Arguments:** `corners`: how many different ones.
    """
    if len(rows) == dimension + 1:
        return corners == dimension + 1
    every = _matrix(rows)
    for chosen in itertools.combinations(rows, dimension - 1):
        ray = [_minor(chosen, column) * (-1) ** column for column in range(dimension)]
        if any(ray):
            slopes = (every * fmpq_mat(dimension, 1, ray)).entries()
            if all(slope <= 0 for slope in slopes) or all(slope >= 0 for slope in slopes):
                return False
    return True


def _minor(rows: tuple[list[Fraction], ...], column: int) -> fmpq:
    """The determinant of what is left without this column."""
    return _matrix([row[:column] + row[column + 1 :] for row in rows]).det() if rows else fmpq(1)


def _matrix(rows: list[list[Fraction]] | tuple[list[Fraction], ...]) -> fmpq_mat:
    entries = [fmpq(entry.numerator, entry.denominator) for row in rows for entry in row]
    return fmpq_mat(len(rows), len(rows[0]), entries)
