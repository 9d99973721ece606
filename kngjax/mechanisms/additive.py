"""Mechanisms that add noise to a statistic: what they say of both in fractions, for draws without a rounding error."""

import abc
from fractions import Fraction

from kngjax.data.exact_sums import ExactSums
from kngjax.geometry.abstract_norms import Noise
from kngjax.mechanisms.direct import AbstractDirectMechanism


class AbstractAdditiveMechanism(AbstractDirectMechanism):
    """A mechanism whose value is a statistic T of the records plus noise."""

    @abc.abstractmethod
    def noise_in_fractions(self, dimension: int, num_records: int) -> Noise | None:
        """The noise for n records, which is public, exactly; None where it has no such form."""

    @abc.abstractmethod
    def location(self, sums: ExactSums) -> list[Fraction]:
        """T, of exact sums over all records. Private."""
