"""Plans the steps of a job, and makes results of their releases, as text and as JSON."""

import abc
import dataclasses
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from kngjax.command import planning, registry, report
from kngjax.command.config import Config
from kngjax.command.planning import Result
from kngjax.estimators.analyses import Step
from kngjax.estimators.carrying_out import Made, Released
from kngjax.estimators.checks import DeclaredColumn
from kngjax.estimators.grouping import GroupedStep
from kngjax.estimators.views.base import cost_of
from kngjax.inference.with_intervals import WithIntervals
from kngjax.releases import totals


class AbstractPlanned(abc.ABC):
    """A job made of its public parts. Nothing in it is private.

    `steps`: its releases, in order, each as a `kngjax.estimators.analyses.Step`. `columns`: of the data, with their
    public bounds or levels, for the owner's check.
    """

    steps: Sequence[Any]
    columns: Sequence[DeclaredColumn]

    @abc.abstractmethod
    def results(self, made: Made) -> list[Any]:
        """Makes results of the releases that were made. **Arguments:** `made`: by the labels of `steps`."""

    @abc.abstractmethod
    def lines(self, num_records: int) -> list[str]:
        """Says how each release would be made and what it costs. **Arguments:** `num_records`: n where it is public."""

    @abc.abstractmethod
    def text(self, results: Sequence[Any]) -> str:
        """The results as the command prints them."""

    @abc.abstractmethod
    def to_dict(self, results: Sequence[Any]) -> dict[str, Any]:
        """The results, JSON-ready: all that may be published and what is needed to predict with it."""

    def missing(self, labels: Sequence[str]) -> list[str]:
        """The labels of the steps that are not among these."""
        return sorted({step.label for step in self.steps} - set(labels))


def lines_of(steps: Sequence[Step | GroupedStep], num_records: int) -> list[str]:
    """A line a step: its mechanism, how it would be drawn, and what it costs. Raises as their `certificates`."""
    lines = []
    for step in steps:
        alike: dict[str, int] = {}
        for certificate in step.certificates(num_records):
            kind, loss = certificate.mechanism["type"], certificate.mechanism.get("loss")
            of_loss = "" if loss is None else f" with {loss['type']}"
            words = f"{kind}{of_loss} by {certificate.summary()}"
            alike[words] = alike.get(words, 0) + 1
        for words, number in alike.items():
            lines.append(f"{step.label}: {words if number == 1 else f'{number} times {words}, of groups of records'}")
    return lines


class PlannedRegressions(AbstractPlanned):
    """Plans the job of a file with [response] and [[terms]]: releases of one response by one mechanism.

    **Arguments:** `num_records`: n, where it is public and known.
    """

    def __init__(self, config: Config, num_records: int | None = None):
        self.config = config
        self.steps = self._steps = planning.analysis(config, num_records).steps()
        self.columns = config.columns

    def results(self, made: Made) -> list[Result]:
        basis = planning.design(self.config)

        def in_own_units(release: Released) -> Any:
            return release.value if basis is None else basis.in_own_units(release.value)

        done = [(step.part, *made[step.label]) for step in self._steps if step.label in made]
        return [Result(part, release, in_own_units(release)) for part, release in done]

    def lines(self, num_records: int) -> list[str]:
        return [*lines_of(self.steps, num_records), *self._not_foreseen]

    def text(self, results: Sequence[Result]) -> str:
        intervals = [] if self.config.intervals is None else [report.intervals(self.config, results)]
        intervals += self._not_foreseen
        return "\n\n".join([report.table(self.config, results), *intervals, report.certificates(results)])

    @property
    def _not_foreseen(self) -> list[str]:
        """Says why nobody knows beforehand whether the intervals will have ends; empty where public facts tell."""
        plans = [step.part.plan for step in self._steps]
        why = [plan.not_foreseen for plan in plans if isinstance(plan, WithIntervals)]
        said = [registry.in_toml(one) for one in dict.fromkeys(why) if one is not None]
        return [f"{one[0].upper()}{one[1:]}." for one in said]

    def to_dict(self, results: Sequence[Result]) -> dict[str, Any]:
        config, regressions = self.config, [result.regression for result in results]
        basis_names, own_names = planning.names(config, regressions[0].mechanism)
        law, cost = planning.together(regressions), totals.total(cost_of(one.release) for one in results)
        return {
            "missing": self.missing([one.label for one in regressions]),
            "note": planning.NOTE,
            "privacy": {
                "epsilon": None if cost is None or cost.exact_epsilon is None else cost.epsilon,
                "delta": None if cost is None else cost.delta,
                "epsilon_exactly": _exactly(law.exact_epsilon),
                "adjacency": config.privacy.adjacency,
                "composition": planning.statement(results),
                "guarantee": None if cost is None else cost.to_dict(),
                "guarantee_of_the_laws": law.to_dict(),
            },
            "response": dataclasses.asdict(config.response),
            "terms": [dataclasses.asdict(term) for term in config.terms],
            "releases": [
                {
                    "label": result.regression.label,
                    "loss": result.release.certificate.mechanism.get("loss"),
                    "epsilon_exactly": _exactly(result.regression.epsilon),
                    "basis_names": list(basis_names),
                    "names": list(own_names),
                    "coefficients": result.coefficients.tolist(),
                    "release": json.loads(result.release.to_json()),
                    **({} if config.intervals is None else {"intervals": planning.interval_in_json(config, result)}),
                }
                for result in results
            ],
        }


def _exactly(number: Fraction | None) -> str | None:
    return None if number is None else str(number)
