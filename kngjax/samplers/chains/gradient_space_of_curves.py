"""Independence Metropolis-Hastings for curves of several levels, in the space of the sums in their bins.

η_k = H_k(θ) - π_k T takes (θ, T) to R^{(m+1)d}. With S = Σ_i x_i and G_j = Σ_{k<j} H_k the sum of x_i over the shares
below curve j,

    Σ_k η_k = S - T,    z_j = Σ_{k<j} η_k - τ_j Σ_k η_k = G_j(θ_j) - τ_j S = ∇ℓ_{τ_j}(θ_j)

which is the gradient of the smoothed check loss of level j alone. (η_0, ..., η_m) ↦ (z_1, ..., z_m, Σ η) has
determinant ±1, and so the map from (θ, T) has the determinant ∏_j det ∇²ℓ(θ_j): in η the density is that of m + 1
independent K-norm noises of rate c, over this product. So draw those, take T = S - Σ η, solve ∇ℓ_{τ_j}(θ_j) = z_j for
each level by itself, and weigh by f/q = ∏_j 1/det ∇²ℓ(θ_j); what lies outside of Θ or crosses is rejected.

A public share of the proposals comes from the base measure, ordered where x is in the middle of the polytope, with T =
S - noise. There f/q is bounded, since Σ_k ‖η_k‖ ≥ ‖S - T‖.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.compiling import Compiled
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.samplers.curves_target import Curves, CurvesTarget
from kngjax.samplers.newton import Point, evaluate, log_determinant, solve

_PROPOSALS_A_BATCH = 48


class WeightedCurves(NamedTuple):
    """Curves with their totals, or several with a leading axis.

    **Arguments:** `curves`: shape (m, d). `totals`: T, shape (d,). `log_weight`: log f - log q up to a constant, -inf
    for what is never accepted. `log_density`: log f.
    """

    curves: Float[Array, "*points levels dimension"]
    totals: Float[Array, "*points dimension"]
    log_weight: Float[Array, "*points"]
    log_density: Float[Array, "*points"]


def first_points(target: CurvesTarget, centre: Vector) -> Point:
    """For each level where Newton's method starts: its estimate, or if there is none in Θ the one at the level ½.

    **Arguments:** `centre`: an estimate at ½, on which no law depends. Private.
    """
    one, totals = target.of_one, target.totals()
    interior = one.domain.interior_point(one.dimension)
    centre = jnp.where(jnp.all(jnp.isfinite(centre)) & one.domain.contains(centre), centre, interior)
    start = evaluate(one, centre)

    def of_level(level):
        found = solve(one, start, (level - 0.5) * totals)
        return jax.tree.map(lambda new, old: jnp.where(found.found, new, old), found.point, start)

    return jax.lax.map(of_level, jnp.asarray(target.levels))


def proposals(
    target: CurvesTarget, starts: Point, mixture: Scalar, key: PRNGKeyArray, from_base: Bool[Array, " proposals"]
) -> WeightedCurves:
    """Independent draws from q with their weights. Private.

    **Arguments:** `starts`: from `first_points`. `from_base`: which ones are drawn from the base measure.
    """
    number = from_base.shape[0]
    num_levels, dimension = target.levels.shape[0], target.dimension
    noise_key, base_key = jax.random.split(key)
    noises = k_norm_noise(target.norm, noise_key, target.rate, (number, num_levels + 1), dimension)
    anywhere = _ordered(target, target.domain.draw(base_key, (number, num_levels), dimension))
    one, totals, levels = target.of_one, target.totals(), jnp.asarray(target.levels)

    def proposed(given):
        noise, anywhere, from_base = given
        together = jnp.sum(noise, axis=0)
        values = jnp.cumsum(noise, axis=0)[:-1] - jnp.outer(levels, together)
        solutions = jax.vmap(functools.partial(solve, one))(starts, values + jnp.outer(levels - 0.5, totals))
        curves = jnp.where(from_base, anywhere, solutions.point.theta)
        weighted = weigh(target, mixture, curves, totals - jnp.where(from_base, noise[0], together))
        allowed = from_base | jnp.all(solutions.found)
        return weighted._replace(log_weight=jnp.where(allowed, weighted.log_weight, -jnp.inf))

    batch = max(1, min(number, _PROPOSALS_A_BATCH // num_levels))
    return jax.lax.map(proposed, (noises, anywhere, from_base), batch_size=batch)


def weigh(target: CurvesTarget, mixture: Scalar, curves: Curves, totals: Vector) -> WeightedCurves:
    """Curves and totals with their weight f/q, of the point itself. Private."""
    num_levels, dimension = target.levels.shape[0], target.dimension
    points = jax.vmap(functools.partial(evaluate, target.of_one))(curves)
    determinants = jax.vmap(log_determinant)(points)
    log_determinants = jnp.sum(jnp.where(jnp.isfinite(determinants), determinants, -jnp.inf))
    log_mass = k_norm_log_mass(target.norm, target.rate, dimension)
    score, log_base = target.score(curves, totals), target.log_base(curves)
    log_solved = jnp.log1p(-mixture) + log_determinants - (num_levels + 1) * log_mass - target.rate * score
    log_anywhere = jnp.log(mixture) + math.lgamma(num_levels + 1) + log_base - log_mass
    log_anywhere -= target.rate * target.norm(target.totals() - totals)
    log_density = log_base - target.rate * score
    log_weight = log_density - jnp.logaddexp(log_solved, log_anywhere)
    log_weight = jnp.where(jnp.isfinite(log_density), log_weight, -jnp.inf)
    return WeightedCurves(jnp.asarray(curves), jnp.asarray(totals), log_weight, log_density)


def spread_curves(target: CurvesTarget, direction: Vector) -> Curves:
    """Curves through the middle of Θ along one line, where a chain starts. Public.

    **Arguments:** `direction`: β with x'β > 0 on the polytope, so that they do not cross.
    """
    middle, number = target.domain.interior_point(target.dimension), target.levels.shape[0]
    lower, upper = target.domain.chord(middle, direction)
    places = lower + (upper - lower) * (jnp.arange(number) + 1.0) / (number + 1.0)
    return jnp.broadcast_to(middle, (number, target.dimension)) + jnp.outer(places, direction)


def _ordered(
    target: CurvesTarget, curves: Float[Array, "points levels dimension"]
) -> Float[Array, "points levels dimension"]:
    """In the order of x'θ in the middle of the polytope."""
    order = jnp.argsort(curves @ jnp.mean(jnp.asarray(target.vertices), axis=0), axis=1)
    return jnp.take_along_axis(curves, order[:, :, None], axis=1)


@Compiled
def start(
    target: CurvesTarget, centre: Vector, direction: Vector, mixture: Scalar, key: PRNGKeyArray
) -> tuple[Point, WeightedCurves]:
    """What all proposals are made with, and the point where the chain starts: spread curves, and S with noise. Private.

    **Arguments:** `centre`: as of `first_points`. `direction`: as of `spread_curves`. `mixture`: m, public.
    """
    noise = k_norm_noise(target.norm, key, target.rate, (), target.dimension)
    first = weigh(target, mixture, spread_curves(target, direction), target.totals() - noise)
    return first_points(target, centre), first


@functools.partial(Compiled, static_argnames="number")
def advance(
    target: CurvesTarget, starts: Point, state: WeightedCurves, mixture: Scalar, key: PRNGKeyArray, number: int
) -> tuple[WeightedCurves, WeightedCurves, Float[Array, " proposals"]]:
    """So many proposals: where the chain is then, where it was after each, and whether each was accepted. Private."""
    proposal_key, choice_key = jax.random.split(key)
    choices, levels = jax.random.uniform(choice_key, (2, number))
    candidates = proposals(target, starts, mixture, proposal_key, choices < mixture)
    thresholds = -jnp.log1p(-levels)

    def step(current, given):
        candidate, threshold = given
        accept = current.log_weight - candidate.log_weight < threshold
        current = jax.tree.map(lambda new, old: jnp.where(accept, new, old), candidate, current)
        return current, (current, accept.astype(float))

    state, (visited, accepted) = jax.lax.scan(step, state, (candidates, thresholds))
    return state, visited, accepted
