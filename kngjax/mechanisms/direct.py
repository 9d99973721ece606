"""Mechanisms that draw from a law of their own."""

import abc
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Vector
from kngjax.data.records import Data
from kngjax.mechanisms.base import AbstractMechanism

# Draws, NaN where one failed, and whether all succeeded.
Drawn = tuple[Float[Array, "draws dimension"], Bool[Array, ""]]


class AbstractDirectMechanism(AbstractMechanism):
    """A mechanism that draws from its own law directly: it needs no sampler.

    `method`: how, in words, for the certificate. `assumptions`: what its guarantee needs besides those of every
    release. `is_whole`: whether all that it draws are whole numbers. `runs_on_host`: whether `draws` computes in NumPy
    and cannot be compiled. `advice`: what to do if a draw failed. `failures`: causes of a failed release, besides those
    of every release.
    """

    method: ClassVar[str]
    is_whole: ClassVar[bool] = False
    runs_on_host: ClassVar[bool] = False
    advice: ClassVar[str] = "the draw failed, and nothing is released"
    assumptions: ClassVar[tuple[str, ...]] = ()
    failures: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """Independent draws for these data, NaN where one failed, and whether all succeeded. Private but for one."""

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ), normalised; raises TypeError where no formula is known. Private: a function of the data."""
        raise TypeError(f"no formula is known for the density of {type(self).__name__}")

    def boundary_log_masses(self, data: Data) -> Float[Array, " atoms"]:
        """log P(θ = its lower end), log P(θ = its upper end) where θ ∈ R falls on the ends of Θ; shape (0,): never.

        Private: a function of the data.
        """
        return jnp.zeros(0)

    def jumps(self, data: Data) -> Float[Array, " jumps"] | None:
        """Returns the points at which f may jump in each coordinate, if f is constant between them; else None.

        They include the ends of its support. Private: a function of the data.
        """
        return None
