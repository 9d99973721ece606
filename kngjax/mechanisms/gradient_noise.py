"""The known law of the gradient at a released value, from which a likelihood of the release follows."""

from typing import Any, Literal, NamedTuple

import numpy as np

from kngjax.geometry.abstract_norms import AbstractNorm


class GradientNoise(NamedTuple):
    """Given the records θ̃ has density ∝ exp(-c‖z‖_K)·det H, with z = ∇ℓ_n(θ̃) + γ(θ̃ - m) and H = ∇²ℓ_n + γI.

    **Arguments:** `norm`: ‖·‖_K. `rate`: c. `ridge`: γ. `determinant`: where H is taken: "release" at θ̃, where this is
    the law by a change of variables; "minimum" at the minimiser of ℓ_n, where it is KNG's normaliser, const/det H to
    second order; None where H is constant. `centre`: m, shape (d,); None is 0.
    """

    norm: AbstractNorm
    rate: float
    ridge: float
    determinant: Literal["release", "minimum"] | None
    centre: np.ndarray | None = None

    def pull(self, theta: Any) -> Any:
        """γ(θ - m)."""
        return self.ridge * (theta if self.centre is None else theta - self.centre)
