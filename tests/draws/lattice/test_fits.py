"""No data make a lattice envelope fail or search without end: fits, coordinates and boxes of degenerate tables."""

import contextlib
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.draws.lattice import fits
from kngjax.draws.lattice.coordinates import LatticeCoordinates, reduced_basis, round_frame
from kngjax.draws.lattice.fits import DistinctRecords, ScoreDensity, fit_of
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.refinement import refine

SAMPLER = kng.draws.Lattice(max_records=2**10, most_boxes=20_000)
DOMAINS = {"box": kng.Box(-30.0, 10.0), "l1": kng.L1Ball(1.0), "l2": kng.L2Ball(1000.0), "small": kng.Box(-0.01, 0.01)}


def columns_of(generator, number, low, high):
    """Features at random, at ends, 0, tiny, nearly constant, and collinear; some tables of copies of a record."""
    x = generator.uniform(low, high, (number, len(low)))
    for place, kind in enumerate(generator.integers(0, 8, len(low))):
        x[:, place] = {
            0: x[:, place],
            1: np.zeros(number),
            2: np.full(number, high[place]),
            3: generator.choice([low[place], high[place]], number),
            4: high[place] * (0.5 + 1e-4 * generator.random(number)),
            5: x[:, 0] / high[0] * high[place],
            6: np.full(number, 1e-300 * high[place]),
            7: np.round(x[:, place] / high[place], 1) * high[place],
        }[int(kind)]
    return x[generator.integers(0, number, number)] if generator.random() < 0.3 else x


def case_of(seed):
    """A mechanism and records: few, with duplicates, of any units."""
    generator = np.random.default_rng(seed)
    number, has_intercept = int(generator.choice([1, 2, 3, 5, 8, 30])), bool(generator.random() < 0.6)
    dimension = int(generator.choice([1, 2, 2, 3]))
    columns = max(dimension - has_intercept, 1)
    units = 10.0 ** generator.choice([-4, -1, 0, 0, 0, 2], columns)
    low, high = np.where(generator.random(columns) < 0.5, 0.0, -1.0) * units, units
    x = columns_of(generator, number, low, high)
    y = generator.choice([0.0, 1.0, -1.0, 0.5, 1e-300, 1e6], number)
    if generator.random() < 0.5:
        y = generator.normal(size=number) * 10.0 ** generator.choice([-3, 0, 3])
    bounds = kng.Bounds(x=(low, high), y=(-2.0, 2.0), intercept=has_intercept)
    epsilon, adjacency = float(generator.choice([0.01, 1.0, 10.0, 100.0])), ("replace", "add_remove")[seed % 2]
    loss = kng.QuantileLoss(float(generator.choice([0.5, 0.3, 0.05])))
    domain = DOMAINS[str(generator.choice(list(DOMAINS)))]
    kind = int(generator.integers(0, 5))
    if kind == 4:
        return kng.ExponentialMechanism(loss, bounds, domain, epsilon, adjacency), x, y
    norm = (None, kng.L1(), kng.LInf(), None)[kind]
    return kng.KNG(loss, bounds, domain, epsilon, adjacency, norm=norm), x, y


@pytest.mark.parametrize("feature", [8.0, -3.0])
def test_of_one_feature_the_fit_is_the_quantile(feature):
    random, domain = np.random.default_rng(4), DomainLattice((0,), np.array([-(10**6)]), np.array([10**6]), None, 0)
    y, counts = (
        np.sort(random.choice(10**6, 501, replace=False)).astype(float),
        random.integers(1, 5, 501).astype(float),
    )
    records = DistinctRecords(np.full((501, 1), feature), y, counts)
    for slopes in ((1.0, 1.0), (7.0, 3.0)):
        fit = fit_of(records, ScoreDensity(slopes, 0.5, True), domain)
        assert fit is not None
        below = np.sum(counts[y <= feature * fit.estimate[0] + abs(feature)])
        np.testing.assert_allclose(below, slopes[1] / sum(slopes) * np.sum(counts), atol=5.0)


class _GivenUp(Exception):
    pass


def limited_bits(seed, most):
    """Fair bits that end after so many calls, some six of which are a proposal."""
    generator, left = random.Random(seed), [most]

    def bits(width):
        left[0] -= 1
        if left[0] < 0:
            raise _GivenUp
        return generator.getrandbits(width)

    return bits


def given_up(seeds, most):
    """Of which tables no draw was found soon. Without a warning, which would be an error here."""
    found = []
    for seed in seeds:
        mechanism, x, y = case_of(seed)
        problem = SAMPLER.problem(mechanism, mechanism.intake.records(x, y))
        drawn = SAMPLER.envelope(problem)
        assert len(drawn._boxes.runs) < 2 * SAMPLER.most_boxes, seed
        assert np.all(drawn._importance > 0.0)
        assert np.all(np.isfinite(drawn._importance))
        with contextlib.suppress(_GivenUp):
            assert problem.domain.contains(drawn.draw(limited_bits(seed, most)))
            continue
        found.append(seed)
    return found


def test_degenerate_tables_are_drawn_from():
    """Of the last two, columns of zeros and of one value, halving or rays were lost on the column of zeros."""
    assert given_up((1, 2, 66, 271), 30_000) == []


@pytest.mark.slow
def test_hundreds_of_degenerate_tables_are_drawn_from():
    """But for one or two in a thousand: columns collinear but for rounding, where Θ is 10^5 times wider than the law.

    A lattice has no round coordinates of those; they have no draw within minutes in any coordinates that we know.
    """
    assert given_up(range(8, 200), 300_000) == [197]


@pytest.mark.parametrize(
    "form",
    [
        np.zeros((3, 3)),
        np.full((3, 3), 1e12),
        np.diag([1.0, 0.0, 1e-300]),
        np.diag([1e300, 1.0, 1e-300]),
        -np.eye(3),
        np.array([[1.0, 5.0, 0.0], [5.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        np.full((3, 3), np.inf),
        np.full((3, 3), np.nan),
    ],
)
def test_lengths_of_axes_are_positive_whatever_the_form(form):
    domain = DomainLattice((0, 0, 0), np.full(3, -(2**21)), np.full(3, 2**21), None, 0)
    with np.errstate(all="ignore"):
        found = round_frame(form, domain)
    assert np.all(found.lengths > 0.0)
    assert np.all(np.isfinite(found.lengths))
    np.testing.assert_array_equal(found.coordinates.matrix @ found.coordinates.inverse, np.eye(3))


def test_lengths_are_those_of_whole_numbers():
    """Columns that are nearly collinear, whose U'QU cancels to some 10^-9 of Q."""
    x = np.column_stack([np.full(50, 2**19), 2**19 + np.arange(50)])
    form, domain = x.T @ x, DomainLattice((0, 0), np.full(2, -(2**21)), np.full(2, 2**21), None, 0)
    found = round_frame(form.astype(float), domain)
    matrix = found.coordinates.matrix
    assert np.any(matrix != np.eye(2))
    np.testing.assert_allclose(found.lengths**2, np.diagonal(matrix.T @ form @ matrix).astype(float), rtol=0.01)


def test_forms_that_are_not_positive_have_no_reduced_basis():
    assert reduced_basis([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(1)]]) is None
    assert reduced_basis([[Fraction(0)]]) is None


@pytest.mark.parametrize("digits", [4, 22])
def test_a_law_as_wide_as_its_domain_keeps_the_given_coordinates(digits):
    """One record tells of one line: boxes along it would reach far out of Θ."""
    mechanism = kng.KNG(kng.QuantileLoss(0.3), kng.Bounds(x=([0.0], [1.0])), kng.Box(-1.0, 1.0), 1.0, "replace")
    sampler = kng.draws.Lattice(theta_digits=digits)
    drawn = sampler.envelope(sampler.problem(mechanism, mechanism.intake.records(np.array([[0.7]]), np.array([0.2]))))
    np.testing.assert_array_equal(drawn._coordinates.matrix, LatticeCoordinates.own(2).matrix)
    assert len(drawn._boxes.runs) < 100


def test_boxes_of_one_point_end_refinement():
    """Also where bounds in floats are a little below the scores, so that no goal of theirs is ever reached."""
    mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, 1.0), 90.0, "replace")
    sampler = kng.draws.Lattice(data_digits=4, theta_digits=3, expected_proposals=0.5)
    records = mechanism.intake.records(None, np.repeat([-0.7, 0.1, 0.3], 1000))
    drawn = sampler.envelope(sampler.problem(mechanism, records))
    assert len(drawn._boxes.runs) <= 9
    calls = []

    def halve(boxes, chosen):
        calls.append(chosen)
        assert len(calls) < 5
        return boxes

    left, acceptance = refine(
        [1], lambda _: (np.ones(1), np.zeros(1)), halve, lambda *_: False, 10, 0.9, lambda _: (1, 8)
    )
    assert (left, acceptance, calls) == ([1], 1.0, [])


@pytest.mark.parametrize("is_of_gradients", [True, False])
def test_a_law_falls_as_all_its_records_say(is_of_gradients):
    """Beside sums over all records, at moves up and down and at the highest point between them."""
    generator = np.random.default_rng(0)
    residuals, counts = np.append(np.zeros(3), generator.normal(size=9)), generator.integers(1, 9, 12).astype(float)
    density, widths = ScoreDensity((0.7, 0.3), 2.0, is_of_gradients), np.array([0.1, 0.5, 1.0, 9.0])

    def height(move):
        if is_of_gradients:
            return 2.0 * abs(np.sum(counts * (residuals <= move)) - 0.3 * np.sum(counts))
        left = residuals - move
        return 2.0 * np.sum(counts * np.where(left > 0, 0.3 * left, -0.7 * left))

    near = 1e-12  # below a width by so little that what lies there counts as above it
    least = min(height(move) for place in residuals for move in (place, place - near))
    found = [min(height(width), height(-width - near)) - least for width in widths]
    np.testing.assert_allclose(density.falls(residuals, counts, widths), found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_of_gradients", [True, False])
def test_no_residual_makes_a_fit_fail(is_of_gradients):
    """Least squares of columns that are nearly collinear may end in anything."""
    density = ScoreDensity((0.5, 0.5), 1.0, is_of_gradients)
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        with np.errstate(all="ignore"):
            width = fits._window(np.array([bad, 1.0, -2.0]), np.ones(3), density, 1e6)
        assert 1.0 <= width <= 1e6


def test_a_heap_leaves_a_law_as_high_on_one_side():
    falls = ScoreDensity((0.7, 0.3), 1.0, True).falls(np.zeros(1), np.full(1, 400.0), np.array([1.0, 1e6]))
    np.testing.assert_allclose(falls, 0.0, atol=1e-9)
