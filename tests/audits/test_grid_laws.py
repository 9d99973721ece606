"""Probabilities of cells against integrals in balls, and what tells counts that have them from others."""

import itertools

import numpy as np
import pytest
from flint import acb, arb, ctx

from audits.grid_laws import cells, densities


def integral(score, low, high):
    """∫ exp(-|g|) by FLINT, between the ends and the root of g."""

    def piece(start, end):
        sign = 1 if score(acb((start + end) / 2), False).real > 0 else -1
        return acb.integral(lambda z, analytic: (-sign * score(z, analytic)).exp(), start, end).real

    root = cells._inverse(lambda t: np.array([float(score(acb(x), False).real) for x in t]), np.zeros(1), low, high)[0]
    ends = [low, *([root] if low < root < high else []), high]
    return sum((piece(a, b) for a, b in itertools.pairwise(ends)), arb(0))


def test_probabilities_of_levels_are_those_of_integrals_in_balls():
    """Of a pseudo-Huber loss with one coefficient; of two straight lines by a closed form."""
    kind = densities.SMOOTH["pseudo-Huber"]
    x, y = densities.records(kind, 12, 1, 12)
    (score,) = densities.scores(kind, x, y, 1.5, 4.0)
    edges = cells.cell_edges(0.0, 99, -2, -0.5, 1.5)

    def in_balls(eta, analytic):
        residuals = [(eta * row - response, row) for row, response in zip(x[:, 0].tolist(), y.tolist(), strict=True)]
        total = sum((r / (1 + (r / arb(0.3)) ** 2).sqrt(analytic=analytic) * row for r, row in residuals), acb(0))
        return total * 4 / (4 * arb(0.3))

    with ctx.workprec(80):
        masses = [
            integral(in_balls, low, high) for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]
        whole = sum(masses, arb(0))
        expected = [float(mass / whole) for mass in masses]
    np.testing.assert_allclose(cells.level_masses([score], [edges]), expected, rtol=1e-11)
    # exp(-max(|2a|, |b|)) over a ∈ [0, 1], b ∈ [0, 2] is that over a square of side 2, halved; below 1/2 and 1 of one
    # of side 1. ∫∫ exp(-max) over a square of side s is 2(1 - (1 + s)e^-s).
    found = cells.level_masses([lambda a: 2.0 * a, lambda b: b], [np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 2.0])])
    small, large = (2.0 * (1.0 - (1.0 + s) * np.exp(-s)) for s in (1.0, 2.0))
    assert found[0, 0] == pytest.approx(small / large, rel=1e-12)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)


def test_counts_that_are_off_are_seen_and_others_are_not():
    generator, chances = np.random.default_rng(0), np.array([0.4, 0.3, 0.2, 0.0999, 0.0001, 0.0])
    assert cells.chi_square(generator.multinomial(5000, chances), chances) > 1e-6
    for wrong in (chances[[1, 0, 2, 3, 4, 5]], [0.44, 0.26, 0.2, 0.0999, 0.0001, 0.0]):
        assert cells.chi_square(generator.multinomial(5000, wrong), chances) < 1e-6
    assert cells.chi_square(np.array([2000, 1500, 1000, 499, 0, 1]), chances) == 0.0
    with pytest.raises(ValueError, match="too few draws"):
        cells.chi_square(np.array([9, 0, 0, 0, 0, 0]), chances)
