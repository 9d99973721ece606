"""Releases an estimate with what its intervals rest on: with sums of its covariance, or from groups of records.

WithIntervals(mechanism, covariance)  ->  a plan with every setting  ->  releases  ->  intervals
"""

import abc
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly, inward
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.errors import UnfitType
from kngjax.core.randomness import secure_key
from kngjax.data.passes import Passes
from kngjax.data.records import Records
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.inference import groups_of_records as groups
from kngjax.inference.covariances import AbstractSums, IndependentErrors, PublicDesign, Sandwich
from kngjax.inference.gaussian_sums import split_budget
from kngjax.inference.groups_of_records import Groups, serves_groups
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.intervals_from_sums import interval_of_sums
from kngjax.inference.published import mechanism_of
from kngjax.inference.released_designs import ReleasedDesign
from kngjax.inference.score_laws import SCATTER, scatter_is_known
from kngjax.inference.score_moments import RecordCurvature, can_serve
from kngjax.inference.scores_alone import suited
from kngjax.inference.settings import Scenario
from kngjax.inference.widths import (
    best_number_of_groups,
    narrowest,
    require_near,
    require_straight,
    width_of_sums,
    widths_by_groups,
)
from kngjax.inference.without_intervals import OF_MATRICES, reason
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases import debits
from kngjax.releases.certificate import Certificate
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release, plan_for, plan_of_mechanism
from kngjax.releases.totals import composed

Combinations = Float[np.ndarray, "combinations dimension"] | None
Widths = Float[np.ndarray, " combinations"] | None
Found = Interval | NoInterval
_SUMS = {kind.__name__: kind for kind in (Sandwich, IndependentErrors, PublicDesign, ReleasedDesign)}
# The bandwidth over n^{-1/5} and the scale of responses (Koenker 2005, section 3.4, of normal ones at the median).
_BANDWIDTH = 2.1


class AbstractIntervalPlan(abc.ABC):
    """Holds every public setting of releases that give an estimate with intervals. `mechanism`: of the estimate."""

    mechanism: Any

    @abc.abstractmethod
    def resolve(self, facts: Schema) -> Plan:
        """Resolves the draws with their certificates, before a value is looked at."""

    @abc.abstractmethod
    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        """Computes what the releases of these certificates cost together, and whether that is proved."""

    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""

    @abc.abstractmethod
    def estimate(self, parts: Sequence[Release]) -> Float[np.ndarray, " dimension"]:
        """θ̃."""

    @abc.abstractmethod
    def interval(self, parts: Sequence[Release], level: float, combinations: Combinations = None) -> Found:
        """Makes intervals from these releases and public facts alone.

        **Arguments:** `combinations`: A, for Aθ; None for θ.
        """

    @abc.abstractmethod
    def width(self, setting: Scenario, num_records: int, combinations: Combinations = None) -> Widths:
        """Previews the widths of 95% intervals; infinite where none are expected, None where nobody knows.

        **Arguments:** all public. `setting`: what is assumed, of the plan's own mechanism at the whole ε.
        """

    @staticmethod
    def read(written: dict[str, Any], certificate: Certificate) -> "AbstractIntervalPlan":
        """The inverse of `settings`. **Arguments:** `certificate`: of the first release."""
        fields = dict(written)
        kind = fields.pop("type")
        if kind == "Groups":
            return GroupsPlan(mechanism_of(certificate.mechanism), fields["number"])
        mechanism = mechanism_of(certificate.mechanism)
        covariance = suited(_SUMS[kind](**fields["covariance"]), mechanism)
        budget = fields["mu" if covariance.is_gaussian else "epsilon"]
        return SumsPlan(mechanism, covariance, budget, fields["bandwidth"])


@dataclasses.dataclass(frozen=True)
class SumsPlan(AbstractIntervalPlan):
    """The estimate, and then sums over the records at it.

    **Arguments:** `mechanism`: of the estimate, at its own ε. `covariance`: which sums. `budget`: ε of the sums, of
    Gaussian ones μ. `bandwidth`: as of `RecordCurvature`. `num_records`: n, or a guess of it, or None.
    """

    mechanism: Any
    covariance: AbstractSums
    budget: float
    bandwidth: float | None
    num_records: int | None = None

    @property
    def dimension(self) -> int:
        """d."""
        return self.mechanism.dimension

    @property
    def curvature(self) -> RecordCurvature:
        """Returns how w and s² of one record are computed and bounded."""
        return RecordCurvature(self.mechanism.loss, self.mechanism.bounds, self.bandwidth)

    @property
    def summing(self) -> Any:
        """Returns the mechanism that releases the sums, which is the same whatever θ̃ is."""
        return self.covariance.mechanism(self.dimension, self.curvature, self.budget, self.mechanism.adjacency)

    def settings(self) -> dict[str, Any]:
        covariance = self.covariance.settings()
        kind = covariance.pop("type")
        budget = {"mu" if self.covariance.is_gaussian else "epsilon": self.budget}
        return {"type": kind, "covariance": covariance, "bandwidth": self.bandwidth, **budget}

    def resolve(self, facts: Schema) -> Plan:
        require_near(self.mechanism, self.num_records or facts.num_records)
        plans = plan_of_mechanism(self.mechanism, None, facts), plan_for(self.summing, facts.num_records)
        drawing = functools.partial(self._draw, plans)
        certificates = tuple(one for plan in plans for one in plan.certificates)
        return Plan(certificates, *self.owed(certificates), drawing, check=_require_two_passes)

    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        costs = [debits.owed(one) for one in certificates]
        return composed([cost for cost, _ in costs]), all(proved for _, proved in costs)

    def _draw(self, plans: tuple[Plan, Plan], records: tuple[Any, Any], progress: bool | None) -> list[Release]:
        [first] = plans[0].draw(records, progress)
        of_batch, X = functools.partial(self._columns, first.value), records[0]
        has_noise = self.mechanism.bounds.dither is not None
        columns = X.mapped(of_batch, has_noise=has_noise) if isinstance(X, Passes) else of_batch(records)[0]
        return [first, *plans[1].draw((columns, None), False)]

    def _columns(self, theta: np.ndarray, records: tuple[Any, Any]) -> tuple[np.ndarray, None]:
        rows = self.mechanism.intake.rows(*records, dither_key=secure_key(), may_be_empty=True)
        assert isinstance(rows, Records)
        return self.covariance.columns(rows, theta, self.curvature, self.mechanism.adjacency), None

    def noise(self, first: Release | None = None) -> Any:
        """Returns the law of the estimate's error. **Arguments:** `first`: its release, once there is one."""
        if first is not None:
            return self.mechanism.noise.at_release(first.value, first.published)
        return self.mechanism.noise.of_error(self.dimension, {})

    def estimate(self, parts: Sequence[Release]) -> Float[np.ndarray, " dimension"]:
        return parts[0].value

    def interval(self, parts: Sequence[Release], level: float, combinations: Combinations = None) -> Found:
        count = parts[0].certificate.num_records
        theta, sums = parts[0].value, parts[1].value
        covariance = self.covariance.given(self.mechanism, parts[0])
        given = self.mechanism, self.noise(parts[0]), self.summing, covariance, self.curvature
        return interval_of_sums(theta, sums, *given, count, level, combinations)

    def width(self, setting: Scenario, num_records: int, combinations: Combinations = None) -> Widths:
        if not self.covariance.is_previewed:
            return None
        return width_of_sums(self, setting.of_mechanism(self.mechanism), num_records, combinations)


@dataclasses.dataclass(frozen=True)
class GroupsPlan(AbstractIntervalPlan):
    """The estimate of each of some groups of the records, at the same ε. **Arguments:** `number`: of groups."""

    mechanism: Any
    number: int

    def settings(self) -> dict[str, Any]:
        return {"type": "Groups", "number": self.number}

    def resolve(self, facts: Schema) -> Plan:
        sizes = groups.sizes(facts.num_records or 0, self.number)
        # Groups of one size have one plan.
        known = {size: plan_for(self.mechanism, size) for size in dict.fromkeys(sizes)}
        plans = [known[size] for size in sizes]
        certificates = tuple(one for plan in plans for one in plan.certificates)
        drawing = functools.partial(self._draw, plans)
        return Plan(certificates, *self.owed(certificates), drawing, check=groups.require_divisible)

    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        return groups.owed_of_groups(certificates)

    def _draw(self, plans: Sequence[Plan], records: tuple[Any, Any], progress: bool | None) -> list[Release]:
        X, y = records
        if isinstance(X, Passes):
            X, y = groups.gathered_pair(X)
        parts = groups.split_records(X, y, self.number, self.mechanism.adjacency)
        return [one for plan, part in zip(plans, parts, strict=True) for one in plan.draw(part, progress)]

    def estimate(self, parts: Sequence[Release]) -> Float[np.ndarray, " dimension"]:
        return np.mean([part.value for part in parts], axis=0)

    def interval(self, parts: Sequence[Release], level: float, combinations: Combinations = None) -> Found:
        values = np.array([part.value for part in parts])
        return groups.interval_of_groups(values if combinations is None else values @ combinations.T, level)

    def width(self, setting: Scenario, num_records: int, combinations: Combinations = None) -> Widths:
        return widths_by_groups(setting, num_records, combinations).get(self.number)


def _require_two_passes(X: Any, y: Any) -> None:
    """Raises UnfitType for records that are gone once they were read."""
    if isinstance(X, Passes) and X.is_read_once:
        raise UnfitType("intervals read records twice, and this source can be read only once: write it to a file")


def public_bandwidth(scale: float, num_records: int) -> float:
    """h of the curvature of a quantile loss. **Arguments:** `scale`: how far responses scatter, a public guess."""
    return _BANDWIDTH * scale * num_records**-0.2


def interval_plan_of(
    mechanism: AbstractMechanism, covariance: Any, guess: int | None, num_records: int | None
) -> AbstractIntervalPlan:
    """Settles every setting of a plan by public facts alone.

    **Arguments:** `covariance`: None for the one whose previewed width is least. `guess`: of n. `num_records`: n, where
    it is public and known.

    Raises ValueError or TypeError for what is not served, and under add_remove for any n: covariances, numbers of
    groups, bandwidths and refusals follow from it, and would tell neighbours apart.
    """
    if num_records != mechanism.adjacency.public_count(num_records):
        raise ValueError(
            "under add_remove the number of records is private, and what is chosen by it tells it: give a public guess "
            "of it, WithIntervals(..., num_records=10_000)"
        )
    _require_served(mechanism)
    count = num_records if guess is None else guess
    if covariance is None:
        covariance = Sandwich()
        if count is not None and serves_groups(mechanism) and scatter_is_known(mechanism):
            covariance = narrowest(mechanism, _with_sums(mechanism, covariance, count), count)
    if isinstance(covariance, Groups):
        return GroupsPlan(mechanism, _number_of_groups(mechanism, covariance, count))
    if not isinstance(covariance, AbstractSums):
        raise TypeError(
            "covariance must be kngjax.Sandwich(...), Groups(...), IndependentErrors(...), PublicDesign(rows), "
            f"ReleasedDesign(release) or None, not {covariance!r}"
            f"{f': {OF_MATRICES}' if _are_numbers(covariance) else ''}"
        )
    return _with_sums(mechanism, covariance, count)


def _are_numbers(covariance: Any) -> bool:
    return isinstance(covariance, np.ndarray | list | tuple) or hasattr(covariance, "__array__")


def _require_served(mechanism: Any) -> None:
    name, loss, dimension = type(mechanism).__name__, mechanism.loss, mechanism.dimension
    if dimension is None and mechanism.has_regressors:
        raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
    is_mean = mechanism.noise.is_of_columns and not loss.has_response and loss.gradient_slope is not None
    is_regression = mechanism.has_regressors and can_serve(loss)
    if not (mechanism.noise.has_known_error and (is_mean or is_regression)):
        raise ValueError(reason(name, type(loss).__name__))
    if dimension is None:
        raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
    if is_mean and mechanism.adjacency is Adjacency.ADD_REMOVE:
        raise ValueError("under add_remove n is private, and intervals of a mean need it: adjacency='replace'")
    if mechanism.bounds.weight is not None:
        raise ValueError("records with weights have no intervals here: leave Bounds(..., weight=...) out")
    if getattr(mechanism, "pointwise_sensitivity", False):
        raise ValueError("with pointwise_sensitivity the law of the gradient is not known: leave it out")
    if mechanism.noise.publishes:
        # Known by what a release on a grid publishes; the number of records decides nothing of that.
        if proved_draw(mechanism, Schema(dimension, None)) is None:
            raise ValueError(
                f"{name} publishes what its intervals are made of where every rounding is in its proof, and with these "
                "bounds it is not: leave the hull out"
            )
        return
    # Says so where the law is not known.
    mechanism.noise.of_error(dimension, {})


def _number_of_groups(mechanism: Any, chosen: Groups, count: int | None) -> int:
    if not mechanism.loss.has_response:
        raise ValueError("a mean needs no groups: its noise is known, and kngjax.Sandwich releases variances")
    if mechanism.noise.has_ridge(mechanism.dimension):
        raise ValueError(
            f"the ridge of {type(mechanism).__name__} moves every group's estimate the same way, which their spread "
            "does not show: kngjax.Sandwich() knows it, in the place of groups"
        )
    if chosen.number is not None:
        groups.require_enough(mechanism, chosen.number, count)
        require_straight(mechanism, chosen.number, count)
        return chosen.number
    if count is None:
        return groups.FEWEST
    return best_number_of_groups(mechanism, count)


def _with_sums(mechanism: Any, covariance: AbstractSums, count: int | None) -> SumsPlan:
    covariance = suited(covariance, mechanism)
    covariance.check(mechanism)
    if covariance.is_gaussian:
        first, rest = split_budget(mechanism, covariance.share)
    else:
        whole = exactly(float(mechanism.epsilon))
        first = inward(whole * (1 - exactly(covariance.share)))
        rest = inward(whole - exactly(first))
    if first <= 0.0 or rest <= 0.0:
        raise ValueError(f"share = {covariance.share} leaves nothing of epsilon for one of the two releases")
    point = mechanism.noise.proved_at(first)
    bandwidth = covariance.bandwidth
    if not (mechanism.loss.has_response and mechanism.loss.score_is_piecewise_constant):
        if bandwidth is not None:
            raise ValueError(f"{type(mechanism.loss).__name__} has a curvature of its own: leave bandwidth out")
        return SumsPlan(point, covariance, rest, None, count)
    bounds = mechanism.bounds
    if bandwidth is None and bounds.y_lower is None:
        raise ValueError(
            "without bounds of y nothing says how near responses count for the curvature of the quantile loss: give a "
            "covariance with a bandwidth, in units of y, like kngjax.Sandwich(bandwidth=0.5), or public bounds of the "
            "responses"
        )
    if bandwidth is None and count is not None:
        width = float(bounds.y_upper) - float(bounds.y_lower)
        bandwidth = public_bandwidth(SCATTER * width, count)
    if bandwidth is None and mechanism.adjacency is Adjacency.ADD_REMOVE:
        raise ValueError(
            "the curvature of the quantile loss needs a bandwidth, in units of y, kngjax.Sandwich(bandwidth=0.5), or a "
            "public guess of n to make one of, WithIntervals(..., num_records=10_000)"
        )
    # Under replace n is known when records are, and before any will do.
    return SumsPlan(point, covariance, rest, 1.0 if bandwidth is None else float(bandwidth), count)
