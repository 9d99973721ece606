"""Covers of Θ by boxes with floors of ‖G‖: proved with every rounding, and chosen by float64 and the data.

*Floors.* On a box within one on which G(u) is G(c) + [H](u - c), each |G_j| is at least |G(c) + H(c' - c)|_j less what
it may vary and what is not known (`sums.Slopes.sizes`), and the norm grows with each |G_j|.

*Rays.* G is monotone: along a ray from θ₀, G(θ)'v grows for v the ray's direction. So with ‖·‖_* the dual norm,
‖G(θ)‖ ≥ G(θ)'v/‖v‖_* ≥ G(p)'(p - θ₀)/‖p - θ₀‖_* for p between θ₀ and θ. With p - θ₀ = Mu, and a positive definite
L ≤ Σ q_i z_i z_i' over a box about θ₀ that contains p,

    G(p)'(p - θ₀) ≥ u'Lu - ‖G(θ₀)‖·‖Mu‖_*,    ‖Mu‖_*² ≤ κu'Lu,    κ = sup {z'ML^{-1}M'z : ‖z‖ ≤ 1},

and u'Lu ≥ u_j²/(L^{-1})_jj. So for p on the box's faces, ‖G(θ)‖ ≥ min_j |u_j|/√(κ(L^{-1})_jj) - ‖G(θ₀)‖.
"""

import math

import numpy as np
from flint import arb, arb_mat

from kngjax.core.balls import precision
from kngjax.draws.boxes.boxes import ENDS, UNSEEN, BoundedBoxes, crossing_axes, shares_inside
from kngjax.draws.boxes.record_sums import RecordSums, Slopes
from kngjax.draws.linear_algebra import enclosing
from kngjax.draws.refinement import refine, slabs
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape

Ends = tuple[np.ndarray, np.ndarray]

# In units of the noise: the first box about θ₀, and how much larger each next one is.
_CORE, _GROWTH = 32.0, 4.0
_RADII = (8.0, 16.0, 32.0, 64.0, 128.0)
# In logarithms: what is not worth another shell, and what is hardly. Where rays are worth trying.
_NEGLIGIBLE, _LIGHT, _LOW = 12.0, 2.0, 2.0
_DIGITS = 128
# Refinement stops at about this acceptance.
_GOALS = {1: 0.5, 2: 0.2, 3: 0.03}
_LAST_GOAL = 0.003
# Boxes are looked at anew where what is not known is so much, and so large a part of what varies.
_UNKNOWN, _PART, _SMALLER = 0.1, 0.5, 0.75
_MOST_SPLITS, _AT_ONCE = 8192, 2**17


class Cover:
    """Boxes that cover {u : θ(u) ∈ Θ}. Private. **Arguments:** `whole`: the ends of a box that contains all of it."""

    def __init__(self, sums: RecordSums, gauge: ScaledNorm, domain: Shape, whole: Ends):
        self._sums, self._gauge, self._domain = sums, gauge, domain
        self._known: list[Slopes] = []
        self._count = 0
        self._joined: Slopes | None = None
        self._too_large = math.inf
        self.acceptance = 0.0
        first = self._with_shares(self._first(whole))
        # A floor from rays may be enough.
        unknown = first.floors == 0.0
        self.boxes = BoundedBoxes.join([self._look(first.at(unknown)), first.at(~unknown)])

    def __repr__(self) -> str:
        return "<Cover; OWNER ONLY>"

    @property
    def known(self) -> Slopes:
        """Returns the bounds on G over all boxes, in the order of their numbers."""
        if self._joined is None:
            self._joined = Slopes.join(self._known)
            self._known = [self._joined]
        return self._joined

    def refine(self, most_boxes: int) -> None:
        """Halves boxes until proposals are accepted often enough, or there are so many of them."""
        goal = _GOALS.get(self._sums.dimension, _LAST_GOAL)
        fewest = int(np.clip(_AT_ONCE // max(1, self._sums.x.size), 1, 64))
        self.boxes, self.acceptance = refine(
            self.boxes,
            _masses,
            self._halve,
            lambda acceptance, _: acceptance >= goal,
            most_boxes,
            0.5,
            lambda _: (fewest, _MOST_SPLITS),
        )

    def _halve(self, boxes: BoundedBoxes, chosen: np.ndarray) -> BoundedBoxes:
        """The boxes with halves of these in place of them; of some nothing was known but what rays tell."""
        far = chosen[boxes.which[chosen] == UNSEEN]
        if far.size:
            return BoundedBoxes.join([boxes.without(far), self._look(boxes.at(far))])
        parents = boxes.at(chosen)
        children = parents.halved(self._axes(parents))
        kept = self._domain.may_meet(*self._sums.coordinates.hull(children.centres, children.halves))
        return BoundedBoxes.join([boxes.without(chosen), self._look(self._with_shares(children.at(kept)))])

    def _with_shares(self, boxes: BoundedBoxes) -> BoundedBoxes:
        return boxes._replace(shares=shares_inside(self._domain, self._sums.coordinates, boxes))

    def _axes(self, boxes: BoundedBoxes) -> np.ndarray:
        """Chooses the axis along which ‖G‖ varies most, or the box crosses Θ's border, where that costs more."""
        halves, which = boxes.halves, np.maximum(boxes.which, 0)
        slopes = np.abs(self.known.matrix[which]) + self.known.off[which]
        varied = self._gauge.about(np.moveaxis(slopes * halves[:, None, :], 1, 2))
        usable = np.isfinite(varied) & (boxes.which >= 0)[:, None]
        found = np.argmax(np.where(usable, varied, halves), axis=1)
        crossing = np.log(boxes.shares) < boxes.floors - boxes.middles
        if crossing.any():
            some = boxes.at(crossing)
            found[crossing] = crossing_axes(self._domain, self._sums.coordinates, some)
        return found

    def _look(self, boxes: BoundedBoxes) -> BoundedBoxes:
        """The boxes with floors from what is known of their parents, or from records where that is too little."""
        found, stale = self._with_floors(boxes)
        if not stale.any():
            return found
        parts = [found.at(~stale)]
        found = found.at(stale)
        # Slopes are not worth their time on boxes as large as some where they told of nothing.
        are_small = found.halves.max(axis=1) < _SMALLER * self._too_large
        if are_small.any():
            some = found.at(are_small)
            self._known.append(self._sums.over(some.centres, some.halves))
            numbers = self._count + np.arange(some.floors.size)
            self._count, self._joined = self._count + some.floors.size, None
            fresh, still = self._with_floors(some._replace(which=numbers))
            parts.append(fresh.at(~still))
            if still.any():
                fresh = fresh.at(still)
                self._too_large = min(self._too_large, float(fresh.halves.max(axis=1).min()))
                parts.append(self._between_ends(fresh))
        if not are_small.all():
            others = found.at(~are_small)
            parts.append(self._between_ends(others._replace(which=np.full(others.floors.size, ENDS))))
        return BoundedBoxes.join(parts)

    def _between_ends(self, boxes: BoundedBoxes) -> BoundedBoxes:
        least, average = self._sums.least(boxes.centres, boxes.halves)
        about = self._gauge.about(average)
        return boxes._replace(
            floors=np.maximum(boxes.floors, self._gauge.below(np.maximum(least, 0.0))),
            middles=np.where(np.isfinite(about), about, boxes.middles),
        )

    def _with_floors(self, boxes: BoundedBoxes) -> tuple[BoundedBoxes, np.ndarray]:
        stale = boxes.which < 0
        if stale.all():
            return boxes._replace(middles=np.full(boxes.floors.size, np.inf)), stale
        least, middle, varied, unknown = self.known.sizes(np.maximum(boxes.which, 0), boxes.centres, boxes.halves)
        floors = np.maximum(self._gauge.below(np.maximum(least, 0.0)), boxes.floors)
        about, doubt, part = map(self._gauge.about, (middle, unknown, varied))
        about = np.where(np.isfinite(about), about, np.inf)
        # An infinite number is not less than another.
        in_doubt = ~((doubt <= _UNKNOWN) | ((doubt <= _PART * part) & np.isfinite(part)))
        found = boxes._replace(floors=np.where(stale, boxes.floors, floors), middles=np.where(stale, np.inf, about))
        return found, stale | in_doubt

    def _first(self, whole: Ends) -> BoundedBoxes:
        """A box about θ₀ and shells around it, as far out as anything can matter."""
        dimension = self._sums.dimension
        origin = np.zeros((1, dimension))
        start = self._sums.over(origin, origin)
        level = self._gauge.above(np.abs(start.gradient[0]) + start.error[0])
        # About the log of the noise's mass in units of u.
        own = dimension * math.log(2.0) + math.lgamma(dimension + 1)
        wanted = _log_volume(whole) - own + _NEGLIGIBLE
        radius, floor = _CORE, 0.0
        if level < _LOW:
            radius, floor = self._core(whole, level, own)
        inner = _within(whole, radius)
        parts = [BoundedBoxes.between([inner])]
        while np.any(inner[0] > whole[0]) or np.any(inner[1] < whole[1]):
            radius *= _GROWTH
            outer = whole if floor >= wanted else _within(whole, radius)
            parts.append(BoundedBoxes.between(slabs(inner, outer), floor))
            inner = outer
            # Where rays gave no floor before, they give none farther out.
            floor = max(floor, self._beyond(inner, whole, level)) if floor > 0.0 else 0.0
        return BoundedBoxes.join(parts)

    def _core(self, whole: Ends, level: float, own: float) -> tuple[float, float]:
        """The radius of the first box, such that rays make the next shell light, and the floor beyond it."""
        floor = 0.0
        for radius in _RADII:
            inner = _within(whole, radius)
            floor = max(floor, self._beyond(inner, whole, level))
            if floor >= _log_volume(_within(whole, _GROWTH * radius)) - own + _LIGHT:
                return radius, floor
        return _CORE, self._beyond(_within(whole, _CORE), whole, level)

    def _beyond(self, inner: Ends, whole: Ends, level: float) -> float:
        """A floor on all rays from θ₀ through the faces of a box about it; 0 where none is known."""
        ways = [[inner[side] != whole[side] for side in (0, 1)], [np.abs(inner[side]) for side in (0, 1)]]
        nearest = np.where(ways[0], ways[1], np.inf).min(axis=0)
        form, off = self._sums.lowest_form(np.maximum(*ways[1]))
        if not (np.all(np.isfinite(form)) and np.all(np.isfinite(off)) and np.all(nearest > 0.0)):
            return 0.0
        with precision(_DIGITS):
            try:
                inverse = enclosing(form, off).inv()
            except ZeroDivisionError:
                return 0.0
            matrix = arb_mat(self._sums.coordinates.matrix.tolist())
            image = matrix * inverse * matrix.transpose()
            sides = [arb(float(one)) ** 2 / inverse[j, j] for j, one in enumerate(nearest) if np.isfinite(one)]
            widest = self._gauge.largest_form(image)
            if not (sides and widest > 0 and all(inverse[j, j] > 0 for j in range(len(form)))):
                return 0.0
            squares = [(side / widest).lower() for side in sides]
            if not all(square > 0 for square in squares):
                return 0.0
            lowest = min(float(square.sqrt().lower()) for square in squares)
        return max(0.0, lowest * (1.0 - 2.0**-40) - level)


def _log_volume(ends: Ends) -> float:
    return float(np.log(ends[1] - ends[0]).sum())


def _within(whole: Ends, radius: float) -> Ends:
    return np.maximum(whole[0], -radius), np.minimum(whole[1], radius)


def _masses(boxes: BoundedBoxes) -> tuple[np.ndarray, np.ndarray]:
    """Computes the envelope's mass over each box, and about how much of it is superfluous."""
    log_volumes = boxes.log_volumes()
    log_upper = log_volumes - boxes.floors
    top = log_upper.max()
    upper = np.exp(log_upper - top)
    return upper, upper - np.exp(log_volumes - np.maximum(boxes.middles, boxes.floors) - top) * boxes.shares
