"""Attacks on objective perturbation: neighbouring data sets of one coefficient, density and masses at the ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import QuadraticSummary, Records
from kngjax.sensitivity import gradients
from tests.oracles.perturbed_problems import LAWS, squared

both_adjacencies = pytest.mark.parametrize("adjacency", ["replace", "add_remove"])


def laws_on_a_line(mechanism, data):
    """log-densities at points of Θ = [-1, 1] and the two log-masses, of a batch of data sets."""
    grid = jnp.linspace(-0.999, 0.999, 101)[:, None]

    def one(mechanism, data):
        densities = jax.vmap(lambda theta: mechanism.log_density(theta, data))(grid)
        return jnp.concatenate([densities, mechanism.boundary_log_masses(data)])

    return np.asarray(jax.jit(lambda mechanism, data: jax.vmap(one, (None, 0))(mechanism, data))(mechanism, data))


def neighbours(adjacency):
    """Summaries of neighbouring data sets: copies of one record, and one that is exchanged or left out."""
    records = [(x, y) for x in (-1.0, -0.5, 0.0, 0.5, 1.0) for y in (-1.0, 0.0, 1.0)]
    commons = {(n, n * x * x, n * x * y, n * y * y) for n in (0, 1, 2, 5, 10, 20, 100) for x, y in records}
    terms = np.array([(1.0, x * x, x * y, y * y) for x, y in records])
    first, second = [], []
    for common in sorted(commons):
        if adjacency == "replace":
            first += [np.array(common) + one for one in terms for _ in terms]
            second += [np.array(common) + other for _ in terms for other in terms]
        elif common[0]:
            first += [np.array(common) + one for one in terms]
            second += [np.array(common)] * len(terms)
    return [
        batch(QuadraticSummary, p[:, 0], p[:, 1, None, None], p[:, 2, None], p[:, 3])
        for p in map(np.array, (first, second))
    ]


def batch(kind, *parts):
    """Data sets stacked along the first axis of their parts."""
    return jax.vmap(kind)(*parts)


def worst_log_ratios(mechanism):
    """Over neighbouring data sets: in the interior of Θ, and of the masses at its ends."""
    first, second = (laws_on_a_line(mechanism, data) for data in neighbours(mechanism.adjacency))
    ratios = np.abs(first - second)
    return ratios[:, :-2].max(), ratios[:, -2:].max()


@pytest.mark.slow
@both_adjacencies
@pytest.mark.parametrize(("noise_share", "centre"), [(0.1, None), (0.5, None), (0.9, None), (0.5, [3.0])])
def test_no_neighbour_betrays_itself(adjacency, noise_share, centre):
    inside, at_ends = worst_log_ratios(squared(kng.Box(-1.0, 1.0), adjacency, noise_share=noise_share, centre=centre))
    assert max(inside, at_ends) <= 1.0
    if (adjacency, noise_share, centre) == ("replace", 0.5, None):
        # What a search over data sets found for these constants.
        np.testing.assert_allclose(inside, 0.576, atol=2e-3)
    assert inside > 0.5


@pytest.mark.default_cases("add_remove-Delta")
@pytest.mark.parametrize(
    ("constant", "noise_share"), [("hessian_sensitivity", 0.1), ("gradient_sensitivity", 0.9)], ids=["lambda", "Delta"]
)
@both_adjacencies
def test_half_a_constant_would_be_caught(monkeypatch, constant, noise_share, adjacency):
    right = getattr(gradients, constant)
    monkeypatch.setattr(gradients, constant, lambda *arguments: 0.5 * right(*arguments))
    assert max(worst_log_ratios(squared(kng.Box(-1.0, 1.0), adjacency, noise_share=noise_share))) > 1.03


@pytest.mark.slow
@both_adjacencies
@pytest.mark.parametrize("name", ["logistic", "Poisson", "smoothed"])
def test_no_neighbour_betrays_itself_under_other_losses(name, adjacency):
    """Of the law before the output noise, which has the rest of ε."""
    loss, bounds, _ = LAWS[name]
    mechanism = kng.ObjectivePerturbation(loss, bounds, kng.Box(-1.0, 1.0), 1.0, adjacency)
    random = np.random.default_rng(8)
    responses = {"logistic": [0.0, 1.0], "Poisson": [0.0, 3.0]}.get(name, [-5.0, 0.0, 0.3, 5.0])
    number, size = 1000, 5
    x = random.choice([-1.0, -0.5, 0.5, 1.0], (number, 2)) * random.choice([0.0, 1.0, 1.0], (number, 2))
    y = random.choice(responses, (number, 2))
    common = random.choice([-1.0, 0.0, 1.0], (number, 1)) * np.ones((1, size)), random.choice(responses, (number, 1))
    if adjacency == "add_remove":
        x[:, 1] = 0.0  # a record that says nothing is none
    first, second = (
        batch(
            Records,
            np.concatenate([common[0], x[:, [place]]], axis=1)[:, :, None],
            np.concatenate([np.tile(common[1], (1, size)), y[:, [place]]], axis=1),
        )
        for place in (0, 1)
    )
    ratios = np.abs(laws_on_a_line(mechanism, first) - laws_on_a_line(mechanism, second))
    assert 0.3 < ratios.max() <= 0.99


@pytest.mark.slow
@both_adjacencies
@pytest.mark.parametrize("name", ["Poisson", "logistic"])
def test_gradients_change_by_no_more_than_delta_far_outside_of_the_domain(name, adjacency):
    """The search runs over all of R^d, so Δ and λ must hold there, where an exponential would be astronomical."""
    loss, bounds, domain = LAWS[name]
    mechanism = kng.ObjectivePerturbation(loss, bounds, domain, 1.0, adjacency)
    random = np.random.default_rng(9)
    x = random.choice([-1.0, 1.0], (4000, 2, 2))
    y = random.choice([0.0, 1.0 if name == "logistic" else 3.0], (4000, 2))
    if adjacency == "add_remove":
        x[:, 1] = 0.0
    minimised, norm = mechanism.objective_loss(2), mechanism.score_norm(2)

    def change(x, y, theta):
        gradients = minimised.record_gradients(theta, Records(x, y))
        return norm(gradients[0] - gradients[1]), jnp.max(jnp.linalg.eigvalsh(minimised.hessian(theta, Records(x, y))))

    changes, curvatures = jax.vmap(change)(
        x, y, random.normal(size=(4000, 2)) * 10.0 ** random.uniform(-2, 2, (4000, 1))
    )
    assert 0.9 < np.max(changes) <= 1.0 + 1e-12
    # Of both records together.
    assert np.max(curvatures) <= 2.0 * float(gradients.hessian_sensitivity(loss, bounds, domain, 2))
