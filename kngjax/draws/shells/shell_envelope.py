"""Shells in the space of gradients, and beyond them pieces of Θ: their numbers are exact, and their masses are balls.

The envelope is that of `kngjax.chains.exact.smooth.gradient_envelope`, with det R^{-2} in place of det H₀ and R in
place of the inverse factor. Its edges, heights, radii and floors are float64 numbers, of which the certificate proves

    log det R^{-2} - log det H(θ) ≤ E_k   where t_{k-1} ≤ ‖G(θ)‖ < t_k,      ‖G(θ)‖ ≥ T_g   where |θ - θ₀|_M ≥ ρ_{g-1},

for θ ∈ Θ. How many shells and pieces there are makes the mass small, and changes no law.
"""

import math

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.draws.shells.sets_in_balls import round_volume, unit_volume, volume
from kngjax.draws.shells.shell_certificate import ShellCertificate, farthest_level
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape

_NUM_SHELLS = 1000


@owner_only
class ShellEnvelope(OwnerOnly):
    """Holds the shells and pieces of an envelope. Private.

    **Arguments:** `certificate`: None where nothing is known. `edges`: t_0 = 0, ..., t_K. `heights`: E_1, ..., E_K.
    `radii`: ρ_0 = 0, ..., ρ_G, the inner ends of the pieces, the last of which is the rest of Θ. `floors`: T_g.
    `log_mass`: about that of all. `log_excess`: in units of what it would be if the Hessian were constant.
    """

    certificate: ShellCertificate | None
    edges: Float[np.ndarray, " edges"]
    heights: Float[np.ndarray, " shells"]
    radii: Float[np.ndarray, " pieces"]
    floors: Float[np.ndarray, " pieces"]
    log_mass: float
    log_excess: float = math.inf

    def masses(self, gauge: ScaledNorm, region: Shape) -> list[arb]:
        """Computes the masses of the shells, then of the pieces, with all digits that are set."""
        rest = volume(region) * arb(-float(self.floors[-1])).exp()
        if self.certificate is None:
            return [rest]
        dimension, determinant = len(gauge.weights), arb(1)
        for entry in np.diagonal(self.certificate.factor):
            determinant *= arb(float(entry))
        core, powers = unit_volume(gauge) * determinant**2, [arb(float(t)) ** dimension for t in self.edges]
        shells = [
            core * (outer - inner) * (arb(float(height)) - arb(float(edge))).exp()
            for inner, outer, height, edge in zip(powers, powers[1:], self.heights, self.edges, strict=False)
        ]
        ball, powers = round_volume(dimension) * determinant, [arb(float(r)) ** dimension for r in self.radii]
        rings = [
            ball * (outer - inner) * arb(-float(floor)).exp()
            for inner, outer, floor in zip(powers, powers[1:], self.floors, strict=False)
        ]
        return [*shells, *rings, rest]


def build(certificate: ShellCertificate | None, gauge: ScaledNorm, region: Shape) -> ShellEnvelope:
    """Returns the envelope of the least mass, as far as float64 tells; uniform on Θ where nothing is known."""
    if certificate is None:
        return _uniform(region)
    dimension, factor = len(gauge.weights), certificate.factor
    log_determinant = float(np.log(np.diagonal(factor)).sum())
    log_ball = float(unit_volume(gauge).log()) + 2.0 * log_determinant
    log_core, log_volume = log_ball + math.lgamma(dimension + 1), float(volume(region).log())
    edges = np.linspace(0.0, farthest_level(gauge, region, factor), _NUM_SHELLS + 1)
    heights = certificate.height(edges[1:])
    finite = [radius for radius in certificate.radii if np.isfinite(radius.radius)]
    radii = np.array([0.0, *(one.radius for one in finite)])
    floors = np.maximum.accumulate(np.array([0.0, *(certificate.floor(one) for one in finite)]))
    with np.errstate(all="ignore"):
        powers = np.exp(dimension * np.log(edges / edges[-1]))
        log_shells = (
            log_ball + dimension * np.log(edges[-1]) + np.log(np.diff(powers)) + heights - edges[:-1] - log_core
        )
        shells = np.append(0.0, np.cumsum(np.exp(log_shells)))
        log_rings = float(round_volume(dimension).log()) + log_determinant - log_core + dimension * np.log(radii)
        log_rings = log_rings[1:] + np.log1p(-np.exp(log_rings[:-1] - log_rings[1:]))
        levels = np.maximum(edges[:, None], floors[None, :])
        rings = np.cumsum(np.exp(log_rings[None] - levels[:, :-1]), axis=1)
        beyond = np.concatenate([np.zeros((len(edges), 1)), rings], axis=1) + np.exp(log_volume - log_core - levels)
        total = shells[:, None] + beyond
    total = np.where(np.isfinite(total), total, np.inf)
    shell, ring = np.unravel_index(int(np.argmin(total)), total.shape)
    if not np.isfinite(total[shell, ring]):
        return _uniform(region)
    log_excess = float(np.log(total[shell, ring]))
    return ShellEnvelope(
        certificate,
        edges[: shell + 1],
        heights[:shell],
        radii[: ring + 1],
        np.maximum(floors[: ring + 1], edges[shell]),
        log_excess + log_core,
        log_excess,
    )


def _uniform(region: Shape) -> ShellEnvelope:
    return ShellEnvelope(None, np.zeros(1), np.zeros(0), np.zeros(1), np.zeros(1), float(volume(region).log()))
