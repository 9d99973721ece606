"""A table and estimators for it, with all public facts."""

import functools

import numpy as np
import pandas as pd

from kngjax.sklearn import (
    PrivateLinearRegressor,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateQuantileRegressor,
    PrivateRobustRegressor,
)

BOUNDS = {"age": (20, 70), "skill": (0, 10)}
# Few records at small ε: what public facts say is little but noise is released all the same.
COMMON = {"adjacency": "replace", "bounds": BOUNDS, "force": True}
SECRET = 4711.25


def people(count=2000):
    """Columns, their order of no importance, and a response that is linear in them."""
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"skill": generator.uniform(0, 10, count), "age": generator.uniform(20, 70, count)})
    y = pd.Series(1.0 + 0.5 * X["skill"] - 0.02 * X["age"] + 0.2 * generator.standard_normal(count), name="wage")
    return X, y


X, Y = people()


def linear(**changed):
    return PrivateLinearRegressor(**{"epsilon": 1.0, "bounds_y": (-2, 8)} | COMMON | changed)


def logistic(**changed):
    return PrivateLogisticRegression(**{"epsilon": 1.0} | COMMON | changed)


EVERY = {
    "linear": linear(epsilon=20.0),
    "adassp": linear(epsilon=20.0, delta=1e-6),
    "robust": PrivateRobustRegressor(epsilon=20.0, bounds_y=(-2, 8), **COMMON),
    "quantile": PrivateQuantileRegressor(epsilon=20.0, bounds_y=(-2, 8), quantile=0.5, **COMMON),
    "poisson": PrivatePoissonRegressor(epsilon=20.0, bounds_y=(0, 20), **COMMON),
    "logistic": logistic(epsilon=20.0),
}


@functools.cache
def fitted(name):
    """An estimator like that of this name, fitted without a ledger, once a session; not to be changed."""
    return type(EVERY[name])(**EVERY[name].get_params()).fit(X, response_for(name))


def response_for(name):
    """What the estimator of this name explains."""
    if name == "logistic":
        return Y.gt(Y.median()).astype(int)
    return Y if name != "poisson" else np.random.default_rng(1).poisson(np.exp(0.2 * X["skill"]))
