"""Independence Metropolis-Hastings: proposals that do not look at the chain's position, made many at a time.

A candidate θ' with weight w(θ') = f(θ')/q(θ'), q its proposal density, replaces θ with probability
min(1, w(θ')/w(θ)) (Tierney 1994, section 2.3.3). Candidates, their weights and the thresholds of acceptance are arrays
before the loop over sweeps begins, so a sweep is a comparison. Where w ≤ M·∫f the distance to f falls as (1 - 1/M)^t.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from kngjax.core.arrays import Vector
from kngjax.data.records import Records
from kngjax.geometry.norms import k_norm_noise
from kngjax.samplers.base import AbstractChainSampler, Info
from kngjax.samplers.chains.active_rows import ActiveRows, active_rows
from kngjax.samplers.limit_law import LimitLaw, limit_law
from kngjax.samplers.promises import Promise
from kngjax.samplers.target import Target


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


class IndependenceState(NamedTuple):
    """**Arguments:** `current`: where the chain is; `proposal`: what candidates are made with, always the same."""

    current: Weighted
    proposal: Any


class IndependenceNoise(NamedTuple):
    """**Arguments:** `candidates`; `thresholds`: exponential. Each with a leading axis of sweeps."""

    candidates: Weighted
    thresholds: Float[Array, "*sweeps"]


class AbstractIndependenceSampler(AbstractChainSampler):
    """A chain whose proposals are independent of its position; one sweep is one proposal.

    It starts with the weight of the point that it starts at, or a smaller one, by which it leaves that sooner. Every
    other point has its own weight, so that steps leave f invariant.
    """

    unproved: ClassVar[tuple[str, ...]] = (
        "what the proposals of the chain do to it: they are made from the private data by a public rule. The "
        "mechanism's law is invariant all the same, but how they move the law of a finite run is not known",
    )

    @abc.abstractmethod
    def proposal(self, target: Target, centre: Vector) -> Any:
        """What candidates are made with: arrays."""

    @abc.abstractmethod
    def candidates(self, target: Target, proposal: Any, key: PRNGKeyArray, number: int) -> Weighted:
        """Independent draws from q with their weights."""

    @abc.abstractmethod
    def weigh(self, target: Target, proposal: Any, theta: Vector) -> Weighted:
        """A point of Θ with its weight."""

    def weigh_start(self, target: Target, proposal: Any, theta: Vector) -> Weighted:
        """The point where a chain starts, with a weight of at most its own."""
        return self.weigh(target, proposal, theta)

    def init(
        self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray
    ) -> IndependenceState:
        proposal = self.proposal(target, centre)
        return IndependenceState(self.weigh_start(target, proposal, points[0]), proposal)

    def noise(self, key: PRNGKeyArray, target: Target, state: IndependenceState, num_sweeps: int) -> IndependenceNoise:
        candidate_key, threshold_key = jax.random.split(key)
        return IndependenceNoise(
            self.candidates(target, state.proposal, candidate_key, num_sweeps),
            jax.random.exponential(threshold_key, (num_sweeps,)),
        )

    def step(
        self, target: Target, state: IndependenceState, noise: IndependenceNoise
    ) -> tuple[IndependenceState, Info]:
        candidate = noise.candidates
        accept = state.current.log_weight - candidate.log_weight < noise.thresholds
        current = jax.tree.map(lambda new, old: jnp.where(accept, new, old), candidate, state.current)
        info = Info(current.log_density, accept.astype(float), candidate.num_evaluations, candidate.diverging)
        return state._replace(current=current), info

    def position(self, target: Target, state: IndependenceState) -> Float[Array, " dimension"]:
        return state.current.theta


class IndependenceMH(AbstractIndependenceSampler):
    """Proposals θ̂ + H^{-1}z from the limit law of Theorem 3.2, widened, mixed with draws from the base measure.

    z has the K-norm density with rate c/s (for the exponential mechanism θ - θ̂ is N(0, s²(cH)^{-1})), H is the loss's
    Hessian at the non-private estimate θ̂, and the proposal density, evaluated in full for every candidate, is
    q = (1 - m)·|det H|·(c/s)^d exp(-(c/s)‖H(θ - θ̂)‖_K)/(d! vol K) + m·ν. Serves every density; made for the quantile
    loss, whose gradient moves like H(θ - θ̂) once n is large: a proposal costs O(nd) and is one row of a matrix
    product, where a line draw sorts.

    `kngjax.release` and `kngjax.sample` gather the rows whose residuals can change sign near θ̂ (`active_rows`):
    proposals beyond that region are barred, those within cost its rows alone, whatever n, those from ν all rows.

    Measured for median regression with d = 12 and ε = 1: acceptance .19, .16, .20 at n = 10³, 10⁴, 10⁵, one independent
    draw in 25 to 50 proposals, and stays of up to 250 proposals at points of large weight. With d = 10 and n = 10⁵,
    where 2,000 rows are active, 44 times the effective draws per second of `CoordinateWalk`, and one stay of 693 among
    20,000 proposals.

    θ̂ and H are computed from the private data by a public rule: θ̂ from responses that are clipped to three times the
    public reach of x'θ (`kngjax.owner.nonprivate.centre`), so that it is a number. The chain leaves the mechanism's law
    invariant whatever they are, also where they are no numbers, but how they move the law of a finite run is not
    covered by any proof.

    **Arguments:**

    - `scale`: s, how much wider than the limit law, at least 1; public. Below 1 tails would be missed.
    - `mixture`: m, the share of proposals from ν, strictly between 0 and 1; public. It bounds the weights.
    - `num_sweeps`: proposals before a release. `num_warmup`: proposals that `sample` discards.
    - `active`: what `gather` found, private; never to be given.
    """

    num_sweeps: int = eqx.field(static=True, default=4000)
    num_warmup: int = eqx.field(static=True, default=500)
    scale: float = eqx.field(static=True, default=1.25)
    mixture: float = eqx.field(static=True, default=0.05)
    active: ActiveRows | None = eqx.field(default=None, metadata={"derived": True})

    sweeps_a_block: ClassVar[int] = 250

    def __check_init__(self):
        if not 1.0 <= self.scale < math.inf:
            raise ValueError(
                f"scale must be at least 1 and finite, got {self.scale}: narrower proposals miss the tails"
            )
        if not 0.0 < self.mixture < 1.0:
            raise ValueError(f"mixture must lie strictly between 0 and 1, got {self.mixture}")

    def check(self, target: Target) -> None:
        return None

    def gather(self, target: Target, centre: Vector) -> "IndependenceMH":
        return dataclasses.replace(self, active=active_rows(target, centre, self.scale))

    def promise(self, log_range: float) -> Promise:
        """A mixture where n·ε is small: q ≥ m·ν and f ≤ e^R ν, so P(x, ·) ≥ m·e^{-R}·f."""
        reason = (
            f"a share {self.mixture:g} of the proposals comes from the base measure, and the log-density varies by at "
            f"most {log_range:.4g}, so each step draws afresh with probability at least {self.mixture:g}*exp(-"
            f"{log_range:.4g})"
        )
        return Promise.of_minorised_chain(self.mixture * math.exp(-log_range), self.num_sweeps, reason)

    def proposal(self, target: Target, centre: Vector) -> LimitLaw:
        return limit_law(target, centre) if self.active is None else jax.tree.map(jnp.asarray, self.active.law)

    def candidates(self, target: Target, proposal: LimitLaw, key: PRNGKeyArray, number: int) -> Weighted:
        noise_key, base_key, choice_key = jax.random.split(key, 3)
        steps = self._steps(target, proposal, noise_key, number)
        near = jnp.broadcast_to(proposal.centre, steps.shape) + steps
        anywhere = target.domain.draw(base_key, (number,), target.dimension)
        from_base = jax.random.uniform(choice_key, (number,)) < self.mixture
        if self.active is None:
            points = jnp.where(from_base[:, None], anywhere, near)
            candidates = self._weigh_all(target, proposal, points, target.log_density, _num_records(target))
            barred = ~from_base & jnp.isnan(jax.vmap(lambda theta: self._log_near(target, proposal, theta))(near))
            return candidates._replace(log_weight=jnp.where(barred, -jnp.inf, candidates.log_weight))
        active = self.active
        candidates = self._weigh_all(
            target, proposal, near, functools.partial(active.log_density, target), active.y.shape[0]
        )
        inside = jax.vmap(lambda theta: active.contains(target, theta))(near)
        candidates = candidates._replace(log_weight=jnp.where(inside, candidates.log_weight, -jnp.inf))
        return self._with_draws_from_base(target, proposal, candidates, anywhere, from_base)

    def _with_draws_from_base(
        self,
        target: Target,
        proposal: LimitLaw,
        candidates: Weighted,
        anywhere: Float[Array, "points dimension"],
        from_base: Bool[Array, " points"],
    ) -> Weighted:
        """Those from ν, one after the other on all rows: mapped over chains a loop ends when none has one left."""
        order, count = jnp.argsort(~from_base), jnp.sum(from_base)

        def replace_next(carry):
            number, candidates = carry
            index = order[number]
            weighted = self.weigh(target, proposal, anywhere[index])
            return number + 1, jax.tree.map(lambda old, new: old.at[index].set(new), candidates, weighted)

        return jax.lax.while_loop(lambda carry: carry[0] < count, replace_next, (jnp.zeros((), int), candidates))[1]

    def _weigh_all(
        self,
        target: Target,
        proposal: LimitLaw,
        points: Float[Array, "points dimension"],
        log_density: Callable[[Vector], Float[Array, ""]],
        num_records: int,
    ) -> Weighted:
        return jax.lax.map(
            lambda theta: self._weigh(target, proposal, theta, log_density(theta)),
            points,
            batch_size=_points_a_batch(num_records),
        )

    def _steps(
        self, target: Target, proposal: LimitLaw, key: PRNGKeyArray, number: int
    ) -> Float[Array, "points dimension"]:
        if target.norm is None:
            normals = jax.random.normal(key, (target.dimension, number)) * self.scale / jnp.sqrt(target.rate)
            return jax.scipy.linalg.solve_triangular(proposal.factor, normals, lower=True, trans="T").T
        noise = k_norm_noise(target.norm, key, target.rate / self.scale, (number,), target.dimension)
        return jax.scipy.linalg.cho_solve((proposal.factor, True), noise.T).T

    def _log_near(self, target: Target, proposal: LimitLaw, theta: Vector) -> Float[Array, ""]:
        """The log-density at θ of proposals from the widened limit law; NaN where it overflows."""
        near = proposal.log_density(target, self.scale, theta)
        if self.active is None:
            return near
        # Proposals beyond are barred, so that q is 0 there: a sub-probability serves as well.
        return jnp.where(self.active.contains(target, theta), near, -jnp.inf)

    def _log_proposal_density(self, target: Target, proposal: LimitLaw, theta: Vector) -> Float[Array, ""]:
        """log q(θ). Where the limit law's density is no number its proposals are barred, and m·ν alone is left.

        So q ≥ m·ν everywhere, whatever became of θ̂ and H, and draws from ν keep the weight that the promise is about.
        """
        near = self._log_near(target, proposal, theta)
        near = jnp.where(jnp.isnan(near), -jnp.inf, math.log1p(-self.mixture) + near)
        return jnp.logaddexp(near, math.log(self.mixture) + target.domain.log_density(theta))

    def weigh_start(self, target: Target, proposal: LimitLaw, theta: Vector) -> Weighted:
        """The weight as if proposals beyond the active region were not barred.

        A start there has a density far below that of the mode, and yet by its own weight, over the base measure alone,
        a chain would hardly ever leave it. By a smaller one it leaves the sooner, after which it has no part in it; and
        it is at most f/(m·ν), which is what the promise needs of any start.
        """
        return dataclasses.replace(self, active=None).weigh(target, proposal, theta)

    def weigh(self, target: Target, proposal: LimitLaw, theta: Vector) -> Weighted:
        return self._weigh(target, proposal, theta, target.log_density(theta))

    def _weigh(self, target: Target, proposal: LimitLaw, theta: Vector, log_density: Float[Array, ""]) -> Weighted:
        log_weight = log_density - self._log_proposal_density(target, proposal, theta)
        # Far points of the widened law may overflow a score: they are never accepted.
        log_weight = jnp.where(jnp.isnan(log_weight), -jnp.inf, log_weight)
        return Weighted(theta, log_weight, log_density, jnp.ones((), int), jnp.zeros((), bool))


def _num_records(target: Target) -> int:
    return target.data.y.shape[0] if isinstance(target.data, Records) else 1


def _points_a_batch(num_records: int) -> int:
    """So many that a table of records by points has a few million entries."""
    return max(1, min(256, 2**22 // max(1, num_records)))
