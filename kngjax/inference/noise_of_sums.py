"""The noise of released sums, drawn again: what it may have been."""

from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.mechanisms.gaussian_moments import GaussianMoments
from kngjax.mechanisms.k_norm import KNormMechanism


def box_noise(summing: KNormMechanism, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
    """A Gamma(D + 1) radius times a point of the box, of D columns."""
    columns = summing.dimension
    assert columns is not None
    noise = summing.noise_in_fractions(columns, 1)
    assert noise is not None
    widths = np.array([float(weight) for weight in noise.weights]) * float(noise.scale_squared) ** 0.5
    return random.gamma(columns + 1.0, size=(number, 1)) * random.uniform(-1.0, 1.0, (number, columns)) * widths


def gaussian_noise(summing: GaussianMoments, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
    """Independent normal numbers of their deviations."""
    deviations = summing.noise.deviations(summing.dimension, None)
    return random.standard_normal((number, len(deviations))) * deviations
