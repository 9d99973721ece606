"""Declares what every route of a release answers, in the order of a release."""

import abc
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.data.admission import Facts
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import Certificate

ON_REQUEST = "Asked for by the caller."


class AbstractRoute(abc.ABC):
    """A way from records to one value of a mechanism's law, settled before a value is looked at: all of it is public.

    `requests`: of which kind the caller's `sampler` is where it asks for this route; None where nothing asks for it.
    """

    requests: ClassVar[type | None] = None

    @classmethod
    @abc.abstractmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "AbstractRoute | None":
        """This route with all its settings; None where another one is to be taken.

        **Arguments:** `sampler`: what the caller asked for, or None. `facts`: of the records.

        Raises ValueError or TypeError, of public facts alone, for a request that cannot be met.
        """

    @abc.abstractmethod
    def certify(self) -> Certificate:
        """The certificate of one draw, made of public facts alone."""

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of what is released besides θ, of which the guarantee is as well."""
        return {}

    @abc.abstractmethod
    def prepare(self, X: Any, y: Any) -> Any:
        """Prepares what `draw` needs of the records, validated and clipped. Private."""

    @abc.abstractmethod
    def draw(self, data: Any, progress: bool | None) -> Float[np.ndarray, " numbers"]:
        """Draws once with randomness of the operating system, before it is rounded: θ, then `published`. Private.

        **Arguments:** `data`: from `prepare`. `progress`: whether to show a bar; None shows it on a terminal.
        """
