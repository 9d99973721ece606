"""Releases by the laws of their mechanisms in float64, many times as fast as exact ones: for benchmarks alone.

Parameters of a mechanism, K-norms, rates, ridges and deviations, are the library's; gradients and the search for where
they are what the noise says are NumPy's. What is drawn has roundings that no proof covers.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy.special

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled
from kngjax.data.bounds import Bounds
from kngjax.inference import gaussian_sums
from kngjax.inference.covariances import IndependentErrors, Sandwich
from kngjax.inference.score_moments import RecordCurvature
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.mechanisms.k_norm import KNormMechanism

# Of a record: how far the gradient may be from the noise.
_TOLERANCE = 1e-3
# By n·ε/d below which det H varies so much.
_PROPOSALS = {300.0: 16, 1_000.0: 8, 3_000.0: 4, 10_000.0: 2}
_CHORDS, _STEPS, _HALVINGS, _TRIES = 15, 60, 12, 50


class Fit(NamedTuple):
    """Without privacy. **Arguments:** `theta`: θ̂. `inverse`: of H there. `errors`: sandwich standard errors."""

    theta: np.ndarray
    inverse: np.ndarray
    errors: np.ndarray


class Drawn(NamedTuple):
    """**Arguments:** `value`: θ̃. `published`: of the release. `effective`: the effective share of proposals."""

    value: np.ndarray
    published: dict[str, np.ndarray]
    effective: float


def score(loss: Any, predictor: np.ndarray, y: np.ndarray) -> np.ndarray:
    """s of records. **Arguments:** `predictor`: shape (n,), or (proposals, n)."""
    distance = predictor - y
    if isinstance(loss, kng.SquaredLoss):
        return distance
    if isinstance(loss, kng.LogisticLoss):
        return scipy.special.expit(predictor) - y
    if isinstance(loss, kng.SmoothedQuantileLoss):
        return scipy.special.expit(distance / float(loss.bandwidth)) - float(loss.tau)
    if not isinstance(loss, kng.PseudoHuberLoss):
        raise TypeError(f"no quick release has the loss {loss}")
    return distance / np.sqrt(1.0 + (distance / float(loss.k)) ** 2)


def curvature(loss: Any, predictor: np.ndarray, y: np.ndarray) -> np.ndarray:
    """w of records, the derivative of `score`."""
    if isinstance(loss, kng.SquaredLoss):
        return np.ones_like(predictor)
    if isinstance(loss, kng.LogisticLoss):
        chance = scipy.special.expit(predictor)
        return chance * (1.0 - chance)
    if isinstance(loss, kng.SmoothedQuantileLoss):
        width = float(loss.bandwidth)
        chance = scipy.special.expit((predictor - y) / width)
        return chance * (1.0 - chance) / width
    # A power of three is a product: NumPy's takes three times as long.
    inverse = 1.0 / np.sqrt(1.0 + ((predictor - y) / float(loss.k)) ** 2)
    return inverse * inverse * inverse


def hessian(loss: Any, x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """H."""
    return _weighted(x, curvature(loss, x @ theta, y))


@dataclasses.dataclass(frozen=True, eq=False)
class Equation:
    """∇ℓ(θ) + γ(θ - c) = z. **Arguments:** `x`: with the intercept. `ridge`: γ. `centre`: c."""

    loss: Any
    x: np.ndarray
    y: np.ndarray
    ridge: float = 0.0
    centre: Any = 0.0

    def left(self, thetas: np.ndarray, noises: np.ndarray) -> np.ndarray:
        """The left less the right side, a row for each θ and z."""
        return score(self.loss, thetas @ self.x.T, self.y) @ self.x + self.ridge * (thetas - self.centre) - noises

    def solutions(self, start: np.ndarray, inverse: np.ndarray, noises: np.ndarray) -> np.ndarray:
        """θ for each z, NaN where there is none within reach. **Arguments:** `inverse`: of H + γI at the start."""
        thetas, sizes = np.tile(start, (len(noises), 1)), np.full(len(noises), np.inf)
        moving = np.ones(len(noises), bool)
        for _ in range(_CHORDS):
            left = self.left(thetas[moving], noises[moving])
            now = np.abs(left).max(axis=1)
            is_slow = ~(now < 0.5 * sizes[moving])
            thetas[moving] = np.where(is_slow[:, None], np.nan, thetas[moving] - left @ inverse)
            sizes[moving], moving[moving] = now, (now > _TOLERANCE) & ~is_slow
            if not moving.any():
                break
        for place in np.flatnonzero(moving | np.isnan(thetas[:, 0])):
            thetas[place] = self.by_newton(start, noises[place])
        return thetas

    def by_newton(self, theta: np.ndarray, noise: Any = 0.0) -> np.ndarray:
        """The same for one z, by Newton's method with halved steps."""
        left = self.left(theta[None], noise)[0]
        for _ in range(_STEPS):
            if np.abs(left).max() < _TOLERANCE:
                return theta
            bend = hessian(self.loss, self.x, self.y, theta) + self.ridge * np.eye(len(theta))
            move = np.linalg.solve(bend + 1e-9 * (np.trace(bend) + 1e-9) * np.eye(len(theta)), left)
            for halving in range(_HALVINGS):
                trial = theta - 0.5**halving * move
                after = self.left(trial[None], noise)[0]
                if np.linalg.norm(after) < np.linalg.norm(left):
                    break
            else:
                break
            theta, left = trial, after
        return np.full_like(theta, np.nan)


def fit_of(loss: Any, x: np.ndarray, y: np.ndarray) -> Fit:
    """θ̂ and its standard errors."""
    start = np.zeros(x.shape[1]) if isinstance(loss, kng.LogisticLoss) else np.linalg.solve(x.T @ x, x.T @ y)
    theta = Equation(loss, x, y).by_newton(start)
    inverse = np.linalg.inv(hessian(loss, x, y, theta))
    square = _weighted(x, score(loss, x @ theta, y) ** 2)
    return Fit(theta, inverse, np.sqrt(np.diag(inverse @ square @ inverse)))


@dataclasses.dataclass(frozen=True, eq=False)
class QuickRelease:
    """Draws of one mechanism. **Arguments:** `mechanism`: KNG, `ObjectivePerturbation` or `AdaSSP`."""

    mechanism: Any

    @functools.cached_property
    def _noise(self) -> Any:
        return self.mechanism.noise.of_gradient(self.mechanism.dimension)

    def __call__(self, x: np.ndarray, y: np.ndarray, fit: Fit, random: np.random.Generator) -> Drawn:
        """θ̃ of these records. **Arguments:** `x`: with the intercept, within the bounds, as y is."""
        if isinstance(self.mechanism, kng.AdaSSP):
            return self._of_moments(x, y, random)
        if isinstance(self.mechanism, kng.KNG):
            return self._of_gradients(x, y, fit, random)
        return self._of_objective(x, y, fit, random)

    def _gradients(self, random: np.random.Generator, number: int) -> np.ndarray:
        """z of density ∝ exp(-c‖z‖): a Gamma(d + 1) radius times a point of the box."""
        widths = np.asarray(self._noise.norm.weights)
        radii = random.gamma(len(widths) + 1.0, 1.0 / self._noise.rate, (number, 1))
        return radii * random.uniform(-1.0, 1.0, (number, len(widths))) * widths

    def _of_gradients(self, x: np.ndarray, y: np.ndarray, fit: Fit, random: np.random.Generator) -> Drawn:
        """KNG: z = ∇ℓ(θ) of density ∝ exp(-c‖z‖) gives θ the density exp(-c‖∇ℓ(θ)‖)·det H(θ): weights are 1/det H.

        Of few proposals one is taken by its weight. Where H all but vanishes on the way to far θ, as of a quantile in a
        tail with n·ε/d below 300, such θ are rarer than they should be: deviations are .7 of what they are.
        """
        number, reach = self._proposals(len(x)), float(self.mechanism.domain.upper)
        for _ in range(_TRIES):
            found = Equation(self.mechanism.loss, x, y).solutions(
                fit.theta, fit.inverse, self._gradients(random, number)
            )
            found = found[np.max(np.abs(found), axis=1) <= reach]
            if len(found):
                break
        else:
            raise RuntimeError("no proposal lies within the domain")
        if number == 1:
            return Drawn(found[0], {}, 1.0)
        logs = np.array([-np.linalg.slogdet(hessian(self.mechanism.loss, x, y, theta))[1] for theta in found])
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        return Drawn(found[random.choice(len(found), p=weights)], {}, float(1.0 / np.sum(weights**2) / len(found)))

    def _proposals(self, count: int) -> int:
        straight = count * float(self.mechanism.epsilon) / self.mechanism.dimension
        return next((number for most, number in _PROPOSALS.items() if straight < most), 1)

    def _of_objective(self, x: np.ndarray, y: np.ndarray, fit: Fit, random: np.random.Generator) -> Drawn:
        """The minimiser of ℓ(θ) + γ|θ - c|²/2 + b'θ, where ∇ℓ(θ) + γ(θ - c) = -b."""
        ridge, reach = self._noise.ridge, float(self.mechanism.domain.upper)
        equation = Equation(self.mechanism.loss, x, y, ridge, self._noise.centre)
        inverse = np.linalg.inv(np.linalg.inv(fit.inverse) + ridge * np.eye(x.shape[1]))
        (theta,) = equation.solutions(fit.theta, inverse, self._gradients(random, 1))
        return Drawn(np.clip(theta, -reach, reach), {}, 1.0)

    def _of_moments(self, x: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Drawn:
        """AdaSSP: λ_min, X'y and X'X in public units with normal noise, and the ridge regression that they give."""
        dimension = x.shape[1]
        units, deviations = self.mechanism.public_units(dimension), self.mechanism.known_deviations(dimension)
        scaled = x @ np.linalg.inv(units.to_own).T
        gram = scaled.T @ scaled
        moment = scaled.T @ (y - float(units.y_middle)) / float(units.y_half_width)
        normals = random.standard_normal((dimension, dimension))
        least = np.linalg.eigvalsh(gram)[0] + deviations[0] * random.standard_normal()
        moment = moment + deviations[1] * random.standard_normal(dimension)
        gram = gram + 0.5 * deviations[2] * (normals + normals.T)
        with float64():
            theta = np.array(_estimate(self.mechanism, least, moment, gram))
        return Drawn(theta, {"moment": moment, "gram": gram}, 1.0)


@Compiled
def _estimate(mechanism: Any, least: Any, moment: Any, matrix: Any) -> Any:
    return mechanism.estimate(least, moment, matrix)


def sums_of(making: Any, x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """What the columns of all records at θ add up to, before noise: those of d made-up records for each matrix.

    **Arguments:** `making`: a `SumsPlan` under replace. `x`, `y`: within the bounds.
    """
    covariance, bounds, adjacency = making.covariance, making.mechanism.bounds, making.mechanism.adjacency
    loss, predictor, units = making.mechanism.loss, x @ theta, making.curvature.units(theta)
    # No record has more than its unit.
    curvatures = np.minimum(curvature(loss, predictor, y) / units[0], 1.0)
    squares = np.minimum(score(loss, predictor, y) ** 2 / units[1], 1.0)
    chosen = getattr(covariance, "chosen", covariance)
    if covariance.is_gaussian:
        above = np.triu_indices(x.shape[1])
        matrices = [gaussian_sums.in_public_units(_weighted(x, one), bounds) for one in (curvatures, squares)]
        return np.concatenate([one[above] for one in matrices])
    if isinstance(chosen, Sandwich):
        rows = np.vstack([_roots(_weighted(x, curvatures)), _roots(_weighted(x, squares))])
        curvatures, squares = np.repeat(np.eye(2), x.shape[1], axis=1)
    elif isinstance(covariance, IndependentErrors):
        # Matrices of features alone, and the two numbers with a record without features.
        rows = np.vstack([_roots(x.T @ x), np.zeros(x.shape[1])])
        last = np.eye(len(rows))[-1]
        curvatures, squares = last * curvatures.sum(), last * squares.sum()
    else:
        rows = x
    return covariance.columns_of(rows, curvatures, squares, bounds, adjacency).sum(axis=0)


def _weighted(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w·xx'."""
    return (x.T * weights) @ x


def _roots(matrix: np.ndarray) -> np.ndarray:
    """R with R'R the matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


@contextlib.contextmanager
def kept_facts() -> Iterator[None]:
    """Within it public facts that every interval asks for anew, and the same z redrawn, are computed once."""

    def kept(function: Callable[..., Any], key: Callable[..., Any]) -> Callable[..., Any]:
        known: dict[Any, Any] = {}

        def found(*given: Any) -> Any:
            if (place := key(*given)) is None:
                return function(*given)
            if place not in known:
                # With what has the id, which is then nobody else's.
                known[place] = function(*given), given
            return known[place][0]

        return found

    def of_units(curvature: RecordCurvature, theta: np.ndarray) -> Any:
        is_fixed = isinstance(curvature.loss, kng.PseudoHuberLoss | kng.SmoothedQuantileLoss)
        return (id(curvature.loss), id(curvature.bounds)) if is_fixed else None

    def of_draws(noise: GradientNoise, matrices: np.ndarray, seed: int) -> Any:
        return id(noise.norm), float(noise.rate), matrices.shape, seed

    most = functools.partial(kept, key=lambda one, *settings: (id(one), *settings))
    with (
        mock.patch.object(Bounds, "features", most(Bounds.features)),
        mock.patch.object(gaussian_sums, "feature_units", most(gaussian_sums.feature_units)),
        mock.patch.object(KNormMechanism, "noise_in_fractions", most(KNormMechanism.noise_in_fractions)),
        mock.patch.object(RecordCurvature, "units", kept(RecordCurvature.units, of_units)),
        mock.patch.object(GradientNoise, "draws", kept(GradientNoise.draws, of_draws)),
    ):
        yield
