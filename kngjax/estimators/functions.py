"""Analyses in one call: `quantile_regression(formula, frame, tau=0.5, epsilon=1, bounds=..., adjacency=...)`.

Each is `Study(frame, ...)` and its method, and takes the arguments of both, which `help` shows. What type checkers read
is `functions.pyi`, which `python -m tests.estimators.function_stubs` writes.
"""

import inspect
from typing import Any

from kngjax.estimators.study import Study

# The methods of `Study` that are functions too. Names of Python's own, as sum, are left to the method.
NAMES = (
    "quantile_regression",
    "linear_regression",
    "logistic_regression",
    "poisson_regression",
    "mean",
    "quantile",
    "quantile_interval",
    "median",
)


def signature_of(name: str) -> inspect.Signature:
    """What is estimated, the frame, the method's arguments, and the public facts of the frame."""
    _, what, *given = inspect.signature(getattr(Study, name)).parameters.values()
    frame, *facts = inspect.signature(Study).parameters.values()
    return inspect.Signature([what, frame, *given, *facts])


def _function(name: str) -> Any:
    method, signature = getattr(Study, name), signature_of(name)
    facts = inspect.signature(Study).parameters.keys() - {"frame"}

    def function(*positional: Any, **named: Any) -> Any:
        given = signature.bind(*positional, **named).arguments
        study = Study(given.pop("frame"), **{fact: given.pop(fact) for fact in facts if fact in given})
        # Frames of a traceback hold their local variables.
        del positional, named
        return method(study, **given)

    function.__name__ = function.__qualname__ = name
    added = f"`frame`: private. The arguments after those of `Study.{name}` are those of `Study`."
    function.__doc__ = f"{inspect.cleandoc(method.__doc__)}\n\n{added}"
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return function


globals().update({name: _function(name) for name in NAMES})
