"""Analyses in one call: `quantile_regression(formula, frame, tau=0.5, epsilon=1, bounds=..., adjacency=...)`.

What is estimated comes first, then the frame: `count(None, frame, ...)` is of all records under add_remove, and
`crosstab(["region", "sex"], frame, ...)` has its columns in a list. Each is `Study(frame, ...)` and its method, and
takes the arguments of both, which `help` shows. What type checkers read is `functions.pyi`, which
`python -m tests.estimators.function_stubs` writes.
"""

import inspect
import re
from collections.abc import Sequence
from typing import Any

from kngjax.core.errors import holding_no_records
from kngjax.estimators.asked import refuse_not_called
from kngjax.estimators.study import Study

# The methods of `Study` that are functions too.
NAMES = (
    "quantile_regression",
    "quantile_process",
    "linear_regression",
    "logistic_regression",
    "poisson_regression",
    "mean",
    "quantile",
    "quantile_interval",
    "median",
    "count",
    "sum",
    "variance",
    "histogram",
    "crosstab",
)


# Arguments of methods that are called as a fact of the frame is, and what functions call them.
_RENAMED = {"levels": "tau"}


def signature_of(name: str) -> inspect.Signature:
    """What is estimated, the frame, the method's arguments, and the public facts of the frame."""
    _, what, *own = inspect.signature(getattr(Study, name)).parameters.values()
    given = [one.replace(name=_RENAMED.get(one.name, one.name)) for one in own]
    frame, *facts = inspect.signature(Study).parameters.values()
    if what.kind is what.VAR_POSITIONAL:
        what = what.replace(annotation=Sequence[str], kind=what.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([what.replace(default=what.empty), frame, *given, *facts])


def _in_own_words(text: str, own: dict[str, str]) -> str:
    """A refusal of a method with the names that a function has for arguments, where it begins with one or gives a list.

    **Arguments:** `own`: by the function's names those of the method.
    """
    for new, old in own.items():
        text = re.sub(rf"^{old}\b|\b{old}(?==\[)", new, text)
    return text


def _function(name: str) -> Any:
    method, signature = getattr(Study, name), signature_of(name)
    what, facts = next(iter(signature.parameters)), inspect.signature(Study).parameters.keys() - {"frame"}
    own = {new: old for old, new in _RENAMED.items() if old in inspect.signature(method).parameters}

    def function(*positional: Any, **named: Any) -> Any:
        # Others of these are facts of the frame.
        refuse_not_called(method, named.keys() - signature.parameters.keys())
        given = signature.bind(*positional, **named).arguments
        study = Study(given.pop("frame"), **{fact: given.pop(fact) for fact in facts if fact in given})
        renamed = {own.get(one, one): value for one, value in given.items() if one != what}
        try:
            return method(study, given[what], **renamed)
        except (ValueError, TypeError) as error:
            text = _in_own_words(str(error), own)
            if text == str(error):
                raise
            refusal = type(error)(text)
        raise refusal

    function.__name__ = function.__qualname__ = name
    renamed = "".join(f" `{new}`: the `{old}` of that method." for new, old in own.items())
    added = f"`frame`: private. The arguments after those of `Study.{name}` are those of `Study`.{renamed}"
    function.__doc__ = f"{inspect.cleandoc(method.__doc__)}\n\n{added}"
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return holding_no_records(function)


globals().update({name: _function(name) for name in NAMES})
