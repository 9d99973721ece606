"""Laws that lie within a distance in total variation of laws with a guarantee: δ at ε, and ε at δ. Imports no JAX."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from kngjax.accounting.exact_costs import Number, exactly, inward, outward, with_both_orders
from kngjax.accounting.kinds import Kind

# The most steps of the search, which takes a few, and by what share its result may be too large.
_STEPS, _SLACK = 200, 1e-10


def within(guarantee: Any, distance: Number) -> Any:
    """The guarantee of a law within this distance of one with that guarantee.

    Let M be the law that has this guarantee, and M' the other: |M'(D)(A) - M(D)(A)| ≤ η for every set A of outputs and
    every D. Then M'(D)(A) ≤ M(D)(A) + η ≤ e^ε M(D')(A) + δ + η ≤ e^ε M'(D')(A) + δ + (1 + e^ε)η. So M' is
    (ε, δ + (1 + e^ε)η)-DP at every (ε, δ) of M. It has neither ρ nor a pure ε, since total variation bounds no ratio.

    In a composition distances add up. Draw the two transcripts together so that, while they agree, the next release
    differs with probability at most η_k given the earlier ones. They differ with probability at most Ση_k, or at most
    a limit that Ση_k keeps to if releases are chosen on the way. Two distances in a row add up as well.
    """
    exact = exactly(distance, "distance")
    if not 0 <= exact < 1:
        raise ValueError(f"a distance in total variation must be at least 0 and below 1, got {distance}")
    if exact == 0:
        return guarantee
    ideal, near = guarantee.apart()
    if near:
        return within(ideal, near + exact)
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    failure = 1 if epsilon is None else delta + with_both_orders(epsilon, exact)
    if failure >= 1:
        # No (ε, δ) follows there; `at` may find one elsewhere.
        epsilon, failure = None, delta + exact
    made = type(guarantee)
    return made(Kind.NEAR, guarantee.adjacency, epsilon, Fraction(failure), None, (), exact, guarantee)


def delta_at(ideal: Callable[[float], float], distance: Fraction, epsilon: float) -> float:
    """δ(ε) + (1 + e^ε)η, at most 1, rounded outward. **Arguments:** `ideal`: δ at ε of the law nearby."""
    return outward(min(Fraction(1), exactly(ideal(epsilon)) + with_both_orders(exactly(epsilon), distance)))


def epsilon_at(ideal: Callable[[float], float], distance: Fraction, delta: float) -> float:
    """The least ε with δ(ε) + (1 + e^ε)η ≤ δ, rounded outward; infinite where there is none.

    With g(δ) the ε of the law nearby it is the least ε with g(δ - (1 + e^ε)η) ≤ ε. The left side increases in ε, so
    that iterating it from 0 approaches that ε from below; a small step beyond each iterate makes the search end.

    **Arguments:** `ideal`: g.
    """
    epsilon = 0.0
    for _ in range(_STEPS):
        remainder = exactly(delta) - with_both_orders(exactly(epsilon), distance)
        needed = ideal(inward(remainder)) if remainder >= 0 else math.inf
        if needed <= epsilon or needed == math.inf:
            return epsilon if needed <= epsilon else math.inf
        epsilon = math.nextafter(needed * (1.0 + _SLACK), math.inf)
    return math.inf


CONVERSIONS = {"epsilon": epsilon_at, "delta": delta_at}
