"""Theorem 3.2, shown: n(θ̃ - θ̂) goes to the law with density ∝ exp(-ε/(2Δ)·‖Σ^{-1}z‖_K), Σ^{-1} = lim H_n(θ̂)/n.

With c = ε/(2Δ) the theorem says that w = c·H_n(θ̂)(θ̃ - θ̂) goes to the density ∝ exp(-‖w‖_K), whose gauge ‖w‖_K is
Gamma(d, 1). Two numbers say how far a data set's mechanism is from it:

- the total variation distance of the two laws, by quadrature with `log_density`, averaged over data sets;
- for draws on the first data set, the Kolmogorov-Smirnov distance of their gauges to Gamma(d, 1), beside the distance
  that as many independent draws of the limit law itself would exceed in one of twenty cases.

The squared loss has a linear gradient, so Θ alone keeps it from its limit. The pseudo-Huber loss meets the theorem's
assumptions on a bounded Θ. The check loss does not: its gradient is a step function, and within the range of the noise
only a number of order Δd/ε of records change sides, whatever n. The noise is of order 1/n all the same, but its law,
given the data, does not go to the K-norm one. H_n is then the expected Hessian f(0)·X'X, f the density of the errors.
"""

import dataclasses
import pathlib
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded
from experiments.kng2019 import algorithm1, plots
from kngjax.owner import nonprivate

SETTINGS = ("epsilon", "radius", "huber_k", "dimension", "sizes", "replicates", "draws", "seed")
CHAINS = 4
# The limit law has a mass of 5e-6 beyond this gauge if d = 2.
REACH, POINTS = 15.0, 120


class Case(NamedTuple):
    """A mechanism and what draws from it best."""

    name: str
    mechanism: kng.KNG
    sampler: Any


class Local(NamedTuple):
    """What the limit law is made of. **Arguments:** `centre`: θ̂; `hessian`: H_n; `rate`: c = ε/(2Δ)."""

    centre: np.ndarray
    hessian: np.ndarray
    rate: float


@dataclasses.dataclass(frozen=True)
class Distance:
    """**Arguments:** `total_variation`: its mean over data sets, with standard error. `effective_draws`: the smallest
    effective sample size. `ks_distance`, `ks_level_95`: see the top of the file. `rhat`: None for independent draws.
    """

    loss: str
    n: int
    data_sets: int
    total_variation: float
    standard_error: float
    sampler: str
    draws: int
    effective_draws: float
    rhat: float | None
    ks_distance: float
    ks_level_95: float
    seconds: float


def cases(epsilon: float, radius: float, huber_k: float) -> list[Case]:
    """KNG with the l_inf norm, for three losses."""
    bounds, ball = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(radius)
    losses = {
        "squared": (kng.SquaredLoss(), kng.chains.Exact()),
        f"pseudo-Huber, k = {huber_k:g}": (kng.PseudoHuberLoss(huber_k), kng.chains.GradientSpace()),
        "check, τ = 1/2": (kng.QuantileLoss(0.5), kng.chains.LineGibbs()),
    }
    return [
        Case(name, kng.KNG(loss, bounds, ball, epsilon, "replace", norm=kng.LInf()), sampler)
        for name, (loss, sampler) in losses.items()
    ]


def local(mechanism: kng.KNG, data_set: algorithm1.DataSet) -> Local:
    """The minimiser, the Hessian there, and c."""
    loss, records = mechanism.loss, data_set.data
    data = loss.summarise(records)
    centre = nonprivate.minimiser(loss, data)
    if isinstance(loss, kng.QuantileLoss):
        hessian = data_set.scale * stats.norm.pdf(0.0) * records.x.T @ records.x
    else:
        hessian = np.asarray(loss.hessian(centre, data))
    return Local(centre, hessian, float(mechanism.epsilon) / (2.0 * mechanism.sensitivity_for(centre.size).value))


def gauges(law: Local, theta: np.ndarray) -> np.ndarray:
    """c·‖H_n(θ - θ̂)‖_∞ of draws, shape (draws, d)."""
    return law.rate * np.max(np.abs((theta - law.centre) @ law.hessian), axis=1)


@jax.jit
def log_densities(mechanism: kng.KNG, theta: Any, data: Any) -> Any:
    """log f at points of shape (points, d)."""
    return jax.lax.map(lambda point: mechanism.log_density(point, data), theta, batch_size=32)


def total_variation(mechanism: kng.KNG, data: Any, law: Local) -> float:
    """½∫|f - g| by midpoints on {‖w‖_∞ ≤ REACH}, f the mechanism's density of w, g ∝ exp(-‖w‖_∞), both made 1 there."""
    middles = REACH * ((np.arange(POINTS) + 0.5) * 2.0 / POINTS - 1.0)
    w = np.stack(np.meshgrid(*[middles] * law.centre.size, indexing="ij"), axis=-1).reshape(-1, law.centre.size)
    theta = law.centre + np.linalg.solve(law.hessian, w.T).T / law.rate
    f = jax.nn.softmax(log_densities(mechanism, jnp.asarray(theta), data))
    g = jax.nn.softmax(-np.max(np.abs(w), axis=1))
    return float(0.5 * jnp.sum(jnp.abs(f - g)))


def distance(case: Case, data_sets: list[algorithm1.DataSet], num_draws: int, key: Any) -> tuple[Distance, np.ndarray]:
    """The two numbers for one loss and one n, and the draws on the first data set, shape (draws, d)."""
    start = time.perf_counter()
    mechanism, laws = case.mechanism, [local(case.mechanism, data_set) for data_set in data_sets]
    data = [mechanism.loss.summarise(data_set.data) for data_set in data_sets]
    variations = np.array([total_variation(mechanism, part, law) for part, law in zip(data, laws, strict=True)])
    options: dict[str, Any] = {"num_draws": num_draws // CHAINS, "num_chains": CHAINS, "progress": False}
    draws = kng.sample(mechanism, data[0], key=key, sampler=case.sampler, **options)
    theta = draws.theta.reshape(-1, draws.theta.shape[-1])
    effective = float(len(theta) if draws.info is None else np.min([draws.ess(), draws.ess("tail")]))
    result = stats.kstest(gauges(laws[0], theta), stats.gamma(theta.shape[1]).cdf)
    return Distance(
        loss=case.name,
        n=data_sets[0].data.y.size,
        data_sets=len(data_sets),
        total_variation=float(variations.mean()),
        standard_error=float(variations.std(ddof=1) / np.sqrt(variations.size)),
        sampler=draws.sampler,
        draws=len(theta),
        effective_draws=round(effective),
        rhat=None if draws.info is None else float(draws.rhat().max()),
        ks_distance=float(result.statistic),
        ks_level_95=float(stats.kstwobign.ppf(0.95) / np.sqrt(effective)),
        seconds=round(time.perf_counter() - start, 2),
    ), (theta - laws[0].centre) @ laws[0].hessian * laws[0].rate


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `limit.csv` and `limit.png`, and print the distances.

    **Arguments**: as for `experiments.kng2019.run`; `smoke` keeps the first n, two data sets, and 400 draws.
    """
    require(settings, SETTINGS, "limit")
    sizes = settings["sizes"][:1] if smoke else settings["sizes"]
    count = 2 if smoke else settings["replicates"]
    num_draws = 400 if smoke else settings["draws"]
    key = kng.research_key(settings["seed"])
    found = cases(settings["epsilon"], settings["radius"], settings["huber_k"])
    rows, clouds = [], {}
    with tqdm(total=len(sizes) * (count + len(found)), disable=None) as bar:
        for n in sizes:
            data_sets = algorithm1.replicates(
                algorithm1.records, n, settings["dimension"], count, settings["seed"], bar
            )
            for case in found:
                row, clouds[case.name] = distance(case, data_sets, num_draws, jax.random.fold_in(key, n))
                rows.append(row)
                bar.update()
    write_rounded(output / "limit.csv", rows)
    plot(output / "limit.png", rows, clouds)
    for row in rows:
        print(
            f"{row.loss:<24} n = {row.n:<7} total variation {row.total_variation:.1e} ({row.standard_error:.0e})  KS "
            f"{row.ks_distance:.3f} against {row.ks_level_95:.3f}"
        )


def plot(path: pathlib.Path, rows: list[Distance], clouds: dict[str, np.ndarray]) -> None:
    """Draws of w at the largest n with squares that hold .5, .9 and .99 of the limit law, and distances over n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.2), layout="constrained")
    *panels, distances = figure.subplots(1, len(clouds) + 1)
    largest = max(row.n for row in rows)
    styles = zip(plots.COLOURS[1:], plots.MARKERS, strict=False)
    for axes, (name, cloud), (colour, marker) in zip(panels, clouds.items(), styles, strict=False):
        axes.plot(cloud[:1500, 0], cloud[:1500, 1], ".", markersize=1.5, alpha=0.5, color=colour)
        for mass in (0.5, 0.9, 0.99):
            side = stats.gamma(cloud.shape[1]).ppf(mass)
            axes.plot(side * np.array([-1, 1, 1, -1, -1]), side * np.array([-1, -1, 1, 1, -1]), "k-", linewidth=0.8)
        axes.set(title=f"{name}, n = {largest:,}", xlim=(-9, 9), ylim=(-9, 9), aspect="equal")
        axes.set_xlabel("first coordinate of w", fontsize=8)
        axes.set_ylabel("second coordinate of w", fontsize=8)
        points = [row for row in rows if row.loss == name]
        distances.errorbar(
            [row.n for row in points],
            [row.total_variation for row in points],
            yerr=[row.standard_error for row in points],
            label=name,
            color=colour,
            marker=marker,
            markersize=5,
            capsize=2.5,
        )
    # Where Θ cuts nothing off, the squared loss is at its limit but for rounding.
    distances.set(title="total variation to the limit law", xscale="log", yscale="log", xlabel="n", ylim=(1e-7, 1.0))
    distances.grid(alpha=0.25)
    distances.legend(frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.87))
    for axes in (*panels, distances):
        axes.title.set_fontsize(9)
    figure.savefig(path, dpi=110)
