"""Makes OpenDP measurements of mechanisms, and guarantees of OpenDP's measurements. OpenDP is an extra."""

import dataclasses
import importlib
import math
from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency
from kngjax.accounting.exact_costs import outward
from kngjax.accounting.exchanges import of_records
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.errors import ReleaseFailed, is_from_outside
from kngjax.ledger.book import LedgerError
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import Certificate
from kngjax.releases.release import certify, plan_for, release

_PURE, _APPROXIMATE, _ZCDP = "MaxDivergence", "Approximate<MaxDivergence>", "ZeroConcentratedDivergence"
# Distances of records in order are at least as large as those without order.
_ADJACENCIES = {
    "ChangeOneDistance": Adjacency.REPLACE,
    "HammingDistance": Adjacency.REPLACE,
    "SymmetricDistance": Adjacency.ADD_REMOVE,
    "InsertDeleteDistance": Adjacency.ADD_REMOVE,
}


@dataclasses.dataclass(frozen=True)
class _Pairs:
    """Describes pairs of records (X, y). **Arguments:** `num_records`: n, where it is public."""

    num_records: int | None

    def __contains__(self, records: Any) -> bool:
        if not (isinstance(records, tuple) and len(records) == 2):
            return False
        try:
            return self.num_records is None or len(records[1] if records[0] is None else records[0]) == self.num_records
        except TypeError:
            # A stream does not know its number of records.
            return False


def opendp_records(num_records: int | None = None) -> tuple[Any, Any]:
    """Makes OpenDP's domain and metric of the records that `kngjax.release` takes: pairs (X, y), or (X, None).

    **Arguments:** `num_records`: n, for mechanisms for "replace", where the metric counts the records that were changed
    (`change_one_distance`); None for "add_remove", where it counts those added or removed (`symmetric_distance`).
    """
    dp, pairs = _library(), _Pairs(num_records)
    metric = dp.symmetric_distance() if num_records is None else dp.change_one_distance()
    return dp.user_domain(f"records of kngjax, {num_records or 'any number'}", pairs.__contains__, pairs), metric


def make_opendp_measurement(
    input_domain: Any, input_metric: Any, mechanism: AbstractMechanism, output_measure: Any = None
) -> Any:
    """Makes a measurement of OpenDP that releases one draw from a mechanism's law at each call, as a list of floats.

    It returns no names, as those of a frame's columns may be private; `kngjax.certify(mechanism, X, y)` is the public
    certificate. OpenDP charges no call that raises. So a release that fails after the data were read, or is
    interrupted, returns NaN for every number, and is charged.

    The privacy map is `kngjax.accounting.exchanges.of_records`: of k records k times ε, and k² times ρ. OpenDP reads
    floats as the binary numbers that they are, so each is rounded up to one: ε = 0.3 is stated as 0.30000000000000004.

    **Arguments:**

    - `input_domain`, `input_metric`: from `opendp_records`, for the mechanism's adjacency.
    - `mechanism`: of a known number of columns, for records that have no weights and belong to no persons.
    - `output_measure`: OpenDP's `max_divergence()`, `approximate(max_divergence())` or
        `zero_concentrated_divergence()`; None for the first of these in which the release has a finite cost.

    Raises TypeError for what is no mechanism; ValueError for another domain or metric, for what `kngjax.release`
    refuses of public facts, and for a measure in which the cost is not finite. OpenDP's features "contrib" and
    "honest-but-curious" must be enabled.
    """
    if not isinstance(mechanism, AbstractMechanism):
        raise TypeError(f"mechanism must be an object like kngjax.KNG(...), not a {type(mechanism).__name__}")
    dp, adjacency = _library(), _adjacency(input_metric)
    pairs = getattr(input_domain, "descriptor", None)
    if not isinstance(pairs, _Pairs):
        raise ValueError("input_domain must be that of kngjax.releases.opendp_records(...)")
    if adjacency is not mechanism.adjacency or (adjacency is Adjacency.REPLACE) != (pairs.num_records is not None):
        stated = "num_records=n" if mechanism.adjacency is Adjacency.REPLACE else ""
        raise ValueError(f"a mechanism for '{mechanism.adjacency}' takes kngjax.releases.opendp_records({stated})")
    if mechanism.bounds.weight is not None or mechanism.guarantee.unit != RECORD:
        raise ValueError("a measurement of OpenDP takes neither weights nor persons: leave them out of the bounds")
    if (dimension := mechanism.dimension) is None:
        raise ValueError("bounds leave the number of columns open: give it, Bounds(..., columns=5)")
    cost, is_proved = plan_for(mechanism, pairs.num_records).owed
    if output_measure is None:
        made = dp.max_divergence(), dp.approximate(dp.max_divergence()), dp.zero_concentrated_divergence()
        output_measure = next((one for one in made if _loss(cost, str(one.type)) is not None), made[0])
    measure = str(output_measure.type)
    if not is_proved or _loss(cost, measure) is None:
        raise ValueError(f"no finite cost of the release is proved in {measure}: leave output_measure out")

    def is_stated(certificate: Certificate) -> bool:
        return (certificate.cost, certificate.num_records) == (cost, pairs.num_records)

    def value_of(records: Any) -> list[float]:
        nothing = [math.nan] * dimension
        try:
            if records not in pairs:
                raise ValueError("the records are not in the domain: give a pair (X, y), of the stated number of them")
            X, y = records
            if not is_stated(certify(mechanism, X, y)):
                raise ValueError("these records cost another guarantee than the measurement states: none is released")
            released = release(mechanism, X, y)
            # They may have changed on the way.
            return released.value.tolist() if is_stated(released.certificate) else nothing
        except BaseException as error:
            # These may follow a draw, and an interruption that OpenDP's callback lets through ends the process.
            if isinstance(error, ReleaseFailed | LedgerError) or is_from_outside(error):
                return nothing
            raise

    def loss_at(distance: int) -> Any:
        if distance == 0:
            # In another order the same records have a law as near to the same one.
            return (0.0, _upward(2 * cost.exact_distance)) if measure == _APPROXIMATE else 0.0
        if (loss := _loss(of_records(cost, distance), measure)) is None:
            raise ValueError(f"no finite loss in {measure} follows where {distance} records differ")
        return loss

    return dp.m.make_user_measurement(input_domain, input_metric, output_measure, value_of, loss_at, TO="Vec<f64>")


def opendp_guarantee(measurement: Any) -> Guarantee:
    """States the privacy loss of a measurement of OpenDP for one record, as `Ledger.reserve` takes it.

    **Arguments:** `measurement`: of records, in ε, (ε, δ) or ρ. Of a compositor that is the budget of all its queries.

    Raises TypeError for what is no measurement, as an odometer, whose loss has no limit; ValueError for other metrics
    and measures, and for a loss that is 0 or infinite.
    """
    if not isinstance(measurement, _library().Measurement):
        kind = type(measurement).__name__
        raise TypeError(f"measurement must be a measurement of OpenDP, whose loss is limited, not a {kind}")
    adjacency, measure = _adjacency(measurement.input_metric), str(measurement.output_measure.type)
    domain, pairs = str(measurement.input_domain), getattr(measurement.input_domain, "descriptor", None)
    # Of a frame: OpenDP shows for each margin by which columns it is, and not which facts it makes public.
    _, is_framed, margins = domain.rpartition("margins=")
    if is_framed and margins not in ("[])", "[{}])"):
        raise ValueError("margins by columns may make keys or sizes of groups public: leave them out for a ledger")
    is_sized = "size=" in domain or margins == "[{}])" or getattr(pairs, "num_records", None) is not None
    if adjacency is Adjacency.ADD_REMOVE and is_sized:
        raise ValueError(
            "the domain may, by a size or a margin, make the number of records public: take OpenDP's "
            "change_one_distance() for it; a chain then begins with t.then_metric_unbounded()"
        )
    if measure not in (_PURE, _APPROXIMATE, _ZCDP):
        raise ValueError(f"a ledger takes epsilon, (epsilon, delta) or rho, not {measure}: convert it with OpenDP")
    loss = measurement.map(1) if measure == _APPROXIMATE else (measurement.map(1), 0.0)
    if not (0 <= loss[0] < math.inf and 0 <= loss[1] < 1 and any(loss)):
        raise ValueError("the loss of this measurement for one record is 0 or infinite, and no ledger takes it")
    # OpenDP's floats are the binary numbers that they are, and no decimals.
    number, delta = map(Fraction, loss)
    if measure == _ZCDP:
        return Guarantee.zcdp(number, adjacency)
    return Guarantee.approximate(number, delta, adjacency) if delta else Guarantee.pure(number, adjacency)


def _library() -> Any:
    try:
        return importlib.import_module("opendp.prelude")
    except ImportError:
        raise ImportError("measurements of OpenDP need it: pip install 'kngjax[opendp]'") from None


def _adjacency(metric: Any) -> Adjacency:
    if (name := str(metric.type)) not in _ADJACENCIES:
        raise ValueError(f"the metric must count records, as {' or '.join(_ADJACENCIES)}, and {name} does not")
    return _ADJACENCIES[name]


def _loss(guarantee: Guarantee, measure: str) -> Any:
    """A guarantee in the numbers of a measure; None where it states nothing finite there."""
    if measure == _ZCDP:
        return None if guarantee.exact_rho is None else _upward(guarantee.exact_rho)
    takes_delta = {_PURE: guarantee.exact_delta == 0, _APPROXIMATE: True}
    if guarantee.exact_epsilon is None or not takes_delta.get(measure, False):
        return None
    epsilon = _upward(guarantee.exact_epsilon)
    return (epsilon, _upward(guarantee.exact_delta)) if measure == _APPROXIMATE else epsilon


def _upward(value: Fraction) -> float:
    """Rounds up to a binary number: `outward` rounds to one that prints as enough, and may be less by half a unit."""
    nearest = outward(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
