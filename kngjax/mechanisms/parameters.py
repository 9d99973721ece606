"""Checks of the public numbers and parts of mechanisms, each with an error that says what the part is for."""

import math
import numbers
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import is_traced, parameter, require_moderate
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss

LARGEST_SENSIBLE_EPSILON = 100.0
# Noise of far smaller ones is beyond float64's numbers, and a release would fail after it was paid for.
_SMALLEST_EPSILON = 1e-100


def check_epsilon(epsilon: Any, allow_large_epsilon: bool | None) -> Any:
    """ε as a float64 array.

    **Arguments:** `allow_large_epsilon`: as of what is called; None where it has no such argument, and allows none.

    Raises TypeError for what is no real number, ValueError for ε ≤ 0, NaN, infinities, for ε < 10⁻¹⁰⁰, and for ε > 100
    unless allowed.
    """
    if is_traced(epsilon):
        return epsilon
    real = isinstance(epsilon, numbers.Real) and not isinstance(epsilon, bool | np.bool_)
    if isinstance(epsilon, np.ndarray | jax.Array):
        real = epsilon.ndim == 0 and np.dtype(epsilon.dtype).kind in "fiu"
    if not real:
        raise TypeError(f"epsilon must be one positive real number, got {epsilon!r}")
    try:
        number = float(epsilon)
    except OverflowError:
        number = math.inf
    if math.isnan(number) or math.isinf(number) or number <= 0:
        raise ValueError(f"epsilon must be positive and finite, got {number}")
    if number < _SMALLEST_EPSILON:
        raise ValueError(f"epsilon = {number:g} asks for noise beyond float64's numbers: give at least 1e-100")
    if number > LARGEST_SENSIBLE_EPSILON and not allow_large_epsilon:
        instead = f"give at most {LARGEST_SENSIBLE_EPSILON:g}"
        if allow_large_epsilon is not None:
            instead = "if this is an experiment, say allow_large_epsilon=True"
        raise ValueError(
            f"epsilon = {number:g} promises nothing that anybody would call privacy (odds may change by e^{number:g}); "
            f"{instead}"
        )
    return np.asarray(number)


def whole_epsilon(epsilon: Any) -> Fraction:
    """Gives the exact ε of several releases together, to be divided among them.

    Raises as `check_epsilon` of all of it, which allows no large one: a part of what is too large may not be.
    """
    _ = check_epsilon(require_part("epsilon", epsilon), None)
    return exactly(epsilon if isinstance(epsilon, Fraction) else float(epsilon), "epsilon")


def check_delta(delta: Any) -> Any:
    """δ as a float64 array. Raises TypeError for what is no real number, ValueError unless 0 < δ < 1."""
    if is_traced(delta):
        return delta
    number = require_positive("delta", delta, "a probability, far below 1/n")
    if float(number) >= 1.0:
        raise ValueError(
            f"delta must lie strictly between 0 and 1, got {float(number)}: with delta = 1 nothing is kept"
        )
    return number


def require_positive(name: str, value: Any, meaning: str) -> Any:
    """A positive and finite number as a float64 array; raises TypeError or ValueError that tell what it is for."""
    if is_traced(value):
        return value
    if value is None:
        raise ValueError(f"{name} is missing: give {meaning}")
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be one real number: {meaning}; got {value!r}")
    number = float(array)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}: give {meaning}")
    return np.asarray(number)


def check_count(name: str, value: Any, meaning: str) -> Any:
    """A whole number, at least 1, as a float64 array; raises TypeError or ValueError that tell what it is for."""
    number = require_positive(name, value, meaning)
    if not is_traced(number) and (float(number) < 1.0 or float(number) != math.floor(float(number))):
        raise ValueError(f"{name} must be a whole number, at least 1, got {float(number)}: give {meaning}")
    return number


def require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raises ValueError unless the value is one of these words."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def as_centre(centre: Any, dimension: int | None) -> Any:
    """A public point of R^d as an array, None as it is.

    Raises ValueError for what has not one number a coefficient, and for numbers that float64 cannot square.
    """
    if centre is None or is_traced(centre):
        return centre
    given = centre
    try:
        centre = parameter(given)
    except (TypeError, ValueError):
        centre = None
    if centre is None or np.ndim(centre) != 1:
        raise ValueError(
            "centre must have one public number a coefficient, the intercept first, like [6.5, 0.0, 0.0]; got "
            f"{given!r}"
        )
    if dimension is not None and len(centre) != dimension:
        raise ValueError(
            f"centre has {len(centre)} numbers, and there are {dimension} coefficients, intercept included: give one "
            "each"
        )
    if not np.all(np.isfinite(np.asarray(centre))):
        raise ValueError(f"centre must be finite, got {np.asarray(centre)}")
    require_moderate("the centre", centre)
    return centre


def require_part(name: str, value: Any) -> Any:
    """The part; raises ValueError where it was left out, TypeError where it is no such part."""
    kinds = {"bounds": Bounds, "loss": AbstractLoss, "domain": AbstractDomain}
    if value is not None and name in kinds and not isinstance(value, kinds[name]):
        examples = {
            "bounds": "kng.Bounds(x=(lower, upper))",
            "loss": "kng.QuantileLoss(tau=0.5)",
            "domain": "kng.Box(-10, 10)",
        }
        description = f"the class {value.__name__}: call it" if isinstance(value, type) else f"a {type(value).__name__}"
        raise TypeError(f"{name} must be an object like {examples[name]}, not {description}")
    if value is not None:
        return value
    reasons = {
        "loss": "loss is missing: give, for instance, QuantileLoss(tau=0.5)",
        "levels": "levels are missing: give several levels in increasing order, like [0.1, 0.25, 0.5, 0.75, 0.9]",
        "tau": "tau is missing: give the quantile's level, like 0.5, or a list of levels in increasing order",
        "bounds": "bounds are missing: the proof needs public bounds of one record, Bounds(x=(lower, upper), ...)",
        "domain": (
            "domain is missing: over all of R^d the density need not be integrable (the gradient norm of a quantile, "
            "Huber or logistic loss is bounded), so no mechanism is defined. Give L1Ball, L2Ball, Box, or BaseMeasure "
            "of a proper distribution"
        ),
        "epsilon": "epsilon is missing: give the privacy parameter, a positive number",
    }
    raise ValueError(reasons[name])


def order_domain(domain: Any, bounds: Bounds) -> Any:
    """The domain, one by name with its coefficients in the order of the bounds; raises TypeError for what is none."""
    return None if domain is None else require_part("domain", domain).in_order_of(bounds.coefficients)


def rounded_up(number: int | float) -> str:
    """Rounds a number up to two digits, as text."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    rounded = math.ceil(number / step) * step
    return f"{rounded:,.0f}" if step >= 1.0 else f"{rounded:.6g}"
