"""Exact draws of KNG with smooth losses: acceptance, set-up and time a draw, beside one fit and two Markov chains.

`python -m benchmarks.exact_smooth [--loss pseudo_huber] [--sizes 2:200 5:10000 12:100000] [--epsilons 0.1 1]
[--peers 12:100000] [--hard 5 12] [--evaluations 1000000] [--data-sets 3:1000]`.

Features uniform on [-1, 1] and an intercept, θ in an l_1 ball. *fit*: Newton's method to the estimate without privacy.
*set-up*: the estimate, the certificate about it and the envelope, once compiled. *draw*: in batches. *release*:
one draw as users call it, warm. *excess*: log of the envelope's mass in units of the density's own where n is large, so
about the log of the proposals a draw. Cells whose excess is above 12 are not drawn. *hard*: the excess at n·ε = 1500d²,
from where `release` draws exactly unasked, on designs that are hard for it. *evaluations*: of the bound E(z) of
log det H₀ - log det H(θ(z)) on these designs, so many a loss, at θ on all scales about the estimate, some in the
directions in which one record moves it, and all over Θ: by how much E is above at least, and how often it is below.
*data sets*: pseudo-Huber regression of many made-up data sets by `kng.simulate`, in batches of one program, and one
after another on the host, as a release draws; without compiling.
Peers are those of `benchmarks.smooth_losses`, judged by effective draws per second of their worst coefficient.
"""

import argparse
import math
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

import kngjax as kng
from benchmarks.smooth_losses import by_kngjax, by_numpyro, timed
from kngjax.core.arrays import float64
from kngjax.owner import nonprivate
from kngjax.releases.chains import estimate
from kngjax.samplers.exact.smooth.certificate import bound_log_determinant
from kngjax.samplers.exact.smooth.search import draw_from, prepare
from kngjax.samplers.newton import evaluate, log_determinant

LOSSES = {
    "pseudo_huber": (kng.PseudoHuberLoss(0.3), None, 15.0),
    "logistic": (kng.LogisticLoss(), None, 5.0),
    "smoothed_quantile": (kng.SmoothedQuantileLoss(0.5, 0.3), None, 15.0),
    "poisson": (kng.PoissonLoss(), (0.0, 8.0), 1.5),
}
HOPELESS = 12.0
# What envelopes are raised by, for float64.
MARGIN = 1e-6


def problem(name, dimension, num_records, epsilon):
    """A mechanism and records that it was not made for."""
    loss, y_bounds, radius = LOSSES[name]
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    slopes = np.linspace(-1.0, 1.0, dimension)[1:] / dimension
    predictors = 0.2 + x @ slopes
    y = responses(name, predictors, random)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=y_bounds, columns=dimension - 1)
    return kng.KNG(loss, bounds, kng.L1Ball(radius), epsilon, "replace"), x, y


def responses(name, predictors, random, wild=False):
    """Responses of a loss; `wild`: with residuals of Student's law with 1.2 degrees of freedom."""
    match name:
        case "logistic":
            return (random.uniform(size=predictors.size) < 1.0 / (1.0 + np.exp(-predictors))).astype(float)
        case "poisson":
            return np.minimum(random.poisson(np.exp(np.minimum(predictors, 3.0))), 8).astype(float)
    residuals = random.standard_t(1.2, predictors.size) if wild else 0.5 * random.standard_normal(predictors.size)
    return predictors + residuals


def row(name, dimension, num_records, epsilon, num_draws) -> dict:
    """What one cell found, in seconds."""
    mechanism, x, y = problem(name, dimension, num_records, epsilon)
    with float64():
        data = mechanism.prepare(x, y)
        _, _, fit = timed(lambda: nonprivate.fit(mechanism.loss, data))
        target = mechanism.target(data)
        envelope, _, set_up = timed(lambda: prepare(target, estimate(mechanism, data)), 1)
        excess = float(envelope.log_excess)
        found = {"d": dimension, "n": num_records, "epsilon": epsilon, "fit": fit, "set_up": set_up, "excess": excess}
        if excess > HOPELESS and not mechanism.exponent.log_range(dimension, num_records) < HOPELESS:
            return found
        drawn, _, batch = timed(lambda: draw_from(envelope, target, jax.random.key(1), num_draws, math.inf), 1)
    _, _, release = timed(lambda: kng.release(mechanism, x, y, sampler=kng.Exact(), progress=False), 2)
    acceptance = drawn.accepted / drawn.proposals
    return found | {"acceptance": acceptance, "draw": batch / num_draws, "release": release}


def hard(kind, dimension, num_records, random):
    """Features of correlation .99; with heavy tails; a third of them dummies that are 1 for one in a hundred."""
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    match kind:
        case "correlated":
            common = random.uniform(-1.0, 1.0, (num_records, 1))
            return np.clip(math.sqrt(0.99) * common + 0.1 * x, -1.0, 1.0)
        case "heavy":
            return np.clip(0.05 * random.standard_t(1.5, x.shape), -1.0, 1.0)
        case "rare":
            dummies = max(1, (dimension - 1) // 3)
            x[:, :dummies] = random.random((num_records, dummies)) < 0.01
    return x


def hard_targets(name, dimension, constant):
    """What is drawn from on each hard design of one loss at n·ε = constant·d², ε = 1, with its envelope."""
    loss, y_bounds, radius = LOSSES[name]
    kinds = ["correlated", "heavy", "rare"]
    kinds += {"logistic": ["separated"], "poisson": []}.get(name, ["wild residuals"])
    for kind in kinds:
        random, num_records = np.random.default_rng(0), int(constant * dimension**2)
        x = hard(kind, dimension, num_records, random)
        slopes = np.linspace(-1.0, 1.0, dimension - 1)
        slopes = slopes * (4.0 / np.linalg.norm(slopes) if kind == "separated" else 1.0 / dimension)
        y = responses(name, 0.2 + x @ slopes, random, wild=kind == "wild residuals")
        bounds = kng.Bounds(x=(-1.0, 1.0), y=y_bounds, columns=dimension - 1)
        mechanism = kng.KNG(loss, bounds, kng.L1Ball(radius), 1.0, "replace")
        with float64():
            data = mechanism.prepare(x, y)
            target = mechanism.target(data)
            yield kind, target, prepare(target, estimate(mechanism, data))


def hard_rows(name, dimension, constant=1500.0):
    """The excess of each hard design of one loss."""
    for kind, _, envelope in hard_targets(name, dimension, constant):
        yield {"design": kind, "excess": float(envelope.log_excess)}


def evaluations(name, dimension, number, constant=100.0):
    """The least of E(z) + log det H(θ(z)) - log det H₀ on each hard design, and how often it is below 0.

    In thirds, of which the first two keep what lies in Θ: random directions, and those of H₀^{-1}x_i, at distances from
    a hundredth to a hundred times typical noise; and all of Θ, evenly.
    """
    slack_of = jax.jit(_slacks)
    found = list(hard_targets(name, dimension, constant))
    for kind, target, envelope in found:
        certificate, random, slacks, below, left = envelope.certificate, np.random.default_rng(1), np.inf, 0, 0
        while left < number / len(found):
            theta = _about(target, certificate, random)
            with float64():
                slack, are_within = map(np.asarray, slack_of(target, certificate, theta))
            slack = slack[are_within] - float(log_determinant(certificate.point))
            # What is no number counts as below.
            left, below = left + slack.size, below + int(np.sum(~(slack >= -MARGIN)))
            slacks = min(slacks, slack.min(initial=np.inf))
        yield {"design": kind, "number": left, "least": slacks, "below": below}


def _slacks(target, certificate, theta):
    points = jax.vmap(evaluate, (None, 0))(target, theta)
    bounds = jax.vmap(bound_log_determinant, (None, None, 0))(certificate, target.loss, points.gradient)
    slack = bounds + jax.vmap(log_determinant)(points)
    return slack, jax.vmap(target.domain.contains)(theta)


def _about(target, certificate, random, batch=2000):
    dimension = target.dimension
    factor, rows = np.asarray(certificate.point.inverse_factor), np.asarray(target.data.x)
    directions = random.standard_normal((2 * batch, dimension))
    directions[batch:] = (
        rows[random.integers(len(rows), size=batch)] @ factor.T * random.choice([-1.0, 1.0], (batch, 1))
    )
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.exp(random.uniform(np.log(1e-2), np.log(1e2), (2 * batch, 1)))
    near = directions * lengths * certificate.spread * dimension / float(target.rate)
    key = jax.random.key(int(random.integers(2**31)))
    far = np.asarray(target.domain.draw(key, (batch,), dimension))
    return np.concatenate([np.asarray(certificate.point.theta) + near @ factor, far])


def peers(name, dimension, num_records, nuts_draws=50) -> list[dict]:
    """Effective draws per second of exact draws, gradients' chain and NUTS, at ε = 1."""
    mechanism, x, y = problem(name, dimension, num_records, 1.0)
    data = mechanism.prepare(x, y)
    return [
        {"method": "Exact", **by_kngjax(mechanism, data, kng.Exact(), 250, 4, 0)},
        {"method": "GradientSpace", **by_kngjax(mechanism, data, kng.GradientSpace(), 250, 4, 0)},
        {"method": "NUTS, as NumPyro runs it", **by_numpyro(mechanism, data, nuts_draws, nuts_draws)},
    ]


def of_data_sets(dimension, num_records, on_the_host=20) -> tuple[float, float]:
    """Milliseconds a data set and draw, in batches and on the host."""

    def design(key, count):
        x_key, noise_key = jax.random.split(key)
        x = jax.random.uniform(x_key, (count, dimension - 1), minval=-1.0)
        y = x.sum(axis=1) + 0.5 * jax.random.normal(noise_key, (count,))
        return x, y, jnp.append(0.0, jnp.ones(dimension - 1))

    bounds = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-3.0, 3.0), 1.0, "replace")
    number = min(1024, max(64, 10**6 // num_records))
    settings = {"num_records": num_records, "sampler": kng.Exact(), "progress": False}
    kng.simulate(design, mechanism, number, kng.research_key(0), **settings)
    begun = time.perf_counter()
    kng.simulate(design, mechanism, number, kng.research_key(1), **settings)
    in_batches = (time.perf_counter() - begun) / number
    with float64():
        for turn in range(2):
            begun = time.perf_counter()
            for place in range(on_the_host):
                key = jax.random.fold_in(kng.research_key(turn), place)
                data = mechanism.prepare(*map(np.asarray, design(key, num_records)[:2]))
                kng.draw(mechanism, data, key, kng.Exact(), estimate(mechanism, data))
    return 1e3 * in_batches, 1e3 * (time.perf_counter() - begun) / on_the_host


def sizes(values):
    """Pairs (d, n) of texts like 12:100000."""
    return [tuple(map(int, value.split(":"))) for value in values]


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument(
        "--sizes",
        nargs="*",
        default=["2:200", "2:10000", "5:200", "5:1000", "5:10000", "12:10000", "12:100000", "12:1000000", "30:300000"],
    )
    parser.add_argument("--draws", type=int, default=200, help="in a batch")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--peers", nargs="*", default=["12:100000"])
    parser.add_argument("--hard", nargs="*", type=int, default=[5])
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--data-sets", nargs="*", default=["3:1000", "3:10000", "5:3000"])
    options = parser.parse_args()
    print(f"on {os.cpu_count()} processors with load {os.getloadavg()[0]:.1f}; seconds")
    print(
        f"{'loss':18}{'d':>4}{'n':>9}{'epsilon':>9}{'acceptance':>12}{'excess':>9}{'fit':>9}{'set-up':>9}{'draw':>9}"
        f"{'release':>9}{'draw/fit':>10}{'set-up/fit':>11}"
    )
    for name in options.loss:
        for dimension, num_records in sizes(options.sizes):
            for epsilon in options.epsilons:
                found = row(name, dimension, num_records, epsilon, options.draws)
                text = f"{name:18}{dimension:>4}{num_records:>9}{epsilon:>9g}"
                if "draw" not in found:
                    print(
                        f"{text}{'-':>12}{found['excess']:>9.3g}{found['fit']:>9.3f}{found['set_up']:>9.3f}", flush=True
                    )
                    continue
                print(
                    f"{text}{found['acceptance']:>12.3g}{found['excess']:>9.3g}{found['fit']:>9.3f}"
                    f"{found['set_up']:>9.3f}{found['draw']:>9.4f}{found['release']:>9.3f}"
                    f"{found['draw'] / found['fit']:>10.2f}{found['set_up'] / found['fit']:>11.1f}",
                    flush=True,
                )
    for dimension in options.hard:
        print(f"\nn*epsilon = 1500 d^2, d = {dimension}: the excess on hard designs")
        for name in options.loss:
            for found in hard_rows(name, dimension):
                print(f"{name:18}{found['design']:18}{found['excess']:>9.2f}", flush=True)
    for dimension in options.hard if options.evaluations else []:
        print(f"\nn*epsilon = 100 d^2, d = {dimension}: by how much E(z) is above the log determinant")
        print(f"{'loss':18}{'design':18}{'evaluations':>12}{'least':>12}{'below':>8}")
        for name in options.loss:
            for found in evaluations(name, dimension, options.evaluations):
                text = f"{name:18}{found['design']:18}{found['number']:>12}"
                print(f"{text}{found['least']:>12.2g}{found['below']:>8}", flush=True)
    for dimension, num_records in sizes(options.peers):
        for name in options.loss:
            print(f"\n{name}, d = {dimension}, n = {num_records}, epsilon = 1")
            print(f"{'method':26}{'first, s':>10}{'warm, s':>10}{'effective/s':>13}")
            for peer in peers(name, dimension, num_records):
                print(
                    f"{peer['method']:26}{peer['first']:>10.3f}{peer['warm']:>10.3f}{peer['effective']:>13.3g}",
                    flush=True,
                )
    for dimension, num_records in sizes(options.data_sets):
        in_batches, on_the_host = of_data_sets(dimension, num_records)
        print(
            f"\ndata sets of d = {dimension}, n = {num_records}, ms each: {in_batches:.2f} in batches",
            end="",
            flush=True,
        )
        print(f", {on_the_host:.1f} on the host", flush=True)


if __name__ == "__main__":
    main()
