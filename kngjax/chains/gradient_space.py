"""Independence Metropolis-Hastings in gradient space, for smooth strictly convex losses."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from kngjax.chains.advice import advice_for
from kngjax.chains.base import AbstractChainSampler, Info
from kngjax.chains.expansion import Expansion, expansion
from kngjax.chains.newton import Point, evaluate, gradient, log_determinant, solve
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.data.records import QuadraticSummary
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise

_PROPOSALS_A_BATCH = 50


class Weighted(NamedTuple):
    """A point, or points with a leading axis, and what its acceptance rests on.

    **Arguments:** `theta`; `log_weight`: log f - log q up to a common constant, -inf for what is never accepted;
    `log_density`: log f; `num_evaluations` that it took; `diverging`: whether the search for it failed.
    """

    theta: Float[Array, "*points dimension"]
    log_weight: Float[Array, "*points"]
    log_density: Float[Array, "*points"]
    num_evaluations: Int[Array, "*points"]
    diverging: Bool[Array, "*points"]


class Proposal(NamedTuple):
    """Holds the map that candidates invert, and where the search begins.

    **Arguments:** `start`: where the search for a solution begins. `expansion`: G, if it is inverted in place of ∇ℓ.
    """

    start: Point
    expansion: Expansion | None

    def inverted(self, target: Target) -> Callable[[Vector], Point]:
        """Returns the map whose equation proposals solve."""
        return functools.partial(evaluate, target) if self.expansion is None else self.expansion.point


class GradientSpaceState(NamedTuple):
    """**Arguments:** `current`: where the chain is; `proposal`: what candidates are made with, always the same."""

    current: Weighted
    proposal: Proposal


class GradientSpaceNoise(NamedTuple):
    """**Arguments:** `candidates`; `thresholds`: exponential. Each with a leading axis of sweeps."""

    candidates: Weighted
    thresholds: Float[Array, "*sweeps"]


class GradientSpace(AbstractChainSampler):
    """Proposes θ = (∇ℓ)^{-1}(z) with z from the K-norm density exp(-c‖z‖_K), weighed by f(θ)/q(θ) ≈ ν(θ)/det ∇²ℓ(θ).

    For a smooth strictly convex loss ∇ℓ is one to one, and in the coordinate g = ∇ℓ(θ) the mechanism's density is
    exp(-c‖g‖_K)·ν(θ)/det ∇²ℓ(θ): K-norm noise but for a factor that hardly varies once n is large. This is Theorem 3.2
    of Reimherr and Awan (2019) used as a sampler, and objective perturbation with its determinant put right. Nothing is
    tuned. A proposal whose equation has no solution in Θ is rejected. A public share m of the proposals comes from the
    base measure instead, so that a chain whose equations have no solutions moves all the same:
    q = (1 - m)·exp(-c‖∇ℓ(θ)‖_K)·det ∇²ℓ(θ)·c^d/(d! vol K) + m·ν(θ), evaluated in full for every candidate.

    Once n is large ∇ℓ is a quadratic G about the estimate θ̂ as far as the law reaches (see `Expansion`):
    `kngjax.release` and `kngjax.sample` then solve G(θ) = z, which no row enters, and take G and its determinant in
    q. A proposal is left with one gradient, of f itself, some hundred of them together in matrix products. Whether
    G is near enough is judged by a public rule on a few fixed z; elsewhere, and in `kngjax.draw`, ∇ℓ itself is
    inverted.

    The weight is exact: it is that of the point itself, so f is invariant if proposals follow q, whatever G is.
    Newton's method is not: it stops where c‖∇ℓ(θ) - z‖_K is at most 1e-6, in practice often far below, so log q is off
    by as little. A proposal for which it finds, within its public limit, neither a solution nor a proof that there is
    none in Θ is rejected too, and marked `diverging` in Info.

    Acceptance of ∇ℓ's own solutions, measured for pseudo-Huber regression with d = 12 and ε = 1: .04 at n = 300,
    .12 at 500, .59 at 700, .75 at 1,000, .93 at 3,000, .99 at 10⁴, 1.00 at 10⁵; at ε = .3 and 3 about the same for
    the same nε/d. Give it n of at least 100d/ε. Below 80d/ε a few points far out have so large a weight that the
    chain stays with them, and below 30d/ε proposals lie outside of the image of ∇ℓ: use `EnsembleWalk` there, and
    where columns are collinear, so that the loss is not strictly convex and only draws from the base measure are
    ever accepted.

    A candidate θ' with weight w(θ') = f(θ')/q(θ') replaces θ with probability min(1, w(θ')/w(θ)) (Tierney 1994, section
    2.3.3). Candidates, their weights and the thresholds of acceptance are arrays before the loop over sweeps begins, so
    a sweep is a comparison.

    If Θ cuts off most of the law, most solutions lie outside and are rejected: take more than 100 proposals then.

    **Arguments:** `num_sweeps`: proposals before a release. `num_warmup`: proposals that `sample` discards. `mixture`:
    m, strictly between 0 and 1; public. `expansion`: what `gather` found, private; never to be given.
    """

    num_sweeps: int = eqx.field(static=True, default=100)
    num_warmup: int = eqx.field(static=True, default=100)
    mixture: float = eqx.field(static=True, default=0.05)
    expansion: Expansion | None = eqx.field(default=None, metadata={"derived": True})

    unproved: ClassVar[tuple[str, ...]] = (
        "what the proposals of the chain do to it: they are made from the private data by a public rule. The "
        "mechanism's law is invariant all the same, but how they move the law of a finite run is not known",
    )
    sweeps_a_block: ClassVar[int] = 100
    needs_convexity: ClassVar[bool] = True

    def __check_init__(self):
        if not 0.0 < self.mixture < 1.0:
            raise ValueError(f"mixture must lie strictly between 0 and 1, got {self.mixture}")

    def check(self, target: Target) -> None:
        if target.norm is None:
            raise ValueError(
                "GradientSpace draws in the space of gradients, and the exponential mechanism's score is the loss "
                f"itself: {advice_for(target)}"
            )
        if not isinstance(target.data, QuadraticSummary) and not target.loss.is_smooth:
            raise ValueError(
                f"GradientSpace needs a loss that declares is_smooth, as PseudoHuberLoss does and "
                f"{type(target.loss).__name__} does not: {advice_for(target)}"
            )
        if target.pointwise is not None:
            raise ValueError(
                "GradientSpace needs one sensitivity for every theta, and here it depends on theta: "
                f"{advice_for(target)}"
            )
        if jnp.zeros(()).dtype != jnp.float64:
            raise ValueError(
                "GradientSpace solves equations to more digits than float32 has: set jax.config.update("
                "'jax_enable_x64', True), or call kngjax.release or kngjax.sample, which compute in float64"
            )

    def gather(self, target: Target, centre: Vector) -> "GradientSpace":
        return dataclasses.replace(self, expansion=expansion(target, centre))

    def init(
        self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray
    ) -> GradientSpaceState:
        proposal = self.proposal(target, centre)
        return GradientSpaceState(self.weigh(target, proposal, points[0]), proposal)

    def noise(
        self, key: PRNGKeyArray, target: Target, state: GradientSpaceState, num_sweeps: int
    ) -> GradientSpaceNoise:
        candidate_key, threshold_key = jax.random.split(key)
        return GradientSpaceNoise(
            self.candidates(target, state.proposal, candidate_key, num_sweeps),
            jax.random.exponential(threshold_key, (num_sweeps,)),
        )

    def step(
        self, target: Target, state: GradientSpaceState, noise: GradientSpaceNoise
    ) -> tuple[GradientSpaceState, Info]:
        candidate = noise.candidates
        accept = state.current.log_weight - candidate.log_weight < noise.thresholds
        current = jax.tree.map(lambda new, old: jnp.where(accept, new, old), candidate, state.current)
        info = Info(current.log_density, accept.astype(float), candidate.num_evaluations, candidate.diverging)
        return state._replace(current=current), info

    def position(self, target: Target, state: GradientSpaceState) -> Float[Array, " dimension"]:
        return state.current.theta

    def proposal(self, target: Target, centre: Vector) -> Proposal:
        """Chooses the map to invert, and where Newton's method starts: θ̂ if it lies in Θ, else the interior point."""
        if self.expansion is not None:
            gathered = jax.tree.map(jnp.asarray, self.expansion)
            return Proposal(gathered.point(gathered.centre), gathered)
        domain, centre = target.domain, jnp.asarray(centre)
        inside = jnp.all(jnp.isfinite(centre)) & domain.contains(centre)
        interior = evaluate(target, domain.interior_point(target.dimension))
        first = evaluate(target, jnp.where(inside, centre, interior.theta))
        sound = jnp.all(jnp.isfinite(first.inverse_factor))
        first = jax.tree.map(lambda given, safe: jnp.where(sound, given, safe), first, interior)
        estimate = solve(target, first, jnp.zeros(target.dimension))
        best = jax.tree.map(lambda found, safe: jnp.where(estimate.found, found, safe), estimate.point, interior)
        return Proposal(best, None)

    def candidates(self, target: Target, proposal: Proposal, key: PRNGKeyArray, number: int) -> Weighted:
        """Returns independent draws from q with their weights."""
        assert target.norm is not None
        noise_key, base_key, choice_key = jax.random.split(key, 3)
        values = k_norm_noise(target.norm, noise_key, target.rate, (number,), target.dimension)
        anywhere = target.domain.draw(base_key, (number,), target.dimension)
        from_base = jax.random.uniform(choice_key, (number,)) < self.mixture

        def candidate(proposed):
            value, anywhere, from_base = proposed
            solution = solve(target, proposal.start, value, proposal.inverted(target))
            # One evaluation, of the point that is proposed: it waits for the search, so that no two of LAPACK's batched
            # calls run at the same time (see `newton`).
            weighted = self.weigh(target, proposal, jnp.where(from_base, anywhere, solution.point.theta))
            num_rounds = 0 if proposal.expansion is not None else solution.num_evaluations
            return weighted._replace(
                log_weight=jnp.where(from_base | solution.found, weighted.log_weight, -jnp.inf),
                num_evaluations=num_rounds + 1,
                diverging=solution.unsettled & ~from_base,
            )

        return jax.lax.map(candidate, (values, anywhere, from_base), batch_size=min(number, _PROPOSALS_A_BATCH))

    def weigh(self, target: Target, proposal: Proposal, theta: Vector) -> Weighted:
        """Returns a point of Θ with its weight."""
        assert target.norm is not None
        point = proposal.inverted(target)(theta)
        here = point.gradient if proposal.expansion is None else gradient(target, theta)
        log_base = target.domain.log_density(point.theta)
        log_density = log_base - target.rate * target.norm(here)
        log_determinant_here = log_determinant(point)
        # Where the Hessian is singular to working accuracy proposals arrive from the base measure alone.
        sound = jnp.isfinite(log_determinant_here)
        log_mass = k_norm_log_mass(target.norm, target.rate, target.dimension)
        log_solved = log_determinant_here - log_mass - target.rate * target.norm(point.gradient)
        log_solved = jnp.where(sound, math.log1p(-self.mixture) + log_solved, -jnp.inf)
        log_proposal = jnp.logaddexp(log_solved, math.log(self.mixture) + log_base)
        log_weight = jnp.where(jnp.isfinite(log_density), log_density - log_proposal, -jnp.inf)
        return Weighted(point.theta, log_weight, log_density, jnp.ones((), int), jnp.zeros((), bool))
