"""Bounds of the determinant and of the radius against points all over the domain, on designs made to break them."""

import itertools

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.exact.smooth import gradient_envelope as envelopes
from kngjax.chains.exact.smooth.gradient_certificate import bound_log_determinant, certify
from kngjax.chains.newton import evaluate, log_determinant
from kngjax.losses.base import AbstractPredictorLoss
from tests.losses.test_curvature_facts import NAMES
from tests.statistical.problems import LOSSES

COUNT, DIMENSION = 300, 4
DESIGNS = ("plain", "correlated", "heavy tails", "rare dummy")
DOMAIN = kng.L1Ball(3.0)


def design(kind, generator):
    """Columns within [-1, 1], shape (COUNT, DIMENSION - 1)."""
    x = generator.uniform(-1.0, 1.0, (COUNT, DIMENSION - 1))
    if kind == "correlated":
        x = np.clip(x[:, :1] + 0.1 * x, -1.0, 1.0)
    if kind == "heavy tails":
        x = np.clip(0.05 * generator.standard_t(1.5, x.shape), -1.0, 1.0)
    if kind == "rare dummy":
        x[:, 0] = generator.uniform(size=COUNT) < 0.03
    return x


def problem(name, kind, epsilon=2.0, count=COUNT, domain=DOMAIN, norm=None):
    """A target about a design, and an estimate."""
    generator = np.random.default_rng(5)
    x = design(kind, generator)
    predictors = 0.3 + x.sum(axis=1)
    noise = generator.standard_t(2, COUNT) if kind == "heavy tails" else 0.5 * generator.standard_normal(COUNT)
    y = predictors + noise
    if name == "logistic":
        y = (generator.uniform(size=COUNT) < 1.0 / (1.0 + np.exp(-predictors))).astype(float)
    if name == "poisson":
        y = np.minimum(generator.poisson(np.exp(predictors)), 9.0).astype(float)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(0.0, 9.0) if name == "poisson" else None, columns=DIMENSION - 1)
    mechanism = kng.KNG(LOSSES[name], bounds, domain, epsilon, "replace", norm)
    data = mechanism.prepare(x[:count], y[:count])
    return mechanism.target(data), mechanism.loss.minimise(data)


def points(target, centre, certificate, generator):
    """Points of Θ from next to θ₀ to its boundary."""
    wide = 3.0 * generator.dirichlet(np.ones(DIMENSION), 200) * generator.uniform(-1.0, 1.0, (200, DIMENSION))
    lengths = np.geomspace(1e-2, 1e2, 300) * certificate.spread * DIMENSION / float(target.rate)
    normals = generator.standard_normal((300, DIMENSION))
    steps = normals / np.linalg.norm(normals, axis=1, keepdims=True) * lengths[:, None]
    near = np.asarray(centre) + steps @ certificate.point.inverse_factor
    both = np.concatenate([wide, near])
    inside = np.abs(both).sum(axis=1) <= 3.0
    assert inside.sum() > 150
    # Some of them twice: as many as there are of others, for which programs were compiled.
    return np.resize(both[inside], both.shape)


@jax.jit
def envelope_about(target, theta):
    return envelopes.build(target, certify(target, evaluate(target, theta)))


@jax.jit
def facts(target, certificate, thetas):
    """log det H(θ₀) - log det H(θ), its bound and the length of the gradient at each θ; radii and floors."""

    def at(theta):
        point = evaluate(target, theta)
        drop = log_determinant(certificate.point) - log_determinant(point)
        bound = bound_log_determinant(certificate, target.loss, point.gradient)
        return drop, bound, target.rate * target.norm(point.gradient)

    return jax.vmap(at)(thetas), envelopes.rings(target, certificate)[:2]


@pytest.mark.slow
@pytest.mark.parametrize("half_width", [1e20, 1e55])
def test_an_envelope_serves_however_much_wider_the_domain_is_than_the_law(half_width):
    """Masses of shells and of all of Θ are up to e^1000 times apart."""
    count, dimension = 20_000, 7
    generator = np.random.default_rng(2)
    x = generator.uniform(-1.0, 1.0, (count, dimension - 1))
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)
    box = kng.Box(-half_width, half_width)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), bounds, box, 20.0, "replace")
    data = mechanism.prepare(x, x.sum(axis=1) + generator.standard_normal(count))
    envelope = envelope_about(mechanism.target(data), mechanism.loss.minimise(data))
    assert envelope.log_excess < 1.0


@pytest.mark.default_cases("pseudo_huber-plain")
@pytest.mark.parametrize(("name", "kind"), list(itertools.product(NAMES, DESIGNS)))
def test_no_point_of_the_domain_contradicts_the_bounds(name, kind):
    target, centre = problem(name, kind)
    generator = np.random.default_rng(1)
    # θ₀ may be any point: the estimate, and one beside it.
    for reference in (centre, 0.8 * centre + 0.05):
        certificate = jax.tree.map(np.asarray, envelope_about(target, reference).certificate)
        thetas = points(target, reference, certificate, generator)
        assert isinstance(target.loss, AbstractPredictorLoss)
        (drops, bounds, lengths), (radii, floors) = jax.tree.map(np.array, facts(target, certificate, thetas))
        known = np.isfinite(drops)
        assert known.sum() > 150
        assert np.all(drops[known] <= bounds[known] + 1e-7)
        # The gradient is no shorter beyond a radius than the certificate says.
        factor = np.linalg.inv(certificate.point.inverse_factor)
        distances = np.linalg.norm((thetas - np.asarray(reference)) @ factor, axis=1)
        least = floors[np.searchsorted(radii, distances, side="right") - 1]
        assert np.all(lengths >= least * (1.0 - 1e-9))
