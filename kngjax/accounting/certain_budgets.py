"""Decides whether a composition keeps a budget (ε, δ), in fractions and in balls. Imports no JAX.

Each way proves it by itself, of parts whose numbers were all fixed beforehand; what float64 has calibrated is checked
here before it is relied on. The formulas are those of `kngjax.accounting.composition` and
`kngjax.accounting.accountants`.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from flint import arb

from kngjax.accounting.composition import Sums, total
from kngjax.accounting.gaussian_in_balls import is_hidden
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind
from kngjax.core.balls import are_at_most_0, ball_of

Parts = tuple[tuple[Guarantee, int], ...]

# Kinds whose numbers are the mechanism's own, and not computed by float64 from others.
_KINDS = (Kind.PURE, Kind.APPROXIMATE, Kind.GAUSSIAN)


def is_kept(whole: Guarantee, epsilon: Fraction, delta: Fraction) -> bool:
    """Tells whether this composition is surely (ε, δ)-DP: by Σε at Σδ, √Σμ², Σρ or advanced composition.

    **Arguments:** `whole`: of pure, approximate and Gaussian parts; of others nothing is certain.
    """
    parts: Parts = whole.parts or ((whole, 1),)
    if any(part.kind not in _KINDS for part, _ in parts):
        return False
    sums = Sums.of(parts)
    return (
        _keep_by_profile(sums, epsilon, delta)
        or _keep_by_order(sums, epsilon, delta)
        or (_are_as_stated(parts) and (_keep_by_sums(sums, epsilon, delta) or _keep_by_law(parts, epsilon, delta)))
    )


def _are_as_stated(parts: Parts) -> bool:
    """Whether each part has the (ε_k, δ_k) that it states; of Gaussian ones by their exact profile."""
    return all(_is_as_stated(part) for part, _ in parts)


def _is_as_stated(part: Guarantee) -> bool:
    if part.exact_epsilon is None or part.kind is not Kind.GAUSSIAN:
        return part.exact_epsilon is not None
    assert part.exact_rho is not None
    return is_hidden(2 * part.exact_rho, part.exact_epsilon, part.exact_delta)


def _keep_by_sums(sums: Sums, epsilon: Fraction, delta: Fraction) -> bool:
    """Σε_k ≤ ε and Σδ_k ≤ δ."""
    return sums.losses is not None and sums.losses <= epsilon and sums.failures <= delta


def _keep_by_profile(sums: Sums, epsilon: Fraction, delta: Fraction) -> bool:
    """The Gaussian parts as one of μ = √Σμ_k², at what the others leave of ε and δ."""
    if sums.gaussian_rho is None or sums.sure_losses is None:
        return False
    room, left = epsilon - sums.sure_losses, delta - sums.sure_failures
    return room >= 0 and left > 0 and is_hidden(2 * sums.gaussian_rho, room, left)


def _keep_by_order(sums: Sums, epsilon: Fraction, delta: Fraction) -> bool:
    """Σρ at one order α: (α-1)(αρ-ε) + α log(1-1/α) - log(α-1) ≤ log δ, of what the parts without ρ leave.

    Canonne, Kamath and Steinke (2020), Proposition 12. With t = α - 1 this is convex in t, and its slope
    (1+2t)ρ - ε - log(1+1/t) rises through 0 at the best order; any order is valid, so float64 may look for it.
    """
    room, left = epsilon - sums.other_losses, delta - sums.other_failures
    if sums.rho is None or sums.has_unknown or room <= 0 or left <= 0:
        return False
    rho, loss = float(sums.rho), float(room)
    low, high = -300.0, 300.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        excess = math.exp(middle)
        rises = (1.0 + 2.0 * excess) * rho - loss > math.log1p(1.0 / excess)
        low, high = (low, middle) if rises else (middle, high)
    best, cost = Fraction(math.exp(high)), sums.rho

    def excess_of_log_delta() -> list[arb]:
        order = ball_of(1 + best)
        tail = order * (ball_of(best) / order).log() - ball_of(best).log()
        return [ball_of(best * ((1 + best) * cost - room)) + tail - ball_of(left).log()]

    return are_at_most_0(excess_of_log_delta)


def _keep_by_law(parts: Parts, epsilon: Fraction, delta: Fraction) -> bool:
    """Σε_k tanh(ε_k/2) + √(2 log(1/δ')Σε_k²) ≤ ε with δ' = δ - Σδ_k, which is at most what (1-δ')Π(1-δ_k) = 1-δ asks.

    Kairouz, Oh and Viswanath (2015), Theorem 3.5.
    """
    left = delta - total((part.exact_delta, count) for part, count in parts)
    if left <= 0:
        return False
    # All are finite, as `_are_as_stated` has seen.
    losses = [(part.exact_epsilon or Fraction(0), count) for part, count in parts]
    squares = total((loss**2, count) for loss, count in losses)

    def excess_of_epsilon() -> list[arb]:
        means = _sum(count * ball_of(loss) * (ball_of(loss) / 2).tanh() for loss, count in losses)
        return [means + (-2 * ball_of(left).log() * ball_of(squares)).sqrt() - ball_of(epsilon)]

    return are_at_most_0(excess_of_epsilon)


def _sum(numbers: Iterable[arb]) -> arb:
    return sum(numbers, arb(0))
