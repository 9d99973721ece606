"""The files of the package as syntax trees, each parsed once, and what they import."""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "kngjax"


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(body, within_functions):
    """The statements of a file in their order, those within blocks, classes and (where asked for) functions too."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not within_functions:
            continue
        # Nothing that checkers of types alone read is ever run.
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING" and not within_functions:
            continue
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(statement, part, ()), within_functions)


def imports(path, within_functions=True):
    """Everything that a file imports anywhere, or when it is imported itself, as full module names."""
    for statement in statements(syntax(path).body, within_functions):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: imports are absolute"
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            yield from (name if name in MODULES else statement.module for name in names)


@functools.cache
def imported(name):
    return frozenset(imports(MODULES[name]))


def roots(names):
    return {name.split(".")[0] for name in names}
