"""The known law of the gradient at a released value, from which likelihoods and intervals of the release follow."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.randomness import research_key
from kngjax.data.public_units import PublicUnits
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import k_norm_noise
from kngjax.mechanisms.expected_noise import ExpectedNoise, k_norm_covariance

_AT_ONCE = 4096


class GradientNoise(NamedTuple):
    """Given the records θ̃ has density ∝ exp(-c‖z‖_K)·det H, with z = ∇ℓ_n(θ̃) + γ(θ̃ - m) and H = ∇²ℓ_n + γI.

    **Arguments:** `norm`: ‖·‖_K. `rate`: c. `ridge`: γ. `determinant`: where H is taken: "release" at θ̃, where this is
    the law by a change of variables; "minimum" at the minimiser of ℓ_n, where it is KNG's normaliser, const/det H to
    second order; None where H is constant. `centre`: m, shape (d,); None is 0.
    """

    norm: AbstractNorm
    rate: float
    ridge: float
    determinant: Literal["release", "minimum"] | None
    centre: np.ndarray | None = None
    assumptions: tuple[str, ...] = ()

    def pull(self, theta: Any) -> Any:
        """γ(θ - m)."""
        return self.ridge * (theta if self.centre is None else theta - self.centre)

    def expected(self, hessian: np.ndarray) -> ExpectedNoise:
        """Foresees θ̃ - θ̂, with θ̂ the minimiser of ℓ_n, from H(θ̃ - θ̂) = z - γ(θ̃ - m) to first order."""
        noise = k_norm_covariance(self.norm, self.rate, len(hessian))
        return ExpectedNoise.of_gradient_noise(hessian, noise, self.ridge)

    def draws(self, hessian: Float[np.ndarray, "draws dimension dimension"], seed: int) -> np.ndarray:
        """Draws of z, one for each H, shape (draws, d): post-processing, whose seed may be public."""
        number, dimension = hessian.shape[:2]
        # The number is rounded up, so that few shapes occur: each is compiled anew.
        most = -(-number // _AT_ONCE) * _AT_ONCE
        with float64():
            drawn = np.asarray(k_norm_noise(self.norm, research_key(seed), self.rate, (most,), dimension))
        return drawn[:number]


class NormalNoise(NamedTuple):
    """Given the records z = ∇ℓ_n(θ̃) + γθ̃ is N(0, (H + γI)^p/τ), with H = ∇²ℓ_n: exactly where H is constant.

    With θ̂ the minimiser of ℓ_n + ½γ|θ|² it is z = (H + γI)(θ̃ - θ̂), so that p = 2 is noise N(0, I/τ) of θ̃ itself, p =
    1 a posterior N(θ̂, (τ(H + γI))^{-1}), and p = 0 noise N(0, I/τ) of the gradient.

    **Arguments:** `precision`: τ. `power`: p. `ridge`: γ. `assumptions`: what an interval made of it rests on besides.
    """

    precision: float
    power: Literal[0, 1, 2]
    ridge: float = 0.0
    assumptions: tuple[str, ...] = ()

    def pull(self, theta: Any) -> Any:
        """γθ."""
        return self.ridge * theta

    def expected(self, hessian: np.ndarray) -> ExpectedNoise:
        """Foresees θ̃ - θ̂, with θ̂ the minimiser of ℓ_n, to first order."""
        with_ridge = hessian + self.ridge * np.eye(len(hessian))
        noise = np.linalg.matrix_power(with_ridge, self.power) / self.precision
        return ExpectedNoise.of_gradient_noise(hessian, noise, self.ridge)

    def draws(self, hessian: Float[np.ndarray, "draws dimension dimension"], seed: int) -> np.ndarray:
        """Draws z once for each H, shape (draws, d): post-processing, whose seed may be public."""
        values, vectors = np.linalg.eigh(hessian)
        normals = np.random.default_rng([seed, self.power]).standard_normal(values.shape)
        scaled = np.maximum(values + self.ridge, 0.0) ** (self.power / 2.0) * normals / np.sqrt(self.precision)
        return np.einsum("bij,bj->bi", vectors, scaled)


class MomentNoise(NamedTuple):
    """z = Gθ̃ - m of G = X'X and m = X'y, given G: what is left of it is the noise of m, N(0, C).

    θ0 = G^{-1}(m + S) with S = ∇ℓ_n(θ0), so that θ̃ - θ0 = G^{-1}(z - S), whatever θ̃ was made of.

    **Arguments:** `theta`: θ̃. `moment`: m + e with its noise e, but for `middle`·G's first column, shape (d,).
    `factor`: L with LL' = C. All of it is public.
    """

    theta: Float[np.ndarray, " dimension"]
    moment: Float[np.ndarray, " dimension"]
    middle: float
    factor: Float[np.ndarray, "dimension dimension"]
    assumptions: tuple[str, ...] = ()

    def pull(self, theta: Any) -> Any:
        """Adds no pull, as z holds the ridge of θ̃."""
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
