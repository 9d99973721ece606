"""Norms ‖·‖_K: value, dual, and exact uniform draws from the unit ball.

The KNG density is exp(-c ‖∇ℓ(θ)‖_K). The norm is free (Reimherr and Awan 2019, section 3); the best one has the
set of possible gradient changes as its ball, which is why `WeightedLInf` is the default of the mechanisms.
"""

import itertools
import math
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.arrays import Matrix, Scalar, Vector, is_traced, parameter
from kngjax.geometry import tilts
from kngjax.geometry.abstract_norms import AbstractAbsoluteNorm, AbstractNorm, Interval, Points, require_weights
from kngjax.geometry.hulls import checked_points, least_ellipsoid
from kngjax.geometry.scaled_norms import ScaledNorm


class L1(AbstractAbsoluteNorm):
    """‖v‖ = Σ_j |v_j|."""

    has_chords: ClassVar[bool] = True
    has_tilts: ClassVar[bool] = True

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.sum(jnp.abs(vector))

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """max_j |v_j|."""
        return jnp.max(jnp.abs(vector))

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """√d, at the diagonal."""
        return jnp.asarray(math.sqrt(dimension))

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        """max_j P_jj, at a vertex ±e_j."""
        return jnp.max(jnp.diagonal(jnp.asarray(matrix)))

    def in_fractions(self, dimension: int) -> ScaledNorm:
        return ScaledNorm("sum", (Fraction(1),) * dimension)

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Signs times the first d of d + 1 exponentials divided by their sum (a Dirichlet vector)."""
        sizes_key, signs_key = jax.random.split(key)
        exponentials = jax.random.exponential(sizes_key, (*shape, dimension + 1))
        signs = jax.random.rademacher(signs_key, (*shape, dimension), dtype=exponentials.dtype)
        return signs * exponentials[..., :dimension] / jnp.sum(exponentials, axis=-1, keepdims=True)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """d log 2 - log d!."""
        return jnp.asarray(dimension * math.log(2.0) - math.lgamma(dimension + 1))

    def chord(self, radius: Scalar, point: Vector, direction: Vector) -> Interval:
        """Returns the nearest zeros of the tangents of t ↦ ‖x + tv‖_1 - radius, falling and rising ones.

        A convex function is the largest of its tangents. This one is linear between the t_j = -x_j/v_j: tangents to the
        right of each, and of a point before the chord, are all of them, and no loop waits for the slowest of many
        chains. t_j beyond ±(radius + ‖x‖_1)/‖v‖_1, where differences lose their digits, count as there, outside of the
        chord: a tangent of any point bounds the function.
        """
        point, direction = jnp.asarray(point), jnp.asarray(direction)
        sizes, still = jnp.abs(direction), direction == 0
        far = (radius + jnp.sum(jnp.abs(point))) / jnp.sum(sizes)
        turns = jnp.where(still, jnp.inf, -point / jnp.where(still, 1.0, direction))
        places = jnp.clip(jnp.append(-jnp.inf, turns), -far, far)

        def add(number, sums):
            room, slope = sums
            size = jnp.abs(point[number] + places * direction[number])
            return room - size, slope + jnp.where(turns[number] <= places, sizes[number], -sizes[number])

        room, slope = jax.lax.fori_loop(
            0, point.shape[0], add, (jnp.zeros_like(places) + radius, jnp.zeros_like(places)), unroll=4
        )
        zeros = places + room / jnp.where(slope == 0, 1.0, slope)
        left, right = jnp.where(slope < 0, zeros, -far), jnp.where(slope > 0, zeros, far)
        return jnp.minimum(jnp.max(left), 0.0), jnp.maximum(jnp.min(right), 0.0)

    def tilted_law(self, rate: Scalar, tilt: Vector) -> tilts.TiltedLaplace:
        return tilts.TiltedLaplace(rate, tilt)


class L2(AbstractAbsoluteNorm):
    """‖v‖ = (Σ_j v_j²)^½."""

    has_chords: ClassVar[bool] = True
    has_tilts: ClassVar[bool] = True

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.linalg.norm(jnp.asarray(vector))

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """Returns ‖v‖_2, as the l2 norm is its own dual."""
        return self(vector)

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """1."""
        return jnp.ones(())

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        """Returns the largest eigenvalue."""
        return jnp.linalg.eigvalsh(jnp.asarray(matrix))[-1]

    def in_fractions(self, dimension: int) -> ScaledNorm:
        return ScaledNorm("length", (Fraction(1),) * dimension)

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Returns the first d coordinates of a uniform point on the unit sphere of R^(d+2)."""
        normals = jax.random.normal(key, (*shape, dimension + 2))
        return normals[..., :dimension] / jnp.linalg.norm(normals, axis=-1, keepdims=True)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """(d/2) log π - log Γ(d/2 + 1)."""
        return jnp.asarray(0.5 * dimension * math.log(math.pi) - math.lgamma(0.5 * dimension + 1.0))

    def chord(self, radius: Scalar, point: Vector, direction: Vector) -> Interval:
        """Returns the roots of |x + tv|² = radius²."""
        point, direction = jnp.asarray(point), jnp.asarray(direction)
        square = direction @ direction
        middle = -(point @ direction) / square
        half = jnp.sqrt(jnp.maximum(middle**2 + (radius**2 - point @ point) / square, 0.0))
        return middle - half, middle + half

    def tilted_law(self, rate: Scalar, tilt: Vector) -> tilts.TiltedRadial:
        return tilts.TiltedRadial(rate, tilt)


class LInf(AbstractAbsoluteNorm):
    """‖v‖ = max_j |v_j|."""

    has_chords: ClassVar[bool] = True
    has_tilts: ClassVar[bool] = True

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(vector))

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """Σ_j |v_j|."""
        return jnp.sum(jnp.abs(vector))

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """1, on an axis."""
        return jnp.ones(())

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        return largest_quadratic_over_box(matrix, jnp.ones(jnp.asarray(matrix).shape[0]))

    def in_fractions(self, dimension: int) -> ScaledNorm:
        return ScaledNorm("maximum", (Fraction(1),) * dimension)

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Returns independent coordinates, uniform on (-1, 1)."""
        return jax.random.uniform(key, (*shape, dimension), minval=-1.0, maxval=1.0)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """d log 2."""
        return jnp.asarray(dimension * math.log(2.0))

    def box_sides(self, dimension: int) -> Vector:
        return jnp.ones(dimension)

    def chord(self, radius: Scalar, point: Vector, direction: Vector) -> Interval:
        return chord_of_box(-radius, radius, point, direction)

    def tilted_law(self, rate: Scalar, tilt: Vector) -> tilts.TiltedMaximumLaw:
        return tilts.TiltedMaximumLaw(rate, tilt)

    def tilted_log_mass(self, rate: Scalar, tilt: Vector) -> Float[Array, ""]:
        """By quadrature over the level."""
        return tilts.level_log_mass(rate, tilt)


def largest_quadratic_over_box(matrix: Matrix, half_widths: Vector) -> Float[Array, ""]:
    """sup {v'Pv : |v_j| ≤ w_j} for a positive semidefinite P: searched at the vertices for up to 12 dimensions.

    Beyond, the smaller of the bounds w'|P|w and, with S = (w_i P_ij w_j), d times the largest eigenvalue of S.
    """
    half_widths = jnp.asarray(half_widths)
    scaled = jnp.asarray(matrix) * half_widths[:, None] * half_widths[None, :]
    dimension = scaled.shape[0]
    if dimension > 12:
        return jnp.minimum(jnp.sum(jnp.abs(scaled)), dimension * jnp.linalg.eigvalsh(scaled)[-1])
    # The value is the same at -v, so half of the vertices suffice.
    signs = jnp.asarray([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=dimension - 1)])
    return jnp.max(jnp.sum((signs @ scaled) * signs, axis=1))


def chord_of_box(lower: Any, upper: Any, point: Vector, direction: Vector) -> Interval:
    """Returns the smallest and the largest t with lower ≤ point + t·direction ≤ upper, coordinate by coordinate."""
    point, direction = jnp.asarray(point), jnp.asarray(direction)
    still = direction == 0
    ends = [(side - point) / jnp.where(still, 1.0, direction) for side in (lower, upper)]
    first = jnp.where(still, -jnp.inf, jnp.minimum(*ends))
    last = jnp.where(still, jnp.inf, jnp.maximum(*ends))
    return jnp.max(first), jnp.min(last)


class WeightedLInf(AbstractAbsoluteNorm):
    """‖v‖ = max_j |v_j| / w_j: its ball is the box with half-widths w.

    **Arguments:**

    - `weights`: shape (d,), positive; with w the largest change of each gradient coordinate the sensitivity is 1.
    """

    weights: Vector = eqx.field(converter=parameter)

    def __check_init__(self):
        require_weights(self, self.weights)

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.max(jnp.abs(vector) / self.weights)

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """Σ_j w_j |v_j|."""
        return jnp.sum(self.weights * jnp.abs(vector))

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """1/min w_j, on that axis."""
        return 1.0 / jnp.min(jnp.asarray(self.weights))

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        return largest_quadratic_over_box(matrix, jnp.asarray(self.weights))

    def in_fractions(self, dimension: int) -> ScaledNorm:
        weights = np.asarray(self.weights, np.float64).tolist()
        return ScaledNorm("maximum", tuple(map(Fraction, weights)))

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Returns independent coordinates, uniform on (-w_j, w_j)."""
        uniform = LInf().draw_from_ball(key, shape, dimension)
        return uniform * jnp.broadcast_to(self.weights, uniform.shape)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """Σ_j log 2 w_j."""
        return jnp.sum(jnp.log(2.0 * jnp.asarray(self.weights)))

    def box_sides(self, dimension: int) -> Vector:
        return self.weights

    @property
    def standard(self) -> AbstractNorm:
        return LInf()

    def standardise(self, transform: Matrix, inverse: Matrix) -> tuple[Matrix, Matrix, Float[Array, ""] | float]:
        """S = diag(1/w)."""
        weights, shape = jnp.asarray(self.weights), transform.shape
        scaled = transform / jnp.broadcast_to(weights[:, None], shape), inverse * jnp.broadcast_to(weights[None], shape)
        return *scaled, -jnp.sum(jnp.log(weights))

    @property
    def dimension(self) -> int | None:
        return self.weights.shape[-1]


class Ellipsoid(AbstractNorm):
    """‖v‖ = (v'Av)^½: its ball is the ellipsoid {v : v'Av ≤ 1}.

    **Arguments:**

    - `matrix`: A, shape (d, d), symmetric positive definite.
    """

    matrix: Matrix = eqx.field(converter=parameter)

    def __check_init__(self):
        if is_traced(self.matrix):
            return
        matrix = np.asarray(self.matrix)
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
            raise ValueError("the matrix of Ellipsoid must be symmetric and positive definite")

    @staticmethod
    def of(points: Any) -> "Ellipsoid":
        """Returns the norm of the ellipsoid of least volume that contains all these points and their negatives.

        With the possible gradient changes as points Δ = 1, and like `Polytope` it does not depend on the basis of the
        features, in any number of dimensions. The volume exceeds the least by a factor of at most (1 + 1e-9)^{d/2}.

        **Arguments:** `points`: shape (m, d), public; a `SensitivitySet` will do. Raises ValueError for points in a
        plane through 0.

        Source: Todd and Yıldırım (2007), on Khachiyan's algorithm.
        """
        return Ellipsoid(least_ellipsoid(checked_points("points", points)))

    def _factor(self) -> Float[Array, "dimension dimension"]:
        return jnp.linalg.cholesky(jnp.asarray(self.matrix))

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        # |L'v| with A = LL' stays real where v'Av would round below zero.
        return jnp.linalg.norm(jnp.asarray(vector) @ self._factor())

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """(v'A^{-1}v)^½."""
        return jnp.linalg.norm(jax.scipy.linalg.solve_triangular(self._factor(), vector, lower=True))

    def largest_over_box(self, half_widths: Vector) -> Float[Array, ""]:
        """Returns the largest value at a vertex, searched up to 12 dimensions; beyond, v'Av ≤ w'|A|w bounds it.

        A convex function is largest over a box at a vertex, but here not always at w itself.
        """
        return jnp.sqrt(largest_quadratic_over_box(self.matrix, half_widths))

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        """Returns the largest eigenvalue of L^{-1}PL'^{-1} with A = LL'."""
        half = jax.scipy.linalg.solve_triangular(self._factor(), jnp.asarray(matrix), lower=True)
        both = jax.scipy.linalg.solve_triangular(self._factor(), half.T, lower=True)
        return jnp.linalg.eigvalsh(both)[-1]

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """Returns the square root of A's largest eigenvalue."""
        return jnp.linalg.norm(self._factor(), ord=2)

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """L'^{-1}u with u uniform in the l2 ball and A = LL'."""
        uniform = L2().draw_from_ball(key, shape, dimension)
        columns = uniform.reshape(-1, dimension).T
        solved = jax.scipy.linalg.solve_triangular(self._factor(), columns, lower=True, trans="T")
        return solved.T.reshape(uniform.shape)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """Subtracts ½ log det A from the log-volume of the l2 ball."""
        return L2().log_volume(dimension) - jnp.sum(jnp.log(jnp.diagonal(self._factor())))

    @property
    def standard(self) -> AbstractNorm:
        return L2()

    def standardise(self, transform: Matrix, inverse: Matrix) -> tuple[Matrix, Matrix, Float[Array, ""] | float]:
        """S = L' with A = LL'."""
        root = self._factor()
        solved = jax.scipy.linalg.solve_triangular(root, inverse.T, lower=True).T
        return root.T @ transform, solved, jnp.sum(jnp.log(jnp.diagonal(root)))

    @property
    def dimension(self) -> int | None:
        return self.matrix.shape[-1]


def k_norm_noise(
    norm: AbstractNorm,
    key: PRNGKeyArray,
    rate: Float[Array, ""] | float,
    shape: tuple[int, ...],
    dimension: int,
) -> Float[Array, "*shape dimension"]:
    """Returns exact draws from the K-norm density f(z) ∝ exp(-rate · ‖z‖_K) on R^d.

    z = R·U with R ~ Gamma(d + 1, rate) and U uniform in the unit ball (Hardt and Talwar 2010). R is a sum of d + 1
    exponentials: no rejection loop, so it costs the same for every batch.

    **Arguments:** `rate` in units of 1/‖z‖; `shape` of the batch; `dimension` d.
    """
    radius_key, ball_key = jax.random.split(key)
    radius = jnp.sum(jax.random.exponential(radius_key, (*shape, dimension + 1)), axis=-1, keepdims=True) / rate
    return radius * norm.draw_from_ball(ball_key, shape, dimension)


def k_norm_log_mass(norm: AbstractNorm, rate: Float[Array, ""] | float, dimension: int) -> Float[Array, ""]:
    """log ∫ exp(-rate · ‖z‖_K) dz = log d! + log vol(K) - d log rate."""
    return math.lgamma(dimension + 1) + norm.log_volume(dimension) - dimension * jnp.log(rate)
