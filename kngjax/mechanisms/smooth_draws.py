"""KNG with the pseudo-Huber loss, drawn with every rounding in its proof."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.core.balls import precision
from kngjax.data.admission import Facts
from kngjax.geometry.abstract_norms import Noise
from kngjax.losses.huber import PseudoHuberLoss
from kngjax.losses.verified_scores import number
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.grid_draws import AbstractGridDraw
from kngjax.samplers.advice import GRADIENTS_UNASKED, LITTLE_RANGE, MOST_BOXED
from kngjax.samplers.grid.cells import Grid
from kngjax.samplers.grid.smooth.boxes import cover
from kngjax.samplers.grid.smooth.certificate import certify
from kngjax.samplers.grid.smooth.envelope import Envelope, build, of_boxes
from kngjax.samplers.grid.smooth.records import PseudoHuberRecords
from kngjax.samplers.grid.smooth.regions import Gauge, Region
from kngjax.samplers.grid.smooth.search import Problem, draw
from kngjax.samplers.grid.smooth.solutions import estimate
from kngjax.samplers.grid.uniforms import Bits
from kngjax.sensitivity.record_facts import changes_of_products, feature_intervals, gradient_noise

# Cells are so many binary digits finer than the least that KNG's noise can be for any records. Float64 knows draws to
# some 2^-12 of such a cell, and few need more digits.
_DIGITS = 10
# Digits for the numbers of the envelope, of which float64 keeps 53.
_PRECISION = 128
# Where there are no boxes one in e^6 proposals is accepted, each of which takes longer than many of float64 do.
_LITTLE_RANGE_OF_MANY = 6.0
# Log of how many times the core's mass an envelope may have before boxes are tried.
_ENOUGH = 2.0
# Public numbers lie within these powers of two, so that float64 neither overflows nor loses digits.
_SMALLEST, _LARGEST = 2.0**-100, 2.0**100


def draws_on_grid(mechanism: AbstractDensityMechanism, facts: Facts) -> "GradientsOnGrid | None":
    """The way, where public facts say that it serves.

    Under replace alone, as n must be public, from the n·ε on that `samplers.advice` has for draws in the space of
    gradients, whatever the records; or where the density varies little over Θ. Up to four coefficients boxes serve
    where gradients do not, as of an estimate outside of Θ; with more, what is said of `Exact` there is true here. How
    long a search takes depends on the records, as it does there.
    """
    loss, count, dimension = mechanism.loss, facts.num_records, facts.dimension
    if not isinstance(loss, PseudoHuberLoss) or mechanism.is_pointwise or mechanism.bounds.hull is not None:
        return None
    if count is None or mechanism.adjacency is not Adjacency.REPLACE or not facts.are_in_memory:
        return None
    if not mechanism.domain.is_uniform:
        return None
    noise = noise_of(mechanism, dimension)
    if noise is None or not noise.is_everywhere or not _are_moderate(mechanism, dimension):
        return None
    enough = exactly(float(mechanism.epsilon)) * count >= GRADIENTS_UNASKED * dimension**2
    little = LITTLE_RANGE if dimension <= MOST_BOXED else _LITTLE_RANGE_OF_MANY
    if not enough and mechanism.log_range(dimension, count) > little:
        return None
    return GradientsOnGrid(mechanism, count, dimension)


def noise_of(mechanism: AbstractDensityMechanism, dimension: int) -> Noise | None:
    """That with density ∝ exp(-ε/(2Δ)·‖z‖_K), without rounding. A score lies in [-k, k]."""
    k, rate = _threshold(mechanism), exactly(float(mechanism.epsilon)) / 2
    features = feature_intervals(mechanism.bounds, dimension)
    return gradient_noise(changes_of_products((-k, k), features, mechanism.adjacency), mechanism.given_norm, rate)


def _threshold(mechanism: AbstractDensityMechanism) -> Fraction:
    assert isinstance(mechanism.loss, PseudoHuberLoss)
    return Fraction(number(mechanism.loss.k))


def _sizes(mechanism: AbstractDensityMechanism, dimension: int) -> list[Fraction]:
    """max|x_j| of each feature within the bounds."""
    return [max(abs(low), abs(high)) for low, high in feature_intervals(mechanism.bounds, dimension)]


def _are_moderate(mechanism: AbstractDensityMechanism, dimension: int) -> bool:
    shape = mechanism.domain.exact_shape(dimension)
    if shape is None:
        return False
    ends = [float(end) for side in (shape.lower, shape.upper) for end in side if end != 0.0]
    numbers = [_threshold(mechanism), *_sizes(mechanism, dimension), *map(abs, ends)]
    return all(_SMALLEST < number < _LARGEST for number in numbers)


@dataclasses.dataclass(frozen=True)
class GradientsOnGrid(AbstractGridDraw):
    """One draw of KNG by its gradients. **Arguments:** `count`: n. `dimension`: d."""

    mechanism: AbstractDensityMechanism
    count: int
    dimension: int

    @property
    def grid(self) -> Grid:
        """h_j with 2^10·h_j about 4k·max|x_j|/ε over n·max|x_j|², the largest that H_jj can be."""
        rate, k = exactly(float(self.mechanism.epsilon)), _threshold(self.mechanism)
        sizes = [4 * k / (rate * self.count * size) for size in _sizes(self.mechanism, self.dimension)]
        return Grid(tuple(one.numerator.bit_length() - one.denominator.bit_length() - _DIGITS for one in sizes))

    @property
    def settings(self) -> dict[str, Any]:
        return {"type": "GradientsOnGrid", "grid_exponents": list(self.grid.exponents)}

    @property
    def method(self) -> str:
        return (
            "Rejection in the space of gradients. All that decides is computed in balls that contain it, and the draw "
            "is rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
        )

    @property
    def sets(self) -> tuple[Gauge, Region]:
        """‖·‖ and Θ."""
        noise, shape = noise_of(self.mechanism, self.dimension), self.mechanism.domain.exact_shape(self.dimension)
        assert noise is not None
        assert shape is not None
        return Gauge(noise), Region(shape)

    def prepare(self, X: Any, y: Any) -> PseudoHuberRecords:
        with float64():
            records = self.mechanism.records(X, y)
        x, y = np.asarray(records.x, np.float64), np.asarray(records.y, np.float64)
        return PseudoHuberRecords.of(x, y, float(_threshold(self.mechanism)))

    def envelope(self, records: PseudoHuberRecords) -> Envelope:
        """About an estimate, or about where Θ ends on the way to it; of boxes where those are worse. Private."""
        gauge, region = self.sets
        with precision(_PRECISION), np.errstate(all="ignore"):
            found = estimate(records)
            within = region.nearby(found)
            is_within = np.array_equal(within, found)
            certificates = [certify(records, gauge, region, one) for one in ([found] if is_within else [found, within])]
            envelope = min((build(one, gauge, region) for one in certificates), key=lambda made: made.log_mass)
            # If the estimate is not in Θ most of the shells may not be.
            serves = envelope.log_excess <= _ENOUGH and is_within
            if serves or self.dimension > MOST_BOXED:
                return envelope
            factor = region.scales if certificates[-1] is None else certificates[-1].factor
            boxes, log_mass = cover(records, gauge, region, within, factor)
            return envelope if envelope.log_mass <= log_mass else of_boxes(boxes, log_mass)

    def draw(self, data: PseudoHuberRecords, bits: Bits) -> Float[np.ndarray, " dimension"]:
        with np.errstate(all="ignore"):
            cell = draw(Problem(data, *self.sets), self.envelope(data), self.grid, bits)
        return self.grid.values(cell)
