"""The one place that validates and clips private records.

Every data path of the package goes through `prepare`: what the sensitivity proof assumes of a record is what this
file enforces, once.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.errors import UnfitShape
from kngjax.core.modules import AbstractModule
from kngjax.core.owner_only import OwnerOnly, without_fields
from kngjax.data import cells, persons, schema, weights
from kngjax.data.bounds import Bounds
from kngjax.data.dither import dithered
from kngjax.data.marks import mixed
from kngjax.data.missing import DROP, fill_missing
from kngjax.data.number_columns import MadeColumns, hiding_errors, numbers_of_table, readable
from kngjax.data.schema import EMPTY

NOT_FINITE = (
    "the data contain missing, NaN or infinite values, or cells that are no number, no declared level or a response "
    "that the loss has no meaning for: give a public value in their place, Bounds(..., missing=, missing_y=, "
    "missing_weight=), or impute or drop such records by a rule that looks at one record at a time"
)


@without_fields
class Records(OwnerOnly, AbstractModule):
    """Holds validated, clipped records: the design (intercept first) and the response. Private.

    **Arguments:** `x`: shape (n, d); `y`: shape (n,), zeros where the model has no response. `persons`: how many they
    are of, where several rows may be one person's; else None.
    """

    x: Float[Array, "records dimension"] | Float[np.ndarray, "records dimension"]
    y: Float[Array, " records"] | Float[np.ndarray, " records"]
    persons: int | None = eqx.field(static=True, default=None)

    @property
    def dimension(self) -> int:
        return self.x.shape[-1]

    @property
    def num_records(self) -> int:
        """Returns n, or the number of persons; public under replace alone."""
        return self.x.shape[-2] if self.persons is None else self.persons

    @property
    def rows(self) -> "Records":
        """Returns these records: what `WeightedRecords` have besides weights."""
        return self

    def times_weights(self, values: Array) -> Array:
        """Multiplies one value a record by the record's weight, which is 1."""
        return values

    def predictors(self, theta: Vector) -> Float[Array, " records"]:
        """Computes Xθ."""
        return jnp.asarray(self.x) @ jnp.asarray(theta)


@without_fields
class WeightedRecords(OwnerOnly, AbstractModule):
    """Holds validated, clipped records, each of which counts times its own weight. Private.

    They are no `Records`, and have neither x nor y: what knows nothing of weights cannot take them for 1.

    **Arguments:** `rows`: the records. `weights`: shape (n,), as `kngjax.data.weights.clipped` makes them. `codes`:
    the number of each row's person, for what asks for it; else None.
    """

    rows: Records
    weights: Float[Array, " records"] | Float[np.ndarray, " records"]
    codes: Int[np.ndarray, " records"] | None = None

    @property
    def dimension(self) -> int:
        return self.rows.dimension

    @property
    def num_records(self) -> int:
        """Returns n and not the sum of the weights, or the number of persons; public under replace alone."""
        return self.rows.num_records

    def times_weights(self, values: Array) -> Array:
        """Multiplies one value a record by the record's weight."""
        return jnp.asarray(self.weights) * values

    def predictors(self, theta: Vector) -> Float[Array, " records"]:
        """Computes Xθ."""
        return self.rows.predictors(theta)

    def products(self) -> Records:
        """Computes (w·x, w·y), which stands for a record where ρ(wη, wy) = wρ(η, y), in `Bounds.of_products`."""
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            x, y = (np.asarray(self.weights) * np.asarray(side).T for side in (self.rows.x, self.rows.y))
        return Records(np.ascontiguousarray(x.T), np.clip(y, -largest, largest), self.rows.persons)


@without_fields
class QuadraticSummary(OwnerOnly, AbstractModule):
    """Holds all that the squared loss needs of the records, whatever their number. Private.

    **Arguments:** `count`: n; `gram`: X'X, shape (d, d); `moment`: X'y, shape (d,); `sum_of_squares`: y'y.
    `in_public_units`: whether X and y are in those of `kngjax.data.public_units`, for a mechanism that takes them so.
    """

    count: Scalar
    gram: Float[Array, "dimension dimension"] | Float[np.ndarray, "dimension dimension"]
    moment: Float[Array, " dimension"] | Float[np.ndarray, " dimension"]
    sum_of_squares: Scalar
    in_public_units: bool = eqx.field(static=True, default=False)

    @property
    def dimension(self) -> int:
        return self.moment.shape[-1]

    @property
    def num_records(self) -> int:
        """Returns n; public under replace alone."""
        return int(self.count)

    def gradient(self, theta: Vector) -> Float[Array, " dimension"]:
        """Computes X'Xθ - X'y."""
        return jnp.asarray(self.gram) @ jnp.asarray(theta) - self.moment

    def value(self, theta: Vector, gradient: Vector) -> Float[Array, ""]:
        """Computes ½(θ'X'Xθ - 2θ'X'y + y'y) from the gradient at θ, in O(d)."""
        return 0.5 * (jnp.asarray(theta) @ (gradient - self.moment) + self.sum_of_squares)


@without_fields
class SortedValues(OwnerOnly, AbstractModule):
    """Holds the responses in increasing order: all that quantiles need of them. Private.

    **Arguments:** `values`: shape (n,).
    """

    values: Float[Array, " records"] | Float[np.ndarray, " records"]

    @classmethod
    def of(cls, records: Records) -> "SortedValues":
        """Sorts the responses of records, in O(n log n)."""
        values = records.y
        return cls(np.sort(values) if isinstance(values, np.ndarray) else jnp.sort(values))

    @property
    def dimension(self) -> int:
        """Returns 1: each record is one number, however many quantiles are asked for."""
        return 1

    @property
    def num_records(self) -> int:
        """Returns n; public under replace alone."""
        return self.values.shape[-1]


@without_fields
class Counts(OwnerOnly, AbstractModule):
    """Holds how many records lie in each cell: all that counts need of them. Private.

    **Arguments:** `counts`: whole numbers, or sums of weights, shape (cells,). `count`: n.
    """

    counts: Float[Array, " cells"] | Float[np.ndarray, " cells"]
    count: Scalar

    @property
    def dimension(self) -> int:
        """Returns 1: each record is one number, however many cells there are."""
        return 1

    @property
    def num_records(self) -> int:
        """Returns n; public under replace alone."""
        return int(self.count)


Data = Records | WeightedRecords | QuadraticSummary | SortedValues | Counts


Responses = Callable[[Any], Float[np.ndarray, " records"]]


def prepare_rows(
    bounds: Bounds,
    X: Any,
    y: Any,
    *,
    has_response: bool = True,
    dimension: int | None = None,
    responses: Responses = cells.numbers,
    reads_text: bool = False,
    may_be_empty: bool = False,
    dither_key: Any = None,
    has_codes: bool = False,
) -> Records | WeightedRecords:
    """Prepares records: validated, clipped to the bounds, with the intercept's column in front, and their weights.

    **Arguments:**

    - `bounds`: public.
    - `X`: shape (n, columns): a NumPy or JAX array, a pandas or polars data frame, a pyarrow table, a list of rows;
        None or no columns for a model of the intercept alone. Private. Without a constant column of its own if
        `bounds.intercept`. Bounds by name select the columns of a frame. Or a `WeightedTable`, or `MadeColumns`.
    - `y`: shape (n,): an array or a series of one of these, or a list. Private.
    - `has_response`: whether the model has one; y must be None otherwise.
    - `dimension`: d, which the columns must give with the intercept; None for any.
    - `responses`: a function that makes a number of each cell of y by itself, NaN where it has no meaning.
    - `reads_text`, `may_be_empty`: whether y may be text, and whether there may be no record.
    - `dither_key`: the research key of the noise of `bounds.dither`; None takes the operating system's randomness.
    - `has_codes`: whether rows of persons come with the numbers of these.

    Each record is mapped by itself, so that neighbours stay neighbours: its cells become numbers by
    `kngjax.data.cells`; those that are none are what `bounds.missing` says, or the record is dropped; its response gets
    the noise of `bounds.dither`, by `kngjax.data.dither`; then it is clipped to the box, and moved towards the hull's
    centre until it is inside. All of it is silent, since how many records it touched is private. Raises TypeError and
    ValueError for what types, names and shapes show to be no data for these bounds, before any value is looked at; then
    ValueError for missing values without a policy, lists that make no table, and empty data. No message has a value.
    """
    if isinstance(X, MadeColumns):
        return Records(made := X.clipped_to(bounds), np.zeros(len(made)))
    given = _numbers(bounds, X, y, has_response, dimension, responses, reads_text)
    columns, response, weight = _finite(bounds, *given, responses, may_be_empty)
    design = np.empty((response.size, bounds.intercept + columns.shape[1]))
    design[:, : int(bounds.intercept)] = 1.0
    clipped = design[:, int(bounds.intercept) :]
    if bounds.x_lower is not None:
        sides = [np.broadcast_to(np.asarray(side), columns.shape[1:]) for side in (bounds.x_lower, bounds.x_upper)]
        # A column at a time, in one piece: NumPy is several times slower on rows whose bounds differ.
        for column, (lower, upper) in enumerate(zip(*sides, strict=True)):
            clipped[:, column] = np.clip(columns[:, column], lower, upper)
    if bounds.hull is not None:
        clipped[:] = bounds.hull.move_inside(clipped)
    if bounds.dither is not None and has_response:
        response = dithered(response, bounds.dither, dither_key, bounds.dither_of_log)
    if bounds.y_lower is not None and has_response:
        response = np.clip(response, np.asarray(bounds.y_lower), np.asarray(bounds.y_upper))
    number, codes = None, None
    if isinstance(weight, persons.Shares):
        number, codes, weight = weight.persons, weight.codes if has_codes else None, weight.weights
    rows = Records(design, np.ascontiguousarray(response), number)
    return rows if weight is None else WeightedRecords(rows, weights.clipped(weight, bounds.weight), codes)


def prepare(bounds: Bounds, X: Any, y: Any, **settings: Any) -> Records:
    """Prepares records as `prepare_rows` does, but without weights; raises UnfitType for bounds with weights."""
    weights.refuse(bounds.weight, "prepare, beside which there is prepare_rows,")
    made = prepare_rows(bounds, X, y, **settings)
    assert isinstance(made, Records)
    return made


def prepare_simulated(bounds: Bounds, X: Any, y: Any) -> Records:
    """Records that were generated under jit, clipped to the bounds as `prepare` clips: for simulations alone.

    Values are not validated, since nothing can be refused inside of compiled code: never for anybody's data.

    **Arguments:** `X`: shape (n, columns), or None. `y`: shape (n,), or None for a mean. Raises ValueError for shapes
    that do not fit the bounds, and for bounds with a hull, into which only `prepare` pulls records.
    """
    if bounds.hull is not None:
        raise ValueError("simulations clip to the box of the bounds alone: leave out Bounds(..., hull=...)")
    if bounds.dither is not None:
        raise ValueError("simulations add no noise to responses: leave out Bounds(..., dither=...), add it in design")
    weights.refuse(bounds.weight, "a simulation")
    if X is None and y is None:
        raise ValueError("the design returned neither X nor y")
    num_records = (X if X is not None else y).shape[0]
    columns = jnp.zeros((num_records, 0)) if X is None else jnp.asarray(X)
    response = jnp.zeros(num_records) if y is None else jnp.asarray(y)
    if columns.shape != (num_records, columns.shape[-1]) or response.shape != (num_records,):
        raise ValueError("the design must return X of shape (n, columns) and y of shape (n,)")
    schema.require_columns(bounds, columns.shape[1], None, "X of the design")
    if bounds.x_lower is not None and bounds.x_upper is not None:
        sides = (jnp.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
        columns = jnp.clip(columns, *(jnp.broadcast_to(side, columns.shape) for side in sides))
    if bounds.y_lower is not None and y is not None:
        response = jnp.clip(response, bounds.y_lower, bounds.y_upper)
    ones = jnp.ones((num_records, int(bounds.intercept)), columns.dtype)
    return Records(jnp.concatenate([ones, columns], axis=1), response)


def _numbers(
    bounds: Bounds, X: Any, y: Any, has_response: bool, dimension: int | None, responses: Responses, reads_text: bool
) -> tuple[np.ndarray, np.ndarray, Any]:
    """X of shape (n, columns), y of shape (n,) and weights of shape (n,) or none, NaN where a cell is no number.

    Of persons their numbers, or shares, stand for weights.
    """
    schema.public_shapes(bounds, X, y, has_response=has_response, dimension=dimension, reads_text=reads_text)
    X, given = persons.opened(bounds.weight, bounds.unit, X)
    weight = (
        None
        if given is None
        else hiding_errors("weights", lambda: persons.numbered(given, lambda own: cells.numbers(readable(own))))
    )
    response = hiding_errors("y", lambda: responses(readable(y))) if has_response else None
    columns = (
        np.empty((0 if response is None else len(response), 0)) if X is None else numbers_of_table(bounds, X, dimension)
    )
    schema.require_axes("X", columns.ndim)
    response = np.zeros(columns.shape[0]) if response is None else response
    # Types and shapes could not tell this before conversion for lists and for arrays of other libraries.
    schema.require_axes("y", response.ndim)
    if columns.shape[0] != response.size:
        raise UnfitShape(schema.DIFFERENT_ROWS)
    schema.require_columns(bounds, columns.shape[1], dimension)
    if weight is not None:
        each = weight.weights if isinstance(weight, persons.Shares) else weight
        schema.require_axes("weights", each.ndim)
        if columns.shape[0] != each.size:
            raise UnfitShape(schema.DIFFERENT_WEIGHTS)
    return columns, response, weight


def _finite(
    bounds: Bounds, columns: np.ndarray, response: np.ndarray, weight: Any, responses: Responses, may_be_empty: bool
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Columns, responses and weights with public values in place of NaN, without the records that the bounds drop."""
    columns, dropped = fill_missing(columns, bounds.missing)
    if bounds.missing_y == DROP:
        dropped |= np.isnan(response)
    elif bounds.missing_y is not None:
        response[np.isnan(response)] = responses([bounds.missing_y])[0]
    columns, response = columns[~dropped], response[~dropped]
    made = None
    if weight is not None:
        left = functools.partial(mixed, (columns, response))
        made = persons.shared(weight, ~dropped, bounds.unit, bounds.missing_weight, left)
    if response.size == 0 and not may_be_empty:
        raise UnfitShape(EMPTY)
    each = made.weights if isinstance(made, persons.Shares) else made
    if np.isnan(columns).any() or np.isnan(response).any() or (each is not None and np.isnan(each).any()):
        raise ValueError(NOT_FINITE)
    return columns, response, made
