"""Finds the function that a named slip is about, wherever it is, and makes the change there."""

import ast
import dataclasses
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.mutants.syntax import Change, edited


@dataclasses.dataclass(frozen=True)
class Planted:
    """A file with a slip.

    **Arguments:** `path`: relative to the root. `line`: the first line of the statement that changes, and `last` the
    last line that does. `source`: the whole text with the slip.
    """

    name: str
    path: str
    line: int
    last: int
    source: str


@dataclasses.dataclass(frozen=True)
class Slip:
    """A bug in words and the change that makes it.

    **Arguments:** `where`: "function", "Class", "Class.method" or the name of a constant of a module, of the package;
    "module:name" where several have the name. `change`: of the syntax found there.
    """

    name: str
    where: str
    change: Change

    def planted(self, root: pathlib.Path) -> Planted:
        """The file with the slip. Raises LookupError unless there is one such place, and one such change of it."""
        found = list(_places(root, self.where))
        if len(found) != 1:
            raise LookupError(f"{self.name}: {self.where} is there {len(found)} times, and not once")
        ((path, source, place),) = found
        try:
            edit = self.change(place)
        except LookupError as error:
            raise LookupError(f"{self.name}: {self.where}: {error}") from None
        text = edited(source, edit)
        ast.parse(text)
        if text == source:
            raise LookupError(f"{self.name}: {self.where} is the same with the change")
        first, last = edit.node.lineno, edit.node.end_lineno
        around = [one.lineno for one in ast.walk(place) if isinstance(one, ast.stmt) and _has(one, first, last)]
        return Planted(self.name, path.relative_to(root).as_posix(), max(around), last, text)


def _has(statement: Any, first: int, last: int) -> bool:
    return statement.lineno <= first and last <= statement.end_lineno


def _places(root: pathlib.Path, where: str) -> Iterator[tuple[pathlib.Path, str, ast.stmt]]:
    module, _, name = where.rpartition(":")
    parts = name.split(".")
    likely = re.compile(rf"^\s*((def|class) )?{parts[-1]}\b", re.MULTILINE)
    for path in sorted((root / "kngjax").rglob("*.py")):
        source = "" if module and path.stem != module else path.read_text(encoding="utf-8")
        if likely.search(source):
            yield from ((path, source, place) for place in _named(ast.parse(source).body, parts))


def _named(body: Sequence[ast.stmt], parts: Sequence[str]) -> Iterator[ast.stmt]:
    for node in body:
        if parts[0] in _names(node):
            if len(parts) == 1:
                yield node
            elif isinstance(node, ast.ClassDef):
                yield from _named(node.body, parts[1:])


def _names(node: Any) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [] if any(ast.unparse(one).endswith("overload") for one in node.decorator_list) else [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
