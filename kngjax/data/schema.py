"""Checks the types, names and shapes of data, before a value is looked at and before anything is spent.

Everything that raises here raises in words, and says kinds of things: never a value, the length of a text, or a type
that somebody's reader inferred from the values. That the pandas indices of X and y differ is told too, and no label.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import narwhals as nw
import numpy as np
import scipy

from kngjax.core.arrays import is_traced
from kngjax.core.errors import UnfitShape, UnfitType, hiding, raise_from_outside
from kngjax.core.owner_only import OwnerOnly
from kngjax.data import cells, persons
from kngjax.data.bounds import Bounds
from kngjax.data.column_types import Holds, holds
from kngjax.data.engines.base import is_from
from kngjax.data.missing import policy_of_each_column
from kngjax.data.passes import Passes

EMPTY = "the data are empty: there is no record to release an estimate from"
UNKNOWN_COLUMNS = (
    "the bounds do not say how many columns X has, and nothing else of the mechanism does: name their number or the "
    "columns, Bounds(x=(lower, upper), columns=3) or columns=['age', 'height']"
)
DIFFERENT_ROWS = "X and y have different numbers of rows: they must be the same records"
DIFFERENT_WEIGHTS = "weights must be one number a record, and there are more or fewer of them than records"
# What to call kinds of NumPy's types that are no numbers.
_KINDS = {"M": "dates", "m": "durations", "c": "complex numbers", "O": "Python objects"} | dict.fromkeys("UST", "text")


@dataclasses.dataclass(frozen=True)
class Schema:
    """Holds public facts about the data of a release, known before a value is looked at.

    **Arguments:** `dimension`: d, the number of coefficients. `num_records`: n, where it is public (under replace) and
    known beforehand; else None. `names`: the coefficients' names, the intercept first; None where nothing names them.
    """

    dimension: int
    num_records: int | None = None
    names: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class TableShape:
    """Describes the shape of a table before a value is looked at.

    **Arguments:** `rows`, `columns`: None where only conversion tells. `names`: those of a frame's columns, or None.
    """

    rows: int | None
    columns: int | None
    names: tuple[str, ...] | None = None


def public_shapes(
    bounds: Bounds,
    X: Any,
    y: Any,
    *,
    has_response: bool = True,
    dimension: int | None = None,
    reads_text: bool = False,
) -> TableShape:
    """Returns the shape of X, with the rows of X or y, as far as these are known before a value is looked at.

    **Arguments:** as in `kngjax.data.prepare`. Raises UnfitType and UnfitShape for what types, names and shapes show to
    be no data for these bounds.
    """
    X, weight = persons.opened(bounds.weight, bounds.unit, X)
    if isinstance(X, Passes) or isinstance(y, Passes):
        raise UnfitType("a stream is given alone, with its own responses and weights")
    if not has_response:
        if y is not None:
            raise UnfitShape("a mean or a median has no response: pass X alone, one column a coordinate")
        columns = _table(X, bounds)
        rows = columns.rows
    else:
        if X is None and bounds.x_lower is not None:
            raise UnfitShape("X is missing, and bounds.x is for its columns: pass them, or leave bounds.x out")
        rows = _length("y", y, reads_text or bounds.missing_y is not None)
        columns = _table(X, bounds) if X is not None else TableShape(rows, 0)
    if None not in (columns.rows, rows) and columns.rows != rows:
        # Their numbers are not told: with add_remove even n is private.
        raise UnfitShape(DIFFERENT_ROWS)
    _require_one_index(X, y)
    if columns.columns is not None:
        require_columns(bounds, columns.columns, dimension)
    if weight is not None:
        _require_weights(weight, bounds.missing_weight is not None, (columns.rows, rows), (X, y))
    return columns if rows is None else dataclasses.replace(columns, rows=rows)


def _require_weights(weight: Any, reads_text: bool, rows: tuple[int | None, ...], others: tuple[Any, Any]) -> None:
    """Raises UnfitType and UnfitShape unless they can be one weight a record, by their type and shape."""
    if isinstance(weight, persons.Shares):
        return
    name, different = "weights", DIFFERENT_WEIGHTS
    if isinstance(weight, persons.Identifiers):
        name, different = "person", persons.DIFFERENT
        weight, reads_text = weight.cells, True
        persons.require_identifiers(weight)
    number = _length(name, weight, reads_text)
    if any(number is not None and other not in (None, number) for other in rows):
        raise UnfitShape(different)
    X, y = others
    _require_one_index(X, weight, f"X and {name}")
    _require_one_index(y, weight, f"y and {name}")


def require_columns(bounds: Bounds, columns: int, dimension: int | None, whose: str = "X") -> None:
    """Raises UnfitShape unless so many columns fit the bounds and d. **Arguments:** `whose`: of what, in words."""
    if bounds.x_lower is None and columns != 0:
        raise UnfitShape(f"{whose} has {columns} columns but bounds.x is None: give their public bounds")
    if bounds.columns is not None and columns != bounds.columns:
        raise UnfitShape(f"{whose} has {columns} columns and bounds.x is for {bounds.columns}")
    if bounds.columns is None and columns == 0:
        raise UnfitShape(f"{whose} has no columns but bounds.x is given: pass the columns, or bounds.x=None")
    if dimension is not None and bounds.intercept + columns != dimension:
        raise UnfitShape(
            f"the data give {bounds.intercept + columns} coefficients (intercept included), the mechanism is for "
            f"{dimension}"
        )


def require_axes(name: str, axes: int) -> None:
    """Raises UnfitShape unless X has rows and columns, and y, weights and persons have one axis."""
    if name == "X" and axes != 2:
        raise UnfitShape(f"X must have shape (n, columns), not {axes} axes: of one column numpy.reshape(X, (-1, 1))")
    if name == "y" and axes != 1:
        raise UnfitShape(
            f"y must have shape (n,), not {axes} axes: pass one column, as a series or 1-d array (for a quantile, of "
            "its values)"
        )
    if name not in ("X", "y") and axes != 1:
        one = "number" if name == "weights" else "identifier"
        raise UnfitShape(f"{name} must have shape (n,), not {axes} axes: one {one} a record, as a series or 1-d array")


def columns_of(bounds: Bounds, frame: nw.DataFrame) -> list[Any]:
    """Returns the names of the columns of X in a frame, in the order of the bounds.

    Raises UnfitShape where they are not those that the bounds name. The frame's own are not told: in a file without a
    header line they are somebody's record.
    """
    given, names = list(frame.columns), bounds.names
    if names is None:
        return given
    if absent := [name for name in names if name not in given] * bounds.by_name:
        raise UnfitShape(f"the bounds name the columns {absent}, which X does not have")
    if not bounds.by_name and tuple(given) != names:
        raise UnfitShape(
            f"the columns of X are not those of the bounds in their order, {list(names)}: select them, or give bounds "
            "by name, Bounds(x={'age': (0, 99), ...}), and the frame's order does not matter"
        )
    return list(names)


def _table(X: Any, bounds: Bounds) -> TableShape:
    """The shape of X, refused unless it is a table by its type, of numbers where no policy says what else counts as."""
    native = _readable("X", X)
    if isinstance(native, nw.DataFrame):
        names = columns_of(bounds, native)
        kinds = zip(names, policy_of_each_column(bounds.missing, len(names)), strict=False)
        # `get_column` and not brackets, in which a column's name that is a number would select a row.
        fits = [_fits(native.get_column(name), policy is not None) for name, policy in kinds]
        unfit = [index for index, fit in enumerate(fits) if not fit]
        if unfit:
            which = f"at positions {unfit} (from 0)" if bounds.names is None else str([names[index] for index in unfit])
            raise UnfitType(
                f"the columns of X {which} are not numbers: encode categories with public levels "
                "(kngjax.terms.Categorical) or leave the columns out. Text is read cell by cell where "
                "Bounds(..., missing=...) says what a cell counts as that is no number"
            )
        return TableShape(len(native), len(names), tuple(map(str, names)))
    axes = _axes("X", native, reads_text=None not in policy_of_each_column(bounds.missing, 1))
    if axes is None:
        return TableShape(_rows_of(native), None)
    require_axes("X", len(axes))
    return TableShape(axes[0], axes[1])


def _rows_of(values: Any) -> int | None:
    return len(values) if isinstance(values, Sequence) else None


def _length(name: str, values: Any, reads_text: bool) -> int | None:
    """How many cells a column has, refused unless it can be one by its type; None where only conversion tells."""
    native = _readable(name, values)
    if isinstance(native, nw.DataFrame):
        require_axes(name, 2)
    axes = _axes(name, native, reads_text)
    if axes is None:
        return _rows_of(values)
    require_axes(name, len(axes))
    return axes[0]


def _readable(name: str, values: Any) -> Any:
    """A narwhals frame or series, or the values themselves; raises for what can be no data, in words."""
    if values is None:
        raise UnfitShape(f"{name} is missing")
    if isinstance(values, np.ma.MaskedArray):
        raise UnfitType(f"{name} is a masked array: fill or drop the masked entries before the call")
    if is_traced(values):
        raise UnfitType(f"{name} is traced by JAX: prepare and release outside of jit, vmap and grad")
    if isinstance(values, jax.Array) and not values.is_fully_addressable:
        raise UnfitType(
            f"{name} is spread over several processes, and this one holds only a part: keep all rows on one host, or "
            "read them there as a kngjax.stream"
        )
    if isinstance(values, OwnerOnly):
        raise UnfitType(f"{name} must hold real numbers, and a {type(values).__name__} does not stand for them here")
    if scipy.sparse.issparse(values):
        raise UnfitType(f"{name} is a sparse matrix: pass {name}.toarray()")
    if is_from("pyarrow", "RecordBatch", values):
        raise UnfitType(
            f"{name} is a pyarrow.RecordBatch: make a table of it first, pyarrow.Table.from_batches([{name}])"
        )
    # Narwhals may know it and not take it: it has two columns of one name, or it is no table at all.
    unread = UnfitShape(f"{name} cannot be read as a table: two of its columns may have one name, give each its own")
    native = hiding(lambda: nw.from_native(_as_series(values), allow_series=True, pass_through=True), unread)
    if isinstance(native, nw.LazyFrame):
        raise UnfitType(
            f"{name} is a query that was not yet run, a {type(values).__name__}: give a kngjax.stream of it, with the "
            "names of its columns, or collect it into a data frame"
        )
    if isinstance(native, nw.DataFrame | nw.Series):
        return native
    if isinstance(values, memoryview):
        # A memoryview is a sequence too; it is read as the array that it is.
        return np.asarray(values)
    sequence = isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)
    if sequence or hasattr(values, "__array__") or isinstance(values, int | float | complex):
        return values
    raise UnfitType(
        f"{name} must hold real numbers, and a {type(values).__name__} is no table of them: pass a NumPy array with a "
        "row a record, or a data frame"
    )


def _as_series(values: Any) -> Any:
    """Arrays of pyarrow and pandas, whose types NumPy does not know, as the columns that narwhals knows."""
    if is_from("pandas", "Index", values) or is_from("pandas.api.extensions", "ExtensionArray", values):
        return sys.modules["pandas"].Series(values)
    return cells.as_chunked_array(values)


def _axes(name: str, values: Any, reads_text: bool) -> tuple[int, ...] | None:
    """The shape of an array or of a series; None for what has none before it is converted, as a list."""
    if isinstance(values, nw.Series):
        if not _fits(values, reads_text):
            raise UnfitType(f"{name} is not a series of numbers: {_advice(name, values.to_native())}")
        return (len(values),)
    if isinstance(values, int | float | complex):
        return ()
    if not hasattr(values, "dtype") and isinstance(values, Sequence):
        # The form of rows decides nothing, even if all of them are alike: that one record has another form would be
        # told by a refusal.
        return None
    array: Any = values
    try:
        fits, kind, axes = _fits(array, reads_text), np.dtype(array.dtype).kind, tuple(array.shape)
    except Exception as error:
        raise_from_outside(error)
        # An array of another library: it is converted later, where errors are hidden.
        return None
    if not fits:
        held = _KINDS.get(kind, "records")
        raise UnfitType(f"{name} must hold real numbers, and this array holds {held}: {_advice(name, values)}")
    return axes


def _advice(name: str, column: Any) -> str:
    """Advises how to convert a column whose type is not one of numbers."""
    if not cells.is_readable(column):
        return "convert it to numbers by a public rule before the call, like the days since a public date"
    policy = {"y": "missing_y", "weights": "missing_weight"}.get(name, "missing")
    levels = "; of a loss that has levels declare them, LogisticLoss(levels=('no', 'yes'))" * (name == "y")
    return (
        f"numbers in text or in categories are read cell by cell where Bounds(..., {policy}=...) says what a cell "
        f"counts as that is none{levels}; or convert it by a public rule before the call"
    )


def length_of(row: Any) -> int | None:
    """Tells how many cells a row of a list has; None for what is no row: a cell, a text, a dictionary, a set."""
    if isinstance(row, str | bytes | bytearray | Mapping | set | frozenset):
        return None
    shape = getattr(row, "shape", None)
    if isinstance(shape, tuple):
        return shape[0] if shape else None
    return len(row) if hasattr(row, "__len__") and hasattr(row, "__getitem__") else None


def _fits(column: Any, reads_text: bool) -> bool:
    """Whether a column's type is one of numbers, or can be read cell by cell where that is asked for."""
    kind = holds(column)
    return kind is Holds.NUMBERS or (reads_text and kind is Holds.CELLS)


def is_of_numbers(column: nw.Series) -> bool:
    """Tells whether a column's type is one of numbers."""
    return holds(column) is Holds.NUMBERS


def _require_one_index(X: Any, y: Any, names: str = "X and y") -> None:
    """Raises UnfitShape where pandas knows the rows of X and y by different labels."""
    X, y = (nw.to_native(values, pass_through=True) for values in (X, y))
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame | pandas.Series) or not isinstance(y, pandas.Series):
        return
    if not X.index.equals(y.index):
        first, second = names.split(" and ")
        raise UnfitShape(
            f"{names} have different pandas indices, so their rows may be in different orders: align them, as by "
            f"{second}.loc[{first}.index], or drop both indices"
        )
