"""Defines the base class of draws: the ways from records to one value of a mechanism's law."""

import abc
import math
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.balls import DEFAULT_DIGITS, precision
from kngjax.data.schema import Schema
from kngjax.draws.uniforms import Bits

# How much of a draw is proved: with every rounding, in real arithmetic, or, of a Markov chain, nothing.
PROVED, IN_REALS, NONE = "proved", "in_reals", "none"
ON_REQUEST = "Asked for by the caller."
TOO_MANY = ("more than max_records records",)


class AbstractDraw(abc.ABC):
    """Draws a mechanism's value. All its settings are public.

    A draw that is `PROVED` is exact in real arithmetic and then rounded once to a public grid, which is
    post-processing; the grid point is decided as real arithmetic decides it. Whatever is computed from the grid's
    numbers needs no proof. No such draw fails: searches go on until they have found what they look for. `mechanism`:
    whose law is drawn. `grid`: what a value is rounded to, where that is one grid; a draw with several says so in its
    `settings`. `serves`: the classes of mechanisms that it is asked about. `takes_weights`: whether it knows of
    weights that records keep. `assurance`: how much is proved. `kind`: what a certificate calls the sampler.
    `rounding`: what a certificate says after the mechanism's own `method`, if it has one.
    """

    mechanism: Any
    grid: Any
    serves: ClassVar[tuple[type, ...]]
    takes_weights: ClassVar[bool] = False
    assurance: ClassVar[str] = PROVED
    kind: ClassVar[str] = "Direct"
    rounding: ClassVar[str] = ""

    @classmethod
    @abc.abstractmethod
    def of(cls, mechanism: Any, facts: Schema) -> "AbstractDraw | None":
        """Returns the draw with all its settings; None where it does not serve this mechanism. Public.

        **Arguments:** `mechanism`: of one of the classes of `serves`. `facts`: of the records, all of them public.
        """

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        """Returns the names and shapes of what a release publishes besides θ, which the guarantee is of as well."""
        return {}

    @property
    def published_numbers(self) -> int:
        """Counts the numbers that a release publishes besides θ."""
        return sum(math.prod(shape) for shape in self.published.values())

    @property
    def settings(self) -> dict[str, Any]:
        """Describes the sampler for a certificate, JSON-ready: its "type" and the exponents of the grid."""
        return {"type": self.kind, "grid_exponents": list(self.grid.exponents)}

    @property
    def method(self) -> str:
        """Says how θ is drawn, in a sentence or two for the certificate."""
        return f"{getattr(self.mechanism, 'method', '')} {self.rounding}".strip()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Lists what the guarantee needs besides exact arithmetic, in words."""
        return getattr(self.mechanism, "assumptions", ())

    @property
    def proofs(self) -> tuple[str, ...]:
        """Names the pages of `docs/proofs/` that its assurance rests on."""
        return {PROVED: ("balls",), IN_REALS: ("rounding",)}.get(self.assurance, ())

    @property
    def failures(self) -> tuple[str, ...]:
        """Lists what can make it fail, besides what can for every release."""
        return ()

    @property
    def duration(self) -> str:
        """Says roughly how long a draw takes. Public: how long one took is not."""
        return "a few passes over the records"

    @property
    def unproved(self) -> tuple[str, ...]:
        """Lists what nobody has proved of it."""
        return ()

    def prepare(self, X: Any, y: Any) -> Any:
        """Computes exactly what `draw` needs of validated and clipped records. Private."""
        with float64():
            return self.mechanism.intake.exact_sums(X, y)

    def draw_alone(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        """Draws θ while no other thread computes in balls: the same bits always give the same value."""
        numbers = self.draw_all_alone(data, bits)
        return numbers[: len(numbers) - self.published_numbers]

    def draw_all_alone(self, data: Any, bits: Bits, progress: bool | None = False) -> Float[np.ndarray, " numbers"]:
        """Draws θ and the numbers of `published` while no other thread computes in balls.

        **Arguments:** `progress`: whether a search that has a bar shows it; None shows it on a terminal.
        """
        with precision(DEFAULT_DIGITS):
            return self.draw_all(data, bits)

    def draw_all(self, data: Any, bits: Bits) -> Float[np.ndarray, " numbers"]:
        """Draws θ, followed by the numbers of `published`, one array after another."""
        return self.draw(data, bits)

    @abc.abstractmethod
    def draw(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        """Draws θ. Private but for its value. **Arguments:** `data`: from `prepare`. `bits`: fair and independent."""
