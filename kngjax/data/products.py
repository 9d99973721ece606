"""Products of two columns of records, between which numbers they lie, and the symmetric matrices that they make up."""

import numpy as np
from jaxtyping import Bool, Float

from kngjax.accounting.adjacency import Adjacency


def product_ranges(
    lower: Float[np.ndarray, " dimension"], upper: Float[np.ndarray, " dimension"]
) -> tuple[Float[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """Returns the ends between which x_j x_k lies for j ≤ k; squares are at least 0."""
    first, second = np.triu_indices(len(lower))
    corners = np.array([one[first] * other[second] for one in (lower, upper) for other in (lower, upper)])
    least, most = corners.min(axis=0), corners.max(axis=0)
    return np.where((first == second) & (lower * upper < 0.0)[first], 0.0, least), most


def symmetric(triangles: Float[np.ndarray, "*batch pairs"], dimension: int) -> Float[np.ndarray, "..."]:
    """Makes symmetric matrices with these upper triangles."""
    first, second = np.triu_indices(dimension)
    made = np.zeros((*triangles.shape[:-1], dimension, dimension))
    made[..., first, second] = triangles
    made[..., second, first] = triangles
    return made


def changed_columns(
    lower: Float[np.ndarray, " columns"], upper: Float[np.ndarray, " columns"], adjacency: Adjacency
) -> Bool[np.ndarray, " columns"]:
    """Marks the columns whose sums one record changes: an exchange leaves columns that all records share. Public."""
    return lower < upper if adjacency is Adjacency.REPLACE else np.maximum(np.abs(lower), np.abs(upper)) > 0.0
