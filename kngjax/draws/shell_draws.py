"""KNG with smooth losses of many coefficients, drawn in the space of gradients with every rounding in its proof."""

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly
from kngjax.chains.advice import LITTLE_RANGE
from kngjax.core.arrays import float64
from kngjax.core.balls import precision, upper_end
from kngjax.data.gathering import in_one_order
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid
from kngjax.draws.shells.fourth_moments import is_affordable, least_curvatures
from kngjax.draws.shells.sets_in_balls import nearby
from kngjax.draws.shells.shell_certificate import certify
from kngjax.draws.shells.shell_envelope import ShellEnvelope, build
from kngjax.draws.shells.shell_records import ShellRecords
from kngjax.draws.shells.shell_search import ShellProblem, draw
from kngjax.draws.shells.shells import EVEN, Shells
from kngjax.draws.shells.solutions import estimate
from kngjax.draws.smooth_facts import SmoothFacts
from kngjax.draws.uniforms import Bits
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.losses.poisson import PoissonLoss
from kngjax.losses.verified_scores import AbstractSmoothScore
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.kng import KNG

# Cells are so many binary digits finer than the least that KNG's noise can be for any records, or for as many as are
# promised. Float64 knows draws to some 2^-12 of the former cells, and few need more digits.
_DIGITS, _DIGITS_IF_PROMISED = 10, 20
# Digits for the numbers of the envelope, of which float64 keeps 53.
_PRECISION = 128
# Largest scores of Poisson regression that take no more records than other losses: measured with dummies of 1%.
_LARGE_SCORE = 2
# Public numbers lie within 2^±100.
_MODERATE = 100


# The log of how many times the core's mass an envelope may have before fourth moments are computed for a better one:
# with 6.4 four draws took .4 s, and with fewer moments than fourth ones it may be 20.
_ENOUGH_LOG_EXCESS = 8.0
_OTHERS = (
    "Shells draws KNG with PseudoHuberLoss, LogisticLoss, PoissonLoss or SmoothedQuantileLoss, with one sensitivity, "
    "on Box, L1Ball or L2Ball"
)


@dataclasses.dataclass(frozen=True)
class ShellDraw(AbstractDraw):
    """θ with density ∝ exp(-(ε/2Δ)·‖Σs_i x_i‖) on Θ, rounded once to a public grid.

    ε is the decimal number that it prints as, and Δ is a fraction. A draw ends with probability 1 for all records; how
    long it takes depends on them.

    **Arguments:** `noise`: with density ∝ exp(-(ε/2Δ)·‖z‖). `score`: s, and how its slope changes. `shape`: Θ. `grid`:
    what θ is rounded to. `asked`: what was promised; nothing where a release takes it unasked.
    """

    mechanism: AbstractDensityMechanism
    noise: ScaledNorm
    score: AbstractSmoothScore
    shape: Shape
    grid: Grid
    asked: Shells = dataclasses.field(default_factory=Shells)
    serves: ClassVar[tuple[type, ...]] = (KNG,)
    kind: ClassVar[str] = "ShellDraw"

    @classmethod
    def of(cls, mechanism: KNG, facts: Schema) -> "ShellDraw | None":
        """Returns the draw where public facts show that it serves; None elsewhere.

        With few records and a wide Θ a draw takes too many proposals: n is public under replace, and n·ε must be at
        least 1500·d² (see `Shells`); or the log-density varies little over Θ. Poisson regression takes so many times
        more as its largest score is above 2, as its noise grows with that.
        """
        known = _known(mechanism, facts)
        if known is None or facts.num_records is None:
            return None
        return cls._made(mechanism, known, Shells(), facts) if _serves(known, mechanism, Shells(), facts) else None

    @classmethod
    def requested(cls, mechanism: AbstractMechanism, asked: Shells, facts: Schema) -> "ShellDraw":
        """Plans the draw by what was promised. Raises ValueError with what to do instead where that is not enough."""
        known = _known(mechanism, facts) if isinstance(mechanism, KNG) else None
        if known is None:
            raise ValueError(f"{_OTHERS}, and not {type(mechanism).__name__} as it is here: leave the sampler out")
        assert isinstance(mechanism, KNG)
        if not _serves(known, mechanism, asked, facts):
            raise ValueError(f"too few records for a draw in the space of gradients: {_more(known, mechanism, facts)}")
        return cls._made(mechanism, known, asked, facts)

    @classmethod
    def _made(cls, mechanism: KNG, known: SmoothFacts, asked: Shells, facts: Schema) -> "ShellDraw":
        score, count = known.loss.verified_score(), asked.count(facts.num_records)
        assert isinstance(score, AbstractSmoothScore)
        assert count is not None
        digits = _DIGITS if facts.num_records is not None else _DIGITS_IF_PROMISED
        return cls(mechanism, known.noise, score, known.shape, grid_for(known, count, digits), asked)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | self.asked.promised

    @property
    def method(self) -> str:
        how = (
            "Rejection in the space of gradients. All that decides is computed in balls that contain it, and the draw "
            "is rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
        )
        return f"{how} {_in_words(self.asked)}" if self.asked.promised else how

    @property
    def duration(self) -> str:
        return (
            "a proposal or two of a few Newton steps each; it may not end where the domain does not hold the estimate, "
            "classes are separated, or the loss bends on a far narrower scale than residuals have"
        )

    def prepare(self, X: Any, y: Any) -> ShellRecords:
        with float64():
            records = in_one_order(self.mechanism.intake.records(X, y))
        return ShellRecords.of(np.asarray(records.x, np.float64), np.asarray(records.y, np.float64), self.score)

    def envelope(self, records: ShellRecords) -> ShellEnvelope:
        """Builds the envelope of less mass: about an estimate, or about where Θ ends on the way to it. Private."""
        with precision(_PRECISION), np.errstate(all="ignore"):
            found = estimate(records)
            within = nearby(self.shape, found)
            places = [found] if np.array_equal(within, found) else [found, within]
            envelopes = [_about(records, self.noise, self.shape, one) for one in places]
            return min(envelopes, key=lambda made: made.log_mass)

    def draw(self, data: ShellRecords, bits: Bits) -> Float[np.ndarray, " dimension"]:
        with np.errstate(all="ignore"):
            cell = draw(ShellProblem(data, self.noise, self.shape), self.envelope(data), self.grid, bits)
        return self.grid.values(cell)


def _known(mechanism: KNG, facts: Schema) -> SmoothFacts | None:
    """Collects the facts that the draw rests on; None where it does not serve, however many records there are."""
    if not mechanism.domain.is_uniform or mechanism.intake.weights_enter_loss:
        return None
    known = SmoothFacts.of(mechanism, facts)
    score = None if known is None else known.loss.verified_score()
    if (
        known is None
        or not isinstance(score, AbstractSmoothScore)
        or not known.are_moderate(_MODERATE, [score.steepness])
    ):
        return None
    return known


def _about(records: ShellRecords, gauge: ScaledNorm, region: Shape, theta: np.ndarray) -> ShellEnvelope:
    certificate = certify(records, gauge, region, theta)
    envelope = build(certificate, gauge, region)
    if certificate is None or envelope.log_excess <= _ENOUGH_LOG_EXCESS or not is_affordable(records):
        return envelope
    averages = least_curvatures(records, region, certificate)
    again = certify(records, gauge, region, theta, averages)
    # What fourth moments prove is of this metric and of these radii.
    if again is None or not np.array_equal(again.factor, certificate.factor):
        return envelope
    other = build(again, gauge, region)
    return min(envelope, other, key=lambda made: made.log_mass)


def _serves(known: SmoothFacts, mechanism: KNG, asked: Shells, facts: Schema) -> bool:
    """Whether a draw takes few proposals, as far as public facts and what was promised tell."""
    dimension, number = facts.dimension, facts.num_records
    count = asked.count(number)
    if count is None:
        return False
    information = exactly(float(mechanism.epsilon)) * count
    if information >= asked.enough * dimension**2 * _spread_of_scores(known):
        return True
    return number is not None and mechanism.exponent.log_range(dimension, number) <= LITTLE_RANGE


def _spread_of_scores(known: SmoothFacts) -> Fraction:
    """Compares the largest score with that at which `Shells.enough` is measured: counts may have any."""
    if not isinstance(known.loss, PoissonLoss):
        return Fraction(1)
    return max(Fraction(1), max(map(abs, known.known.score)) / _LARGE_SCORE)


def _in_words(asked: Shells) -> str:
    """Says what was promised."""
    words = [] if asked.least_records is None else [f"promised: there are at least {asked.least_records} records"]
    words += [EVEN] if asked.is_even else []
    return f"{'; '.join(words).capitalize()}. A false promise costs time, and no privacy."


def more_records(mechanism: AbstractMechanism, facts: Schema) -> str | None:
    """Says what to promise for a draw in the space of gradients, or how many records it takes; None where none serves.

    Public. Both hold word for word.
    """
    known = _known(mechanism, facts) if isinstance(mechanism, KNG) else None
    return None if known is None else _more(known, cast(KNG, mechanism), facts)


def _more(known: SmoothFacts, mechanism: KNG, facts: Schema) -> str:
    epsilon = exactly(float(mechanism.epsilon))
    spread = facts.dimension**2 * _spread_of_scores(known) / epsilon
    sure, even = (math.ceil(Shells(is_even=promised).enough * spread) for promised in (False, True))
    if facts.num_records is None:
        return (
            "how many records there are is not public here, or not known beforehand: state a public number that they "
            f"are not fewer than, sampler=kngjax.draws.Shells(least_records={sure}) or more; or "
            f"sampler=kngjax.draws.Shells(least_records={even}, is_even=True) or more where no column is rare or "
            "nearly collinear with others (a false statement costs time, and no privacy)"
        )
    if facts.num_records >= even:
        return (
            f"there are {facts.num_records} records, and without a promise {sure} are enough; if you know that no "
            "column is rare or nearly collinear with others, promise it: sampler=kngjax.draws.Shells(is_even=True), "
            f"for which {even} are enough (a false promise costs time, and no privacy)"
        )
    return (
        f"there are {facts.num_records} records, and {sure} are enough at this epsilon, or {even} with "
        "sampler=kngjax.draws.Shells(is_even=True), where no column is rare or nearly collinear with others"
    )


def grid_for(known: SmoothFacts, count: int, digits: int = _DIGITS) -> Grid:
    """h_j with 2^digits·h_j about a_j/(n·c·max|x_j|²), or 2^-40 of Θ if that is more.

    Where a_j is the scale of the noise in the gradient, c bounds every ρ'', and so n·c·max|x_j|² bounds H_jj.
    """
    with precision(_PRECISION):
        scales = [upper_end(scale) for scale in known.noise.ball_scales]
    least = [scale / (count * known.known.curvature * size**2) for scale, size in zip(scales, known.sizes, strict=True)]
    coarsest = known.body.grid().exponents
    return Grid(tuple(max(_power(one) - digits, most) for one, most in zip(least, coarsest, strict=True)))


def _power(number: Fraction) -> int:
    return number.numerator.bit_length() - number.denominator.bit_length()
