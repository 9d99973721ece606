"""Base measures: normalised densities, draws with the law of the density, and what is refused as improper."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

import kngjax as kng
from tests.oracles.goodness_of_fit import assert_same_law, assert_two_samples_agree

COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])


BODIES = ("L1Ball", "L2Ball", "Box")
MEASURES = ("Normal", "Cauchy", "HalfNormal", "MultivariateNormal")


@functools.cache
def bodies(dimension):
    return {
        "L1Ball": kng.L1Ball(1.5),
        "L2Ball": kng.L2Ball(1.5),
        "Box": kng.Box(-0.5, np.array([1.0, 2.0, 0.0, 3.0])[:dimension]),
    }


@functools.cache
def measures(dimension):
    return {
        "Normal": kng.BaseMeasure(dist.Normal(0.5, 2.0)),
        "Cauchy": kng.BaseMeasure(dist.Cauchy(0.0, 1.0)),
        "HalfNormal": kng.BaseMeasure(dist.HalfNormal(1.5)),
        "MultivariateNormal": kng.BaseMeasure(
            dist.MultivariateNormal(jnp.array([1.0, -1.0])[:dimension], COVARIANCE[:dimension, :dimension])
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BODIES, *MEASURES])
def test_the_density_is_normalised_on_the_line(name):
    domain = (bodies(1) | measures(1))[name]
    density_at = jax.jit(lambda theta: jnp.exp(domain.log_density(theta)))

    def density(theta):
        return float(density_at(jnp.array([theta])))

    # The jumps of these densities are among the break points.
    edges = [-np.inf, -1.5, -0.5, 0.0, 1.0, 1.5, np.inf]
    parts = [integrate.quad(density, *pair, epsabs=1e-10)[0] for pair in itertools.pairwise(edges)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.default_cases("L1Ball", "HalfNormal", "MultivariateNormal")
@pytest.mark.parametrize("name", [*BODIES, *MEASURES])
def test_the_density_is_normalised_in_the_plane(name):
    domain = (bodies(2) | measures(2))[name]
    # Through t = tan(πs/2) the midpoint rule covers the plane, heavy tails included.
    middles = (np.arange(1500) + 0.5) / 750.0 - 1.0
    axis, stretch = np.tan(np.pi * middles / 2.0), np.pi / 2.0 / np.cos(np.pi * middles / 2.0) ** 2 / 750.0
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    densities = np.asarray(jnp.exp(jax.jit(jax.vmap(domain.log_density))(grid))).reshape(1500, 1500)
    assert stretch @ densities @ stretch == pytest.approx(1.0, abs=4e-3)


@pytest.mark.default_cases("3")
@pytest.mark.parametrize("dimension", [1, 3])
def test_draws_from_the_bodies_are_uniform(dimension):
    key, shape = jax.random.key(1), (20_000,)
    drawn = {name: np.asarray(body.draw(key, shape, dimension)) for name, body in bodies(dimension).items()}
    assert_same_law(np.abs(drawn["L1Ball"]).sum(1) / 1.5, lambda r: np.clip(r, 0, 1) ** dimension)
    assert_same_law(np.linalg.norm(drawn["L2Ball"], axis=1) / 1.5, lambda r: np.clip(r, 0, 1) ** dimension)
    for coordinate, width in zip(drawn["Box"].T, (1.5, 2.5, 0.5), strict=False):
        assert_same_law((coordinate + 0.5) / width, stats.uniform.cdf)
    if dimension == 3:
        cosines = drawn["L2Ball"][:, 0] / np.linalg.norm(drawn["L2Ball"], axis=1)
        assert_same_law(cosines, stats.uniform(-1.0, 2.0).cdf)  # Archimedes' hat box
        shares = np.abs(drawn["L1Ball"][:, 1]) / np.abs(drawn["L1Ball"]).sum(1)
        assert_same_law(shares, stats.beta(1, 2).cdf)


@pytest.mark.slow
def test_draws_from_base_measures_have_their_law():
    key, shape = jax.random.key(2), (20_000,)
    laws = {"Normal": stats.norm(0.5, 2.0), "Cauchy": stats.cauchy, "HalfNormal": stats.halfnorm(scale=1.5)}
    for name, law in laws.items():
        drawn = np.asarray(measures(2)[name].draw(key, shape, 2))
        assert drawn.shape == (20_000, 2)
        assert_same_law(drawn[:, 0], law.cdf)
        assert_same_law(drawn[:, 1], law.cdf)
        assert abs(stats.spearmanr(drawn).statistic) < 0.05
    correlated = np.asarray(measures(2)["MultivariateNormal"].draw(key, shape, 2))
    assert_same_law((correlated @ [1.0, 1.0]) / np.sqrt(COVARIANCE.sum()), stats.norm.cdf)


def test_base_measures_know_their_dimension_and_support():
    named = measures(2)
    assert [measure.dimension for measure in named.values()] == [None, None, None, 2]
    assert not any(measure.is_uniform for measure in named.values())
    half = named["HalfNormal"]
    assert not half.contains(jnp.array([1.0, -0.1]))
    assert half.log_density(jnp.array([1.0, -0.1])) == -jnp.inf
    np.testing.assert_allclose(half.log_density(jnp.array([1.0, 2.0])), stats.halfnorm(0, 1.5).logpdf([1, 2]).sum())
    np.testing.assert_array_equal(named["Normal"].linear_interval(np.ones(2), np.ones(2)), [-np.inf, np.inf])


@pytest.mark.parametrize("name", MEASURES)
def test_interior_points_of_base_measures(name):
    measure = measures(2)[name]
    centre = measure.interior_point(2)
    assert measure.contains(centre)
    assert np.isfinite(measure.log_density(centre))
    outside = jnp.array([-3.0, 2.0])
    assert np.all(np.isfinite(measure.widths(2)) & (np.asarray(measure.widths(2)) > 0))
    if name == "HalfNormal":
        with pytest.raises(TypeError, match="no Euclidean projection"):
            measure.project(outside)
    else:
        np.testing.assert_array_equal(measure.project(outside), outside)


@pytest.mark.parametrize(
    "law", [dist.StudentT(1.0), dist.InverseGamma(1.0), dist.Pareto(1.0, 1.0)], ids=lambda law: type(law).__name__
)
def test_laws_without_moments_serve(law):
    measure = kng.BaseMeasure(law)
    centre = measure.interior_point(2)
    assert measure.contains(centre)
    assert np.isfinite(measure.log_density(centre))
    assert np.all(np.isfinite(measure.widths(2)))


@pytest.mark.slow
def test_gradients_are_finite_at_the_edge_of_a_support():
    half = measures(1)["HalfNormal"]
    assert np.isfinite(jax.grad(half.log_density)(jnp.array([1e-3]))).all()
    assert np.isfinite(jax.grad(half.log_density)(jnp.array([-1.0]))).all()


def test_improper_and_discrete_laws_are_refused():
    real_line = dist.ImproperUniform(dist.constraints.real, (), ())
    with pytest.raises(ValueError, match="infinite mass, so the density of the mechanism is improper"):
        kng.BaseMeasure(real_line)
    with pytest.raises(ValueError, match="infinite mass"):
        kng.BaseMeasure(dist.ImproperUniform(dist.constraints.real_vector, (), (2,)))
    for discrete in (dist.Poisson(3.0), dist.Bernoulli(0.5), dist.Delta(0.0)):
        with pytest.raises(ValueError, match="must be continuous"):
            kng.BaseMeasure(discrete)
    with pytest.raises(ValueError, match="a law on R\\^d"):
        kng.BaseMeasure(dist.Normal(jnp.zeros((2, 2)), 1.0))


IMPROPER = {
    "independent": dist.ImproperUniform(dist.constraints.real, (2,), ()).to_event(1),
    "expanded": dist.ImproperUniform(dist.constraints.real, (), ()).expand((2,)),
    "expanded and independent": dist.ImproperUniform(dist.constraints.real, (), ()).expand((2,)).to_event(1),
    "masked": dist.Normal(0.0, 1.0).mask(False),
    "expanded and masked": dist.Normal(0.0, 1.0).expand((2,)).to_event(1).mask(False),
}


@pytest.mark.parametrize("law", IMPROPER.values(), ids=IMPROPER)
def test_an_improper_law_is_refused_in_every_wrapping(law):
    # The last two have log density 0 everywhere.
    with pytest.raises(ValueError, match="improper"):
        kng.BaseMeasure(law)


@pytest.mark.parametrize(
    "law",
    [dist.Delta(0.0), dist.Dirichlet(jnp.ones(3)), dist.Normal(0.0, jnp.inf)],
    ids=["a point", "a simplex", "an infinite scale"],
)
def test_laws_without_a_density_on_the_whole_space_are_refused(law):
    with pytest.raises(ValueError, match="base measure"):
        kng.BaseMeasure(law)


@pytest.mark.slow
@pytest.mark.parametrize("ball", [kng.L1Ball(2.0), kng.L2Ball(2.0)], ids=["L1Ball", "L2Ball"])
def test_uniform_balls_serve_in_numpyro_models(ball):
    from numpyro.infer import Predictive

    def model():
        numpyro.sample("theta", ball.distribution(2))

    drawn = Predictive(model, num_samples=5000)(jax.random.key(3))["theta"]
    assert drawn.shape == (5000, 2)
    assert_two_samples_agree(drawn[:, 0], np.asarray(ball.draw(jax.random.key(4), (5000,), 2))[:, 0])
    log_joint, _ = numpyro.infer.util.log_density(model, (), {}, {"theta": drawn[0]})
    np.testing.assert_allclose(log_joint, ball.log_density(drawn[0]))
    assert jax.vmap(ball.distribution(2).support)(drawn).all()
