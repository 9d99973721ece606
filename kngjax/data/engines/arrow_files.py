"""Files that pyarrow reads, in batches: single ones, those of a folder or a pattern, and its datasets."""

import glob
import importlib.util
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import csv_files
from kngjax.data.csv_dialects import Dialect
from kngjax.data.engines.base import Choose, reading
from kngjax.data.engines.local import AbstractLocalEngine

OTHER_TYPES = (
    "a file of the dataset has a column of another type than the dataset, and not every value of it would fit: give a "
    "schema that holds them all, pyarrow.dataset.dataset(files, schema=...)"
)


class AbstractArrow(AbstractLocalEngine):
    """Reads record batches of pyarrow, and sorts them in memory."""

    def sorts(self, person: str) -> bool:
        return all(_is_exact_in_arrow(one.schema.field(person).type) for one in self.declared(lambda given: None))

    def sorted_batches(self, choose: Choose, person: str) -> Iterable[Any]:
        import pyarrow
        from pyarrow import compute

        parts = [pyarrow.Table.from_batches([one]) for one in self.batches(choose)]
        if not parts:
            return []
        table = pyarrow.concat_tables(parts, promote_options="permissive")
        del parts
        kind = table[person].type
        cells = table[person].cast(kind.value_type) if pyarrow.types.is_dictionary(kind) else table[person]
        places = compute.sort_indices(cells)  # pyright: ignore[reportAttributeAccessIssue]
        return table.take(places).to_batches(self.rows)


class Files(AbstractArrow):
    """Reads a file, a folder of Parquet files, or all files that a pattern matches, as people/*.parquet."""

    def __init__(self, source: pathlib.Path, rows: int, dialect: Dialect):
        super().__init__(source, rows)
        # Refuses other files now, before anything is read.
        self.kind, self.dialect = file_kind(source), dialect
        self.name = f"a file of {self.kind}"

    def declared(self, choose: Choose) -> list[Any]:
        return [one.empty_table() for one in reading(lambda: list(self._schemas()))]

    def _schemas(self) -> Iterator[Any]:
        """Reads the schema of each file; all float64 for CSV. Datasets would refuse two columns of one name."""
        import pyarrow
        from pyarrow import ipc, parquet

        for file in _files(self.source):
            if self.kind == "CSV":
                yield pyarrow.schema([(name, pyarrow.float64()) for name in csv_files.names(file, self.dialect)])
            elif self.kind == "Arrow":
                with ipc.open_file(file) as reader:
                    yield reader.schema
            else:
                yield parquet.read_schema(file)

    def _opened(self, file: pathlib.Path) -> Any:
        from pyarrow import dataset

        return dataset.dataset(file, format="ipc" if self.kind == "Arrow" else "parquet")

    def count(self) -> int | None:
        if self.kind == "CSV":
            return None
        return reading(lambda: sum(self._opened(file).count_rows() for file in _files(self.source)))

    def has_no_rows(self) -> bool:
        if self.kind != "CSV":
            return self.count() == 0
        return reading(lambda: all(csv_files.has_no_rows(file, self.dialect) for file in _files(self.source)))

    def batches(self, choose: Choose) -> Iterator[Any]:
        """CSV files give numbers, NaN where a cell is none; other files their columns as they are.

        A few batches are in memory at a time: pyarrow's datasets would read further ahead the slower their batches are
        taken.
        """
        import pyarrow
        from pyarrow import ipc, parquet

        given = next(self._schemas()).names
        columns = choose(given) or given
        for file in _files(self.source):
            if self.kind == "CSV":
                for block in csv_files.numbers(file, columns, self.dialect):
                    batch = pyarrow.record_batch({name: np.ascontiguousarray(values) for name, values in block.items()})
                    yield from (batch.slice(start, self.rows) for start in range(0, batch.num_rows, self.rows))
            elif self.kind == "Arrow":
                with ipc.open_file(file) as reader:
                    for number in range(reader.num_record_batches):
                        batch = reader.get_batch(number).select(list(columns))
                        yield from (batch.slice(start, self.rows) for start in range(0, batch.num_rows, self.rows))
            else:
                with parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as reader:
                    yield from reader.iter_batches(self.rows, columns=list(columns))


class Dataset(AbstractArrow):
    """Reads a dataset of pyarrow."""

    name = "a dataset of pyarrow"

    def declared(self, choose: Choose) -> list[Any]:
        """Lists the chosen columns of the dataset, then those of each of its Parquet and Arrow files.

        Raises UnfitShape for a column that neither a file nor its path has, and UnfitType where the dataset's own type
        of a column is not made to hold a file's: whole numbers as float64 are, though one beyond 2^53 fails when it is
        read.
        """
        import pyarrow
        from pyarrow import dataset

        given = self.source.schema
        own = pyarrow.schema([given.field(name) for name in choose(given.names) or given.names])
        result = [own]
        for file in filter(_has_metadata, self._files()):
            schema, in_path = file.physical_schema, dataset.get_partition_keys(file.partition_expression)
            kinds = {name: schema.field(name).type for name in own.names if name in schema.names}
            if not all(_holds(own.field(name).type, kind) for name, kind in kinds.items()):
                raise UnfitType(OTHER_TYPES)
            for name in own.names:
                if name not in kinds and name not in in_path:
                    raise UnfitShape(
                        f"the stream was asked for the column {name!r}, which a file of the dataset has not"
                    )
            result.append(pyarrow.schema([(field.name, kinds.get(field.name, field.type)) for field in own]))
        return [one.empty_table() for one in result]

    def _files(self) -> list[Any]:
        """The files of the dataset, by their paths where it has a filter, for which pyarrow makes no fragments."""
        try:
            return list(self.source.get_fragments())
        except ValueError:
            files = getattr(self.source, "files", ())
            return [self.source.format.make_fragment(file, self.source.filesystem) for file in files]

    def count(self) -> int | None:
        def counted() -> int | None:
            try:
                files = list(self.source.get_fragments())
            except ValueError:
                # It has a filter, by which rows of its files are left out.
                return None
            return sum(file.count_rows() for file in files) if files and all(map(_has_metadata, files)) else None

        return reading(counted)

    def batches(self, choose: Choose) -> Iterable[Any]:
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}
        return self.source.to_batches(columns=choose(self.source.schema.names), batch_size=self.rows, **ahead)


def file_kind(path: pathlib.Path) -> str:
    """Returns the kind of files that can be read in batches: "Parquet", "CSV" or "Arrow"; a folder is "Parquet".

    **Arguments:** `path`: a file, a folder of Parquet files, or a pattern, as people/*.parquet.

    **Raises:** `FileNotFoundError`, `ImportError` without pyarrow, `ValueError` for other suffixes, and for a folder
    without a Parquet file.
    """
    kinds = {".parquet": "Parquet", ".csv": "CSV", ".arrow": "Arrow", ".feather": "Arrow"}
    found = {kinds.get(file.suffix.lower()) for file in _files(path)}
    kind = found.pop()
    if kind is None or found:
        raise ValueError(
            f"the file of data {path} must end in .parquet, .csv, .arrow or .feather, or be a folder; files that one "
            "pattern matches must end alike"
        )
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read a file in batches install pyarrow: pip install 'kngjax[arrow]'")
    return kind


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    """Lists the files of a folder, or those that a pattern matches, in the order of their names; raises for none."""
    is_alone = path.exists() or not glob.has_magic(str(path))
    found = [path] if is_alone else sorted(map(pathlib.Path, glob.glob(str(path), recursive=True)))
    if path.is_dir() and not (found := sorted(path.rglob("*.parquet"))):
        raise ValueError(f"the folder of data {path} has no file that ends in .parquet")
    if not found or not all(file.exists() for file in found):
        raise FileNotFoundError(f"there is no file of data {path}")
    return found


def _has_metadata(file: Any) -> bool:
    """Whether a file of a dataset states its types and its number of rows, so that pyarrow infers nothing."""
    from pyarrow import dataset as pyarrow_dataset

    formats = pyarrow_dataset.ParquetFileFormat | pyarrow_dataset.IpcFileFormat
    return isinstance(getattr(file, "format", None), formats)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether pyarrow turns every value of `narrow` into one of `wide`; float64 counts as holding all integers."""
    from pyarrow import types

    if wide == narrow or types.is_null(narrow) or (_is_text(wide) and _is_text(narrow)):
        return True
    if types.is_floating(wide):
        return types.is_floating(narrow) or (types.is_integer(narrow) and wide.bit_width == 64)
    if not (types.is_integer(wide) and types.is_integer(narrow)) or wide.bit_width < narrow.bit_width:
        return False
    signs = types.is_signed_integer(wide), types.is_signed_integer(narrow)
    return signs[0] == signs[1] or (signs[0] and wide.bit_width > narrow.bit_width)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def _is_exact_in_arrow(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)
