"""Public bounds of one record: promises that were made before the data were seen."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax._arrays import Scalar, is_traced, parameter, require_moderate
from kngjax._shown import ShownAsTyped
from kngjax.features import FeatureHull

Side = Float[Array, "*columns"] | Float[np.ndarray, "*columns"]


class Bounds(ShownAsTyped, eqx.Module):
    """Public bounds of one record: x_j ∈ [lower_j, upper_j] for each column and y ∈ [y_lower, y_upper].

    **Arguments:**

    - `x`: a pair (lower, upper) of scalars, which broadcast over the columns, or of arrays of shape (columns,).
        None if there are no columns, the intercept being the whole model, or if `hull` says it all.
    - `y`: a pair of scalars, or None where the loss needs no bound on the response.
    - `intercept`: whether the model starts with a constant column of ones, which the data do not contain.
    - `hull`: a polytope that contains the columns of every record, for columns that are functions of one another;
        None if any point of the box may be a record. `x` then is by default the smallest box around it.

    Everything here is public. Bounds taken from the data, such as their minimum and maximum, void the guarantee.
    Raises ValueError for bounds that are reversed, equal to zero on both sides, or not finite, and for a hull that has
    other columns or is centred outside of the box.
    """

    x_lower: Side | None
    x_upper: Side | None
    y_lower: Scalar | None
    y_upper: Scalar | None
    intercept: bool = eqx.field(static=True)
    hull: FeatureHull | None

    def __init__(self, x: Any = None, y: Any = None, intercept: bool = True, hull: FeatureHull | None = None):
        self.hull = hull
        self.x_lower, self.x_upper = _pair("x", hull.box if x is None and hull is not None else x)
        self.y_lower, self.y_upper = _pair("y", y)
        self.intercept = bool(intercept)

    def __check_init__(self):
        if self.x_lower is None and not self.intercept:
            raise ValueError("with neither x nor an intercept there is nothing to estimate: give bounds for x")
        if any(side is not None and np.ndim(side) for side in (self.y_lower, self.y_upper)):
            raise ValueError("the bounds of y must be two scalars: (lower, upper)")
        if self.hull is None or is_traced(self.x_lower, self.x_upper):
            return
        if (given := _columns(self.x_lower, self.x_upper)) not in (None, self.hull.columns):
            raise ValueError(f"bounds.x is for {given} columns and the hull for {self.hull.columns}")
        # What lies outside of the hull moves towards its centre, and may not leave the box on the way.
        if not np.all((np.asarray(self.x_lower) < self.hull.centre) & (self.hull.centre < np.asarray(self.x_upper))):
            raise ValueError(
                f"the hull's centre {self.hull.centre} lies outside of the bounds of x: leave x out, and it is the "
                "smallest box around the hull"
            )

    @property
    def columns(self) -> int | None:
        """The number of columns of X, without the intercept; None if scalar bounds leave it open."""
        if self.hull is not None:
            return self.hull.columns
        if self.x_lower is None or self.x_upper is None:
            return 0
        return _columns(self.x_lower, self.x_upper)

    @property
    def dimension(self) -> int | None:
        """The number of coefficients; None if scalar bounds leave it open."""
        return None if self.columns is None else self.columns + self.intercept

    def for_dimension(self, dimension: int) -> "Bounds":
        """The same bounds with one value a column, for d coefficients: data with other columns are refused."""
        if self.x_lower is None or self.x_upper is None or self.columns is not None:
            return self
        columns = dimension - self.intercept
        x = tuple(np.broadcast_to(np.asarray(side), (columns,)).copy() for side in (self.x_lower, self.x_upper))
        y = None if self.y_lower is None else (self.y_lower, self.y_upper)
        return Bounds(x, y, self.intercept, self.hull)

    def features(self, dimension: int) -> tuple[Any, Any]:
        """Lower and upper bounds of the d features, with the intercept's (1, 1) first."""
        columns = dimension - self.intercept
        one = jnp.ones(int(self.intercept))
        if self.x_lower is None or self.x_upper is None:
            return one, one
        lower, upper = (jnp.broadcast_to(side, (columns,)) for side in (self.x_lower, self.x_upper))
        return jnp.concatenate([one, lower]), jnp.concatenate([one, upper])

    def feature_blocks(self, dimension: int) -> tuple[Any, ...]:
        """Points of shapes (m, features of the block): the product of their hulls contains the d features of a record.

        A block for each column of the box, or those of the hull; the intercept's single point comes first.
        """
        if self.hull is not None:
            return (np.ones((1, 1)),) * self.intercept + self.hull.outer_blocks
        lower, upper = self.features(dimension)
        sides = [jnp.stack([lower[place], upper[place]])[:, None] for place in range(self.intercept, dimension)]
        return (np.ones((1, 1)),) * self.intercept + tuple(sides)


def _columns(*sides: Any) -> int | None:
    return max((np.shape(side)[-1] for side in sides if np.ndim(side)), default=None)


def _pair(name: str, pair: Any) -> tuple[Any, Any]:
    if pair is None:
        return None, None
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"the bounds of {name} must be a pair (lower, upper), got {pair!r}")
    lower, upper = (parameter(side) for side in pair)
    if np.ndim(lower) > 1 or np.ndim(upper) > 1:
        raise ValueError(f"the bounds of {name} must be scalars or have one value a column")
    if np.ndim(lower) and np.ndim(upper) and np.shape(lower) != np.shape(upper):
        raise ValueError(f"the bounds of {name} have {np.size(lower)} lower and {np.size(upper)} upper values")
    if is_traced(lower, upper):
        return lower, upper
    lower_values, upper_values = np.asarray(lower), np.asarray(upper)
    if not (np.all(np.isfinite(lower_values)) and np.all(np.isfinite(upper_values))):
        raise ValueError(f"the bounds of {name} must be finite, got {pair!r}")
    if np.any(lower_values > upper_values):
        raise ValueError(f"the bounds of {name} are reversed: lower {lower_values} is above upper {upper_values}")
    require_moderate(f"the bounds of {name}", lower_values, upper_values)
    if name == "x" and np.any((lower_values == 0) & (upper_values == 0)):
        raise ValueError("a column of x with bounds (0, 0) carries no information: leave it out")
    if name == "y" and np.any(lower_values == upper_values):
        raise ValueError(f"the bounds of y are equal, {pair!r}: the response would be constant")
    return lower, upper
