"""Releases an estimate, then H at it, then a sampling variance of each number: what intervals rest on.

WithIntervals(mechanism, covariance)  ->  a plan with every setting  ->  releases  ->  intervals

Each release is private given those before, whose values may be looked at: the budgets add up, as
docs/proofs/intervals-of-regressions.md proves.
"""

import abc
import dataclasses
import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.errors import UnfitType
from kngjax.core.randomness import secure_key
from kngjax.data.number_columns import MadeColumns
from kngjax.data.passes import Passes
from kngjax.data.persons import Shares
from kngjax.data.records import Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.data.streams import stream
from kngjax.data.weights import WeightedTable
from kngjax.inference import score_variances
from kngjax.inference.covariances import BY_PERSON, NOTHING_ASSUMED, Matrices, PublishedMoments, Sandwich
from kngjax.inference.intervals_from_sums import ErrorDraws
from kngjax.inference.offers import TELLING
from kngjax.inference.score_moments import RecordCurvature
from kngjax.inference.score_variances import Directions, UsualScores
from kngjax.releases import debits
from kngjax.releases.certificate import Certificate
from kngjax.releases.plan import Plan
from kngjax.releases.release import OneRelease, Release, plan_for
from kngjax.releases.totals import composed

Combinations = Float[np.ndarray, "combinations dimension"] | None

# Of so many records all columns have room in a processor's memory.
_ROWS = 2**14


class AbstractIntervalPlan(abc.ABC):
    """Holds every public setting of releases that give an estimate with intervals. `mechanism`: of the estimate."""

    mechanism: Any

    @property
    @abc.abstractmethod
    def later(self) -> Sequence[Any]:
        """Lists the mechanisms that release sums after the estimate, in order."""

    @abc.abstractmethod
    def columns(self, parts: Sequence[Release]) -> "AbstractColumns":
        """Settles what of each record the next release sums, given those before."""

    def resolve(self, facts: Schema) -> Plan:
        """Resolves the draws with their certificates, before a value is looked at."""
        plans = OneRelease(self.mechanism).resolve(facts), *(plan_for(one, facts.num_records) for one in self.later)
        certificates = tuple(one for plan in plans for one in plan.certificates)
        return Plan(certificates, *self.owed(certificates), functools.partial(self._draw, plans), check=require_passes)

    def _draw(self, plans: Sequence[Plan], records: tuple[Any, Any], progress: bool | None) -> list[Release]:
        parts, has_noise = plans[0].draw(records, progress), self.mechanism.bounds.dither is not None
        for plan in plans[1:]:
            columns = self.columns(parts)
            made = in_parts(columns, records)
            # Without noise they are validated once, and equal records have equal columns.
            records = records if has_noise else (made, None)
            summed = made.mapped(columns, has_noise=has_noise) if isinstance(made, Passes) else columns((made, None))[0]
            parts += plan.draw((summed, None), False)
        return parts

    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        """Computes what the releases of these certificates cost together, and whether that is proved."""
        costs = [debits.owed(one) for one in certificates]
        return composed([cost for cost, _ in costs]), all(proved for _, proved in costs)

    @abc.abstractmethod
    def settings(self, parts: Sequence[Release] = ()) -> dict[str, Any]:
        """Returns the settings, JSON-ready; of releases with what was settled between them."""

    @abc.abstractmethod
    def errors(self, parts: Sequence[Release]) -> ErrorDraws:
        """Draws the error of the estimate, given these releases and public facts alone."""

    @property
    def has_deviations(self) -> bool:
        """Tells whether the width of an interval gives the error of its middle within a factor of 1.3."""
        return True


@dataclasses.dataclass(frozen=True, eq=False)
class RegressionPlan(AbstractIntervalPlan):
    """Releases the estimate θ̃, H at θ̃, and the sampling variances of some combinations of coefficients.

    **Arguments:** `mechanism`: of the estimate, at its own ε. `covariance`: how H is known. `epsilons`: of H, 0 where
    nothing is released for it, and of the variances. `bandwidth`: as of `RecordCurvature`. `usual`: public guesses.
    `combinations`: A, shape (d, d); None for the coefficients themselves. `noise_of_hessian`: κ of
    `kngjax.inference.offers`, None where nobody knows. `cuts`: of `Directions`, once there is H.
    """

    mechanism: Any
    covariance: Sandwich | PublishedMoments
    epsilons: tuple[float, float]
    bandwidth: float | None
    usual: UsualScores
    combinations: Combinations = None
    noise_of_hessian: float | None = None
    cuts: Sequence[float] | None = None

    @property
    def dimension(self) -> int:
        """Returns d, the number of coefficients."""
        return self.mechanism.dimension

    @property
    def has_deviations(self) -> bool:
        return self.noise_of_hessian is None or self.noise_of_hessian <= TELLING

    @property
    def curvature(self) -> RecordCurvature:
        """Returns how w and s² of one record are computed and bounded."""
        return RecordCurvature(self.mechanism.loss, self.mechanism.bounds, self.bandwidth)

    @functools.cached_property
    def summing(self) -> Any:
        """Returns the mechanism that releases the sums for H, which is the same whatever θ̃ is; None for none."""
        way = self.covariance
        return way.summing(self.mechanism, self.epsilons[0]) if isinstance(way, Sandwich) else None

    @functools.cached_property
    def of_variances(self) -> Any:
        """Returns the mechanism that releases the sampling variances."""
        bounds, adjacency = self.mechanism.bounds, self.mechanism.adjacency
        return score_variances.summing_of(self.dimension, self.epsilons[1], adjacency, bounds.unit_alone)

    def settings(self, parts: Sequence[Release] = ()) -> dict[str, Any]:
        cuts = self.cuts if not parts else self._directions(parts).cuts.tolist()
        return {
            "type": type(self).__name__,
            "covariance": self.covariance.settings(),
            "epsilons": list(self.epsilons),
            "bandwidth": self.bandwidth,
            "usual": self.usual.ratio,
            "num_records": self.usual.num_records,
            "combinations": None if self.combinations is None else self.combinations.tolist(),
            "noise_of_hessian": self.noise_of_hessian,
            "cuts": cuts,
        }

    @property
    def later(self) -> Sequence[Any]:
        return [one for one in (self.summing, self.of_variances) if one is not None]

    def columns(self, parts: Sequence[Release]) -> "RecordColumns":
        theta, curvature = parts[0].value, self.curvature
        if len(parts) < len(self.later):
            of: Any = functools.partial(_of_hessian, self.covariance, self.mechanism)
        else:
            of = functools.partial(_of_variances, self._directions(parts), curvature.units(theta)[1])
        return RecordColumns(self.mechanism, theta, curvature, curvature.units(theta), of)

    def hessians(self, parts: Sequence[Release]) -> Matrices:
        """Draws H as it may be, given its release at the released θ̃."""
        released = None if self.summing is None else parts[1]
        return _hessians(_Given(parts[0].to_json(), released and released.to_json(), self, parts))

    def _directions(self, parts: Sequence[Release]) -> Directions:
        inverse = np.linalg.inv(self.hessians(parts).mean(axis=0))
        combinations = np.eye(self.dimension) if self.combinations is None else self.combinations
        square_unit = self.curvature.units(parts[0].value)[1]
        return Directions.of(inverse, combinations, self.mechanism.bounds, square_unit, self.usual)

    def noise(self, first: Release | None = None) -> Any:
        """Returns the law of the estimate's error. **Arguments:** `first`: its release, once there is one."""
        if first is not None:
            return self.mechanism.noise.at_release(first.value, first.published)
        return self.mechanism.noise.of_error(self.dimension, {})

    def errors(self, parts: Sequence[Release]) -> ErrorDraws:
        hessians, noise, last = self.hessians(parts), self.noise(parts[0]), parts[-1]
        cuts = self._directions(parts).cuts if self.cuts is None else np.array(self.cuts)
        given = functools.partial(score_variances.variances_given, last.value, self.of_variances, cuts, self.usual)
        assumptions = (BY_PERSON if self.mechanism.bounds.of_persons else NOTHING_ASSUMED, *noise.assumptions)
        return ErrorDraws.of(
            hessians, noise, parts[0].value, given, self.combinations, self.covariance.method, assumptions
        )


class AbstractColumns(abc.ABC):
    """Maps records, each by itself, to bounded columns to sum. It can be pickled, and holds nothing private.

    `mechanism`: of the estimate, which says how records are validated.
    """

    mechanism: Any

    @abc.abstractmethod
    def rows(self, X: Any, y: Any) -> Any:
        """Validates and clips records. Private."""

    @abc.abstractmethod
    def made(self, rows: Any) -> Any:
        """Makes the columns of validated records, each in one piece, or with shares where these count. Private.

        Shape (records, columns), or a row a person.
        """

    def __call__(self, records: tuple[Any, Any]) -> tuple[Any, None]:
        is_validated = isinstance(records[0], Records | WeightedRecords)
        rows = records[0] if is_validated else self.rows(*records)
        if self.mechanism.bounds.of_persons and getattr(rows, "codes", None) is None:
            raise UnfitType("rows of persons came without saying whose they are: each would count by itself")
        # Each column of records in one piece too.
        made = self.made(jax.tree.map(np.asfortranarray, rows))
        return (made if isinstance(made, WeightedTable) else MadeColumns(np.ascontiguousarray(made.T))), None


@dataclasses.dataclass(frozen=True, eq=False)
class RecordColumns(AbstractColumns):
    """Makes the columns of one release that follows an estimate.

    **Arguments:** `theta`: θ̃. `units`: of curvatures and squared scores at it. `of`: makes the columns of rows, and of
    curvatures and scores as of `RecordCurvature.of`.
    """

    mechanism: Any
    theta: Float[np.ndarray, " dimension"]
    curvature: RecordCurvature
    units: tuple[float, float]
    of: Any

    def rows(self, X: Any, y: Any) -> Any:
        return self.mechanism.intake.rows(X, y, dither_key=secure_key(), may_be_empty=True, has_codes=True)

    def made(self, rows: Any) -> Any:
        return self.of(rows, *self.curvature.of(rows, self.theta, self.units))


def _of_hessian(covariance: Any, mechanism: Any, rows: Any, curvature: Any, scores: Any) -> Any:
    columns = covariance.columns(np.asarray(rows.rows.x, np.float64), curvature, mechanism)
    if not mechanism.bounds.of_persons:
        return columns
    # Their sum is a convex combination for each person, as long as weights come after columns.
    return WeightedTable(columns, Shares(np.asarray(rows.weights), rows.num_records, rows.codes))


def _of_variances(directions: Directions, unit: float, rows: Any, curvature: Any, scores: Any) -> np.ndarray:
    x = np.asarray(rows.rows.x, np.float64)
    if isinstance(rows, WeightedRecords) and rows.codes is not None:
        return directions.columns_of_persons(x, scores, unit, rows)
    return directions.columns(x, scores, unit)


@dataclasses.dataclass(frozen=True)
class _Given:
    """Tells draws of H from others, by what was released. **Arguments:** `plan`, `parts`: for what makes them."""

    first: str
    second: str | None
    plan: RegressionPlan = dataclasses.field(compare=False)
    parts: Sequence[Release] = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=16)
def _hessians(given: _Given) -> Matrices:
    plan, parts = given.plan, given.parts
    sums = np.empty(0) if plan.summing is None else np.asarray(parts[1].value, np.float64)
    return plan.covariance.hessians(sums, plan.summing, parts[0], plan.mechanism, plan.curvature)


def in_parts(columns: AbstractColumns, records: tuple[Any, Any]) -> Any:
    """Validates records in memory, and divides them into parts that columns are made of one after another. Private.

    Rows of one person stay together, since they are added up.
    """
    if isinstance(records[0], Passes | WeightedRecords):
        return records[0]
    rows = columns.rows(*records)
    if isinstance(rows, WeightedRecords) and rows.codes is not None:
        return rows
    starts = range(0, rows.num_records, _ROWS)
    return stream([(jax.tree.map(operator.itemgetter(slice(one, one + _ROWS)), rows), None) for one in starts])


def require_passes(X: Any, y: Any) -> None:
    """Raises UnfitType for records that are gone once they were read."""
    if isinstance(X, Passes) and X.engine.is_read_once:
        raise UnfitType("intervals read records several times, and this source only once: write it to a file")
