"""Objective perturbation: the minimiser of a loss with a ridge and a random linear term."""

import functools
import math
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced, parameter
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.norms import L2, k_norm_log_mass, k_norm_noise
from kngjax.geometry.reach import Everywhere, Reach
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss
from kngjax.losses.extended import TangentExtension
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.expected_noise import ExpectedNoise, k_norm_covariance
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.mechanisms.minimisers import WITHIN_TOLERANCE, quadratic_minimiser, tilted_minimisers
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import as_centre, order_domain, require_part
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity

# ‖∇J‖ at which the search stops, in units of the largest change of the gradient, but at least of 1.
DEFAULT_TOLERANCE = 1e-8
DEFAULT_OUTPUT_SHARE = 0.01


class ObjectivePerturbation(AbstractDirectMechanism):
    """Draws θ = argmin J over Θ, J(θ) = ℓ_n(θ; D) + (γ/2)|θ - c|² + b'θ, with b of density ∝ exp(-(qε/Δ)·‖b‖_K).

    Δ is the sensitivity of ∇ℓ_n in the norm, as for KNG. The ridge is γ = λ/(e^{(1-q)ε} - 1), where λ is the largest
    eigenvalue of one record's Hessian ρ''xx'. For persons, whose Hessian has any rank, γ = λ/((1-q)ε). A draw is ε-DP
    (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012). With q = ½ and many records its law is
    that of KNG (Reimherr and Awan 2019, Remark 3.3). Proof: `docs/proofs/objective-perturbation.md`.

    *The squared loss* needs a Θ, since its score is bounded over Θ alone. It is minimised over Θ exactly.

    *Other losses* have no closed form. The search stops at ‖∇J‖_2 ≤ τ, within τ/γ of the minimiser, and adds noise z
    with density ∝ exp(-(fεγ/(2τ))·‖z‖_2) (Iyengar et al. 2019). It runs over R^d; with a `domain` the loss is continued
    by its tangents (`TangentExtension`), and θ is projected onto Θ last.

    *The centre* c attracts θ, to first order by γ(H + γI)^{-1}(c - θ0) with H = ∇²ℓ_n.

    *Releases* compute the exact minimiser with every rounding in the proof (`kngjax.draws.perturbed_minimizers`). They
    add no z, and leave its share f of ε unspent. Hulls and norms that turn the axes are drawn in float64,
    as research draws are.

    **Arguments:**

    - `loss`: of a linear predictor, with a bounded ρ'': squared, pseudo-Huber, Huber, logistic, Poisson, smoothed
        quantile. The quantile loss has none.
    - `bounds`: public bounds of one record.
    - `domain`: Θ: L1Ball, L2Ball or Box. Required for the squared and the Poisson loss; None elsewhere is R^d.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove". Required.
    - `norm`: ‖·‖_K, as for `KNG`: None means the weighted l_inf norm for which Δ = 1.
    - `noise_share`: q, between 0 and 1: the share of ε for b. The rest makes the ridge smaller.
    - `tolerance`: τ in the units of the gradient, for losses without a closed form. None is 1e-8 times the largest
        change of a coordinate of ∇ℓ_n, and at least 1e-8. It may not depend on the data.
    - `output_share`: f, for the same losses; None is .01.
    - `centre`: c, a public guess of θ, shape (d,), the intercept first; None is 0. It may lie outside of Θ, and may not
        depend on the data.

    Raises ValueError where the proof would fail.
    """

    loss: AbstractPredictorLoss
    bounds: Bounds
    domain: AbstractDomain | None
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None
    noise_share: Scalar
    tolerance: Scalar | None
    output_share: Scalar | None
    centre: Vector | None

    failures: ClassVar[tuple[str, ...]] = ("a minimiser that was not found",)
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    proofs: ClassVar[tuple[str, ...]] = ("objective-perturbation", "sensitivities")

    def __init__(
        self,
        loss: AbstractLoss | None = None,
        bounds: Bounds | None = None,
        domain: AbstractDomain | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        *,
        noise_share: Any = 0.5,
        tolerance: Any = None,
        output_share: Any = None,
        centre: Any = None,
        allow_large_epsilon: bool = False,
    ):
        self.loss = require_part("loss", loss)
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.domain = order_domain(domain, self.bounds)
        self.norm = norm
        self.noise_share = parameter(noise_share)
        output_share = DEFAULT_OUTPUT_SHARE if output_share is None and not self._is_exact else output_share
        self.tolerance = None if tolerance is None else parameter(tolerance)
        self.output_share = None if output_share is None else parameter(output_share)
        self.centre = as_centre(centre, super().dimension)

    def __check_init__(self):
        self._check_loss()
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        self._check_numbers()
        with float64(), quick_compilation():
            dimension = self.dimension or 1 + self.bounds.intercept
            facts = float(self.sensitivity_value(dimension)), float(self._largest_curvature(dimension))
        if not all(math.isfinite(fact) and fact > 0 for fact in facts):
            where, remedy = "on this domain", "Give a smaller one, or a loss with bounded score and curvature"
            if self.domain is None:
                where, remedy = "without a domain", "Give L1Ball, L2Ball or Box: they grow with x'theta"
            raise ValueError(
                f"{where} {type(self.loss).__name__} has no bound on one record's gradient or Hessian, and objective "
                f"perturbation would not be differentially private. {remedy}"
            )

    def _check_loss(self) -> None:
        if (reason := self.loss.why_no_ridge()) is not None:
            raise ValueError(reason)
        if self.domain is not None and not self.domain.is_uniform:
            raise ValueError(
                f"objective perturbation minimises over a bounded convex set, and {type(self.domain).__name__} is a "
                "base measure for densities: give L1Ball, L2Ball or Box"
            )

    def _check_numbers(self) -> None:
        shares = {"noise_share": self.noise_share, "output_share": self.output_share}
        for name, share in shares.items():
            if share is not None and not (np.ndim(share) == 0 and 0 < float(share) < 1):
                raise ValueError(f"{name} must be one number strictly between 0 and 1, got {share}")
        if self.tolerance is not None and not (np.ndim(self.tolerance) == 0 and 0 < float(self.tolerance) < np.inf):
            raise ValueError(f"tolerance must be one positive and finite number, got {self.tolerance}")
        if self._is_exact and (self.tolerance is not None or self.output_share is not None):
            raise ValueError(f"{type(self.loss).__name__} is minimised exactly: leave tolerance and output_share out")

    @property
    def dimension(self) -> int | None:
        """d, which a centre tells too."""
        known = super().dimension
        return known if known is not None or self.centre is None else np.shape(self.centre)[-1]

    def centre_for(self, dimension: int) -> Float[Array, " dimension"]:
        """c for d coefficients; runs under jit."""
        return jnp.zeros(dimension) if self.centre is None else jnp.asarray(self.centre)

    @property
    def _is_exact(self) -> bool:
        return self.loss.is_quadratic

    @property
    def method(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Says how a value is drawn, in words."""
        if self._is_exact:
            return "Exact K-norm noise in the objective, and its minimiser over the domain to machine precision."
        return (
            "Exact K-norm noise in the objective, a search for its minimiser by Newton's method up to the public "
            "tolerance, and exact K-norm noise on what was found."
        )

    @property
    def assumptions(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """States what the guarantee needs of the minimiser."""
        if self._is_exact:
            return (
                "the minimiser is exact in real arithmetic: what is released meets the conditions of optimality to "
                "within rounding in float64; a search that misses them releases nothing, and that it did is not "
                "covered",
            )
        return (WITHIN_TOLERANCE,)

    @property
    def advice(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Says what to do if no minimiser was found."""
        if self._is_exact:
            return "the minimiser was not found to machine precision: scale the columns to similar public bounds"
        return (
            "the search for the minimiser did not reach its tolerance: give ObjectivePerturbation a larger tolerance "
            "(the noise that covers it grows in proportion), and scale the columns to similar public bounds"
        )

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    @property
    def exact_budget(self) -> tuple[Fraction, Fraction]:
        """ε of the objective, without what is set aside for output noise, and its share q of the linear term."""
        epsilon = exactly(float(self.epsilon))
        if self.output_share is not None:
            epsilon *= 1 - exactly(float(self.output_share))
        return epsilon, exactly(float(self.noise_share))

    @property
    def _reach(self) -> Reach:
        return Everywhere() if self.domain is None else self.domain

    @property
    def _objective_epsilon(self) -> Float[Array, ""]:
        if self.output_share is None:
            return jnp.asarray(self.epsilon)
        # Rounded down by a few units of the last place, so that the parts never add up to more than ε.
        return jnp.asarray((1.0 - self.output_share) * self.epsilon * (1.0 - 2.0**-50))

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return gradients.gradient_changes(self.loss, self.bounds, self._reach, self.adjacency, dimension)

    def _largest_curvature(self, dimension: int) -> Float[Array, ""]:
        return gradients.hessian_sensitivity(self.loss, self.bounds, self._reach, dimension)

    def objective_loss(self, dimension: int) -> AbstractPredictorLoss:
        """The loss that is minimised: beyond the reach of x'θ over Θ by its tangents, unless the search stays in Θ."""
        if self._is_exact:
            return self.loss
        return TangentExtension(self.loss, *self._reach.linear_interval(*self.bounds.features(dimension)))

    def score_norm(self, dimension: int) -> AbstractNorm:
        """The norm of the noise b."""
        return gradients.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ for d coefficients; runs under jit."""
        return gradients.gradient_sensitivity(self.loss, self.bounds, self._reach, self.adjacency, self.norm, dimension)

    def noise_rate(self, dimension: int) -> Float[Array, ""]:
        """qε/Δ of the noise b, with (1-f)ε for ε where the minimiser is approximate; runs under jit."""
        return self.noise_share * self._objective_epsilon / self.sensitivity_value(dimension)

    def ridge(self, dimension: int) -> Float[Array, ""]:
        """γ = λ/(e^{(1-q)ε} - 1), of persons λ/((1-q)ε), with (1-f)ε for ε where the minimiser is approximate."""
        left = (1.0 - self.noise_share) * self._objective_epsilon
        return self._largest_curvature(dimension) / (left if self.bounds.of_persons else jnp.expm1(left))

    def search_tolerance(self, dimension: int) -> Float[Array, ""]:
        """τ: public, since it depends on public facts alone; runs under jit."""
        if self.tolerance is not None:
            return jnp.asarray(self.tolerance)
        return DEFAULT_TOLERANCE * jnp.maximum(1.0, jnp.max(self._changes(dimension)))

    def output_rate(self, dimension: int) -> Float[Array, ""]:
        """fεγ/(2τ) of the l2 noise on an approximate minimiser; infinite, no noise, on an exact one."""
        if self.output_share is None:
            return jnp.asarray(jnp.inf)
        return self.output_share * self.epsilon * self.ridge(dimension) / (2.0 * self.search_tolerance(dimension))

    @property
    def noise(self) -> "ObjectiveNoise":
        return ObjectiveNoise(self)

    @property
    def sensitivity(self) -> Sensitivity:
        """Δ with its derivation, λ and γ; ValueError where scalar bounds leave d open, since γ grows with it."""
        if self.dimension is None:
            raise ValueError(
                "the ridge depends on the number of columns, which scalar bounds leave open: give bounds.x one value a "
                "column, or call sensitivity_for(dimension)"
            )
        return self.sensitivity_for(self.dimension)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of ∇ℓ_n, with its derivation, λ and γ."""
        with float64(), quick_compilation():
            changes, norm = np.asarray(self._changes(dimension)), self.score_norm(dimension)
            value = float(self.sensitivity_value(dimension))
            of_gradient = self.loss, self.bounds, self._reach, self.adjacency, norm, changes, value
            parts = [
                gradients.explain_gradient_sensitivity(*of_gradient),
                gradients.explain_hessian_sensitivity(self.loss, self.bounds, self._reach, dimension),
            ]
            (_, ridge, tolerance), objective = map(float, _constants(self, dimension)), float(self._objective_epsilon)
            noise, share = float(self.noise_share) * objective, self.output_share
            parts.append(gradients.explain_ridge(ridge, objective, noise, self.bounds.of_persons))
            if share is not None:
                parts.append(gradients.explain_search(tolerance, ridge, float(share) * float(self.epsilon)))
        return Sensitivity(value, " ".join(parts))

    def _slope(self, theta: Vector, data: Data, dimension: int) -> Float[Array, " dimension"]:
        """∇ℓ_n(θ; D) + γ(θ - c), which is -b where θ is the minimiser on R^d."""
        gradient = self.objective_loss(dimension).gradient(theta, data)
        return gradient + self.ridge(dimension) * (theta - self.centre_for(dimension))

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = log f_b(-∇ℓ_n - γ(θ - c)) + log det(∇²ℓ_n + γI), normalised, inside Θ; -inf outside. Private.

        It is the law of the exact minimiser, before the output noise where that is approximate. What it lacks of mass 1
        lies on the boundary of Θ: in one dimension it is `boundary_log_masses`.
        """
        theta, dimension = jnp.asarray(theta), data.dimension
        norm, rate = self.score_norm(dimension), self.noise_rate(dimension)
        hessian = self.objective_loss(dimension).hessian(theta, data) + self.ridge(dimension) * jnp.eye(dimension)
        log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(hessian))))
        log_noise = -rate * norm(self._slope(theta, data, dimension)) - k_norm_log_mass(norm, rate, dimension)
        inside = True if self.domain is None else self.domain.contains(theta)
        return jnp.where(inside, log_noise + log_determinant, -jnp.inf)

    def boundary_log_masses(self, data: Data) -> Float[Array, " atoms"]:
        """log P(θ = lower end of Θ) and log P(θ = upper end), for one coefficient: the tails of b, a Laplace law.

        The minimiser is the lower end if and only if b ≥ -(∇ℓ_n + γ(θ - c)) there. Shape (2,), and (0,) where Θ is all
        of R; before the output noise, as `log_density`. Private. Raises ValueError for more than one coefficient.
        """
        if data.dimension != 1:
            raise ValueError(f"the boundary of Θ has two points for one coefficient only, not for {data.dimension}")
        if self.domain is None:
            return jnp.zeros(0)
        rate = self.noise_rate(1) * self.score_norm(1)(jnp.ones(1))
        lower, upper = (
            rate * self._slope(jnp.reshape(end, (1,)), data, 1)[0]
            for end in self.domain.linear_interval(jnp.ones(1), jnp.ones(1))
        )
        places = jnp.stack([lower, -upper])
        # log P(L ≤ t) for L of density ½e^{-|t|}.
        return jnp.where(places < 0, places - math.log(2.0), jnp.log1p(-0.5 * jnp.exp(-jnp.abs(places))))

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """Minimisers for independent b, plus independent output noise where they are approximate."""
        dimension = data.dimension
        tilt_key, output_key = jax.random.split(key)
        ridge, loss, centre = self.ridge(dimension), self.objective_loss(dimension), self.centre_for(dimension)
        tilts = k_norm_noise(self.score_norm(dimension), tilt_key, self.noise_rate(dimension), (num_draws,), dimension)
        if self._is_exact:
            domain, origin = self.domain, jnp.zeros(dimension)
            assert domain is not None
            matrix = loss.hessian(origin, data) + ridge * jnp.eye(dimension)
            slope = loss.gradient(origin, data) - ridge * centre
            thetas, succeeded = jax.vmap(lambda tilt: quadratic_minimiser(domain, matrix, -slope - tilt))(tilts)
            return thetas, jnp.all(succeeded)
        tolerance, rows = self.search_tolerance(dimension), self._own(data, Records | WeightedRecords)
        thetas, succeeded = tilted_minimisers(loss, rows, ridge, tilts, tolerance, centre)
        thetas += k_norm_noise(L2(), output_key, self.output_rate(dimension), (num_draws,), dimension)
        return thetas if self.domain is None else jax.vmap(self.domain.project)(thetas), jnp.all(succeeded)


class ObjectiveNoise(AbstractNoiseFacts):
    """Says what is known of the noise, which is on the gradient, and of what the ridge takes."""

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """(H + γI)(θ̃ - θ̂) ≈ -b - γ(θ̂ - c): noise, and what the ridge takes."""
        law = self.of_gradient(len(hessian))
        tilt = k_norm_covariance(law.norm, law.rate, len(hessian)), law.ridge
        return law.expected(hessian)._replace(tilt=tilt, towards=law.centre)

    def of_gradient(self, dimension: int) -> GradientNoise:
        """∇ℓ_n(θ̃) + γ(θ̃ - c) = -b, by the change of variables b ↦ θ̃ of the proof, inside Θ."""
        with float64(), quick_compilation():
            rate, ridge, _ = map(float, _constants(self.mechanism, dimension))
            centre = np.asarray(self.mechanism.centre_for(dimension))
            return GradientNoise(self.mechanism.score_norm(dimension), rate, ridge, "release", centre)


@functools.partial(Compiled, static_argnames="dimension")
def _constants(mechanism: ObjectivePerturbation, dimension: int) -> tuple[Array, Array, Array]:
    """Computes qε/Δ, γ and τ in one program, in the place of one for each operation."""
    return mechanism.noise_rate(dimension), mechanism.ridge(dimension), mechanism.search_tolerance(dimension)
