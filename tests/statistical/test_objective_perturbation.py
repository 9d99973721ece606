"""Draws of objective perturbation against its law by closed forms and quadrature in NumPy, and Figure 1."""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.releases.chains import independent_draws
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_gamma, assert_mean_within, assert_same_law
from tests.oracles.perturbed_problems import FACTS, constants, law, squared, squared_log_density, table


def draws_of(mechanism, data, number, seed=0):
    return np.asarray(independent_draws(mechanism, data, None, jax.random.key(seed), number))


def _expectile_scores(predictors, y):
    return -2.0 * np.where(y < predictors, 0.2, 0.8) * (y - predictors)


def slope_by_hand(mechanism, data, name, theta, epsilon):
    """rate·(∇ℓ_n + γθ) with the output noise's hundredth taken from ε, thetas of shape (m,)."""
    change, curvature = FACTS[name]
    spent = epsilon if name == "squared" else 0.99 * epsilon
    if name == "squared":
        gradients = float(data.gram[0, 0]) * theta - float(data.moment[0])
    else:
        x, y = np.asarray(data.x)[:, 0], np.asarray(data.y)
        predictors = np.outer(theta, x)
        scores = {
            "logistic": lambda: 1.0 / (1.0 + np.exp(-predictors)) - y,
            "pseudo-Huber": lambda: -(y - predictors) / np.sqrt(1.0 + ((y - predictors) / 0.4) ** 2),
            "Huber": lambda: -np.clip(y - predictors, -0.3, 0.3),
            # |x'θ| ≤ 1 over Θ = [-1, .5] and |x| ≤ 1: tangents beyond.
            "Poisson": lambda: np.exp(np.clip(predictors, -1.0, 1.0)) - y,
            "expectile": lambda: _expectile_scores(np.clip(predictors, -1.0, 1.0), y),
            "smoothed": lambda: 1.0 / (1.0 + np.exp(-(predictors - y) / 0.2)) - 0.7,
            "Gaussian": lambda: stats.norm.cdf((predictors - y) / 0.4) - 0.7,
        }[name.split()[0]]()
        gradients = scores @ x
    return 0.5 * spent / change * (gradients + curvature / np.expm1(0.5 * spent) * theta)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "pseudo-Huber on R", "Poisson", "expectile"])
def test_draws_of_one_coefficient_follow_the_law(name):
    """θ ≤ t if and only if b ≥ -(∇ℓ_n(t) + γt): its distribution function is Laplace's at a monotone function."""
    mechanism, data = law(name)
    draws = draws_of(mechanism, data, 20_000)[:, 0]
    lower, upper = (-3.0, 3.0) if mechanism.domain is None else mechanism.domain.linear_interval(np.ones(1), np.ones(1))
    edges = np.linspace(float(lower), float(upper), 30)
    # Half-open cells from the right, so that the mass at the lower end is a cell of its own.
    cells = np.searchsorted(edges - 1e-9, draws, side="right")
    cells = np.where(draws >= float(upper) - 1e-9, edges.size, cells) if mechanism.domain is not None else cells
    cdf = stats.laplace.cdf(slope_by_hand(mechanism, data, name, edges, 2.0))
    if mechanism.domain is None:
        assert_cell_frequencies(np.bincount(cells, minlength=31), np.diff(cdf, prepend=0.0, append=1.0))
        assert_same_law(draws, lambda theta: stats.laplace.cdf(slope_by_hand(mechanism, data, name, theta, 2.0)))
        return
    assert float(lower) - 1e-12 <= draws.min()
    assert draws.max() <= float(upper) + 1e-12
    at_lower = draws <= float(lower) + 1e-9
    counts = [np.sum(at_lower), *np.bincount(cells[~at_lower], minlength=31)[1:]]
    assert_cell_frequencies(counts, np.diff(cdf, prepend=0.0, append=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("domain", [kng.Box(-0.4, 0.6), kng.L1Ball(0.7), kng.L2Ball(0.6)], ids=["box", "l1", "l2"])
def test_draws_of_two_coefficients_follow_the_density(domain):
    """Inside Θ by quadrature; whatever it lacks of mass 1 must be on the boundary."""
    x, y = table(2)
    y *= 0.4
    mechanism = squared(domain, epsilon=3.0)
    data = mechanism.prepare(x, y)
    reach = {kng.Box: 1.2, kng.L1Ball: 0.7, kng.L2Ball: 0.6 * np.sqrt(2.0)}[type(domain)]
    rate, ridge = constants(2, reach, "replace", 3.0)
    draws = draws_of(mechanism, data, 20_000)
    size, fine = 8, 60
    edges = np.linspace(-0.7, 0.7, size + 1)
    centres = -0.7 + 1.4 * (np.arange(size * fine) + 0.5) / (size * fine)
    grid = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(squared_log_density(grid, x, y, rate, ridge)) * (1.4 / (size * fine)) ** 2

    def strictly_inside(theta):
        if isinstance(domain, kng.Box):
            return np.all((theta > -0.4 + 1e-9) & (theta < 0.6 - 1e-9), axis=1)
        return np.linalg.norm(theta, 1 if isinstance(domain, kng.L1Ball) else 2, axis=1) < float(domain.radius) - 1e-9

    masses = (values * strictly_inside(grid)).reshape(size, fine, size, fine).sum(axis=(1, 3)).ravel()
    inside = strictly_inside(draws)
    counts, *_ = np.histogram2d(*draws[inside].T, bins=(edges, edges))
    on_boundary = np.sum(~inside)
    assert 0.1 * len(draws) < on_boundary < 0.9 * len(draws)
    assert_cell_frequencies([*counts.ravel(), on_boundary], [*masses, 1.0 - masses.sum()])


def binary_regression(radius, **options):
    bounds = kng.Bounds(x=(-1.0, 1.0))
    mechanism = kng.ObjectivePerturbation(kng.LogisticLoss(), bounds, kng.L2Ball(radius), 4.0, "add_remove", **options)
    random = np.random.default_rng(6)
    x = random.uniform(-1.0, 1.0, (30, 1))
    y = (random.uniform(size=30) < 0.5 + 0.4 * x[:, 0]).astype(float)
    return mechanism, x, y


@pytest.mark.slow
def test_draws_of_an_approximate_minimiser_in_two_dimensions():
    mechanism, x, y = binary_regression(1.0)
    draws = draws_of(mechanism, mechanism.prepare(x, y), 10_000)
    design, rate, ridge = np.hstack([np.ones((30, 1)), x]), 0.5 * 3.96, 0.25 * 2.0 / np.expm1(0.5 * 3.96)
    size, fine = 6, 50
    centres = -1.0 + 2.0 * (np.arange(size * fine) + 0.5) / (size * fine)
    grid = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    chances = 1.0 / (1.0 + np.exp(-grid @ design.T))
    slopes = (chances - y) @ design + ridge * grid
    hessians = np.einsum("mi,ij,ik->mjk", chances * (1.0 - chances), design, design) + ridge * np.eye(2)
    log_density = -rate * np.max(np.abs(slopes), axis=1) - np.log(2.0 * (2.0 / rate) ** 2)
    values = np.exp(log_density) * np.linalg.det(hessians) * (2.0 / (size * fine)) ** 2
    masses = (values * (np.linalg.norm(grid, axis=1) < 1.0)).reshape(size, fine, size, fine).sum(axis=(1, 3)).ravel()
    assert np.linalg.norm(draws, axis=1).max() <= 1.0 + 1e-12
    inside = np.linalg.norm(draws, axis=1) < 1.0 - 1e-9
    counts, *_ = np.histogram2d(*draws[inside].T, bins=(np.linspace(-1.0, 1.0, size + 1),) * 2)
    assert 0.1 * len(draws) < np.sum(~inside) < 0.9 * len(draws)
    assert_cell_frequencies([*counts.ravel(), np.sum(~inside)], [*masses, 1.0 - masses.sum()])


def test_output_noise_covers_the_error_of_the_search():
    """With a tolerance that 0 meets already, all that is released is the output noise."""
    mechanism, x, y = binary_regression(1e12, tolerance=1e6, output_share=0.25)
    draws = draws_of(mechanism, mechanism.prepare(x, y), 1000)
    ridge = 0.25 * 2.0 / np.expm1(0.5 * 0.75 * 4.0)
    radius = 2.0 * 1e6 / (0.25 * 4.0 * ridge)
    # Of the density ∝ exp(-|z|/radius) in two dimensions |z| is gamma with shape 2, and the angle uniform.
    assert_gamma(np.linalg.norm(draws, axis=1) / radius, 2.0)
    assert_same_law(np.arctan2(*draws.T), stats.uniform(-np.pi, 2.0 * np.pi).cdf)
    # By default it is far below the noise in the objective.
    default, _, _ = binary_regression(1.0)
    ridge = 0.5 / np.expm1(0.5 * 3.96)
    assert 1.0 / float(default.output_rate(2)) == pytest.approx(2e-8 / (0.04 * ridge), rel=1e-12)


@pytest.mark.slow
def test_the_error_of_figure_1():
    """Algorithm 1 of Reimherr and Awan (2019), B = 1 and responses divided by their largest: mean l2 errors."""
    truth = np.concatenate([[0.0], -1.0 + 2.0 * np.arange(11) / 11.0])
    mechanism = squared(kng.L1Ball(1.0))
    program = jax.jit(jax.vmap(lambda mechanism, data, key: mechanism.draws(data, key, 1), in_axes=(None, 0, 0)))
    for number, expected in ((1_000, 0.274), (10_000, -0.451)):
        summaries, scales = [], []
        for seed in range(100):
            random = np.random.default_rng((number, seed))
            x = np.hstack([np.ones((number, 1)), random.uniform(-1.0, 1.0, (number, 11))])
            y = x @ truth + random.normal(size=number)
            scales.append(np.abs(y).max())
            summaries.append(mechanism.prepare(x, y / scales[-1]))
        data = jax.tree.map(lambda *parts: np.stack(parts), *summaries)
        draws, succeeded = program(mechanism, data, jax.random.split(jax.random.key(number), 100))
        assert np.all(succeeded)
        errors = np.linalg.norm(np.asarray(draws)[:, 0] * np.array(scales)[:, None] - truth, axis=1)
        # The reference has a standard error of about .011 itself.
        both = np.hypot(errors.std() / 10.0, 10.0**expected * np.log(10.0) * 0.011)
        assert_mean_within(errors, 10.0**expected, standard_error=both)
