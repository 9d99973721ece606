"""Pairs of data frames that differ in one cell: no container and no type lets that cell reach another record.

A column has one type in both frames of a pair, as a table's schema has. Its cells become numbers of a design, and what
the steps of a pipeline are given.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kngjax.data.terms import Categorical, Design, Polynomial

_ROWS = (2, 3, 17)
_TEXTS = ("1", "2", "3", "01", "1.0", " 2", "x", "", "1e999", "a\u0301\u00a0", None)
_WHOLES = (1, 2, 3, 2**62 + 1, None)
_REALS = (1.0, 2.0, 2.5, float("inf"), None)
_DESIGNS = (
    Design((Categorical("c", (1, 2, 3), missing="3"),)),
    Design((Categorical("c", ("1", "01", "x"), missing="x"),)),
    Design((Polynomial("c", 0, 9, degree=2, missing=4),)),
)


@dataclasses.dataclass(frozen=True)
class CellPairs:
    """Counts pairs of tables that differ in one cell, and tells those in which it reached another record.

    **Arguments:** `tried`: pairs, by reader or place where cells are read. `changed`: those in which the cell's own
    record became another. `differences`: pairs in which the number of records or another record changed, or that could
    not be read, in words.
    """

    tried: dict[str, int]
    changed: int
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """No other record changed; and the pairs are pairs: some records of their own did."""
        return not self.differences and self.changed > 0


def frame_pairs(number: int, seed: int = 0, places: Mapping[str, Callable[[Any], Any]] | None = None) -> CellPairs:
    """Reads pairs of frames of pandas, polars and pyarrow that differ in one cell, and compares all other records.

    **Arguments:** `number`: of pairs for each place. `seed`: of the pairs. `places`: what makes of a frame an array
    with a row a record, by name; None: designs, and what a `PublicPipeline` gives to its steps.

    Raises ImportError where pandas, polars, pyarrow or scikit-learn is not installed.
    """
    changed, differences = 0, []
    containers = _containers()
    places = {"designs": _of_designs, "a pipeline": _of_pipeline} if places is None else places
    for name, made in places.items():
        random = np.random.default_rng(seed)
        for _ in range(number):
            kind = str(random.choice(list(containers)))
            make, cells = containers[kind]
            values = [cells[place] for place in random.integers(3, size=int(random.choice(_ROWS)))]
            place = int(random.integers(len(values)))
            other = [*values[:place], cells[int(random.integers(len(cells)))], *values[place + 1 :]]
            words = f"{name}, {kind}: {values[place]!r} to {other[place]!r} of record {place} of {len(values)}"
            try:
                one, two = (_rows(made(make(column))) for column in (values, other))
            except Exception as error:
                differences.append(f"{words}: {type(error).__name__}")
                continue
            changed += one[place] != two[place]
            if len(one) != len(two) or one[:place] + one[place + 1 :] != two[:place] + two[place + 1 :]:
                differences.append(f"{words}: another record changed")
    return CellPairs(dict.fromkeys(places, number), changed, tuple(differences))


def _rows(table: np.ndarray) -> list[list[str]]:
    """Each record as text that tells types and all bits of numbers."""
    return [
        [f"{type(cell).__name__} {cell.hex() if isinstance(cell, float) else cell!r}" for cell in row]
        for row in np.asarray(table).tolist()
    ]


def _of_designs(frame: Any) -> np.ndarray:
    return np.column_stack([one.matrix(frame) for one in _DESIGNS])


def _of_pipeline(frame: Any) -> np.ndarray:
    import polars

    from kngjax.sklearn.public_pipeline import with_public_types

    made = with_public_types(frame)
    # Arrays of pandas keep a type a column, those of other frames are compared as lists.
    columns = made.to_dict("list") if hasattr(made, "set_axis") else polars.DataFrame(made).to_dict(as_series=False)
    return np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object)


def _containers() -> dict[str, tuple[Callable[[list[Any]], Any], tuple[Any, ...]]]:
    """How a frame of one column is made in each container and type, and the cells that it may have."""
    import pandas
    import polars
    import pyarrow

    def of_pandas(dtype: Any) -> Callable[[list[Any]], Any]:
        return lambda values: pandas.DataFrame({"c": pandas.Series(values, dtype=dtype)})

    def of_polars(dtype: Any) -> Callable[[list[Any]], Any]:
        return lambda values: polars.DataFrame({"c": polars.Series(values, dtype=dtype)})

    def of_arrow(kind: Any, is_encoded: bool = False) -> Callable[[list[Any]], Any]:
        def table(values: list[Any]) -> Any:
            array = pyarrow.array(values, kind)
            return pyarrow.table({"c": array.dictionary_encode() if is_encoded else array})

        return table

    whole, text = pyarrow.int64(), pyarrow.string()
    known = [one for one in _TEXTS if one is not None]
    return {
        "pandas objects": (of_pandas(object), (*_WHOLES, *_TEXTS)),
        "pandas Int64": (of_pandas("Int64"), _WHOLES),
        "pandas category of integers": (of_pandas(pandas.CategoricalDtype(_WHOLES[:-1])), _WHOLES),
        "pandas category of text": (of_pandas(pandas.CategoricalDtype(known)), _TEXTS),
        "pandas float64": (of_pandas("float64"), _REALS),
        "pandas sparse": (of_pandas(pandas.SparseDtype("float64")), _REALS),
        "pandas string": (of_pandas("string"), _TEXTS),
        "pandas Arrow integers": (of_pandas(pandas.ArrowDtype(whole)), _WHOLES),
        "pandas Arrow dictionary": (of_pandas(pandas.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), text))), _TEXTS),
        "polars integers": (of_polars(polars.Int64), _WHOLES),
        "polars text": (of_polars(polars.String), _TEXTS),
        "polars categorical": (of_polars(polars.Categorical), _TEXTS),
        "pyarrow integers": (of_arrow(whole), _WHOLES),
        "pyarrow dictionary of integers": (of_arrow(whole, is_encoded=True), _WHOLES),
        "pyarrow dictionary of text": (of_arrow(text, is_encoded=True), _TEXTS),
        "pyarrow reals": (of_arrow(pyarrow.float64()), _REALS),
    }
