"""Attacks on every fact that a sensitivity rests on: declared intervals, gradient changes, curvatures.

The attackers are records and parameters at corners, at random, and, where no bound on y is needed, far out. Nothing
that they find may exceed a declared fact, and where the fact is the least possible they must come within 1% of it,
so that a constant half as large would be caught.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.geometry.reach import Everywhere
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.sensitivity.gradients import hessian_sensitivity
from tests.made_once import MadeOnce
from tests.sensitivity.attacks import (
    DIMENSION,
    LOPSIDED,
    LOSSES,
    NUM_ATTACKS,
    NUM_PAIRS,
    TRIANGLE,
    at_pairs,
    attacking_parameters,
    attacking_records,
    attacks,
    bounds_of,
    gradient_changes_found,
    of_records,
)

ADJACENCIES = ("replace", "add_remove")
DOMAINS = MadeOnce(
    {
        "box": lambda: kng.Box(np.array([-1.0, 0.0, -2.0]), np.array([1.0, 1.5, 0.5])),
        "l1": lambda: kng.L1Ball(1.5),
        "l2": lambda: kng.L2Ball(1.5),
    }
)
# Longest where the signs of neighbouring coordinates differ, so not at w itself.
SKEW = np.array([[1.0, -0.6, 0.3], [-0.6, 2.0, -0.4], [0.3, -0.4, 0.5]])
NORMS = MadeOnce(
    {
        "default": lambda: None,
        "L1": kng.L1,
        "L2": kng.L2,
        "LInf": kng.LInf,
        "WeightedLInf": lambda: kng.WeightedLInf(np.array([1.0, 2.0, 0.5])),
        "Ellipsoid": lambda: kng.Ellipsoid(SKEW),
    }
)
LEVELS = [name for name in LOSSES if name.startswith("quantile")]
# Losses of one program each.
KINDS = {"quantile": LEVELS, **{name: [name] for name in LOSSES if name not in LEVELS}}
CURVED = [name for name in LOSSES if name not in LEVELS]
every_kind = pytest.mark.parametrize("kind", KINDS)


def mechanism_for(loss_name, domain, adjacency, features=LOPSIDED, norm=None, loss=None):
    declared, y, _ = LOSSES[loss_name]
    return kng.KNG(declared if loss is None else loss, bounds_of(features, y), domain, 1.0, adjacency, norm)


def longest(mechanism, changes):
    """The largest norm of rows, in NumPy."""
    norm = mechanism.score_norm(DIMENSION)
    return {
        kng.L1: lambda: np.abs(changes).sum(axis=1),
        kng.L2: lambda: np.linalg.norm(changes, axis=1),
        kng.LInf: lambda: np.abs(changes).max(axis=1),
        kng.WeightedLInf: lambda: (np.abs(changes) / np.asarray(norm.weights)).max(axis=1),
        kng.Ellipsoid: lambda: np.sqrt(np.einsum("ij,jk,ik->i", changes, np.asarray(norm.matrix), changes)),
        kng.Polytope: lambda: np.abs(changes @ np.asarray(norm.facets).T).max(axis=1),
    }[type(norm)]().max()


@jax.jit
def declared_intervals(loss, reach, response, value_response):
    """Ranges of scores, with the response in `response` or anywhere (None), and of values, as one program."""
    return loss.score_interval(reach, response), loss.value_interval(reach, value_response)


@every_kind
def test_scores_and_values_stay_in_their_declared_intervals(kind):
    """Features and parameters reach no further than `linear_interval` says, of each domain."""
    for name, (domain_name, domain) in zip(KINDS[kind] * 3, list(DOMAINS.items()) * 5, strict=False):
        loss, y_bounds, _ = LOSSES[name]
        # The value interval always is for a bounded response; the score interval only where the loss says so.
        value_bounds = (0.0, 1.0) if name == "logistic" else (y_bounds or (-1.0, 2.0))
        bounds = kng.Bounds(x=LOPSIDED, y=y_bounds)
        reach = [float(end) for end in domain.linear_interval(*bounds.features(DIMENSION))]
        x, y, thetas = attacks(name, bounds, domain, seed=1)
        assert all(bool(domain.contains(theta)) for theta in thetas[:20])
        predictors = np.einsum("ijk,ik->ij", x, thetas)
        assert reach[0] * (1 + 1e-12) <= predictors.min()
        assert predictors.max() <= reach[1] * (1 + 1e-12)

        scores = np.asarray(of_records(loss, x, y, thetas)[2])
        (low, high), (least, most) = declared_intervals(loss, tuple(reach), y_bounds, value_bounds)
        assert low - 1e-9 <= scores.min(), (name, domain_name)
        assert scores.max() <= high + 1e-9, (name, domain_name)

        pairs = np.resize(predictors, NUM_PAIRS), np.resize(np.clip(y, *value_bounds), NUM_PAIRS)
        values = np.asarray(at_pairs(loss, *pairs)[0])
        assert least - 1e-9 <= values.min(), (name, domain_name)
        assert values.max() <= most + 1e-9, (name, domain_name)


@every_kind
def test_declared_intervals_are_no_wider_than_need_be(kind):
    """With η anywhere in an interval, not only where Θ and the features take it."""
    for name in KINDS[kind]:
        loss, y_bounds, extremes = LOSSES[name]
        value_bounds = (0.0, 1.0) if name == "logistic" else (y_bounds or (-1.0, 2.0))
        reach = (-6.0, 6.0) if name == "logistic" else (-1.5, 2.0)
        intervals = declared_intervals(loss, reach, y_bounds, value_bounds)
        for of_value, ends, interval in zip((1, 0), (y_bounds or extremes, value_bounds), intervals, strict=True):
            grid = np.meshgrid(np.linspace(*reach, NUM_PAIRS // len(ends)), ends)
            found = np.asarray(at_pairs(loss, *(part.ravel() for part in grid))[of_value])
            low, high = (float(end) for end in interval)
            np.testing.assert_allclose([found.min(), found.max()], [low, high], atol=0.01 * (high - low), err_msg=name)


def test_scores_rise_no_faster_than_the_declared_curvature():
    """Between any two predictors, which says nothing of how the loss computes its second derivative."""
    for name in CURVED:
        loss, y_bounds, extremes = LOSSES[name]
        reach = (-1.5, 2.0)
        ys = np.array([0.0, 0.7, *(y_bounds or extremes)[-2:]])
        predictors = np.linspace(*reach, NUM_PAIRS // len(ys))
        grid = np.meshgrid(predictors, ys)
        scores = np.asarray(at_pairs(loss, *(part.ravel() for part in grid))[1]).reshape(len(ys), -1)
        steepest = np.max(np.diff(scores, axis=1)) / (predictors[1] - predictors[0])
        declared = float(loss.curvature_bound(reach))
        assert 0.99 * declared <= steepest <= declared * (1.0 + 1e-8), name
    assert kng.QuantileLoss(0.5).curvature_bound((-1.0, 1.0)) == np.inf


@pytest.mark.parametrize("name", CURVED)
def test_no_record_has_a_larger_hessian_than_lambda(name):
    loss, y_bounds, _ = LOSSES[name]
    # Half of them on a hull and a domain, half of them within a box and for any parameters.
    bounded = "poisson" in name or CURVED.index(name) % 2 == 0
    features, domain = (TRIANGLE, kng.L1Ball(1.5)) if bounded else (LOPSIDED, Everywhere())
    bounds, random = bounds_of(features, y_bounds), np.random.default_rng(5)
    declared = float(hessian_sensitivity(loss, bounds, domain, DIMENSION))
    x, y = attacking_records(random, name, bounds, (NUM_ATTACKS, 2))
    thetas = attacking_parameters(random, domain if bounded else kng.L2Ball(1e3), NUM_ATTACKS)
    thetas[::2] = thetas[::2] if "poisson" in name else 0.0
    hessians = np.asarray(of_records(loss, x, y, thetas)[1])
    # Of rank one, so that the trace is the eigenvalue.
    traces = np.trace(hessians, axis1=2, axis2=3)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessians[:50])[..., -1], traces[:50], rtol=1e-9, atol=1e-12)
    assert 0.97 * declared <= traces.max() <= declared * (1.0 + 1e-9)
    if name == "poisson":
        assert hessian_sensitivity(loss, bounds_of(LOPSIDED, y_bounds), Everywhere(), DIMENSION) == np.inf


def chosen_settings(kind):
    """Norm, domain and adjacency: of one loss all norms, of each other loss one, in turn."""
    place = list(KINDS).index(kind)
    settings = list(zip(NORMS, ("box", "l1") * 3, (*ADJACENCIES, *ADJACENCIES[::-1], *ADJACENCIES), strict=True))
    return settings if kind == "quantile" else [settings[place % 6]]


def check_changes(kind, norm, domain, adjacency):
    for name in KINDS[kind]:
        mechanism = mechanism_for(name, DOMAINS[domain], adjacency, norm=NORMS[norm])
        changes = gradient_changes_found(name, mechanism.bounds, DOMAINS[domain], adjacency)
        sensitivity = mechanism.sensitivity_for(DIMENSION).value
        largest = longest(mechanism, changes)
        assert largest <= sensitivity * (1.0 + 1e-9), (name, norm, domain, adjacency)
        # No bound is of use that is far from what can happen.
        assert largest >= 0.3 * sensitivity, (name, norm, domain, adjacency)


@every_kind
def test_no_gradient_change_exceeds_the_sensitivity(kind):
    for settings in chosen_settings(kind):
        check_changes(kind, *settings)


@pytest.mark.slow
@every_kind
def test_no_gradient_change_exceeds_the_sensitivity_in_any_norm(kind):
    for norm in NORMS:
        for domain in DOMAINS:
            for adjacency in ADJACENCIES:
                check_changes(kind, norm, domain, adjacency)


def fitted_norms(mechanism):
    """The norms that are made to fit a mechanism's possible gradient changes."""
    parts = mechanism.loss, mechanism.bounds, mechanism.domain, mechanism.adjacency
    changes = kng.sensitivity.sensitivity_set(*parts, dimension=DIMENSION)
    polytope = kng.Polytope(facets=np.random.default_rng(5).normal(size=(6, DIMENSION)))
    return {"hull": changes.hull(), "ellipsoid": changes.ellipsoid(), "polytope": polytope}


@pytest.mark.default_cases("quantile-triangle-replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("features", [LOPSIDED, TRIANGLE], ids=["box", "triangle"])
@pytest.mark.parametrize("kind", ["quantile", "huber", "logistic", "squared"])
def test_no_gradient_change_exceeds_the_sensitivity_in_fitted_norms(kind, features, adjacency):
    for name in KINDS[kind][3:4] or KINDS[kind]:
        plain = mechanism_for(name, DOMAINS["l1"], adjacency, features)
        changes = gradient_changes_found(name, plain.bounds, DOMAINS["l1"], adjacency)
        for fitted, norm in fitted_norms(plain).items():
            mechanism = mechanism_for(name, DOMAINS["l1"], adjacency, features, norm=norm)
            sensitivity = mechanism.sensitivity_for(DIMENSION).value
            largest = longest(mechanism, changes)
            assert largest <= sensitivity * (1.0 + 1e-9), (name, fitted)
            # The scores of the others reach their ends for few x and θ together, or only in the limit.
            least = 0.99 if kind in ("quantile", "huber") else 0.5
            assert largest >= least * sensitivity, (name, fitted)
            if fitted != "polytope":
                np.testing.assert_allclose(sensitivity, 1.0, rtol=1e-9)


SYMMETRIC, POSITIVE = (np.full(2, -1.0), np.full(2, 1.0)), (np.zeros(2), np.ones(2))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_default_norm_has_sensitivity_one_and_attains_it(adjacency):
    """Its ball is a box, of which each face is reached; by the squared loss where all bounds are symmetric."""
    for name in (*LEVELS, "huber", "smoothed-quantile", "squared"):
        for features in (SYMMETRIC, POSITIVE)[: 1 if name == "squared" else 2]:
            bounds = kng.Bounds(x=features, y=(-2.0, 2.0) if name == "squared" else None)
            mechanism = kng.KNG(LOSSES[name][0], bounds, DOMAINS["l1"], 1.0, adjacency)
            changes = gradient_changes_found(name, bounds, DOMAINS["l1"], adjacency)
            reached = np.max(np.abs(changes), axis=0) / np.asarray(mechanism.score_norm(DIMENSION).weights)
            assert mechanism.sensitivity_for(DIMENSION).value == 1.0
            assert np.all((reached >= 0.99) & (reached <= 1.0 + 1e-9)), (name, reached)


class HalfDeclared(AbstractPredictorLoss):
    """A loss whose declared intervals are half of the true ones."""

    inner: AbstractPredictorLoss

    def record_value(self, predictor, response):
        return self.inner.record_value(predictor, response)

    def record_score(self, predictor, response):
        return self.inner.record_score(predictor, response)

    def record_curvature(self, predictor, response):
        return self.inner.record_curvature(predictor, response)

    def curvature_bound(self, predictor):
        return 0.5 * jnp.asarray(self.inner.curvature_bound(predictor))

    def score_interval(self, predictor, response):
        return tuple(0.5 * jnp.asarray(end) for end in self.inner.score_interval(predictor, response))

    def value_interval(self, predictor, response):
        return tuple(0.5 * jnp.asarray(end) for end in self.inner.value_interval(predictor, response))


@pytest.mark.default_cases("quantile")
@every_kind
def test_a_declaration_half_as_large_would_be_caught(kind):
    for adjacency in ADJACENCIES:
        for name in KINDS[kind]:
            loss = HalfDeclared(LOSSES[name][0])
            mechanism = mechanism_for(name, DOMAINS["l1"], adjacency, SYMMETRIC, loss=loss)
            changes = gradient_changes_found(name, mechanism.bounds, DOMAINS["l1"], adjacency)
            assert longest(mechanism, changes) > 1.5 * mechanism.sensitivity_for(DIMENSION).value


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["quantile-0.5", "quantile-0.9", "huber", "logistic", "squared"])
def test_half_a_declaration_would_be_caught_in_fitted_norms(name, adjacency):
    loss = HalfDeclared(LOSSES[name][0])
    mechanism = mechanism_for(name, DOMAINS["l1"], adjacency, SYMMETRIC, loss=loss)
    changes = gradient_changes_found(name, mechanism.bounds, DOMAINS["l1"], adjacency)
    for norm in fitted_norms(mechanism).values():
        fitted = mechanism_for(name, DOMAINS["l1"], adjacency, SYMMETRIC, norm=norm, loss=loss)
        assert longest(fitted, changes) > 1.1 * fitted.sensitivity_for(DIMENSION).value


@every_kind
def test_the_exponential_mechanism_covers_every_oscillation(kind):
    """ε-DP needs that ℓ_n(θ; D) - ℓ_n(θ; D') varies by at most 2Δ over Θ: a constant part cancels."""
    for name in KINDS[kind]:
        loss, y_bounds, _ = LOSSES[name]
        bounds = kng.Bounds(x=SYMMETRIC, y=None if name == "logistic" else y_bounds or (-1.0, 2.0))
        random = np.random.default_rng(2)
        thetas = attacking_parameters(random, DOMAINS["l1"], 24)
        x, y = attacking_records(random, name, bounds, (500, 2))
        pairs = (x @ thetas.T).reshape(-1), np.repeat(y.reshape(-1), 24)
        values = np.asarray(at_pairs(loss, *pairs)[0]).reshape(500, 2, 24)
        for adjacency in ADJACENCIES:
            mechanism = kng.ExponentialMechanism(loss, bounds, DOMAINS["l1"], 1.0, adjacency)
            differences = values[:, 0] - values[:, 1] if adjacency == "replace" else values[:, 0]
            oscillation = np.max(np.ptp(differences, axis=1))
            sensitivity = mechanism.sensitivity_for(DIMENSION)
            assert oscillation <= 2.0 * sensitivity.value * (1.0 + 1e-9), (name, adjacency)
            assert f"{sensitivity.value:.6g}" in sensitivity.derivation
