"""Δ from declared facts, bounds, norm and adjacency: every sensitivity of the package has its one home here.

In regression one record contributes s·x to the gradient, with s ∈ [a, b] declared by the loss and x_j ∈ [l_j, u_j]
enforced by `kngjax.data.prepare`. Coordinate j of the contribution therefore lies in [m_j, M_j], the smallest and the
largest of {a l_j, a u_j, b l_j, b u_j}, and between neighbouring data sets the gradient's coordinate j changes by at
most

    replace:     w_j = M_j - m_j          (one contribution in the box is exchanged for another)
    add_remove:  w_j = max(|m_j|, |M_j|)  (one contribution comes or goes)

For the mean a contribution is θ - x: exchanging one moves coordinate j by at most u_j - l_j, whatever θ. For the
geometric median contributions are unit vectors, so a change lies in an l2 ball and not in a box.

Δ may depend on θ (Reimherr and Awan 2019, Theorem 3.1): at one θ the reach of x'θ is smaller than over all of Θ, and
`PointwiseSensitivity` gives w(θ). Then the score max_j |∇_j|/w_j(θ) has sensitivity 1, and no bound on Θ is needed.

The functions here run on arrays and tracers alike; `Sensitivity` is their result in numbers and words.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax import norms
from kngjax._arrays import Vector
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import Bounds
from kngjax.domains import AbstractDomain
from kngjax.losses import AbstractLoss, AbstractPredictorLoss, GeometricMedianLoss, SquaredDistanceLoss, SquaredLoss


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


def score_interval(
    loss: AbstractPredictorLoss, bounds: Bounds, domain: "AbstractDomain | _Point", dimension: int
) -> Any:
    """[a, b], which contains the score of every record within the bounds for every θ ∈ Θ."""
    lower, upper = bounds.features(dimension)
    return loss.score_interval(domain.linear_interval(lower, upper), response_interval(bounds))


def gradient_changes(
    loss: AbstractLoss, bounds: Bounds, domain: "AbstractDomain | _Point", adjacency: Adjacency, dimension: int
) -> Float[Array, " dimension"]:
    """w: by how much each coordinate of ∇ℓ_n can change between neighbouring data sets, shape (d,)."""
    lower, upper = bounds.features(dimension)
    if isinstance(loss, GeometricMedianLoss):
        return jnp.full(dimension, _median_change(adjacency))
    if isinstance(loss, SquaredDistanceLoss):
        return mean_changes(lower, upper) if adjacency is Adjacency.REPLACE else _farthest(bounds, domain, dimension)
    assert isinstance(loss, AbstractPredictorLoss)
    score = score_interval(loss, bounds, domain, dimension)
    products = jnp.stack([s * side for s in score for side in (lower, upper)])
    smallest, largest = jnp.min(products, axis=0), jnp.max(products, axis=0)
    if adjacency is Adjacency.REPLACE:
        return largest - smallest
    return jnp.maximum(jnp.abs(smallest), jnp.abs(largest))


def mean_changes(lower: Vector, upper: Vector) -> Float[Array, " dimension"]:
    """u - l: by how much exchanging one record of the box [l, u] can move each coordinate of Σx."""
    return jnp.asarray(upper - lower)


def _median_change(adjacency: Adjacency) -> float:
    return 2.0 if adjacency is Adjacency.REPLACE else 1.0


def _differences(bounds: Bounds, domain: "AbstractDomain | _Point", dimension: int) -> tuple[Array, Array]:
    """The smallest and the largest θ_j - x_j over Θ and the bounds, each of shape (d,)."""
    lower, upper = bounds.features(dimension)
    smallest, largest = jax.vmap(lambda axis: domain.linear_interval(axis, axis))(jnp.eye(dimension))
    return smallest - upper, largest - lower


def _farthest(bounds: Bounds, domain: "AbstractDomain | _Point", dimension: int) -> Array:
    smallest, largest = _differences(bounds, domain, dimension)
    return jnp.maximum(jnp.abs(smallest), jnp.abs(largest))


def depends_on_theta(loss: AbstractLoss, adjacency: Adjacency) -> bool:
    """Whether w(θ) varies with θ: where scores are bounded for every η it does not."""
    if isinstance(loss, SquaredDistanceLoss):
        return adjacency is Adjacency.ADD_REMOVE
    return loss.needs_response_bounds


class _Point(eqx.Module):
    """Θ = {θ}, as far as sensitivities ask."""

    theta: Vector

    def linear_interval(self, lower: Vector, upper: Vector) -> tuple[Array, Array]:
        products = jnp.stack([lower * self.theta, upper * self.theta])
        return jnp.sum(jnp.min(products, axis=0)), jnp.sum(jnp.max(products, axis=0))


class PointwiseSensitivity(eqx.Module):
    """w(θ): by how much each coordinate of ∇ℓ_n(θ; D) can change between neighbouring data sets, at this θ.

    **Arguments:** `loss`, `bounds`, `adjacency`: of the mechanism. `norm`: of the gradient, None for
    max_j |v_j|/w_j(θ). `reference`: Δ in this norm over all of Θ, by which `score` is measured; 1 for the default norm.
    """

    loss: AbstractLoss
    bounds: Bounds
    adjacency: Adjacency = eqx.field(static=True)
    norm: norms.AbstractNorm | None
    reference: Array

    def changes(self, theta: Vector) -> Float[Array, " dimension"]:
        """w(θ), shape (d,).

        For the squared loss coordinate j of one record's gradient is (v + θ_j x_j)x_j with v = Σ_{k≠j} θ_k x_k - y in
        an interval that does not depend on x_j: linear in v and quadratic in x_j, so its range is exact. For |x_j| ≤ 1
        and |y| ≤ Y it is M(a_j, θ_j) + M(a_j, -θ_j) wide, with a_j = Y + Σ_{k≠j}|θ_k| and M(a, b) = a - b for b ≤ a/2,
        a²/(4b) beyond. Other losses take the score interval at the reach of this θ.
        """
        theta = jnp.asarray(theta)
        if not isinstance(self.loss, SquaredLoss):
            return gradient_changes(self.loss, self.bounds, _Point(theta), self.adjacency, theta.shape[0])
        lower, upper = self.bounds.features(theta.shape[0])
        products = jnp.stack([lower * theta, upper * theta])
        smallest, largest = jnp.min(products, axis=0), jnp.max(products, axis=0)
        response = response_interval(self.bounds)
        others = [
            jnp.sum(smallest) - smallest - response[1],
            jnp.sum(largest) - largest - response[0],
        ]
        curved = jnp.where(theta == 0, 1.0, theta)
        turns = [jnp.clip(jnp.where(theta == 0, lower, -v / (2.0 * curved)), lower, upper) for v in others]
        values = jnp.stack([(v + theta * x) * x for v in others for x in (lower, upper, *turns)])
        least, most = jnp.min(values, axis=0), jnp.max(values, axis=0)
        if self.adjacency is Adjacency.REPLACE:
            return most - least
        return jnp.maximum(jnp.abs(least), jnp.abs(most))

    def law_at(self, theta: Vector) -> tuple[norms.AbstractNorm, Array]:
        """A norm and a factor: the score at this θ is factor·‖∇ℓ_n‖."""
        changes = self.changes(theta)
        if self.norm is None:
            return norms.WeightedLInf(changes), jnp.ones(())
        return self.norm, self.reference / self.norm.largest_over_box(changes)

    def score(self, gradient: Vector, theta: Vector) -> Float[Array, ""]:
        """Δ·‖∇ℓ_n‖_K/Δ(θ): never below ‖∇ℓ_n‖_K where Δ bounds Δ(θ) over Θ."""
        norm, factor = self.law_at(theta)
        return factor * norm(gradient)


def default_norm(loss: AbstractLoss, changes: Vector) -> norms.AbstractNorm:
    """The norm whose ball is closest about the possible gradient changes: the box w, or the l2 ball for medians."""
    return norms.L2() if isinstance(loss, GeometricMedianLoss) else norms.WeightedLInf(changes)


def gradient_sensitivity(
    loss: AbstractLoss, changes: Vector, adjacency: Adjacency, norm: norms.AbstractNorm | None
) -> Float[Array, ""]:
    """Δ: no change of the gradient between neighbouring data sets is longer than this in the norm (None: the default).

    **Arguments:** `changes`: w from `gradient_changes`.
    """
    changes = jnp.asarray(changes)
    if isinstance(loss, GeometricMedianLoss):
        return _median_change(adjacency) * (norm or norms.L2()).largest_over_l2_ball(changes.shape[0])
    if norm is None:
        # 1 by the definition of the norm, which needs finite changes.
        return jnp.where(jnp.all(jnp.isfinite(changes) & (changes > 0)), 1.0, jnp.inf)
    # Every possible change lies in the box |v_j| ≤ w_j.
    return norm.largest_over_box(changes)


def value_sensitivity(
    loss: AbstractLoss, bounds: Bounds, domain: AbstractDomain, adjacency: Adjacency, dimension: int
) -> Float[Array, ""]:
    """Δ of ℓ_n: the range of one record's loss over Θ and the bounds (replace), or half of it (add_remove).

    One record more multiplies the density by exp(-cℓ(θ)) and divides its normaliser's change out, so the log-ratio of
    the densities varies with θ by at most c·(max ℓ - min ℓ): constants cancel. With c = ε/(2Δ) and Δ half the range
    that is ε, and the mechanism is ε-bounded-range. Exchanging a record is one such change after another.
    """
    lower, upper = bounds.features(dimension)
    if isinstance(loss, AbstractPredictorLoss):
        response = response_interval(bounds) or (0.0, 0.0)
        smallest, largest = loss.value_interval(domain.linear_interval(lower, upper), response)
    else:
        first, last = _differences(bounds, domain, dimension)
        nearest = jnp.sum(jnp.square(jnp.clip(0.0, first, last)))
        farthest = jnp.sum(jnp.square(_farthest(bounds, domain, dimension)))
        if isinstance(loss, GeometricMedianLoss):
            smallest, largest = jnp.sqrt(nearest), jnp.sqrt(farthest)
        else:
            smallest, largest = 0.5 * nearest, 0.5 * farthest
    return jnp.asarray(largest - smallest) * (1.0 if adjacency is Adjacency.REPLACE else 0.5)


def explain_gradient_sensitivity(
    loss: AbstractLoss,
    bounds: Bounds,
    domain: AbstractDomain,
    adjacency: Adjacency,
    norm: norms.AbstractNorm,
    changes: np.ndarray,
    value: float,
) -> str:
    """The derivation of a gradient sensitivity in words; float64."""
    exchange = adjacency is Adjacency.REPLACE
    event = "exchanging one record moves" if exchange else "one record more or less moves"
    in_norm = f"In the {type(norm).__name__} norm no such change is longer than {value:.6g}."
    widths = "w = (" + ", ".join(f"{change:.6g}" for change in changes) + ")"
    if isinstance(loss, GeometricMedianLoss):
        length = _median_change(adjacency)
        return f"one record's gradient has Euclidean length 1, so {event} the gradient by at most {length:g}. {in_norm}"
    if isinstance(loss, SquaredDistanceLoss):
        why = "u_j - l_j, the width of the bounds" if exchange else "the largest |theta_j - x_j| over Theta"
        return (
            f"one record's gradient is theta - x, so {event} coordinate j of the gradient by at most {why}: {widths}. "
            f"{in_norm}"
        )
    assert isinstance(loss, AbstractPredictorLoss)
    first, last = (float(end) for end in score_interval(loss, bounds, domain, len(changes)))
    most = "w_j = M_j - m_j" if exchange else "w_j = max(|m_j|, |M_j|)"
    return (
        f"one record's gradient is s*x with the score s in [{first:.6g}, {last:.6g}], so its coordinate j lies in "
        f"[m_j, M_j] by the bounds of x; {event} coordinate j of the gradient by at most {most}: {widths}. {in_norm}"
    )


def explain_pointwise_sensitivity(norm: norms.AbstractNorm | None, adjacency: Adjacency) -> str:
    """The derivation of a sensitivity that depends on θ in words."""
    event = "exchanging one record" if adjacency is Adjacency.REPLACE else "one record more or less"
    measured = "max_j |v_j|/w_j(theta)" if norm is None else f"{type(norm).__name__} norm divided by Delta(theta)"
    return (
        f"at each theta {event} moves coordinate j of the gradient by at most w_j(theta), by the score interval at the "
        f"reach of x'theta for this theta alone; the score is the gradient's {measured}, which changes by at most 1."
    )


def explain_mean_sensitivity(norm: norms.AbstractNorm, changes: np.ndarray, value: float) -> str:
    """The derivation of the sensitivity of Σx in words."""
    widths = ", ".join(f"{change:.6g}" for change in changes)
    return (
        "exchanging one record moves coordinate j of the sum of the records by at most u_j - l_j, the width of the "
        f"bounds: w = ({widths}). In the {type(norm).__name__} norm no such change is longer than {value:.6g}."
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
