"""Exact independent draws, by the structure of the loss."""

import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax._arrays import Vector
from kngjax.data import QuadraticSummary, Records
from kngjax.losses import AbstractPredictorLoss
from kngjax.norms import AbstractNorm, k_norm_log_mass, k_norm_noise
from kngjax.samplers import box_tree
from kngjax.samplers.base import AbstractIndependentSampler
from kngjax.samplers.lines import cumulative_masses, draw_on_line, line_segments
from kngjax.target import Target


class Exact(AbstractIndependentSampler):
    """Independent draws from exactly the mechanism's density, in real arithmetic.

    - Squared loss: rejection from the better of two envelopes. With ∇ℓ = Aθ - b and θ̂ = A^{-1}b, either
      θ = θ̂ + A^{-1}z with z from the K-norm density (Gaussian for the exponential mechanism), accepted if it lies in
      Θ; or θ from ν, accepted with probability exp(-c·(score - smallest score)). Both have a known log mass M, and
      acceptance is Z·e^(-M) with the same unknown Z, so the smaller M is the better envelope. Choosing it from the
      data does not change the law of the draw. Where Δ depends on θ the first is accepted with probability
      exp(-c·(score - ‖∇ℓ‖_K)), which is at most 1 because Δ(θ) is at most Δ.
    - One coefficient with the quantile loss: inversion of the piecewise exponential law along the line.
    - Other convex losses of x'θ with few coefficients, the quantile loss among them: rejection from an envelope that
      is constant on boxes, refined about an estimate of θ (`box_tree`). Its estimate, coordinates and size are
      computed from the data and do not change the law. Needs a norm that grows with every |v_j|: l_1, l_2, l_inf.

    How many proposals a draw took depends on the data: it must not be published.

    **Arguments:** `max_proposals`: after so many the search is given up and reported as failed. `most_coefficients`:
    up to which boxes are tried; 5 coefficients take minutes. Public.
    """

    max_proposals: int = eqx.field(static=True, default=1_000_000_000)
    most_coefficients: int = eqx.field(static=True, default=4)

    assumptions: ClassVar[tuple[str, ...]] = (
        "the statement is about a search that found its draw: whether one was given up at its public limit of "
        "proposals depends on the data and is not published",
    )

    def check(self, target: Target) -> None:
        if isinstance(target.data, QuadraticSummary) or (target.is_piecewise_linear and target.dimension == 1):
            return
        if self.runs_on_host(target):
            box_tree.require_double_precision()
            return
        raise ValueError(
            f"Exact serves the squared loss, and other convex losses of x'theta with up to {self.most_coefficients} "
            "coefficients on L1Ball, L2Ball or Box in a norm of absolute values (L1, L2, LInf, WeightedLInf), with one "
            "sensitivity for every theta. Exact(most_coefficients=5) tries one more; use LineGibbs for the quantile "
            "loss, EnsembleWalk or NUTS for smooth losses"
        )

    def serves_by_boxes(self, norm: AbstractNorm | None, dimension: int) -> bool:
        """Whether boxes are tried for so many coefficients and this norm of the gradient."""
        return dimension <= self.most_coefficients and (norm is None or norm.is_absolute)

    def runs_on_host(self, target: Target) -> bool:
        return (
            isinstance(target.loss, AbstractPredictorLoss)
            and isinstance(target.data, Records)
            and not (target.is_piecewise_linear and target.dimension == 1)
            and target.domain.is_uniform
            and target.pointwise is None
            and self.serves_by_boxes(target.norm, target.dimension)
        )

    def draws(
        self, target: Target, key: PRNGKeyArray, num_draws: int, centre: Vector | None = None
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        if isinstance(target.data, QuadraticSummary):
            return _quadratic_draws(target, target.data, key, num_draws, self.max_proposals)
        if self.runs_on_host(target):
            tree = box_tree.build(target, centre, num_draws)
            kept, succeeded = tree.draws(key, num_draws, self.max_proposals)
            return jnp.asarray(kept), jnp.asarray(succeeded)
        theta = target.domain.interior_point(1)
        segments = line_segments(target, theta, jnp.ones(1))
        uniforms = jax.random.uniform(key, (num_draws, 2))
        steps = jax.vmap(draw_on_line, in_axes=(None, None, 0))(segments, cumulative_masses(segments), uniforms)
        return (theta + steps)[:, None], jnp.asarray(True)


class _Quadratic(NamedTuple):
    centre: Float[Array, " dimension"]
    factor: Float[Array, "dimension dimension"]
    smallest_score: Float[Array, ""]
    inverse_is_better: Bool[Array, ""]


def _envelopes(target: Target, data: QuadraticSummary) -> _Quadratic:
    """The unconstrained minimiser, a Cholesky factor of A, a lower bound of the score, and which envelope is better.

    Log masses, relative to exp(-c·(score - smallest score))·ν with ν normalised: the base measure's is 0. The inverse
    envelope's is sup log ν - log det A + log ∫exp(-c‖z‖)dz for KNG, and sup log ν - ½ log det A + ½d log(2π/c) for
    the exponential mechanism. It is not used where A is singular to working precision or ν is not uniform.
    """
    dimension = target.dimension
    gram = jnp.asarray(data.gram)
    factor = jnp.linalg.cholesky(gram)
    diagonal = jnp.diagonal(factor)
    sound = jnp.all(jnp.isfinite(factor)) & (jnp.min(diagonal) > 1e-6 * jnp.max(diagonal))
    factor = jnp.where(sound, factor, jnp.eye(dimension))
    centre = jnp.where(sound, jax.scipy.linalg.cho_solve((factor, True), jnp.asarray(data.moment)), 0.0)
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    if target.norm is None:
        # Where A is singular θ̂ is not known; then 0 bounds the loss from below.
        smallest = jnp.where(sound, target.loss.value(centre, data), 0.0)
        log_mass = 0.5 * dimension * jnp.log(2.0 * math.pi / target.rate) - 0.5 * log_determinant
    else:
        smallest = jnp.zeros(())
        log_mass = k_norm_log_mass(target.norm, target.rate, dimension) - log_determinant
    log_mass += target.domain.log_density(target.domain.interior_point(dimension))
    return _Quadratic(centre, factor, smallest, sound & (log_mass < 0.0) & target.domain.is_uniform)


def _quadratic_draws(
    target: Target, data: QuadraticSummary, key: PRNGKeyArray, num_draws: int, max_proposals: int
) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
    dimension = target.dimension
    envelopes = _envelopes(target, data)
    batch = min(max(1024, 2 * num_draws), 65536)
    gram, moment = jnp.asarray(data.gram), jnp.asarray(data.moment)

    def gradients(theta):
        return theta @ gram - jnp.broadcast_to(moment, theta.shape)

    def from_inverse(key):
        if target.norm is None:
            noise = jax.random.normal(key, (batch, dimension)) / jnp.sqrt(target.rate)
            # θ̂ + L'^{-1}ξ/√c has covariance (cA)^{-1}.
            steps = jax.scipy.linalg.solve_triangular(envelopes.factor, noise.T, lower=True, trans="T").T
        else:
            noise = k_norm_noise(target.norm, key, target.rate, (batch,), dimension)
            steps = jax.scipy.linalg.cho_solve((envelopes.factor, True), noise.T).T
        theta = jnp.broadcast_to(envelopes.centre, steps.shape) + steps
        inside = jax.vmap(target.domain.contains)(theta)
        if target.pointwise is None:
            return theta, jnp.where(inside, 0.0, -jnp.inf)
        assert target.norm is not None
        excess = jax.vmap(target.score_of)(gradients(theta), theta) - jax.vmap(target.norm)(gradients(theta))
        return theta, jnp.where(inside, -target.rate * excess, -jnp.inf)

    def from_base(key):
        theta = target.domain.draw(key, (batch,), dimension)
        if target.norm is None:
            scores = jax.vmap(lambda point: target.loss.value(point, data))(theta)
        else:
            scores = jax.vmap(target.score_of)(gradients(theta), theta)
        return theta, -target.rate * (scores - envelopes.smallest_score)

    def propose(search):
        key, kept, count, tried = search
        key, proposal_key, accept_key = jax.random.split(key, 3)
        theta, log_acceptance = jax.lax.cond(envelopes.inverse_is_better, from_inverse, from_base, proposal_key)
        accepted = -jax.random.exponential(accept_key, (batch,)) < log_acceptance
        # Accepted proposals fill the free places in order; what does not fit is dropped.
        places = jnp.where(accepted, count + jnp.cumsum(accepted) - 1, num_draws)
        kept = kept.at[places].set(theta, mode="drop")
        return key, kept, count + jnp.sum(accepted), tried + batch

    def unfinished(search):
        _, _, count, tried = search
        return (count < num_draws) & (tried < max_proposals)

    start = (key, jnp.full((num_draws, dimension), jnp.nan), jnp.zeros((), int), jnp.zeros((), int))
    _, kept, count, _ = jax.lax.while_loop(unfinished, propose, start)
    return kept, count >= num_draws
