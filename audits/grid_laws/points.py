"""Draws on a lattice: cases with every point's probability by the formulas of the mechanisms.

Records and θ are few binary digits long, so that float64 computes their scores exactly.
"""

import dataclasses
import random
from collections.abc import Callable
from functools import partial

import numpy as np

from audits.grid_laws.cells import Floats, chi_square, frequencies
from kngjax.data.bounds import Bounds
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.geometry.domains import Box
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.exponential import ExponentialMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.private_quantile import PrivateQuantile

# Spacings of 2^-4 of records, and 2^-3 of θ in a box of width 2.
_COARSE = Lattice(data_digits=4, theta_digits=4)
_POINTS = np.arange(-8, 9) / 8.0
_PLANE = Bounds(x=([-1.0, -1.0], [1.0, 1.0]), y=(-1.0, 1.0), intercept=False)
_TAU, _EPSILON = 0.3, 2.0


@dataclasses.dataclass(frozen=True)
class PointLaw:
    """Probabilities of points of one density after the other, each by itself.

    **Arguments:** `mechanism`, `X`, `y`: what is released of what. `probabilities`: of the points of each density,
    whose values, sorted, are a release.
    """

    mechanism: AbstractMechanism
    X: np.ndarray | None
    y: np.ndarray
    probabilities: list[Floats]
    drawn_by: type = LatticeDraw

    def p_values(self, number: int, seed: int = 0) -> list[float]:
        """Tests so many draws of each density. **Arguments:** `seed`: of what stands for random bits."""
        records, bits, found = _COARSE.prepare(self.mechanism, self.X, self.y), random.Random(seed).getrandbits, []
        between = (_POINTS[1:] + _POINTS[:-1]) / 2.0
        edges = np.concatenate([[-1.1], between, [1.1]])
        for part, chances in zip(self.mechanism.densities(), self.probabilities, strict=True):
            assert isinstance(part, AbstractDensityMechanism)
            problem = _COARSE.problem(part, records)
            envelope = _COARSE.envelope(problem)
            drawn = np.array([problem.domain.values(envelope.draw(bits)) for _ in range(number)])
            assert np.all(np.isin(drawn, _POINTS))
            found.append(chi_square(frequencies(drawn, [edges] * chances.ndim), chances))
        return found


def _records(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(dimension)
    return generator.integers(-16, 17, (9, dimension)) / 16.0, generator.integers(-16, 17, 9) / 16.0


def _residuals(x: np.ndarray, y: np.ndarray) -> Floats:
    """x'θ - y at each point, shape (17, 17, n)."""
    points = np.stack(np.meshgrid(_POINTS, _POINTS, indexing="ij"), axis=-1)
    return points @ x.T - y


def _law(exponents: Floats) -> Floats:
    masses = np.exp(exponents - exponents.max())
    return masses / masses.sum()


def _gradients() -> PointLaw:
    """exp(-(ε/2)·max_j|Σ(1{y ≤ x'θ} - τ)x_j|/Δ): |x| ≤ 1, and scores of at most .7, so that Δ = 1.4."""
    x, y = _records(2)
    gradients = ((_residuals(x, y) >= 0.0) - _TAU) @ x
    mechanism = KNG(QuantileLoss(_TAU), _PLANE, Box(-1.0, 1.0), _EPSILON, "replace")
    return PointLaw(mechanism, x, y, [_law(-_EPSILON / 2.0 * np.abs(gradients).max(axis=-1) / 1.4)])


def _losses(name: str) -> PointLaw:
    """exp(-(ε/2)·Σρ/Δ): residuals of up to 3, so that a record's loss is at most 2.1, or 9/2."""
    (x, y), loss = _records(2), QuantileLoss(_TAU) if name == "quantile" else SquaredLoss()
    r = _residuals(x, y)
    values, change = (np.where(r < 0.0, -_TAU * r, 0.7 * r), 2.1) if name == "quantile" else (r**2 / 2.0, 4.5)
    mechanism = ExponentialMechanism(loss, _PLANE, Box(-1.0, 1.0), _EPSILON, "replace")
    return PointLaw(mechanism, x, y, [_law(-_EPSILON / 2.0 * values.sum(axis=-1) / change)])


def _quantiles(*levels: float) -> PointLaw:
    """exp(-(ε/2)·|Σ(1{y ≤ θ} - τ)|) for each level with its part of ε: a record moves the sum by 1 at most."""
    y = _records(1)[1]
    several = list(levels) if len(levels) > 1 else float(*levels)
    budget = "split" if len(levels) > 1 else "joint"
    mechanism = PrivateQuantile(several, Bounds(y=(-1.0, 1.0)), _EPSILON, "replace", budget=budget)
    sums = [((y <= _POINTS[:, None]) - tau).sum(axis=1) for tau in levels]
    return PointLaw(mechanism, None, y, [_law(-_EPSILON / len(levels) / 2.0 * np.abs(one)) for one in sums])


CASES: dict[str, Callable[[], PointLaw]] = {
    "KNG, quantile, lattice": _gradients,
    "exponential, quantile, lattice": partial(_losses, "quantile"),
    "exponential, squared, lattice": partial(_losses, "squared"),
    "one quantile": partial(_quantiles, 0.7),
    "two quantiles, split": partial(_quantiles, 0.25, 0.5),
}
