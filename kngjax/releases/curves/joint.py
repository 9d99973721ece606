"""How curves of several levels are drawn together, from one density of all of them."""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled, programs_run_once
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.bounds import Bounds
from kngjax.data.records import Records
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.norms import WeightedLInf
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.smoothed_quantile import SmoothedQuantileLoss
from kngjax.mechanisms.kng import KNG
from kngjax.releases.chains import estimate, require_success
from kngjax.releases.lattice.regions import vertices_of
from kngjax.releases.rounding import Rounding
from kngjax.samplers.chains import gradient_space_of_curves
from kngjax.samplers.chains.gradient_space import GradientSpace
from kngjax.samplers.curves_target import CurvesTarget
from kngjax.samplers.exact.curves.envelope import prepare
from kngjax.samplers.exact.curves.search import draw_from
from kngjax.samplers.exact.exact import Exact
from kngjax.sensitivity.bins import bin_norm, bin_sensitivity
from kngjax.sensitivity.gradients import Sensitivity

NAME_A_SAMPLER = (
    "order='joint' needs a sampler by name: sampler=kngjax.Exact() draws from exactly its law, and is quick where "
    "records are many for the levels and bins are wide; of the chain, sampler=kngjax.GradientSpace(), nothing is "
    "proved. Or take order='halving', which is drawn exactly whatever the records are"
)
# Of the totals where n is private: beyond it they keep as many digits.
_RECORDS = 1024
_MOST_VERTICES = 2**14
# Proposals for which a program that is compiled quickly takes less time in all.
_FEW = 2000


@owner_only
class CurveDraws(OwnerOnly):
    """Research draws of all curves: OWNER ONLY. Publish what `kngjax.release` returns instead.

    **Arguments:** `curves`: shape (draws, m, d). `totals`: T, shape (draws, d). `log_density`: log f of each, up to a
    constant. `acceptance`: the share of proposals that were taken.
    """

    curves: Float[np.ndarray, "draws levels dimension"]
    totals: Float[np.ndarray, "draws dimension"]
    log_density: Float[np.ndarray, " draws"]
    acceptance: float


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """Draws of `kngjax.QuantileProcess` of all levels together. All of it is public.

    **Arguments:** `levels`: τ. `first`: KNG at the level ½, which says which records are admitted. `norm`: ‖·‖_K.
    `vertices`: of the polytope of the bounds. `direction`: β with x'β > 0 on it. `dimension`: d.
    """

    levels: tuple[float, ...]
    first: KNG
    norm: AbstractNorm
    vertices: Float[np.ndarray, "vertices dimension"]
    direction: Float[np.ndarray, " dimension"]
    dimension: int

    @classmethod
    def of(
        cls,
        levels: Sequence[float],
        bounds: Bounds,
        domain: AbstractDomain,
        epsilon: float,
        adjacency: Adjacency,
        dimension: int,
        norm: AbstractNorm | None,
        bandwidth: float | None,
    ) -> "Joint":
        """**Arguments:** as of `kngjax.QuantileProcess`; `bandwidth` None for bins without smoothing, which have a
        density and no sampler. Raises ValueError, in words, for parts without a proof.
        """
        loss = QuantileLoss(0.5) if bandwidth is None else SmoothedQuantileLoss(0.5, bandwidth)
        if not domain.is_uniform or not np.all(np.isfinite(np.asarray(domain.widths(dimension)))):
            raise ValueError("the joint density needs a bounded domain without a base measure: Box, L1Ball or L2Ball")
        first = KNG(loss, bounds, domain, epsilon, adjacency, allow_large_epsilon=True)
        with float64():
            blocks = [np.asarray(block) for block in bounds.feature_blocks(dimension)]
            if math.prod(map(len, blocks)) > _MOST_VERTICES:
                raise ValueError(f"the polytope of the features has more than {_MOST_VERTICES} vertices")
            vertices = vertices_of(blocks)
            norm = bin_norm(vertices) if norm is None else _checked(norm, dimension)
        return cls(tuple(levels), first, norm, vertices, _upwards(vertices, bounds.intercept), dimension)

    @property
    def guarantee(self) -> Guarantee:
        """Of one exact draw of all curves and T."""
        return Guarantee.bounded_range(float(self.first.epsilon), self.first.adjacency)

    @property
    def sensitivity(self) -> Sensitivity:
        """Δ of the score of all curves and T."""
        with float64():
            return bin_sensitivity(self.norm, self.vertices, self.first.adjacency)

    @property
    def rate(self) -> float:
        """c = ε/(2Δ)."""
        return float(self.first.epsilon) / (2.0 * self.sensitivity.value)

    @property
    def noises(self) -> list[float]:
        """Of each level, about the standard deviation of the noise on how many records lie below it.

        The intercept's coordinate of K-norm noise of rate c is about √((d + 1)(d + 2)/3)/(c‖e_1‖_K), exactly so in a
        box's norm, and z_j adds up j of m + 1 of these times 1 - τ_j, and the others times -τ_j. Without an intercept
        B, the largest norm of a record, takes the place of ‖e_1‖_K. Neither depends on the units of the norm.
        """
        d, m = self.dimension, len(self.levels)
        if self.first.bounds.intercept:
            with float64():
                of_record = float(self.norm(np.eye(d)[0]))
        else:
            of_record = self.sensitivity.value / (2.0 if self.first.adjacency is Adjacency.REPLACE else 1.0)
        one = math.sqrt((d + 1) * (d + 2) / 3.0) / (self.rate * of_record)
        return [
            one * math.sqrt((1.0 - level) ** 2 * j + level**2 * (m + 1 - j)) for j, level in enumerate(self.levels, 1)
        ]

    def rounding(self, num_records: int | None) -> Rounding:
        """Of all coefficients, level by level, and then of T. **Arguments:** `num_records`: n where it is public."""
        with float64():
            centre, units = (np.asarray(part) for part in self.first.typical_values(self.dimension))
        largest = np.max(np.abs(self.vertices), axis=0) * (num_records or _RECORDS)
        times = len(self.levels)
        return Rounding.of_sizes(
            np.append(np.tile(centre, times), np.zeros(self.dimension)),
            np.append(np.tile(units, times), largest),
            np.zeros((times + 1) * self.dimension),
            self.guarantee.epsilon,
        )

    def prepare(self, X: Any, y: Any) -> Records:
        """Records, validated and clipped, each by itself; one of zeros, which adds nothing, for none. Private."""
        records = self.first.records(X, y)
        if not records.num_records:
            return Records(np.zeros((1, self.dimension)), np.zeros(1))
        return records

    def target(self, data: Records) -> CurvesTarget:
        """The density for these records. Private."""
        given = jax.tree.map(np.asarray, (self.first.loss, self.first.domain))
        loss, domain = given
        return CurvesTarget(
            loss, data, domain, self.norm, np.asarray(self.rate), np.array(self.levels), np.array(self.vertices)
        )

    def draws(
        self,
        data: Records,
        sampler: GradientSpace | Exact,
        key: PRNGKeyArray,
        num_draws: int | None,
        progress: bool | None = False,
    ) -> CurveDraws:
        """The chain's positions after its warm-up, or of None the last one of `num_sweeps`; or exact draws. Private."""
        if isinstance(sampler, Exact):
            return self._exact_draws(data, sampler, key, num_draws or 1, progress)
        wanted = sampler.num_sweeps if num_draws is None else sampler.num_warmup + num_draws
        with float64(), programs_run_once() if wanted <= _FEW else contextlib.nullcontext():
            target, mixture = self.target(data), jnp.asarray(sampler.mixture)
            centre = jnp.asarray(estimate(self.first, data))
            given = target, centre, jnp.asarray(self.direction), mixture, jax.random.fold_in(key, 0)
            starts, state = gradient_space_of_curves.start(*given)
            block = min(sampler.sweeps_a_block, wanted)
            parts, shares = [], []
            for number in itertools.count(1):
                block_key = jax.random.fold_in(key, number)
                state, visited, accepted = gradient_space_of_curves.advance(
                    target, starts, state, mixture, block_key, block
                )
                parts.append(jax.tree.map(np.asarray, visited))
                shares.append(np.asarray(accepted))
                if number * block >= wanted:
                    break
            every = jax.tree.map(lambda *blocks: np.concatenate(blocks)[:wanted], *parts)
        kept = slice(wanted - (num_draws or 1), wanted)
        return CurveDraws(every.curves[kept], every.totals[kept], every.log_density[kept], float(np.mean(shares)))

    def centres(self, data: Records) -> Float[np.ndarray, "levels dimension"]:
        """Estimates without privacy of all levels, about which exact draws are sought. Private."""
        one = [eqx.tree_at(lambda first: first.loss.tau, self.first, jnp.asarray(level)) for level in self.levels]
        return np.array([np.asarray(estimate(mechanism, data)) for mechanism in one])

    def _exact_draws(
        self, data: Records, sampler: Exact, key: PRNGKeyArray, num_draws: int, progress: bool | None
    ) -> CurveDraws:
        """Independent draws from f. Raises RuntimeError where the search reached its public limit."""
        with float64(), programs_run_once():
            target = self.target(data)
            envelope = prepare(target, self.centres(data))
            found = draw_from(envelope, target, key, num_draws, sampler.most_proposals, progress)
            require_success(found.succeeded)
            logs = [float(_log_density(target, *map(jnp.asarray, one))) for one in zip(*found[:2], strict=True)]
        return CurveDraws(found.curves, found.totals, np.array(logs), found.accepted / found.proposals)

    def draw(
        self, data: Records, sampler: GradientSpace | Exact, key: PRNGKeyArray, progress: bool | None = False
    ) -> Float[np.ndarray, " numbers"]:
        """One exact draw, or what one chain ends with, before it is rounded: all coefficients, level by level, then T.

        Private.
        """
        ended = self.draws(data, sampler, key, None, progress)
        return np.append(ended.curves[-1].reshape(-1), ended.totals[-1])

    def log_density(self, curves: Any, totals: Any, data: Records) -> float:
        """log f(θ, T), unnormalised; -inf where curves cross or leave Θ. Private."""
        with float64(), programs_run_once():
            return float(_log_density(self.target(data), jnp.asarray(curves), jnp.asarray(totals)))


def require_sampler_of_curves(sampler: Any) -> GradientSpace | Exact:
    """The sampler that was named. Raises ValueError or TypeError where none was, or one that does not serve."""
    if sampler is None:
        raise ValueError(NAME_A_SAMPLER)
    if isinstance(sampler, Exact):
        if sampler.least_records is not None:
            raise ValueError("least_records is of one regression: leave it out of Exact for order='joint'")
        return sampler
    if not isinstance(sampler, GradientSpace):
        raise TypeError(
            f"the joint density is drawn by kngjax.Exact() or kngjax.GradientSpace(), not by a {type(sampler).__name__}"
        )
    if sampler.num_sweeps < 1:
        raise ValueError(f"a release makes a proposal: num_sweeps must be at least 1, got {sampler.num_sweeps}")
    return sampler


def _checked(norm: Any, dimension: int) -> AbstractNorm:
    """Raises TypeError for what is no norm, and ValueError for one of another number of coefficients."""
    if not isinstance(norm, AbstractNorm):
        raise TypeError(f"norm must be a norm like kngjax.L2(), not a {type(norm).__name__}")
    if isinstance(norm, WeightedLInf) and np.shape(norm.weights) != (dimension,):
        raise ValueError(f"the weights of WeightedLInf must be {dimension} here, one a coefficient")
    return norm


@Compiled
def _log_density(target, curves, totals):
    return target.log_density(curves, totals)


def _upwards(vertices: np.ndarray, has_intercept: bool) -> np.ndarray:
    """β with x'β > 0 at all vertices but 0. Raises ValueError where there is none: the cone has no interior then."""
    dimension = vertices.shape[1]
    if has_intercept:
        return np.eye(dimension)[0]
    sizes = np.max(np.abs(vertices), axis=1)
    rows = vertices[sizes > 0.0] / sizes[sizes > 0.0, None]
    found = scipy.optimize.linprog(
        np.append(np.zeros(dimension), -1.0),
        A_ub=np.column_stack([-rows, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1.0, 1.0)] * dimension + [(None, 1.0)],
    )
    if not found.success or not found.x[-1] > 1e-9:
        raise ValueError(
            "no two different curves keep their order on all of the bounds of x: give bounds with an intercept, or a "
            "column that is positive"
        )
    return found.x[:-1]
