"""H and J of a sandwich with Gaussian noise: rows whose products are summed, their units, and how a budget is divided.

A record adds (w·xx', s²·xx') to the two matrices, with w and s² over their largest, that is x_1 x_1' and x_2 x_2' with
x_1 = √w·x̃ and x_2 = s·x̃ in public units x̃ (`kngjax.data.public_units`). Its length is

    |x_1|⁴ + |x_2|⁴ = (w² + s⁴)·|x̃|⁴ ≤ c·X⁴,

c the bound of the loss, `AbstractPredictorLoss.joint_bound`, and X² = d for bounds that are a box with an intercept.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import exactly, inward, outward
from kngjax.accounting.kinds import FACTORS
from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled
from kngjax.data.bounds import Bounds
from kngjax.data.products import symmetric
from kngjax.data.public_units import PublicUnits
from kngjax.inference.score_moments import Floats, RecordCurvature
from kngjax.mechanisms.gaussian_moments import GaussianMoments
from kngjax.sensitivity.moments_in_fractions import squared_feature_radius


def feature_units(bounds: Bounds, dimension: int) -> PublicUnits:
    """x̃ = (x - m)/h of these bounds; a column that is 0 throughout stays as it is. Public."""
    with float64():
        made = _units(bounds, dimension)
        middles, widths = (np.asarray(part, np.float64) for part in (made.middles, made.half_widths))
        ends = np.asarray(made.y_middle), np.asarray(made.y_half_width)
    return PublicUnits(middles, np.where(widths > 0.0, widths, 1.0), *ends)


@functools.partial(Compiled, static_argnames=("dimension",))
def _units(bounds: Bounds, dimension: int) -> PublicUnits:
    return PublicUnits.of(bounds, dimension)


def summing_of(curvature: RecordCurvature, dimension: int, mu: float, adjacency: Adjacency) -> GaussianMoments:
    """Builds the mechanism that releases Σ x_1 x_1' and Σ x_2 x_2'. Raises ValueError for a hull of unknown corners."""
    bounds = curvature.bounds
    radius = squared_feature_radius(bounds, dimension, feature_units(bounds, dimension))
    if radius is None:
        raise ValueError("the hull of the features has too many facets for Gaussian noise: take noise='pure'")
    largest = outward(exactly(curvature.loss.joint_bound) * radius**2)
    side = np.full(2 * dimension, 2.0 * largest**0.25)
    return GaussianMoments(Bounds((-side, side), intercept=False), mu, adjacency, largest, 2)


def rows_of(x: Floats, curvature: Floats, square: Floats, bounds: Bounds) -> Float[np.ndarray, "records columns"]:
    """(x_1, x_2) of each record by itself. Private. **Arguments:** `curvature`, `square`: of `RecordCurvature.of`."""
    units = feature_units(bounds, x.shape[1])
    scaled = (x - np.asarray(units.middles)) / np.asarray(units.half_widths)
    return np.hstack([np.sqrt(curvature)[:, None] * scaled, np.sqrt(square)[:, None] * scaled])


def mean_moments(rows: Float[np.ndarray, "records columns"]) -> Float[np.ndarray, " numbers"]:
    """The upper triangles of Σ x_1 x_1'/n and Σ x_2 x_2'/n."""
    above = np.triu_indices(rows.shape[1] // 2)
    return np.concatenate([(half.T @ half / len(half))[above] for half in np.split(rows, 2, axis=1)])


def in_own_units(
    sums: Float[np.ndarray, "draws numbers"], dimension: int, bounds: Bounds
) -> list[Float[np.ndarray, "draws pairs"]]:
    """The upper triangles of H and J of those in public units."""
    turn, above = feature_units(bounds, dimension).to_own, np.triu_indices(dimension)
    halves = np.split(sums, 2, axis=1)
    return [(turn @ symmetric(half, dimension) @ turn.T)[:, *above] for half in halves]


def in_public_units(
    matrices: Float[np.ndarray, "*draws dimension dimension"], bounds: Bounds
) -> Float[np.ndarray, "*draws dimension dimension"]:
    """Σ w·x̃x̃' of Σ w·xx'."""
    turn = np.linalg.inv(feature_units(bounds, matrices.shape[-1]).to_own)
    return turn @ matrices @ turn.T


def split_budget(mechanism: Any, share: float) -> tuple[float, float]:
    """ε of the estimate and μ of the sums, which together have no more than the ρ of the mechanism at its own ε.

    KNG of bounded range is (ε²/8)-zCDP, and what is ε-DP alone (ε²/2)-zCDP: in either case the estimate has ε√(1 - a)
    of a share a, and μ²/2 is what is left. At ε = 1 and a = .19 of KNG's ρ = .125 the estimate has ε = .9 and .101, and
    the sums have .024.

    Raises ValueError for mechanisms of which no such guarantee is proved.
    """
    whole = mechanism.guarantee_for(mechanism.dimension)
    if whole.kind not in FACTORS:
        raise ValueError(f"of {type(mechanism).__name__} no zCDP guarantee is known that goes with epsilon squared")
    epsilon, factor = exactly(float(mechanism.epsilon)), FACTORS[whole.kind]
    first = inward(Fraction(math.sqrt(1.0 - share)) * epsilon)
    rest = (epsilon**2 - exactly(first) ** 2) / factor
    return first, _root_inward(2 * rest)


def _root_inward(value: Fraction) -> float:
    root = math.sqrt(max(inward(value), 0.0))
    while root > 0.0 and exactly(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root
