"""Defines samplers: independent exact draws, or a Markov chain of `init` and `step` over a state.

A chain's randomness is drawn in blocks by `noise`, outside of the loop over sweeps, so that no step splits a key and
a step is a plain function of state and noise. What a chain reports of itself is in `Info`, computed from private data.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.limit_law import starts
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data.records import WeightedRecords


class Info(NamedTuple):
    """Reports what one sweep of a chain did; owner-only. A field that is the same in every sweep is None.

    **Arguments:** `log_density`: log f after the sweep, up to a constant. `acceptance`: the fraction of its moves that
    were accepted, or the acceptance statistic. `num_steps`: density or gradient evaluations. `diverging`: whether a
    Hamiltonian trajectory diverged, or Newton's method came to no end.
    """

    log_density: Any
    acceptance: Any = None
    num_steps: Any = None
    diverging: Any = None


class AbstractSampler(ShownAsTyped, AbstractModule):
    """A way to draw from the density of a `Target`.

    `assumptions`: what the guarantee of a release by it needs, besides those of every release. `failures`: what can
    make a release by it fail. `unproved`: what nobody has proved of a release by it. `takes_weights`: whether it asks
    the loss for all sums over records, which knows their weights. `needs_convexity`: whether what it draws has the
    density's law for a convex loss only.
    """

    assumptions: ClassVar[tuple[str, ...]] = ()
    failures: ClassVar[tuple[str, ...]] = ()
    unproved: ClassVar[tuple[str, ...]] = ()
    takes_weights: ClassVar[bool] = False
    needs_convexity: ClassVar[bool] = False

    def admit(self, target: Target) -> None:
        """Raises ValueError, naming what would serve, for a density or records that this sampler does not draw from."""
        if isinstance(target.data, WeightedRecords) and not self.takes_weights:
            raise ValueError(
                f"{type(self).__name__} takes no weights of records for {type(target.loss).__name__}: EnsembleWalk, "
                "CoordinateWalk, NUTS and HMC do"
            )
        self.check(target)

    @abc.abstractmethod
    def check(self, target: Target) -> None:
        """Raises ValueError, naming what would serve, if this sampler cannot draw from this density."""

    def for_release(self) -> "AbstractSampler":
        """Returns this sampler with all tuning a function of public quantities; raises ValueError if there is none."""
        return self


class AbstractIndependentSampler(AbstractSampler):
    """A sampler whose draws are independent and exactly from the density, in real arithmetic.

    A certificate states this of every sampler of this class; one whose draws are anything less is a chain.
    """

    def runs_on_host(self, target: Target) -> bool:
        """Tells whether `draws` drives compiled programs from the host for this target, where nothing is traced."""
        return False

    def may_be_traced(self, target: Target) -> bool:
        """Tells whether `draws` compiles too for this target; what runs on the host may then give up sooner."""
        return not self.runs_on_host(target)

    @abc.abstractmethod
    def draws(
        self,
        target: Target,
        key: PRNGKeyArray,
        num_draws: int,
        centre: Vector | None = None,
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        """Returns independent draws, and whether all of them were found within the sampler's public limits.

        For samplers that run on the host: `centre`, an estimate of θ, or None, on which speed may depend and never the
        law.
        """


class AbstractChainSampler(AbstractSampler):
    """A Markov chain that leaves the density invariant; nothing is proved of its law after finitely many sweeps.

    **Arguments:** `num_sweeps`: sweeps before the one draw of a release; None for a number that depends on d alone.
    `num_warmup`: sweeps that `sample` discards. `reads_a_sweep`: how often one reads the data for each point, about: by
    which its program is compiled well or quickly.
    """

    num_sweeps: eqx.AbstractVar[int | None]
    num_warmup: eqx.AbstractVar[int]

    unproved: ClassVar[tuple[str, ...]] = (
        "what the steps of the chain do to it: their rule is public, and where an ensemble steps by its own spread "
        "they depend on the data through the chain's state alone",
    )
    sweeps_a_block: ClassVar[int] = 100
    reads_a_sweep: ClassVar[int] = 1

    @abc.abstractmethod
    def noise(self, key: PRNGKeyArray, target: Target, state: Any, num_sweeps: int) -> Any:
        """Returns the randomness of `num_sweeps` sweeps: arrays with that leading axis.

        It uses parts of the state that no step changes, such as what proposals are made with, and never the position.
        """

    @abc.abstractmethod
    def init(self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray) -> Any:
        """Returns the chain's state, a NamedTuple, at the points, tuned at the centre, an estimate of θ."""

    def start(self, target: Target, centre: Vector, key: PRNGKeyArray, num_chains: int = 1) -> Any:
        """Returns a chain's state, of some that start together, at points that scatter more widely than the density.

        See `starts`.
        """
        start_key, own_key = jax.random.split(key)
        points = starts(target, centre, start_key, self.num_points(target.dimension), num_chains)
        return self.init(target, points, centre, own_key)

    def num_points(self, dimension: int) -> int:
        """Returns how many points the chain moves together."""
        return 1

    @abc.abstractmethod
    def step(self, target: Target, state: Any, noise: Any) -> tuple[Any, Info]:
        """Moves the state by one sweep."""

    def noises(self, key: PRNGKeyArray, target: Target, states: Any, num_sweeps: int) -> Any:
        """Returns the randomness of many chains: arrays with a leading axis of sweeps, as `steps` takes them."""
        keys = jax.random.split(key, jax.tree.leaves(states)[0].shape[0])
        return jax.vmap(lambda key, state: self.noise(key, target, state, num_sweeps), out_axes=1)(keys, states)

    def steps(self, target: Target, states: Any, noises: Any) -> tuple[Any, Info]:
        """Moves every chain by one sweep: states and infos have a leading axis of chains. `noises`: of that method."""
        return jax.vmap(lambda state, noise: self.step(target, state, noise))(states, noises)

    def gather(self, target: Target, centre: Vector) -> "AbstractChainSampler":
        """Returns this sampler with what it gathers of the records on the host, for the chains alone: it is private."""
        return self

    def release_sweeps(self, dimension: int) -> int:
        """Returns the number of sweeps of a release, a function of public quantities."""
        assert self.num_sweeps is not None
        return self.num_sweeps

    @abc.abstractmethod
    def position(self, target: Target, state: Any) -> Float[Array, " dimension"]:
        """θ of a state."""
