"""Modules whose arrays JAX sees in one precision at a time, so that no precision stays behind in an object.

JAX converts a NumPy array that a program closes over to the precision in which the program is traced, and finds the
result by the array's identity for as long as the program lives, whatever the precision is then. A program of float32
that a caller keeps, around a mechanism's density, would leave the mechanism's own arrays in float32 for the release
after it: a failure where they are arguments, and 24 bits in the place of 53, in silence, where they are constants.

So an array that is asked of an object is a view of its own for each of the two precisions, and JAX takes objects apart
by asking them.
"""

import weakref
from typing import Any

import equinox as eqx
import jax
import numpy as np

from kngjax.core.representation import is_distribution

# By place in memory, kind of numbers, and precision: while one is in use it is found again, as who compares two trees
# of arrays by identity needs it. A view keeps its memory, so that no place is another array's.
_VIEWS: weakref.WeakValueDictionary[tuple, np.ndarray] = weakref.WeakValueDictionary()


def fresh(value: Any) -> Any:
    """Gives this precision's views of NumPy arrays, those of tuples and of NumPyro's distributions too.

    Anything else is given as it is.
    """
    if type(value) is np.ndarray:
        place = value.__array_interface__["data"]
        key = place, value.shape, value.strides, value.dtype, value.flags.writeable, jax.config.read("jax_enable_x64")
        view = _VIEWS.get(key)
        if view is None:
            _VIEWS[key] = view = value.view()
        return view
    if type(value) is tuple:
        parts = tuple(map(fresh, value))
        return parts if any(part is not old for part, old in zip(parts, value, strict=True)) else value
    return jax.tree.map(fresh, value) if is_distribution(value) else value


class FreshArrays:
    """Lets objects show their arrays, and be taken apart by JAX, in `fresh` views of them."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        # Equinox takes a module apart by its dictionary.
        if name == "__dict__":
            return {name: fresh(part) for name, part in found.items()}
        return fresh(found)


class AbstractModule(FreshArrays, eqx.Module):
    """Gives Equinox modules `FreshArrays`, for programs that close over a module and for those that take it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # What `copy` and `pickle` would fill is a view of the dictionary, of an object that Equinox takes for new.
        return _copied, (type(self), dict(object.__getattribute__(self, "__dict__")))


def _copied(kind: type, fields: dict[str, Any]) -> Any:
    """A finished module with these fields, whose arrays cannot be written to, as in the one that is copied."""
    made = object.__new__(kind)
    object.__getattribute__(made, "__dict__").update({name: _frozen(value) for name, value in fields.items()})
    return made


def _frozen(value: Any) -> Any:
    if type(value) is not np.ndarray:
        return tuple(map(_frozen, value)) if type(value) is tuple else value
    view = value.view()
    view.setflags(write=False)
    return view


def constants(tree: Any) -> Any:
    """Makes the arrays of a pytree JAX's, at the present precision: each is one constant of the traced program."""
    return jax.tree.map(jax.numpy.asarray, tree)
