"""Elementwise functions of people, compiled once and run chunk by chunk, so that memory is that of a few chunks."""

import concurrent.futures
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from kngjax.core.arrays import float64

CHUNK = 16384


def by_chunks(function: Callable[..., Any], people: Any, shared: Any, chunk: int = CHUNK) -> Any:
    """function(people, shared) for `chunk` people at a time, as NumPy float64 arrays.

    The last chunk is filled up with copies of its last person, so that one program serves all; chunks are worked on by
    as many threads as there are processors. Float64 whatever the caller's own setting.

    **Arguments:** `function`: of (people, shared), each of its results with one entry a person in front; a module's
    function and not a closure, or it is compiled again at every call. `people`: a pytree of NumPy arrays with one entry
    a person in front. `shared`: a pytree, the same for all.
    """
    size = jax.tree.leaves(people)[0].shape[0]
    # Few people make a small program: the least power of two that holds them.
    chunk = min(chunk, 1 << max(size - 1, 0).bit_length())

    def work(start: int) -> Any:
        stop = min(start + chunk, size)
        rows = np.minimum(np.arange(start, start + chunk), stop - 1) if stop - start < chunk else slice(start, stop)
        with float64():
            results = _run_compiled(function, jax.tree.map(lambda part: part[rows], people), shared)
            return jax.tree.map(lambda part: np.array(part)[: stop - start], results)

    starts = range(0, size, chunk)
    if len(starts) == 1:
        return work(0)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        parts = list(pool.map(work, starts))
    return jax.tree.map(lambda *pieces: np.concatenate(pieces), *parts)


@eqx.filter_jit
def _run_compiled(function: Callable[..., Any], people: Any, shared: Any) -> Any:
    return function(people, shared)
