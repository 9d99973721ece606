"""Who is in a synthetic table: an attack by shadow tables, beside what ε allows, and a planted leak that it sees.

`python -m benchmarks.membership [--tables 100] [--epsilon 1]` makes so many synthetic tables of people with one that
is like no other, the target, and as many with an ordinary person in its place. The attacker knows all others, the plan
and both candidates, which is more than any real one does, and learns from a half of the tables of each kind to tell
them apart: random forests and logistic regressions of counts, means and quantiles of a table (Stadler, Oprisanu and
Troncoso 2022; Houssiau et al. 2022). They guess about the other half, which they have not seen: given what was learnt,
these guesses are independent.

The advantage is TPR - FPR, how often "with the target" is said of tables with it and of those without, with its
standard error. Under ε-differential privacy, for every attack,

    TPR ≤ e^ε·FPR  and  1 - FPR ≤ e^ε·(1 - TPR),    so that    TPR - FPR ≤ (e^ε - 1)/(e^ε + 1) = tanh(ε/2)

since TPR - FPR is at most (1 - e^-ε)·TPR by the one and (e^ε - 1)·(1 - TPR) by the other, of which the smaller is
largest at TPR = e^ε/(1 + e^ε). Randomised response attains it.

Two ways make tables: by a plan whose levels are public, and by one whose levels are those that the people have, which
is the planted leak: a level that nobody else has is seen in its tables by its name. `--peer PYTHON SOURCE` adds tables
by MST, of the same columns in public bins (`experiments.synthesis.marginal_peers`); it is (ε, δ)-private where a
record is added or removed, δ = 10⁻⁶, and two such steps exchange one, (2ε, δ(1 + e^ε))-privately. That allows tanh(ε) +
2δ(1 + e^ε)/(1 + e^(2ε)), tanh(ε) and 10⁻⁶ at most.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

import kngjax as kng
from experiments.synthesis import marginal_peers

LEVELS = ("north", "south", "island")
WORKS = ("no", "yes", "abroad")
TARGET = {"region": "island", "works": "abroad", "income": 1.0}
ORDINARY = {"region": "north", "works": "no", "income": 0.3}
NUM_PEOPLE = 100
# The peer compiles anew for each table, and runs out of memory for programs after some hundreds.
_TABLES_A_PROCESS = 100
QUANTILES = np.arange(0.1, 1.0, 0.1)


class Advantage(NamedTuple):
    """TPR - FPR of an attack, and its standard error."""

    value: float
    error: float


def people(one: dict[str, Any], number: int = NUM_PEOPLE) -> pd.DataFrame:
    """The same people each time, and one more. Nobody of them has the level or the income of the target."""
    random = np.random.default_rng(0)
    others = pd.DataFrame(
        {
            "region": random.choice(LEVELS[:2], number - 1, p=[0.6, 0.4]),
            "works": random.choice(WORKS[:2], number - 1, p=[0.3, 0.7]),
            "income": np.clip(random.normal(0.3, 0.1, number - 1), 0.0, 0.6),
        }
    )
    return pd.concat([others, pd.DataFrame([one])], ignore_index=True)


def public_levels(frame: pd.DataFrame, epsilon: float, with_numbers: bool = True) -> kng.synthesis.SynthesisPlan:
    """A plan that does not look at the table."""
    return _plan(LEVELS, WORKS, epsilon, with_numbers)


def levels_of_the_data(frame: pd.DataFrame, epsilon: float, with_numbers: bool = True) -> kng.synthesis.SynthesisPlan:
    """The planted leak: levels that are read off the table."""
    regions, works = (list(frame[name].unique()) for name in ("region", "works"))
    return _plan(regions, works, epsilon, with_numbers)


WAYS: dict[str, Callable[..., kng.synthesis.SynthesisPlan]] = {
    "public levels": public_levels,
    "levels of the data": levels_of_the_data,
}


def _plan(regions: Any, works: Any, epsilon: float, with_numbers: bool) -> kng.synthesis.SynthesisPlan:
    columns: list[Any] = [
        kng.synthesis.Category("region", regions, other="north"),
        kng.synthesis.Category("works", works, other="no", parents=["region"]),
    ]
    if with_numbers:
        columns.append(kng.synthesis.Numeric("income", 0, 1, levels=[0.5, 0.9]))
    return kng.synthesis.plan(columns, epsilon=epsilon, adjacency="replace", force=True, allow_large_epsilon=True)


def features(table: pd.DataFrame) -> np.ndarray:
    """What an attack looks at: shares of levels and pairs, how many are seen; mean, deviation and quantiles."""
    region, works = (
        np.array([table[name] == level for level in levels]) for name, levels in (("region", LEVELS), ("works", WORKS))
    )
    pairs = (region[:, None] & works).mean(axis=2)
    seen = [np.count_nonzero(each.any(axis=1)) for each in (region, works)]
    found = [*region.mean(axis=1), *works.mean(axis=1), *pairs.reshape(-1), *seen]
    if "income" in table:
        income = table["income"].to_numpy(float)
        found += [income.mean(), income.std(), *np.quantile(income, QUANTILES), income.min(), income.max()]
    return np.array(found)


def shadow_tables(
    plan_of: Callable[..., kng.synthesis.SynthesisPlan],
    epsilon: float,
    number: int,
    bar: Any,
    with_numbers: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The features of tables with the target, and of those without, each of a release of its own: (number, k)."""
    found = []
    for one in (TARGET, ORDINARY):
        frame, rows = people(one), []
        plan = plan_of(frame, epsilon, with_numbers)
        for place in range(number):
            # A table's own key: what differs between two of them is what was released.
            rows.append(features(kng.synthesize(plan, frame).draw(key=kng.research_key(place))))
            bar.update()
        found.append(np.array(rows))
    return found[0], found[1]


def shadow_tables_by_mst(
    python: str, source: str, epsilon: float, number: int, bar: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The same of tables by MST. **Arguments:** `python`, `source`: as of `marginal_peers.tables`."""
    found = []
    for place, one in enumerate((TARGET, ORDINARY)):
        frame, rows = people(one), []
        plan = public_levels(frame, epsilon)
        for first in range(place * number, (place + 1) * number, _TABLES_A_PROCESS):
            seeds = range(first, min(first + _TABLES_A_PROCESS, (place + 1) * number))
            for drawn, _ in marginal_peers.tables(python, source, "MST", plan, frame, epsilon, seeds):
                rows.append(features(drawn))
                bar.update()
        found.append(np.array(rows))
    return found[0], found[1]


def forest(seed: int = 0) -> Any:
    """A random forest of scikit-learn."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=3, random_state=seed, n_jobs=1)


def logistic(seed: int = 0) -> Any:
    """Logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


ATTACKS: dict[str, Callable[[], Any]] = {"random forest": forest, "logistic regression": logistic}


def advantage(inside: np.ndarray, outside: np.ndarray, attack: Callable[[], Any]) -> Advantage:
    """TPR - FPR of an attack that learns from every other table and guesses about the rest.

    The halves do not change places: both guesses would depend on how the same two samples differ, and the standard
    error of independent ones would be too small.

    **Arguments:** `inside`, `outside`: features of tables with the target and without, shape (tables, k). `attack`:
    makes a classifier with `fit` and `predict`.
    """
    seen = [each[::2] for each in (inside, outside)]
    made = attack().fit(np.vstack(seen), np.repeat([1, 0], [len(each) for each in seen]))
    guesses = [made.predict(each[1::2]) == 1 for each in (inside, outside)]
    rates = [float(np.mean(said)) for said in guesses]
    variances = [rate * (1.0 - rate) / len(said) for rate, said in zip(rates, guesses, strict=True)]
    return Advantage(rates[0] - rates[1], math.sqrt(sum(variances)))


def allowed(epsilon: float) -> float:
    """tanh(ε/2), the largest advantage under ε-differential privacy."""
    return math.tanh(epsilon / 2.0)


def main(arguments: list[str] | None = None) -> None:
    """Prints a row for each ε, way and attack."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.membership", description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--tables", type=int, default=100, help="of each kind: with the target, and without")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--peer", nargs=2, metavar=("PYTHON", "SOURCE"), help="for tables by MST, which take seconds")
    options = parser.parse_args(arguments)
    print(f"{'':62}{'advantage':>10}{'+-':>7}{'allowed':>9}{'ms by clock':>12}")
    for epsilon in options.epsilon:
        for way in (*options.ways, *(["MST"] if options.peer else [])):
            start = time.perf_counter()
            with tqdm(total=2 * options.tables, desc=way, leave=False, disable=None) as bar:
                if way == "MST":
                    tables, most = shadow_tables_by_mst(*options.peer, epsilon, options.tables, bar), 2.0 * epsilon
                else:
                    tables, most = shadow_tables(WAYS[way], epsilon, options.tables, bar), epsilon
            taken = 1000.0 * (time.perf_counter() - start) / (2 * options.tables)
            for name, attack in ATTACKS.items():
                found = advantage(*tables, attack)
                row = f"epsilon = {epsilon:g}, {way}, {name}"
                print(f"{row:62}{found.value:10.3f}{found.error:7.3f}{allowed(most):9.3f}{taken:12.0f}", flush=True)


if __name__ == "__main__":
    main()
