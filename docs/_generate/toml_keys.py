"""The keys of a job's file, with their types and defaults, from what reads such files."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any, get_type_hints

from docs._generate.signatures import annotation_in_words, default_in_words
from docs._generate.tables import arguments_in_words, table
from kngjax.command import named_parts
from kngjax.command.intervals_file import COVARIANCES
from kngjax.command.job_file import FIT, Figure, Source, methods
from kngjax.command.synthesis_file import KINDS as COLUMNS
from kngjax.command.synthesis_file import DrawSettings
from kngjax.command.toml import in_words, shown, without_none
from kngjax.core.registry import parameters

TABLES = {"[data]": Source, "[figure]": Figure, "[analyses.draws]": DrawSettings}
_HEAD = ("key", "what it is", "if it is left out")
_REQUIRED = "an error: it is required"
# What the methods of a study say once for all of them.
_SAID = {
    "adjacency": '"replace" (one record exchanged, their number public) or "add_remove" (one more or less)',
    "epsilon": "a positive number",
    "delta": "a positive number",
    "domain": "a domain, like `{ box = [-20.0, 20.0] }`",
    "intervals": "true or false, or the keys of [intervals]",
}
_ABOUT = """# The keys of a job

A job is a study in a file: public facts of a table, and any number of analyses. Whatever is in such a file is public,
and chosen without looking at the data. A key that is not listed here is refused."""


def page_of_keys() -> str:
    """The whole page in MyST Markdown."""
    parts = [_ABOUT]
    for name in ("[data]", "[figure]"):
        parts += [f"## {name}", _said(TABLES[name]), table(_HEAD, keys_of_table(TABLES[name]))]
    parts += [
        "## [intervals]",
        "`covariance` is one of these, with the keys of its own.",
        table(("key", *_HEAD[1:]), _keys_of_intervals()),
        "## [study]",
        "The arguments of {py:class}`kngjax.Study`. Tables of columns are written `[study.bounds]`, a column a key.",
        table(_HEAD, keys_of_call(named_parts.public("Study"), without=("frame",), required=("adjacency",))),
        "## [[analyses]]",
        "Each has a `method`. Of groups it has `by`, a list of columns, and `num_records`; `sampler` names how it is "
        "drawn, as [below](#samplers).",
    ]
    for name in methods():
        parts += [
            f'### [[analyses]] method = "{name}"',
            f"The arguments of {{py:meth}}`kngjax.Study.{name}`.",
            table(_HEAD, keys_of_call(getattr(named_parts.public("Study"), name), without=("self",))),
        ]
    synthesis = named_parts.public("synthesis.plan")
    parts += [
        '### [[analyses]] method = "synthesis"',
        "The arguments of {py:func}`kngjax.synthesis.plan`.",
        table(_HEAD, keys_of_call(synthesis, without=("columns", "adjacency"), required=("epsilon",))),
    ]
    for kind, name in COLUMNS.items():
        parts += [
            f'### [[analyses.columns]] kind = "{kind}"',
            f"The arguments of {{py:class}}`kngjax.{name}`, in the order in which columns are drawn.",
            table(_HEAD, keys_of_call(named_parts.public(name), without=())),
        ]
    parts += ["### [analyses.draws]", _said(DrawSettings), table(_HEAD, keys_of_table(DrawSettings)), "## Samplers"]
    parts.append(f"`domain` is one of {', '.join(f'`{form}`' for form in named_parts.forms())}.")
    for sampler in named_parts.SAMPLERS:
        parts += [
            f'### sampler type = "{sampler}"',
            f"{{py:class}}`kngjax.{named_parts.SAMPLERS[sampler]}`.",
            _keys_of_class(named_parts.SAMPLERS[sampler]),
        ]
    return "\n\n".join(parts) + "\n"


def keys_of_table(kind: type) -> Iterator[list[str]]:
    """Lists the keys of a table that a dataclass declares: each with its kind, what it says, and its default."""
    hints, said = get_type_hints(kind, include_extras=True), arguments_in_words(kind)
    for field in dataclasses.fields(kind):
        default = _REQUIRED
        if field.default is not dataclasses.MISSING:
            default = "none" if field.default is None else f"`{shown(field.default)}`"
        yield [f"`{field.name}`", f"{in_words(without_none(hints[field.name]))}: {said[field.name]}", default]


def keys_of_call(called: Any, without: tuple[str, ...], required: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Of a table that has the arguments of `Study` or of a method, as their docstrings and types say.

    **Arguments:** `required`: what is required of a file although the signature has a default.
    """
    said = arguments_in_words(called)
    for name, one in inspect.signature(called).parameters.items():
        if name in without:
            continue
        several, written = one.kind is one.VAR_POSITIONAL, annotation_in_words(one.annotation, paths=False)
        kind = "a list of columns" if several else said.get(name) or _SAID.get(name) or f"`{written}`"
        yield [f"`{FIT if name == 'method' else name}`", kind, _default(one, several or name in required)]


def keys_of_class(name: str) -> Iterator[list[str]]:
    """Of a table that has the arguments of a public class, but for those that other tables say."""
    kind = named_parts.public(name)
    for key, one in parameters(kind).items():
        of_value = named_parts.kind_of(one)
        yield [f"`{key}`", "a number, or a list of numbers" if of_value is None else in_words(of_value), _default(one)]


def _default(one: inspect.Parameter, required: bool = False) -> str:
    if required or one.default is one.empty:
        return _REQUIRED
    return "none" if one.default is None else f"`{default_in_words(one.default)}`"


def _keys_of_class(name: str) -> str:
    rows = list(keys_of_class(name))
    return table(_HEAD, rows) if rows else "It has no other key."


def _keys_of_intervals() -> list[list[str]]:
    rows = [["`covariance`", f"one of {', '.join(COVARIANCES)}", "`sandwich`"]]
    rows.append(["`level`", "a number between 0 and 1", "`0.95`"])
    for written, public in COVARIANCES.items():
        for key, kind, default in keys_of_class(public):
            rows.append([f"{key} of `{written}`", kind, default])
    return rows


def _said(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n**Arguments:**")[0]
