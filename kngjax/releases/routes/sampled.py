"""The sampled route: a sampler draws from the mechanism's density, exactly or by a Markov chain."""

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float

from kngjax.core import randomness
from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.certificate import IN_FLOAT64, UNPROVED_OF_CHAINS, UNPROVED_OF_CONVERGENCE, Certificate, describe
from kngjax.releases.chains import blocks, estimate, independent_draws, require_success, run_chains
from kngjax.releases.promises import EXACT, NONE
from kngjax.releases.routes.base import ON_REQUEST, AbstractRoute
from kngjax.releases.sampler_choice import exact_sampler, require_enough
from kngjax.samplers.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler


@dataclasses.dataclass(frozen=True)
class SampledRoute(AbstractRoute):
    """Draws once from the density by a sampler.

    **Arguments:** `mechanism`, `facts`: as for `AbstractRoute.admits`. `sampler`: with all tuning from public facts.
    `reason`: why this one.
    """

    mechanism: AbstractDensityMechanism
    facts: Facts
    sampler: AbstractSampler
    reason: str

    requests: ClassVar[type | None] = AbstractSampler

    @classmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "SampledRoute | None":
        if not isinstance(mechanism, AbstractDensityMechanism):
            return None
        dimension, reason = facts.dimension, ON_REQUEST
        if sampler is None:
            sampler, reason = exact_sampler(mechanism, dimension, facts.num_records)
        elif isinstance(sampler, AbstractIndependentSampler) and sampler.stated_records is not None:
            stated, known = sampler.stated_records, facts.num_records
            require_enough(mechanism, dimension, stated if known is None else min(stated, known))
        with float64():
            sampler = sampler.for_release()
            # Types and shapes of the target decide, which are the same for all records: here for one that nobody has.
            nobody = mechanism.summarise(mechanism.rows_of_zeros(1, dimension))
            sampler.admit(jax.eval_shape(mechanism.target, nobody))
        if isinstance(sampler, AbstractChainSampler):
            num_blocks, block = blocks(sampler, dimension)
            sampler = dataclasses.replace(sampler, num_sweeps=num_blocks * block)
        return cls(mechanism, facts, sampler, reason)

    def certify(self) -> Certificate:
        is_exact = isinstance(self.sampler, AbstractIndependentSampler)
        unproved = (*UNPROVED_OF_CHAINS, *self.sampler.unproved, *UNPROVED_OF_CONVERGENCE)
        return Certificate.of(
            self.mechanism,
            self.facts,
            describe(self.sampler),
            self.reason,
            promise=EXACT if is_exact else NONE,
            assumptions=(*IN_FLOAT64, *self.sampler.assumptions),
            failures=self.sampler.failures,
            unproved=() if is_exact else unproved,
        )

    def prepare(self, X: Any, y: Any) -> Data:
        return with_a_row(self.mechanism, self.mechanism.prepare(X, y))

    def draw(self, data: Data, progress: bool | None) -> Float[np.ndarray, " dimension"]:
        with float64():
            key = randomness.secure_key()
            if isinstance(self.sampler, AbstractIndependentSampler):
                draws, succeeded = independent_draws(self.mechanism, data, self.sampler, key, 1, progress)
                require_success(bool(succeeded))
                return np.array(draws[0])
            assert isinstance(self.sampler, AbstractChainSampler)
            centre = estimate(self.mechanism, data)
            num_blocks, block = blocks(self.sampler, data.dimension)
            thetas, _ = run_chains(self.mechanism, data, self.sampler, centre, key, 1, 0, num_blocks, block, progress)
            return thetas[0, -1]


def with_a_row(mechanism: AbstractDensityMechanism, data: Data) -> Data:
    """Puts a row of zeros in the place of no records, which adds a constant to the log-density: samplers need a row."""
    are_rows = isinstance(data, Records | WeightedRecords)
    if not (mechanism.takes_shards and are_rows and isinstance(mechanism.loss, AbstractPredictorLoss)):
        return data
    return data if data.num_records else mechanism.rows_of_zeros(1, data.dimension)
