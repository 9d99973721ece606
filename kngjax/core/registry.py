"""Reads the losses, norms, domains, mechanisms and samplers that there are off the list of public names.

`kngjax/__init__.pyi` names each with the file that defines it. One line there makes a loss known to the command, to the
documentation and to the tests of conformance. No class is loaded before `classes` asks for it.
"""

import ast
import functools
import importlib
import inspect
import pathlib
import re
from dataclasses import fields

_PACKAGE = pathlib.Path(__file__).parents[1]
# The module of the public classes of a kind, where that is not the top of the package.
_MODULES = {"samplers": ("chains", "draws")}
# The files that define the classes of each kind, new files of a room too: a test compares the kinds with base classes.
# NumPyro's kernel around a sampler is none of ours.
_FILES = {
    "losses": r"losses\..*",
    "norms": r"geometry\.(?!domains|base_measures|feature_hulls).*",
    "domains": r"geometry\.(domains|base_measures)",
    "mechanisms": r"mechanisms\..*",
    "samplers": r"(?!numpyro_kernel).*",
}
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@functools.cache
def public_names(module: str = "") -> dict[str, str]:
    """Gives the file that defines each public name: "losses.quantile" for QuantileLoss.

    **Arguments:** `module`: a room with a list of its own, as "chains", whose files are told from there; or "".
    """
    statements = ast.parse((_PACKAGE / module / "__init__.pyi").read_text(encoding="utf-8")).body
    imports = [statement for statement in statements if isinstance(statement, ast.ImportFrom)]
    return {alias.name: one.module or "" for one in imports for alias in one.names}


def names(kind: str, without: str = "") -> dict[str, str]:
    """Lists the public classes of a kind, as "losses", by their short names: QuantileLoss by "quantile".

    **Arguments:** `without`: a file whose classes are left out, as "losses.distance".
    """
    return {short_name(name): name for _, name in _named(kind, without)}


def classes(kind: str) -> dict[str, type]:
    """Loads the public classes of a kind, and gives them by their short names."""
    modules = {module: importlib.import_module(f"kngjax.{module}".rstrip(".")) for module, _ in _named(kind)}
    return {short_name(name): getattr(modules[module], name) for module, name in _named(kind)}


def paths(kind: str) -> dict[str, str]:
    """Gives the path of each public class of a kind from the top of the package: NUTS is "chains.NUTS"."""
    return {name: f"{module}.{name}".lstrip(".") for module, name in _named(kind)}


@functools.cache
def parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Lists the parameters of a constructor by name, without those that are never to be given."""
    derived = {field.name for field in fields(kind) if field.metadata.get("derived")}  # pyright: ignore[reportArgumentType]
    return {name: one for name, one in inspect.signature(kind).parameters.items() if name not in derived}


def _named(kind: str, without: str = "") -> list[tuple[str, str]]:
    """The public classes of a kind, each with the module that offers it."""
    return [
        (module, name)
        for module in _MODULES.get(kind, ("",))
        for name, file in public_names(module).items()
        if name[0].isupper() and file != without and re.fullmatch(_FILES[kind], file)
    ]


def short_name(name: str) -> str:
    """Writes a class's name in small letters, without the word for its kind: AdaOPS is "ada_ops", L1Ball "l1_ball"."""
    return _WORD_STARTS.sub("_", re.sub(r"(Loss|Mechanism)$", "", name)).lower()
