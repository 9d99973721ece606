"""Defines norms ‖·‖_K and the facts that they may declare, which decide which samplers serve them."""

import abc
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.arrays import Matrix, Scalar, Vector, is_traced
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.tilts import AbstractTiltedLaw

Interval = tuple[Float[Array, ""], Float[Array, ""]]
Points = Float[Array, "*shape dimension"]


class AbstractNorm(ShownAsTyped, AbstractModule):
    """A norm ‖·‖_K on R^d; its unit ball K is {v : ‖v‖_K ≤ 1}.

    Optional facts decide which samplers serve a norm:

    - `standard` and `standardise`: the norm is ‖Sv‖₀ for a norm without parameters (whitened coordinates).
    - `has_chords`: `chord` tells where lines leave the norm's balls (slices).
    - `has_tilts`: `tilted_law` and `tilted_log_mass` have the law ∝ exp(-c‖y‖ - h'y) (tilted noise).
    """

    has_chords: ClassVar[bool] = False
    has_tilts: ClassVar[bool] = False
    _shown_by_place: ClassVar[bool] = True

    @abc.abstractmethod
    def __call__(self, vector: Vector) -> Float[Array, ""]:
        """‖v‖_K of one vector of shape (d,)."""

    @abc.abstractmethod
    def dual(self, vector: Vector) -> Float[Array, ""]:
        """sup {u'v : ‖u‖_K ≤ 1} of one vector of shape (d,)."""

    @abc.abstractmethod
    def largest_over_box(self, half_widths: Vector) -> Float[Array, ""]:
        """sup {‖v‖_K : |v_j| ≤ w_j}, or an upper bound of it: what a sensitivity is."""

    @abc.abstractmethod
    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """sup {‖v‖_K : ‖v‖_2 ≤ 1} over v ∈ R^d."""

    def largest_quadratic(self, matrix: Matrix) -> Float[Array, ""]:
        """sup {v'Pv : ‖v‖_K ≤ 1} for a positive semidefinite P, or an upper bound of it.

        With P = RR' and r_k the columns of R, v'Pv = Σ_k (r_k'v)² ≤ Σ_k ‖r_k‖_*².
        """
        values, vectors = jnp.linalg.eigh(jnp.asarray(matrix))
        roots = vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]
        return jnp.sum(jax.vmap(self.dual)(roots.T) ** 2)

    @abc.abstractmethod
    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Returns independent exact uniform draws from the unit ball, of shape `(*shape, dimension)`."""

    @abc.abstractmethod
    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """Computes the log of the unit ball's Lebesgue measure."""

    def in_fractions(self, dimension: int) -> ScaledNorm | None:
        """Gives this norm for whole numbers and fractions, as lattices need it; None for other norms."""
        return None

    def noise_in_fractions(self, changes: Sequence[Fraction], rate: Fraction) -> ScaledNorm | None:
        """Gives noise of density ∝ exp(-(rate/Δ)·‖z‖), Δ = ‖w‖ for changes |v_j| ≤ w_j, in fractions; or None."""
        norm = self.in_fractions(len(changes))
        if norm is None:
            return None
        return norm.scaled(norm.squared(changes) / rate**2)

    @property
    def dimension(self) -> int | None:
        """Returns the dimension that the norm's parameters fix; None if it serves every dimension."""
        return None

    def box_sides(self, dimension: int) -> Vector | None:
        """w if the unit ball is the box |v_j| ≤ w_j, so that ‖v‖ = max_j |v_j|/w_j; else None."""
        return None

    @property
    def standard(self) -> "AbstractNorm":
        """Returns the norm ‖·‖₀ of which this one is ‖Sv‖₀: itself, with S = I, unless another is known."""
        return self

    def standardise(self, transform: Matrix, inverse: Matrix) -> tuple[Matrix, Matrix, Float[Array, ""] | float]:
        """S·transform, inverse·S^{-1} and log |det S|."""
        return transform, inverse, 0.0

    def chord(self, radius: Scalar, point: Vector, direction: Vector) -> Interval:
        """Finds the least and largest t with ‖point + t·direction‖ ≤ radius, for a point within and a direction ≠ 0.

        Raises NotImplementedError unless `has_chords`.
        """
        raise NotImplementedError(f"the chords of {type(self).__name__} are not known")

    def tilted_law(self, rate: Scalar, tilt: Vector) -> AbstractTiltedLaw:
        """Returns the law ∝ exp(-c‖y‖ - h'y) of y, for ‖h‖_* < c. Raises NotImplementedError unless `has_tilts`."""
        raise NotImplementedError(f"the tilted laws of {type(self).__name__} are not known")

    def tilted_log_mass(self, rate: Scalar, tilt: Vector) -> Float[Array, ""]:
        """Approximates log ∫ exp(-c‖y‖ - h'y) dy to some percent, smoothly in h, to find the best tilt."""
        return self.tilted_law(rate, tilt).log_mass


class AbstractAbsoluteNorm(AbstractNorm):
    """A norm of the |v_j| that decreases in none of them."""

    def largest_over_box(self, half_widths: Vector) -> Float[Array, ""]:
        """‖w‖, since the norm grows with every |v_j|."""
        return self(half_widths)


def require_weights(norm: AbstractNorm, weights: Any) -> None:
    """Raises ValueError unless a norm's weights are positive and finite, one a coefficient."""
    if is_traced(weights):
        return
    numbers = np.asarray(weights)
    if numbers.ndim != 1 or not np.all((numbers > 0) & (numbers < np.inf)):
        name = type(norm).__name__
        raise ValueError(f"the weights of {name} must all be positive and finite, one a coefficient")
