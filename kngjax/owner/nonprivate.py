"""The estimate without privacy and its standard errors: where chains start, and what only the owner may see."""

import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Float

from kngjax.core.arrays import float64, record_sums_on_host
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.records import Data, QuadraticSummary, Records
from kngjax.losses.base import AbstractLoss
from kngjax.losses.distance import GeometricMedianLoss
from kngjax.losses.quantile import QuantileLoss

# Up to so many rows one linear programme takes milliseconds.
MOST_WHOLE_ROWS = 3000


@owner_only
class NonprivateFit(OwnerOnly):
    """Owner-only. **Arguments:** `theta`: the minimiser of ℓ_n, shape (d,); `standard_errors`: shape (d,)."""

    theta: Float[np.ndarray, " dimension"]
    standard_errors: Float[np.ndarray, " dimension"]
    instead: ClassVar[str] = "its numbers, for the owner, are theta and standard_errors"


def minimiser(loss: AbstractLoss, data: Data) -> Float[np.ndarray, " dimension"]:
    """argmin ℓ_n(θ; D) over all of R^d. Owner-only: not a private release.

    Quadratic losses in closed form; the quantile loss as a linear programme by HiGHS (Koenker 2005, section 6.2), on
    the rows that matter; the geometric median by Weiszfeld's iteration; smooth losses by SciPy's trust-region Newton
    method. 0 where every θ fits alike: of no records, and of features that are all 0.
    """
    if isinstance(data, QuadraticSummary):
        return np.linalg.lstsq(np.asarray(data.gram), np.asarray(data.moment), rcond=None)[0]
    assert isinstance(data, Records)
    with float64():
        # Compiled, since rows may rest on the devices of other processes.
        has_features = bool(jax.jit(jnp.any)(jnp.asarray(data.x)))
    if not has_features:
        return np.zeros(data.dimension)
    if isinstance(loss, QuantileLoss):
        return _quantile_minimiser(np.asarray(data.x), np.asarray(data.y), float(loss.tau))
    if isinstance(loss, GeometricMedianLoss):
        return _geometric_median(np.asarray(data.x))
    with float64():
        functions = [functools.partial(function, loss=loss, data=data) for function in (_value_and_slope, _hessian)]
        result = scipy.optimize.minimize(
            lambda theta: tuple(np.asarray(part) for part in functions[0](theta)),
            np.zeros(data.dimension),
            jac=True,
            hess=lambda theta: np.asarray(functions[1](theta)),
            method="trust-exact",
            options={"maxiter": 500, "gtol": 1e-9 * data.y.shape[0]},
        )
    return result.x


def centre(loss: AbstractLoss, data: Data, reach: tuple[Any, Any]) -> Float[np.ndarray, " dimension"]:
    """Where a chain starts: the minimiser for responses clipped to three times the public reach of x'θ. Owner-only.

    Losses with a bounded score need no bound on y, and one response of astronomical size would swamp a float64 sum.

    **Arguments:** `reach`: from `domain.linear_interval`; where it is infinite nothing is clipped.
    """
    lower, upper = (float(end) for end in reach)
    if isinstance(data, Records) and np.isfinite(upper - lower):
        margin = upper - lower + 1.0
        clip = jnp.clip if isinstance(data.y, jax.Array) else np.clip
        data = Records(data.x, clip(data.y, lower - margin, upper + margin))
    return minimiser(loss, data)


@jax.jit
def _value_and_slope(theta, loss, data):
    return loss.value(theta, data), loss.gradient(theta, data)


@jax.jit
def _hessian(theta, loss, data):
    return loss.hessian(theta, data)


@jax.jit
def _record_gradients(theta, loss, data):
    return loss.record_gradients(theta, data)


def _geometric_median(x: np.ndarray, num_steps: int = 1000) -> np.ndarray:
    """Weiszfeld's iteration as Vardi and Zhang (2000) mend it for iterates that fall on a record."""
    theta = np.median(x, axis=0)
    if x.shape[1] == 1:
        return theta
    for _ in range(num_steps):
        distances = np.linalg.norm(x - theta, axis=1)
        apart = distances > 0
        weights = 1.0 / distances[apart]
        pull = record_sums_on_host(weights, x[apart] - theta)
        resistance = np.count_nonzero(~apart)
        length = np.linalg.norm(pull)
        if length <= max(resistance, 1e-12 * len(x)):
            break
        step = (1.0 - resistance / length) * pull / record_sums_on_host(weights, np.ones((weights.size, 1)))
        theta = theta + step
        if np.linalg.norm(step) <= 1e-14 * (1.0 + np.linalg.norm(theta)):
            break
    return theta


def _quantile_minimiser(x: np.ndarray, y: np.ndarray, tau: float) -> np.ndarray:
    """Exact quantile regression at about the cost of one on n^(2/3) rows (Portnoy and Koenker 1997).

    The minimiser of a random part of the rows nearly tells which rows lie above the plane and which below. All but the
    rows nearest to it are merged into two, their means with their numbers as weights: by convexity the merged loss is
    nowhere above the whole one, and equal to it where every merged row is on its side. So a minimiser of the merged
    loss that leaves them there minimises the whole; if it does not, the rows on the wrong side are set free.
    """
    num_records, dimension = x.shape
    size = math.ceil((num_records * dimension) ** (2.0 / 3.0))
    if num_records <= MOST_WHOLE_ROWS or 2 * size >= num_records:
        return _linear_programme(x, y, np.ones(num_records), tau)
    # Which rows are chosen changes the time that it takes, not the smallest loss.
    part = np.random.default_rng(0).choice(num_records, size, replace=False)
    residuals = y - x @ _quantile_minimiser(x[part], y[part], tau)
    free = np.zeros(num_records, dtype=bool)
    while True:
        free[np.argpartition(np.abs(residuals), size)[:size]] = True
        above, below = ~free & (residuals > 0), ~free & (residuals <= 0)
        sides = np.stack([above, below])
        sides = sides[sides.any(axis=1)]
        counts = sides.sum(axis=1)
        merge = sides / counts[:, None]
        means = [record_sums_on_host(weights, np.column_stack([x, y])) for weights in merge]
        means = np.reshape(means, (len(merge), dimension + 1))
        theta = _linear_programme(
            np.concatenate([x[free], means[:, :-1]]),
            np.concatenate([y[free], means[:, -1]]),
            np.concatenate([np.ones(free.sum()), counts]),
            tau,
        )
        residuals = y - x @ theta
        # Rows on the plane but for rounding are on both sides.
        rounding = 1e-12 * (np.abs(y) + np.abs(x) @ np.abs(theta))
        wrong = (above & (residuals < -rounding)) | (below & (residuals > rounding))
        if not wrong.any():
            return theta
        free |= wrong


def _linear_programme(x: np.ndarray, y: np.ndarray, weights: np.ndarray, tau: float) -> np.ndarray:
    """argmin Σ w_i ρ_τ(y_i - x_i'θ) by its dual: max y'a with X'a = (1-τ)X'w, 0 ≤ a ≤ w; θ̂ are the multipliers."""
    result = scipy.optimize.linprog(
        -y,
        A_eq=scipy.sparse.csr_array(x.T),
        b_eq=(1.0 - tau) * (weights @ x),
        bounds=np.stack([np.zeros_like(weights), weights], axis=1),
        method="highs",
    )
    if not result.success:
        raise RuntimeError(f"the linear programme of the quantile regression failed: {result.message}")
    return -np.asarray(result.eqlin.marginals)


def fit(loss: AbstractLoss, records: Records) -> NonprivateFit:
    """The minimiser with its sandwich standard errors (H^{-1} Σ g_i g_i' H^{-1})^½, g_i the records' gradients.

    For the quantile loss H is Powell's kernel estimate and Σ g_i g_i' about τ(1-τ)X'X. Owner-only.
    """
    theta = minimiser(loss, loss.summarise(records))
    with float64():
        hessian = np.asarray(_hessian(theta, loss, records))
        gradients = np.asarray(_record_gradients(theta, loss, records))
    inverse = np.linalg.pinv(hessian)
    spread = gradients.T @ gradients
    return NonprivateFit(theta, np.sqrt(np.diagonal(inverse @ spread @ inverse)))
