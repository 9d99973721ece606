"""Facts about the noise of what a mechanism releases, which roundings, previews and intervals ask. All are public."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import GradientNoise, MomentNoise, NormalNoise
from kngjax.sensitivity import gradients


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractNoiseFacts(abc.ABC):
    """States what is publicly known of the noise of a release; each mechanism has its own class.

    **Arguments:** `mechanism`: whose noise it is. `has_known_error`: whether the law of the error of what is released
    is known. `publishes`: what a release on a grid publishes besides its value, by name, of which that law is made.
    """

    mechanism: Any
    has_known_error: bool = True
    publishes: tuple[str, ...] = ()

    @property
    def publishes_moments(self) -> bool:
        """Tells whether X'X is published with its noise, so that no sum of curvatures is needed."""
        return "gram" in self.publishes

    def least(self, dimension: int, num_records: int | None) -> Any:
        """Bounds each coefficient's noise from below by public settings; 0 where they say nothing.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        return np.zeros(dimension)

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"] | None:
        """The standard deviation of the noise on each released number, where its law is known and public; else None.

        **Arguments:** `num_records`: n where it is public, else None.
        """
        return None

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise | None:
        """Foresees how far θ̃ will lie from the estimate without privacy, to first order; None where nobody knows.

        **Arguments:** `hessian`: what ∇²ℓ_n at the estimate will be, shape (d, d), a public guess. `num_records`: n, or
        a guess of it.
        """
        return None

    def of_gradient(self, dimension: int) -> GradientNoise:
        """The law of ∇ℓ_n at what is released, from public settings. Raises ValueError where it is not known."""
        raise ValueError(
            f"the law of the gradient at what {type(self.mechanism).__name__} releases is not known here, and so no "
            "likelihood: KNG, ObjectivePerturbation and means by KNormMechanism have one"
        )

    def of_error(self, dimension: int, published: Mapping[str, np.ndarray]) -> GradientNoise | NormalNoise:
        """The law of the gradient at what is released, given its Hessian: what intervals are made of.

        **Arguments:** `published`: by a release of it, besides its value; empty before one. Raises ValueError where the
        law is not known.
        """
        return self.of_gradient(dimension)

    def at_release(
        self, theta: Float[np.ndarray, " dimension"], published: Mapping[str, np.ndarray]
    ) -> GradientNoise | NormalNoise | MomentNoise:
        """Gives the law of the gradient at a release's value, given its Hessian.

        **Arguments:** `theta`: θ̃, the value. `published`: what the release publishes beside it.
        """
        return self.of_error(len(theta), published)

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """A public centre of what is released and its public size about it, from which its rounding is made.

        Of Θ, or of the bounds of a mean or a quantile, the middle and half of the width; else where a ridge pulls to,
        and y's largest value, 1 without bounds of y, over each column's.
        """
        loss, bounds = self.mechanism.loss, self.mechanism.bounds
        domain, towards = getattr(self.mechanism, "domain", None), getattr(self.mechanism, "centre", None)
        if domain is not None:
            return np.asarray(domain.interior_point(dimension)), np.asarray(domain.widths(dimension)) / 2
        if not loss.has_response or (bounds.x_lower is None and bounds.y_lower is not None):
            sides = bounds.features(dimension) if not loss.has_response else (bounds.y_lower, bounds.y_upper)
            lower, upper = (np.broadcast_to(np.asarray(side), (dimension,)) for side in sides)
            return lower + (upper - lower) / 2, (upper - lower) / 2
        sizes = np.ones((1, dimension)) if bounds.x_lower is None else bounds.features(dimension)
        largest = np.max(np.abs([np.asarray(side) for side in sizes]), axis=0)
        reach = 1.0 if bounds.y_lower is None else float(gradients.response_radius(bounds))
        return np.zeros(dimension) if towards is None else np.asarray(towards), reach / largest


class UnknownNoise(AbstractNoiseFacts):
    """States that nothing is known of the noise, and where the released value lies by the bounds alone."""
