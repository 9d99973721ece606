"""NUTS and HMC by NumPyro, on R^d through the domain's bijector, under our own jit."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.chains.advice import advice_for
from kngjax.chains.base import AbstractChainSampler, Info
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector


class HamiltonianState(NamedTuple):
    """**Arguments:** `current`: NumPyro's state; `start`: it at the start, to whose position the chain comes back."""

    current: Any
    start: Any


class _AbstractHamiltonian(AbstractChainSampler):
    step_size: eqx.AbstractVar[float | None]
    target_acceptance: eqx.AbstractVar[float]

    algorithm: ClassVar[str]
    takes_weights: ClassVar[bool] = True

    def _options(self) -> dict[str, Any]:
        return {}

    @property
    def _num_adapting(self) -> int:
        """The transitions of the warm-up that adapt; then the chain comes back to its start, and runs the others.

        Steps that are still wide leave a mode that is wider than others, and narrow ones never come back: without it
        chains that began in several modes ended in one, and R-hat saw nothing.
        """
        return self.num_warmup - self.num_warmup // 4 if self.step_size is None else 0

    def check(self, target: Target) -> None:
        if target.is_piecewise_constant:
            raise ValueError(
                f"{type(self).__name__} follows gradients, and those of this piecewise-constant density are zero "
                f"almost everywhere: it would report no divergence and be wrong. Instead: {advice_for(target)}"
            )

    def for_release(self):
        if self.step_size is None:
            raise ValueError(
                f"{type(self).__name__} would adapt its step size to the private data, which no proof covers: in a "
                f"release give a public one, {type(self).__name__}(step_size=...), or leave the choice of sampler to us"
            )
        return self

    def _kernel(self, target: Target, theta: Vector, key: PRNGKeyArray):
        from numpyro.infer.hmc import hmc

        def potential(unconstrained):
            return -target.unconstrained_log_density(unconstrained)

        init_kernel, sample_kernel = hmc(potential, algo=self.algorithm)
        # NumPyro's sample kernel takes its schedule from the last call of the init kernel.
        state = init_kernel(
            target.domain.bijector(target.dimension)._inverse(jnp.asarray(theta)),
            num_warmup=self._num_adapting,
            step_size=1.0 if self.step_size is None else self.step_size,
            adapt_step_size=self.step_size is None,
            adapt_mass_matrix=self.step_size is None,
            target_accept_prob=self.target_acceptance,
            rng_key=key,
            **self._options(),
        )
        return state, sample_kernel

    def noise(self, key: PRNGKeyArray, target: Target, state: Any, num_sweeps: int) -> Array:
        return jax.random.split(key, num_sweeps)

    def init(self, target: Target, points: Float[Array, "points dimension"], centre: Vector, key: PRNGKeyArray) -> Any:
        state = self._kernel(target, points[0], key)[0]
        return HamiltonianState(state, state)

    def step(self, target: Target, state: Any, noise: PRNGKeyArray) -> tuple[Any, Info]:
        # For the schedule that the sample kernel closes over; the state that it makes is not used.
        _, sample_kernel = self._kernel(target, target.domain.interior_point(target.dimension), noise)
        current = sample_kernel(state.current._replace(rng_key=noise))
        if self._num_adapting:
            where = {name: getattr(state.start, name) for name in ("z", "z_grad", "potential_energy")}
            is_tuned = current.i == self._num_adapting
            current = current._replace(
                **{name: jnp.where(is_tuned, part, getattr(current, name)) for name, part in where.items()}
            )
        state = state._replace(current=current)
        theta = self.position(target, state)
        return state, Info(target.log_density(theta), current.accept_prob, current.num_steps, current.diverging)

    def position(self, target: Target, state: Any) -> Float[Array, " dimension"]:
        return jnp.asarray(target.domain.bijector(target.dimension)(state.current.z))


class NUTS(_AbstractHamiltonian):
    """Runs NumPyro's no-U-turn sampler (Hoffman and Gelman 2014) on the log-density in unconstrained coordinates.

    It suits smooth losses, and takes small steps at the kinks of the gradient norm. Piecewise-constant densities are
    refused. Judge the chains by R-hat and effective sample size: at large n a chain from a poor start can be wrong
    without a divergence, so starts lie where a density twice as wide has its mass. Chains that are moved together wait
    for the longest trajectory among them: on an accelerator `HMC`, whose steps are counted, wastes less.

    **Arguments:**

    - `step_size`: None adapts it, and the mass matrix, in the warm-up; a number is kept as it is. Releases need one.
    - `target_acceptance`: for the adaptation. `max_tree_depth`: trajectories double at most so often.
    - `num_sweeps`: transitions before a release. `num_warmup`: transitions that `sample` discards. Three in four of
      them adapt; then the chain comes back to its start, so that chains which began in several modes go on there.
    """

    num_sweeps: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    step_size: float | None = eqx.field(static=True, default=None)
    target_acceptance: float = eqx.field(static=True, default=0.8)
    max_tree_depth: int = eqx.field(static=True, default=10)

    algorithm: ClassVar[str] = "NUTS"
    reads_a_sweep: ClassVar[int] = 100

    def _options(self) -> dict[str, Any]:
        return {"max_tree_depth": self.max_tree_depth}


class HMC(_AbstractHamiltonian):
    """Runs NumPyro's Hamiltonian Monte Carlo with a fixed number of leapfrog steps per trajectory.

    **Arguments:** `num_steps`: leapfrog steps a trajectory; the others as for `NUTS`.
    """

    num_sweeps: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    step_size: float | None = eqx.field(static=True, default=None)
    target_acceptance: float = eqx.field(static=True, default=0.8)
    num_steps: int = eqx.field(static=True, default=16)

    algorithm: ClassVar[str] = "HMC"
    reads_a_sweep: ClassVar[int] = 16

    def _options(self) -> dict[str, Any]:
        return {"num_steps": self.num_steps, "trajectory_length": None}
