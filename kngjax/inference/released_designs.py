"""A covariance of the moments of a design that were released before, and of two numbers for each regression on it."""

import dataclasses
import json
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.inference.covariances import NOTHING_ASSUMED, UNIT, AbstractSums, Block, Matrices, proportional
from kngjax.inference.noise_of_sums import box_noise
from kngjax.inference.published import mechanism_of
from kngjax.inference.score_moments import Floats
from kngjax.losses.base import AbstractResidualLoss
from kngjax.mechanisms.design_moments import DesignMoments
from kngjax.releases.release import Release

# What is drawn of the noise of a release is the same for every regression that takes it.
_SEED = 1


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class ReleasedDesign(AbstractSums):
    """H = (Σw/n)·G and J = (Σs²/n)·G with G of a release of `kngjax.DesignMoments`, which was paid for once.

    Each regression releases Σw and Σs² at its own θ̃, for a share of its ε, and nothing more of the features. What the
    noise of G may have been is drawn again, as is that of the two sums.

    It serves losses of the residual y - x'θ: squared, Huber, pseudo-Huber, quantile, smoothed quantile, expectile.
    There w and s² are functions of the errors; where these are independent of the features E w·xx' = E w·E xx'. Of the
    logistic and of Poisson's loss w depends on x'θ itself, G does not suffice, and they are refused.

    **Arguments:** `design`: the release, whose bounds of features must be those of the mechanism. `share`: of ε.
    `bandwidth`: as of `kngjax.Sandwich`.
    """

    design: Any
    share: float = 0.05
    bandwidth: float | None = None
    assumptions: ClassVar[tuple[str, ...]] = (
        NOTHING_ASSUMED,
        "errors are independent of the features",
        "the records are those that the moments of the design were released of",
    )

    def __init__(self, design: Any, share: float = 0.05, bandwidth: float | None = None):
        release = design if isinstance(design, Release) else _read(design)
        kind = release.certificate.mechanism["type"]
        if kind != DesignMoments.__name__:
            raise ValueError(f"design must be a release of kngjax.DesignMoments, not of {kind}")
        fields = {"design": json.loads(release.to_json()), "share": share, "bandwidth": bandwidth}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self.__post_init__()
        if release.certificate.num_records is None and release.certificate.mechanism["adjacency"] == "replace":
            raise ValueError("the number of records of this design is not known: release it from a table that tells it")

    @property
    def method(self) -> str:
        return (
            "the moments of the design that were released before, and the mean curvature and squared score with noise "
            f"of their own for {self.share:g} of epsilon; the quantiles are those of H^-1(z - S) over what the noise "
            "of all may have been"
        )

    def check(self, mechanism: Any) -> None:
        super().check(mechanism)
        if not isinstance(mechanism.loss, AbstractResidualLoss):
            raise ValueError(
                f"the curvature of {type(mechanism.loss).__name__} depends on x'theta, so that X'X does not give its "
                "covariance: take kngjax.Sandwich"
            )
        ours, theirs = self._mechanism.bounds, mechanism.bounds
        alike = ours.intercept == theirs.intercept and ours.dimension == mechanism.dimension
        with float64():
            first, second = ([np.asarray(side) for side in one.features(one.dimension or 1)] for one in (ours, theirs))
        if not alike or not np.array_equal(first, second):
            raise ValueError("the design was released with other bounds of features than those of the mechanism")

    @property
    def _mechanism(self) -> DesignMoments:
        made = mechanism_of(self.design["certificate"]["mechanism"])
        assert isinstance(made, DesignMoments)
        return made

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        return [UNIT, UNIT]

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        return [curvature, square]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        curvature, square = (part[:, 0] for part in parts)
        count, gram = self._moments(len(curvature))
        return proportional(count, curvature, square, gram)

    def _moments(self, number: int) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, "draws d d"]]:
        """n and G as they may be without noise."""
        made = self._mechanism
        noise = box_noise(made.summing, np.random.default_rng(_SEED), number)
        return made.gram(np.asarray(self.design["value"]) - noise, self.design["certificate"].get("num_records"))


def _read(design: Any) -> Release:
    return Release.from_json(design if isinstance(design, str) else json.dumps(design))
