"""Kernels that smooth a loss: distributions with a density k that is even and falls with |t|, in a unit of their own.

A kernel of bandwidth h is the law of hZ with Z ~ k. What exact draws rest on, the bounds of log k, is proved here once;
logistic regression rests on the same, since its ρ'' is the logistic density.
"""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm as normal
from jaxtyping import Array, Float

from kngjax.losses.base import CurvatureFacts, Number


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The distribution of Z: P(Z ≤ t) = K(t), with an even density k that is largest at 0 and falls with |t|.

    **Arguments:** `peak`: k(0) = max k, never rounded down. `deviation`: the standard deviation of Z. `probability`: K.
    `density`: k. `integral`: ∫_{-∞}^t K = E max(t - Z, 0). `quantile`: the t with K(t) = level. `facts`: bounds k about
    t, as `CurvatureFacts` bounds ρ'', over changes of t of at most `reach`; its docstring proves them.
    """

    peak: float
    deviation: float
    probability: Callable[[Number], Array]
    density: Callable[[Number], Array]
    integral: Callable[[Number], Array]
    quantile: Callable[[Number], Array]
    facts: Callable[[Number, Number], CurvatureFacts]


def _logistic_density(t: Number) -> Float[Array, ""]:
    """σ(1 - σ), without cancellation where σ is next to 1."""
    tail = jnp.exp(-jnp.abs(t))
    return tail / jnp.square(1.0 + tail)


def _logistic_facts(t: Number, reach: Number) -> CurvatureFacts:
    """log k = -2 log(2 cosh(√T/2)) with T = t²; log cosh √T is concave in T, so this is convex.

    Its tangent at t² bounds it below, and T(u) = t² + 2tu + u²: a = -tanh(t/2) and m = tanh(t/2)/t, which is at
    most ½. k is even and falls with |t|, so its mean over a segment of length U is at least that from |t| to
    |t| + U, (σ(|t| + U) - σ(|t|))/U, here without cancellation. |k'| = σ(1 - σ)|1 - 2σ| is largest where
    σ = ½ ± √3/6, which makes it √3/18 < .0962251.
    """
    t = jnp.asarray(t)
    size, half = jnp.abs(t), jnp.tanh(0.5 * t)
    is_small = size < 1e-4
    bend = jnp.where(is_small, 0.5, half / jnp.where(is_small, 1.0, t))
    rise = jnp.exp(-size) * -jnp.expm1(-reach) / ((1.0 + jnp.exp(-size)) * (1.0 + jnp.exp(-size - reach)))
    return CurvatureFacts(-half, bend, rise / reach, jnp.full_like(t, 0.0962251))


def _gaussian_facts(t: Number, reach: Number) -> CurvatureFacts:
    """log k = -½t² + constant is a parabola: a = -t and m = 1.

    k is even and falls with |t|, so with U = reach its mean is at least k at the farther end and at least
    (Φ(-|t|) - Φ(-|t| - U))/U, less what rounding may add. |k'| = |t|φ(t) is largest at |t| = 1.
    """
    t = jnp.asarray(t)
    near, far = jnp.abs(t), jnp.abs(t) + reach
    rise = (normal.cdf(-near) * (1.0 - 1e-13) - normal.cdf(-far)) / reach
    mean = jnp.maximum(normal.pdf(far), rise)
    return CurvatureFacts(-t, jnp.ones_like(t), mean, jnp.full_like(t, 0.2419708))


# K(t) = σ(t) = 1/(1 + e^-t): no special function is needed.
LOGISTIC = Kernel(
    peak=0.25,
    deviation=math.pi / math.sqrt(3.0),
    probability=jax.nn.sigmoid,
    density=_logistic_density,
    integral=jax.nn.softplus,
    quantile=jax.scipy.special.logit,
    facts=_logistic_facts,
)
# K(t) = Φ(t).
GAUSSIAN = Kernel(
    peak=0.3989422804014328,
    deviation=1.0,
    probability=normal.cdf,
    density=normal.pdf,
    integral=lambda t: jnp.asarray(t) * normal.cdf(t) + normal.pdf(t),
    quantile=normal.ppf,
    facts=_gaussian_facts,
)
# By the names that the argument `kernel` of a loss has.
KERNELS = {"logistic": LOGISTIC, "gaussian": GAUSSIAN}
