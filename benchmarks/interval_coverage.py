"""How often 95% intervals of released coefficients hold the truth, and how wide they are next to those without privacy.

    python -m benchmarks.interval_coverage [--replicates 200] [--records 10000] [--columns 4] [--ways sandwich ...]

Correlated features in [-1, 1], errors of Student's t with 5 degrees whose scale grows with a feature, so that the
covariance of scores is not proportional to that of the features. Every replicate is a table of its own, released by
`kngjax.release` with its exact draws. `naive` is θ̃ ± 1.96 standard errors without privacy, which is what a reader would
do who knows nothing of the noise.
"""

import argparse
import time

import numpy as np

import kngjax as kng

EPSILON, DELTA, LEVEL = 1.0, 1e-6, 0.95
FAMILIES = (
    "KNG",
    "ObjectivePerturbation",
    "AdaSSP",
    "KNormMechanism",
    "OutputPerturbation",
    "ExponentialMechanism",
    "PosteriorSample",
    "AdaOPS",
)
WAYS = {
    "sandwich": lambda rows: kng.Sandwich(),
    "zcdp": lambda rows: kng.Sandwich(noise="zcdp"),
    "groups": lambda rows: kng.Groups(),
    "independent": lambda rows: kng.IndependentErrors(),
    "public": kng.PublicDesign,
}


def features(generator, count, dimension):
    """Columns that share a part, within [-1, 1]."""
    common = generator.uniform(-1.0, 1.0, (count, 1))
    return np.clip(0.5 * common + 0.7 * generator.uniform(-1.0, 1.0, (count, dimension - 1)), -1.0, 1.0)


def table(generator, count, dimension, kind):
    """X, y and the coefficients that generate them, or for means the features' own."""
    x = features(generator, count, dimension)
    if kind == "mean":
        return x, None, np.zeros(dimension - 1)
    beta = np.linspace(1.0, -0.5, dimension)
    predictor = beta[0] + x @ beta[1:]
    if kind == "logistic":
        return x, (generator.uniform(size=count) < 1.0 / (1.0 + np.exp(-predictor))) * 1.0, beta
    noise = (0.75 + 0.5 * x[:, 0]) * generator.standard_t(5, count)
    return x, np.clip(predictor + noise, -8.0, 8.0), beta


def mechanism(kind, family, dimension, count):
    """What is released: by a family's name, with the loss of that kind."""
    sides = [-1.0] * (dimension - 1), [1.0] * (dimension - 1)
    loss = {"logistic": kng.LogisticLoss(), "squared": kng.SquaredLoss()}.get(kind, kng.PseudoHuberLoss(1.0))
    bounds = kng.Bounds(x=sides, y=None if kind == "logistic" else (-8.0, 8.0))
    if family == "KNormMechanism":
        return kng.KNormMechanism(kng.Bounds(x=sides, intercept=False), EPSILON, "replace")
    if family in ("AdaSSP", "AdaOPS"):
        return getattr(kng, family)(bounds, EPSILON, DELTA, "replace")
    if family == "PosteriorSample":
        # Of an exchange worst-case profiles are met by far larger ridges alone.
        return kng.PosteriorSample.calibrated(bounds, 0.3 * count, EPSILON, DELTA, "add_remove", count)
    if family == "OutputPerturbation":
        return kng.OutputPerturbation(loss, bounds, 0.05 * count, EPSILON, DELTA, "replace")
    domain = kng.Box(-2.0, 2.0) if kind == "squared" else kng.Box(-10.0, 10.0)
    return getattr(kng, family)(loss, bounds, domain, EPSILON, "replace")


def without_privacy(loss, x, y):
    """The minimiser and its sandwich standard errors."""
    if loss == "mean":
        return x.mean(axis=0), x.std(axis=0) / np.sqrt(len(x))
    design = np.hstack([np.ones((len(x), 1)), x])
    theta = np.zeros(design.shape[1])
    for _ in range(50):
        score, curvature = scores(loss, design @ theta, y)
        step = np.linalg.solve((design * curvature[:, None]).T @ design, design.T @ score)
        theta = theta - step
        if np.abs(step).max() < 1e-10:
            break
    score, curvature = scores(loss, design @ theta, y)
    inverse = np.linalg.inv((design * curvature[:, None]).T @ design)
    meat = (design * (score**2)[:, None]).T @ design
    return theta, np.sqrt(np.diag(inverse @ meat @ inverse))


def scores(loss, predictor, y):
    """The scores of all records and their slopes."""
    if loss == "logistic":
        probability = 1.0 / (1.0 + np.exp(-predictor))
        return probability - y, probability * (1.0 - probability)
    if loss == "squared":
        return predictor - y, np.ones(len(y))
    root = np.sqrt(1.0 + (y - predictor) ** 2)
    return -(y - predictor) / root, root**-3.0


def main():
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of released coefficients")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--loss", choices=["pseudo-Huber", "logistic", "squared", "mean"], default="pseudo-Huber")
    parser.add_argument("--mechanism", choices=FAMILIES, default="ObjectivePerturbation")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["sandwich"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    rows = features(np.random.default_rng(10**6), 4096, options.columns)
    asked = mechanism(options.loss, options.mechanism, options.columns, options.records)
    print(f"{options.mechanism}, {options.loss}, n = {options.records}, d = {options.columns}, epsilon = {EPSILON:g}")
    tables = [table(generator, options.records, options.columns, options.loss) for _ in range(options.replicates)]
    alone = [without_privacy(options.loss, x, y) for x, y, _ in tables]
    for way in options.ways:
        try:
            plan = kng.WithIntervals(asked, WAYS[way](rows))
        except ValueError as error:
            print(f"{way:12} refused: {error}")
            continue
        start, held, naive, widths, missing = time.time(), [], [], [], 0
        for (x, y, beta), (_, errors) in zip(tables, alone, strict=True):
            released = kng.release(plan, x, y)
            found = released.intervals(LEVEL)
            naive.append(np.abs(released.value - beta) <= 1.96 * errors)
            if isinstance(found, kng.NoInterval):
                missing += 1
                continue
            held.append((found.lower <= beta) & (beta <= found.upper))
            widths.append((found.upper - found.lower) / (2.0 * 1.96 * errors))
        if not held:
            print(f"{way:12} no interval in any of {options.replicates}")
            continue
        share, error = np.mean(held), np.std(np.mean(held, axis=1)) / np.sqrt(len(held))
        print(
            f"{way:12} {options.replicates} replicates, {missing} without an interval: coverage {share:.3f} +- "
            f"{error:.3f}, median width over non-private {np.median(widths):.2f}, naive {np.mean(naive):.3f}, "
            f"{(time.time() - start) / options.replicates:.2f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
