"""Exact independent draws, by the structure of the loss."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Vector, is_traced
from kngjax.core.compiling import Compiled
from kngjax.data.records import QuadraticSummary, Records
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.advice import MOST_BOXED, Density, advice_for, has_boxes, has_gradients
from kngjax.samplers.base import AbstractIndependentSampler
from kngjax.samplers.exact import box_tree, rejection
from kngjax.samplers.exact.envelopes.base import BaseMeasureEnvelope
from kngjax.samplers.exact.envelopes.exponential_product import ExponentialProduct
from kngjax.samplers.exact.envelopes.normal_product import NormalProduct
from kngjax.samplers.exact.envelopes.tilted import TiltedInverse
from kngjax.samplers.exact.smooth.envelope import MARGIN
from kngjax.samplers.exact.smooth.one_program import draws_in_one_program
from kngjax.samplers.exact.smooth.search import draw_from, prepare
from kngjax.samplers.lines import cumulative_masses, draw_on_line, line_segments
from kngjax.samplers.quadratic import quadratic_form
from kngjax.samplers.target import Target

# A first round without fits ends after so many proposals, if it does not promise to end within so many.
FIRST_PROPOSALS = 4096
PROMISING_PROPOSALS = 100_000
# Log of how many times more proposals than the best of all envelopes in gradient space makes boxes worth trying.
MOST_LOG_EXCESS = 5.0
# Proposals in gradient space before boxes are tried: in all, or a draw.
TRIAL_PROPOSALS, PROPOSALS_A_DRAW = 2**13, 100


class Exact(AbstractIndependentSampler):
    """Independent draws from exactly the mechanism's density, in real arithmetic.

    A release takes it unasked where neither draws in balls, as of KNG with a quadratic loss, nor `Lattice` serves.

    - Squared loss: rejection from the best of a menu of envelopes. With ∇ℓ = Aθ - b and θ̂ = A^{-1}b these are noise
      about θ̂, θ = θ̂ + A^{-1}z with z from the K-norm density (normal for the exponential mechanism), accepted if it
      lies in Θ; the same noise tilted towards Θ, where θ̂ is outside; the base measure ν; and a product of
      one-dimensional laws, for the crossover between the two. All have a known log mass M, and acceptance is Z·e^(-M)
      with the same unknown Z, so the smallest M is the best envelope. Tilt and product are fitted only if the other
      two find too little. Neither choice nor fit, both made from the data, change the law of the draw. Where Δ depends
      on θ an envelope of noise is accepted with probability exp(-c·(score - ‖∇ℓ‖_K)) besides, which is at most 1
      because Δ(θ) is at most Δ. Where ν is not uniform it is the only envelope.
    - One coefficient with the quantile loss: inversion of the piecewise exponential law along the line.
    - Other convex losses of x'θ with few coefficients, the quantile loss among them: rejection from an envelope that
      is constant on boxes, refined about an estimate of θ (`box_tree`). Its estimate, coordinates and size are
      computed from the data and do not change the law. Needs a norm that grows with every |v_j|: l_1, l_2, l_inf. A
      score below its box's bound contradicts the convexity that the loss declares, and the draw fails. Of a loss that
      is not kngjax's convexity is tried on a public grid first, and refused where that contradicts it.
    - KNG with a smooth loss of x'θ that declares its curvature (pseudo-Huber, logistic, Poisson, smoothed quantile),
      any number of coefficients and any norm: rejection in the space of gradients (`smooth`), with a proposal or two a
      draw where n records at ε have nε ≥ 60d², columns are neither rare nor nearly collinear and the estimate lies
      well inside Θ; else ever more. Where it needs many, and coefficients are few, boxes serve.

    Draws of smooth losses under jit, vmap and `simulate` are one program without moments of fourth order, boxes and
    `max_proposals`: it takes some hundreds of proposals a draw, and then gives up. Releases search on.

    How many proposals a draw took depends on the data: it must not be published.

    **Arguments:** `max_proposals`: after so many the search is given up and reported as failed; None searches until it
    finds. `most_coefficients`: up to which boxes are tried; 5 coefficients take minutes. `least_records`: a number that
    the records are not fewer than; with it a release of a smooth loss is refused beforehand where the rule for n·ε of
    docs/how-to-choose.md says that it would take too long. A false number costs time, and no privacy. All public.
    """

    max_proposals: int | None = eqx.field(static=True, default=1_000_000_000)
    most_coefficients: int = eqx.field(static=True, default=MOST_BOXED)
    least_records: int | None = eqx.field(static=True, default=None)

    needs_convexity: ClassVar[bool] = True

    def __check_init__(self):
        limits = {"max_proposals": self.max_proposals, "least_records": self.least_records}
        for name, value in limits.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**63):
                raise ValueError(f"{name} must be a positive whole number or None, got {value!r}")

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
        """After so many a search is given up."""
        return math.inf if self.max_proposals is None else self.max_proposals

    @property
    def stated_records(self) -> int | None:
        return self.least_records

    def check(self, target: Target) -> None:
        if isinstance(target.data, QuadraticSummary) or (target.is_piecewise_linear and target.dimension == 1):
            return
        if self.runs_on_host(target):
            box_tree.require_double_precision()
            return
        raise ValueError(
            f"Exact serves the squared loss, and other convex losses of x'theta with up to {self.most_coefficients} "
            "coefficients on L1Ball, L2Ball or Box in a norm of absolute values (L1, L2, LInf, WeightedLInf), with one "
            "sensitivity for every theta; and KNG with smooth losses in any dimension, with one sensitivity too. "
            "Exact(most_coefficients=5) tries one more. Otherwise: "
            f"{advice_for(target)}"
        )

    def serves_by_boxes(self, norm: AbstractNorm | None, dimension: int) -> bool:
        """Whether boxes are tried for so many coefficients and this norm of the gradient."""
        return has_boxes(norm, dimension, self.most_coefficients)

    def runs_on_host(self, target: Target) -> bool:
        return self._takes_boxes(target) or _takes_gradients(target)

    def may_be_traced(self, target: Target) -> bool:
        return _takes_gradients(target) or not self._takes_boxes(target)

    def _takes_boxes(self, target: Target) -> bool:
        return (
            isinstance(target.loss, AbstractPredictorLoss)
            and isinstance(target.data, Records)
            and not (target.is_piecewise_linear and target.dimension == 1)
            and target.domain.is_uniform
            and target.pointwise is None
            and self.serves_by_boxes(target.norm, target.dimension)
        )

    def draws(
        self,
        target: Target,
        key: PRNGKeyArray,
        num_draws: int,
        centre: Vector | None = None,
        progress: bool | None = False,
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        limit = self.most_proposals
        if isinstance(target.data, QuadraticSummary):
            search = quadratic_search(target, key, num_draws, limit)
            return search.kept, search.count >= num_draws
        if is_traced(*jax.tree.leaves((target, key))) and _takes_gradients(target):
            return draws_in_one_program(target, key, num_draws, centre)
        if _takes_gradients(target):
            centre = target.domain.interior_point(target.dimension) if centre is None else centre
            envelope, boxes = prepare(target, centre), self._takes_boxes(target)
            # Boxes follow a trial that finds too little, with a key of their own: that it failed is a fact about the
            # first key, and must not weigh on what is drawn.
            trial_key, key = _halves(key)
            if not boxes or (envelope.has_shells and envelope.log_excess <= MOST_LOG_EXCESS):
                most = max(TRIAL_PROPOSALS, PROPOSALS_A_DRAW * num_draws) if boxes else limit
                found = draw_from(envelope, target, trial_key, num_draws, min(limit, most), progress)
                # What contradicts the proof fails, and is not hidden by boxes.
                if found.succeeded or found.worst > MARGIN or not boxes:
                    draws = found.draws if found.succeeded else jnp.full((num_draws, target.dimension), jnp.nan)
                    return jnp.asarray(draws), jnp.asarray(found.succeeded)
        if self._takes_boxes(target):
            tree = box_tree.build(target, centre, num_draws)
            kept, succeeded = tree.draws(key, num_draws, limit)
            return jnp.asarray(kept), jnp.asarray(succeeded)
        theta = target.domain.interior_point(1)
        segments = line_segments(target, theta, jnp.ones(1))
        uniforms = jax.random.uniform(key, (num_draws, 2))
        steps = jax.vmap(draw_on_line, in_axes=(None, None, 0))(segments, cumulative_masses(segments), uniforms)
        return (theta + steps)[:, None], jnp.asarray(True)


def _takes_gradients(target: Target) -> bool:
    return isinstance(target.data, Records) and has_gradients(Density.of(target))


def quadratic_search(target: Target, key: PRNGKeyArray, num_draws: int, max_proposals: int | float) -> rejection.Search:
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


@Compiled
def _halves(key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    first, second = jax.random.split(key)
    return first, second
