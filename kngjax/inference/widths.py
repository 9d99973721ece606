"""Previews how wide intervals will be, on a made-up release, from public facts alone."""

from typing import Any

import numpy as np
import scipy.special
from jaxtyping import Float

from kngjax.inference.covariances import Sandwich
from kngjax.inference.given_sums import ends_of_draws
from kngjax.inference.interval_plans import Combinations, RegressionPlan
from kngjax.inference.intervals_from_sums import ErrorDraws
from kngjax.inference.mean_plans import MeanPlan
from kngjax.inference.offers import largest_curvature
from kngjax.inference.settings import Scenario

LEVEL = 0.95
_SEED = 1

Widths = Float[np.ndarray, " combinations"]


def width_of(making: Any, setting: Scenario, num_records: int, combinations: Combinations = None) -> Widths | None:
    """Previews the width of a 95% interval of a plan, on records as is assumed; None where nobody knows.

    **Arguments:** `setting`: of the plan's mechanism. `combinations`: A, for those of Aθ.
    """
    quantile = 2.0 * scipy.special.ndtri(0.5 + LEVEL / 2.0)
    if isinstance(making, MeanPlan):
        noise = setting.expected(num_records, and_far=False)
        if noise is None:
            return None
        return quantile * np.sqrt(_variances(noise.noise.covariance + noise.sampling, combinations))
    if not isinstance(making, RegressionPlan) or not isinstance(making.covariance, Sandwich) or setting.law is None:
        return None
    unit = largest_curvature(setting, making.bandwidth)
    hessian = num_records * setting.hessian / unit
    hessians = making.covariance.made_up(hessian, making.summing, making.mechanism, _SEED)
    if hessians is None:
        return None
    # s² and w are taken to be independent of the features.
    ratio = setting.law.score_square / setting.law.curvature

    def variances(number: int) -> Float[np.ndarray, "draws combinations"]:
        return np.full((number, making.dimension), ratio)

    noise = making.noise()
    centre = getattr(noise, "centre", None)
    theta = np.zeros(making.dimension) if centre is None else centre
    errors = ErrorDraws.of(unit * hessians, noise, theta, variances, making.combinations, "", ()).draws
    drawn = errors if combinations is None else errors @ combinations.T
    lower, upper = ends_of_draws(drawn, LEVEL)
    return upper - lower


def width_without_privacy(setting: Scenario, num_records: int, combinations: Combinations = None) -> Widths:
    """Returns 2·1.96·SE of the estimate without privacy noise."""
    return (
        2.0 * scipy.special.ndtri(0.5 + LEVEL / 2.0) * np.sqrt(_variances(setting.sampling(num_records), combinations))
    )


def _variances(covariance: np.ndarray, combinations: Combinations) -> np.ndarray:
    return np.diag(covariance if combinations is None else combinations @ covariance @ combinations.T)
