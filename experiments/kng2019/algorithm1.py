"""Algorithm 1 of the paper: simulated regressions scaled to |y| ≤ 1, and the errors of estimates made from them.

R = max|Y_i|, by which the responses are scaled, is computed from the data: it is not private, and neither is any
estimate that was multiplied by it. It is the paper's simulation, kept as it is to be compared with it; a release
needs bounds on y that were known before.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from kngjax import Bounds
from kngjax.data import QuadraticSummary, Records, prepare

# The responses are scaled only when all of them have been seen, so until then they have no bounds.
BOUNDS = Bounds(x=(-1.0, 1.0))
ROWS_A_CHUNK = 100_000
MOST_THREADS = 8


class DataSet(NamedTuple):
    """One replicate. **Arguments:** `data`: X and Y' = Y/R as `Records` or a summary; `scale`: R, shape ()."""

    data: Any
    scale: np.ndarray


def truth(dimension: int) -> np.ndarray:
    """θ* = (0, -1, -1 + 2/11, ..., 1 - 2/11) for d = 12, and (0, -1) for d = 2."""
    return np.concatenate([[0.0], np.linspace(-1.0, 1.0, dimension)[:-1]])


def chunks(num_records: int, dimension: int, generator: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Lines 1 to 3, in parts: X_i1 = 1, which is left out of X, X_ij ~ U(-1, 1), Y_i = X_i θ* + e_i, e_i ~ N(0, 1)."""
    theta = truth(dimension)
    for start in range(0, num_records, ROWS_A_CHUNK):
        rows = min(ROWS_A_CHUNK, num_records - start)
        X = generator.uniform(-1.0, 1.0, (rows, dimension - 1))
        yield X, theta[0] + X @ theta[1:] + generator.standard_normal(rows)


def records(num_records: int, dimension: int, generator: np.random.Generator) -> DataSet:
    """Lines 1 to 5, with every record kept."""
    parts = [prepare(BOUNDS, *part) for part in chunks(num_records, dimension, generator)]
    x, y = np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])
    scale = np.max(np.abs(y))
    return DataSet(Records(x, y / scale), scale)


def summary(num_records: int, dimension: int, generator: np.random.Generator) -> DataSet:
    """Lines 1 to 5, with (n, X'X, X'Y', Y''Y') kept, which is all that the squared loss needs of any number of rows.

    The sums are of float64: of simulated data, about which nothing is to be proved.
    """
    products, largest = np.zeros((dimension + 1, dimension + 1)), 0.0
    for X, y in chunks(num_records, dimension, generator):
        rows = np.column_stack([np.ones(len(y)), X, y])
        products, largest = products + rows.T @ rows, max(largest, np.max(np.abs(y)))
    gram, moment, sum_of_squares = products[:-1, :-1], products[:-1, -1], products[-1, -1]
    scale = np.asarray(largest)
    data = QuadraticSummary(np.asarray(float(num_records)), gram, moment / scale, np.asarray(sum_of_squares / scale**2))
    return DataSet(data, scale)


def replicates(
    make: Callable[[int, int, np.random.Generator], DataSet],
    num_records: int,
    dimension: int,
    count: int,
    seed: int,
    bar: tqdm,
) -> list[DataSet]:
    """Independent data sets, one seed each, made by several threads: NumPy's generators let go of the interpreter."""

    def one(child: np.random.SeedSequence) -> DataSet:
        made = make(num_records, dimension, np.random.default_rng(child))
        bar.update()
        return made

    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(one, np.random.SeedSequence([seed, num_records]).spawn(count)))


def stacked(data_sets: list[DataSet]) -> Any:
    """The data of all replicates in one pytree with a leading axis, for `jax.vmap`."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *[data_set.data for data_set in data_sets])


def errors(estimates: np.ndarray, data_sets: list[DataSet]) -> np.ndarray:
    """Lines 7 and 8: ‖R·θ̃ - θ*‖_2 of each replicate.

    **Arguments**: `estimates`, shape (replicates, d).
    """
    if not np.all(np.isfinite(estimates)):
        raise RuntimeError("a search for an exact draw was given up: no error can be computed")
    scales = np.stack([data_set.scale for data_set in data_sets])
    return np.linalg.norm(estimates * scales[:, None] - truth(estimates.shape[1]), axis=1)
