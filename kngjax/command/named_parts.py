"""Makes the objects that a job's file names, a domain or a sampler, by the list of public names; says what has failed.

Names are text here, so that reading a file loads no JAX; classes are looked up when something is made.
"""

import inspect
import operator
from typing import Any, Literal, get_origin

from kngjax.command.toml import convert, refuse_unknown, shown, without_none
from kngjax.core import registry
from kngjax.core.registry import parameters

# Without what no file can write, a distribution.
DOMAINS = registry.names("domains", without="geometry.base_measures")
# Samplers are named as in Python, without their modules.
SAMPLERS = registry.paths("samplers")
# What a job says instead of `kngjax.core.errors.FAILED`, whatever happened.
FAILED = (
    "the release did not complete, and nothing of it is released; what it was debited from a ledger stays spent. Why "
    "is not told, since it may depend on the data: most often cells are missing or no number where neither "
    "[study.missing] nor the column of a synthesis has a value, or responses are none of the levels, or a line of a "
    "CSV file has an odd number of quotes, as line breaks within quotes make. The data owner finds out by 'kngjax "
    "check CONFIG', for the owner's eyes alone"
)
_PLAIN = (bool, int, float, str)


def public(name: str) -> Any:
    """Finds the public class or function of this name, as "KNG" or "synthesis.Category"."""
    import kngjax

    return operator.attrgetter(name)(kngjax)


def settings(kind: type, table: dict[str, Any]) -> dict[str, Any]:
    """Makes the keys of a table arguments of a class; raises ValueError that names a key which is unknown or unfit."""
    known, arguments = parameters(kind), {}
    refuse_unknown(table, list(known), kind.__name__, "setting")
    for name, value in table.items():
        try:
            as_type = kind_of(known[name])
            arguments[name] = numbers(value) if as_type is None else convert(value, as_type)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
    return arguments


def kind_of(parameter: inspect.Parameter) -> Any:
    """Gives the type that a key of this parameter is converted to; None for a number or a list of numbers."""
    annotation = without_none(parameter.annotation)
    if annotation not in _PLAIN and get_origin(annotation) is not Literal:
        annotation = type(parameter.default)
    return annotation if annotation in _PLAIN or get_origin(annotation) is Literal else None


def numbers(value: Any) -> float | tuple[float, ...]:
    """Reads a number, or a list of numbers."""
    return convert(value, tuple[float, ...] if isinstance(value, list) else float)


def sampler(value: Any) -> Any:
    """Makes the sampler that a file names, { type = "LineGibbs", num_sweeps = 2 }; raises ValueError for another."""
    if not isinstance(value, dict) or value.get("type") not in SAMPLERS:
        named = value.get("type") if isinstance(value, dict) else value
        raise ValueError(f'must be {{ type = "..." }} with one of {", ".join(SAMPLERS)}; not {shown(named)}')
    kind = public(SAMPLERS[value["type"]])
    return kind(**settings(kind, {name: one for name, one in value.items() if name != "type"}))


def domain(value: Any) -> Any:
    """Makes the domain that a file names: { l2_ball = 3 } or { box = [-9, 9] }, by what each takes."""
    import numpy as np

    name, given = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
    if name in DOMAINS:
        kind = public(DOMAINS[name])
        sides = _by_place(kind)
        if len(sides) == 1:
            return kind(np.asarray(numbers(given)))
        if isinstance(given, list) and len(given) == len(sides):
            return kind(*(np.asarray(numbers(side)) for side in given))
    raise ValueError(f"must be one of {', '.join(forms())}; not {shown(value)}")


def forms() -> list[str]:
    """Lists how a file writes each domain: { l2_ball = radius }."""
    named = [(name, _by_place(public(kind))) for name, kind in DOMAINS.items()]
    return sorted(
        f"{{ {name} = {sides[0] if len(sides) == 1 else '[' + ', '.join(sides) + ']'} }}" for name, sides in named
    )


def _by_place(kind: type) -> list[str]:
    return [name for name, one in parameters(kind).items() if one.kind is one.POSITIONAL_OR_KEYWORD]
