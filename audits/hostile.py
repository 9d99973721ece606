"""Hostile inputs: whatever is given as data, a release ends in a clear error of our own or in a valid value."""

import collections
import dataclasses
import decimal
import importlib
import importlib.util
import pathlib
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from tqdm import tqdm

from audits.every_mechanism import CASES, Case
from kngjax.core.errors import FAILED, ReleaseFailed
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger

# Few sizes, so that few programs are compiled.
_SIZES = (0, 1, 9)
_PACKAGE = "kngjax"


@dataclasses.dataclass(frozen=True)
class HostileInputs:
    """Counts how hostile inputs ended.

    **Arguments:** `tried`: how many. `released`: ended in a valid release. `told`: were refused in words, for their
    type or shape. `unchanged`: those of them that left their ledger as it was. `failed`: ended in `ReleaseFailed`, and
    were debited. `failed_in_draw`: those of them that `prepare` had accepted. `broken`: what ended otherwise, in words;
    one line a kind of it.
    """

    tried: int
    released: int
    told: int
    unchanged: int
    failed: int
    failed_in_draw: int
    broken: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Nothing ended otherwise."""
        ended = self.tried == self.released + self.told + self.failed
        return not self.broken and ended and self.unchanged == self.told


def hostile_inputs(
    number: int, seed: int = 0, *, mechanisms: Sequence[str] | None = None, progress: bool | None = None
) -> HostileInputs:
    """Releases hostile inputs and counts how it ends: a TypeError or ValueError in words, `ReleaseFailed`, or a value.

    Each is given to `mechanism.prepare` first, whose errors must come from our own code without another package's
    error behind them, and then, made anew, to a release. Warnings count as breakage.

    **Arguments:** `number`: of inputs. `seed`: of the inputs; what is drawn by releases is secure. `mechanisms`: names
    among `audits.every_mechanism.CASES`, None for all. `progress`: None shows a bar on a terminal.
    """
    names = tuple(mechanisms or CASES)
    made, tally = {name: CASES[name]() for name in names}, Tally()
    with tempfile.TemporaryDirectory() as folder:
        for place in tqdm(range(number), disable=None if progress is None else not progress):
            name = names[place % len(names)]
            ledger = _ledger(pathlib.Path(folder) / str(place), made[name])
            outcome, trouble, words = _try(made[name], (seed, place), ledger)
            tally.add(outcome, trouble, f"{name}, {words}", ledger)
    return tally.of(number)


class Tally:
    """Counts how releases of hostile inputs end, each with a ledger of its own."""

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()
        self._broken: dict[str, None] = {}

    def add(self, end: str, trouble: str, words: str, ledger: Ledger) -> None:
        """Counts one end, and whether its ledger agrees with it; removes the ledger."""
        debits = ledger.read().num_rows - 1
        ledger.path.unlink()
        self._counts[end] += 1
        self._counts["unchanged"] += end == "told" and debits == 0
        if (debits > 0) == (end == "told"):
            trouble = trouble or f"{end}, and its ledger has {debits} rows more"
        if trouble:
            self._broken.setdefault(f"{words}: {trouble}")

    def of(self, number: int) -> HostileInputs:
        """Tells what was found of so many inputs."""
        counts = self._counts
        ended = {end: counts[end] for end in ("released", "told", "unchanged")}
        failed = {"failed": counts["failed"] + counts["failed in draw"], "failed_in_draw": counts["failed in draw"]}
        return HostileInputs(number, broken=tuple(self._broken), **ended, **failed)


def _ledger(path: pathlib.Path, case: Case) -> Ledger:
    """A ledger of its own, whose budget allows what is tried."""
    adjacency = case.mechanism.adjacency
    budget = Budget.approximate(100, "0.5")
    return Ledger.create(path, budget, adjacency=adjacency, dataset="hostile inputs", unproved="allow")


def _try(case: Case, seed: tuple[int, int], ledger: Ledger | None = None) -> tuple[str, str, str]:
    """How one input ends, what is wrong with that, and what it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, y, words = _input(np.random.default_rng(seed))
        try:
            case.mechanism.prepare(*case.given(X, y))
            trouble, prepared = "", True
        except Exception as error:
            trouble, prepared = trouble_with(error), False
        X, y, _ = _input(np.random.default_rng(seed))
        try:
            released = case.release(X, y, ledger)
        except ReleaseFailed as error:
            return "failed in draw" if prepared else "failed", trouble or trouble_with(error), words
        except Exception as error:
            return "told", trouble or trouble_with(error), words
    if not prepared:
        return "released", trouble or "released what prepare refuses", words
    return "released", trouble or ("" if case.admits(released.value) else "a value out of range"), words


def trouble_with(error: Exception, failed: str = FAILED) -> str:
    """Why this is no clear error of our own; empty if it is one. `failed`: the one text of a release that fails."""
    if isinstance(error, ReleaseFailed) and str(error) != failed:
        return "another text"
    if not isinstance(error, TypeError | ValueError | ReleaseFailed):
        return f"{type(error).__name__} is no class of a refusal: {error}"
    if error.__cause__ is not None or error.__context__ is not None:
        return f"{type(error).__name__} with another error behind it: {error}"
    last = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    if last.partition(".")[0] != _PACKAGE:
        return f"{type(error).__name__} raised in {last}: {error}"
    return "" if len(str(error)) > 10 else f"{type(error).__name__} without words"


def _input(random: np.random.Generator) -> tuple[Any, Any, str]:
    """X and y of one hostile input, and what they are in words."""
    size, columns = int(random.choice(_SIZES)), int(random.choice([2, 2, 2, 2, 2, 1, 3, 0]))
    rows = size if random.random() < 0.9 else int(random.choice(_SIZES))
    value_kind, response_kind = random.choice(list(VALUES)), random.choice(list(VALUES))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y = VALUES[value_kind](random, (size, columns)), VALUES[response_kind](random, (rows, 1))[:, 0]
        kinds = {name: box for name, box in BOXES.items() if name.partition(" ")[0] in _FRAMES or not _needs(name)}
        box = "array" if random.random() < 0.3 else random.choice(list(kinds))
        response_box = "array" if random.random() < 0.6 else random.choice(list(kinds))
        X, response = kinds[box](x), kinds[response_box](y)
    words = f"X: {value_kind} as {box} {x.shape}, y: {response_kind} as {response_box} {y.shape}"
    return X, response, words


def _plain(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return random.uniform(-0.2, 1.2, shape)


def _some(*hostile: float) -> Callable[[np.random.Generator, tuple[int, int]], np.ndarray]:
    def values(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        chosen = random.choice(np.asarray(hostile, dtype=np.float64), shape)
        return np.where(random.random(shape) < 0.5, chosen, _plain(random, shape))

    return values


# What stands in the cells.
VALUES: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "plain": _plain,
    "NaN": _some(np.nan, -np.nan),
    "infinities": _some(np.inf, -np.inf),
    "zeros of both signs": _some(0.0, -0.0),
    "subnormal": _some(5e-324, -5e-324, 2.2e-308),
    "huge": _some(1e308, -1e308, np.finfo(float).max),
    "beyond float32": _some(1e39, -1e39, 1e-46),
    "constant": lambda random, shape: np.full(shape, random.choice([0.0, 0.5, 1.0, 7.0])),
    "duplicated columns": lambda random, shape: np.repeat(_plain(random, (shape[0], 1)), shape[1], axis=1),
    "duplicated rows": lambda random, shape: np.repeat(_plain(random, (1, shape[1])), shape[0], axis=0),
    "whole numbers": lambda random, shape: random.integers(-3, 4, shape).astype(float),
    "on the bounds": lambda random, shape: random.choice([0.0, 1.0, np.nextafter(1.0, 2.0), -5e-324], shape),
}


def _big(values: np.ndarray) -> np.ndarray:
    return np.full(values.shape, 2**63 + 11, np.uint64)


def _negative_strides(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values[::-1])[::-1]


def _read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.setflags(write=False)
    return values


def _with_none(values: np.ndarray) -> np.ndarray:
    found = values.astype(object)
    found[values > 0.5] = None
    return found


def _ragged(values: np.ndarray) -> list[Any]:
    return [[1.0] * (place % 3) for place in range(len(values) + 2)]


def _frame(package: str, convert: Callable[[Any, dict[str, Any]], Any]) -> Callable[[np.ndarray], Any]:
    def made(values: np.ndarray) -> Any:
        module = importlib.import_module(package)
        if values.ndim == 1:
            return convert(module, {"y": values})["y"]
        return convert(module, {f"x{place}": column for place, column in enumerate(values.T)})

    return made


def _whole(values: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(values), -1e18, 1e18).astype(np.int64)


def _nullable(kind: str) -> Callable[[Any, dict[str, Any]], Any]:
    def made(pd: Any, columns: dict[str, Any]) -> Any:
        return pd.DataFrame(
            {name: pd.array([*_whole(one)[1:], None][: len(one)], kind) for name, one in columns.items()}
        )

    return made


def _strings(columns: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [str(value) for value in one] for name, one in columns.items()}


def _with_nulls(columns: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        name: [None if place % 4 == 3 else float(v) for place, v in enumerate(one)] for name, one in columns.items()
    }


def _twice(pd: Any, columns: dict[str, Any]) -> Any:
    if "y" in columns:
        return {"y": pd.DataFrame(columns)}
    frame = pd.DataFrame(columns)
    frame.columns = ["x"] * frame.shape[1]
    return frame


def _needs(name: str) -> bool:
    return name.partition(" ")[0] in _PACKAGES


def _shuffled_index(pd: Any, columns: dict[str, Any]) -> Any:
    frame = pd.DataFrame(columns)
    frame.index = frame.index[::-1]
    return frame


def _relation(duckdb: Any, columns: dict[str, Any]) -> Any:
    frame = duckdb.sql("select " + ", ".join(f"0.5 as {name}" for name in columns or ["nothing"]))
    return {"y": frame} if "y" in columns else frame


_PACKAGES = ("pandas", "polars", "pyarrow", "duckdb")
_FRAMES = {name for name in _PACKAGES if importlib.util.find_spec(name) is not None}

# What holds the cells.
BOXES: Mapping[str, Callable[[np.ndarray], Any]] = {
    "array": lambda values: values,
    "float32": lambda values: values.astype(np.float32),
    "float16": lambda values: values.astype(np.float16),
    "longdouble": lambda values: values.astype(np.longdouble) * np.longdouble(10.0) ** 400,
    "big-endian": lambda values: values.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "negative strides": _negative_strides,
    "every second row": lambda values: np.repeat(values, 2, axis=0)[::2],
    "read-only": _read_only,
    "bool": lambda values: values > 0.5,
    "int8": lambda values: _whole(values).astype(np.int8),
    "beyond 2^63": _big,
    "objects": lambda values: values.astype(object),
    "objects with None": _with_none,
    "objects that are whole": lambda values: np.full(values.shape, 10**400, dtype=object),
    "strings": lambda values: values.astype(str),
    "bytes": lambda values: values.astype("S8"),
    "complex": lambda values: values + 1j,
    "dates": lambda values: _whole(values).astype("datetime64[s]"),
    "durations": lambda values: _whole(values).astype("timedelta64[s]"),
    "records": lambda values: np.zeros(values.shape, [("a", float), ("b", int)]),
    "masked": lambda values: np.ma.masked_array(values, values > 0.5),
    "masked nowhere": np.ma.masked_array,
    "matrix-like": lambda values: values[None],
    "a cell": lambda values: values.sum(),
    "flat": np.ravel,
    "a column": lambda values: values.reshape(-1, 1),
    "lists": lambda values: values.tolist(),
    "tuples": lambda values: tuple(map(tuple, values)) if values.ndim == 2 else tuple(values),
    "ragged lists": _ragged,
    "lists with None": lambda values: [None, *values.tolist()],
    "lists with words": lambda values: ["much", *values.tolist()],
    "lists of big integers": lambda values: [[10**400]] * len(values),
    "decimals": lambda values: [decimal.Decimal(repr(float(value))) for value in values.ravel()],
    "fractions": lambda values: [Fraction(1, 3) for _ in values.ravel()],
    "a generator": lambda values: (row for row in values),
    "a set": lambda values: {float(value) for value in values.ravel()},
    "a dictionary": lambda values: {"x": values},
    "a string": str,
    "bytes of memory": lambda values: np.ascontiguousarray(values).data,
    "nothing": lambda values: None,
    "a function": lambda values: np.sum,
    "a class": lambda values: np.ndarray,
    "sparse matrix": lambda values: scipy.sparse.csr_matrix(np.atleast_2d(np.nan_to_num(values, posinf=1, neginf=0))),
    "sparse array": lambda values: scipy.sparse.coo_array(np.nan_to_num(values, posinf=1, neginf=0)),
    "a column more": lambda values: np.column_stack([values, values]),
    "a column less": lambda values: values[..., :-1],
    "a record more": lambda values: np.concatenate([values, values[:1]]),
    "duckdb relation": _frame("duckdb", _relation),
    "pandas with another index": _frame("pandas", _shuffled_index),
    "pandas": _frame("pandas", lambda pd, columns: pd.DataFrame(columns)),
    "pandas Int64 with NA": _frame("pandas", _nullable("Int64")),
    "pandas Float64 with NA": _frame("pandas", _nullable("Float64")),
    "pandas categories": _frame("pandas", lambda pd, columns: pd.DataFrame(columns).astype("category")),
    "pandas objects": _frame("pandas", lambda pd, columns: pd.DataFrame(columns).astype(object)),
    "pandas strings": _frame("pandas", lambda pd, columns: pd.DataFrame(_strings(columns))),
    "pandas sparse": _frame("pandas", lambda pd, columns: pd.DataFrame(columns).astype(pd.SparseDtype("float64"))),
    "pandas dates": _frame("pandas", lambda pd, columns: pd.DataFrame(columns).apply(lambda one: pd.NaT)),
    "pandas with one name twice": _frame("pandas", _twice),
    "pandas with numbers for names": _frame("pandas", lambda pd, c: pd.DataFrame(dict(enumerate(c.values())) | c)),
    "polars": _frame("polars", lambda pl, columns: pl.DataFrame(columns)),
    "polars nulls": _frame("polars", lambda pl, columns: pl.DataFrame(_with_nulls(columns))),
    "polars strings": _frame("polars", lambda pl, columns: pl.DataFrame(_strings(columns))),
    "polars nothing but nulls": _frame(
        "polars", lambda pl, c: pl.DataFrame({n: [None] * len(o) for n, o in c.items()})
    ),
    "polars lists": _frame("polars", lambda pl, c: pl.DataFrame({n: [[1.0]] * len(o) for n, o in c.items()})),
    "polars lazy": _frame(
        "polars", lambda pl, columns: {"y": pl.LazyFrame(columns)} if "y" in columns else pl.LazyFrame(columns)
    ),
    "pyarrow": _frame("pyarrow", lambda pa, columns: pa.table(columns)),
    "pyarrow nulls": _frame("pyarrow", lambda pa, columns: pa.table(_with_nulls(columns))),
    "pyarrow strings": _frame("pyarrow", lambda pa, columns: pa.table(_strings(columns))),
}
