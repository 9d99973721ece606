"""A search for draws as one program, which maps over data sets: from the fit to the last accepted proposal.

See `kngjax.chains.exact.smooth.proposals` for what is proposed, and what it is accepted with. A factor above 1 would
contradict the proof, and a z of which neither a solution nor its absence was found leaves the law unknown: either ends
the search as failed. `kngjax.draws.shells` proves the same with every rounding, and has what is left out here: fourth
moments for a better envelope, a reference on the edge of Θ, and patience.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.exact.smooth.gradient_certificate import certify
from kngjax.chains.exact.smooth.gradient_envelope import MARGIN, Envelope, build
from kngjax.chains.exact.smooth.proposals import lengths, propose, solutions
from kngjax.chains.newton import evaluate, solve
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.core.compiling import Compiled

# Of each round: proposals for one that is looked at with records, and at most so many of the latter.
_PROPOSALS_A_SOLUTION, _MOST_SOLUTIONS = 8, 128
# Rounds until a search is given up, and more for each further round that the draws take at least.
_ROUNDS, _FURTHER_ROUNDS = 64, 16
# Searches on the host, each by a key of its own.
_MOST_SEARCHES = 30


class _Search(NamedTuple):
    """**Arguments:** `draws`, of which `count` are found. `round`. `is_sound`: whether nothing spoke against the proof,
    and float64 could tell."""

    draws: Array
    count: Array
    round: Array
    is_sound: Array


def draws_on_the_host(
    target: Target, key: PRNGKeyArray, num_draws: int, centre: Vector | None
) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
    """Returns independent draws by the same program, which is run again with another key where it gave up.

    That it gave up is a fact about its key, and says nothing of what others draw.
    """
    rounds, number = (_ROUNDS, _FURTHER_ROUNDS), 0
    while True:
        draws, succeeded = _program(target, jax.random.fold_in(key, number), num_draws, centre, rounds)
        number += 1
        if bool(succeeded) or number == _MOST_SEARCHES or np.any(np.isinf(np.array(draws))):
            return draws, succeeded


def draws_in_one_program(
    target: Target,
    key: PRNGKeyArray,
    num_draws: int,
    centre: Vector | None,
    rounds: tuple[int, int] | None = None,
) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
    """Returns independent draws, and whether they were found, under jit and vmap over data sets.

    NaN where the search was given up, and infinite where something spoke against the proof or float64 could not tell:
    such draws must not be drawn again.

    **Arguments:** `centre`: where Newton's method for the envelope's reference starts; the middle of Θ where it is None
    or no number. `rounds`: after how many the search is given up, and how many more for each further one that the draws
    take at least; None for those that serve.
    """
    middle = target.domain.interior_point(target.dimension)
    centre = jnp.asarray(middle if centre is None else centre, float)
    centre = jnp.where(jnp.all(jnp.isfinite(centre)), centre, middle)
    fit = solve(target, evaluate(target, centre), jnp.zeros(target.dimension)).point
    envelope = build(target, certify(target, fit))
    part = min(num_draws, _MOST_SOLUTIONS)
    first, further = (_ROUNDS, _FURTHER_ROUNDS) if rounds is None else rounds
    most = first + further * (num_draws // part)

    def is_unfinished(search: _Search) -> Array:
        return (search.count < num_draws) & (search.round < most) & search.is_sound

    def advance(search: _Search) -> _Search:
        theta, is_accepted, is_sound = _round(target, envelope, key, search.round, part)
        # What was accepted goes to the next free places; the rest, and what is too much, to none.
        places = jnp.where(is_accepted, search.count + jnp.cumsum(is_accepted) - 1, num_draws)
        draws = search.draws.at[places].set(theta, mode="drop")
        count = search.count + jnp.sum(is_accepted)
        return _Search(draws, count, search.round + 1, search.is_sound & is_sound)

    begun = _Search(
        jnp.full((num_draws, target.dimension), jnp.nan), jnp.zeros((), int), jnp.zeros((), int), jnp.ones((), bool)
    )
    ended = jax.lax.while_loop(is_unfinished, advance, begun)
    succeeded = (ended.count >= num_draws) & ended.is_sound
    return jnp.where(succeeded, ended.draws, jnp.where(ended.is_sound, jnp.nan, jnp.inf)), succeeded


_program = functools.partial(Compiled, static_argnames=("num_draws", "rounds"))(draws_in_one_program)


def _round(
    target: Target, envelope: Envelope, key: PRNGKeyArray, number: Array, part: int
) -> tuple[Array, Array, Array]:
    """θ of up to `part` proposals that are left of a batch, whether each was accepted, and whether all was sound."""
    proposals = propose(target, envelope, key, number, _PROPOSALS_A_SOLUTION * part)
    num_shells = envelope.heights.shape[0]
    of_shell = proposals.component < num_shells
    is_left = jnp.where(of_shell, proposals.log_left > -jnp.inf, proposals.within)
    # In their order: that the others are not looked at depends on nothing but how many come before them.
    places = jnp.argsort(~is_left, stable=True)[:part]
    is_left_there, of_shell_there = is_left[places], of_shell[places]
    of_shells, of_pieces = is_left_there & of_shell_there, is_left_there & ~of_shell_there
    log_left, middle = proposals.log_left[places], envelope.certificate.point.gradient[None]
    # Where there is nothing to solve Newton's method starts from its end.
    values = jnp.where(of_shells[:, None], proposals.z[places], middle)
    theta, log_ratios, unsettled, inside = solutions(
        target, envelope.certificate.point, values, proposals.bound[places]
    )
    inside &= of_shells
    theta = jnp.where(of_shell_there[:, None], theta, proposals.theta[places])
    scores = lengths(target, theta)
    log_falls = envelope.floors[jnp.maximum(proposals.component[places] - num_shells, 0)] - scores
    beyond = of_pieces & (scores >= envelope.edges[-1])
    is_accepted = jnp.where(of_shell_there, inside & (log_left <= log_ratios), beyond & (log_left <= log_falls))
    # A probability above 1 contradicts the proof; what is no number is none.
    is_sound = jnp.all(~of_shell | (proposals.first <= MARGIN)) & ~jnp.any(of_shells & unsettled)
    is_sound &= jnp.all(~inside | (log_ratios <= MARGIN)) & jnp.all(~beyond | (log_falls <= MARGIN))
    return theta, is_accepted, is_sound
