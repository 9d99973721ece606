"""Certifies in balls the privacy of ridge regression with Gaussian noise in its objective.

The notation is that of `kngjax.mechanisms.noise.objective_profiles`.
"""

from flint import arb

from kngjax.accounting.gaussian_in_balls import one_removal
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.balls import ball_of, precision
from kngjax.mechanisms.noise.posterior_in_balls import RidgeSettings

# A budget that is met with less room than so many binary digits tell counts as missed. Public, so this is no output.
_DIGITS = 256


def is_private_in_objective(settings: RidgeSettings, guarantee: Guarantee) -> bool:
    """Whether θ = H^{-1}(X'y + b) with b ~ N(0, I/γ) is certainly as private as this (ε, δ) says: by a bound.

    L = -log(1+μ) + t²/2 - tg with t = |x|r√γ - κh, and g, h ~ N(0, 1). Both stay within ±z but for a probability of
    4Φ(-z), and then |t| ≤ w = √γXR + κz, with κ = X²/λ and R = Y(1 + √(nκ)/2) the largest of all residuals, so that
    L ≤ w²/2 + wz. The other direction has log(1+μ) in place of -log(1+μ), and r/(1+μ) and κ/(1+μ). So it is enough
    that log(1+κ) + w²/2 + wz ≤ ε at 4Φ(-z) = δ.
    """
    with precision(_DIGITS):
        epsilon, delta = one_removal(guarantee)
        tail = arb(2).sqrt() * (delta / 2).erfcinv()
        radius = ball_of(settings.radii.features).sqrt()
        residual = settings.response * (1 + (settings.others * settings.leverage).sqrt() / 2)
        width = ball_of(settings.gamma).sqrt() * radius * residual + settings.leverage * tail
        return bool(settings.leverage.log1p() + width * (width / 2 + tail) <= epsilon)
