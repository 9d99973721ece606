"""Which public names there are, and on which page of the reference each has its entry."""

import importlib
import inspect
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kngjax.core import registry


@dataclass(frozen=True)
class Page:
    """A page of public names. **Arguments:** `slug`: its file. `package`: whose. `files`: those that define its names.

    `files` is a regular expression of what `kngjax.core.registry.public_names` says of names of `kngjax`; of another
    package it is empty, and the page has all its names.
    """

    slug: str
    title: str
    says: str
    package: str = "kngjax"
    files: str = ""


PAGES = (
    Page("studies", "Studies", "Analyses of a private data frame.", files=r"study\.(study|synthesis\..*)"),
    Page("results", "Results", "What a study releases, with names.", files=r"study\.results"),
    Page("results-by-kind", "Results by kind", "What each kind of results has besides.", "kngjax.study.views"),
    Page(
        "synthetic-tables", "kngjax.synthesis", "Tables drawn of released counts and curves.", "kngjax.study.synthesis"
    ),
    Page("mechanisms", "Mechanisms", "Each with its guarantee.", files=r"mechanisms\..*|releases\.curves\..*"),
    Page("losses", "Losses", "What is estimated.", files=r"losses\..*"),
    Page("data", "Bounds, tables and streams", "Public facts of records, and how they are read.", files=r"data\..*"),
    Page(
        "geometry", "Domains and norms", "Where estimates lie, and how gradients are measured.", files=r"geometry\..*"
    ),
    Page("hulls", "kngjax.geometry", "Hulls of features, and noise by itself.", "kngjax.geometry"),
    Page("sensitivity", "kngjax.sensitivity", "What one record can change.", "kngjax.sensitivity"),
    Page(
        "releases",
        "Releases and certificates",
        "One private draw, and what was proved of it.",
        files=r"releases\.(certificate|release|chains|research|simulation|which)|core\.(errors|randomness)|accounting\..*",
    ),
    Page("samplers", "kngjax.chains", "Samplers: how research draws are made.", "kngjax.chains"),
    Page("kept", "kngjax.releases", "Certificates, simulations, curves, and choices of draws.", "kngjax.releases"),
    Page("draws", "kngjax.draws", "What a release can be asked for by name.", "kngjax.draws"),
    Page("inference", "Intervals, previews, posteriors", "What a release is worth.", files=r"inference\..*"),
    Page(
        "covariances",
        "kngjax.inference",
        "What intervals are made of, and what previews and intervals are.",
        "kngjax.inference",
    ),
    Page("ledger", "Ledgers", "Budgets that nobody forgets.", files=r"ledger\..*"),
    Page("ledger-errors", "kngjax.ledger", "What ledgers raise, and reservations.", "kngjax.ledger"),
    Page("each-person", "Privacy of each person", "Never published.", files=r"owner\..*"),
    Page("owner", "kngjax.owner", "For the data owner's eyes alone.", "kngjax.owner"),
    Page("nonprivate", "kngjax.owner.nonprivate", "The estimate without privacy.", "kngjax.owner.nonprivate"),
    Page("per-instance", "kngjax.owner.per_instance", "What each person's privacy was.", "kngjax.owner.per_instance"),
    Page("sklearn", "kngjax.sklearn", "Estimators for scikit-learn.", "kngjax.sklearn"),
    Page("audit", "kngjax.audit", "Attacks on a mechanism of one's own.", "kngjax.audit"),
    Page("accounting", "kngjax.accounting", "What releases cost together.", "kngjax.accounting"),
    Page("records", "kngjax.data", "Records as mechanisms see them.", "kngjax.data"),
    Page("terms", "kngjax.terms", "Columns of a regression.", "kngjax.data.terms"),
    Page("side-doors", "kngjax.side_doors", "Settings that could write data elsewhere.", "kngjax.core.side_doors"),
)


def public_names(page: Page) -> dict[str, Any]:
    """The names of a page, in reading order, with what each is; a module has a page of its own, and is left out."""
    package = importlib.import_module(page.package)
    if page.files:
        names = [name for name, file in registry.public_names().items() if file and re.fullmatch(page.files, file)]
    else:
        names = _names_of(package)
    found = {name: getattr(package, name) for name in names}
    return {name: one for name, one in found.items() if not inspect.ismodule(one)}


def _names_of(package: ModuleType) -> list[str]:
    """What a package or module offers: its `__all__`, or what it defines or exports under names without underscores."""
    if listed := getattr(package, "__all__", None):
        return list(listed)
    is_package = hasattr(package, "__path__")
    inside = package.__name__ if is_package else f"{package.__name__} "
    return [
        name
        for name, one in vars(package).items()
        if not name.startswith("_")
        and f"{getattr(one, '__module__', '')} ".startswith(inside)
        and (inspect.isclass(one) or inspect.isroutine(one))
    ]


def full_name(page: Page, name: str) -> str:
    """As users write it: "kngjax.KNG"; of a module that `kngjax` exports by that shorter path."""
    return f"{page.title if page.title.startswith('kngjax.') else page.package}.{name}"


def bases(kind: type) -> list[type]:
    """The abstract classes of kngjax that a class inherits from, the nearest first."""
    return [
        one for one in kind.__mro__[1:] if one.__module__.startswith("kngjax.") and one.__name__.startswith("Abstract")
    ]
