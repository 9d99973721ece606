"""The check loss of quantile regression, smoothed by a kernel."""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, is_traced, parameter
from kngjax.losses.base import AbstractResidualLoss, CurvatureFacts, Interval, Number
from kngjax.losses.kernels import KERNELS, AbstractKernel
from kngjax.losses.quantile import check_level


class SmoothedQuantileLoss(AbstractResidualLoss):
    """E ρ_τ(r + hZ) = h·log(1 + e^(-r/h)) + τr with r = y - x'θ and logistic Z; score K((x'θ - y)/h) - τ.

    K is the kernel's distribution function: σ(t) = 1/(1 + e^-t), or on request Φ, for h(tΦ(t) + φ(t)) + τr with
    t = -r/h. What is estimated is the quantile of y + hZ, so the estimate moves with h: at large n by more than the
    noise for privacy does.

    Score interval: K ∈ [0, 1], so s ∈ [-τ, 1-τ], as without smoothing, whatever y and θ: only x needs bounds.
    Curvature: ρ'' = k((x'θ - y)/h)/h with the kernel's density k, which is positive, smooth, and largest at 0.

    **Arguments:** `tau`: the quantile level, strictly between 0 and 1. `bandwidth`: h > 0 in the units of y. It must be
    public: a bandwidth computed from the data, as is usual without privacy, voids the guarantee. `kernel`: "logistic",
    where the standard deviation of the noise hZ is 1.81h; or "gaussian", where it is h.

    Source: He, Pan, Tan and Zhou (2023), "Smoothed quantile regression with large-scale inference".
    """

    tau: Scalar = eqx.field(converter=parameter)
    bandwidth: Scalar = eqx.field(converter=parameter)
    kernel: Literal["logistic", "gaussian"] = eqx.field(static=True, default="logistic")

    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def __check_init__(self):
        check_level(self.tau)
        if not is_traced(self.bandwidth) and not (np.ndim(self.bandwidth) == 0 and 0 < float(self.bandwidth) < np.inf):
            raise ValueError(f"the bandwidth must be one positive and finite number, got {self.bandwidth}")
        if self.kernel not in KERNELS:
            raise ValueError(f"the kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")

    @property
    def _kernel(self) -> AbstractKernel:
        return KERNELS[self.kernel]

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        return self.bandwidth * self._kernel.integral(-residual / self.bandwidth) + self.tau * residual

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        return self.tau - self._kernel.probability(-residual / self.bandwidth)

    def residual_minimiser(self) -> Number:
        """The r at which K(-r/h) = τ."""
        return -self.bandwidth * self._kernel.quantile(self.tau)

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return self._kernel.density((predictor - response) / self.bandwidth) / self.bandwidth

    def curvature_bound(self, predictor: Interval) -> Number:
        """k(0)/h, which is 1/(4h) for the logistic and 1/(h√(2π)) for the Gaussian kernel: k is largest at 0."""
        return self._kernel.peak / self.bandwidth

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """Those of the kernel at t = (η - y)/h, proved there, in the units of η: u changes t by u/h, and ρ'' is k/h."""
        h = self.bandwidth
        facts = self._kernel.facts((jnp.asarray(predictor) - response) / h, reach / h)
        return CurvatureFacts(facts.slope / h, facts.bend / h**2, facts.mean / h, facts.third / h**2)

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        return -jnp.asarray(self.tau), 1.0 - jnp.asarray(self.tau)
