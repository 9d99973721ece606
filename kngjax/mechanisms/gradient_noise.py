"""The known law of the gradient at a released value, from which a likelihood of the release follows."""

from typing import Literal, NamedTuple

from kngjax.geometry.abstract_norms import AbstractNorm


class GradientNoise(NamedTuple):
    """Given the records θ̃ has density ∝ exp(-c‖z‖_K)·det H, with z = ∇ℓ_n(θ̃) + γθ̃ and H = ∇²ℓ_n + γI.

    **Arguments:** `norm`: ‖·‖_K. `rate`: c. `ridge`: γ. `determinant`: where H is taken: "release" at θ̃, where this is
    the law by a change of variables; "minimum" at the minimiser of ℓ_n, where it is KNG's normaliser, const/det H to
    second order; None where H is constant.
    """

    norm: AbstractNorm
    rate: float
    ridge: float
    determinant: Literal["release", "minimum"] | None
