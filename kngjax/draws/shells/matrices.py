"""Bounds eigenvalues and determinants of small symmetric matrices of balls, for certain."""

import math

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.verified import UNIT, sum_error
from kngjax.draws.linear_algebra import shifted

# Guesses of eigenvalues are moved by such a part of the largest before they are proved.
_SLACK = 1e-9


def upward(ball: arb) -> float:
    """Returns a float64 number that is not below what the ball contains; infinite where there is none."""
    return math.nextafter(float(ball.upper()), math.inf) if ball.is_finite() else math.inf


def downward(ball: arb) -> float:
    """Returns a float64 number that is not above what the ball contains; -infinite where there is none."""
    return -upward(-ball)


def matrix(table: Float[np.ndarray, "rows columns"]) -> arb_mat:
    """Converts a table of float64 numbers exactly."""
    return arb_mat(table.tolist())


def congruent(factor: arb_mat, form: arb_mat) -> arb_mat:
    """RSR'."""
    return factor * form * factor.transpose()


def middle(form: arb_mat) -> tuple[arb_mat, arb]:
    """Returns the symmetric matrix of the balls' middles, and the largest distance in spectral norm from it."""
    size = form.nrows()
    entries, rest = [], arb(0)
    table = form.tolist()
    for i in range(size):
        for j in range(size):
            centre = table[max(i, j)][min(i, j)].mid()
            entries.append(centre)
            rest += (table[i][j] - centre).abs_upper() ** 2
    return arb_mat(size, size, entries), rest.sqrt().upper()


def as_floats(form: arb_mat) -> Float[np.ndarray, "rows columns"]:
    """Converts balls to float64 numbers about their middles."""
    return np.array([[float(entry.mid()) for entry in row] for row in form.tolist()])


def pivots(form: arb_mat) -> list[arb] | None:
    """D of S = LDL' if all of it is certainly positive, so that S certainly is positive definite; else None."""
    rows, found = form.tolist(), []
    for k in range(len(rows)):
        pivot = rows[k][k]
        if not pivot > 0:
            return None
        found.append(pivot)
        for i in range(k + 1, len(rows)):
            share = rows[i][k] / pivot
            for j in range(k + 1, i + 1):
                rows[i][j] -= share * rows[j][k]
    return found


def is_positive(form: arb_mat) -> bool:
    """Tells whether every symmetric matrix in these balls certainly is positive definite."""
    centre, rest = middle(form)
    return rest.is_finite() and pivots(shifted(centre, -rest)) is not None


def least_eigenvalue(form: arb_mat) -> float:
    """Bounds the least eigenvalue of every symmetric matrix in these balls from below; -infinite if unproved."""
    guess = _guesses(form)
    if guess is None:
        return -math.inf
    bound = float(guess[0] - _SLACK * np.max(np.abs(guess)))
    return bound if is_positive(shifted(form, -arb(bound))) else -math.inf


def certain_least(form: Float[np.ndarray, "size size"]) -> float:
    """Returns a lower bound of the least eigenvalue of this symmetric matrix of floats; -infinite where none is proved.

    Proof (Rump 2006, Verification of positive definiteness). If the computed factorisation of Cholesky of a symmetric
    matrix C runs to its end, in whatever order its sums are taken, then no eigenvalue of C is below -2γ·tr C with
    γ = γ_{m+1} (Higham 2002, theorem 10.3). C is S - (μ + s) with a diagonal that is rounded by at most
    2u(|S_ii| + |μ + s|); so no eigenvalue of S is below μ if s exceeds 2γ·tr C and that.
    """
    size = float(np.abs(form).sum(axis=0).max())
    if not 2.0**-500 < size < 2.0**500:
        return -math.inf
    count = len(form)
    bound = float(np.linalg.eigvalsh(form)[0]) - 1e-10 * size
    slack = 8.0 * sum_error(count + 2) * (float(np.abs(np.diagonal(form)).sum()) + count * abs(bound))
    slack += 8.0 * UNIT * (size + abs(bound))
    try:
        np.linalg.cholesky(form - (bound + slack) * np.eye(count))
    except np.linalg.LinAlgError:
        return -math.inf
    return bound


def largest_eigenvalue(form: arb_mat) -> float:
    """Bounds the largest eigenvalue of every symmetric matrix in these balls from above; infinite if unproved."""
    return -least_eigenvalue(-1 * form)


def largest_relative(form: arb_mat, base: arb_mat) -> float:
    """λ ≥ 0 such that λ·base - form certainly is positive definite; infinite where none was proved."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(as_floats(base)))
        guess = float(np.linalg.eigvalsh(inverse @ as_floats(form) @ inverse.T)[-1])
    except np.linalg.LinAlgError:
        return math.inf
    bound = max(guess, 0.0) * (1.0 + _SLACK) + _SLACK
    return bound if math.isfinite(bound) and is_positive(arb(bound) * base - form) else math.inf


def log_determinant(form: arb_mat) -> arb:
    """Returns a ball with log det S of every symmetric positive definite S in these balls; NaN if none is known.

    Along the segment from C to C + E, which stays in the balls, all eigenvalues are at least λ, so that the derivative
    of log det, tr(S^{-1}E), is at most d|E|/λ.
    """
    centre, rest = middle(form)
    found, least = pivots(centre), least_eigenvalue(form)
    if found is None or not least > 0.0:
        return arb.nan()
    total = sum((pivot.log() for pivot in found), arb(0))
    return total + arb(0, (form.nrows() * rest / arb(least)).abs_upper())


def _guesses(form: arb_mat) -> np.ndarray | None:
    table = as_floats(form)
    if not np.all(np.isfinite(table)):
        return None
    try:
        return np.linalg.eigvalsh(table)
    except np.linalg.LinAlgError:
        return None
