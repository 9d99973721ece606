"""KNG pseudo-Huber regression: draws in the space of gradients, walks, NUTS, and fits without privacy.

`python -m benchmarks.smooth_losses [--records 100000] [--dimension 12] [--nuts-draws 100]`.

Intercept and uniform features in [-1, 1], normal noise, ε = 1, θ in a box of ±10. A release is timed as users call it,
from arrays to the certificate; fits without privacy are the floor. Draws are judged by ArviZ's effective draws per
second of their worst coefficient, over all of the best later run, warm-up included. Peers are
written as most would write them: NumPyro's NUTS on `mechanism.numpyro_model(data)`, one chain, and the same in a loop
that is compiled once, four chains at a time (`kngjax.chains.NUTS`); BlackJAX's random walk with normal steps that
have the limit law's covariance and 2.38/√d of its scale.
"""

import argparse
import functools
import math
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import statsmodels.api as sm
from numpyro.infer import MCMC, NUTS, init_to_value

import kngjax as kng
from kngjax.chains.limit_law import sound_hessian, starts
from kngjax.core.arrays import float64
from kngjax.owner import nonprivate


def records(num_records, dimension):
    """Features and responses."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    return x, x @ np.linspace(-1.0, 1.0, dimension)[:-1] + random.standard_normal(num_records)


def robust_regression(dimension):
    """The mechanism, for d coefficients."""
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)
    return kng.KNG(kng.PseudoHuberLoss(1.0), bounds, kng.Box(-10.0, 10.0), 1.0, "replace")


def timed(function, rounds=3):
    """What a function returns, its first and its best later seconds."""
    taken, found = [], None
    for _ in range(rounds + 1):
        start = time.perf_counter()
        found = function()
        taken.append(time.perf_counter() - start)
    return found, taken[0], min(taken[1:], default=math.nan)


def by_kngjax(mechanism, data, sampler, num_draws, num_chains, num_warmup, rounds=2):
    """Seconds and effective draws per second of `kngjax.sample`."""
    draw = functools.partial(
        kng.sample,
        mechanism,
        data,
        sampler=sampler,
        num_draws=num_draws,
        num_chains=num_chains,
        num_warmup=num_warmup,
        progress=False,
    )
    draws, first, warm = timed(lambda: draw(key=kng.research_key(0)), rounds)
    return {"first": first, "warm": warm, "effective": float(draws.ess().min()) / warm}


def by_numpyro(mechanism, data, num_draws, num_warmup):
    """NUTS with its defaults by NumPyro's `MCMC`, one chain from the non-private estimate: it compiles every run."""
    centre = nonprivate.minimiser(mechanism.loss, data)
    with float64():
        start_at = init_to_value(values={"theta": jnp.asarray(centre)})
        kernel = NUTS(mechanism.numpyro_model(data), init_strategy=start_at)
        mcmc = MCMC(kernel, num_warmup=num_warmup, num_samples=num_draws, progress_bar=False)

        def run():
            mcmc.run(jax.random.PRNGKey(0))
            return np.asarray(mcmc.get_samples()["theta"])

        thetas, first, warm = timed(run, 1)
    return {"first": first, "warm": warm, "effective": _effective(thetas) / warm}


def _effective(thetas):
    """Of the worst coefficient; 0 for chains that never moved, where ArviZ counts every draw."""
    if np.any(np.ptp(thetas.reshape(-1, thetas.shape[-1]), axis=0) == 0.0):
        return 0.0
    return float(kng.owner.Draws(thetas[None] if thetas.ndim == 2 else thetas, "").ess().min())


def by_blackjax(mechanism, data, num_draws):
    """BlackJAX's random walk with normal steps, or None if it is not installed."""
    try:
        import blackjax
    except ImportError:
        return None
    centre = nonprivate.minimiser(mechanism.loss, data)
    with float64():
        target = mechanism.target(data)
        deviation = (data.dimension + 1) / (float(target.rate) * math.sqrt(3.0))
        weights = np.asarray(target.norm.weights)
        spread = np.linalg.inv(np.asarray(sound_hessian(target, centre))) * (weights * deviation)
        sigma = np.linalg.cholesky(spread @ spread.T) * 2.38 / math.sqrt(data.dimension)

        # At the estimate itself the density is largest by far, and a walk would stay.
        theta = starts(target, centre, jax.random.key(1), 1)[0]

        @jax.jit
        def loop(mechanism, data, theta, sigma, key):
            walk = blackjax.normal_random_walk(mechanism.target(data).log_density, sigma)

            def keep(state, key):
                state, _ = walk.step(key, state)
                return state, state.position

            return jax.lax.scan(keep, walk.init(theta), jax.random.split(key, num_draws))[1]

        thetas, first, warm = timed(lambda: np.asarray(loop(mechanism, data, theta, sigma, jax.random.key(0))), 1)
    return {"first": first, "warm": warm, "effective": _effective(thetas) / warm}


def rows(num_records=100_000, dimension=12, num_draws=1000, nuts_draws=100, walk_sweeps=100) -> list[dict]:
    """One row a method: first and warm seconds, effective draws per second of those that draw many."""
    mechanism, (x, y) = robust_regression(dimension), records(num_records, dimension)
    data = mechanism.prepare(x, y)
    table = []

    def add(method, found):
        table.append({"method": method, **({"note": "not installed"} if found is None else found)})

    _, first, warm = timed(lambda: nonprivate.fit(mechanism.loss, mechanism.intake.records(x, y)))
    add("fit without privacy", {"first": first, "warm": warm})
    design = sm.add_constant(x)
    _, first, warm = timed(lambda: sm.RLM(y, design).fit(), 1)
    add("statsmodels RLM", {"first": first, "warm": warm})
    _, first, warm = timed(lambda: kng.release(mechanism, x, y, sampler=kng.chains.GradientSpace(), progress=False))
    add("release, GradientSpace", {"first": first, "warm": warm})
    add("GradientSpace", by_kngjax(mechanism, data, kng.chains.GradientSpace(), num_draws, 4, 0))
    add("CoordinateWalk", by_kngjax(mechanism, data, kng.chains.CoordinateWalk(), walk_sweeps, 4, 0))
    add("NUTS, compiled once", by_kngjax(mechanism, data, kng.chains.NUTS(), nuts_draws, 4, nuts_draws, 1))
    add("NUTS, as NumPyro runs it", by_numpyro(mechanism, data, nuts_draws, nuts_draws))
    add("BlackJAX random walk", by_blackjax(mechanism, data, 10 * walk_sweeps))
    return table


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=12)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--nuts-draws", type=int, default=100)
    options = parser.parse_args()
    print(
        f"KNG pseudo-Huber regression, epsilon = 1, d = {options.dimension}, n = {options.records}, on "
        f"{os.cpu_count()} processors with load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'method':26}{'first, s':>10}{'warm, s':>10}{'effective/s':>13}")
    for row in rows(options.records, options.dimension, options.draws, options.nuts_draws):
        if "note" in row:
            print(f"{row['method']:26}{row['note']:>20}")
            continue
        effective = f"{row['effective']:>13.3g}" if "effective" in row else ""
        print(f"{row['method']:26}{row['first']:>10.3f}{row['warm']:>10.3f}{effective}")


if __name__ == "__main__":
    main()
