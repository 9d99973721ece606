"""Computes the estimate without privacy and its standard errors: chains start there, and only the owner may see it."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.records import Data, QuadraticSummary, Records, WeightedRecords
from kngjax.losses.base import AbstractLoss


@owner_only
class NonprivateFit(OwnerOnly):
    """Holds a fit without privacy: owner-only. **Arguments:** `theta`: the minimiser of ℓ_n, shape (d,);
    `standard_errors`: shape (d,).
    """

    theta: Float[np.ndarray, " dimension"]
    standard_errors: Float[np.ndarray, " dimension"]
    instead: ClassVar[str] = "its numbers, for the owner, are theta and standard_errors"


def minimiser(loss: AbstractLoss, data: Data) -> Float[np.ndarray, " dimension"]:
    """Finds argmin ℓ_n(θ; D) over all of R^d. Owner-only: not a private release.

    The minimiser has a closed form for a sufficient statistic; else the loss's own `minimise` finds it. It is 0 where
    every θ fits alike: without records, and for features that are all 0.
    """
    if isinstance(data, QuadraticSummary):
        if data.in_public_units:
            raise TypeError(
                "these data are in the public units of the mechanism that prepared them, and their minimiser would be "
                "too: give what kngjax.data.prepare makes of the records"
            )
        return np.linalg.lstsq(np.asarray(data.gram), np.asarray(data.moment), rcond=None)[0]
    assert isinstance(data, Records | WeightedRecords)
    with float64():
        has_features = bool(data.rows.x.any())
    return loss.minimise(data) if has_features else np.zeros(data.dimension)


def clipped(data: Data, reach: tuple[Any, Any]) -> Data:
    """Clips responses to three times the public reach of x'θ, for estimates about which chains start. Owner-only.

    Losses with a bounded score need no bound on y, and one response of astronomical size would swamp a float64 sum.

    **Arguments:** `reach`: from `domain.linear_interval`; where it is infinite nothing is clipped.
    """
    lower, upper = (float(end) for end in reach)
    if isinstance(data, Records | WeightedRecords) and np.isfinite(upper - lower):
        margin, rows = upper - lower + 1.0, data.rows
        clip = jnp.clip if isinstance(rows.y, jax.Array) else np.clip
        rows = Records(rows.x, clip(rows.y, lower - margin, upper + margin))
        return rows if isinstance(data, Records) else WeightedRecords(rows, data.weights)
    return data


@jax.jit
def _hessian(theta, loss, data):
    return loss.hessian(theta, data)


@jax.jit
def _record_gradients(theta, loss, data):
    return loss.record_gradients(theta, data)


def fit(loss: AbstractLoss, records: Records | WeightedRecords) -> NonprivateFit:
    """Returns the minimiser with its sandwich standard errors (H^{-1} Σ g_i g_i' H^{-1})^½, g_i the records' gradients.

    For the quantile loss H is Powell's kernel estimate and Σ g_i g_i' about τ(1-τ)X'X. Weights of records enter ℓ_n
    and g_i: that is the estimate of a survey whose records were drawn independently. Owner-only.
    """
    if isinstance(records, WeightedRecords) and loss.is_homogeneous:
        records = records.products()
    theta = minimiser(loss, loss.summarise(records))
    with float64():
        hessian = np.asarray(_hessian(theta, loss, records))
        gradients = np.asarray(_record_gradients(theta, loss, records))
    inverse = np.linalg.pinv(hessian)
    spread = gradients.T @ gradients
    return NonprivateFit(theta, np.sqrt(np.diagonal(inverse @ spread @ inverse)))
