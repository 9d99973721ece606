"""L-lag couplings of `SliceGibbs`: pairs of chains that meet, and what their meeting times say of its convergence.

Each chain of a pair is a slice-Gibbs chain by itself. Together they draw from maximal couplings of their conditional
laws, shifted exponentials and uniforms on intervals, or, in most sweeps, use common random numbers, which bring them
close.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.arrays import Vector
from kngjax.samplers.chains.slice_gibbs import (
    SliceGeometry,
    SliceGibbs,
    SliceGibbsState,
    move_interval,
    num_radial_moves,
    radial_move,
    slice_geometry,
    slice_radius,
    state_at,
    step_along,
)
from kngjax.samplers.limit_law import starts
from kngjax.samplers.quadratic import quadratic_form
from kngjax.samplers.target import Target

# The share of sweeps that bring two chains closer by common random numbers; the others try to make them meet.
COMMON_SHARE = 0.7

Pair = tuple[Float[Array, ""], Float[Array, ""]]


class _Noise(NamedTuple):
    common: Array
    levels: Array
    uniforms: Array


def meeting_times(
    target: Target, centre: Vector, key: PRNGKeyArray, num_pairs: int, lag: int, num_sweeps: int
) -> Float[Array, " pairs"]:
    """τ = inf {t > L : X_t = Y_(t-L)} of independent pairs that start as releases do; inf where none was seen.

    **Arguments:** `lag`: L, at least 1. `num_sweeps`: after which a pair is given up.
    """
    geometry = slice_geometry(target, quadratic_form(target))
    sampler, dimension = SliceGibbs(), target.dimension
    num_radial = num_radial_moves(dimension)

    def pair(key):
        first_key, second_key, lag_key, sweep_key = jax.random.split(key, 4)
        first = state_at(geometry, starts(target, centre, first_key, 1)[0])
        second = state_at(geometry, starts(target, centre, second_key, 1)[0])
        noise = sampler.noise(lag_key, target, first, lag)
        first, _ = jax.lax.scan(lambda state, noise: (sampler.step(target, state, noise)[0], None), first, noise)

        def advance(number, search):
            first, second, met_at = search
            keys = jax.random.split(jax.random.fold_in(sweep_key, number), 3)
            noise = _Noise(
                jax.random.uniform(keys[0]) < COMMON_SHARE,
                jax.random.exponential(keys[1], (2 + num_radial, 2)),
                jax.random.uniform(keys[2], (2 * dimension + num_radial, 3)),
            )
            first, second = coupled_sweep(target, geometry, first, second, noise)
            met = jnp.all(first == second)
            return first, second, jnp.where(met & jnp.isinf(met_at), lag + number + 1.0, met_at)

        start = (first.theta, second.theta, jnp.asarray(jnp.inf))
        return jax.lax.fori_loop(0, num_sweeps, advance, start)[2]

    return jax.vmap(pair)(jax.random.split(key, num_pairs))


def coupled_sweep(
    target: Target, geometry: SliceGeometry, first: Vector, second: Vector, noise: _Noise
) -> tuple[Float[Array, " dimension"], Float[Array, " dimension"]]:
    """One sweep of both chains; chains that have met stay together."""
    dimension = target.dimension
    states = state_at(geometry, first), state_at(geometry, second)
    for kind in range(2):
        # In moves of θ_j what is drawn is θ_j, in moves of y_j it is y_j: that is what can come out equal.
        field = ("theta", "image")[kind]
        radii = _coupled_radii(target, states, noise.levels[kind], noise.common)

        def move(number, states, field=field, radii=radii, kind=kind):
            coordinate = number - kind * dimension
            at = [getattr(state, field)[coordinate] for state in states]
            ends = [move_interval(target, state, radius, number) for state, radius in zip(states, radii, strict=True)]
            one, other = [(old + lower, old + upper) for old, (lower, upper) in zip(at, ends, strict=True)]
            drawn = coupled_uniforms(one, other, noise.uniforms[number], noise.common)
            new = [step_along(state, number, x - old) for state, x, old in zip(states, drawn, at, strict=True)]
            # To the bit.
            return tuple(
                state._replace(**{field: getattr(state, field).at[coordinate].set(x)})
                for state, x in zip(new, drawn, strict=True)
            )

        states = jax.lax.fori_loop(kind * dimension, (kind + 1) * dimension, move, states)
        met = jnp.all(getattr(states[0], field) == getattr(states[1], field))
        second = jnp.where(met, states[0].theta, states[1].theta)
        states = state_at(geometry, states[0].theta), state_at(geometry, second)

    def shrink(number, states):
        radii = _coupled_radii(target, states, noise.levels[2 + number], jnp.asarray(True))
        uniform = noise.uniforms[2 * dimension + number, 0]
        return tuple(radial_move(target, state, radius, uniform) for state, radius in zip(states, radii, strict=True))

    states = jax.lax.fori_loop(0, num_radial_moves(dimension), shrink, states)
    return states[0].theta, states[1].theta


def _coupled_radii(target: Target, states: tuple[SliceGibbsState, ...], levels: Array, common: Array) -> Pair:
    """Radii of the two slices; the scores' shifted exponentials are coupled maximally, or by one level for both.

    With s the smaller score and S the larger, a draw s + E with E ≥ S - s is a draw from S + Exp as well.
    """
    squared = target.norm is None
    zeros = [slice_radius(target, state, jnp.zeros(())) for state in states]
    # Scores in units of 1/c.
    scores = [target.rate * (0.5 * zero**2 if squared else zero) for zero in zeros]
    low, high = jnp.minimum(*scores), jnp.maximum(*scores)
    reached = low + levels[0] >= high
    drawn_low, drawn_high = low + levels[0], jnp.where(reached, low + levels[0], high + levels[1])
    apart = [jnp.where(score <= low, drawn_low, drawn_high) for score in scores]
    drawn = [jnp.where(common, score + levels[0], one) for score, one in zip(scores, apart, strict=True)]
    radii = [jnp.sqrt(2.0 * one / target.rate) if squared else one / target.rate for one in drawn]
    return radii[0], radii[1]


def coupled_uniforms(first: Pair, second: Pair, uniforms: Float[Array, "3"], common: Array) -> Pair:
    """Draws from the uniform laws on two intervals that are equal as often as can be, or made from one uniform.

    Maximal: x uniform on the first is kept by the second with probability min(1, q(x)/p(x)); else the second draws
    from its density less what it shares with the first.
    """
    (a, b), (c, d) = first, second
    lengths = jnp.maximum(b - a, 1e-300), jnp.maximum(d - c, 1e-300)
    x = a + uniforms[0] * (b - a)
    same = (x >= c) & (x <= d) & (uniforms[1] * lengths[1] <= lengths[0])
    left, right = jnp.maximum(a, c), jnp.minimum(b, d)
    meets = right > left
    # In units of the second density: left of the overlap, on it (what the first leaves over), right of it.
    below = jnp.where(meets, left - c, lengths[1])
    within = jnp.where(meets, jnp.maximum(1.0 - lengths[1] / lengths[0], 0.0) * (right - left), 0.0)
    above = jnp.where(meets, d - right, 0.0)
    at = uniforms[2] * (below + within + above)
    inner = left + (at - below) / jnp.where(within > 0, within, 1.0) * (right - left)
    rest = jnp.where(at < below, c + at, jnp.where(at < below + within, inner, right + (at - below - within)))
    y = jnp.where(same, x, jnp.clip(rest, c, d))
    return x, jnp.where(common, c + uniforms[0] * (d - c), y)


def convergence_bound(times: Float[Array, " pairs"], lag: int, num_sweeps: int) -> Float[Array, " sweeps"]:
    """The mean of max(0, ⌈(τ - L - t)/L⌉) over the pairs, for t = 0, 1, …, num_sweeps."""
    sweeps = jnp.arange(num_sweeps + 1)
    return jax.vmap(lambda t: jnp.mean(jnp.maximum(jnp.ceil((times - lag - t) / lag), 0.0)))(sweeps)
