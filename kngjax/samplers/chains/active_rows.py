"""The rows whose piecewise-constant score can jump near an estimate: all others add a constant there.

Within ‖H(θ - θ̂)‖_K ≤ R the predictor of a row moves by at most R·‖H^{-1}x_i‖_*, so rows with |y_i - x_i'θ̂| beyond
keep their score. KNG's noise being of order 1/n, some hundred to some thousand rows remain, whatever n.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Bool, Float

from kngjax.core.arrays import Vector, record_sums, record_sums_on_host
from kngjax.core.modules import AbstractModule
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.limit_law import LimitLaw, limit_law
from kngjax.samplers.target import Target

# The share of the limit law's mass that lies beyond the region.
_BEYOND = 1e-4
# Relative errors of residuals and of reaches are far below.
_ROUNDING = 1e-9


class ActiveRows(AbstractModule):
    """Those rows, padded with zeros to a power of two, and what the others add. Private.

    **Arguments:** `x`, `y`: the rows. `gradient`: Σ s_i x_i over the others. `law`, `reach`: the region is
    {θ : ‖H(θ - θ̂)‖_K ≤ reach}.
    """

    x: Float[Array, "records dimension"] | Float[np.ndarray, "records dimension"]
    y: Float[Array, " records"] | Float[np.ndarray, " records"]
    gradient: Float[Array, " dimension"] | Float[np.ndarray, " dimension"]
    law: LimitLaw
    reach: Float[Array, ""] | Float[np.ndarray, ""]

    def contains(self, target: Target, theta: Vector) -> Bool[Array, ""]:
        """Whether θ lies in the region."""
        assert target.norm is not None
        return self.law.gauge(target.norm, theta) <= self.reach

    def log_density(self, target: Target, theta: Vector) -> Float[Array, ""]:
        """log f(θ) of a point of the region, from these rows alone."""
        assert isinstance(target.loss, AbstractPredictorLoss)
        x = jnp.asarray(self.x)
        scores = jax.vmap(target.loss.record_score)(x @ theta, jnp.asarray(self.y))
        gradient = jnp.asarray(self.gradient) + record_sums(scores, x)
        return -target.rate * target.score_from_gradient(gradient, theta) + target.domain.log_density(theta)


def active_rows(target: Target, centre: Vector, scale: float) -> ActiveRows | None:
    """The rows that matter where the limit law, widened by `scale`, has all but 1e-4 of its mass. On the host.

    None where nothing is to be gained: other losses, the exponential mechanism, more than half of the rows active.
    """
    if not target.loss.score_is_piecewise_constant or not isinstance(target.data, Records) or target.norm is None:
        return None
    reach = scale * float(scipy.special.gammainccinv(target.dimension, _BEYOND)) / float(target.rate)
    law, active, scores = _judge_rows(target, jnp.asarray(centre), reach)
    active, scores = np.asarray(active), np.asarray(scores)
    x, y = np.asarray(target.data.x), np.asarray(target.data.y)
    count = int(np.count_nonzero(active))
    if 2 * count > y.size:
        return None
    size = 1 << max(count - 1, 255).bit_length()
    kept = np.zeros((size, x.shape[1])), np.zeros(size)
    kept[0][:count], kept[1][:count] = x[active], y[active]
    others = record_sums_on_host(scores[~active], x[~active])
    return ActiveRows(*kept, others, jax.tree.map(np.array, law), np.asarray(reach))


@jax.jit
def _judge_rows(target, centre, reach):
    """The law at the centre, which rows are active, and every row's score at the centre."""
    law = limit_law(target, centre)
    x, y = jnp.asarray(target.data.x), jnp.asarray(target.data.y)
    predictor = x @ law.centre
    directions = jax.scipy.linalg.cho_solve((law.factor, True), x.T).T
    farthest = reach * jax.vmap(target.norm.dual)(directions)
    sizes = jnp.abs(x) @ jnp.abs(law.centre)
    active = ~(jnp.abs(y - predictor) > (1.0 + _ROUNDING) * farthest + 1e-12 * sizes)
    return law, active, jax.vmap(target.loss.record_score)(predictor, y)
