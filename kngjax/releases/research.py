"""Makes many draws from a mechanism's law for the owner's eyes: they give no privacy."""

import dataclasses
import time
import warnings

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from kngjax.chains.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler, Info
from kngjax.core.arrays import float64
from kngjax.core.compiling import quick_compilation
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import Data
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.shells.shells import Shells
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.owner.diagnostics import UNMIXED, DrawsSummary
from kngjax.owner.draws import Draws
from kngjax.releases.chains import (
    direct_draws,
    estimate,
    independent_draws,
    require_sampler,
    require_success,
    run_chains,
)
from kngjax.releases.default_sampler import default_sampler

# Chains start and run alike, so that a thousand of them tell, and no sample waits long for it.
_CHAINS_LOOKED_AT = 1000


def sample(
    mechanism: AbstractMechanism,
    data: Data,
    *,
    key: PRNGKeyArray,
    sampler: AbstractSampler | Lattice | Shells | None = None,
    num_draws: int = 1000,
    num_chains: int = 4,
    num_warmup: int | None = None,
    thinning: int = 1,
    progress: bool | None = None,
) -> Draws:
    """Makes many draws from the mechanism's law, for research and for the data owner's eyes only.

    The draws give no privacy: chains are tuned on the private data. Each chain starts by its own key from a law that is
    wider than the mechanism's, so that R-hat shows disagreement; it cannot show a mode that no start reached. If R-hat
    of a coefficient exceeds 1.01, or an effective sample size is below 400, a warning says so in one fixed sentence.
    The numbers are for the owner alone: `summary().explain()`.

    **Arguments:**

    - `data`: from `mechanism.prepare`.
    - `key`: a research key, `kngjax.research_key(seed)`.
    - `sampler`: None takes the best for this mechanism.
    - `num_draws`: kept draws for each chain. `num_chains`: independent chains. `num_warmup`: discarded sweeps for each
      chain, None for the sampler's own number. `thinning`: sweeps for each kept draw.

    **Returns** `Draws`, with R-hat, Monte Carlo errors and effective sample sizes by the coefficients' names.
    `summary()` holds these and the time that the draws took; `to_arviz()` and plots are there too.
    """
    draws = sampled(mechanism, data, key, sampler, num_draws, num_chains, num_warmup, thinning, progress)
    if draws.info is not None:
        looked_at = draws.theta[:_CHAINS_LOOKED_AT]
        if not DrawsSummary.of(looked_at, ()).suffices:
            warnings.warn(f"{UNMIXED}; the owner sees which coefficient by draws.summary().explain()", stacklevel=2)
    return draws


def sampled(
    mechanism: AbstractMechanism,
    data: Data,
    key: PRNGKeyArray,
    sampler: AbstractSampler | Lattice | Shells | None,
    num_draws: int,
    num_chains: int = 4,
    num_warmup: int | None = None,
    thinning: int = 1,
    progress: bool | None = None,
) -> Draws:
    """Draws as `sample` does, and judges nothing: for whoever shows the diagnostics himself, or needs none."""
    start = time.perf_counter()
    require_typed_key(key)
    if not isinstance(data, Data):
        raise TypeError("data must come from mechanism.prepare(X, y), which validates and clips the records")
    for name, count in (("num_draws", num_draws), ("num_chains", num_chains), ("thinning", thinning)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if sampler is None and isinstance(mechanism, AbstractDensityMechanism):
        sampler, _ = default_sampler(mechanism, data.dimension, data.num_records)
    require_sampler(mechanism, sampler)
    require_declared(mechanism, data.dimension, sampler)
    if isinstance(sampler, AbstractChainSampler) and num_warmup is not None:
        sampler = dataclasses.replace(sampler, num_warmup=num_warmup)
    num_read = num_chains * num_draws * sum(map(np.size, jax.tree.leaves(data)))
    if isinstance(mechanism, AbstractDirectMechanism):
        with float64(), quick_compilation(num_read):
            draws, succeeded = direct_draws(mechanism, data, key, num_draws * num_chains)
            require_success(bool(succeeded), mechanism.advice)
            thetas = np.array(draws).reshape(num_chains, num_draws, -1)
        return _draws(mechanism, thetas, type(mechanism).__name__, None, start)
    assert isinstance(mechanism, AbstractDensityMechanism)
    assert isinstance(sampler, AbstractSampler)
    with float64(), quick_compilation(num_read):
        # Types and shapes decide, so nothing is computed.
        sampler.admit(jax.eval_shape(mechanism.target, data))
        if isinstance(sampler, AbstractIndependentSampler):
            draws, succeeded = independent_draws(mechanism, data, sampler, key, num_draws * num_chains)
            require_success(bool(succeeded))
            # A copy: a NumPy view would keep the float64 JAX array alive.
            thetas, info = np.array(draws).reshape(num_chains, num_draws, -1), None
        else:
            assert isinstance(sampler, AbstractChainSampler)
            centre, warmup = estimate(mechanism, data), sampler.num_warmup
            thetas, info = run_chains(
                mechanism, data, sampler, centre, key, num_chains, warmup, num_draws, thinning, progress
            )
    return _draws(mechanism, thetas, type(sampler).__name__, info, start)


def _draws(mechanism: AbstractMechanism, thetas: np.ndarray, name: str, info: Info | None, start: float) -> Draws:
    names = mechanism.bounds.coefficients
    if names is None or len(names) != thetas.shape[2]:
        names = None
    return Draws(thetas, name, info, names, time.perf_counter() - start)
