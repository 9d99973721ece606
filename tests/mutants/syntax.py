"""Makes small changes of a function, each found by syntax: a returned value, a call, a reference, a refusal.

A change takes the syntax of a function, a class or an assignment and returns edits. It raises LookupError unless it
matches once, or `nth` says which of its matches is meant, counted from 0 in the order of the text. In templates `{}`
stands for the expression that is replaced.
"""

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

# Annotations decide nothing, and before Python 3.12 what stands in f-strings has no place in the text.
_SKIPPED = {"annotation", "returns", "type_params"}
_ATOM = re.compile(r"[\w.]+")


@dataclasses.dataclass(frozen=True)
class Edit:
    """A text in the place of a node. **Arguments:** `before`: the text is put before the node, which stays."""

    node: Any
    text: str
    before: bool = False


Change = Callable[[ast.AST], Edit]


def edited(source: str, edit: Edit) -> str:
    """The source with one edit; all else stays byte for byte."""
    node, whole = edit.node, source.encode()
    lines = whole.splitlines(keepends=True)
    start, end = (
        sum(map(len, lines[: row - 1])) + column
        for row, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    )
    if edit.before:
        return (whole[:start] + f"{edit.text}\n{' ' * node.col_offset}".encode() + whole[start:]).decode()
    return (whole[:start] + edit.text.encode() + whole[end:]).decode()


def returned(template: str, nth: int | None = None) -> Change:
    """Replaces the value of a `return`."""
    return _changed("return", _values_returned, template, nth)


def assigned(name: str, template: str, nth: int | None = None) -> Change:
    """Replaces the value that a name, or an attribute of that name, is given."""
    return _changed(name, lambda node: [value for at, value in _pairs(node) if _last_name(at) == name], template, nth)


def called(name: str, template: str, nth: int | None = None) -> Change:
    """Replaces a call. In the template `{0}`, `{1}` are its arguments, `{word}` a named one, `{call}` all of it."""

    def change(root: ast.AST) -> Edit:
        call = _only(name, [node for node in _nodes(root) if _is_call(node, name)], nth)
        named = {one.arg: _text(one.value) for one in call.keywords if one.arg is not None}
        return Edit(call, _enclosed(template.format(*map(_text, call.args), call=_text(call), **named)))

    return change


def reference(name: str, template: str, nth: int | None = None) -> Change:
    """Replaces a name where it is read, or an attribute of that name with all before its dot."""

    def places(node: Any) -> list[Any]:
        return [node] if _last_name(node) == name and isinstance(node.ctx, ast.Load) else []

    return _changed(name, places, template, nth)


def constant(old: object, new: object, nth: int | None = None) -> Change:
    """Replaces a number or a text by another."""

    def places(node: Any) -> list[Any]:
        is_old = isinstance(node, ast.Constant) and type(node.value) is type(old) and node.value == old
        return [node] if is_old else []

    return _changed(repr(old), places, repr(new).replace("{", "{{").replace("}", "}}"), nth)


def comparison(about: str, template: str, nth: int | None = None) -> Change:
    """Replaces a comparison that speaks of a word."""

    def places(node: Any) -> list[Any]:
        return [node] if isinstance(node, ast.Compare) and _speaks(node, about) else []

    return _changed(about, places, template, nth)


def condition(about: str, template: str, nth: int | None = None) -> Change:
    """Replaces the condition, which speaks of a word, of an `if` statement or expression."""

    def places(node: Any) -> list[Any]:
        return [node.test] if isinstance(node, ast.If | ast.IfExp) and _speaks(node.test, about) else []

    return _changed(about, places, template, nth)


def without_raise(about: str, nth: int | None = None) -> Change:
    """Removes a refusal whose condition or message speaks of a word."""

    def change(root: ast.AST) -> Edit:
        conditions = {id(child): node.test for node in _nodes(root) if isinstance(node, ast.If) for child in node.body}
        refusals = [
            node
            for node in _nodes(root)
            if isinstance(node, ast.Raise)
            and (_speaks(node, about) or (id(node) in conditions and _speaks(conditions[id(node)], about)))
        ]
        return Edit(_only(about, refusals, nth), "pass")

    return change


def without_call(name: str, nth: int | None = None) -> Change:
    """Removes a statement that is a call."""

    def change(root: ast.AST) -> Edit:
        statements = [node for node in _nodes(root) if isinstance(node, ast.Expr) and _is_call(node.value, name)]
        return Edit(_only(name, statements, nth), "pass")

    return change


def beginning(statement: str) -> Change:
    """Puts a statement before the first one of a function."""

    def change(root: Any) -> Edit:
        first, *others = root.body
        is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and others
        return Edit(others[0] if is_docstring else first, statement, before=True)

    return change


def _changed(what: str, places: Callable[[Any], list[Any]], template: str, nth: int | None) -> Change:
    """Puts the template in the place of one of the expressions that `places` has of each node."""

    def change(root: ast.AST) -> Edit:
        node = _only(what, [place for node in _nodes(root) for place in places(node)], nth)
        return Edit(node, _enclosed(template.format(_text(node))))

    return change


def _only(what: str, found: list[Any], nth: int | None) -> Any:
    if nth is None and len(found) != 1:
        raise LookupError(f"{what}: {len(found)} places match, and not one")
    if nth is not None and not -len(found) <= nth < len(found):
        raise LookupError(f"{what}: {len(found)} places match, and none is number {nth}")
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))[nth or 0]


def _text(node: ast.expr) -> str:
    return _enclosed(ast.unparse(node))


def _enclosed(text: str) -> str:
    return text if _ATOM.fullmatch(text) else f"({text})"


def _nodes(root: ast.AST) -> Iterator[Any]:
    """The nodes, but those of annotations and f-strings."""
    yield root
    for field, value in ast.iter_fields(root):
        if field not in _SKIPPED:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from _nodes(child)


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """The targets of an assignment with their values, those of tuples one by one."""
    if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _values_returned(node: ast.AST) -> list[Any]:
    return [node.value] if isinstance(node, ast.Return) and node.value is not None else []


def _last_name(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == name


def _speaks(node: ast.AST, about: str) -> bool:
    return re.search(rf"\b{re.escape(about)}\b", ast.unparse(node)) is not None
