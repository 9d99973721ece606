"""Tests the facts that a user's own class declares and a proof relies on, and states them in words."""

from typing import Any

import jax
import numpy as np

from kngjax.core.arrays import float64, is_traced
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.reach import Everywhere
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss, AbstractRowLoss
from kngjax.losses.contradictions import Contradiction, contradictions
from kngjax.mechanisms.base import AbstractMechanism

_OF_A_LOSS = (
    "its gradient is the derivative of its value, and lies in the declared ranges for every record within the bounds"
)
_OF_A_PREDICTOR = (
    "it is convex in x'theta, with a score that never falls as x'theta grows, the derivative of its value, and within "
    "score_interval for every record within the bounds; and its other facts (curvature_bound, value_interval, "
    "curvature_facts, is_smooth ...) hold. kngjax.check_loss tries to contradict most of them"
)
_OF_A_LOSS_BY_A_CHAIN = (
    "its score lies in score_interval, or its value in value_interval, for every record within the bounds; and its "
    "other facts but convexity (is_quadratic, score_step ...) hold. kngjax.check_loss tries to contradict most. That "
    "it is convex is not assumed: if it is not, the density may have modes between which a chain does not move"
)
_OF_A_NORM = "it is a norm, its largest value over a box is that, and its dual, its volume and its draws are its own"
_OF_A_DOMAIN = "it is convex, and its projection, its chords and its extremes are its own"


def is_of_kngjax(part: Any) -> bool:
    """Tells whether a part's class is one of the package, whose docstrings prove its facts."""
    return type(part).__module__.partition(".")[0] == "kngjax"


# Predictors without a bound are tried up to so many times the largest response, and responses without one up to so many
# times the reach of the predictors.
_FAR, _DOUBLINGS = 1e6, 8


def require_declared(mechanism: AbstractMechanism, dimension: int, sampler: Any) -> None:
    """Raises ValueError where a public grid contradicts what a proof takes from a loss that is not kngjax's.

    It tries all x'θ that bounds and Θ allow, and all responses. These are public facts, so nothing is spent. It tries
    the declared intervals, and also convexity and derivatives if a proof or a draw rests on them.

    **Arguments:** `dimension`: d. `sampler`: that draws, or None; all but some Markov chains rest on convexity.
    """
    needs_convexity = _needs_convexity(sampler)
    facts = ("intervals", "convex", "derivatives", "others") if needs_convexity else ("intervals",)
    if found := [one for one in found_contradictions(mechanism, dimension) if one.fact in facts]:
        chains = ""
        # They are asked for true intervals too.
        if needs_convexity and all(one.fact != "intervals" for one in found):
            chains = (
                ". KNG needs no convexity where a Markov chain draws, and nothing is proved of what one releases: "
                "sampler=kngjax.chains.EnsembleWalk()"
            )
        raise ValueError(
            f"{type(mechanism.loss).__name__} is not as it declares within these bounds and this domain, and the proof "
            f"rests on it: {'; '.join(one.words for one in found)}. See kngjax.check_loss{chains}"
        )


def found_contradictions(mechanism: AbstractMechanism, dimension: int) -> tuple[Contradiction, ...]:
    """Searches for what contradicts a loss that is not kngjax's, over all x'θ and responses that public facts allow."""
    loss = mechanism.loss
    if not isinstance(loss, AbstractRowLoss) or is_of_kngjax(loss) or is_traced(*jax.tree.leaves(mechanism)):
        return ()
    predictors, responses, rows = _public_range(mechanism, dimension)
    responses = np.unique(responses[np.isfinite(loss.responses(responses))])
    if not (responses.size and predictors[0] < predictors[1]):
        return ()
    return contradictions(loss, predictors, responses, rows)


def _needs_convexity(sampler: Any) -> bool:
    return getattr(sampler, "needs_convexity", True)


def _public_range(mechanism: AbstractMechanism, dimension: int) -> tuple[tuple[float, float], np.ndarray, np.ndarray]:
    """The ends of x'θ, responses, and the ends of x."""
    bounds, domain, loss = (
        mechanism.intake.bounds_of_rows(dimension),
        getattr(mechanism, "domain", None),
        mechanism.loss,
    )
    given = loss.response_interval(bounds)
    first, last = (-3.0, 3.0) if given is None else (float(given[0]), float(given[1]))
    even = np.linspace(first, last, 13)
    with float64():
        rows = np.asarray(bounds.features(dimension), np.float64)
        reach = (Everywhere() if domain is None else domain).linear_interval(*rows)
        far = _FAR * (1.0 + np.max(np.abs(even)))
        low, high = (float(np.nan_to_num(float(end), posinf=far, neginf=-far)) for end in reach)
    if given is not None:
        return (low, high), even, rows
    widths = 0.5 * (high - low) * 2.0 ** np.arange(_DOUBLINGS + 1)
    return (low, high), np.concatenate([even, 0.5 * (low + high) - widths, 0.5 * (low + high) + widths]), rows


def declared_facts(mechanism: AbstractMechanism, sampler: Any = None) -> tuple[str, ...]:
    """States what a guarantee assumes of each part whose class is not kngjax's, for "Assumed" of a certificate.

    **Arguments:** `sampler`: that draws, or None.
    """
    parts = mechanism, mechanism.loss, getattr(mechanism, "norm", None), getattr(mechanism, "domain", None)
    return tuple(_words(part, sampler) for part in parts if part is not None and not is_of_kngjax(part))


def _words(part: Any, sampler: Any) -> str:
    name = type(part).__name__
    if isinstance(part, AbstractLoss):
        facts = _OF_A_PREDICTOR if isinstance(part, AbstractPredictorLoss) else _OF_A_LOSS
        if isinstance(part, AbstractRowLoss) and not _needs_convexity(sampler):
            facts = _OF_A_LOSS_BY_A_CHAIN
        return f"of {name}, a loss that is not kngjax's: {facts}"
    if isinstance(part, AbstractNorm):
        return f"of {name}, a norm that is not kngjax's: {_OF_A_NORM}"
    if isinstance(part, AbstractDomain):
        return f"of {name}, a domain that is not kngjax's: {_OF_A_DOMAIN}"
    return f"of {name}, a mechanism that is not kngjax's: its draws have the law that its guarantee is stated of"
