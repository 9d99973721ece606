"""A mechanism, made again from what a certificate says of it: what a reader of a publication has."""

import functools
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.core import registry
from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.persons import Unit
from kngjax.geometry.feature_hulls import FeatureHull
from kngjax.mechanisms.base import AbstractMechanism

_KINDS = ("mechanisms", "losses", "norms", "domains")


def mechanism_of(described: dict[str, Any]) -> AbstractMechanism:
    """Makes the mechanism with these settings: the inverse of how certificates describe it. All of it is public.

    **Arguments:** `described`: `certificate.mechanism`.

    Raises ValueError for a mechanism, loss, norm or domain of no public name, and where the proof of the mechanism
    fails at these settings, as its constructor does.
    """
    with jax.ensure_compile_time_eval(), float64():
        made = _made(described)
    if not isinstance(made, AbstractMechanism):
        raise ValueError(f"{described.get('type')!r} is no mechanism: give a release, or its JSON by Release.from_json")
    return made


def lies_at_the_edge(described: dict[str, Any], value: np.ndarray) -> bool:
    """Tells whether a released value lies on the edge of its Θ, which cut it off.

    **Arguments:** as of `mechanism_of`."""
    if described.get("domain") is None or described["domain"]["type"] not in _classes():
        return False
    with jax.ensure_compile_time_eval(), float64():
        return is_at_the_boundary(_made(described["domain"]), value)


def is_at_the_boundary(domain: Any, value: np.ndarray) -> bool:
    """Tells whether a point a millionth farther from the middle of a domain lies outside."""
    middle = np.asarray(domain.interior_point(len(value)))
    return not bool(domain.contains(jnp.asarray(middle + (value - middle) * (1.0 + 1e-6))))


def _made(described: Any) -> Any:
    if isinstance(described, list):
        return [_made(one) for one in described]
    if not isinstance(described, dict):
        return described
    fields = {name: _made(value) for name, value in described.items() if name != "type"}
    kind = described.get("type")
    if kind == "Bounds":
        return _bounds(fields)
    if kind == "Unit":
        return Unit(**fields)
    if kind == "FeatureHull":
        return FeatureHull(*(np.asarray(block, np.float64) for block in fields["blocks"]))
    made = _classes().get(str(kind))
    if made is None:
        raise ValueError(f"{kind} has no public name in this version of kngjax, so that it cannot be made again")
    if "allow_large_epsilon" in inspect.signature(made).parameters:
        fields["allow_large_epsilon"] = True
    return made(**fields)


@functools.cache
def _classes() -> dict[str, type]:
    return {one.__name__: one for kind in _KINDS for one in registry.classes(kind).values()}


def _bounds(fields: dict[str, Any]) -> Bounds:
    """Bounds from their fields, which are not quite their arguments."""
    given = dict(fields)
    lower, upper, names = given.pop("x_lower"), given.pop("x_upper"), given.pop("names")
    sides = given.pop("y_lower"), given.pop("y_upper")
    by_name = given.pop("by_name")
    if by_name:
        given["x"] = {name: (low, high) for name, low, high in zip(names, lower, upper, strict=True)}
    else:
        given["x"] = None if lower is None else (np.asarray(lower), np.asarray(upper))
        given["columns"] = names
    given["y"] = None if sides[0] is None else sides
    return Bounds(**given)
