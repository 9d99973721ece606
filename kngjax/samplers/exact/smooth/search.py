"""A search for draws, driven from the host: proposals in batches, then one solution of ∇ℓ(θ) = z each that is left.

See `kngjax.samplers.exact.smooth.proposals` for what is proposed, and what it is accepted with. A factor above 1 would
contradict the proof, and a z of which neither a solution nor its absence was found leaves the law unknown: either ends
the search as failed.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.core.arrays import Vector
from kngjax.core.compiling import Compiled
from kngjax.samplers.exact.smooth.certificate import NUM_RADII, certify
from kngjax.samplers.exact.smooth.envelope import MARGIN, Envelope, build
from kngjax.samplers.exact.smooth.moments import is_affordable, least_curvatures
from kngjax.samplers.exact.smooth.proposals import Proposals, lengths, propose, solutions
from kngjax.samplers.newton import evaluate
from kngjax.samplers.target import Target

# Proposals in one compiled call, and solutions in one.
_PROPOSED, _SOLVED = (4, 64, 1024, 2**15), (4, 128)
# Log of how many times the core's mass an envelope may have before fourth moments are computed for a better one.
ENOUGH_LOG_EXCESS = 0.3


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
    envelopes = [jax.tree.map(np.asarray, _envelope_about(target, reference)) for reference in references]
    return min(envelopes, key=lambda envelope: np.logaddexp.reduce(envelope.log_masses))


def _envelope_about(target: Target, centre: np.ndarray) -> Envelope:
    envelope = _build(target, centre, np.full(NUM_RADII, -np.inf))
    # A better bound pays where the envelope is far above the density.
    if not (ENOUGH_LOG_EXCESS < float(envelope.log_excess) < np.inf and is_affordable(target)):
        return envelope
    # Where float64 overflows nothing is certain; that a release fails must not tell of it.
    try:
        with np.errstate(all="ignore"):
            averages = least_curvatures(target, envelope.certificate)
    except (np.linalg.LinAlgError, ValueError):
        return envelope
    return _build(target, centre, averages)


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
        solution = _solve(
            target, envelope.certificate.point, *_padded(some[shells], part, proposals.z, proposals.bound)
        )
        points, log_ratios, unsettled, inside = (np.array(found)[: shells.size] for found in solution)
        settled = not (unsettled | (inside & np.isnan(log_ratios))).any()
        worst = float(np.max(log_ratios, where=inside, initial=-np.inf))
        theta[shells], accepted[shells] = points, inside & (log_left[shells] <= log_ratios)
    if (pieces := np.flatnonzero(~of_shell)).size:
        scores = np.array(_lengths(target, *_padded(pieces, part, theta)))[: pieces.size]
        log_ratios = envelope.floors[component[pieces] - num_shells] - scores
        beyond = scores >= envelope.edges[-1]
        worst = max(worst, float(np.max(log_ratios, where=beyond, initial=-np.inf)))
        accepted[pieces] = beyond & (log_left[pieces] <= log_ratios)
    return Judged(theta, accepted, settled, worst)


def _smallest(sizes: tuple[int, ...], wanted: float) -> int:
    """The first of these sizes that is enough, or the last: each is compiled once."""
    return next((size for size in sizes if size >= wanted), sizes[-1])


def _padded(places: np.ndarray, length: int, *arrays: Any) -> list[np.ndarray]:
    """The rows at these places, repeated to this length: no other program is compiled."""
    repeated = np.resize(places, length)
    return [array[repeated] for array in arrays]


@Compiled
def _lies_within(target: Target, theta: Array) -> Array:
    return target.domain.contains(theta)


@Compiled
def _build(target: Target, theta: Array, averages: Array) -> Envelope:
    return build(target, certify(target, evaluate(target, theta), averages))


_propose = functools.partial(Compiled, static_argnames="batch")(propose)
_solve = Compiled(solutions)
_lengths = Compiled(lengths)
