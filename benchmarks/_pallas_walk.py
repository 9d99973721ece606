"""The one-at-a-time walk as one kernel: a thread a chain, whose state stays in registers for hundreds of sweeps.

A candidate for `kngjax.chains.CoordinateWalk` on KNG with the squared loss, its default norm and an `L1Ball`:
`python -m benchmarks.gpu` measures both on a card, and the package keeps its scan until one says otherwise. A move adds
a step to θ_j and step·(X'X)_j to the gradient. The kernel writes θ after each sweep and nothing else; what it draws
with it reads from memory, or makes of counters.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

# Chains of one program of the kernel: four warps.
BLOCK = 128


class Density(NamedTuple):
    """log f(θ) = -max_k rates_k |(X'Xθ - X'y)_k| where ‖θ‖_1 ≤ radius. **Arguments:** `gram`: shape (d, d); `moment`,
    `rates`: shape (d,); `radius`: shape (1,).
    """

    gram: Any
    moment: Any
    rates: Any
    radius: Any


class Noise(NamedTuple):
    """**Arguments:** `steps`: proposals; `uniforms` on [0, 1). Each of shape (sweeps, d, chains)."""

    steps: Any
    uniforms: Any


class Counters(NamedTuple):
    """**Arguments:** `key`: two words of 32 bits; `scales`: of normal steps, shape (d,)."""

    key: Any
    scales: Any


def density(mechanism: Any, data: Any) -> Density:
    """The numbers of a mechanism's density."""
    target = mechanism.target(data)
    rates, radius = target.rate / target.norm.weights, [target.domain.radius]
    gram, moment, rates, radius = (np.asarray(part, np.float64) for part in (data.gram, data.moment, rates, radius))
    return Density(gram, moment, rates, radius)


def start(given: Density) -> tuple[np.ndarray, np.ndarray]:
    """The estimate, drawn into Θ, and scales of steps: (d + 1)/(2c‖He_j‖_K), as Theorem 3.2 of Reimherr and Awan (2019)
    promises.
    """
    estimate = np.linalg.solve(given.gram, given.moment)
    estimate *= min(1.0, 0.9 * given.radius[0] / np.sum(np.abs(estimate)))
    return estimate, (estimate.size + 1) / (2.0 * np.max(given.rates * np.abs(given.gram), axis=1))


def threefry(key: tuple[Any, Any], first: Any, second: Any) -> tuple[Any, Any]:
    """Two random words of two counters: threefry2x32 with twenty rounds (Salmon et al. 2011)."""
    keys = (*key, key[0] ^ key[1] ^ jnp.uint32(0x1BD11BDA))
    first, second = first + keys[0], second + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            first = first + second
            second = first ^ ((second << jnp.uint32(turn)) | (second >> jnp.uint32(32 - turn)))
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return first, second


def _uniform(word: Any, dtype: Any) -> Any:
    """A number within (0, 1)."""
    return (word.astype(dtype) + 0.5) * 2.0**-32


def _drawn(key: tuple[Any, Any], scale: Any, chain: Any, move: Any) -> tuple[Any, Any]:
    """A normal step by Box and Muller (1958), and a uniform number, of a chain's move."""
    counter = jnp.uint32(2) * move.astype(jnp.uint32)
    (first, second), (third, _) = threefry(key, chain, counter), threefry(key, chain, counter + jnp.uint32(1))
    radius = jnp.sqrt(-2.0 * jnp.log(_uniform(first, scale.dtype)))
    return scale * radius * jnp.cos(2.0 * np.pi * _uniform(second, scale.dtype)), _uniform(third, scale.dtype)


def _kernel(kind: type, dimension: int, num_sweeps: int, *refs: Any) -> None:
    gram_ref, rates_ref, radius_ref, thetas_ref, gradients_ref, *noise_refs, out_ref = refs
    ks = range(dimension)
    rates, radius = [rates_ref[k] for k in ks], radius_ref[0]
    chain = (pl.program_id(0) * BLOCK + jnp.arange(BLOCK)).astype(jnp.uint32)
    if kind is Counters:
        key, scales = (noise_refs[0][0], noise_refs[0][1]), [noise_refs[1][k] for k in ks]

    def energy(gradient):
        return functools.reduce(jnp.maximum, [rate * jnp.abs(part) for rate, part in zip(rates, gradient, strict=True)])

    def sweep(number, state):
        theta, gradient, current = list(state[0]), list(state[1]), state[2]
        for j in ks:
            if kind is Counters:
                step, uniform = _drawn(key, scales[j], chain, number * dimension + j)
            else:
                step, uniform = noise_refs[0][number, j, :], noise_refs[1][number, j, :]
            # X'X stays in the cache: d² numbers more are too many for a thread's registers.
            moved = [part + step * gram_ref[j, k] for k, part in enumerate(gradient)]
            proposed, there = energy(moved), theta[j] + step
            size = functools.reduce(jnp.add, [jnp.abs(there if k == j else theta[k]) for k in ks])
            accept = (uniform > 1.0 - jnp.exp(current - proposed)) & (size <= radius)
            theta[j] = jnp.where(accept, there, theta[j])
            gradient = [jnp.where(accept, new, old) for new, old in zip(moved, gradient, strict=True)]
            current = jnp.where(accept, proposed, current)
        for k in ks:
            out_ref[number, k, :] = theta[k]
        return tuple(theta), tuple(gradient), current

    gradient = tuple(gradients_ref[k, :] for k in ks)
    jax.lax.fori_loop(0, num_sweeps, sweep, (tuple(thetas_ref[k, :] for k in ks), gradient, energy(gradient)))


@functools.partial(jax.jit, static_argnames=("num_sweeps", "interpret"))
def sweeps(given: Density, thetas: Any, noise: Noise | Counters, num_sweeps: int, interpret: bool = False) -> Any:
    """θ after each sweep, shape (sweeps, d, chains), from `thetas` of shape (d, chains), in their precision.

    The number of chains is a multiple of `BLOCK`.
    """
    dimension, num_chains = thetas.shape

    def whole(part):
        return pl.BlockSpec(part.shape, lambda block: (0,) * part.ndim)

    of_chains = pl.BlockSpec((dimension, BLOCK), lambda block: (0, block))
    of_sweeps = pl.BlockSpec((num_sweeps, dimension, BLOCK), lambda block: (0, 0, block))
    shared = (given.gram, given.rates, given.radius)
    noise_specs = [whole(part) if isinstance(noise, Counters) else of_sweeps for part in noise]
    call = pl.pallas_call(
        functools.partial(_kernel, type(noise), dimension, num_sweeps),
        grid=(num_chains // BLOCK,),
        in_specs=[*map(whole, shared), of_chains, of_chains, *noise_specs],
        out_specs=of_sweeps,
        out_shape=jax.ShapeDtypeStruct((num_sweeps, dimension, num_chains), thetas.dtype),
        compiler_params=None if interpret else triton.CompilerParams(num_warps=BLOCK // 32),
        interpret=interpret,
    )
    return call(*shared, thetas, given.gram @ thetas - given.moment[:, None], *noise)
