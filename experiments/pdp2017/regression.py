"""The simulated linear regression of the figures, with |x| ≤ 1 and |y| ≤ 1, and what both figures write and read."""

from typing import Any, NamedTuple

import numpy as np

import kngjax as kng

COLOURS = {"DP": "#D55E00", "everybody": "#E69F00", "people": "#0072B2", "mean": "#000000"}


class Regression(NamedTuple):
    """**Arguments:** `x`: shape (n, d), in a box inside of the unit ball; `y`: shape (n,); `bounds`: public."""

    x: np.ndarray
    y: np.ndarray
    bounds: kng.Bounds


def simulated(num_records: int, dimension: int, noise: float, seed: int) -> Regression:
    """x_ij ~ U(±1/√d), y = x'θ* + N(0, noise²) clipped to ±1, with θ* = (1, -1, 1, ...)·½."""
    generator = np.random.default_rng(seed)
    half = 1.0 / np.sqrt(dimension)
    x = generator.uniform(-half, half, (num_records, dimension))
    theta = 0.5 * (-1.0) ** np.arange(dimension)
    y = np.clip(x @ theta + noise * generator.standard_normal(num_records), -1.0, 1.0)
    sides = np.full(dimension, half)
    return Regression(x, y, kng.Bounds(x=(-sides, sides), y=(-1.0, 1.0), intercept=False))


def show(rows: list[dict[str, Any]]) -> None:
    """Print the rows as an aligned table."""
    cells = [list(rows[0])]
    cells += [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
