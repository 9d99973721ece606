"""Lattice scores by brute force: fractions for every record and every point, by the formulas alone."""

import itertools
import math
from fractions import Fraction

import numpy as np


def to_lattice(value: float, spacing: Fraction) -> Fraction:
    """The nearest multiple, ties to even."""
    return round(Fraction(float(value)) / spacing) * spacing


def quantile_gradient(x, y, tau, theta):
    return [
        sum(
            row[j] * ((1 if response <= sum(a * b for a, b in zip(row, theta, strict=True)) else 0) - tau)
            for row, response in zip(x, y, strict=True)
        )
        for j in range(len(theta))
    ]


def quantile_value(x, y, tau, theta):
    residuals = [
        response - sum(a * b for a, b in zip(row, theta, strict=True)) for row, response in zip(x, y, strict=True)
    ]
    return sum(residual * (tau - (1 if residual <= 0 else 0)) for residual in residuals)


def squared_gradient(x, y, theta):
    residuals = [
        sum(a * b for a, b in zip(row, theta, strict=True)) - response for row, response in zip(x, y, strict=True)
    ]
    return [sum(residual * row[j] for residual, row in zip(residuals, x, strict=True)) for j in range(len(theta))]


def squared_value(x, y, theta):
    return sum(
        (sum(a * b for a, b in zip(row, theta, strict=True)) - response) ** 2 / Fraction(2)
        for row, response in zip(x, y, strict=True)
    )


def points_of_l1_ball(radius: Fraction, spacing: Fraction, dimension: int):
    """All multiples of the spacing in the l1 ball, in increasing order."""
    side = math.floor(radius / spacing)
    for point in itertools.product(range(-side, side + 1), repeat=dimension):
        theta = [k * spacing for k in point]
        if sum(abs(coordinate) for coordinate in theta) <= radius:
            yield theta


def probabilities(scores, rate: Fraction) -> np.ndarray:
    """∝ exp(-rate·score)."""
    least = min(scores)
    masses = [math.exp(-rate * (score - least)) for score in scores]
    return np.array(masses) / sum(masses)
