"""Norms whose unit ball is a polytope, such as the hull of all possible gradient changes."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.arrays import Matrix, Vector, is_traced, parameter
from kngjax.geometry.abstract_norms import AbstractNorm, Points
from kngjax.geometry.hulls import Rows, checked_points, hull_about_zero

# What `describe` leaves out of a certificate, since the rest determines it.
_derived = {"derived": True}


class Polytope(AbstractNorm):
    """‖v‖ = max_i |a_i'v|: its ball is the symmetric polytope {v : |a_i'v| ≤ 1 for all i} = conv{±v_1, ..., ±v_m}.

    With the possible gradient changes as vertices it is the norm of the sensitivity hull, the least ball for which
    Δ = 1; KNG with it has the same law in every basis of the features (Awan and Slavković 2018 on tailoring the norm;
    Kattis and Nikolov 2017 on the hull).

    **Arguments:** one of

    - `vertices`: points of shape (m, d) whose hull with their negatives is the ball; a `SensitivitySet` will do.
    - `facets`: rows a_i of shape (f, d).

    Points inside the hull and facets that touch nothing are dropped, and of a pair ±v one is kept. Public. For up to
    six dimensions: the number of facets explodes. Raises ValueError beyond, and for points or facets that leave the
    ball flat or unbounded.
    """

    vertices: Rows
    facets: Rows = eqx.field(metadata=_derived)
    simplices: Float[Array, "simplices dimension dimension"] | Float[np.ndarray, "simplices dimension dimension"] = (
        eqx.field(metadata=_derived)
    )
    volumes: Vector = eqx.field(metadata=_derived)

    def __init__(self, vertices: Any = None, *, facets: Any = None):
        if (vertices is None) == (facets is None):
            raise ValueError("a Polytope needs either vertices or facets, rows of shape (number, dimension)")
        given = vertices if facets is None else facets
        if is_traced(given):
            raise TypeError("a Polytope is made on the host, from numbers: make it outside of jit and pass it in")
        if facets is None:
            points = checked_points("vertices", given)
        else:
            # Polarity: the facets of the hull of ±a_i are the vertices of {v : |a_i'v| ≤ 1}.
            rows = checked_points("facets", given)
            points = hull_about_zero("facets", np.concatenate([rows, -rows])).facets
        # Until nothing is dropped or turned any more, so that the vertices alone make the same norm again.
        for _ in range(2 + len(points)):
            hull = hull_about_zero("vertices", np.concatenate([points, -points]))
            before, points = points, _one_of_each_pair(hull.vertices)
            if np.array_equal(before, points):
                break
        self.vertices = parameter(points)
        facets = _one_of_each_pair(hull.facets)
        # So that no vertex is longer than 1, whatever Qhull rounded.
        self.facets = parameter(facets / np.max(np.abs(facets @ self.vertices.T), axis=1, keepdims=True))
        self.simplices = parameter(hull.simplices)
        self.volumes = parameter(np.abs(np.linalg.det(hull.simplices)) / math.factorial(points.shape[1]))

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(jnp.asarray(self.facets) @ jnp.asarray(vector)))

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """max |v_i'u| over the vertices v_i."""
        return jnp.max(jnp.abs(jnp.asarray(self.vertices) @ jnp.asarray(vector)))

    def largest_over_box(self, half_widths: Vector) -> Float[Array, ""]:
        """max_i Σ_j |a_ij| w_j, attained at a corner of the box."""
        return jnp.max(jnp.abs(jnp.asarray(self.facets)) @ jnp.asarray(half_widths))

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """max_i ‖a_i‖_2."""
        return jnp.max(jnp.linalg.norm(jnp.asarray(self.facets), axis=1))

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        """max v_i'Pv_i over the vertices v_i: a convex function is largest at one."""
        vertices = jnp.asarray(self.vertices)
        return jnp.max(jnp.sum((vertices @ jnp.asarray(matrix)) * vertices, axis=1))

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Draws a simplex of 0 and a piece of the boundary, by volume, and a Dirichlet point in that simplex."""
        pick_key, point_key = jax.random.split(key)
        shares = jnp.cumsum(jnp.asarray(self.volumes))
        positions = jax.random.uniform(pick_key, shape) * shares[-1]
        chosen = jnp.minimum(jnp.searchsorted(shares, positions, side="right"), shares.shape[0] - 1)
        exponentials = jax.random.exponential(point_key, (*shape, dimension + 1))
        weights = exponentials[..., :dimension] / jnp.sum(exponentials, axis=-1, keepdims=True)
        return jnp.einsum("...i,...ij->...j", weights, jnp.asarray(self.simplices)[chosen])

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """log Σ |det(v_1, ..., v_d)|/d! over the pieces of the boundary."""
        return jnp.log(jnp.sum(jnp.asarray(self.volumes)))

    @property
    def dimension(self) -> int | None:
        return self.facets.shape[-1]


def _one_of_each_pair(rows: np.ndarray) -> np.ndarray:
    """Rows v of a set with -v for every v, each pair once; a pair that rounding hides is kept twice."""
    scales = np.max(np.abs(rows), axis=0)
    # A direction that no sensible row is orthogonal to.
    generic = np.sqrt(2.0 + np.arange(rows.shape[1])) / scales
    upper = rows * np.where(rows @ generic < 0, -1.0, 1.0)[:, None]
    return upper[np.unique(np.round(upper / scales, 10) + 0.0, axis=0, return_index=True)[1]]
