"""Every public loss, norm, domain, mechanism and sampler, from the registry, has the properties that callers rely on.

An example of each is made of what its constructor asks for. A class that asks for something new fails here until there
is a value for it below.
"""

import inspect
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.core import registry
from kngjax.core.representation import ShownAsTyped
from kngjax.data.records import Records
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.certificate import describe
from kngjax.releases.debits import in_json

KINDS = ("losses", "norms", "domains", "mechanisms", "samplers")
CLASSES = {(kind, name): one for kind in KINDS for name, one in registry.classes(kind).items()}
# Two shapes for all: 40 records with two and with four coefficients.
RECORDS, DIMENSIONS = 40, (2, 4)


def bounds(dimension, with_response=True):
    """Bounds of an intercept and `dimension` - 1 columns."""
    columns = np.linspace(1.0, 2.0, dimension - 1)
    return kng.Bounds(x=(-columns, columns), y=(0.0, 1.0) if with_response else None)


# What constructors ask for by these names.
ARGUMENTS = {
    "tau": lambda dimension: 0.3,
    "bandwidth": lambda dimension: 0.25,
    "k": lambda dimension: 1.5,
    "weights": lambda dimension: np.arange(1.0, 1.0 + dimension),
    "matrix": lambda dimension: np.diag(np.arange(1.0, 1.0 + dimension)),
    "vertices": lambda dimension: np.eye(dimension),
    "lower": lambda dimension: -3.0,
    "upper": lambda dimension: 3.0,
    "radius": lambda dimension: 3.0,
    "base": lambda dimension: dist.Normal(0.0, 2.0),
    "loss": lambda dimension: kng.LogisticLoss(),
    "bounds": bounds,
    "domain": lambda dimension: kng.Box(-3.0, 3.0),
    "epsilon": lambda dimension: 1.0,
    "delta": lambda dimension: 1e-6,
    "adjacency": lambda dimension: "replace",
    "regularization": lambda dimension: 10.0,
    "gamma": lambda dimension: 0.001,
    "max_records": lambda dimension: 100,
}
# Those of mechanisms that explain no response.
OWN = {
    kng.KNormMechanism: {"bounds": lambda dimension: kng.Bounds(x=(np.zeros(dimension), 1.0), intercept=False)},
    kng.PrivateQuantile: {"bounds": lambda dimension: kng.Bounds(y=(0.0, 1.0))},
    kng.QuantileInterval: {"bounds": lambda dimension: kng.Bounds(y=(0.0, 1.0))},
    kng.GeometricMechanism: {"bounds": lambda dimension: kng.Bounds(y=(0.0, dimension - 1.0))},
}
OPTIONAL = {"norm", "allow_large_epsilon", "levels", "facets"}


def arguments(one, dimension=2):
    """What its constructor needs, and of a mechanism what it could leave out only with another choice."""
    own, needed = ARGUMENTS | OWN.get(one, {}), {}
    for name, parameter in inspect.signature(one).parameters.items():
        if parameter.default is parameter.empty or (name in own and name not in OPTIONAL):
            assert name in own, f"{one.__name__} asks for {name}: give an example of it here"
            needed[name] = own[name](dimension)
    return needed


def example(one, dimension=2):
    return one(**arguments(one, dimension))


def of_kind(*kinds):
    chosen = {name: one for (kind, name), one in CLASSES.items() if kind in kinds}
    return pytest.mark.parametrize("one", chosen.values(), ids=chosen)


dimensions = pytest.mark.parametrize("dimension", DIMENSIONS)


def test_the_registry_has_what_the_package_names():
    for kind in KINDS:
        assert {one.__name__ for (its, _), one in CLASSES.items() if its == kind} == set(registry.names(kind).values())


@of_kind(*KINDS)
@dimensions
def test_it_is_shown_as_the_call_that_makes_it_again(one, dimension):
    public = {name: getattr(kng, name) for name in kng.__all__} | {"Normal": dist.Normal}
    made = example(one, dimension)
    assert isinstance(made, ShownAsTyped)
    again = eval(repr(made), public)
    assert eqx.tree_equal(again, made)
    assert json.loads(json.dumps(in_json(describe(made))))["type"] == one.__name__


@of_kind(*KINDS)
def test_it_is_a_frozen_tree_of_arrays_and_an_argument_of_compiled_functions(one):
    made = example(one)
    leaves, structure = jax.tree.flatten(made)
    assert eqx.tree_equal(jax.tree.unflatten(structure, leaves), made)
    for field in vars(made):
        with pytest.raises(AttributeError):
            setattr(made, field, None)
    traces = []

    @eqx.filter_jit
    def returned(part):
        traces.append(part)
        return part

    same = returned(made)
    assert type(same) is one
    jax.tree.map(np.testing.assert_array_equal, eqx.filter(same, eqx.is_array), eqx.filter(made, eqx.is_array))
    # Numbers of another object of the class are arguments, not constants.
    returned(jax.tree.map(lambda leaf: leaf * 1 if eqx.is_array(leaf) else leaf, same))
    assert len(traces) <= 2


@of_kind(*KINDS)
def test_an_unknown_argument_is_refused(one):
    with pytest.raises(TypeError, match="no_such_setting"):
        one(**arguments(one), no_such_setting=1)


def records(dimension, seed=0):
    random = np.random.default_rng(seed)
    x = np.column_stack([np.ones(RECORDS), random.uniform(-1.0, 1.0, (RECORDS, dimension - 1))])
    return Records(x, np.asarray(random.uniform(size=RECORDS) < 0.5, dtype=np.float64))


@of_kind("losses")
@dimensions
def test_value_gradient_hessian_and_record_gradients_of_a_loss_agree(one, dimension):
    """In one compiled program, mapped over θ, of which no point is a kink."""
    data, loss = records(dimension), example(one, dimension)
    thetas = np.random.default_rng(1).normal(size=(5, dimension))
    traces = []

    @jax.jit
    def evaluate(loss, thetas, data):
        def at(theta):
            traces.append(theta)
            gradient = loss.gradient(theta, data)
            records = loss.record_gradients(theta, data)
            by_differentiation = jax.grad(loss.value)(theta, data), jax.jacfwd(loss.gradient)(theta, data)
            return (gradient, loss.hessian(theta, data)), by_differentiation, jnp.sum(records, axis=0)

        return jax.vmap(at)(thetas)

    declared, differentiated, summed = evaluate(loss, thetas, data)
    np.testing.assert_allclose(declared[0], differentiated[0], rtol=1e-8, atol=1e-8)
    # A piecewise-linear loss declares the curvature of its expectation instead.
    if not loss.score_is_piecewise_constant:
        np.testing.assert_allclose(declared[1], differentiated[1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(summed, declared[0], rtol=1e-8, atol=1e-8)
    evaluate(loss, 0.5 * thetas, data)
    assert len(traces) <= 2


@pytest.mark.default_cases(5)
@of_kind("norms")
@dimensions
def test_a_norm_is_one_and_its_ball_holds_its_draws(one, dimension):
    @jax.jit
    def evaluate(norm, key):
        vectors = jax.random.normal(key, (6, dimension))
        points = norm.draw_from_ball(key, (50,), dimension)
        mapped = jax.vmap(norm)
        return mapped(vectors), mapped(-2.5 * vectors), mapped(jnp.roll(vectors, 1, 0) + vectors), mapped(points)

    sizes, scaled, sums, inside = map(np.asarray, evaluate(example(one, dimension), jax.random.key(0)))
    np.testing.assert_allclose(scaled, 2.5 * sizes, rtol=1e-10)
    assert np.all(sizes > 0)
    assert np.all(sums <= (sizes + np.roll(sizes, 1)) * (1 + 1e-12))
    assert np.all(inside <= 1 + 1e-9)


@pytest.mark.default_cases(5)
@of_kind("domains")
@dimensions
def test_a_domain_holds_its_draws_its_centre_and_its_chords(one, dimension):
    @jax.jit
    def evaluate(domain, key):
        thetas = domain.draw(key, (20,), dimension)
        lower, upper = jax.vmap(lambda theta: domain.chord(theta, jnp.ones(dimension)))(thetas)
        centre = domain.interior_point(dimension)
        held = jax.vmap(domain.contains)(jnp.vstack([thetas, centre[None]]))
        return held, lower, upper, jax.vmap(domain.log_density)(thetas), domain.widths(dimension)

    held, lower, upper, densities, widths = map(np.asarray, evaluate(example(one, dimension), jax.random.key(0)))
    assert held.all()
    assert np.all(lower <= 0)
    assert np.all(upper >= 0)
    assert np.all(np.isfinite(densities))
    assert np.all(widths > 0)


densities = {
    name: one
    for (kind, name), one in CLASSES.items()
    if kind == "mechanisms" and issubclass(one, AbstractDensityMechanism)
}


@pytest.mark.parametrize("one", densities.values(), ids=densities)
@dimensions
def test_a_density_is_one_program_for_every_theta_data_set_and_epsilon(one, dimension):
    traces, given = [], records(dimension)
    mechanism = example(one, dimension)
    data = mechanism.prepare(given.x[:, 1:], given.y)

    @jax.jit
    def log_densities(mechanism, thetas, data):
        traces.append(thetas)
        return jax.vmap(mechanism.log_density, in_axes=(0, None))(thetas, data)

    thetas = np.random.default_rng(2).uniform(-1.0, 1.0, (4, dimension))
    values = log_densities(mechanism, thetas, data)
    np.testing.assert_allclose(values, [mechanism.log_density(theta, data) for theta in thetas], rtol=1e-8)
    other = one(**arguments(one, dimension) | {"epsilon": 2.0})
    assert np.all(np.isfinite(log_densities(other, thetas, other.prepare(given.x[::-1, 1:], given.y))))
    assert len(traces) <= 2


REFUSED = (
    ("epsilon", -1.0, ValueError),
    ("epsilon", np.nan, ValueError),
    ("epsilon", "a", TypeError),
    ("epsilon", True, TypeError),
    ("epsilon", None, ValueError),
    ("delta", 0.0, ValueError),
    ("delta", 1.0, ValueError),
    ("delta", "a", TypeError),
    ("delta", None, ValueError),
    ("adjacency", None, ValueError),
    ("adjacency", "zero_out", ValueError),
    ("bounds", None, ValueError),
)


@of_kind("mechanisms")
def test_a_mechanism_refuses_in_words_what_makes_no_guarantee(one):
    given = arguments(one)
    for name, value, error in REFUSED:
        if name in given:
            with pytest.raises(error, match=name):
                one(**given | {name: value})
    if "epsilon" in given:
        with pytest.raises(ValueError, match="allow_large_epsilon"):
            one(**given | {"epsilon": 200.0})
        assert one(**given | {"epsilon": 200.0}, allow_large_epsilon=True).guarantee_for(2).epsilon >= 100.0
    if "loss" not in given and one.has_regressors:
        with pytest.raises(ValueError, match="response"):
            one(**given | {"bounds": bounds(2, with_response=False)})


@of_kind("mechanisms")
@dimensions
def test_a_mechanism_states_its_guarantee_and_its_sensitivity(one, dimension):
    mechanism = example(one, dimension)
    dimension = mechanism.dimension or dimension
    guarantee = mechanism.guarantee_for(dimension)
    assert str(guarantee.adjacency) == "replace"
    assert guarantee.epsilon > 0
    assert np.all(np.asarray(mechanism.sensitivity_for(dimension).value) > 0)
    assert mechanism.sensitivity_for(dimension).derivation


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("one", [kng.AdaOPS, kng.AdaSSP])
def test_one_program_serves_every_epsilon_and_delta(one):
    given = arguments(one)
    data = one(**given).prepare(np.ones((RECORDS, 1)), np.ones(RECORDS))

    def first(epsilon, delta):
        return one(**given | {"epsilon": epsilon, "delta": delta}).draws(data, jax.random.key(0), 1)[0][0]

    epsilons, deltas = np.array([0.1, 1.0, 5.0]), np.array([1e-9, 1e-6, 1e-3])
    together = jax.jit(jax.vmap(first))(epsilons, deltas)
    np.testing.assert_allclose(together, [first(*pair) for pair in zip(epsilons, deltas, strict=True)], rtol=1e-6)


@of_kind("samplers")
def test_a_sampler_says_what_its_draws_are(one):
    sampler = example(one)
    # Lattice is the settings of a route, whose certificate says it.
    if not isinstance(sampler, kng.Lattice):
        assert all(isinstance(text, str) for text in (*sampler.assumptions, *sampler.failures, *sampler.unproved))
