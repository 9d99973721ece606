"""Infers X'X and X'y without noise from the noisy moments that a linear regression publishes."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.data.public_units import PublicUnits
from kngjax.mechanisms.gradient_noise import MomentNoise


@dataclasses.dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The moments that a release of `AdaSSP` publishes: G̃ = X'X + E and m̃ = X'y + e in public units.

    E is symmetric with deviation σ on its diagonal and σ/√2 off it, e has deviation τ. With public units x = Bx̃ and
    y = h_y·ỹ + m_y those in own units are BGB' and h_y·Bm + m_y·(the first column of BGB'), since beside an intercept
    the first column of x is 1, and without one m_y = 0.

    **Arguments:** `units`: B, h_y and m_y. `on_moment`: τ. `on_matrix`: σ. `published`: of the release. All of it is
    public.
    """

    units: PublicUnits
    on_moment: float
    on_matrix: float
    published: Mapping[str, np.ndarray]

    def grams(
        self, random: Any, number: int, least: float | None = None
    ) -> Float[np.ndarray, "draws dimension dimension"]:
        """X'X in own units as it may be: G̃ less noise as it has.

        **Arguments:** `least`: what eigenvalues are raised to in public units, in which all entries have noise alike:
        where columns differ 1e8 times in size the least eigenvalue in their own has no digit that is right.
        """
        dimension = len(self.published["moment"])
        normals = random.standard_normal((number, dimension, dimension))
        # Off the diagonal the mean of two has the deviation 1/√2, and on it of one number 1.
        noise = self.on_matrix * 0.5 * (normals + normals.transpose(0, 2, 1))
        made, to_own = self.published["gram"] - noise, self.units.to_own
        if least is not None:
            values, vectors = np.linalg.eigh(made)
            made = np.einsum("nij,nj,nkj->nik", vectors, np.maximum(values, least), vectors)
        return to_own @ made @ to_own.T

    def noise(self, theta: Float[np.ndarray, " dimension"]) -> MomentNoise:
        """Gives the law of z = Gθ̃ - m at the released θ̃, given G = X'X, with m = X'y."""
        to_own, height = self.units.to_own, float(self.units.y_half_width)
        moment = height * to_own @ self.published["moment"]
        return MomentNoise(theta, moment, float(self.units.y_middle), height * self.on_moment * to_own)
