"""The law of the error of a released M-estimate, and the interval that it gives."""

from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.covariances import AbstractSums, Matrices
from kngjax.inference.groups_of_records import serves_groups
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.score_moments import RecordCurvature
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.gradient_noise import GradientNoise, MomentNoise, NormalNoise

DRAWS = 4000
# The least share of plausible draws among those of the noise: with fewer the sums are drowned in it.
FEWEST = 0.07
# For post-processing of what is public any numbers serve, and the same ones make the same interval.
_SEED = 0


def interval_of_sums(
    theta: Float[np.ndarray, " dimension"],
    sums: Float[np.ndarray, " columns"],
    mechanism: AbstractMechanism,
    noise: GradientNoise | NormalNoise | MomentNoise,
    summing: Any,
    covariance: AbstractSums,
    curvature: RecordCurvature,
    num_records: int | None,
    level: float,
    combinations: Float[np.ndarray, "combinations dimension"] | None = None,
    draws: int = DRAWS,
) -> Interval | NoInterval:
    """θ̃ less the quantiles of its error H^{-1}(z - S), over H and J as they may be given their noisy sums.

    At θ̃ the gradient is noise of a known law, ∇ℓ_n(θ̃) + γ(θ̃ - c) = z, so that θ̃ - θ0 ≈ H^{-1}(z - γ(θ̃ - c) - S) with
    S ≈ N(0, J) (Reimherr and Awan 2019, Theorem 3.2). A plug-in of noisy H and J would cover too little (Wang, Kifer
    and Lee 2019, whose step this replaces): here the noise of the sums is drawn again, and what is left of the released
    ones is taken where it is plausible: H with no eigenvalue below a thousandth of their mean, J with a positive trace.

    **Arguments:** all public. `theta`: θ̃. `sums`: as released by `summing`. `noise`: z, of the mechanism. `level`: of
    the interval. `combinations`: A, for intervals of Aθ: the quantiles are then those of A times the error, whose
    coefficients depend on one another; None for θ itself. `draws`: of the noise of the sums; fewer are
    faster, and make ends that scatter more.
    """
    dimension, random = len(theta), np.random.default_rng(_SEED)
    matrices = covariance.matrices(
        sums - covariance.noise_draws(summing, random, draws),
        dimension,
        curvature,
        theta,
        mechanism.adjacency,
        num_records,
    )
    if len(matrices.hessian) < FEWEST * draws:
        groups = ", or kngjax.Groups() in the place of sums" * serves_groups(mechanism)
        return NoInterval(
            "the noise of the covariance is as large as the covariance itself: more records, a larger share of epsilon "
            f"for it or a larger epsilon would do{groups}"
        )
    errors, found = errors_of(matrices, noise, theta, random), theta
    if combinations is not None:
        errors, found = errors @ combinations.T, combinations @ theta
    lower, upper = np.quantile(errors, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    assumptions = (*covariance.assumptions, *noise.assumptions)
    return Interval(found - upper, found - lower, level, covariance.method, assumptions)


def errors_of(
    matrices: Matrices,
    noise: GradientNoise | NormalNoise | MomentNoise,
    theta: Float[np.ndarray, " dimension"],
    random: Any,
) -> Float[np.ndarray, "draws dimension"]:
    """Draws of H^{-1}(z - γ(θ̃ - c) - S), one for each H and J."""
    number, dimension = len(matrices.hessian), len(theta)
    z = noise.draws(matrices.hessian, _SEED)
    values, vectors = np.linalg.eigh(matrices.score)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    scores = np.einsum("bij,bj->bi", roots, random.standard_normal((number, dimension)))
    return np.linalg.solve(matrices.hessian, (z - noise.pull(theta) - scores)[:, :, None])[:, :, 0]
