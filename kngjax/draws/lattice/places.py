"""Whole numbers for lattice points, so that boxes of them are sets of points that are easy to draw from."""

import abc

import numpy as np
from jaxtyping import Bool, Float, Int

from kngjax.draws.uniforms import Bits

Corners = Int[np.ndarray, "boxes numbers"]


class AbstractCoordinates(abc.ABC):
    """Whole numbers m(k) of every lattice point k: boxes low ≤ m ≤ high that share no m share no point.

    A box has *places*, each of which is one of its points or none, and every point of it is just one of them. So a
    place that is drawn uniformly is each of the points with the same probability.
    """

    @abc.abstractmethod
    def around(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boxes that hold all k from low to high, of shape (d,): one, of shape (d,), or several of shape (boxes, m)."""

    @abc.abstractmethod
    def extremes(self, low: Corners, high: Corners) -> tuple[np.ndarray, np.ndarray]:
        """Boxes of k around boxes of m, each of shape (boxes, d)."""

    @abc.abstractmethod
    def sizes(self, low: Corners, high: Corners) -> list[int]:
        """Counts the places of each box."""

    @abc.abstractmethod
    def log_sizes(self, low: Corners, high: Corners) -> Float[np.ndarray, " boxes"]:
        """Returns about the logarithms of the numbers of places."""

    @abc.abstractmethod
    def divisible(self, low: Corners, high: Corners) -> Bool[np.ndarray, "boxes numbers"]:
        """Marks the sides that may be halved, so that places become fewer; none of a box of one place."""

    @abc.abstractmethod
    def may_hold(self, low: Corners, high: Corners) -> Bool[np.ndarray, " boxes"]:
        """Marks the boxes that may have a point, none whose low exceeds its high; with one place this is certain."""

    @abc.abstractmethod
    def somewhere(self, low: Corners, high: Corners) -> tuple[np.ndarray, np.ndarray]:
        """Returns a k about each box, shape (boxes, d), always the same, and whether the box contains k."""

    @abc.abstractmethod
    def draw(self, low: np.ndarray, high: np.ndarray, bits: Bits) -> np.ndarray | None:
        """Returns a place of one box, uniformly: k, shape (d,), or None where it is no point."""


def somewhere(low: Corners, high: Corners) -> Corners:
    """Returns an m of each box, shape (boxes, m)."""
    return low + np.minimum(np.floor(shares_of(low, high) * (high - low + 1.0)).astype(np.int64), high - low)


def shares_of(low: Corners, high: Corners) -> Float[np.ndarray, "boxes numbers"]:
    """Computes numbers in [0, 1): always the same for a box, and as if at random for others."""
    mixed = (low @ _MULTIPLIERS[: low.shape[1]] + high @ _MULTIPLIERS[-low.shape[1] :]).astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) % np.uint64(2**20)
    return np.sqrt(_PRIMES[: low.shape[1]]) * mixed[:, None] % 1.0


_PRIMES = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])
# Odd, and of no pattern that boxes have.
_MULTIPLIERS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xBF58476D1CE4E5B9,
        0x94D049BB133111EB,
    ],
    np.uint64,
).astype(np.int64)
