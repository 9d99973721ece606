"""Units in which the columns and the response of a regression have like bounds, whatever units they came in."""

from fractions import Fraction

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.modules import AbstractModule
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records

# The relative error of a midpoint and a half width, by which half widths are rounded outward.
_ROUNDING = 2.0**-50


class PublicUnits(AbstractModule):
    """Maps records to x̃_j = (x_j - m_j)/h_j and ỹ = (y - m_y)/h_y in [-1, 1], m and h being midpoints and half widths.

    The intercept stays 1. Without one nothing can be centred: all m are 0, and h are the largest |x_j| and |y|. With a
    hull m is its centre, from which 0/1 columns of many levels lie less far than from the middle of their box.

    m and h are public, and the map takes each record by itself, so neighbours stay neighbours. With θ̃ of the model
    ỹ ≈ x̃'θ̃ that of y ≈ x'θ is θ_j = h_y·θ̃_j/h_j, and beside an intercept θ_0 = m_y + h_y·θ̃_0 - Σ_{j≥1} θ_j m_j.
    """

    middles: Vector
    half_widths: Vector
    y_middle: Scalar
    y_half_width: Scalar

    @classmethod
    def of(cls, bounds: Bounds, dimension: int) -> "PublicUnits":
        """Makes the units of these bounds for d coefficients, a response without bounds in its own; runs under jit."""
        lower, upper = bounds.features(dimension)
        y_lower, y_upper = (
            (jnp.asarray(-1.0), jnp.asarray(1.0))
            if bounds.y_lower is None
            else (jnp.asarray(bounds.y_lower), jnp.asarray(bounds.y_upper))
        )
        if not bounds.intercept:
            lower, upper = _about_zero(lower, upper)
            y_lower, y_upper = _about_zero(y_lower, y_upper)
        middles, half_widths = _middle_and_half_width(lower, upper)
        if bounds.intercept:
            if bounds.hull is not None:
                centre = jnp.concatenate([jnp.asarray(part)[0] for part in bounds.hull.centres])
                middles, half_widths = _about(jnp.concatenate([jnp.ones(1), centre]), lower, upper)
            middles, half_widths = middles.at[0].set(0.0), half_widths.at[0].set(1.0)
        return cls(middles, half_widths, *_middle_and_half_width(y_lower, y_upper))

    @property
    def to_own(self) -> Float[np.ndarray, "dimension dimension"]:
        """Returns T with x = T x̃, on the host: an intercept x_0 = 1 takes the midpoints; without one all are 0."""
        made = np.diag(np.asarray(self.half_widths, np.float64))
        made[:, 0] += np.asarray(self.middles, np.float64)
        return made

    def bounds(self, bounds: Bounds) -> Bounds:
        """Returns the bounds, which these units are of, in these units; runs under jit."""
        columns = slice(int(bounds.intercept), None)
        middles, widths = self.middles[columns], self.half_widths[columns]
        y = [(jnp.asarray(side) - self.y_middle) / self.y_half_width for side in (bounds.y_lower, bounds.y_upper)]
        found = bounds.with_fields(y_lower=y[0], y_upper=y[1])
        if bounds.x_lower is not None:
            x = [(jnp.asarray(side) - middles) / widths for side in (bounds.x_lower, bounds.x_upper)]
            found = found.with_fields(x_lower=x[0], x_upper=x[1])
        if bounds.hull is None:
            return found
        blocks, centres, facets, start = [], [], [], 0
        for block, centre, facet in zip(bounds.hull.blocks, bounds.hull.centres, bounds.hull.facets, strict=True):
            place = slice(start, start := start + block.shape[-1])
            blocks.append((jnp.asarray(block) - middles[None, place]) / widths[None, place])
            centres.append((jnp.asarray(centre) - middles[None, place]) / widths[None, place])
            facets.append(jnp.asarray(facet) * widths[None, place])
        polytope = tuple(blocks), tuple(centres), tuple(facets)
        return eqx.tree_at(lambda part: (part.hull.blocks, part.hull.centres, part.hull.facets), found, polytope)

    def records(self, records: Records) -> Records:
        """Returns the records in these units. Private."""
        x, y = jnp.asarray(records.x), jnp.asarray(records.y)
        return Records((x - self.middles[None]) / self.half_widths[None], (y - self.y_middle) / self.y_half_width)

    def sums(self, sums: ExactSums) -> ExactSums:
        """Returns the sums of the records in these units, exactly. Private."""
        # Of (x, y): its first column is that of ones, or all midpoints are 0.
        table = np.vstack([np.column_stack([sums.gram, sums.moment]), [*sums.moment, sums.squares]])
        middles = _fractions([*np.asarray(self.middles), float(self.y_middle)])
        widths = _fractions([*np.asarray(self.half_widths), float(self.y_half_width)])
        ones = table[0]
        moved = table - np.outer(middles, ones) - np.outer(ones, middles) + ones[0] * np.outer(middles, middles)
        scaled = moved / np.outer(widths, widths)
        return ExactSums(sums.count, scaled[:-1, :-1], scaled[:-1, -1], scaled[-1, -1])

    def in_own_units(self, theta: Float[Array, "*draws dimension"]) -> Float[Array, "*draws dimension"]:
        """Computes θ of θ̃."""
        shape = (1,) * (theta.ndim - 1)
        own = self.y_half_width * theta / jnp.reshape(self.half_widths, (*shape, -1))
        return own.at[..., 0].add(self.y_middle - own @ self.middles)

    @property
    def sizes(self) -> Float[Array, " dimension"]:
        """Tells how large each θ_j is where every |θ̃_j| is 1 and none offsets another."""
        slopes = self.y_half_width / self.half_widths
        return slopes.at[0].add(jnp.abs(self.middles) @ slopes)


def _middle_and_half_width(lower: Array, upper: Array) -> tuple[Array, Array]:
    return _about(lower + 0.5 * (upper - lower), lower, upper)


def _about(middle: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    return middle, jnp.maximum(upper - middle, middle - lower) * (1.0 + _ROUNDING)


def _about_zero(lower: Array, upper: Array) -> tuple[Array, Array]:
    largest = jnp.maximum(jnp.abs(lower), jnp.abs(upper))
    return -largest, largest


def _fractions(numbers: list[float]) -> np.ndarray:
    return np.array([Fraction(float(number)) for number in numbers], object)
