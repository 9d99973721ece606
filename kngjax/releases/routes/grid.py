"""The grid route: what real arithmetic draws, rounded once to a public grid."""

import dataclasses
import secrets
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.data.admission import Facts
from kngjax.draws.base import AbstractDraw
from kngjax.draws.choice import proved_draw
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import EXACT_ARITHMETIC, Certificate
from kngjax.releases.routes.base import AbstractRoute


@dataclasses.dataclass(frozen=True)
class GridRoute(AbstractRoute):
    """Draws once with every rounding in the proof. **Arguments:** as for `AbstractRoute.admits`; `way`: how."""

    mechanism: AbstractMechanism
    facts: Facts
    way: AbstractDraw

    @classmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "GridRoute | None":
        way = proved_draw(mechanism, facts) if sampler is None else None
        if way is None or (mechanism.bounds.weight is not None and not way.takes_weights):
            return None
        return cls(mechanism, facts, way)

    def certify(self) -> Certificate:
        return Certificate.of(
            self.mechanism,
            self.facts,
            {**self.way.settings, **({"published": sorted(self.published)} if self.published else {})},
            self.way.method,
            is_rounded=False,
            assumptions=(*EXACT_ARITHMETIC, *self.way.assumptions),
        )

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        return self.way.published

    def prepare(self, X: Any, y: Any) -> Any:
        return self.way.prepare(X, y)

    def draw(self, data: Any, progress: bool | None) -> Float[np.ndarray, " numbers"]:
        return self.way.draw_all_alone(data, secrets.randbits)
