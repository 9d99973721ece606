"""What is known of a score over a whole box of θ: bounds from the rows that change within it, in compiled batches.

θ = θ₀ + Mu, and boxes are products of intervals of u. By convexity one record's score s is nondecreasing in its
predictor, so over a box it lies between its values at the predictor's two ends. Rows whose two values agree add a
constant to the gradient: they are summed once for a region and never touched again within it. Whatever is rounded is
rounded outward, by these inequalities, in which u = 2^-53 and a sum of k products errs by at most ku/(1-ku) times the
sum of their absolute values, in whatever order (Higham 2002, section 3.1):

- A predictor x'(θ₀ + Mu) and its reach Σ_k |(x'M)_k| h_k take sums of d products twice and three operations more, so
  their errors together are at most (4d + 6)u·Σ_j |x_j|e_j with e the `extent`; that is below 1e-13 for d ≤ 200.
  A loss errs by as much times its largest score on their account.
- A score or a value is within 128u of the largest one of its loss over the region: arithmetic makes at most ten
  roundings, the quantile loss none but its comparison. The logistic, Poisson and smoothed losses take exp, log1p, or,
  for a Gaussian kernel, the normal distribution function of XLA, which states no error. Some 3 units of exp and log1p
  are seen, and 90 in the tail of the distribution function: that is what this rests on.
- A sum of N scores times x_j errs by at most Nu·Σ_i |s_i x_ij| besides, for which there is 2Nu. Tables of r = 256 rows
  are added in groups, as in `block_sums`, so that it errs by (r + 2⌈√(N/r)⌉ + 2)u·Σ_i |s_i x_ij| in truth.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kngjax.core.arrays import Matrix, Vector, record_sums_on_host
from kngjax.core.modules import AbstractModule
from kngjax.data.records import Records
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.target import Target

# Bounds on the relative errors of a predictor and of a score, as above.
_PREDICTOR_ROUNDING, _SCORE_ROUNDING = 1e-13, 64.0 * float(np.finfo(np.float64).eps)
# More than rounding does to a sum, of its terms' sizes, for up to 10⁶ records: beyond it a proof is contradicted.
SLACK = 1e-9
# A table of so many boxes by so many rows stays in a processor's cache.
_BOXES_A_TABLE, _ROWS_A_TABLE = 64, 256
# Rows are padded to this number times a power of that one, so that few sizes are compiled; padding is not computed on.
_FEWEST_ROWS, _GROWTH = 2**15, 8
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


class RegionRows(AbstractModule):
    """The records whose score is not constant over a region, and what all others contribute there. Private.

    **Arguments:** `x`, `y`: those records, padded with zeros. `weights`: 1 for them and 0 for the padding. `tables`:
    how many tables have a row of them. `here`: Σ ℓ(θ₀) and Σ |ℓ(θ₀)| over them. `gradient`: Σ s_i x_i over the others.
    `rounding`: a bound on the rounding error of a whole gradient. `steepness`: a bound on Σ |s_i x_i| over all records.
    `extent`: the largest |θ₀|_j + Σ_k |M_jk u_k| in the
    region.
    """

    x: Float[Array, "records dimension"]
    y: Float[Array, " records"]
    weights: Float[Array, " records"]
    tables: Int[np.ndarray, ""]
    here: Float[np.ndarray, " 2"]
    gradient: Float[np.ndarray, " dimension"]
    rounding: Float[np.ndarray, " dimension"]
    steepness: Float[np.ndarray, " dimension"]
    extent: Float[np.ndarray, " dimension"]

    @property
    def count(self) -> int:
        """How many records these are."""
        return int(np.count_nonzero(np.asarray(self.weights)))


def all_rows(data: Records) -> RegionRows:
    """Every record, before any region is known: only to be restricted."""
    nothing, size = np.zeros(data.dimension), -(-data.num_records // _ROWS_A_TABLE) * _ROWS_A_TABLE
    return _pad(np.asarray(data.x), np.asarray(data.y), size, np.zeros(2), nothing, nothing, nothing, nothing)


def _pad(x: np.ndarray, y: np.ndarray, most: int, *others: np.ndarray) -> RegionRows:
    """Rows on the device, of the least size above their number that is compiled and at most `most`."""
    count, size = y.size, _FEWEST_ROWS
    while size < count:
        size *= _GROWTH
    size = min(size, most)
    design, response, weights = np.zeros((size, x.shape[1])), np.zeros(size), np.zeros(size)
    design[:count], response[:count], weights[:count] = x, y, 1.0
    tables = np.asarray(-(-count // _ROWS_A_TABLE))
    return RegionRows(jnp.asarray(design), jnp.asarray(response), jnp.asarray(weights), tables, *others)


def restrict_rows(
    loss: AbstractPredictorLoss, rows: RegionRows, coordinates: Coordinates, centre: Vector, half: Vector
) -> RegionRows:
    """The rows of a smaller region, the box {|u - centre| ≤ half}.

    Those are left out whose score is one number on the region and at θ₀, wherever θ₀ lies: by convexity it is that
    number between them too, so that such a row adds s·x'(θ - θ₀) to ℓ_n(θ) - ℓ_n(θ₀).
    """
    extent = np.abs(coordinates.centre) + np.abs(coordinates.matrix) @ (np.abs(centre) + half)
    ends = _score_ends(loss, rows.x, rows.y, coordinates, centre, half, extent)
    count = rows.count
    x, y, low, high, start, values = (np.asarray(part)[:count] for part in (rows.x, rows.y, *ends))
    # Written so that NaN counts as a change.
    changes = ~((low == high) & (low == start))
    rounding, steepness = rows.rounding, rows.steepness
    if not rows.rounding.any():
        steepness = np.max(np.maximum(np.abs(low), np.abs(high))) * record_sums_on_host(np.ones(count), np.abs(x))
        rounding = (_SCORE_ROUNDING + count * np.finfo(np.float64).eps) * steepness
    gradient = rows.gradient + record_sums_on_host(low[~changes], x[~changes])
    there = values[changes]
    here = record_sums_on_host(np.ones(there.size), np.column_stack([there, np.abs(there)]))
    return _pad(x[changes], y[changes], rows.y.shape[0], here, gradient, rounding, steepness, extent)


@jax.jit
def _score_ends(loss, x, y, coordinates, centre, half, extent):
    """Every row's score at the two ends of its predictor over a box, and its score and loss at θ₀."""
    middle = x @ (jnp.asarray(coordinates.centre) + jnp.asarray(coordinates.matrix) @ centre)
    reach = jnp.abs(x @ coordinates.matrix) @ half + _PREDICTOR_ROUNDING * (jnp.abs(x) @ extent)
    start, score = x @ coordinates.centre, jax.vmap(loss.record_score)
    return score(middle - reach, y), score(middle + reach, y), score(start, y), jax.vmap(loss.record_value)(start, y)


class ScoreBounds(NamedTuple):
    """Bounds of the score on each box.

    **Arguments:** `lower`: below it everywhere; infinite where scores fall as predictors grow, so that the loss is not
    convex and nothing is known. `middle`: about its typical value.
    """

    lower: Float[np.ndarray, " boxes"]
    middle: Float[np.ndarray, " boxes"]


def score_bounds(
    target: Target, rows: RegionRows, coordinates: Coordinates, centres: np.ndarray, halves: np.ndarray
) -> ScoreBounds:
    """Bounds of ‖∇ℓ_n‖_K, or of ℓ_n(θ) - ℓ_n(θ₀) if `target.norm` is None, over boxes within the rows' region.

    KNG: with scores in [m_i - q_i, m_i + q_i] each |∇_j| is at least |Σ m_i x_ij| - Σ q_i |x_ij|, and a norm that grows
    with every |∇_j| at least what it is there. Exponential mechanism: the tangent at the box's centre.
    """
    found = ScoreBounds(*_in_batches(_box_bounds, (target.loss, target.norm, rows, coordinates), (centres, halves)))
    if target.norm is not None:
        return found
    # A standard Gaussian's exponent is on average so much above that of the centre.
    return found._replace(middle=found.middle + np.sum(halves**2, axis=1) / (6.0 * float(target.rate)))


def ray_bounds(
    target: Target, rows: RegionRows, coordinates: Coordinates, centres: np.ndarray, halves: np.ndarray
) -> ScoreBounds:
    """Lower bounds of the score on all rays from θ₀, from where they pass through these cells.

    Along a ray ∇ℓ'(θ - θ₀) grows as the distance does at least, so beyond p it is ≥ (ℓ(p) - ℓ(θ₀))·distance, and
    ‖∇ℓ‖_K ≥ (ℓ(p) - ℓ(θ₀))/‖p - θ₀‖_* by the definition of the dual norm. ℓ(p) is bounded by the tangent at the centre
    of the cell. Where it does not rise nothing is known. `middle` is the same for the centre alone.
    """
    return ScoreBounds(*_in_batches(_cell_bounds, (target.loss, target.norm, rows, coordinates), (centres, halves)))


def scores_at(target: Target, rows: RegionRows, coordinates: Coordinates, theta: np.ndarray) -> np.ndarray:
    """The score at points within the rows' region, the same as is bounded."""
    return _in_batches(_scores, (target.loss, target.norm, rows, coordinates), (theta,))[0]


def rounding_of(target: Target, rows: RegionRows, scores: np.ndarray) -> np.ndarray:
    """More than rounding may move computed scores within the rows' region, and their bounds."""
    if target.norm is not None:
        return SLACK * np.broadcast_to(np.asarray(target.norm(jnp.asarray(rows.steepness))), scores.shape)
    return SLACK * (np.abs(scores) + rows.here[1] + rows.steepness @ rows.extent)


def _in_batches(function: Any, shared: tuple[Any, ...], boxes: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """A compiled function of boxes, in calls of one size."""
    parts = []
    for start in range(0, boxes[0].shape[0], _BOXES_A_CALL):
        some = [part[start : start + _BOXES_A_CALL] for part in boxes]
        count = some[0].shape[0]
        padded = [np.concatenate([part, np.zeros((_BOXES_A_CALL - count, part.shape[1]))]) for part in some]
        found = function(*shared, np.asarray(-(-count // _BOXES_A_TABLE)), *padded)
        parts.append([np.asarray(values)[:count] for values in found])
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def _compiled_by_tables(function):
    """Compiled, for as many tables of boxes as are wanted and as many of rows as there are, each of a static size.

    `function(loss, norm, rows, coordinates)` returns two functions of one box: its sums over some rows, from their x, y
    and weights, and what follows from the sums over all rows.
    """

    @jax.jit
    def whole(loss, norm, rows, coordinates, num_tables, *boxes):
        rows, coordinates, boxes = jax.tree.map(jnp.asarray, (rows, coordinates, boxes))
        sums_of, finish = function(loss, norm, rows, coordinates)
        in_group = math.isqrt(rows.y.shape[0] // _ROWS_A_TABLE) + 1

        def one_table(number, found):
            some = tuple(jax.lax.dynamic_slice_in_dim(part, number * _BOXES_A_TABLE, _BOXES_A_TABLE) for part in boxes)

            def add(block, sums):
                start = block * _ROWS_A_TABLE
                parts = (rows.x, rows.y, rows.weights)
                x, y, weights = (jax.lax.dynamic_slice_in_dim(part, start, _ROWS_A_TABLE) for part in parts)
                return jax.tree.map(jnp.add, sums, jax.vmap(lambda *box: sums_of(x, y, weights, *box))(*some))

            def add_group(group, sums):
                first = group * in_group
                found = jax.lax.fori_loop(first, jnp.minimum(first + in_group, rows.tables), add, nothing)
                return jax.tree.map(jnp.add, sums, found)

            nothing = _nothing(over_all, some)
            sums = jax.lax.fori_loop(0, -(-rows.tables // in_group), add_group, nothing)
            values = jax.vmap(finish)(sums, *some)
            return tuple(
                jax.lax.dynamic_update_slice_in_dim(old, new, number * _BOXES_A_TABLE, 0)
                for old, new in zip(found, values, strict=True)
            )

        def over_all(*box):
            return sums_of(rows.x, rows.y, rows.weights, *box)

        empty = _nothing(lambda *box: finish(over_all(*box), *box), boxes)
        return jax.lax.fori_loop(0, num_tables, one_table, empty)

    return whole


def _nothing(function: Any, boxes: tuple[Array, ...]) -> Any:
    """Zeros in the place of what a function of one box would return for all of these."""
    shapes = jax.eval_shape(jax.vmap(function), *boxes)
    return jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)


@_compiled_by_tables
def _box_bounds(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: RegionRows, coordinates: Coordinates):
    score = jax.vmap(loss.record_score)
    if norm is None:
        sums_of, tangent = _tangents(loss, rows, coordinates)

        def tangent_bounds(sums, centre, half):
            value, slope = tangent(sums, centre)
            return _replace_nan(value - jnp.abs(slope) @ half, -jnp.inf), _replace_nan(value, jnp.inf)

        return lambda x, y, weights, centre, half: sums_of(x, y, weights, centre), tangent_bounds

    def gradients(x, y, weights, centre, half):
        predictor = (coordinates.centre + coordinates.matrix @ centre) @ x.T
        reach = half @ jnp.abs(x @ coordinates.matrix).T + _PREDICTOR_ROUNDING * (rows.extent @ jnp.abs(x).T)
        low, high = score(predictor - reach, y), score(predictor + reach, y)
        falls = jnp.maximum(low - high, 0.0) @ jnp.abs(x)
        return (0.5 * (low + high)) @ x, (0.5 * (high - low)) @ jnp.abs(x), falls

    def bounds(sums, centre, half):
        gradient, width = sums[0] + rows.gradient, sums[1] + rows.rounding
        falls = jnp.any(sums[2] > SLACK * jnp.asarray(rows.steepness))
        lower = norm(jnp.maximum(jnp.abs(gradient) - width, 0.0))
        # A gradient that moves as in the limit law moves by a d-th part of the sum of its rows' moves.
        typical = jnp.abs(gradient) + 0.5 / centre.shape[0] * width
        return jnp.where(falls, jnp.inf, _replace_nan(lower, 0.0)), _replace_nan(norm(typical), jnp.inf)

    return gradients, bounds


@_compiled_by_tables
def _cell_bounds(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: RegionRows, coordinates: Coordinates):
    sums_of, tangent = _tangents(loss, rows, coordinates)

    def along(value, length):
        return jnp.where(value > 0.0, value / length * (1.0 - _SCORE_ROUNDING), 0.0)

    def bounds(sums, centre, half):
        value, slope = tangent(sums, centre)
        lower = value - jnp.abs(slope) @ half
        if norm is None:
            return jnp.where(lower > 0.0, lower, -jnp.inf), value
        step = jnp.abs(coordinates.matrix @ centre)
        farthest = step + jnp.abs(coordinates.matrix) @ half
        return along(lower, norm.dual(farthest)), along(value, norm.dual(step))

    return lambda x, y, weights, centre, half: sums_of(x, y, weights, centre), bounds


@_compiled_by_tables
def _scores(loss: AbstractPredictorLoss, norm: AbstractNorm | None, rows: RegionRows, coordinates: Coordinates):
    if norm is None:
        return _values(loss), lambda sums, theta: (_value(sums, rows, coordinates, theta)[0],)
    score = jax.vmap(loss.record_score)

    def gradients(x, y, weights, theta):
        return score(theta @ x.T, y) @ x

    return gradients, lambda gradient, theta: (norm(gradient + rows.gradient),)


def _values(loss: AbstractPredictorLoss):
    """Σ ℓ(θ) and Σ |ℓ(θ)| over some rows."""
    value = jax.vmap(loss.record_value)

    def values(x, y, weights, theta):
        there = value(theta @ x.T, y)
        return there @ weights, jnp.abs(there) @ weights

    return values


def _value(sums: tuple[Array, Array], rows: RegionRows, coordinates: Coordinates, theta: Array) -> tuple[Array, Array]:
    """ℓ_n(θ) - ℓ_n(θ₀), where the rows that are left out are linear, and a bound on its rounding error."""
    change = theta - coordinates.centre
    rounding = rows.rounding @ jnp.abs(change) + 2.0 * _PREDICTOR_ROUNDING * (rows.steepness @ rows.extent)
    number = rows.tables * _ROWS_A_TABLE
    rounding += (_SCORE_ROUNDING + number * jnp.finfo(theta.dtype).eps) * (sums[1] + rows.here[1])
    return jnp.asarray(rows.gradient) @ change + (sums[0] - rows.here[0]), jnp.asarray(rounding)


def _tangents(loss: AbstractPredictorLoss, rows: RegionRows, coordinates: Coordinates):
    """Sums, and from them and u a value that the loss is not below there, relative to θ₀, with its slope in u."""
    values, score = _values(loss), jax.vmap(loss.record_score)

    def sums_of(x, y, weights, u):
        theta = coordinates.centre + coordinates.matrix @ u
        return values(x, y, weights, theta), score(theta @ x.T, y) @ x

    def tangent(sums, u):
        value, rounding = _value(sums[0], rows, coordinates, coordinates.centre + coordinates.matrix @ u)
        return value - rounding, (sums[1] + rows.gradient) @ coordinates.matrix

    return sums_of, tangent


def _replace_nan(value: Array, otherwise: float) -> Array:
    return jnp.where(jnp.isnan(value), otherwise, value)


def meets(domain: AbstractDomain, coordinates: Coordinates, centres: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Whether each box may meet Θ: False is certain.

    The box of θ around it must contain a point of Θ, its point nearest to the middle of Θ in every coordinate; and the
    plane at right angles to the way from its centre to Θ must not lie between them.
    """
    if not centres.shape[0]:
        return np.zeros(0, dtype=bool)
    return _in_batches(_meets, (domain, coordinates), (centres, halves))[0]


@jax.jit
def _meets(domain, coordinates, num_tables, centres, halves):
    middle = domain.interior_point(coordinates.centre.shape[0])

    def one(centre, half):
        theta = jnp.asarray(coordinates.centre) + jnp.asarray(coordinates.matrix) @ centre
        size = jnp.abs(jnp.asarray(coordinates.centre)) + jnp.abs(jnp.asarray(coordinates.matrix)) @ jnp.abs(centre)
        reach = jnp.abs(jnp.asarray(coordinates.matrix)) @ half + _PREDICTOR_ROUNDING * size
        nearest = domain.contains(jnp.clip(middle, theta - reach, theta + reach))
        normal = theta - domain.project(theta)
        farthest = domain.linear_interval(normal, normal)[1]
        rounding = _PREDICTOR_ROUNDING * (jnp.abs(normal) @ (size + reach) + jnp.abs(farthest))
        spread = jnp.abs(normal @ coordinates.matrix) @ half + rounding
        return nearest & ~(normal @ theta - farthest > spread)

    return (jax.vmap(one)(jnp.asarray(centres), jnp.asarray(halves)),)
