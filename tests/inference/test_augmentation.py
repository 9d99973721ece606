"""Posteriors by latent records: against sums over all data sets, dense grids for the normaliser, and e^{-ε}."""

import functools
import json

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import scipy.stats
from numpyro import distributions as dist

import kngjax as kng
from kngjax.inference.augmentation import draw_chains
from kngjax.inference.augmented_chains import AugmentedChains
from kngjax.inference.latent_records import LatentRecords, RecordDensity, transport
from kngjax.inference.released_gradients import ReleasedGradient
from kngjax.releases.certificate import describe

COUNT, EPSILON, BOX = 60, 0.5, kng.Box(-4.0, 4.0)
COLUMN = kng.Bounds(x=(0.0, 1.0), columns=1, intercept=False)
LINE = kng.Bounds(x=(-1.0, 1.0), columns=1)
K = 0.5


@functools.cache
def template():
    return json.loads(kng.release(kng.KNormMechanism(COLUMN, 1.0, "replace"), np.full((COUNT, 1), 0.3)).to_json())


def as_release(mechanism, value, num_records=COUNT):
    fields = {"certificate": template()["certificate"] | {"mechanism": describe(mechanism), "num_records": num_records}}
    return kng.Release.from_json(json.dumps(fields | {"value": value}))


def density_of(mechanism, value, rows=None):
    return RecordDensity(ReleasedGradient.of(as_release(mechanism, value)), rows)


MECHANISMS = {
    "mean": lambda: kng.KNormMechanism(COLUMN, EPSILON, "replace"),
    "objective": lambda: kng.ObjectivePerturbation(kng.LogisticLoss(), kng.Bounds(), None, EPSILON, "replace"),
    "KNG": lambda: kng.KNG(kng.LogisticLoss(), kng.Bounds(), BOX, EPSILON, "replace"),
}
VALUES = {"mean": 0.42, "objective": -0.4, "KNG": -0.4}


def log_densities(kind, value):
    """log p(θ̃ | k ones among n) + const for each k, by formulas of one line and quadrature."""
    ones, chance = np.arange(COUNT + 1), 1.0 / (1.0 + np.exp(-value))
    if kind == "mean":
        return -EPSILON * np.abs(COUNT * value - ones)
    if kind == "objective":
        # Scores lie in [-1, 1] and ρ'' in [0, 1/4]; .99 of ε is left, half of it for noise.
        ridge = 0.25 / np.expm1(0.495 * EPSILON)
        noise = -0.495 * EPSILON / 2.0 * np.abs(COUNT * chance - ones + ridge * value)
        return noise + np.log(COUNT * chance * (1.0 - chance) + ridge)
    grid = np.linspace(-4.0, 4.0, 40_001)
    sizes = np.abs(COUNT / (1.0 + np.exp(-grid)) - ones[:, None])
    mass = np.trapezoid(np.exp(-EPSILON / 4.0 * sizes), grid, axis=1)
    return -EPSILON / 4.0 * np.abs(COUNT * chance - ones) - np.log(mass)


@pytest.mark.default_cases("mean")
@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_density_is_that_of_formulas_and_quadrature(kind):
    ones = np.arange(COUNT + 1)
    with jax.enable_x64(True):
        density = density_of(MECHANISMS[kind](), [VALUES[kind]], None if kind == "mean" else np.ones((3, 1)))
        values = (np.arange(COUNT) < ones[:, None]) * 1.0
        values = values[:, :, None] if kind == "mean" else values
        at = jax.jit(
            jax.vmap(lambda y: density(jnp.asarray(density.part.value), LatentRecords(jnp.zeros(COUNT, int), y)))
        )
        found = np.asarray(at(values))
    gaps = found - log_densities(kind, VALUES[kind])
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8 if kind != "KNG" else 2e-4)


def dense_normaliser(x, y, rate, half):
    """log ∫ exp(-c‖∇ℓ‖) dθ of pseudo-Huber regression over a box, on a fine grid."""
    steps = np.linspace(-half, half, 401)
    first, second = (part.ravel() for part in np.meshgrid(steps, steps))
    residuals = y - first[:, None] - second[:, None] * x
    scores = -residuals / np.sqrt(1.0 + (residuals / K) ** 2)
    return np.log(np.sum(np.exp(-rate * np.maximum(np.abs(scores.sum(1)), np.abs(scores @ x)))))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "error"), [(3.0, 0.01), (1.0, 0.025)])
def test_the_normaliser_of_two_coefficients_is_that_of_a_dense_grid(epsilon, error):
    """Of tables with other scales and slopes; at ε = 1 a part of the mass is far from all records."""
    mechanism = kng.KNG(kng.PseudoHuberLoss(K), LINE, kng.Box(-4.0, 4.0), epsilon, "replace")
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (4, COUNT))
    scales, slopes = np.array([[0.2], [0.5], [0.5], [1.5]]), np.array([[0.5], [-0.2], [1.0], [0.0]])
    y = 0.5 + slopes * x + scales * random.standard_normal(x.shape)
    expected = np.array([dense_normaliser(*one, 0.5 * epsilon, 4.0) for one in zip(x, y, strict=True)])
    with jax.enable_x64(True):
        part = ReleasedGradient.of(as_release(mechanism, [0.6, 0.1]))
        # Scores lie in [-k, k]: a record's exchange moves the gradient by at most 2k = 1 in either coordinate.
        assert part.noise.rate * float(part.noise.norm(jnp.ones(2))) == pytest.approx(0.5 * epsilon)

        def log_normaliser(x, y):
            rows = jnp.column_stack([jnp.ones(COUNT), x])
            return RecordDensity(part, rows).log_normaliser(
                jnp.asarray(part.value), LatentRecords(jnp.arange(COUNT), y)
            )

        found = np.asarray(jax.jit(jax.vmap(log_normaliser))(x, y))
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=error)


@pytest.mark.slow
def test_values_move_from_law_to_law_by_a_change_of_variables():
    values = jnp.linspace(-1.0, 2.0, 5)
    old, new = dist.StudentT(3.0, 0.2, 0.7), dist.StudentT(6.0, 1.0, 2.0)
    moved, log_ratio = transport(None, old, new, values)
    np.testing.assert_allclose(moved, 1.0 + 2.0 * (values - 0.2) / 0.7, rtol=1e-6)
    expected = jnp.sum(new.log_prob(moved) - old.log_prob(values)) + 5 * np.log(2.0 / 0.7)
    np.testing.assert_allclose(log_ratio, expected, rtol=1e-5)
    normal = transport(None, dist.Normal(0.2, 0.7), dist.Normal(1.0, 2.0), values)
    np.testing.assert_allclose(normal[1], 0.0)
    # Of the same law ones stay ones; of a larger chance none falls to 0.
    ones = jnp.asarray(np.random.default_rng(0).integers(0, 2, 1000), float)
    same, _ = transport(jax.random.key(0), dist.BernoulliProbs(0.4), dist.BernoulliProbs(0.4), ones)
    np.testing.assert_array_equal(same, ones)
    more, _ = transport(jax.random.key(0), dist.BernoulliProbs(0.4), dist.BernoulliProbs(0.7), ones)
    assert np.all(more >= ones)
    np.testing.assert_allclose(np.mean(more[ones == 0.0]), 0.5, atol=0.1)
    assert transport(None, dist.Poisson(1.0), None, ones) is None


def chance(kind):
    def model():
        chance = numpyro.sample("chance", dist.Beta(2.0, 3.0))
        if kind == "mean":
            return dist.BernoulliProbs(chance * jnp.ones(1))
        return lambda x: dist.BernoulliProbs(chance * jnp.ones(len(x)))

    return model


@pytest.mark.slow
@pytest.mark.runs_long
@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_posterior_of_a_chance_is_that_of_a_sum_over_all_tables(kind):
    release = as_release(MECHANISMS[kind](), [VALUES[kind]])
    found = kng.inference.augmented_posterior(release, chance(kind), num_warmup=500, num_samples=1500)
    draws = found.posterior["chance"].values
    grid = (np.arange(2000) + 0.5) / 2000
    likelihood = scipy.stats.binom.pmf(np.arange(COUNT + 1), COUNT, grid[:, None]) @ np.exp(
        log_densities(kind, VALUES[kind])
    )
    weights = likelihood * scipy.stats.beta.pdf(grid, 2.0, 3.0)
    weights /= weights.sum()
    mean = np.sum(weights * grid)
    deviation = np.sqrt(np.sum(weights * (grid - mean) ** 2))
    assert float(az.rhat(found.posterior)["chance"]) < 1.01
    assert float(az.ess(found.posterior)["chance"]) > 500.0
    assert abs(draws.mean() - mean) < 4.0 * float(az.mcse(found.posterior)["chance"])
    np.testing.assert_allclose(draws.std(), deviation, rtol=0.06)
    # Of a law whose normaliser depends on no record no proposal has less than e^{-ε}.
    if kind != "KNG":
        assert float(found.sample_stats["least_acceptance"].min()) >= np.exp(-EPSILON) - 1e-9
    assert float(found.sample_stats["record_acceptance"].mean()) > np.exp(-EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["Poisson", "StudentT", "Laplace", "Normal"])
def test_records_of_every_model_are_drawn(law):
    bounds = kng.Bounds(x=(0.0, 1.0), columns=1, y=(0.0, 20.0))
    made = kng.ObjectivePerturbation(kng.PseudoHuberLoss(1.0), bounds, kng.Box(-30.0, 30.0), 3.0, "replace")

    def model():
        level = numpyro.sample("level", dist.Normal(1.0, 1.0))
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 0.3))
        if law == "Poisson":
            return lambda x: dist.Poisson(jnp.exp(level + 0.1 * scale * x[:, 1]))
        shape = (4.0,) if law == "StudentT" else ()
        return lambda x: getattr(dist, law)(*shape, level + 2.0 * x[:, 1], scale)

    found = kng.inference.augmented_posterior(
        as_release(made, [2.0, 1.0]), model, design=[[0.0], [0.5], [1.0]], num_warmup=100, num_samples=40, num_chains=2
    )
    assert found.posterior["level"].shape == (2, 40)
    assert np.all(np.isfinite(found.posterior["level"]))
    assert np.ptp(found.posterior["level"].values) > 0.0
    assert float(found.sample_stats["least_acceptance"].min()) >= np.exp(-3.0) - 1e-9


REFUSED = {
    "up to 1000": lambda: as_release(MECHANISMS["mean"](), [0.4], 2000),
    "up to 3 numbers": lambda: as_release(
        kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), columns=4, intercept=False), 1.0, "replace"), [0.4] * 4
    ),
    "this is HuberLoss with 1": lambda: as_release(
        kng.KNG(kng.HuberLoss(0.5), kng.Bounds(), BOX, 1.0, "replace"), [0.4]
    ),
    "depends on the records and must not be left out": lambda: as_release(
        kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(x=(0.0, 1.0), columns=2), BOX, 1.0, "replace"), [0.4] * 3
    ),
    "normaliser over its domain": lambda: as_release(
        kng.KNG(kng.SquaredDistanceLoss(), COLUMN, kng.Box(0.0, 1.0), 1.0, "replace"), [0.4]
    ),
    "the scores of QuantileLoss are steps": lambda: as_release(
        kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(), BOX, 1.0, "replace"), [0.4]
    ),
    "lies on the boundary": lambda: as_release(MECHANISMS["KNG"](), [4.0]),
    "what PrivateIRLS releases": lambda: as_release(
        kng.PrivateIRLS(kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=1), 1.0, 1e-6, "replace"), [0.4, 0.1]
    ),
    "there were 60 records": lambda: as_release(MECHANISMS["mean"](), [0.4]),
}


@pytest.mark.default_cases("up to 1000", "normaliser over its domain", "there were 60 records")
@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_served_is_refused_with_the_reason(words):
    with pytest.raises(ValueError, match=words):
        kng.inference.augmented_posterior(REFUSED[words](), chance("mean"), num_records=61 if "60" in words else None)


def test_what_is_no_release_or_has_no_chain_is_refused():
    mean = as_release(MECHANISMS["mean"](), [0.4])
    with pytest.raises(TypeError, match="must be a Release"):
        kng.inference.augmented_posterior(mean.to_json(), chance("mean"))
    with pytest.raises(ValueError, match="num_chains must be at least 1"):
        kng.inference.augmented_posterior(mean, chance("mean"), num_chains=0)


@pytest.mark.slow
def test_what_is_asked_wrongly_is_refused():
    mean, line = (
        as_release(MECHANISMS["mean"](), [0.4]),
        as_release(kng.KNG(kng.PseudoHuberLoss(0.5), LINE, BOX, 1.0, "replace"), [0.4, 0.1]),
    )
    with pytest.raises(ValueError, match="needs a design"):
        kng.inference.augmented_posterior(line, chance("KNG"))
    with pytest.raises(TypeError, match="must return a function of rows"):
        kng.inference.augmented_posterior(line, chance("mean"), design=[[0.5]])
    with pytest.raises(TypeError, match="must be a NumPyro distribution"):
        kng.inference.augmented_posterior(mean, chance("KNG"))
    with pytest.raises(ValueError, match="must draw the parameters"):
        kng.inference.augmented_posterior(mean, lambda: dist.Normal(np.zeros(1), 1.0))

    def wide():
        return dist.Normal(numpyro.sample("mean", dist.Normal(0.0, 1.0)) * jnp.ones(2), 1.0)

    with pytest.raises(ValueError, match="batch shape"):
        kng.inference.augmented_posterior(mean, wide)
    with pytest.raises(ValueError, match=r"kngjax\.inference\.augmented_posterior"):
        kng.observe(as_release(MECHANISMS["mean"](), [0.4], 60), record=dist.Normal(np.zeros(1), 1.0))


CALIBRATED = {
    "KNG": lambda: kng.KNG(kng.PseudoHuberLoss(K), LINE, kng.Box(-10.0, 10.0), 1.0, "replace"),
    "objective": lambda: kng.ObjectivePerturbation(kng.LogisticLoss(), LINE, None, 1.0, "replace"),
}


@pytest.mark.slow
@pytest.mark.runs_long
@pytest.mark.parametrize("kind", CALIBRATED)
def test_posteriors_of_two_coefficients_are_calibrated(kind):
    """Parameters from a prior, records, a release: the rank of the truth among draws is uniform."""
    sets, number, is_robust = 30, 40, kind == "KNG"
    # So many that no two data sets have the same.
    truths = 2**16
    mechanism = CALIBRATED[kind]()
    priors = np.random.default_rng(4)
    truth = np.column_stack([priors.standard_normal((truths, 2)), 0.5 * np.exp(0.6 * priors.standard_normal(truths))])

    def law(x, beta, sigma):
        return dist.Normal(x @ beta, sigma) if is_robust else dist.BernoulliLogits(x @ beta)

    def records(key, number):
        first, second, third = jax.random.split(key, 3)
        place = jax.random.randint(first, (), 0, truths)
        x = jax.random.uniform(second, (number, 1), minval=-1.0)
        drawn = jnp.asarray(truth)[place]
        y = law(jnp.concatenate([jnp.ones_like(x), x], 1), drawn[:2], drawn[2]).sample(third)
        return x, jnp.asarray(y, x.dtype), jnp.array([place.astype(float), 0.0])

    def model():
        beta = numpyro.sample("beta", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        sigma = numpyro.sample("sigma", dist.LogNormal(jnp.log(0.5), 0.6)) if is_robust else 1.0
        return lambda x: law(x, beta, sigma)

    sampler = kng.chains.Exact() if is_robust else None
    made = kng.simulate(records, mechanism, sets, kng.research_key(0), num_records=number, sampler=sampler)
    places = made.truth[0, :, 0].astype(int)
    part = ReleasedGradient.of(as_release(mechanism, [0.0, 0.0], number))
    rows = np.column_stack([np.ones(48), (np.arange(48) + 0.5) / 24.0 - 1.0])
    chains = AugmentedChains(model, RecordDensity(part, rows), number)
    keys = jax.random.split(jax.random.key(3), sets)
    found, _ = jax.vmap(lambda value, key: draw_chains(chains, value, key, 1, 60, 600))(made.theta[0, 0], keys)
    names = ["beta", "sigma"] if is_robust else ["beta"]
    draws = np.concatenate([np.asarray(found[name]).reshape(sets, 600, -1) for name in names], axis=2)
    ranks = np.mean(draws < truth[places][:, None, : draws.shape[2]], axis=1)
    for of_parameter in ranks.T:
        assert scipy.stats.kstest(of_parameter, "uniform").pvalue > 1e-3
    covered = np.mean((ranks > 0.025) & (ranks < 0.975), axis=0)
    np.testing.assert_array_less(np.abs(covered - 0.95), 3.0 * np.sqrt(0.95 * 0.05 / sets) + 1e-9)
