"""Quantiles and quantile regression of incomes that are rounded to hundreds, of which a tenth are 0.

Incomes in thousands are log-normal about a line in the years of education, or 0; they are rounded to multiples of .1.
Every mechanism sees the rounded ones. The error of a release is the largest of its coefficients' distances to the
estimate without privacy from the incomes before they were rounded; its median over the releases stands in the table, in
thousands. `dither` is the width of `Bounds(..., dither=...)`, the rounding unit or none; smoothing has the bandwidth of
`public_bandwidth` at a scale of 1. The quantile loss is drawn on the lattice, the smoothed one by boxes in balls.
"""

import pathlib
from typing import Any

import numpy as np

import kngjax as kng
from experiments import require, write
from kngjax.data import prepare
from kngjax.owner import nonprivate

SETTINGS = ("tau", "epsilon", "records", "releases", "zeros", "seed")
HEADER = ("estimate", "mechanism", "tau", "dither", "error")
UNIT = 0.1
# Half a unit beyond 0, so that the heap there is spread too.
LOWER, UPPER = -0.5 * UNIT, 20.0


def incomes(records: int, zeros: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Years of education between 0 and 1, shape (n, 1), and incomes in thousands before they are rounded."""
    education = random.integers(0, 11, (records, 1)) / 10.0
    earned = np.exp(0.3 + 0.8 * education[:, 0] + 0.5 * random.standard_normal(records))
    return education, np.where(random.uniform(size=records) < zeros, 0.0, np.minimum(earned, UPPER))


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Make the releases, write the median errors to `heaps.csv`, and print them.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to make two
    releases of each, at one level.
    """
    require(settings, SETTINGS)
    levels, releases = (settings["tau"][:1], 2) if smoke else (settings["tau"], settings["releases"])
    education, exact = incomes(settings["records"], settings["zeros"], np.random.default_rng(settings["seed"]))
    heaped, epsilon, rows = np.round(exact / UNIT) * UNIT, settings["epsilon"], []
    box = kng.Box(-10.0, 10.0)
    for tau in levels:
        loss = kng.QuantileLoss(tau)
        line = nonprivate.fit(loss, prepare(kng.Bounds(x=(0.0, 1.0), columns=1), education, exact)).theta
        for dither in (None, UNIT):
            numbers = kng.Bounds(y=(LOWER, UPPER), dither=dither)
            both = kng.Bounds(x=(0.0, 1.0), y=(LOWER, UPPER), columns=1, dither=dither)
            quantile = kng.PrivateQuantile(tau, numbers, epsilon, "replace")
            rows.append(["quantile", quantile, tau, dither, np.array([np.quantile(exact, tau)])])
            for kind in (kng.KNG, kng.ExponentialMechanism):
                rows.append(["line", kind(loss, both, box, epsilon, "replace"), tau, dither, line])
        bandwidth = kng.SmoothedQuantileLoss.public_bandwidth(tau, len(exact), 2, 1.0)
        plain, smoothed = kng.Bounds(x=(0.0, 1.0), columns=1), kng.SmoothedQuantileLoss(tau, bandwidth)
        mechanism = kng.KNG(smoothed, plain, box, epsilon, "replace")
        rows.append(["line", mechanism, tau, None, line])
    table = []
    for estimate, mechanism, tau, dither, truth in rows:
        x = education if estimate == "line" else None
        drawn = [kng.release(mechanism, x, heaped, progress=False).value for _ in range(releases)]
        name = type(mechanism).__name__ + (", smoothed" if isinstance(mechanism.loss, kng.SmoothedQuantileLoss) else "")
        table.append([estimate, name, tau, dither, float(np.median(np.max(np.abs(np.stack(drawn) - truth), axis=1)))])
        print("  ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in table[-1]), flush=True)
    write(output / "heaps.csv", HEADER, table)
