"""What is certain of the Hessian of the pseudo-Huber loss about a reference point, with every rounding.

Notation of `kngjax.samplers.exact.smooth.certificate`, which has the proofs; but the metric is that of any lower
triangular R of float64 numbers: |δ|_M = |R'^{-1}δ|, N(z) = |R(z - z₀)|, u_i = x_i'δ, |u_i| ≤ |Rx_i||δ|_M. Balls say

    |RH₀R' - I| ≤ η,   so that   log det RH₀R' ≥ d·log(1 - η)   and   h_i = w_i x_i'H₀^{-1}x_i ≤ w_i|Rx_i|²/(1 - η).

*Determinant.* Σh_i(½m_i u_i² - a_i u_i) ≤ ½δ'Qδ - ĝ'δ + e|δ|_M with Q = Σh_i m_i x_i x_i', each factor rounded up, and
|R(g - ĝ)| ≤ e for g = Σh_i a_i x_i. With b = R'p for any p, and K ≥ |ρ'''|,

    -ĝ'δ ≤ -b'(z - z₀) + ½δ'Bδ + (|Rĝ - p| + η|p|)·|δ|_M,   B = KΣ|b'x_i|x_i x_i',

since b'(z - z₀) = b'H₀δ + b'(H̄ - H₀)δ and |R(ĝ - H₀b)| = |Rĝ - RH₀R'p|. Of e' = e + |Rĝ - p| + η|p| it is enough that
e'|δ|_M ≤ ½e'(1 + |δ|²_M).

*Radius.* For |δ|_M ≤ ρ and θ ∈ Θ, H̄ ≥ H_low = Σκ_i x_i x_i', each κ_i rounded down. Balls prove α with RH_lowR' ≥ α, λ
with λH_low ≥ Q + B, and λ₀ with λ₀ ≥ R(Q + B)R'. Then N(z) < αρ implies |δ|_M ≤ N/α < ρ, and |δ|_M ≥ ρ implies N(z) ≥
αρ; and where N(z) < αρ,

    log det R^{-2} - log det H(θ(z)) ≤ F(½CN² + ½e'(1 + N²/α²) - b'(z - z₀)) - d·log(1 - η),   C = min(λ/α, λ₀/α²).
"""

import itertools
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.samplers.grid.smooth import matrices
from kngjax.samplers.grid.smooth.matrices import as_floats, congruent, downward, matrix, upward
from kngjax.samplers.grid.smooth.records import ROUNDOFF, THIRD, UPWARD, PseudoHuberRecords, Residuals, sum_error
from kngjax.samplers.grid.smooth.regions import Gauge, Region, length

_NUM_RADII = 28
# The metric must be known so well, and columns may be so nearly collinear.
_MOST_ERROR = 1e-3
# Up to so many coordinates all vertices of a box are tried.
_MOST_VERTICES = 12
# More than |Rx| loses where its products or squares are below 2^-1022.
_NEXT_TO_ZERO = 2.0**-500


class Radius(NamedTuple):
    """A radius ρ with α, and C and 1/α² rounded up. Private."""

    radius: float
    least: float
    bend: float

    def __repr__(self) -> str:
        return "<Radius; OWNER ONLY>"


@owner_only
class Certificate(OwnerOnly):
    """What `certify` proved about θ₀. Private.

    **Arguments:** `theta`: θ₀. `factor`: R. `spread`: at least sup {|Rz| : ‖z‖ ≤ 1}. `offset`: at least |Rz₀|. `slope`:
    at least sup {|b'z| : ‖z‖ ≤ 1}. `shift`: at least |b'z₀|. `loss`: e'. `metric`: at least -d·log(1 - η). `radii`: for
    which something is known. `longest`: at least every |Rx_i|.
    """

    theta: np.ndarray
    factor: np.ndarray
    spread: float
    offset: float
    slope: float
    shift: float
    loss: float
    metric: float
    radii: tuple[Radius, ...]
    longest: float

    def height(self, level: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " levels"]:
        """At least log det R^{-2} - log det H(θ(z)) for ‖z‖ up to each level and θ(z) ∈ Θ; infinite if unknown."""
        farthest = (self.spread * level + self.offset) * UPWARD
        best = np.full(level.shape, np.inf)
        for radius in self.radii:
            square = farthest**2
            bent = 0.5 * radius.bend * square + 0.5 * self.loss * (1.0 + square / radius.least**2)
            reached = radius.least * radius.radius > farthest * UPWARD
            best = np.where(reached & (bent < best), bent, best)
        change = (best + self.slope * level + self.shift) * UPWARD
        scale = 1.5 * len(self.theta)
        heights = [upward(scale * (1 + arb(float(x)) / scale).log() + arb(self.metric)) for x in change]
        return np.where(np.isfinite(best), heights, np.inf)

    def floor(self, radius: Radius) -> float:
        """At most ‖G(θ)‖ for every θ ∈ Θ with |θ - θ₀|_M ≥ ρ."""
        return max(0.0, downward((arb(radius.least) * arb(radius.radius) - arb(self.offset)) / arb(self.spread)))


def certify(records: PseudoHuberRecords, gauge: Gauge, region: Region, theta: np.ndarray) -> Certificate | None:
    """What can be proved about θ₀; None where nothing can."""
    with np.errstate(all="ignore"):
        return _certify(records, gauge, region, theta)


def _certify(records: PseudoHuberRecords, gauge: Gauge, region: Region, theta: np.ndarray) -> Certificate | None:
    dimension = records.dimension
    residuals = records.residuals(theta)
    hessian = records.weighted_gram(residuals.weights, residuals.weight_error)
    gradient = records.evaluate(theta, with_hessian=False).gradient
    factor = inverse_factor(hessian)
    if factor is None:
        return None
    R = matrix(factor)
    whitened, spread_of_balls = matrices.middle(congruent(R, hessian) - matrix(np.eye(dimension)))
    error = upward(length(whitened.entries()) + spread_of_balls)
    rows = _rows(records, factor)
    if not max(error, rows.relative, residuals.weight_error) < _MOST_ERROR:
        return None
    slopes, slope_error = _slopes(records, residuals, factor, rows, error)
    tilted = (R * matrix(slopes[:, None])).entries()
    p = np.array([float(one.mid()) for one in tilted])
    size = length([arb(float(one)) for one in p])
    off = length([one - arb(float(mid)) for one, mid in zip(tilted, p, strict=True)])
    loss = upward(arb(slope_error) + off + arb(error) * size)
    b = (R.transpose() * matrix(p[:, None])).entries()
    z0 = (R * arb_mat(dimension, 1, gradient)).entries()
    form = _form(records, residuals, rows, error, p)
    quadratic = congruent(R, form)
    bound = matrices.largest_eigenvalue(quadratic)
    spread, offset = _spread(gauge, factor), upward(length(z0))
    if not (np.isfinite([loss, bound, spread, offset]).all() and bound >= 0.0):
        return None
    tried = _radii(gauge, region, spread, offset, factor)
    caps = _caps(records, region, theta)
    lows = records.grams([_means(records, residuals, rows, caps, radius) for radius in tried])
    radii = []
    for radius, low in zip(tried, lows, strict=True):
        base = congruent(R, low)
        least = matrices.least_eigenvalue(base)
        if not least > 1e-9:
            continue
        relative = matrices.largest_relative(quadratic, base)
        bend = min(relative / least, bound / least**2) * UPWARD
        if np.isfinite(bend):
            radii.append(Radius(float(radius), least, bend))
    shift = upward(abs(sum((one * z for one, z in zip(b, gradient, strict=True)), arb(0))))
    return Certificate(
        theta,
        factor,
        spread,
        offset,
        upward(gauge.dual(b)),
        shift,
        loss,
        upward(-dimension * (1 - arb(error)).log()),
        tuple(radii),
        rows.longest,
    )


def inverse_factor(hessian: arb_mat) -> Float[np.ndarray, "dimension dimension"] | None:
    """About L^{-1} for the middles of these balls LL', lower triangular; None where float64 finds none."""
    try:
        factor = np.linalg.cholesky(as_floats(hessian))
        found = np.tril(np.linalg.solve(factor, np.eye(len(factor))))
    except np.linalg.LinAlgError:
        return None
    usable = np.all(np.isfinite(found)) and np.all(np.diagonal(found) > 0.0) and np.max(np.abs(found)) < 2.0**200
    return found if usable else None


class _Rows(NamedTuple):
    """v̂ = Rx of each record; |Rx| rounded up; the largest; and how far |Rx - v̂| is at most, relative to |v̂|."""

    values: np.ndarray
    lengths: np.ndarray
    longest: float
    relative: float

    def __repr__(self) -> str:
        return "<Rows; OWNER ONLY>"


def _rows(records: PseudoHuberRecords, factor: np.ndarray) -> _Rows:
    values = records.x @ factor.T
    errors = (
        sum_error(records.dimension) * np.sqrt(np.square(np.abs(records.x) @ np.abs(factor).T).sum(axis=2)) * UPWARD
    )
    sizes = np.sqrt(np.square(values).sum(axis=2))
    # Rows of zeros are exact. Rows that float64 cannot tell from 0 have no part in any sum: their squares are below
    # 2^-1000, and their h_i with them, for which more is added where sums are rounded up.
    relative = np.max(np.divide(errors, sizes, out=np.zeros_like(sizes), where=errors > 0.0))
    relative = float(relative) if np.all((sizes > 0.0) | (errors == 0.0)) else np.inf
    lengths = (sizes + errors) * UPWARD + _NEXT_TO_ZERO
    return _Rows(values, lengths, float(lengths.max()), relative * UPWARD)


def _slopes(
    records: PseudoHuberRecords, residuals: Residuals, factor: np.ndarray, rows: _Rows, error: float
) -> tuple[np.ndarray, float]:
    """ĝ, and e.

    |a| ≤ 3/(2k), |da/dr| ≤ 3/(k² + r²) and |r·da/dr| ≤ 3/(2k): â is within 3e₀/k² + 15u/k of a. ĥ = w|v̂|² is h up to
    the errors of w and of |v̂|, and the factor 1/(1 ± η). Last, Σĥ_i|Rx_i| ≤ max|Rx_i|·Σĥ_i.
    """
    k, r = records.threshold, residuals.value
    leverages = residuals.weights * np.square(rows.values).sum(axis=2)
    pulls = leverages * (3.0 * r / (k * k + r * r))
    middle = (pulls[:, None, :] @ records.x).sum(axis=(0, 1))
    # A product of factors 1 + ε is below 1 + 1.1Σε for Σε ≤ .01.
    of_leverage = 1.1 * (residuals.weight_error + 2.0 * rows.relative + 1.1 * error + 40 * ROUNDOFF)
    each = (1.5 * of_leverage + 20 * ROUNDOFF) / k + 3.0 * residuals.error / k**2
    total = float(leverages.sum()) * (1.0 + 1e-6)
    summing = np.abs(factor) @ (records.sum_error * 1.5 / k * total * records.largest)
    return middle, (each * total * rows.longest + float(np.sqrt(np.square(summing).sum()))) * UPWARD + _NEXT_TO_ZERO


def _form(records: PseudoHuberRecords, residuals: Residuals, rows: _Rows, error: float, p: np.ndarray) -> arb_mat:
    """Q + B: h ≤ w|Rx|²/(1 - η), m ≤ 3/(k² + r²), and |b'x| = |p'Rx|."""
    k = records.threshold
    nearest = np.maximum(np.abs(residuals.value) * (1.0 - 4 * ROUNDOFF) - residuals.error, 0.0)
    leverages = residuals.weights * (1.0 + residuals.weight_error) * rows.lengths**2 / (1.0 - error)
    slack = float(np.sqrt(np.square(p).sum())) * (rows.relative + sum_error(records.dimension)) * UPWARD
    pulls = np.abs(rows.values @ p) + slack * rows.lengths
    return records.weighted_gram((leverages * (3.0 / (k * k + nearest**2)) + THIRD / k * pulls) * UPWARD)


def _means(
    records: PseudoHuberRecords, residuals: Residuals, rows: _Rows, caps: np.ndarray, radius: float
) -> np.ndarray:
    """κ of each record, as `PseudoHuberLoss.curvature_facts` has it, rounded down; without cancellation."""
    k = records.threshold
    steps = np.minimum(radius * rows.lengths, caps) * UPWARD
    near = residuals.largest / k
    far = near + np.maximum(steps / k, 1e-100)
    at_near, at_far = np.sqrt(1.0 + near * near), np.sqrt(1.0 + far * far)
    means = (near + far) / (at_near * at_far * (far * at_near + near * at_far)) / UPWARD
    # Where float64 would overflow nothing is counted.
    return np.where(far < 1e60, means, 0.0)


def _caps(records: PseudoHuberRecords, region: Region, theta: np.ndarray) -> np.ndarray:
    """sup |x_i'(t - θ₀)| over t ∈ Θ: segments from θ₀ stay in Θ, if it lies there."""
    if region.contains([arb(float(one)) for one in theta]) is not True:
        return np.full(records.y.shape, np.inf)
    return region.farthest(records.x, theta)


def _radii(gauge: Gauge, region: Region, spread: float, offset: float, factor: np.ndarray) -> np.ndarray:
    """ρ that are tried, from the length of typical steps to beyond the farthest; and without limit, where Θ is one."""
    reach = spread * farthest_level(gauge, region, factor) + offset
    return np.append(np.geomspace(0.3 * spread * gauge.dimension, 4.0 * reach, _NUM_RADII), np.inf)


def farthest_level(gauge: Gauge, region: Region, factor: np.ndarray) -> float:
    """About the ‖z‖ beyond which all of Θ adds next to nothing to the mass of the shells."""
    dimension = gauge.dimension
    core = (
        float(gauge.volume.log()) + float(arb(dimension).fac().log()) + 2.0 * float(np.log(np.diagonal(factor)).sum())
    )
    return max(float(region.volume.log()) - core, 0.0) + 3.0 * dimension + 25.0


def _spread(gauge: Gauge, factor: np.ndarray) -> float:
    """At least sup {|Rz| : ‖z‖ ≤ 1}; for the largest of many coordinates by d times the largest eigenvalue."""
    kind, dimension = gauge.noise.kind, gauge.dimension
    scaled = np.array([factor[:, j] * float(a.mid()) for j, a in enumerate(gauge.scales)]).T
    sizes = np.abs(scaled).sum(axis=1)
    rounding = float(np.sqrt(np.square(sizes).sum())) * sum_error(dimension + 8) * UPWARD
    if kind == "sum":
        return float(np.sqrt(np.square(scaled).sum(axis=0)).max()) * UPWARD + rounding
    if kind == "maximum" and dimension <= _MOST_VERTICES:
        signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=dimension - 1)])
        return float(np.sqrt(np.square(signs @ scaled.T).sum(axis=1)).max()) * UPWARD + rounding
    form = matrix(scaled).transpose() * matrix(scaled)
    value = matrices.largest_eigenvalue(form)
    if kind == "maximum":
        value = min(dimension * value, float(np.abs(as_floats(form)).sum()) * (1.0 + sum_error(dimension**2 + 4)))
    return float(np.sqrt(value)) * UPWARD + rounding
