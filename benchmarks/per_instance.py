"""Per-instance ε of a million people under OPS, beside SciPy: one person at a time, and vectorised.

Times start after the Cholesky factor. `python -m benchmarks.per_instance [--people 1000000] [--dimension 12]`.

The loop in Python solves for ε by SciPy's brentq for some hundreds of people, and its time is extrapolated in
proportion; the vectorised SciPy halves an interval for all people at once. Both take the profile as it is printed, as
a difference of probabilities, which is right to about 1e-15/δ only.
"""

import argparse
import os
import resource
import time

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import ndtr

from kngjax.owner.per_instance import ridge
from kngjax.owner.per_instance.report import broadcast_numbers, epsilons_at

DELTA, GAMMA = 1e-6, 4.0
LOOP_PEOPLE = 300
HALVINGS = 34


def deltas(epsilon, mu, r, gamma):
    """Both directions of the profile as differences of probabilities."""
    slope = -r * np.sqrt(gamma * mu)
    constant = -0.5 * np.log1p(mu) + gamma * r**2 * mu / (2.0 * (1.0 + mu))
    mean, deviation = -slope / (1.0 + mu), 1.0 / np.sqrt(1.0 + mu)
    root = np.sqrt(slope**2 - 2.0 * mu * (constant - epsilon))
    low, high = (-slope - root) / mu, (-slope + root) / mu
    outside = ndtr((low - mean) / deviation) + ndtr((mean - high) / deviation)
    added = ndtr(low) + ndtr(-high) - np.exp(epsilon) * outside
    root = np.sqrt(np.maximum(slope**2 - 2.0 * mu * (constant + epsilon), 0.0))
    low, high = (-slope - root) / mu, (-slope + root) / mu
    removed = ndtr((high - mean) / deviation) - ndtr((low - mean) / deviation)
    return np.maximum(added, removed - np.exp(epsilon) * (ndtr(high) - ndtr(low)))


def by_loop(x, y, theta, factor):
    """ε of each person, one at a time."""
    epsilons = []
    for features, response in zip(x, y, strict=True):
        inside = features @ scipy.linalg.cho_solve((factor, True), features)
        mu, r = inside / (1.0 - inside), (response - features @ theta) / (1.0 - inside)
        upper = 1e-3
        while deltas(upper, mu, r, GAMMA) > DELTA:
            upper *= 2.0
        epsilons.append(scipy.optimize.brentq(lambda at, mu=mu, r=r: deltas(at, mu, r, GAMMA) - DELTA, 0.0, upper))
    return np.array(epsilons)


def by_scipy(x, y, theta, factor):
    """ε of all people at once, by halving."""
    inside = np.sum(np.square(scipy.linalg.solve_triangular(factor, x.T, lower=True)), axis=0)
    mu, r = inside / (1.0 - inside), (y - x @ theta) / (1.0 - inside)
    lower, upper = np.zeros_like(mu), np.full_like(mu, 1e-3)
    while np.any(outside := deltas(upper, mu, r, GAMMA) > DELTA):
        upper = np.where(outside, 2.0 * upper, upper)
    for _ in range(HALVINGS):
        middle = 0.5 * (lower + upper)
        outside = deltas(middle, mu, r, GAMMA) > DELTA
        lower, upper = np.where(outside, middle, lower), np.where(outside, upper, middle)
    return upper


def by_kngjax(x, y, design):
    """ε of all people, chunk by chunk."""
    influence = ridge.influences(x, y, design, inside=True)
    return epsilons_at(broadcast_numbers(ridge.posterior_sample(influence, GAMMA), len(y)), DELTA)


def objective(x, y, design):
    """The same for objective perturbation, whose profile is an integral."""
    influence = ridge.influences(x, y, design, inside=True)
    pair = broadcast_numbers(ridge.objective_perturbation(influence, 0.5), len(y))
    return epsilons_at(pair, DELTA)


def timed(function, *arguments):
    """What a function returns, and the seconds that it took: on the wall, and of all processors."""
    start, work = time.perf_counter(), time.process_time()
    found = function(*arguments)
    return found, np.array([time.perf_counter() - start, time.process_time() - work])


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=12)
    options = parser.parse_args()
    n, d = options.people, options.dimension
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (n, d))
    y = np.clip(x @ random.uniform(-0.3, 0.3, d) + 0.3 * random.standard_normal(n), -1.0, 1.0)
    design = ridge.design(x.T @ x, x.T @ y, 1.0)

    def memory():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

    before = memory()
    first, first_time = timed(by_kngjax, x, y, design)
    grown = memory() - before
    again, again_time = timed(by_kngjax, x, y, design)
    np.testing.assert_array_equal(first, again)
    some = min(LOOP_PEOPLE, n)
    loop, loop_time = timed(by_loop, x[:some], y[:some], design.theta, design.factor)
    whole, whole_time = timed(by_scipy, x, y, design.theta, design.factor)
    few = min(4096, n)
    objective(x[:few], y[:few], design)
    _, objective_time = timed(objective, x[:few], y[:few], design)
    print(f"{n} people, d = {d}, delta = {DELTA:g}; after the Cholesky factor, on {os.cpu_count()} processors")
    print(f"{'':36}{'seconds':>10}{'of work':>10}")
    rows = {
        "kngjax, first call (with compiling)": (first_time, f"memory grew by {grown:.0f} MiB"),
        "kngjax, again": (again_time, ""),
        "SciPy, vectorised halving": (whole_time, ""),
        "Python loop over brentq": (loop_time * n / some, f"extrapolated from {some} people"),
        "kngjax, objective perturbation": (objective_time * n / few, f"extrapolated from {few} people"),
    }
    for name, ((wall, work), remark) in rows.items():
        print(f"{name:36}{wall:10.2f}{work:10.2f}   {remark}")
    print(f"largest difference of epsilon: to SciPy {np.max(np.abs(again - whole)):.1e}, ", end="")
    print(f"to the loop {np.max(np.abs(again[:some] - loop)):.1e}")


if __name__ == "__main__":
    main()
