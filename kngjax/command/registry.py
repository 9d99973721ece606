"""What a TOML job can name: mechanisms, losses, samplers, norms, and their keys, read off their constructors.

Names are text here, so that reading a configuration loads no JAX; classes are looked up when something is made.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from kngjax.command.toml import choice, domain, number, one_or_more, pairs_of_a_table, shown, switch, text, whole

MECHANISMS = {
    "kng": "KNG",
    "exponential": "ExponentialMechanism",
    "objective_perturbation": "ObjectivePerturbation",
    "output_perturbation": "OutputPerturbation",
    "posterior_sample": "PosteriorSample",
    "ada_ops": "AdaOPS",
    "ada_ssp": "AdaSSP",
    "private_irls": "PrivateIRLS",
    "private_quantile": "PrivateQuantile",
    "k_norm": "KNormMechanism",
}
# Of a loss and of regressors; the others know their own loss, or are of one column alone.
WITHOUT_LOSS = ("posterior_sample", "ada_ops", "ada_ssp", "private_irls", "private_quantile", "k_norm")
WITHOUT_TERMS = ("private_quantile", "k_norm")
LOSSES = {
    "quantile": "QuantileLoss",
    "smoothed_quantile": "SmoothedQuantileLoss",
    "squared": "SquaredLoss",
    "huber": "HuberLoss",
    "pseudo_huber": "PseudoHuberLoss",
    "logistic": "LogisticLoss",
    "poisson": "PoissonLoss",
}
DOMAINS = {"box": "Box", "l1_ball": "L1Ball", "l2_ball": "L2Ball"}
SAMPLERS = (
    "Exact",
    "GradientSpace",
    "IndependenceMH",
    "SliceGibbs",
    "LineGibbs",
    "EnsembleWalk",
    "CoordinateWalk",
    "NUTS",
    "HMC",
    "Lattice",
)
NORMS = {"l1": "L1", "l2": "L2", "l_inf": "LInf"}
NORMS_OF_NUMBERS = {"weighted_l_inf": "WeightedLInf", "ellipsoid": "Ellipsoid", "polytope": "Polytope"}
# What the command says in place of `kngjax.core.errors.FAILED`, whatever happened.
FAILED = (
    "the release did not complete, and nothing of it is released; what it was debited from a ledger stays spent. Why "
    "is not told, since it may depend on the data: most often cells are missing or no number where [[terms]] or "
    "[response] have no 'missing = ...', or responses are none of 'levels = [...]' in [response]. The data owner finds "
    "out by 'kngjax check CONFIG', for the owner's eyes alone"
)
# What names a loss and is more than its name.
LEVELS = (r"\bLogisticLoss\(levels=\([^()]*\)\)", 'levels = ["no", "yes"] in [response]')
# Words of Python in the library's messages, and those of a job's file or of the command, in the order of replacement.
WORDS = (
    (r"\bmissing_y='drop'", 'missing = "drop" in [response]'),
    (r"\bgive y=\(0, upper\)", "give [response] bounds = [0, upper]"),
    (r"\bmissing_y = ", "[response] missing = "),
    (r"Bounds\(\.\.\., missing=, missing_y=\)", "missing = ... in [[terms]] or [response]"),
    (r"\bmissing=\.\.\.", "missing = ..."),
    (r"(?:bounds=)?Bounds\(\.\.\., y=\(lower, upper\)\)", "[response] bounds = [lower, upper]"),
    (r"\bleave y out\b", "leave [response] bounds out"),
    (r"\bleave the sampler out\b", "leave [sampler] out"),
    (r"\bsay allow_large_epsilon=True", "say allow_large_epsilon = true in [mechanism]"),
    (r"\b(Take|or) KNG\b", r'\1 [mechanism] type = "kng"'),
    (r" \(PosteriorSample\.calibrated finds the largest\)", ""),
    (r"unproved='allow' \(kngjax ledger create --allow-unproved\)", "kngjax ledger create --allow-unproved"),
    (r"\bBudget\.approximate\b", "kngjax ledger create --epsilon E --delta D"),
    (r"\bBudget\.converted\b", "kngjax ledger create --epsilon E --delta D --by-zcdp"),
    (r"\bBudget\.zcdp\(rho, distance=\.\.\.\)", "kngjax ledger create --rho R --distance H"),
    (r"\b([a-z_]+)='([a-z_]+)'", r'\1 = "\2"'),
)
# Parameters that other tables of a job speak of.
ELSEWHERE = ("loss", "bounds", "epsilon", "delta", "adjacency")


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


def settings(kind: type, table: dict[str, Any]) -> dict[str, Any]:
    """The keys of a table as arguments of a class; raises ValueError that names a key which is unknown or cannot be."""
    known, made = keys(kind), {}
    for name, value in table.items():
        if name not in known:
            raise ValueError(f"{kind.__name__} has an unknown setting {name!r}; known are {', '.join(known)}")
        try:
            made[name] = _converter(parameters(kind)[name])(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
    return made


def _converter(parameter: inspect.Parameter) -> Callable[[Any], Any]:
    """What a value of this parameter may be, by its annotation or, where that says nothing, by its default."""
    if parameter.name in ("norm", "domain"):
        return norm if parameter.name == "norm" else made_domain
    annotation, default = parameter.annotation, parameter.default
    if get_origin(annotation) is Literal:
        return choice(*get_args(annotation))
    kinds = set(get_args(annotation)) if isinstance(annotation, types.UnionType) else {annotation}
    kinds -= {type(None)}
    if kinds == {Any} or not kinds <= set(_PLAIN):
        kinds = {type(default)}
    return _PLAIN.get(kinds.pop(), numbers)


def numbers(value: Any) -> float | tuple[float, ...]:
    """A number, or a list of numbers."""
    return one_or_more(number)(value) if isinstance(value, list) else number(value)


_PLAIN: dict[type, Callable[[Any], Any]] = {bool: switch, int: whole, float: number, str: text}


def norm(value: Any) -> Any:
    """The norm that a job names."""
    if isinstance(value, str) and value in NORMS:
        return public(NORMS[value])()
    given = pairs_of_a_table(value)
    if len(given) == 1 and given[0][0] in NORMS_OF_NUMBERS:
        name, rows = given[0]
        return public(NORMS_OF_NUMBERS[name])([numbers(row) for row in rows] if isinstance(rows, list) else rows)
    plain, tables = (", ".join(f'"{name}"' for name in NORMS), ", ".join(NORMS_OF_NUMBERS))
    raise ValueError(f"must be one of {plain}, or {{ NAME = [...] }} with one of {tables}; not {shown(value)}")


def made_domain(value: Any) -> Any:
    """The domain that a job names."""
    import numpy as np

    shape, sizes = domain(value)
    return public(DOMAINS[shape])(*map(np.asarray, sizes))


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
    of_job = next(name for name, called in LOSSES.items() if called == loss)
    return f'[loss] type = "{of_job}"' + _keys_in_toml((needs or "").split(", "))


def _keys_in_toml(given: Iterable[str]) -> str:
    named = [part.replace("=", " = ") if "=" in part else f"{part} = ..." for part in given if part]
    return f" ({', '.join(named)})" if named else ""
