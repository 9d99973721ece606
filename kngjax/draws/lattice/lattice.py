"""Releases on a public lattice: pure ε-DP with every rounding included."""

import dataclasses
import functools
import secrets
from fractions import Fraction
from typing import Any, NamedTuple, cast

import equinox as eqx
import numpy as np

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data.exact_sums import ExactSums
from kngjax.data.passes import Passes
from kngjax.data.records import Records
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.lattice_plan import LatticePlan, lattice_plan_of
from kngjax.draws.lattice.lattice_sums import sums_of
from kngjax.draws.lattice.problems import divisor_of, score_of, whole_records
from kngjax.draws.lattice.regions import CurveRegion
from kngjax.draws.lattice.scores import RESOLUTION, AbstractScore, GradientNorm
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.lattice.window_searches import Level, QuantileScores, scores_of
from kngjax.draws.lattice.windows import FEW, Sample, look_here, look_there, sample, sampled_there
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.preparation import TOO_MANY_RECORDS
from kngjax.sensitivity import in_fractions

ELSE = "Without a sampler release takes what serves, and else says what would"

LARGEST_DIMENSION = 4
MOST_DIGITS = 50  # of the 53 of a float64

Prepared = Records | ExactSums | QuantileScores


class Lattice(ShownAsTyped, AbstractModule):
    """Draws k with P(k) ∝ exp(-ε/(2R)·s(k)) on the points θ = k·2^e of Θ: pure ε-DP in the arithmetic that is done.

    s is the mechanism's score over its sensitivity, in whole units of 1/R, R = 4096. Proof, with every rounding:
    `docs/proofs/lattice.md`. A draw ends for all data of at most `max_records` records, within a machine's memory and
    time.

    The law differs from the continuous mechanism's by less than ε/8192 in log-density, by the rounding of the records,
    and by rounding to a grid that is 2^`theta_digits` times finer than Θ.

    A release takes it unasked for QuantileLoss, PrivateQuantile and the exponential mechanism. KNG with a quadratic
    loss is drawn in balls, in any dimension (`kngjax.draws.quadratic_draws`), unless `Lattice` is asked for by name.

    It serves QuantileLoss, SquaredLoss and SquaredDistanceLoss on Box, L1Ball and L2Ball with uniform measure: KNG with
    its own norm, WeightedLInf, LInf, L1 and L2, and the exponential mechanism, up to 4 coefficients; and
    PrivateQuantile, of one level or with budget="split".

    **Arguments:** all public:

    - `data_digits`, `theta_digits`: binary digits of the lattices of features and responses, relative to their bounds,
      and of θ, relative to Θ, from 1 to 50. None: 20 and 22, or what exact sums of `max_records` records leave of 52.
    - `max_records`: for QuantileLoss under add_remove, where n is private: a release of more records fails. Under
        replace n is used, and sums of quadratic losses have no limit. None: 2^27, 2^24 for the exponential mechanism.
    - `expected_proposals`: the number of expected proposals at which the envelope is no longer refined. None: when
        proposals cost about as much as boxes.
    - `most_boxes`: the largest number of boxes of the envelope. Proposals have no limit: a draw is never given up.
    """

    data_digits: int | None = eqx.field(static=True, default=None)
    theta_digits: int | None = eqx.field(static=True, default=None)
    max_records: int | None = eqx.field(static=True, default=None)
    expected_proposals: float | None = eqx.field(static=True, default=None)
    most_boxes: int = eqx.field(static=True, default=200_000)

    def __check_init__(self):
        for name in ("data_digits", "theta_digits"):
            digits = getattr(self, name)
            if digits is not None and not (isinstance(digits, int) and 1 <= digits <= MOST_DIGITS):
                raise ValueError(f"{name} must be a whole number from 1 to {MOST_DIGITS}, or None, got {digits!r}")

    def resolve(self, mechanism: AbstractMechanism, dimension: int, num_records: int | None) -> "Lattice":
        """Chooses the digits, and the limit of records, for this mechanism, from public facts alone.

        **Arguments:** `num_records`: n where it is public, else None.

        Raises ValueError for a mechanism that it does not serve, OverflowError for more digits than 62 bits hold.
        """
        parts = _parts(mechanism)
        plans = [self.plan(part, dimension // len(parts), num_records) for part in parts]
        # Levels of several quantiles may differ in digits: all take those of the coarsest.
        data, theta = (min(digits) for digits in zip(*(plan.digits for plan in plans), strict=True))
        most = self._most_records(parts[0]) if _is_limited(mechanism) else None
        return dataclasses.replace(self, data_digits=data, theta_digits=theta, max_records=most)

    def prepare(self, mechanism: AbstractMechanism, X: Any, y: Any = None) -> Prepared:
        """Prepares the records; in passes over them, of a quadratic loss, their sums on the lattice. Private.

        For KNG with a quantile loss, many records become scores, which keep few of the records. Sums and scores are the
        same to the bit whatever the batches and their order. Arguments and errors are those of `mechanism.prepare`.
        """
        part, *others = _parts(mechanism)
        if not mechanism.loss.is_quadratic and part.exponent.scored_by == "gradient":
            return self._scores(mechanism, [part, *others], X, y)
        if not (isinstance(X, Passes) and mechanism.loss.is_quadratic):
            return mechanism.intake.records(X, y)
        # The plan of a quadratic loss is the same for every number of records.
        plan = self.plan(part, mechanism.dimension, None) if mechanism.dimension is not None else None
        return mechanism.intake.sums_by(functools.partial(self._sums_of, part, plan), X, y)

    def _scores(self, mechanism: AbstractMechanism, parts: list[AbstractDensityMechanism], X: Any, y: Any) -> Prepared:
        """Prepares the scores of a quantile loss; few records themselves, and those that windows spare little of."""
        intake, count, dimension = mechanism.intake, None, mechanism.dimension
        if isinstance(X, Passes) and mechanism.adjacency is Adjacency.REPLACE:
            count = X.public_count()
        has_digits = self.data_digits is not None and self.theta_digits is not None
        is_planned = count is not None or has_digits or mechanism.adjacency is not Adjacency.REPLACE
        is_lasting = isinstance(X, Passes) and not X.engine.is_read_once and mechanism.bounds.dither is None
        if dimension is None or not (is_lasting and is_planned):
            X = intake.records(X, y)
            if len(X.y) <= FEW:
                return X
            count, dimension = intake.public_count(X), X.dimension * len(parts)
        plans = [self.plan(part, dimension // len(parts), count) for part in parts]
        if len({plan.digits for plan in plans}) > 1:
            # Levels whose lattices differ, as settings leave open, share no records.
            return X if isinstance(X, Records) else intake.records(X)
        here = isinstance(X, Records)
        with float64():
            if isinstance(X, Records):
                look = look_here(whole_records(X, plans[0]))
                found = X.num_records, look(sample, Sample.plus)
            else:
                look, found = look_there(intake, X, plans[0]), sampled_there(intake, X, plans[0])
            if found is None or found[1].number == 0:
                intake.require_none_needed()
                return cast(Records, intake.rows_of_zeros(0, dimension // len(parts)))
            # Of rows of persons a promise counts persons.
            number, some = found
            levels, is_refused = [], _is_limited(mechanism) and number > self._most_records(parts[0])
            for part, plan in zip([] if is_refused else parts, plans, strict=False):
                divisor = divisor_of(part, plan)
                assert isinstance(divisor, GradientNorm)
                levels.append(Level(in_fractions.level(part.loss), divisor, plan.domain, float(rate_of(part))))
            scores = scores_of(some, levels, look)
        if scores is None:
            return X if here else intake.records(X)
        return QuantileScores(number, plans[0].domain.low.size, scores)

    def _sums_of(self, part: AbstractDensityMechanism, plan: LatticePlan | None, records: Records) -> ExactSums:
        with float64():
            own = self.plan(part, records.dimension, None) if plan is None else plan
            return sums_of(records, own, part.loss.has_response)

    def draw(self, mechanism: AbstractMechanism, records: Prepared, bits: Bits = secrets.randbits) -> np.ndarray:
        """Draws θ, shape (d,). Quantiles are drawn one by one, and put in increasing order.

        **Arguments:** `records`: from `prepare`. `bits`: fair and independent; those of the operating system for
        whatever is published.
        """
        parts = _parts(mechanism)
        draws = [self._draw_part(part, records, bits, number) for number, part in enumerate(parts)]
        return draws[0] if len(parts) == 1 else np.sort(np.concatenate(draws))

    def _draw_part(self, mechanism: AbstractDensityMechanism, records: Prepared, bits: Bits, number: int) -> np.ndarray:
        problem = self.problem(mechanism, records, number)
        return problem.domain.values(self.envelope(problem).draw(bits))

    def problem(self, mechanism: AbstractDensityMechanism, records: Prepared, number: int = 0) -> "Problem":
        """States the law that is drawn from, for what was `prepared`; of scores, for that of this number. Private.

        Raises ValueError for what it does not serve, RuntimeError for more than `max_records` where they count.
        """
        if _is_limited(mechanism) and records.num_records > self._most_records(mechanism):
            raise RuntimeError(TOO_MANY_RECORDS)
        plan = self.plan(mechanism, records.dimension, mechanism.intake.public_count(records))
        is_scored = isinstance(records, QuantileScores)
        score = records.scores[number] if is_scored else score_of(mechanism, records, plan)
        return Problem(score, plan.domain, rate_of(mechanism))

    def plan(self, mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None) -> LatticePlan:
        """Returns the lattices for this density. Raises ValueError, of public facts alone, for what it does not serve.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        _require_served(mechanism, dimension)
        most = self._most_records(mechanism) if num_records is None else num_records
        with float64():
            plan = lattice_plan_of(mechanism, dimension, most, self.data_digits, self.theta_digits)
        # Raises where no record can change anything: that, too, is refused for public facts alone.
        divisor_of(mechanism, plan)
        return plan

    def _most_records(self, mechanism: AbstractDensityMechanism) -> int:
        # Sums of losses are larger than sums of gradients, by the predictors.
        return self.max_records or (2**24 if mechanism.exponent.scored_by == "loss" else 2**27)

    def envelope(self, problem: "Problem", region: CurveRegion | None = None) -> LatticeEnvelope:
        """Builds the envelope that k is drawn from, on a part of Θ where one is given. Private."""
        return LatticeEnvelope(*problem, self.expected_proposals, self.most_boxes, region)


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

    Where the rows of one person are spread over G groups with shares p_k of at most one vote, scores of group k change
    by at most p_k·R before they are rounded and ⌈p_k·R⌉ after: by R + G - 1 in all, which stands for R.
    """
    unit = mechanism.bounds.unit
    spread = 0 if unit is None else (unit.groups or 1) - 1
    cancels = mechanism.exponent.scored_by == "loss" and mechanism.adjacency is Adjacency.ADD_REMOVE
    return exactly(float(mechanism.epsilon)) / (2 * (RESOLUTION + spread) + cancels)


def _is_limited(mechanism: AbstractMechanism) -> bool:
    """Whether its sums need a public limit of records: sums of quadratic losses have any size."""
    return mechanism.adjacency is not Adjacency.REPLACE and not mechanism.loss.is_quadratic


def _parts(mechanism: AbstractMechanism) -> tuple[AbstractDensityMechanism, ...]:
    """Lists the densities that are drawn one by one, each with its share of the coefficients."""
    return cast(tuple[AbstractDensityMechanism, ...], mechanism.densities())


def _require_served(mechanism: AbstractDensityMechanism, dimension: int) -> None:
    """Raises ValueError, in words that name what would serve, where this density cannot be drawn on a lattice."""
    loss, domain, norm = mechanism.loss, mechanism.domain, mechanism.exponent.given_norm
    if loss.whole_score is None:
        raise ValueError(f"Lattice needs whole scores, which {type(loss).__name__} has not. {ELSE}")
    if domain.exact_shape(dimension) is None:
        raise ValueError(f"Lattice serves Box, L1Ball and L2Ball, not {type(domain).__name__}. {ELSE}")
    if dimension > LARGEST_DIMENSION:
        of = f", of {dimension - 1} columns and the intercept" if mechanism.bounds.intercept else ""
        raise ValueError(f"Lattice serves up to {LARGEST_DIMENSION} coefficients, not {dimension}{of}. {ELSE}")
    if mechanism.bounds.weight is not None and not (loss.is_homogeneous and mechanism.exponent.scored_by == "gradient"):
        raise ValueError(
            f"of records with weights Lattice draws KNG with QuantileLoss, not {type(mechanism).__name__} with "
            f"{type(loss).__name__}. {ELSE}"
        )
    if mechanism.exponent.scored_by is None or mechanism.exponent.is_pointwise:
        raise ValueError(f"Lattice serves KNG with one sensitivity for every theta. {ELSE}")
    exact = None if norm is None else norm.in_fractions(dimension)
    if norm is not None and exact is None:
        raise ValueError(f"Lattice serves norm=None, WeightedLInf, LInf, L1 and L2, not {type(norm).__name__}")
    if mechanism.bounds.weight is not None and exact is not None and exact.kind != "maximum":
        # On products of weights and features columns seem to vary freely of the intercept, and Δ would be too large.
        raise ValueError(
            f"of records with weights Lattice serves norm=None, WeightedLInf and LInf, not {type(norm).__name__}"
        )
