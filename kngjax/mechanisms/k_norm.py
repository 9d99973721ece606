"""The K-norm mechanism (Hardt and Talwar 2010): means or sums plus K-norm noise, exactly."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Scalar, float64, is_traced
from kngjax.data.bounds import Bounds
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.mechanisms.k_norm_law import AbstractKNormLaw
from kngjax.mechanisms.parameters import require_choice
from kngjax.sensitivity import gradients, sums
from kngjax.sensitivity.gradients import Sensitivity


class KNormMechanism(AbstractKNormLaw):
    """Draws θ with density f(θ) ∝ exp(-(nε/Δ)·‖x̄ - θ‖_K) on R^d: the mean of n records plus K-norm noise.

    Δ is the sensitivity of Σx: exchanging one record moves coordinate j by at most u_j - l_j. With the l1 norm this is
    the Laplace mechanism.

    `statistic="sum"` draws the sum, with density f(θ) ∝ exp(-(ε/Δ)·‖Σx - θ‖_K). This density does not contain n, so it
    serves under add_remove too, where one record more moves coordinate j by at most max(|l_j|, |u_j|). Columns with
    bounds about 0 need the least noise. The sum of a column of ones is the number of records.

    The mechanism is KNG with `SquaredDistanceLoss` without a domain. Its normaliser does not depend on the data, so KNG
    at 2ε is this mechanism at ε (Reimherr and Awan 2019, Remark 4.1). It is (ε²/2)-zCDP, and not of bounded range.

    **Arguments:**

    - `bounds`: public bounds of one record, `Bounds(x={"age": (0, 99)}, intercept=False)`.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace", or "add_remove" for a sum. A mean is refused under add_remove, since its noise would
      reveal the private n.
    - `norm`: ‖·‖_K; None means the weighted l_inf norm whose ball is the box of possible changes, for which Δ = 1.
    - `statistic`: "mean" or "sum". With weights only the sum Σw·x is allowed, since the total Σw is private; a mean of
      persons with one vote each is allowed under replace.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None
    statistic: str = eqx.field(static=True)

    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        statistic: str = "mean",
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.norm = norm
        self.statistic = statistic

    def __check_init__(self):
        require_choice("statistic", self.statistic, ("mean", "sum"))
        if self.adjacency is Adjacency.ADD_REMOVE and not self._is_sum:
            raise ValueError(
                "the K-norm mechanism adds noise of scale 1/n to the mean, and with add_remove n is private: use "
                "adjacency='replace', or KNG(SquaredDistanceLoss(), ...) on a bounded domain, or statistic='sum'"
            )
        if self.bounds.weight is not None and not (self._is_sum or self.bounds.has_one_vote):
            raise ValueError(
                "the sum of the weights is private, and no noise scaled by 1/n may be used on a weighted mean: use "
                "KNG(SquaredDistanceLoss(), ...) on a bounded domain, or statistic='sum'"
            )
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        with float64():
            changes = np.array(self._changes(self.dimension or 1))
        moves = changes > 0
        if not (np.any(moves) if self.norm is not None else np.all(moves)):
            raise ValueError(
                "a column of x has the same lower and upper bound, so that no record changes it and the box of "
                "possible changes has no volume: leave the column out, or name a norm"
            )

    @property
    def method(self) -> str:
        """Says how a value is drawn, in words."""
        return f"The {self.statistic} plus exact K-norm noise."

    def score_norm(self, dimension: int) -> AbstractNorm:
        """The norm of the noise."""
        return gradients.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ of Σx; runs under jit."""
        return sums.sum_sensitivity(self.bounds, self.adjacency, self.norm, dimension)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of Σx, with its derivation."""
        with float64():
            changes, value = np.asarray(self._changes(dimension)), float(self.sensitivity_value(dimension))
            norm = self.score_norm(dimension)
        return Sensitivity(value, sums.explain_sum_sensitivity(norm, changes, value, self.adjacency, self.bounds))

    def noise_in_fractions(self, dimension: int, num_records: int) -> ScaledNorm | None:
        """Δ/(nε), of a sum Δ/ε, in the norm, with Δ in fractions; None for a hull and norms that turn axes.

        ε is the decimal number that it prints as.
        """
        if self.bounds.hull is not None:
            return None
        changes = sums.sum_changes_in_fractions(self.bounds, self.adjacency, dimension)
        rate = (1 if self._is_sum else num_records) * exactly(float(self.epsilon))
        if self.norm is None:
            return ScaledNorm("maximum", tuple(changes), 1 / rate**2)
        return self.norm.noise_in_fractions(changes, rate)
