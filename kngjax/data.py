"""Public bounds, and the one place that validates and clips private records.

Every data path of the package goes through `prepare`: what the sensitivity proof assumes of a record is what this
file enforces, once. Bounds are promises made in public before the data were seen.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import narwhals as nw
import numpy as np
from jaxtyping import Array, Float

from kngjax._arrays import Scalar, is_traced, parameter, require_moderate
from kngjax._frames import to_array
from kngjax._owner_only import OwnerOnly, without_fields
from kngjax._shown import ShownAsTyped
from kngjax.features import FeatureHull
from kngjax.refusals import UnfitShape, UnfitType
from kngjax.streams import RECORDS_NEEDED, Stream

NOT_FINITE = (
    "the data contain missing, NaN or infinite values: impute or drop such records before the call, by a rule that "
    "looks at one record at a time"
)

EMPTY = "the data are empty: there is no record to release an estimate from"

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


@without_fields
class Records(OwnerOnly, eqx.Module):
    """Validated, clipped records: the design (intercept first) and the response. Private.

    **Arguments:** `x`: shape (n, d); `y`: shape (n,), zeros where the model has no response.
    """

    x: Float[Array, "records dimension"] | Float[np.ndarray, "records dimension"]
    y: Float[Array, " records"] | Float[np.ndarray, " records"]

    @property
    def dimension(self) -> int:
        return self.x.shape[-1]

    @property
    def num_records(self) -> int:
        """n; public under replace alone."""
        return self.x.shape[-2]


@without_fields
class QuadraticSummary(OwnerOnly, eqx.Module):
    """All that the squared loss needs of the records, whatever their number. Private.

    **Arguments:** `count`: n; `gram`: X'X, shape (d, d); `moment`: X'y, shape (d,); `sum_of_squares`: y'y.
    """

    count: Scalar
    gram: Float[Array, "dimension dimension"] | Float[np.ndarray, "dimension dimension"]
    moment: Float[Array, " dimension"] | Float[np.ndarray, " dimension"]
    sum_of_squares: Scalar

    @property
    def dimension(self) -> int:
        return self.moment.shape[-1]

    @property
    def num_records(self) -> int:
        """n; public under replace alone."""
        return int(self.count)

    def __add__(self, other: "QuadraticSummary") -> "QuadraticSummary":
        """The summary of both sets of records together, which may not overlap; ValueError for another d."""
        if not isinstance(other, QuadraticSummary):
            return NotImplemented
        if self.dimension != other.dimension:
            raise ValueError(f"summaries of {self.dimension} and {other.dimension} coefficients have no sum")
        return jax.tree.map(lambda one, two: parameter(one + two), self, other)


@without_fields
class SortedValues(OwnerOnly, eqx.Module):
    """The responses in increasing order: all that quantiles need of them. Private.

    **Arguments:** `values`: shape (n,).
    """

    values: Float[Array, " records"] | Float[np.ndarray, " records"]

    @property
    def dimension(self) -> int:
        """1: each record is one number, however many quantiles are asked for."""
        return 1

    @property
    def num_records(self) -> int:
        """n; public under replace alone."""
        return self.values.shape[-1]


Data = Records | QuadraticSummary | SortedValues


def prepare(bounds: Bounds, X: Any, y: Any, *, has_response: bool = True, dimension: int | None = None) -> Records:
    """Validated records, clipped to the bounds, with the intercept's column in front.

    **Arguments:**

    - `bounds`: public.
    - `X`: shape (n, columns): a NumPy or JAX array, a pandas or polars data frame, a pyarrow table; None or no
        columns for a model of the intercept alone. Private. Without a constant column of its own if
        `bounds.intercept`.
    - `y`: shape (n,): an array or a series of one of these. Private.
    - `has_response`: whether the model has one; y must be None otherwise.
    - `dimension`: d, which the columns must give with the intercept; None for any.

    Clipping to the box, and then moving what is outside of the hull towards its centre until it is inside, act on each
    record alone, so they cannot raise the sensitivity; they are silent, since how many records they touched is private.
    Raises TypeError for what is not numbers, ValueError for empty data, NaN or infinities, and shapes that do not fit
    the bounds or each other; of arrays, frames and tables all that types and shapes decide comes before any value is
    looked at. No message contains a value of the data.
    """
    columns, response = _validated(bounds, X, y, has_response, dimension)
    design = np.empty((response.size, bounds.intercept + columns.shape[1]))
    design[:, : int(bounds.intercept)] = 1.0
    clipped = design[:, int(bounds.intercept) :]
    if bounds.x_lower is not None:
        sides = [np.broadcast_to(np.asarray(side), columns.shape[1:]) for side in (bounds.x_lower, bounds.x_upper)]
        # A column at a time, in one piece: NumPy is several times slower on rows whose bounds differ.
        for place, (lower, upper) in enumerate(zip(*sides, strict=True)):
            clipped[:, place] = np.clip(columns[:, place], lower, upper)
    if bounds.hull is not None:
        clipped[:] = bounds.hull.pulled(clipped)
    if bounds.y_lower is not None and has_response:
        response = np.clip(response, np.asarray(bounds.y_lower), np.asarray(bounds.y_upper))
    return Records(design, np.ascontiguousarray(response))


def simulated(bounds: Bounds, X: Any, y: Any) -> Records:
    """Records that were generated under jit, clipped to the bounds as `prepare` clips: for simulations alone.

    Values are not validated, since nothing can be refused inside of compiled code: never for anybody's data.

    **Arguments:** `X`: shape (n, columns), or None. `y`: shape (n,), or None for a mean. Raises ValueError for shapes
    that do not fit the bounds, and for bounds with a hull, into which only `prepare` pulls records.
    """
    if bounds.hull is not None:
        raise ValueError("simulations clip to the box of the bounds alone: leave out Bounds(..., hull=...)")
    if X is None and y is None:
        raise ValueError("the design returned neither X nor y")
    num_records = (X if X is not None else y).shape[0]
    columns = jnp.zeros((num_records, 0)) if X is None else jnp.asarray(X)
    response = jnp.zeros(num_records) if y is None else jnp.asarray(y)
    if columns.shape != (num_records, columns.shape[-1]) or response.shape != (num_records,):
        raise ValueError("the design must return X of shape (n, columns) and y of shape (n,)")
    if columns.shape[1] and bounds.x_lower is None:
        raise ValueError(f"the design gives {columns.shape[1]} columns but bounds.x is None: give their public bounds")
    if bounds.columns is not None and columns.shape[1] != bounds.columns:
        raise ValueError(f"the design gives {columns.shape[1]} columns and bounds.x is for {bounds.columns}")
    if bounds.x_lower is not None and bounds.x_upper is not None:
        sides = (jnp.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
        columns = jnp.clip(columns, *(jnp.broadcast_to(side, columns.shape) for side in sides))
    if bounds.y_lower is not None and y is not None:
        response = jnp.clip(response, bounds.y_lower, bounds.y_upper)
    ones = jnp.ones((num_records, int(bounds.intercept)), columns.dtype)
    return Records(jnp.concatenate([ones, columns], axis=1), response)


def clipped_fractions(bounds: Bounds, X: Any, y: Any) -> dict[str, Any]:
    """The fraction of records outside the bounds, for each column of X and for y. Owner-only: not a private release.

    Returns `{"x": shape (columns,), "y": float}`, and with a hull also `"hull": float`; raises as `prepare` does.
    """
    columns, response = _validated(bounds, X, y)
    x, outside = np.zeros(columns.shape[1]), 0.0
    if bounds.x_lower is not None and bounds.x_upper is not None:
        x = np.mean((columns < np.asarray(bounds.x_lower)) | (columns > np.asarray(bounds.x_upper)), axis=0)
    if bounds.y_lower is not None and bounds.y_upper is not None:
        outside = float(np.mean((response < float(bounds.y_lower)) | (response > float(bounds.y_upper))))
    beyond = {} if bounds.hull is None else {"hull": float(np.mean(bounds.hull.outside(columns)))}
    return {"x": x, "y": outside, **beyond}


def _validated(
    bounds: Bounds, X: Any, y: Any, has_response: bool = True, dimension: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """X of shape (n, columns) and y of shape (n,) as finite numbers that fit the bounds' shapes."""
    if isinstance(X, Stream) or isinstance(y, Stream):
        raise UnfitType(RECORDS_NEEDED)
    if not has_response:
        if y is not None:
            raise UnfitShape("a mean or a median has no response: pass X alone, one column a coordinate")
        X = _numbers("X", X)
        y = np.zeros(X.shape[:1])
    response = _numbers("y", y)
    if response.ndim != 1:
        raise UnfitShape(f"y must have shape (n,), not {response.ndim} axes: pass one column, as a series or 1-d array")
    columns = _numbers("X", X) if X is not None else np.empty((response.size, 0))
    if columns.ndim != 2:
        raise UnfitShape(f"X must have shape (n, columns), not {columns.ndim} axes: of one column X.reshape(-1, 1)")
    if response.size == 0 or columns.shape[0] == 0:
        raise UnfitShape(EMPTY)
    if columns.shape[0] != response.size:
        # Their numbers are not told: with add_remove even n is private.
        raise UnfitShape("X and y have different numbers of rows: they must be the same records")
    if bounds.x_lower is None and columns.shape[1] != 0:
        raise UnfitShape(f"X has {columns.shape[1]} columns but bounds.x is None: give their public bounds")
    if bounds.columns is not None and columns.shape[1] != bounds.columns:
        raise UnfitShape(f"X has {columns.shape[1]} columns and bounds.x is for {bounds.columns}")
    if bounds.columns is None and columns.shape[1] == 0:
        raise UnfitShape("X has no columns but bounds.x is given: pass the columns, or bounds.x=None")
    if dimension is not None and bounds.intercept + columns.shape[1] != dimension:
        raise UnfitShape(
            f"the data give {bounds.intercept + columns.shape[1]} coefficients (intercept included), the mechanism is "
            f"for {dimension}"
        )
    if not (np.all(np.isfinite(columns)) and np.all(np.isfinite(response))):
        raise ValueError(NOT_FINITE)
    return columns, response


def _numbers(name: str, values: Any) -> np.ndarray:
    """Values as float64, NaN where one is missing."""
    if values is None:
        raise UnfitShape(f"{name} is missing")
    if isinstance(values, np.ma.MaskedArray):
        raise UnfitType(f"{name} is a masked array: fill or drop the masked entries before the call")
    if is_traced(values):
        raise UnfitType(f"{name} is traced by JAX: prepare and release outside of jit, vmap and grad")
    if isinstance(values, OwnerOnly):
        raise UnfitType(f"{name} must hold real numbers, and a {type(values).__name__} does not stand for them here")
    native = _converted(name, lambda: nw.from_native(values, eager_only=True, allow_series=True, pass_through=True))
    if isinstance(native, nw.DataFrame):
        # By position: in a file without a header line the names are somebody's record.
        dtypes = _converted(name, lambda: list(native.schema.values()))
        unfit = [place for place, dtype in enumerate(dtypes) if not _is_numeric(dtype)]
        if unfit:
            raise UnfitType(
                f"the columns of {name} at positions {unfit} (from 0) are not numbers: encode categories with public "
                "levels (kngjax.terms.Categorical) or leave the columns out"
            )
        columns = np.empty((len(native.columns), len(native)))
        for place, column in enumerate(native.iter_columns()):
            columns[place] = _of_series(name, column)
        return columns.T
    if isinstance(native, nw.Series):
        if not _is_numeric(native.dtype):
            raise UnfitType(f"{name} is not a series of numbers: encode categories by a public rule before the call")
        return _of_series(name, native)
    array = _converted(name, lambda: np.asarray(values))
    if array.dtype.kind not in "fiub":
        # What NumPy makes of a list depends on what is in it; an array has had its type before.
        kind = UnfitType if hasattr(values, "dtype") else TypeError
        raise kind(f"{name} must hold real numbers, got an array of dtype {array.dtype}")
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def _of_series(name: str, series: nw.Series) -> np.ndarray:
    if series.null_count():
        return np.full(len(series), np.nan)
    return _converted(name, lambda: to_array(series, NOT_FINITE).astype(np.float64))


def _converted(name: str, step: Callable[[], Any]) -> Any:
    """What NumPy or a data frame makes of values; its own error, which may quote one, is not repeated."""
    with contextlib.suppress(Exception):
        return step()
    raise ValueError(
        f"{name} cannot be read as numbers: pass a NumPy array with a row a record, or a data frame of numbers"
    )


def _is_numeric(dtype: Any) -> bool:
    return dtype.is_numeric() or dtype == nw.Boolean
