"""Finds records that an error holds: in the local variables of its frames, and in those of its causes."""

import collections
import functools
import pathlib
import traceback
import types
from typing import Any

import numpy as np

import kngjax as kng

_TESTS = str(pathlib.Path(__file__).parent)
_FRAMES = ("pandas", "polars", "pyarrow", "narwhals")
# Public by their kind, and large.
_SKIPPED = (types.ModuleType, type, str, bytes, int, float, complex, kng.Ledger)


def records_held(error: BaseException, count: int) -> list[str]:
    """Where an error holds a frame, an array or a list of `count` records, or a study; empty where nowhere.

    **Arguments:** `count`: a number that no public setting has. Frames of tests are not looked at: they made the data.
    """
    found, errors, seen = [], collections.deque([error]), set[int]()
    while errors:
        one = errors.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        errors.extend(other for other in (one.__context__, one.__cause__) if other is not None)
        found += [f"attribute {path}" for path in _within(vars(one) | {"args": one.args}, count, seen)]
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if not frame.f_code.co_filename.startswith(_TESTS):
                where = f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
                found += [f"{where}: {path}" for path in _within(frame.f_locals, count, seen)]
    return found


def _within(variables: dict[str, Any], count: int, seen: set[int]) -> list[str]:
    found, waiting = [], collections.deque(variables.items())
    while waiting:
        path, value = waiting.popleft()
        if value is None or isinstance(value, _SKIPPED) or id(value) in seen:
            continue
        seen.add(id(value))
        if _is_of_records(value, count):
            found.append(path)
        else:
            waiting.extend((f"{path}.{name}", part) for name, part in _parts(value))
    return found


def _is_of_records(value: Any, count: int) -> bool:
    if type(value).__module__.split(".")[0] in _FRAMES:
        return hasattr(value, "columns") or hasattr(value, "to_numpy")
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return count in shape
    return isinstance(value, list | tuple | dict | set) and len(value) == count


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(repr(key)[:20], part) for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return [(str(place), part) for place, part in enumerate(value)]
    if isinstance(value, np.ndarray):
        return [("base", value.base)]
    if isinstance(value, functools.partial):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, types.MethodType):
        return [("self", value.__self__), ("function", value.__func__)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        return [(name, cell.cell_contents) for name, cell in cells]
    if isinstance(value, types.GeneratorType):
        return [] if value.gi_frame is None else list(value.gi_frame.f_locals.items())
    if isinstance(value, types.FrameType | types.TracebackType | BaseException):
        return []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    return [*getattr(value, "__dict__", {}).items(), *((name, getattr(value, name)) for name in slots)]
