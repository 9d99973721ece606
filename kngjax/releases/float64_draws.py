"""Draws computed in float64: independent ones, exact in real arithmetic, and those of Markov chains."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.chains.base import AbstractChainSampler, AbstractIndependentSampler
from kngjax.core.arrays import float64
from kngjax.core.randomness import key_from
from kngjax.core.representation import describe
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.draws.base import IN_REALS, NONE, AbstractDraw
from kngjax.draws.uniforms import Bits
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.releases.chains import (
    SEARCH_GIVEN_UP,
    blocks,
    direct_draws,
    estimate,
    independent_draws,
    require_success,
    run_chains,
)

UNPROVED_OF_CHAINS = (
    "how far the law of this draw is from the law that the guarantee is about: it comes from a Markov chain after "
    "finitely many sweeps, whose limit that law is. So the delta of this release is unknown",
    "what the start of the chain does to it: a point that the private data choose, by the density, among draws from an "
    "inflated limit law about the non-private estimate and from the base measure. The number of sweeps is public",
)
UNPROVED_OF_CONVERGENCE = (
    "that the chain has converged: diagnostics of such chains are evidence, not proof, and are not part of a release",
)


@dataclasses.dataclass(frozen=True)
class DirectDraw(AbstractDraw):
    """Draws independently, exactly in real arithmetic: by the mechanism itself, or by a sampler from its density.

    **Arguments:** `sampler`: with all tuning from public facts; None of a mechanism that draws from its own law.
    `reason`: why this sampler.
    """

    mechanism: Any
    sampler: AbstractIndependentSampler | None = None
    reason: str = ""

    assurance: ClassVar[str] = IN_REALS
    serves: ClassVar[tuple[type, ...]] = (AbstractDirectMechanism,)

    @classmethod
    def of(cls, mechanism: AbstractDirectMechanism, facts: Schema) -> "DirectDraw":
        return cls(mechanism)

    @property
    def settings(self) -> dict[str, Any]:
        return {"type": "Direct"} if self.sampler is None else describe(self.sampler)

    @property
    def method(self) -> str:
        return self.mechanism.method if self.sampler is None else self.reason

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (self.sampler or self.mechanism).assumptions

    @property
    def failures(self) -> tuple[str, ...]:
        return (self.sampler or self.mechanism).failures

    @property
    def duration(self) -> str:
        if self.sampler is None:
            return super().duration
        return "fractions of a second where the domain holds the estimate and noise about it; else it may be given up"

    def prepare(self, X: Any, y: Any) -> Data:
        data = self.mechanism.prepare(X, y)
        return data if self.sampler is None else with_a_row(self.mechanism, data)

    def draw_all_alone(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        return self.draw(data, bits, progress)

    def draw(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        with float64():
            key = key_from(bits)
            if self.sampler is None:
                draws, succeeded = direct_draws(self.mechanism, data, key, 1)
            else:
                draws, succeeded = independent_draws(self.mechanism, data, self.sampler, key, 1)
            require_success(bool(succeeded), self.mechanism.advice if self.sampler is None else SEARCH_GIVEN_UP)
            return np.array(draws[0])


@dataclasses.dataclass(frozen=True)
class ChainDraw(AbstractDraw):
    """Draws by a Markov chain, whose law after finitely many sweeps nobody has proved to be the mechanism's.

    **Arguments:** `sampler`: with all tuning and its number of sweeps from public facts. `reason`: why this one.
    """

    mechanism: AbstractDensityMechanism
    sampler: AbstractChainSampler
    reason: str

    assurance: ClassVar[str] = NONE
    serves: ClassVar[tuple[type, ...]] = ()

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> None:
        """Serves nothing unasked: a chain is named."""

    @property
    def settings(self) -> dict[str, Any]:
        return describe(self.sampler)

    @property
    def method(self) -> str:
        return self.reason

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self.sampler.assumptions

    @property
    def failures(self) -> tuple[str, ...]:
        return self.sampler.failures

    @property
    def unproved(self) -> tuple[str, ...]:
        return (*UNPROVED_OF_CHAINS, *self.sampler.unproved, *UNPROVED_OF_CONVERGENCE)

    @property
    def duration(self) -> str:
        return f"{self.sampler.num_sweeps} sweeps of the chain"

    def prepare(self, X: Any, y: Any) -> Data:
        return with_a_row(self.mechanism, self.mechanism.prepare(X, y))

    def draw_all_alone(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        return self.draw(data, bits, progress)

    def draw(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        with float64():
            key, centre = key_from(bits), estimate(self.mechanism, data)
            num_blocks, block = blocks(self.sampler, data.dimension)
            thetas, _ = run_chains(self.mechanism, data, self.sampler, centre, key, 1, 0, num_blocks, block, progress)
            return thetas[0, -1]


def with_a_row(mechanism: AbstractDensityMechanism, data: Data) -> Data:
    """Puts a row of zeros in the place of no records, which adds a constant to the log-density: samplers need a row."""
    are_rows = isinstance(data, Records | WeightedRecords)
    if not (mechanism.intake.takes_shards and are_rows and isinstance(mechanism.loss, AbstractPredictorLoss)):
        return data
    return data if data.num_records else mechanism.intake.rows_of_zeros(1, data.dimension)
