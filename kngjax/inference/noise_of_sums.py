"""The noise of released sums, drawn again: what it may have been."""

from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.geometry.blocks import uniform_points
from kngjax.geometry.scaled_norms import AbstractScaledNoise
from kngjax.inference.positive_definite import BlockNoiseLaw
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.k_norm import KNormMechanism


def box_noise(summing: KNormMechanism, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
    """Draws a Gamma(D + 1) radius times a point of the box, for D columns."""
    columns = summing.dimension
    assert columns is not None
    return in_box(_scales(summing.noise_in_fractions(columns, 1)), random, number)


def block_noise(summing: BlockSums, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
    """Draws a Gamma(D + 1) radius times a point of the product of the blocks' balls, for D columns."""
    noise = summing.noise_in_fractions(summing.dimension, 1)
    shape, blocks = (number, summing.dimension), noise.blocks
    sizes, rests = random.exponential(size=shape), random.exponential(size=(number, 2 * len(blocks)))
    points = uniform_points(blocks, np, sizes, rests, random.uniform(size=shape), random.uniform(size=shape))
    return random.gamma(summing.dimension + 1.0, size=(number, 1)) * points * _scales(noise)


def block_noise_of(summing: BlockSums) -> BlockNoiseLaw:
    """Reads the law of the noise off a mechanism of sums."""
    noise = summing.noise_in_fractions(summing.dimension, 1)
    block, exchanges = np.empty((2, len(noise.weights)), np.int64)
    for place, one in enumerate(noise.blocks):
        block[list(one.columns)], exchanges[list(one.columns)] = place, one.kind == "exchange"
    return BlockNoiseLaw(block, exchanges.astype(bool), _scales(noise), 1.0)


def noise_of_deviations(
    deviations: Float[np.ndarray, " columns"], random: Any, number: int
) -> Float[np.ndarray, "draws columns"]:
    """Draws noise of a box with these standard deviations: √((D + 1)(D + 2)/3) times its half widths."""
    columns = len(deviations)
    return in_box(deviations * (3.0 / ((columns + 1.0) * (columns + 2.0))) ** 0.5, random, number)


def in_box(widths: Float[np.ndarray, " columns"], random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
    """Draws a Gamma(D + 1) radius times a point of the box with these half widths."""
    columns = len(widths)
    return random.gamma(columns + 1.0, size=(number, 1)) * random.uniform(-1.0, 1.0, (number, columns)) * widths


def _scales(noise: AbstractScaledNoise | None) -> Float[np.ndarray, " columns"]:
    assert noise is not None
    return np.array([float(weight) for weight in noise.weights]) * float(noise.scale_squared) ** 0.5
