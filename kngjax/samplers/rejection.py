"""Rejection from several envelopes of one density: proposals in batches until enough were accepted."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from kngjax.samplers.envelopes import AbstractEnvelope
from kngjax.samplers.quadratic import QuadraticForm
from kngjax.target import Target


class Search(NamedTuple):
    """**Arguments:** `kept`: accepted proposals, NaN until found; `count`: how many; `tried`; `key`: of what follows."""

    key: PRNGKeyArray
    kept: Float[Array, "draws dimension"]
    count: Int[Array, ""]
    tried: Int[Array, ""]


def start(key: PRNGKeyArray, num_draws: int, dimension: int) -> Search:
    """A search that has found nothing yet."""
    return Search(key, jnp.full((num_draws, dimension), jnp.nan), jnp.zeros((), int), jnp.zeros((), int))


def search_from(
    target: Target,
    form: QuadraticForm,
    envelopes: Sequence[AbstractEnvelope],
    search: Search,
    unfinished: Callable[[Search], Bool[Array, ""]],
    batch: int,
) -> Search:
    """The search after batches of proposals from the envelope with the smallest mass, as long as it is unfinished.

    Every envelope has a loop of its own, which all but one leave at once: mapped over data sets that chose alike,
    the others cost nothing.
    """
    chosen = jnp.argmin(jnp.stack([envelope.log_mass for envelope in envelopes]))
    for number, envelope in enumerate(envelopes):

        def propose(search: Search, envelope: AbstractEnvelope = envelope) -> Search:
            key, proposal_key, accept_key = jax.random.split(search.key, 3)
            theta, log_acceptance = envelope.propose(target, form, proposal_key, batch)
            accepted = -jax.random.exponential(accept_key, (batch,)) < log_acceptance
            # Accepted proposals fill the free places in order; what does not fit is dropped.
            num_draws = search.kept.shape[0]
            places = jnp.where(accepted, search.count + jnp.cumsum(accepted) - 1, num_draws)
            kept = search.kept.at[places].set(theta, mode="drop")
            return Search(key, kept, search.count + jnp.sum(accepted), search.tried + batch)

        def goes_on(search: Search, number: int = number) -> Bool[Array, ""]:
            return (chosen == number) & unfinished(search)

        search = jax.lax.while_loop(goes_on, propose, search)
    return search
