"""Objects that a program of one precision closed over, and that outlives it, compute in the other as if it never ran.

Every public part and mechanism, from the registry, and functions of many rooms that ask them: float32 first and then
float64, as after research in JAX's default precision, and the other way round.
"""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import parameter
from kngjax.core.modules import FreshArrays
from kngjax.data.records import Records
from kngjax.mechanisms.noise.calibration import renyi_budget
from kngjax.sensitivity.moments import radii
from tests.core.test_precision import ROOT
from tests.examples import KINDS, bounds, example, of_kinds
from tests.offenders import every_case

both_ways = pytest.mark.parametrize("in_64", [False, True], ids=["float32 first", "float64 first"])


def is_array(value):
    return isinstance(value, np.ndarray)


def asked_for(part):
    """The arrays of an object and of its parts, by their names."""
    named = {name: getattr(part, name) for name in part.__dataclass_fields__}
    inner = [array for value in named.values() if isinstance(value, FreshArrays) for array in asked_for(value)]
    return [*filter(is_array, named.values()), *inner]


def taken_apart(part):
    return [leaf for leaf in jax.tree.leaves(part) if is_array(leaf)]


def negated(part):
    return [*map(jax.lax.neg, asked_for(part) + taken_apart(part))]


@pytest.mark.takes(5, "a program of every public loss, norm, domain, mechanism and sampler")
@both_ways
def test_no_public_object_keeps_the_precision_of_a_program(in_64):
    """Constants are made when a program is traced, and kept with it."""
    with every_case() as case:
        for name, one in of_kinds(*KINDS):
            with case(name):
                part = example(one)
                with jax.enable_x64(in_64):
                    program = jax.make_jaxpr(functools.partial(negated, part))()
                with jax.enable_x64(not in_64):
                    found = {jnp.asarray(array).dtype for array in asked_for(part) + taken_apart(part)}
                assert found <= {np.dtype(np.float32 if in_64 else np.float64)}
                assert program


def test_arrays_of_one_precision_are_found_again():
    """Who compares trees by identity, as `equinox.tree_at`, finds the same arrays; and each is read-only as it was."""
    box = kng.Box([-1.0, -2.0], 3.0)
    assert box.lower is jax.tree.leaves(box)[0]
    lower = box.lower
    with jax.enable_x64(not jax.config.jax_enable_x64):
        assert box.lower is not lower
    assert not box.lower.flags.writeable
    records = Records(np.ones((2, 1)), np.zeros(2))
    assert records.x.flags.writeable


@pytest.mark.parametrize("in_64", [False, True])
def test_a_parameter_that_was_made_in_another_precision_is_an_array_of_the_host(in_64):
    with jax.enable_x64(in_64):
        made = jnp.asarray([0.1, 0.25])
    kept = parameter(made)
    assert (type(kept), kept.dtype) == (np.ndarray, np.float64)
    np.testing.assert_array_equal(kept, np.asarray(made, np.float64))


def huber_regression():
    return kng.KNG(kng.PseudoHuberLoss(0.7), bounds(2), kng.Box(-3.0, 3.0), 0.3, "replace")


def mean():
    return kng.KNormMechanism(kng.Bounds(x=(np.zeros(2), 0.7), intercept=False), 0.3, "replace")


def density(mechanism):
    data = mechanism.prepare(np.linspace(-1.0, 1.0, 9)[:, None], np.linspace(0.0, 1.0, 9))
    return lambda: mechanism.log_density(np.array([0.1, 0.2]), data)


def own_loss(loss):
    data = Records(np.column_stack([np.ones(5), np.linspace(-1.0, 1.0, 5)]), np.linspace(0.0, 1.0, 5))
    return lambda: loss.gradient(np.array([0.1, 0.2]), data)


# A function of what is made: in the caller's precision, and what is stated or drawn of it whatever that is.
ROOMS = {
    "losses": (lambda: kng.HuberLoss(0.1), own_loss, None),
    "geometry: norms": (lambda: kng.Ellipsoid(np.diag([0.1, 0.3])), lambda norm: lambda: norm(jnp.ones(2)), None),
    "geometry: domains": (lambda: kng.Box(-0.1, 0.3), lambda box: lambda: box.log_density(jnp.zeros(2)), None),
    "data, mechanisms, samplers": (huber_regression, density, lambda made: made.sensitivity_for(2).value),
    "sensitivity": (lambda: bounds(2), lambda made: lambda: made.x_upper * jnp.ones(1), lambda made: radii(made, 2)),
    "owner, inference": (
        mean,
        lambda made: lambda: made.epsilon * jnp.ones(()),
        lambda made: made.noise.expected(np.eye(2), 10).covariance.tolist(),
    ),
    "noise": (lambda: np.array(0.3), lambda epsilon: lambda: renyi_budget(epsilon.view(), 1e-6)[0], None),
}


@both_ways
@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_computes_does_not_depend_on_what_was_traced_before(room, in_64):
    """Bit for bit what an object computes of which nothing was traced."""
    make, of, stated = ROOMS[room]
    touched, untouched = make(), make()
    with jax.enable_x64(in_64):
        kept = jax.make_jaxpr(of(touched))()
    with jax.enable_x64(not in_64):
        found, expected = np.asarray(of(touched)()), np.asarray(of(untouched)())
        assert found.dtype == expected.dtype == (np.float32 if in_64 else np.float64)
        np.testing.assert_array_equal(found, expected)
        assert stated is None or stated(touched) == stated(untouched)
    assert kept


def test_draws_after_a_kept_program_of_float32_are_those_without_one():
    made = kng.KNG(kng.QuantileLoss(0.3), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-3.0, 3.0), 0.3, "replace")
    y = np.linspace(-1.0, 1.0, 21)

    def draws(mechanism, data):
        drawn = kng.sample(mechanism, data, key=kng.research_key(6), num_draws=3, num_chains=1)
        return drawn.theta

    with jax.enable_x64(False):
        data = made.prepare(None, y)
        expected = draws(made, data)
        kept = jax.jit(lambda theta: made.log_density(theta, data))
        kept(jnp.zeros(1))
        np.testing.assert_array_equal(draws(made, data), expected)


NUMPYRO = """
import jax, numpy as np, kngjax as kng
from numpyro.infer import MCMC, NUTS
random = np.random.default_rng(0)
X = random.uniform(-1, 1, (50, 2))
y = X[:, 0] + 0.3 * random.standard_normal(50)
made, other = (
    kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(x=(-1.0, 1.0), columns=2), kng.Box(-3.0, 3.0), 1.0, "replace")
    for _ in range(2)
)
data = made.prepare(X, y)
draw = lambda one, data: kng.sample(one, data, key=kng.research_key(6), num_draws=3, num_chains=1).theta
kernel = MCMC(NUTS(made.numpyro_model(data)), num_warmup=5, num_samples=5, progress_bar=False)
kernel.run(jax.random.key(1))
assert kernel.get_samples()["theta"].dtype == np.float32
assert made.sensitivity == other.sensitivity
np.testing.assert_array_equal(draw(made, data), draw(other, other.prepare(X, y)))
assert np.all(np.abs(kng.release(made, X, y, progress=False).value) <= 3.0)
kernel.run(jax.random.key(2))
assert kernel.get_samples()["theta"].dtype == np.float32
"""


@pytest.mark.slow
def test_a_run_of_numpyro_leaves_the_mechanism_as_it_was():
    subprocess.run([sys.executable, "-c", NUMPYRO], check=True, cwd=ROOT)
