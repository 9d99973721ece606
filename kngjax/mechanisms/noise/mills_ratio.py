"""The ratio of Mills, M(t) = Φ(-t)/φ(t), in compiled arithmetic, and small differences of tails rounded outward.

M is the Laplace transform ∫_0^∞ e^{-ts - s²/2} ds, so it is completely monotone on the whole line: M > 0, M' < 0,
M'' > 0 and so forth. -M'(t) = 1 - tM(t), which is below 1/(1 + t²) for t ≥ 0, as M(t) > t/(1 + t²).
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfcx, ndtr
from jaxtyping import Array, Float

# A bound, with room, on the relative errors of XLA's exp, log, log1p, erf and erfcx where they are called here (1 to 16
# units are seen); a rounding of +, -, *, / or √ is half a unit.
UNIT = 32.0 * float(np.finfo(np.float64).eps)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# From here on a continued fraction of so many levels is exact to a unit; XLA's erfcx is 0 for some arguments near 26.6.
_FAR_TAIL, _LEVELS = 20.0, 14


def mills(at: Any) -> Float[Array, "..."]:
    """M(t) = Φ(-t)/φ(t); far out by 1/(t + 1/(t + 2/(t + 3/(t + ...))))."""
    at = jnp.asarray(at)
    near = math.sqrt(math.pi / 2.0) * erfcx(jnp.minimum(at, _FAR_TAIL) / math.sqrt(2.0))
    return jnp.where(at > _FAR_TAIL, 1.0 / (at + _fraction(at)), near)


def mills_slope(at: Any) -> Float[Array, "..."]:
    """-M'(t) = 1 - tM(t), or a little more."""
    at = jnp.asarray(at)
    ratio = mills(at)
    # 1/M - t is the rest of the fraction.
    return jnp.where(at > _FAR_TAIL, ratio * _fraction(at), 1.0 - at * ratio) * (1.0 + UNIT) + jnp.where(
        at > _FAR_TAIL, 0.0, UNIT * (1.0 + jnp.abs(at) * ratio)
    )


def mills_slope_bound(at: Any) -> Float[Array, "..."]:
    """Bounds -M'(t) = 1 - tM(t) from above, roughly: 1/(1 + t²) for t ≥ 0, and 1 + |t|√(2π)e^{t²/2} for t < 0."""
    at = jnp.asarray(at)
    below = jnp.minimum(at, 0.0)
    return jnp.where(at > 0, 1.0 / (1.0 + jnp.square(at)), 1.0 - 2.51 * below * jnp.exp(0.5 * jnp.square(below)))


def mills_of(*arguments: Array) -> list[Array]:
    """M at several arguments by one call, which is compiled once."""
    return list(mills(jnp.stack(jnp.broadcast_arrays(*arguments))))


def _fraction(at: Array) -> Array:
    """1/(t + 2/(t + 3/(t + ...)))."""
    safe = jnp.maximum(at, _FAR_TAIL)
    rest = jnp.zeros_like(safe)
    for level in range(_LEVELS, 0, -1):
        rest = level / (safe + rest)
    return rest


def log_density(at: Array) -> Float[Array, "..."]:
    """log φ(t)."""
    return -0.5 * jnp.square(at) - _LOG_ROOT_TWO_PI


def log_positive(value: Array) -> Float[Array, "..."]:
    """log v, -inf for v ≤ 0, and NaN for NaN."""
    nothing = value <= 0
    return jnp.where(nothing, -jnp.inf, jnp.log(jnp.where(nothing, 1.0, value)))


def slack(at: Array, error: Any) -> Float[Array, "..."]:
    """Bounds by how much log φ(t) may be too small, where t has this error."""
    return (jnp.abs(at) + error) * error + UNIT * (1.0 + 0.5 * jnp.square(at))


def log_difference(
    at: Array, other: Array, scale: Any = 1.0, at_error: Any = 0.0, other_error: Any = 0.0
) -> Float[Array, "..."]:
    """log[Φ(-t) - c·φ(t)·M(u)] rounded outward; for t > 0 as log φ(t) + log[M(t) - cM(u)], which keeps a tail's digits.

    **Arguments:** `at`, `other`, `scale`: t, u and c. `at_error`, `other_error`: absolute errors of t and u.
    """
    positive = jnp.maximum(at, 0.0)
    above, ratio = mills_of(positive, other)
    ratio = scale * ratio
    from_other = (
        scale * other_error * mills_slope_bound(other) + UNIT * (1.0 + jnp.square(jnp.minimum(other, 0.0))) * ratio
    )
    spare = from_other + UNIT * above + at_error * mills_slope_bound(positive)
    in_tail = log_density(at) + slack(at, at_error) + log_positive(above - ratio + spare)
    density, below = jnp.exp(log_density(at)), ndtr(-at)
    spare = UNIT * (below + density * ratio * (1.0 + jnp.square(at)))
    spare += density * (from_other + at_error * (1.0 + jnp.abs(at) * ratio))
    return jnp.where(at > 0, in_tail, log_positive(below - density * ratio + spare)) + UNIT
