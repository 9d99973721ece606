"""Chooses the envelope of about the least mass, in float64, which decides how long a draw takes and no more.

The log of an envelope's mass is M + log ∫ of the density that is drawn from, and the envelope with the least mass
accepts most often. Rows are ordered by elimination, each time the row whose noise is smallest beside Θ: as far as the
pivots are certainly positive A_SS is positive definite, so that a draw has something to invert.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import exp, inf, log
from typing import NamedTuple, TypeVar

import numpy as np
from flint import arb

from kngjax.core.balls import ball_of, precision
from kngjax.draws.grid_cells import Grid
from kngjax.draws.linear_algebra import dot
from kngjax.draws.quadratic.envelopes import QuadraticEnvelope, QuadraticLaw, Rejected
from kngjax.draws.quadratic.tilted_noises import about_log_mass, dual_in_floats
from kngjax.draws.uniforms import Bits, decided

T = TypeVar("T")

# Digits for elimination, and for differences that cancel.
_DIGITS = 512
# So many proposals of an envelope without tilt are made before tilts are sought.
_TRIALS = 64
# For how many sets of rows tilts are sought, in how many steps, and by what shares of the log-mass kinks are blurred.
_CANDIDATES = 4
_STEPS = 40
_BLURS = (0.1, 0.01, 1e-3, 1e-4)
# Where searches start: 1/‖h‖_* - 1 of the tilt, and how many times the pull of the best law without a tilt.
_SHARES = (6.0, 1.0, 0.15, 0.01, 1e-3, 1e-5)
_PULLS = (1.0, 20.0, 400.0)


def draw_quadratic(law: QuadraticLaw, grid: Grid, bits: Bits, envelopes: Iterator[QuadraticEnvelope]) -> list[int]:
    """Returns the cell of θ, moved inward where its point would lie outside of Θ.

    It ends with probability 1 for all data; how long it takes depends on them. Neither the envelopes, which float64 and
    the data choose, nor what was rejected before change the law of what is accepted, as proposals are independent.

    **Arguments:** `envelopes`: without end, as `Choice` makes them; who draws several times of one law chooses once.
    """
    while isinstance(cell := decided(next(envelopes).propose(grid, bits)), Rejected):
        pass
    return law.body.inward(cell, grid)


class _Fit(NamedTuple):
    """An envelope by its numbers in float64. **Arguments:** `tilt`: h = λwp. `pull`: see `AbstractBody.widened`."""

    rows: list[int]
    tilt: np.ndarray
    pull: float
    mass: float


class Choice:
    """Envelopes for one law. Private."""

    def __init__(self, law: QuadraticLaw):
        self._law = law
        with precision(_DIGITS):
            scales = law.noise.ball_scales
            halves = [ball_of(half) for half in law.body.shape.half_widths]
            self._order, pivots = _eliminate(law.gram, halves, scales)
            # log det of each leading block, of y by u for θ = middle + half width · u and z = scale · y.
            self._log_determinants = np.cumsum([0.0, *(float(pivot.log().mid()) for pivot in pivots)])
        self._scales = [float(one.mid()) for one in scales]
        self._slopes: np.ndarray | None = None

    def envelopes(self) -> Iterator[QuadraticEnvelope]:
        """Yields the envelopes that proposals are drawn from, one after another and without end."""
        dimension = len(self._law.moment)
        leading = [self._order[:number] for number in range(len(self._order) + 1)]
        masses = [self._log_mass(rows, None, self._law.body.best_pull(dimension - len(rows))) for rows in leading]
        best = int(np.argmin(masses))
        plain = self._envelope(leading[best], None, self._law.body.best_pull(dimension - best))
        yield from itertools.repeat(plain, _TRIALS)
        if (tried := _unless_it_fails(lambda: self._untried(leading, masses))) is not None:
            yield from itertools.repeat(tried, _TRIALS)
        fitted = _unless_it_fails(lambda: self._tilted(leading, masses)) or plain
        while True:
            yield from (fitted, fitted, fitted, plain)

    def _untried(self, leading: list[list[int]], masses: list[float]) -> QuadraticEnvelope | None:
        """Builds the envelope of least mass with a tilt that costs no search; None where no tilt lowers the mass."""
        self._prepare()
        rough = min((self._start(rows, [self._offsets]) for rows in leading), key=lambda start: start.mass)
        return self._envelope(rough.rows, rough.tilt, rough.pull) if rough.mass < min(masses) else None

    def _tilted(self, leading: list[list[int]], masses: list[float]) -> QuadraticEnvelope | None:
        """Searches for the tilted envelope of least mass; None where no tilt lowers the mass.

        Rows are also taken in the order of how far Aθ - b is from 0 there, and of the tilt without rows, which is about
        the dual of the least norm on Θ: rows that do not matter there are better left out.
        """
        directions = [self._offsets]
        start = self._start([], directions)
        if start.mass < inf and (fit := _unless_it_fails(lambda: self._fit(start))) is not None:
            directions.append(fit.tilt)
        choices = {tuple(sorted(rows)): rows for rows in leading}
        for direction in directions:
            order = sorted(self._order, key=lambda row: -abs(direction[row]))
            choices |= {tuple(sorted(order[:number])): order[:number] for number in range(1, len(order))}
        starts = sorted((self._start(rows, directions) for rows in choices.values()), key=lambda start: start.mass)
        starts = [start for start in starts[:_CANDIDATES] if start.mass < inf]
        fits = [*starts[:1], *(_unless_it_fails(lambda start=start: self._fit(start)) for start in starts)]
        best = min((fit for fit in fits if fit is not None), key=lambda fit: fit.mass, default=None)
        return None if best is None or best.mass >= min(masses) else self._envelope(best.rows, best.tilt, best.pull)

    def _prepare(self) -> None:
        """B and β: y = Bu - β."""
        law = self._law
        with precision(_DIGITS):
            rows = range(len(law.moment))
            scales = law.noise.ball_scales
            gram = [[ball_of(one) for one in line] for line in law.gram]
            middle = [ball_of(one) for one in law.body.shape.middle]
            halves = [ball_of(one) for one in law.body.shape.half_widths]
            self._slopes = np.array([[float((gram[i][j] * halves[j] / scales[i]).mid()) for j in rows] for i in rows])
            shifts = [dot(row, middle) for row in gram]
            moment = [ball_of(one) for one in law.moment]
            self._offsets = np.array([float(((moment[i] - shifts[i]) / scales[i]).mid()) for i in rows])

    def _log_mass(self, rows: list[int], tilt: np.ndarray | None, pull: float, blur: float = 0.0) -> float:
        """Estimates the log of the mass of these rows' envelope, with h = λwp; smooth on the scale of `blur`."""
        law, dimension = self._law, len(self._law.moment)
        own = set(rows)
        rest = [axis for axis in range(dimension) if axis not in own]
        most, floor, reaches = 0.0, 0.0, np.zeros(dimension)
        if tilt is None:
            tilt = np.zeros(dimension)
        else:
            assert self._slopes is not None
            reaches, dual = tilt @ self._slopes, dual_in_floats(law.noise.kind, tilt)
            most = -float(tilt @ self._offsets)
            floor = -(most + law.body.about_most(reaches.tolist(), 0.0, blur)) / dual if dual > 0.0 else 0.0
        pull = law.body.widened(reaches[rest].tolist(), pull) if rest else 0.0
        mass = law.body.log_mass(reaches[rest].tolist(), pull) if rest else 0.0
        mass += most + law.body.about_most(reaches[rows].tolist() if rows else [], pull, blur)
        if rows:
            mass += about_log_mass(law.noise.kind, tilt[rows], floor) - self._log_determinant(rows)
        return mass if mass == mass else inf

    def _log_determinant(self, rows: list[int]) -> float:
        """Computes log det A_SS, of y by u for θ = middle + half width · u and z = scale · y."""
        if rows == self._order[: len(rows)]:
            return float(self._log_determinants[len(rows)])
        assert self._slopes is not None
        sign, found = np.linalg.slogdet(self._slopes[np.ix_(rows, rows)])
        return float(found) if sign > 0 else -inf

    def _start(self, rows: list[int], directions: list[np.ndarray]) -> "_Fit":
        """The best of some tilts and pulls."""
        kind, dimension = self._law.noise.kind, len(self._law.moment)
        tilted = rows if rows and kind != "sum" else list(range(dimension))
        pull = self._law.body.best_pull(dimension - len(rows))
        found = []
        for direction in directions:
            part = np.zeros(dimension)
            part[tilted] = direction[tilted]
            dual = dual_in_floats(kind, part)
            for share in _SHARES if 0.0 < dual < inf else ():
                tilt = part / (dual * (1.0 + share))
                found += [_Fit(rows, tilt, pull * more, self._log_mass(rows, tilt, pull * more)) for more in _PULLS]
        return min(found, key=lambda fit: fit.mass, default=_Fit(rows, np.zeros(dimension), pull, inf))

    def _fit(self, start: "_Fit") -> "_Fit":
        """A tilt and a pull of about the least mass."""
        import scipy.optimize

        rows, kind, dimension = start.rows, self._law.noise.kind, len(self._law.moment)
        tilted = rows if rows and kind != "sum" else list(range(dimension))

        def fit(numbers: np.ndarray, blur: float = 0.0) -> _Fit:
            # Within the unit ball of the dual norm, and as near to its end as need be.
            direction, share = numbers[:-2], exp(min(max(numbers[-2], -30.0), 30.0))
            pull, tilt = exp(min(max(numbers[-1], -30.0), 30.0)), np.zeros(dimension)
            tilt[tilted] = direction / ((1.0 + share) * (dual_in_floats(kind, direction) + 1e-300))
            return _Fit(rows, tilt, pull, min(self._log_mass(rows, tilt, pull, blur), 1e30))

        dual = dual_in_floats(kind, start.tilt)
        numbers = np.array([*(start.tilt[tilted] / dual), log(1.0 / dual - 1.0), log(start.pull or 1.0)])
        found = [start]
        for blur in _BLURS:
            # A maximum that is taken at corners of Θ has edges, which a search does not leave.
            blur = max(blur * abs(start.mass), 0.1)
            options = {"maxiter": _STEPS}
            done = scipy.optimize.minimize(
                lambda x, b=blur: fit(x, b).mass, numbers, method="L-BFGS-B", options=options
            )
            numbers = done.x
            found.append(fit(numbers))
        return min(found, key=lambda fit: fit.mass)

    def _envelope(self, rows: list[int], tilt: np.ndarray | None, pull: float) -> QuadraticEnvelope:
        dimension = len(self._law.moment)
        given = [Fraction(0)] * dimension
        if tilt is not None and self._slopes is not None:
            given = [Fraction(float(h) / scale) for h, scale in zip(tilt, self._scales, strict=True)]
            reaches = (tilt @ self._slopes)[[axis for axis in range(dimension) if axis not in set(rows)]]
            pull = self._law.body.widened(reaches.tolist(), pull) if len(reaches) else 0.0
        return QuadraticEnvelope(self._law, rows, given, Fraction(pull) / self._law.body.unit_of_pull)


def _unless_it_fails(choose: Callable[[], T]) -> T | None:
    """Runs `choose`, and returns None where float64 has no such numbers or anything else is in its way.

    The choice changes how long a draw takes and no more. A failure would be an output that depends on the data, and so
    would a warning.
    """
    with contextlib.suppress(Exception), np.errstate(all="ignore"):
        return choose()
    return None


def _eliminate(gram, halves: Sequence[arb], scales: Sequence[arb]) -> tuple[list[int], list[arb]]:
    """The order of rows with their pivots, in units of noise across Θ, as far as those are certainly positive."""
    dimension = len(halves)
    left = [[ball_of(one) for one in line] for line in gram]
    units = [half / scale for half, scale in zip(halves, scales, strict=True)]
    order, pivots, rest = [], [], list(range(dimension))
    while rest:
        sure = [axis for axis in rest if left[axis][axis] > 0]
        if not sure:
            break
        at = max(sure, key=lambda axis: float((left[axis][axis] * units[axis]).log().mid()))
        order.append(at)
        pivots.append(left[at][at] * units[at])
        rest.remove(at)
        for row in rest:
            factor = left[row][at] / left[at][at]
            for column in rest:
                left[row][column] -= factor * left[at][column]
    return order, pivots
