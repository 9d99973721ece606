"""Audits of objective perturbation on the line, whose law has atoms at the ends of Θ."""

import itertools

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.audit import density_ratio

ADJACENCIES = ("replace", "add_remove")
LOSSES = {
    "squared": (kng.SquaredLoss(), (-1.0, 1.0)),
    "pseudo-huber": (kng.PseudoHuberLoss(k=0.5), None),
    "logistic": (kng.LogisticLoss(), None),
}
# Of the ridge, by the loss: inside of Θ, at its end and beyond it.
CENTRES = {"squared": None, "pseudo-huber": [1.0], "logistic": [-4.0]}
QUICK = [("squared", "replace"), ("pseudo-huber", "add_remove"), ("logistic", "replace")]
every_case = pytest.mark.parametrize(
    ("name", "adjacency"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(LOSSES, ADJACENCIES)
    ],
)


def mechanism_of(name, adjacency, epsilon=1.0):
    loss, y = LOSSES[name]
    bounds = kng.Bounds(x=(-1.0, 1.0), y=y, intercept=False)
    domain = kng.Box(np.array([-1.0]), np.array([1.0]))
    return kng.ObjectivePerturbation(loss, bounds, domain, epsilon, adjacency, centre=CENTRES[name])


def audited(mechanism):
    return density_ratio(mechanism, num_records=(1, 5), num_steps=40, resolution=101)


@pytest.mark.slow
@every_case
def test_objective_perturbation_keeps_epsilon(name, adjacency):
    found = audited(mechanism_of(name, adjacency))
    assert found.passed, found.explain()
    # Its proof pays for noise and curvature with worst cases that exclude each other.
    assert found.ratio > 0.5


@pytest.mark.slow
@every_case
def test_twice_the_epsilon_is_found_out(name, adjacency):
    assert audited(mechanism_of(name, adjacency, epsilon=2.0)).worst_log_ratio > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_atoms_and_density_have_mass_one(name):
    mechanism = mechanism_of(name, "replace")
    random = np.random.default_rng(2)
    x, y = random.uniform(-1.0, 1.0, (8, 1)), random.integers(0, 2, 8).astype(float)
    data = mechanism.prepare(x, y)
    middles = ((np.arange(4000) + 0.5) / 2000 - 1.0)[:, None]
    interior = 2.0 * np.mean(np.exp(jax.jit(jax.vmap(mechanism.log_density, (0, None)))(middles, data)))
    atoms = np.exp(np.asarray(mechanism.boundary_log_masses(data)))
    assert atoms.shape == (2,)
    np.testing.assert_allclose(interior + atoms.sum(), 1.0, atol=1e-5)
