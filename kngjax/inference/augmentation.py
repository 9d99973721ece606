"""`augmented_posterior`: the posterior of a release by latent records, where a central limit theorem does not serve."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.core.arrays import float64
from kngjax.core.randomness import require_typed_key, research_key
from kngjax.inference.augmented_chains import AugmentedChains, State
from kngjax.inference.designs import rows_of
from kngjax.inference.latent_records import RecordDensity, require_served
from kngjax.inference.released_gradients import ReleasedGradient
from kngjax.releases.release import Release

STAGES = 5


def augmented_posterior(
    release: Any,
    model: Any,
    *,
    num_records: int | None = None,
    design: Any = None,
    num_warmup: int = 1000,
    num_samples: int = 1000,
    num_chains: int = 4,
    key: Any = None,
) -> Any:
    """Draws from p(φ | θ̃) of a release of few records, for which `kngjax.observe` has no likelihood.

    The records D are latent and drawn along: with the prior p(φ) and a model p(record | φ) of records it is the law of
    φ under p(φ)·Π_i p(record_i | φ)·p(θ̃ | D), whose last factor the certificate tells. A sweep

    - proposes each record afresh from the model and takes it with probability min(1, p(θ̃ | D')/p(θ̃ | D)) ≥ e^{-ε},
      since θ̃ is ε-differentially private (Ju et al. 2022). The normalising constant of p(θ̃ | D) is never left out
      (`kngjax.inference.latent_records` has it): of KNG, where it depends on D, records are taken by a surrogate with
      the determinant of the Hessian, and the sweep as a whole by the density with the constant over the surrogate;
    - moves φ given the records, by a Hamiltonian step, and φ with the records moved along, x' = μ' + σ'(x - μ)/σ, by
      random walks: the first mixes well where noise for privacy is small, and the second where it is large (Yu and Meng
      2011).

    Nothing but the release is used, so what comes out may be published.

    **Arguments:**

    - `release`: of up to three numbers from up to 1,000 records: a mean by `KNormMechanism`, `ObjectivePerturbation`,
        or `KNG` with a smooth loss and one or two coefficients. Of JSON take `Release.from_json`.
    - `model`: a NumPyro model that draws its parameters and returns the model of one record, which `kngjax.observe`
        takes as `record`: of regressions a function of rows of features, (m, d), the intercept's 1 first, to the law of
        the response given each; of means a law of batch shape (d,). Any law that can be drawn from and has a density:
        Normal, StudentT, Laplace, BernoulliLogits, Poisson. It observes nothing.
    - `num_records`: n, where the certificate does not hold it, under add_remove: a public number.
    - `design`: of regressions what features are like, rows of which each record has one: an assumption.
    - `num_warmup`, `num_samples`: sweeps of each of `num_chains` chains that are left out, and that are kept.
    - `key`: a research key; None is `research_key(0)`.

    **Returns** `arviz.InferenceData` with φ in `posterior`, and in `sample_stats` the share of records that were taken,
    `record_acceptance`, and the least probability of a sweep to take one, `least_acceptance`. Look at R-hat: below n =
    30d/ε chains mix slowly. Raises TypeError and ValueError for what is not served, with the reason.
    """
    if not isinstance(release, Release):
        raise TypeError(f"release must be a Release, not a {type(release).__name__}: Release.from_json(text) reads one")
    for name, count in (("num_warmup", num_warmup), ("num_samples", num_samples), ("num_chains", num_chains)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    key = research_key(0) if key is None else key
    require_typed_key(key)
    part = ReleasedGradient.of(release)
    if part.num_records is not None and num_records not in (None, part.num_records):
        raise ValueError(f"the certificate says that there were {part.num_records} records: leave num_records out")
    count = part.num_records if num_records is None else num_records
    if count is None:
        raise ValueError("the certificate does not hold the number of records: give num_records, a public number")
    require_served(part, count)
    if part.is_regression == (design is None and part.mechanism.bounds.x_lower is not None):
        raise ValueError("a regression needs a design, public or made-up rows of features, and a mean has none")
    with float64():
        rows = rows_of(design, part.mechanism.bounds, part.dimension) if part.is_regression else None
        chains = AugmentedChains(model, RecordDensity(part, rows), int(count))
        drawn, statistics = draw_chains(
            chains, jnp.asarray(part.value), key, num_chains, -(-num_warmup // STAGES), num_samples
        )
        return _to_arviz(jax.tree.map(np.asarray, drawn), jax.tree.map(np.asarray, statistics))


def draw_chains(
    chains: AugmentedChains, value: Any, key: Any, num_chains: int, length: int, num_samples: int
) -> tuple[Any, Any]:
    """Parameters (chains, draws, ...) and statistics of sweeps, after five stages of this length that tune them."""
    first, *others = jax.random.split(key, 1 + STAGES + -(-num_samples // length))
    states = _start(chains, value, jax.random.split(first, num_chains))
    tuning, kept = chains.first_tuning(), []
    for number, one in enumerate(others):
        states, drawn, statistics = _run(chains, value, states, tuning, jax.random.split(one, num_chains), length)
        if number < STAGES:
            tuning = _tuned(chains, tuning, states, drawn, statistics)
        else:
            kept.append((drawn, statistics))
    drawn, statistics = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=1)[:, :num_samples], *kept)
    return jax.jit(jax.vmap(jax.vmap(chains.parameters)))(drawn), statistics


@functools.partial(jax.jit, static_argnums=0)
def _start(chains: AugmentedChains, value: Any, keys: Any) -> State:
    return jax.vmap(lambda key: chains.start(value, key))(keys)


@functools.partial(jax.jit, static_argnums=0)
def _tuned(chains: AugmentedChains, tuning: Any, states: State, drawn: Any, statistics: Any) -> Any:
    return chains.tuned(tuning, states, drawn, statistics)


@functools.partial(jax.jit, static_argnums=(0, 5))
def _run(chains: AugmentedChains, value: Any, states: State, tuning: Any, keys: Any, length: int) -> Any:
    def one(state: State, key: Any) -> Any:
        def step(state: State, key: Any) -> Any:
            state, statistics = chains.sweep(value, state, tuning, key)
            return state, (state.position, statistics)

        state, (drawn, statistics) = jax.lax.scan(step, state, jax.random.split(key, length))
        return state, drawn, statistics

    return jax.vmap(one)(states, keys)


def _to_arviz(drawn: dict[str, np.ndarray], statistics: dict[str, np.ndarray]) -> Any:
    """InferenceData in 0.x, DataTree in 1.x."""
    import arviz
    import xarray

    def dataset(parts: dict[str, np.ndarray]) -> Any:
        dims = {name: [f"{name}_dim_{place}" for place in range(part.ndim - 2)] for name, part in parts.items()}
        return xarray.Dataset({name: (["chain", "draw", *dims[name]], part) for name, part in parts.items()})

    groups = {"posterior": dataset(drawn), "sample_stats": dataset(statistics)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return xarray.DataTree.from_dict(groups)
    return arviz.InferenceData(**groups)
