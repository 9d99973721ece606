"""Conversions between forms of privacy: δ at ε and ε at δ from what is known of a mechanism. Imports no JAX.

δ(ε) = sup P(A) - e^ε Q(A) over sets A of outputs and over both orders of every pair of neighbours: the privacy profile.
As a supremum of lines in y = e^ε it is convex in y, and since both orders count, δ(1/y) = 1 - 1/y + δ(y)/y. Everything
is rounded outward: a returned ε or δ is at least the true one, by a part in 10¹².
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy

Asked = Literal["epsilon", "delta"]
Conversions = dict[Asked, Callable[[float, float], float]]
# These hold of everything.
TRIVIAL: dict[Asked, float] = {"epsilon": math.inf, "delta": 1.0}

_SLACK = 1e-12
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_GRID, _ROUNDS = 401, 4
# Beyond _FAR standard deviations lies a probability of less than _TINY.
_FAR, _TINY = 38.0, 1e-300
# Below this shift a difference of tails is taken as an integral.
_SMALL = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _round_up(value: float, error: float = 0.0) -> float:
    """At least the true value, computed as `value` with an absolute error of at most `error` and few units besides."""
    return math.nextafter(max(value * (1.0 + _SLACK), 0.0) + error, math.inf)


def _probability(value: float) -> float:
    return min(value, 1.0)


def stated_delta(stated: tuple[float, float], epsilon: float) -> float:
    """δ at ε of what is (ε_1, δ_1)-DP: δ_1 + (1-δ_1)(e^{ε_1} - e^ε)/(1 + e^{ε_1}), and δ_1 from ε_1 on.

    It is the largest profile: with probability δ_1 everything is revealed, else an answer is randomised (Kairouz, Oh
    and Viswanath 2015, Theorem 3.4). (ε, 0) is pure ε-DP.
    """
    upper, low = stated
    if epsilon >= upper or low >= 1.0:
        return _probability(low)
    share = -math.expm1(epsilon - upper) / (1.0 + math.exp(-upper))
    return _probability(_round_up(low + (1.0 - low) * share))


def stated_epsilon(stated: tuple[float, float], delta: float) -> float:
    """The smallest ε ≥ 0 with `stated_delta` at most δ; infinite below δ_1."""
    upper, low = stated
    if delta < low or low >= 1.0:
        return math.inf
    if delta == low:
        return upper
    # e^ε = e^{ε_1}(1 - fall).
    fall = (delta - low) / (1.0 - low) * (1.0 + math.exp(-upper)) * (1.0 - _SLACK)
    return _add_below_bound(upper, math.log1p(-fall)) if fall < 1.0 else 0.0


def _add_below_bound(bound: float, logarithm: float) -> float:
    """bound + logarithm, rounded outward, between 0 and the bound."""
    error = _SLACK * bound
    return min(bound, _round_up(bound + logarithm, error)) if bound + logarithm > -error else 0.0


def bounded_range_delta(bound: float, epsilon: float) -> float:
    """δ at ε of an η-bounded-range mechanism: (1 - e^{(ε-η)/2})²/(1 - e^{-η}), and 0 from η on.

    A set A and its complement are two outcomes whose log-ratios a, b are averages, so that a - b ≤ η. With a = t and
    b = t - η, P(A) = (1 - e^{t-η})/(1 - e^{-η}) and Q(A) = e^{-t}P(A), so P(A) - e^ε Q(A) is largest at t = (η+ε)/2;
    the result increases with η. It is attained (Dong, Durfee and Rogers 2020), and at ε = 0 it is tanh(η/4).
    """
    if epsilon >= bound:
        return 0.0
    return _probability(_round_up(math.expm1(0.5 * (epsilon - bound)) ** 2 / -math.expm1(-bound)))


def bounded_range_epsilon(bound: float, delta: float) -> float:
    """The smallest ε ≥ 0 with `bounded_range_delta` at most δ: η + 2 log(1 - √(δ(1 - e^{-η})))."""
    if delta == 0.0:
        return bound
    fall = math.sqrt(-delta * math.expm1(-bound)) * (1.0 - _SLACK)
    return _add_below_bound(bound, 2.0 * math.log1p(-fall))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ at ε of N(0, 1) against N(μ, 1): Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) (Balle and Wang 2018, Theorem 8).

    That is φ(t)(M(t) - M(t+μ)) with t = ε/μ - μ/2 and Mills' ratio M(t) = Φ(-t)/φ(t), which has no tail to lose digits
    in; for small μ the difference is the integral of -M'(u) = 1 - uM(u), an entire function of which eight nodes leave
    less than 1e-20 of it.
    """
    near, far = epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu
    if near > _FAR:
        return _TINY
    # e^ε φ(far) = φ(near).
    density = math.exp(-0.5 * near * near - _LOG_ROOT_TWO_PI)
    if mu < _SMALL:
        nodes = near + 0.5 * mu * (1.0 + _NODES)
        # The error of t is a rounding error of ε/μ; φ and -M' change by at most t + 2 times that, relatively.
        spare = 1e-15 * (far + 1.0) * (abs(near) + 2.0) + 2e-15 * (1.0 + far * far)
        integral = 0.5 * mu * float(_WEIGHTS @ (1.0 - nodes * _mills(nodes)))
        return _probability(_round_up(density * integral * (1.0 + spare)))
    left = float(scipy.special.ndtr(-near))
    value = density * float(_mills(near) - _mills(far)) if near > 0.0 else left - density * float(_mills(far))
    return _probability(_round_up(value, 1e-14 * (1.0 + near * near) * left))


def _mills(at: Any) -> Any:
    return math.sqrt(0.5 * math.pi) * scipy.special.erfcx(at / math.sqrt(2.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 with `gaussian_delta` at most δ; infinite at δ = 0."""
    if delta <= _TINY:
        return math.inf
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return _find_smallest(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, 1.0 + mu * mu)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """δ at ε of ρ-zCDP: the least of e^{(α-1)(αρ-ε)} (1-1/α)^α/(α-1) over α > 1.

    Canonne, Kamath and Steinke (2020), Proposition 12; every α gives a bound, so that the search cannot err inward.
    """

    def log_delta(excess: np.ndarray) -> np.ndarray:
        alpha = 1.0 + excess
        loss, rest = excess * (alpha * rho - epsilon), alpha * np.log1p(1.0 / excess) + np.log(excess)
        return loss - rest + _SLACK * 1e-2 * (excess * (alpha * rho + epsilon) + np.abs(np.log(excess)) + 1.0)

    return _probability(_round_up(math.exp(min(0.0, _minimise(log_delta, 0.5 * max(epsilon / rho, 1e-9))))))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """ε at δ of ρ-zCDP: the least of αρ + log(1-1/α) - log(δα)/(α-1) over α > 1; infinite at δ = 0.

    The same proposition solved for ε. `zcdp_epsilon_textbook` is more.
    """
    if delta == 0.0:
        return math.inf
    tail = -math.log(delta)

    def epsilon(excess: np.ndarray) -> np.ndarray:
        cost, gain = (1.0 + excess) * rho, np.log1p(1.0 / excess)
        spread, share = tail / excess, np.log1p(excess) / excess
        return cost - gain + spread - share + _SLACK * 1e-2 * (cost + gain + spread + share)

    least = _minimise(epsilon, math.sqrt(max(tail, 1e-3) / rho))
    return _round_up(least) if least > 0.0 else 0.0


def zcdp_epsilon_textbook(rho: float, delta: float) -> float:
    """ρ + 2√(ρ log(1/δ)): ε at δ of ρ-zCDP as Bun and Steinke (2016, Proposition 1.3) have it."""
    return _round_up(rho + 2.0 * math.sqrt(-rho * math.log(delta)))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest ρ whose `zcdp_epsilon` at δ is at most ε, rounded inward: what (ε, δ) buys of zCDP.

    Raises ValueError unless 0 < ε < ∞ and 0 < δ < 1, and where that ρ is too small for float64 to find.
    """
    if not (0.0 < epsilon < math.inf and 0.0 < delta < 1.0):
        raise ValueError(f"zCDP meets (epsilon, delta) for epsilon > 0 and 0 < delta < 1, got ({epsilon}, {delta})")
    # ρ ≥ ε²/(4 log(1/δ) + 4ε): the textbook's conversion, which costs more.
    if epsilon**2 / (4.0 * (epsilon - math.log(delta))) < _TINY:
        raise ValueError(f"epsilon = {epsilon} at delta = {delta} buys less of zCDP than float64 can say")
    inverse = _find_smallest(lambda inverse: zcdp_epsilon(1.0 / inverse, delta) <= epsilon, 1.0 / epsilon)
    return 1.0 / inverse


def _minimise(function: Callable[[np.ndarray], np.ndarray], guess: float) -> float:
    """The least value of a function of α - 1 > 0, found on finer and finer grids of log(α - 1)."""
    # Any grid is valid; a guess may overflow.
    centre = math.log(min(max(guess, 1e-150), 1e150))
    low, high = min(centre, 0.0) - 14.0, max(centre, 0.0) + 14.0
    least = math.inf
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _GRID)
        with np.errstate(over="ignore"):
            values = function(np.exp(grid))
        best, step = int(np.argmin(values)), (high - low) / (_GRID - 1)
        least = min(least, float(values[best]))
        low, high = grid[best] - step, grid[best] + step
    return least


def _find_smallest(fits: Callable[[float], bool], guess: float) -> float:
    """The smallest number > 0 from which on `fits` holds, by bisection: the upper end, relatively within 1e-13."""
    upper = guess
    while not fits(upper):
        upper *= 2.0
    lower = 0.0
    while upper - lower > 1e-13 * upper:
        middle = 0.5 * (lower + upper)
        lower, upper = (lower, middle) if fits(middle) else (middle, upper)
    return upper


# Each kind's conversion to ε at a δ, and to δ at an ε.
OF_STATED: dict[Asked, Callable[[tuple[float, float], float], float]] = {
    "epsilon": stated_epsilon,
    "delta": stated_delta,
}
OF_BOUNDED_RANGE: Conversions = {"epsilon": bounded_range_epsilon, "delta": bounded_range_delta}
OF_GAUSSIAN: Conversions = {"epsilon": gaussian_epsilon, "delta": gaussian_delta}
OF_ZCDP: Conversions = {"epsilon": zcdp_epsilon, "delta": zcdp_delta}
