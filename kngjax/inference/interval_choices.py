"""Settles every setting of a plan with intervals by public facts alone."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import exactly, inward
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.inference import mean_plans
from kngjax.inference.covariances import PublishedMoments, Sandwich
from kngjax.inference.interval_plans import AbstractIntervalPlan, Combinations, RegressionPlan
from kngjax.inference.mean_plans import MeanPlan
from kngjax.inference.offers import offer_of, usual_setting
from kngjax.inference.published import mechanism_of
from kngjax.inference.score_laws import SCATTER
from kngjax.inference.score_moments import can_serve
from kngjax.inference.score_variances import SHARE, UsualScores
from kngjax.inference.settings import Scenario
from kngjax.inference.without_intervals import OF_MATRICES, reason
from kngjax.releases.certificate import Certificate
from kngjax.sensitivity import weighted

# The bandwidth over n^{-1/5} and the scale of responses (Koenker 2005, section 3.4, of normal ones at the median).
_BANDWIDTH = 2.1
_NOT_BY_PERSON = "the curvature of the loss in rows that share a vote, or the moments that it publishes, are not served"
_WAYS = {kind.__name__: kind for kind in (Sandwich, PublishedMoments)}


def public_bandwidth(scale: float, num_records: int) -> float:
    """Computes the bandwidth h of the curvature of a quantile loss.

    **Arguments:** `scale`: how far responses scatter, a public guess."""
    return _BANDWIDTH * scale * num_records**-0.2


def interval_plan_of(
    mechanism: Any,
    covariance: Any,
    guess: int | None,
    num_records: int | None,
    setting: Scenario | None = None,
    combinations: Combinations = None,
) -> AbstractIntervalPlan:
    """Settles every setting of a plan by public facts alone.

    **Arguments:** `covariance`: None for `Sandwich()`. `guess`: of n. `num_records`: n, where it is public and known.
    `setting`: what is assumed, None for what is usual. `combinations`: A, of the numbers whose variances are released.

    Raises ValueError or TypeError for what is not served, and under add_remove for any n: shares of ε, bandwidths and
    refusals follow from it, and would tell neighbours apart.
    """
    if num_records != mechanism.adjacency.public_count(num_records):
        raise ValueError(
            "under add_remove the number of records is private, and what is chosen by it tells it: give a public guess "
            "of it, WithIntervals(..., num_records=10_000)"
        )
    _require_served(mechanism)
    count = num_records if guess is None else guess
    covariance = Sandwich() if covariance is None else covariance
    if not isinstance(covariance, Sandwich):
        are_numbers = isinstance(covariance, list | tuple) or hasattr(covariance, "__array__")
        raise TypeError(
            f"covariance must be kngjax.Sandwich(...) or None, not {covariance!r}"
            f"{f': {OF_MATRICES}' if are_numbers else ''}"
        )
    if not mechanism.loss.has_response:
        return _of_mean(mechanism, covariance)
    # What a mechanism publishes of H has no other way to be known.
    way = PublishedMoments() if mechanism.noise.publishes_moments else covariance
    if isinstance(way, Sandwich):
        way.check(mechanism)
    bandwidth = _bandwidth(mechanism, way.bandwidth, count)
    setting = usual_setting(mechanism, count) if setting is None else setting
    offer = offer_of(setting, way, float(mechanism.epsilon), count, bandwidth)
    of_hessian = Fraction(0)
    if isinstance(way, Sandwich):
        way, of_hessian = dataclasses.replace(way, share=offer.share), exactly(offer.share)
    point, (first, second) = _divided(mechanism, of_hessian, exactly(SHARE))
    law = None if setting is None else setting.law
    ratio = None if law is None or law.curvature <= 0.0 else law.score_square / law.curvature
    if ratio is not None:
        ratio *= weighted.largest(mechanism.bounds)
    return RegressionPlan(point, way, (first, second), bandwidth, UsualScores(ratio, count), combinations, offer.noise)


def plan_as_kept(written: dict[str, Any], certificate: Certificate) -> AbstractIntervalPlan | None:
    """Reads what `settings` of a plan wrote; None of what other versions wrote.

    **Arguments:** `certificate`: of the first release.
    """
    if written["type"] == "MeanPlan":
        return MeanPlan(mechanism_of(certificate.mechanism), written["share"], written["epsilon"])
    covariance = dict(written.get("covariance") or {})
    kind = _WAYS.get(covariance.pop("type", ""))
    if kind is None or "epsilons" not in written:
        return None
    for_hessian, for_variances = written["epsilons"]
    combinations = written["combinations"]
    return RegressionPlan(
        mechanism_of(certificate.mechanism),
        kind(**covariance),
        (for_hessian, for_variances),
        written["bandwidth"],
        UsualScores(written["usual"], written["num_records"]),
        None if combinations is None else np.array(combinations, np.float64),
        written["noise_of_hessian"],
        written["cuts"],
    )


def _divided(mechanism: Any, *shares: Fraction) -> tuple[Any, tuple[float, ...]]:
    """Divides ε: the mechanism at what the shares leave, and what each of these has, in all no more than ε."""
    whole = exactly(float(mechanism.epsilon))
    later = tuple(inward(whole * share) for share in shares)
    first = inward(whole - sum((exactly(one) for one in later), Fraction(0)))
    if first <= 0.0:
        raise ValueError("the shares of epsilon for the intervals leave nothing for the estimate")
    return mechanism.proved_at(first), later


def _of_mean(mechanism: Any, covariance: Sandwich) -> MeanPlan:
    if covariance.bandwidth is not None:
        raise ValueError("a mean has no curvature to estimate: leave bandwidth out")
    share = mean_plans.SHARE if covariance.share is None else covariance.share
    point, (rest,) = _divided(mechanism, exactly(share))
    return MeanPlan(point, share, rest)


def _require_served(mechanism: Any) -> None:
    name, loss, dimension = type(mechanism).__name__, mechanism.loss, mechanism.dimension
    if dimension is None and mechanism.has_regressors:
        raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
    is_mean = not loss.has_response and loss.gradient_slope is not None
    is_regression = mechanism.has_regressors and can_serve(loss)
    if not (mechanism.noise.has_known_error and (is_mean or is_regression)):
        raise ValueError(reason(name, type(loss).__name__))
    if dimension is None:
        raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
    if is_mean and mechanism.adjacency is Adjacency.ADD_REMOVE:
        raise ValueError("under add_remove n is private, and intervals of a mean need it: adjacency='replace'")
    if mechanism.bounds.of_persons and is_mean and not mechanism.bounds.has_one_vote:
        raise ValueError("of a mean by persons intervals need most_rows=1, so that each person counts alike")
    is_weighted = mechanism.bounds.weight is not None and not (is_mean and mechanism.bounds.has_one_vote)
    if is_weighted and (loss.is_homogeneous or is_mean or mechanism.noise.publishes_moments):
        if mechanism.bounds.of_persons:
            raise ValueError(
                f"{name} with {type(loss).__name__} has no intervals by persons: {_NOT_BY_PERSON}. Robust and least "
                "squares, logistic and Poisson regressions by KNG or ObjectivePerturbation have some"
            )
        raise ValueError(
            f"{name} with {type(loss).__name__} has no intervals here where records have weights: leave "
            "Bounds(..., weight=...) out"
        )
    if getattr(mechanism, "pointwise_sensitivity", False):
        raise ValueError("with pointwise_sensitivity the law of the gradient is not known: leave it out")
    if mechanism.noise.publishes:
        # Known by what a release on a grid publishes; the number of records decides nothing of that.
        if proved_draw(mechanism, Schema(dimension, None)) is None:
            raise ValueError(
                f"{name} publishes what its intervals are made of where every rounding is in its proof, and with these "
                "bounds it is not: leave the hull out"
            )
        return
    # Says so where the law is not known.
    mechanism.noise.of_error(dimension, {})


def _bandwidth(mechanism: Any, bandwidth: float | None, count: int | None) -> float | None:
    if not mechanism.loss.score_is_piecewise_constant:
        if bandwidth is not None:
            raise ValueError(f"{type(mechanism.loss).__name__} has a curvature of its own: leave bandwidth out")
        return None
    bounds = mechanism.bounds
    if bandwidth is None and bounds.y_lower is None:
        raise ValueError(
            "without bounds of y nothing says how near responses count for the curvature of the quantile loss: give a "
            "covariance with a bandwidth, in units of y, like kngjax.Sandwich(bandwidth=0.5), or public bounds of the "
            "responses"
        )
    if bandwidth is None and count is not None:
        bandwidth = public_bandwidth(SCATTER * (float(bounds.y_upper) - float(bounds.y_lower)), count)
    if bandwidth is None and mechanism.adjacency is Adjacency.ADD_REMOVE:
        raise ValueError(
            "the curvature of the quantile loss needs a bandwidth, in units of y, kngjax.Sandwich(bandwidth=0.5), or a "
            "public guess of n to make one of, WithIntervals(..., num_records=10_000)"
        )
    # Under replace n is known when records are, and before any will do.
    return 1.0 if bandwidth is None else float(bandwidth)
