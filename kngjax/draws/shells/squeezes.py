"""Refuses proposals by float64 where the exact decision certainly refuses them: no law changes, and no random bit.

Notation of `kngjax.draws.shells.shell_certificate`. What is proposed is known to 64 digits; U decides acceptance.

*Shells.* z of shell k is accepted where log U + ‖z‖ - t_{k-1} ≤ log det R^{-2} - log det H(θ(z)) - E_k. The certificate
bounds the right side from above at this z, as it does over all of the shell, and z is refused where the left is larger.

*Pieces.* Let δ = θ - θ₀ for θ ∈ Θ. The slope δ'(G(θ₀ + tδ) - z₀) grows with t ≥ 0, as G is monotone, and the
certificate says e'(z - z₀) ≥ α|e|²_M for |e|_M ≤ ρ. So for ρ ≥ |δ|_M the slope is at least α|δ|²_M where t = 1, and for
ρ ≤ |δ|_M, by t = ρ/|δ|_M, at least αρ|δ|_M. With M the largest of these αρ and α|δ|_M, and ‖·‖* the dual norm,

    ‖G(θ)‖·‖δ‖* ≥ δ'G(θ) ≥ M|δ|_M + δ'z₀.

θ is accepted where log U ≤ T_g - ‖G(θ)‖. It is refused where log U exceeds this with the bound in place of ‖G(θ)‖.

*Errors.* All sums are of float64 products, whose error is at most γ_d Σ|products|; numbers that balls enclose enter
with their distance from float64. For |v̂ - v| ≤ ω and |M̂ - M| ≤ D in every entry a computed M̂v̂ is within
|M̂|ω + (D + γ_d|M̂|)(|v̂| + ω) of Mv. Bounds are moved outward by 2^-40 relatively, more than the few dozen roundings of
+, -, ·, / and √ in which they are computed, each of at most d numbers; other functions are computed in balls. Where
something is no finite number nothing is refused.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.verified import UNIT, sum_error
from kngjax.draws.shells.matrices import matrix, upward
from kngjax.draws.shells.sets_in_balls import NearPoint, ScaledNormInBalls, near_balls
from kngjax.draws.shells.shell_certificate import ShellCertificate
from kngjax.draws.shells.shell_envelope import ShellEnvelope
from kngjax.draws.uniforms import Uniform

_DIGITS = 64
_OUTWARD = 2.0**-40
_UP, _DOWN = 1.0 + _OUTWARD, 1.0 - _OUTWARD
# More than what is lost below 2^-1022 of some hundred numbers, each times no more than 2^400, and of roots of such,
# 2^-511; and less than any length that is looked at.
_UNDERFLOW, _SHORTEST = 2.0**-400, 2.0**-300


class NearMatrix(NamedTuple):
    """Float64 numbers about a matrix. Private. **Arguments:** `values`: M̂. `errors`: D + γ|M̂|."""

    values: np.ndarray
    errors: np.ndarray

    def __repr__(self) -> str:
        return "<NearMatrix; OWNER ONLY>"

    @classmethod
    def of(cls, rows: Sequence[Sequence[arb]]) -> "NearMatrix":
        """Rounds a matrix of balls."""
        near = [near_balls(row) for row in rows]
        values = np.array([row.values for row in near])
        errors = np.array([row.errors for row in near]) + sum_error(values.shape[1] + 2) * np.abs(values)
        return cls(values, errors * _UP + _UNDERFLOW)

    def times(self, point: NearPoint) -> NearPoint:
        """Mv, and how far it is off."""
        sizes = np.abs(point.values) + point.errors
        errors = np.abs(self.values) @ point.errors + self.errors @ sizes
        return NearPoint(self.values @ point.values, errors * _UP + _UNDERFLOW)


class Squeezes:
    """Refuses proposals of one envelope. Private.

    **Arguments:** `certificate`: that of the envelope. `gauge`: ‖·‖. `envelope`: of which heights and floors are.
    """

    def __init__(self, certificate: ShellCertificate, gauge: ScaledNormInBalls, envelope: ShellEnvelope):
        self._certificate, self._kind, self._envelope = certificate, gauge.noise.kind, envelope
        self._scales = np.array([upward(scale) for scale in gauge.scales])
        factor = matrix(certificate.factor)
        self._of_gradients = NearMatrix.of([*factor.tolist(), certificate.tilt])
        self._of_steps = NearMatrix.of([*factor.transpose().inv().tolist(), certificate.gradient])
        self._z0, self._theta = near_balls(certificate.gradient), NearPoint(certificate.theta, 0.0 * certificate.theta)
        radii = sorted(certificate.radii, key=lambda one: one.radius)
        self._radii = np.array([one.radius for one in radii])
        least = np.array([one.least for one in radii])
        finite = np.where(np.isfinite(self._radii), self._radii, 0.0)
        # Up to each radius the largest αρ, from each on the largest α; 0 where there is none.
        self._reached = np.maximum.accumulate(np.append(0.0, least * finite * _DOWN))
        self._least = np.maximum.accumulate(np.append(least, 0.0)[::-1])[::-1]

    @classmethod
    def of(cls, envelope: ShellEnvelope, gauge: ScaledNormInBalls) -> "Squeezes | None":
        """Prepares the squeezes of an envelope; None where nothing is known, and so nothing can be refused."""
        return None if envelope.certificate is None else cls(envelope.certificate, gauge, envelope)

    def refuse_gradient(self, z: Sequence[arb], left: arb, number: int) -> bool:
        """Tells whether z of a shell is certainly refused. **Arguments:** `left`: log U + ‖z‖ - t_{k-1}."""
        moved = self._of_gradients.times(_apart(near_balls(z), self._z0))
        length = _longest(moved.values[:-1], moved.errors[:-1])
        linear = -moved.values[-1] + moved.errors[-1]
        bound = float(self._certificate.bound(np.array([length]), np.array([linear + _OUTWARD * abs(linear)]))[0])
        return math.isfinite(bound) and bool(left > arb(bound) - arb(float(self._envelope.heights[number])))

    def refuse_point(self, theta: NearPoint, number: int, acceptance: Uniform) -> bool:
        """Tells whether θ of a piece is certainly refused, if it lies in Θ. **Arguments:** `acceptance`: U."""
        step = _apart(theta, self._theta)
        moved, inner = self._of_steps.times(step), float(self._envelope.radii[number])
        longest = _longest(moved.values[:-1], moved.errors[:-1])
        shortest = _shortest(moved.values[:-1], moved.errors[:-1])
        if number == len(self._envelope.radii) - 1:
            # What lies within the last piece's inner end is no proposal of it, whatever U is.
            if longest < inner:
                return True
            if not shortest >= inner:
                return False
        reached = self._reached[np.searchsorted(self._radii, shortest, side="right")]
        along = shortest * max(reached, self._least[np.searchsorted(self._radii, longest)] * shortest * _DOWN)
        line = moved.values[-1] - moved.errors[-1]
        rise = along + line - _OUTWARD * (along + abs(line))
        dual = self._dual(np.abs(step.values) + step.errors)
        if not (rise > 0.0 and dual > _SHORTEST):
            return False
        level, floor = rise / dual * _DOWN, float(self._envelope.floors[number])
        if not (math.isfinite(level) and level > floor):
            return False
        return bool(acceptance.ball(_DIGITS).log() > arb(floor) - arb(level))

    def _dual(self, sizes: Float[np.ndarray, " dimension"]) -> float:
        """At least ‖δ‖* for |δ_j| of at most these sizes."""
        scaled = sizes * self._scales
        if self._kind == "maximum":
            return float(scaled.sum()) * _UP
        return float(scaled.max() if self._kind == "sum" else np.sqrt(scaled @ scaled)) * _UP


def _apart(one: NearPoint, other: NearPoint) -> NearPoint:
    """The difference of two points."""
    rounding = UNIT * (np.abs(one.values) + np.abs(other.values))
    return NearPoint(one.values - other.values, (one.errors + other.errors + rounding) * _UP + _UNDERFLOW)


def _longest(values: np.ndarray, errors: np.ndarray) -> float:
    """At least the length of every vector so near."""
    return (math.sqrt(values @ values) + math.sqrt(errors @ errors)) * _UP + _UNDERFLOW


def _shortest(values: np.ndarray, errors: np.ndarray) -> float:
    """At most the length of every vector so near."""
    return (math.sqrt(values @ values) * _DOWN - math.sqrt(errors @ errors) * _UP) * _DOWN - _UNDERFLOW
