"""Refuses to compute in a fork of a process in which JAX has computed.

JAX's threads are not copied into a child that `fork` makes, and whatever waits for them waits for ever. So a child says
so at once, where it would use JAX and before anything is debited.
"""

import os
import sys

FORKED = (
    "this process is a fork of one in which JAX has computed already, and JAX's threads are not in it: it would wait "
    'for them for ever. Start workers by multiprocessing.get_context("spawn") or "forkserver" (of joblib the default, '
    '"loky"), or fork before the first use of JAX'
)
_lacks_threads = False


def refuse() -> None:
    """Raises RuntimeError in a fork of a process in which JAX has computed."""
    if _lacks_threads:
        raise RuntimeError(FORKED)


def _note() -> None:
    """Notes in a new child whether its parent has used JAX; takes no lock."""
    global _lacks_threads
    bridge = sys.modules.get("jax._src.xla_bridge")
    _lacks_threads = _lacks_threads or bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
