"""Newton's method with a line search, in float64 and with any number of digits: where to look, which proves nothing.

*That it ends at the minimiser.* Along Newton's direction p the slope φ'(t) = ∇J(θ + tp)'p of a convex J increases from
φ'(0) < 0. A step t is taken where |φ'(t)| ≤ |φ'(0)|/8 and J certainly is lower: if φ'(t) < 0, or if φ'(t)(t - a) is at
most half of |φ'(a)|a for a point a < t with φ'(a) < 0, as J(t) ≤ J(a) + φ'(t)(t - a) and J(a) ≤ J(0) - |φ'(a)|a. With
γ ≤ ∇²J ≤ L, J falls by no less than a fixed part of its distance from the minimum, whatever the loss. In practice it
takes some ten steps where scores are smooth. Where they are steep, such as Huber's with a small threshold, a step goes
on to the record at which the slope changes sign, as in the simplex method: the gradient's length would fall far more
slowly, since it may have to grow on the way.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float

from kngjax.core.balls import ball_of, power_of_two
from kngjax.core.verified import UNIT
from kngjax.draws.linear_algebra import dot, shifted, solved, times
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.losses.verified_scores import fraction_of

# In float64: most steps, and most places along one. After a step so short, relatively, the next one would be lost in
# rounding.
_MOST_STEPS, _MOST_PLACES, LAST_STEP = 200, 64, 1e-9
# Steps by one and the same Hessian go on while each is so many times the last.
_SHORTER = 0.25
# Relatively: where a Hessian is next to singular, its smallest eigenvalues are taken to be larger.
_LEAST_PIVOT = 1e-14
# A slope that is less than this part of the sum of sizes that it is a sum of may be nothing but rounding.
_ROUNDED = 2.0**-50
# From so many rows on it starts with a part of them.
_MANY, _EIGHTH = 4096, 8
# How much flatter a line is where a step ends.
_FLATTER = 8
# Steps grow or shrink ever faster, up to this factor: 64 of them stay within the range of float64.
_LARGEST_FACTOR = Fraction(2**12)

Number = TypeVar("Number", float, arb)


def step_length(slope: Callable[[Fraction], Number], first: Number, most_places: int) -> Fraction | None:
    """t at which a convex function is lower than at 0, and its slope at most an eighth of that there; None if none is.

    **Arguments:** `slope`: at t. `first`: the slope at 0, which is negative. `most_places`: that are looked at; if none
    of them is as flat, the last one with a negative slope is taken.
    """
    lower, upper, below, above, place, factor = Fraction(0), None, first, first, Fraction(1), Fraction(_FLATTER)
    for _ in range(most_places):
        at = slope(place)
        if at < 0:
            lower, below = place, at
            if at >= first / _FLATTER:
                return lower
        else:
            upper, above = place, at
        if upper is not None and lower > 0:
            if above <= -first / _FLATTER and above * float(upper / lower - 1) <= -below / 2:
                return upper
            place = _between(lower, upper)
        elif place == 1 and upper is not None:
            # Where all of a step is as good as it seems, a look at half of it tells so.
            place = Fraction(1, 2)
        else:
            place, factor = place * factor if upper is None else place / factor, min(factor**2, _LARGEST_FACTOR)
    return lower if lower > 0 else None


def _between(lower: Fraction, upper: Fraction) -> Fraction:
    """The middle; where they are of different sizes, a power of two that is about as far from both."""
    if upper <= 16 * lower:
        return (lower + upper) / 2
    sizes = (one.numerator.bit_length() - one.denominator.bit_length() for one in (lower, upper))
    return power_of_two(sum(sizes) // 2)


def float_search(
    objective: Objective, tilt: Float[np.ndarray, " dimension"], start: Float[np.ndarray, " dimension"] | None = None
) -> Float[np.ndarray, " dimension"]:
    """Searches in float64 for the minimiser of J. **Arguments:** `start`: where to begin, None for 0."""
    scores, x, nothing = objective.scores, objective.x, np.zeros(len(objective.x))
    ridge, start = float(objective.ridge), np.zeros(objective.dimension) if start is None else start
    theta = start
    if len(x) >= _MANY:
        # With one row in eight the minimum is nearly the same, at an eighth of the cost.
        theta, is_there = _settled(objective, tilt, float_search(objective.one_in(_EIGHTH), tilt / _EIGHTH, start))
        if is_there:
            return theta

    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(_MOST_STEPS):
            predictor, rest = x @ theta, ridge * theta + tilt
            (score, off), (least, most) = scores.floats(predictor, nothing), scores.slopes(predictor, nothing)
            hessian = (x * (0.5 * (least + most))[:, None]).T @ x + ridge * np.eye(len(theta))
            hessian += _LEAST_PIVOT * np.diag(np.diag(hessian))
            try:
                step = -np.linalg.solve(hessian, score @ x + rest)
            except np.linalg.LinAlgError:
                break
            if np.linalg.norm(step) <= LAST_STEP * np.linalg.norm(theta):
                theta = theta + step
                break
            along = x @ step
            first = float(score @ along + rest @ step)
            # Where no step leads down it is as low as float64 can tell.
            rounded = off @ np.abs(along) + _ROUNDED * (np.abs(score) @ np.abs(along) + np.abs(rest) @ np.abs(step))
            if not first < -rounded:
                break

            def slope(place: Fraction, start=(predictor, rest), step=step, along=along) -> float:
                length = float(place)
                moved = scores.floats(start[0] + length * along, nothing)[0]
                return float(moved @ along + (start[1] + length * ridge * step) @ step)

            length = step_length(slope, first, _MOST_PLACES)
            if length is None:
                break
            theta = theta + float(length) * step
    return theta if np.all(np.isfinite(theta)) else start


def _settled(
    objective: Objective, tilt: Float[np.ndarray, " dimension"], theta: Float[np.ndarray, " dimension"]
) -> tuple[Float[np.ndarray, " dimension"], bool]:
    """Steps by one Hessian, for as long as each is far shorter than the last, and whether rounding ended them.

    From where it is nearly the same, Newton's method with a Hessian and a line search for each step takes far longer.
    """
    last, known = math.inf, None
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(_MOST_STEPS):
            gradient, hessian = objective.about(theta, with_hessian=known is None)
            known = hessian if known is None else known
            assert known is not None
            try:
                step = -np.linalg.solve(known, gradient + tilt)
            except np.linalg.LinAlgError:
                break
            size, reach = float(np.linalg.norm(step)), float(np.linalg.norm(theta))
            if not size <= _SHORTER * last:
                return theta, last <= LAST_STEP * reach
            theta = theta + step
            # The next one would be as much shorter again, and lost in rounding.
            if math.isfinite(last) and size * (size / last) <= UNIT * reach:
                return theta, True
            last = size
    return theta, False


class BallObjective:
    """J with a linear term, record by record in balls. Private."""

    def __init__(self, objective: Objective):
        self._objective = objective

    def __repr__(self) -> str:
        return "<BallObjective; OWNER ONLY>"

    @functools.cached_property
    def _table(self) -> arb_mat:
        rows, columns = self._objective.x.shape
        return arb_mat(rows, columns, self._objective.x.ravel().tolist())

    @property
    def spread(self) -> int:
        """Estimates log₂ of L/γ, L ≥ ∇²J: the digits that a Hessian may lose."""
        objective = self._objective
        ratio = 1 + len(objective.x) * objective.largest / objective.ridge
        return (ratio.numerator // ratio.denominator).bit_length()

    def gradient(self, theta: Sequence[Fraction], tilt: Sequence[arb]) -> list[arb]:
        """∇J(θ)."""
        ridge = ball_of(self._objective.ridge)
        scores = self._scores(self._predictors([ball_of(one) for one in theta]))
        total = arb_mat(1, len(scores), scores) * self._table
        parts = zip(total.entries(), theta, tilt, strict=True)
        return [one + ridge * ball_of(place) + b for one, place, b in parts]

    def hessian(self, theta: Sequence[Fraction], radius: Sequence[arb] | None = None) -> arb_mat:
        """Encloses all Σq_i x_i x_i' + γI for slopes q_i over the box of this radius about θ."""
        places = [ball_of(one) for one in theta]
        if radius is not None:
            places = [one + arb(0, off) for one, off in zip(places, radius, strict=True)]
        dimension = self._objective.dimension
        slopes = self._objective.scores.slope_balls(self._predictors(places))
        table = self._table
        weighted = [[q * x for x in row] for q, row in zip(slopes, table.tolist(), strict=True)]
        total = table.transpose() * arb_mat(weighted) if slopes else arb_mat(dimension, dimension)
        return shifted(total, ball_of(self._objective.ridge))

    def lower(self, theta: Sequence[Fraction], residual: Sequence[arb], tilt: Sequence[arb]) -> list[Fraction] | None:
        """Searches along Newton's direction, or against the gradient, for a point with a lower J; None if digits lack.

        **Arguments:** `residual`: the gradient at θ.
        """
        step = self._newton_step(theta, residual)
        if not dot(residual, step) < 0:
            step = [-one.mid() for one in residual]
        first = dot(residual, step)
        if not first < 0:
            return None
        places, middles = [ball_of(one).mid() for one in theta], [one.mid() for one in tilt]
        predictors, along = self._predictors(places), self._predictors(step)
        ridge = ball_of(self._objective.ridge)
        # The slope of the ridge and the linear term at θ, and the curvature of the ridge, along the step.
        flat, bend = (
            dot([ridge * one + b for one, b in zip(places, middles, strict=True)], step),
            ridge * dot(step, step),
        )

        def slope(place: Fraction) -> arb:
            length = ball_of(place)
            scores = self._scores([(one + length * two).mid() for one, two in zip(predictors, along, strict=True)])
            return (dot(scores, along) + flat + length * bend).mid()

        length = step_length(slope, first.mid(), 2 * ctx.prec)
        if length is None:
            return None
        found = [fraction_of(one + ball_of(length) * part) for one, part in zip(places, step, strict=True)]
        return found if found != list(theta) else None

    def _newton_step(self, theta: Sequence[Fraction], residual: Sequence[arb]) -> list[arb]:
        """-H^{-1}∇J(θ), about; zeros where H is not known well enough."""
        middles = [[entry.mid() for entry in row] for row in self.hessian(theta).tolist()]
        try:
            step = solved(arb_mat(middles), [-one.mid() for one in residual])
        except ZeroDivisionError:
            return [arb(0)] * len(residual)
        return [one.mid() for one in step]

    def _scores(self, predictors: Sequence[arb]) -> list[arb]:
        return self._objective.scores.balls(predictors)

    def _predictors(self, places: Sequence[arb]) -> list[arb]:
        return times(self._table, places)
