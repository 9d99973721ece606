"""Public bounds of one record: promises that were made before the data were seen."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import RECORD, plural
from kngjax.core.arrays import Scalar, is_traced, parameter, require_moderate
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data import dither as noise
from kngjax.data import weights
from kngjax.data.missing import (
    DROP,
    Policies,
    Policy,
    explain,
    policies,
    policy_of_each_column,
    policy_of_response,
    require_inside,
)
from kngjax.data.persons import Unit, votes_of
from kngjax.geometry.feature_hulls import FeatureHull

Side = Float[Array, "*columns"] | Float[np.ndarray, "*columns"]


class Bounds(ShownAsTyped, AbstractModule):
    """States public bounds of one record: x_j ∈ [lower_j, upper_j] for each column and y ∈ [y_lower, y_upper].

    **Arguments:**

    - `x`: by name, `{"education": (0, 18), "experience": (0, 60)}`: a data frame gives these columns in this order, and
        an array must have them in this order. Or a pair (lower, upper): of scalars, the same for all columns, or of
        sequences with one value a column. Two lists of two numbers could also be the pairs of two columns, like
        `[(1, 5), (2, 18)]`; they are refused unless `columns` is given. None if the intercept is the whole model, or if
        `hull` replaces the bounds.
    - `y`: a pair of scalars, or None where the loss needs no bound on the response.
    - `intercept`: whether the model starts with a constant column of ones, which the data do not contain.
    - `hull`: a polytope that contains the columns of every record, for columns that are functions of one another;
        None if any point of the box may be a record. With a hull, `x` is by default the smallest box around it.
    - `columns`: the names of X's columns, in their order: a frame that has others is refused; or their number alone.
        A release needs one of these where bounds are scalars.
    - `missing`: the value that a cell of X counts as if it is missing, NaN, infinite or no number: one number for all
        columns; a sequence of numbers and None, one a column; or a dict by name. "drop" leaves the record out, under
        add_remove alone. None: data with such cells fail.
    - `missing_y`: the same for the response, in the response's own units or levels.
    - `dither`: the width w of uniform noise on [-w/2, w/2] that each response gets before it is clipped, drawn anew in
        each release. Mechanisms of the quantile loss are nearly blind where responses are heaped, and need it. Take the
        unit to which responses were rounded, and bounds of y that lie w/2 beyond the responses. `kngjax.data.dither`
        has the proof that this costs no privacy. None: no noise.
    - `dither_of_log`: whether y is the logarithm of what was rounded: then e^y gets the noise, in the units of e^y, and
        y needs bounds.
    - `weight`: W, the largest weight of a record, for records with weights. The weights themselves are private,
        `release(mechanism, X, y, weights=...)`. Noise grows with W, whatever the weights are. None: no weights.
    - `missing_weight`: the value, from 0 to W, of a weight that is missing or no number. None: such data fail.
    - `unit`: whom guarantees protect, a `kngjax.Unit` or its name; None is one record. With `most_rows` identifiers say
        which rows are one person's, `release(mechanism, X, y, person=...)`, and these rows share that person's votes.

    Everything here is public. Bounds taken from the data, such as their minimum and maximum, void the guarantee.
    Raises ValueError for bounds that are reversed, equal to zero on both sides, equal beside an intercept, or not
    finite; for a hull that has other columns or is centred outside of the box; for names that contradict each other;
    and for a value in place of missing cells that lies outside of the bounds.
    """

    x_lower: Side | None
    x_upper: Side | None
    y_lower: Scalar | None
    y_upper: Scalar | None
    intercept: bool = eqx.field(static=True)
    hull: FeatureHull | None
    names: tuple[str, ...] | None = eqx.field(static=True)
    by_name: bool = eqx.field(static=True)
    missing: Policies = eqx.field(static=True)
    missing_y: Policy = eqx.field(static=True)
    dither: Scalar | None
    dither_of_log: bool = eqx.field(static=True)
    weight: Scalar | None
    missing_weight: float | None = eqx.field(static=True)
    unit: Unit | None = eqx.field(metadata={"only_if_given": True})

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        intercept: bool = True,
        hull: FeatureHull | None = None,
        *,
        columns: int | Sequence[str] | None = None,
        missing: Any = None,
        missing_y: Any = None,
        dither: Any = None,
        dither_of_log: bool = False,
        weight: Any = None,
        missing_weight: Any = None,
        unit: Unit | str | None = None,
    ):
        self.hull = hull
        self.intercept = bool(intercept)
        self.by_name = isinstance(x, Mapping)
        if self.by_name:
            if columns is not None:
                raise ValueError("bounds of x by name name the columns: leave columns out")
            x, columns = _bounds_by_name(x)
        self.names, number = _names_and_number(columns, self.intercept)
        if columns is None and _is_list_of_pairs(x):
            raise ValueError(
                f"the bounds of x {x!r} can be read in two ways: as the pairs of two columns, or as lower and upper "
                "bounds. Give them by name, x={'age': (0, 99), 'height': (1, 2)}, or as a pair "
                "of NumPy arrays, x=(lower, upper)"
            )
        lower, upper = _pair("x", hull.box if x is None and hull is not None else x)
        if number is not None and lower is not None and not (np.ndim(lower) or np.ndim(upper)):
            lower, upper = (_repeat(side, number) for side in (lower, upper))
        self.x_lower, self.x_upper = lower, upper
        self.y_lower, self.y_upper = _pair("y", y)
        if number is not None and number != self.columns:
            raise ValueError(f"bounds.x is for {self.columns} columns, and {number} are named")
        self.missing = policies(missing, self.names, self.columns)
        self.missing_y = policy_of_response(missing_y)
        self.dither = noise.width(dither)
        self.dither_of_log = bool(dither_of_log)
        self.unit = Unit(unit) if isinstance(unit, str) else unit
        weight, missing_weight = votes_of(self.unit, weight, missing_weight)
        self.weight = weights.largest_weight(weight)
        self.missing_weight = weights.policy_of_weights(missing_weight, self.weight)

    def __check_init__(self):
        if self.x_lower is None and not self.intercept:
            raise ValueError("with neither x nor an intercept there is nothing to estimate: give bounds for x")
        if any(side is not None and np.ndim(side) for side in (self.y_lower, self.y_upper)):
            raise ValueError("the bounds of y must be two scalars: (lower, upper)")
        if is_traced(self.x_lower, self.x_upper, self.y_lower, self.y_upper):
            return
        if self.x_lower is not None and self.intercept and np.any(np.asarray(self.x_lower) == self.x_upper):
            raise ValueError(
                "a column of x with equal bounds is constant, as the intercept is, and no data can tell them apart: "
                "leave the column out, or give Bounds(..., intercept=False)"
            )
        require_inside("missing", self.missing, self.x_lower, self.x_upper, self.names)
        require_inside("missing_y", self.missing_y, self.y_lower, self.y_upper)
        if self.dither_of_log and (self.dither is None or self.y_lower is None):
            raise ValueError(
                "dither_of_log is for responses that are logarithms: give dither=, of e^y, and bounds of y"
            )
        if self.hull is None:
            return
        if (given := _columns(self.x_lower, self.x_upper)) not in (None, self.hull.columns):
            raise ValueError(f"bounds.x is for {given} columns and the hull for {self.hull.columns}")
        # What lies outside of the hull moves towards its centre, and may not leave the box on the way.
        if not np.all((np.asarray(self.x_lower) < self.hull.centre) & (self.hull.centre < np.asarray(self.x_upper))):
            raise ValueError(
                f"the hull's centre {self.hull.centre} lies outside of the bounds of x: leave x out for a box around it"
            )

    def _argument(self, parameter: inspect.Parameter) -> Any:
        if parameter.name == "columns":
            if self.names is None:
                sides = [np.asarray(side).tolist() for side in (self.x_lower, self.x_upper) if not is_traced(side)]
                return self.columns if _is_list_of_pairs(sides) else None
            return None if self.by_name else list(self.names)
        if parameter.name in ("weight", "missing_weight") and self.of_persons:
            return None
        if parameter.name == "x" and self.by_name:
            sides = (np.asarray(side).tolist() for side in (self.x_lower, self.x_upper))
            return dict(zip(self.names or (), zip(*sides, strict=True), strict=True))
        return super()._argument(parameter)

    @property
    def columns(self) -> int | None:
        """Returns the number of columns of X, without the intercept; None if scalar bounds leave it open."""
        if self.hull is not None:
            return self.hull.columns
        if self.x_lower is None or self.x_upper is None:
            return 0
        return _columns(self.x_lower, self.x_upper)

    @property
    def dimension(self) -> int | None:
        """Returns the number of coefficients; None if scalar bounds leave it open."""
        return None if self.columns is None else self.columns + self.intercept

    def for_dimension(self, dimension: int) -> "Bounds":
        """Gives these bounds with one value a column, for d coefficients: data with other columns are refused."""
        if self.x_lower is None or self.x_upper is None or self.columns is not None:
            return self
        lower, upper = self.sides(dimension)[:, int(self.intercept) :]
        return self.with_fields(x_lower=parameter(lower), x_upper=parameter(upper))

    def of_products(self, dimension: int) -> "Bounds":
        """Bounds of the rows w·x of d features and of the responses w·y, for weights w in [0, W]: a box, about 0.

        An end W·u is rounded as products w·u are, and rounding rises with what is rounded: no product lies beyond it.
        """
        assert self.weight is not None
        largest, sides = float(self.weight), self.sides(dimension)
        x = np.minimum(largest * sides[0], 0.0), np.maximum(largest * sides[1], 0.0)
        y = None
        if self.y_lower is not None and self.y_upper is not None:
            y = min(largest * float(self.y_lower), 0.0), max(largest * float(self.y_upper), 0.0)
        return Bounds(x, y, intercept=False, columns=dimension)

    def sides(self, dimension: int) -> Float[np.ndarray, "2 dimension"]:
        """Returns lower and upper bounds of the d features, the intercept's ones first, in float64 on the host."""
        sides = np.ones((2, dimension))
        if self.x_lower is not None:
            for side, given in zip(sides, (self.x_lower, self.x_upper), strict=True):
                side[int(self.intercept) :] = np.asarray(given, np.float64)
        return sides

    def features(self, dimension: int) -> tuple[Any, Any]:
        """Returns lower and upper bounds of the d features, with the intercept's (1, 1) first; runs under jit."""
        columns = dimension - self.intercept
        one = jnp.ones(int(self.intercept))
        if self.x_lower is None or self.x_upper is None:
            return one, one
        lower, upper = (jnp.broadcast_to(side, (columns,)) for side in (self.x_lower, self.x_upper))
        return jnp.concatenate([one, lower]), jnp.concatenate([one, upper])

    def feature_blocks(self, dimension: int) -> tuple[Any, ...]:
        """Blocks of points, of shapes (m, features of the block), whose hulls' product contains a record's d features.

        A block for each column of the box, or those of the hull; the intercept's single point comes first.
        """
        if self.hull is not None:
            return (np.ones((1, 1)),) * self.intercept + self.hull.outer_blocks
        lower, upper = self.features(dimension)
        sides = [jnp.stack([lower[index], upper[index]])[:, None] for index in range(self.intercept, dimension)]
        return (np.ones((1, 1)),) * self.intercept + tuple(sides)

    def over_groups(self, number: int) -> "Bounds":
        """Returns the bounds of one of so many groups, over which rows of one person may be spread."""
        if not self.of_persons:
            return self
        assert self.unit is not None
        return self.protecting(self.unit.over_groups(number))

    def protecting(self, unit: Unit) -> "Bounds":
        """Copies the bounds for another unit; of persons their votes take the place of weights."""
        votes = (self.weight, self.missing_weight) if unit.most_rows is None else votes_of(unit, None, None)
        return self.weighing(*votes, unit)

    def weighing(self, largest: Any, missing: Any, unit: Unit | None = None) -> "Bounds":
        """Copies the bounds for records with weights. **Arguments:** as of the class; `unit`: None for the one here."""
        weight = weights.largest_weight(largest)
        policy = weights.policy_of_weights(missing, weight)
        return self.with_fields(unit=self.unit if unit is None else unit, weight=weight, missing_weight=policy)

    @property
    def coefficients(self) -> tuple[str, ...] | None:
        """Returns the declared names of the coefficients, the intercept first; None if no names were declared."""
        return None if self.names is None else ("intercept",) * self.intercept + self.names

    @property
    def of_persons(self) -> bool:
        """Tells whether rows have identifiers of persons, and weights that are shares of a person's votes."""
        return self.weight is not None and self.unit is not None and self.unit.most_rows is not None

    @property
    def protects(self) -> str:
        """Returns the unit that guarantees protect, in words."""
        return RECORD if self.unit is None else self.unit.name

    @property
    def counted(self) -> str:
        """Returns the units that data sets are counted in, in words: records, patients."""
        return plural(self.protects)

    @property
    def unit_alone(self) -> Unit | None:
        """Returns the unit of a table with one row of each, made of such records; None where it is a record."""
        return None if self.unit is None else Unit(self.unit.name)

    @property
    def has_one_vote(self) -> bool:
        """Tells whether the weights of a person's rows add up to exactly 1: what is proved of a record holds."""
        return self.of_persons and self.unit is not None and self.unit.most_rows == 1

    @property
    def drops(self) -> bool:
        """Tells whether records with missing values are left out: a map of each record under add_remove alone."""
        return DROP in (*policy_of_each_column(self.missing, 1), self.missing_y)

    def explain_missing(self, has_response: bool = True) -> str:
        """Says in one sentence for a certificate what missing values count as."""
        return explain(self.missing, self.names, self.missing_y, self.columns != 0, has_response)

    def without_dither(self) -> "Bounds":
        """Removes the noise on responses for audits: that noise costs no privacy and hides leaks."""
        return self.with_fields(dither=None, dither_of_log=False)

    def with_fields(self, **fields: Any) -> "Bounds":
        """Copies the bounds with other fields, of which nothing is checked again."""
        made = copy.copy(self)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    def explain_weights(self) -> tuple[str, ...]:
        """Says in one sentence for a certificate how weights of records count; empty where records have none."""
        if self.unit is not None:
            return self.unit.explain()
        return () if self.weight is None else (weights.explain(self.weight, self.missing_weight),)

    def explain_dither(self) -> tuple[str, ...]:
        """Says in one sentence for a certificate which noise responses got; empty where they got none."""
        return () if self.dither is None else (noise.explain(self.dither, self.dither_of_log),)


def _columns(*sides: Any) -> int | None:
    return max((np.shape(side)[-1] for side in sides if np.ndim(side)), default=None)


def _bounds_by_name(x: Mapping[Any, Any]) -> tuple[tuple[Any, Any], list[Any]]:
    """The lower and the upper ends, and the names, of bounds by name."""
    if not x:
        raise ValueError("bounds of x by name need a column, like {'education': (0, 18)}")
    for name, pair in x.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2 or any(np.ndim(end) for end in pair):
            raise ValueError(f"the bounds of column {name!r} must be a pair of numbers (lower, upper), got {pair!r}")
    if any(isinstance(side, str) for pair in x.values() for side in pair):
        raise TypeError(f"the bounds of x must be numbers, got text in {dict(x)!r}")
    return (parameter([low for low, _ in x.values()]), parameter([high for _, high in x.values()])), list(x)


def _names_and_number(columns: Any, intercept: bool) -> tuple[tuple[str, ...] | None, int | None]:
    """The declared names of the columns and their number, each None where it is not declared."""
    if columns is None:
        return None, None
    if isinstance(columns, int | np.integer) and not isinstance(columns, bool):
        if columns < 1:
            raise ValueError(f"columns must be at least 1, got {columns}: without columns leave x out")
        return None, int(columns)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a number or a list of names, like columns=['age'], got {columns!r}")
    names = tuple(columns)
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"names of columns must be text, got {list(columns)!r}")
    if len(set(names)) < len(names):
        raise ValueError("columns must name each column once")
    if intercept and "intercept" in names:
        raise ValueError("a column may not be called 'intercept' beside the model's own: rename it")
    return names, len(names)


def _is_list_of_pairs(pair: Any) -> bool:
    """Whether ((a, b), (c, d)), of lists and not of arrays, could be the bounds of two columns, a < b and c < d."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    if not all(isinstance(side, tuple | list) and len(side) == 2 for side in pair):
        return False
    return not is_traced(*pair[0], *pair[1]) and all(np.ndim(a) == np.ndim(b) == 0 and a < b for a, b in pair)


def _repeat(side: Any, number: int) -> Any:
    return jnp.broadcast_to(side, (number,)) if isinstance(side, jax.Array) else parameter(np.full(number, side))


def _pair(name: str, pair: Any) -> tuple[Any, Any]:
    if pair is None:
        return None, None
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        hint = ", or by name, x={'age': (0, 99), ...}" * (name == "x")
        raise ValueError(f"the bounds of {name} must be a pair (lower, upper){hint}; got {pair!r}")
    if any(isinstance(value, str) for side in pair for value in (side if isinstance(side, tuple | list) else [side])):
        raise TypeError(f"the bounds of {name} must be numbers, got the text {pair!r}")
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
