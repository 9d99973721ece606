"""Every public loss, norm, domain, mechanism and sampler, from the registry, has the properties that callers rely on.

A class whose constructor asks for something new fails here until `tests/examples.py` has a value for it.
"""

import functools
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
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.certificate import describe
from kngjax.releases.debits import in_json
from tests.examples import CLASSES, FEW, KINDS, MANY, PARTS, RECORDS, arguments, bounds, example, of_kinds, records
from tests.offenders import every_case

dimensions = pytest.mark.parametrize("dimension", [MANY, pytest.param(FEW, marks=pytest.mark.slow)])


def test_the_registry_has_what_the_package_names():
    for kind in KINDS:
        assert {one.__name__ for (its, _), one in CLASSES.items() if its == kind} == set(registry.names(kind).values())


@pytest.mark.parametrize("kinds", [PARTS, ("mechanisms",)], ids=["parts", "mechanisms"])
@dimensions
def test_each_is_shown_as_the_call_that_makes_it_again(kinds, dimension):
    public = {name: getattr(kng, name) for name in kng.__all__} | {"Normal": dist.Normal}
    with every_case() as case:
        for name, one in of_kinds(*kinds):
            with case(name):
                made = example(one, dimension)
                assert isinstance(made, ShownAsTyped)
                assert eqx.tree_equal(eval(repr(made), public), made)
                assert json.loads(json.dumps(in_json(describe(made))))["type"] == one.__name__


def is_a_frozen_tree(made):
    leaves, structure = jax.tree.flatten(made)
    assert eqx.tree_equal(jax.tree.unflatten(structure, leaves), made)
    for field in vars(made):
        with pytest.raises(AttributeError):
            setattr(made, field, None)


def is_an_argument_of_compiled_functions(made):
    traces = []

    @eqx.filter_jit
    def returned(part):
        traces.append(part)
        return part

    same = returned(made)
    assert type(same) is type(made)
    jax.tree.map(np.testing.assert_array_equal, eqx.filter(same, eqx.is_array), eqx.filter(made, eqx.is_array))
    # Numbers of another object of the class are arguments, not constants.
    returned(jax.tree.map(lambda leaf: leaf * 1 if eqx.is_array(leaf) else leaf, same))
    assert len(traces) <= 2


def test_each_is_a_frozen_tree_of_arrays_and_an_argument_of_compiled_functions():
    with every_case() as case:
        for name, one in of_kinds(*KINDS):
            with case(name):
                made = example(one)
                is_a_frozen_tree(made)
                is_an_argument_of_compiled_functions(made)


def test_an_unknown_argument_is_refused():
    with every_case() as case:
        for name, one in of_kinds(*KINDS):
            with case(name), pytest.raises(TypeError, match="no_such_setting"):
                one(**arguments(one), no_such_setting=1)


@jax.jit
def of_a_loss(loss, thetas, data):
    """Compares what a loss declares, what differentiation finds, and the sum over records, at each θ."""

    def at(theta):
        gradient = loss.gradient(theta, data)
        by_differentiation = jax.grad(loss.value)(theta, data), jax.jacfwd(loss.gradient)(theta, data)
        records = loss.record_gradients(theta, data)
        return (gradient, loss.hessian(theta, data)), by_differentiation, jnp.sum(records, axis=0)

    return jax.vmap(at)(thetas)


@dimensions
def test_value_gradient_hessian_and_record_gradients_of_a_loss_agree(dimension):
    """In one compiled program, mapped over θ, of which no point is a kink."""
    data, thetas = records(dimension), np.random.default_rng(1).normal(size=(5, dimension))
    with every_case() as case:
        for name, one in of_kinds("losses"):
            with case(name):
                loss, before = example(one, dimension), of_a_loss._cache_size()
                declared, differentiated, summed = of_a_loss(loss, thetas, data)
                np.testing.assert_allclose(declared[0], differentiated[0], rtol=1e-8, atol=1e-8)
                # A piecewise-linear loss declares the curvature of its expectation instead.
                if not loss.score_is_piecewise_constant:
                    np.testing.assert_allclose(declared[1], differentiated[1], rtol=1e-8, atol=1e-8)
                np.testing.assert_allclose(summed, declared[0], rtol=1e-8, atol=1e-8)
                of_a_loss(loss, 0.5 * thetas, data)
                assert of_a_loss._cache_size() <= before + 1


@functools.partial(jax.jit, static_argnames="dimension")
def of_a_norm(norm, key, dimension):
    vectors = jax.random.normal(key, (6, dimension))
    points = norm.draw_from_ball(key, (50,), dimension)
    mapped = jax.vmap(norm)
    return mapped(vectors), mapped(-2.5 * vectors), mapped(jnp.roll(vectors, 1, 0) + vectors), mapped(points)


@dimensions
def test_a_norm_is_one_and_its_ball_holds_its_draws(dimension):
    with every_case() as case:
        for name, one in of_kinds("norms"):
            with case(name):
                found = of_a_norm(example(one, dimension), jax.random.key(0), dimension)
                sizes, scaled, sums, inside = map(np.asarray, found)
                np.testing.assert_allclose(scaled, 2.5 * sizes, rtol=1e-10)
                assert np.all(sizes > 0)
                assert np.all(sums <= (sizes + np.roll(sizes, 1)) * (1 + 1e-12))
                assert np.all(inside <= 1 + 1e-9)


@functools.partial(jax.jit, static_argnames="dimension")
def of_a_domain(domain, key, dimension):
    thetas = domain.draw(key, (20,), dimension)
    lower, upper = jax.vmap(lambda theta: domain.chord(theta, jnp.ones(dimension)))(thetas)
    centre = domain.interior_point(dimension)
    held = jax.vmap(domain.contains)(jnp.vstack([thetas, centre[None]]))
    return held, lower, upper, jax.vmap(domain.log_density)(thetas), domain.widths(dimension)


@dimensions
def test_a_domain_holds_its_draws_its_centre_and_its_chords(dimension):
    with every_case() as case:
        for name, one in of_kinds("domains"):
            with case(name):
                found = of_a_domain(example(one, dimension), jax.random.key(0), dimension)
                held, lower, upper, densities, widths = map(np.asarray, found)
                assert held.all()
                assert np.all(lower <= 0)
                assert np.all(upper >= 0)
                assert np.all(np.isfinite(densities))
                assert np.all(widths > 0)


@dimensions
def test_a_density_is_one_program_for_every_theta_data_set_and_epsilon(dimension):
    given, thetas = records(dimension), np.random.default_rng(2).uniform(-1.0, 1.0, (4, dimension))

    @jax.jit
    def log_densities(mechanism, thetas, data):
        return jax.vmap(mechanism.log_density, in_axes=(0, None))(thetas, data)

    with every_case() as case:
        for name, one in of_kinds("mechanisms"):
            if not issubclass(one, AbstractDensityMechanism):
                continue
            with case(name):
                mechanism, before = example(one, dimension), log_densities._cache_size()
                data = mechanism.prepare(given.x[:, 1:], given.y)
                values = log_densities(mechanism, thetas, data)
                np.testing.assert_allclose(values, [mechanism.log_density(theta, data) for theta in thetas], rtol=1e-8)
                other = one(**arguments(one, dimension) | {"epsilon": 2.0})
                reversed_data = other.prepare(given.x[::-1, 1:], given.y)
                assert np.all(np.isfinite(log_densities(other, thetas, reversed_data)))
                assert log_densities._cache_size() <= before + 1


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


def refuses_what_makes_no_guarantee(one):
    given = arguments(one)
    for name, value, error in REFUSED:
        if name in given:
            with pytest.raises(error, match=name):
                one(**given | {name: value})
    if "epsilon" in given:
        with pytest.raises(ValueError, match="allow_large_epsilon"):
            one(**given | {"epsilon": 200.0})
        assert one(**given | {"epsilon": 200.0}, allow_large_epsilon=True).guarantee_for(MANY).epsilon >= 100.0
    if "loss" not in given and one.has_regressors:
        with pytest.raises(ValueError, match="response"):
            one(**given | {"bounds": bounds(MANY, with_response=False)})


def test_a_mechanism_refuses_in_words_what_makes_no_guarantee():
    with every_case() as case:
        for name, one in of_kinds("mechanisms"):
            with case(name):
                refuses_what_makes_no_guarantee(one)


@dimensions
def test_a_mechanism_states_its_guarantee_and_its_sensitivity(dimension):
    with every_case() as case:
        for name, one in of_kinds("mechanisms"):
            with case(name):
                mechanism = example(one, dimension)
                own_dimension = mechanism.dimension or dimension
                guarantee = mechanism.guarantee_for(own_dimension)
                assert str(guarantee.adjacency) == "replace"
                assert guarantee.epsilon > 0
                sensitivity = mechanism.sensitivity_for(own_dimension)
                assert np.all(np.asarray(sensitivity.value) > 0)
                assert sensitivity.derivation


@pytest.mark.parametrize("one", [kng.AdaOPS, pytest.param(kng.AdaSSP, marks=pytest.mark.slow)])
def test_one_program_serves_every_epsilon_and_delta(one):
    given = arguments(one)
    data = one(**given).prepare(np.ones((RECORDS, MANY - 1)), np.ones(RECORDS))

    def first(epsilon, delta):
        return one(**given | {"epsilon": epsilon, "delta": delta}).draws(data, jax.random.key(0), 1)[0][0]

    epsilons, deltas = np.array([0.1, 1.0, 5.0]), np.array([1e-9, 1e-6, 1e-3])
    together = jax.jit(jax.vmap(first))(epsilons, deltas)
    np.testing.assert_allclose(together, [first(*pair) for pair in zip(epsilons, deltas, strict=True)], rtol=1e-6)


def test_a_sampler_says_what_its_draws_are():
    with every_case() as case:
        for name, one in of_kinds("samplers"):
            # Lattice is the settings of a route, whose certificate says it.
            if one is not kng.Lattice:
                with case(name):
                    sampler = example(one)
                    words = (*sampler.assumptions, *sampler.failures, *sampler.unproved)
                    assert all(isinstance(text, str) for text in words)
