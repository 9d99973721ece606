"""Gibbs sweeps over the numbers h of a positive definite matrix H(h), of density e^(-‖r - h‖) for released numbers r.

With p = u + v and q = u - v a number that moves by t moves H by t(pq' + qp')/2 and multiplies its determinant by

    (1 + tm/2)² - t²ab/4,    a = p'Wp, b = q'Wq, m = p'Wq and W = H⁻¹:

H remains positive definite for t between the roots about 0, -2/(√(ab) + m) and 2/(√(ab) - m). There the norm is level
as long as another block is the larger, and grows by |t| beyond: given the others, t is uniform between two exponential
tails, cut at the roots. So it is drawn by inversion, and W changes by rank two. Chains are the last axis of arrays.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kngjax.core.compiling import Compiled

# Of H_ii·W_ii, which bounds the least eigenvalue of H with unit diagonal; a flat prior has about 1e-11 beyond.
_MOST_INFLATION = 1e11
# Moves end so far from the roots, in shares.
_MARGIN = 1e-9


class MatrixTarget(NamedTuple):
    """Holds the target, with noise of width and ε of 1.

    **Arguments:** `p`, `q`: shape (D, d). `base`: H(0). `directions`: (pq' + qp')/2. `block`: of each number.
    `is_exchange`: of each block. `released`: r.
    """

    p: Any
    q: Any
    base: Any
    directions: Any
    block: Any
    is_exchange: Any
    released: Any


class Randoms(NamedTuple):
    """Holds uniform and normal numbers by sweep and chain.

    **Arguments:** `uniform`: one of each number. `acceptance`, `normal`: of the length of the noise.
    """

    uniform: Any
    acceptance: Any
    normal: Any


class _State(NamedTuple):
    """Holds h, N = r - h, W = H⁻¹ and the largest H_ii·W_ii.

    N is kept beside h: one of the two may dwarf the other, and keep no digit of it.
    """

    numbers: Array
    noise: Array
    inverse: Array
    inflation: Array


@functools.partial(Compiled, static_argnames=("periods",))
def draw_numbers(target: MatrixTarget, start: Array, randoms: Randoms, periods: int) -> Array:
    """Runs chains from one start, and returns h after each of so many periods of equally many sweeps."""
    numbers = jnp.repeat(jnp.asarray(start)[:, None], randoms.normal.shape[-1], axis=1)
    state = _State(numbers, jnp.asarray(target.released)[:, None] - numbers, *_inverse(target, numbers))

    def period(state: _State, randoms: Randoms) -> tuple[_State, Array]:
        def sweep(number: Array, state: _State) -> _State:
            return _sweep(target, state, jax.tree.map(lambda part: part[number], randoms))

        state = jax.lax.fori_loop(0, len(randoms.normal), sweep, state)
        return state, state.numbers

    by_period = jax.tree.map(lambda part: jnp.asarray(part).reshape(periods, -1, *part.shape[1:]), randoms)
    return jax.lax.scan(period, state, by_period)[1]


def _inverse(target: MatrixTarget, numbers: Array) -> tuple[Array, Array]:
    """Returns W = H⁻¹ and the largest H_ii·W_ii; NaN where H is not positive definite."""
    made = jnp.moveaxis(target.base[:, :, None] + jnp.tensordot(target.directions, numbers, ((0,), (0,))), -1, 0)
    scale = jax.lax.rsqrt(jnp.diagonal(made, axis1=1, axis2=2))
    factor = jnp.linalg.cholesky(made * scale[:, :, None] * scale[:, None, :], symmetrize_input=False)
    identity = jnp.broadcast_to(jnp.eye(factor.shape[-1]), factor.shape)
    root = jax.lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True)
    inflation = jnp.max(jnp.sum(root**2, axis=1), axis=1)
    root = root * scale[:, None, :]
    return jnp.einsum("bki,bkj->ijb", root, root), inflation


def _sweep(target: MatrixTarget, before: _State, randoms: Randoms) -> _State:
    """Moves every number, and then the length of the noise; what is not positive definite in float64 is not taken."""
    plus, minus = (_by_block(target, jnp.maximum(sign * before.noise, 0.0)) for sign in (1.0, -1.0))
    moving, uniform = _Moving(before.numbers, before.noise, before.inverse, plus, minus), randoms.uniform
    moved = jax.lax.fori_loop(0, len(uniform), lambda c, moving: _move(target, moving, c, uniform[c]), moving)

    # Along its ray N has density proportional to λ^(D-1)·e^(-λ‖N‖), which is λ^D·e^(-λ‖N‖) in log λ.
    count, chains = before.noise.shape
    log_growth = 1.5 / np.sqrt(count) * randoms.normal
    growth = jnp.expm1(log_growth)
    gain = count * log_growth - growth * jnp.max(_sizes(target, moved.plus, moved.minus), axis=0)
    more = growth[None] * moved.noise

    inverse, inflation = _inverse(target, jnp.concatenate([moved.numbers, moved.numbers - more], axis=1))
    once = _State(moved.numbers, moved.noise, inverse[..., :chains], inflation[:chains])
    twice = _State(moved.numbers - more, moved.noise + more, inverse[..., chains:], inflation[chains:])
    most = jnp.maximum(_MOST_INFLATION, before.inflation)
    is_fine, is_taken = once.inflation <= most, (twice.inflation <= most) & (jnp.log(randoms.acceptance) < gain)

    def chosen(old: Array, one: Array, two: Array) -> Array:
        first, second = (jnp.broadcast_to(part, old.shape) for part in (is_fine, is_taken))
        return jnp.where(second, two, jnp.where(first, one, old))

    return jax.tree.map(chosen, before, once, twice)


def _by_block(target: MatrixTarget, values: Array) -> Array:
    return jax.ops.segment_sum(values, target.block, len(target.is_exchange))


def _sizes(target: MatrixTarget, plus: Array, minus: Array) -> Array:
    """Returns the norm of each block, from the sums of its positive and of its negative parts."""
    return jnp.where(target.is_exchange[:, None], jnp.maximum(plus, minus), plus + minus)


class _Moving(NamedTuple):
    """Holds a state within a sweep, with the sums of the noise's positive and negative parts of each block."""

    numbers: Array
    noise: Array
    inverse: Array
    plus: Array
    minus: Array


def _move(target: MatrixTarget, moving: _Moving, c: Array, uniform: Array) -> _Moving:
    numbers, noise, inverse, plus, minus = moving
    dimension, _, chains = inverse.shape
    pair = jnp.stack([target.p[c], target.q[c]])
    of_p, of_q = (pair @ inverse.reshape(dimension, -1)).reshape(2, dimension, chains)
    a, b, m = pair[0] @ of_p, pair[1] @ of_q, pair[0] @ of_q
    size = jnp.sqrt(a) * jnp.sqrt(b)
    # The roots, a little nearer to 0: of |m| near the root of ab rounding may make more.
    lower = -2.0 * (1.0 - _MARGIN) / jnp.maximum((1.0 + 1e-15) * size + m, 1e-300)
    upper = 2.0 * (1.0 - _MARGIN) / jnp.maximum((1.0 + 1e-15) * size - m, 1e-300)
    block, old = target.block[c], noise[c]
    begin, end, up, down = _level(target, plus, minus, block, old)
    t = _draw_within(lower, upper, begin, end, uniform)
    determinant = (1.0 + 0.5 * t * (m - size)) * (1.0 + 0.5 * t * (m + size))
    t = jnp.where(determinant > 0.0, t, 0.0)
    half = 0.5 * t / jnp.where(determinant > 0.0, determinant, 1.0)
    across, within = (half * (1.0 + 0.5 * t * m))[None], (half * 0.5 * t)[None]
    for_p = across * of_q - within * b[None] * of_p
    for_q = across * of_p - within * a[None] * of_q
    new = old - t
    return _Moving(
        numbers.at[c].add(t),
        noise.at[c].set(new),
        inverse - of_p[:, None] * for_p[None] - of_q[:, None] * for_q[None],
        plus.at[block].set(up + jnp.maximum(new, 0.0)),
        minus.at[block].set(down + jnp.maximum(-new, 0.0)),
    )


def _level(
    target: MatrixTarget, plus: Array, minus: Array, block: Array, old: Array
) -> tuple[Array, Array, Array, Array]:
    """Returns the moves between which the norm of the noise is constant, and the block's sums without this number."""
    sizes = _sizes(target, plus, minus)
    others = jnp.max(jnp.where(jnp.arange(len(sizes))[:, None] == block, 0.0, sizes), axis=0)
    up = jnp.maximum(plus[block] - jnp.maximum(old, 0.0), 0.0)
    down = jnp.maximum(minus[block] - jnp.maximum(-old, 0.0), 0.0)
    exchange = target.is_exchange[block]
    right = jnp.where(exchange, jnp.maximum(others, down) - up, others - up - down)
    left = jnp.where(exchange, jnp.maximum(others, up) - down, others - up - down)
    # The noise is old - t.
    return old - jnp.maximum(right, 0.0), old + jnp.maximum(left, 0.0), up, down


def _draw_within(lower: Array, upper: Array, begin: Array, end: Array, uniform: Array) -> Array:
    """Draws t in [lower, upper] with density proportional to exp(-|distance of t from [begin, end]|), by inversion.

    Masses are over the largest density within, so that none underflows however far the two intervals are apart.
    """
    depth = jnp.maximum(jnp.maximum(lower - end, begin - upper), 0.0)
    left, right = jnp.minimum(upper, begin), jnp.maximum(lower, end)
    # Tails to the left and to the right of the level part.
    tails = jnp.expm1(-jnp.maximum(jnp.stack([left - lower, upper - right]), 0.0))
    gaps = jnp.stack([begin - left, right - end])
    masses = -tails * jnp.exp(jnp.minimum(depth[None] - gaps, 0.0))
    middle = jnp.clip(begin, lower, upper)
    mass = jnp.clip(end, lower, upper) - middle
    z = uniform * (mass + masses[0] + masses[1])
    beyond = z - mass
    is_left = beyond < masses[0]
    part = jnp.where(is_left, beyond, beyond - masses[0]) / jnp.maximum(jnp.where(is_left, *masses), 1e-300)
    distance = -jnp.log1p(jnp.clip(part, 0.0, 1.0 - 1e-16) * jnp.where(is_left, *tails))
    drawn = jnp.where(beyond < 0.0, middle + z, jnp.where(is_left, left - distance, right + distance))
    return jnp.clip(drawn, lower, upper)
