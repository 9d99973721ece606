"""What the tests' checks of annotations refuse and let pass: the same as jaxtyping's own hook."""

import importlib
import sys

import jaxtyping
import numpy as np
import pytest

from tests import type_checks
from tests.offenders import every_case

MODULE = """
import contextlib
import dataclasses
import functools
import typing
from collections.abc import Iterator

import equinox
import numpy as np
from jaxtyping import Float, Int

if typing.TYPE_CHECKING:
    import pandas as pd

Vector = Float[np.ndarray, " n"]
Some = Vector | None


def add(x: Vector, y: Vector) -> Vector:
    return x + y

def add_some(x: Some = None, *, y: Some = None) -> float:
    return 0.0

def halve(x: Vector) -> Vector:
    return x[::2]

def pair(x: tuple[Vector, Vector]) -> int:
    return 0

def whole(number: int) -> int:
    return number

def text(number: int) -> str:
    return number

def many(*numbers: int, **named: int) -> None:
    pass

def known_to_checkers(frame: "pd.DataFrame", number: "int") -> "pd.Series | None":
    return frame

def numbers(until: int) -> Iterator[int]:
    yield from range(until)

@contextlib.contextmanager
def opened(number: int) -> Iterator[int]:
    yield number

@functools.cache
def kept(number: int) -> int:
    return number

def unannotated(number):
    def within(number: int, *, other: int = 0) -> int:
        return "text" if number == 7 else number
    return within(number)

def sizes_within(x, y):
    def within(x: Vector, y: Vector) -> Int[np.ndarray, " n"]:
        return np.arange(len(x) + (x[0] == 7))
    return within(x, y)

def many_within(*values):
    def within(*numbers: int) -> None:
        pass
    return within(*values)

def callers_sizes(x: Vector, y) -> float:
    # Names of sizes are each function's own.
    return halve_freely(y)

def halve_freely(x: Vector) -> float:
    return 0.0


class Module(equinox.Module):
    x: Vector
    y: Vector

class Daughter(Module):
    number: int

@dataclasses.dataclass(frozen=True)
class Pair:
    left: int
    right: "Pair | None" = None

class Methods:
    def method(self, number: int) -> int:
        return number

    @classmethod
    def of_class(cls, number: int) -> "Methods":
        return cls()

    @staticmethod
    def static(number: int) -> int:
        return number

    @property
    def wrong(self) -> int:
        return "text"
"""
TWO, THREE, ROWS, SEVENS = np.zeros(2), np.zeros(3), np.zeros((2, 2)), np.full(2, 7.0)
PASSED = {
    "sizes": lambda it: it.add(TWO, TWO),
    "unions": lambda it: it.add_some(TWO, y=TWO),
    "unions with nothing": lambda it: it.add_some(None, y=TWO),
    "a tuple": lambda it: it.pair((TWO, TWO)),
    "numbers": lambda it: it.whole(1),
    "many": lambda it: it.many(1, 2, other=3),
    "what checkers alone import": lambda it: it.known_to_checkers("text", 1),
    "a generator": lambda it: list(it.numbers(3)),
    "a context": lambda it: it.opened(1).__enter__(),
    "a cached function": lambda it: it.kept(1),
    "a function within a function": lambda it: it.unannotated(1),
    "many within a function": lambda it: it.many_within(1, 2),
    "sizes within": lambda it: it.sizes_within(TWO, TWO),
    "sizes of callers": lambda it: it.callers_sizes(TWO, THREE),
    "a module": lambda it: it.Module(TWO, TWO),
    "a daughter": lambda it: it.Daughter(TWO, TWO, 1),
    "a dataclass": lambda it: it.Pair(1, it.Pair(2)),
    "a method": lambda it: it.Methods().method(1),
    "a method of a class": lambda it: it.Methods.of_class(1),
    "a static method": lambda it: it.Methods.static(1),
}
REFUSED = {
    "sizes": lambda it: it.add(TWO, THREE),
    "dimensions": lambda it: it.add(ROWS, ROWS),
    "whole numbers for fractions": lambda it: it.add(np.arange(2), np.arange(2)),
    "a size returned": lambda it: it.halve(TWO),
    "sizes of unions": lambda it: it.add_some(TWO, y=THREE),
    "sizes of a tuple": lambda it: it.pair((TWO, THREE)),
    "numbers": lambda it: it.whole(1.0),
    "a type returned": lambda it: it.text(1),
    "one of many": lambda it: it.many(1, "text"),
    "one of many by name": lambda it: it.many(other="text"),
    "a type in quotes": lambda it: it.known_to_checkers("text", "text"),
    "a generator": lambda it: next(it.numbers(1.5)),
    "a context": lambda it: it.opened("text").__enter__(),
    "a cached function": lambda it: it.kept("text"),
    "a function within a function": lambda it: it.unannotated("text"),
    "a type returned within a function": lambda it: it.unannotated(7),
    "one of many within a function": lambda it: it.many_within(1, "text"),
    "sizes within a function": lambda it: it.sizes_within(TWO, THREE),
    "a size returned within a function": lambda it: it.sizes_within(SEVENS, SEVENS),
    "sizes of a module": lambda it: it.Module(TWO, THREE),
    "sizes of a daughter": lambda it: it.Daughter(TWO, THREE, 1),
    "a field of a daughter": lambda it: it.Daughter(TWO, TWO, 1.5),
    "a dataclass": lambda it: it.Pair("text"),
    "a method": lambda it: it.Methods().method("text"),
    "a method of a class": lambda it: it.Methods.of_class("text"),
    "a static method": lambda it: it.Methods.static("text"),
    "a property": lambda it: it.Methods().wrong,
}
HOOKS = {
    "ours": type_checks.check_package,
    "jaxtyping's": lambda name: jaxtyping.install_import_hook(name, "beartype.beartype"),
}


@pytest.fixture(scope="module", params=HOOKS)
def module(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    name = f"checked_{list(HOOKS).index(request.param)}"
    (folder / f"{name}.py").write_text(MODULE, encoding="utf-8")
    finders = list(sys.meta_path)
    sys.path.insert(0, str(folder))
    HOOKS[request.param](name)
    yield importlib.import_module(name)
    sys.meta_path[:] = finders
    sys.path.remove(str(folder))
    del sys.modules[name]


def test_what_is_as_it_says_passes_and_what_is_not_is_refused(module):
    with every_case() as case:
        for name, call in PASSED.items():
            with case(name):
                call(module)
        for name, call in REFUSED.items():
            # The first call writes the checks, and the second finds them written.
            for time in ("first", "second"):
                with case(name, time), pytest.raises(jaxtyping.TypeCheckError):
                    call(module)
