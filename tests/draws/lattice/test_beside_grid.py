"""Draws on a lattice and draws about quadratic losses in balls: two constructions of one law, beside each other."""

import random

import numpy as np
import pytest
import scipy.stats

import kngjax as kng
from kngjax.draws.choice import proved_draw
from tests.oracles.goodness_of_fit import FAILURE_RATE

N = 300
CASES = {
    "box": (kng.SquaredLoss(), kng.Box([-0.5, -0.125], [0.25, 0.5]), None),
    "l1": (kng.SquaredLoss(), kng.L1Ball(0.375), kng.L1()),
    "l2": (kng.SquaredLoss(), kng.L2Ball(0.375), None),
    "l2 norm": (kng.SquaredLoss(), kng.Box(-0.5, 0.5), kng.L2()),
    "means": (kng.SquaredDistanceLoss(), kng.L1Ball(0.375), None),
}


def mechanism_and_data(case):
    loss, domain, norm = CASES[case]
    generator = np.random.default_rng(1)
    x = generator.uniform(-1.0, 1.0, (N, 2)) @ [[1.0, 0.7], [0.0, 0.3]]
    if case == "means":
        # Not in the middle of Θ, and with noise about as wide as it.
        x = np.clip(x + np.array([0.3, 0.05]), -1.0, 1.0)
        return kng.KNG(loss, kng.Bounds(x=(-1.0, 1.0), intercept=False, columns=2), domain, 0.1, "replace"), x, None
    y = np.clip(x @ [0.3, 0.2] + 0.1 * generator.standard_normal(N), -1.0, 1.0)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False, columns=2)
    return kng.KNG(loss, bounds, domain, 1.0, "replace", norm), x, y


def check(case, on_lattice, in_balls):
    mechanism, x, y = mechanism_and_data(case)
    facts = mechanism.intake.check_schema(x, y)
    lattice, way = kng.draws.Lattice().resolve(mechanism, 2, N), proved_draw(mechanism, facts)
    assert way is not None
    table, sums, bits = lattice.prepare(mechanism, x, y), way.prepare(x, y), random.Random(6).getrandbits
    first = np.array([lattice.draw(mechanism, table, bits) for _ in range(on_lattice)])
    second = np.array([way.draw(sums, bits) for _ in range(in_balls)])
    # Sixths of one coordinate, and thirds of the other within each.
    outer = np.quantile(second[:, 0], np.arange(1, 6) / 6.0)
    rows = [np.searchsorted(outer, draws[:, 0]) for draws in (first, second)]
    counts = np.zeros((2, 18))
    for row in range(6):
        inner = np.quantile(second[rows[1] == row, 1], [1 / 3, 2 / 3])
        for which, draws in enumerate((first, second)):
            thirds = np.searchsorted(inner, draws[rows[which] == row, 1])
            counts[which, 3 * row : 3 * row + 3] = np.bincount(thirds, minlength=3)
    found = scipy.stats.chi2_contingency(counts)
    assert counts.sum() == on_lattice + in_balls
    assert found.pvalue >= FAILURE_RATE, counts


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_draws_of_both_agree(case):
    check(case, 800, 2000)
