"""Proves bounds on the Hessian of a smooth loss about a reference point, with every rounding.

Notation of `kngjax.chains.exact.smooth.gradient_certificate`, which has the proofs; but the metric is that of any lower
triangular R of float64 numbers: |δ|_M = |R'^{-1}δ|, N(z) = |R(z - z₀)|, u_i = x_i'δ, |u_i| ≤ |Rx_i||δ|_M. Balls say

    |RH₀R' - I| ≤ η,   so that   log det RH₀R' ≥ d·log(1 - η)   and   h_i = w_i x_i'H₀^{-1}x_i ≤ w_i|Rx_i|²/(1 - η).

*Determinant.* Σh_i(½m_i u_i² - a_i u_i) ≤ ½δ'Qδ - ĝ'δ + e|δ|_M with Q = Σh_i m_i x_i x_i', each factor rounded up, and
|R(g - ĝ)| ≤ e for g = Σh_i a_i x_i. With b = R'p for any p,

    -ĝ'δ ≤ -b'(z - z₀) + ½δ'Bδ + (|Rĝ - p| + η|p|)·|δ|_M,   B = Σ|b'x_i|K_i x_i x_i',

where each K_i ≥ |ρ'''_i| for |u_i| ≤ U_i below, since b'(z - z₀) = b'H₀δ + b'(H̄ - H₀)δ and |R(ĝ - H₀b)| =
|Rĝ - RH₀R'p|. With e' = e + |Rĝ - p| + η|p| it is enough that
e'|δ|_M ≤ ½e'(1 + |δ|²_M).

*Radius.* For |δ|_M ≤ ρ and θ ∈ Θ, |u_i| ≤ U_i = min(ρ|Rx_i|, sup over Θ), and H̄ ≥ H_low = Σκ_i x_i x_i', each κ_i
rounded down. Balls prove α with RH_lowR' ≥ α, or `kngjax.draws.shells.fourth_moments` a larger one with δ'(z - z₀) ≥
α|δ|²_M; λ with λH_low ≥ Q + B, and λ₀ with λ₀ ≥ R(Q + B)R'. Then N(z) < αρ implies |δ|_M ≤ N/α < ρ, and |δ|_M ≥ ρ
implies N(z) ≥ αρ; and where N(z) < αρ,

    log det R^{-2} - log det H(θ(z)) ≤ F(½CN² + ½e'(1 + N²/α²) - b'(z - z₀)) - d·log(1 - η),   C = min(λ/α, λ₀/α²).
"""

import itertools
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.verified import UNIT, sum_error
from kngjax.draws.linear_algebra import dot, times
from kngjax.draws.shells import matrices
from kngjax.draws.shells.matrices import as_floats, congruent, downward, matrix, upward
from kngjax.draws.shells.sets_in_balls import farthest, length, unit_volume, volume
from kngjax.draws.shells.shell_records import UPWARD, ShellRecords
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.losses.verified_scores import NO_WEIGHT, ScoresAndWeights, Tangents

_NUM_RADII = 28
# The metric must be known so well, and columns may be so nearly collinear.
_MOST_ERROR = 1e-3
# Up to so many coordinates all vertices of a box are tried.
_MOST_VERTICES = 12
# More than |Rx| loses where its products or squares are below 2^-1022.
_NEXT_TO_ZERO = 2.0**-500
# As `UPWARD`, of sums of numbers of either sign.
_OUTWARD = 2.0**-40


class Radius(NamedTuple):
    """A radius ρ with α, and C and 1/α² rounded up. Private."""

    radius: float
    least: float
    bend: float

    def __repr__(self) -> str:
        return "<Radius; OWNER ONLY>"


@owner_only
class ShellCertificate(OwnerOnly):
    """Holds the bounds that `certify` proved about θ₀. Private.

    **Arguments:** `theta`: θ₀. `gradient`: z₀. `factor`: R. `tilt`: b. `spread`: at least sup {|Rz| : ‖z‖ ≤ 1}.
    `offset`: at least |Rz₀|. `slope`: at least sup {|b'z| : ‖z‖ ≤ 1}. `shift`: at least |b'z₀|. `loss`: e'. `metric`:
    at least -d·log(1 - η). `radii`: for which something is known. `longest`: at least every |Rx_i|. `concavity`: cd of
    F, infinite where F is the identity. `tried`: all radii. `reach`: the αρ beyond which none matters.
    """

    theta: np.ndarray
    gradient: list[arb]
    factor: np.ndarray
    tilt: list[arb]
    spread: float
    offset: float
    slope: float
    shift: float
    loss: float
    metric: float
    radii: tuple[Radius, ...]
    longest: float
    concavity: float
    tried: np.ndarray
    reach: float

    def height(self, level: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " levels"]:
        """Bounds log det R^{-2} - log det H(θ(z)) from above for ‖z‖ up to each level, θ(z) ∈ Θ; ∞ if unknown."""
        return self.bound((self.spread * level + self.offset) * UPWARD, (self.slope * level + self.shift) * UPWARD)

    def bound(self, farthest: Float[np.ndarray, " points"], linear: Float[np.ndarray, " points"]) -> np.ndarray:
        """Bounds log det R^{-2} - log det H(θ(z)) from above, θ(z) ∈ Θ, from bounds of N(z) and of -b'(z - z₀)."""
        best = np.full(farthest.shape, np.inf)
        for radius in self.radii:
            square = farthest**2
            bent = 0.5 * radius.bend * square + 0.5 * self.loss * (1.0 + square / radius.least**2)
            reached = radius.least * radius.radius > farthest * UPWARD
            best = np.where(reached & (bent < best), bent, best)
        change = best + linear + _OUTWARD * (best + np.abs(linear))
        if np.isinf(self.concavity):
            return change + self.metric + _OUTWARD * (np.abs(change) + self.metric)
        scale = arb(self.concavity)
        # F rises, so that it may be taken further on, where it has a value.
        change = np.maximum(change, -0.5 * self.concavity)
        heights = [upward(scale * (1 + arb(float(x)) / scale).log() + arb(self.metric)) for x in change]
        return np.where(np.isfinite(best), heights, np.inf)

    def floor(self, radius: Radius) -> float:
        """Bounds ‖G(θ)‖ from below for every θ ∈ Θ with |θ - θ₀|_M ≥ ρ."""
        return max(0.0, downward((arb(radius.least) * arb(radius.radius) - arb(self.offset)) / arb(self.spread)))


@np.errstate(all="ignore")
def certify(
    records: ShellRecords,
    gauge: ScaledNorm,
    region: Shape,
    theta: np.ndarray,
    averages: Float[np.ndarray, " radii"] | None = None,
) -> ShellCertificate | None:
    """Proves bounds on the Hessian about θ₀; None where none can be proved.

    **Arguments:** `averages`: α of all radii but the last, from `fourth_moments`, -∞ where none is known.
    """
    dimension, score = records.dimension, records.score
    predictor, off = records.predictors(theta)
    found = records.at(predictor, off)
    gradient, hessian = records.sums(found)
    assert hessian is not None
    factor = inverse_factor(hessian)
    if factor is None:
        return None
    R = matrix(factor)
    whitened, spread_of_balls = matrices.middle(congruent(R, hessian) - matrix(np.eye(dimension)))
    error = upward(length(whitened.entries()) + spread_of_balls)
    rows = whitened_rows(records, factor)
    if not max(error, rows.relative, found.weight_error) < _MOST_ERROR:
        return None
    tangents = score.tangents(predictor, off, records.y)
    slopes, slope_error = _slopes(records, found, tangents, factor, rows, error)
    tilted = times(R, slopes.tolist())
    p = np.array([float(one.mid()) for one in tilted])
    size = length([arb(float(one)) for one in p])
    loss = upward(
        arb(slope_error)
        + length([one - arb(float(mid)) for one, mid in zip(tilted, p, strict=True)])
        + arb(error) * size
    )
    b = times(R.transpose(), p.tolist())
    z0 = times(R, gradient)
    spread, offset = _spread(gauge, factor), upward(length(z0))
    if not np.isfinite([loss, spread, offset]).all():
        return None
    reach = spread * farthest_level(gauge, region, factor) + offset
    # From the length of typical steps to beyond the farthest; and without limit, where Θ is one.
    tried = np.append(np.geomspace(0.3 * spread * len(gauge.weights), 4.0 * reach, _NUM_RADII), np.inf)
    known = np.append(np.full(_NUM_RADII, -np.inf) if averages is None else averages, -np.inf)
    caps = farthest_steps(records, region, theta)
    shares = _shares(found, tangents, rows, error)
    pulls = _pulls(rows, p)
    lows, forms = _over_radii(records, predictor, off, shares, pulls, rows, caps, tried)
    quadratics = [congruent(R, form) for form in forms]
    bounds = [matrices.largest_eigenvalue(quadratic) for quadratic in quadratics]
    radii = []
    for number, (radius, low, average) in enumerate(zip(tried, lows, known, strict=True)):
        # Either one form serves all radii, or each radius has its own.
        quadratic, bound = quadratics[number % len(forms)], bounds[number % len(forms)]
        base = congruent(R, low)
        worst = matrices.least_eigenvalue(base)
        least = max(worst, float(average))
        if not (least > 1e-9 and bound >= 0.0):
            continue
        relative = matrices.largest_relative(quadratic, base) if worst > 0.0 else np.inf
        bend = min(relative / least, bound / least**2) * UPWARD
        if np.isfinite(bend):
            radii.append(Radius(float(radius), least, bend))
    shift = upward(abs(dot(b, gradient)))
    return ShellCertificate(
        theta,
        gradient,
        factor,
        b,
        spread,
        offset,
        upward(gauge.dual(b)),
        shift,
        loss,
        upward(-dimension * (1 - arb(error)).log()),
        tuple(radii),
        rows.longest,
        score.concavity * dimension,
        tried,
        reach,
    )


def inverse_factor(hessian: arb_mat) -> Float[np.ndarray, "dimension dimension"] | None:
    """Approximates L^{-1} for the middles of these balls LL', lower triangular; None where float64 finds none."""
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


def whitened_rows(records: ShellRecords, factor: np.ndarray) -> _Rows:
    """Computes Rx of each record, its length, and how far that is off."""
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
    records: ShellRecords, found: ScoresAndWeights, tangents: Tangents, factor: np.ndarray, rows: _Rows, error: float
) -> tuple[np.ndarray, float]:
    """ĝ, and e.

    |a| ≤ L, and â is within its error of a. ĥ = w|v̂|² is h up to the errors of w and of |v̂|, and the factor 1/(1 ± η).
    Last, Σĥ_i|Rx_i| ≤ max|Rx_i|·Σĥ_i.
    """
    steepness = records.score.steepness
    leverages = found.weight * np.square(rows.values).sum(axis=2)
    pulls = leverages * tangents.slope
    middle = (pulls[:, None, :] @ records.x).sum(axis=(0, 1))
    # A product of factors 1 + ε is below 1 + 1.1Σε for Σε ≤ .01.
    of_leverage = 1.1 * (found.weight_error + 2.0 * rows.relative + 1.1 * error + 40 * UNIT)
    each = steepness * (of_leverage + 14 * UNIT) + 1.1 * tangents.error
    total = float(leverages.sum()) * (1.0 + 1e-6)
    summing = np.abs(factor) @ (records.sum_error * steepness * total * records.largest)
    # Weights may be off by `NO_WEIGHT` besides.
    unseen = 2.0 * steepness * NO_WEIGHT * records.count * rows.longest**3
    off = each * total * rows.longest + unseen + float(np.sqrt(np.square(summing).sum()))
    return middle, off * UPWARD + _NEXT_TO_ZERO


def _shares(found: ScoresAndWeights, tangents: Tangents, rows: _Rows, error: float) -> np.ndarray:
    """h·m, rounded up, as h ≤ w|Rx|²/(1 - η)."""
    weights = found.weight * (1.0 + found.weight_error) + NO_WEIGHT
    return weights * rows.lengths**2 / (1.0 - error) * tangents.bend * UPWARD


def _pulls(rows: _Rows, p: np.ndarray) -> np.ndarray:
    """|b'x| = |p'Rx|, rounded up."""
    slack = float(np.sqrt(np.square(p).sum())) * (rows.relative + sum_error(len(p))) * UPWARD
    return (np.abs(rows.values @ p) + slack * rows.lengths) * UPWARD


def _over_radii(
    records: ShellRecords,
    predictor: np.ndarray,
    off: float,
    shares: np.ndarray,
    pulls: np.ndarray,
    rows: _Rows,
    caps: np.ndarray,
    tried: np.ndarray,
) -> tuple[list[arb_mat], list[arb_mat]]:
    """H_low of each radius, and Q + B of each, or that of all where one K serves them."""
    score, number = records.score, len(tried)
    places, responses = predictor.ravel(), records.y.ravel()
    shares, pulls, lengths, caps = (one.ravel() for one in (shares, pulls, rows.lengths, caps))
    largest = score.largest_bend

    def weights(part: slice) -> list[np.ndarray]:
        reaches = [np.minimum(radius * lengths[part], caps[part]) * UPWARD for radius in tried]
        means = score.means(places[part], off, responses[part])
        if largest is not None:
            return [*map(means, reaches), (shares[part] + largest * pulls[part]) * UPWARD]
        bends = score.bends(places[part], off, responses[part])
        forms = [(shares[part] + bends(reach) * pulls[part]) * UPWARD for reach in reaches]
        return [*map(means, reaches), *forms]

    found = records.grams(number + (number if largest is None else 1), weights)
    return found[:number], found[number:]


def farthest_steps(records: ShellRecords, region: Shape, theta: np.ndarray) -> np.ndarray:
    """sup |x_i'(t - θ₀)| over t ∈ Θ: segments from θ₀ stay in Θ, if it lies there."""
    if region.contains([arb(float(one)) for one in theta]) is not True:
        return np.full(records.y.shape, np.inf)
    return farthest(region, records.x, theta)


def farthest_level(gauge: ScaledNorm, region: Shape, factor: np.ndarray) -> float:
    """Estimates the ‖z‖ beyond which all of Θ adds next to nothing to the mass of the shells."""
    dimension = len(gauge.weights)
    core = float(unit_volume(gauge).log()) + float(arb(dimension).fac().log())
    core += 2.0 * float(np.log(np.diagonal(factor)).sum())
    return max(float(volume(region).log()) - core, 0.0) + 3.0 * dimension + 25.0


def _spread(gauge: ScaledNorm, factor: np.ndarray) -> float:
    """Bounds sup {|Rz| : ‖z‖ ≤ 1} from above; for the largest of many coordinates by d times the largest eigenvalue."""
    kind, dimension = gauge.kind, len(gauge.weights)
    scaled = np.array([factor[:, j] * float(a.mid()) for j, a in enumerate(gauge.ball_scales)]).T
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
