"""Shows public objects as the call that makes them, and describes them in JSON."""

import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.core
import numpy as np

from kngjax.core.registry import parameters

# A longer array shows only its first and its last numbers.
MOST_NUMBERS = 40
FIRST_NUMBERS = 3


class ShownAsTyped:
    """Gives public objects a `repr` that is the call that makes an equal one: `Box(-10.0, 10.0)`.

    Arguments are read from attributes of the same name as a parameter of the constructor, or from NAME_lower and
    NAME_upper for a pair; those at their defaults are left out, and so are fields marked as derived, which may be
    computed from private data. Long arrays are shortened.

    `_shown_by_place`: whether numbers are shown without their names, as in `L2Ball(3.0)`.
    """

    __slots__ = ()

    _shown_by_place: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown_arguments())})"

    def _shown_arguments(self) -> Iterator[str]:
        by_place = True
        for parameter in parameters(type(self)).values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield from map(shown, getattr(self, parameter.name))
                continue
            value = self._argument(parameter)
            if _same(value, parameter.default):
                by_place = False
                continue
            by_place &= parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            by_place &= self._shown_by_place or isinstance(value, ShownAsTyped)
            yield shown(value) if by_place else f"{parameter.name}={shown(value)}"

    def _argument(self, parameter: inspect.Parameter) -> Any:
        """The value of a parameter; its default where the object keeps none."""
        lower = getattr(self, f"{parameter.name}_lower", None)
        pair = None if lower is None else (lower, getattr(self, f"{parameter.name}_upper"))
        return getattr(self, parameter.name, parameter.default if pair is None else pair)


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if default is None or default is inspect.Parameter.empty or isinstance(value, jax.core.Tracer):
        return False
    known = isinstance(value, np.ndarray | bool | int | float | str)
    return known and bool(np.array_equal(np.asarray(value), np.asarray(default)))


def is_distribution(value: Any) -> bool:
    """Says whether a value is a distribution of NumPyro, which nothing is before NumPyro is imported."""
    numpyro = sys.modules.get("numpyro.distributions")
    return numpyro is not None and isinstance(value, numpyro.Distribution)


def describe(part: Any) -> Any:
    """Describes a part made of public settings, JSON-ready: its type with its fields, arrays as lists."""
    if isinstance(part, eqx.Module):
        declared = {field.name: field.metadata for field in fields(part) if not field.metadata.get("derived")}
        given = {name: describe(getattr(part, name)) for name in declared}
        kept = {name: one for name, one in given.items() if one is not None or not declared[name].get("only_if_given")}
        return {"type": type(part).__name__, **kept}
    if is_distribution(part):
        names = part.gather_pytree_data_fields()
        given = {name: describe(value) for name in names if (value := getattr(part, name, None)) is not None}
        return {"type": type(part).__name__, **given, "batch_shape": list(part.batch_shape)}
    if isinstance(part, jax.Array | np.ndarray | np.generic):
        return np.asarray(part).tolist()
    if isinstance(part, tuple):
        return [describe(item) for item in part]
    if part is None or isinstance(part, bool | int | float):
        return part
    return str(part)


def shown(value: Any) -> str:
    """Writes a public value as one would type it."""
    if isinstance(value, jax.core.Tracer):
        return f"<traced {value.aval.str_short()}>"
    if is_distribution(value):
        names = inspect.signature(type(value)).parameters
        given = {name: part for name in names if (part := getattr(value, name, None)) is not None}
        settings = (f"{name}={shown(part)}" for name, part in given.items() if name != "validate_args")
        return f"{type(value).__name__}({', '.join(settings)})"
    if isinstance(value, jax.Array) and (value.is_deleted() or jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)):
        return f"<{value.aval.str_short()}>"
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        value = np.asarray(value)
        return _listed(value.tolist(), shorten=value.size > MOST_NUMBERS)
    if isinstance(value, list | tuple):
        parts = [shown(part) for part in value]
        if isinstance(value, list):
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown(name)}: {shown(part)}' for name, part in value.items())}}}"
    return json.dumps(str(value), ensure_ascii=False) if isinstance(value, str) else repr(value)


def _listed(numbers: Any, shorten: bool) -> str:
    if not isinstance(numbers, list):
        return repr(numbers)
    parts = [_listed(part, shorten) for part in numbers]
    if shorten and len(parts) > FIRST_NUMBERS + 1:
        parts[FIRST_NUMBERS:-1] = ["..."]
    return f"[{', '.join(parts)}]"
