"""Convex hulls of points about 0 and the least ellipsoid about ±points, whatever the units of the coordinates."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

Rows = Float[Array, "rows columns"] | Float[np.ndarray, "rows columns"]

# Facets of a hull grow so fast with the dimension that the next one takes minutes and gigabytes.
LARGEST_DIMENSION = 6
# Directions in which points spread less than this, relative to the widest, are rounding.
_FLAT = 1e-9
_VOLUME_GAP = 1e-9
_MOST_STEPS = 200_000


class Hull(NamedTuple):
    """A convex hull with 0 inside.

    **Arguments:** `vertices`: shape (m, d). `facets`: rows a of shape (f, d); the hull is {v : a'v ≤ 1 for every row}.
    `simplices`: shape (s, d, d), each the vertices of a piece of the boundary; with 0 they fill the hull. `indices`:
    shape (m,), of the vertices among the points.
    """

    indices: np.ndarray
    vertices: np.ndarray
    facets: np.ndarray
    simplices: np.ndarray


def checked_points(name: str, points: object) -> np.ndarray:
    """Returns points of shape (m, d) as finite float64 numbers; raises ValueError for anything else."""
    array = np.array(points, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite numbers of shape (number, dimension), got shape {array.shape}")
    return array


def whiten(name: str, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(PW, W) with the second moment of the rows of PW about 0 the identity, so that no unit is too small to see.

    Raises ValueError for points in a plane through 0.
    """
    number, dimension = points.shape
    scales = np.max(np.abs(points), axis=0)
    if number >= dimension and np.all(scales > 0):
        _, spreads, axes = np.linalg.svd(points / scales, full_matrices=False)
        if spreads[-1] > _FLAT * spreads[0]:
            matrix = axes.T / scales[:, None] * (math.sqrt(number) / spreads)
            return points @ matrix, matrix
    raise ValueError(
        f"the {name} lie in a plane through the origin, and {dimension} linearly independent ones are needed: add "
        f"{name} in the missing directions, or leave out a column that is constant or a linear function of others"
    )


def hull_about_zero(name: str, points: np.ndarray) -> Hull:
    """Returns the hull of points, shape (m, d), that have 0 well inside; `name` is what errors call them.

    A segment and a simplex in closed form, others by Qhull (Barber, Dobkin and Huhdanpaa 1996). Raises ValueError for
    points in a plane through 0 and for more than six dimensions.
    """
    number, dimension = points.shape
    if dimension == 1:
        ends = points[(kept := np.array([points.argmin(), points.argmax()]))]
        if not ends[0] < 0 < ends[1]:
            whiten(name, np.zeros((1, 1)))
        return Hull(kept, ends, 1.0 / ends, ends[:, :, None])
    round_points, matrix = whiten(name, points)
    if number == dimension + 1:
        indices = np.array([np.delete(np.arange(number), index) for index in range(number)])
        facets = np.linalg.solve(round_points[indices], np.ones((number, dimension, 1)))[:, :, 0]
        return Hull(np.arange(number), points, facets @ matrix.T, points[indices])
    if dimension > LARGEST_DIMENSION:
        raise ValueError(
            f"the hull of the {name} in {dimension} dimensions has more facets than can be listed: polytopes are for "
            f"{LARGEST_DIMENSION} dimensions at most. Take norm=None (the box around the possible gradient changes) or "
            "Ellipsoid.of(points)"
        )
    # Imported where it is needed: most mechanisms have no hull.
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(round_points, qhull_options="Qt")
    except QhullError as error:
        raise ValueError(f"the hull of the {name} could not be computed: {str(error).splitlines()[0]}") from None
    # Qhull cuts facets into simplices and repeats their plane.
    rounded = np.round(hull.equations, 10) + 0.0
    planes = hull.equations[np.unique(rounded, axis=0, return_index=True)[1]]
    facets = -planes[:, :-1] / planes[:, -1:]
    simplices = points[hull.simplices]
    volumes = np.abs(np.linalg.det(round_points[hull.simplices]))
    kept = simplices[volumes > 1e-14 * volumes.sum()]
    return Hull(hull.vertices, points[hull.vertices], facets @ matrix.T, kept)


def least_ellipsoid(points: np.ndarray) -> np.ndarray:
    """Returns A of the ellipsoid {v : v'Av ≤ 1} of least volume with all points inside, shape (d, d).

    The dual problem is a D-optimal design: weights λ that maximise log det Σ λ_i p_i p_i', optimal if and only if
    g_i = p_i'(Σ λ p p')^{-1}p_i ≤ d for every i. Khachiyan's ascent with steps away from points of too much weight
    (Todd and Yıldırım 2007) ends when max g_i ≤ (1 + 1e-9)d, so the volume is within a factor (1 + 1e-9)^{d/2} of the
    least, and A is divided by max g_i, so every point is inside.

    Raises ValueError for points in a plane through 0, RuntimeError if the gap does not close.
    """
    round_points, matrix = whiten("points", points)
    number, dimension = round_points.shape
    if dimension == 1:
        return 1.0 / np.max(points**2, axis=0, keepdims=True)

    def measured() -> tuple[np.ndarray, np.ndarray]:
        inverse = np.linalg.inv((round_points.T * weights) @ round_points)
        return inverse, np.einsum("ij,jk,ik->i", round_points, inverse, round_points)

    weights = np.full(number, 1.0 / number)
    for step in range(_MOST_STEPS):
        if step % 100 == 0:
            inverse, lengths = measured()
        largest = int(np.argmax(lengths))
        held = np.flatnonzero(weights > 0)
        smallest = held[np.argmin(lengths[held])]
        if lengths[largest] <= dimension * (1.0 + _VOLUME_GAP):
            inverse, lengths = measured()
            if lengths.max() <= dimension * (1.0 + 2.0 * _VOLUME_GAP):
                least = matrix @ (inverse / lengths.max()) @ matrix.T
                return 0.5 * (least + least.T)
        if lengths[largest] - dimension >= dimension - lengths[smallest]:
            chosen = largest
            share = (lengths[chosen] / dimension - 1.0) / (lengths[chosen] - 1.0)
        else:
            chosen, floor = smallest, -weights[smallest] / (1.0 - weights[smallest])
            excess = lengths[chosen] - 1.0
            share = max((lengths[chosen] / dimension - 1.0) / excess, floor) if excess > 0 else floor
        weights *= 1.0 - share
        weights[chosen] = max(weights[chosen] + share, 0.0)
        if share < 0 and share == floor:
            weights[chosen] = 0.0
        direction = inverse @ round_points[chosen]
        factor = share / (1.0 - share + share * lengths[chosen])
        inverse = (inverse - factor * np.outer(direction, direction)) / (1.0 - share)
        lengths = (lengths - factor * (round_points @ direction) ** 2) / (1.0 - share)
    raise RuntimeError(f"the least ellipsoid of {number} points was not found in {_MOST_STEPS} steps")
