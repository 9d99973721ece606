"""Draws for the squared loss: exact ones by n for Figure 1's design, and how fast `SliceGibbs` forgets.

`python -m benchmarks.squared_loss [--replicates 100] [--sizes 100 1000 ...] [--dimensions 12 20 50]`.

Acceptance is of one data set, whose draws a second are by batches of 1,000; a cell is one draw for each data set,
mapped. Statistics of more than 100,000 rows are those of 100,000, scaled up: what a draw costs does not depend on n.
Sweeps an independent draw are sweeps over the smallest bulk effective sample size of any coefficient and ‖θ‖_1; that of
the score follows after a slash.
"""

import argparse
import os
import time

import jax
import numpy as np

import kngjax as kng
from kngjax.chains.exact.exact import quadratic_search
from kngjax.data.records import QuadraticSummary

MOST_ROWS = 100_000
BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))


def data_set(num_records, dimension, seed, correlation=0.0):
    """(n, X'X, X'Y', Y''Y') of Algorithm 1, with features whose ranks are correlated if asked for."""
    random = np.random.default_rng([seed, num_records])
    rows = min(num_records, MOST_ROWS)
    common, own = random.standard_normal((rows, 1)), random.standard_normal((rows, dimension - 1))
    normal = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    x = np.column_stack([np.ones(rows), np.asarray(2.0 * jax.scipy.stats.norm.cdf(normal) - 1.0)])
    truth = np.concatenate([[0.0], np.linspace(-1.0, 1.0, dimension)[:-1]])
    y = x @ truth + random.standard_normal(rows)
    y /= np.max(np.abs(y))
    weight = num_records / rows
    return QuadraticSummary(
        np.asarray(float(num_records)), weight * x.T @ x, weight * x.T @ y, np.asarray(weight * y @ y)
    )


def mechanisms():
    """KNG and the exponential mechanism of Figure 1."""
    parts = (kng.SquaredLoss(), BOUNDS, kng.L1Ball(1.0), 1.0, "replace")
    return {"KNG": kng.KNG(*parts), "exponential": kng.ExponentialMechanism(*parts)}


@jax.jit
def many(mechanism, data, key):
    """A thousand draws of one data set: how many were found, of how many proposals."""
    search = quadratic_search(mechanism.target(data), key, 1000, 10**8)
    return search.count, search.tried, search.kept


@jax.jit
def cell(mechanism, data, keys):
    """One draw for each data set."""
    return jax.vmap(lambda data, key: kng.draw(mechanism, data, key, kng.chains.Exact()))(data, keys)


def timed(function, *arguments):
    """What a compiled function returns, and its warm seconds."""
    jax.block_until_ready(function(*arguments))
    start = time.perf_counter()
    found = jax.block_until_ready(function(*arguments))
    return found, time.perf_counter() - start


def exact_row(mechanism, num_records, dimension, replicates):
    """Acceptance, draws a second, seconds a cell, and whether every search found its draw."""
    sets = [data_set(num_records, dimension, seed) for seed in range(replicates)]
    (count, tried, _), seconds = timed(many, mechanism, sets[0], kng.research_key(0))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *sets)
    (_, found), cell_seconds = timed(cell, mechanism, stacked, jax.random.split(kng.research_key(1), replicates))
    return float(count) / float(tried), 1000.0 / seconds, cell_seconds, bool(np.all(found))


def sweeps_a_draw(mechanism, data, num_chains=4, num_draws=1000):
    """Sweeps of `SliceGibbs` an independent draw of θ, and one of the score."""
    draws = kng.sample(
        mechanism,
        data,
        key=kng.research_key(2),
        sampler=kng.chains.SliceGibbs(),
        num_draws=num_draws,
        num_chains=num_chains,
        progress=False,
    )
    norms = np.abs(draws.theta).sum(axis=2, keepdims=True)
    scores = np.asarray(draws.info.log_density)[..., None]
    extended = kng.owner.Draws(np.concatenate([draws.theta, norms, scores], axis=2), "SliceGibbs")
    sweeps = num_chains * num_draws / extended.ess()
    return float(np.max(sweeps[:-1])), float(sweeps[-1])


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**k for k in range(2, 8)])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[12, 20, 50])
    parser.add_argument("--correlations", type=float, nargs="+", default=[0.0, 0.9, 0.99])
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"Exact, d = 12, epsilon = 1, on {os.cpu_count()} processors; {options.replicates} data sets a cell")
    print(f"{'mechanism':14}{'n':>10}{'acceptance':>12}{'draws/s':>10}{'cell, s':>10}")
    for name, mechanism in mechanisms().items():
        for n in options.sizes:
            acceptance, rate, seconds, found = exact_row(mechanism, n, 12, options.replicates)
            print(f"{name:14}{n:>10}{acceptance:>12.2g}{rate:>10.0f}{seconds:>10.3f}{'' if found else '   given up'}")
    print("SliceGibbs, n = 100d: sweeps an independent draw, by the correlation of features")
    print(f"{'mechanism':14}{'d':>10}" + "".join(f"{correlation:>10g}" for correlation in options.correlations))
    for name, mechanism in mechanisms().items():
        for d in options.dimensions:
            sets = [data_set(100 * d, d, 0, correlation) for correlation in options.correlations]
            print(
                f"{name:14}{d:>10}"
                + "".join("{:>6.1f}/{:<3.1f}".format(*sweeps_a_draw(mechanism, data)) for data in sets)
            )


if __name__ == "__main__":
    main()
