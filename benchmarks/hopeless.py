"""What `Study` refuses as little but noise, against what mechanisms release of made-up tables.

`python -m benchmarks.hopeless` prints a row for each loss, number of coefficients and number of records at ε = 1: what
`kngjax.preview` says, and of released draws the median of the largest error, in units of what the bounds leave room
for, and the share of draws where that exceeds 1.
"""

import argparse

import numpy as np

import kngjax as kng

Y = (-5.0, 5.0)


def mechanism(name: str, dimension: int, count: int, epsilon: float):
    """As `Study` makes it of responses in [-5, 5], or of odds or counts, and columns in [-1, 1]."""
    bounds, box = kng.Bounds(x=(-1.0, 1.0), y=Y, columns=dimension - 1), kng.Box(-15.0, 15.0)
    if name in ("median", "tau = .9"):
        return kng.KNG(kng.QuantileLoss(0.5 if name == "median" else 0.9), bounds, box, epsilon, "replace")
    if name in ("robust", "robust, objective"):
        kind = kng.KNG if name == "robust" else kng.ObjectivePerturbation
        k = kng.PseudoHuberLoss.public_threshold(count, dimension, 1.0, epsilon)
        return kind(kng.PseudoHuberLoss(k), bounds, box, epsilon, "replace")
    if name == "squared":
        return kng.KNG(kng.SquaredLoss(), bounds, box, epsilon, "replace")
    if name == "adassp":
        return kng.AdaSSP(bounds, epsilon, 1e-6, "replace")
    if name == "logistic":
        plain = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)
        kind = kng.KNG if dimension <= 4 else kng.ObjectivePerturbation
        return kind(kng.LogisticLoss(), plain, kng.Box(-10.0, 10.0), epsilon, "replace")
    width = kng.SmoothedQuantileLoss.public_bandwidth(0.5, count, dimension, 1.0)
    return kng.ObjectivePerturbation(kng.SmoothedQuantileLoss(0.5, width), bounds, box, epsilon, "replace")


def table(name: str, dimension: int, count: int, random: np.random.Generator):
    """Features, responses and the truth: every slope is a half."""
    truth = np.full(dimension, 0.5)
    x = random.uniform(-1.0, 1.0, (count, dimension - 1))
    eta = truth[0] + x @ truth[1:]
    if name == "logistic":
        return x, (random.uniform(size=count) < 1.0 / (1.0 + np.exp(-eta))).astype(float), truth
    noise = random.standard_normal(count)
    if name == "tau = .9":
        noise -= 1.2815515655446004
    return x, np.clip(eta + noise, *Y), truth


def row(name: str, dimension: int, count: int, epsilon: float, draws: int) -> str:
    """One line of the table."""
    random = np.random.default_rng(0)
    made = mechanism(name, dimension, count, epsilon)
    preview = kng.preview(made, num_records=count, simulate=False)
    room, expected = preview.setting.room, preview.expected
    errors = []
    for _ in range(draws):
        x, y, truth = table(name, dimension, count, random)
        errors.append((kng.release(made, x, y, progress=False).value - truth) / room)
    errors = np.array(errors)
    largest = np.max(np.abs(errors), axis=1)
    noise = np.max(np.sqrt(np.diag(expected.noise.covariance)) / room)
    total = np.sqrt(np.diag(expected.noise.covariance) + np.diag(expected.sampling)) / room
    robust = 1.4826 * np.median(np.abs(errors), axis=0)
    far = "" if expected.far is None else f"{expected.far:.1%}"
    pull = float(np.max(np.diag(expected.noise.pull)))
    said = "refused" if preview.hopeless else "released"
    return (
        f"| {name} | {dimension} | {count} | {epsilon:g} | {noise:.2f} | {far} | {pull:.0%} | {said} | "
        f"{np.median(largest):.2f} | {np.mean(largest > 1.0):.0%} | {np.max(robust / total):.2f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    print("| loss | d | n | eps | noise/room | far | pull | preview | median error/room | beyond | error/previewed |")
    print("| --- " * 11 + "|", flush=True)
    counts = (50, 100, 200, 400, 800)
    grid = [(name, d) for name in ("median", "tau = .9", "robust", "logistic") for d in (2, 3, 4)]
    grid += [(name, d) for name in ("adassp", "squared") for d in (2, 4)]
    grid += [(name, d) for name in ("robust, objective", "logistic", "smoothed median, objective") for d in (6, 10)]
    for name, dimension in grid:
        if options.only is None or name in options.only:
            factor = {"adassp": 4, "squared": 10, "smoothed median, objective": 16}.get(name, 1)
            for count in counts:
                print(row(name, dimension, factor * count, 1.0, options.draws), flush=True)
