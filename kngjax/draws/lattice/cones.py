"""Cones of lattice points from an apex, halved in direction and in distance."""

import numpy as np
from jaxtyping import Int

from kngjax.draws.finite import below
from kngjax.draws.lattice.places import AbstractCoordinates, shares_of
from kngjax.draws.uniforms import Bits

# Products of whole numbers of 64 bits stay below it.
_LARGEST = 2**62
# How much farther a first box goes than it begins.
_SHELL = 16


class Cones(AbstractCoordinates):
    """m(k) = (a, j, v): from the apex p to k it is about j·v/n_a, with |v_a| = n_a.

    Let δ = k - p ≠ 0. a is the first axis on which |δ_a|/n_a is the largest, j = |δ_a| how far k is along it, and
    v = ⌊n_a·δ/j⌋ its direction: v_a is n_a or -n_a. The apex is (0, 0, (n_0, 0, ..., 0)). So every k has one m.

    The points of a box are a pyramid's between two distances, without its upper sides. With j given δ_b lies from
    ⌈j·low_b/n_a⌉ to below ⌈j·(high_b + 1)/n_a⌉, at most ⌈j·(high_b + 1 - low_b)/n_a⌉ numbers, which grows with j. Its
    places are a j, and for each b ≠ a one of as many numbers as at the largest j; what is not of this box is no point
    of it.

    **Arguments:** `apex`: p. `sides`: n, whole and at least the largest |δ_b| in Θ, one a coefficient.
    """

    def __init__(self, apex: Int[np.ndarray, " dimension"], sides: Int[np.ndarray, " dimension"]):
        self.apex, self.sides = apex, sides

    @classmethod
    def over(cls, apex: np.ndarray, low: np.ndarray, high: np.ndarray) -> "Cones | None":
        """Builds cones that hold all k from low to high; None if 64 bits would not hold their products."""
        sides = np.maximum(np.maximum(high - apex, apex - low), 1)
        return cls(apex, sides) if 2 * (int(np.max(sides)) + 1) ** 2 < _LARGEST else None

    def of(self, points: Int[np.ndarray, "points dimension"]) -> Int[np.ndarray, "points numbers"]:
        """m of each k."""
        moves = points - self.apex
        face = np.zeros(len(moves), np.int64)
        rows = np.arange(len(moves))
        for axis in range(1, len(self.sides)):
            is_farther = np.abs(moves[:, axis]) * self.sides[face] > np.abs(moves[rows, face]) * self.sides[axis]
            face[is_farther] = axis
        distance = np.abs(moves[rows, face])
        direction = moves * self.sides[face][:, None] // np.maximum(distance, 1)[:, None]
        direction[distance == 0, 0] = self.sides[0]
        return np.column_stack([face, distance, direction])

    def faces(self, low: np.ndarray) -> np.ndarray:
        """a, and where v_a is, of boxes."""
        return np.arange(len(self.sides)) == low[:, :1]

    def directions(self, low, high):
        """Returns the ends of n_a·δ/j on boxes, both included, each of shape (boxes, d)."""
        return low[:, 2:], np.where(self.faces(low), high[:, 2:], high[:, 2:] + 1)

    def around(self, low, high):
        dimension, lows, highs = len(self.sides), [], []
        for axis, (least, farthest) in enumerate(zip(low - self.apex, high - self.apex, strict=True)):
            for side, most in ((self.sides[axis], farthest), (-self.sides[axis], -least)):
                while most > 0:
                    nearest = most // _SHELL + 1
                    lows.append([axis, nearest, *-self.sides])
                    highs.append([axis, most, *self.sides])
                    lows[-1][2 + axis] = highs[-1][2 + axis] = side
                    most = nearest - 1
        apex = [0, 0, self.sides[0], *[0] * (dimension - 1)]
        return np.array([apex, *lows], np.int64), np.array([apex, *highs], np.int64)

    def extremes(self, low, high):
        (first, last), side = self.directions(low, high), self.sides[low[:, :1]]
        near, far = low[:, 1:2], high[:, 1:2]
        least, most = np.minimum(first * near, first * far), np.maximum(last * near, last * far)
        return self.apex + least // side, self.apex - (-most // side)

    def _widths(self, low, high):
        """Counts the numbers of which a place takes one, along each axis."""
        widths = -(-(high[:, 2:] + 1 - low[:, 2:]) * high[:, 1:2] // self.sides[low[:, :1]])
        return np.where(self.faces(low), 1, np.maximum(widths, 1))

    def sizes(self, low, high):
        lengths = (high[:, 1] - low[:, 1] + 1).tolist()
        widths = np.prod(self._widths(low, high).astype(object), axis=1)
        return [length * int(width) for length, width in zip(lengths, widths, strict=True)]

    def log_sizes(self, low, high):
        return np.log(high[:, 1] - low[:, 1] + 1.0) + np.sum(np.log(self._widths(low, high).astype(float)), axis=1)

    def divisible(self, low, high):
        is_long = high[:, 1] > low[:, 1]
        return np.column_stack([np.zeros(len(low), bool), is_long, self._widths(low, high) > 1])

    def may_hold(self, low, high):
        is_known = ~np.any(self.divisible(low, high), axis=1)
        found = np.all(low <= high, axis=1)
        found[is_known] &= self.somewhere(low[is_known], high[is_known])[1]
        return found

    def somewhere(self, low, high):
        # About uniform in the pyramid, and so mostly far from the apex.
        shares = shares_of(low, high)[:, 1:]
        near, far, power = low[:, 1].astype(float), high[:, 1] + 1.0, float(len(self.sides))
        distance = (near**power + shares[:, 0] * (far**power - near**power)) ** (1.0 / power)
        distance = np.clip(np.floor(distance).astype(np.int64), low[:, 1], high[:, 1])
        ends = np.where(self.faces(low), low[:, 2:], high[:, 2:]) + 1
        numbers = self._first(ends, low, distance) - self._first(low[:, 2:], low, distance)
        points = self._points(low, distance, np.floor(shares[:, 1:] * numbers).astype(np.int64))
        return points, self._holds(low, high, points)

    def draw(self, low, high, bits: Bits):
        # One by one in Python's whole numbers, which is faster for so few.
        face, nearest, *first = low.tolist()
        _, farthest, *last = high.tolist()
        distance = nearest + below(farthest - nearest + 1, bits)
        side, found = int(self.sides[face]), []
        for axis, (least, most, start) in enumerate(zip(first, last, self.apex.tolist(), strict=True)):
            width = max(-(-(most + 1 - least) * farthest // side), 1)
            step = below(width, bits) if axis != face and width > 1 else 0
            move = -(-least * distance // side) + step
            # Beyond the pyramid: it is wider farther out.
            if distance and not least <= move * side // distance <= most:
                return None
            found.append(start + move)
        point = np.array(found, np.int64)
        return point if self._holds(low[None], high[None], point[None])[0] else None

    def _points(self, low, distance, steps):
        return self.apex + self._first(low[:, 2:], low, distance) + np.where(self.faces(low), 0, steps)

    def _first(self, direction, low, distance):
        """⌈j·v/n_a⌉."""
        return -(-direction * distance[:, None] // self.sides[low[:, :1]])

    def _holds(self, low, high, points):
        numbers = self.of(points)
        return np.all((low <= numbers) & (numbers <= high), axis=1)
