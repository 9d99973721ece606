"""The gradient at a released value as a sum of independent scores of records, of which only a model is known."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import float64
from kngjax.core.modules import FreshArrays
from kngjax.inference.published import is_at_the_boundary, mechanism_of
from kngjax.inference.response_laws import nodes_and_weights, of_each
from kngjax.losses.base import AbstractPredictorLoss, AbstractResidualLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.expected_noise import k_norm_covariance
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.releases.release import Release

# How far a predictor may move in one step where residuals set no scale: in logarithms of odds and rates.
_LONGEST = 3.0


class ScoreMoments(NamedTuple):
    """Holds the moments of one record's scores at the released values.

    **Arguments:** `mean`: m, shape (D,). `covariance`: C, shape (D, D). `log_determinants`:
    Σ log det (nE ρ''xx' + γI), over releases.
    """

    mean: Float[Array, " scores"]
    covariance: Float[Array, "scores scores"]
    log_determinants: Float[Array, ""]


@dataclass(frozen=True, eq=False)
class ReleasedGradient(FreshArrays):
    """Holds what is public of one release: z = n·m(θ̃) + S + γ(θ̃ - c) has the law `noise`.

    **Arguments:** `value`: θ̃, shape (d,). `mechanism`. `noise`: its law, by the mechanism. `scale`: Cholesky's L with
    LL' the covariance of z. `num_records`: n, None where it is private.
    """

    value: Any
    mechanism: AbstractMechanism
    noise: GradientNoise
    scale: np.ndarray
    num_records: int | None

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, release: Release) -> "ReleasedGradient":
        """Reads the law of the gradient off a release. Raises ValueError for one without a likelihood, saying why."""
        certificate = release.certificate
        mechanism = mechanism_of(certificate.mechanism)
        with jax.ensure_compile_time_eval(), float64():
            return cls._of(np.asarray(release.value), mechanism, certificate.num_records)

    @classmethod
    def _of(cls, value: np.ndarray, mechanism: Any, num_records: int | None) -> "ReleasedGradient":
        loss, dimension = mechanism.loss, len(value)
        noise = mechanism.noise.of_gradient(dimension)
        if mechanism.bounds.weight is not None:
            raise ValueError("records of this release have weights, whose law is not modelled: no likelihood is served")
        if mechanism.has_regressors and not isinstance(loss, AbstractPredictorLoss):
            if loss.gradient_slope is None:
                raise ValueError(f"no likelihood is served for {type(loss).__name__}: take a mean or a regression")
        elif mechanism.has_regressors and loss.score_is_piecewise_constant:
            raise ValueError(
                f"the scores of {type(loss).__name__} are steps: given the data KNG is then far from its limit law, "
                "and the likelihood that is built on it is not known to be calibrated. Release by "
                "SmoothedQuantileLoss(tau, bandwidth)"
            )
        domain = getattr(mechanism, "domain", None)
        if domain is not None and is_at_the_boundary(domain, value):
            raise ValueError(
                "the released value lies on the boundary of its domain, where the law of its gradient is not known"
            )
        scale = np.linalg.cholesky(k_norm_covariance(noise.norm, noise.rate, dimension))
        noise = noise._replace(norm=jax.tree.map(np.asarray, noise.norm))
        return cls(value, mechanism, noise, scale, num_records)

    @property
    def is_regression(self) -> bool:
        """Tells whether the release explains a response; else it is a mean."""
        return isinstance(self.mechanism.loss, AbstractPredictorLoss)

    @property
    def dimension(self) -> int:
        return len(self.scale)

    def clip_interval(self) -> tuple[float, float] | None:
        """Returns the interval that responses were clipped to; None where they were not."""
        interval = self.mechanism.loss.response_interval(self.mechanism.bounds)
        return None if interval is None else (float(interval[0]), float(interval[1]))


def moments_of_regressions(
    parts: tuple[ReleasedGradient, ...], rows: tuple[np.ndarray, ...], record: Any, num_records: Any
) -> ScoreMoments:
    """Computes m and C of the scores s·x of all releases together, over the rows and the law of a response at each.

    **Arguments:** `parts`: releases from the same records. `rows`: of each the clipped features, (m, d). `record`: a
    function of the first ones to a NumPyro distribution. `num_records`: n.
    """
    law = record(jnp.asarray(rows[0]))
    scores, means, log_determinants, chances = [], [], jnp.zeros(()), None
    for part, features in zip(parts, rows, strict=True):
        loss = part.mechanism.loss
        values, chances = nodes_and_weights(law, len(features), part.clip_interval(), loss.is_smooth)
        x = jnp.asarray(features)
        assert isinstance(loss, AbstractPredictorLoss)
        at_value = of_each(loss.record_score, x @ jnp.asarray(part.value), values)
        scores.append(at_value)
        means.append(jnp.sum(chances * at_value, axis=1) @ x / len(features))
        log_determinants += _log_determinant(part, x, values, chances, num_records)
    assert chances is not None
    blocks = [
        [
            (jnp.asarray(left) * jnp.sum(chances * one * other, axis=1)[:, None]).T @ jnp.asarray(right) / len(left)
            for other, right in zip(scores, rows, strict=True)
        ]
        for one, left in zip(scores, rows, strict=True)
    ]
    mean = jnp.concatenate(means)
    return ScoreMoments(mean, jnp.block(blocks) - jnp.outer(mean, mean), log_determinants)


def moments_of_means(parts: tuple[ReleasedGradient, ...], law: Any) -> ScoreMoments:
    """Computes m and C of θ̃ - x for records x with independent columns, clipped to the bounds of each release.

    **Arguments:** `law`: a NumPyro distribution of batch shape (d,).
    """
    columns = []
    for part in parts:
        with jax.ensure_compile_time_eval(), float64():
            sides = np.asarray(part.mechanism.bounds.features(part.dimension))
        values, chances = nodes_and_weights(law, part.dimension, None, is_smooth=False)
        columns.append((jnp.clip(values, sides[0][:, None], sides[1][:, None]), chances))
    centres = [jnp.sum(chances * values, axis=1) for values, chances in columns]
    gaps = [values - centre[:, None] for (values, _), centre in zip(columns, centres, strict=True)]
    blocks = [[jnp.diag(jnp.sum(columns[0][1] * one * other, axis=1)) for other in gaps] for one in gaps]
    mean = jnp.concatenate([jnp.asarray(part.value) - centre for part, centre in zip(parts, centres, strict=True)])
    return ScoreMoments(mean, jnp.block(blocks), jnp.zeros(()))


def _log_determinant(part: ReleasedGradient, x: Array, values: Array, chances: Array, num_records: Any) -> Array:
    """Computes log det (nE ρ''xx' + γI) at θ̃, or for KNG at the minimum of E ℓ.

    KNG's normaliser has the Hessian there; a Newton step from θ̃ finds the minimum.
    """
    loss, noise, theta = part.mechanism.loss, part.noise, jnp.asarray(part.value)
    assert isinstance(loss, AbstractPredictorLoss)

    def hessian(theta: Array) -> Array:
        curvatures = jnp.sum(chances * of_each(loss.record_curvature, x @ theta, values), axis=1)
        return (x * curvatures[:, None]).T @ x / len(x)

    def gradient(theta: Array) -> Array:
        return jnp.sum(chances * of_each(loss.record_score, x @ theta, values), axis=1) @ x / len(x)

    if noise.determinant == "minimum":
        step = jnp.linalg.solve(hessian(theta), gradient(theta))
        # Far from the minimum ρ'' may be next to nothing, and a step of any length.
        longest = _LONGEST
        if isinstance(loss, AbstractResidualLoss):
            longest = jnp.mean(jnp.sum(chances * jnp.abs(values - (x @ theta)[:, None]), axis=1))
        theta = theta - step / jnp.sqrt(1.0 + jnp.mean((x @ step) ** 2) / longest**2)
    return jnp.linalg.slogdet(num_records * hessian(theta) + noise.ridge * jnp.eye(part.dimension))[1]
