"""Sums of squared scores where the curvature is known without a sum of its own: of noisy moments, and of means."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.products import product_ranges, products, symmetric
from kngjax.data.records import Records
from kngjax.inference.covariances import (
    ONE,
    UNIT,
    AbstractSums,
    Block,
    IndependentErrors,
    Matrices,
    Sandwich,
    proportional,
)
from kngjax.inference.score_moments import Floats
from kngjax.mechanisms.released_moments import ReleasedMoments
from kngjax.releases.release import Release

_SEED = 1


class AbstractChosenSums(AbstractSums):
    """Sums for a covariance that was asked for by the name of another, `chosen`, whose share and settings they have."""

    chosen: Sandwich | IndependentErrors

    @property
    def share(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.chosen.share

    @property
    def bandwidth(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.chosen.bandwidth

    def settings(self) -> dict[str, Any]:
        return self.chosen.settings()


@dataclasses.dataclass(frozen=True)
class ScoresOfMoments(AbstractChosenSums):
    """J = Σr²xx' at θ̃ beside published moments, which are H: all of J, or Σr² alone where errors depend on no feature.

    The residual r = y - x'θ̃ of a record within the bounds is bounded, at the released θ̃, so that r² in units of the
    largest is a number in [0, 1], and so is what a record adds to the sums (`RecordCurvature`).

    **Arguments:** `chosen`: `Sandwich` for the former, `IndependentErrors` for the latter. `moments`: of the release,
    once there is one.
    """

    chosen: Sandwich | IndependentErrors
    moments: ReleasedMoments | None = None
    is_previewed: ClassVar[bool] = False

    @property
    def assumptions(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.chosen.assumptions

    @property
    def method(self) -> str:
        what = "J at the released value" if self._is_whole else "the sum of squared residuals"
        return (
            f"the published moments, and {what} with noise of its own for {self.share:g} of epsilon; the quantiles are "
            "those of G^-1(m - S) over what the noise of all of them may have been"
        )

    @property
    def _is_whole(self) -> bool:
        return isinstance(self.chosen, Sandwich)

    def given(self, mechanism: Any, first: Release) -> "ScoresOfMoments":
        return dataclasses.replace(self, moments=mechanism.released_moments(first.published))

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        if not self._is_whole:
            return [ONE, UNIT]
        least, most = product_ranges(lower, upper)
        return [Block(np.minimum(least, 0.0), np.maximum(most, 0.0))]

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        return [square[:, None] * products(x)] if self._is_whole else [np.ones(len(x)), square]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        assert self.moments is not None
        gram = self.moments.grams(np.random.default_rng(_SEED), len(parts[0]))
        if self._is_whole:
            return Matrices(gram, symmetric(parts[0], dimension))
        count, square = parts[0][:, 0], parts[1][:, 0]
        return Matrices(gram, proportional(count, count, square, gram).score)


@dataclasses.dataclass(frozen=True)
class Variances(AbstractChosenSums):
    """Σ(x_j - θ̃_j)² of each column at the released mean θ̃: the diagonal of J, beside H = nI.

    A record within the bounds l and u adds at most max((u_j - θ̃_j)², (l_j - θ̃_j)²), which is public by then, and in
    that unit a number in [0, 1].

    **Arguments:** `chosen`: whose share it is.
    """

    chosen: Sandwich

    @property
    def method(self) -> str:
        return (
            f"the variance of each column, from sums with noise of their own for {self.share:g} of epsilon; the "
            "quantiles are those of the noise less the sampling error over what the noise of the sums may have been"
        )

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        return [Block(np.zeros(dimension), np.ones(dimension))]

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        return [square]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        made = np.where(np.eye(dimension, dtype=bool), parts[0][:, :, None], 0.0)
        return Matrices(np.broadcast_to(np.eye(dimension), made.shape), made)

    def columns(
        self, records: Records, theta: Floats, curvature: Any, adjacency: Adjacency
    ) -> Float[np.ndarray, "records columns"]:
        x, units = np.asarray(records.x, np.float64), square_units(theta, curvature.bounds)
        return np.clip((x - theta) * (x - theta) / units, 0.0, 1.0)

    def matrices(
        self,
        sums: Float[np.ndarray, "draws columns"],
        dimension: int,
        curvature: Any,
        theta: Floats,
        adjacency: Adjacency,
        num_records: int | None,
    ) -> Matrices:
        # Under replace alone, where n is public.
        assert num_records is not None
        hessian, score = self._matrices([sums * square_units(theta, curvature.bounds)], dimension)
        plausible = np.all(sums > 0.0, axis=1)
        return Matrices(num_records * hessian[plausible], score[plausible])


def square_units(theta: Floats, bounds: Bounds) -> Floats:
    """The largest (x_j - θ_j)² of records within the bounds."""
    with float64():
        lower, upper = (np.asarray(side, np.float64) for side in bounds.features(len(theta)))
    largest = np.maximum(np.abs(upper - theta), np.abs(theta - lower))
    return np.maximum(largest * largest, np.finfo(np.float64).tiny)


def suited(covariance: AbstractSums, mechanism: Any) -> AbstractSums:
    """The sums of a covariance that are to be released beside this mechanism's own. Raises ValueError for none."""
    is_mean = not mechanism.loss.has_response
    if not is_mean and not mechanism.noise.publishes_moments:
        return covariance
    if isinstance(covariance, Variances if is_mean else ScoresOfMoments):
        return covariance
    if covariance.is_gaussian:
        raise ValueError(f"noise='zcdp' is for H and J together, which {type(mechanism).__name__} does not need")
    if is_mean and type(covariance) is Sandwich:
        return Variances(covariance)
    if not is_mean and isinstance(covariance, Sandwich | IndependentErrors):
        return ScoresOfMoments(covariance)
    of = "a mean needs variances alone: give kngjax.Sandwich" if is_mean else "AdaSSP publishes X'X: give Sandwich or"
    raise ValueError(f"{type(covariance).__name__} is not for it, {of}{'' if is_mean else ' IndependentErrors'}(...)")
