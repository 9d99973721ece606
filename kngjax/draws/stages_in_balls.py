"""The budget of AdaOPS's stages in balls: what float64 has planned is checked before it is relied on."""

from fractions import Fraction
from typing import NamedTuple

from flint import arb

from kngjax.accounting.gaussian_in_balls import below, one_removal
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.balls import ball_of, lower_end, precision

# Public, so that a budget which is met with less room than these tell is no output.
_DIGITS = 256


class StagePlan(NamedTuple):
    """Holds the settings of AdaOPS that are public before the data are seen, as fractions.

    **Arguments:** `order`: α. `budget`: R of the last stage. `eigenvalue_shift`, `bound_shift`: by how many deviations
    of its noise one record moves what the first two stages release. `tail`: z. `least_curvature`: h₀.
    """

    order: Fraction
    budget: Fraction
    eigenvalue_shift: Fraction
    bound_shift: Fraction
    tail: Fraction
    least_curvature: Fraction


def keeps_budget(plan: StagePlan, feature_squared: Fraction, guarantee: Guarantee) -> bool:
    """Tells whether all stages certainly are as private as this (ε, δ) says, and h₀ leaves the last stage half of R.

    D_α ≤ T = α(s₁² + s₂²)/2 + R but for events of probability Φ(-z) each, and that is (ε, δ) if
    e^{(α-1)(T-ε)} (1-1/α)^α/(α-1) + 2Φ(-z) ≤ δ (Canonne, Kamath and Steinke 2020, Proposition 12).

    **Arguments:** `feature_squared`: X².
    """
    if plan.order <= 1 or min(plan) <= 0:
        return False
    with precision(_DIGITS):
        epsilon, delta = one_removal(guarantee)
        order, shifts = ball_of(plan.order), plan.eigenvalue_shift**2 + plan.bound_shift**2
        excess, total = order - 1, order * ball_of(shifts) / 2 + ball_of(plan.budget)
        converted = (excess * (total - epsilon) - order * (1 / excess).log1p()).exp() / excess
        spent = _of_covariance(plan, ball_of(feature_squared / plan.least_curvature))
        is_kept = converted + 2 * below(-ball_of(plan.tail)) <= delta
        return bool(is_kept and spent <= ball_of(plan.budget) * 0.51)


def gamma_within(plan: StagePlan, leverage: Fraction, bound: Fraction) -> Fraction:
    """Finds a large γ for which D_α ≤ R for every record of leverage at most μ and residual at most |r|.

    It solves D_α(D‖D') = R as `kngjax.mechanisms.noise.calibration.posterior_sample_gamma` does, which argues it.

    **Arguments:** `leverage`: μ ≤ X²/h₀. `bound`: |r|.
    """
    with precision(_DIGITS):
        mu, order = ball_of(leverage), ball_of(plan.order)
        left = ball_of(plan.budget) - _of_covariance(plan, mu)
        return lower_end(2 * (1 + mu) * (1 - (order - 1) * mu) * left / (order * mu * ball_of(bound) ** 2))


def _of_covariance(plan: StagePlan, leverage: arb) -> arb:
    """D_α of two posteriors whose covariances alone differ: no number for μ ≥ 1/(α-1)."""
    excess = ball_of(plan.order) - 1
    return -((1 - excess * leverage).log() / excess + leverage.log1p()) / 2
