"""Certifies in balls that Wishart noise hides one record: scales by float64 are checked before they are relied on."""

from fractions import Fraction

from flint import arb

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.balls import are_at_most_0, ball_of


def wishart_hides(
    epsilon: Fraction,
    delta: Fraction,
    change: Fraction,
    dimension: int,
    degrees: int,
    scale: Fraction,
    adjacency: Adjacency,
) -> bool:
    """Tells whether Wishart noise of k degrees and scale s certainly hides a change τvv', |v| ≤ 1, at (ε, δ).

    The formulas are those of `kngjax.mechanisms.noise.matrix_noise.wishart_log_delta`. An exchange is a removal and an
    addition: (ε/2, δ') each are (ε, (1 + e^{ε/2})δ').

    **Arguments:** `change`: τ > 0. `degrees`: k ≥ d + 2, with k - d odd, so that sums have an end; False for others.
    """
    half, rest = divmod(degrees - dimension + 1, 2)
    if half < 2 or rest:
        return False
    exchanges = adjacency is Adjacency.REPLACE
    level = epsilon / 2 if exchanges else epsilon

    def excesses() -> list[arb]:
        times, bound = 1 + ball_of(level).exp() if exchanges else arb(1), ball_of(delta)
        return [times * failure - bound for failure in _failures(level, change / scale, half)]

    return are_at_most_0(excesses)


def _failures(epsilon: Fraction, ratio: Fraction, half: int) -> list[arb]:
    """δ of both directions at ε, with ratio = τ/s, where V/s is a chi-square number of 2·half degrees."""
    shift, grown = ball_of(ratio), ball_of(epsilon).exp()

    def variable_at(level: Fraction) -> arb:
        """v/s at which the privacy loss is this level."""
        return shift / (1 - (-ball_of((level + ratio / 2) / (half - 1))).exp())

    lowest = variable_at(epsilon)
    failures = [1 - _above(half, lowest) - grown * (1 - _above(half, lowest - shift))]
    # Without such a place no outcome has a loss of less than -ε.
    if ratio / 2 > epsilon:
        highest = variable_at(-epsilon)
        failures.append(_above(half, highest - shift) - grown * _above(half, highest))
    return failures


def _above(half: int, place: arb) -> arb:
    """P(V/s > v) = e^{-v/2} Σ_{j<half} (v/2)^j/j!, for v ≥ 0: fewer than that many points of a Poisson process."""
    middle, term = place / 2, arb(1)
    total = term
    for number in range(1, half):
        term *= middle / number
        total += term
    return total * (-middle).exp()
