"""Rejection from several envelopes of one density: proposals in batches until enough were accepted."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from kngjax.chains.exact.envelopes.base import AbstractEnvelope
from kngjax.chains.quadratic import QuadraticForm
from kngjax.chains.target import Target
from kngjax.geometry.tilts import num_uniforms


class Search(NamedTuple):
    """**Arguments:** `key`: of what follows; `kept`: accepted proposals, NaN until found; `count`; `tried`."""

    key: PRNGKeyArray
    kept: Float[Array, "draws dimension"]
    count: Int[Array, ""]
    tried: Int[Array, ""]


def start(key: PRNGKeyArray, num_draws: int, dimension: int) -> Search:
    """Returns a search that has found nothing yet."""
    return Search(key, jnp.full((num_draws, dimension), jnp.nan), jnp.zeros((), int), jnp.zeros((), int))


def search_from(
    target: Target,
    form: QuadraticForm,
    envelopes: Sequence[AbstractEnvelope],
    search: Search,
    unfinished: Callable[[Search], Bool[Array, ""]],
    batch: int,
) -> Search:
    """Goes on with an unfinished search by batches of proposals from the envelope with the smallest mass.

    Proposals are made in a loop of one turn for the chosen envelope and of none for the others: mapped over data sets
    it costs nothing where nobody chose the envelope, and a conditional would always cost as much as all of them.
    """
    chosen = jnp.argmin(jnp.stack([envelope.log_mass for envelope in envelopes]))
    num_draws, dimension = search.kept.shape

    def propose(search: Search) -> Search:
        key, uniform_key, proposal_key = jax.random.split(search.key, 3)
        uniforms = jax.random.uniform(uniform_key, (batch, num_uniforms(dimension) + 1))
        proposals = jnp.zeros((batch, dimension)), jnp.full(batch, -jnp.inf)
        for number, envelope in enumerate(envelopes):
            proposals, _ = jax.lax.while_loop(
                lambda turn: turn[1],
                lambda _, envelope=envelope, number=number: (
                    envelope.propose(target, form, jax.random.fold_in(proposal_key, number), uniforms[:, 1:]),
                    jnp.asarray(False),
                ),
                (proposals, chosen == number),
            )
        theta, log_acceptance = proposals
        accepted = jnp.log(uniforms[:, 0]) < log_acceptance
        # Accepted proposals fill the free places in order; what does not fit is dropped.
        places = jnp.where(accepted, search.count + jnp.cumsum(accepted) - 1, num_draws)
        kept = search.kept.at[places].set(theta, mode="drop")
        return Search(key, kept, search.count + jnp.sum(accepted), search.tried + batch)

    return jax.lax.while_loop(unfinished, propose, search)
