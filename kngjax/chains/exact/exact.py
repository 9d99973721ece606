"""Exact independent draws, by the structure of the loss."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.advice import Density, advice_for, has_gradients
from kngjax.chains.base import AbstractIndependentSampler
from kngjax.chains.exact import rejection
from kngjax.chains.exact.envelopes.base import BaseMeasureEnvelope
from kngjax.chains.exact.envelopes.exponential_product import ExponentialProduct
from kngjax.chains.exact.envelopes.normal_product import NormalProduct
from kngjax.chains.exact.envelopes.tilted import TiltedInverse
from kngjax.chains.exact.smooth.one_program import draws_in_one_program, draws_on_the_host
from kngjax.chains.lines import cumulative_masses, draw_on_line, line_segments
from kngjax.chains.quadratic import quadratic_form
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, is_traced
from kngjax.data.records import QuadraticSummary, Records

# A first round without fits ends after so many proposals, if it does not promise to end within so many.
FIRST_PROPOSALS = 4096
PROMISING_PROPOSALS = 100_000


class Exact(AbstractIndependentSampler):
    """Draws independently from exactly the mechanism's density, in real arithmetic.

    A release takes it unasked if it serves and no draw with every rounding in its proof does.

    - Squared loss: rejection from the best of a menu of envelopes. With ∇ℓ = Aθ - b and θ̂ = A^{-1}b these are noise
      about θ̂, θ = θ̂ + A^{-1}z with z from the K-norm density (normal for the exponential mechanism), accepted if it
      lies in Θ; the same noise tilted towards Θ, where θ̂ is outside; the base measure ν; and a product of
      one-dimensional laws, for the crossover between the two. All have a known log mass M, and acceptance is Z·e^(-M)
      with the same unknown Z, so the smallest M is the best envelope. Tilt and product are fitted only if the other
      two find too little. Neither choice nor fit, both made from the data, change the law of the draw. Where Δ depends
      on θ an envelope of noise is accepted with probability exp(-c·(score - ‖∇ℓ‖_K)) besides, which is at most 1
      because Δ(θ) is at most Δ. Where ν is not uniform it is the only envelope.
    - One coefficient with the quantile loss: inversion of the piecewise exponential law along the line.
    - KNG with a smooth loss of x'θ that declares its curvature (pseudo-Huber, logistic, Poisson, smoothed quantile),
      any number of coefficients and any norm: rejection in the space of gradients (`smooth`), with a proposal or two a
      draw where n records at ε have nε ≥ 60d², columns are neither rare nor nearly collinear and the estimate lies
      well inside Θ; else ever more. The facts of a loss outside of kngjax are tried on a public grid first.
      One program takes some hundreds of proposals a draw, and then gives up; the host runs it up to thirty times. It
      is for research alone: releases are drawn with every rounding in their proof, see `kngjax.draws.Shells`, and
      search on.

    How many proposals a draw took depends on the data: it must not be published.

    **Arguments:** `max_proposals`: the number of proposals after which the search is given up and reported as failed;
    None searches until it succeeds. Public.
    """

    max_proposals: int | None = eqx.field(static=True, default=1_000_000_000)

    needs_convexity: ClassVar[bool] = True

    def __check_init__(self):
        value = self.max_proposals
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**63):
            raise ValueError(f"max_proposals must be a positive whole number or None, got {value!r}")

    @property
    def failures(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A search without a limit ends as failed only where float64 cannot tell what was proposed."""
        if self.max_proposals is None:
            return ("a search that meets an equation that it cannot solve, or a loss that is not as declared",)
        return (
            "a search that reaches its public limit of proposals, or meets an equation that it cannot solve, or a loss "
            "that is not as declared",
        )

    @property
    def assumptions(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.max_proposals is None:
            return (
                "the statement is about a search that found its draw: whether one met an equation that float64 cannot "
                "solve depends on the data and is not published",
            )
        return (
            "the statement is about a search that found its draw: whether one was given up at its public limit of "
            "proposals depends on the data and is not published",
        )

    @property
    def most_proposals(self) -> int | float:
        """Counts the proposals after which a search is given up."""
        return math.inf if self.max_proposals is None else self.max_proposals

    def check(self, target: Target) -> None:
        if isinstance(target.data, QuadraticSummary) or (target.is_piecewise_linear and target.dimension == 1):
            return
        if _takes_gradients(target):
            _require_double_precision()
            return
        lattice = "A release without a sampler draws quantile losses of more on a lattice where it can. "
        raise ValueError(
            "Exact serves the squared loss, the quantile loss with one coefficient, and KNG with smooth losses on "
            "L1Ball, L2Ball or Box with one sensitivity for every theta. "
            f"{lattice * target.is_piecewise_linear}Otherwise: {advice_for(target)}"
        )

    def runs_on_host(self, target: Target) -> bool:
        return _takes_gradients(target)

    def may_be_traced(self, target: Target) -> bool:
        return True

    def draws(
        self,
        target: Target,
        key: PRNGKeyArray,
        num_draws: int,
        centre: Vector | None = None,
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        if isinstance(target.data, QuadraticSummary):
            search = quadratic_search(target, key, num_draws, self.most_proposals)
            return search.kept, search.count >= num_draws
        if _takes_gradients(target):
            is_part = is_traced(*jax.tree.leaves((target, key)))
            return (draws_in_one_program if is_part else draws_on_the_host)(target, key, num_draws, centre)
        theta = target.domain.interior_point(1)
        segments = line_segments(target, theta, jnp.ones(1))
        uniforms = jax.random.uniform(key, (num_draws, 2))
        steps = jax.vmap(draw_on_line, in_axes=(None, None, 0))(segments, cumulative_masses(segments), uniforms)
        return (theta + steps)[:, None], jnp.asarray(True)


def _require_double_precision() -> None:
    """Raises ValueError unless JAX computes in float64: bounds that are rounded outward need its digits."""
    if jnp.zeros(()).dtype != jnp.float64:
        raise ValueError(
            "Exact bounds scores to more digits than float32 has: set jax.config.update('jax_enable_x64', True), or "
            "call kngjax.release or kngjax.sample, which compute in float64"
        )


def _takes_gradients(target: Target) -> bool:
    return isinstance(target.data, Records) and has_gradients(Density.of(target))


def quadratic_search(target: Target, key: PRNGKeyArray, num_draws: int, max_proposals: int | float) -> rejection.Search:
    """Returns independent draws for a quadratic loss, with the counts of the search for them; owner-only."""
    form, base = quadratic_form(target), BaseMeasureEnvelope.of(target)
    batch = min(max(256, 2 * num_draws), 65536)

    def searching(search):
        return (search.count < num_draws) & (search.tried < max_proposals)

    def advance(number, search):
        fitting = (number == 1) & searching(search)

        def unfinished(search):
            missing = num_draws - search.count
            promising = missing * search.tried < PROMISING_PROPOSALS * search.count
            return searching(search) & ((number == 1) | (search.tried < FIRST_PROPOSALS) | promising)

        envelopes = [base]
        if target.domain.is_uniform:
            product = NormalProduct if target.norm is None else ExponentialProduct
            envelopes += [TiltedInverse.fit(target, form, fitting), product.fit(target, form, fitting)]
        return rejection.search_from(target, form, envelopes, search, unfinished, batch)

    # What the first round found stays: an accepted proposal has the law f whatever round it is of.
    return jax.lax.fori_loop(0, 2, advance, rejection.start(key, num_draws, target.dimension))
