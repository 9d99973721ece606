"""Steps of analyses: what one debit pays for, with the plan that public facts resolve it to."""

import abc
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.accounting.wording import amounts
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.releases.certificate import Certificate
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release
from kngjax.study.carrying_out import Released, SharedRecords, carry_out


class AbstractAnalysis(abc.ABC):
    """States in full what is released of a table, before it is looked at. Public.

    `title`: what it is, in words. `adjacency`: of the table. `sampler`: what is asked for of each release, or None.
    """

    title: str
    adjacency: Adjacency
    sampler: Any = None

    # What a plan says of the analysis below its table.
    notes: Sequence[str] = ()

    @property
    @abc.abstractmethod
    def what(self) -> str:
        """Returns the title of the analysis with the formula, if there is one."""

    @abc.abstractmethod
    def check(self, frame: Any) -> Any:
        """Returns the table of a frame, if its columns and types serve; looks at no value."""

    @abc.abstractmethod
    def records(self, frame: Any) -> Any:
        """Reads what plans take of a frame, each record by itself; `Passes` of it for a table on an engine. Private."""

    @abc.abstractmethod
    def steps(self, number: int | None = None) -> list["Step"]:
        """Lists the steps, each with its debit. **Arguments:** `number`: of the analysis, where there are several."""

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

    @property
    def sampler(self) -> Any:
        """Returns the sampler that was asked for, or None."""
        return self.analysis.sampler

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
