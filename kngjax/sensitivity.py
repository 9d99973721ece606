"""Δ from score intervals, bounds, norm and adjacency: every sensitivity of the package has its one home here.

One record contributes s·x to the gradient, with s ∈ [a, b] declared by the loss and x_j ∈ [l_j, u_j] enforced by
`kngjax.data.prepare`. Coordinate j of the contribution therefore lies in [m_j, M_j], the smallest and the largest
of {a l_j, a u_j, b l_j, b u_j}, and between neighbouring data sets the gradient's coordinate j changes by at most

    replace:     w_j = M_j - m_j          (one contribution in the box is exchanged for another)
    add_remove:  w_j = max(|m_j|, |M_j|)  (one contribution comes or goes)

The box |v_j| ≤ w_j contains every change, and corners that no change reaches: s and x do not vary freely of each
other, nor does the intercept. `kngjax.sensitivity_sets` lists the extreme points of the changes themselves.

The functions here run on arrays and tracers alike; `Sensitivity` is their result in numbers and words.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax import norms
from kngjax._arrays import float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import Bounds
from kngjax.domains import AbstractDomain
from kngjax.losses import AbstractLoss
from kngjax.sensitivity_sets import LARGEST_NUMBER, SensitivitySet, change_points, number_of_points


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """How much a score can change between neighbouring data sets, and why.

    **Arguments:** `value`: Δ, in the units of the score. `derivation`: the argument in words, with its numbers.
    """

    value: float
    derivation: str


def response_interval(bounds: Bounds) -> Any:
    """The bounds of the response as a pair, or None if there are none."""
    return None if bounds.y_lower is None else (bounds.y_lower, bounds.y_upper)


def gradient_changes(
    loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, adjacency: Adjacency, dimension: int
) -> Float[Array, " dimension"]:
    """w: by how much each coordinate of ∇ℓ_n can change between neighbouring data sets, shape (d,)."""
    lower, upper = bounds.features(dimension)
    score = loss.score_interval(domain.linear_interval(lower, upper), response_interval(bounds))
    products = jnp.stack([s * side for s in score for side in (lower, upper)])
    smallest, largest = jnp.min(products, axis=0), jnp.max(products, axis=0)
    if adjacency is Adjacency.REPLACE:
        return largest - smallest
    return jnp.maximum(jnp.abs(smallest), jnp.abs(largest))


def score_interval(loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, dimension: int) -> Any:
    """[a, b], which contains the score of every record within the bounds for every θ ∈ Θ."""
    lower, upper = bounds.features(dimension)
    return loss.score_interval(domain.linear_interval(lower, upper), response_interval(bounds))


def sensitivity_points(
    loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, adjacency: Adjacency, dimension: int
) -> Float[Array, "points dimension"] | None:
    """Points whose hull with their negatives is that of all possible changes of ∇ℓ_n, shape (points, d).

    None if there are more than `kngjax.sensitivity_sets.LARGEST_NUMBER`: their number doubles with every column.
    """
    blocks = bounds.feature_blocks(dimension)
    if number_of_points(blocks, adjacency) > LARGEST_NUMBER:
        return None
    return change_points(blocks, score_interval(loss, bounds, domain, dimension), adjacency)


def largest_change(
    norm: norms.AbstractNorm,
    loss: AbstractLoss,
    bounds: Bounds,
    domain: AbstractDomain,
    adjacency: Adjacency,
    dimension: int,
) -> Float[Array, ""]:
    """sup ‖∇ℓ_n(θ; D) - ∇ℓ_n(θ; D')‖ over neighbours, or an upper bound of it: Δ of KNG in this norm.

    A norm is convex, so it is largest at one of the `sensitivity_points`; where they are too many it is bounded over
    the box |v_j| ≤ w_j of `gradient_changes`.
    """
    over_box = norm.largest_over_box(gradient_changes(loss, bounds, domain, adjacency, dimension))
    points = sensitivity_points(loss, bounds, domain, adjacency, dimension)
    return over_box if points is None else jnp.minimum(over_box, jnp.max(jax.vmap(norm)(points)))


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
    with float64():
        points = sensitivity_points(loss, bounds, domain, parsed, dimension)
        if points is None:
            raise ValueError(
                f"the changes of {dimension} coefficients have more than {LARGEST_NUMBER} extreme points: take the "
                "weighted l_inf norm of the box around them, norm=None, or declare a tighter Bounds(..., hull=...)"
            )
        return SensitivitySet(np.array(points), parsed)


def value_sensitivity(
    loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, adjacency: Adjacency, dimension: int
) -> Float[Array, ""]:
    """Δ of ℓ_n: the range of one record's loss over Θ and the bounds (replace), or half of it (add_remove).

    One record more multiplies the density by exp(-cρ(θ)) and divides its normaliser's change out, so the log-ratio of
    the densities varies with θ by at most c·(max ρ - min ρ): constants cancel. With c = ε/(2Δ) and Δ half the range
    that is ε, and the mechanism is ε-bounded-range. Exchanging a record is one such change after another.
    """
    lower, upper = bounds.features(dimension)
    response = response_interval(bounds) or (0.0, 0.0)
    smallest, largest = loss.value_interval(domain.linear_interval(lower, upper), response)
    return jnp.asarray(largest - smallest) * (1.0 if adjacency is Adjacency.REPLACE else 0.5)


def explain_gradient_sensitivity(
    norm: norms.AbstractNorm,
    changes: np.ndarray,
    score: tuple[float, float],
    adjacency: Adjacency,
    value: float,
    num_points: int | None = None,
) -> str:
    """The derivation of a gradient sensitivity in words; `num_points` of the changes' hull, None if only the box."""
    how = {
        Adjacency.REPLACE: "exchanging one record moves coordinate j of the gradient by at most w_j = M_j - m_j",
        Adjacency.ADD_REMOVE: "one record more or less moves coordinate j of the gradient by at most "
        "w_j = max(|m_j|, |M_j|)",
    }[adjacency]
    widths = ", ".join(f"{change:.6g}" for change in changes)
    at = "" if num_points is None else f", the longest of the {num_points} points whose hull is that of all changes"
    return (
        f"one record's gradient is s*x with the score s in [{score[0]:.6g}, {score[1]:.6g}], so its coordinate j lies "
        f"in [m_j, M_j] by the bounds of x; {how}: w = ({widths}). In the {type(norm).__name__} norm no such change "
        f"is longer than {value:.6g}{at}."
    )


def explain_value_sensitivity(adjacency: Adjacency, value: float) -> str:
    """The derivation of the exponential mechanism's sensitivity in words."""
    what = {
        Adjacency.REPLACE: "exchanging one record changes the loss by at most the range of one record's loss over the "
        "domain and the bounds",
        Adjacency.ADD_REMOVE: "one record more or less changes the loss, up to a constant that the normaliser cancels, "
        "by at most half the range of one record's loss over the domain and the bounds",
    }[adjacency]
    return f"{what}, which is {value:.6g}."
