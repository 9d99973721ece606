"""Noise on symmetric matrices, with what is exact about it: isotropic Gaussian, Laplace on a triangle, and Wishart."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.bisection import bisect

# Degrees of freedom of Wishart noise beyond d + 1: so many make it nearly Gaussian, which makes it private.
EXTRA_DEGREES = 1000
_HALVINGS = 100
# Relative error of incomplete gamma functions of some hundred degrees, by which they are rounded outward.
_ROUNDING = 1e-11
# The least δ: below it the incomplete gamma functions may be 0.
_LEAST = 1e-300


def symmetric_gaussian(
    key: PRNGKeyArray, dimension: int, deviation: Any, shape: tuple[int, ...] = ()
) -> Float[Array, "*shape dimension dimension"]:
    """E with density ∝ exp(-‖E‖_F²/(2σ²)) over symmetric matrices: deviation σ on the diagonal, σ/√2 off it.

    In an orthonormal basis of the Frobenius inner product its coordinates are independent N(0, σ²).
    """
    normals = jax.random.normal(key, (*shape, dimension, dimension))
    return 0.5 * jnp.asarray(deviation) * (normals + jnp.swapaxes(normals, -1, -2))


def triangle_laplace(
    key: PRNGKeyArray, dimension: int, scale: Any, shape: tuple[int, ...] = ()
) -> Float[Array, "*shape dimension dimension"]:
    """Independent Laplace noise of one scale on the diagonal and on what is above it, mirrored below."""
    rows, columns = np.triu_indices(dimension)
    noise = jax.random.laplace(key, (*shape, rows.size)) * jnp.asarray(scale)
    matrices = jnp.zeros((*shape, dimension, dimension))
    return matrices.at[..., rows, columns].set(noise).at[..., columns, rows].set(noise)


def wishart_degrees(dimension: int) -> int:
    """The k of Wishart noise where it is a mechanism's."""
    return dimension + 1 + EXTRA_DEGREES


def wishart(
    key: PRNGKeyArray, dimension: int, degrees: int, scale: Any, shape: tuple[int, ...] = ()
) -> Float[Array, "*shape dimension dimension"]:
    """W = ZZ' with Z of shape (d, k) and independent N(0, scale) entries: mean k·scale·I."""
    normals = jax.random.normal(key, (*shape, dimension, degrees))
    return jnp.asarray(scale) * (normals @ jnp.swapaxes(normals, -1, -2))


def wishart_log_delta(epsilon: Any, change: Any, dimension: int, degrees: int, scale: Any) -> Float[Array, ""]:
    """log δ(ε) of M + W against M + τvv' + W with |v| = 1, the larger direction.

    The densities' ratio at S = M + W is (1 - τ·v'W^{-1}v)^{(k-d-1)/2}·e^{τ/(2s)} with s the scale, and 0 where
    W - τvv' is not positive definite. It depends on W through V = 1/(v'W^{-1}v) alone, which is s times a chi-square
    variable of m = k - d + 1 degrees of freedom: ((V-τ)/V)^{m/2-1}·e^{τ/(2s)} is the ratio of the densities of V + τ
    and V. So the privacy loss is that of shifting one gamma variable by τ. Without the record W is anything positive
    definite, with it the smallest outcomes cannot be: δ is at least P(V ≤ τ), whatever ε. For k = d + 1, the Wishart
    noise of Imtiaz and Sarwate (2016) with s = Δ/(2ε'), V is exponential and P(V ≤ Δ) = 1 - e^{-ε'}: no privacy.

    With c = m/2 - 1 the loss L(v) = c·log(v/(v-τ)) - τ/(2s) decreases, so δ(M‖M + τvv') = P(V < v*) - e^ε P(V + τ < v*)
    with L(v*) = ε, and in the other direction P(V + τ > v°) - e^ε P(V > v°) with L(v°) = -ε, if there is such a v°.

    **Arguments:** `change`: τ > 0. `degrees`: k ≥ d + 2, for noise that is log-concave along v: δ increases with τ.
    """
    tau, s = jnp.asarray(change), jnp.asarray(scale)
    half = 0.5 * (degrees - dimension + 1)
    ratio = tau / s

    def variable_at(level: Array) -> Array:
        """v/s with L(v) = level."""
        return ratio / -jnp.expm1(-(level + 0.5 * ratio) / (half - 1.0))

    epsilon = jnp.asarray(epsilon)
    grown = jnp.exp(epsilon)
    lowest = variable_at(epsilon)
    least = gammainc(half, 0.5 * lowest)
    removed = (1.0 + _ROUNDING) * least - (1.0 - _ROUNDING) * grown * gammainc(half, 0.5 * (lowest - ratio))
    exists = 0.5 * ratio > epsilon
    highest = variable_at(jnp.where(exists, -epsilon, 0.0))
    most = gammaincc(half, 0.5 * (highest - ratio))
    added = (1.0 + _ROUNDING) * most - (1.0 - _ROUNDING) * grown * gammaincc(half, 0.5 * highest)
    return jnp.log(jnp.maximum(jnp.maximum(removed, jnp.where(exists, added, 0.0)), _LEAST))


def wishart_scale(epsilon: Any, delta: Any, change: Any, dimension: int, degrees: int) -> Float[Array, ""]:
    """The smallest scale at which Wishart noise of k degrees of freedom hides a change τ at (ε, δ); rounded outward.

    δ falls as the scale grows, for larger noise along v is smaller noise plus independent noise. Infinite where no
    scale is found of which float64 can tell that it hides τ, as for ε and δ that are both tiny.
    """

    def is_too_small(scale):
        return ~(wishart_log_delta(epsilon, change, dimension, degrees, scale) <= jnp.log(jnp.asarray(delta)))

    largest = 1e12 * jnp.asarray(change)
    scale = bisect(is_too_small, 1e-12 * jnp.asarray(change), largest, _HALVINGS, geometric=True)[1]
    return jnp.where(scale < largest, scale, jnp.inf)


def repaired_solution(space: Any, matrix: Any, moment: Any, least: Any, repair: str) -> Any:
    """B̃^{-1}Ã with eigenvalues of B̃ of at least b ("floor"), or raised by b and then of at least b/10 ("ridge").

    **Arguments:** `space`: jax.numpy, or numpy. `matrix`, `moment`: B̃ and Ã. `least`: b.
    """
    values, vectors = space.linalg.eigh(matrix)
    values = space.maximum(values, least) if repair == "floor" else space.maximum(values + least, 0.1 * least)
    return vectors @ ((vectors.T @ moment) / values)
