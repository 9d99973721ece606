"""What a proof with every rounding costs: lattice releases beside exact draws in real numbers, median regression.

`python -m benchmarks.lattice [--sizes 1000 10000 100000] [--replicates 40]`.

An intercept and a feature uniform in [-1, 1], normal noise of standard deviation .5, ε = 1, θ in the l1 ball of radius
2. The error is the mean of |θ̃ - θ| over the replicates, with its standard error; both mechanisms and the fit without
privacy see the same data. Seconds are those of one draw, data in memory, compiled programs at hand.
"""

import argparse
import os
import time

import numpy as np

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.owner import nonprivate

TRUTH = np.array([0.2, 0.5])


def records(num_records, seed):
    """One feature and the response."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (num_records, 1))
    return x, TRUTH[0] + x @ TRUTH[1:] + 0.5 * random.standard_normal(num_records)


def row(num_records, num_replicates):
    """Errors and seconds of the three ways, each of shape (replicates,)."""
    mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0), columns=1), kng.L1Ball(2.0), 1.0, "replace")
    found = {name: [] for name in ("without privacy", "real numbers", "lattice")}
    for seed in range(num_replicates):
        x, y = records(num_records, seed)
        data = mechanism.prepare(x, y)

        def exact(data=data, seed=seed):
            return kng.sample(mechanism, data, key=kng.research_key(seed), num_draws=1, num_chains=1).theta[0, 0]

        def fit(data=data):
            with float64():
                return np.asarray(nonprivate.minimiser(mechanism.loss, data))

        def lattice(x=x, y=y):
            return kng.release(mechanism, x, y, sampler=kng.Lattice()).value

        for name, way in zip(found, (fit, exact, lattice), strict=True):
            start = time.perf_counter()
            value = way()
            found[name].append((np.linalg.norm(value - TRUTH), time.perf_counter() - start))
    return {name: np.array(values).T for name, values in found.items()}


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lattice", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--replicates", type=int, default=40)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; error (standard error), median seconds of a draw")
    print(f"{'n':>9}" + "".join(f"{name:>32}" for name in ("without privacy", "real numbers", "lattice")))
    for size in options.sizes:
        cells = []
        for errors, seconds in row(size, options.replicates).values():
            spread = errors.std(ddof=1) / np.sqrt(errors.size)
            cells.append(f"{errors.mean():12.3g} ({spread:.2g}) {np.median(seconds):8.2f} s")
        print(f"{size:9d}" + "".join(f"{cell:>32}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
