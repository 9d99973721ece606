"""Signatures as Python would write them, short enough to read: no paths of other packages, no long defaults."""

import ast
import enum
import inspect
import re
from typing import Any

from jaxtyping import PRNGKeyArray

from kngjax.core import registry
from kngjax.data.records import Data

_LONGEST_DEFAULT = 40
# Of several types each, which are written out where they are used.
_ALIASES = {"PRNGKeyArray": PRNGKeyArray, "Data": Data}
# An array of JAX or of NumPy: one of the two says the shape.
_OF_EITHER_LIBRARY = re.compile(r"(\b\w+\[Array, ('[^']*')\]) \| \w+\[ndarray, \2\]")
_PATH = re.compile(r"(?<![\w.'\"])(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)")
# The files of public names, whose entries are under a shorter path.
_PUBLIC = {f"kngjax.{file}.{name}": f"kngjax.{name}" for name, file in registry.public_names().items()}


def signature_in_words(called: Any, *, bound: bool = False) -> str:
    """The signature in brackets, "(x: Any, *, key: PRNGKeyArray) -> Draws"; "()" of what has none.

    **Arguments:** `bound`: whether the first parameter is the object or the class, and left out.
    """
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return "()"
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    empty = inspect.Parameter.empty
    defined = getattr(inspect.unwrap(getattr(called, "__func__", called)), "__globals__", {})

    def in_words(annotation: Any) -> str:
        # What is written in quotes, since it is defined below.
        return annotation_in_words(defined.get(annotation, annotation) if isinstance(annotation, str) else annotation)

    shown = signature.replace(
        parameters=[
            one.replace(
                annotation=empty if one.annotation is empty else _Written(in_words(one.annotation)),
                default=empty if one.default is empty else _Written(default_in_words(one.default)),
            )
            for one in parameters
        ],
        return_annotation=empty,
    )
    returned = signature.return_annotation
    if inspect.isclass(called) or returned is empty:
        return str(shown)
    return f"{shown} -> {in_words(returned)}"


class _Written:
    """Shown as it was written."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def annotation_in_words(annotation: Any, *, paths: bool = True) -> str:
    """A type, of whose parts only public ones of kngjax have a path: `kngjax.Bounds | None`, `Float[Array, 'rows']`.

    **Arguments:** `paths`: whether even these have.
    """
    if isinstance(annotation, str):
        return annotation
    text = inspect.formatannotation(annotation)
    for name, alias in _ALIASES.items():
        text = text.replace(inspect.formatannotation(alias), name)
    return _OF_EITHER_LIBRARY.sub(r"\1", _PATH.sub(_shortened if paths else r"\1", text.replace("NoneType", "None")))


def _shortened(path: re.Match[str]) -> str:
    if not path[0].startswith("kngjax."):
        return path[1]
    # A class that is not public and has the name of a public one keeps its path, since that name leads to the other.
    return _PUBLIC.get(path[0], path[0] if f"kngjax.{path[1]}" in _PUBLIC.values() else path[1])


def default_in_words(default: Any) -> str:
    """A default as code: what is long, or no code, is "..."."""
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    text = getattr(default, "__name__", repr(default))
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return "..."
    return text if len(text) <= _LONGEST_DEFAULT else "..."
