"""An estimate and what its intervals are made of, released together by one debit."""

import dataclasses
import functools
import json
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.accounting.wording import figures
from kngjax.core.errors import holding_no_records
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.summary_table import AbstractSummarised, SummaryTable, names_of
from kngjax.data.persons import with_persons
from kngjax.data.schema import Schema
from kngjax.inference.interval_choices import interval_plan_of, plan_as_kept
from kngjax.inference.interval_plans import AbstractIntervalPlan
from kngjax.inference.interval_previews import require_offer, why_not_foreseen
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.intervals_from_sums import ErrorDraws, interval_of
from kngjax.inference.wald_tests import WaldTest
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.parameters import check_count
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import settings
from kngjax.releases.plan import AbstractReleasePlan, Plan
from kngjax.releases.release import Release


@dataclasses.dataclass(frozen=True, eq=False)
class WithIntervals(AbstractReleasePlan):
    """Plans a release of an M-estimate with confidence intervals, together for the ε and δ of its mechanism.

    θ̃ is released for a part of ε. Its error H^{-1}(z - S) is then known except for H and the variance of S, which
    depend on the records (`kngjax.inference.intervals_from_sums`). A sampling variance of each number is released for
    .05 of ε. The `covariance` decides how H becomes known: `kngjax.Sandwich(share)`, the default, releases H at θ̃ for
    that share of ε, and assumes nothing of the errors unless coefficients are summed. For `AdaSSP`, which publishes
    X'X, nothing more is released; for a mean the variance of each column is, for .15 of ε.

    If the mechanism has Gaussian noise, as `AdaSSP` does, its ρ is not that of everything together: sums with pure
    noise at ε_2 cost ε_2²/2 besides. `guarantee` states the total.

    **Arguments:** all public.

    - `mechanism`: KNG, `ObjectivePerturbation`, `OutputPerturbation`, `ExponentialMechanism`, `PosteriorSample`,
        `AdaOPS` or `AdaSSP` of a regression with a loss of x'θ, or `KNormMechanism` of a mean; records with weights
        need a smooth loss. Its ε and δ are those of everything together.
    - `covariance`: as above.
    - `num_records`: a guess of n under add_remove; a wrong one costs accuracy, not privacy. Under replace n, or None.
    - `force`: releases also intervals that public facts foresee to be very wide, and that are otherwise refused before
        the debit (`kngjax.inference.offers`). Without a guess of n under add_remove, or without bounds of y, nothing
        is foreseen, and certificates say so.
    - `setting`: the assumptions about records that this rule uses; None for the usual ones.
    - `combinations`: A, shape (d, d), if Aθ is printed in place of θ: the released variances are those of Aθ.

    Raises ValueError for mechanisms and losses whose error is not known here.
    """

    mechanism: AbstractMechanism
    covariance: Any = None
    num_records: int | None = None
    force: bool = False
    setting: Any = dataclasses.field(default=None, repr=False)
    combinations: Any = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        if not isinstance(self.mechanism, AbstractMechanism):
            raise TypeError(f"mechanism must be an object like kngjax.KNG(...), not {self.mechanism!r}")
        if not isinstance(self.force, bool):
            raise TypeError(f"force must be True or False, not {self.force!r}")
        if self.num_records is not None:
            _ = check_count("num_records", self.num_records, "a public guess of n, like 10_000, or under replace n")
        self.making()

    @property
    def adjacency(self) -> Adjacency:
        """Returns the adjacency of the mechanism."""
        return self.mechanism.adjacency

    @property
    def dimension(self) -> int | None:
        """Returns d, the number of coefficients."""
        return self.mechanism.dimension

    def making(self, num_records: int | None = None) -> AbstractIntervalPlan:
        """Makes what is released of records, with every setting.

        **Arguments:** `num_records`: n, where it is public. Raises ValueError for one under add_remove.
        """
        given = self.mechanism, self.covariance, self.num_records, num_records
        return interval_plan_of(*given, self.setting, self.combinations)

    @property
    def told(self) -> tuple[str, ...]:
        """Says why nobody knows beforehand how wide the intervals will be; empty where public facts tell."""
        knows_count = self.adjacency is Adjacency.REPLACE or self.num_records is not None
        why = why_not_foreseen(self.making(), knows_count)
        return () if why is None else (why,)

    def admit(self, X: Any, y: Any) -> Schema:
        return self.mechanism.intake.check_schema(X, y)

    def resolve(self, facts: Schema) -> Plan:
        making = self.making(facts.num_records)
        count = self.num_records if facts.num_records is None else facts.num_records
        if not self.force and count is not None:
            require_offer(making, self.mechanism, count, self.setting)
        plan = making.resolve(facts)

        def joined(releases: Any) -> list[ReleaseWithIntervals]:
            # Of their own certificates: a ledger may have kept releases that another version made at another price.
            cost, _ = making.owed([one.certificate for one in releases])
            return [ReleaseWithIntervals(tuple(releases), making.settings(releases), cost)]

        return dataclasses.replace(plan, joined=joined)

    @holding_no_records
    def certify(self, X: Any = None, y: Any = None, *, person: Any = None) -> list[Certificate]:
        """Returns the certificates of what is released, before a value is looked at.

        Arguments as of `kngjax.release`.
        """
        return list(self.planned(with_persons(X, person), y).certificates)

    def settings(self) -> dict[str, Any]:
        covariance = None if self.covariance is None else self.covariance.settings()
        return {"type": "WithIntervals", "mechanism": settings(self.mechanism), "covariance": covariance}


@dataclasses.dataclass(frozen=True, eq=False)
class ReleaseWithIntervals(AbstractKeptAsJson, AbstractSummarised):
    """Holds an estimate, the numbers that its intervals rest on, and what is proved of both. All may be published.

    **Arguments:** `parts`: the releases: of the estimate, of H, and of the variances. `making`: how intervals are made
    of them, JSON-ready. `guarantee`: of all parts together.
    """

    parts: tuple[Release, ...]
    making: dict[str, Any]
    guarantee: Guarantee

    @property
    def value(self) -> Float[np.ndarray, " dimension"]:
        """Returns θ̃, shape (d,), intercept first."""
        return self.parts[0].value

    @property
    def names(self) -> tuple[str, ...] | None:
        """Returns the names that the bounds declare, where they do: a frame's own are not published."""
        return self.parts[0].certificate.names

    @property
    def certificate(self) -> Certificate:
        """Returns the certificate of the estimate; `explain` says what all parts cost."""
        return self.parts[0].certificate

    @property
    def cost(self) -> Guarantee | None:
        """Returns the guarantee of all parts together, or None where nothing is proved of one of them."""
        return None if any(part.certificate.cost is None for part in self.parts) else self.guarantee

    @functools.cached_property
    def _making(self) -> AbstractIntervalPlan | None:
        return plan_as_kept(self.making, self.parts[0].certificate)

    @property
    def has_deviations(self) -> bool:
        """Tells whether an interval's width gives the error of its middle; it does not where H is nearly too noisy."""
        return self._making is not None and self._making.has_deviations

    @property
    def errors(self) -> Float[np.ndarray, "draws dimension"] | NoInterval:
        """Draws θ̃ - θ0 for all coefficients together, the law whose quantiles make the intervals; or says why not.

        The draws depend on released numbers and public facts alone, and are the same each time.
        """
        return self._drawn if isinstance(self._drawn, NoInterval) else self._drawn.draws

    @functools.cached_property
    def middle(self) -> Float[np.ndarray, " dimension"]:
        """Returns the middle of the 95% interval of each coefficient, with the pull of a ridge taken off.

        Where there is no interval it is θ̃.
        """
        found = self.intervals()
        middle = (found.lower + found.upper) / 2.0 if isinstance(found, Interval) else self.value.copy()
        middle.setflags(write=False)
        return middle

    def wald_test(self, combinations: Any) -> WaldTest | NoInterval:
        """Tests that Aθ0 = 0 by the joint law of the errors; or says why that is not known. Free.

        **Arguments:** `combinations`: the public matrix A, as of `intervals`. Raises ValueError for rows that are sums
        of one another.
        """
        matrix = self._checked(combinations)
        return self.errors if isinstance(self.errors, NoInterval) else WaldTest.of(matrix, self.value, self.errors)

    def intervals(self, level: float = 0.95, combinations: Any = None) -> Interval | NoInterval:
        """Makes confidence intervals of the coefficients from released numbers and public facts: they cost nothing.

        Each interval holds by itself; several at once hold less often.

        **Arguments:** `level`: between 0 and 1; the coverage for many records. `combinations`: the public matrix A,
        shape (k, d), for intervals of Aθ in place of θ, such as the rows (1, x) of predictions. The errors of
        coefficients are correlated, so the ends of intervals of θ do not give those of Aθ.
        """
        if not (isinstance(level, int | float) and 0.0 < level < 1.0):
            raise ValueError(f"level must lie between 0 and 1, like 0.95, got {level!r}")
        matrix = None if combinations is None else self._checked(combinations)
        if isinstance(self._drawn, NoInterval):
            return self._drawn
        found = interval_of(self.value, self._drawn, float(level), matrix)
        return dataclasses.replace(found, names=self.names) if matrix is None else found

    def _checked(self, combinations: Any) -> Float[np.ndarray, "combinations dimension"]:
        matrix, dimension = np.asarray(combinations, np.float64), len(self.value)
        if matrix.ndim != 2 or matrix.shape[1] != dimension or not np.all(np.isfinite(matrix)):
            raise ValueError(f"combinations must be finite rows of {dimension} numbers each, not {matrix.shape}")
        return matrix

    @functools.cached_property
    def _drawn(self) -> ErrorDraws | NoInterval:
        if self._making is None:
            return NoInterval("another version of kngjax released it, which alone knows how its intervals are made")
        return self._making.errors(self.parts)

    def explain(self) -> str:
        """Says what all parts cost together, with the intervals and the certificate of the estimate."""
        return "\n".join([self.cost_in_words, repr(self.intervals()), self.certificate.explain()])

    @property
    def cost_in_words(self) -> str:
        """Says what all parts cost together: the certificate of the estimate says it of that part alone."""
        return (
            f"An estimate with what its intervals are made of, {len(self.parts)} releases; together they are "
            f"{'NOT PROVED to be ' * (self.cost is None)}{self.guarantee.explain()}."
        )

    def __repr__(self) -> str:
        value = ", ".join(f"{number:.6g}" for number in self.value)
        return f"<ReleaseWithIntervals {value}; {self.guarantee.explain()}; intervals() and explain() say more>"

    def summary(self, level: float = 0.95) -> SummaryTable:
        """Lays out each coefficient with its interval, and what all parts cost. **Arguments:** as of `intervals`."""
        found, columns = self.intervals(level), [names_of(self.names, len(self.value)), self.value.tolist()]
        heads, how = ("coefficient", "estimate", "lower", "upper"), f"none, {getattr(found, 'reason', '')}"
        if isinstance(found, Interval):
            columns, how = [*columns, found.lower.tolist(), found.upper.tolist()], f"by {found.method}"
        facts = [("mechanism", self.certificate.mechanism["type"]), ("level", f"{level:g}"), *figures(self.cost)]
        rows = [*zip(*columns, strict=True)]
        notes = [f"intervals: {how}", self.cost_in_words]
        return SummaryTable("Release with intervals", facts, heads[: len(columns)], rows, notes=notes)

    def to_json(self) -> str:
        """Writes canonical JSON of all parts, from which `from_json` makes the release and its intervals again."""
        parts = [json.loads(part.to_json()) for part in self.parts]
        fields = {"parts": parts, "making": self.making, "guarantee": self.guarantee.to_dict()}
        return json.dumps(fields, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "ReleaseWithIntervals":
        """Reads what `to_json` wrote."""
        fields = json.loads(text)
        parts = tuple(Release.from_json(json.dumps(part)) for part in fields["parts"])
        return cls(parts, fields["making"], Guarantee.from_dict(fields["guarantee"]))
