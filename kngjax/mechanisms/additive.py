"""Mechanisms that add noise to a statistic: what they say of both in fractions, for draws without a rounding error."""

import abc
from fractions import Fraction
from typing import Literal, NamedTuple

from kngjax.data.exact_sums import ExactSums
from kngjax.mechanisms.direct import AbstractDirectMechanism


class Noise(NamedTuple):
    """z ∈ R^d with density ∝ exp(-‖z/w‖/λ), where (z/w)_j = z_j/w_j, without rounding.

    **Arguments:** `kind`: of ‖·‖: the largest |·|, their sum, or the length. `weights`: w. `scale_squared`: λ², since
    lengths have roots.
    """

    kind: Literal["maximum", "sum", "length"]
    weights: tuple[Fraction, ...]
    scale_squared: Fraction


class AbstractAdditiveMechanism(AbstractDirectMechanism):
    """A mechanism whose value is a statistic T of the records plus noise."""

    @abc.abstractmethod
    def noise_in_fractions(self, dimension: int, num_records: int) -> Noise | None:
        """The noise for n records, which is public, exactly; None where it has no such form."""

    @abc.abstractmethod
    def location(self, sums: ExactSums) -> list[Fraction]:
        """T, of exact sums over all records. Private."""
