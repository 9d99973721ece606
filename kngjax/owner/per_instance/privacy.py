"""Per-instance differential privacy of a mechanism on given data, person by person (Wang 2019)."""

from typing import Any

import narwhals as nw
import numpy as np

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data import weights
from kngjax.data.records import QuadraticSummary, Records
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.mechanisms.gaussian import AbstractGaussianMechanism
from kngjax.mechanisms.parameters import check_delta
from kngjax.owner.per_instance import everyone, leave_one_out, ridge
from kngjax.owner.per_instance.chunks import by_chunks
from kngjax.owner.per_instance.everyone import ForAll
from kngjax.owner.per_instance.pairs_of_laws import ShiftPair
from kngjax.owner.per_instance.report import PerInstanceReport, broadcast_numbers, epsilons_at

# Each of these is as costly as a person of a smooth loss.
_MOST_TRIALS = 256


def per_instance_privacy(
    mechanism: AbstractMechanism,
    X: Any,
    y: Any,
    targets: Any = None,
    delta: Any = 1e-6,
    *,
    method: str = "exact",
) -> PerInstanceReport:
    """Computes each person's (ε, δ), by which the laws with and without the person differ. Owner-only.

    Definition 2 of Wang (2019), with the exact profiles of `kngjax.mechanisms.noise.gaussian_profiles` where the paper
    has tail bounds. A report depends on all of the data: it must not be published, nor shown to the people in it.

    For `adjacency="replace"` the number is still about removing this person from the data, or adding the person: an
    exchange depends on the other person too. By the triangle inequality for (ε, δ) an exchange costs at most a removal
    and an addition.

    **Arguments:**

    - `mechanism`: `PosteriorSample` or `OutputPerturbation`.
    - `X`, `y`: private records, as for `prepare`.
    - `targets`: None for everybody in the data, whose removal is compared; or (X, y) of people outside of the data, in
        the same form and clipped to the same bounds, whose addition is compared.
    - `delta`: δ, strictly between 0 and 1.
    - `method`: for losses other than the squared: "exact", by a minimiser without each person, O(n) a person; or
        "first_order", an approximation. Both are of minimisers to rounding; a mechanism's own search stops at a public
        tolerance, which is not told apart here.

    Raises ValueError for bad data, targets of another width, singular designs, a loss that is not kngjax's and not what
    it declares, and mechanisms of which no per-instance profile is known.
    """
    delta = check_delta(delta)
    if not isinstance(mechanism, AbstractGaussianMechanism):
        raise ValueError(
            f"no per-instance profile is known for {type(mechanism).__name__}: give PosteriorSample or "
            "OutputPerturbation (metric='hessian_squared' has the law of objective perturbation with Gaussian noise)"
        )
    if method not in leave_one_out.METHODS:
        raise ValueError(f"method must be one of {', '.join(leave_one_out.METHODS)}, got {method!r}")
    weights.refuse(mechanism.bounds.weight, "per_instance_privacy")
    records = mechanism.intake.records(X, y)
    people = records if targets is None else _targets(mechanism, targets, records.dimension, X)
    data = mechanism.intake.summarise(records)
    gamma = _gamma(mechanism, records.dimension)
    log_delta = float(np.log(delta))
    if isinstance(data, QuadraticSummary):
        fit = ridge.design(data.gram, data.moment, mechanism.regularization)
        influence = ridge.influences(people.x, people.y, fit, targets is None)
        pair = ridge.output_perturbation(influence, gamma, mechanism.metric)
        leverage, residual = influence.leverage, influence.residual
        for_all = _ridge_for_all(mechanism, fit, gamma, log_delta)
    else:
        loss = _smooth_loss(mechanism)
        require_declared(mechanism, records.dimension, None)
        theta = leave_one_out.minimiser(loss, records, mechanism.regularization)
        outside = None if targets is None else people
        moved = leave_one_out.moves(loss, records, mechanism.regularization, theta, outside, method)
        pair = ShiftPair(np.sqrt(gamma) * np.linalg.norm(moved.move, axis=1))
        leverage, residual = moved.leverage, moved.residual
        for_all = _smooth_for_all(mechanism, records, theta, gamma, log_delta, method)
    pair = broadcast_numbers(pair, len(people.y))
    worst_case = mechanism.epsilon_at(delta, records.dimension)
    may_join = mechanism.max_records is None or len(records.y) < float(mechanism.max_records)
    if worst_case is not None and may_join and mechanism.adjacency is Adjacency.ADD_REMOVE:
        # The guarantee covers whoever might join.
        for_all = ForAll(for_all.attained, min(for_all.bound, worst_case), for_all.method)
    change = "each person added to the data" if targets is not None else "each person removed from the data"
    if mechanism.adjacency is Adjacency.REPLACE:
        change += " (and not exchanged for another)"
    return PerInstanceReport(
        delta=float(delta),
        epsilon=epsilons_at(pair, delta),
        leverage=leverage,
        residual=residual,
        pair=pair,
        for_all=for_all,
        worst_case=worst_case,
        mechanism=type(mechanism).__name__,
        change=change,
        approximate=method != "exact" and not isinstance(data, QuadraticSummary),
    )


def _names(table: Any) -> list[str] | None:
    native = nw.from_native(table, eager_only=True, pass_through=True)
    return list(native.columns) if isinstance(native, nw.DataFrame) else None


def _targets(mechanism: AbstractMechanism, targets: Any, dimension: int, X: Any) -> Records:
    if not isinstance(targets, tuple | list) or len(targets) != 2:
        raise ValueError("targets must be a pair (X, y) of people outside of the data, or None for those in them")
    given, expected = _names(targets[0]), _names(X)
    if given is not None and expected is not None and given != expected:
        raise ValueError("the columns of the targets must be those of X, in the same order")
    people = mechanism.intake.records(*targets)
    if people.dimension != dimension:
        raise ValueError(
            f"the targets give {people.dimension} coefficients (intercept included), the data {dimension}: they must "
            "have the same columns"
        )
    return people


def _gamma(mechanism: AbstractGaussianMechanism, dimension: int) -> float:
    with float64():
        gamma = float(mechanism.gamma_for(dimension))
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"this mechanism has no noise scale for {dimension} coefficients: give a larger regularization"
        )
    return gamma


def _smooth_loss(mechanism: AbstractGaussianMechanism) -> AbstractPredictorLoss:
    assert isinstance(mechanism.loss, AbstractPredictorLoss)
    return mechanism.loss


def _ridge_for_all(
    mechanism: AbstractGaussianMechanism, fit: ridge.RidgeFit, gamma: float, log_delta: float
) -> everyone.ForAll:
    bounds, loss = mechanism.bounds, _smooth_loss(mechanism)
    records, how = everyone.candidates(bounds, loss, everyone.directions(fit))
    complete = how.startswith("all") and bounds.hull is None
    tried = ridge.influences(records.x, records.y, fit, inside=False)
    pair = ridge.output_perturbation(tried, gamma, mechanism.metric)
    attained = float(np.max(epsilons_at(broadcast_numbers(pair, len(records.y)), np.exp(log_delta))))
    bound = np.inf
    if mechanism.metric == "hessian":
        bound = everyone.posterior_bound(bounds, fit, gamma, tried, log_delta, complete)
    elif mechanism.metric == "identity":
        bound = everyone.shift_bound(bounds, fit, gamma, tried, log_delta, complete)
    return everyone.ForAll(attained, bound, how)


def _smooth_for_all(
    mechanism: AbstractGaussianMechanism,
    records: Records,
    theta: np.ndarray,
    gamma: float,
    log_delta: float,
    method: str,
) -> everyone.ForAll:
    loss, ridge_term = _smooth_loss(mechanism), float(mechanism.regularization)
    with float64():
        hessian = np.array(loss.hessian(theta, records))
    towards = np.vstack([np.linalg.eigh(hessian)[1].T, theta])
    tried, how = everyone.candidates(mechanism.bounds, loss, towards, _MOST_TRIALS)
    moved = leave_one_out.moves(loss, records, ridge_term, theta, tried, method)
    shift = np.sqrt(gamma) * float(np.max(np.linalg.norm(moved.move, axis=1)))
    most = everyone.smooth_shift_bound(mechanism.bounds, loss, theta, ridge_term, gamma)
    pair = ShiftPair(np.array([shift, most]))
    attained, bound = by_chunks(ShiftPair.epsilon, pair, np.float64(log_delta))
    return everyone.ForAll(float(attained), float(bound), how)
