"""The direct route: the mechanism draws from its own law."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core import randomness
from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.records import Data
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.releases.certificate import IN_FLOAT64, Certificate
from kngjax.releases.chains import direct_draws, require_sampler, require_success
from kngjax.releases.routes.base import AbstractRoute


@dataclasses.dataclass(frozen=True)
class DirectRoute(AbstractRoute):
    """Draws once by the mechanism itself. **Arguments:** as for `AbstractRoute.admits`."""

    mechanism: AbstractDirectMechanism
    facts: Facts

    @classmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "DirectRoute | None":
        if not isinstance(mechanism, AbstractDirectMechanism):
            return None
        require_sampler(mechanism, sampler)
        return cls(mechanism, facts)

    def certify(self) -> Certificate:
        return Certificate.of(
            self.mechanism,
            self.facts,
            {"type": "Direct"},
            self.mechanism.method,
            assumptions=(*IN_FLOAT64, *self.mechanism.assumptions),
            failures=self.mechanism.failures,
        )

    def prepare(self, X: Any, y: Any) -> Data:
        return self.mechanism.prepare(X, y)

    def draw(self, data: Data, progress: bool | None) -> Float[np.ndarray, " dimension"]:
        with float64():
            draws, succeeded = direct_draws(self.mechanism, data, randomness.secure_key(), 1)
            require_success(bool(succeeded), self.mechanism.advice)
            return np.array(draws[0])
