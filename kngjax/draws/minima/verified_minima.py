"""Minimisers of smooth losses with a ridge: found in float64, proved with every rounding, and refined without limit.

J(θ) = ℓ_n(θ; D) + (γ/2)θ'θ + b'θ over R^d: `kngjax.draws.minima.smooth_objectives` has its gradients with every
rounding, and `kngjax.draws.minima.newton_searches` looks for the minimiser. The proof is by interval Newton:

Let B be a box about θ̃ with half widths ρ, and N the set of all -H^{-1}∇J(θ̃) for H = Σq_i x_i x_i' + γI with q_i
between the slopes that s_i may have over B. If θ̃ + N lies in the interior of B, then it contains the minimiser.
Proof: let θ_B minimise J over B. Then ∇J(θ_B) = ∇J(θ̃) + H(θ_B - θ̃) for one such H, which is positive definite, and
with θ' = θ̃ - H^{-1}∇J(θ̃) ∈ B this is H(θ_B - θ'). Were θ_B not θ', J would fall from θ_B towards θ', since
∇J(θ_B)'(θ' - θ_B) < 0. So θ_B = θ' lies in the interior of B, and is the minimiser over R^d.
"""

import functools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat, ctx

from kngjax.core.balls import ball_of, precision
from kngjax.core.verified import NEXT_TO_ZERO
from kngjax.draws.linear_algebra import dot, enclosing, shifted, times
from kngjax.draws.minima.newton_searches import BallObjective, float_search
from kngjax.draws.minima.objectives_by_passes import ObjectiveByPasses
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.losses.verified_scores import fraction_of

# For one number of digits: far more than are ever needed.
_MOST_STEPS = 10_000


class CertifiedMinimizer:
    """The minimiser of J with a linear term in balls, ever more exactly. Private.

    **Arguments:** `start`: a public guess of it, None for 0.
    """

    def __init__(self, objective: Objective | ObjectiveByPasses, start: np.ndarray | None = None):
        self._objective = objective
        self._start = np.zeros(objective.dimension) if start is None else start
        self._theta: list[Fraction] | None = None

    def __repr__(self) -> str:
        return "<CertifiedMinimizer; OWNER ONLY>"

    @functools.cached_property
    def _balls(self) -> BallObjective:
        return BallObjective(_in_memory(self._objective))

    def places(self, tilt: Sequence[arb]) -> list[arb] | None:
        """Balls that contain the minimiser for every b in these balls; None where more digits are needed."""
        if self._theta is None:
            theta = _searched(self._objective, np.array([float(b.mid()) for b in tilt]), self._start)
            self._theta = [Fraction(one) for one in theta.tolist()]
            found = self._in_floats(theta, tilt)
        else:
            with precision(ctx.prec + self._balls.spread):
                found = self._in_balls(tilt)
        if found is not None:
            self._theta = [fraction_of(place) for place in found]
        return found

    def near(self, bound: Fraction) -> list[Fraction]:
        """θ with |∇J(θ)|² certainly at most the bound, for b = 0."""
        dimension = self._objective.dimension
        theta = _searched(self._objective, np.zeros(dimension), self._start)
        place, tilt, digits = [Fraction(one) for one in theta.tolist()], [arb(0)] * dimension, 64
        with precision(digits):
            residual = self._float_residual(theta, tilt)
            if residual is not None and dot(residual, residual) <= ball_of(bound):
                return place
        while True:
            digits *= 2
            with precision(digits + self._balls.spread):
                for _ in range(_MOST_STEPS):
                    residual = self._balls.gradient(place, tilt)
                    if dot(residual, residual) <= ball_of(bound):
                        return place
                    lower = self._balls.lower(place, residual, tilt)
                    if lower is None:
                        break
                    place = lower

    def _float_residual(self, theta: np.ndarray, tilt: Sequence[arb]) -> list[arb] | None:
        total, error = self._objective.gradient(theta)
        if not np.all(np.isfinite(error)):
            return None
        ridge = ball_of(self._objective.ridge)
        parts = zip(total.tolist(), error.tolist(), theta.tolist(), tilt, strict=True)
        return [arb(one, off) + ridge * arb(place) + b for one, off, place, b in parts]

    def _in_floats(self, theta: np.ndarray, tilt: Sequence[arb]) -> list[arb] | None:
        residual = self._float_residual(theta, tilt)
        if residual is None:
            return None
        _, hessian = self._objective.about(theta, with_hessian=True)
        assert hessian is not None
        try:
            inverse = np.abs(np.linalg.inv(hessian))
        except np.linalg.LinAlgError:
            return None
        radius = 2.0 * inverse @ np.array([float(abs(one).upper()) for one in residual]) + NEXT_TO_ZERO
        if not np.all(np.isfinite(radius)):
            return None
        middle, off = self._objective.slopes(theta, radius)
        if not (np.all(np.isfinite(middle)) and np.all(np.isfinite(off))):
            return None
        place, sizes = ([arb(one) for one in part.tolist()] for part in (theta, radius))
        return _newton(shifted(enclosing(middle, off), ball_of(self._objective.ridge)), residual, place, sizes)

    def _in_balls(self, tilt: Sequence[arb]) -> list[arb] | None:
        """A box about where the search has stopped with these digits."""
        assert self._theta is not None
        for _ in range(_MOST_STEPS):
            residual = self._balls.gradient(self._theta, tilt)
            lower = self._balls.lower(self._theta, residual, tilt)
            if lower is None:
                return self._box(residual)
            self._theta = lower
        return None

    def _box(self, residual: Sequence[arb]) -> list[arb] | None:
        assert self._theta is not None
        try:
            inverse = self._balls.hessian(self._theta).inv()
        except ZeroDivisionError:
            return None
        sizes = [abs(one).upper() for one in residual]
        reach = times(arb_mat([[abs(entry).upper() for entry in row] for row in inverse.tolist()]), sizes)
        radius = [2 * one.upper() + arb(2) ** -(8 * ctx.prec) for one in reach]
        place = [ball_of(one) for one in self._theta]
        return _newton(self._balls.hessian(self._theta, radius), residual, place, radius)


def _searched(objective: Objective | ObjectiveByPasses, tilt: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Searches in float64 for the minimiser of J."""
    if isinstance(objective, ObjectiveByPasses):
        return objective.search(tilt, start)
    return float_search(objective, tilt, start)


def _in_memory(objective: Objective | ObjectiveByPasses) -> Objective:
    return objective.in_memory() if isinstance(objective, ObjectiveByPasses) else objective


def _newton(hessian: arb_mat, residual: Sequence[arb], place: Sequence[arb], radius: Sequence[arb]) -> list[arb] | None:
    """θ̃ + N where it certainly lies in the interior of the box of this radius; None elsewhere."""
    try:
        # By an inverse of the middle: elimination in balls makes them wider by factors that no digits take away.
        solved = hessian.solve(arb_mat([[-one] for one in residual]), algorithm="precond")
    except ZeroDivisionError:
        return None
    steps = solved.entries()
    if not all(abs(step) < size for step, size in zip(steps, radius, strict=True)):
        return None
    return [one + step for one, step in zip(place, steps, strict=True)]
