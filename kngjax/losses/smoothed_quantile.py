"""The check loss of quantile regression, smoothed by a kernel."""

import math
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, parameter
from kngjax.losses.base import CurvatureFacts, Interval, Number
from kngjax.losses.kernels import KERNELS, LOGISTIC, Kernel
from kngjax.losses.public_numbers import check_level, check_positive, check_width, whole_sizes
from kngjax.losses.quantile import AbstractLevelLoss
from kngjax.losses.smooth_scores import LogisticScore
from kngjax.losses.verified_gaussian import GaussianScore
from kngjax.losses.verified_scores import number

# Of n·ε·h/(d²·scale) with a logistic kernel: measured at d = 5 and 10 with normal noise and uniform columns.
DRAWN_EXACTLY = 120.0


class SmoothedQuantileLoss(AbstractLevelLoss):
    """E ρ_τ(r + hZ) = h·log(1 + e^(-r/h)) + τr with r = y - x'θ and logistic Z; score K((x'θ - y)/h) - τ.

    K is the kernel's distribution function: σ(t) = 1/(1 + e^-t), or Φ on request, for which the loss is
    h(tΦ(t) + φ(t)) + τr with t = -r/h. The loss estimates the quantile of y + hZ. So the estimate has a bias that grows
    with h, and that exceeds the noise for privacy at large n.

    Score interval: K ∈ [0, 1], so s ∈ [-τ, 1-τ], as without smoothing, whatever y and θ: only x needs bounds.
    Curvature: ρ'' = k((x'θ - y)/h)/h with the kernel's density k, which is positive, smooth, and largest at 0. With
    m = max(τ, 1 - τ) (k(t)/k(0))² + ((K(t) - τ)/m)⁴ is largest as τ goes to 0 or 1, where it is 1.076 at most.

    **Arguments:** `tau`: the quantile level, strictly between 0 and 1. `bandwidth`: h, from 1e-100 to 1e100, in the
    units of y. It must be public: a bandwidth computed from the data, as is usual without privacy, voids the guarantee.
    `kernel`: "logistic", where the standard deviation of the noise hZ is 1.81h; or "gaussian", where it is h.

    Source: He, Pan, Tan and Zhou (2023), "Smoothed quantile regression with large-scale inference".
    """

    bandwidth: Scalar = eqx.field(converter=parameter)
    kernel: Literal["logistic", "gaussian"] = eqx.field(static=True, default="logistic")

    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def __check_init__(self):
        check_width("the bandwidth", self.bandwidth)
        _named(self.kernel)

    @property
    def _kernel(self) -> Kernel:
        return _named(self.kernel)

    @staticmethod
    def public_bandwidth(
        tau: float,
        num_records: int,
        dimension: int,
        scale: float,
        epsilon: float | None = None,
        kernel: Literal["logistic", "gaussian"] = "logistic",
    ) -> float:
        """h with noise hZ of standard deviation scale·max(.05, √(τ(1-τ))·((d + log n)/n)^(2/5)), by public facts alone.

        The bias of this h is small beside the noise of KNG: `experiments.bandwidth` measures it on three tables. Exact
        draws of KNG need a larger h. With `epsilon`, h of the logistic kernel is at least scale·120d²/(nε), and a draw
        takes a proposal or two; with a third of this h it finds none. Rare dummies, nearly collinear columns, and τ far
        from 1/2 need more, some 1/(4τ(1-τ)) times as much.

        **Arguments:** `tau`: the quantile level. `num_records`: n under replace; a public guess of it under add_remove.
        `dimension`: d, with the intercept. `scale`: a public guess of the standard deviation of responses about the
        regression, in the units of y. `epsilon`: of KNG, for exact draws. A wrong guess costs bias, noise or time, and
        no privacy. A scale that is computed from the data voids the guarantee, and so does such an n under add_remove.

        Source: the bandwidth of He, Pan, Tan and Zhou (2023, section 4.1), here the standard deviation for both
        kernels, in units of `scale`.
        """
        check_level(parameter(tau))
        check_positive("the scale", scale)
        count, size = whole_sizes(num_records, dimension)
        width = max(0.05, math.sqrt(tau * (1.0 - tau)) * ((size + math.log(count)) / count) ** 0.4)
        if epsilon is not None:
            check_positive("epsilon", epsilon)
            width = max(width, DRAWN_EXACTLY * size**2 / (count * epsilon) * LOGISTIC.deviation)
        return scale * width / _named(kernel).deviation

    def verified_score(self) -> LogisticScore | GaussianScore:
        """Gives a smooth score for the logistic kernel alone: log ρ'' of the Gaussian one has no largest slope."""
        kind = LogisticScore if self.kernel == "logistic" else GaussianScore
        return kind(number(self.bandwidth), number(self.tau))

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
        """Scales the kernel's proved bounds at t = (η - y)/h to η: u changes t by u/h, and ρ'' is k/h."""
        h = self.bandwidth
        facts = self._kernel.facts((jnp.asarray(predictor) - response) / h, reach / h)
        return CurvatureFacts(facts.slope / h, facts.bend / h**2, facts.mean / h, facts.third / h**2)


def _named(kernel: str) -> Kernel:
    if kernel not in KERNELS:
        raise ValueError(f"the kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    return KERNELS[kernel]
