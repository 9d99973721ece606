"""Mechanisms that add noise on grids, or draw about a minimiser: cases with laws by hand.

Records have one column each that is not 0, so that X'X is diagonal, and normal noise that follows it independent.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from audits.grid_laws.cells import Floats, cell_edges, independent, level_masses, normal_masses, root
from audits.grid_laws.laws import CellLaw, Law, StagedLaw, replaced
from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.weights import with_weights
from kngjax.draws.ada_ops_draw import NoisyAdaOPS
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.irls_iterates import IteratesOnGrid
from kngjax.draws.noisy_minimizers import NoisyMinimum, NoisyRidge
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.draws.perturbed_minimizers import QuadraticMinimum, SmoothMinimum
from kngjax.draws.ridge_posterior import NoisyPosterior
from kngjax.geometry.domains import Box
from kngjax.losses.huber import PseudoHuberLoss
from kngjax.losses.logistic import LogisticLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.ada_ops import AdaOPS
from kngjax.mechanisms.ada_ssp import AdaSSP
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.irls import PrivateIRLS
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.mechanisms.noise.matrix_noise import wishart_degrees
from kngjax.mechanisms.objective_perturbation import ObjectivePerturbation
from kngjax.mechanisms.output_perturbation import OutputPerturbation
from kngjax.mechanisms.posterior_sample import PosteriorSample

Bits = Callable[[int], int]
_COLUMNS = [-1.0, -1.0], [1.0, 1.0]
_OPEN, _PLANE = Bounds(x=_COLUMNS, intercept=False), Bounds(x=_COLUMNS, y=(-1.0, 1.0), intercept=False)
# Farther than any draw.
_FAR = 80.0


def _records(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(count)
    x, places = np.zeros((count, 2)), np.arange(count) % 2
    x[np.arange(count), places] = generator.uniform(-1.0, 1.0, count)
    return x, np.clip(x @ [0.6, -0.3] + 0.3 * generator.standard_normal(count), -1.0, 1.0)


def _shift(epsilon: float, delta: float) -> float:
    """s with Φ(s/2 - ε/s) - e^ε·Φ(-s/2 - ε/s) = δ."""

    def excess(s: float) -> float:
        near, far = scipy.special.ndtr([s / 2.0 - epsilon / s, -s / 2.0 - epsilon / s])
        return near - np.exp(epsilon) * far - delta

    return root(excess, 1e-3, 10.0)


def _exponent(deviation: float) -> int:
    return int(np.floor(np.log2(deviation))) - 1


def _normal(mechanism: Any, drawn_by: type, y: np.ndarray, means: Floats, deviations: Floats) -> Law:
    """In cells of about half a deviation."""
    x, exponent = _records()[0], _exponent(float(np.min(deviations)))
    edges = [cell_edges(mean, 12, exponent, -np.inf, np.inf) for mean in means]
    parts = zip(edges, means, deviations, strict=True)
    return CellLaw(mechanism, x, y, drawn_by, edges, independent(*(normal_masses(*part) for part in parts)), exponent)


def _mean() -> Law:
    """Density ∝ exp(-(nε/2)·max_j|θ_j - x̄_j|): the widths of the bounds are 2."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (8, 2))
    mechanism, rate = KNormMechanism(_OPEN, 1.5, "replace"), 8 * 1.5 / 2.0
    edges = [cell_edges(m, 12, -3, m - _FAR / rate, m + _FAR / rate) for m in x.mean(axis=0)]
    scores = [lambda theta, m=m: rate * (theta - m) for m in x.mean(axis=0)]
    return CellLaw(mechanism, x, None, NoisyMean, edges, level_masses(scores, edges), -3)


def _exclusive() -> Law:
    """Sums of two columns that exclude one another, of one record more or less: independent Laplace noise on both."""
    x, epsilon = _records()[0], 0.9
    mechanism = BlockSums(_OPEN, epsilon, "add_remove", [(0, 1)])
    edges = [cell_edges(mean, 12, 0, -np.inf, np.inf) for mean in x.sum(axis=0)]
    laws = [scipy.stats.laplace(mean, 1.0 / epsilon) for mean in x.sum(axis=0)]
    masses = [np.diff(law.cdf(ends)) for law, ends in zip(laws, edges, strict=True)]
    return CellLaw(mechanism, x, None, NoisyMean, edges, independent(*masses), 0)


def _exchanged() -> Law:
    """Sums of two columns in [0, 1] that exclude one another, density ∝ exp(-ε·max(Σz⁺, Σz⁻)): ‖z‖, and where z lies.

    ‖z‖ has the Gamma(2, ε) law. Uniform points of the unit ball have both signs alike with the probability 1/3, and
    then z_1/(z_1 + z_2) is uniform; else the larger size over ‖z‖ is 1, and the smaller one over it uniform.
    """
    x, epsilon = np.abs(_records()[0]), 1.5
    columns = Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False)

    def uniforms(way: Any, data: Any, number: int, bits: Bits) -> Floats:
        z = np.array([way.draw_alone(data, bits) for _ in range(number)]) - x.sum(axis=0)
        sizes, alike = np.abs(z), np.prod(z, axis=1) > 0.0
        norm = np.where(alike, sizes.sum(axis=1), sizes.max(axis=1))
        share = np.where(alike, sizes[:, 0] / norm, sizes.min(axis=1) / norm)
        place = np.where(alike, 2.0 + share, 2.0 * share) / 3.0
        return np.column_stack([scipy.stats.gamma(2, scale=1.0 / epsilon).cdf(norm), place])

    return StagedLaw(BlockSums(columns, epsilon, "replace", [(0, 1)]), x, None, NoisyMean, uniforms)


def _posterior(make: Callable[[], Any], power: float, ridge: float) -> Law:
    """N(Λ^{-1}X'y, Λ^{-power}/γ) with Λ = X'X + λI."""
    mechanism, (x, y) = make(), _records()
    curvature = (x**2).sum(axis=0) + ridge
    deviations = (float(mechanism.gamma_for(2)) * curvature**power) ** -0.5
    return _normal(mechanism, NoisyRidge if power == 0.0 else NoisyPosterior, y, x.T @ y / curvature, deviations)


def _perturbed(metric: str) -> Any:
    return OutputPerturbation(SquaredLoss(), _PLANE, 1000.0, 1.0, 1e-5, "replace", metric, max_records=40)


def _minimiser(slope: Callable[[Floats], Floats], ridge: float) -> float:
    return root(lambda t: float(slope(np.array(t))) + ridge * t, -50.0, 50.0)


def _slopes(name: str, x: np.ndarray, y: np.ndarray) -> list[Callable[[Floats], Floats]]:
    """The derivative of the loss by each coordinate."""
    score = {
        "squared": lambda eta, y: eta - y,
        "logistic": lambda eta, y: scipy.special.expit(eta) - y,
        "pseudo-Huber": lambda eta, y: (eta - y) / np.sqrt(1.0 + ((eta - y) / 0.5) ** 2),
    }[name]

    def along(axis: int) -> Callable[[Floats], Floats]:
        rows = x[:, axis] != 0.0
        column, response = x[rows, axis], y[rows]
        return lambda theta: (score(np.asarray(theta)[..., None] * column, response) * column).sum(axis=-1)

    return [along(axis) for axis in range(x.shape[1])]


_LOSSES = {"logistic": LogisticLoss(), "pseudo-Huber": PseudoHuberLoss(0.5), "squared": SquaredLoss()}


def _output(name: str, largest: float) -> Law:
    """Makes a minimiser with noise: a record more moves it by √2·max|s|/λ at most, the search by next to nothing."""
    (x, y), ridge = _records(), 2.0
    y = (y > 0.0) * 1.0 if name == "logistic" else y
    mechanism = OutputPerturbation(_LOSSES[name], _OPEN, ridge, 1.5, 1e-4, "add_remove")
    deviation = np.sqrt(2.0) * largest / ridge / _shift(1.5, 1e-4)
    means = np.array([_minimiser(slope, ridge) for slope in _slopes(name, x, y)])
    return _normal(mechanism, NoisyMinimum, y, means, np.full(2, deviation))


def _objective(name: str, largest: float, curvature: float, centre: tuple[float, float] = (0.0, 0.0)) -> Law:
    """θ_j ≤ t if and only if -b_j ≤ ∂_jℓ(t) + γ(t - c_j); b has density ∝ exp(-(ε'/2)·max_j|b_j|/Δ) with Δ = 2·max|s|.

    Where Θ is a box its ends have masses; the share for noise of an output is not spent.
    """
    x, y = _records()
    domain = Box([-0.7, -0.7], [0.7, 0.7]) if name == "squared" else None
    y = (y > 0.0) * 1.0 if name == "logistic" else y
    bounds = _PLANE if domain else _OPEN
    mechanism = ObjectivePerturbation(_LOSSES[name], bounds, domain, 6.0, "replace", centre=centre)
    half = 3.0 if domain else 3.0 * 0.99
    rate, ridge = half / (2.0 * largest), 2.0 * curvature / np.expm1(half)
    slopes = _slopes(name, x, y)
    edges = [cell_edges(0.0, 40, -2 if domain is None else -4, *((-0.7, 0.7) if domain else (-np.inf, np.inf)))] * 2
    noise = [
        np.concatenate([[-_FAR / rate], slope(ends[1:-1]) + ridge * (ends[1:-1] - c), [_FAR / rate]])
        for slope, ends, c in zip(slopes, edges, centre, strict=True)
    ]
    chances = level_masses([lambda b: rate * b] * 2, noise)
    drawn_by = QuadraticMinimum if domain else SmoothMinimum
    return CellLaw(mechanism, x, y, drawn_by, edges, chances, -4 if domain else -2)


_SHARES = (0.2, 0.3, 0.5)


def _moments(largest: float | None = None) -> Law:
    """λ_min, X'y and X'X with normal noise of deviations Δ/(s√w): |x|² ≤ 2 and |y| ≤ 1, and perhaps weights up to W."""
    (x, y), bounds, given = _records(), _PLANE, None
    times = np.ones(len(y))
    if largest is not None:
        bounds = Bounds(x=_COLUMNS, y=(-1.0, 1.0), intercept=False, weight=largest)
        given = times = largest * (np.arange(len(y)) // 2 % 5) / 4.0

    def uniforms(way: NoisyMoments, data: Any, number: int, bits: Bits) -> np.ndarray:
        drawn = [way.noisy_moments(data, bits) for _ in range(number)]
        values = np.array([[least, *moment, gram[0, 0], gram[1, 1], gram[0, 1]] for least, moment, gram in drawn])
        gram, moment = (x.T * times) @ x, x.T @ (times * y)
        means = [np.linalg.eigvalsh(gram)[0], *moment, gram[0, 0], gram[1, 1], gram[0, 1]]
        sizes = (largest or 1.0) * np.array([2.0, 8.0**0.5, 8.0**0.5]) / (_shift(1.0, 1e-3) * np.sqrt(_SHARES))
        deviations = sizes[[0, 1, 1, 2, 2, 2]] * [1.0, 1.0, 1.0, 1.0, 1.0, 0.5**0.5]
        return scipy.special.ndtr((values - means) / deviations)

    mechanism = AdaSSP(bounds, 1.0, 1e-3, "replace", _SHARES)
    return StagedLaw(mechanism, with_weights(x, given), y, NoisyMoments, uniforms)


def _adaptive() -> Law:
    """Each stage given those before: λ_min less a multiple of its noise, log L, and θ of the posterior."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-2.0, 1.0, (3000, 1))
    y = np.clip(0.3 * x[:, 0] + 0.2 * generator.normal(size=3000), -1.0, 1.0)
    gram, moment = float(x[:, 0] @ x[:, 0]), float(x[:, 0] @ y)

    def uniforms(way: NoisyAdaOPS, data: Any, number: int, bits: Bits) -> np.ndarray:
        tuned, tuning = [], NoisyAdaOPS.tuning

        def seen(*parts: Any) -> Any:
            tuned.append(tuning(*parts))
            return tuned[-1]

        with replaced(NoisyAdaOPS, "tuning", seen):
            theta = np.array([way.draw_alone(data, bits)[0] for _ in range(number)])
        ridge, curvature, bound, gamma = np.array([[float(part) for part in one] for one in tuned]).T
        tail, plan = float(way.plan.tail), way.plan
        # X² = 4 and Y = 1; rounding adds less than a part in 10⁵ of the first.
        first = 4.0 / float(plan.eigenvalue_shift)
        change = np.log1p(4.0 / curvature)
        second, estimate = change / float(plan.bound_shift), moment / (gram + ridge)
        stages = [
            (curvature - ridge - (gram - 4.0)) / first + tail,
            (np.log(bound) - np.log1p(2.0 * np.abs(estimate)) - change) / second - tail,
            (theta - estimate) * np.sqrt(gamma * (gram + ridge)),
        ]
        return scipy.special.ndtr(np.column_stack(stages))

    bounds = Bounds(x=([-2.0], [1.0]), y=(-1.0, 1.0), intercept=False)
    return StagedLaw(AdaOPS(bounds, 1.0, 1e-5, "add_remove"), x, y, NoisyAdaOPS, uniforms)


def _reweighted(**kinds: Any) -> Law:
    """The moments of three iterations, each given the iterate before, of weights min(5, 1/|residual|)."""
    generator = np.random.default_rng(6)
    x = generator.uniform(-1.0, 1.0, (6, 2))
    y = np.clip(x @ [0.7, -0.4] + 0.3 * generator.laplace(size=6), -1.0, 1.0)
    mechanism = PrivateIRLS(_PLANE, 3.0, 1e-6, "replace", iterations=3, cap=5.0, **kinds)
    with float64():
        on_moment, on_matrix = map(float, mechanism.noise_scales(2))

    def uniforms(way: IteratesOnGrid, data: Any, number: int, bits: Bits) -> np.ndarray:
        steps, iterate = [], IteratesOnGrid.iterate

        def seen(self: IteratesOnGrid, moment: np.ndarray, matrix: np.ndarray) -> np.ndarray:
            theta = iterate(self, moment, matrix)
            steps.append([*moment, matrix[0, 0], matrix[0, 1], matrix[1, 1], *theta])
            return theta

        with replaced(IteratesOnGrid, "iterate", seen):
            for _ in range(number):
                way.draw_alone(data, bits)
        found = np.array(steps).reshape(number, 3, 7)
        weights = np.full((number, 3, 6), 5.0)
        weights[:, 1:] = np.minimum(5.0, 1.0 / np.maximum(0.2, np.abs(y - found[:, :-1, 5:] @ x.T)))
        products = np.column_stack([x[:, 0] * y, x[:, 1] * y, x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
        noise = found[:, :, :5] - weights @ products
        moment = _BELOW[mechanism.moment_noise](noise[:, :, :2] / on_moment)
        of_matrix = (
            _of_wishart if mechanism.matrix_noise == "wishart" else partial(_of_triangle, mechanism.matrix_noise)
        )
        return np.concatenate([moment, of_matrix(noise[:, :, 2:] / on_matrix)], axis=2).reshape(number, 15)

    return StagedLaw(mechanism, x, y, IteratesOnGrid, uniforms)


_BELOW = {"gaussian": scipy.special.ndtr, "laplace": scipy.stats.laplace.cdf}


def _of_triangle(kind: str, noise: Floats) -> Floats:
    """Scales symmetric noise to unit laws: the entry off the diagonal has half of the variance where it is normal."""
    return _BELOW[kind](noise * [1.0, 2.0**0.5 if kind == "gaussian" else 1.0, 1.0])


def _of_wishart(noise: Floats) -> Floats:
    """W - kI = noise with W = TT': T₁₁² and T₂₂² are chi-square numbers of k and k - 1 degrees, T₂₁ is normal."""
    degrees = wishart_degrees(2)
    first, below, last = np.moveaxis(noise, -1, 0)
    root = np.sqrt(first + degrees)
    rest = last + degrees - (below / root) ** 2
    chances = scipy.stats.chi2.cdf(root**2, degrees), scipy.special.ndtr(below / root)
    return np.stack([*chances, scipy.stats.chi2.cdf(rest, degrees - 1)], axis=-1)


CASES: dict[str, Callable[[], Law]] = {
    "means by K-norm noise": _mean,
    "sums in blocks by K-norm noise": _exclusive,
    "sums of exchanges by K-norm noise": _exchanged,
    "posterior sample": partial(_posterior, lambda: PosteriorSample(_PLANE, 4.0, 2.0, "add_remove", 40), 1.0, 4.0),
    "output, squared": partial(_posterior, partial(_perturbed, "identity"), 0.0, 1000.0),
    "output, squared, hessian": partial(_posterior, partial(_perturbed, "hessian"), 1.0, 1000.0),
    "output, squared, hessian_squared": partial(_posterior, partial(_perturbed, "hessian_squared"), 2.0, 1000.0),
    "output, logistic": partial(_output, "logistic", 1.0),
    "output, pseudo-Huber": partial(_output, "pseudo-Huber", 0.5),
    "objective, squared": partial(_objective, "squared", 1.0 + 1.4, 1.0, (3.0, -0.2)),
    "objective, logistic": partial(_objective, "logistic", 1.0, 0.25),
    "objective, pseudo-Huber": partial(_objective, "pseudo-Huber", 0.5, 1.0, (-1.1, 0.4)),
    "AdaSSP": _moments,
    "AdaSSP with weights": partial(_moments, 3.0),
    "AdaOPS": _adaptive,
    "private IRLS, normal noise": _reweighted,
    "private IRLS, Laplace noise": partial(_reweighted, moment_noise="laplace", matrix_noise="laplace"),
    "private IRLS, Wishart noise": partial(_reweighted, accounting="basic", matrix_noise="wishart"),
}
