"""Releases of analyses, step by step: the path that a study, a plan and a job in a file share.

    columns and types -> what each step costs -> all that is missing allowed by the ledger
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
from kngjax.core.errors import FAILED_OF_FRAME, bare, holding_no_records, run_telling_refusals
from kngjax.data.tables import is_elsewhere
from kngjax.releases import totals
from kngjax.releases.debits import require_cover

Released = kng.Release | kng.inference.ReleaseWithIntervals | kng.releases.QuantileCurves
# The releases by the labels of their steps: each step may make several by one debit.
Made = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Keeping:
    """Holds what a job in a file adds to the releases of an analysis. All of it is public.

    **Arguments:** `earlier`: the releases that are there already and not made again. `about`: what a ledger is told of
    each debit besides. `require`: refuses what the ledger does not allow, as `Ledger.require`. `keep`: called with all
    releases so far after each step. `progress`: whether bars are shown; None shows a bar over steps, on a terminal.
    `failed`: the text of a release that fails.
    """

    earlier: Made = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    require: Callable[..., None] = kng.Ledger.require
    keep: Callable[[Made], None] = lambda _: None
    progress: bool | None = None
    failed: str = FAILED_OF_FRAME


class SharedRecords:
    """Holds the records of the analysis that was asked for last, which its steps share. Private, and gone with them.

    **Arguments:** `num_records`: n, which plans use where it is public.
    """

    def __init__(self, frame: Any, num_records: int):
        self.frame, self.num_records = frame, num_records
        self._of, self._made = None, None

    def of(self, analysis: Any) -> Any:
        """Reads the records of an analysis, or finds those that were asked for last. Private."""
        if self._of is not analysis:
            self._made = analysis.records(self.frame)
            self._of = analysis
        return self._made


def together(steps: Sequence[Any], num_records: int) -> kng.Guarantee | None:
    """Composes what is proved of all steps; None without a step, and where nothing is proved of one of them."""
    return totals.total(cost if proved else None for cost, proved in (step.owed(num_records) for step in steps))


def in_words(total: kng.Guarantee | None) -> str:
    """Says in words what is proved of releases together."""
    return "nothing is proved" if total is None else total.explain()


@holding_no_records
def carry_out(
    steps: Sequence[Any],
    frame: Any,
    ledger: kng.Ledger | Sequence[kng.ledger.Reservation] | None,
    keeping: Keeping | None = None,
) -> Made:
    """Makes all releases, if the ledger allows all; each is debited right before it is drawn, and kept right after.

    **Arguments:** `steps`: as `kngjax.study.steps.Step`, no two of one label. `frame`: private, or
    `kngjax.data.named_columns.Columns`. `ledger`: or a reservation for each step, made beforehand. All but the frame
    are public. Raises as the `check` of their analyses, `kngjax.certify`, `kngjax.Ledger.reserve` and `kngjax.release`
    do; what depends on values is `kngjax.ReleaseFailed`.
    """
    side_doors.refuse()
    arithmetic.require_right()
    asked, refusal = Keeping() if keeping is None else keeping, None
    made = dict(asked.earlier)
    try:
        _release_missing(steps, frame, ledger, asked, made)
    except Exception as error:
        refusal = bare(error, asked.failed)
    if refusal is not None:
        raise refusal
    return {step.label: made[step.label] for step in steps}


def _release_missing(
    steps: Sequence[Any],
    frame: Any,
    ledger: kng.Ledger | Sequence[kng.ledger.Reservation] | None,
    keeping: Keeping,
    made: dict[str, list[Any]],
) -> None:
    num_records = 0
    for analysis in {id(step.analysis): step.analysis for step in steps}.values():
        table, refusal = run_telling_refusals(functools.partial(analysis.check, frame))
        if refusal is not None:
            raise refusal
        num_records = analysis.count_of(table) if analysis.adjacency is kng.Adjacency.REPLACE else 0
    missing = [step for step in steps if step.label not in made]
    costs = [step.owed(num_records) for step in missing]
    if isinstance(ledger, kng.Ledger):
        keeping.require(ledger, [cost for cost, _ in costs], proved=all(proved for _, proved in costs))
    if ledger is not None and not isinstance(ledger, kng.Ledger):
        if len(ledger) != len(steps):
            raise ValueError(f"{len(ledger)} reservations were given for {len(steps)} releases")
        for reservation, (cost, proved) in zip(ledger, costs, strict=True):
            require_cover(reservation, cost, proved)
    records = SharedRecords(frame, num_records)
    # One bar at a time: over the steps, or, if asked for, of the draw where there is only one; and of passes.
    over_steps, of_a_draw = (False, bool(keeping.progress)) if len(missing) < 2 else (keeping.progress, False)
    of_a_draw = keeping.progress if is_elsewhere(frame) else of_a_draw
    with tqdm(missing, unit="release", disable=None if over_steps is None else not over_steps) as bar:
        for number, step in enumerate(bar):
            step = step.after(made)
            bar.set_description(step.label)
            debit = ledger if isinstance(ledger, kng.Ledger | None) else ledger[number]
            words = step.words | {**keeping.about, "label": step.label}
            made[step.label] = step.release(records, debit, words, of_a_draw)
            keeping.keep(made)
