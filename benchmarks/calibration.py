"""Simulation-based calibration of `kngjax.observe`: parameters from a prior, records, a release, and its posterior.

`python -m benchmarks.calibration` draws parameters from their prior, records by them, a release from those, and then
from the posterior of the parameters given the release alone, by NUTS with four chains. If the likelihood is right, the
rank of the true parameter among draws is uniform (Talts et al. 2018), and intervals of 95% hold it 95 times in 100. A
row for each parameter has the p-value of a test of Kolmogorov and Smirnov, the coverage of central intervals, and the
worst R-hat; one program serves all data sets.
"""

import argparse
import dataclasses
import functools
import json
import time

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import scipy.stats
from numpyro import distributions as dist
from numpyro.infer import NUTS
from numpyro.infer.util import log_density
from tqdm import tqdm

import kngjax as kng
from kngjax.inference.observations import add_likelihood
from kngjax.inference.released_gradients import ReleasedGradient

CHAINS, WARMUP, THIN = 4, 400, 12
# Chebyshev's equally weighted nodes: exact for polynomials up to the seventh degree.
_HALF = np.array([0.323911810519908, 0.529656775285157, 0.883861700758049])
ROWS = np.concatenate([-_HALF[::-1], [0.0], _HALF])[:, None]
BATCH = 25
# For each data set: of NUTS of each chain.
DRAWS = {"nuts": 1500, "importance": 4000}
BOUNDS = {"x": (-1.0, 1.0), "columns": 1}


def robust(epsilon: float) -> kng.KNG:
    """KNG with the pseudo-Huber loss."""
    bounds = kng.Bounds(**BOUNDS)
    return kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-10.0, 10.0), epsilon, "replace")


def logistic(epsilon: float) -> kng.ObjectivePerturbation:
    """Objective perturbation with the logistic loss."""
    return kng.ObjectivePerturbation(kng.LogisticLoss(), kng.Bounds(**BOUNDS), None, epsilon, "replace")


MECHANISMS = {"robust": robust, "logistic": logistic}


def parameters(name, key):
    """(β₀, β₁), and of responses that are numbers σ, from their prior."""
    normal, scale = jax.random.split(key)
    beta = jax.random.normal(normal, (2,))
    sigma = 0.5 * jnp.exp(0.3 * jax.random.normal(scale))
    return beta if name == "logistic" else jnp.append(beta, sigma)


def response(name, x, values):
    """The law of a response, as NumPyro has it."""
    predictor = x @ values[:2]
    return dist.Normal(predictor, values[2]) if name == "robust" else dist.BernoulliLogits(predictor)


def records(name, key, number):
    """Records of one data set, and β."""
    first, second, third = jax.random.split(key, 3)
    values = parameters(name, first)
    x = jax.random.uniform(second, (number, 1), minval=-1.0, maxval=1.0)
    y = response(name, jnp.concatenate([jnp.ones_like(x), x], 1), values).sample(third)
    return x, jnp.asarray(y, x.dtype), values[:2]


def prior(name):
    """The parameters, in NumPyro."""
    values = numpyro.sample("beta", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    if name != "logistic":
        values = jnp.append(values, numpyro.sample("sigma", dist.LogNormal(jnp.log(0.5), 0.3)))
    return numpyro.deterministic("values", values)


def model(name, part, value):
    """The prior, and the likelihood of a released value."""
    values = prior(name)
    rows = np.hstack([np.ones_like(ROWS), ROWS])
    add_likelihood(
        (dataclasses.replace(part, value=value),), lambda x: response(name, x, values), (rows,), part.num_records, "y"
    )


@functools.partial(jax.jit, static_argnames=("name", "part", "num_draws"))
def by_nuts(name, part, values, keys, num_draws):
    """Draws for each released value, shape (data sets, chains, draws, parameters), and which steps diverged."""

    def chain(value, key):
        kernel = NUTS(functools.partial(model, name, part), dense_mass=True, max_tree_depth=7)
        state = kernel.init(key, WARMUP, None, model_args=(value,), model_kwargs={})
        state = jax.lax.fori_loop(0, WARMUP, lambda _, state: kernel.sample(state, (value,), {}), state)

        def kept(state, _):
            state = kernel.sample(state, (value,), {})
            drawn = kernel.postprocess_fn((value,), {})(state.z)["values"]
            return state, (drawn, state.diverging)

        return jax.lax.scan(kept, state, None, length=num_draws)[1]

    return jax.vmap(lambda value, key: jax.vmap(chain, (None, 0))(value, jax.random.split(key, CHAINS)))(values, keys)


@functools.partial(jax.jit, static_argnames=("name", "part", "number"))
def by_importance(name, part, values, keys, number):
    """Weighted draws for each released value: parameters (data sets, draws, parameters), and their log-weights.

    Proposals of β are from its prior, or of Student's t about the value with about the scale that a preview would have,
    half of each; those of σ are from its prior, and those of the score normal.
    """
    slope = np.array([1.0, np.sqrt(3.0)])
    curvature, square = (0.45, 0.1) if name == "robust" else (0.18, 0.18)
    variance = (slope * np.diag(part.scale) / part.num_records) ** 2 + square / part.num_records
    scale = 1.3 * slope * np.sqrt(variance) / curvature
    prior, prior_of_scale = dist.Normal(np.zeros(2), 1.0).to_event(1), dist.LogNormal(np.log(0.5), 0.3)

    def of_draw(value, key):
        keys = jax.random.split(key, 5)
        near = dist.StudentT(4.0, value, scale).to_event(1)
        beta = jnp.where(jax.random.bernoulli(keys[0]), near.sample(keys[1]), prior.sample(keys[2]))
        drawn = {"beta": beta, "y_score": jax.random.normal(keys[3], (2,))}
        log_proposal = jnp.logaddexp(near.log_prob(beta), prior.log_prob(beta))
        log_proposal += jnp.sum(dist.Normal().log_prob(drawn["y_score"]))
        if name == "robust":
            drawn["sigma"] = prior_of_scale.sample(keys[4])
            log_proposal += prior_of_scale.log_prob(drawn["sigma"])
        log_weight = log_density(functools.partial(model, name, part), (value,), {}, drawn)[0] - log_proposal
        return jnp.append(beta, drawn["sigma"]) if name == "robust" else beta, log_weight

    def of_set(arguments):
        value, key = arguments
        return jax.lax.map(lambda key: of_draw(value, key), jax.random.split(key, number), batch_size=250)

    return jax.lax.map(of_set, (values, keys))


def calibrate(
    name: str,
    method: str,
    num_records: int,
    num_sets: int,
    epsilon: float,
    num_draws: int,
    seed: int = 0,
    batch: int = BATCH,
) -> dict:
    """The figures of one row. **Arguments:** `batch`: how many data sets one call of the program has."""
    mechanism, key = MECHANISMS[name](epsilon), kng.research_key(seed)
    sampler = kng.chains.Exact() if name == "robust" else None
    start = time.perf_counter()
    made = kng.simulate(
        functools.partial(records, name), mechanism, num_sets, key, num_records=num_records, sampler=sampler,
        progress=False,
    )  # fmt: skip
    row = {"name": name, "by": method, "n": num_records, "sets": num_sets}
    row["drawn_in"] = round(time.perf_counter() - start, 1)
    with jax.enable_x64(True):
        keys = jax.vmap(jax.random.split)(jax.random.split(jax.random.fold_in(key, num_records), num_sets))[:, 0]
        truth = np.asarray(jax.vmap(lambda one: parameters(name, jax.random.split(one, 3)[0]))(keys))
        # As `simulate` derives the keys of data sets.
        np.testing.assert_allclose(truth[:, : made.truth.shape[-1]], made.truth[0], rtol=1e-12)
        x, y, _ = records(name, key, num_records)
        template = kng.release(mechanism, np.asarray(x), np.asarray(y))
        part = ReleasedGradient.of(kng.Release.from_json(template.to_json()))
        keys, values = jax.random.split(jax.random.key(seed + 1), num_sets), made.theta[0, 0]
        start, parts = time.perf_counter(), []
        for first in tqdm(range(0, num_sets, batch), desc=name):
            some = slice(first, first + batch)
            by = {"nuts": by_nuts, "importance": by_importance}[method]
            drawn = by(name, part, values[some], keys[some], num_draws)
            parts.append(jax.tree.map(np.asarray, drawn))
        row["seconds"] = round(time.perf_counter() - start, 1)
    found, other = jax.tree.map(lambda *pieces: np.concatenate(pieces), *parts)
    if method == "importance":
        weights = np.exp(other - other.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        row["ess_least_and_median"] = np.quantile(1.0 / np.sum(weights**2, axis=1), [0.0, 0.5]).round().tolist()
        return row | calibration(truth, found, weights)
    flat = found.reshape(num_sets, -1, found.shape[-1])
    rhat = np.array([[float(az.rhat(one[:, :, j])) for j in range(found.shape[-1])] for one in found])
    ess = np.array([[float(az.ess(one[:, :, j])) for j in range(found.shape[-1])] for one in found])
    row |= {
        "rhat_median_and_largest": [round(float(np.median(rhat)), 4), round(float(rhat.max()), 4)],
        "ess_median": np.median(ess, axis=0).round().tolist(),
        "rhat_above": {str(limit): int(np.sum(rhat.max(axis=1) >= limit)) for limit in (1.005, 1.01)},
        "ess_per_second": round(float(ess.min(axis=1).sum()) / row["seconds"], 1),
        "divergences": int(other.sum()),
    }
    thin = flat[:, ::THIN]
    return row | calibration(truth, thin, np.full(thin.shape[:2], 1.0 / len(thin[0])))


def calibration(truth: np.ndarray, found: np.ndarray, weights: np.ndarray) -> dict:
    """Of weighted draws (data sets, draws, parameters): are ranks uniform, and do central intervals cover?"""
    ranks = np.sum(weights[:, :, None] * (found < truth[:, None]), axis=1)
    mean = np.sum(weights[:, :, None] * found, axis=1)
    spread = np.sqrt(np.sum(weights[:, :, None] * (found - mean[:, None]) ** 2, axis=1))
    return {
        "p": [float(f"{scipy.stats.kstest(one, 'uniform').pvalue:.3g}") for one in ranks.T],
        "coverage": np.mean((ranks > 0.025) & (ranks < 0.975), axis=0).round(3).tolist(),
        "mean_z": np.mean((truth - mean) / spread, axis=0).round(3).tolist(),
    }


def main() -> None:
    """Prints a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mechanism", choices=MECHANISMS, default="robust")
    parser.add_argument("--by", choices=("nuts", "importance"), default="nuts")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--data-sets", type=int, default=500)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=None, help="for each data set, by NUTS of each chain")
    parser.add_argument("--batch", type=int, default=BATCH, help="data sets at once: on an accelerator all of them")
    given = parser.parse_args()
    draws = given.draws or DRAWS[given.by]
    sizes = given.records, given.data_sets
    row = calibrate(given.mechanism, given.by, *sizes, given.epsilon, draws, batch=given.batch)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
