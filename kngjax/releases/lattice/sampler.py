"""Releases on a public lattice: pure ε-DP with every rounding included."""

import dataclasses
import functools
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from kngjax.accounting.exact import exactly, inward
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.core.errors import UnfitType
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records
from kngjax.data.shards import Shards
from kngjax.data.streams import RECORDS_NEEDED, Stream
from kngjax.geometry import norms
from kngjax.geometry.domains import Box, L1Ball, L2Ball
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.base import TOO_MANY_RECORDS, AbstractDensityMechanism, AbstractMechanism, require_own_responses
from kngjax.mechanisms.exponential import ExponentialMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.private_quantile import PrivateQuantile
from kngjax.releases.lattice.envelope import Envelope
from kngjax.releases.lattice.finite import Bits
from kngjax.releases.lattice.plans import Plan, plan_for
from kngjax.releases.lattice.problems import divisor_of, score_of
from kngjax.releases.lattice.scores import RESOLUTION, AbstractScore
from kngjax.releases.lattice.sums import sums_of
from kngjax.releases.lattice.units import DomainLattice
from kngjax.samplers.base import AbstractSampler
from kngjax.samplers.promises import EXACT, Promise
from kngjax.samplers.target import Target

_ELSE = "Without a sampler release takes Exact() where that serves, and else says what would"

LARGEST_DIMENSION = 4
MOST_DIGITS = 50  # of the 53 of a float64


class Lattice(AbstractSampler):
    """Draws k with P(k) ∝ exp(-ε/(2R)·s(k)) on the points θ = k·2^e of Θ: pure ε-DP in the arithmetic that is done.

    s is the mechanism's score over its sensitivity, in whole units of 1/R, R = 4096. The proof, with every rounding:

    1. Every record is clipped to the bounds and rounded to a public lattice, for itself: neighbours stay neighbours.
    2. For every k the score is computed from whole numbers without rounding (Python's, or below 2^53 in float64), then
       divided by W and rounded down to s(k). W is at least what one record can change the score by on the rounded
       bounds, in fractions (`kngjax.releases.lattice.sensitivities`), so s_D - s_D' lies in [-R, R] for neighbours D,
       D'. For the exponential mechanism under add_remove W is half the range of a record's loss: there s_D - s_D' lies
       in an interval of length 2R + 1.
    3. The lattice points of Θ are a finite public set. Let c be ε over the length of that interval, 2R or 2R + 1, and
       Z = Σ exp(-c s(k)). In log P_D(k)/P_D'(k) = c(s_D'(k) - s_D(k)) - log Z_D/Z_D' the first term lies in an interval
       of length ε for all k, and log Z_D/Z_D' in the same one: the ratio is within ±ε, and it is ε-bounded-range.
    4. The draw has exactly these probabilities: by rejection, each try returns k with probability exp(-c s(k))/M, where
       M depends on the data and on the envelope, and not on k. Choices are made by comparing a uniform number, known
       to ever more bits of `secrets`, with balls that contain the exponentials: no rounding decides an outcome.

    Data sets are those of finite records: n ≥ 1 of them under replace; any number under add_remove, none too, where
    s = 0 and every point of Θ is as likely. A draw of any of them ends, but for more than `max_records` and for what a
    machine has no memory or time for.

    The law differs from the continuous mechanism's by less than ε/8192 in log-density, by the rounding of the records,
    and by rounding to a grid that is 2^`theta_digits` times finer than Θ.

    It serves QuantileLoss, SquaredLoss and SquaredDistanceLoss on Box, L1Ball and L2Ball with uniform measure: KNG with
    its own norm, WeightedLInf, LInf and L1, and the exponential mechanism, up to 4 coefficients, of which 4 may take
    minutes for QuantileLoss; and PrivateQuantile, of one level or with budget="split".

    **Arguments**, all public:

    - `data_digits`, `theta_digits`: binary digits of the lattices of features and responses, relative to their bounds,
      and of θ, relative to Θ, from 1 to 50. None: 20 and 22, or what exact sums of `max_records` records leave of 52.
    - `max_records`: for QuantileLoss under add_remove, where n is private: a release of more records fails. Under
        replace n is used, and sums of quadratic losses have no limit. None: 2^27, 2^24 for the exponential mechanism.
    - `expected_proposals`: the envelope is refined until so many are expected at most. None: 8, or 32 for d = 4.
    - `most_boxes`: or until it has so many boxes. There is no limit of proposals: a draw is never given up.
    """

    data_digits: int | None = eqx.field(static=True, default=None)
    theta_digits: int | None = eqx.field(static=True, default=None)
    max_records: int | None = eqx.field(static=True, default=None)
    expected_proposals: float | None = eqx.field(static=True, default=None)
    most_boxes: int = eqx.field(static=True, default=200_000)

    includes_rounding: ClassVar[bool] = True
    _LIMIT: ClassVar[tuple[str, ...]] = (
        "of a quantile loss under add_remove there are at most max_records records: a release of more fails, and that "
        "it failed is not covered",
    )

    def __check_init__(self):
        for name in ("data_digits", "theta_digits"):
            digits = getattr(self, name)
            if digits is not None and not (isinstance(digits, int) and 1 <= digits <= MOST_DIGITS):
                raise ValueError(f"{name} must be a whole number from 1 to {MOST_DIGITS}, or None, got {digits!r}")

    def assumed(self, mechanism: AbstractMechanism) -> tuple[str, ...]:
        return self._LIMIT if _is_limited(mechanism) else ()

    def resolved(self, mechanism: AbstractMechanism, dimension: int, num_records: int | None) -> "Lattice":
        """The same with the digits and the limit of records that it takes for this mechanism, for a certificate.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        parts, dimension = _parts(mechanism, dimension)
        plans = [self._plan(part, dimension, num_records) for part in parts]
        # Levels of several quantiles may differ in digits: of the coarsest.
        data, theta = (min(digits) for digits in zip(*(plan.digits for plan in plans), strict=True))
        most = self._most_records(parts[0]) if _is_limited(mechanism) else None
        return dataclasses.replace(self, data_digits=data, theta_digits=theta, max_records=most)

    def check(self, target: Target) -> None:
        raise ValueError("Lattice draws for release alone; for research draws ask for Exact(), the law in real numbers")

    def promise(self, log_range: float) -> Promise:
        return EXACT

    def unserved(self, mechanism: AbstractMechanism, dimension: int) -> str | None:
        """Why this mechanism cannot be drawn on a lattice, in words that name what would serve; None if it can."""
        if isinstance(mechanism, PrivateQuantile):
            if mechanism.dimension > 1 and mechanism.budget == "joint":
                return "Lattice draws one quantile, or several with budget='split': leave the sampler out"
            return None
        if not isinstance(mechanism, AbstractDensityMechanism):
            return f"{type(mechanism).__name__} draws from its own law directly: leave the sampler out"
        loss, domain = mechanism.loss, mechanism.domain
        if not isinstance(loss, QuantileLoss | SquaredLoss | SquaredDistanceLoss):
            return f"Lattice needs whole scores, which {type(loss).__name__} has not. {_ELSE}"
        if not isinstance(domain, Box | L1Ball | L2Ball):
            return f"Lattice serves Box, L1Ball and L2Ball, not {type(domain).__name__}: ask for Exact()"
        if dimension > LARGEST_DIMENSION:
            return f"Lattice serves up to {LARGEST_DIMENSION} coefficients, not {dimension}. {_ELSE}"
        if isinstance(mechanism, ExponentialMechanism):
            return None
        if not isinstance(mechanism, KNG) or mechanism.pointwise_sensitivity:
            return "Lattice serves KNG with one sensitivity for every theta: ask for Exact()"
        if not isinstance(mechanism.norm, norms.WeightedLInf | norms.LInf | norms.L1 | None):
            return f"Lattice serves norm=None, WeightedLInf, LInf and L1, not {type(mechanism.norm).__name__}"
        return None

    def takes_seconds(self, mechanism: AbstractMechanism, dimension: int, num_records: int | None = None) -> bool:
        """Whether one draw takes seconds: always for quadratic losses, else up to 3 coefficients and not too many rows.

        **Arguments:** `num_records`: n where it is public, else None, which counts as some 10^5.
        """
        if mechanism.loss.is_quadratic:
            return True
        if isinstance(mechanism, PrivateQuantile):
            dimension = 1
        # Records are looked at some 10·4^d times; beyond this the box tree in float64 is faster.
        return dimension <= 3 and (num_records is None or num_records * 4**dimension <= 2**22)

    def prepared(self, mechanism: AbstractMechanism, X: Any, y: Any = None) -> Records | ExactSums:
        """What it draws from: records; of a stream or shards, for quadratic losses, their sums on the lattice. Private.

        The sums are whole numbers, the same to the bit whatever the chunks, the shards and their order. Arguments and
        errors are those of `mechanism.prepare`.
        """
        require_own_responses(X, y)
        if not isinstance(X, Stream | Shards):
            return mechanism.records(X, y)
        if not mechanism.loss.is_quadratic:
            raise UnfitType(RECORDS_NEEDED)
        assert isinstance(mechanism, AbstractDensityMechanism)

        # The plan of a quadratic loss is the same for every number of records.
        @functools.cache
        def plan(dimension: int) -> Plan:
            return self._plan(mechanism, dimension, None)

        def summary_of(records: Records) -> ExactSums:
            with float64():
                return sums_of(records, plan(records.dimension), mechanism.loss.has_response)

        def own(X: Any, y: Any) -> ExactSums:
            return mechanism.total(X, summary_of) if isinstance(X, Stream) else summary_of(mechanism.records(X, y))

        if isinstance(X, Stream):
            return own(X, None)
        part = X.together(lambda: own(X.X, X.y), (mechanism, self))
        return X.total(part)

    def draw(
        self, mechanism: AbstractMechanism, records: Records | ExactSums, bits: Bits = secrets.randbits
    ) -> np.ndarray:
        """One draw of θ, shape (d,). Quantiles one by one, in increasing order.

        **Arguments:** `records`: from `prepared`. `bits`: fair and independent; those of the operating system for
        whatever is published.
        """
        if isinstance(mechanism, PrivateQuantile):
            if (reason := self.unserved(mechanism, mechanism.dimension)) is not None:
                raise ValueError(reason)
            return np.sort(np.concatenate([self.draw(part, records, bits) for part in _levels(mechanism)]))
        assert isinstance(mechanism, AbstractDensityMechanism)
        problem = self.problem(mechanism, records)
        return problem.domain.values(self.envelope(problem).draw(bits))

    def problem(self, mechanism: AbstractDensityMechanism, records: Records | ExactSums) -> "Problem":
        """What is drawn, for records or sums that were `prepared`. Private.

        Raises ValueError for what it does not serve, RuntimeError for more than `max_records` where they count.
        """
        if _is_limited(mechanism) and records.num_records > self._most_records(mechanism):
            raise RuntimeError(TOO_MANY_RECORDS)
        plan = self._plan(mechanism, records.dimension, mechanism.public_count(records))
        return Problem(score_of(mechanism, records, plan), plan.domain, rate_of(mechanism))

    def require_served(self, mechanism: AbstractMechanism, dimension: int, num_records: int | None) -> None:
        """Raises ValueError, of public facts alone, for what it does not serve.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        if (reason := self.unserved(mechanism, dimension)) is not None:
            raise ValueError(reason)
        parts, dimension = _parts(mechanism, dimension)
        for part in parts:
            self._plan(part, dimension, num_records)

    def _plan(self, mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None) -> Plan:
        if (reason := self.unserved(mechanism, dimension)) is not None:
            raise ValueError(reason)
        most = self._most_records(mechanism) if num_records is None else num_records
        with float64():
            plan = plan_for(mechanism, dimension, most, self.data_digits, self.theta_digits)
        # Raises where no record can change anything: that, too, is refused for public facts alone.
        divisor_of(mechanism, plan)
        return plan

    def _most_records(self, mechanism: AbstractDensityMechanism) -> int:
        # Sums of losses are larger than sums of gradients, by the predictors.
        return self.max_records or (2**24 if isinstance(mechanism, ExponentialMechanism) else 2**27)

    def envelope(self, problem: "Problem") -> Envelope:
        """From which k is drawn. Private."""
        target = self.expected_proposals or (32.0 if problem.domain.low.size == LARGEST_DIMENSION else 8.0)
        return Envelope(*problem, target, self.most_boxes)


class Problem(NamedTuple):
    """P(k) ∝ exp(-rate·score(k)) on the points of Θ.

    **Arguments:** `score`: s, private. `domain`: the lattice of Θ. `rate`: c.
    """

    score: AbstractScore
    domain: DomainLattice
    rate: Fraction


def rate_of(mechanism: AbstractDensityMechanism) -> Fraction:
    """c = ε/(2R), of the decimal number that ε prints as; ε/(2R + 1) for the exponential mechanism under add_remove.

    There W is half the range of one record's loss, as a constant added to all scores cancels: s_D - s_D' lies in an
    interval of length 2R before it is rounded, and of at most 2R + 1 after.
    """
    cancels = isinstance(mechanism, ExponentialMechanism) and mechanism.adjacency is Adjacency.ADD_REMOVE
    return exactly(float(mechanism.epsilon)) / (2 * RESOLUTION + cancels)


def _is_limited(mechanism: AbstractMechanism) -> bool:
    """Whether its sums need a public limit of records: sums of quadratic losses have any size."""
    return mechanism.adjacency is not Adjacency.REPLACE and not mechanism.loss.is_quadratic


def _parts(mechanism: AbstractMechanism, dimension: int) -> tuple[Sequence[AbstractDensityMechanism], int]:
    """What is drawn one by one, and how many coefficients each has."""
    if isinstance(mechanism, PrivateQuantile):
        return _levels(mechanism), 1
    assert isinstance(mechanism, AbstractDensityMechanism)
    return [mechanism], dimension


def _levels(mechanism: PrivateQuantile) -> list[KNG]:
    """Each level's mechanism, which is KNG of an intercept alone, at ε/m rounded down."""
    bounds, number = mechanism.bounds, mechanism.dimension
    with float64():
        epsilon = inward(exactly(float(mechanism.epsilon)) / number)
        domain = Box(bounds.y_lower, bounds.y_upper)
        return [
            KNG(QuantileLoss(float(tau)), bounds, domain, epsilon, mechanism.adjacency, allow_large_epsilon=True)
            for tau in mechanism.tau
        ]
