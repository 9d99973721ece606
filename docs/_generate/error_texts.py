"""Every text that an error of the package may have, collected from its code without running it.

The cure is part of the text: an error names the argument, its value, and what would be right.
"""

import ast
import builtins
import functools
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kngjax.core.error_anchors import anchor_of

_ANYTHING = "…"
# Constants that a failed release says whole, each where it was called from.
_FAILURES = re.compile(r"FAILED(_OF_\w+)?")
_ABOUT = """# Error texts

Every text that an error of kngjax may have, by the room of the code that it comes from. It says what is wrong and what
would be right; ‹angle brackets› stand for a name or a number of your call, … for anything else, and (one / other) for
one of the two. Each has an anchor made of its words, by which it can be linked to. What a [job](toml-keys.md) is told
has the same texts in the terms of its file. An error names no value of the data: once they were read a release fails
with the constant text of {py:exc}`kngjax.ReleaseFailed`, whose entry lists the causes."""


@dataclass(frozen=True)
class ErrorText:
    """A text and where it comes from. **Arguments:** `where`: the class or function, or the module outside of both."""

    room: str
    where: str
    exception: str
    text: str
    line: int


def page_of_errors(package: pathlib.Path) -> str:
    """The whole page in MyST Markdown."""
    parts, places = [_ABOUT], texts_with_places(package)
    rooms = {text: found[0].room for text, found in places.items()}
    for room in dict.fromkeys(rooms.values()):
        parts.append(f"## {room}")
        parts.append("\n".join(_row(text, places[text]) for text in places if rooms[text] == room))
    return "\n\n".join(parts) + "\n"


def _row(text: str, places: list[ErrorText]) -> str:
    """A text with its anchor, and all that raise it."""
    raised = dict.fromkeys(f"`{one.exception}` of `{one.where}`" for one in places)
    return f'- <a id="{anchor_of(text)}"></a>{_escaped(text)} — {", ".join(raised)}'


def texts_with_places(package: pathlib.Path) -> dict[str, list[ErrorText]]:
    """Each text once, in the order of its first place, with all places that it comes from."""
    places: dict[str, list[ErrorText]] = {}
    for one in error_texts(package):
        places.setdefault(one.text, []).append(one)
    return places


@functools.cache
def error_texts(package: pathlib.Path) -> tuple[ErrorText, ...]:
    """The texts of all modules of a package, by room and module, in the order of their lines."""
    return tuple(_error_texts(package))


def _error_texts(package: pathlib.Path) -> Iterator[ErrorText]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    exceptions = _exceptions(trees)
    constants = {name: value for tree in trees.values() for name, value in _constants(tree).items()}
    for path, tree in trees.items():
        parts = path.relative_to(package).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        own = constants | _constants(tree)
        for kind, default in _default_texts(tree, exceptions):
            if text := in_words(default, own):
                yield ErrorText(parts[0].removesuffix(".py"), kind, kind, text, default.lineno)
        for name, failed in _constants(tree).items():
            if _FAILURES.fullmatch(name):
                text = in_words(failed, own)
                yield ErrorText(parts[0].removesuffix(".py"), module, "ReleaseFailed", text, failed.lineno)
        for where, call in _calls(tree, module):
            kind = _last_name(call.func)
            if kind in exceptions and call.args:
                for text in filter(None, (in_words(one, own) for one in _choices(call.args[0]))):
                    yield ErrorText(parts[0].removesuffix(".py"), where, kind, text, call.lineno)


def _choices(text: ast.expr) -> list[ast.expr]:
    """The texts that an expression chooses from."""
    return [*_choices(text.body), *_choices(text.orelse)] if isinstance(text, ast.IfExp) else [text]


def in_words(text: ast.expr, constants: dict[str, ast.expr]) -> str:
    """A text as its reader sees it, with ‹names› for what is filled in; "" for an expression that holds no words."""
    written = _written(text, constants, depth=0)
    return " ".join(written.split()) if _has_words(written) else ""


def _written(text: ast.expr, constants: dict[str, ast.expr], depth: int) -> str:
    match text:
        case ast.Constant(value=str(words)):
            return words
        case ast.JoinedStr(values=values):
            return "".join(_written(part, constants, depth) for part in values)
        case ast.FormattedValue(value=value):
            return _written(value, constants, depth)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _written(left, constants, depth) + _written(right, constants, depth)
        case ast.IfExp(body=body, orelse=orelse):
            either = [_written(one, constants, depth) for one in (body, orelse)]
            return f"({' / '.join(one.strip() or '–' for one in either)})" if _all_in_words(either) else _ANYTHING
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            return re.sub(r"\{[^}]*\}", _ANYTHING, _written(value, constants, depth))
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type"), args=[of]), attr="__name__") if not _is_self(of):
            return _written(of, constants, depth)
        case ast.Name(id=name) if name in constants and depth < 5:
            return _written(constants[name], constants, depth + 1)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"‹{name.strip('_').replace('_', ' ')}›"
    return _ANYTHING


def _is_self(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Name) and expression.id == "self"


def _all_in_words(parts: list[str]) -> bool:
    """Whether each of these has words of its own, or is nothing at all."""
    return all(not part or _has_words(part) for part in parts)


def _has_words(text: str) -> bool:
    return re.search(r"[A-Za-z]{2}", re.sub(r"‹[^›]*›", "", text)) is not None


def _exceptions(trees: dict[pathlib.Path, ast.Module]) -> set[str]:
    """The names of Python's exceptions and of those that the package defines."""
    known = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while more := {one.name for one in classes if {_last_name(base) for base in one.bases} & known} - known:
        known |= more
    return known


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """What capital names of a module stand for, where that is text."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _calls(tree: ast.Module, module: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call by its line, with the class or the function of the module that it is in; or the module."""
    for statement in tree.body:
        where = statement.name if isinstance(statement, ast.ClassDef | ast.FunctionDef) else module
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        yield from ((where, call) for call in sorted(calls, key=lambda call: call.lineno))


def _default_texts(tree: ast.Module, exceptions: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """What exceptions of the module say where they are raised without a text: the defaults of their constructors."""
    for kind in tree.body:
        if isinstance(kind, ast.ClassDef) and kind.name in exceptions:
            for method in kind.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    yield from ((kind.name, default) for default in method.args.defaults)


def _last_name(expression: ast.expr) -> str:
    return getattr(expression, "id", getattr(expression, "attr", ""))


def _escaped(text: str) -> str:
    """The text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)
