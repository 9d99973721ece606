"""Runs all cases of one test, and names each that fails."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@contextlib.contextmanager
def every_case() -> Iterator[Callable[..., Any]]:
    """Gathers the failures of cases, `with case("its name"): ...`, and fails at the end with the names of all."""
    failed = []

    @contextlib.contextmanager
    def case(*name: Any) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            failed.append(f"{', '.join(map(str, name))}: {type(error).__name__}: {error}".replace("\n", "\n    "))

    yield case
    if failed:
        pytest.fail(f"{len(failed)} cases fail:\n" + "\n".join(failed), pytrace=False)
