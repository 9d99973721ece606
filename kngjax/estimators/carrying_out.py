"""Releases of analyses, one by one: the path that a study, a plan and a job in a file share.

    columns and types -> certificates -> all that is missing allowed by the ledger
        -> of each: debited -> the records made once an analysis -> drawn -> kept

Whatever ends this path early costs one debit at most beside the releases that were made, which the ledger holds.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

import kngjax as kng
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import run_hiding_errors, run_telling_refusals
from kngjax.estimators.analyses import Analysis, Part, arguments
from kngjax.releases import totals
from kngjax.releases.debits import owed, settings


@dataclass(frozen=True)
class Step:
    """One release of several analyses. Public. **Arguments:** `label`: its name, no two of which are alike."""

    label: str
    analysis: Analysis
    part: Part

    def certificate(self, num_records: int) -> kng.Certificate:
        """Of the release, before it is debited. **Arguments:** `num_records`: used where it is public."""
        return totals.certify(self.part.mechanism, self.analysis.sampler, num_records)


@dataclass(frozen=True)
class Keeping:
    """What a job in a file adds. All of it is public.

    **Arguments:** `earlier`: releases by label that are there already, and not made again. `about`: what a ledger is
    told of each debit besides. `require`: refuses what the ledger does not allow, as `Ledger.require`. `keep`: called
    with all that is there, by label, after each release. `progress`: whether bars are shown; None on a terminal.
    """

    earlier: Mapping[str, kng.Release] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    require: Callable[..., None] = kng.Ledger.require
    keep: Callable[[Mapping[str, kng.Release]], None] = lambda _: None
    progress: bool | None = None


def steps_of(analysis: Analysis) -> list[Step]:
    """The releases of one analysis, by their own labels."""
    return [Step(part.label, analysis, part) for part in analysis.parts]


def in_short(certificate: kng.Certificate) -> str:
    """Which mechanism makes a release, how it is drawn, and what it costs."""
    cost = "not proved" if certificate.cost is None else certificate.cost.explain()
    return f"{certificate.mechanism['type']}, {certificate.assurance}: {cost}"


def together(certificates: Sequence[kng.Certificate]) -> str:
    """What is proved of releases together, in words."""
    total = totals.total_cost(certificates)
    return "nothing is proved" if total is None else total.explain()


def carry_out(
    steps: Sequence[Step], frame: Any, ledger: kng.Ledger | None, keeping: Keeping | None = None
) -> list[kng.Release]:
    """All releases, if the ledger allows all; each is debited right before it is drawn, and kept right after.

    **Arguments:** `frame`: private. The others are public. Raises as `Analysis.check`, `kngjax.certify`,
    `kngjax.Ledger.reserve` and `kngjax.release` do; what depends on values is `kngjax.ReleaseFailed`.
    """
    side_doors.refuse()
    arithmetic.require_right()
    asked, refusal = Keeping() if keeping is None else keeping, None
    made = dict(asked.earlier)
    try:
        _release_missing(steps, frame, ledger, asked, made)
    except Exception as error:
        refusal = error.with_traceback(None)
    # Frames of a traceback hold their local variables.
    del frame
    if refusal is not None:
        raise refusal
    return [made[step.label] for step in steps]


def _release_missing(
    steps: Sequence[Step], frame: Any, ledger: kng.Ledger | None, keeping: Keeping, made: dict[str, kng.Release]
) -> None:
    num_records = 0
    for analysis in {id(step.analysis): step.analysis for step in steps}.values():
        table, refusal = run_telling_refusals(functools.partial(analysis.check, frame))
        if refusal is not None:
            raise refusal
        num_records = len(table)
    missing = [step for step in steps if step.label not in made]
    costs = [owed(step.certificate(num_records)) for step in missing]
    if ledger is not None:
        keeping.require(ledger, [cost for cost, _ in costs], proved=all(proved for _, proved in costs))
    looked_at, prepared = None, None
    # One bar at a time: over the releases, or of the draw where there is only one.
    over_releases = keeping.progress if len(missing) > 1 else False
    of_a_draw = False if len(missing) > 1 else keeping.progress
    with tqdm(missing, unit="release", disable=None if over_releases is None else not over_releases) as bar:
        for step, (cost, proved) in zip(bar, costs, strict=True):
            bar.set_description(step.label)
            analysis, mechanism = step.analysis, step.part.mechanism
            words = {"analysis": analysis.title, "formula": analysis.formula, "response": analysis.response.name}
            words |= {**keeping.about, "label": step.label, "mechanism": settings(mechanism)}
            debit = None if ledger is None else ledger.reserve(cost, words, proved=proved)
            if looked_at is not analysis:
                prepared, refusal = run_hiding_errors(functools.partial(analysis.records, frame))
                if refusal is not None:
                    raise refusal
                looked_at = analysis
            assert prepared is not None
            inputs = arguments(mechanism, *prepared)
            released = kng.release(mechanism, *inputs, sampler=analysis.sampler, ledger=debit, progress=of_a_draw)
            made[step.label] = released
            keeping.keep(made)
