"""Checks in balls how much Gaussian noise hides, before a release relies on a calibration in float64."""

from fractions import Fraction

from flint import arb

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.balls import are_at_most_0, ball_of


def is_hidden(shift_squared: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Tells whether surely Φ(s/2 - ε/s) - e^ε·Φ(-s/2 - ε/s) ≤ δ, so that N(0, 1) and N(s, 1) are (ε, δ)-close.

    This is the exact profile of Gaussian noise (Balle and Wang 2018, Theorem 8), in both directions, and of any part of
    a shift s of many dimensions. It is an equality at the smallest δ.

    **Arguments:** `shift_squared`: s² > 0, the squared sensitivity over the variance. `epsilon`: ε ≥ 0. `delta`: δ.
    """

    def excess() -> list[arb]:
        shift, level = ball_of(shift_squared).sqrt(), ball_of(epsilon)
        near, far = (below(sign * shift / 2 - level / shift) for sign in (1, -1))
        return [near - level.exp() * far - ball_of(delta)]

    return are_at_most_0(excess)


def below(place: arb) -> arb:
    """Φ."""
    return (-place / arb(2).sqrt()).erfc() / 2


def one_removal(guarantee: Guarantee) -> tuple[arb, arb]:
    """Returns the (ε, δ) for one removal or addition: ε/2 and δ/(1 + e^{ε/2}) if the guarantee is for exchanges.

    An exchange is a removal and an addition. (ε', δ') for each of these gives (2ε', (1 + e^{ε'})δ') for both.
    """
    assert guarantee.exact_epsilon is not None
    epsilon, delta = ball_of(guarantee.exact_epsilon), ball_of(guarantee.exact_delta)
    if guarantee.adjacency is Adjacency.REPLACE:
        epsilon = epsilon / 2
        delta = delta / (1 + epsilon.exp())
    return epsilon, delta
