"""Per-instance privacy is that of refitting without the person, for every mechanism, inside and outside of the data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import kngjax as kng
from kngjax.data.records import Records
from kngjax.owner.per_instance import leave_one_out, ridge
from kngjax.owner.per_instance.chunks import by_chunks
from kngjax.owner.per_instance.report import broadcast_numbers, epsilons_at
from tests.oracles import perturbed_ridge as oracle
from tests.oracles.goodness_of_fit import assert_mean_within

BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
RIDGE = 2.0


def records(n=25, columns=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, columns))
    return X, np.clip(X.sum(axis=1) * 0.4 + 0.4 * random.standard_normal(n), -1.0, 1.0)


def design(X):
    return np.column_stack([np.ones(len(X)), X])


def posterior(gamma=3.0, adjacency="add_remove"):
    return kng.PosteriorSample(BOUNDS, RIDGE, gamma, adjacency, max_records=40)


@pytest.fixture(scope="module")
def report():
    return kng.per_instance_privacy(posterior(), *records())


def on_the_line(first, second, features):
    """Laws of x'θ: the person's direction tells all under OPS."""
    return [(float(features @ mean), float(features @ covariance @ features)) for mean, covariance in (first, second)]


def test_removal_is_a_fit_without_the_person(report):
    X, y = records()
    x = design(X)
    whole = oracle.laws(x, y, RIDGE, 3.0, "hessian")
    for epsilon in (0.0, 0.2, 1.0):
        deltas = report.delta_at(epsilon)
        for place in range(0, 25, 4):
            without = oracle.laws(np.delete(x, place, 0), np.delete(y, place), RIDGE, 3.0, "hessian")
            expected = oracle.both_directions(*on_the_line(without, whole, x[place]), epsilon)
            np.testing.assert_allclose(deltas[place], expected, rtol=1e-5, atol=1e-14)


def test_the_way_of_an_estimate_is_that_to_a_fit_without_the_person():
    X, y = records()
    x = design(X)
    found = ridge.design(x.T @ x, x.T @ y, RIDGE)
    ways = ridge.change(ridge.influences(x, y, found, inside=True))
    for place in range(0, 25, 4):
        rest, left = np.delete(x, place, 0), np.delete(y, place)
        theta = np.linalg.solve(rest.T @ rest + RIDGE * np.eye(3), rest.T @ left)
        np.testing.assert_allclose(ways[place], np.linalg.norm(theta - found.theta), rtol=1e-10)


def test_addition_is_a_fit_with_the_person():
    X, y = records()
    # As many as there are people: one shape, and one program.
    targets = records(25, seed=5)
    report = kng.per_instance_privacy(posterior(), X, y, targets=targets)
    x, z = design(X), design(targets[0])
    without = oracle.laws(x, y, RIDGE, 3.0, "hessian")
    deltas = report.delta_at(0.3)
    for place, response in enumerate(targets[1][:6]):
        included = oracle.laws(np.vstack([x, z[place]]), np.append(y, response), RIDGE, 3.0, "hessian")
        expected = oracle.both_directions(*on_the_line(without, included, z[place]), 0.3)
        np.testing.assert_allclose(deltas[place], expected, rtol=1e-5, atol=1e-14)


@pytest.mark.slow
def test_whoever_leaves_may_come_back(report):
    """Removed from the data, or added to the rest of them: the same pair of laws."""
    X, y = records()
    for place in (0, 7, 24):
        rest = np.delete(X, place, 0), np.delete(y, place)
        back = kng.per_instance_privacy(posterior(), *rest, targets=(X[[place]], y[[place]]))
        for name in ("epsilon", "leverage", "residual"):
            np.testing.assert_allclose(getattr(back, name)[0], getattr(report, name)[place], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["identity", "hessian", "hessian_squared"])
def test_output_perturbation_in_full_dimension(metric):
    X, y = records()
    mechanism = kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 80.0, 4.0, 1e-3, "add_remove", metric, 40)
    report = kng.per_instance_privacy(mechanism, X, y, delta=1e-3)
    gamma = float(mechanism.gamma_for(3))
    x = design(X)
    alphas = (1.5, 3.0)
    divergences = report.renyi(alphas)
    whole = oracle.laws(x, y, 80.0, gamma, metric)
    for place in range(0, 25, 6):
        without = oracle.laws(np.delete(x, place, 0), np.delete(y, place), 80.0, gamma, metric)
        expected = [max(oracle.renyi(without, whole, a), oracle.renyi(whole, without, a)) for a in alphas]
        np.testing.assert_allclose(divergences[place], expected, rtol=1e-6, atol=1e-12)
    # The most exposed person's profile, by draws of all coefficients.
    place, epsilon = report.worst(1)[0], 0.02
    without = oracle.laws(np.delete(x, place, 0), np.delete(y, place), 80.0, gamma, metric)
    found = report.delta_at(epsilon)[place]
    random = np.random.default_rng(3)
    means = [oracle.excesses(random, *pair, epsilon, 400_000) for pair in ((without, whole), (whole, without))]
    assert_mean_within(max(means, key=np.mean), found)
    assert np.max(report.epsilon) <= 4.0


@pytest.mark.slow
def test_the_same_laws_by_other_names():
    X, y = records()
    x = design(X)
    found = ridge.design(x.T @ x, x.T @ y, RIDGE)
    influence = ridge.influences(x, y, found, inside=True)
    by_metric = broadcast_numbers(ridge.output_perturbation(influence, 4.0, "hessian_squared"), 25)
    by_noise = broadcast_numbers(ridge.objective_perturbation(influence, 0.5), 25)
    np.testing.assert_array_equal(epsilons_at(by_metric, 1e-4), epsilons_at(by_noise, 1e-4))
    with pytest.raises(ValueError, match="metric must be one of identity, hessian, hessian_squared"):
        ridge.output_perturbation(influence, 4.0, "fisher")


def test_epsilon_is_the_inverse_of_delta(report):
    for place in (0, 11):
        np.testing.assert_allclose(report.delta_at(report.epsilon[place])[place], 1e-6, rtol=1e-6)
    again = report.epsilon_at(1e-6)
    np.testing.assert_array_equal(again, report.epsilon)
    assert np.all(report.epsilon_at(1e-3) < report.epsilon)
    assert np.all(report.delta_at(0.5) < report.delta_at(0.1))
    np.testing.assert_allclose(np.exp(report.log_delta_at(0.3)), report.delta_at(0.3))


def moved(people, shared):
    return people["x"] + shared, jnp.sum(people["rows"], axis=1)


@pytest.mark.parametrize("chunk", [7, 1000])
def test_chunks_of_people_are_worked_on_alone_and_put_together(chunk):
    """The last one is filled up: four people of seven."""
    people = {"x": np.arange(25.0), "rows": np.arange(50.0).reshape(25, 2)}
    x, sums = by_chunks(moved, people, np.float64(0.1), chunk)
    np.testing.assert_array_equal(x, people["x"] + 0.1)
    np.testing.assert_array_equal(sums, people["rows"].sum(axis=1))
    assert (type(x), x.dtype) == (np.ndarray, np.float64)


def test_float64_whatever_the_callers_setting_and_the_order_of_people_does_not_matter(report):
    order = np.random.default_rng(1).permutation(25)
    with jax.enable_x64(False):
        narrow = kng.per_instance_privacy(posterior(), *(part[order] for part in records()))
        assert (narrow.epsilon.dtype, type(narrow.epsilon)) == (np.float64, np.ndarray)
        deltas = narrow.delta_at(0.2)
    np.testing.assert_allclose(narrow.epsilon, report.epsilon[order], rtol=1e-8)
    np.testing.assert_allclose(deltas, report.delta_at(0.2)[order], rtol=1e-8)


def test_people_are_clipped_as_the_data_are():
    X, y = records()
    # Twelve people at the bounds, and thirteen far beyond them.
    sizes = np.repeat([1.0, 50.0], [12, 13])
    found = kng.per_instance_privacy(posterior(), X, y, targets=(np.column_stack([sizes, sizes]), sizes)).epsilon
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


@pytest.mark.slow
def test_more_columns_than_people():
    X, y = records(6, columns=20)
    report = kng.per_instance_privacy(posterior(), X, y)
    assert np.all(np.isfinite(report.epsilon))
    x = design(X)
    theta, precision = oracle.ridge(x[1:], y[1:], RIDGE)
    np.testing.assert_allclose(report.leverage[0], x[0] @ np.linalg.solve(precision, x[0]), rtol=1e-10)
    np.testing.assert_allclose(report.residual[0], y[0] - x[0] @ theta, rtol=1e-10)


LOSSES = {
    "logistic": (kng.LogisticLoss(), kng.Bounds(x=(-1.0, 1.0))),
    "pseudo_huber": (kng.PseudoHuberLoss(0.3), kng.Bounds(x=(-1.0, 1.0))),
}
VALUES = {
    "logistic": lambda eta, y: np.logaddexp(0.0, eta) - y * eta,
    "pseudo_huber": lambda eta, y: 0.09 * (np.sqrt(1.0 + ((y - eta) / 0.3) ** 2) - 1.0),
    "poisson": lambda eta, y: np.exp(eta) - y * eta,
}
SCORES = {
    "logistic": lambda eta, y: 1.0 / (1.0 + np.exp(-eta)) - y,
    "pseudo_huber": lambda eta, y: -(y - eta) / np.sqrt(1.0 + ((y - eta) / 0.3) ** 2),
    "poisson": lambda eta, y: np.exp(eta) - y,
}


def refit(name, x, y, regularization):
    """SciPy's minimiser, polished on the gradient."""
    result = scipy.optimize.root(
        lambda theta: x.T @ SCORES[name](x @ theta, y) + regularization * theta,
        scipy.optimize.minimize(
            lambda theta: VALUES[name](x @ theta, y).sum() + 0.5 * regularization * theta @ theta, np.zeros(x.shape[1])
        ).x,
        tol=1e-13,
    )
    return result.x


def responses(name, random, n):
    return {
        "logistic": random.integers(0, 2, n).astype(float),
        "pseudo_huber": random.standard_normal(n),
        "poisson": random.poisson(1.5, n).astype(float),
    }[name]


@pytest.mark.default_cases("poisson-False")
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", ["logistic", "pseudo_huber", "poisson"])
def test_moves_of_smooth_losses_are_those_of_a_new_fit(name, inside):
    random = np.random.default_rng(4)
    x, y = design(random.uniform(-1.0, 1.0, (20, 2))), responses(name, random, 20)
    loss = kng.PoissonLoss() if name == "poisson" else LOSSES[name][0]
    people = Records(x, y)
    theta = leave_one_out.minimiser(loss, people, 0.5)
    np.testing.assert_allclose(theta, refit(name, x, y, 0.5), rtol=1e-7)
    z, response = design(random.uniform(-1.0, 1.0, (5, 2))), responses(name, random, 5)
    found = leave_one_out.moves(loss, people, 0.5, theta, None if inside else Records(z, response))
    for place in range(5):
        if inside:
            expected = theta - refit(name, np.delete(x, place, 0), np.delete(y, place), 0.5)
        else:
            expected = refit(name, np.vstack([x, z[place]]), np.append(y, response[place]), 0.5) - theta
        np.testing.assert_allclose(found.move[place], expected, rtol=1e-5, atol=1e-8)


def test_a_person_too_strong_for_few_steps_is_fitted_anew():
    """One of three people who holds up everybody's curvature: steps with one Hessian take for ever."""
    x, y = np.array([[1.0], [0.9], [1.0]]), np.array([1.0, 0.0, 2000.0])
    theta = leave_one_out.minimiser(kng.PoissonLoss(), Records(x, y), 0.05)
    found = leave_one_out.moves(kng.PoissonLoss(), Records(x, y), 0.05, theta)
    for place in range(3):
        expected = theta - refit("poisson", np.delete(x, place, 0), np.delete(y, place), 0.05)
        np.testing.assert_allclose(found.move[place], expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "pseudo_huber"])
def test_smooth_losses_end_to_end(name):
    random = np.random.default_rng(6)
    loss, bounds = LOSSES[name]
    X, y = random.uniform(-1.0, 1.0, (60, 2)), responses(name, random, 60)
    mechanism = kng.OutputPerturbation(loss, bounds, 1.0, 1.0, 1e-6, "add_remove")
    report = kng.per_instance_privacy(mechanism, X, y)
    x, gamma = design(X), float(mechanism.gamma_for(3))
    whole = refit(name, x, y, 1.0)
    for place in (0, 31):
        move = np.linalg.norm(whole - refit(name, np.delete(x, place, 0), np.delete(y, place), 1.0))
        np.testing.assert_allclose(report.pair.shift[place], np.sqrt(gamma) * move, rtol=1e-5)
    # δ of the guarantee, so that nobody may lose more than the worst case.
    assert np.max(report.epsilon) <= report.for_all.attained <= report.for_all.bound <= 1.0 + 1e-6
    rough = kng.per_instance_privacy(mechanism, X, y, method="first_order")
    assert rough.approximate
    assert not report.approximate
    assert "first-order approximations" in repr(rough)
    np.testing.assert_allclose(rough.epsilon, report.epsilon, rtol=0.3)
    assert not np.allclose(rough.epsilon, report.epsilon, rtol=1e-3)


def test_first_order_is_the_influence_function():
    random = np.random.default_rng(8)
    x, y = design(random.uniform(-1.0, 1.0, (30, 2))), responses("logistic", random, 30)
    theta = refit("logistic", x, y, 0.5)
    found = leave_one_out.moves(kng.LogisticLoss(), Records(x, y), 0.5, theta, Records(x[:3], y[:3]), "first_order")
    p = 1.0 / (1.0 + np.exp(-x @ theta))
    hessian = (x * (p * (1.0 - p))[:, None]).T @ x + 0.5 * np.eye(3)
    np.testing.assert_allclose(found.move, -np.linalg.solve(hessian, (x[:3] * (p - y)[:3, None]).T).T, rtol=1e-9)
