"""Whole noise of the two-sided geometric law, decided as real arithmetic decides."""

from fractions import Fraction

from kngjax.core.balls import ball_of
from kngjax.draws.uniforms import Bits, Uniform, decided


def draw_two_sided_geometric(rate: Fraction, bits: Bits) -> int:
    """z with P(z) = (1 - q)/(1 + q)·q^|z| over the whole numbers, q = exp(-rate): the difference of two geometric ones.

    P(G_1 - G_2 = z) = Σ_k (1 - q)²·q^(2k + |z|) = (1 - q)²/(1 - q²)·q^|z|.

    **Arguments:** `rate`: positive, public. `bits`: fair and independent.
    """
    return _geometric(rate, bits) - _geometric(rate, bits)


def _geometric(rate: Fraction, bits: Bits) -> int:
    """G = ⌊-log U/rate⌋ with P(G ≥ k) = P(U ≤ exp(-rate·k)) = q^k."""
    uniform = Uniform(bits)

    def attempt(digits: int) -> int | None:
        place = -uniform.ball(digits).log() / ball_of(rate)
        number = place.floor().unique_fmpz() if place.is_finite() else None
        return None if number is None else int(number)

    return decided(attempt)
