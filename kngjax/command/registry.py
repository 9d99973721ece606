"""Lists what a TOML job can name, by the list of public names, with the keys of each, read off its constructor.

Names are text here, so that reading a configuration loads no JAX; classes are looked up when something is made.
"""

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from kngjax.command.toml import convert, shown, without_none
from kngjax.core import registry

# Without what is released for later regressions, which no job of its own can name.
MECHANISMS = registry.names("mechanisms", without="mechanisms.design_moments")
# Without what no file can write: a loss of no response, a distribution.
LOSSES = registry.names("losses", without="losses.distance")
DOMAINS = registry.names("domains", without="geometry.base_measures")
NORMS = registry.names("norms")
# Samplers are named as in Python.
SAMPLERS = tuple(registry.names("samplers").values())
# What a job says instead of `kngjax.core.errors.FAILED`, whatever happened.
FAILED = (
    "the release did not complete, and nothing of it is released; what it was debited from a ledger stays spent. Why "
    "is not told, since it may depend on the data: most often cells are missing or no number where [[terms]], "
    "[response] or [[synthesis.columns]] have no 'missing = ...', or [study.missing] no value, or responses are none "
    "of the levels, or a line of a CSV file has an odd number of quotes, as line breaks within quotes make. The data "
    "owner finds out by 'kngjax check CONFIG', for the owner's eyes alone"
)
# A loss with its levels, which a file declares in another table.
LEVELS = (r"\bLogisticLoss\(levels=\([^()]*\)\)", 'levels = ["no", "yes"] in [response]')
# Python in the messages of the library, and what stands for it in a job's file or the command; replaced in this order.
WORDS = (
    (r"\bmissing_y='drop'", 'missing = "drop" in [response]'),
    (r"\bBounds\(\.\.\., y=\(0, upper\)\)", "[response] bounds = [0, upper]"),
    (r"\bmissing_y = ", "[response] missing = "),
    (r"Bounds\(\.\.\., missing=, missing_y=\)", "missing = ... in [[terms]] or [response]"),
    (r"\bmissing=\.\.\.", "missing = ..."),
    (r"(?:bounds=)?Bounds\(\.\.\., y=\(lower, upper\)\)", "[response] bounds = [lower, upper]"),
    (r", as preview\(design=\.\.\.\) of made-up rows like yours tells", ""),
    (r"\bleave y out\b", "leave [response] bounds out"),
    (r"\bleave the sampler out\b", "leave [sampler] out"),
    (r"\bsay allow_large_epsilon=True", "say allow_large_epsilon = true in [mechanism]"),
    (r"\b(Take|or) KNG\b", r'\1 [mechanism] type = "kng"'),
    (r" \(PosteriorSample\.calibrated finds the largest\)", ""),
    (r"unproved='allow' \(kngjax ledger create --allow-unproved\)", "kngjax ledger create --allow-unproved"),
    (r"\bBudget\.approximate\b", "kngjax ledger create --epsilon E --delta D"),
    (r"\bBudget\.converted\b", "kngjax ledger create --epsilon E --delta D --by-zcdp"),
    (r"\bBudget\.zcdp\(rho, distance=\.\.\.\)", "kngjax ledger create --rho R --distance H"),
    (r"\b(bounds|levels)=\{'([^']*)': \(([^()]*)\)\}", r"[study.\1] \2 = [\3]"),
    (r"\b(missing|missing_codes|dither)=\{'([^']*)': ([^{}]*)\}", r"[study.\1] \2 = \3"),
    (r"\bWithIntervals\(\.\.\., force=True\)", "[intervals] force = true"),
    (r"\bThe mechanism alone has an estimate", "Without [intervals] there is an estimate"),
    (
        r"\bcovariance=kngjax\.Sandwich\(share=([\d.]+), noise='zcdp'\)",
        r'covariance = "sandwich", share = \1, noise = "zcdp"',
    ),
    (r"\bcovariance=kngjax\.IndependentErrors\(share=([\d.]+)\)", r'covariance = "independent_errors", share = \1'),
    (r"\bcovariance=(?=kngjax\.)", ""),
    (r"\bWithIntervals\(\.\.\., num_records=([\d_]+)\)", r"[intervals] num_records = \1"),
    (r"\bintervals=kngjax\.Sandwich\(share=([\d.]+)\)", r'intervals = { covariance = "sandwich", share = \1 }'),
    (
        r"\bintervals=kngjax\.Sandwich\(share=([\d.]+), noise='zcdp'\)",
        r'intervals = { covariance = "sandwich", share = \1, noise = "zcdp" }',
    ),
    (
        r"\bintervals=kngjax\.IndependentErrors\(share=([\d.]+)\)",
        r'intervals = { covariance = "independent_errors", share = \1 }',
    ),
    (r"\bintervals=kngjax\.Groups\(\)", 'intervals = { covariance = "groups" }'),
    (r"\bby\(\.\.\., num_records=\.\.\.\)", "num_records = ... beside by = [...]"),
    (r"\bintervals=False\b", "intervals = false"),
    (r"\bforce=True\b", "force = true"),
    (r"\b(?:kngjax\.)?Sandwich\(\)", 'covariance = "sandwich"'),
    (r"\b(?:kngjax\.)?Sandwich\((\w+)=([\d.]+)\)", r'covariance = "sandwich" and \1 = \2'),
    (r"\b(?:kngjax\.)?Groups\(\)", 'covariance = "groups"'),
    (r"\b(?:kngjax\.)?Groups\((\d+)\)", r'covariance = "groups" and number = \1'),
    (r"\bor kngjax\.Sandwich\b", 'or covariance = "sandwich"'),
    (r"\bnum_records=([\d_]+)", r"[study] num_records = \1"),
    (r"\bdomain=kngjax\.L1Ball\(([\d.]+)\)", r"domain = { l1_ball = \1 }"),
    (r"\b([a-z_]+)='([a-z_]+)'", r'\1 = "\2"'),
)
# Parameters that other tables of a job set.
ELSEWHERE = ("loss", "bounds", "epsilon", "delta", "adjacency", "levels")


def public(name: str) -> Any:
    """The public class of this name."""
    import kngjax

    return getattr(kngjax, name)


def parameters(kind: type) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor by name, without those that are never to be given."""
    derived = {field.name for field in fields(kind) if field.metadata.get("derived")}
    return {name: one for name, one in inspect.signature(kind).parameters.items() if name not in derived}


def keys(kind: type) -> list[str]:
    """The keys of the table that makes an object of this class, besides its type."""
    return [name for name in parameters(kind) if name not in ELSEWHERE]


def needs(kind: type) -> list[str]:
    """Lists the keys that have no default."""
    return [name for name in keys(kind) if parameters(kind)[name].default is inspect.Parameter.empty]


def takes(kind: str, name: str) -> bool:
    """Whether the constructor of a mechanism, by its name in a file, has a parameter of this name."""
    return name in parameters(public(MECHANISMS[kind]))


def takes_terms(kind: str) -> bool:
    """Whether a mechanism explains the response by regressors, and is not of one column alone."""
    return public(MECHANISMS[kind]).has_regressors


def needs_domain(kind: str) -> bool:
    """Whether a mechanism has no law without a domain."""
    declared = {field.name: field.type for field in fields(public(MECHANISMS[kind]))}
    return "domain" in declared and type(None) not in get_args(declared["domain"])


def settings(kind: type, table: dict[str, Any]) -> dict[str, Any]:
    """The keys of a table as arguments of a class; raises ValueError that names a key which is unknown or cannot be."""
    known, arguments = keys(kind), {}
    for name, value in table.items():
        if name not in known:
            raise ValueError(f"{kind.__name__} has an unknown setting {name!r}; known are {', '.join(known)}")
        try:
            arguments[name] = _argument(parameters(kind)[name], value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
    return arguments


def _argument(parameter: inspect.Parameter, value: Any) -> Any:
    """A value as the parameter's annotation has it, or where that says nothing, its default; else numbers."""
    if parameter.name in ("norm", "domain"):
        return part(value, NORMS if parameter.name == "norm" else DOMAINS)
    kind = kind_of(parameter)
    return numbers(value) if kind is None else convert(value, kind)


def kind_of(parameter: inspect.Parameter) -> Any:
    """The type that a key of this parameter is converted to; None for a number or a list of numbers."""
    annotation = without_none(parameter.annotation)
    if annotation not in _PLAIN and get_origin(annotation) is not Literal:
        annotation = type(parameter.default)
    return annotation if annotation in _PLAIN or get_origin(annotation) is Literal else None


def numbers(value: Any) -> float | tuple[float, ...]:
    """A number, or a list of numbers."""
    return convert(value, tuple[float, ...] if isinstance(value, list) else float)


_PLAIN = (bool, int, float, str)


def part(value: Any, known: dict[str, str]) -> Any:
    """The norm or the domain that a job names: "l2", { l2_ball = 3 } or { box = [-9, 9] }, by what each takes."""
    import numpy as np

    name, given = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (value, None)
    if isinstance(name, str) and name in known:
        kind = public(known[name])
        sides = _by_place(kind)
        if given is None and not sides:
            return kind()
        if given is not None and len(sides) == 1:
            rows = [numbers(row) for row in given] if isinstance(given, list) else numbers(given)
            return kind(np.asarray(rows))
        if len(sides) > 1 and isinstance(given, list) and len(given) == len(sides):
            return kind(*(np.asarray(numbers(side)) for side in given))
    raise ValueError(f"must be one of {', '.join(forms(known))}; not {shown(value)}")


def forms(known: dict[str, str]) -> list[str]:
    """How a file writes each norm, or each domain: "l2", { l2_ball = radius }."""
    return sorted(map(_form, known.items()))


def _by_place(kind: type) -> list[str]:
    return [name for name, one in parameters(kind).items() if one.kind is one.POSITIONAL_OR_KEYWORD]


def _form(named: tuple[str, str]) -> str:
    name, sides = named[0], _by_place(public(named[1]))
    if not sides:
        return f'"{name}"'
    return f"{{ {name} = {sides[0] if len(sides) == 1 else '[' + ', '.join(sides) + ']'} }}"


def in_toml(message: str) -> str:
    """A message of the library in the terms of a job: `sampler=kngjax.LineGibbs()` is [sampler] type = "LineGibbs"."""
    for kind, called in ((kind, called) for kind, called in MECHANISMS.items() if kind not in ("kng", "exponential")):
        message = re.sub(
            rf"(?:kngjax\.)?\b{called}\((?:({'|'.join(LOSSES.values())})\(([^()]*)\), )?[^()]*\)",
            lambda found, kind=kind: _mechanism_in_toml(kind, found[1], found[2]),
            message,
        )
    message = re.sub(
        rf"(?:sampler=)?(?:kngjax\.)?\b({'|'.join(SAMPLERS)})\(([^()]*)\)",
        lambda found: f'[sampler] type = "{found[1]}"' + _keys_in_toml(found[2].split(", ")),
        message,
    )
    message = re.sub(*LEVELS, message)
    message = re.sub(
        rf"\b({'|'.join(LOSSES.values())})\b(?:\(([^()]*)\))?",
        lambda found: _loss_in_toml(found[1], found[2]),
        message,
    )
    for words, meant in WORDS:
        message = re.sub(words, meant, message)
    return message


def _mechanism_in_toml(kind: str, loss: str | None, needs: str | None) -> str:
    named = f'[mechanism] type = "{kind}"'
    return named if loss is None else f"{named} and {_loss_in_toml(loss, needs)}"


def _loss_in_toml(loss: str, needs: str | None) -> str:
    return f'[loss] type = "{registry.short_name(loss)}"' + _keys_in_toml((needs or "").split(", "))


def _keys_in_toml(given: Iterable[str]) -> str:
    named = [part.replace("=", " = ") if "=" in part else f"{part} = ..." for part in given if part]
    return f" ({', '.join(named)})" if named else ""
