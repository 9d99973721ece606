"""Numbers that are no powers of two are rounded to the safe side: points of Θ inward, shares of ε downward."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

import kngjax as kng
from kngjax.draws.choice import proved_draw
from kngjax.draws.grid_cells import Grid
from kngjax.draws.lattice.units import DomainLattice
from kngjax.releases.curves.halving import Halving
from tests.draws.cases import LOWER, RESPONSE, UPPER

RADIUS = 0.3
SIDES = ((-0.3, -0.2), (0.7, 0.3))
DOMAINS = {"box": kng.Box(*SIDES), "l1": kng.L1Ball(RADIUS), "l2": kng.L2Ball(RADIUS)}


def lies_within(domain, point):
    """Membership in fractions of the numbers that float64 holds."""
    point = [Fraction(t) for t in point]
    if isinstance(domain, kng.Box):
        return all(Fraction(low) <= t <= Fraction(high) for t, low, high in zip(point, *SIDES, strict=True))
    power = 1 if isinstance(domain, kng.L1Ball) else 2
    return sum(abs(t) ** power for t in point) <= Fraction(RADIUS) ** power


@pytest.mark.parametrize("exponents", [[-6, -6], [-5, -7], [-3, -4]])
@pytest.mark.parametrize("name", DOMAINS)
def test_the_points_of_a_lattice_are_those_within_the_domain_and_all_of_them(name, exponents):
    domain, lattice = DOMAINS[name], DomainLattice.of(DOMAINS[name], exponents)
    units = [Fraction(2) ** exponent for exponent in exponents]
    reach = [math.ceil(Fraction(4, 5) / unit) for unit in units]
    for k in itertools.product(*(range(-most, most + 1) for most in reach)):
        inside = lies_within(domain, [number * unit for number, unit in zip(k, units, strict=True)])
        assert lattice.contains(np.array(k)) == inside


@pytest.mark.parametrize("name", DOMAINS)
def test_a_release_on_a_coarse_lattice_lies_within_the_domain(name):
    """Records pull far beyond it."""
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSE, intercept=False)
    mechanism = kng.KNG(kng.QuantileLoss(0.9), bounds, DOMAINS[name], 99.9, "replace")
    sampler = kng.draws.Lattice(data_digits=6, theta_digits=6)
    records = sampler.prepare(mechanism, np.tile(UPPER, (60, 1)), np.full(60, 1.3))
    bits = random.Random(1).getrandbits
    values = [sampler.draw(mechanism, records, bits) for _ in range(10)]
    assert all(lies_within(DOMAINS[name], value) for value in values)
    # They are near to its end.
    assert any(not lies_within(DOMAINS[name], 1.3 * value) for value in values)


@pytest.mark.parametrize("name", DOMAINS)
def test_cells_are_moved_inward_and_no_farther_than_to_the_next(name):
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSE, intercept=False)
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, DOMAINS[name], 1.1, "replace")
    body, grid = (
        proved_draw(mechanism, mechanism.intake.check_schema(np.zeros((1, 2)), np.zeros(1))).body,
        Grid((-4, -5)),
    )
    moved_any = False
    for theta in np.random.default_rng(4).uniform(-0.4, 0.8, (1000, 2)):
        exact = [Fraction(float(number)) for number in theta]
        if not lies_within(DOMAINS[name], exact):
            continue
        with ctx.workprec(100):
            cell = grid.cell([arb(fmpq(number.numerator, number.denominator)) for number in exact])
            moved = body.inward(cell, grid)
        assert lies_within(DOMAINS[name], grid.exact_values(moved))
        assert all(abs(a - b) <= 1 for a, b in zip(cell, moved, strict=True))
        moved_any = moved_any or list(cell) != list(moved)
    assert moved_any


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.7, 3.3])
def test_depths_of_a_halving_cost_no_more_than_epsilon_in_fractions(epsilon):
    """Budgets are among them of which float64 rounds a half or a third upward."""
    for number, adjacency in itertools.product((2, 3, 5, 9), ("replace", "add_remove")):
        levels = np.arange(1, number + 1) / (number + 1)
        drawn = Halving.of(
            levels, kng.Bounds(y=RESPONSE), kng.Box(*RESPONSE), epsilon, kng.Adjacency.parse(adjacency), 1, 64
        )
        whole = Fraction(repr(epsilon))
        assert whole * (1 - Fraction(1, 10**14)) < drawn.guarantee.exact_epsilon <= whole
