"""How mechanisms draw with every rounding in their proof."""

import abc
import math
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.balls import DEFAULT_DIGITS, precision
from kngjax.samplers.grid.uniforms import Bits


class AbstractGridDraw(abc.ABC):
    """One draw of a mechanism of which every rounding is part of the proof. All that it is made of is public.

    What real arithmetic draws is rounded once to a public grid, which is post-processing, and all that decides where to
    is decided as real arithmetic decides. What follows is a function of the grid's numbers, and needs no
    proof. No draw fails: searches go on until they have found what they look for. `mechanism`: whose law is drawn.
    `grid`: what a value is rounded to, where that is one grid; who has several says so in its `settings`.
    `takes_weights`: whether it knows of weights that records keep.
    """

    mechanism: Any
    grid: Any
    takes_weights: ClassVar[bool] = False

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of what a release publishes besides θ, which the guarantee is of as well."""
        return {}

    @property
    def published_numbers(self) -> int:
        """How many numbers that is."""
        return sum(math.prod(shape) for shape in self.published.values())

    @property
    def settings(self) -> dict[str, Any]:
        """What a certificate says of the sampler, JSON-ready: its "type" and the exponents of the grid."""
        return {"type": "Direct", "grid_exponents": list(self.grid.exponents)}

    @property
    @abc.abstractmethod
    def method(self) -> str:
        """How it is drawn, in a sentence or two for the certificate."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee needs besides exact arithmetic, in words."""
        return getattr(self.mechanism, "assumptions", ())

    def prepare(self, X: Any, y: Any) -> Any:
        """What `draw` needs of validated and clipped records, exactly. Private."""
        with float64():
            return self.mechanism.exact_sums(X, y)

    def draw_alone(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        """As `draw`, while no other thread computes in balls: from the same bits always the same value."""
        numbers = self.draw_all_alone(data, bits)
        return numbers[: len(numbers) - self.published_numbers]

    def draw_all_alone(self, data: Any, bits: Bits) -> Float[np.ndarray, " numbers"]:
        """As `draw_all`, while no other thread computes in balls."""
        with precision(DEFAULT_DIGITS):
            return self.draw_all(data, bits)

    def draw_all(self, data: Any, bits: Bits) -> Float[np.ndarray, " numbers"]:
        """One draw of θ, and after it the numbers of `published`, one array after another."""
        return self.draw(data, bits)

    @abc.abstractmethod
    def draw(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        """One draw. Private but for its value. **Arguments:** `data`: from `prepare`. `bits`: fair and independent."""
