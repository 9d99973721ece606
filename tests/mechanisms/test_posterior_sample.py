"""One posterior sample: its law, its worst-case guarantee against brute force, calibration, and what it refuses."""

import equinox as eqx
import jax
import numpy as np
import numpyro.infer.util
import pytest
from scipy import stats

import kngjax as kng
from kngjax.mechanisms import posterior_sample
from kngjax.mechanisms.noise import gaussian_profiles
from tests.oracles import exact_hockey_stick as oracle
from tests.oracles.exact_hockey_stick import exact
from tests.oracles.gaussian_laws import hockey_stick
from tests.oracles.goodness_of_fit import assert_same_law, assert_two_samples_agree
from tests.oracles.perturbed_ridge import ridge

LINE = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)
PLANE = kng.Bounds(x=([-1.0], [1.0]), y=(-2.0, 2.0))


def problem():
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, (40, 1))
    y = 0.5 + x[:, 0] + 0.3 * generator.normal(size=40)
    design = np.column_stack([np.ones(40), x])
    return x, y, *ridge(design, np.clip(y, -2.0, 2.0), 4.0)


def sample(**changes):
    settings = {"bounds": PLANE, "regularization": 4.0, "gamma": 2.0, "adjacency": "add_remove", "max_records": 100}
    return kng.PosteriorSample(**{**settings, **changes})


def test_draws_follow_the_gaussian():
    x, y, mean, precision = problem()
    mechanism = sample()
    draws = kng.sample(mechanism, mechanism.prepare(x, y), key=kng.research_key(0), num_draws=4000, num_chains=1)
    whitened = (draws.theta[0] - mean) @ np.linalg.cholesky(2.0 * precision)
    for coordinate in (*whitened.T, (whitened[:, 0] + whitened[:, 1]) / np.sqrt(2.0)):
        assert_same_law(coordinate, stats.norm.cdf)
    with pytest.raises(AssertionError):
        assert_same_law(whitened[:, 0] / np.sqrt(2.0), stats.norm.cdf)


def test_the_density_is_normalised():
    x, y, mean, precision = problem()
    mechanism, theta = sample(), np.array([0.2, 0.9])
    expected = stats.multivariate_normal(mean, np.linalg.inv(2.0 * precision)).logpdf(theta)
    found = jax.jit(lambda mechanism, data: mechanism.log_density(theta, data))(mechanism, mechanism.prepare(x, y))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_models_prior_can_be_drawn_from_and_its_density_is_the_posterior():
    """The prior is proper, N(0, 1/(γλ)), and with the likelihood's factor differences of log densities are equal."""
    x, y, *_ = problem()
    mechanism = sample()
    data = mechanism.prepare(x, y)
    model = mechanism.numpyro_model(data)
    prior = numpyro.infer.Predictive(model, num_samples=2000)(jax.random.key(0))["theta"]
    precision = float(mechanism.gamma) * float(mechanism.regularization)
    assert_same_law(np.ravel(prior) * precision**0.5, stats.norm.cdf)
    points = [np.array([0.2, 0.9]), np.array([-0.3, 0.1])]
    joint = [numpyro.infer.util.log_density(model, (), {}, {"theta": point})[0] for point in points]
    own = [mechanism.log_density(point, data) for point in points]
    np.testing.assert_allclose(joint[0] - joint[1], own[0] - own[1], rtol=1e-5)


@pytest.mark.slow
def test_nuts_draws_the_same_law():
    x, y, *_ = problem()
    mechanism = sample()
    data = mechanism.prepare(x, y)
    kernel = numpyro.infer.NUTS(mechanism.numpyro_model(data))
    chain = numpyro.infer.MCMC(kernel, num_warmup=300, num_samples=4000, thinning=4, progress_bar=False)
    chain.run(jax.random.key(4))
    nuts = np.asarray(chain.get_samples()["theta"])
    exact = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=4000, num_chains=1).theta[0]
    for coordinate in range(2):
        assert_two_samples_agree(nuts[:, coordinate], exact[:, coordinate])


def law(x, y, regularization, gamma):
    theta, precision = ridge(x, y, regularization)
    return float(theta[0]), float((gamma * precision[0, 0]) ** -0.5)


def neighbours(generator, most, adjacency):
    """Pairs on the line: all others equal or at random, the record at a corner or anywhere."""
    count = int(generator.integers(1, most))
    corner = generator.choice([-1.0, 1.0], 4)
    x = np.full((count, 1), corner[0] * generator.uniform(0.0, 1.0) ** 2)
    y = np.full(count, corner[1])
    if generator.random() < 0.3:
        x, y = generator.uniform(-1.0, 1.0, (count, 1)), generator.choice([-1.0, 1.0], count)
    with_one, with_other = (
        (np.append(x, [[first]], axis=0), np.append(y, second)) for first, second in (corner[:2] * [1, -1], corner[2:])
    )
    return (with_one, (x, y)) if adjacency == "add_remove" else (with_one, with_other)


@pytest.mark.default_cases("20.0-1.0-add_remove")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize(("regularization", "gamma"), [(2.0, 0.1), (20.0, 1.0), (0.5, 0.02)])
def test_no_neighbours_betray_more_than_is_said(adjacency, regularization, gamma):
    mechanism = kng.PosteriorSample(LINE, regularization, gamma, adjacency, max_records=12)
    generator, ratios = np.random.default_rng(5), []
    claims = {epsilon: mechanism.delta_at(epsilon) for epsilon in (0.1, 0.6)}
    removal = kng.PosteriorSample(LINE, regularization, gamma, "add_remove", max_records=12)
    alone, unreduced = {epsilon: removal.delta_at(epsilon) for epsilon in claims}, []
    for _ in range(150):
        first, second = (law(*data, regularization, gamma) for data in neighbours(generator, 12, adjacency))
        for epsilon, claim in claims.items():
            worst = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
            ratios.append(worst / claim)
            unreduced.append(worst / alone[epsilon])
    assert max(ratios) <= 1.0 + 1e-6
    # A removal and an addition together are no tight bound of an exchange, but it betrays more than either.
    if adjacency == "add_remove" or regularization == 20.0:
        assert max(unreduced) > (0.95 if adjacency == "add_remove" else 1.5)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_calibration_goes_both_ways(adjacency):
    mechanism = kng.PosteriorSample.calibrated(PLANE, 200.0, 1.0, 1e-5, adjacency, 1000)
    np.testing.assert_allclose(mechanism.delta_at(1.0), 1e-5, rtol=1e-5)
    assert mechanism.delta_at(1.0) <= 1e-5 * (1.0 + 1e-9)
    np.testing.assert_allclose(mechanism.epsilon_at(1e-5), 1.0, rtol=1e-6)
    assert mechanism.guarantee.delta == 1e-5
    bolder = eqx.tree_at(lambda part: part.gamma, mechanism, 4.0 * mechanism.gamma)
    assert bolder.delta_at(1.0) > 100.0 * 1e-5


@pytest.mark.slow
def test_epsilon_grows_with_gamma_and_the_number_of_records_and_falls_with_the_ridge():
    epsilon = float(sample().epsilon)
    assert float(sample(gamma=4.0).epsilon) > epsilon
    assert float(sample(max_records=200).epsilon) > epsilon
    assert float(sample(regularization=8.0).epsilon) < epsilon
    assert float(sample(delta=1e-9).epsilon) > epsilon


def test_a_release_says_what_was_proved():
    x, y, *_ = problem()
    weaker = {"regularization": 40.0, "gamma": 0.5}
    release = kng.release(sample(bounds=kng.Bounds(x=(-1.0, 1.0), y=(-2.0, 2.0), columns=1), **weaker), x, y)
    assert release.value.shape == (2,)
    assert kng.Release.from_json(release.to_json()) == release
    np.testing.assert_allclose(release.certificate.epsilon, float(sample(**weaker).epsilon), rtol=1e-9)
    assert (release.certificate.assurance, release.certificate.delta) == ("proved", 1e-6)
    assert "leverage" in release.certificate.explain()


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"regularization": 0.0}, "regularization must be positive"),
        ({"gamma": -1.0}, "gamma must be positive"),
        ({"gamma": None}, "gamma is missing"),
        ({"max_records": None}, "max_records is missing"),
        ({"delta": 0.0}, "delta must be positive"),
        ({"delta": 1.0}, "strictly between 0 and 1"),
        ({"bounds": kng.Bounds(x=([-1.0], [1.0]))}, "public bounds of the response"),
        ({"adjacency": None}, "adjacency must be named"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_refused(changes, advice):
    with pytest.raises(ValueError, match=advice):
        sample(**changes)


def test_more_records_than_promised_are_refused():
    with pytest.raises(ValueError, match="public promise"):
        sample(max_records=10).prepare(np.zeros((11, 1)), np.zeros(11))


def test_open_dimensions_want_to_be_told():
    mechanism = sample(bounds=kng.Bounds(x=(-1.0, 1.0), y=(-2.0, 2.0)))
    with pytest.raises(ValueError, match="pass dimension"):
        mechanism.epsilon_at(1e-6)
    known = sample(bounds=kng.Bounds(x=([-1.0], [1.0]), y=(-2.0, 2.0)))
    assert mechanism.delta_at(1.0, dimension=3) > known.delta_at(1.0)


@pytest.mark.parametrize("search", ["none found", pytest.param("whole", marks=pytest.mark.slow)])
def test_a_ridge_that_is_too_small_has_no_gamma(search, monkeypatch):
    if search == "none found":
        monkeypatch.setattr(posterior_sample, "largest_gamma", lambda *parts: 0.0)
    with pytest.raises(ValueError, match="larger regularization"):
        kng.PosteriorSample.calibrated(PLANE, 1.0, 0.5, 1e-8, "add_remove", 100)


@pytest.mark.parametrize("count", [0.5, 2.5, 0])
def test_max_records_is_a_whole_number(count):
    with pytest.raises(ValueError, match="max_records must be"):
        sample(max_records=count)


def test_an_epsilon_that_promises_nothing_is_refused():
    mechanism = sample(gamma=1e6)
    with pytest.raises(ValueError, match="promises nothing"):
        kng.release(mechanism, np.zeros((5, 1)), np.zeros(5))
    with pytest.raises(ValueError, match="rescale the columns"):
        _ = sample(bounds=kng.Bounds(x=([-1.0], [1.0]), y=(-1e160, 1e160))).guarantee


def test_an_epsilon_that_promises_nothing_is_allowed_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(posterior_sample, "_stated_epsilon", lambda mechanism, dimension: 100.1)
    with pytest.raises(ValueError, match=r"epsilon is 100\.1, which promises nothing"):
        _ = sample().guarantee
    assert sample(allow_large_epsilon=True).guarantee.epsilon == 100.1


def test_data_of_another_mechanism_with_too_many_records_draw_nothing():
    x, y, *_ = problem()
    data = sample().prepare(x, y)
    with pytest.raises(RuntimeError, match="public promise"):
        kng.sample(sample(max_records=10), data, key=kng.research_key(0), num_draws=1, num_chains=1)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
def test_delta_is_asked_for_at_an_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be one number"):
        sample().delta_at(epsilon)


def of_leverage(mu, epsilon, residual, gamma, first):
    """log δ for a residual in proportion to √(1+μ), which is this one where μ is the first leverage."""

    def mean():
        grown = (1 + exact(mu)) * (1 + exact(first))
        return exact(residual) * (exact(gamma) * exact(mu) / grown).sqrt()

    return oracle.log_delta(epsilon, mean, lambda: 1 / (1 + exact(mu)).sqrt())


def test_a_larger_leverage_with_a_residual_in_proportion_betrays_no_less():
    """The lemma that bounds cells of leverages: δ(a, r) ≤ δ(b, r√((1+b)/(1+a))) for a ≤ b, in ball arithmetic."""
    random = np.random.default_rng(8)
    for _ in range(100):
        a, residual, gamma = 10.0 ** random.uniform([-4, -2, -2], [2, 1, 1])
        b, epsilon = a * 10.0 ** random.uniform(0.0, 1.0), 10.0 ** random.uniform(-2, 1)
        deltas = [of_leverage(mu, epsilon, residual, gamma, a) for mu in (a, b)]
        assert deltas[0][0] <= deltas[1][1]


@pytest.mark.slow
@pytest.mark.parametrize(("regularization", "gamma"), [(2.0, 0.1), (200.0, 5.0)])
def test_the_worst_record_is_bounded_and_nearly_attained(regularization, gamma):
    """Against a fine grid of leverages with the largest residual of each."""
    mechanism = kng.PosteriorSample(LINE, regularization, gamma, "add_remove", max_records=1000)
    leverages = 1.0 / regularization * np.linspace(1e-6, 1.0, 100_001)
    residuals = 1.0 + np.sqrt(999.0 * leverages * (1.0 - regularization * leverages))
    attained = float(np.max(gaussian_profiles.posterior_sample_log_delta(0.5, leverages, residuals, gamma)))
    bound = np.log(mechanism.delta_at(0.5))
    assert attained - 1e-9 <= bound <= attained + 1e-4
