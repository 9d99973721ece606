"""Solves G(θ) = z: finds balls that contain the solution, or proves that Θ has none.

Let θ̃ be any point, R lower triangular with RH(θ̃)R' ≥ λ, X ≥ |Rx_i| for all records, and e ≥ |R(G(θ̃) - z)|. For
|δ|_M ≤ ρ predictors move by at most Xρ, and log ρ'' by at most LXρ, where |ρ'''| ≤ Lρ'', so that with β = exp(-LXρ) the
means of ρ'' over segments are at least β of what they are at θ̃, and δ'(G(θ̃ + δ) - z) ≥ βλ|δ|²_M - |δ|_M·e, which is
not negative where |δ|_M = ρ if βλρ ≥ e. Then G(θ̃ + δ) = z has one solution, and |δ|_M ≤ ρ; so |δ_j| ≤ ρ|R e_j|.
There H lies between β and 1/β times H(θ̃).

If (G(θ̃) - z)'(θ - θ̃) > 0 for all θ ∈ Θ, then Θ has no solution: G is monotone.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from kngjax.draws.linear_algebra import dot, solved, times
from kngjax.draws.shells import matrices
from kngjax.draws.shells.matrices import congruent, matrix
from kngjax.draws.shells.sets_in_balls import least, length
from kngjax.draws.shells.shell_certificate import ShellCertificate, inverse_factor
from kngjax.draws.shells.shell_records import Evaluation, ShellRecords
from kngjax.geometry.shapes import Shape

_MOST_STEPS, _SOME_RECORDS = 60, 4096
_SMALLEST_DAMPING = 1e-6


class SolutionInBalls(NamedTuple):
    """Balls of θ(z), and of log det R^{-2} - log det H(θ(z)). Private."""

    theta: list[arb]
    log_ratio: arb

    def __repr__(self) -> str:
        return "<SolutionInBalls; OWNER ONLY>"


def middles(balls: Sequence[arb]) -> np.ndarray:
    """Returns float64 numbers near to what the balls contain."""
    return np.array([float(one.mid()) for one in balls])


def search(
    records: ShellRecords, region: Shape, certificate: ShellCertificate, z: Sequence[arb]
) -> tuple[np.ndarray, Evaluation, bool]:
    """Returns a float64 θ near to θ(z), with G and H there, and whether they prove that Θ has no solution."""

    def is_refused(theta: np.ndarray, evaluation: Evaluation) -> bool:
        return is_separated(region, [arb(float(t)) for t in theta], evaluation, z)

    return _newton(records, certificate.theta, middles(z), is_refused)


def estimate(records: ShellRecords) -> np.ndarray:
    """Estimates where G is 0: no law depends on how nearly.

    First of some of the records; and where Newton's method does not get there from that, of a loss that bends on a
    scale as large as the responses, and then on ever smaller ones.
    """
    some = records.some(_SOME_RECORDS)
    start = np.zeros(records.dimension) if some is records else estimate(some)
    found, is_near = _minimum(records, start)
    if is_near:
        return found
    times = float(np.max(np.abs(some.y))) / records.score.scale
    theta = np.zeros(records.dimension)
    for power in range(int(np.clip(np.ceil(np.log2(times) / 2.0), 0.0, 60.0)) if times > 1.0 else 0, 0, -1):
        theta = _minimum(records.with_score(records.score.wider(4.0**power)), theta)[0]
    other, is_near = _minimum(records, theta)
    return other if is_near else found


def _minimum(records: ShellRecords, start: np.ndarray) -> tuple[np.ndarray, bool]:
    """Searches for where G is 0, and tells whether a Newton step from there is short."""
    theta, evaluation, _ = _newton(records, start, np.zeros_like(start), lambda *_: False)
    factor = None if evaluation.hessian is None else inverse_factor(evaluation.hessian)
    if factor is None:
        return theta, False
    # In units of a standard error, or about that.
    return theta, float(np.linalg.norm(factor @ middles(evaluation.gradient))) < 0.1


def _newton(
    records: ShellRecords,
    theta: np.ndarray,
    wanted: np.ndarray,
    is_refused: Callable[[np.ndarray, Evaluation], bool],
) -> tuple[np.ndarray, Evaluation, bool]:
    """Newton steps, halved until |R(G - z)| falls, with the R of the step's foot."""
    damping, evaluation = 1.0, records.evaluate(theta)
    for _ in range(_MOST_STEPS):
        factor = None if evaluation.hessian is None else inverse_factor(evaluation.hessian)
        if factor is None:
            break
        scaled = factor @ (middles(evaluation.gradient) - wanted)
        size = float(np.linalg.norm(scaled))
        noise = float(np.linalg.norm(factor @ np.array([float(g.rad()) for g in evaluation.gradient])))
        if size <= noise:
            break
        trial = theta - damping * (factor.T @ scaled)
        there = records.evaluate(trial)
        # Any point may prove it, and a step that overshoots most of all.
        if is_refused(trial, there):
            return trial, there, True
        if float(np.linalg.norm(factor @ (middles(there.gradient) - wanted))) <= (1.0 - 0.25 * damping) * size:
            theta, evaluation, damping = trial, there, min(1.0, 2.0 * damping)
            continue
        damping *= 0.5
        # No progress from a solution is rounding.
        if damping < _SMALLEST_DAMPING or size <= 1e3 * noise:
            break
    return theta, evaluation, False


def is_separated(region: Shape, theta: Sequence[arb], evaluation: Evaluation, z: Sequence[arb]) -> bool:
    """Tells whether Θ certainly has no solution, as G at this θ tells."""
    rest = [g - one for g, one in zip(evaluation.gradient, z, strict=True)]
    return bool(least(region, rest) > dot(rest, theta))


def enclose(
    records: ShellRecords,
    certificate: ShellCertificate,
    theta: Sequence[arb],
    evaluation: Evaluation,
    z: Sequence[arb],
) -> SolutionInBalls | None:
    """Balls about an exact θ̃ near the solution; None if it is too far off to tell.

    **Arguments:** `theta`: θ̃. `evaluation`: there.
    """
    assert evaluation.hessian is not None
    R, dimension = matrix(certificate.factor), records.dimension
    whitened = congruent(R, evaluation.hessian)
    lowest = matrices.least_eigenvalue(whitened)
    if not lowest > 0.0:
        return None
    rest = [g - one for g, one in zip(evaluation.gradient, z, strict=True)]
    error = length(times(R, rest)).upper()
    # β is above 1/2, and nearly 1.
    radius, rate = 2 * error / arb(lowest), arb(records.score.steepness) * arb(certificate.longest)
    if not rate * radius < 0.5:
        return None
    radius = (error / (arb(lowest) * (-rate * radius).exp())).upper()
    columns = R.transpose().tolist()
    balls = [
        middle + arb(0, (radius * length(column)).abs_upper()) for middle, column in zip(theta, columns, strict=True)
    ]
    slack = arb(0, (dimension * rate * radius).abs_upper())
    log_ratio = slack - matrices.log_determinant(whitened)
    return SolutionInBalls(balls, log_ratio) if log_ratio.is_finite() else None


def refine(
    records: ShellRecords, region: Shape, theta: np.ndarray, z: Sequence[arb], digits: int
) -> tuple[list[arb], Evaluation, bool]:
    """θ̃, its evaluation in balls of so many digits, and whether some point proves that Θ has no solution.

    Newton's method for the convex Φ(θ) = Σρ(r_i) - z'θ, with steps halved until Φ's slope along them is no steeper than
    it was, in as many steps as there are digits: so it does not depend on what float64 can tell, and with enough digits
    it ends at the solution, or where there is none, far off, where G tells that.
    """
    point = [arb(float(t)) for t in theta]
    here = records.evaluate_in_balls(point)
    for _ in range(digits):
        if is_separated(region, point, here, z):
            return point, here, True
        rest = [(g - one).mid() for g, one in zip(here.gradient, z, strict=True)]
        assert here.hessian is not None
        try:
            step = solved(arb_mat([[h.mid() for h in row] for row in here.hessian.tolist()]), rest)
        except ZeroDivisionError:
            break
        size = dot(rest, step)
        # Beyond the digits that are set there is nothing to gain.
        if not size.is_finite() or not size > arb(2) ** (-2 * digits):
            break
        damping = arb(1)
        for _ in range(digits):
            trial = [(t - damping * s).mid() for t, s in zip(point, step, strict=True)]
            there = records.evaluate_in_balls(trial)
            left = [g - one for g, one in zip(there.gradient, z, strict=True)]
            if not abs(dot(left, step)) > size:
                break
            if is_separated(region, trial, there, z):
                return trial, there, True
            damping = damping / 2
        point, here = trial, there
    return point, here, is_separated(region, point, here, z)
