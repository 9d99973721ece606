"""Makes many draws from a mechanism's law for the owner's eyes: they give no privacy."""

import dataclasses
import time
import warnings
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from kngjax.chains.base import AbstractChainSampler, AbstractSampler
from kngjax.core.arrays import float64
from kngjax.core.compiling import quick_compilation
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import Data
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.shells.shells import Shells
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.owner.diagnostics import UNMIXED, DrawsSummary
from kngjax.owner.draws import Draws
from kngjax.releases.chains import estimate, independent_draws, run_chains
from kngjax.releases.default_sampler import research_sampler

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
    start = time.perf_counter()
    require_typed_key(key)
    if not isinstance(data, Data):
        raise TypeError("data must come from mechanism.prepare(X, y), which validates and clips the records")
    for name, count in (("num_draws", num_draws), ("num_chains", num_chains), ("thinning", thinning)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    chosen: Any = research_sampler(mechanism, sampler, data.dimension, data.num_records)
    if isinstance(chosen, AbstractChainSampler) and num_warmup is not None:
        chosen = dataclasses.replace(chosen, num_warmup=num_warmup)
    num_read = num_chains * num_draws * sum(map(np.size, jax.tree.leaves(data)))
    with float64(), quick_compilation(num_read):
        if isinstance(mechanism, AbstractDensityMechanism):
            # Types and shapes decide, so nothing is computed.
            chosen.admit(jax.eval_shape(mechanism.target, data))
        if isinstance(chosen, AbstractChainSampler):
            assert isinstance(mechanism, AbstractDensityMechanism)
            centre, warmup = estimate(mechanism, data), chosen.num_warmup
            thetas, info = run_chains(
                mechanism, data, chosen, centre, key, num_chains, warmup, num_draws, thinning, progress
            )
        else:
            drawn = independent_draws(mechanism, data, chosen, key, num_draws * num_chains)
            # A copy: a NumPy view would keep the float64 JAX array alive.
            thetas, info = np.array(drawn).reshape(num_chains, num_draws, -1), None
    seconds = time.perf_counter() - start
    if info is not None and not DrawsSummary.of(thetas[:_CHAINS_LOOKED_AT], ()).suffices:
        warnings.warn(f"{UNMIXED}; the owner sees which coefficient by draws.summary().explain()", stacklevel=2)
    names = mechanism.bounds.coefficients
    names = names if names is not None and len(names) == thetas.shape[2] else None
    return Draws(thetas, type(chosen or mechanism).__name__, info, names, seconds)
