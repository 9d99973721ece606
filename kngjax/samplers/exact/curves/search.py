"""A search for independent draws of all curves and T, driven from the host: proposals in batches, then solutions.

A proposal η of a shell is accepted with probability exp(-(r - t_{k-1}))·exp(Σ_j E_j(z_j) - E_k), which needs no
record, times 1{θ_j ∈ Θ, in order}·∏_j (det H_j⁰/det H_j(θ_j))·exp(-E_j(z_j)); one (θ, T) of a piece, if r ≥ t_K, with
probability exp((1 - a)s_{g-1} + ac‖S - T‖ - r). See `kngjax.samplers.exact.curves.envelope`: all are at most 1, and one
above 1 would contradict the proof. It ends the search as failed, and so does a z of which neither a solution nor its
absence was found.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.core.compiling import Compiled
from kngjax.geometry.norms import k_norm_noise
from kngjax.samplers.curves_target import CurvesTarget
from kngjax.samplers.exact.curves.envelope import CurvesEnvelope, multiples
from kngjax.samplers.exact.smooth.certificate import Certificate, bound_log_determinant
from kngjax.samplers.exact.smooth.envelope import MARGIN
from kngjax.samplers.exact.smooth.proposals import components, solutions

# Proposals in one compiled call, and solutions in one.
_PROPOSED, _SOLVED = (16, 512, 8192), 4


class Found(NamedTuple):
    """Draws and counts; owner-only.

    **Arguments:** `curves`: shape (draws, m, d). `totals`: T, shape (draws, d). `succeeded`. `accepted`, `proposals`.
    `worst`: the largest log of a probability of acceptance, which the proof says is at most 0.
    """

    curves: Float[np.ndarray, "draws levels dimension"]
    totals: Float[np.ndarray, "draws dimension"]
    succeeded: bool
    accepted: int
    proposals: int
    worst: float


class Proposals(NamedTuple):
    """One batch.

    **Arguments:** `of_shell`: of which kind. `z`: of a shell, shape (batch, m, d). `curves`: of a piece. `totals`: T.
    `first`: log of the first probability of a shell, or of that of a piece, -∞ where it belongs to none. `log_left`:
    log of what the uniform variable leaves for a second one, -∞ where the first refused it. `bound`: Σ_j E_j.
    """

    of_shell: Array
    z: Array
    curves: Array
    totals: Array
    first: Array
    log_left: Array
    bound: Array


def draw_from(
    envelope: CurvesEnvelope,
    target: CurvesTarget,
    key: PRNGKeyArray,
    num_draws: int,
    max_proposals: int | float,
    progress: bool | None = False,
) -> Found:
    """Independent draws; `succeeded` is False where the public limit was reached or the proof was contradicted.

    `progress`: whether a bar shows how many draws were found, and of how many proposals; None on a terminal only.
    """
    hidden = None if progress is None else not progress
    parts, count, tried, worst, number, settled = [], 0, 0, -np.inf, 0, True
    with tqdm(total=num_draws, unit="draw", disable=hidden) as bar:
        while count < num_draws and tried < max_proposals and settled and worst <= MARGIN:
            wanted = 1.2 * (num_draws - count) * max(tried, 1) / max(count, 0.5)
            batch = next((size for size in _PROPOSED if size >= wanted), _PROPOSED[-1])
            made = jax.tree.map(np.array, _propose(target, envelope, key, number, batch))
            # What is no number is no proof: the law would not be known.
            settled = not np.isnan(made.first).any()
            worst = max(worst, float(np.max(made.first)))
            left, number = np.flatnonzero(made.log_left > -np.inf), number + 1
            # In their order, so that what comes after the last draw is not looked at.
            while left.size and count < num_draws and settled and worst <= MARGIN:
                some, left = left[:_SOLVED], left[_SOLVED:]
                padded = np.resize(some, _SOLVED)
                solved = _solve(target, envelope.certificates, made.z[padded], made.bound[padded])
                points, log_ratios, unsettled, inside = (np.array(part)[: some.size] for part in solved)
                of_shell = made.of_shell[some]
                settled = not (of_shell & (unsettled | (inside & np.isnan(log_ratios)))).any()
                worst = max(worst, float(np.max(log_ratios, where=of_shell & inside, initial=-np.inf)))
                accepted = ~of_shell | (inside & (made.log_left[some] <= log_ratios))
                curves = np.where(of_shell[:, None, None], points, made.curves[some])[accepted]
                parts.append((curves, made.totals[some][accepted]))
                count += len(curves)
            tried += int(left[0]) if left.size else batch
            bar.update(min(count, num_draws) - bar.n)
            bar.set_postfix_str(f"{tried} proposals")
    succeeded = count >= num_draws and settled and worst <= MARGIN
    if not succeeded:
        m, d = len(np.asarray(target.levels)), target.dimension
        return Found(np.zeros((0, m, d)), np.zeros((0, d)), False, count, tried, worst)
    curves, totals = (np.concatenate(each)[:num_draws] for each in zip(*parts, strict=True))
    return Found(curves, totals, True, count, tried, worst)


@functools.partial(Compiled, static_argnames="batch")
def _propose(target: CurvesTarget, envelope: CurvesEnvelope, key: PRNGKeyArray, number: Array, batch: int) -> Proposals:
    """So many independent proposals, the batch of this number."""
    norm, one, d, m = target.norm, target.of_one, target.dimension, target.levels.shape[0]
    keys = jax.random.split(jax.random.fold_in(key, number), 5)
    of_component, of_length, of_acceptance = jax.random.uniform(keys[0], (3, batch))
    component = components(jnp.asarray(envelope.log_masses), of_component)
    # 1 - U lies in (0, 1], where its logarithm is finite.
    log_uniform = jnp.log1p(-of_acceptance)
    num_shells, all_totals = envelope.heights.shape[0], target.totals()
    of_shell = component < num_shells

    # Shells: r^D is uniform between its ends.
    shell, edges = jnp.minimum(component, num_shells - 1), jnp.asarray(envelope.edges)
    inner, outer = edges[shell], edges[shell + 1]
    share = (inner / outer) ** ((m + 1) * d)
    length = outer * (share + (1.0 - share) * of_length) ** (1.0 / ((m + 1) * d))
    noises = k_norm_noise(norm, keys[1], target.rate, (batch, m + 1), d)
    sizes = jnp.sum(jax.vmap(jax.vmap(norm))(noises), axis=1)
    eta = (length / target.rate / sizes)[:, None, None] * noises
    z = jnp.einsum("jk,bkd->bjd", multiples(jnp.asarray(target.levels)), eta)

    def bounded(values):
        bounds = jax.vmap(lambda certificate, value: bound_log_determinant(certificate, target.loss, value))
        return jnp.sum(bounds(envelope.certificates, values))

    bound = jax.vmap(bounded)(z)
    first = (inner - length) + (bound - jnp.asarray(envelope.heights)[shell])

    # Pieces: each curve from an ellipsoid or from Θ.
    piece = jnp.clip(component - num_shells, 0, envelope.floors.shape[0] - 1)
    radii, floors, shares = (jnp.asarray(part)[piece] for part in (envelope.radii, envelope.floors, envelope.shares))
    points = envelope.certificates.point
    normals = jax.random.normal(keys[2], (batch, m, d))
    lengths = jax.random.uniform(keys[3], (batch, m)) ** (1.0 / d)
    steps = (jnp.where(jnp.isinf(radii), 0.0, radii) * lengths / jnp.linalg.norm(normals, axis=2))[..., None] * normals
    near = jnp.asarray(points.theta)[None] + jnp.einsum("bjk,jkd->bjd", steps, jnp.asarray(points.inverse_factor))
    anywhere_key, noise_key = jax.random.split(keys[4])
    curves = jnp.where(jnp.isinf(radii)[..., None], one.domain.draw(anywhere_key, (batch, m), d), near)
    noise = k_norm_noise(norm, noise_key, 1.0, (batch,), d) / (target.rate * shares)[:, None]
    totals = all_totals[None] - jnp.where(of_shell[:, None], jnp.sum(eta, axis=1), noise)
    away = curves - jnp.asarray(points.theta)[None]
    differences = jnp.einsum("bjd,jdk->bjk", away, jnp.asarray(envelope.certificates.factor))
    within = jnp.linalg.norm(differences, axis=2) <= jnp.asarray(envelope.inner)[piece]
    allowed = jax.vmap(jax.vmap(one.domain.contains))(curves).all(axis=1) & jax.vmap(target.are_in_order)(curves)
    allowed &= ~of_shell & ~(within | jnp.isinf(jnp.asarray(envelope.inner)[piece])).all(axis=1)

    def length_of(given):
        curves, totals, allowed = given
        return jax.lax.cond(allowed, lambda: target.rate * target.score(curves, totals), lambda: jnp.zeros(()))

    lengths = jax.lax.map(length_of, (curves, totals, allowed))
    # A length that is no number is left in, and ends the search.
    allowed &= ~(lengths < envelope.last)
    of_noise = shares * target.rate * jax.vmap(norm)(noise)
    log_piece = jnp.where(allowed, (1.0 - shares) * floors + of_noise - lengths, -jnp.inf)

    first = jnp.where(of_shell, first, log_piece)
    # The first stage refuses with probability 1 - e^a; given that it did not, U·e^-a is uniform again.
    left = jnp.where(log_uniform <= first, log_uniform - first, -jnp.inf)
    return Proposals(of_shell, z, curves, totals, first, left, bound)


@Compiled
def _solve(
    target: CurvesTarget, certificates: Certificate, z: Array, bounds: Array
) -> tuple[Array, Array, Array, Array]:
    """The curves of each z, log of the second probability, and whether they are unsettled, and in Θ^m and in order."""

    def of_level(given):
        shift, point, values = given
        # In gradients at ½, of which those of a level are less by a constant.
        start = point._replace(gradient=point.gradient + shift)
        return solutions(target.of_one, start, values + shift[None], jnp.zeros(values.shape[0]))

    points = jax.tree.map(jnp.asarray, certificates.point)
    found = jax.lax.map(of_level, (target.shifts(), points, jnp.swapaxes(z, 0, 1)))
    curves, log_ratios, unsettled, inside = (jnp.swapaxes(part, 0, 1) for part in found)
    # Where one level certainly has no solution in Θ, nothing is asked of the others.
    is_open = unsettled.any(axis=1) & ~(~inside & ~unsettled).any(axis=1)
    within = inside.all(axis=1) & jax.vmap(target.are_in_order)(curves)
    return curves, jnp.sum(log_ratios, axis=1) - bounds, is_open, within
