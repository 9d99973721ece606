"""Releases of analyses, step by step: the path that a study, a plan and a job in a file share.

    columns and types -> what each step costs -> all that is missing allowed by the ledger
        -> of each: debited -> the records made once an analysis -> drawn -> kept

Whatever ends this path early costs one debit at most beside the releases that were made, which the ledger holds.
"""

import abc
import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tqdm import tqdm

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.accounting.wording import amounts
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import FAILED_OF_FRAME, bare, holding_no_records, run_telling_refusals
from kngjax.core.representation import describe
from kngjax.data.tables import is_elsewhere
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.releases import totals
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import require_cover
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release
from kngjax.releases.told import said

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

    **Arguments:** `steps`: as `kngjax.study.carrying_out.Step`, no two of one label. `frame`: private, or
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


def resolved_once(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method that resolves draws: one for the same arguments, and for what certificates are told to say."""

    @functools.wraps(resolve)
    def resolved(self: Any, *given: Any, **named: Any) -> Any:
        asked = json.dumps(describe((given, tuple(named.items()))))
        known, key = vars(self).setdefault(f"_{resolve.__name__}", {}), (asked, said())
        if key not in known:
            known[key] = resolve(self, *given, **named)
        return known[key]

    return resolved


class AbstractAnalysis(abc.ABC):
    """States in full what is released of a table, before it is looked at. Public.

    `title`: what it is, in words. `adjacency`: of the table. `formula`: as it was written, or None. `sampler`: what is
    asked for of each release, or None.
    """

    title: str
    adjacency: Adjacency
    formula: str | None = None
    sampler: Any = None

    # What a plan says of the analysis below its table.
    notes: Sequence[str] = ()

    @property
    def what(self) -> str:
        """Returns the title of the analysis with the formula, if there is one."""
        return self.title if self.formula is None else f"{self.title} {self.formula}"

    def label(self, number: int | None, part: str = "") -> str:
        """Names one of the steps. **Arguments:** `number`: of the analysis, where there are several."""
        return f"{'' if number is None else f'{number}. '}{self.what}{part and f', {part}'}"

    @abc.abstractmethod
    def check(self, frame: Any) -> Any:
        """Returns the table of a frame, if its columns and types serve; looks at no value."""

    @abc.abstractmethod
    def records(self, frame: Any) -> Any:
        """Reads what plans take of a frame, each record by itself; `Passes` of it for a table on an engine. Private."""

    def steps(self, number: int | None = None) -> list["Step"]:
        """Lists the steps, each with its debit: one, unless told. **Arguments:** as of `label`."""
        return [Step(self.label(number), self)]

    @abc.abstractmethod
    def words_of(self, part: Any) -> dict[str, Any]:
        """Describes the debit of a part for the ledger."""

    @abc.abstractmethod
    def plan_of(self, part: Any, num_records: int | None) -> Plan:
        """Resolves a part: what its debit pays for. **Arguments:** `num_records`: used where it is public."""

    def certificates_of(self, part: Any, num_records: int | None) -> list[Certificate]:
        """Lists the certificates that are shown of a part."""
        return list(self.plan_of(part, num_records).certificates)

    @abc.abstractmethod
    def prepare(self, part: Any, records: Any) -> None:
        """Raises what the mechanisms of a part say of these records. Private: for the owner alone."""

    def count_of(self, table: Any) -> int:
        """Tells how many records a table has that `check` returned, or persons; public under replace alone."""
        return len(table)

    def part_after(self, part: Any, made: Mapping[str, list[Any]]) -> Any:
        """Returns the part as it is once others are released. **Arguments:** `made`: the releases by label."""
        return part

    def is_in(self, part: Any, results: Any) -> bool:
        """Tells whether the release of a part is among these results of the analysis."""
        return part is None or part.label in results.labels

    def made_by(self, steps: Sequence[Any]) -> Any:
        """Restricts the analysis to the parts that these steps release; one that is released as a whole is kept."""
        return self

    def release(self, frame: Any, ledger: Ledger | Sequence[Reservation] | None) -> list[Any]:
        """Makes all releases, in order, as `kngjax.study.carrying_out.carry_out`."""
        try:
            made = carry_out(self.steps(), frame, ledger)
        finally:
            # Frames of a traceback hold their local variables.
            del frame
        return [one for releases in made.values() for one in releases]


@dataclass(frozen=True)
class Step:
    """Releases a part of an analysis by one debit. Public.

    **Arguments:** `label`: its name among all steps. `part`: None where one debit pays for the whole analysis.
    """

    label: str
    analysis: Any
    part: Any = None

    @property
    def words(self) -> dict[str, Any]:
        """Describes the debit for the ledger."""
        return self.analysis.words_of(self.part)

    def plan(self, num_records: int | None) -> Plan:
        """Resolves all that the debit pays for. **Arguments:** `num_records`: used where it is public."""
        return self.analysis.plan_of(self.part, num_records)

    def certificates(self, num_records: int | None) -> list[Certificate]:
        """Lists the certificates of the releases, of groups those of the first one."""
        return self.analysis.certificates_of(self.part, num_records)

    def row(self, num_records: int | None) -> tuple[str, ...]:
        """Describes the step for a plan: what is released, how, and at which price."""
        certificates, (cost, proved) = self.certificates(num_records), self.owed(num_records)
        kinds = Counter(f"{one.mechanism['type']} by {one.sampler['type']}" for one in certificates)
        made = ", ".join(kind if number == 1 else f"{number} {kind}" for kind, number in kinds.items())
        assurances = ", ".join(dict.fromkeys(one.assurance for one in certificates))
        return self.label, made, assurances, *amounts(cost if proved else None)

    def is_in(self, results: Any) -> bool:
        """Tells whether its release is among these results of its analysis."""
        return self.analysis.is_in(self.part, results)

    def after(self, made: Mapping[str, list[Any]]) -> "Step":
        """Copies the step with what it takes of earlier releases, public as they are. **Arguments:** by label."""
        return replace(self, part=self.analysis.part_after(self.part, made))

    def owed(self, num_records: int | None) -> tuple[Guarantee, bool]:
        """Computes what a ledger debits for the release, and whether it provably costs no more."""
        return self.plan(num_records).owed

    def prepare(self, records: Any) -> None:
        """Raises what its mechanisms say of these records of its analysis. Private: for the owner alone."""
        self.analysis.prepare(self.part, records)

    def release(
        self, records: SharedRecords, ledger: Ledger | Reservation | None, words: Any, progress: bool | None = None
    ) -> list[Any]:
        """Makes the releases, after their debit; without any, there is none.

        **Arguments:** `words`: for the ledger. Raises as `kngjax.release`.
        """
        plan = self.plan(records.num_records)
        if not plan.certificates:
            return []
        read = functools.partial(records.of, self.analysis)
        return plan.joined(plan.release(read, ledger, words, progress))

    def kept(self, releases: Sequence[Released]) -> list[Any]:
        """Puts releases together from what a ledger keeps: an estimate with intervals has several parts there."""
        parts = [one for one in releases if isinstance(one, Release)]
        if not parts or len(parts) < len(releases):
            return list(releases)
        return self.plan(parts[0].certificate.num_records).joined(parts)
