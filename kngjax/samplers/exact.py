"""Exact independent draws, by the structure of the loss."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.data import QuadraticSummary
from kngjax.samplers import rejection
from kngjax.samplers.base import AbstractIndependentSampler
from kngjax.samplers.envelopes import BaseMeasureEnvelope, ExponentialProduct, NormalProduct, TiltedInverse
from kngjax.samplers.lines import cumulative_masses, draw_on_line, line_segments
from kngjax.samplers.quadratic import quadratic_form
from kngjax.target import Target

# A first round without fits ends after so many proposals, if it does not promise to end within so many.
FIRST_PROPOSALS = 4096
PROMISING_PROPOSALS = 100_000


class Exact(AbstractIndependentSampler):
    """Independent draws from exactly the mechanism's density, in real arithmetic.

    - Squared loss: rejection from the best of a menu of envelopes. With ∇ℓ = Aθ - b and θ̂ = A^{-1}b these are noise
      about θ̂, θ = θ̂ + A^{-1}z with z from the K-norm density (normal for the exponential mechanism), accepted if it
      lies in Θ; the same noise tilted towards Θ, where θ̂ is outside; the base measure ν; and a product of
      one-dimensional laws, for the crossover between the two. All have a known log mass M, and acceptance is Z·e^(-M)
      with the same unknown Z, so the smallest M is the best envelope. Tilt and product are fitted only if the other
      two find too little. Neither choice nor fit, both made from the data, change the law of the draw. Where Δ depends
      on θ an envelope of noise is accepted with probability exp(-c·(score - ‖∇ℓ‖_K)) besides, which is at most 1
      because Δ(θ) is at most Δ. Where ν is not uniform it is the only envelope.
    - One coefficient with the quantile loss: inversion of the piecewise exponential law along the line.

    How many proposals a draw took depends on the data: it must not be published.

    **Arguments:** `max_proposals`: after so many the search is given up and reported as failed. Public.
    """

    max_proposals: int = eqx.field(static=True, default=1_000_000_000)

    assumptions: ClassVar[tuple[str, ...]] = (
        "the statement is about a search that found its draw: whether one was given up at its public limit of "
        "proposals depends on the data and is not published",
    )

    def check(self, target: Target) -> None:
        if not (isinstance(target.data, QuadraticSummary) or (target.is_piecewise_linear and target.dimension == 1)):
            raise ValueError(
                "Exact serves the squared loss, and the quantile loss with one coefficient on a uniform domain; use "
                "LineGibbs for more coefficients of the quantile loss, CoordinateWalk or NUTS for smooth losses"
            )

    def draws(
        self, target: Target, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        if isinstance(target.data, QuadraticSummary):
            search = quadratic_search(target, key, num_draws, self.max_proposals)
            return search.kept, search.count >= num_draws
        theta = target.domain.interior_point(1)
        segments = line_segments(target, theta, jnp.ones(1))
        uniforms = jax.random.uniform(key, (num_draws, 2))
        steps = jax.vmap(draw_on_line, in_axes=(None, None, 0))(segments, cumulative_masses(segments), uniforms)
        return (theta + steps)[:, None], jnp.asarray(True)


def quadratic_search(target: Target, key: PRNGKeyArray, num_draws: int, max_proposals: int) -> rejection.Search:
    """Independent draws for a quadratic loss, with the counts of the search for them; owner-only."""
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
