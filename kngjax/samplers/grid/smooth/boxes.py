"""An envelope of KNG that is constant on boxes: for few coefficients, where Θ binds or the Hessian is nearly singular.

θ = θ₀ + R'u, and boxes |u_k - m_k| ≤ h_k cover Θ without overlap: halves of halves of one with sides of a power of two,
so that all their ends are float64 numbers. A uniform point of a box is accepted with probability exp(T - ‖G(θ)‖) if it
lies in Θ, where T, the box's floor, is at most ‖G(θ)‖ there, by one of two bounds of each G_j/a_j, a the norm's scales:

- *Slopes.* With g and L balls of G_j/a_j and of HR', so divided, at an anchor u_a, v_i = Rx_i, |ρ'''| ≤ K, and
  |u_k - u_ak| ≤ w_k = |m_k - u_ak| + h_k in the box,

      |G_j/a_j - g_j - (L(m - u_a))_j| ≤ Σ_k |L_jk|h_k + ½KΣ_i (|x_ij|/a_j)(|v_i|'w)².

- *Rows.* A residual stays within |v_i|'h of what it is at m, and scores fall with residuals, so that each score lies
  between two numbers, and G_j within half of the sum of |x_ij| times their differences of the sum of x_ij times their
  means. A box has all that its halves have.

Where boxes are halved, and which anchors and rows are looked at, makes the mass small, and changes no law.
"""

import functools
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.samplers.grid.smooth.matrices import matrix, upward
from kngjax.samplers.grid.smooth.records import ROUNDOFF, THIRD, PseudoHuberRecords, Residuals, sum_error
from kngjax.samplers.grid.smooth.regions import Gauge, Region
from kngjax.samplers.grid.uniforms import Bits, Uniform

# Boxes are halved until about such a share of proposals is accepted, or there are so many boxes or anchors.
_GOALS, _LEAST_GOAL, _MOST_BOXES, _MOST_ANCHORS = {1: 0.5, 2: 0.3, 3: 0.1}, 0.02, 30_000, 3000
# But for many records no more passes over them than these in all, if there were some hundreds.
_FEWEST_ANCHORS, _MOST_ROWS = 300, 300_000_000
# Boxes that are halved before the next are chosen; and so many halvings of a side leave its ends exact.
_MOST_AT_ONCE, _MOST_HALVINGS = 512, 48
# Far more than some hundred roundings, relative to the sum of the absolute values of all that is added.
_SLACK = 1e-12
# More than is lost below 2^-1022.
_TINY = 1e-200


@owner_only
class Boxes(OwnerOnly):
    """Private. **Arguments:** `theta`: θ₀. `factor`: R. `middles`: m. `halves`: h. `floors`: T."""

    theta: np.ndarray
    factor: np.ndarray
    middles: np.ndarray
    halves: np.ndarray
    floors: np.ndarray

    def masses(self) -> list[arb]:
        """vol·exp(-T), with all digits that are set."""
        scale = arb(2) ** len(self.theta)
        for entry in np.diagonal(self.factor):
            scale *= arb(float(entry))
        found = []
        for half, floor in zip(self.halves.tolist(), self.floors.tolist(), strict=True):
            volume = scale
            for side in half:
                volume *= arb(side)
            found.append(volume * arb(-floor).exp())
        return found

    def draw(self, number: int, bits: Bits) -> "BoxPoint":
        """A uniform point of one box."""
        return BoxPoint(self, number, bits)


class BoxPoint:
    """A uniform point of a box. Private."""

    def __init__(self, boxes: Boxes, number: int, bits: Bits):
        self._boxes, self._number = boxes, number
        self._shares = [Uniform(bits) for _ in boxes.theta]

    def balls(self, digits: int) -> list[arb]:
        """Balls that contain its coordinates, from so many digits: of the same point each time."""
        boxes, number = self._boxes, self._number
        sides = zip(boxes.middles[number].tolist(), boxes.halves[number].tolist(), self._shares, strict=True)
        place = [arb(middle) + arb(half) * (2 * share.ball(digits) - 1) for middle, half, share in sides]
        return moved(boxes.theta, boxes.factor, place)


def moved(theta: np.ndarray, factor: np.ndarray, place: list[arb]) -> list[arb]:
    """θ₀ + R'u."""
    step = (matrix(factor).transpose() * arb_mat(len(place), 1, place)).entries()
    return [arb(float(t)) + s for t, s in zip(theta, step, strict=True)]


class _Anchors:
    """u_a, g and L with how far they may be from what balls contain, of all anchors so far. Private."""

    def __init__(self, records: PseudoHuberRecords, gauge: Gauge, theta: np.ndarray, factor: np.ndarray):
        self._records, self._theta, self._factor = records, theta, factor
        self._scales, self._kind = gauge.scales, gauge.noise.kind
        self.places: list[np.ndarray] = []
        self._of: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        # Sums of numbers that are not negative, rounded up.
        flat = np.abs(records.x.reshape(-1, records.dimension))
        rows = flat @ np.abs(factor).T
        up = 1.0 + 4.0 * sum_error(len(flat) + records.dimension + 8)
        self._rows = (rows * up + _TINY).reshape(*records.y.shape, -1)
        sizes = [-upward(-one) for one in self._scales]
        third = THIRD / records.threshold
        self._bends = np.stack(
            [0.5 * third * ((rows * (flat[:, j] / size)[:, None]).T @ rows) * up for j, size in enumerate(sizes)]
        )

    def add(self, place: np.ndarray, half: np.ndarray) -> tuple[int, float]:
        """One more, at this u; and the floor by rows of the box with such sides about it."""
        records, k = self._records, self._records.threshold
        exact = moved(self._theta, self._factor, [arb(float(one)) for one in place])
        near = np.array([float(one.mid()) for one in exact])
        # How much predictors differ from those at the exact place.
        off = np.array([upward((t - arb(float(n))).abs_upper()) for t, n in zip(exact, near, strict=True)])
        moves = float(records.largest @ off) * (1.0 + _SLACK) + _TINY
        residuals, columns = records.residuals(near), records.column_sums
        here = records.evaluate(near)
        assert here.hessian is not None
        # ρ'' is at most 1, and ρ''' at most K: so much do G and H.
        balls = [
            (g + arb(0, float(c) * moves * (1.0 + _SLACK))) / a
            for g, c, a in zip(here.gradient, columns, self._scales, strict=True)
        ]
        change = THIRD / k * moves * (1.0 + _SLACK)
        table = [
            [h + arb(0, float(c * x) * change * (1.0 + _SLACK)) for h, x in zip(row, records.largest, strict=True)]
            for row, c in zip(here.hessian.tolist(), columns, strict=True)
        ]
        scaled = [[one / a for one in row] for row, a in zip(table, self._scales, strict=True)]
        slopes = (arb_mat(scaled) * matrix(self._factor).transpose()).tolist()
        g, g_off = _split(balls)
        parts = [_split(row) for row in slopes]
        self.places.append(place)
        self._of.append((g, g_off, np.stack([one for one, _ in parts]), np.stack([two for _, two in parts])))
        return len(self.places) - 1, self._floor_of_rows(residuals, half, moves)

    def _floor_of_rows(self, residuals: Residuals, half: np.ndarray, moves: float) -> float:
        records, k = self._records, self._records.threshold
        reach = (self._rows @ half) * (1.0 + _SLACK) + moves
        low, high = (_scores(residuals.value + sign * reach, k) for sign in (1.0, -1.0))
        middle = ((0.5 * (low + high))[:, None, :] @ records.x).sum(axis=(0, 1))
        widths = ((0.5 * (high - low))[:, None, :] @ np.abs(records.x)).sum(axis=(0, 1))
        # A dozen roundings of scores, where the squared residual's have half their weight; and those of sums.
        each = residuals.error + (16 * ROUNDOFF + 4.0 * records.sum_error) * k
        least = np.abs(middle) - widths - each * records.column_sums * (1.0 + _SLACK) - _TINY
        most = np.array([upward(a) for a in self._scales])
        floor = float(_norm((np.maximum(least, 0.0) / most)[None], self._kind)[0]) * (1.0 - _SLACK)
        return floor if np.isfinite(floor) else 0.0

    def bounds(self, which: np.ndarray, middles: np.ndarray, halves: np.ndarray) -> "_Bounds":
        """By slopes, of boxes with these anchors."""
        places = np.stack(self.places)[which]
        g, g_off, slopes, slopes_off = (np.stack(table)[which] for table in zip(*self._of, strict=True))
        step = middles - places
        widths = (np.abs(step) + halves) * (1.0 + _SLACK)
        centre = g + np.einsum("bjk,bk->bj", slopes, step)
        sizes = np.abs(slopes) + slopes_off
        linear = np.einsum("bjk,bk->bj", sizes, halves)
        bent = np.einsum("jkl,bk,bl->bj", self._bends, widths, widths)
        total = np.abs(g) + g_off + np.einsum("bjk,bk->bj", sizes, widths) + bent
        off = g_off + np.einsum("bjk,bk->bj", slopes_off, widths) + _SLACK * total + _TINY
        least = np.maximum(np.abs(centre) - linear - bent - off, 0.0)
        floors = _norm(least, self._kind) * (1.0 - _SLACK)
        floors = np.where(np.isfinite(floors), floors, 0.0)
        value, by_slopes, by_bends = (_norm(one, self._kind) for one in (np.abs(centre), linear, bent))
        # Where slopes say little, halving the longest side does most.
        along = np.einsum("bjk,bk->bk", sizes, halves)
        axes = np.argmax(np.where((by_bends > by_slopes)[:, None], halves, along), axis=1)
        # Of an anchor in its own middle a box would have so much of the last term.
        own = by_bends * np.square(halves.max(axis=1) / widths.max(axis=1))
        is_far = (by_bends > np.maximum(by_slopes, 1.0)) & (own < 0.5 * by_bends)
        return _Bounds(floors, value, axes, is_far)


class _Bounds(NamedTuple):
    """Floors; about ‖G‖ in the middle; the axis to halve; and whether an anchor in the middle would help more."""

    floors: np.ndarray
    values: np.ndarray
    axes: np.ndarray
    is_far: np.ndarray

    def __repr__(self) -> str:
        return "<Bounds; OWNER ONLY>"


class _Cover(NamedTuple):
    """Boxes, their anchors, and what is known of them so far. Private."""

    middles: np.ndarray
    halves: np.ndarray
    which: np.ndarray
    bounds: _Bounds

    def __repr__(self) -> str:
        return "<Cover; OWNER ONLY>"

    @classmethod
    def of(cls, anchors: _Anchors, middles: np.ndarray, halves: np.ndarray, which: np.ndarray, least: np.ndarray):
        """With floors that are at least such."""
        bounds = anchors.bounds(which, middles, halves)
        return cls(middles, halves, which, bounds._replace(floors=np.maximum(bounds.floors, least)))

    def take(self, chosen: np.ndarray) -> "_Cover":
        bounds = _Bounds(*(one[chosen] for one in self.bounds))
        return _Cover(self.middles[chosen], self.halves[chosen], self.which[chosen], bounds)

    def join(self, other: "_Cover") -> "_Cover":
        bounds = _Bounds(*map(np.concatenate, zip(self.bounds, other.bounds, strict=True)))
        middles, halves, which = map(np.concatenate, zip(self[:3], other[:3], strict=True))
        return _Cover(middles, halves, which, bounds)

    def halved(self, anchors: _Anchors) -> "_Cover":
        rows = np.arange(len(self.which))
        half, shift = self.halves.copy(), np.zeros_like(self.halves)
        half[rows, self.bounds.axes] /= 2.0
        shift[rows, self.bounds.axes] = half[rows, self.bounds.axes]
        middles = np.concatenate([self.middles - shift, self.middles + shift])
        return _Cover.of(
            anchors, middles, *(np.concatenate([one] * 2) for one in (half, self.which, self.bounds.floors))
        )

    def anchored(self, anchors: _Anchors) -> "_Cover":
        found = [anchors.add(middle, half) for middle, half in zip(self.middles, self.halves, strict=True)]
        which, floors = (np.array(one) for one in zip(*found, strict=True))
        return _Cover.of(anchors, self.middles, self.halves, which, np.maximum(floors, self.bounds.floors))


def cover(
    records: PseudoHuberRecords, gauge: Gauge, region: Region, theta: np.ndarray, factor: np.ndarray
) -> tuple[Boxes, float]:
    """Boxes that cover Θ, and about the log of their mass."""
    dimension = gauge.dimension
    anchors, goal = _Anchors(records, gauge, theta, factor), _GOALS.get(dimension, _LEAST_GOAL)
    middles, halves = np.zeros((1, dimension)), np.full((1, dimension), _reach(region, theta, factor))
    smallest = halves[0, 0] * 2.0**-_MOST_HALVINGS
    most_anchors = max(_FEWEST_ANCHORS, min(_MOST_ANCHORS, _MOST_ROWS // records.y.size))
    number, floor = anchors.add(middles[0], halves[0])
    found = _Cover.of(anchors, middles, halves, np.array([number]), np.array([floor]))
    while True:
        log_masses = np.log(found.halves).sum(axis=1) - found.bounds.floors
        top = float(log_masses.max())
        masses = np.exp(log_masses - top)
        # As if ‖G‖ were what slopes say, or the floor.
        reached = float(np.exp(np.minimum(found.bounds.floors - found.bounds.values, 0.0)) @ masses)
        if reached >= goal * masses.sum() or len(masses) >= _MOST_BOXES or len(anchors.places) >= most_anchors:
            break
        order = np.argsort(-masses)
        count = 1 + int(np.searchsorted(np.cumsum(masses[order]), 0.5 * masses.sum()))
        chosen = order[: min(count, _MOST_AT_ONCE)]
        chosen = chosen[found.halves[chosen].min(axis=1) > smallest]
        if not chosen.size:
            break
        kept = np.ones(len(masses), bool)
        kept[chosen] = False
        is_far = found.bounds.is_far[chosen]
        parts = [found.take(kept)]
        if np.any(is_far):
            parts.append(found.take(chosen[is_far]).anchored(anchors))
        if not np.all(is_far):
            halved = found.take(chosen[~is_far]).halved(anchors)
            parts.append(halved.take(~_are_outside(region, theta, factor, halved.middles, halved.halves)))
        found = functools.reduce(_Cover.join, parts)
    log_scale = dimension * np.log(2.0) + float(np.log(np.diagonal(factor)).sum())
    boxes = Boxes(theta, factor, found.middles, found.halves, found.bounds.floors)
    return boxes, top + float(np.log(masses.sum())) + log_scale


def _scores(residuals: np.ndarray, k: float) -> np.ndarray:
    scaled = np.clip(residuals / k, -1e90, 1e90)
    return -k * scaled / np.sqrt(1.0 + np.square(scaled))


def _split(balls: list[arb]) -> tuple[np.ndarray, np.ndarray]:
    """Float64 numbers and how far from them balls reach."""
    centres = np.array([float(one.mid()) for one in balls])
    return centres, np.array([upward((one - arb(float(c))).abs_upper()) for one, c in zip(balls, centres, strict=True)])


def _norm(sizes: np.ndarray, kind: str) -> np.ndarray:
    if kind == "maximum":
        return sizes.max(axis=1)
    return sizes.sum(axis=1) if kind == "sum" else np.sqrt(np.square(sizes).sum(axis=1))


def _reach(region: Region, theta: np.ndarray, factor: np.ndarray) -> float:
    """A power of two that no |u_k| exceeds over Θ."""
    inverse, most = matrix(factor).transpose().inv().tolist(), 0.0
    for row in inverse:
        here = sum((one * arb(float(t)) for one, t in zip(row, theta, strict=True)), arb(0))
        ends = region.least(row) - here, here + region.least([-one for one in row])
        most = max(most, *(upward(abs(end)) for end in ends))
    return 2.0 ** float(np.frexp(most)[1])


def _are_outside(
    region: Region, theta: np.ndarray, factor: np.ndarray, middles: np.ndarray, halves: np.ndarray
) -> np.ndarray:
    """Whether boxes certainly do not meet Θ."""
    sizes = np.abs(factor)
    centre, spread = theta + middles @ factor, halves @ sizes
    spread = spread + _SLACK * (np.abs(theta) + np.abs(middles) @ sizes + spread) + _TINY
    shape = region.shape
    if shape.radius is None:
        return np.any((centre - spread > shape.upper) | (centre + spread < shape.lower), axis=1)
    least = np.maximum(np.abs(centre) - spread, 0.0) * (1.0 - _SLACK)
    return _norm(least, "sum" if shape.power == 1 else "length") > shape.radius * (1.0 + _SLACK)
