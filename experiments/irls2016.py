"""Figure 1 of Park and Welling (2016): log-likelihood per test point of private L1 regressions against N.

The note's simulation: x_i ~ N(0, I_d), y_i ~ N(x_i'θ, 0.01) divided by the largest |y|, and a tenth as many test
points. The note divides x by its largest length; here it is divided so that it fits the box |x_j| ≤ 1/√d inside of the
unit ball, since public bounds are boxes. Both divisions use the data, so that no release here is private: kept to be
compared. The likelihood of a test point is N(x'θ̃, σ²) with σ the noise of y after its division.

Two panes. On the left every method at one and the same (ε, δ), or at pure ε where its noise has no δ, which is what may
be compared. Advanced composition says no more of ten parts than their sum, nor does zCDP where their noise is Laplace,
so that these variants of the note are those named basic. On the right as the note
plotted it, three currencies on one axis: parts of ε' = ε/(2J) ("DP"), of ε' by advanced composition, and of
ε' = √(ε/J) ("CDP"), with the note's Wishart noise on the matrices.

That Wishart noise is NOT private: with probability 1 - e^{-ε'} its release is one that a neighbour cannot produce
(`published_wishart`). It is here to be seen, and in no mechanism of the package.
"""

import pathlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded

SETTINGS = (
    "sizes",
    "dimension",
    "data_sets",
    "epsilon",
    "delta",
    "iterations",
    "cap",
    "variance",
    "k",
    "radius",
    "chains",
    "draws",
    "seed",
)
ZCDP, BASIC, PURE = "IRLS, zCDP, Gaussian", "IRLS, basic, Gaussian", "IRLS, basic, Laplace"
NOTED_ZCDP, NOTED_ADVANCED, NOTED_BASIC = (
    "note: CDP, ε' = √(ε/J)",
    "note: advanced composition",
    "note: DP, ε' = ε/(2J)",
)
# One colour a way of composition in both panes.
STYLES = {
    "IRLS without privacy": ("#000000", "-"),
    ZCDP: ("#0072B2", "-"),
    BASIC: ("#E69F00", "-"),
    PURE: ("#E69F00", "--"),
    "KNG median regression": ("#009E73", "-"),
    "robust KNG": ("#CC79A7", ":"),
    NOTED_ZCDP: ("#0072B2", "-"),
    NOTED_ADVANCED: ("#56B4E9", "-"),
    NOTED_BASIC: ("#E69F00", "-"),
}
WARNING = (
    "published_wishart is not differentially private: with probability 1 - exp(-epsilon') its output is one that a "
    "neighbouring data set cannot produce. It is for comparison with the published figure alone"
)


class DataSet(NamedTuple):
    """**Arguments:** `x`, `y`: to fit; `test_x`, `test_y`: to judge; `deviation`: of y given x."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    deviation: float


class Method(NamedTuple):
    """**Arguments:** `pane`: "equal" or "note"; `fit`: from a data set and a key to draws, shape (draws, d)."""

    name: str
    pane: str
    guarantee: str
    fit: Callable[[DataSet, Any], np.ndarray]


def simulated(num_records: int, dimension: int, variance: float, generator: np.random.Generator) -> DataSet:
    """The note's simulation with N records to fit and N/10 to test."""
    total = num_records + max(1, num_records // 10)
    x = generator.standard_normal((total, dimension))
    x /= np.sqrt(dimension) * np.abs(x).max()
    y = x @ generator.standard_normal(dimension) + np.sqrt(variance) * generator.standard_normal(total)
    largest = np.abs(y).max()
    y /= largest
    return DataSet(x[:num_records], y[:num_records], x[num_records:], y[num_records:], np.sqrt(variance) / largest)


def log_likelihood(thetas: np.ndarray, data: DataSet) -> float:
    """Mean over draws and test points of log N(y; x'θ, σ²)."""
    residuals = data.test_y[:, None] - data.test_x @ thetas.T
    squares = np.mean(np.square(residuals / data.deviation))
    return float(-0.5 * squares - np.log(data.deviation) - 0.5 * np.log(2.0 * np.pi))


def published_wishart(
    matrix: np.ndarray, cap: float, epsilon: float, num_records: int, generator: np.random.Generator
) -> np.ndarray:
    """B + ZZ' as in equations (6) and (7) of the note, Z of shape (d, d+1) with variances κ/(2ε'N). NOT PRIVATE.

    Warns whenever it is called. B = X'SX/N.
    """
    warnings.warn(WARNING, stacklevel=2)
    dimension = len(matrix)
    normals = generator.standard_normal((dimension, dimension + 1)) * np.sqrt(cap / (2.0 * epsilon * num_records))
    return matrix + normals @ normals.T


def published_irls(
    data: DataSet, cap: float, iterations: int, epsilon: float, generator: np.random.Generator, has_noise: bool = True
) -> np.ndarray:
    """The note's iteration with Laplace noise of scale 2κ√d/(Nε') on A, equation (4), and its Wishart noise on B."""
    x, y = data.x, data.y
    count, dimension = x.shape
    theta = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(iterations):
            weights = np.ones(count) if theta is None else 1.0 / np.maximum(1.0 / cap, np.abs(y - x @ theta))
            moment, matrix = (x * weights[:, None]).T @ y / count, (x * weights[:, None]).T @ x / count
            if has_noise:
                scale = 2.0 * cap * np.sqrt(dimension) / (count * epsilon)
                moment = moment + generator.laplace(scale=scale, size=dimension)
                matrix = published_wishart(matrix, cap, epsilon, count, generator)
            theta = np.linalg.solve(matrix, moment)
    assert theta is not None
    return theta


def advanced_part(epsilon: float, delta: float, parts: int) -> float:
    """ε' with √(2K log(1/δ))ε' + Kε'(e^{ε'} - 1) = ε, as the note takes it."""
    from scipy.optimize import root_scalar

    def excess(part: float) -> float:
        return np.sqrt(2.0 * parts * np.log(1.0 / delta)) * part + parts * part * np.expm1(part) - epsilon

    return float(root_scalar(excess, bracket=(0.0, epsilon)).root)


def methods(settings: dict[str, Any], num_records: int) -> list[Method]:
    """All curves, those at equal (ε, δ) first."""
    d, epsilon, delta = settings["dimension"], settings["epsilon"], settings["delta"]
    side = np.full(d, 1.0 / np.sqrt(d))
    bounds, free = kng.Bounds((-side, side), (-1.0, 1.0), False), kng.Bounds((-side, side), None, False)
    approximate, pure = f"({epsilon:g}, {delta:g})-DP", f"pure {epsilon:g}-DP"
    common = {"adjacency": "replace", "iterations": settings["iterations"], "cap": settings["cap"]}

    def irls(accounting: str, moment: str, matrix: str) -> Any:
        is_pure = accounting == "basic" and moment == matrix == "laplace"
        return kng.PrivateIRLS(
            bounds,
            epsilon,
            None if is_pure else delta,
            accounting=accounting,
            moment_noise=moment,
            matrix_noise=matrix,
            **common,
        )

    found = [
        Method("IRLS without privacy", "equal", "none", _without_privacy(settings)),
        Method(ZCDP, "equal", approximate, direct(irls("zcdp", "gaussian", "gaussian"), settings)),
        Method(BASIC, "equal", approximate, direct(irls("basic", "gaussian", "gaussian"), settings)),
        Method(PURE, "equal", pure, direct(irls("basic", "laplace", "laplace"), settings)),
    ]
    first, last = settings["chains"]
    if first <= num_records <= last:
        domain = kng.L2Ball(settings["radius"])
        robust = kng.KNG(kng.PseudoHuberLoss(settings["k"]), free, domain, epsilon, "replace")
        median = kng.KNG(kng.QuantileLoss(0.5), free, domain, epsilon, "replace")
        found.append(Method("KNG median regression", "equal", pure, chains(median, kng.chains.LineGibbs(), 200)))
        # Of fewer records proposals in the space of gradients hardly ever serve; for so many coefficients the walk of
        # an ensemble would need tens of thousands of sweeps there.
        if num_records >= 3000:
            found.append(Method("robust KNG", "equal", pure, chains(robust, kng.chains.GradientSpace(), 100)))
    iterations = settings["iterations"]
    currencies = {
        NOTED_ZCDP: np.sqrt(epsilon / iterations),
        NOTED_ADVANCED: advanced_part(epsilon, delta, 2 * iterations),
        NOTED_BASIC: epsilon / (2 * iterations),
    }
    found.append(Method("IRLS without privacy", "note", "none", _without_privacy(settings)))
    found += [Method(name, "note", "none: Wishart", published(part, settings)) for name, part in currencies.items()]
    return found


def _without_privacy(settings: dict[str, Any]) -> Callable[[DataSet, Any], np.ndarray]:
    def fit(data: DataSet, key: Any) -> np.ndarray:
        none = np.random.default_rng(0)
        return published_irls(data, settings["cap"], settings["iterations"], 1.0, none, has_noise=False)[None]

    return fit


def published(part: float, settings: dict[str, Any]) -> Callable[[DataSet, Any], np.ndarray]:
    """Draws of the note's own iteration with parts of ε'."""

    def fit(data: DataSet, key: Any) -> np.ndarray:
        generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        arguments = data, settings["cap"], settings["iterations"], part, generator
        return np.stack([published_irls(*arguments) for _ in range(settings["draws"])])

    return fit


def direct(mechanism: Any, settings: dict[str, Any]) -> Callable[[DataSet, Any], np.ndarray]:
    """Independent draws of a mechanism from its own law."""

    def fit(data: DataSet, key: Any) -> np.ndarray:
        prepared = mechanism.prepare(data.x, data.y)
        draws = kng.sample(mechanism, prepared, key=key, num_draws=settings["draws"], num_chains=1, progress=False)
        return draws.theta[0]

    return fit


def chains(mechanism: kng.KNG, sampler: Any, kept: int) -> Callable[[DataSet, Any], np.ndarray]:
    """Takes a hundred draws of each of four chains that make `kept`; warns where R-hat is above 1.1."""

    def fit(data: DataSet, key: Any) -> np.ndarray:
        prepared = mechanism.prepare(data.x, data.y)
        draws = kng.sample(mechanism, prepared, key=key, sampler=sampler, num_draws=kept, progress=False)
        if (rhat := draws.rhat().max()) > 1.1:
            warnings.warn(f"chains of {draws.sampler} at N = {len(data.y)} have an R-hat of {rhat:.2f}", stacklevel=1)
        return draws.theta.reshape(-1, draws.theta.shape[-1])[:: kept // 100]

    return fit


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `irls2016.csv` and `irls2016.png`, and print the table.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`: N = 3·10³ and 3·10⁴
    alone, two data sets.

    Warns that the note's Wishart noise is not private.
    """
    require(settings, SETTINGS, "irls2016")
    warnings.warn(WARNING, stacklevel=2)
    jax.config.update("jax_enable_x64", True)
    sizes, count = ([3000, 30_000], 2) if smoke else (settings["sizes"], settings["data_sets"])
    key, rows = kng.research_key(settings["seed"]), []
    with tqdm(total=len(sizes) * count, unit="data set", disable=None) as bar:
        for n in sizes:
            planned = methods(settings, n)
            found: list[list[float]] = [[] for _ in planned]
            for place in range(count):
                data = simulated(
                    n,
                    settings["dimension"],
                    settings["variance"],
                    np.random.default_rng([settings["seed"], n, place]),
                )
                for number, method in enumerate(planned):
                    own = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, n), place), number)
                    found[number].append(log_likelihood(method.fit(data, own), data))
                bar.update()
            rows += [
                {
                    "n": n,
                    "pane": method.pane,
                    "method": method.name,
                    "guarantee": method.guarantee,
                    "data_sets": count,
                    "log_likelihood": float(np.median(values)),
                    "lower_quartile": float(np.quantile(values, 0.25)),
                    "upper_quartile": float(np.quantile(values, 0.75)),
                }
                for method, values in zip(planned, found, strict=True)
            ]
    write_rounded(output / "irls2016.csv", rows)
    plot(output / "irls2016.png", rows, settings, count)
    for row in rows:
        print(
            f"{row['n']:>8}  {row['pane']:>5}  {row['method']:<28}  {row['guarantee']:<14}  "
            f"{row['log_likelihood']:12.4g}"
        )


def plot(path: pathlib.Path, rows: list[dict[str, Any]], settings: dict[str, Any], data_sets: int) -> None:
    """Medians over data sets with quartiles; what is below the axis is in the table."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    titles = {
        "equal": "every method at its guarantee, one ε",
        "note": "as the note plotted it: nothing here is private",
    }
    for axes, pane in zip(figure.subplots(1, 2, sharey=True), titles, strict=True):
        names = list(dict.fromkeys(row["method"] for row in rows if row["pane"] == pane))
        for name in names:
            colour, line = STYLES[name]
            points = [row for row in rows if row["pane"] == pane and row["method"] == name]
            middle = np.array([row["log_likelihood"] for row in points])
            spread = [
                middle - [row["lower_quartile"] for row in points],
                np.array([row["upper_quartile"] for row in points]) - middle,
            ]
            label = name if points[0]["guarantee"] == "none" or pane == "note" else f"{name}, {points[0]['guarantee']}"
            axes.errorbar(
                [row["n"] for row in points],
                middle,
                yerr=spread,
                color=colour,
                linestyle=line,
                marker="o",
                markersize=3.5,
                capsize=2.0,
                label=label,
            )
        axes.set_xscale("log")
        axes.set_ylim(-8.0, 2.0)
        axes.set_xlabel("N")
        axes.set_title(titles[pane], fontsize=10)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
    figure.supylabel("log-likelihood per test point", fontsize=10)
    figure.suptitle(
        f"L1 regression, d = {settings['dimension']}, ε = {settings['epsilon']:g}: medians and quartiles of "
        f"{data_sets} data sets",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
