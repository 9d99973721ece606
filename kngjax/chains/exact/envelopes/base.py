"""Defines envelopes, with the base measure as one, and fits their free parameters."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.quadratic import QuadraticForm
from kngjax.chains.target import Target
from kngjax.core.modules import AbstractModule

Uniforms = Float[Array, "proposals uniforms"]
Proposals = tuple[Float[Array, "proposals dimension"], Float[Array, " proposals"]]


class AbstractEnvelope(AbstractModule):
    """A function that is nowhere below f(θ) = exp(-c·(score(θ) - smallest score))·1_Θ and is drawn from directly.

    Its mass is known, and a proposal is accepted with probability ∫f/mass: of several envelopes of one f that with
    the smallest mass is the best, and no pilot has to find that out. Where Θ has a base measure that is not uniform
    f is relative to it.

    **Arguments:** `log_mass`: M, the log of the integral of the function; infinite where it must not be used.
    """

    log_mass: eqx.AbstractVar[Float[Array, ""]]

    @abc.abstractmethod
    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        """Returns independent draws, shape (number, d), and the log of f over the envelope at each: never above 0.

        They are made from `uniforms`, of which there are `num_uniforms(d)` a proposal, or, where that is not possible,
        from the key: what several envelopes share is generated, and compiled, once.
        """


class BaseMeasureEnvelope(AbstractEnvelope):
    """The base measure of Θ: f ≤ 1. The best where n·ε is small.

    **Arguments:** `log_mass`: log vol Θ.
    """

    log_mass: Float[Array, ""]

    @classmethod
    def of(cls, target: Target) -> "BaseMeasureEnvelope":
        """Returns the envelope of this target."""
        return cls(-target.domain.log_density(target.domain.interior_point(target.dimension)))

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        theta = target.domain.draw(key, uniforms.shape[:1], target.dimension)
        scores = jax.vmap(target.score)(theta)
        return theta, jnp.minimum(-target.rate * (scores - form.smallest_score), 0.0)


def excess(target: Target, form: QuadraticForm, theta: Float[Array, "points dimension"]) -> Float[Array, " points"]:
    """c·(score - ‖y‖) of each point, for KNG: above 0 where Δ depends on θ."""
    if target.pointwise is None:
        return jnp.zeros(theta.shape[0])
    scores = jax.vmap(target.score)(theta)
    return target.rate * jnp.maximum(scores - jax.vmap(form.norm)(form.images(theta)), 0.0)


def fit_parameters(
    log_mass: Callable[[Any], Float[Array, ""]], start: Any, wanted: Bool[Array, ""], num_steps: int, rate: float
) -> Any:
    """Parameters of about the least mass, by Adam: they decide how fast proposals are accepted, never the law.

    `wanted`: where it is false no step is made; mapped over data sets that want none the loop costs nothing.
    """
    import optax

    optimiser = optax.adam(optax.cosine_decay_schedule(rate, num_steps))

    def unfinished(search):
        return wanted & (search[2] < num_steps)

    def advance(search):
        parameters, state, step = search
        slopes = jax.grad(log_mass)(parameters)
        slopes = jax.tree.map(lambda slope: jnp.where(jnp.isfinite(slope), slope, 0.0), slopes)
        updates, state = optimiser.update(slopes, state)
        return optax.apply_updates(parameters, updates), state, step + 1

    return jax.lax.while_loop(unfinished, advance, (start, optimiser.init(start), jnp.zeros((), int)))[0]
