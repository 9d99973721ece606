"""A radius that is certain by fourth moments, which reaches farther than the worst record of every record does.

Notation as in `kngjax.samplers.exact.smooth.certificate`; e = L'δ/|δ|_{H₀} with H₀ = LL', v_i = L^{-1}x_i, |e| = 1,
u_i = x_i'δ = ρ·v_i'e, and κ̄_i(u) = (s_i(η_i + u) - s_i(η_i))/u, the mean of ρ''_i between η_i and η_i + u. Then

    e'(z - z₀) = ρ·Σκ̄_i(ρ·v_i'e)(v_i'e)².

*Records.* If κ̄_i(u) ≥ a_i + c_i u - b_i u² for |u| ≤ U_i, this is at least ρ·P(e), a polynomial of degree 4,

    P(e) = Σa_i(v_i'e)² + ρΣc_i(v_i'e)³ - ρ²Σb_i(v_i'e)⁴.

Only U_i bounds what is asked of the record: κ̄ falls like 1/|u|, so a parabola that is right on the average of all
directions is far above κ_i, the least of κ̄_i. b_i and c_i may be any numbers, for which `parabola` proves an a_i.

*Directions.* E = ee' as a vector of its d(d+1)/2 different entries, those beside the diagonal times √2, has |E| = 1 and
trace 1. The parts of degree 2 and 4 of P are a quadratic form E'SE, as e'Ae = tr(E·½(AE + EA)), and that of degree 3 is
e'TE ≥ -|TE| ≥ -½(β + E'T'TE/β) for every β > 0. The least of such a form among the E of length and trace 1 is a least
eigenvalue with one linear term; every μ below the least eigenvalue in the plane of trace 0 gives a lower bound of it.

What holds at ρ holds below, where |u_i| ≤ U_i too: the smaller of P(e) and P(-e) falls as ρ grows where B(e) =
Σb_i(v_i'e)⁴ ≥ 0, and rises by no more than ρ²|B(e)| elsewhere, which is subtracted.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import block_sums
from kngjax.core.compiling import Compiled
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.exact.smooth.certificate import Certificate, farthest_steps
from kngjax.samplers.newton import Point, records_a_block
from kngjax.samplers.target import Target

# κ̄ is bounded between the nodes U·γ^{-j}, j < J, on either side.
_RATIO, _NUM_NODES = 1.1, 40
# Exchanges of a node come close to the best parabola.
_EXCHANGES = 8
_STRIDE = 3
# Where the odd part takes so much of P, parabolas without one are tried too.
_MOST_ODD = 0.05
# n·(d(d + 1)/2)² up to which fourth moments are computed: some ten seconds each on two cores.
_MOST_PRODUCTS = 1e11
# Relative to |s|/u: more than float64 loses of a difference of two scores.
_ROUNDING = 1e-14


def least_curvatures(target: Target, certificate: Certificate) -> Float[np.ndarray, " radii"]:
    """Lower bounds of the least of P at the radii that were tried, increasing, so that M(ρ) is ρ times them.

    -∞ where none is known. Parabolas are made for every third radius, from the least on until one reaches the M(ρ)
    beyond which none matters, and bound the two radii before it too.

    **Arguments:** `certificate`: about θ₀, by the worst records.
    """
    point, radii, outward = certificate.point, np.array(certificate.tried)[:-1], float(certificate.outward)
    caps = _farthest_steps(target, point)
    found = np.full(radii.size, -np.inf)
    for number in range(_STRIDE - 1, radii.size, _STRIDE):
        places = slice(number - _STRIDE + 1, number + 1)
        bounds, odd = _bounds(target, point, caps, radii[places], outward, is_even=False)
        if not odd < _MOST_ODD:
            others, _ = _bounds(target, point, caps, radii[places], outward, is_even=True)
            bounds = np.maximum(bounds, others)
        found[places] = bounds
        if bounds[-1] * radii[number] > float(certificate.enough):
            break
    # What holds at a radius holds below; of the infinite one nothing is known.
    return np.append(np.maximum.accumulate(found[::-1])[::-1], -np.inf)


def _bounds(target, point, caps, radii, outward, is_even: bool) -> tuple[np.ndarray, float]:
    """Lower bounds of P at these radii, by parabolas that hold up to the last, and what its odd part takes there."""
    second, third, fourth = (np.array(part) for part in _sums(target, point, caps, radii[-1], is_even))
    if not all(np.all(np.isfinite(part)) for part in (second, third, fourth)):
        return np.full(radii.size, -np.inf), np.inf
    lifted, negative = lift(second), max(-least_on_slice(fourth), 0.0)
    rounding = [
        outward * sum(np.linalg.norm(part) for part in (lifted, radius * third, radius**2 * fourth)) for radius in radii
    ]
    bounds = [least_of_form(lifted, third, fourth, radius) for radius in radii]
    return np.array(bounds) - rounding - radii**2 * negative, radii[-1] * float(np.linalg.norm(third, 2))


def is_affordable(target: Target) -> bool:
    """Whether fourth moments of all records are worth their time."""
    return target.data.num_records * (target.dimension * (target.dimension + 1) / 2.0) ** 2 <= _MOST_PRODUCTS


def least_of_form(lifted: np.ndarray, third: np.ndarray, fourth: np.ndarray, radius: float) -> float:
    """A lower bound of P over the sphere, from its parts: in the coordinates of E, but that of e in `third`."""
    form = lifted - radius**2 * fourth
    along = third @ _unit(third.shape[0])
    off = third - np.outer(along, _unit(third.shape[0]))
    parted = np.linalg.norm(along) / np.sqrt(third.shape[0]) + np.linalg.norm(off, 2)
    size = radius * float(min(np.linalg.norm(third, 2), parted))
    bounds = [least_on_slice(form) - size]
    if size > _MOST_ODD:
        squared = radius**2 * third.T @ third
        bounds += [least_on_slice(form - squared / (2.0 * beta)) - 0.5 * beta for beta in (size, 0.5 * size)]
    return max(bounds)


def _unit(dimension: int) -> np.ndarray:
    """The identity matrix among the E, of length 1."""
    rows, columns = np.triu_indices(dimension)
    return (rows == columns) / np.sqrt(dimension)


def least_on_slice(form: np.ndarray) -> float:
    """A lower bound of E'SE over |E| = 1 with trace 1, from the dual problem with the multiplier μ."""
    dimension = _dimension(form.shape[0])
    unit = _unit(dimension)
    # E = unit/√d + F with F'unit = 0 and |F|² = 1 - 1/d.
    moved, level = form @ unit, float(unit @ form @ unit)
    if dimension == 1:
        return level
    plane = form - np.outer(unit, moved) - np.outer(moved, unit) + level * np.outer(unit, unit)
    # The direction of the unit vector is none of the plane: any large value takes it out.
    large = 2.0 * np.abs(plane).sum(axis=0).max() + 1.0
    values, vectors = np.linalg.eigh(plane + large * np.outer(unit, unit))
    slopes = np.square(vectors.T @ (moved - level * unit)) / dimension
    size = 1.0 - 1.0 / dimension

    def dual(gap: float) -> float:
        return float(level / dimension + (values[0] - gap) * size - np.sum(slopes / (values - values[0] + gap)))

    # Concave in μ, with derivative Σslopes/(values - μ)² - size.
    low, high = 1e-14 * large, float(np.sqrt(np.sum(slopes) / size)) + 1e-12 * large
    for _ in range(60):
        middle = np.sqrt(low * high)
        rising = np.sum(slopes / np.square(values - values[0] + middle)) > size
        low, high = (middle, high) if rising else (low, middle)
    return dual(high) - 1e-13 * large * form.shape[0]


def lift(matrix: np.ndarray) -> np.ndarray:
    """The matrix of E ↦ ½(AE + EA) in the d(d+1)/2 coordinates."""
    dimension = matrix.shape[0]
    rows, columns = np.triu_indices(dimension)
    basis = np.zeros((rows.size, dimension, dimension))
    scales = np.where(rows == columns, 1.0, np.sqrt(0.5))
    basis[np.arange(rows.size), rows, columns] = basis[np.arange(rows.size), columns, rows] = scales
    flat = basis.reshape(rows.size, -1)
    lifted = (basis @ matrix).reshape(rows.size, -1) @ flat.T
    return 0.5 * (lifted + lifted.T)


def _dimension(entries: int) -> int:
    return round((np.sqrt(8.0 * entries + 1.0) - 1.0) / 2.0)


_farthest_steps = Compiled(farthest_steps)


@Compiled
def _sums(target: Target, point: Point, caps: Array, radius: Array, is_even: Array) -> tuple[Array, Array, Array]:
    """Σa vv', Σc v⊗E and Σb E⊗E with E the entries of vv', in blocks of records."""
    loss, records = target.loss, target.data
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)
    dimension = records.dimension
    rows, columns = np.triu_indices(dimension)
    scales = jnp.asarray(np.where(rows == columns, 1.0, np.sqrt(2.0)))[None]

    def terms(x, y, cap):
        v = x @ jnp.asarray(point.inverse_factor).T
        squares = jnp.sum(jnp.square(v), axis=1)
        reach = jnp.maximum(jnp.minimum(radius * jnp.sqrt(squares), cap), 1e-12)
        # Over the sphere u² has the mean ρ²q/d and u⁴ 3d/(d + 2) times its square.
        steps = 3.0 / (dimension + 2.0) * radius**2 * squares
        a, c, b = jax.vmap(parabola, (None, 0, 0, 0, 0, None))(loss, x @ point.theta, y, reach, steps, is_even)
        entries = v[:, rows] * v[:, columns] * scales
        return (v * a[:, None]).T @ v, (v * c[:, None]).T @ entries, (entries * b[:, None]).T @ entries

    return block_sums(terms, (records.x, records.y, jnp.asarray(caps)), records_a_block(rows.size))


def parabola(
    loss: AbstractPredictorLoss, predictor: Array, response: Array, reach: Array, square: Array, is_even: Array
) -> tuple[Array, Array, Array]:
    """a, c and b with κ̄(u) ≥ a + cu - bu² for |u| ≤ reach, where a - b·square is nearly as large as it can be.

    `square` is E[u⁴]/E[u²] of the steps that matter, at most reach². If `is_even`, c = 0 and b ≥ 0. Any would do.

    Between neighbouring nodes l < h = γl, where g(u) = κ̄(u) - cu + bu²: u·κ̄(u) = s(η + u) - s(η) is at least its
    chord less Kw²/8, w = h - l, with |ρ'''| ≤ K; the chord over u differs from a straight line by no more than
    κ̄(l)(1 - γ^{-1/2})², and bu² by no more than bw²/4. Without K, s is at least s(η + l), so that κ̄(u) ≥ κ̄(l)/γ. For
    |u| below the least node κ̄ is at least its `mean` there.
    """
    sizes = reach * _RATIO ** -jnp.arange(_NUM_NODES, dtype=float)[::-1]
    facts = jax.vmap(loss.curvature_facts, (None, None, 0))(predictor, response, sizes)
    inner, flat = facts.mean[0], facts.mean[-1]
    here = loss.record_score(predictor, response)

    def side(sign):
        there = jax.vmap(loss.record_score, (0, None))(predictor + sign * sizes, response)
        means = sign * (there - here) / sizes - _ROUNDING * (jnp.abs(there) + jnp.abs(here)) / sizes
        bent = means[:-1] * (1.0 - _RATIO**-0.5) ** 2 + facts.third[1:] * (_RATIO - 1.0) ** 2 * sizes[:-1] / 8.0
        fallen = jnp.maximum(means[:-1], means[1:]) - means[:-1] / _RATIO
        slack = jnp.maximum(jnp.minimum(bent, fallen), 0.0)
        zero = jnp.zeros(1)
        return means - jnp.maximum(jnp.append(slack, zero), jnp.append(zero, slack))

    nodes = jnp.concatenate([-sizes[::-1], jnp.zeros(1), sizes])
    values = jnp.concatenate([side(-1.0)[::-1], jnp.expand_dims(inner, 0), side(1.0)])
    values = jnp.where(is_even, jnp.minimum(values, values[::-1]), values)
    square = jnp.minimum(square, 0.9 * reach**2)
    c, b = _best_parabola(nodes, values, square)
    c, b = jnp.where(is_even, 0.0, c), jnp.where(is_even, jnp.maximum(b, 0.0), b)
    curved = b - jnp.maximum(b, 0.0) * (_RATIO - 1.0) ** 2 / 4.0
    least = jnp.min(values - c * nodes + curved * nodes**2)
    # Between the least nodes the parabola is above its value at 0 by no more than this.
    a = least - (jnp.abs(c) + jnp.maximum(-b, 0.0) * sizes[0]) * sizes[0]
    is_better = a - b * square > flat
    return jnp.where(is_better, a, flat), jnp.where(is_better, c, 0.0), jnp.where(is_better, b, 0.0)


def _best_parabola(nodes: Array, values: Array, square: Array) -> tuple[Array, Array]:
    """c and b of the largest a - b·square with a + cu - bu² ≤ value at every node u, nearly.

    The simplex method on the dual problem, probabilities on the nodes with mean 0 and second moment `square`: three
    nodes have some, the parabola is the one through their values, and the node that it exceeds most enters.
    """
    last, middle = nodes.size - 1, nodes.size // 2

    def through(places):
        u, v = nodes[places], values[places]
        first = (v[1] - v[0]) / (u[1] - u[0])
        second = ((v[2] - v[1]) / (u[2] - u[1]) - first) / (u[2] - u[0])
        return first - second * (u[0] + u[1]), -second, v[0] - first * u[0] + second * u[0] * u[1]

    def lagrange(u, mean, second_moment):
        others = jnp.roll(u, -1), jnp.roll(u, -2)
        top = second_moment - mean * (others[0] + others[1]) + others[0] * others[1]
        return top / ((u - others[0]) * (u - others[1]))

    def exchange(_, places):
        c, b, a = through(places)
        entering = jnp.argmin(values - a - c * nodes + b * nodes**2)
        u, new = nodes[places], nodes[entering]
        shares, column = lagrange(u, 0.0, square), lagrange(u, new, new**2)
        is_positive = column > 1e-12
        ratios = jnp.where(is_positive, shares / jnp.where(is_positive, column, 1.0), jnp.inf)
        known = jnp.any(places == entering)
        return jnp.where(known | (jnp.arange(3) != jnp.argmin(ratios)), places, entering)

    places = jax.lax.fori_loop(0, _EXCHANGES, exchange, jnp.array([0, middle, last]))
    c, b, _ = through(places)
    return c, b
