"""Compiles functions quickly for a release, which runs them once, and well for research, which runs them often.

A first release waits for XLA and not for its draw. Without optimisation XLA takes a tenth to a third of the time on
processors, and its programs two to six times as long: `python -m benchmarks cold_start` measures it. So a release
compiles its programs quickly, as research does that has little to compute. Other research takes the first of XLA's
levels of optimisation: chains, exact draws and gradients of ten programs ran as fast as at the default level, and were
compiled in .25 to .85 of its time.
"""

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.core import forks
from kngjax.core.arrays import is_traced

T = TypeVar("T")

# Options of XLA's backend for processors.
QUICKLY: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
# XLA refuses an option that it no longer knows.
if jax.__version_info__ < (0, 11):
    QUICKLY["xla_cpu_use_fusion_emitters"] = False

# Those of programs that run often.
WELL: dict[str, Any] = {"xla_backend_optimization_level": 1}

# In the arguments: beyond, running what is hardly optimised takes longer than compiling it well.
MOST_NUMBERS = 2_000_000
# Read by a run in all: beyond, a second run of the same program already pays for compiling it well.
MOST_READ = 10_000_000

_ARE_RUN_ONCE = contextvars.ContextVar("programs are run once", default=False)


@contextlib.contextmanager
def quick_compilation(num_read: int = 0) -> Iterator[None]:
    """Lets `Compiled` functions be compiled quickly within a context, on processors, if they read few numbers."""
    token = _ARE_RUN_ONCE.set(num_read <= MOST_READ)
    try:
        yield
    finally:
        _ARE_RUN_ONCE.reset(token)


class Compiled(Generic[T]):
    """Compiles a function as `jax.jit` does, into one program that is compiled quickly or one that runs quickly.

    Both compute the same up to rounding. The one that is compiled quickly is taken within `quick_compilation`, on
    processors, for up to `MOST_NUMBERS` numbers. Neither is taken on other devices, inside of another program, or where
    somebody chose in XLA_FLAGS how much is optimised, but `plain`, which is compiled as JAX does by default.

    **Arguments:** `settings`: further arguments of `jax.jit`.
    """

    def __init__(self, function: Callable[..., T], **settings: Any):
        functools.update_wrapper(self, function)
        self.plain = jax.jit(function, **settings)
        self._well = jax.jit(function, compiler_options=WELL, **settings)
        self._quick = jax.jit(function, compiler_options=QUICKLY, **settings)

    def __call__(self, *arguments: Any, **named: Any) -> T:
        forks.refuse()
        leaves = jax.tree.leaves((arguments, named))
        # Whatever is made while a program is traced is a part of it, also of what is known.
        if is_traced(*leaves, jnp.zeros(())) or not _is_for_us_to_say():
            return self.plain(*arguments, **named)
        if not _ARE_RUN_ONCE.get() or sum(map(np.size, leaves)) > MOST_NUMBERS:
            return self._well(*arguments, **named)
        # Functions that are called while it is traced become part of this one program.
        token = _ARE_RUN_ONCE.set(False)
        try:
            return self._quick(*arguments, **named)
        finally:
            _ARE_RUN_ONCE.reset(token)


def _is_for_us_to_say() -> bool:
    flags = os.environ.get("XLA_FLAGS", "")
    return jax.default_backend() == "cpu" and not any(name in flags for name in QUICKLY) and _are_known()


@functools.cache
def _are_known() -> bool:
    """Whether this XLA takes the options: one that it does not know would fail releases after their debit."""
    try:
        jax.jit(lambda number: number, compiler_options=QUICKLY)(np.zeros(()))
    except Exception:
        return False
    return True
