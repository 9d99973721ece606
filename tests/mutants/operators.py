"""Generates small bugs, one at a time, from the syntax of a file.

Each operator looks at one node and yields the texts that could stand in its place. Mutants are found by syntax alone,
so that they follow the code wherever it goes.
"""

import ast
import dataclasses
import pathlib
from collections.abc import Callable, Iterator

_ORDERS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_TURNED = {
    "min": "max",
    "minimum": "maximum",
    "floor": "ceil",
    "any": "all",
    "lower": "upper",
    "REPLACE": "ADD_REMOVE",
    "argmin": "argmax",
}
_TURNED |= {other: name for name, other in _TURNED.items()}
_ADJACENCIES = {"replace": "add_remove", "add_remove": "replace"}
_SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One bug: the file with it, and where it is.

    **Arguments:** `name`: the change in words. `path`: the file, relative to the root. `line`: the first line of the
    statement that changed, and `last` its last. `source`: the whole text of the file with the bug.
    """

    name: str
    path: str
    line: int
    last: int
    source: str


def _comparison(node: ast.Compare) -> Iterator[str]:
    if len(node.ops) == 1 and type(node.ops[0]) in _ORDERS:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield f"({left} {_ORDERS[type(node.ops[0])]} {right})"


def _number(node: ast.Constant) -> Iterator[str]:
    if type(node.value) is int:
        yield f"{node.value + 1}"
    elif type(node.value) is float:
        yield f"{2.0 * node.value or 1.0!r}"
    elif isinstance(node.value, str) and node.value in _ADJACENCIES:
        yield repr(_ADJACENCIES[node.value])


def _arithmetic(node: ast.BinOp) -> Iterator[str]:
    if isinstance(node.op, ast.Mult | ast.Div):
        yield f"(2 * ({ast.unparse(node)}))"
    if type(node.op) in _SIGNS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
        yield f"({ast.unparse(node.left)} {_SIGNS[type(node.op)]} ({ast.unparse(node.right)}))"


def _name(node: ast.Name | ast.Attribute) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id in _TURNED:
        yield _TURNED[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in _TURNED:
        yield f"{ast.unparse(node.value)}.{_TURNED[node.attr]}"


def _refusal(node: ast.Raise) -> Iterator[str]:
    yield "pass"


def _condition(node: ast.If | ast.IfExp) -> Iterator[str]:
    # Only the test of the condition is replaced; the guard is never taken.
    yield "False"


def _negation(node: ast.UnaryOp) -> Iterator[str]:
    if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
        yield f"({ast.unparse(node.operand)})"


def _connection(node: ast.BoolOp) -> Iterator[str]:
    word = " or " if isinstance(node.op, ast.And) else " and "
    yield "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"


def _repetition(node: ast.ListComp) -> Iterator[str]:
    """One draw for all, where each round of a list should make its own."""
    (loop, *others) = node.generators
    if not others and isinstance(loop.target, ast.Name) and loop.target.id == "_":
        yield f"[{ast.unparse(node.elt)}] * len(list({ast.unparse(loop.iter)}))"


def _keys(node: ast.Assign) -> Iterator[str]:
    """One key for two purposes."""
    target, call = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(call, ast.Call) and ast.unparse(call.func).endswith("split"):
        first, second = (ast.unparse(name).lstrip("*") for name in target.elts[:2])
        yield f"{ast.unparse(node)}; {second} = {first}"


_OPERATORS: dict[type[ast.AST], Callable[..., Iterator[str]]] = {
    ast.Compare: _comparison,
    ast.Constant: _number,
    ast.BinOp: _arithmetic,
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Raise: _refusal,
    ast.If: _condition,
    ast.UnaryOp: _negation,
    ast.BoolOp: _connection,
    ast.ListComp: _repetition,
    ast.Assign: _keys,
}
# Annotations, words and imports hold no behaviour that a test should see.
_SKIPPED = {"annotation", "returns", "decorator_list", "type_params"}


def mutants(path: pathlib.Path, root: pathlib.Path, lines: set[int] | None = None) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its text, or those of statements that touch these lines."""
    text = path.read_text(encoding="utf-8")
    raw = text.splitlines(keepends=True)
    starts = [0]
    for row in raw:
        starts.append(starts[-1] + len(row.encode()))
    whole = text.encode()
    for node, statement in _nodes(ast.parse(text)):
        first, last = statement.lineno, _last_line(statement)
        if lines is not None and not lines & set(range(first, last + 1)):
            continue
        place = node.test if isinstance(node, ast.If) else node
        start = starts[place.lineno - 1] + place.col_offset
        end = starts[place.end_lineno - 1] + place.end_col_offset
        old = whole[start:end].decode()
        for new in _OPERATORS[type(node)](node):
            source = (whole[:start] + new.encode() + whole[end:]).decode()
            name = f"{' '.join(old.split())[:60]}  ->  {' '.join(new.split())[:60]}"
            yield Mutant(name, path.relative_to(root).as_posix(), first, last, source)


def _last_line(statement: ast.stmt) -> int:
    """The last line of a statement without the statements within it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if isinstance(body, list) and body[0].lineno > statement.lineno else statement.end_lineno


def _nodes(tree: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """The nodes that have an operator, each with the statement that it stands in."""
    for field, value in ast.iter_fields(tree):
        if field in _SKIPPED or isinstance(tree, ast.JoinedStr | ast.Raise | ast.Assert):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom):
                continue
            own = child if isinstance(child, ast.stmt) else statement
            words = isinstance(own, ast.Expr) and not isinstance(own.value, ast.Call)
            if type(child) in _OPERATORS and own is not None and not words:
                yield child, own
            yield from _nodes(child, own)
