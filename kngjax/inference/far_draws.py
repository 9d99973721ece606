"""Estimates how likely a draw of KNG lies far from the estimate, where its density is low and Θ is very large.

Near the estimate KNG has its limit law. Far off, scores have reached their ends and the gradient grows no more, so that
the density falls no further: where n·ε is small next to the logarithm of how much larger Θ is than the limit law,
draws come from there. A difference of features whose signs cancel does so first.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.core.arrays import float64
from kngjax.core.randomness import research_key
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.inference.score_laws import ScoreLaw
from kngjax.sensitivity import weighted

# A probability of draws from far off that may be neglected.
LITTLE = 0.01
_POINTS, _ROWS = 4000, 400


@dataclass(frozen=True)
class FarDraws:
    """Holds the facts of KNG far from the estimate that depend neither on n nor on ε, at 4,000 public points of Θ.

    **Arguments:** `unit_rate`: 1/(2Δ). `log_near`: log d!·vol(K)/det H, with H of one record. `log_volume`: of Θ.
    `linear`, `norms`: at each point the norms of Hδ and of the expected gradient of one record. `dimension`: d.
    """

    unit_rate: float
    log_near: float
    log_volume: float
    linear: np.ndarray
    norms: np.ndarray
    dimension: int

    @classmethod
    def of(cls, mechanism: Any, rows: np.ndarray, law: ScoreLaw) -> "FarDraws | None":
        """Computes the facts of KNG far from the estimate; None for other mechanisms, and where Θ has another form.

        **Arguments:** all public. `rows`: features, shape (m, d). `law`: of scores. Weights count as the largest.
        """
        dimension = rows.shape[1]
        domain = getattr(mechanism, "domain", None)
        if domain is None or domain.exact_shape(dimension) is None or not levels_off(mechanism):
            return None
        with float64():
            norm = mechanism.score_norm(dimension)
            unit_rate = 0.5 / float(mechanism.sensitivity_value(dimension))
            log_ball = float(norm.log_volume(dimension))
        weight = weighted.largest(mechanism.bounds)
        hessian = weight * law.curvature * (rows.T @ rows) / len(rows)
        log_near = math.lgamma(dimension + 1.0) + log_ball - np.linalg.slogdet(hessian)[1]
        with float64():
            middle = np.asarray(domain.interior_point(dimension))
            steps = np.asarray(domain.draw(research_key(0), (_POINTS,), dimension)) - middle
            log_volume = float(domain.log_volume(dimension))
        few = rows[np.random.default_rng(1).permutation(len(rows))[:_ROWS]]
        gradients = weight * law.mean_score(steps @ few.T) @ few / len(few)
        linear, norms = _norms(norm, steps @ hessian), _norms(norm, gradients)
        return cls(unit_rate, float(log_near), log_volume, linear, norms, dimension)

    def share(self, num_records: int, epsilon: float) -> float:
        """Returns the probability of a draw beyond the limit law's reach on the assumed table, to a factor of some two.

        It compares the mass of exp(-c·n·‖E s(x'(θ - θ0))x‖_K) over Θ with the limit law's, d!·vol(K)·c^-d/det H.
        """
        rate = epsilon * self.unit_rate * num_records
        # The limit law has nothing beyond: c times the norm of Hδ is Gamma(d).
        exponents = np.where(rate * self.linear > 3.0 * (self.dimension + 5.0), -rate * self.norms, -np.inf)
        most = np.max(exponents)
        if most == -np.inf:
            return 0.0
        log_far = self.log_volume + most + math.log(np.mean(np.exp(exponents - most)))
        log_near = self.log_near - self.dimension * math.log(rate)
        return float(1.0 / (1.0 + math.exp(min(log_near - log_far, 700.0))))


def levels_off(mechanism: Any) -> bool:
    """Tells whether the density stops falling far from the estimate, as that of KNG does for a regression."""
    exponent = getattr(mechanism, "exponent", None)
    return exponent is not None and exponent.scored_by == "gradient" and not exponent.is_pointwise


def end_gap_share(rate: float, density: float, level: float, num_records: int, width: float) -> float:
    """Returns the probability that a private quantile lies beyond all values, if these fill almost none of the bounds.

    There the density is that of rank 0 or n, e^{-cnτ} or e^{-cn(1-τ)} of the peak, and near the quantile the mass is
    2/(cnf). **Arguments:** `rate`: c, of ranks. `density`: f, of the values at the quantile.
    """
    far = 0.5 * width * (math.exp(-rate * num_records * level) + math.exp(-rate * num_records * (1.0 - level)))
    return far / (far + 2.0 / (rate * num_records * density))


def _norms(norm: AbstractNorm, vectors: np.ndarray) -> np.ndarray:
    with float64():
        return np.asarray(jax.vmap(norm)(jnp.asarray(vectors)))
