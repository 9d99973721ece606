"""Draws computed in float64: independent ones, exact in real arithmetic, and those of Markov chains."""

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.randomness import key_from
from kngjax.core.representation import describe
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.draws.base import IN_REALS, NONE, AbstractDraw
from kngjax.draws.uniforms import Bits
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.chains import blocks, estimate, independent_draws, run_chains

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
class AbstractFloat64Draw(AbstractDraw):
    """Draws in float64, by a sampler or from a mechanism's own law. No table asks for it: `draw_choice` makes it.

    **Arguments:** `sampler`: with all tuning from public facts; None of a mechanism that draws from its own law.
    `reason`: why this sampler.
    """

    mechanism: Any
    sampler: Any = None
    reason: str = ""

    serves: ClassVar[tuple[type, ...]] = ()

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> None:
        """Serves nothing unasked."""

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

    def prepare(self, X: Any, y: Any) -> Data:
        data = self.mechanism.prepare(X, y)
        return data if self.sampler is None else with_a_row(self.mechanism, data)

    def draw_all_alone(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        return self.draw(data, bits, progress)

    @abc.abstractmethod
    def draw(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]: ...


@dataclasses.dataclass(frozen=True)
class DirectDraw(AbstractFloat64Draw):
    """Draws independently, exactly in real arithmetic: by the mechanism itself, or by a sampler from its density."""

    assurance: ClassVar[str] = IN_REALS

    @property
    def duration(self) -> str:
        if self.sampler is None:
            return super().duration
        return "fractions of a second where the domain holds the estimate and noise about it; else it may be given up"

    def draw(self, data: Data, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " dimension"]:
        with float64():
            return np.array(independent_draws(self.mechanism, data, self.sampler, key_from(bits), 1)[0])


@dataclasses.dataclass(frozen=True)
class ChainDraw(AbstractFloat64Draw):
    """Draws by a Markov chain, whose law after finitely many sweeps nobody has proved to be the mechanism's.

    Its sampler has a public number of sweeps.
    """

    assurance: ClassVar[str] = NONE

    @property
    def unproved(self) -> tuple[str, ...]:
        return (*UNPROVED_OF_CHAINS, *self.sampler.unproved, *UNPROVED_OF_CONVERGENCE)

    @property
    def duration(self) -> str:
        return f"{self.sampler.num_sweeps} sweeps of the chain"

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
