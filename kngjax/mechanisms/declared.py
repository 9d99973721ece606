"""What a proof takes from parts that are not kngjax's: the facts that a user's own class declares, in words."""

from typing import Any

from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss
from kngjax.mechanisms.base import AbstractMechanism

_OF_A_LOSS = (
    "its gradient is the derivative of its value, and lies in the declared ranges for every record within the bounds"
)
_OF_A_PREDICTOR = (
    "it is convex in x'theta, with a score that never falls as x'theta grows, the derivative of its value, and within "
    "score_interval for every record within the bounds; and its other facts (curvature_bound, value_interval, "
    "is_smooth ...) hold. kngjax.check_loss tries to contradict them"
)
_OF_A_NORM = "it is a norm, its largest value over a box is that, and its dual, its volume and its draws are its own"
_OF_A_DOMAIN = "it is convex, and its projection, its chords and its extremes are its own"


def is_of_kngjax(part: Any) -> bool:
    """Whether a part's class is one of the package, whose facts are proved in its docstrings."""
    return type(part).__module__.partition(".")[0] == "kngjax"


def declared_facts(mechanism: AbstractMechanism) -> tuple[str, ...]:
    """Says of each part whose class is not kngjax's what a guarantee takes from it, for "Assumed" of a certificate."""
    parts = mechanism, mechanism.loss, getattr(mechanism, "norm", None), getattr(mechanism, "domain", None)
    return tuple(_words(part) for part in parts if part is not None and not is_of_kngjax(part))


def _words(part: Any) -> str:
    name = type(part).__name__
    if isinstance(part, AbstractLoss):
        facts = _OF_A_PREDICTOR if isinstance(part, AbstractPredictorLoss) else _OF_A_LOSS
        return f"of {name}, a loss that is not kngjax's: {facts}"
    if isinstance(part, AbstractNorm):
        return f"of {name}, a norm that is not kngjax's: {_OF_A_NORM}"
    if isinstance(part, AbstractDomain):
        return f"of {name}, a domain that is not kngjax's: {_OF_A_DOMAIN}"
    return f"of {name}, a mechanism that is not kngjax's: its draws have the law that its guarantee is stated of"
