"""Defines the base class of mechanisms: their guarantee, their sensitivity, and whether their parts agree."""

import abc
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, is_traced
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import GradientNoise, MomentNoise, NormalNoise
from kngjax.mechanisms.parameters import LARGEST_SENSIBLE_EPSILON
from kngjax.mechanisms.preparation import AbstractPreparation
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity


class AbstractMechanism(AbstractPreparation):
    """A mechanism: what is computed from the records, with which bounds, at which ε, for which neighbours.

    `has_regressors`: whether it explains a response. `is_of_columns`: of numbers without a response, whether they are
    one for each column. `has_known_error`: whether the law of the error of what is released is known. `publishes`: what
    a release on a grid publishes besides its value, by name, of which that law is made.
    """

    epsilon: eqx.AbstractVar[Scalar]
    has_regressors: ClassVar[bool] = True
    is_of_columns: ClassVar[bool] = True
    has_known_error: ClassVar[bool] = True
    publishes: ClassVar[tuple[str, ...]] = ()

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of one draw from exactly the mechanism's law, from the mechanism's own fields."""

    def for_count(self, num_records: int) -> "AbstractMechanism":
        """The mechanism of n records, where settings follow from that; itself where none do. Public."""
        return self

    def at_epsilon(self, epsilon: float) -> "AbstractMechanism | None":
        """The mechanism at another ε, with all other settings as they are; None where there is none. Public."""
        return eqx.tree_at(lambda one: one.epsilon, self, np.asarray(float(epsilon)))

    def guarantee_for(self, dimension: int) -> Guarantee:
        """The guarantee for d coefficients, where it depends on d and scalar bounds leave that open."""
        return self.guarantee

    @abc.abstractmethod
    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ for d coefficients with its derivation."""

    @abc.abstractmethod
    def densities(self) -> "tuple[AbstractMechanism, ...]":
        """The densities whose draws, one by one and in increasing order, are a draw of this mechanism.

        A lattice draws from them. Raises ValueError, of public settings alone, where there are none.
        """

    def least_noise(self, dimension: int, num_records: int | None) -> Any:
        """Bounds each coefficient's noise from below by public settings; 0 where they say nothing.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        return np.zeros(dimension)

    def noise_deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"] | None:
        """The standard deviation of the noise on each released number, where its law is known and public; else None.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        return None

    def expected_noise(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise | None:
        """Foresees how far θ̃ will lie from the estimate without privacy, to first order; None where nobody knows.

        **Arguments:** `hessian`: what ∇²ℓ_n at the estimate will be, shape (d, d), a public guess. `num_records`: n, or
        a guess of it.
        """
        return None

    def gradient_noise(self, dimension: int) -> GradientNoise:
        """The law of ∇ℓ_n at what is released, from public settings. Raises ValueError where it is not known."""
        raise ValueError(
            f"the law of the gradient at what {type(self).__name__} releases is not known here, and so no likelihood: "
            "KNG, ObjectivePerturbation and means by KNormMechanism have one"
        )

    def error_noise(self, dimension: int, published: Mapping[str, np.ndarray]) -> GradientNoise | NormalNoise:
        """The law of the gradient at what is released, given its Hessian: what intervals are made of.

        **Arguments:** `published`: by a release of it, besides its value; empty before one. Raises ValueError where the
        law is not known.
        """
        return self.gradient_noise(dimension)

    @property
    def publishes_moments(self) -> bool:
        """Whether X'X is published, with its noise: then no sum of curvatures is needed beside it."""
        return "gram" in self.publishes

    def error_noise_at(
        self, theta: Float[np.ndarray, " dimension"], published: Mapping[str, np.ndarray]
    ) -> GradientNoise | NormalNoise | MomentNoise:
        """Gives the law of the gradient at a release's value, given its Hessian.

        **Arguments:** `theta`: θ̃, the value. `published`: what the release publishes beside it.
        """
        return self.error_noise(len(theta), published)

    def has_ridge(self, dimension: int) -> bool:
        """Whether what is released is pulled towards a public point, all releases the same way."""
        return float(self.error_noise(dimension, {}).ridge) > 0.0

    def proved_at(self, epsilon: float) -> "AbstractMechanism":
        """Returns the mechanism at another ε, with all checks of its proof. Raises ValueError where there is none."""
        moved = self.at_epsilon(epsilon)
        if moved is None:
            raise ValueError(f"{type(self).__name__} has no settings with which it is private at epsilon = {epsilon:g}")
        moved.__check_init__()
        return moved

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """A public centre of what is released and its public size about it, from which its rounding is made.

        Of Θ, or of the bounds of a mean or a quantile, the middle and half of the width; else where a ridge pulls to,
        and y's largest value, 1 without bounds of y, over each column's.
        """
        domain, bounds, towards = getattr(self, "domain", None), self.bounds, getattr(self, "centre", None)
        if domain is not None:
            return np.asarray(domain.interior_point(dimension)), np.asarray(domain.widths(dimension)) / 2
        if not self.loss.has_response or (bounds.x_lower is None and bounds.y_lower is not None):
            sides = bounds.features(dimension) if not self.loss.has_response else (bounds.y_lower, bounds.y_upper)
            lower, upper = (np.broadcast_to(np.asarray(side), (dimension,)) for side in sides)
            return lower + (upper - lower) / 2, (upper - lower) / 2
        sizes = np.ones((1, dimension)) if bounds.x_lower is None else bounds.features(dimension)
        largest = np.max(np.abs([np.asarray(side) for side in sizes]), axis=0)
        reach = 1.0 if bounds.y_lower is None else float(gradients.response_radius(bounds))
        return np.zeros(dimension) if towards is None else np.asarray(towards), reach / largest

    def __hash__(self) -> int:
        # By identity, so that `jax.jit(mechanism.log_density)` works although the fields are arrays.
        return id(self)

    def __check_init__(self):
        if self.adjacency is Adjacency.REPLACE and self.bounds.drops:
            raise ValueError(
                "'drop' leaves records with missing cells out, and under 'replace' their number is public, which an "
                "exchanged one would change: give a public value in place of missing ones, or adjacency='add_remove'"
            )
        if self.bounds.dither is not None and not self.loss.score_is_piecewise_constant:
            raise ValueError(
                "dither is for mechanisms of the quantile loss, which count responses: leave Bounds(..., dither=...) "
                f"out with {type(self.loss).__name__}, to which heaps of responses do no harm"
            )
        if self.bounds.weight is not None:
            self._check_weights()
        self.loss.check_bounds(self.bounds)

    def _check_weights(self) -> None:
        """Raises ValueError unless this mechanism and its loss are proved for records with weights."""
        instead = "KNG and ObjectivePerturbation do, of least squares AdaSSP; or leave Bounds(..., weight=...) out"
        if not self.takes_weights:
            raise ValueError(f"{type(self).__name__} takes no weights of records: {instead}")
        if not self.loss.takes_weights:
            raise ValueError(f"{type(self.loss).__name__} takes no weights of records: leave Bounds(..., weight=) out")

    def _check_parts(self) -> None:
        """Raises ValueError where the loss lacks bounds or the parts contradict each other."""
        if self.loss.needs_response_bounds and self.bounds.y_lower is None:
            raise ValueError(
                f"{type(self.loss).__name__} needs public bounds of the response, bounds=Bounds(..., y=(lower, upper)):"
                " without them one record can change the score without limit"
            )
        if not self.loss.has_response and (self.bounds.intercept or self.bounds.y_lower is not None):
            raise ValueError(
                "a mean or a median has neither intercept nor response: give "
                "Bounds(x={'age': (0, 99)}, intercept=False)"
            )
        dimensions = {
            name: part.dimension
            for name in ("bounds", "domain", "norm")
            if (part := getattr(self, name, None)) is not None and part.dimension is not None
        }
        if len(set(dimensions.values())) > 1:
            raise ValueError(f"the parts disagree about the number of coefficients (intercept included): {dimensions}")
        if self.dimension is not None and self.dimension < 1 + (self.bounds.intercept and self.bounds.columns != 0):
            raise ValueError(f"the domain is for {self.dimension} coefficients: too few for these bounds")

    def _argument(self, parameter: inspect.Parameter) -> Any:
        if parameter.name != "allow_large_epsilon" or hasattr(self, parameter.name) or is_traced(self.epsilon):
            return super()._argument(parameter)
        # That a large ε was allowed is not kept, and has to be said again.
        return bool(np.max(np.asarray(self.epsilon)) > LARGEST_SENSIBLE_EPSILON)

    @property
    def dimension(self) -> int | None:
        """d, the number of coefficients with the intercept; None while scalar bounds leave it open."""
        parts = [getattr(self, name, None) for name in ("bounds", "domain", "norm")]
        return next((part.dimension for part in parts if part is not None and part.dimension is not None), None)

    @property
    def sensitivity(self) -> Sensitivity:
        """Δ with its derivation.

        Where scalar bounds leave the number of columns open, it is given if it is the same for every number;
        else ValueError: call `sensitivity_for(dimension)`.
        """
        if self.dimension is not None:
            return self.sensitivity_for(self.dimension)
        first = 1 + self.bounds.intercept
        trials = [self.sensitivity_for(dimension) for dimension in (first, first + 1, first + 2)]
        if len({trial.value for trial in trials}) > 1:
            raise ValueError(
                "the sensitivity depends on the number of columns, which scalar bounds leave open: give bounds.x one "
                "value a column, or call sensitivity_for(dimension)"
            )
        return trials[0]
