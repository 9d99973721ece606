"""Writes `kngjax/estimators/functions.pyi`, the types of functions that are made of methods: `python -m` this file."""

import inspect
import pathlib
from typing import get_args

from kngjax.estimators import functions
from kngjax.estimators.study import AbstractAnalyses, Study

PATH = pathlib.Path(functions.__file__).with_suffix(".pyi")
# What the methods of a study return, by the names of their type variables.
RETURNED = dict(zip(AbstractAnalyses.__parameters__, get_args(Study.__orig_bases__[0]), strict=True))
HEAD = '"""Written by `python -m tests.estimators.function_stubs`, of the signatures of `Study` and its methods."""\n'


def text():
    """The stub."""
    imports, stubs = set(), []
    for name in functions.NAMES:
        method = getattr(Study, name)
        returned = RETURNED.get(method.__annotations__["return"], method.__annotations__["return"])
        lines, keyword_only = [f"def {name}("], False
        for one in functions.signature_of(name).parameters.values():
            if one.kind is one.KEYWORD_ONLY and not keyword_only:
                lines.append("    *,")
                keyword_only = True
            default = "" if one.default is one.empty else f" = {one.default!r}"
            lines.append(f"    {one.name}: {_annotation(one.annotation)}{default},".replace("'", '"'))
        doc = inspect.cleandoc(method.__doc__).splitlines()[0]
        stubs.append("\n".join([*lines, f") -> {returned.__name__}:", f'    """{doc}"""', ""]))
        imports.add(f"from {returned.__module__} import {returned.__name__}")
    body = "\n".join(stubs)
    collections = [kind for kind in ("Mapping", "Sequence") if f"{kind}[" in body]
    return "\n".join(
        [
            HEAD,
            f"from collections.abc import {', '.join(collections)}",
            "from typing import Any\n",
            *sorted(imports),
            "",
            body,
        ]
    )


def _annotation(annotation):
    return inspect.formatannotation(annotation).replace("collections.abc.", "").replace("typing.", "")


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
