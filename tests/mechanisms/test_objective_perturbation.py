"""Objective perturbation: its density by hand, what it says of itself, and what it refuses."""

import itertools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

import kngjax as kng
from kngjax.losses.base import AbstractResidualLoss
from kngjax.mechanisms import minimisers
from tests.oracles.perturbed_problems import (
    FACTS,
    LAWS,
    SYMMETRIC,
    UNBOUNDED,
    constants,
    law,
    squared,
    squared_log_density,
    table,
)

both_adjacencies = pytest.mark.parametrize("adjacency", ["replace", "add_remove"])


@pytest.mark.slow
@both_adjacencies
@pytest.mark.parametrize("noise_share", [0.5, 0.8])
def test_density_and_masses_are_the_closed_form(adjacency, noise_share):
    x, y = table(1)
    mechanism = squared(kng.Box(-0.6, 0.8), adjacency, 0.7, noise_share=noise_share)
    data = mechanism.prepare(x, y)
    rate, ridge = constants(1, 0.8, adjacency, 0.7, noise_share)
    thetas = np.linspace(-0.59, 0.79, 30)[:, None]
    found = jax.jit(jax.vmap(mechanism.log_density, (0, None)))(thetas, data)
    np.testing.assert_allclose(found, squared_log_density(thetas, x, y, rate, ridge), rtol=1e-12)
    ends = [float(x[:, 0] @ (x[:, 0] * end - y) + ridge * end) for end in (-0.6, 0.8)]
    expected = stats.laplace.logsf(-ends[0], scale=1 / rate), stats.laplace.logcdf(-ends[1], scale=1 / rate)
    np.testing.assert_allclose(mechanism.boundary_log_masses(data), expected, rtol=1e-12)
    assert mechanism.log_density(np.array([0.81]), data) == -np.inf


def test_the_density_with_a_centre_is_the_closed_form():
    (x, y), theta, centre = table(1), np.array([[0.37]]), 1.9
    mechanism = squared(kng.Box(-0.6, 0.8), centre=[centre])
    data, (rate, ridge) = mechanism.prepare(x, y), constants(1, 0.8, "replace", 1.0)
    both = jax.jit(lambda theta: (mechanism.log_density(theta, data), mechanism.boundary_log_masses(data)))
    found, masses = both(theta[0])
    np.testing.assert_allclose(found, squared_log_density(theta, x, y, rate, ridge, centre)[0], rtol=1e-5)
    ends = [float(x[:, 0] @ (x[:, 0] * end - y) + ridge * (end - centre)) for end in (-0.6, 0.8)]
    expected = stats.laplace.logsf(-ends[0], scale=1 / rate), stats.laplace.logcdf(-ends[1], scale=1 / rate)
    np.testing.assert_allclose(masses, expected, rtol=1e-5)


@pytest.mark.slow
@both_adjacencies
def test_it_is_the_law_of_the_full_square_with_its_constants(adjacency):
    """Σ(y - x'θ)² + (γ/2)θ'θ + b'θ with Δ = 4(1+B), λ = 2d in the plain l_inf norm: our J, doubled."""
    x, y = table(3)
    mechanism = squared(kng.L1Ball(0.9), adjacency, 2.0)
    data = mechanism.prepare(x, y)
    change, ridge = (4.0 if adjacency == "replace" else 2.0) * 1.9, 2.0 * 3 / np.expm1(1.0)
    log_density = jax.jit(mechanism.log_density)
    for theta in np.random.default_rng(1).uniform(-0.3, 0.3, (8, 3)):
        b = -(2.0 * x.T @ (x @ theta - y) + ridge * theta)
        log_mass = np.log(6.0) + 3 * np.log(2.0 * change / 1.0)
        expected = -np.max(np.abs(b)) / change - log_mass + np.linalg.slogdet(2.0 * x.T @ x + ridge * np.eye(3))[1]
        np.testing.assert_allclose(log_density(theta, data), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_the_masses_on_the_boundary_are_what_the_density_lacks(name):
    mechanism, data = law(name)
    log_density = jax.jit(mechanism.log_density)
    ends = (-np.inf, np.inf)
    if mechanism.domain is not None:
        ends = tuple(float(end) for end in mechanism.domain.linear_interval(np.ones(1), np.ones(1)))
    if name == "Huber":  # jumps of the second derivative, where quadrature needs to know
        kinks = np.sort(((np.asarray(data.y)[:, None] + [0.3, -0.3]) / np.asarray(data.x)).ravel())
        points = np.concatenate([[ends[0]], kinks[(ends[0] < kinks) & (kinks < ends[1])], [ends[1]]])
    else:
        points = np.array([ends[0], -0.3, 0.0, 0.3, ends[1]])
    inside = sum(
        integrate.quad(lambda theta: float(np.exp(log_density(np.array([theta]), data))), *pair, limit=200)[0]
        for pair in itertools.pairwise(points)
    )
    masses = np.exp(np.asarray(mechanism.boundary_log_masses(data)))
    np.testing.assert_allclose(inside + masses.sum(), 1.0, atol=2e-5)
    assert np.all(masses > 1e-4) if mechanism.domain is not None else masses.shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_rates_and_ridges_by_hand(name):
    (loss, bounds, domain), (change, curvature) = LAWS[name], FACTS[name]
    for adjacency, larger in (("replace", 1.0), ("add_remove", 2.0)):
        mechanism = kng.ObjectivePerturbation(loss, bounds, domain, 2.0, adjacency)
        spent = 2.0 if name == "squared" else 1.98
        rate = mechanism.noise_rate(1) / mechanism.score_norm(1).weights[0]
        np.testing.assert_allclose(rate, 0.5 * spent * larger / change, rtol=1e-12)
        np.testing.assert_allclose(mechanism.ridge(1), curvature / np.expm1(0.5 * spent), rtol=1e-12)


PARTS = {"bounds": UNBOUNDED, "domain": None, "epsilon": 1.0, "adjacency": "replace"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": kng.QuantileLoss(0.5)}, r"Hessian of zero almost everywhere.*SmoothedQuantileLoss.*or KNG"),
        ({"loss": kng.SquaredDistanceLoss()}, "for a mean take KNG, or under replace KNormMechanism"),
        ({"loss": kng.GeometricMedianLoss()}, "not of rank one.* Take KNG"),
        ({"loss": kng.SquaredLoss()}, "needs public bounds of the response"),
        ({"loss": kng.SquaredLoss(), "bounds": SYMMETRIC}, "would not be differentially private. Give L1Ball"),
        ({"loss": kng.SquaredLoss(), "bounds": SYMMETRIC, "norm": kng.L2()}, "would not be differentially private"),
        (
            {"loss": kng.PoissonLoss(), "bounds": kng.Bounds(x=(-1.0, 1.0), y=(0.0, 9.0))},
            "without a domain PoissonLoss",
        ),
        ({"domain": kng.BaseMeasure(dist.Normal(0.0, 1.0))}, "BaseMeasure is a base measure for densities"),
        ({"noise_share": 0.0}, "noise_share must be one number strictly between 0 and 1"),
        ({"noise_share": 1.0}, "noise_share must be one number"),
        ({"output_share": np.nan}, "output_share must be one number"),
        ({"output_share": [0.1, 0.2]}, "output_share must be one number"),
        ({"centre": 6.5}, r"centre must have one public number a coefficient.*like \[6.5, 0.0, 0.0\]; got 6.5"),
        ({"centre": ["a"]}, "centre must have one public number a coefficient"),
        ({"centre": [[1.0]]}, "centre must have one public number a coefficient"),
        ({"centre": [np.nan]}, "centre must be finite"),
        ({"centre": [1e300]}, "the centre must be 0 or between"),
        ({"centre": [1.0], "domain": kng.Box(np.zeros(3), 1.0)}, "centre has 1 numbers, and there are 3 coefficients"),
        ({"tolerance": 0.0}, "tolerance must be one positive and finite number"),
        ({"tolerance": np.inf}, "tolerance must be one positive"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"adjacency": None}, "adjacency must be named"),
        ({"bounds": None}, "bounds are missing"),
        ({"loss": None}, "loss is missing"),
        ({"domain": kng.Box(np.zeros(3), 1.0), "bounds": kng.Bounds(x=(np.zeros(4), np.ones(4)))}, "disagree about"),
    ],
)
def test_what_no_proof_would_hold_for_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        kng.ObjectivePerturbation(**{"loss": kng.LogisticLoss(), **PARTS, **change})


def test_a_centre_tells_the_number_of_coefficients_and_where_values_lie():
    made = kng.ObjectivePerturbation(kng.LogisticLoss(), UNBOUNDED, None, 1.0, "replace", centre=[40.0, 0.0])
    assert made.dimension == 2
    assert made.noise.typical_values(2)[0].tolist() == [40.0, 0.0]
    within = kng.ObjectivePerturbation(
        kng.LogisticLoss(), UNBOUNDED, kng.Box(-1.0, 3.0), 1.0, "replace", centre=[40.0, 0.0]
    )
    assert within.noise.typical_values(2)[0].tolist() == [1.0, 1.0]
    assert made.sensitivity == kng.ObjectivePerturbation(
        kng.LogisticLoss(), UNBOUNDED, None, 1.0, "replace"
    ).sensitivity_for(2)


@pytest.mark.parametrize("option", ["tolerance", "output_share"])
def test_an_exact_minimiser_has_no_tolerance(option):
    with pytest.raises(ValueError, match="SquaredLoss is minimised exactly"):
        squared(kng.L1Ball(1.0), **{option: 0.1})


def test_constants_and_guarantee_by_hand():
    mechanism = kng.ObjectivePerturbation(
        kng.LogisticLoss(),
        kng.Bounds(x=(-1.0, 3.0)),
        kng.Box(-1.0, 1.0),
        2.0,
        "add_remove",
        kng.LInf(),
        noise_share=0.6,
    )
    guarantee = mechanism.guarantee
    assert (guarantee.epsilon, guarantee.rho, guarantee.delta, str(guarantee.kind)) == (2.0, 2.0, 0.0, "pure")
    # Score in [-1, 1], |x| ≤ 3: Δ = 3. |x|² ≤ 1 + 9 with the intercept: λ = 2.5.
    np.testing.assert_allclose(mechanism.noise_rate(2), 0.6 * 1.98 / 3.0, rtol=1e-12)
    np.testing.assert_allclose(mechanism.ridge(2), 2.5 / np.expm1(0.4 * 1.98), rtol=1e-12)
    sensitivity = mechanism.sensitivity_for(2)
    assert sensitivity.value == 3.0
    for fact in (
        "at most lambda = 2.5",
        "c in [0, 0.25]",
        "|x|^2 at most 10",
        f"gamma = {mechanism.ridge(2):.6g}",
        "0.02",
    ):
        assert fact in sensitivity.derivation
    assert "tolerance" not in squared(kng.L1Ball(1.0)).sensitivity_for(3).derivation


def test_features_on_a_polytope_make_lambda_smaller():
    triangle = kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    ridges = [
        float(kng.ObjectivePerturbation(kng.LogisticLoss(), bounds, None, 1.0, "replace").ridge(3))
        for bounds in (kng.Bounds(x=(np.zeros(2), np.ones(2))), kng.Bounds(hull=triangle))
    ]
    np.testing.assert_allclose(ridges[1] / ridges[0], 2.0 / 3.0, rtol=1e-8)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("name", ["squared", "Poisson"])
def test_a_release_and_its_certificate(name, x64):
    loss, bounds, domain = LAWS[name]
    mechanism = kng.ObjectivePerturbation(loss, bounds.for_dimension(1), domain, 2.0, "replace")
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (25, 1))
    with jax.enable_x64(x64):
        release = kng.release(mechanism, x, np.arange(25) % 3)
    assert (release.value.dtype, release.value.shape) == (np.float64, (1,))
    if mechanism.domain is not None:
        # On the boundary within rounding, as often as not.
        np.testing.assert_allclose(mechanism.domain.project(release.value), release.value, rtol=1e-14)
    certificate = release.certificate
    assert (certificate.exact, certificate.assurance, certificate.epsilon) == (True, "proved", 2.0)
    assert (certificate.delta, certificate.rounding) == (0.0, None)
    assert certificate.sensitivity == mechanism.sensitivity_for(1)
    assert certificate.guarantee == mechanism.guarantee
    text = certificate.explain()
    assert ("by the exact sums of the records" in text) == (name == "squared")
    assert "where the search stopped" not in text
    assert ("a minimiser that is computed without error needs none" in text) == (name != "squared")
    assert kng.Release.from_json(release.to_json()) == release
    with pytest.raises(ValueError, match="draws from its own law directly"):
        kng.release(mechanism, x, np.arange(25) % 3, sampler=kng.chains.Exact())


def unverified(columns):
    """Of a hull the sensitivity is not known in fractions, and float64 searches."""
    hull = kng.geometry.FeatureHull(*([[-1.0], [1.0]] for _ in range(columns)))
    return kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.3), kng.Bounds(hull=hull), None, 1.0, "replace")


@pytest.mark.slow
def test_a_release_whose_search_misses_its_tolerance_fails(monkeypatch):
    monkeypatch.setattr(minimisers, "MAX_NEWTON_STEPS", 1)
    x, y = table(5, n=42)  # a shape of its own, as below
    with pytest.raises(kng.ReleaseFailed):
        kng.release(unverified(5), x, y)


def test_a_search_that_misses_its_tolerance_draws_nothing(monkeypatch):
    monkeypatch.setattr(minimisers, "MAX_NEWTON_STEPS", 1)
    x, y = table(5, n=41)  # a shape of its own, for which no program is compiled yet
    mechanism = unverified(5)
    with pytest.raises(RuntimeError, match="did not reach its tolerance: give ObjectivePerturbation a larger"):
        kng.sample(mechanism, mechanism.prepare(x, y), key=kng.research_key(0), num_draws=1, num_chains=1)


@pytest.mark.slow
def test_one_program_serves_data_mechanisms_and_epsilons():
    x, y = table(2)
    mechanisms = [squared(kng.L1Ball(radius), epsilon=epsilon) for radius, epsilon in ((0.5, 1.0), (0.9, 4.0))]
    datas = [mechanism.prepare(x, scale * y) for mechanism, scale in zip(mechanisms, (1.0, -0.7), strict=True)]
    traces = []

    @jax.jit
    def program(mechanisms, datas, key):
        traces.append(None)
        return jax.vmap(kng.draw, in_axes=(0, 0, None))(mechanisms, datas, key)

    def together(order):
        stacked = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(parts.__getitem__, order)) for parts in both]
        return program(*stacked, kng.research_key(1))

    both = mechanisms, datas
    (first, second), succeeded = together((0, 1))
    (again, other), _ = together((1, 0))
    assert len(traces) == 1
    assert np.all(succeeded)
    np.testing.assert_allclose((first, second), (other, again), rtol=1e-12)
    assert np.all(np.abs(first - second) > 1e-3)


def test_draws_are_for_data_of_the_right_kind_and_dimension():
    mechanism, _ = law("logistic")
    summary = squared(kng.L1Ball(1.0)).prepare(*table(1))
    with pytest.raises(TypeError, match="needs data from its own prepare, not QuadraticSummary"):
        mechanism.draws(summary, kng.research_key(0), 1)
    with pytest.raises(ValueError, match="two points for one coefficient only, not for 2"):
        squared(kng.L1Ball(1.0)).boundary_log_masses(squared(kng.L1Ball(1.0)).prepare(*table(2)))


class AbsoluteLoss(AbstractResidualLoss):
    """|r|, which declares that its score jumps, and wrongly a bound on its curvature and that no value needs y."""

    score_is_piecewise_constant: ClassVar[bool] = True
    value_needs_response_bounds: ClassVar[bool] = False

    def residual_value(self, residual):
        return jnp.abs(residual)

    def residual_slope(self, residual):
        return jnp.sign(residual)

    def residual_minimiser(self):
        return 0.0

    def record_curvature(self, predictor, response):
        return jnp.zeros_like(predictor)

    def curvature_bound(self, predictor):
        return 0.5

    def score_interval(self, predictor, response):
        return -1.0, 1.0


def test_a_loss_that_declares_jumps_is_refused_whatever_else_it_declares():
    loss, domain = AbsoluteLoss(), kng.L1Ball(2.0)
    with pytest.raises(ValueError, match="noise in the objective leaves gaps"):
        kng.ObjectivePerturbation(loss, kng.Bounds(x=(-1, 1), y=(-1, 1), columns=1), domain, 1.0, "replace")
    assert loss.proved_instead(2, True) is None
    with pytest.raises(ValueError, match="the range of AbsoluteLoss needs"):
        kng.ExponentialMechanism(loss, kng.Bounds(x=(-1, 1), columns=1), domain, 1.0, "replace")
