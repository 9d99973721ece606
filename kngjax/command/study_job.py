"""A study in a file, as the plan of a `kngjax.Study`: every method that it has can be asked for."""

import json
from collections.abc import Sequence
from typing import Any

import kngjax as kng
from kngjax.command import registry
from kngjax.command.planned import AbstractPlanned, lines_of
from kngjax.command.study_config import Asked, StudyConfig, methods, plain
from kngjax.estimators.carrying_out import Made, in_words
from kngjax.estimators.results import Results
from kngjax.releases import totals


class PlannedStudy(AbstractPlanned):
    """Plans the job of a file with [study] and [[analyses]].

    **Arguments:** `num_records`: n, which under replace is public and decides which mechanisms serve.
    """

    def __init__(self, config: StudyConfig, num_records: int | None):
        self.config = config
        if config.adjacency == "replace" and num_records is None:
            raise ValueError(
                f"{config.path}: under replace what is released may depend on the number of records, which is public: "
                "give it, --records N, or a file of data"
            )
        try:
            study = kng.Study(_rows_alone(num_records or 1), **plain(config.study))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{config.path}: [study] {registry.in_toml(str(error))}") from None
        self.plan = study.plan()
        for number, asked in enumerate(config.analyses, start=1):
            self._ask(asked, f"{config.path}: [[analyses]] number {number}, {asked.method}: ")
        try:
            self.plan = self.plan.settled()
        except ValueError as error:
            raise ValueError(f"{config.path}: {registry.in_toml(str(error))}") from None
        self.steps = self.plan.steps()
        self.columns = study.facts.columns

    def _ask(self, asked: Asked, where: str) -> None:
        given = plain(asked.arguments)
        try:
            if "domain" in given:
                given["domain"] = registry.part(given["domain"], registry.DOMAINS)
            if "intervals" in methods()[asked.method].parameters:
                given["intervals"] = self._intervals(asked)
            owner = self.plan.by(*asked.by, num_records=asked.num_records) if asked.by else self.plan
            # Of a cross table they are any number of columns.
            several = given.pop("columns", []) if "columns" in asked.several else []
            getattr(owner, asked.method)(*several, **given)
        except (TypeError, ValueError) as error:
            raise type(error)(where + registry.in_toml(str(error))) from None

    def _intervals(self, asked: Asked) -> Any:
        """Its own, or those of [intervals]; False without any."""
        if "intervals" in asked.arguments:
            return False if asked.intervals is None else asked.intervals.asked
        return False if self.config.intervals is None else self.config.intervals.asked

    def results(self, made: Made) -> list[Results | None]:
        return self.plan.results(made)

    def lines(self, num_records: int) -> list[str]:
        return lines_of(self.steps, num_records)

    def text(self, results: Sequence[Results | None]) -> str:
        made = [one for one in results if one is not None]
        level = 0.95 if self.config.intervals is None else self.config.intervals.level
        return "\n\n".join(
            [
                *(str(one.summary(level)) for one in made),
                f"All together: {in_words(totals.total(one.guarantee for one in made))}",
            ]
        )

    def to_dict(self, results: Sequence[Results | None]) -> dict[str, Any]:
        released = [one for one in results if one is not None]
        cost = totals.total(one.guarantee for one in released)
        steps, written = {}, []
        for step in self.steps:
            steps.setdefault(id(step.analysis), []).append(step)
        for asked, own, result in zip(self.config.analyses, steps.values(), results, strict=True):
            if result is not None:
                labels = [step.label for step in own if step.is_in(result)]
                about = {"asked": asked.public, "labels": labels}
                written.append(about | {"result": json.loads(result.to_json())})
        return {
            "missing": self.missing([label for one in written for label in one["labels"]]),
            "privacy": {
                "epsilon": None if cost is None or cost.exact_epsilon is None else cost.epsilon,
                "delta": None if cost is None else cost.delta,
                "adjacency": self.config.adjacency,
                "guarantee": None if cost is None else cost.to_dict(),
            },
            "study": self.config.public["study"],
            "analyses": written,
        }


def _rows_alone(count: int) -> Any:
    """A table of so many records and no column: a plan looks at their number alone."""
    import pandas as pd

    return pd.DataFrame(index=pd.RangeIndex(count))
