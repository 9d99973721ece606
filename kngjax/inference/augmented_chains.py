"""Sweeps over latent records and the parameters of their model, and leaves the posterior of a release invariant."""

import math
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kngjax.inference.latent_records import GradientSums, LatentRecords, RecordDensity, chosen_records, transport
from kngjax.inference.released_gradients import place_of_hessian
from kngjax.inference.response_laws import nodes_and_weights

# Leapfrog steps given the records, and random walks of parameters with records that move along.
_LEAPS, _WALKS = 4, 3


class State(NamedTuple):
    """Holds the state of a chain. **Arguments:** `position`: φ without constraints, flat. `records`. `log_density`:
    log p(θ̃ | D) + const of them, which may be long to compute.
    """

    position: Array
    records: LatentRecords
    log_density: Array


class ChainTuning(NamedTuple):
    """Holds the tuning of a chain's moves.

    **Arguments:** `conditional`, `marginal`: Cholesky's factors of the scatter of φ given the records and alone.
    `step`: of leapfrogs in units of the first. `jump`: of walks in units of the second.
    """

    conditional: Array
    marginal: Array
    step: Array
    jump: Array


class AugmentedChains:
    """Chains over (φ, D) with density p(φ)·Π_i p(record_i | φ)·p(θ̃ | D). Everything in it is public.

    **Arguments:** `model`: a NumPyro model that returns the model of a record. `density`: log p(θ̃ | D). `num_records`.
    """

    def __init__(self, model: Any, density: RecordDensity, num_records: int):
        from numpyro.infer.util import initialize_model

        self.model, self.density, self.num_records = model, density, num_records
        found = initialize_model(jax.random.key(0), model)
        self._potential, self._constrained = found.potential_fn, found.postprocess_fn
        flat, self._unflatten = jax.flatten_util.ravel_pytree(found.param_info.z)
        self.dimension = len(flat)
        if not self.dimension:
            raise ValueError("model must draw the parameters of the law of a record by numpyro.sample")
        self._law_at(self.parameters(flat), self._features(jnp.zeros(num_records, int)))

    def parameters(self, position: Array) -> dict[str, Array]:
        """φ, by name."""
        return self._constrained(self._unflatten(position))

    def start(self, value: Array, key: Any) -> State:
        """φ within ±2 without constraints, and records from the model."""
        first, second = jax.random.split(key)
        position = jax.random.uniform(first, (self.dimension,), minval=-2.0, maxval=2.0)
        records = self._propose(position, second)
        return State(position, records, self.density(value, records))

    def first_tuning(self) -> ChainTuning:
        """Returns the tuning before anything is known."""
        identity = jnp.eye(self.dimension)
        return ChainTuning(identity, identity, jnp.asarray(0.1), jnp.asarray(1.0 / math.sqrt(self.dimension)))

    def tuned(self, tuning: ChainTuning, states: State, drawn: Array, statistics: dict[str, Array]) -> ChainTuning:
        """Tunes after a stage: scatters from its draws and from scores of records, steps by how many were accepted.

        **Arguments:** `states`: at its end, of each chain. `drawn`: φ, shape (chains, draws, p).
        """

        def information(state: State) -> Array:
            scores = jax.jacfwd(lambda position: self._log_densities(position, state.records))(state.position)
            prior = jnp.diag(jax.hessian(lambda position: self._potential(self._unflatten(position)))(state.position))
            return scores.T @ scores + jnp.diag(jnp.abs(prior) + 1e-6)

        conditional = jnp.linalg.inv(jnp.mean(jax.vmap(information)(states), axis=0))
        late = drawn[:, drawn.shape[1] // 2 :].reshape(-1, self.dimension)
        gaps = late - jnp.mean(late, axis=0, keepdims=True)
        marginal = gaps.T @ gaps / len(late) + 0.05 * conditional
        return ChainTuning(
            jnp.linalg.cholesky(conditional),
            jnp.linalg.cholesky(marginal),
            jnp.clip(tuning.step * jnp.exp(jnp.mean(statistics["leap_acceptance"]) - 0.8), 0.01, 0.6) * 1.1,
            jnp.clip(tuning.jump * jnp.exp(2.0 * (jnp.mean(statistics["walk_acceptance"]) - 0.3)), 0.01, 3.0),
        )

    def sweep(self, value: Array, state: State, tuning: ChainTuning, key: Any) -> tuple[State, dict[str, Array]]:
        """Updates every record in turn, then φ given the records, then φ with the records."""
        first, second, third = jax.random.split(key, 3)
        state, statistics = self._update_records(value, state, first)
        position, leap = self._leap(state.position, state.records, tuning, second)
        state, walk = self._walk(value, state._replace(position=position), tuning, third)
        return state, statistics | {"leap_acceptance": leap, "walk_acceptance": walk}

    def _update_records(self, value: Array, state: State, key: Any) -> tuple[State, dict[str, Array]]:
        keys = jax.random.split(key, 4)
        new, log_u = self._propose(state.position, keys[0]), jnp.log(jax.random.uniform(keys[1], (self.num_records,)))
        at = self._place(value, state.position)
        before, after = (self.density.parts(value, at, one) for one in (state.records, new))
        sums = jax.tree.map(lambda one: jnp.sum(one, axis=0), before)
        moves = jax.tree.map(lambda one, other: other - one, before, after)
        # In either order, so that all of it together is reversible.
        is_forward = jax.random.bernoulli(keys[2])
        turned = lambda one: jnp.where(is_forward, one, one[::-1])  # noqa: E731

        def one_record(carry: Any, item: Any) -> Any:
            sums, log_density = carry
            move, log_u = item
            moved = GradientSums(sums.gradient + move.gradient, sums.hessian + move.hessian)
            at_moved = self.density.by_sums(value, moved)
            is_taken = log_u < at_moved - log_density
            chosen = jax.tree.map(lambda one, other: jnp.where(is_taken, one, other), (moved, at_moved), carry)
            return chosen, (is_taken, at_moved - log_density)

        carry = sums, self.density.by_sums(value, sums)
        (_, log_surrogate), (are_taken, ratios) = jax.lax.scan(
            one_record, carry, (jax.tree.map(turned, moves), turned(log_u))
        )
        records = chosen_records(turned(are_taken), new, state.records)
        statistics = {
            "record_acceptance": jnp.mean(are_taken * 1.0),
            "least_acceptance": jnp.exp(jnp.minimum(jnp.min(ratios), 0.0)),
        }
        log_density = self.density(value, records)
        if self.density.is_exact_by_sums:
            return State(state.position, records, log_density), statistics
        # The sweep is reversible for the surrogate: as a whole it is taken as the true density over that one says.
        gain = log_density - state.log_density - (log_surrogate - carry[1])
        is_taken = jnp.log(jax.random.uniform(keys[3])) < gain
        statistics["sweep_acceptance"] = is_taken * 1.0
        proposed = State(state.position, records, log_density)
        return jax.tree.map(lambda one, other: jnp.where(is_taken, one, other), proposed, state), statistics

    def _leap(self, position: Array, records: LatentRecords, tuning: ChainTuning, key: Any) -> tuple[Array, Array]:
        """A Hamiltonian step of φ given the records, of which the release says no more."""
        keys = jax.random.split(key, 3)
        slope = jax.value_and_grad(
            lambda position: (
                self._potential(self._unflatten(position)) - jnp.sum(self._log_densities(position, records))
            )
        )
        step = tuning.step * jax.random.uniform(keys[2], (), minval=0.7, maxval=1.3)
        momentum = jax.random.normal(keys[0], position.shape)

        def leap(_: Any, carry: Any) -> Any:
            position, momentum, (_, gradient) = carry
            momentum -= 0.5 * step * tuning.conditional.T @ gradient
            position += step * tuning.conditional @ momentum
            found = slope(position)
            return position, momentum - 0.5 * step * tuning.conditional.T @ found[1], found

        start = slope(position)
        moved, last, (potential, _) = jax.lax.fori_loop(0, _LEAPS, leap, (position, momentum, start))
        gain = start[0] - potential + 0.5 * (jnp.sum(momentum**2) - jnp.sum(last**2))
        is_taken = jnp.log(jax.random.uniform(keys[1])) < gain
        return jnp.where(is_taken, moved, position), jnp.exp(
            jnp.minimum(jnp.where(jnp.isnan(gain), -jnp.inf, gain), 0.0)
        )

    def _walk(self, value: Array, state: State, tuning: ChainTuning, key: Any) -> tuple[State, Array]:
        """Random walks of φ with records that move along, where they can."""
        if transport(None, self._law_of(state.position, state.records), None, state.records.values) is None:
            return state, jnp.asarray(0.3)

        def log_prior(position: Array) -> Array:
            return -self._potential(self._unflatten(position))

        def walk(state: State, key: Any) -> Any:
            first, second, third = jax.random.split(key, 3)
            direction = tuning.marginal @ jax.random.normal(first, state.position.shape)
            position = state.position + tuning.jump * direction
            old, new = (self._law_of(one, state.records) for one in (state.position, position))
            moved = transport(second, old, new, state.records.values)
            assert moved is not None
            records = state.records._replace(values=moved[0])
            proposed = State(position, records, self.density(value, records))
            gain = proposed.log_density - state.log_density + log_prior(position) - log_prior(state.position) + moved[1]
            is_taken = jnp.log(jax.random.uniform(third)) < gain
            return jax.tree.map(lambda one, other: jnp.where(is_taken, one, other), proposed, state), is_taken * 1.0

        state, taken = jax.lax.scan(walk, state, jax.random.split(key, _WALKS))
        return state, jnp.mean(taken)

    def _propose(self, position: Array, key: Any) -> LatentRecords:
        """n records from the model."""
        first, second = jax.random.split(key)
        rows = self.density.rows
        places = jnp.zeros(self.num_records, int)
        if rows is not None:
            places = jax.random.randint(first, (self.num_records,), 0, len(rows))
        law = self._law_at(self.parameters(position), self._features(places))
        if rows is None:
            values = jax.vmap(law.sample)(jax.random.split(second, self.num_records))
        else:
            values = law.sample(second)
        return LatentRecords(places, jnp.asarray(values, position.dtype))

    def _features(self, places: Array) -> Array | None:
        return None if self.density.rows is None else jnp.asarray(self.density.rows)[places]

    def _law_of(self, position: Array, records: LatentRecords) -> Any:
        return self._law_at(self.parameters(position), self._features(records.places))

    def _law_at(self, parameters: dict[str, Array], x: Array | None) -> Any:
        """The law of a response given each row, or of the columns of a mean."""
        from numpyro import distributions, handlers

        found = handlers.substitute(handlers.seed(self.model, jax.random.key(0)), data=parameters)()
        if x is not None:
            if not callable(found) or hasattr(found, "batch_shape"):
                raise TypeError("model must return a function of rows of features to the law of the response")
            found = found(x)
        if not isinstance(found, distributions.Distribution):
            raise TypeError(f"the model of a record must be a NumPyro distribution, not a {type(found).__name__}")
        shape = (self.density.part.dimension,) if x is None else (len(x),)
        if found.batch_shape not in (shape, () if x is not None else shape) or found.event_shape:
            raise ValueError(f"the law of a record must have batch shape {shape}, and this one has {found.batch_shape}")
        return found.expand(shape) if found.batch_shape != shape else found

    def _log_densities(self, position: Array, records: LatentRecords) -> Array:
        """log p(record | φ) of each, shape (n,)."""
        law = self._law_of(position, records)
        if self.density.rows is not None:
            return law.log_prob(records.values)
        return jnp.sum(jax.vmap(law.log_prob)(records.values), axis=1)

    def _place(self, value: Array, position: Array) -> Array:
        """Returns the point at which the surrogate takes the Hessian.

        KNG's normaliser has the Hessian at the minimum, here of the model's expected loss.
        """
        if self.density.is_exact_by_sums:
            return value
        rows = np.asarray(self.density.rows)
        rows = rows[:: -(-len(rows) // 64)]
        law, loss = self._law_at(self.parameters(position), jnp.asarray(rows)), self.density.part.mechanism.loss
        try:
            nodes = nodes_and_weights(law, len(rows), self.density.part.clip_interval(), loss.is_smooth)
        except ValueError:
            return value
        return place_of_hessian(self.density.part, value, jnp.asarray(rows), *nodes)
