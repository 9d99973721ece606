"""The K-norm mechanism for means (Hardt and Talwar 2010): the mean plus K-norm noise, exactly."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.accounting.exact import exactly
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced
from kngjax.data.admission import Facts
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Data, QuadraticSummary
from kngjax.geometry.abstract_norms import AbstractNorm, Noise
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.geometry.reach import Everywhere
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.expected_noise import ExpectedNoise, k_norm_covariance
from kngjax.mechanisms.grid_draws import AbstractGridDraw
from kngjax.mechanisms.parameters import check_epsilon, require_part
from kngjax.samplers.grid.cells import Grid, draw_cell
from kngjax.samplers.grid.uniforms import Bits
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity


class KNormMechanism(AbstractDirectMechanism):
    """Draws θ with density f(θ) ∝ exp(-(nε/Δ)·‖x̄ - θ‖_K) on R^d: the mean of n records plus K-norm noise.

    Δ is the sensitivity of Σx: exchanging one record moves it by at most u_j - l_j in coordinate j, whatever the
    centre of the box. With l1 as norm this is the Laplace mechanism.

    It is KNG on `SquaredDistanceLoss` without a domain, where ‖∇ℓ_n‖ = n‖θ - x̄‖: a location family, whose normaliser
    does not depend on the data, so the factor 2 of the exponential mechanism is not needed (Reimherr and Awan 2019,
    Remark 4.1): KNG at 2ε is K-norm at ε. Without it the law is not of bounded range: ε-DP is (ε²/2)-zCDP here.

    **Arguments:**

    - `bounds`: public bounds of one record, `Bounds(x={"age": (0, 99)}, intercept=False)`.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace". With "add_remove" n is private, and no noise scaled by 1/n may be used: refused.
    - `norm`: ‖·‖_K; None means the weighted l_inf norm whose ball is the box of possible changes, for which Δ = 1.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None

    has_regressors: ClassVar[bool] = False
    method: ClassVar[str] = "The mean plus exact K-norm noise."

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.bounds = require_part("bounds", bounds)
        self.epsilon = check_epsilon(require_part("epsilon", epsilon), allow_large_epsilon)
        self.adjacency = Adjacency.parse(adjacency)
        self.norm = norm

    def __check_init__(self):
        if self.adjacency is Adjacency.ADD_REMOVE:
            raise ValueError(
                "the K-norm mechanism adds noise of scale 1/n to the mean, and with add_remove n is private: use "
                "adjacency='replace', or KNG(SquaredDistanceLoss(), ...) on a bounded domain"
            )
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        with float64():
            changes = np.array(self._changes(self.dimension or 1))
        moves = changes > 0
        if not (np.any(moves) if self.norm is not None else np.all(moves)):
            raise ValueError(
                "a column of x has the same lower and upper bound, so its mean is public and the box of possible "
                "changes has no volume: leave the column out, or name a norm"
            )

    @property
    def loss(self) -> SquaredDistanceLoss:
        """½‖x - θ‖², whose minimiser is the mean."""
        return SquaredDistanceLoss()

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency)

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return gradients.gradient_changes(self.loss, self.bounds, Everywhere(), Adjacency.REPLACE, dimension)

    def score_norm(self, dimension: int) -> AbstractNorm:
        """The norm of the noise."""
        return gradients.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ of Σx; runs under jit."""
        reach = Everywhere()
        return gradients.gradient_sensitivity(self.loss, self.bounds, reach, self.adjacency, self.norm, dimension)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of Σx, with its derivation."""
        with float64():
            changes, value = np.asarray(self._changes(dimension)), float(self.sensitivity_value(dimension))
            norm = self.score_norm(dimension)
        return Sensitivity(value, gradients.explain_mean_sensitivity(norm, changes, value))

    def expected_noise(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """Of Σx K-norm noise of rate ε/Δ, whatever the records are."""
        dimension = len(hessian)
        with float64():
            rate = float(self.epsilon) / float(self.sensitivity_value(dimension))
            noise = k_norm_covariance(self.score_norm(dimension), rate, dimension)
        return ExpectedNoise.of_gradient_noise(num_records * np.eye(dimension), noise, is_exact=True)

    def noise_in_fractions(self, dimension: int, num_records: int) -> Noise | None:
        """Δ/(nε) in the norm, with Δ = ‖u - l‖ of the bounds as fractions; None for a hull and norms that turn axes.

        ε is the decimal number that it prints as.
        """
        if self.bounds.hull is not None:
            return None
        # Not by JAX, which may have float32 alone.
        sides = (np.asarray(side, np.float64) for side in (self.bounds.x_lower, self.bounds.x_upper))
        ends = (list(map(Fraction, np.broadcast_to(side, (dimension,)).tolist())) for side in sides)
        changes = [upper - lower for lower, upper in zip(*ends, strict=True)]
        rate = num_records * exactly(float(self.epsilon))
        if self.norm is None:
            return Noise("maximum", tuple(changes), 1 / rate**2)
        return self.norm.noise_in_fractions(changes, rate)

    def on_grid(self, facts: Facts) -> "NoisyMean | None":
        noise = self.noise_in_fractions(facts.dimension, 1)
        grid = None if noise is None else Grid.for_noise(noise)
        return None if grid is None else NoisyMean(self, grid)

    def _rate(self, summary: QuadraticSummary) -> Float[Array, ""]:
        return summary.count * self.epsilon / self.sensitivity_value(summary.dimension)

    def least_noise(self, dimension: int, num_records: int | None) -> Any:
        """Δ/(nε) times how far the unit ball reaches in each coordinate: the scale of Laplace noise."""
        norm, rate = self.score_norm(dimension), (num_records or 0) * float(self.epsilon)
        extents = np.array([float(norm.dual(axis)) for axis in np.eye(dimension)])
        return extents * (float(self.sensitivity_value(dimension)) / rate if rate else 0.0)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -(nε/Δ)·‖x̄ - θ‖_K - log ∫, normalised. Private: a function of the data."""
        summary = _summary(data)
        norm, rate = self.score_norm(summary.dimension), self._rate(summary)
        mean = jnp.asarray(summary.moment) / summary.count
        return -rate * norm(mean - jnp.asarray(theta)) - k_norm_log_mass(norm, rate, summary.dimension)

    def draws(
        self, data: Data, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        """x̄ + z with z from the K-norm density."""
        summary = _summary(data)
        norm = self.score_norm(summary.dimension)
        noise = k_norm_noise(norm, key, self._rate(summary), (num_draws,), summary.dimension)
        mean = jnp.asarray(summary.moment) / summary.count
        return jnp.broadcast_to(mean, noise.shape) + noise, jnp.asarray(True)


@dataclasses.dataclass(frozen=True)
class NoisyMean(AbstractGridDraw):
    """x̄ plus noise, rounded once. **Arguments:** `grid`: what to."""

    mechanism: KNormMechanism
    grid: Grid

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} It is computed in balls that contain it, and rounded once, to the nearest "
            "multiple of a public power of two, as real arithmetic would round it."
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        noise = self.mechanism.noise_in_fractions(data.dimension, data.count)
        assert noise is not None
        return self.grid.values(draw_cell(self.location(data), noise, self.grid, bits))

    def location(self, sums: ExactSums) -> list[Fraction]:
        """x̄."""
        return [Fraction(total) / sums.count for total in sums.moment]


def _summary(data: Data) -> QuadraticSummary:
    if not isinstance(data, QuadraticSummary):
        raise TypeError(f"the K-norm mechanism needs data from its own prepare, not {type(data).__name__}")
    return data
