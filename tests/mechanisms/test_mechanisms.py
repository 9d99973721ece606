"""What a mechanism refuses, because no proof would hold, and what it is under JAX's transformations and in NumPyro."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

import kngjax as kng
from kngjax.mechanisms.parameters import require_part
from tests.oracles.goodness_of_fit import assert_same_law

PARTS = {
    "loss": kng.QuantileLoss(0.4),
    "bounds": kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0)),
    "domain": kng.Box(-1.0, 2.0),
    "epsilon": 1.0,
    "adjacency": "replace",
}
MECHANISMS = (kng.KNG, kng.ExponentialMechanism)

both_mechanisms = pytest.mark.parametrize("mechanism_type", MECHANISMS)


def records(seed=0, n=40, columns=2):
    random = np.random.default_rng(seed)
    return random.uniform(size=(n, columns)), random.uniform(-1.0, 1.0, n)


@both_mechanisms
@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -1.0, np.nan, np.inf, -np.inf, 10**400, np.float32(0), "jax zero", "jax NaN"]
)
def test_epsilon_must_be_positive_and_finite(mechanism_type, epsilon):
    epsilon = {"jax zero": jnp.array(0.0), "jax NaN": jnp.array(jnp.nan)}.get(epsilon, epsilon)
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        mechanism_type(**PARTS | {"epsilon": epsilon})


@both_mechanisms
def test_noise_beyond_the_largest_float_is_refused_before_it_is_paid_for(mechanism_type):
    with pytest.raises(ValueError, match="beyond float64's numbers: give at least 1e-100"):
        mechanism_type(**PARTS | {"epsilon": 5e-324})


@both_mechanisms
@pytest.mark.parametrize("epsilon", [True, np.True_, "1.0", b"1.0", 1j, [1.0], np.array([1.0])], ids=repr)
@pytest.mark.parametrize("wrapped", [False, True], ids=["", "in an array"])
def test_epsilon_must_be_one_real_number(mechanism_type, epsilon, wrapped):
    epsilon = np.array(epsilon) if wrapped else epsilon
    with pytest.raises(TypeError, match="epsilon must be one positive real number"):
        mechanism_type(**PARTS | {"epsilon": epsilon})


@both_mechanisms
def test_every_kind_of_real_number_is_an_epsilon(mechanism_type):
    for epsilon in (2, np.int64(2), np.float32(2), np.array(2.0), fractions.Fraction(2), jnp.array(2.0)):
        guarantee = mechanism_type(**PARTS | {"epsilon": epsilon}).guarantee
        assert (guarantee.epsilon, guarantee.rho, str(guarantee.adjacency)) == (2.0, 0.5, "replace")


@both_mechanisms
def test_an_epsilon_that_promises_nothing_is_allowed_by_name_only(mechanism_type):
    assert mechanism_type(**PARTS | {"epsilon": 100.0}).guarantee.epsilon == 100.0
    with pytest.raises(ValueError, match="say allow_large_epsilon=True"):
        mechanism_type(**PARTS | {"epsilon": 101.0})
    assert mechanism_type(**PARTS | {"epsilon": 1e3}, allow_large_epsilon=True).guarantee.epsilon == 1e3
    with pytest.raises(ValueError, match="finite"):
        mechanism_type(**PARTS | {"epsilon": np.inf}, allow_large_epsilon=True)


@both_mechanisms
@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("loss", "loss is missing"),
        ("bounds", "bounds are missing: the proof needs public bounds"),
        ("domain", "the density need not be integrable .* no mechanism is defined"),
        ("epsilon", "epsilon is missing"),
        ("adjacency", "adjacency must be named"),
    ],
)
def test_no_part_has_a_default(mechanism_type, missing, message):
    with pytest.raises(ValueError, match=message):
        mechanism_type(**{name: part for name, part in PARTS.items() if name != missing})


@both_mechanisms
@pytest.mark.parametrize("loss", [kng.SquaredLoss(), kng.PoissonLoss()], ids=["squared", "Poisson"])
def test_losses_with_unbounded_scores_need_bounds_on_the_response(mechanism_type, loss):
    with pytest.raises(ValueError, match="needs public bounds of the response"):
        mechanism_type(**PARTS | {"loss": loss, "bounds": kng.Bounds(x=(0.0, 1.0))})


def test_only_the_exponential_mechanism_needs_them_for_bounded_scores():
    bounds = kng.Bounds(x=(0.0, 1.0))
    assert kng.KNG(**PARTS | {"loss": kng.HuberLoss(1.0), "bounds": bounds}).sensitivity.value == 1.0
    for loss in (kng.QuantileLoss(0.5), kng.HuberLoss(1.0), kng.PseudoHuberLoss(1.0)):
        with pytest.raises(ValueError, match=r"one record's loss grows with y\. KNG needs none"):
            kng.ExponentialMechanism(**PARTS | {"loss": loss, "bounds": bounds})
    logistic = PARTS | {"loss": kng.LogisticLoss(), "bounds": bounds}
    # |x'θ| ≤ 2 + 2 for two features in [0, 1], and log(1 + e^4) - log(1 + e^-4) = 4.
    assert kng.ExponentialMechanism(**logistic).sensitivity_for(2).value == pytest.approx(4.0, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [kng.SquaredLoss(), kng.PoissonLoss()], ids=["squared", "Poisson"])
def test_unbounded_base_measures_are_refused_where_the_score_grows_with_theta(loss):
    normal = kng.BaseMeasure(dist.Normal(0.0, 1.0))
    parts = PARTS | {"loss": loss, "domain": normal, "bounds": kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0))}
    for mechanism_type in MECHANISMS:
        with pytest.raises(ValueError, match=r"is not finite over this domain.*Give a bounded domain"):
            mechanism_type(**parts)
    with pytest.raises(ValueError, match="not finite over this domain"):
        kng.KNG(**parts, norm=kng.L2())
    assert kng.KNG(**parts | {"loss": kng.HuberLoss(1.0)}).sensitivity.value == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": kng.Box(np.zeros(4), 1.0)}, "disagree about the number of coefficients"),
        ({"norm": kng.WeightedLInf(np.ones(2))}, "disagree about the number of coefficients"),
        ({"norm": kng.Ellipsoid(np.eye(4))}, "disagree about the number of coefficients"),
        ({"domain": kng.BaseMeasure(dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)))}, "disagree about the number"),
    ],
)
def test_parts_must_agree_about_the_number_of_coefficients(change, message):
    bounds = kng.Bounds(x=(np.zeros(2), np.ones(2)), y=(-1.0, 1.0))
    with pytest.raises(ValueError, match=message):
        kng.KNG(**PARTS | {"bounds": bounds} | change)


def test_data_must_have_the_number_of_coefficients_that_the_parts_fix():
    mechanism = kng.KNG(**PARTS | {"domain": kng.Box(np.zeros(4), 1.0)})
    assert mechanism.dimension == 4
    with pytest.raises(ValueError, match=r"the data give 3 coefficients .* the mechanism is for 4"):
        mechanism.prepare(*records())
    with pytest.raises(ValueError, match="too few for these bounds"):
        kng.KNG(**PARTS | {"domain": kng.Box(np.zeros(1), 1.0)})


@pytest.mark.slow
def test_a_sensitivity_that_depends_on_the_number_of_columns_is_not_guessed():
    squared = PARTS | {"loss": kng.SquaredLoss()}
    assert kng.KNG(**squared).sensitivity.value == 1.0
    with pytest.raises(ValueError, match=r"call sensitivity_for\(dimension\)"):
        _ = kng.KNG(**squared, norm=kng.LInf()).sensitivity
    # The residual lies within 1 + 2d of 0, for the box [-1, 2]^d, features in [0, 1] and |y| ≤ 1.
    values = [kng.ExponentialMechanism(**squared).sensitivity_for(d).value for d in (2, 5)]
    assert values == [pytest.approx((1 + 2 * d) ** 2 / 2, rel=1e-12) for d in (2, 5)]


@pytest.mark.slow
@both_mechanisms
@pytest.mark.parametrize("loss", [kng.SquaredLoss(), kng.QuantileLoss(0.4), kng.PseudoHuberLoss(0.5)])
def test_log_density_under_jit_vmap_and_grad(mechanism_type, loss):
    mechanism = mechanism_type(**PARTS | {"loss": loss})
    data, thetas = mechanism.prepare(*records()), np.random.default_rng(1).uniform(-1.0, 2.0, (6, 3))
    loop = np.array([mechanism.log_density(theta, data) for theta in thetas])
    assert mechanism.log_density(thetas[0], data).shape == ()
    jitted = jax.jit(mechanism.log_density)
    np.testing.assert_allclose([jitted(theta, data) for theta in thetas], loop, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(mechanism.log_density, (0, None))(thetas, data), loop, rtol=1e-12)
    gradient = jax.grad(mechanism.log_density)(jnp.asarray(thetas[0]), data)
    for coordinate in range(3):
        step = 1e-6 * np.eye(3)[coordinate]
        slope = (jitted(thetas[0] + step, data) - jitted(thetas[0] - step, data)) / 2e-6
        np.testing.assert_allclose(gradient[coordinate], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@both_mechanisms
def test_mechanisms_are_arguments_and_can_be_mapped_over_epsilon(mechanism_type):
    data, theta, traces = mechanism_type(**PARTS).prepare(*records()), np.full(3, 0.3), []

    @jax.jit
    def log_density(mechanism, data):
        traces.append(None)
        return mechanism.log_density(theta, data)

    epsilons = np.array([0.5, 1.0, 4.0])
    loop = [log_density(mechanism_type(**PARTS | {"epsilon": epsilon}), data) for epsilon in epsilons]
    assert len(traces) == 1
    with_epsilon = jax.vmap(lambda e: mechanism_type(**PARTS | {"epsilon": e}).log_density(theta, data))
    mapped = jax.jit(with_epsilon)(epsilons)
    np.testing.assert_allclose(mapped, loop, rtol=1e-12)
    scores = (np.array(loop) + 3 * np.log(3.0)) / epsilons
    np.testing.assert_allclose(scores, scores[0], rtol=1e-12)


@pytest.mark.slow
def test_compiled_log_densities_of_forgotten_mechanisms_are_not_mixed_up():
    # Mechanisms hash by identity, and a new one may live where an old one died.
    theta = np.full(3, 0.3)
    for epsilon in np.linspace(0.5, 3.0, 12):
        mechanism = kng.KNG(**PARTS | {"epsilon": epsilon})
        data = mechanism.prepare(*records())
        np.testing.assert_allclose(jax.jit(mechanism.log_density)(theta, data), mechanism.log_density(theta, data))
        del mechanism


def test_mechanisms_do_not_change():
    mechanism = kng.KNG(**PARTS)
    with pytest.raises(AttributeError):
        mechanism.epsilon = 0.1


@pytest.mark.default_cases(1)
@both_mechanisms
@pytest.mark.parametrize("domain", [kng.Box(-1.0, 2.0), kng.L1Ball(2.0), kng.BaseMeasure(dist.Normal(0.0, 1.0))])
def test_the_numpyro_model_has_the_mechanisms_log_density(mechanism_type, domain):
    parts = PARTS | {"domain": domain}
    if mechanism_type is kng.ExponentialMechanism:
        bounds = kng.Bounds(x=(0.0, 1.0))
        parts = parts | {"loss": kng.LogisticLoss(), "bounds": bounds, "domain": kng.L2Ball(2.0)}
    mechanism = mechanism_type(**parts)
    data = mechanism.prepare(records()[0], np.tile([0.0, 1.0], 20))
    model = mechanism.numpyro_model(data)

    @jax.jit
    @jax.vmap
    def differences(theta):
        log_joint, _ = numpyro.infer.util.log_density(model, (), {}, {"theta": theta})
        return log_joint - mechanism.log_density(theta, data)

    found = differences(np.random.default_rng(2).uniform(-0.6, 0.6, (5, 3)))
    np.testing.assert_allclose(found, found[0], atol=1e-10)


@pytest.mark.slow
def test_the_numpyro_model_runs_in_numpyros_nuts():
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(), kng.Box(-1.0, 2.0), 2.0, "replace")
    data = mechanism.prepare(None, np.random.default_rng(3).normal(0.5, 1.0, 30))
    sampler = MCMC(
        NUTS(mechanism.numpyro_model(data)), num_warmup=300, num_samples=2400, thinning=8, progress_bar=False
    )
    sampler.run(jax.random.key(4))
    grid = np.linspace(-1.0, 2.0, 4001)
    density = np.exp(jax.vmap(mechanism.log_density, (0, None))(grid[:, None], data))
    cumulative = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    draws = np.asarray(sampler.get_samples()["theta"])[:, 0]
    assert stats.spearmanr(draws[1:], draws[:-1]).statistic < 0.2
    assert_same_law(draws, lambda theta: np.interp(theta, grid, cumulative / cumulative[-1]))


@pytest.mark.parametrize(
    ("parts", "advice"),
    [
        ({"bounds": (0.0, 1.0)}, "bounds must be an object like"),
        ({"loss": kng.LogisticLoss}, "call it"),
        ({"domain": (-1.0, 1.0)}, "domain must be an object like"),
    ],
    ids=["bounds", "loss", "domain"],
)
def test_parts_of_the_wrong_type_are_named(parts, advice):
    name, value = next(iter(parts.items()))
    with pytest.raises(TypeError, match=advice):
        require_part(name, value)


def test_raw_data_are_sent_to_prepare():
    mechanism = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 1.0, "replace")
    # The tests check annotations too; users have the message that says what to call.
    with pytest.raises(TypeError):
        kng.sample(mechanism, np.ones((3, 1)), key=kng.research_key(0))  # pyright: ignore[reportArgumentType]


def test_how_many_records_there_are_is_public_under_replace_alone():
    for adjacency, count in (("replace", 5), ("add_remove", None)):
        mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(y=(0.0, 1.0)), kng.Box(0.0, 1.0), 1.0, adjacency)
        intake = mechanism.intake
        assert intake.public_count(intake.records(None, np.linspace(0.0, 1.0, 5))) == count
