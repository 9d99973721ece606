"""States why some releases have no intervals: intervals of these are refused with the reason."""

from typing import Any

_SECOND_RELEASE = "standard errors of the records would be a second release without a guarantee"

# By the name of a mechanism.
_OF_MECHANISMS = {
    "PrivateIRLS": (
        "the law of the last of its iterates, each made of the noise of those before, is not known: of a median "
        "regression take KNG with QuantileLoss(0.5) or PseudoHuberLoss"
    ),
    "PrivateQuantile": (
        "of one quantile take kngjax.QuantileInterval(tau, bounds, epsilon, adjacency), and of several one for each: "
        "from joint quantiles no interval of known level follows"
    ),
    "QuantileInterval": "it releases an interval itself: kngjax.release(mechanism, y=values).intervals()",
    "KNormMechanism": (
        "a sum is of these records alone, and noise.deviations says how far it may be off, as conf_int() does of a "
        "study's: of a mean, statistic='mean', there are some"
    ),
    "GeometricMechanism": (
        "its counts are of these records alone: noise.deviations says how far each may be off, as conf_int() does of "
        "a study's"
    ),
}
# By the name of what is asked for an interval and is no release.
_OF_OTHERS = {
    "Draws": (
        "research draws are for the owner alone, and their spread is that of noise for privacy, without the error of "
        "sampling"
    ),
    "NonprivateFit": _SECOND_RELEASE,
    "list": (
        "each repeated release costs its epsilon again, and the spread of several is that of noise for privacy alone: "
        "release one with what its intervals are made of, kngjax.WithIntervals(mechanism)"
    ),
    "ndarray": "numbers without a certificate do not say how they were made: give a release",
}
_OF_OTHERS["tuple"] = _OF_OTHERS["list"]
OF_MATRICES = (
    "matrices of one's own would be put in without their noise, and such intervals hold too seldom: the noise of "
    "released ones is drawn again"
)


def reason(mechanism: str, loss: str = "") -> str:
    """Says why releases of a mechanism of that name have no intervals. **Arguments:** `loss`: the name of its loss."""
    given = f" with {loss}" if loss else ""
    why = _OF_MECHANISMS.get(
        mechanism, f"they are of means and of regressions whose noise is known: KNG and the like; {_SECOND_RELEASE}"
    )
    return f"{mechanism}{given} has no intervals here: {why}"


def refusal_of(asked: Any) -> TypeError:
    """Returns the error for intervals of anything that is no release."""
    name = type(asked).__name__
    why = _OF_OTHERS.get(name, "give what kngjax.release returns")
    return TypeError(f"intervals are of a release, and a {name} is none: {why}")
