"""X and y as scikit-learn's users pass them, as named columns of cells; not a value is looked at."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.exceptions import DataConversionWarning

import kngjax as kng
from kngjax.core.errors import UNREADABLE, UnfitShape, UnfitType, hiding
from kngjax.data import persons, schema
from kngjax.data.named_columns import Columns
from kngjax.data.number_columns import cells_of_row
from kngjax.data.terms import Categorical, Design, Polynomial

_COMPLEX = "Complex data not supported: pass real numbers"


def feature_names(X: Any) -> tuple[str, ...] | None:
    """Returns the names of the columns of a frame, if all are text; None for arrays and other frames."""
    native = _native(X)
    if isinstance(native, nw.DataFrame) and all(isinstance(name, str) for name in native.columns):
        return tuple(native.columns)
    return None


def made_up_names(number: int) -> tuple[str, ...]:
    """Makes up names as scikit-learn does, "x0", "x1", for columns that have none."""
    return tuple(f"x{index}" for index in range(number))


def table_of(X: Any, expected: int | None = None) -> Columns:
    """Returns the columns of X. **Arguments:** `expected`: the number of columns that settings declare, for lists.

    Raises UnfitType and UnfitShape, in words, for what types, names and shapes show to be no table of cells.
    """
    native = _native(X)
    if isinstance(native, nw.DataFrame):
        # Each has a name of its own, or narwhals had refused.
        names = feature_names(X) or made_up_names(len(native.columns))
        places = dict(zip(names, native.columns, strict=True))
        rows, _ = _shape(X)
        return Columns(names, rows, lambda name: native.get_column(places[name]))
    cells = _array(X)
    if hasattr(cells, "dtype") and np.ndim(cells) == 1:
        raise UnfitShape("X has one axis, and must have rows and columns. Reshape your data: numpy.reshape(X, (-1, 1))")
    # The type of a list says nothing of its cells, and each row is a record's own affair.
    is_list = isinstance(cells, Sequence)
    if is_list:
        if expected is None:
            raise UnfitShape(
                "X is a list, whose rows may have any number of cells: pass a NumPy array or a data frame, or give "
                "bounds by position, one pair a column"
            )
        each = (cell for row in cells for cell in cells_of_row(row, expected))
        cells = np.fromiter(each, object, count=len(cells) * expected).reshape(len(cells), expected)
    _refuse_complex(cells)
    rows, columns = _shape(cells)
    names = made_up_names(columns)
    places = {name: index for index, name in enumerate(names)}

    def column_of(name: str) -> Any:
        column = cells[:, places[name]]
        return list(column) if is_list else column

    return Columns(names, rows, column_of)


def seen_as(X: Any, table: Columns) -> Any:
    """Shows scikit-learn a frame, whose names it takes, or else nothing but the number of columns."""
    return X if isinstance(_native(X), nw.DataFrame) else np.zeros((1, len(table.columns)))


def renamed(table: Columns, names: tuple[str, ...]) -> Columns:
    """Renames the columns of a table, in their order."""
    places = dict(zip(names, table.columns, strict=True))
    return Columns(names, table.rows, lambda name: table.column_of(places[name]))


def with_response(table: Columns, X: Any, y: Any, name: str) -> Columns:
    """Adds the response to a table as one more column. Raises as `table_of`."""
    given = _array(y)
    native = _native(given)
    is_column = isinstance(native, nw.DataFrame) and len(native.columns) == 1
    if is_column or (len(shape := getattr(given, "shape", ())) == 2 and shape[1] == 1):
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=6)
        given = nw.to_native(native.get_column(native.columns[0])) if is_column else given[:, 0]
    _refuse_complex(given)
    return _with_column(table, X, given, name)


def with_identifiers(table: Columns, X: Any, person: Any, name: str | None) -> Columns:
    """Adds identifiers of persons, if there are any, as one more column, whose cells count before a debit already.

    Raises UnfitType and UnfitShape, by types and shapes alone, for what is no identifier for each row of X.
    """
    if person is None:
        return table
    persons.require_identifiers(given := _array(person))
    assert name is not None
    try:
        return _with_column(table, X, given, name, known=(name,))
    except UnfitShape:
        raise UnfitShape(
            "person must be one identifier for each row of X, in the order of the rows, and of pandas with X's index"
        ) from None


def _with_column(table: Columns, X: Any, given: Any, name: str, known: tuple[str, ...] = ()) -> Columns:
    """Adds one more column; raises `UnfitShape` where it has not a cell for each row of X."""
    # One column of zeros stands for an array or a list of rows; a frame brings its index.
    rows = X if isinstance(_native(X), nw.DataFrame) else np.zeros((table.rows, 1))
    schema.public_shapes(_any_bounds(), rows, given)
    column = list(given) if isinstance(given, Sequence) else given
    columns = (*table.columns, name)
    return Columns(columns, table.rows, lambda one: column if one == name else table.column_of(one), known=known)


def unused(name: str, others: Sequence[str]) -> str:
    """Makes up a name that no column has."""
    while name in others:
        name += "_"
    return name


def refuse_text(table: Columns, design: Design, response: str, response_reads_text: bool) -> None:
    """Raises UnfitType for types that are no numbers where bounds ask for them and no policy says what else counts as.

    So a column of text by mistake costs nothing.
    """
    reading = {
        term.column
        for term in design.terms
        if isinstance(term, Categorical) or (isinstance(term, Polynomial) and term.missing is not None)
    }
    has_categories = any(isinstance(term, Categorical) for term in design.terms)
    for name in table.columns:
        reads = response_reads_text if name == response else name in reading
        # An array of objects, of which some are categories, shows nothing of its other columns.
        is_mixed = name != response and has_categories and isinstance(table[name], np.ndarray)
        if not reads and not is_mixed and not _is_of_numbers(table[name]):
            argument = "missing_y" if name == response else "missing"
            what = "Unknown label type: y" if name == response else f"column {name!r} of X"
            raise UnfitType(
                f"{what} is not of numbers by its type: categories need public levels; numbers in text are read cell "
                f"by cell where {argument}=... says what a cell counts as that is none"
            )


def _is_of_numbers(column: Any) -> bool:
    native = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return schema.is_of_numbers(native)
    dtype = getattr(column, "dtype", None)
    # A list shows nothing of its cells by its type.
    return dtype is None or np.dtype(dtype).kind in "biuf"


def _native(X: Any) -> Any:
    # The words of other packages may tell a frame's own names.
    return hiding(lambda: nw.from_native(X, allow_series=True, pass_through=True), UnfitType(UNREADABLE))


def _array(values: Any) -> Any:
    """Turns an array of another library into NumPy's, and returns anything else as it is."""
    known = isinstance(_native(values), nw.DataFrame | nw.Series | nw.LazyFrame)
    if known or hasattr(values, "dtype") or not hasattr(values, "__array__"):
        return values
    return hiding(lambda: np.asarray(values), UnfitType(UNREADABLE))


@functools.cache
def _any_bounds() -> kng.Bounds:
    """Bounds for any number of columns, which refuse no type that cells are read of: `refuse_text` does."""
    return kng.Bounds((0.0, 1.0), missing=0.5, missing_y=0.0)


def _shape(X: Any) -> tuple[int, int]:
    if len(shape := getattr(X, "shape", ())) == 2 and shape[1] == 0:
        # As scikit-learn says it, but for the number of records, which is private under add_remove.
        raise UnfitShape("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    shape = schema.public_shapes(_any_bounds(), X, None, has_response=False)
    if shape.rows is None or shape.columns is None:
        raise UnfitType("X has no shape that can be read: pass a NumPy array with a row a record, or a data frame")
    return shape.rows, shape.columns


def _refuse_complex(values: Any) -> None:
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise UnfitShape(_COMPLEX)
