"""The law of the error of a released M-estimate, and the interval that it gives."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.covariances import Matrices
from kngjax.inference.given_sums import ends_of_draws
from kngjax.inference.intervals import Interval

DRAWS = 4000
# For post-processing of what is public any numbers serve, and the same ones make the same interval.
_SEED = 0

CORRELATIONS = (
    "errors of sampling go together as H^-1 says, as they do where squared scores do not depend on the features: only "
    "the sampling variances of the coefficients themselves were released"
)

Combinations = Float[np.ndarray, "combinations dimension"] | None


@dataclasses.dataclass(frozen=True, eq=False)
class ErrorDraws:
    """Holds draws of the error θ̃ - θ0, jointly of all coefficients. Public.

    **Arguments:** `draws`: shape (draws, d). `method`, `assumptions`: as of `Interval`. `combinations`: those whose
    sampling variances were released; None for the coefficients.
    """

    draws: Float[np.ndarray, "draws dimension"]
    method: str
    assumptions: tuple[str, ...]
    combinations: Combinations = None

    def assumed_of(self, combinations: Combinations) -> tuple[str, ...]:
        """Says what is assumed of some combinations: more of those whose own sampling variances were not released."""
        own = np.eye(self.draws.shape[1]) if self.combinations is None else self.combinations
        asked = np.eye(self.draws.shape[1]) if combinations is None else combinations
        lengths = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(own, axis=1)
        are_own = np.any(np.abs(asked @ own.T) >= (1.0 - 1e-12) * lengths, axis=1)
        return self.assumptions if np.all(are_own) else (*self.assumptions, CORRELATIONS)

    @classmethod
    def of(
        cls,
        hessians: Matrices,
        noise: Any,
        theta: Float[np.ndarray, " dimension"],
        variances: Callable[[int], Float[np.ndarray, "draws combinations"]],
        combinations: Combinations,
        method: str,
        assumptions: tuple[str, ...],
    ) -> "ErrorDraws":
        """Draws H^{-1}(z - γ(θ̃ - c) - S), over H and sampling variances as they may be given what was released.

        At θ̃ the gradient is noise of a known law, ∇ℓ_n(θ̃) + γ(θ̃ - c) = z, so that θ̃ - θ0 ≈ H^{-1}(z - γ(θ̃ - c) - S)
        with S ≈ N(0, J) (Reimherr and Awan 2019, Theorem 3.2). In H^{-1}S each combination a'θ has the variance
        t·a'H^{-1}a. Correlations are taken to be those of H^{-1}, since no more is released; that does not matter for
        the combinations themselves, and is an assumption for others (`assumed_of`).

        **Arguments:** all public. `hessians`: draws of H. `noise`: z, of the mechanism. `variances`: draws so many t.
        """
        number = -(-DRAWS // len(hessians)) * len(hessians)
        repeated = np.resize(hessians, (number, *hessians.shape[1:]))
        z = noise.draws(repeated, _SEED)
        moved = np.linalg.solve(repeated, (z - noise.pull(theta))[:, :, None])[:, :, 0]
        normals = np.random.default_rng(_SEED).standard_normal(moved.shape)
        # N(0, H^{-1}) by the factor of H, whose inverse need not be made.
        roots = np.resize(np.linalg.cholesky(hessians), repeated.shape)
        sampled = np.linalg.solve(np.swapaxes(roots, 1, 2), normals[:, :, None])[:, :, 0]
        spread = np.sqrt(variances(number))
        if combinations is None:
            sampled = sampled * spread
        else:
            sampled = np.linalg.solve(combinations, (spread * (sampled @ combinations.T)).T).T
        return cls(moved - sampled, method, assumptions, combinations)


def interval_of(
    theta: Float[np.ndarray, " dimension"], errors: ErrorDraws, level: float, combinations: Combinations = None
) -> Interval:
    """Takes the quantiles of the error off θ̃, or of A times the error off Aθ̃. **Arguments:** `combinations`: A."""
    drawn, found = errors.draws, theta
    if combinations is not None:
        drawn, found = drawn @ combinations.T, combinations @ theta
    lower, upper = ends_of_draws(drawn, level)
    return Interval(found - upper, found - lower, level, errors.method, errors.assumed_of(combinations))
