"""Compiled functions that a release runs once or twice, and research thousands of times.

A first release waits for XLA and not for its draw. With little optimisation XLA takes a third of the time on
processors, and its programs about twice as long: `python -m benchmarks cold_start` measures both. So a release compiles
its programs quickly, and research as JAX does by default.
"""

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import jax

from kngjax.core.arrays import is_traced

T = TypeVar("T")

# Of XLA's backend for processors.
QUICKLY: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
# XLA refuses an option that it no longer knows.
if jax.__version_info__ < (0, 11):
    QUICKLY["xla_cpu_use_fusion_emitters"] = False

_ARE_RUN_ONCE = contextvars.ContextVar("programs are run once", default=False)


@contextlib.contextmanager
def programs_run_once() -> Iterator[None]:
    """A context in which `Compiled` functions are compiled quickly, on processors."""
    token = _ARE_RUN_ONCE.set(True)
    try:
        yield
    finally:
        _ARE_RUN_ONCE.reset(token)


class Compiled(Generic[T]):
    """A function like `jax.jit(function)`, in two programs: one that is compiled quickly, and one that runs quickly.

    Both compute the same up to rounding. Which one is taken depends on `programs_run_once` alone, and where somebody
    chose in XLA_FLAGS how much is optimised there is one.

    **Arguments:** `settings`: further arguments of `jax.jit`.
    """

    def __init__(self, function: Callable[..., T], **settings: Any):
        functools.update_wrapper(self, function)
        self.optimised = jax.jit(function, **settings)
        self._quick = jax.jit(function, compiler_options=QUICKLY, **settings)

    def __call__(self, *arguments: Any, **named: Any) -> T:
        if not (_ARE_RUN_ONCE.get() and _is_for_us_to_say()) or is_traced(*jax.tree.leaves((arguments, named))):
            return self.optimised(*arguments, **named)
        # What it calls while it is traced is part of this one program.
        token = _ARE_RUN_ONCE.set(False)
        try:
            return self._quick(*arguments, **named)
        finally:
            _ARE_RUN_ONCE.reset(token)


def _is_for_us_to_say() -> bool:
    return jax.default_backend() == "cpu" and "optimization_level" not in os.environ.get("XLA_FLAGS", "")
