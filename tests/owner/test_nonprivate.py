"""The owner's non-private fit against closed forms, equations of its gradient, and statsmodels."""

import numpy as np
import pytest
import scipy.optimize

import kngjax as kng
from kngjax.data import records as data_room
from kngjax.losses import estimates
from kngjax.owner import nonprivate
from tests.statistical.problems import records


def fitted(loss: kng.QuantileLoss, name: str, y_bounds=None) -> tuple[nonprivate.NonprivateFit, np.ndarray, np.ndarray]:
    x, y = records(name, 3, num_records=2000)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=y_bounds)
    return nonprivate.fit(loss, data_room.prepare(bounds, x, y)), np.column_stack([np.ones(len(x)), x]), y


def sandwich(x, weights, residuals):
    """The standard errors of HC0."""
    bread = np.linalg.inv((x * weights[:, None]).T @ x)
    return np.sqrt(np.diagonal(bread @ (x.T * residuals**2) @ x @ bread))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_quantile_regression_is_the_exact_minimiser(tau):
    sm = pytest.importorskip("statsmodels.api")
    fit, x, y = fitted(kng.QuantileLoss(tau), "quantile")
    reference = sm.QuantReg(y, x).fit(q=tau, max_iter=5000, p_tol=1e-10)

    def loss(theta):
        residuals = y - x @ theta
        return np.sum(residuals * (tau - (residuals <= 0)))

    assert loss(fit.theta) <= loss(reference.params) + 1e-9
    np.testing.assert_allclose(fit.theta, reference.params, atol=1e-3)
    np.testing.assert_allclose(fit.standard_errors, reference.bse, rtol=0.25)


def many_records(design: str, num_records: int = 8_000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = np.column_stack([np.ones(num_records), generator.uniform(-1.0, 1.0, (num_records, 3))])
    noise = generator.standard_normal(num_records)
    if design == "normal":
        return x, x.sum(axis=1) + noise
    if design == "heavy tails":
        return x, x.sum(axis=1) + generator.standard_cauchy(num_records)
    if design == "half of the responses tied":
        return x, np.maximum(x.sum(axis=1) + noise - 1.0, 0.0)
    if design == "whole numbers":
        return x, np.round(x.sum(axis=1) + noise)
    if design == "a column of five rows":
        x[:, 3] = np.arange(num_records) < 5
        return x, x.sum(axis=1) + noise
    assert design == "spread that grows along sorted rows"
    x = x[np.argsort(x[:, 1])]
    return x, x.sum(axis=1) + noise * np.exp(2.0 * x[:, 1])


DESIGNS = [
    "normal",
    "heavy tails",
    "half of the responses tied",
    "whole numbers",
    "a column of five rows",
    "spread that grows along sorted rows",
]


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("design", DESIGNS)
def test_quantile_regression_of_many_records_is_exact(design, tau):
    x, y = many_records(design)
    theta = nonprivate.minimiser(kng.QuantileLoss(tau), data_room.Records(x, y))
    residuals = y - x @ theta
    # θ is a minimiser if and only if 0 is a subgradient: each row on the plane may choose its score from [-τ, 1-τ].
    tied = np.abs(residuals) < 1e-9
    slope = np.where(residuals[~tied] < 0, 1.0 - tau, -tau) @ x[~tied]
    zeros = np.zeros(tied.sum())
    chosen = scipy.optimize.linprog(zeros, A_eq=x[tied].T, b_eq=-slope, bounds=(-tau, 1.0 - tau))
    assert chosen.success
    np.testing.assert_allclose(chosen.x @ x[tied], -slope, atol=1e-5)
    # The linear programme of all rows finds no smaller loss.
    whole = estimates.linear_programme(x, y, np.ones(len(y)), tau)
    losses = [float(kng.QuantileLoss(tau).value(point, data_room.Records(x, y))) for point in (theta, whole)]
    np.testing.assert_allclose(*losses, rtol=1e-12)


def test_quantile_regression_of_many_records_bears_responses_of_any_size():
    x, y = many_records("normal")
    expected = nonprivate.minimiser(kng.QuantileLoss(0.5), data_room.Records(x, np.append(y[1:], 1e3)))
    theta = nonprivate.minimiser(kng.QuantileLoss(0.5), data_room.Records(x, np.append(y[1:], 1.7e308)))
    np.testing.assert_allclose(theta, expected, rtol=1e-9)
    constant = nonprivate.minimiser(kng.QuantileLoss(0.5), data_room.Records(x, np.ones_like(y)))
    np.testing.assert_allclose(constant, [1.0, 0.0, 0.0, 0.0], atol=1e-9)


SIZES = {"ones": 1.0, "the least of HiGHS": 9e-10, "the largest of HiGHS": 1e15, "least": 1e-300, "largest": 1e290}


@pytest.mark.parametrize("of", ["columns", "responses"])
def test_quantile_regression_goes_with_the_size_of_columns_and_responses(of):
    """By powers of two to the last digit: a limit of the library that solves it would be a limit of the data."""
    generator = np.random.default_rng(0)
    x, y = np.column_stack([np.ones(300), generator.uniform(size=300)]), generator.normal(size=300)
    expected = estimates.linear_programme(x, y, np.ones(300), 0.3)
    for size in SIZES.values():
        scale = 2.0 ** np.frexp(size)[1]
        wide = np.array([1.0, scale]) if of == "columns" else np.ones(2)
        high = scale if of == "responses" else 1.0
        found = estimates.linear_programme(x * wide, y * high, np.ones(300), 0.3)
        np.testing.assert_array_equal(found * (wide / high), expected)


def test_a_linear_programme_takes_columns_of_every_range():
    """Entries that count as 0 do so on both sides, however many there are."""
    for small in (1e-12, 1e-9, 1e-3):
        x = np.column_stack([np.ones(3000), np.where(np.arange(3000) == 0, 1.0, small)])
        assert np.all(np.isfinite(estimates.linear_programme(x, np.arange(3000.0), np.ones(3000), 0.5)))


def test_quantile_regression_of_many_records_solves_small_programmes(monkeypatch):
    sizes, solve = [], estimates.linear_programme
    monkeypatch.setattr(estimates, "linear_programme", lambda x, *rest: (sizes.append(len(x)), solve(x, *rest))[1])
    x, y = many_records("normal", 40_000)
    theta = nonprivate.minimiser(kng.QuantileLoss(0.5), data_room.Records(x, y))
    assert len(sizes) > 1
    assert sum(sizes) < 20_000
    np.testing.assert_allclose(theta, 1.0, atol=0.08)


def test_least_squares_with_robust_standard_errors():
    fit, x, y = fitted(kng.SquaredLoss(), "squared", (-10.0, 10.0))
    theta = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(fit.theta, theta, rtol=1e-9)
    np.testing.assert_allclose(fit.standard_errors, sandwich(x, np.ones(len(y)), y - x @ theta), rtol=1e-9)


def test_logistic_regression_with_robust_standard_errors():
    fit, x, y = fitted(kng.LogisticLoss(), "logistic")
    chances = 1.0 / (1.0 + np.exp(-x @ fit.theta))
    np.testing.assert_allclose(x.T @ (chances - y), 0.0, atol=1e-6 * len(y))
    np.testing.assert_allclose(fit.standard_errors, sandwich(x, chances * (1.0 - chances), y - chances), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [kng.PseudoHuberLoss(0.4), kng.HuberLoss(0.4), kng.SmoothedQuantileLoss(0.3, 0.2)], ids=repr
)
@pytest.mark.usefixtures("in_float64")
def test_smooth_losses_have_a_vanishing_gradient(loss):
    fit, x, y = fitted(loss, "pseudo_huber")
    gradient = loss.gradient(fit.theta, data_room.Records(x, y))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_geometric_median_is_the_minimiser_that_scipy_finds(dimension):
    x = np.random.default_rng(dimension).standard_t(2, (301, dimension))
    theta = nonprivate.minimiser(kng.GeometricMedianLoss(), data_room.Records(x, np.zeros(301)))

    def total(theta):
        return np.sum(np.linalg.norm(x - theta, axis=1))

    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    reference = scipy.optimize.minimize(total, x.mean(axis=0), method="Nelder-Mead", options=options)
    assert total(theta) <= reference.fun + 1e-9
    np.testing.assert_allclose(theta, reference.x, atol=1e-5)


def test_a_geometric_median_may_be_a_record():
    """Where the directions to the others add up to less than 1; from any start, ties and lines included."""
    loss, zeros = kng.GeometricMedianLoss(), np.zeros
    obtuse = np.array([[0.0, 0.0], [1.0, 0.1], [-1.0, 0.1]])
    np.testing.assert_allclose(nonprivate.minimiser(loss, data_room.Records(obtuse, zeros(3))), 0.0, atol=1e-6)
    crowd = np.concatenate([np.full((30, 2), 0.3), np.random.default_rng(0).normal(size=(20, 2))])
    np.testing.assert_allclose(nonprivate.minimiser(loss, data_room.Records(crowd, zeros(50))), 0.3, atol=1e-6)
    line = np.outer(np.array([-2.0, -1.0, 0.0, 5.0, 9.0]), [1.0, 2.0])
    np.testing.assert_allclose(nonprivate.minimiser(loss, data_room.Records(line, zeros(5))), 0.0, atol=1e-6)
    same = np.full((4, 3), 0.7)
    np.testing.assert_array_equal(nonprivate.minimiser(loss, data_room.Records(same, zeros(4))), 0.7)


def test_the_mean_with_its_standard_error():
    x = np.random.default_rng(4).uniform(-1.0, 1.0, (500, 2))
    fit = nonprivate.fit(kng.SquaredDistanceLoss(), data_room.Records(x, np.zeros(500)))
    np.testing.assert_allclose(fit.theta, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(fit.standard_errors, x.std(axis=0) / np.sqrt(500), rtol=1e-12)


def test_standard_errors_of_the_geometric_median_are_those_of_repeated_samples():
    """A Gaussian in the plane, where they are known: the variance of a coordinate is 4/(πn) (Brown 1983)."""
    x = np.random.default_rng(5).normal(size=(20_000, 2))
    fit = nonprivate.fit(kng.GeometricMedianLoss(), data_room.Records(x, np.zeros(20_000)))
    np.testing.assert_allclose(fit.standard_errors, np.sqrt(4.0 / (np.pi * 20_000)), rtol=0.02)
