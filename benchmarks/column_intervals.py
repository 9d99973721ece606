"""How often 95% intervals of means, shares, counts, groups and their differences hold the truth, and how wide they are.

    python -m benchmarks.column_intervals [--kinds means ...] [--tables 2000] [--exact]

Releases are drawn by the laws of the mechanisms in NumPy, and intervals are made by the package's own functions; with
`--exact` all is `kngjax.Study`, and fewer tables do. Every table is a new one of one population. Widths are medians
over those of the interval without privacy, or over its own figures for the table's. Incomes are log-normal (6.2, .6)
with bounds from 0 to 20,000 for means and 5,000 for groups, ages normal (45, 18) from 0 to 100.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import kngjax as kng
from kngjax.inference import given_sums, known_noise
from kngjax.inference.intervals_from_sums import interval_of_sums
from kngjax.inference.noise_of_sums import noise_of_deviations
from kngjax.study.column_estimates import variance_of

NORMAL, LEVEL, DRAWS = 3.92, 0.95, 16_000
# A replicate: whether the truth was held, and the width over that without privacy.
Outcome = tuple[bool, float]
Cells = Iterator[tuple[str, Callable[[np.random.Generator], Outcome]]]


def _incomes(n: int, most: float, random: np.random.Generator, location: float = 6.2) -> np.ndarray:
    return np.minimum(random.lognormal(location, 0.6, n), most)


def _ages(n: int, most: float, random: np.random.Generator) -> np.ndarray:
    return np.clip(random.normal(45.0, 18.0, n), 0.0, most)


def _truth(values: Callable[[int, np.random.Generator], np.ndarray]) -> float:
    return float(values(4_000_000, np.random.default_rng(99)).mean())


def means(exact: bool) -> Cells:
    """Means of a public number of records, with the variance or, at nε² ≤ 8, with its bound."""
    for name, make, most in (("income", _incomes, 20_000.0), ("age", _ages, 100.0)):
        values = lambda n, random, make=make, most=most: make(n, most, random)  # noqa: E731
        truth = _truth(values)
        for n in (200, 2_000, 28_000):
            for epsilon in (0.1, 1.0):
                one = _exact_mean if exact else _mean(most, n, epsilon)
                yield (
                    f"mean of {name}, n = {n:,}, epsilon = {epsilon:g}",
                    functools.partial(_mean_replicate, one, values, truth, most, n, epsilon),
                )


def _mean_replicate(interval: Any, values: Any, truth: float, most: float, n: int, epsilon: float, random: Any) -> Any:
    x = values(n, random)
    low, high = interval(x, random, most, epsilon)
    return low <= truth <= high, (high - low) / (NORMAL * np.sqrt(x.var() / n)) if x.any() else np.inf


def _mean(most: float, n: int, epsilon: float) -> Any:
    bounds = kng.Bounds(x=(np.array([0.0]), np.array([most])), intercept=False)
    mechanism = kng.KNormMechanism(bounds, epsilon, "replace")
    making: Any = kng.WithIntervals(mechanism, None, n).making(n)
    fixed = making.mechanism, making.noise(None), making.summing, making.covariance, making.curvature, n
    share, whole = float(making.mechanism.epsilon), n * epsilon**2 > 8.0

    def interval(x: np.ndarray, random: Any, most: float, epsilon: float) -> tuple[float, float]:
        if not whole:
            scale = most / (n * epsilon)
            found = x.mean() + random.laplace(0.0, scale)
            return known_noise.mean_of_population(found, np.sqrt(2.0) * scale, (0.0, most), n, LEVEL)
        theta = np.array([x.mean() + random.laplace(0.0, most / (n * share))])
        middle = np.clip(theta, 0.0, most)[0]
        cap = max(middle, most - middle) ** 2
        sums = np.array([((x - middle) ** 2).sum() / cap + random.laplace(0.0, 1.0 / (epsilon - share))])
        found: Any = interval_of_sums(theta, sums, *fixed, LEVEL, draws=DRAWS)
        return max(float(found.lower[0]), 0.0), min(float(found.upper[0]), most)

    return interval


def _exact_mean(x: np.ndarray, random: Any, most: float, epsilon: float) -> tuple[float, float]:
    study = kng.Study(pd.DataFrame({"x": x}), bounds={"x": (0.0, most)}, adjacency="replace")
    found = study.mean("x", epsilon=epsilon, intervals=True, force=True).conf_int(LEVEL).iloc[0]
    return float(found["lower"]), float(found["upper"])


def rare(exact: bool) -> Cells:
    """Means of columns of two levels, of which one is rare."""
    for n, p in ((1_000, 0.001), (1_000, 0.003), (1_000, 0.01), (1_000, 0.1), (100, 0.5)):
        for epsilon in (0.3, 1.0):
            values = lambda n, random, p=p: (random.random(n) < p).astype(float)  # noqa: E731
            one = _exact_mean if exact else _mean(1.0, n, epsilon)

            yield (
                f"mean of 0 and 1, np = {n * p:g} of {n:,}, epsilon = {epsilon:g}",
                functools.partial(_mean_replicate, one, values, p, 1.0, n, epsilon),
            )


def _noisy(counts: Any, epsilon: float, random: Any) -> np.ndarray:
    return counts + known_noise.geometric_noise(epsilon, np.shape(counts), random)


def shares(exact: bool) -> Cells:
    """Shares of a cell in a row of two or five cells, whose total is private."""
    for n, p, cells in ((30, 0.2, 2), (100, 0.1, 2), (100, 0.1, 5), (300, 0.5, 2), (1000, 0.02, 5), (1000, 0.3, 2)):
        for epsilon in (0.3, 1.0):

            def replicate(
                random: Any, n: int = n, p: float = p, cells: int = cells, epsilon: float = epsilon
            ) -> Outcome:
                law = np.array([p, *[(1.0 - p) / (cells - 1)] * (cells - 1)])
                low, high = _share(random.multinomial(n, law), epsilon, random, exact)
                return low <= p <= high, (high - low) / (NORMAL * np.sqrt(p * (1.0 - p) / n))

            yield f"share p = {p:g} of {n:,} in {cells} cells, epsilon = {epsilon:g}", replicate


def _share(counts: np.ndarray, epsilon: float, random: Any, exact: bool) -> tuple[float, float]:
    if not exact:
        released = _noisy(counts, epsilon, random)
        given = float(released[0]), float(released[1:].sum()), len(counts) - 1
        return known_noise.share_of_row(*given, epsilon, LEVEL, True)
    frame = pd.DataFrame({"row": "a", "cell": np.repeat(np.arange(len(counts)), counts)})
    levels = {"row": ("a", "b"), "cell": tuple(range(len(counts)))}
    study = kng.Study(frame, levels=levels, adjacency="add_remove")
    found = study.crosstab("row", "cell", epsilon=epsilon).shares(LEVEL).iloc[0]
    return float(found["lower"]), float(found["upper"])


def _groups(sizes: tuple[int, ...], random: Any) -> list[np.ndarray]:
    return [_incomes(n, 5_000.0, random, 6.2 + 0.1 * place) for place, n in enumerate(sizes)]


def _drawn_mean(x: np.ndarray, epsilon: float, random: Any, seed: int) -> np.ndarray:
    """The draws of one group, as `MomentView.draws` makes them of the released sums."""
    half = 2_500.0
    v, deviations = x - half, np.sqrt(20.0 / 3.0) / epsilon * np.array([1.0, half, 0.5 * half**2])
    sums = np.array([len(x), v.sum(), (v**2 - 0.5 * half**2).sum()]) + noise_of_deviations(deviations, random, 1)[0]
    again = np.random.default_rng(seed)
    noises = noise_of_deviations(deviations, again, given_sums.DRAWS)
    return half + given_sums.means_given(sums - noises, half, again, True)


def groups(exact: bool) -> Cells:
    """Means of two groups with private sizes, each at ε, and their difference."""
    truths = [_truth(lambda n, random, mu=mu: _incomes(n, 5_000.0, random, mu)) for mu in (6.2, 6.3)]  # type: ignore[misc]
    for sizes in ((150, 500), (500, 3_000)):
        for epsilon in (0.3, 1.0):
            for what in ("mean", "difference"):

                def replicate(random: Any, sizes: Any = sizes, epsilon: float = epsilon, what: str = what) -> Outcome:
                    own = _groups(sizes, random)
                    truth = truths[0] - (truths[1] if what == "difference" else 0.0)
                    number = 2 if what == "difference" else 1
                    error = np.sqrt(sum(x.var() / len(x) for x in own[:number]))
                    if exact:
                        low, high = _exact_groups(own, epsilon, what)
                    else:
                        drawn = [_drawn_mean(x, epsilon, random, seed) for seed, x in enumerate(own[:number])]
                        low, high = given_sums.ends_of_draws(drawn[0] - (drawn[1] if number == 2 else 0.0), LEVEL)
                    return bool(low <= truth <= high), (high - low) / (NORMAL * error)

                of = f"of {sizes[0]} and {sizes[1]:,}" if what == "difference" else f"of a group of {sizes[0]}"
                yield f"{what} {of}, epsilon = {epsilon:g}", replicate


def _exact_groups(own: list[np.ndarray], epsilon: float, what: str) -> tuple[float, float]:
    frame = pd.DataFrame({"x": np.concatenate(own), "g": np.repeat(["a", "b"], [len(x) for x in own])})
    facts = {"bounds": {"x": (0.0, 5_000.0)}, "levels": {"g": ("a", "b")}, "adjacency": "add_remove"}
    found = kng.Study(frame, **facts).by("g").mean("x", epsilon=epsilon, intervals=True)
    ends = found.difference("a", "b") if what == "difference" else found.conf_int(LEVEL)
    return float(ends["lower"].iloc[0]), float(ends["upper"].iloc[0])


def differences(exact: bool) -> Cells:
    """Differences of two counts, and of the shares of two rows, with private totals."""
    for n, p, q in ((30, 0.2, 0.4), (150, 0.1, 0.2), (1_000, 0.3, 0.3), (1_000, 0.02, 0.01)):
        for epsilon in (0.3, 1.0):
            for what in ("counts", "shares"):

                def replicate(
                    random: Any, n: int = n, p: float = p, q: float = q, epsilon: float = epsilon, what: str = what
                ) -> Outcome:
                    counts = random.poisson([[n * p, n * (1.0 - p)], [n * q, n * (1.0 - q)]])
                    again = np.random.default_rng(0)
                    drawn = given_sums.counts_given(_noisy(counts, epsilon, random).ravel(), epsilon, again)
                    if what == "counts":
                        drawn = given_sums.expected_counts_given(drawn, again, False)
                        truth, error = n * (p - q), np.sqrt(n * (p + q))
                    else:
                        drawn = given_sums.shares_given(drawn.reshape(-1, 2, 2), again, True).reshape(-1, 4)
                        truth, error = p - q, np.sqrt((p * (1.0 - p) + q * (1.0 - q)) / n)
                    low, high = given_sums.ends_of_draws(drawn[:, 0] - drawn[:, 2], LEVEL)
                    return bool(low <= truth <= high), (high - low) / (NORMAL * error)

                yield f"difference of {what}, {p:g} and {q:g} of {n:,}, epsilon = {epsilon:g}", replicate


def variances(exact: bool) -> Cells:
    """Variances of the table's own values, with a public and a private number; widths are over the variance."""
    for count in (200, 2_000):
        for epsilon in (0.3, 1.0):
            for is_private in (False, True):

                def replicate(
                    random: Any, count: int = count, epsilon: float = epsilon, is_private: bool = is_private
                ) -> Outcome:
                    v = _ages(count, 100.0, random) - 50.0
                    sums, box = np.array([v.sum(), (v**2 - 1250.0).sum()]), np.array([100.0, 2500.0])
                    if is_private:
                        sums, box = np.array([count, *sums]), np.array([1.0, 50.0, 1250.0])
                    size = len(sums)
                    deviations = np.sqrt((size + 1.0) * (size + 2.0) / 3.0) / epsilon * box
                    released = sums + noise_of_deviations(deviations, random, 1)[0]
                    noises = noise_of_deviations(deviations, np.random.default_rng(0), given_sums.DRAWS)
                    known = None if is_private else count
                    low, high = given_sums.ends_of_draws(variance_of((released - noises).T, 50.0, known, 1.0), LEVEL)
                    truth = v.var(ddof=1)
                    return bool(low <= truth <= high), (high - low) / truth

                of = "a private" if is_private else "a public"
                yield f"variance of the table's ages, {of} {count:,}, epsilon = {epsilon:g}", replicate


KINDS = {one.__name__: one for one in (means, rare, shares, groups, differences, variances)}


def main() -> None:
    """Prints a row a cell: coverage, its error, and the median relative width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--exact", action="store_true", help="whole releases of a study")
    parser.add_argument("--only", default="", help="cells whose name has this text")
    options = parser.parse_args()
    for kind in options.kinds:
        for name, replicate in KINDS[kind](options.exact):
            if options.only not in name:
                continue
            random = np.random.default_rng(1)
            held, widths = zip(*(replicate(random) for _ in range(options.tables)), strict=True)
            share = float(np.mean(held))
            error = np.sqrt(share * (1.0 - share) / len(held))
            print(f"{name:68} {share:.3f} ± {error:.3f} / {np.median(widths):.3g}", flush=True)


if __name__ == "__main__":
    main()
