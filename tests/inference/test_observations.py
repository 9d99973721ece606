"""The likelihood of a release without its records: against Monte Carlo over data sets, from JSON, and calibrated."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import scipy.stats
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density

import kngjax as kng
from kngjax.inference.observations import add_likelihood
from kngjax.inference.published import mechanism_of
from kngjax.inference.released_gradients import ReleasedGradient
from kngjax.inference.response_laws import nodes_and_weights
from kngjax.releases.certificate import describe

THRESHOLD, COUNT, BOX, BALL = 0.5, 100, kng.Box(-3.0, 3.0), kng.L1Ball(3.0)
ONES, COLUMN = kng.Bounds(y=(-1.0, 2.0)), kng.Bounds(x={"age": (0.0, 1.0)}, intercept=False)
LEVELS = np.linspace(-8.0, 8.0, 321)


@functools.cache
def released(kind):
    """One release of each mechanism from a hundred records, read from its JSON; its value is whatever was drawn."""
    random = np.random.default_rng(0)
    numbers = 0.3 + 0.5 * random.standard_normal(COUNT)
    made = {
        "robust": lambda: kng.release(
            kng.KNG(kng.PseudoHuberLoss(THRESHOLD), ONES, BOX, 1.0, "replace"), None, np.clip(numbers, -1.0, 2.0)
        ),
        "mean": lambda: kng.release(kng.KNormMechanism(COLUMN, 1.0, "replace"), numbers[:, None]),
        "other mean": lambda: kng.release(kng.KNormMechanism(COLUMN, 2.0, "replace"), numbers[:, None]),
    }
    return kng.Release.from_json(made[kind]().to_json())


def law_of_record(kind, parameters):
    if kind == "robust":
        return lambda x: dist.Normal(parameters[0], parameters[1])
    if kind == "logistic":
        return lambda x: dist.BernoulliLogits(parameters[0])
    return dist.Normal(parameters[:1], parameters[1])


def integrated(kind, releases, several):
    """log p(θ̃ | φ) + const for several φ, the latent score integrated out on a grid."""
    dimension = len(releases)
    grid = LEVELS if dimension == 1 else LEVELS[::8]
    points = np.stack(np.meshgrid(*[grid] * dimension, indexing="ij"), -1).reshape(-1, dimension)

    def at(parameters, score):
        given = {"record": law_of_record(kind, parameters)}
        return log_density(kng.observe, (releases,), given, {"release_score": score})[0]

    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(jax.vmap(at, (None, 0)), (0, None)))(jnp.asarray(several), jnp.asarray(points))
    return np.log(np.mean(np.exp(np.asarray(found)), axis=1))


def density_of(model, **drawn):
    return float(jax.jit(lambda drawn: log_density(model, (), {}, drawn)[0])(drawn))


def mean_over_data_sets(densities):
    """log of the mean over data sets for each φ, and its standard error: shape (φ, data sets)."""
    relative = np.std(densities, axis=1) / np.mean(densities, axis=1) / np.sqrt(densities.shape[1])
    return np.log(np.mean(densities, axis=1)), relative


def robust_gradient(theta, y):
    return np.sum((theta - y) / np.sqrt(1.0 + ((y - theta) / THRESHOLD) ** 2), axis=1)


def oracle_of_robust(value, several, sets=400):
    """E exp(-c|g(θ̃)|)/∫exp(-c|g(θ)|)dθ with one record's gradient in [-k, k]: c = ε/(2·2k)."""
    noise = np.random.default_rng(1).standard_normal((sets, COUNT))
    grid = np.linspace(-1.2, 1.8, 201)  # where all of the mass is
    rate, found = 1.0 / (4.0 * THRESHOLD), []
    for location, scale in several:
        y = np.clip(location + scale * noise, -1.0, 2.0)
        mass = sum(np.exp(-rate * np.abs(robust_gradient(theta, y))) for theta in grid)
        found.append(np.exp(-rate * np.abs(robust_gradient(value, y))) / mass)
    return mean_over_data_sets(np.array(found))


def oracle_of_logistic(value, several):
    """log E f_b(-(g + γθ̃))(h + γ), exactly: b is Laplace of rate .99·ε/4 as scores lie in [-1, 1]; h is the same."""
    chance, ones, ridge = 1.0 / (1.0 + np.exp(-value)), np.arange(COUNT + 1), 0.25 / np.expm1(0.495)
    densities = np.exp(-0.2475 * np.abs(COUNT * chance - ones + ridge * value))
    chances = [scipy.stats.binom.pmf(ones, COUNT, 1.0 / (1.0 + np.exp(-location))) for (location,) in several]
    return np.log(np.array(chances) @ densities), np.zeros(len(several))


def oracle_of_means(values, epsilons, several, sets=20_000):
    """E Π exp(-nε|x̄ - θ̃|) of means of numbers clipped to [0, 1]."""
    random, found = np.random.default_rng(1), []
    noise = random.standard_normal((sets, COUNT))
    for location, scale in several:
        means = np.mean(np.clip(location + scale * noise, 0.0, 1.0), axis=1)
        exponents = sum(
            COUNT * epsilon * np.abs(means - value) for value, epsilon in zip(values, epsilons, strict=True)
        )
        found.append(np.exp(-exponents))
    return mean_over_data_sets(np.array(found))


def assert_same_up_to_a_constant(found, expected, errors, order=2.0):
    """Differences of log-likelihoods, within four standard errors and what is of the order of 1/n."""
    gaps = found - expected
    np.testing.assert_array_less(np.abs(gaps - gaps[0]), 4.0 * np.hypot(errors, errors[0]) + order / COUNT)


def test_kng_is_the_mean_of_its_density_over_data_sets():
    value = released("robust").value[0]
    several = [(value, 0.5), (value + 0.1, 0.5), (value - 0.2, 0.5), (value, 0.25), (value, 1.0), (value + 0.3, 1.2)]
    found = integrated("robust", [released("robust")], several)
    assert_same_up_to_a_constant(found, *oracle_of_robust(value, several))


def test_objective_perturbation_is_the_mean_of_its_density_over_data_sets():
    # Any value has a likelihood: this is one that the ridge pulls far.
    mechanism = kng.ObjectivePerturbation(kng.LogisticLoss(), kng.Bounds(), None, 1.0, "replace")
    several = [(1.5,), (1.2,), (1.8,), (0.8,), (2.2,)]
    found = integrated("logistic", [as_release(mechanism, [1.5], COUNT)], several)
    # The central limit theorem is off by .023 here, of scores that are two numbers.
    assert_same_up_to_a_constant(found, *oracle_of_logistic(1.5, several), order=2.5)


def test_releases_of_the_same_records_share_their_scores():
    both = [released("mean"), released("other mean")]
    values = [release.value[0] for release in both]
    several = [(0.3, 0.5), (0.35, 0.5), (0.3, 0.25), (0.25, 0.8)]
    found = integrated("mean", both, several)
    assert_same_up_to_a_constant(found, *oracle_of_means(values, (1.0, 2.0), several))
    # Taken as independent studies they would say more.
    apart = sum(integrated("mean", [one], several) for one in both)
    assert np.max(np.abs((apart - apart[0]) - (found - found[0]))) > 0.5


def test_independent_studies_are_two_names():
    study = released("robust")

    def model():
        location = numpyro.sample("location", dist.Normal(0.0, 1.0))
        for name in ("first", "second"):
            kng.observe(study, record=lambda x: dist.Normal(location, 0.5), name=name)

    def of_one():
        location = numpyro.sample("location", dist.Normal(0.0, 1.0))
        kng.observe(study, record=lambda x: dist.Normal(location, 0.5))

    zero, prior = jnp.zeros(1), float(dist.Normal(0.0, 1.0).log_prob(0.3))
    together = density_of(model, location=0.3, first_score=zero, second_score=zero)
    one = density_of(of_one, location=0.3, release_score=zero)
    np.testing.assert_allclose(together - prior, 2.0 * (one - prior), rtol=1e-5)


def test_old_certificates_need_the_number_of_records():
    fields = json.loads(released("mean").to_json())
    assert fields["certificate"].pop("num_records") == COUNT
    old = kng.Release.from_json(json.dumps(fields))
    law = dist.Normal(jnp.array([0.3]), 0.5)

    def likelihood(release, **given):
        return density_of(lambda: kng.observe(release, record=law, **given), release_score=jnp.zeros(1))

    with pytest.raises(ValueError, match="give num_records"):
        likelihood(old)
    assert likelihood(old, num_records=COUNT) == likelihood(released("mean"))
    with pytest.raises(ValueError, match="were 100 records: leave num_records out"):
        likelihood(released("mean"), num_records=90)

    # A latent number of records has a slope.
    def latent():
        kng.observe(old, record=law, num_records=numpyro.sample("count", dist.Uniform(50.0, 200.0)))

    drawn = {"count": 100.0, "release_score": jnp.zeros(1)}
    slope = jax.jit(jax.grad(lambda drawn: log_density(latent, (), {}, drawn)[0]))(drawn)["count"]
    assert np.isfinite(slope)
    assert slope != 0.0


HULL = kng.Bounds(hull=kng.geometry.FeatureHull.powers(2, 0.0, 1.0))
MANY = kng.Bounds(x={"a": (-1.0, 1.0), "b": (0.0, 2.0)}, y=(-3.0, 3.0), missing_y=0.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda: kng.KNG(kng.SmoothedQuantileLoss(0.3, 0.1, "gaussian"), MANY, BALL, 1.0, "replace", kng.L2()),
        lambda: kng.KNG(kng.LogisticLoss(("no", "yes")), kng.Bounds(x=(0, 1), columns=["a"]), BOX, 1.0, "add_remove"),
        lambda: kng.KNG(kng.PseudoHuberLoss(1.0), HULL, BOX, 1.0, "replace"),
        lambda: kng.ObjectivePerturbation(kng.HuberLoss(0.4), MANY, None, 150.0, "replace", allow_large_epsilon=True),
    ],
)  # fmt: skip
def test_a_mechanism_is_made_again_from_its_certificate(mechanism):
    described = describe(mechanism())
    assert describe(mechanism_of(json.loads(json.dumps(described)))) == described


def test_what_is_no_public_class_is_not_made_again():
    with pytest.raises(ValueError, match="no public name"):
        mechanism_of({"type": "Secret"})
    with pytest.raises(ValueError, match="'L1Ball' is no mechanism"):
        mechanism_of({"type": "L1Ball", "radius": 1.0})


NORMAL = dist.Normal(np.array([0.1, -0.4]), 0.7)


@pytest.mark.parametrize(
    ("law", "interval"),
    [
        (NORMAL, None),
        (NORMAL, (-0.5, 1.0)),
        (dist.Laplace(np.array([0.1, -0.4]), 0.7), (-0.5, 1.0)),
        (dist.StudentT(3.0, np.array([0.1, -0.4]), 0.7), (-0.5, 1.0)),
        (dist.StudentT(np.array([2.0, 5.0]), 0.0, 1.0), None),
    ],
)
def test_expectations_are_those_of_scipy(law, interval):
    with jax.enable_x64(True):
        nodes = jax.jit(lambda: nodes_and_weights(law, 2, interval, is_smooth=True))()
        values, weights = map(np.asarray, nodes)
    found = np.sum(weights * np.tanh(values), axis=1)
    for row in range(2):
        of_row = jax.tree.map(lambda part, row=row: np.broadcast_to(part, (2,))[row].item(), law)
        name = {"Normal": "norm", "Laplace": "laplace", "StudentT": "t"}[type(law).__name__]
        shape = (of_row.df,) if name == "t" else ()
        peer = getattr(scipy.stats, name)(*shape, loc=of_row.loc, scale=of_row.scale)
        low, high = interval or (-np.inf, np.inf)
        expected = peer.expect(np.tanh, lb=low, ub=high, limit=200)
        if interval:
            expected += np.tanh(low) * peer.cdf(low) + np.tanh(high) * peer.sf(high)
        np.testing.assert_allclose(found[row], expected, atol=2e-3 if interval else 2e-5)


def test_counts_are_clipped_with_their_mass():
    law = dist.Poisson(np.array([1.0, 4.0]))
    values, weights = map(np.asarray, jax.jit(lambda: nodes_and_weights(law, 2, (0.0, 3.0), True))())
    for row, rate in enumerate((1.0, 4.0)):
        np.testing.assert_allclose(weights[row], [*scipy.stats.poisson.pmf([0, 1, 2], rate),
                                                  scipy.stats.poisson.sf(2, rate)], rtol=1e-5)  # fmt: skip
    np.testing.assert_array_equal(values[0], [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="summed up to the bound of y"):
        nodes_and_weights(dist.Poisson(1.0), 2, None, True)


def as_release(mechanism, value, num_records=10_000):
    """JSON of a release as somebody may find it: of the mean's certificate with another mechanism and value."""
    fields = json.loads(released("mean").to_json())
    fields["certificate"] |= {"mechanism": describe(mechanism), "num_records": num_records}
    return kng.Release.from_json(json.dumps(fields | {"value": value}))


LINE = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=1)
REFUSED = {
    "the scores of QuantileLoss are steps": lambda: kng.KNG(kng.QuantileLoss(0.5), LINE, BOX, 1.0, "replace"),
    "what PrivateIRLS releases is not known": lambda: kng.PrivateIRLS(LINE, 1.0, 1e-6, "replace"),
    "what ExponentialMechanism releases": lambda: kng.ExponentialMechanism(
        kng.SquaredLoss(), LINE, BOX, 1.0, "replace"
    ),
    "not served for pointwise_sensitivity": lambda: kng.KNG(
        kng.SquaredLoss(), LINE, BOX, 1.0, "replace", pointwise_sensitivity=True
    ),
    "10000 records are too few": lambda: kng.KNG(kng.PseudoHuberLoss(0.5), LINE, BOX, 0.009, "replace"),
    "have weights": lambda: kng.KNG(
        kng.PseudoHuberLoss(0.5), kng.Bounds(x=(0.0, 1.0), columns=1, weight=2.0), BOX, 1.0, "replace"
    ),
}


@pytest.mark.default_cases(*(words for words in REFUSED if "IRLS" not in words))
@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_likelihood_is_refused(words):
    with pytest.raises(ValueError, match=words):
        kng.observe(as_release(REFUSED[words](), [0.1, 0.2]), record=lambda x: dist.Normal(0.0, 1.0), design=[[0.5]])


def test_what_is_asked_wrongly_is_refused():
    robust, normal = kng.KNG(kng.PseudoHuberLoss(0.5), LINE, BOX, 1.0, "replace"), lambda x: dist.Normal(0.0, 1.0)
    line = as_release(robust, [0.1, 0.2])
    with pytest.raises(TypeError, match="release must be a Release"):
        kng.observe(line.to_json(), record=normal, design=[[0.5]])
    with pytest.raises(ValueError, match="needs a design"):
        kng.observe(line, record=normal)
    with pytest.raises(TypeError, match="must be a function of rows"):
        kng.observe(line, record=dist.Normal(0.0, 1.0), design=[[0.5]])
    with pytest.raises(TypeError, match="must give a NumPyro distribution"):
        kng.observe(line, record=lambda x: x, design=[[0.5]])
    with pytest.raises(ValueError, match="one law of a response for each of 1 rows"):
        kng.observe(line, record=lambda x: dist.Normal(np.zeros(3), 1.0), design=[[0.5]])
    with pytest.raises(ValueError, match="no quantile function"):
        kng.observe(line, record=lambda x: dist.Gamma(1.0, 1.0), design=[[0.5]])
    with pytest.raises(ValueError, match="on the boundary"):
        kng.observe(as_release(robust, [0.1, 3.0]), record=normal, design=[[0.5]])
    with pytest.raises(ValueError, match="means and regressions are not stacked"):
        kng.observe([as_release(robust, [0.1, 0.2], COUNT), released("mean")], record=normal, design=[[0.5]])
    with pytest.raises(ValueError, match="not from the same ones"):
        kng.observe([line, as_release(robust, [0.1, 0.2], 5000)], record=normal, design=[[0.5]])
    wider = kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(x=(0.0, 2.0), columns=1), BOX, 1.0, "replace")
    with pytest.raises(ValueError, match="clip the rows of the design differently"):
        kng.observe([line, as_release(wider, [0.1, 0.2])], record=normal, design=[[1.5]])
    with pytest.raises(ValueError, match="a mean has no design"):
        kng.observe(released("mean"), record=dist.Normal(np.zeros(1), 1.0), design=[[0.5]])
    with pytest.raises(TypeError, match="the law of the 1 columns"):
        kng.observe(released("mean"), record=dist.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="this one counts"):
        kng.observe(released("mean"), record=dist.Poisson(np.ones(1)))


def regression(part, rows, value):
    """A prior, and the likelihood of a value of a line by pseudo-Huber's loss; `value` may be traced."""
    beta = numpyro.sample("beta", dist.Normal(np.zeros(2), 1.0).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(np.log(0.5), 0.3))
    moved = (dataclasses.replace(part, value=value),)
    add_likelihood(moved, lambda x: dist.Normal(x @ beta, sigma), (rows,), part.num_records, "release")


@pytest.mark.slow
@pytest.mark.runs_long
def test_posteriors_are_calibrated():
    """Parameters from a prior, records, a release: the posterior's distribution function at the truth is uniform."""
    number, sets, draws = 500, 200, 2000
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=1)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-10.0, 10.0), 1.0, "replace")
    priors = np.random.default_rng(2)
    truth = np.column_stack([priors.standard_normal((sets, 2)), 0.5 * np.exp(0.3 * priors.standard_normal(sets))])

    def records(key, number):
        first, second, third = jax.random.split(key, 3)
        place = jax.random.randint(first, (), 0, sets)
        x, noise = jax.random.uniform(second, (number, 1), minval=-1.0), jax.random.normal(third, (number,))
        intercept, slope, sigma = jnp.asarray(truth)[place]
        return x, intercept + slope * x[:, 0] + sigma * noise, jnp.array([place.astype(float), 0.0])

    made = kng.simulate(records, mechanism, sets, kng.research_key(0), num_records=number, sampler=kng.chains.Exact())
    places = made.truth[0, :, 0].astype(int)
    part = ReleasedGradient.of(as_release(mechanism, [0.0, 0.0], number))
    rows = np.column_stack([np.ones(24), (np.arange(24) + 0.5) / 12.0 - 1.0])
    scale = np.array([1.0, np.sqrt(3.0)]) * (6.0 / (0.45 * number) + 0.6 / np.sqrt(number))

    def weighted(value, key):
        keys = jax.random.split(key, 3)
        proposal = dist.StudentT(4.0, value, scale).to_event(1)
        beta, score = (
            jax.vmap(proposal.sample)(jax.random.split(keys[0], draws)),
            jax.random.normal(keys[1], (draws, 2)),
        )
        sigma = 0.5 * jnp.exp(0.3 * jax.random.normal(keys[2], (draws,)))

        def log_weight(beta, sigma, score):
            drawn = {"beta": beta, "sigma": sigma, "release_score": score}
            return log_density(regression, (part, rows, value), {}, drawn)[0]

        logs = jax.lax.map(lambda one: log_weight(*one), (beta, sigma, score), batch_size=200)
        logs -= jax.vmap(proposal.log_prob)(beta) + dist.LogNormal(np.log(0.5), 0.3).log_prob(sigma)
        return jnp.column_stack([beta, sigma]), logs - dist.Normal().log_prob(score).sum(-1)

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(3), sets)
        found, logs = map(
            np.asarray, jax.jit(lambda: jax.lax.map(lambda one: weighted(*one), (made.theta[0, 0], keys)))()
        )
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    assert np.min(1.0 / np.sum(weights**2, axis=1)) > 100.0
    ranks = np.sum(weights[:, :, None] * (found < truth[places][:, None]), axis=1)
    for parameter in range(3):
        assert scipy.stats.kstest(ranks[:, parameter], "uniform").pvalue > 1e-3
    covered = np.mean((ranks > 0.025) & (ranks < 0.975), axis=0)
    np.testing.assert_array_less(np.abs(covered - 0.95), 3.0 * np.sqrt(0.95 * 0.05 / sets) + 1e-9)


@pytest.mark.slow
@pytest.mark.runs_long
def test_nuts_mixes():
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=1)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-10.0, 10.0), 1.0, "replace")
    published = as_release(mechanism, [0.4, -0.3], 1000)

    def model():
        beta = numpyro.sample("beta", dist.Normal(np.zeros(2), 1.0).to_event(1))
        design = np.linspace(-1.0, 1.0, 12)[:, None]
        kng.observe(published, record=lambda x: dist.Normal(x @ beta, 0.5), design=design)

    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1500, num_chains=4, chain_method="vectorized",
                   progress_bar=False)  # fmt: skip
    with jax.enable_x64(True):
        sampler.run(jax.random.key(0), extra_fields=("diverging",))
        found = numpyro.diagnostics.summary(sampler.get_samples(group_by_chain=True))
    assert np.all(found["beta"]["r_hat"] < 1.01)
    assert np.all(found["beta"]["n_eff"] > 500.0)
    assert not np.any(sampler.get_extra_fields()["diverging"])
    np.testing.assert_allclose(found["beta"]["mean"], [0.4, -0.3], atol=0.05)
