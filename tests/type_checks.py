"""The package's annotations checked while tests run: types by beartype, sizes of arrays by jaxtyping.

`jaxtyping.install_import_hook` checks the same, but binds every call's arguments in Python, checks them twice, and
writes and compiles the checks of a function within a function at every run of its `def`: half the time of tests that
compute in fractions.
"""

import ast
import dataclasses
import functools
import importlib.machinery
import inspect
import itertools
import sys
import typing
from typing import Any

import beartype
import jaxtyping
from beartype import door

# Tests expect TypeError where a type is wrong.
_SETTINGS = beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError)


def checked(it: Any) -> Any:
    """A function, or a dataclass by its `__init__`, that refuses arguments and values of other types than it says.

    Names of sizes stand for one number within a call, as `jaxtyping.jaxtyped` has it.
    """
    if inspect.isclass(it):
        if dataclasses.is_dataclass(it) and "__init__" in vars(it):
            it.__init__ = checked(it.__init__)
        return it
    if not it.__annotations__:
        return it
    it.__annotations__ = {name: _resolved(hint, it.__globals__) for name, hint in it.__annotations__.items()}
    if "<locals>" in it.__qualname__ and not it.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return _checked_within(it)
    return _checked_when_called(it)


def _checked_when_called(function: Any) -> Any:
    """The same for any other function, whose checks are written and compiled when it is first called."""
    typed, has_sizes = None, False

    @functools.wraps(function)
    def checking(*args, **kwargs):
        __tracebackhide__ = True
        nonlocal typed, has_sizes
        if typed is None:
            has_sizes = any(_has_sizes(hint) for hint in function.__annotations__.values())
            typed = beartype.beartype(function, conf=_SETTINGS)
        if not has_sizes:
            return typed(*args, **kwargs)
        with jaxtyping.jaxtyped("context"):
            return typed(*args, **kwargs)

    return checking


def _checked_within(function: Any) -> Any:
    """The same for a function within a function: beartype would write and compile its checks at every `def`."""
    hints, code = function.__annotations__, function.__code__
    names = code.co_varnames[: code.co_argcount]

    @functools.wraps(function)
    def by_hint(*args, **kwargs):
        __tracebackhide__ = True
        with jaxtyping.jaxtyped("context"):
            for name, value in itertools.chain(zip(names, args, strict=False), kwargs.items()):
                if name in hints:
                    door.die_if_unbearable(value, hints[name], conf=_SETTINGS)
            result = function(*args, **kwargs)
            if "return" in hints:
                door.die_if_unbearable(result, hints["return"], conf=_SETTINGS)
        return result

    return by_hint


def _resolved(hint: Any, names: dict[str, Any]) -> Any:
    # What type checkers alone import stands for anything, and so does a class that is yet to be made.
    try:
        return eval(hint, names) if isinstance(hint, str) else hint
    except NameError:
        return Any


def _has_sizes(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(_has_sizes(part) for part in typing.get_args(hint))


def _mark(body: list[Any]) -> None:
    """Puts `checked` before every class's other decorators, and behind those of every function with annotations."""
    for statement in body:
        checked_here = ast.copy_location(ast.Name("__checked__", ast.Load()), statement)
        if isinstance(statement, ast.ClassDef):
            statement.decorator_list.insert(0, checked_here)
        elif isinstance(statement, ast.FunctionDef):
            statement.decorator_list.append(checked_here)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            _mark(getattr(statement, part, []))


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        # Compiled files of users' own runs hold no checks, and theirs hold none of these.
        return self.source_to_code(self.get_data(self.path), self.path)

    def source_to_code(self, data: Any, path: Any, **options: Any) -> Any:
        tree = ast.parse(data, path)
        _mark(tree.body)
        return super().source_to_code(tree, path, **options)

    def exec_module(self, module: Any) -> None:
        module.__checked__ = checked
        super().exec_module(module)


class _Finder(importlib.machinery.PathFinder):
    package: str

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.split(".")[0] != cls.package:
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def check_package(name: str) -> None:
    """Everything of this package that is imported from now on is checked."""
    sys.meta_path.insert(0, type("Finder", (_Finder,), {"package": name}))
