"""KNG median regression: exact draws by boxes, draws along lines, the papers' walk, statsmodels' fit.

`python -m benchmarks.quantile_regression [--sizes 2:1000000 3:100000 4:30000 10:100000]`.

The model has an intercept and uniform features in [-1, 1], normal noise, ε = 1, θ in a box of ±20. A release is timed
as users call it, from arrays to the certificate, in a process that has compiled its programs; further draws per second
are those of one call for many, less the build. Chains are judged by ArviZ's effective draws per second of their worst
coefficient, without the warm-up. The fit without privacy is the floor: no private release can be had for less.
"""

import argparse
import os
import time

import numpy as np
import statsmodels.api as sm

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.owner import nonprivate
from kngjax.samplers.exact import box_tree

SIZES = ((2, 1_000_000), (3, 100_000), (4, 30_000), (10, 100_000))
REACH = 20.0


def records(dimension, num_records):
    """Features and responses."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    return x, x.sum(axis=1) + random.standard_normal(num_records)


def median_regression(dimension):
    """The mechanism, for d coefficients."""
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)
    return kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-REACH, REACH), 1.0, "replace")


def seconds(function):
    """What a function returns, and its seconds when it is called for the second time."""
    function()
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def by_boxes(mechanism, x, y, num_draws):
    """Seconds of a release and of a build for many draws, its boxes, the acceptance, and draws per second after it."""
    _, release = seconds(lambda: kng.release(mechanism, x, y, sampler=kng.Exact()))
    data = mechanism.prepare(x, y)
    with float64():
        target = mechanism.target(data)
        centre = nonprivate.minimiser(mechanism.loss, data)
        tree, build = seconds(lambda: box_tree.build(target, centre, num_draws))
        (draws, succeeded), drawing = seconds(lambda: tree.draws(kng.research_key(1), num_draws, 10**9))
    assert succeeded
    assert np.all(np.isfinite(draws))
    return {
        "release": release,
        "build": build,
        "boxes": tree.boxes.lower.size,
        "acceptance": tree.acceptance,
        "draws": num_draws / drawing,
    }


def by_chains(mechanism, x, y, sampler, num_draws, num_warmup):
    """Effective draws per second of four chains, and R-hat."""
    data = mechanism.prepare(x, y)
    settings = {"num_draws": num_draws, "num_warmup": num_warmup, "progress": False}
    draws, taken = seconds(lambda: kng.sample(mechanism, data, key=kng.research_key(2), sampler=sampler, **settings))
    share = num_draws / (num_draws + num_warmup)
    return {"effective": float(draws.ess().min()) / (share * taken), "rhat": float(draws.rhat().max())}


def without_privacy(x, y):
    """Seconds of statsmodels' median regression."""
    design = sm.add_constant(x)
    start = time.perf_counter()
    sm.QuantReg(y, design).fit(q=0.5)
    return time.perf_counter() - start


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=[f"{d}:{n}" for d, n in SIZES], metavar="COEFFICIENTS:RECORDS")
    parser.add_argument("--line-sweeps", type=int, default=100)
    parser.add_argument("--walk-sweeps", type=int, default=1000)
    options = parser.parse_args()
    print(f"KNG median regression, epsilon = 1, on {os.cpu_count()} processors; seconds warm")
    for size in options.sizes:
        dimension, num_records = (int(part) for part in size.split(":"))
        mechanism, (x, y) = median_regression(dimension), records(dimension, num_records)
        print(f"\nd = {dimension}, n = {num_records}: statsmodels without privacy {without_privacy(x, y):.2f} s")
        if dimension <= kng.Exact().most_coefficients:
            found = by_boxes(mechanism, x, y, 2000)
            print(
                "  Exact           release {release:.2f} s; for 2000 draws: build {build:.2f} s, {boxes} boxes, about "
                "{acceptance:.3f} accepted, {draws:.0f} draws a second".format(**found)
            )
        for sampler, num_draws, num_warmup in (
            (kng.LineGibbs(), options.line_sweeps, 20),
            (kng.CoordinateWalk(), options.walk_sweeps, 250),
        ):
            found = by_chains(mechanism, x, y, sampler, num_draws, num_warmup)
            print(
                f"  {type(sampler).__name__:15} {found['effective']:.3g} effective draws a second, "
                f"R-hat {found['rhat']:.3f}"
            )


if __name__ == "__main__":
    main()
