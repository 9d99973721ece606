"""What is known of a score over a whole box of θ: bounds from the rows that change within it, in compiled batches.

θ = θ₀ + Mu, and boxes are products of intervals of u. By convexity one record's score s is nondecreasing in its
predictor, so over a box it lies between its values at the predictor's two ends. Rows whose two values agree add a
constant to the gradient: they are summed once for a region and never touched again within it. Whatever is rounded is
rounded outward.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax._arrays import Matrix, Vector
from kngjax.data import Records
from kngjax.domains import AbstractDomain
from kngjax.losses import AbstractPredictorLoss
from kngjax.norms import AbstractNorm
from kngjax.target import Target

# Relative errors of a predictor and of a score are far below these.
_PREDICTOR_ROUNDING, _SCORE_ROUNDING = 1e-13, 64.0 * float(np.finfo(np.float64).eps)
# A table of boxes by rows of so many entries stays in a processor's cache; a call makes so many tables.
_ENTRIES_A_TABLE, _TABLES_A_CALL = 2**16, 32
# Rows are padded to this number times a power of two.
_FEWEST_ROWS = 512
_BOXES_A_CALL = 2048

Points = Float[Array, "points dimension"] | Float[np.ndarray, "points dimension"]


class Coordinates(NamedTuple):
    """θ = θ₀ + Mu. They affect speed alone.

    **Arguments:** `centre`: θ₀; `matrix`: M; `inverse`: M^{-1}; `moves`: by how much a step along each axis of u moves
    the predictors, relative to the others.
    """

    centre: Vector
    matrix: Matrix
    inverse: Matrix
    moves: Vector


class Rows(eqx.Module):
    """The records whose score is not constant over a region, and what all others contribute there. Private.

    **Arguments:** `x`, `y`: those records, padded with zeros. `gradient`: Σ s_i x_i over the others. `rounding`: a
    bound on the rounding error of a whole gradient. `extent`: the largest |θ₀|_j + Σ_k |M_jk u_k| in the region.
    """

    x: Float[np.ndarray, "records dimension"]
    y: Float[np.ndarray, " records"]
    gradient: Float[np.ndarray, " dimension"]
    rounding: Float[np.ndarray, " dimension"]
    extent: Float[np.ndarray, " dimension"]


def all_rows(data: Records) -> Rows:
    """Every record, before any region is known: only to be restricted."""
    nothing = np.zeros(data.dimension)
    return Rows(np.asarray(data.x), np.asarray(data.y), nothing, nothing, nothing)


def restricted(loss: AbstractPredictorLoss, rows: Rows, place: Coordinates, centre: Vector, half: Vector) -> Rows:
    """The rows of a smaller region, the box {|u - centre| ≤ half}."""
    extent = np.abs(place.centre) + np.abs(place.matrix) @ (np.abs(centre) + half)
    low, high = (np.asarray(end) for end in _score_ends(loss, rows.x, rows.y, place, centre, half, extent))
    # Written so that NaN counts as a change.
    changes = ~(low == high)
    rounding = rows.rounding
    if not rows.rounding.any():
        largest = np.max(np.maximum(np.abs(low), np.abs(high)))
        rounding = (_SCORE_ROUNDING + low.size * np.finfo(np.float64).eps) * largest * np.sum(np.abs(rows.x), axis=0)
    gradient = rows.gradient + low[~changes] @ rows.x[~changes]
    count = int(np.count_nonzero(changes))
    size = _FEWEST_ROWS
    while size < count:
        size *= 2
    size = min(size, rows.y.size)
    x, y = np.zeros((size, rows.x.shape[1])), np.zeros(size)
    x[:count], y[:count] = rows.x[changes], rows.y[changes]
    return Rows(x, y, gradient, rounding, extent)


@jax.jit
def _score_ends(loss, x, y, place, centre, half, extent):
    """Every row's score at the two ends of its predictor over a box."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    middle = x @ (jnp.asarray(place.centre) + jnp.asarray(place.matrix) @ centre)
    reach = jnp.abs(x @ place.matrix) @ half + _PREDICTOR_ROUNDING * (jnp.abs(x) @ extent)
    score = jax.vmap(loss.record_score)
    return score(middle - reach, y), score(middle + reach, y)


class Bounds(NamedTuple):
    """Of the score over boxes. **Arguments:** `lower`: below it everywhere; `middle`: about its typical value."""

    lower: Float[np.ndarray, " boxes"]
    middle: Float[np.ndarray, " boxes"]


def score_bounds(target: Target, rows: Rows, place: Coordinates, centres: np.ndarray, halves: np.ndarray) -> Bounds:
    """Bounds of ‖∇ℓ_n‖_K, or of ℓ_n(θ) - ℓ_n(θ₀) if `target.norm` is None, over boxes within the rows' region.

    KNG: with scores in [m_i - q_i, m_i + q_i] each |∇_j| is at least |Σ m_i x_ij| - Σ q_i |x_ij|, and a norm that grows
    with every |∇_j| at least what it is there. Exponential mechanism: the tangent at the box's centre.
    """
    found = Bounds(*_in_batches(_box_bounds, (target.loss, target.norm, rows, place), rows, (centres, halves)))
    if target.norm is not None:
        return found
    # A standard Gaussian's exponent is on average so much above that of the centre.
    return found._replace(middle=found.middle + np.sum(halves**2, axis=1) / (6.0 * float(target.rate)))


def ray_bounds(target: Target, rows: Rows, place: Coordinates, centres: np.ndarray, halves: np.ndarray) -> Bounds:
    """Lower bounds of the score on all rays from θ₀, from where they pass through these cells.

    Along a ray ∇ℓ'(θ - θ₀) grows as the distance does at least, so beyond p it is ≥ (ℓ(p) - ℓ(θ₀))·distance, and
    ‖∇ℓ‖_K ≥ (ℓ(p) - ℓ(θ₀))/‖p - θ₀‖_* by the definition of the dual norm. ℓ(p) is bounded by the tangent at the centre
    of the cell. Where it does not rise nothing is known. `middle` is the same for the centre alone.
    """
    return Bounds(*_in_batches(_cell_bounds, (target.loss, target.norm, rows, place), rows, (centres, halves)))


def scores_at(target: Target, rows: Rows, place: Coordinates, theta: np.ndarray) -> np.ndarray:
    """The score at points within the rows' region, the same as is bounded."""
    return _in_batches(_scores, (target.loss, target.norm, rows, place), rows, (theta,))[0]


def _in_batches(function: Any, shared: tuple[Any, ...], rows: Rows, boxes: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """A compiled function of boxes, in calls of one size for each number of rows, so that few programs are compiled."""
    table = int(np.clip(_ENTRIES_A_TABLE // rows.y.size, 1, 128))
    call = table * _TABLES_A_CALL
    parts = []
    for start in range(0, boxes[0].shape[0], call):
        some = [part[start : start + call] for part in boxes]
        count = some[0].shape[0]
        padded = [np.concatenate([part, np.zeros((call - count, part.shape[1]))]) for part in some]
        found = function(*shared, -(-count // table), *padded, table=table)
        parts.append([np.asarray(values)[:count] for values in found])
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def _tabulated(function):
    """Compiled, and mapped over so many tables of boxes as are wanted, each of a static size."""

    @functools.partial(jax.jit, static_argnames="table")
    def whole(loss, norm, rows, place, num_tables, *boxes, table):
        rows, place, boxes = jax.tree.map(jnp.asarray, (rows, place, boxes))
        each = jax.vmap(function(loss, norm, rows, place))

        def one_table(number, found):
            start = number * table
            values = each(*(jax.lax.dynamic_slice_in_dim(part, start, table) for part in boxes))
            return tuple(
                jax.lax.dynamic_update_slice_in_dim(old, new, start, 0) for old, new in zip(found, values, strict=True)
            )

        shapes = jax.eval_shape(each, *boxes)
        empty = tuple(jnp.zeros(shape.shape, shape.dtype) for shape in shapes)
        return jax.lax.fori_loop(0, num_tables, one_table, empty)

    return whole


@_tabulated
def _box_bounds(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: Rows, place: Coordinates):
    if norm is None:
        tangent = _tangents(loss, rows, place)

        def tangent_bounds(centre, half):
            value, slope = tangent(centre)
            return _known(value - jnp.abs(slope) @ half, -jnp.inf), _known(value, jnp.inf)

        return tangent_bounds
    turned, sizes = jnp.abs(rows.x @ place.matrix), jnp.abs(rows.x)
    slack = _PREDICTOR_ROUNDING * (sizes @ rows.extent)
    score = jax.vmap(loss.record_score)

    def bounds(centre, half):
        predictor, reach = rows.x @ (place.centre + place.matrix @ centre), turned @ half + slack
        low, high = score(predictor - reach, rows.y), score(predictor + reach, rows.y)
        gradient = rows.gradient + (0.5 * (low + high)) @ rows.x
        width = (0.5 * (high - low)) @ sizes + rows.rounding
        lower = norm(jnp.maximum(jnp.abs(gradient) - width, 0.0))
        # A gradient that moves as in the limit law moves by a d-th part of the sum of its rows' moves.
        typical = jnp.abs(gradient) + 0.5 / centre.shape[0] * width
        return _known(lower, 0.0), _known(norm(typical), jnp.inf)

    return bounds


@_tabulated
def _cell_bounds(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: Rows, place: Coordinates):
    tangent = _tangents(loss, rows, place)

    def along(value, length):
        return jnp.where(value > 0.0, value / length * (1.0 - _SCORE_ROUNDING), 0.0)

    def bounds(centre, half):
        value, slope = tangent(centre)
        lower = value - jnp.abs(slope) @ half
        if norm is None:
            return jnp.where(lower > 0.0, lower, -jnp.inf), value
        step = jnp.abs(place.matrix @ centre)
        farthest = step + jnp.abs(place.matrix) @ half
        return along(lower, norm.dual(farthest)), along(value, norm.dual(step))

    return bounds


@_tabulated
def _scores(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: Rows, place: Coordinates):
    score = jax.vmap(loss.record_score)

    def at(theta):
        if norm is None:
            return (_value(loss, rows, place, theta)[0],)
        return (norm(rows.gradient + score(rows.x @ theta, rows.y) @ rows.x),)

    return at


def _value(loss: AbstractPredictorLoss, rows: Rows, place: Coordinates, theta: Array) -> tuple[Array, Array]:
    """ℓ_n(θ) - ℓ_n(θ₀), where the rows that are left out are linear, and a bound on its rounding error."""
    value = jax.vmap(loss.record_value)
    there, here = value(rows.x @ theta, rows.y), value(rows.x @ place.centre, rows.y)
    change = theta - place.centre
    rounding = rows.rounding @ jnp.abs(change)
    rounding += (_SCORE_ROUNDING + rows.y.size * jnp.finfo(theta.dtype).eps) * jnp.sum(jnp.abs(there) + jnp.abs(here))
    return jnp.asarray(rows.gradient) @ change + jnp.sum(there - here), jnp.asarray(rounding)


def _tangents(loss: AbstractPredictorLoss, rows: Rows, place: Coordinates):
    """From u to a value that the loss is not below there, relative to θ₀, and its slope in u."""
    score = jax.vmap(loss.record_score)

    def tangent(u):
        theta = place.centre + place.matrix @ u
        value, rounding = _value(loss, rows, place, theta)
        slope = (rows.gradient + score(rows.x @ theta, rows.y) @ rows.x) @ place.matrix
        return value - rounding, slope

    return tangent


def _known(value: Array, otherwise: float) -> Array:
    return jnp.where(jnp.isnan(value), otherwise, value)


def meets(domain: AbstractDomain, place: Coordinates, centres: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Whether each box may meet Θ: False is certain.

    The box of θ around it must contain a point of Θ, its point nearest to the middle of Θ in every coordinate; and the
    plane at right angles to the way from its centre to Θ must not lie between them.
    """
    found = []
    for start in range(0, centres.shape[0], _BOXES_A_CALL):
        some = [part[start : start + _BOXES_A_CALL] for part in (centres, halves)]
        count = some[0].shape[0]
        padded = [np.concatenate([part, np.zeros((_BOXES_A_CALL - count, part.shape[1]))]) for part in some]
        found.append(np.asarray(_meets(domain, place, *padded))[:count])
    return np.concatenate(found) if found else np.zeros(0, dtype=bool)


@jax.jit
def _meets(domain, place, centres, halves):
    middle = domain.interior_point(place.centre.shape[0])

    def one(centre, half):
        theta = jnp.asarray(place.centre) + jnp.asarray(place.matrix) @ centre
        size = jnp.abs(jnp.asarray(place.centre)) + jnp.abs(jnp.asarray(place.matrix)) @ jnp.abs(centre)
        reach = jnp.abs(jnp.asarray(place.matrix)) @ half + _PREDICTOR_ROUNDING * size
        nearest = domain.contains(jnp.clip(middle, theta - reach, theta + reach))
        normal = theta - domain.project(theta)
        farthest = domain.linear_interval(normal, normal)[1]
        rounding = _PREDICTOR_ROUNDING * (jnp.abs(normal) @ (size + reach) + jnp.abs(farthest))
        spread = jnp.abs(normal @ place.matrix) @ half + rounding
        return nearest & ~(normal @ theta - farthest > spread)

    return jax.vmap(one)(jnp.asarray(centres), jnp.asarray(halves))
