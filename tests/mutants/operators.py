"""Generates small bugs, one at a time, from the syntax of a file.

Each node of the syntax tree may have texts that could stand in its place: another comparison, a number more, a factor
of two, `max` for `min`, a guard never taken, a refusal dropped, the other adjacency, bits used twice. Mutants are found
by syntax alone, so that they follow the code wherever it goes.
"""

import ast
import dataclasses
import pathlib
from ast import unparse
from collections.abc import Iterator

_ORDERS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
_OTHER = {"min": "max", "minimum": "maximum", "floor": "ceil", "any": "all", "lower": "upper", "argmin": "argmax"}
_OTHER |= {"REPLACE": "ADD_REMOVE"}
_OTHER |= {other: name for name, other in _OTHER.items()}
_ADJACENCIES = {"replace": "add_remove", "add_remove": "replace"}
# Annotations and decorators hold no behaviour that a test should see.
_SKIPPED = {"annotation", "returns", "decorator_list", "type_params"}
_WORDS = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A bug: the file with it, and where it is.

    **Arguments:** `name`: the change in words. `path`: the file, relative to the root. `line`, `last`: the first and
    the last line of the statement that changed. `source`: the whole text of the file with the bug.
    """

    name: str
    path: str
    line: int
    last: int
    source: str


def _changes(node: ast.AST) -> Iterator[str]:
    """The texts that may stand in the place of a node."""
    match node:
        case ast.Compare(left=left, ops=[order], comparators=[right]) if type(order) in _ORDERS:
            yield f"({unparse(left)} {_ORDERS[type(order)]} {unparse(right)})"
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield f"{value + 1}"
        case ast.Constant(value=float() as value):
            yield f"{2.0 * value or 1.0!r}"
        case ast.Constant(value=str() as value) if value in _ADJACENCIES:
            yield repr(_ADJACENCIES[value])
        case ast.BinOp(left=left, op=sign, right=right):
            if isinstance(sign, ast.Mult | ast.Div):
                yield f"(2 * ({unparse(node)}))"
            if type(sign) in _SIGNS and not isinstance(left, ast.Constant | ast.JoinedStr):
                yield f"({unparse(left)} {_SIGNS[type(sign)]} ({unparse(right)}))"
        case ast.Name(id=name) if name in _OTHER:
            yield _OTHER[name]
        case ast.Attribute(value=owner, attr=name) if name in _OTHER:
            yield f"{unparse(owner)}.{_OTHER[name]}"
        case ast.Raise():
            yield "pass"
        case ast.If():
            yield "False"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield f"({unparse(operand)})"
        case ast.BoolOp(op=word, values=values):
            yield "(" + (" or " if isinstance(word, ast.And) else " and ").join(f"({unparse(v)})" for v in values) + ")"
        case ast.ListComp(elt=made, generators=[ast.comprehension(target=ast.Name(id="_"), iter=rounds)]):
            yield f"[{unparse(made)}] * len(list({unparse(rounds)}))"
        case ast.Assign(targets=[ast.Tuple(elts=[first, second, *_])], value=ast.Call(func=function)):
            if unparse(function).endswith("split"):
                yield f"{unparse(node)}; {unparse(second).lstrip('*')} = {unparse(first).lstrip('*')}"


def mutants(path: pathlib.Path, root: pathlib.Path, lines: set[int] | None = None) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its text, or those of statements that touch these lines."""
    text = path.read_bytes()
    starts = [0]
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    for node, statement in _nodes(ast.parse(text)):
        first, last = statement.lineno, _last_line(statement)
        if lines is not None and not lines & set(range(first, last + 1)):
            continue
        # Of a condition only its test is replaced.
        place = node.test if isinstance(node, ast.If) else node
        start, end = starts[place.lineno - 1] + place.col_offset, starts[place.end_lineno - 1] + place.end_col_offset
        for new in _changes(node):
            old, name = text[start:end].decode(), path.relative_to(root).as_posix()
            words = f"{' '.join(old.split())[:60]}  ->  {' '.join(new.split())[:60]}"
            yield Mutant(words, name, first, last, (text[:start] + new.encode() + text[end:]).decode())


def _last_line(statement: ast.stmt) -> int:
    """The last line of a statement without the statements within it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if isinstance(body, list) and body[0].lineno > statement.lineno else statement.end_lineno


def _nodes(tree: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """The nodes of statements that do something, each with its statement, before the nodes within it."""
    for field, value in ast.iter_fields(tree):
        if field in _SKIPPED or isinstance(tree, _WORDS):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            own = child if isinstance(child, ast.stmt) else statement
            words = isinstance(own, ast.Expr) and not isinstance(own.value, ast.Call)
            if own is not None and not words and hasattr(child, "lineno"):
                yield child, own
            yield from _nodes(child, own)
