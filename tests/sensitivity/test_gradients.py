"""Attacks on every fact that a sensitivity rests on: declared intervals, gradient changes, hand-computed constants.

The attackers are records and parameters at corners, at random, and, where no bound on y is needed, far out. Nothing
that they find may exceed a declared fact, and where the fact is the least possible they must come within 1% of it,
so that a constant half as large would be caught.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.data import records as data_room
from kngjax.data.records import Records
from kngjax.geometry.reach import Everywhere
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.sensitivity.gradients import hessian_sensitivity

TAUS = (0.05, 0.5, 0.75, 0.9, 0.95)
ADJACENCIES = ("replace", "add_remove")
NUM_ATTACKS = 10_000

# Name: loss, bounds of y, responses to attack with where y needs no bound.
LOSSES = {
    **{f"quantile-{tau}": (kng.QuantileLoss(tau=tau), None, (-1e6, 0.0, 1e6)) for tau in TAUS},
    "smoothed-quantile": (kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.2), None, (-1e6, 0.0, 1e6)),
    "gaussian-quantile": (kng.SmoothedQuantileLoss(0.3, 0.2, "gaussian"), None, (-1e6, 0.0, 1e6)),
    "huber": (kng.HuberLoss(k=0.5), None, (-1e6, 0.0, 1e6)),
    "pseudo-huber": (kng.PseudoHuberLoss(k=0.5), None, (-1e6, 0.0, 1e6)),
    "logistic": (kng.LogisticLoss(), None, (0.0, 1.0)),
    "squared": (kng.SquaredLoss(), (-1.0, 2.0), (-9.0, 9.0)),
    "poisson": (kng.PoissonLoss(), (0.0, 3.0), (0.0, 9.0)),
    "expectile": (kng.ExpectileLoss(tau=0.8), (-1.0, 2.0), (-9.0, 9.0)),
}
SOME_LOSSES = ("quantile-0.5", "quantile-0.9", "huber", "logistic", "squared")
DOMAINS = {
    "box": kng.Box(np.array([-1.0, 0.0, -2.0]), np.array([1.0, 1.5, 0.5])),
    "l1": kng.L1Ball(1.5),
    "l2": kng.L2Ball(1.5),
}
# Other levels and the third domain are slow, and so are most combinations.
every_loss = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if name in ("quantile-0.05", "quantile-0.75", "quantile-0.95") else []
        )
        for name in LOSSES
    ],
)
every_domain = pytest.mark.parametrize(
    "domain",
    [pytest.param(DOMAINS[name], marks=pytest.mark.slow if name == "l2" else []) for name in DOMAINS],
    ids=DOMAINS,
)
# Columns on both sides of 0, on one side, and away from it.
LOPSIDED = (np.array([-1.0, 0.5]), np.array([2.0, 3.0]))
# A triangle of columns, in none of whose corners of the box around it a record can be.
TRIANGLE = kng.FeatureHull([[-1.0, 0.5], [2.0, 1.0], [0.0, 3.0]])
# Longest where the signs of neighbouring coordinates differ, so not at w itself.
SKEW = np.array([[1.0, -0.6, 0.3], [-0.6, 2.0, -0.4], [0.3, -0.4, 0.5]])


def attacking_records(random, loss_name, bounds, dimension, shape):
    """Designs (*shape, d) and responses (*shape,) after the clipping of `prepare`: half at corners, half anywhere."""
    lower, upper = (np.asarray(side) for side in bounds.features(dimension))
    corner = np.where(random.random((*shape, dimension)) < 0.5, lower, upper)
    if bounds.hull is not None:
        vertices = bounds.hull.vertices
        corner[..., int(bounds.intercept) :] = vertices[random.integers(len(vertices), size=shape)]
    anywhere = random.uniform(lower, upper, corner.shape)
    x = np.where(random.random((*shape, 1)) < 0.7, corner, anywhere)
    extremes = np.asarray(LOSSES[loss_name][2])
    y = extremes[random.integers(len(extremes), size=shape)]
    if loss_name != "logistic":
        y = np.where(random.random(shape) < 0.7, y, np.abs(random.normal(size=shape)))
    columns = x[..., int(bounds.intercept) :].reshape(-1, dimension - bounds.intercept)
    records = data_room.prepare(bounds, columns, y.reshape(-1))
    return np.asarray(records.x).reshape(x.shape), np.asarray(records.y).reshape(shape)


def attacking_parameters(random, domain, dimension, count):
    """Points of Θ of shape (count, d), two thirds of them at its corners or on its boundary."""
    inside = np.asarray(domain.draw(jax.random.key(int(random.integers(2**31))), (count,), dimension))
    signs = np.where(random.random((count, dimension)) < 0.5, -1.0, 1.0)
    if isinstance(domain, kng.Box):
        corners = np.where(signs < 0, np.asarray(domain.lower), np.asarray(domain.upper))
    elif isinstance(domain, kng.L1Ball):
        corners = float(domain.radius) * signs * (random.integers(dimension, size=(count, 1)) == np.arange(dimension))
    else:
        direction = np.where(random.random((count, 1)) < 0.5, signs, random.normal(size=(count, dimension)))
        corners = float(domain.radius) * (1 - 1e-12) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return np.where(random.random((count, 1)) < 1 / 3, inside, corners)


def mechanism_for(loss_name, domain, adjacency, features=LOPSIDED, norm=None, loss=None):
    declared, y, _ = LOSSES[loss_name]
    return kng.KNG(declared if loss is None else loss, bounds_of(features, y), domain, 1.0, adjacency, norm)


def bounds_of(features, y):
    return kng.Bounds(y=y, **{"hull" if isinstance(features, kng.FeatureHull) else "x": features})


def fitted_norms(mechanism, dimension):
    """The norms that are made to fit a mechanism's possible gradient changes."""
    changes = kng.sensitivity_set(
        mechanism.loss, mechanism.bounds, mechanism.domain, mechanism.adjacency, dimension=dimension
    )
    return (
        changes.hull(),
        changes.ellipsoid(),
        kng.Polytope(facets=np.random.default_rng(5).normal(size=(6, dimension))),
    )


def gradient_changes_found(mechanism, loss_name, dimension, seed=0):
    """Changes of ∇ℓ_n between neighbouring data sets, shape (attacks, d), through `summarise` and `gradient`."""
    random = np.random.default_rng(seed)
    x, y = attacking_records(random, loss_name, mechanism.bounds, dimension, (NUM_ATTACKS, 3))
    thetas = attacking_parameters(random, mechanism.domain, dimension, NUM_ATTACKS)
    replaced = mechanism.adjacency == "replace"
    first, second = (np.array([0, 1]), np.array([0, 2])) if replaced else (np.arange(3), np.arange(2))
    pairs = (x[:, first], y[:, first]), (x[:, second], y[:, second])
    return gradients(mechanism.loss, *pairs[0], thetas) - gradients(mechanism.loss, *pairs[1], thetas)


@jax.jit
def gradients(loss, x, y, thetas):
    """∇ℓ_n of a batch of data sets, each at its own θ."""
    return jax.vmap(lambda x, y, theta: loss.gradient(theta, loss.summarise(Records(x, y))))(x, y, thetas)


def longest(norm, changes):
    return float(_longest(norm, changes))


@jax.jit
def _longest(norm, changes):
    return jnp.max(jax.vmap(norm)(changes))


@jax.jit
def hessians(loss, x, y, thetas):
    """∇²ℓ of a batch of single records, each at its own θ."""
    return jax.vmap(lambda x, y, theta: loss.hessian(theta, Records(x[None], y[None])))(x, y, thetas)


@pytest.mark.default_cases(8)
@every_domain
@every_loss
def test_scores_and_values_stay_in_their_declared_intervals(name, domain):
    loss, y_bounds, _ = LOSSES[name]
    # The value interval always is for a bounded response; the score interval only where the loss says so.
    value_bounds = (0.0, 1.0) if name == "logistic" else (y_bounds or (-1.0, 2.0))
    random = np.random.default_rng(1)
    dimension = 3
    thetas = attacking_parameters(random, domain, dimension, NUM_ATTACKS)
    bounds = kng.Bounds(x=LOPSIDED, y=y_bounds)
    reach = domain.linear_interval(*bounds.features(dimension))
    assert all(bool(domain.contains(theta)) for theta in thetas[:50])

    x, y = attacking_records(random, name, bounds, dimension, (NUM_ATTACKS,))
    predictors = np.sum(x * thetas, axis=1)
    assert float(reach[0]) * (1 + 1e-12) <= predictors.min()
    assert predictors.max() <= float(reach[1]) * (1 + 1e-12)

    scores = np.asarray(jax.vmap(loss.record_score)(predictors, y))
    low, high = (float(end) for end in loss.score_interval(reach, y_bounds))
    assert low - 1e-9 <= scores.min()
    assert scores.max() <= high + 1e-9

    values = np.asarray(jax.vmap(loss.record_value)(predictors, np.clip(y, *value_bounds)))
    low, high = (float(end) for end in loss.value_interval(reach, value_bounds))
    assert low - 1e-9 <= values.min()
    assert values.max() <= high + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_declared_intervals_are_no_wider_than_need_be(name):
    """With η anywhere in an interval, not only where Θ and the features take it."""
    loss, y_bounds, extremes = LOSSES[name]
    value_bounds = (0.0, 1.0) if name == "logistic" else (y_bounds or (-1.0, 2.0))
    reach = (-6.0, 6.0) if name == "logistic" else (-1.5, 2.0)
    predictors, responses = (part.ravel() for part in np.meshgrid(np.linspace(*reach, 401), y_bounds or extremes))
    scores = np.asarray(jax.vmap(loss.record_score)(predictors, responses))
    low, high = (float(end) for end in loss.score_interval(reach, y_bounds))
    np.testing.assert_allclose([scores.min(), scores.max()], [low, high], atol=0.01 * (high - low))
    predictors, responses = (part.ravel() for part in np.meshgrid(np.linspace(*reach, 401), value_bounds))
    values = np.asarray(jax.vmap(loss.record_value)(predictors, responses))
    low, high = (float(end) for end in loss.value_interval(reach, value_bounds))
    np.testing.assert_allclose([values.min(), values.max()], [low, high], atol=0.01 * (high - low))


CURVED = [name for name in LOSSES if not name.startswith("quantile")]


@pytest.mark.parametrize("name", CURVED)
def test_scores_rise_no_faster_than_the_declared_curvature(name):
    """Between any two predictors, which says nothing of how the loss computes its second derivative."""
    loss, y_bounds, extremes = LOSSES[name]
    reach = (-1.5, 2.0)
    predictors, ys = np.linspace(*reach, 20_001), np.unique([0.0, 0.7, *(y_bounds or extremes)])
    steps = [np.diff(np.asarray(jax.vmap(lambda eta, y=y: loss.record_score(eta, y))(predictors))) for y in ys]
    steepest = np.max(steps) / (predictors[1] - predictors[0])
    declared = float(loss.curvature_bound(reach))
    assert 0.99 * declared <= steepest <= declared * (1.0 + 1e-9)


def test_no_number_bounds_the_curvature_of_the_check_loss():
    assert kng.QuantileLoss(0.5).curvature_bound((-1.0, 1.0)) == np.inf


@pytest.mark.parametrize("domain", [kng.L1Ball(1.5), None], ids=["l1", "everywhere"])
@pytest.mark.parametrize("features", [LOPSIDED, TRIANGLE], ids=["box", "triangle"])
@pytest.mark.parametrize("name", CURVED)
def test_no_record_has_a_larger_hessian_than_lambda(name, features, domain):
    loss, y_bounds, _ = LOSSES[name]
    bounds = bounds_of(features, y_bounds)
    declared = float(hessian_sensitivity(loss, bounds, Everywhere() if domain is None else domain, 3))
    if name == "poisson" and domain is None:
        assert declared == np.inf
        return
    random = np.random.default_rng(5)
    x, y = attacking_records(random, name, bounds, 3, (NUM_ATTACKS,))
    thetas = attacking_parameters(random, kng.L2Ball(1e3) if domain is None else domain, 3, NUM_ATTACKS)
    thetas[::2] = 0.0 if name != "poisson" else thetas[::2]
    largest = float(np.max(np.linalg.eigvalsh(np.asarray(hessians(loss, x, y, thetas)))))
    assert 0.97 * declared <= largest <= declared * (1.0 + 1e-9)


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@every_domain
@every_loss
def test_no_gradient_change_exceeds_the_sensitivity_in_any_norm(name, domain, adjacency):
    plain = mechanism_for(name, domain, adjacency)
    changes = gradient_changes_found(plain, name, 3)
    norms = (None, kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf(np.array([1.0, 2.0, 0.5])), kng.Ellipsoid(SKEW))
    for norm in norms:
        mechanism = plain if norm is None else mechanism_for(name, domain, adjacency, norm=norm)
        sensitivity = mechanism.sensitivity_for(3)
        largest = longest(mechanism.score_norm(3), changes)
        assert largest <= sensitivity.value * (1.0 + 1e-9), (norm, largest, sensitivity)
        # No bound is of use that is far from what can happen.
        assert largest >= 0.3 * sensitivity.value, (norm, largest, sensitivity)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("features", [LOPSIDED, TRIANGLE], ids=["box", "triangle"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in ("quantile-0.5", "huber") else []) for name in SOME_LOSSES],
)
def test_no_gradient_change_exceeds_the_sensitivity_in_fitted_norms(name, features, adjacency):
    plain = mechanism_for(name, DOMAINS["l1"], adjacency, features)
    changes = gradient_changes_found(plain, name, 3)
    hull, ellipsoid, _ = fitted = fitted_norms(plain, 3)
    for norm in (*fitted, kng.L1(), kng.L2(), kng.LInf()):
        mechanism = mechanism_for(name, DOMAINS["l1"], adjacency, features, norm=norm)
        sensitivity = mechanism.sensitivity_for(3).value
        largest = longest(norm, changes)
        assert largest <= sensitivity * (1.0 + 1e-9), (norm, largest, sensitivity)
        # The scores of the others reach the ends of their intervals for few x and θ together, or only in the limit.
        least = 0.99 if name.startswith("quantile") or name == "huber" else 0.5
        assert largest >= least * sensitivity, (norm, largest, sensitivity)
        if norm in (hull, ellipsoid):
            np.testing.assert_allclose(sensitivity, 1.0, rtol=1e-9)


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("features", [(-1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize(
    "name",
    [
        *("quantile-0.5", "quantile-0.9", "huber", "smoothed-quantile"),
        *(pytest.param(f"quantile-{tau}", marks=pytest.mark.slow) for tau in (0.05, 0.75, 0.95)),
    ],
)
def test_the_default_norm_has_sensitivity_one_and_attains_it(name, features, adjacency):
    mechanism = mechanism_for(name, kng.L1Ball(1.5), adjacency, features)
    changes = gradient_changes_found(mechanism, name, 2)
    # The default norm's ball is a box, and each of its faces is reached.
    reached = np.max(np.abs(np.asarray(changes)), axis=0) / np.asarray(mechanism.score_norm(2).weights)
    assert mechanism.sensitivity_for(2).value == 1.0
    assert np.all((reached >= 0.99) & (reached <= 1.0 + 1e-9)), reached


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_squared_loss_attains_its_sensitivity(adjacency):
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-2.0, 2.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.L1Ball(1.5), 1.0, adjacency)
    changes = gradient_changes_found(mechanism, "squared", 2)
    reached = np.max(np.abs(np.asarray(changes)), axis=0) / np.asarray(mechanism.score_norm(2).weights)
    assert np.all((reached >= 0.99) & (reached <= 1.0 + 1e-9)), reached


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


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@every_loss
def test_a_declaration_half_as_large_would_be_caught(name, adjacency):
    loss = HalfDeclared(LOSSES[name][0])
    mechanism = mechanism_for(name, kng.L1Ball(1.5), adjacency, (-1.0, 1.0), loss=loss)
    changes = gradient_changes_found(mechanism, name, 2)
    largest = longest(mechanism.score_norm(2), changes)
    assert largest > 1.5 * mechanism.sensitivity_for(2).value
    for norm in fitted_norms(mechanism, 2) if name in SOME_LOSSES else ():
        fitted = mechanism_for(name, kng.L1Ball(1.5), adjacency, (-1.0, 1.0), norm=norm, loss=loss)
        assert longest(norm, changes) > 1.1 * fitted.sensitivity_for(2).value


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@every_loss
def test_the_exponential_mechanism_covers_every_oscillation(name, adjacency):
    """ε-DP needs that ℓ_n(θ; D) - ℓ_n(θ; D') varies by at most 2Δ over Θ: a constant part cancels."""
    loss, y_bounds, _ = LOSSES[name]
    bounds = kng.Bounds(x=(-1.0, 1.0), y=None if name == "logistic" else y_bounds or (-1.0, 2.0))
    mechanism = kng.ExponentialMechanism(loss, bounds, kng.L1Ball(1.5), 1.0, adjacency)
    random = np.random.default_rng(2)
    thetas = attacking_parameters(random, mechanism.domain, 2, 60)
    x, y = attacking_records(random, name, bounds, 2, (2000, 2))
    values = np.asarray(jax.vmap(jax.vmap(loss.record_value, (0, None)))(x.reshape(-1, 2) @ thetas.T, y.reshape(-1)))
    values = values.reshape(2000, 2, 60)
    differences = values[:, 0] - values[:, 1] if adjacency == "replace" else values[:, 0]
    oscillation = np.max(np.ptp(differences, axis=1))
    sensitivity = mechanism.sensitivity_for(2)
    assert oscillation <= 2.0 * sensitivity.value * (1.0 + 1e-9)
    assert f"{sensitivity.value:.6g}" in sensitivity.derivation


def kng_sensitivity(loss, norm, adjacency, dimension=2, domain=None, **bounds):
    return kng.KNG(loss, kng.Bounds(**bounds), domain or kng.Box(-1.0, 1.0), 1.0, adjacency, norm).sensitivity_for(
        dimension
    )


@pytest.mark.slow
@pytest.mark.parametrize("tau", TAUS)
def test_constants_of_quantile_regression_by_hand(tau):
    loss, larger = kng.QuantileLoss(tau=tau), max(tau, 1.0 - tau)

    def value(norm, adjacency, features, **options):
        return kng_sensitivity(loss, norm, adjacency, x=features, **options).value

    np.testing.assert_allclose(value(kng.LInf(), "replace", (-1.0, 1.0)), 2.0 * larger)
    np.testing.assert_allclose(value(kng.LInf(), "add_remove", (-1.0, 1.0)), larger)
    np.testing.assert_allclose(value(kng.LInf(), "replace", (0.0, 1.0)), 1.0)
    np.testing.assert_allclose(value(kng.LInf(), "add_remove", (0.0, 1.0)), larger)
    np.testing.assert_allclose(value(kng.LInf(), "replace", None, dimension=1), 1.0)
    by_hand = max(3.0 * tau, 1.0 - tau) + max(3.0 * (1.0 - tau), tau)
    np.testing.assert_allclose(value(kng.LInf(), "replace", (-3.0, 1.0), dimension=1, intercept=False), by_hand)
    # w = (1, 2·larger), but the changes are ±(1, v) with |v| ≤ 1 where the scores differ, and ±(0, v) with
    # |v| ≤ 2·larger where they are the same.
    np.testing.assert_allclose(value(kng.L1(), "replace", (-1.0, 1.0)), 2.0)
    np.testing.assert_allclose(value(kng.L2(), "replace", (-1.0, 1.0)), max(np.sqrt(2.0), 2.0 * larger))
    ellipsoid = kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]]))
    np.testing.assert_allclose(value(ellipsoid, "replace", (-1.0, 1.0)), max(np.sqrt(3.2), 2.0 * larger))
    np.testing.assert_allclose(value(kng.WeightedLInf(np.array([0.1, 1.0])), "replace", (-1.0, 1.0)), 10.0)
    assert value(None, "replace", (-1.0, 1.0)) == value(None, "add_remove", (0.0, 1.0)) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("reach", "y"), [(1.0, 1.0), (1.5, 4.0)])
def test_constants_of_the_other_losses_by_hand(reach, y):
    ball = {"domain": kng.L1Ball(reach), "x": (-1.0, 1.0)}

    def value(loss, adjacency, **bounds):
        return kng_sensitivity(loss, kng.LInf(), adjacency, **ball, **bounds).value

    np.testing.assert_allclose(value(kng.SquaredLoss(), "replace", y=(-y, y)), 2.0 * (y + reach))
    np.testing.assert_allclose(value(kng.SquaredLoss(), "add_remove", y=(-y, y)), y + reach)
    np.testing.assert_allclose(value(kng.HuberLoss(k=0.3), "replace"), 0.6)
    np.testing.assert_allclose(value(kng.PseudoHuberLoss(k=0.3), "add_remove"), 0.3)
    np.testing.assert_allclose(value(kng.LogisticLoss(), "replace"), 2.0)
    np.testing.assert_allclose(value(kng.LogisticLoss(), "add_remove"), 1.0)
    largest = max(y - np.exp(-reach), np.exp(reach))
    np.testing.assert_allclose(value(kng.PoissonLoss(), "add_remove", y=(0.0, y)), largest)
    np.testing.assert_allclose(value(kng.PoissonLoss(), "replace", y=(0.0, y)), 2.0 * largest)


@pytest.mark.parametrize("tau", TAUS)
def test_constants_of_the_exponential_mechanism_by_hand(tau):
    reach = 1.5

    def value(loss, y):
        bounds, ball = kng.Bounds(x=(-1.0, 1.0), y=y), kng.L1Ball(reach)
        return kng.ExponentialMechanism(loss, bounds, ball, 1.0, "replace").sensitivity_for(2).value

    np.testing.assert_allclose(value(kng.QuantileLoss(tau=tau), (-1.0, 1.0)), max(tau, 1.0 - tau) * (1.0 + reach))
    np.testing.assert_allclose(value(kng.SquaredLoss(), (-3.0, 3.0)), 0.5 * (3.0 + reach) ** 2)
    # log(1 + e^B) - log(1 + e^-B) = B.
    np.testing.assert_allclose(value(kng.LogisticLoss(), None), reach)


def test_an_ellipsoid_of_many_dimensions_is_bounded_from_above():
    random = np.random.default_rng(3)
    for dimension in (5, 14):
        root = random.normal(size=(dimension, dimension))
        norm, changes = kng.Ellipsoid(root @ root.T), random.uniform(0.5, 2.0, dimension)
        corners = changes * np.where(random.random((5000, dimension)) < 0.5, -1.0, 1.0)
        largest = np.max(np.sqrt(np.sum((corners @ root) ** 2, axis=1)))
        bound = float(norm.largest_over_box(jnp.asarray(changes)))
        assert largest <= bound * (1.0 + 1e-12)
        assert dimension > 12 or bound <= largest * (1.0 + 1e-9)


def test_the_derivation_names_its_numbers():
    loss = kng.QuantileLoss(tau=0.9)
    replace = kng_sensitivity(loss, kng.LInf(), "replace", x=(-1.0, 1.0))
    for part in ("[-0.9, 0.1]", "exchanging one record", "M_j - m_j", "w = (1, 1.8)", "LInf", "than 1.8"):
        assert part in replace.derivation
    removed = kng_sensitivity(loss, None, "add_remove", x=(-1.0, 1.0))
    for part in ("one record more or less", "max(|m_j|, |M_j|)", "w = (0.9, 0.9)", "WeightedLInf", "than 1."):
        assert part in removed.derivation


@pytest.mark.slow
def test_an_open_number_of_columns_has_a_sensitivity_only_if_it_does_not_matter():
    bounds = kng.Bounds(x=(-1.0, 1.0))
    mechanism = kng.KNG(kng.QuantileLoss(tau=0.9), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", kng.LInf())
    assert mechanism.sensitivity.value == pytest.approx(1.8)
    mechanism = kng.KNG(kng.QuantileLoss(tau=0.9), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", kng.L1())
    with pytest.raises(ValueError, match="sensitivity_for"):
        _ = mechanism.sensitivity
