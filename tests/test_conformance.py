"""Every public loss, norm, domain, mechanism and sampler, from the registry, has the properties that callers rely on.

A class whose constructor asks for something new fails here until `tests/examples.py` has a value for it.
"""

import functools
import json
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import kngjax as kng
from kngjax.chains.base import AbstractSampler
from kngjax.core import registry
from kngjax.core.representation import ShownAsTyped
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.certificate import describe
from kngjax.releases.debits import in_json
from tests import laws
from tests.examples import CLASSES, FEW, KINDS, MANY, PARTS, RECORDS, arguments, bounds, example, of_kinds, records
from tests.offenders import every_case
from tests.public import PUBLIC

# Compiling their draws takes seconds; their laws have tests of their own.
LONG_TO_COMPILE = {
    kng.AdaOPS,
    kng.AdaSSP,
    kng.ObjectivePerturbation,
    kng.OutputPerturbation,
    kng.PosteriorSample,
    kng.PrivateIRLS,
}
mechanisms = pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, marks=[pytest.mark.slow] * (one in LONG_TO_COMPILE), id=name)
        for name, one in of_kinds("mechanisms")
    ],
)
dimensions = pytest.mark.parametrize("dimension", [MANY, pytest.param(FEW, marks=pytest.mark.slow)])


def test_the_registry_has_what_the_package_names():
    for kind in KINDS:
        assert {one.__name__ for (its, _), one in CLASSES.items() if its == kind} == set(registry.names(kind).values())


BASES = {
    "losses": AbstractLoss,
    "norms": AbstractNorm,
    "domains": AbstractDomain,
    "mechanisms": AbstractMechanism,
    "samplers": AbstractSampler,
}


def test_every_public_class_is_registered_as_what_its_base_class_says():
    """A class in a new file of its room is in the registry, in jobs and in the tests of this file."""
    public = [part for part in PUBLIC.values() if isinstance(part, type)]
    offenders = []
    for kind, base in BASES.items():
        registered = {one for (its, _), one in CLASSES.items() if its == kind} - {kng.draws.Lattice, kng.draws.Shells}
        by_class = {one for one in public if issubclass(one, base)}
        offenders += [f"{one.__name__} is no {base.__name__}, and stands among {kind}" for one in registered - by_class]
        offenders += [
            f"{one.__name__} is one of the {kind}, and kngjax.core.registry does not find its file {one.__module__}: "
            "see _FILES there"
            for one in by_class - registered
        ]
    assert not offenders


@pytest.mark.parametrize("kinds", [PARTS, ("mechanisms",)], ids=["parts", "mechanisms"])
@dimensions
def test_each_is_shown_as_the_call_that_makes_it_again(kinds, dimension):
    public = PUBLIC | {"Normal": dist.Normal}
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
def declared_of_a_norm(norm, matrix, vectors, sides, key, dimension):
    """What a sensitivity or a law takes from a norm, and lengths that tell of it."""
    mapped, corners = jax.vmap(norm), jnp.concatenate([jnp.eye(dimension), -jnp.eye(dimension), vectors])
    within = jnp.clip(corners * 1e6, -1.0, 1.0) * sides[None]
    draws = norm.draw_from_ball(key, (2000,), dimension)
    return {
        "largest_over_box": (norm.largest_over_box(sides), jnp.max(mapped(within))),
        "largest_over_l2_ball": (
            norm.largest_over_l2_ball(dimension),
            jnp.max(mapped(corners / jnp.linalg.norm(corners, axis=1, keepdims=True))),
        ),
        "dual": (norm.dual(sides), jnp.max(corners @ sides / mapped(corners))),
        "largest_quadratic": (
            norm.largest_quadratic(matrix),
            jnp.max(jnp.einsum("vi,ij,vj->v", corners, matrix, corners) / mapped(corners) ** 2),
        ),
    }, (norm.log_volume(dimension), mapped(draws), draws, mapped(vectors))


def why_no_norm(norm, dimension):
    """What an attack on a norm's sensitivity and on the law of its ball finds."""
    random = np.random.default_rng(4)
    vectors, sides = random.uniform(-1.0, 1.0, (4000, dimension)), np.linspace(0.5, 1.5, dimension)
    root = random.normal(size=(dimension, dimension))
    compared, (log_volume, lengths, draws, sizes) = jax.tree.map(
        np.asarray, declared_of_a_norm(norm, root @ root.T, vectors, sides, jax.random.key(2), dimension)
    )
    offenders = [
        f"{name} is {declared:.6g}, and a point has {found:.6g}"
        for name, (declared, found) in compared.items()
        if not found <= declared * (1.0 + 1e-9)
    ]
    # Of uniform points of the ball ‖v‖^d is uniform.
    if stats.kstest(lengths**dimension, "uniform").pvalue < 1e-6:
        offenders.append("draw_from_ball does not draw uniformly")
    reach = 1.0 / np.max(np.abs(draws))
    share = np.mean(sizes <= reach) if dimension == FEW else None
    if share is not None:
        # The ball of this radius just lies within [-1, 1]^d.
        expected = float(np.exp(log_volume)) * reach**dimension / 2.0**dimension
        if abs(share - expected) > 6.0 * np.sqrt(expected / len(vectors)):
            offenders.append(f"log_volume makes {expected:.3g} of what is {share:.3g}")
    return offenders


def test_what_a_sensitivity_and_a_law_take_from_a_norm_is_attacked():
    with every_case() as case:
        for name, one in of_kinds("norms"):
            with case(name):
                assert not why_no_norm(example(one, FEW), FEW)


class ShortL1(AbstractNorm):
    """A norm that is wrong in what a sensitivity takes from it, and in its law."""

    def __call__(self, vector):
        return jnp.sum(jnp.abs(vector))

    def dual(self, vector):
        return 0.9 * jnp.max(jnp.abs(vector))

    def largest_over_box(self, half_widths):
        return jnp.max(half_widths)

    def largest_over_l2_ball(self, dimension):
        return jnp.ones(())

    def draw_from_ball(self, key, shape, dimension):
        return kng.L1().draw_from_ball(key, shape, dimension) * 0.9

    def log_volume(self, dimension):
        return kng.L2().log_volume(dimension)


def test_a_norm_that_makes_sensitivities_too_small_is_found_out():
    words = " ".join(why_no_norm(ShortL1(), FEW))
    for name in ("largest_over_box", "largest_over_l2_ball", "dual", "draw_from_ball", "log_volume"):
        assert name in words


@mechanisms
def test_the_law_of_each_mechanism_is_as_private_as_it_claims_and_a_tenth_of_its_noise_is_not(one):
    assert laws.why_not_private(one) is None


def test_a_mechanism_with_a_tenth_of_its_noise_or_without_a_row_is_found_out():
    def bold(epsilon):
        """Ten times the budget under the claim of `epsilon`."""
        return make(10.0 * epsilon)

    make, pair = laws.LAWS[kng.KNormMechanism]
    assert laws.told_apart(bold(1.0), pair, make(1.0).guarantee_for(1)) > 1.0
    with mock.patch.object(kng.KNormMechanism, "guarantee_for", return_value=make(1.0).guarantee_for(1)):
        assert "spends at least epsilon" in laws.why_not_private(kng.KNormMechanism, (bold, pair))
    assert "nothing attacks its law: add a row" in laws.why_not_private(ShortL1)


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
            # Those two are settings of draws, whose certificates say it.
            if one not in (kng.draws.Lattice, kng.draws.Shells):
                with case(name):
                    sampler = example(one)
                    words = (*sampler.assumptions, *sampler.failures, *sampler.unproved)
                    assert all(isinstance(text, str) for text in words)
