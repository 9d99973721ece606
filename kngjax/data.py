"""The one place that validates and clips private records.

Every data path of the package goes through `prepare`: what the sensitivity proof assumes of a record is what this
file enforces, once.
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

from kngjax import admission
from kngjax._arrays import Scalar, parameter
from kngjax._frames import to_array
from kngjax._owner_only import OwnerOnly, without_fields
from kngjax.admission import EMPTY
from kngjax.bounds import Bounds
from kngjax.refusals import UnfitShape

NOT_FINITE = (
    "the data contain missing, NaN or infinite values: impute or drop such records before the call, by a rule that "
    "looks at one record at a time"
)


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
    admission.admitted(bounds, X, y, has_response=has_response, dimension=dimension)
    columns, response = None if X is None else _numbers("X", X), None if y is None else _numbers("y", y)
    if columns is None:
        assert response is not None
        columns = np.empty((response.size, 0))
    admission.require_axes_of_table(columns.ndim)
    response = np.zeros(columns.shape[0]) if response is None else response
    # What types and shapes left open before: of lists, and of arrays of other libraries.
    admission.require_axes_of_response(response.ndim)
    admission.require_same_rows(columns.shape[0], response.size)
    admission.require_columns(bounds, columns.shape[1], dimension)
    if response.size == 0:
        raise UnfitShape(EMPTY)
    if not (np.all(np.isfinite(columns)) and np.all(np.isfinite(response))):
        raise ValueError(NOT_FINITE)
    return columns, response


def _numbers(name: str, values: Any) -> np.ndarray:
    """Values as float64, NaN where one is missing."""
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        columns = np.empty((len(native.columns), len(native)))
        for place, column in enumerate(native.iter_columns()):
            columns[place] = _of_series(name, column)
        return columns.T
    if isinstance(native, nw.Series):
        return _of_series(name, native)
    array = _converted(name, lambda: np.asarray(values))
    if array.dtype.kind not in "fiub":
        # What NumPy makes of a list depends on what is in it; an array's type was looked at before.
        raise TypeError(f"{name} must hold real numbers: what NumPy makes of it is none")
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
