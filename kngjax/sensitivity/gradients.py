"""Computes Δ from declared facts, bounds, norm and adjacency.

The loss declares an interval [m_j, M_j] that contains coordinate j of one record's gradient, for every record within
the bounds and every θ ∈ Θ. `kngjax.data.prepare` enforces the bounds. So between neighbouring data sets coordinate j of
the gradient changes by at most

    replace:     w_j = M_j - m_j          (one contribution in the box is exchanged for another)
    add_remove:  w_j = max(|m_j|, |M_j|)  (one contribution comes or goes)

Proof: `docs/proofs/sensitivities.md`.

The box |v_j| ≤ w_j contains every change, and also corners that no change reaches. `kngjax.sensitivity.change_sets`
lists the extreme points of the changes, and `kngjax.sensitivity.pointwise` has w at one θ.

The functions run on arrays and tracers. `Sensitivity` holds their result in numbers and words.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Vector, float64
from kngjax.core.compiling import Compiled
from kngjax.data.bounds import Bounds
from kngjax.geometry import norms
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.reach import Reach
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss
from kngjax.sensitivity import weighted
from kngjax.sensitivity.change_sets import (
    LARGEST_NUMBER,
    SensitivitySet,
    change_points,
    changes_within,
    longest_change,
    number_of_points,
)


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """States how much a score can change between neighbouring data sets, and why.

    **Arguments:** `value`: Δ, in the units of the score. `derivation`: the argument in words, with its numbers.
    """

    value: float
    derivation: str


# Compiled: each function is one small program in the place of dozens for its single operations.
_compiled = functools.partial(Compiled, static_argnames=("adjacency", "dimension"))


# Of the change w of each coordinate of ∇ℓ_n between neighbouring data sets, and of scores.
gradient_changes = _compiled(weighted.gradient_changes)
_score_range = _compiled(weighted.score_range)


def _length_of_change(loss: AbstractLoss, bounds: Bounds, adjacency: Adjacency) -> Float[Array, ""]:
    """The radius of the Euclidean ball of all changes, where one record's gradient has one length."""
    assert loss.gradient_length is not None
    return weighted.times(bounds, loss.gradient_length * (2.0 if adjacency is Adjacency.REPLACE else 1.0))


def default_norm(loss: AbstractLoss, changes: Vector) -> norms.AbstractNorm:
    """Returns the norm whose ball is the box w of gradient changes, or the l2 ball if the changes fill one."""
    return norms.WeightedLInf(changes) if loss.gradient_length is None else norms.L2()


def sensitivity_points(
    loss: AbstractLoss, bounds: Bounds, domain: Reach, adjacency: Adjacency, dimension: int
) -> Float[Array, "points dimension"] | None:
    """Lists points whose hull with their negatives is that of all changes of ∇ℓ_n, shape (points, d).

    Returns None if the loss has no such points, or more than `kngjax.sensitivity.change_sets.LARGEST_NUMBER`; their
    number doubles with every column.
    """
    if weighted.why_no_points(loss, bounds, adjacency) is not None:
        return None
    score = _score_range(loss, bounds, domain, adjacency, dimension)
    return change_points(bounds.feature_blocks(dimension), score, adjacency)


@_compiled
def gradient_sensitivity(
    loss: AbstractLoss,
    bounds: Bounds,
    domain: Reach,
    adjacency: Adjacency,
    norm: norms.AbstractNorm | None,
    dimension: int,
) -> Float[Array, ""]:
    """Δ: sup ‖∇ℓ_n(θ; D) - ∇ℓ_n(θ; D')‖ over neighbours, or an upper bound of it, in the norm (None: the default)."""
    if loss.gradient_length is not None:
        return _length_of_change(loss, bounds, adjacency) * (norm or norms.L2()).largest_over_l2_ball(dimension)
    changes = gradient_changes(loss, bounds, domain, adjacency, dimension)
    points = None if norm is None else sensitivity_points(loss, bounds, domain, adjacency, dimension)
    return longest_change(norm, changes, points)


def sensitivity_set(
    loss: AbstractLoss,
    bounds: Bounds,
    domain: AbstractDomain,
    adjacency: Adjacency | str,
    dimension: int | None = None,
) -> SensitivitySet:
    """The set of all possible changes of ∇ℓ_n between neighbouring data sets, for norms that are made to fit it.

    **Arguments:** as for `KNG`, all public. `dimension`: d with the intercept, where scalar bounds leave it open.

    Raises ValueError for an open dimension, for changes without limit, and where the set has too many vertices.
    """
    parsed = Adjacency.parse(adjacency)
    dimension = dimension or bounds.dimension or domain.dimension
    if dimension is None:
        raise ValueError("scalar bounds leave the number of coefficients open: pass dimension (intercept included)")
    if loss.needs_response_bounds and bounds.y_lower is None:
        raise ValueError(f"{type(loss).__name__} needs public bounds of the response, Bounds(..., y=(lower, upper))")
    if (reason := weighted.why_no_points(loss, bounds, parsed)) is not None:
        raise ValueError(reason)
    with float64():
        points = sensitivity_points(loss, bounds, domain, parsed, dimension)
        if points is None:
            raise ValueError(
                f"the changes of {dimension} coefficients have more than {LARGEST_NUMBER} extreme points: take the "
                "weighted l_inf norm of the box around them, norm=None, or declare a tighter Bounds(..., hull=...)"
            )
        return SensitivitySet(np.array(points), parsed)


@functools.partial(Compiled, static_argnames="dimension")
def hessian_sensitivity(loss: AbstractPredictorLoss, bounds: Bounds, domain: Reach, dimension: int) -> Float[Array, ""]:
    """λ = W·sup ρ''·sup ‖x‖_2²: the largest eigenvalue of one record's Hessian w·ρ''·xx' over Θ and the bounds."""
    curvature = loss.curvature_bound(domain.linear_interval(*bounds.features(dimension)))
    return weighted.times(bounds, curvature) * _longest_features(bounds, dimension)


@functools.partial(Compiled, static_argnames="dimension")
def _longest_features(bounds: Bounds, dimension: int) -> Float[Array, ""]:
    """sup ‖x‖_2²: convex, so largest at vertices, block by block."""
    return sum(
        (jnp.max(jnp.sum(jnp.square(jnp.asarray(block)), axis=1)) for block in bounds.feature_blocks(dimension)),
        start=jnp.zeros(()),
    )


@functools.partial(jax.jit, static_argnames="dimension")
def feature_radius(bounds: Bounds, dimension: int) -> Float[Array, ""]:
    """X = sup ‖x‖_2 of one record, the intercept included."""
    return jnp.sqrt(_longest_features(bounds, dimension))


@jax.jit
def response_radius(bounds: Bounds) -> Float[Array, ""]:
    """Y = sup |y| of one record; the bounds must have a response."""
    return jnp.maximum(jnp.abs(jnp.asarray(bounds.y_lower)), jnp.abs(jnp.asarray(bounds.y_upper)))


def value_sensitivity(
    loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, adjacency: Adjacency, dimension: int
) -> Float[Array, ""]:
    """Δ of ℓ_n: W times the range of one record's loss over Θ and the bounds (replace), or half of it (add_remove).

    Proof: `docs/proofs/kng.md`. One record more multiplies the density by exp(-cℓ(θ)), whose logarithm varies over Θ by
    c times the range; an exchange does so twice.
    """
    smallest, largest = loss.value_range(bounds, domain, dimension)
    return weighted.times(bounds, largest - smallest) * (1.0 if adjacency is Adjacency.REPLACE else 0.5)


def quantile_changes(tau: Float[Any, " quantiles"], adjacency: Adjacency) -> Float[Array, " quantiles"]:
    """Bounds the change of each #{y ≤ θ} - nτ_j, the gradient of the quantile loss with an intercept alone.

    One record adds -τ_j or 1-τ_j. So the bound is 1 (replace) or max(τ_j, 1-τ_j) (add_remove).
    """
    return changes_within((-jnp.asarray(tau), 1.0 - jnp.asarray(tau)), adjacency)


def joint_quantile_sensitivity(tau: Float[Any, " quantiles"], adjacency: Adjacency) -> Float[Array, ""]:
    """Δ of Σ_{j=1}^{m+1} |v_j - v_{j-1}| with v_j = #{y ≤ θ_j} - nτ_j and v_0 = v_{m+1} = 0.

    Δ = 2 under replace, and 2(1 - min p) under add_remove, with p_j = τ_j - τ_{j-1}, τ_0 = 0 and τ_{m+1} = 1. Proof:
    `docs/proofs/quantiles.md`. With one level this is twice `quantile_changes`, as the score is twice |#{y ≤ θ} - nτ|.
    """
    if adjacency is Adjacency.REPLACE:
        return jnp.asarray(2.0)
    ends = jnp.concatenate([jnp.zeros(1), jnp.asarray(tau), jnp.ones(1)])
    return 2.0 * (1.0 - jnp.min(jnp.diff(ends)))


def explain_gradient_sensitivity(
    loss: AbstractLoss,
    bounds: Bounds,
    domain: Reach,
    adjacency: Adjacency,
    norm: norms.AbstractNorm,
    changes: np.ndarray,
    value: float,
) -> str:
    """The derivation of a gradient sensitivity in words; float64."""
    exchange = adjacency is Adjacency.REPLACE
    in_norm = f"In the {type(norm).__name__} norm no such change is longer than {value:.6g}."
    widths = "w = (" + ", ".join(f"{change:.6g}" for change in changes) + ")"
    if loss.gradient_length is not None:
        length = float(_length_of_change(loss, bounds, adjacency))
        return (
            f"one record's gradient has Euclidean length {loss.gradient_length:g}{_times_weight(bounds)}, so "
            f"{adjacency.event} moves the gradient by at most {length:g}. {in_norm}"
        )
    score, by_points = None, ""
    if weighted.why_no_points(loss, bounds, adjacency) is None:
        first, last = _score_range(loss, bounds, domain, adjacency, len(changes))
        score, by_points = (float(first), float(last)), _by_points(bounds, adjacency, norm, len(changes))
    what, most = loss.describe_gradient(adjacency, score)
    if weighted.most(bounds) is not None:
        shown = "" if score is None else f", s*x with s in [{score[0]:.6g}, {score[1]:.6g}]"
        largest = weighted.largest(bounds)
        what = f"its weight, from 0 to {largest:.6g}, times that of the loss{shown}, in [m_j, M_j] in coordinate j;"
        most = "w_j = M_j - m_j" if exchange else "w_j = max(|m_j|, |M_j|)"
        if exchange and loss.gradient_slope is not None:
            most = "w_j, the larger of what one record of the largest weight adds and what two of them differ by"
    return (
        f"one record's gradient is {what} {adjacency.event} moves coordinate j of the gradient by at most {most}: "
        f"{widths}. {in_norm}{by_points}"
    )


def _times_weight(bounds: Bounds) -> str:
    return (
        "" if weighted.most(bounds) is None else f" times its weight, which is at most {weighted.largest(bounds):.6g}"
    )


def _by_points(bounds: Bounds, adjacency: Adjacency, norm: norms.AbstractNorm, dimension: int) -> str:
    # Over a box of changes such a norm is largest at the box's corner, whose coordinates are named already.
    if norm.box_sides(dimension) is not None:
        return ""
    number = number_of_points(bounds.feature_blocks(dimension), adjacency)
    if number > LARGEST_NUMBER:
        return ""
    return f" It is the longest of the {number} points whose hull is that of all changes."


def explain_hessian_sensitivity(loss: AbstractPredictorLoss, bounds: Bounds, domain: Reach, dimension: int) -> str:
    """The derivation of λ in words; float64."""
    longest = float(_longest_features(bounds, dimension))
    value = float(hessian_sensitivity(loss, bounds, domain, dimension))
    return (
        f"One record's Hessian is c*x*x' with c in [0, {value / longest:.6g}] and |x|^2 at most {longest:.6g} by the "
        f"bounds of x, so its only eigenvalue but 0 is at most lambda = {value:.6g}."
    )


def explain_quantile_changes(tau: np.ndarray, adjacency: Adjacency, changes: np.ndarray) -> str:
    """The derivation of the sensitivity of #{y ≤ θ} - nτ in words."""
    most = "1" if adjacency is Adjacency.REPLACE else "max(tau, 1 - tau)"
    levels, sizes = (", ".join(f"{number:.6g}" for number in numbers) for numbers in (tau, changes))
    return (
        f"the score is the distance of #(y <= theta) from n*tau, and {adjacency.event} moves that difference by at "
        f"most {most}: {sizes} for tau = {levels}."
    )


def explain_joint_quantile_sensitivity(tau: np.ndarray | None, adjacency: Adjacency, value: float) -> str:
    """The derivation of the sensitivity of the joint score of several quantiles in words; of any levels by None."""
    why = {
        Adjacency.REPLACE: "exchanging one record takes 1 from one of these numbers and adds it to another, which "
        "changes the score by at most",
        Adjacency.ADD_REMOVE: "one record more or less in an interval changes its deviation by 1 - p and each other by "
        "that one's p, 2*(1 - p) in all, and with the smallest p that is",
    }[adjacency]
    levels = "the levels" if tau is None else "tau = " + ", ".join(f"{level:.6g}" for level in tau)
    return (
        "the score adds up by how much the numbers of records between consecutive quantiles deviate from n*p, with p "
        f"the differences of {levels}, from 0 and to 1; {why} {value:.6g}."
    )


def explain_value_sensitivity(bounds: Bounds, adjacency: Adjacency, value: float) -> str:
    """The derivation of the exponential mechanism's sensitivity in words."""
    what = {
        Adjacency.REPLACE: "exchanging one record changes the loss by at most the range of one record's loss over the "
        "domain and the bounds",
        Adjacency.ADD_REMOVE: "one record more or less changes the loss, up to a constant that the normaliser cancels, "
        "by at most half the range of one record's loss over the domain and the bounds",
    }[adjacency]
    return f"{what}{_times_weight(bounds)}, which is {value:.6g}."


def explain_ridge(ridge: float, objective: float, noise: float, of_persons: bool = False) -> str:
    """Explains how the ridge and the noise share the ε of objective perturbation. **Arguments:** γ, (1-f)ε, q(1-f)ε."""
    who, factor = "one record", "1 + lambda/gamma"
    if of_persons:
        who, factor = "one person, of whose rows the Hessians' traces add up to at most lambda,", "e^(lambda/gamma)"
    return (
        f"With the ridge gamma = {ridge:.6g} {who} changes the determinant of the Hessian by a factor of at most "
        f"{factor} = e^{objective - noise:.6g}, and the density of the noise in the objective by one of at "
        f"most e^{noise:.6g}."
    )


def explain_search(tolerance: float, ridge: float, spent: float) -> str:
    """Says in words how far searches for a minimiser may be off. **Arguments:** τ, γ, and the share of ε for it."""
    return (
        "A search in float64 ends within tolerance/gamma of the minimiser, so two of its errors differ by at most "
        f"2*tolerance/gamma = {2.0 * tolerance / ridge:.6g} in the l2 norm, and the noise that covers them spends "
        f"{spent:.6g} of epsilon; a minimiser that is computed without error needs none."
    )
