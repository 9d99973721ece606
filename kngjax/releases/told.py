"""Collects what certificates say of how cells became records."""

import contextlib
import contextvars
from collections.abc import Iterator

from kngjax.data import cells
from kngjax.data.bounds import Bounds

_TOLD: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("how records were read", default=())


@contextlib.contextmanager
def telling(*sentences: str) -> Iterator[None]:
    """Certificates that are made within say these sentences too. Public."""
    before = _TOLD.set((*_TOLD.get(), *sentences))
    try:
        yield
    finally:
        _TOLD.reset(before)


def said() -> tuple[str, ...]:
    """Lists the sentences of `telling` that certificates made now say. Public."""
    return _TOLD.get()


def told(bounds: Bounds, has_response: bool) -> tuple[str, ...]:
    """Lists what a certificate made now says of how its records were read, and of what their bounds do. Public."""
    of_bounds = (bounds.explain_missing(has_response), *bounds.explain_dither(), *bounds.explain_weights())
    return (*said(), *of_bounds, cells.READING)
