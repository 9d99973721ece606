"""An example of every public loss, norm, domain, mechanism and sampler, made of what its constructor asks for."""

import inspect

import numpy as np
import numpyro.distributions as dist

import kngjax as kng
from kngjax.core import registry
from kngjax.data.records import Records

KINDS = ("losses", "norms", "domains", "mechanisms", "samplers")
PARTS = tuple(kind for kind in KINDS if kind != "mechanisms")
CLASSES = {(kind, name): one for kind in KINDS for name, one in registry.classes(kind).items()}
# Two shapes for all: 40 records with four coefficients, and at night with two.
RECORDS, MANY, FEW = 40, 4, 2


def bounds(dimension, with_response=True):
    """Bounds of an intercept and `dimension` - 1 columns."""
    columns = np.linspace(1.0, 2.0, dimension - 1)
    return kng.Bounds(x=(-columns, columns), y=(0.0, 1.0) if with_response else None)


# What constructors ask for by these names.
ARGUMENTS = {
    "tau": lambda dimension: 0.3,
    "bandwidth": lambda dimension: 0.25,
    "k": lambda dimension: 1.5,
    "limit": lambda dimension: 1.0,
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


def arguments(one, dimension=MANY):
    """Arguments that a constructor needs, and those that a mechanism could leave out only with another choice."""
    own, needed = ARGUMENTS | OWN.get(one, {}), {}
    for name, parameter in inspect.signature(one).parameters.items():
        if parameter.default is parameter.empty or (name in own and name not in OPTIONAL):
            assert name in own, f"{one.__name__} asks for {name}: give an example of it here"
            needed[name] = own[name](dimension)
    return needed


def example(one, dimension=MANY):
    return one(**arguments(one, dimension))


def of_kinds(*kinds):
    return [(f"{kind}: {name}", one) for (kind, name), one in CLASSES.items() if kind in kinds]


def records(dimension, seed=0):
    random = np.random.default_rng(seed)
    x = np.column_stack([np.ones(RECORDS), random.uniform(-1.0, 1.0, (RECORDS, dimension - 1))])
    return Records(x, np.asarray(random.uniform(size=RECORDS) < 0.5, dtype=np.float64))
