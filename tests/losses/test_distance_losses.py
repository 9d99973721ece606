"""Means and medians: the two losses of the distance to a record, their derivatives, and what one record can change.

The attackers of the sensitivities are records and parameters at corners, at random, and on opposite sides of θ. Nothing
that they find may exceed a sensitivity, and they must come near it, so that half of it would be caught.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.data.records import QuadraticSummary, Records, prepare
from kngjax.data.schema import Schema
from kngjax.releases.certificate import Certificate
from kngjax.releases.default_sampler import default_sampler
from kngjax.releases.float64_draws import DirectDraw

LOSSES = {"mean": kng.SquaredDistanceLoss(), "median": kng.GeometricMedianLoss()}
# Its value for one record, and its gradient, in NumPy.
CLOSED_FORMS = {
    "mean": (lambda x, theta: 0.5 * np.sum((x - theta) ** 2), lambda x, theta: theta - x),
    "median": (
        lambda x, theta: np.sqrt(np.sum((x - theta) ** 2)),
        lambda x, theta: (theta - x) / np.sqrt(np.sum((x - theta) ** 2)),
    ),
}
ADJACENCIES = ("replace", "add_remove")
# Columns on both sides of 0 and away from it.
BOUNDS = kng.Bounds(x=(np.array([-1.0, 0.5]), np.array([2.0, 3.0])), intercept=False)
DOMAINS = {
    "box": kng.Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0])),
    "l1": kng.L1Ball(2.5),
    "l2": kng.L2Ball(2.5),
}
NUM_ATTACKS = 20_000

every_loss = pytest.mark.parametrize("name", LOSSES)
every_domain = pytest.mark.parametrize(
    "domain",
    [pytest.param(DOMAINS[name], marks=pytest.mark.slow if name == "l2" else []) for name in DOMAINS],
    ids=DOMAINS,
)
both_adjacencies = pytest.mark.parametrize("adjacency", ADJACENCIES)


def problem(dimension=2, n=31, seed=17):
    random = np.random.default_rng(seed)
    x = random.uniform(-2.0, 2.0, (n, dimension))
    return prepare(kng.Bounds(x=(-2.0, 2.0), intercept=False), x, None, has_response=False), random.normal(
        size=dimension
    )


@jax.jit
def _sums(loss, theta, data):
    """ℓ_n, ∇ℓ_n and ∇²ℓ_n at θ, then ∇ℓ_n and ∇²ℓ_n from ℓ_n, and the derivative of ∇ℓ_n."""
    declared = loss.value(theta, data), loss.gradient(theta, data), loss.hessian(theta, data)
    by_autodiff = (by(loss.value)(theta, data) for by in (jax.grad, jax.hessian))
    return declared, (*by_autodiff, jax.jacobian(loss.gradient)(theta, data))


def sums(loss, theta, data):
    return _sums(loss, theta, data)[0]


def sums_by_autodiff(loss, theta, data):
    return _sums(loss, theta, data)[1]


@pytest.mark.default_cases("3-mean", "3-median", "1-median")
@every_loss
@pytest.mark.parametrize("dimension", [1, 3])
def test_sums_over_records_are_loops_in_numpy(name, dimension):
    loss, (records, theta) = LOSSES[name], problem(dimension)
    value, gradient = (sum(form(x, theta) for x in records.x) for form in CLOSED_FORMS[name])
    data = loss.summarise(records)
    found, by_autodiff = sums(loss, theta, data), sums_by_autodiff(loss, theta, data)
    np.testing.assert_allclose(found[0], value, rtol=1e-11)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(by_autodiff[0], gradient, rtol=1e-10, atol=1e-11)
    gradients = [CLOSED_FORMS[name][1](x, theta) for x in records.x]
    np.testing.assert_allclose(jax.jit(loss.record_gradients)(theta, records), gradients, rtol=1e-11, atol=1e-12)
    if (name, dimension) != ("median", 1):
        np.testing.assert_allclose(found[2], by_autodiff[1], rtol=1e-10, atol=1e-10)


def test_the_sufficient_statistic_says_all_about_the_squared_distance():
    loss, (records, theta) = LOSSES["mean"], problem(3)
    summary = loss.summarise(records)
    assert isinstance(summary, QuadraticSummary)
    assert (float(summary.count), summary.dimension) == (31.0, 3)
    for of_summary, of_records in zip(sums(loss, theta, summary), sums(loss, theta, records), strict=True):
        np.testing.assert_allclose(of_summary, of_records, rtol=1e-11)
    with pytest.raises(TypeError, match="this loss needs the records, not a QuadraticSummary"):
        LOSSES["median"].gradient(theta, summary)


def test_at_a_record_the_median_has_no_direction_and_nothing_is_lost():
    loss, records = LOSSES["median"], Records(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]), np.zeros(3))
    _, gradient, hessian = sums(loss, np.zeros(2), records)
    np.testing.assert_allclose(gradient, [-0.6, -0.8], rtol=1e-14)
    assert np.all(np.isfinite(sums_by_autodiff(loss, np.zeros(2), records)[2]))
    assert np.all(np.isfinite(hessian))


def test_on_a_line_the_median_is_the_check_loss_doubled():
    records, theta = problem(1)
    line = Records(np.ones_like(records.x), records.x[:, 0])
    check = kng.QuantileLoss(0.5)
    for ours, theirs in zip(sums(LOSSES["median"], theta, records), sums(check, theta, line), strict=True):
        np.testing.assert_allclose(ours, 2.0 * theirs, rtol=1e-12)


def attacks(domain, adjacency, seed=0):
    """Records of neighbouring data sets, (attacks, n, 2) each, and for every pair a θ ∈ Θ."""
    random = np.random.default_rng(seed)
    lower, upper = (np.asarray(side) for side in BOUNDS.features(2))
    inside = np.asarray(domain.draw(jax.random.key(seed), (NUM_ATTACKS,), 2))
    signs = np.where(random.random((NUM_ATTACKS, 2)) < 0.5, -1.0, 1.0)
    if isinstance(domain, kng.Box):
        corners = np.where(signs < 0, np.asarray(domain.lower), np.asarray(domain.upper))
    elif isinstance(domain, kng.L1Ball):
        corners = 2.5 * signs * (random.integers(2, size=(NUM_ATTACKS, 1)) == np.arange(2))
    else:
        direction = np.where(random.random((NUM_ATTACKS, 2)) < 0.3, 0.0, random.normal(size=(NUM_ATTACKS, 2)))
        direction[~direction.any(axis=1)] = [1.0, 0.0]
        corners = 2.5 * (1 - 1e-12) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    thetas = np.where(random.random((NUM_ATTACKS, 1)) < 0.5, inside, corners)
    x = np.where(random.random((NUM_ATTACKS, 3, 2)) < 0.5, lower, upper)
    x = np.where(random.random((NUM_ATTACKS, 3, 1)) < 0.3, random.uniform(lower, upper, x.shape), x)
    # Two records on opposite sides of θ: directions to them differ by 2.
    across = 1e-3 * random.normal(size=(NUM_ATTACKS, 2))
    beside = random.random((NUM_ATTACKS, 1)) < 0.3
    x[:, 1], x[:, 2] = np.where(beside, thetas + across, x[:, 1]), np.where(beside, thetas - across, x[:, 2])
    x = prepare(BOUNDS, x.reshape(-1, 2), None, has_response=False).x.reshape(x.shape)
    if adjacency == "replace":
        return x[:, [0, 1]], x[:, [0, 2]], thetas
    return x, x[:, :2], thetas


@jax.jit
def gradients(loss, x, thetas):
    """∇ℓ_n of a batch of data sets, each at its own θ."""
    return jax.vmap(lambda x, theta: loss.gradient(theta, loss.summarise(Records(x, jnp.zeros(len(x))))))(x, thetas)


def gradient_changes_found(loss, domain, adjacency):
    first, second, thetas = attacks(domain, adjacency)
    return np.asarray(gradients(loss, first, thetas) - gradients(loss, second, thetas))


NORMS = (None, kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf(np.array([1.0, 2.0])))
NORMS += (kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 2.0]])),)


@jax.jit
def longest(norm, changes):
    return jnp.max(jax.vmap(norm)(changes))


@pytest.mark.slow
@both_adjacencies
@every_domain
@every_loss
def test_no_gradient_change_exceeds_the_sensitivity_in_any_norm(name, domain, adjacency):
    changes = gradient_changes_found(LOSSES[name], domain, adjacency)
    for norm in NORMS:
        mechanism = kng.KNG(LOSSES[name], BOUNDS, domain, 1.0, adjacency, norm)
        sensitivity = mechanism.sensitivity_for(2)
        largest = float(longest(mechanism.score_norm(2), changes))
        assert largest <= sensitivity.value * (1.0 + 1e-9), (norm, largest, sensitivity)
        # Half of it would be caught. On balls no θ is far out in both coordinates, as the box of changes allows.
        assert largest >= 0.7 * sensitivity.value, (norm, largest, sensitivity)


@pytest.mark.slow
@both_adjacencies
@every_domain
@every_loss
def test_the_default_norm_attains_its_sensitivity(name, domain, adjacency):
    mechanism = kng.KNG(LOSSES[name], BOUNDS, domain, 1.0, adjacency)
    changes = gradient_changes_found(LOSSES[name], domain, adjacency)
    if name == "mean":
        assert mechanism.sensitivity_for(2).value == 1.0
        reached = np.max(np.abs(changes), axis=0) / np.asarray(mechanism.score_norm(2).weights)
    else:
        assert isinstance(mechanism.score_norm(2), kng.L2)
        assert mechanism.sensitivity_for(2).value == {"replace": 2.0, "add_remove": 1.0}[adjacency]
        reached = np.max(np.linalg.norm(changes, axis=1)) / mechanism.sensitivity_for(2).value
    assert np.all((reached >= 0.99) & (reached <= 1.0 + 1e-9)), reached


@pytest.mark.slow
@both_adjacencies
@every_domain
@every_loss
def test_the_exponential_mechanism_covers_every_oscillation(name, domain, adjacency):
    """ε-DP needs that ℓ_n(θ; D) - ℓ_n(θ; D') varies by at most 2Δ over Θ: a constant part cancels."""
    mechanism = kng.ExponentialMechanism(LOSSES[name], BOUNDS, domain, 1.0, adjacency)
    first, second, thetas = (part[:2000] for part in attacks(domain, adjacency, seed=1))
    thetas = thetas[::20]

    def values(x):
        distances = np.linalg.norm(x[:, None] - thetas, axis=-1)
        return distances if name == "median" else 0.5 * distances**2

    differences = values(first[:, -1]) - (values(second[:, -1]) if adjacency == "replace" else 0.0)
    oscillation = np.max(np.ptp(differences, axis=1))
    sensitivity = mechanism.sensitivity_for(2)
    assert oscillation <= 2.0 * sensitivity.value * (1.0 + 1e-9)
    # Half of it would be caught. A ball counts as the box about it, where half may do.
    assert oscillation > 1.1 * sensitivity.value or not isinstance(domain, kng.Box)
    assert f"{sensitivity.value:.6g}" in sensitivity.derivation


def test_sensitivities_by_hand():
    def value(kind, name, adjacency, *norm, reach=1.0):
        bounds = kng.Bounds(x=([-1.0, 0.0], [1.0, 1.0]), intercept=False)
        return kind(LOSSES[name], bounds, kng.Box(-reach, reach), 1.0, adjacency, *norm).sensitivity_for(2).value

    # Records move by (2, 1); θ_j - x_j reaches 1 + 1 and 1 + 1.
    assert value(kng.KNG, "mean", "replace", kng.L1()) == 3.0
    assert value(kng.KNG, "mean", "replace", kng.L1(), reach=50.0) == 3.0
    assert value(kng.KNG, "mean", "add_remove", kng.L1()) == 4.0
    assert value(kng.KNG, "mean", "add_remove", kng.L2(), reach=2.0) == pytest.approx(np.hypot(3.0, 3.0))
    # Directions are in the l2 ball, whose diagonal has l1 length √2.
    assert value(kng.KNG, "median", "replace", kng.L1()) == pytest.approx(2.0 * np.sqrt(2.0))
    assert value(kng.KNG, "median", "replace", kng.WeightedLInf(np.array([0.5, 1.0]))) == 4.0
    # One record's loss lies between 0 and its value at distance (2, 2).
    assert value(kng.ExponentialMechanism, "mean", "replace") == 4.0
    assert value(kng.ExponentialMechanism, "mean", "add_remove") == 2.0
    assert value(kng.ExponentialMechanism, "median", "replace") == pytest.approx(np.sqrt(8.0))
    assert value(kng.ExponentialMechanism, "median", "add_remove") == pytest.approx(np.sqrt(2.0))


def test_the_derivation_names_its_numbers():
    def derivation(kind, name, adjacency):
        return kind(LOSSES[name], BOUNDS, kng.Box(-1.0, 4.0), 1.0, adjacency).sensitivity_for(2).derivation

    for text, parts in (
        (derivation(kng.KNG, "mean", "replace"), ("theta - x", "exchanging one record", "u_j - l_j", "w = (3, 2.5)")),
        (derivation(kng.KNG, "mean", "add_remove"), ("one record more or less", "|theta_j - x_j|", "w = (5, 4)")),
        (derivation(kng.KNG, "median", "replace"), ("Euclidean length 1", "exchanging one record", "at most 2", "L2")),
        (derivation(kng.KNG, "median", "add_remove"), ("one record more or less", "at most 1. In the L2")),
        (derivation(kng.ExponentialMechanism, "median", "add_remove"), ("half the range", "which is 3.20156")),
    ):
        assert all(part in text for part in parts), text


@every_loss
def test_what_has_no_proof_is_refused(name):
    normal = kng.BaseMeasure(dist.Normal(0.0, 1.0))
    for kind in (kng.KNG, kng.ExponentialMechanism):
        with pytest.raises(ValueError, match="domain is missing"):
            kind(LOSSES[name], BOUNDS, None, 1.0, "replace")
        for bounds in (kng.Bounds(x=(0.0, 1.0)), kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), intercept=False)):
            with pytest.raises(ValueError, match="neither intercept nor response"):
                kind(LOSSES[name], bounds, kng.Box(0.0, 1.0), 1.0, "replace")
        with pytest.raises(ValueError, match="has no response: pass X alone"):
            kind(LOSSES[name], BOUNDS, kng.Box(0.0, 1.0), 1.0, "replace").prepare(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match=r"not finite over this domain.*distance to theta. Give a bounded domain"):
        kng.ExponentialMechanism(LOSSES[name], BOUNDS, normal, 1.0, "replace")


def test_a_record_more_moves_the_mean_without_limit_on_an_unbounded_domain():
    normal = kng.BaseMeasure(dist.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match=r"not finite over this domain.*distance to theta. Give a bounded domain"):
        kng.KNG(LOSSES["mean"], BOUNDS, normal, 1.0, "add_remove")
    # Exchanging a record, and directions, are bounded whatever θ.
    assert kng.KNG(LOSSES["mean"], BOUNDS, normal, 1.0, "replace").sensitivity.value == 1.0
    for adjacency in ADJACENCIES:
        assert kng.KNG(LOSSES["median"], BOUNDS, normal, 1.0, adjacency).guarantee.epsilon == 1.0


def test_a_column_without_width_needs_a_norm():
    bounds = kng.Bounds(x=([0.0, 1.0], 1.0), intercept=False)
    with pytest.raises(ValueError, match="bounds of x that leave every column some width, or name a norm"):
        kng.KNG(LOSSES["mean"], bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    assert kng.KNG(LOSSES["mean"], bounds, kng.Box(-1.0, 1.0), 1.0, "replace", kng.L1()).sensitivity.value == 1.0
    assert kng.KNG(LOSSES["median"], bounds, kng.Box(-1.0, 1.0), 1.0, "replace").sensitivity.value == 2.0


def test_the_default_samplers():
    parts = kng.Bounds(x=(-1.0, 1.0), intercept=False), kng.Box(-1.0, 1.0), 1.0, "replace"
    for kind in (kng.KNG, kng.ExponentialMechanism):
        assert isinstance(default_sampler(kind(LOSSES["mean"], *parts), 2)[0], kng.chains.Exact)
        assert isinstance(default_sampler(kind(LOSSES["median"], *parts), 2)[0], kng.chains.EnsembleWalk)


def test_gradients_say_nothing_of_a_median_on_a_line():
    bounds, x = kng.Bounds(x=(-1.0, 1.0), intercept=False), np.linspace(-1.0, 1.0, 9)[:, None]
    line = kng.KNG(LOSSES["median"], bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    for sampler in (kng.chains.NUTS(), kng.chains.HMC()):
        with pytest.raises(ValueError, match="gradients, and those of this piecewise-constant density are zero"):
            kng.sample(line, line.prepare(x), key=kng.research_key(0), sampler=sampler)
    # In the plane the direction of the gradient turns, and the exponential mechanism's density has slopes.
    plane = line.prepare(np.column_stack([x, x**2]))
    assert not line.target(plane).is_piecewise_constant
    slopes = kng.ExponentialMechanism(LOSSES["median"], bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    assert not slopes.target(slopes.prepare(x)).is_piecewise_constant


@pytest.mark.slow
def test_a_release_of_a_median_and_its_certificate():
    mechanism = kng.KNG(LOSSES["median"], BOUNDS, kng.L2Ball(4.0), 1.0, "add_remove")
    x = np.random.default_rng(3).uniform([-1.0, 0.5], [2.0, 3.0], (200, 2))
    release = kng.release(mechanism, x, sampler=kng.chains.EnsembleWalk(num_sweeps=50), progress=False)
    assert release.value.shape == (2,)
    assert np.linalg.norm(release.value) <= 4.0
    assert kng.Release.from_json(release.to_json()) == release
    text = release.certificate.explain()
    assert text.startswith("Mechanism: KNG with GeometricMedianLoss on L2Ball.\n")
    assert mechanism.sensitivity_for(2).derivation in text
    assert "Not proved: that this value, which a Markov chain approximates" in text


@pytest.mark.default_cases("add_remove")
@both_adjacencies
def test_the_certificate_of_a_mean(adjacency):
    mechanism = kng.KNG(LOSSES["mean"], BOUNDS, kng.L2Ball(4.0), 1.0, adjacency)
    certificate = Certificate.of(DirectDraw(mechanism, *default_sampler(mechanism, 2)), Schema(2))
    text = certificate.explain()
    assert certificate.exact
    assert text.startswith("Mechanism: KNG with SquaredDistanceLoss on L2Ball.\nProved: this value is one draw")
    assert mechanism.sensitivity_for(2).derivation in text
    assert "Not proved" not in text
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate
