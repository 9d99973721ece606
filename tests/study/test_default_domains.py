"""Default domains hold every regression whose values stay within the bounds of the response, wherever columns lie."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import kngjax as kng
from tests.study.people import PEOPLE

LOW, HIGH = 20.0, 220.0
BOUNDS = {"wage": (LOW, HIGH), "education": (0, 18), "experience": (0, 60)}
LEVELS = {"region": ("north", "south", "west"), "parttime": ("no", "yes"), "sex": ("f", "m")}
FORMULAS = (
    "wage ~ education",
    "wage ~ poly(experience, 3)",
    "wage ~ education * experience",
    "wage ~ region",
    "wage ~ education * parttime",
    "wage ~ sex * parttime",
)


def extremes(design):
    """The least and the largest value of each coefficient, of all regressions within the bounds at a grid of cells."""
    numbers = {name: np.linspace(*BOUNDS[name], 13) for name in ("education", "experience") if name in design.columns}
    sides = numbers | {name: levels for name, levels in LEVELS.items() if name in design.columns}
    cells = {
        name: np.array(column)
        for name, column in zip(sides, zip(*itertools.product(*sides.values()), strict=True), strict=True)
    }
    basis = design.matrix_of(cells)
    rows = np.column_stack([np.ones(len(basis)), basis])
    within = {"A_ub": np.vstack([rows, -rows]), "b_ub": np.repeat([HIGH, -LOW], len(rows)), "bounds": (None, None)}
    ends = [[linprog(sign * unit, **within).fun * sign for unit in np.eye(rows.shape[1])] for sign in (1.0, -1.0)]
    return np.array(ends)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_regression_within_the_bounds_of_the_response_is_left_out(formula):
    plan = kng.Study(PEOPLE.assign(sex="f"), bounds=BOUNDS, levels=LEVELS, adjacency="replace").plan()
    asked = [plan.quantile_regression(formula, tau=0.5, epsilon=1), plan.linear_regression(formula, epsilon=1)]
    least, largest = extremes(asked[0].design)
    for analysis in asked:
        domain = analysis.parts[0].mechanism.domain
        assert np.all(domain.lower <= least + 1e-6)
        assert np.all(domain.upper >= largest - 1e-6)
