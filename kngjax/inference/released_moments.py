"""What follows from the noisy moments that a linear regression publishes: X'X and X'y as they may be without noise."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.mechanisms.ada_ssp import AdaSSP

Matrix = Float[np.ndarray, "dimension dimension"]


class MomentNoise(NamedTuple):
    """z = Gθ̃ - m of G = X'X and m = X'y, given G: what is left of it is the noise of m, N(0, C).

    θ0 = G^{-1}(m + S) with S = ∇ℓ_n(θ0), so that θ̃ - θ0 = G^{-1}(z - S), whatever θ̃ was made of.

    **Arguments:** `theta`: θ̃. `moment`: m + e with its noise e, but for `middle`·G's first column, shape (d,).
    `factor`: L with LL' = C. All of it is public.
    """

    theta: Float[np.ndarray, " dimension"]
    moment: Float[np.ndarray, " dimension"]
    middle: float
    factor: Matrix
    assumptions: tuple[str, ...] = ()

    def pull(self, theta: Any) -> Any:
        """None: that θ̃ has a ridge is in z."""
        return np.zeros_like(theta)

    def draws(self, hessian: Float[np.ndarray, "draws dimension dimension"], seed: int) -> np.ndarray:
        """Draws of Gθ̃ - m given each G, shape (draws, d): post-processing, whose seed may be public."""
        normals = np.random.default_rng([seed, 3]).standard_normal(hessian.shape[:2])
        known = hessian @ self.theta - self.middle * hessian[:, :, 0] - self.moment
        return known + normals @ self.factor.T


@dataclasses.dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The moments that a release of `AdaSSP` publishes: G̃ = X'X + E and m̃ = X'y + e in public units.

    E is symmetric with deviation σ on its diagonal and σ/√2 off it, e has deviation τ. With public units x = Bx̃ and
    y = h_y·ỹ + m_y those in own units are BGB' and h_y·Bm + m_y·(the first column of BGB'), since beside an intercept
    the first column of x is 1, and without one m_y = 0.

    **Arguments:** `mechanism`. `published`: of its release. All of it is public.
    """

    mechanism: AdaSSP
    published: Mapping[str, np.ndarray]

    @property
    def _dimension(self) -> int:
        return len(self.published["moment"])

    @property
    def _deviations(self) -> tuple[float, float]:
        """τ and σ."""
        _, on_moment, on_matrix = self.mechanism.known_deviations(self._dimension).tolist()
        return on_moment, on_matrix

    def grams(self, random: Any, number: int) -> Float[np.ndarray, "draws dimension dimension"]:
        """X'X in own units as it may be: G̃ less noise as it has."""
        dimension, (_, deviation) = self._dimension, self._deviations
        normals = random.standard_normal((number, dimension, dimension))
        # Off the diagonal the mean of two has the deviation 1/√2, and on it of one number 1.
        noise = deviation * 0.5 * (normals + normals.transpose(0, 2, 1))
        to_own = self.mechanism.public_units(dimension).to_own
        return to_own @ (self.published["gram"] - noise) @ to_own.T

    def noise(self, theta: Float[np.ndarray, " dimension"]) -> MomentNoise:
        """Of z at the released θ̃."""
        units = self.mechanism.public_units(self._dimension)
        to_own, height, (on_moment, _) = units.to_own, float(units.y_half_width), self._deviations
        moment = height * to_own @ self.published["moment"]
        return MomentNoise(theta, moment, float(units.y_middle), height * on_moment * to_own)
