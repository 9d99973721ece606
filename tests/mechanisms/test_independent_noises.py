"""Every noise has a key of its own: no key is consumed twice in one draw, and none that others were made from.

JAX follows every key through the program of a draw (`jax.debug_key_reuse`), whatever the values: two noises from one
key are an error here, though each alone has its law.
"""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.releases.chains import draw
from tests.made_once import MadeOnce

GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.uniform(-1.0, 1.0, (30, 2)), GENERATOR.uniform(-1.0, 1.0, 30)
BOUNDS = kng.Bounds(x=([-1.0] * 2, [1.0] * 2), y=(-1.0, 1.0))
PLANE = kng.Bounds(x=([-1.0] * 2, [1.0] * 2), y=(-1.0, 1.0), intercept=False)
COLUMNS, NUMBERS = kng.Bounds(x=([-1.0] * 2, [1.0] * 2), intercept=False), kng.Bounds(y=(-1.0, 1.0))
BALL, HUBER = kng.L1Ball(2.0), kng.PseudoHuberLoss(0.5)


def irls(**settings):
    return kng.PrivateIRLS(BOUNDS, 1.0, **{"delta": 1e-6, "adjacency": "replace", "iterations": 2, **settings})


def k_norm(norm):
    return kng.KNormMechanism(COLUMNS, 1.0, "replace", norm)


DIRECT = MadeOnce(
    {
        "AdaSSP": lambda: kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"),
        "AdaOPS": lambda: kng.AdaOPS(BOUNDS, 1.0, 1e-6, "replace"),
        "reweighted, Gaussian": lambda: irls(),
        "reweighted, Laplace": lambda: irls(
            delta=None, moment_noise="laplace", matrix_noise="laplace", accounting="basic"
        ),
        "reweighted, Wishart": lambda: irls(matrix_noise="wishart", accounting="basic"),
        "mean, box": lambda: k_norm(None),
        "mean, l1": lambda: k_norm(kng.L1()),
        "mean, l2": lambda: k_norm(kng.L2()),
        "mean, ellipsoid": lambda: k_norm(kng.Ellipsoid(np.eye(2))),
        "mean, polytope": lambda: k_norm(kng.Polytope([[1.0, 1.0], [1.0, -1.0]])),
        "objective": lambda: kng.ObjectivePerturbation(kng.SquaredLoss(), BOUNDS, BALL, 1.0, "replace"),
        "objective, searched": lambda: kng.ObjectivePerturbation(HUBER, BOUNDS, BALL, 1.0, "replace"),
        "output": lambda: kng.OutputPerturbation(HUBER, BOUNDS, 10.0, 1.0, 1e-6, "replace"),
        "posterior": lambda: kng.PosteriorSample(BOUNDS, 1000.0, 1.0, "replace", 100, 1e-6),
        "quantile": lambda: kng.PrivateQuantile(0.5, NUMBERS, 1.0, "replace"),
        "quantiles, split": lambda: kng.PrivateQuantile([0.2, 0.5], NUMBERS, 1.0, "replace", budget="split"),
        "quantiles, joint": lambda: kng.PrivateQuantile([0.2, 0.5], NUMBERS, 1.0, "replace"),
    }
)


def kng_of(loss, bounds=BOUNDS, domain=BALL):
    return kng.KNG(loss, bounds, domain, 1.0, "replace")


SQUARED, CHECK = kng.SquaredLoss(), kng.QuantileLoss(0.5)
# NUTS and HMC are NumPyro's.
SAMPLED = MadeOnce(
    {
        "rejection": lambda: (kng_of(SQUARED), kng.chains.Exact()),
        "rejection from the base measure": lambda: (
            kng_of(kng.SquaredDistanceLoss(), COLUMNS, kng.BaseMeasure(dist.Normal(0.0, 1.0))),
            kng.chains.Exact(),
        ),
        "a line": lambda: (kng_of(CHECK, NUMBERS, kng.Box(-1.0, 1.0)), kng.chains.Exact()),
        "LineGibbs": lambda: (kng_of(CHECK), kng.chains.LineGibbs(num_sweeps=2)),
        "SliceGibbs": lambda: (kng_of(SQUARED), kng.chains.SliceGibbs(num_sweeps=2)),
        "CoordinateWalk": lambda: (kng_of(CHECK), kng.chains.CoordinateWalk(num_sweeps=2, tuning="public")),
        "EnsembleWalk": lambda: (kng_of(CHECK), kng.chains.EnsembleWalk(num_sweeps=2)),
        "GradientSpace": lambda: (kng_of(HUBER), kng.chains.GradientSpace(num_sweeps=2)),
    }
)


def data_of(mechanism):
    if mechanism.bounds.x_lower is None:
        return mechanism.prepare(y=Y)
    return mechanism.prepare(X, Y if mechanism.loss.has_response else None)


def followed(program, compiled):
    """Trace a program of one key while JAX follows all keys in it; or run it where it cannot be traced."""
    with jax.debug_key_reuse(True):
        if compiled:
            jax.eval_shape(program, kng.research_key(0))
        else:
            program(kng.research_key(0))


@pytest.mark.parametrize("name", DIRECT)
def test_every_noise_of_a_direct_mechanism_has_a_key_of_its_own(name):
    mechanism = DIRECT[name]
    data = data_of(mechanism)
    followed(lambda key: mechanism.draws(data, key, 2), not mechanism.runs_on_host)


@pytest.mark.parametrize("name", SAMPLED)
def test_every_noise_of_a_sampler_has_a_key_of_its_own(name):
    mechanism, sampler = SAMPLED[name]
    data = data_of(mechanism)
    followed(lambda key: draw(mechanism, data, key, sampler), name != "boxes")


def test_two_noises_from_one_key_are_found():
    def twice(key):
        first, _ = jax.random.split(key)
        return jax.random.normal(first), jax.random.normal(first, (2,))

    def parent(key):
        return jax.random.normal(jax.random.split(key)[0]), jax.random.normal(key)

    for program in (twice, parent):
        with pytest.raises(jax.errors.KeyReuseError):
            followed(program, True)
