"""Rejection from the envelope: proposals without the records, then one solution of ∇ℓ(θ) = z each that is left.

A proposal z of a shell is accepted with probability exp(-(t - t_{k-1}))·exp(E(z) - E_k), which needs no record, times
1_Θ(θ(z))·(det H₀/det H(θ(z)))·exp(-E(z)), which is at most 1 by the certificate; a proposal θ of a piece of Θ with
probability exp(T_g - c‖∇ℓ(θ)‖_K) if c‖∇ℓ(θ)‖_K ≥ t_K. What was accepted has exactly the law f, in whatever order.

A factor above 1 would contradict the proof, and a z of which neither a solution nor its absence was found leaves the
law unknown: either ends the search as failed.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.core.arrays import Vector
from kngjax.core.compiling import Compiled
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.exact.smooth.certificate import bound_log_determinant, certify, trivial
from kngjax.samplers.exact.smooth.envelope import MARGIN, Envelope, build, farthest_length, uniform
from kngjax.samplers.exact.smooth.moments import is_affordable
from kngjax.samplers.newton import Point, evaluate, gradient, log_determinant, solve
from kngjax.samplers.target import Target

# Proposals in one compiled call, and solutions in one.
_PROPOSED, _SOLVED = (4, 64, 1024, 2**15), (4, 128)
# Log of how many times the core's mass an envelope may have before fourth moments are computed for a better one.
ENOUGH_LOG_EXCESS = 0.3
# Beyond this condition number of H₀, with columns scaled alike, it counts as singular.
_WORST_CONDITION = 1e10


class Proposals(NamedTuple):
    """One batch.

    **Arguments:** `component`: shells, then pieces. `z`, `theta`: of either kind. `first`: log of a shell's first
    probability. `log_left`: log of what its uniform variable leaves for the second, -inf where the first refused it;
    for a piece log of the variable itself. `bound`: E(z). `within`: whether θ belongs to its piece and to Θ.
    """

    component: Array
    z: Array
    theta: Array
    first: Array
    log_left: Array
    bound: Array
    within: Array


class Judged(NamedTuple):
    """What became of some proposals.

    **Arguments:** `theta`, `accepted`: of each. `settled`: whether float64 could tell. `worst`: the largest log of a
    probability of acceptance, which the proof says is at most 0.
    """

    theta: np.ndarray
    accepted: np.ndarray
    settled: bool
    worst: float


class Found(NamedTuple):
    """Draws and counts; owner-only.

    **Arguments:** `draws`: shape (draws, d). `succeeded`. `accepted`, of `proposals`, and `solutions`: how many.
    `worst`: the largest log of a probability of acceptance, which the proof says is at most 0.
    """

    draws: Float[np.ndarray, "draws dimension"]
    succeeded: bool
    accepted: int
    proposals: int
    solutions: int
    worst: float


def prepare(target: Target, centre: Vector) -> Envelope:
    """The envelope of the least mass about an estimate of θ, any point, or about where Θ ends on the way to it.

    About the middle of Θ where the estimate is no number.

    Uniform where the Hessian there is nearly singular: there ∇ℓ may not be one to one, and float64 does not tell.
    """
    centre = np.asarray(centre, np.float64)
    if not np.all(np.isfinite(centre)):
        centre = np.asarray(target.domain.interior_point(target.dimension))
    references = [centre]
    if not _lies_within(target, centre):
        references.append(_pulled_in(target, centre))
    envelopes = [_envelope_about(target, reference) for reference in references]
    return min(envelopes, key=lambda envelope: np.logaddexp.reduce(envelope.log_masses))


def _envelope_about(target: Target, centre: np.ndarray) -> Envelope:
    point, log_determinant_here = jax.tree.map(np.array, _evaluate(target, centre))

    def about(by_moments: bool) -> Envelope | None:
        # Where float64 overflows nothing is certain; that a release fails must not tell of it.
        try:
            with np.errstate(all="ignore"):
                condition = _condition(point.inverse_factor)
                if target.data.num_records < target.dimension or not condition <= _WORST_CONDITION:
                    return None
                farthest = farthest_length(target, float(log_determinant_here))
                certificate = certify(target, point, farthest, condition, by_moments)
                envelope = None if certificate is None else build(target, certificate)
        except (np.linalg.LinAlgError, ValueError):
            return None
        return envelope if envelope and not np.isnan(envelope.log_masses).any() else None

    envelope = about(by_moments=False) or uniform(target, trivial(target, centre))
    # A better bound pays where the envelope is far above the density.
    if envelope.log_excess(target) > ENOUGH_LOG_EXCESS and is_affordable(target):
        return about(by_moments=True) or envelope
    return envelope


def _pulled_in(target: Target, centre: np.ndarray) -> np.ndarray:
    """Nearly the last point of Θ on the way from its middle to a point outside, however far off."""
    middle = np.asarray(target.domain.interior_point(target.dimension))
    away = centre / 2 - middle / 2

    def last(shares: np.ndarray) -> float:
        within = np.array(jax.vmap(target.domain.contains)(middle + shares[:, None] * away))
        return float(np.max(shares, where=within, initial=0.0))

    # Θ is convex: first to a factor of 1.2, then more finely.
    coarse = last(np.geomspace(1e-306, 2.0, 4096))
    return middle + 0.98 * last(coarse * np.linspace(1.0, 1.2, 1024)) * away


def draw_from(
    envelope: Envelope,
    target: Target,
    key: PRNGKeyArray,
    num_draws: int,
    max_proposals: int | float,
    progress: bool | None = False,
) -> Found:
    """Independent draws; `succeeded` is False where the public limit was reached or the proof was contradicted.

    `progress`: whether a bar shows how many draws were found, and of how many proposals; None on a terminal only.
    """
    num_shells, hidden = envelope.heights.size, None if progress is None else not progress
    kept, count, tried, solved, worst, number, settled = [], 0, 0, 0, -np.inf, 0, True
    with tqdm(total=num_draws, unit="draw", disable=hidden) as bar:
        while count < num_draws and tried < max_proposals and settled and worst <= MARGIN:
            batch = _smallest(_PROPOSED, 1.2 * (num_draws - count) * max(tried, 1) / max(count, 0.5))
            proposals = jax.tree.map(np.array, _propose(target, envelope, key, number, batch))
            of_shell = proposals.component < num_shells
            # What is no number is no proof: the law would not be known.
            settled = not np.isnan(proposals.first[of_shell]).any()
            worst = max(worst, float(np.max(proposals.first, where=of_shell, initial=-np.inf)))
            left = np.flatnonzero(np.where(of_shell, proposals.log_left > -np.inf, proposals.within))
            # In their order and one part after the other, so that what comes after the last draw is not looked at.
            while left.size and count < num_draws and settled and worst <= MARGIN:
                part = _smallest(_SOLVED, 1.2 * (num_draws - count) * max(solved, 1) / max(count, 0.5))
                some, left = left[:part], left[part:]
                judged = _judge(target, envelope, proposals, some, part)
                kept.append(judged.theta[judged.accepted])
                count, solved = count + int(judged.accepted.sum()), solved + int(of_shell[some].sum())
                settled, worst = judged.settled, max(worst, judged.worst)
            tried, number = tried + (int(left[0]) if left.size else batch), number + 1
            bar.update(min(count, num_draws) - bar.n)
            bar.set_postfix_str(f"{tried} proposals")
    succeeded = count >= num_draws and settled and worst <= MARGIN
    draws = np.concatenate(kept)[:num_draws] if succeeded else np.zeros((0, target.dimension))
    return Found(draws, succeeded, count, tried, solved, worst)


def _judge(target: Target, envelope: Envelope, proposals: Proposals, some: np.ndarray, part: int) -> Judged:
    """The proposals at these places, at most `part` of them."""
    num_shells, worst, settled = envelope.heights.size, -np.inf, True
    accepted, theta = np.zeros(some.size, bool), np.asarray(proposals.theta)[some]
    component, log_left = proposals.component[some], proposals.log_left[some]
    of_shell = component < num_shells
    if (shells := np.flatnonzero(of_shell)).size:
        solution = _solve(target, envelope, *_padded(some[shells], part, proposals.z, proposals.bound))
        points, log_ratios, unsettled, inside = (np.array(found)[: shells.size] for found in solution)
        settled = not (unsettled | (inside & np.isnan(log_ratios))).any()
        worst = float(np.max(log_ratios, where=inside, initial=-np.inf))
        theta[shells], accepted[shells] = points, inside & (log_left[shells] <= log_ratios)
    if (pieces := np.flatnonzero(~of_shell)).size:
        lengths = np.array(_length(target, *_padded(pieces, part, theta)))[: pieces.size]
        log_ratios = envelope.floors[component[pieces] - num_shells] - lengths
        beyond = lengths >= envelope.edges[-1]
        worst = max(worst, float(np.max(log_ratios, where=beyond, initial=-np.inf)))
        accepted[pieces] = beyond & (log_left[pieces] <= log_ratios)
    return Judged(theta, accepted, settled, worst)


def _smallest(sizes: tuple[int, ...], wanted: float) -> int:
    """The first of these sizes that is enough, or the last: each is compiled once."""
    return next((size for size in sizes if size >= wanted), sizes[-1])


def _condition(inverse_factor: np.ndarray) -> float:
    """κ of H₀ = LL' with its rows and columns scaled to a diagonal of ones; infinite where L^{-1} is not finite."""
    if not np.all(np.isfinite(inverse_factor)):
        return np.inf
    factor = np.linalg.inv(inverse_factor)
    values = np.linalg.eigvalsh(_with_unit_diagonal(factor @ factor.T))
    return float(values[-1] / values[0]) if values[0] > 0.0 else np.inf


def _with_unit_diagonal(matrix: np.ndarray) -> np.ndarray:
    scales = np.sqrt(np.diagonal(matrix))
    return matrix / scales[:, None] / scales[None, :]


def _padded(places: np.ndarray, length: int, *arrays: Any) -> list[np.ndarray]:
    """The rows at these places, repeated to this length: no other program is compiled."""
    repeated = np.resize(places, length)
    return [array[repeated] for array in arrays]


@Compiled
def _lies_within(target: Target, theta: Array) -> Array:
    return target.domain.contains(theta)


@Compiled
def _evaluate(target: Target, theta: Array) -> tuple[Point, Array]:
    point = evaluate(target, theta)
    return point, log_determinant(point)


@functools.partial(Compiled, static_argnames="batch")
def _propose(target: Target, envelope: Envelope, key: PRNGKeyArray, number: int | Array, batch: int) -> Proposals:
    norm, domain, loss, dimension = target.norm, target.domain, target.loss, target.dimension
    assert norm is not None
    assert isinstance(loss, AbstractPredictorLoss)
    certificate, point = envelope.certificate, envelope.certificate.point
    keys = jax.random.split(jax.random.fold_in(key, number), 5)
    masses = jnp.asarray(envelope.log_masses)
    component = jax.random.categorical(keys[0], masses, shape=(batch,))
    uniforms = jax.random.uniform(keys[1], (2, batch))
    # 1 - U lies in (0, 1], where its logarithm is finite.
    log_uniform = jnp.log1p(-uniforms[1])
    num_shells = envelope.heights.shape[0]

    # Shells: t^d is uniform between its ends, the direction that of a uniform point of the ball.
    shell = jnp.minimum(component, num_shells - 1)
    edges = jnp.asarray(envelope.edges)
    inner, outer = edges[shell], edges[shell + 1]
    share = (inner / jnp.where(outer > 0, outer, 1.0)) ** dimension
    length = outer * (share + (1.0 - share) * uniforms[0]) ** (1.0 / dimension)
    balls = norm.draw_from_ball(keys[2], (batch,), dimension)
    z = (length / target.rate / jax.vmap(norm)(balls))[:, None] * balls
    bound = jax.vmap(lambda one: bound_log_determinant(certificate, loss, one))(z)
    heights = jnp.asarray(envelope.heights)[shell]
    # The first stage refuses with probability 1 - e^a; given that it did not, U·e^-a is uniform again.
    first = (inner - length) + (bound - heights)
    left = jnp.where(log_uniform <= first, log_uniform - first, -jnp.inf)

    # Pieces of Θ: between two ellipsoids, or all of Θ beyond the last.
    radii = jnp.asarray(envelope.radii)
    piece = jnp.clip(component - num_shells, 0, radii.shape[0] - 1)
    is_last = radii[piece] >= radii[-1]
    inner, outer = radii[piece], radii[jnp.minimum(piece + 1, radii.shape[0] - 1)]
    share = jnp.where(is_last, 0.0, (inner / jnp.where(outer > 0, outer, 1.0)) ** dimension)
    radius = outer * (share + (1.0 - share) * uniforms[0]) ** (1.0 / dimension)
    normals = jax.random.normal(keys[3], (batch, dimension))
    steps = (radius / jnp.linalg.norm(normals, axis=1))[:, None] * normals
    middle = jnp.asarray(point.theta)[None]
    near = middle + steps @ jnp.asarray(point.inverse_factor)
    theta = jnp.where(is_last[:, None], domain.draw(keys[4], (batch,), dimension), near)
    factor = jnp.linalg.inv(jnp.asarray(point.inverse_factor))
    distance = jnp.linalg.norm((theta - middle) @ factor, axis=1)
    within = jax.vmap(domain.contains)(theta) & (~is_last | (distance >= radii[-1]))
    is_shell = component < num_shells
    return Proposals(component, z, theta, first, jnp.where(is_shell, left, log_uniform), bound, within)


@Compiled
def _solve(target: Target, envelope: Envelope, values: Array, bounds: Array) -> tuple[Array, Array, Array, Array]:
    """θ(z), the log of the second stage's probability, whether z was left unsettled, and whether θ(z) lies in Θ."""
    start = jax.tree.map(jnp.asarray, envelope.certificate.point)
    solutions = jax.vmap(lambda value: solve(target, start, value))(values)
    # The search ends within 1e-6 of z in units of its noise; two whole steps leave nothing but rounding.
    points = jax.vmap(lambda point, value: _step(target, _step(target, point, value), value))(solutions.point, values)
    log_ratios = log_determinant(start) - jax.vmap(log_determinant)(points) - bounds
    inside = solutions.found & jax.vmap(target.domain.contains)(points.theta)
    return points.theta, log_ratios, solutions.unsettled, inside


def _step(target: Target, point: Point, value: Array) -> Point:
    """The point after one whole step of Newton's method towards ∇ℓ(θ) = value."""
    scaled = point.inverse_factor @ (point.gradient - value)
    return evaluate(target, point.theta - scaled @ point.inverse_factor)


@Compiled
def _length(target: Target, theta: Array) -> Array:
    assert target.norm is not None
    norm = target.norm
    return target.rate * jax.vmap(lambda one: norm(gradient(target, one)))(theta)
