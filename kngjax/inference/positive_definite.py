"""What a matrix may have been, of which some numbers were released with noise, given that it is positive definite.

Released is r = h + N, the numbers of a matrix in a linear family, with noise of density proportional to e^(-ε‖N‖). With
a flat prior on positive definite matrices the posterior of h has density e^(-ε‖r - h‖) where H(h) is positive definite.
Nothing is rejected: a chain moves one number after another by its law given the others, by inversion.

With p = u + v and q = u - v a number that moves by t moves H by t(pq' + qp')/2 and multiplies its determinant by
(1 + tm/2)² - t²ab/4, with a = p'Wp, b = q'Wq, m = p'Wq and W = H⁻¹: H(h) remains positive definite for t between the
roots about 0, -2/(√(ab) + m) and 2/(√(ab) - m). There the norm is level, as long as another
block is the larger, and grows by |t| beyond: the law of t is uniform between two exponentials, cut at the roots.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled

# Of the root of the least pivot of a matrix with unit diagonal. A flat prior has a share of its square below.
_LEAST_ROOT = 1e-6
# Moves stay so far from the roots, in shares.
_MARGIN = 1e-9
# Operations, beyond which a program that is compiled quickly costs more than it saves.
_MUCH = 10**8
# Of a start's eigenvalues, in units of the guess.
_LEAST_SHARE = 0.02


class MatrixFamily(NamedTuple):
    """Holds the family H(h) = B + Σ_c h_c (u_c u_c' - v_c v_c'). **Arguments:** `base`: B."""

    u: Float[np.ndarray, "numbers dimension"]
    v: Float[np.ndarray, "numbers dimension"]
    base: Float[np.ndarray, "dimension dimension"]

    def matrices(self, numbers: Float[np.ndarray, "*draws numbers"]) -> Float[np.ndarray, "*draws dimension dimension"]:
        """H(h)."""
        made = self.base + np.tensordot(numbers, _products(self.u + self.v, self.u - self.v), axes=1)
        return 0.5 * (made + np.swapaxes(made, -1, -2))


class BlockNoise(NamedTuple):
    """Holds the noise of density proportional to exp(-ε·max_b ‖N_b‖), over blocks b.

    The norm of a block is Σ_j |N_j|/w_j or, of an exchange, the larger of Σ_j (N_j/w_j)⁺ and Σ_j (N_j/w_j)⁻.

    **Arguments:** `block`: the number of the block of each number, from 0. `is_exchange`: whether it is one, alike within
    a block. `width`: w.
    """

    block: Integer[np.ndarray, " numbers"]
    is_exchange: Bool[np.ndarray, " numbers"]
    width: Float[np.ndarray, " numbers"]
    epsilon: float


class ChainLengths(NamedTuple):
    """Holds how many chains there are, how many periods of `thinning` sweeps each, and how many of them come first."""

    chains: int = 20
    first: int = 20
    kept: int = 50
    thinning: int = 5


def start_between(
    released: Float[np.ndarray, " numbers"], guess: Float[np.ndarray, " numbers"], family: MatrixFamily
) -> Float[np.ndarray, " numbers"]:
    """Blends (1 - a)r + ag with the least a for which H is at least .02·G, for a positive definite guess G = H(g)."""
    root = np.linalg.cholesky(family.matrices(guess))
    half = np.linalg.solve(root, family.matrices(released))
    least = np.linalg.eigvalsh(np.linalg.solve(root, half.T))[0]
    return guess + min(1.0, (1.0 - _LEAST_SHARE) / max(1.0 - least, 1e-300)) * (released - guess)


def matrices_given(
    released: Float[np.ndarray, " numbers"],
    family: MatrixFamily,
    noise: BlockNoise,
    start: Float[np.ndarray, " numbers"],
    seed: int,
    lengths: ChainLengths = ChainLengths(),
) -> Float[np.ndarray, "draws dimension dimension"]:
    """Draws positive definite matrices given their released numbers: chain after chain, `kept` of each.

    The same arguments give the same draws. Units of rows and of numbers are no matter but for rounding.

    **Arguments:** `start`: numbers of a positive definite matrix, from `start_between`.

    Raises ValueError where the start is not positive definite.
    """
    diagonal = np.diagonal(family.matrices(start))
    if not (np.all(np.isfinite(released)) and np.all(np.isfinite(diagonal)) and np.all(diagonal > 0.0)):
        raise ValueError("start must be the numbers of a positive definite matrix, and released numbers finite")
    # The noise has width and ε of 1, and the start a diagonal of about 1: by powers of two, without rounding.
    rates, scale = noise.epsilon / noise.width, np.exp2(-np.round(0.5 * np.log2(diagonal)))
    by_entry = scale / np.sqrt(rates)[:, None]
    p, q, base = (
        by_entry * (family.u + family.v),
        by_entry * (family.u - family.v),
        family.base * np.outer(scale, scale),
    )
    exchanges = np.zeros(noise.block.max() + 1, bool)
    exchanges[noise.block] = noise.is_exchange
    periods, generator = lengths.first + lengths.kept, np.random.default_rng(seed)
    shape = periods * lengths.thinning, len(released), lengths.chains
    by_sweep = shape[0], shape[2]
    randoms = _Randoms(generator.random(shape), generator.random(by_sweep), generator.standard_normal(by_sweep))
    with float64():
        target = _Target(
            p, q, base, 0.5 * (_products(p, q) + _products(q, p)), noise.block, exchanges, rates * released
        )
        run = _draw.optimised if randoms.uniform.size * base.size > _MUCH else _draw
        drawn = np.asarray(run(target, rates * start, randoms, periods))
    numbers = np.moveaxis(drawn[lengths.first :], -1, 0).reshape(-1, len(released)) / rates
    return family.matrices(numbers)


def _products(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return p[:, :, None] * q[:, None]


class _Target(NamedTuple):
    """Holds the target in units of the noise."""

    p: Array
    q: Array
    base: Array
    directions: Array
    block: Array
    is_exchange: Array
    released: Array


class _Randoms(NamedTuple):
    """Holds a uniform of each number, of the acceptance, and a normal for the length of the noise, by sweep and chain."""

    uniform: Array
    acceptance: Array
    normal: Array


class _State(NamedTuple):
    """Holds h, N = r - h, H⁻¹ and the root of the least pivot; chains are the last axis.

    N is kept beside h: of the two, one may dwarf the other and keep no digit of it.
    """

    numbers: Array
    noise: Array
    inverse: Array
    least_root: Array


@functools.partial(Compiled, static_argnames=("periods",))
def _draw(target: _Target, start: Array, randoms: _Randoms, periods: int) -> Array:
    chains = randoms.normal.shape[-1]
    numbers = jnp.repeat(jnp.asarray(start)[:, None], chains, axis=1)
    factor, least_root, scale = _factored(target, numbers)
    noise = jnp.asarray(target.released)[:, None] - numbers
    state = _State(numbers, noise, _inverse_of(factor, scale), least_root)

    def period(state: _State, randoms: _Randoms) -> tuple[_State, Array]:
        def sweep(number: Array, state: _State) -> _State:
            return _sweep(target, state, jax.tree.map(lambda part: part[number], randoms))

        state = jax.lax.fori_loop(0, len(randoms.normal), sweep, state)
        return state, state.numbers

    by_period = jax.tree.map(lambda part: jnp.asarray(part).reshape(periods, -1, *part.shape[1:]), randoms)
    return jax.lax.scan(period, state, by_period)[1]


def _factored(target: _Target, numbers: Array) -> tuple[Array, Array, Array]:
    """Cholesky's factor of H with unit diagonal, the root of its least pivot, and what scaled it; chains first.

    Where H is not positive definite they are NaN.
    """
    made = jnp.moveaxis(target.base[:, :, None] + jnp.tensordot(target.directions, numbers, ((0,), (0,))), -1, 0)
    scale = jax.lax.rsqrt(jnp.diagonal(made, axis1=1, axis2=2))
    factor = jnp.linalg.cholesky(made * scale[:, :, None] * scale[:, None, :], symmetrize_input=False)
    return factor, jnp.min(jnp.diagonal(factor, axis1=1, axis2=2), axis=1), scale


def _inverse_of(factor: Array, scale: Array) -> Array:
    identity = jnp.broadcast_to(jnp.eye(factor.shape[-1]), factor.shape)
    root = jax.lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True) * scale[:, None, :]
    return jnp.einsum("bki,bkj->ijb", root, root)


def _sweep(target: _Target, before: _State, randoms: _Randoms) -> _State:
    """Moves every number, and then the length of the noise, if what is left is positive definite in float64."""
    plus, minus = (_by_block(target, jnp.maximum(sign * before.noise, 0.0)) for sign in (1.0, -1.0))
    moving = _Moving(before.numbers, before.noise, before.inverse, plus, minus)
    uniform = randoms.uniform
    moved = jax.lax.fori_loop(0, len(uniform), lambda c, moving: _move(target, moving, c, uniform[c]), moving)

    # Along its ray N has density proportional to λ^(D-1)·e^(-λ‖N‖), and λ^D·e^(-λ‖N‖) in log λ.
    count, chains = before.noise.shape
    growth = jnp.exp(1.5 / np.sqrt(count) * randoms.normal)
    gain = count * jnp.log(growth) - (growth - 1.0) * jnp.max(_sizes(target, moved.plus, moved.minus), axis=0)
    wanted = jnp.log(randoms.acceptance) < gain
    longer = moved.numbers - (growth - 1.0) * moved.noise, growth * moved.noise

    factor, root, scale = _factored(target, jnp.concatenate([moved.numbers, longer[0]], axis=1))
    fine = root >= jnp.tile(jnp.minimum(_LEAST_ROOT, before.least_root), 2)
    take = jnp.stack([fine[:chains], fine[chains:] & wanted])

    def chosen(old: Array, once: Array, twice: Array, axis: int) -> Array:
        shape = [-1 if place == axis % old.ndim else 1 for place in range(old.ndim)]
        return jnp.where(take[1].reshape(shape), twice, jnp.where(take[0].reshape(shape), once, old))

    identity = jnp.broadcast_to(jnp.eye(factor.shape[-1]), (chains, *factor.shape[1:]))
    kept = chosen(identity, factor[:chains], factor[chains:], 0)
    inverse = _inverse_of(kept, chosen(scale[:chains], scale[:chains], scale[chains:], 0))
    return _State(
        chosen(before.numbers, moved.numbers, longer[0], -1),
        chosen(before.noise, moved.noise, longer[1], -1),
        jnp.where(take[0] | take[1], inverse, before.inverse),
        chosen(before.least_root, root[:chains], root[chains:], 0),
    )


def _by_block(target: _Target, values: Array) -> Array:
    return jax.ops.segment_sum(values, target.block, len(target.is_exchange))


def _sizes(target: _Target, plus: Array, minus: Array) -> Array:
    """The norm of each block, of the sums of its positive and of its negative parts."""
    return jnp.where(target.is_exchange[:, None], jnp.maximum(plus, minus), plus + minus)


class _Moving(NamedTuple):
    """Holds a state within a sweep, with the sums of the noise's positive and negative parts of each block."""

    numbers: Array
    noise: Array
    inverse: Array
    plus: Array
    minus: Array


def _move(target: _Target, moving: _Moving, c: Array, uniform: Array) -> _Moving:
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
    level, up, down = _level(target, plus, minus, block, old)
    t = _draw_within(lower, upper, level[0], level[1], uniform)
    determinant = (1.0 + 0.5 * t * (m - size)) * (1.0 + 0.5 * t * (m + size))
    t = jnp.where(determinant > 0.0, t, 0.0)
    half = 0.5 * t / jnp.where(determinant > 0.0, determinant, 1.0)
    across = half * (1.0 + 0.5 * t * m)
    for_p = across * of_q - half * 0.5 * t * b * of_p
    for_q = across * of_p - half * 0.5 * t * a * of_q
    new = old - t
    return _Moving(
        numbers.at[c].add(t),
        noise.at[c].set(new),
        inverse - of_p[:, None] * for_p[None] - of_q[:, None] * for_q[None],
        plus.at[block].set(up + jnp.maximum(new, 0.0)),
        minus.at[block].set(down + jnp.maximum(-new, 0.0)),
    )


def _level(
    target: _Target, plus: Array, minus: Array, block: Array, old: Array
) -> tuple[tuple[Array, Array], Array, Array]:
    """The moves within which the norm of the noise is level, and the sums of a block's parts without this number."""
    sizes = _sizes(target, plus, minus)
    others = jnp.max(jnp.where(jnp.arange(len(sizes))[:, None] == block, 0.0, sizes), axis=0)
    up = jnp.maximum(plus[block] - jnp.maximum(old, 0.0), 0.0)
    down = jnp.maximum(minus[block] - jnp.maximum(-old, 0.0), 0.0)
    exchange = target.is_exchange[block]
    right = jnp.where(exchange, jnp.maximum(others, down) - up, others - up - down)
    left = jnp.where(exchange, jnp.maximum(others, up) - down, others - up - down)
    # The noise is old - t.
    return (old - jnp.maximum(right, 0.0), old + jnp.maximum(left, 0.0)), up, down


def _draw_within(lower: Array, upper: Array, begin: Array, end: Array, uniform: Array) -> Array:
    """A draw t of [lower, upper] of density proportional to exp(-|distance of t from [begin, end]|), by inversion.

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
