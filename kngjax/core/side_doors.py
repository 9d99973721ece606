"""Refuses settings of JAX and XLA by which private data could reach a disk or a log beside the release.

kngjax never closes over data in compiled code, so dumps and caches hold none of them (`audits/dumps.py` looks). But
XLA's snapshots hold a program's arguments, `jax_debug_nans` stops with a message about values and recomputes outside
of the program, and logs and profiles tell what was computed for how long.
"""

import contextlib
import contextvars
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import jax

from kngjax.core import forks

# Names of jax.config with the value that lets nothing out. A setting that a version of JAX does not know is off.
_SETTINGS: dict[str, Any] = {
    "jax_dump_ir_to": "",
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_log_compiles": False,
    "jax_explain_cache_misses": False,
    "jax_log_checkpoint_residuals": False,
    "jax_debug_log_modules": "",
}
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
# Parts of XLA's flags that write: --xla_dump_to, --xla_dump_hlo_as_text, --xla_dump_hlo_snapshots, --xla_hlo_profile...
_WRITERS = ("xla_dump", "xla_hlo_profile", "xla_gpu_dump")
_ALLOWED = contextvars.ContextVar("side doors allowed", default=False)


def found_open() -> list[str]:
    """Lists the side doors that are open in this process, each with what shuts it; empty where all are shut.

    The list covers JAX's own settings, XLA's flags in the environment as it is now, and a profiler that was started
    from Python. It does not cover flags that were removed from the environment after XLA had read them, nor a profiler
    that was attached from outside.
    """
    found = []
    for name in _FLAGS:
        words = _words(os.environ.get(name, ""))
        if writing := [
            word for word in words if any(part in word for part in _WRITERS) and not word.endswith("=false")
        ]:
            found.append(f"{' '.join(writing)} in {name}: remove it and start again")
    if _setting("jax_compilation_cache_dir") and _setting("jax_enable_compilation_cache"):
        found.append(
            "the persistent compilation cache: jax.config.update('jax_enable_compilation_cache', False), or the "
            "environment variable JAX_ENABLE_COMPILATION_CACHE=false"
        )
    for name, shut in _SETTINGS.items():
        if (value := _setting(name)) not in (None, "", False):
            found.append(f"{name}={value!r}: jax.config.update({name!r}, {shut!r})")
    if _profiler_runs():
        found.append("a running profiler: jax.profiler.stop_trace()")
    return found


def refuse() -> None:
    """Raises RuntimeError where a side door is open, with what shuts it; not inside of `allowed()`.

    It raises RuntimeError too in a fork in which nothing can be computed.
    """
    forks.refuse()
    if not _ALLOWED.get() and (found := found_open()):
        raise RuntimeError(
            f"nothing is released, and nothing is spent, while these are on: {'; '.join(found)}. They could write "
            "private data, or what is computed from them, to a disk or a log. If the owner guards all that they write "
            "as the data themselves, release inside of `with kngjax.side_doors.allowed():`"
        )


@contextlib.contextmanager
def allowed() -> Iterator[None]:
    """Lets releases be made within a context although side doors are open; what those write is then as private as X."""
    token = _ALLOWED.set(True)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def _words(flags: str) -> list[str]:
    if flags and not flags.startswith("-"):
        # XLA reads such a value as the name of a file of flags.
        with contextlib.suppress(OSError):
            return pathlib.Path(flags).read_text(encoding="utf-8").split()
    return flags.split()


def _setting(name: str) -> Any:
    # Settings that a context can change are attributes; the others are flags.
    return getattr(jax.config, name, jax.config.values.get(name))


def _profiler_runs() -> bool:
    # JAX has no public name for it, and a different private one in each version.
    state = getattr(getattr(jax, "_src", None), "profiler", None)
    state = getattr(state, "_profile_state", None)
    return any(getattr(state, name, None) is not None for name in ("profile_session", "session"))
