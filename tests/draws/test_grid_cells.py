"""Cells of a public grid: their probabilities, beside closed forms and quadrature, and what one record changes."""

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import jax
import numpy as np
import pytest
from flint import arb, ctx, fmpq

import kngjax as kng
from kngjax.core.balls import power_of_two
from kngjax.data.schema import Schema
from kngjax.draws import grid_cells, uniforms
from kngjax.draws.choice import proved_draw
from kngjax.draws.grid_cells import Grid, draw_cell
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.geometry.blocks import Block, ScaledBlocks
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_cell_frequencies

HALF = Fraction(1, 2)
# ∫ exp(-‖z‖) dz = d!·volume of the unit ball, for d = 2.
PLANES = {
    "maximum": (lambda x, y: np.maximum(np.abs(x), np.abs(y)), 8.0),
    "sum": (lambda x, y: np.abs(x) + np.abs(y), 4.0),
    "length": (np.hypot, 2.0 * np.pi),
    "exchange": (
        lambda x, y: np.maximum(np.maximum(x, 0) + np.maximum(y, 0), np.maximum(-x, 0) + np.maximum(-y, 0)),
        6.0,
    ),
}


def plane_noise(kind, weights, squared):
    if kind == "exchange":
        return ScaledBlocks((Block(kind, (0, 1)),), weights, squared)
    return ScaledNorm(kind, weights, squared)


def test_cells_end_halfway_between_multiples_and_at_nothing_else():
    """To 2^-80 of a step; where a ball holds the end, it is not known."""
    step, tiny = Fraction(1, 8), Fraction(1, 2**80)
    with ctx.workprec(200):
        for number in (-3, 0, 1, 2**60):
            end = number + Fraction(1, 2)
            for place, cell in ((end - tiny, number), (end, number + 1), (end + tiny, number + 1)):
                assert Grid((-3,)).cell([place * step]) == [cell]
                assert Grid((-3,)).cell([arb(fmpq(place.numerator, place.denominator)) / 8]) == [cell]
            around = arb(fmpq(end.numerator, end.denominator), arb(2) ** -80) / 8
            assert Grid((-3,)).cell([around]) is None


def test_values_are_nearest_and_beyond_float64_its_largest():
    """Of every index: that a number is too large for float64 must not be an error."""
    far, near = Grid((900, 900, 0, -3, 959)), Grid((-959, -1200, -1074))
    np.testing.assert_array_equal(
        far.values([1 << 200, -1 << 200, 3, 2**53 + 1, 1 << 100_000]),
        [np.finfo(float).max, np.finfo(float).min, 3.0, 2.0**50, np.finfo(float).max],
    )
    np.testing.assert_array_equal(near.values([-7, 5, -1]), [-7 * 2.0**-959, 0.0, -(2.0**-1074)])
    assert Grid(()).values([]).shape == (0,)


@pytest.mark.parametrize("kind", PLANES)
def test_cells_have_the_probabilities_of_quadrature(kind):
    """Of a plane, with different weights and cells, and a location between the grid's points."""
    norm, mass = PLANES[kind]
    location, weights, scale = (Fraction(1, 3), Fraction(-7, 5)), (Fraction(3, 2), Fraction(1, 2)), Fraction(5, 4)
    noise, grid, bits = plane_noise(kind, weights, scale**2), Grid((0, -1)), random.Random(5).getrandbits
    found = np.array([draw_cell(location, noise, grid, bits) for _ in range(800)])
    sides = [range(-5, 7), range(-7, 3)]
    nodes, node_weights = np.polynomial.legendre.leggauss(60)
    axes = []
    for side, width, place, weight in zip(sides, (1.0, 0.5), location, weights, strict=True):
        points = (np.array(side)[:, None] + nodes / 2.0) * width
        axes.append((points - float(place)) / float(weight * scale))
    density = np.exp(-norm(axes[0][:, None, :, None], axes[1][None, :, None, :])) / mass
    area = 0.5 / float(weights[0] * weights[1] * scale**2) / 4.0
    chances = np.einsum("abij,i,j->ab", density, node_weights, node_weights) * area
    counts = np.histogram2d(*found.T, bins=[np.append(side, side[-1] + 1) - 0.5 for side in sides])[0]
    assert_cell_frequencies(
        np.append(counts.ravel(), len(found) - counts.sum()), np.append(chances, 1.0 - chances.sum())
    )


def laplace_cells(location: Fraction, scale: Fraction, unit: Fraction, numbers) -> list[arb]:
    """P(k) for density exp(-|t - T|/λ)/(2λ), by its distribution function."""

    def below(end: Fraction) -> arb:
        move = (end - location) / scale
        size = (-arb(fmpq(abs(move).numerator, abs(move).denominator))).exp() / 2
        return size if move <= 0 else 1 - size

    return [below((number + HALF) * unit) - below((number - HALF) * unit) for number in numbers]


def mean_of(epsilon, lower=0.0, upper=3.0, norm=None):
    bounds = kng.Bounds(x=([lower], [upper]), intercept=False)
    return kng.KNormMechanism(bounds, epsilon, "replace", norm, allow_large_epsilon=True)


@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.WeightedLInf([0.3])])
@pytest.mark.parametrize("ends", [(0.0, 3.0), (2.0**50, 2.0**50 + 0.75)])
def test_location_and_noise_of_neighbours_make_a_loss_of_epsilon_and_of_no_more(norm, ends):
    """Of the worst neighbours, a record at one end of the bounds or at the other, in closed form for every cell."""
    mechanism, epsilon = mean_of(0.7, *ends, norm), Fraction(7, 10)
    records = np.full((5, 1), ends[0])
    other = records.copy()
    other[2] = ends[1]
    noise = mechanism.noise_in_fractions(1, 5)
    assert noise is not None
    with ctx.workprec(400):
        # λ to a hundred binary digits.
        scale = noise.weights[0] * Fraction(math.isqrt(int(noise.scale_squared * 4**100)), 2**100)
        laws = []
        for data in (records, other):
            (location,) = NoisyMean.of(mechanism, Schema(1)).location(mechanism.intake.exact_sums(data))
            first = int(np.floor(ends[0] * 8)) - 30
            laws.append(laplace_cells(location, scale, Fraction(1, 8), range(first, first + 80)))
        losses = [float((one / two).log()) for one, two in zip(*laws, strict=True)]
    assert max(map(abs, losses)) == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("number", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_release_is_drawn_by_these_probabilities(number, monkeypatch):
    """By the path that releases take, of a mean between the grid's points, on a grid as coarse as the noise."""
    mechanism, records = mean_of(2.0), np.array([[0.1], [2.9], [7.0], [-1.0]])
    monkeypatch.setattr(grid_cells, "_DIGITS", 1)
    bits = random.Random(11).getrandbits
    monkeypatch.setattr("secrets.randbits", bits)
    released = [kng.release(mechanism, records) for _ in range(30)]
    (exponent,) = released[0].certificate.sampler["grid_exponents"]
    # Clipped to [0, 3]; λ = 3/(4·2).
    location, scale, unit = Fraction(0.1) + Fraction(2.9) + 3, Fraction(3, 8), Fraction(2) ** exponent
    # What a release does beside its draw takes most of its time.
    way = proved_draw(mechanism, mechanism.intake.check_schema(records, None))
    data = way.prepare(records, None)
    others = [way.draw(data, bits) for _ in range(number - 30)]
    places = np.array([*(one.value[0] for one in released), *(value[0] for value in others)]) / float(unit)
    np.testing.assert_array_equal(places, np.round(places))
    numbers = range(-4, 10)
    chances = np.array([float(mass) for mass in laplace_cells(location / 4, scale, unit, numbers)])
    counts = np.array([np.sum(places == number) for number in numbers])
    assert_cell_frequencies(np.append(counts, len(places) - counts.sum()), np.append(chances, 1.0 - chances.sum()))


class Told(uniforms.Uniform):
    """A uniform number of which 5000 binary digits are given: those of the next one of `numbers`."""

    numbers: ClassVar[Iterator[int]] = iter(())

    def __init__(self, bits):
        super().__init__(bits)
        self.given = next(Told.numbers)

    def ball(self, digits):
        self._number, self._digits = self.given >> (5000 - digits), digits
        return super().ball(digits)


@pytest.fixture
def told(monkeypatch):
    """Noise of numbers that are told: a function that takes them."""
    monkeypatch.setattr("kngjax.draws.noises.Uniform", Told)
    return lambda numbers: monkeypatch.setattr(Told, "numbers", iter(numbers))


@pytest.mark.parametrize("kind", PLANES)
def test_cells_do_not_depend_on_how_many_digits_are_asked_for(kind, told, monkeypatch):
    noise, location = (
        plane_noise(kind, (Fraction(3), Fraction(1, 7)), Fraction(2)),
        (Fraction(10**9, 3), Fraction(1, 9)),
    )
    grid, found = Grid((-30, -50)), []
    for first in (1, 1000):
        monkeypatch.setattr(uniforms, "_FIRST_DIGITS", first)
        generator = random.Random(4)
        told(generator.getrandbits(5000) for _ in range(1000))
        found.append([draw_cell(location, noise, grid, random.Random(5).getrandbits) for _ in range(100)])
    assert found[0] == found[1]


@pytest.mark.parametrize(("beyond", "cell"), [(-1, 4), (1, 3)])
def test_a_place_next_to_the_edge_of_a_cell_is_told_with_thousands_of_digits(beyond, cell, told):
    """The edge is where V would be 2^-2052 more or less than it is, on the side of it where a guess would be wrong.

    V is 1/3, of which 2048 binary digits say on which side of their interval's middle it lies, or 2/3.
    """
    half, number = 1 << 4999, (1 << 5000) * (2 - (beyond + 1) // 2) // 3
    told([half, half, number])
    with ctx.workprec(8000):
        edge = arb(fmpq(number, 1 << 5000)) + beyond * arb(2) ** -2052
        digits, exponent = (2 * arb(2).log() * (2 * edge - 1)).mid().man_exp()
    noise, location = (
        ScaledNorm("maximum", (Fraction(1),), Fraction(1)),
        Fraction(7, 2) - int(digits) * power_of_two(int(exponent)),
    )
    assert draw_cell([location], noise, Grid((0,)), random.Random(0).getrandbits) == [cell]


def test_records_in_any_order_and_division_have_the_same_location():
    """Sums that climb by units in the last place, which float64 adds up differently in every order."""
    mechanism, generator = mean_of(1.0, 0.0, 1.0), np.random.default_rng(0)
    records = np.append(np.full(300, 2.0**-53), np.nextafter(1.0, 0.0))[:, None]
    expected = NoisyMean.of(mechanism, Schema(1)).location(mechanism.intake.exact_sums(records))
    assert expected == [(300 * Fraction(2) ** -53 + Fraction(np.nextafter(1.0, 0.0))) / 301]
    shuffled = generator.permutation(records)
    assert NoisyMean.of(mechanism, Schema(1)).location(mechanism.intake.exact_sums(shuffled)) == expected
    parts = kng.stream(iter([(shuffled[:100], None), (shuffled[100:], None)]))
    assert NoisyMean.of(mechanism, Schema(1)).location(mechanism.intake.exact_sums(parts)) == expected


@pytest.mark.parametrize("size", [0, 2**100])
def test_every_cell_may_come_however_far_off_the_location_is(size):
    """The last binary digits of a cell are uniform on a grid much finer than the noise: no output is impossible."""
    noise, grid, bits = ScaledNorm("sum", (Fraction(1),), Fraction(1)), Grid((-40,)), random.Random(8).getrandbits
    location = [Fraction(size) / 2**40 + Fraction(1, 3)]
    found = np.array([draw_cell(location, noise, grid, bits)[0] % 16 for _ in range(600)])
    assert_cell_frequencies(np.bincount(found, minlength=16), np.full(16, 1 / 16))


def test_noise_is_that_of_the_bounds_in_fractions():
    bounds = kng.Bounds(x=([2.0**60, -1.0], [2.0**60 + 2.0**9, 2.0]), intercept=False)

    def noise(norm):
        return kng.KNormMechanism(bounds, 0.1, "replace", norm).noise_in_fractions(2, 5)

    # n·ε is one half, with the decimal number that ε prints as.
    assert noise(None) == ScaledNorm("maximum", (Fraction(512), Fraction(3)), Fraction(4))
    assert noise(kng.L1()) == ScaledNorm("sum", (Fraction(1), Fraction(1)), Fraction(4) * 515**2)
    assert noise(kng.LInf()) == ScaledNorm("maximum", (Fraction(1), Fraction(1)), Fraction(4) * 512**2)
    assert noise(kng.L2()) == ScaledNorm("length", (Fraction(1), Fraction(1)), Fraction(4) * (512**2 + 9))
    weighted = kng.WeightedLInf([64.0, 0.25])
    assert noise(weighted) == ScaledNorm("maximum", (Fraction(64), Fraction(1, 4)), Fraction(4) * 12**2)


@pytest.mark.parametrize("norm", [None, kng.L1(), kng.LInf(), kng.L2(), kng.WeightedLInf([0.3])])
def test_nothing_of_the_noise_is_rounded(norm):
    """3·ε, .3 - .1 and quotients by .3 are none of float64's numbers."""
    noise = mean_of(0.1, 0.1, 0.3, norm).noise_in_fractions(1, 3)
    assert noise is not None
    reach = (Fraction(0.3) - Fraction(0.1)) * 10 / 3
    assert noise.weights[0] ** 2 * noise.scale_squared == reach**2


def test_noise_is_the_same_where_jax_has_float32_alone():
    """These bounds are one number of float32, and records would be too."""
    with jax.enable_x64(False):
        bounds = kng.Bounds(x=([2.0**40], [2.0**40 + 1.0]), intercept=False)
        mechanism = kng.KNormMechanism(bounds, 1.0, "replace")
        records = 2.0**40 + np.full((4, 1), 0.25)
        released = [kng.release(mechanism, records).value[0] - 2.0**40 for _ in range(5)]
    assert mechanism.noise_in_fractions(1, 4) == ScaledNorm("maximum", (Fraction(1),), Fraction(1, 16))
    assert len(set(released)) == 5
    assert max(map(abs, released)) < 20.0


def test_grids_follow_the_noise_however_large_or_small_it_is():
    def exponents(weight, scale):
        grid = Grid.for_noise(ScaledNorm("maximum", (Fraction(weight),), Fraction(scale) ** 2))
        return None if grid is None else grid.exponents

    assert exponents(1, 1) == (-40,)
    assert exponents(Fraction(2) ** 700, Fraction(2) ** -800) == (-140,)
    assert exponents(Fraction(10) ** 200, Fraction(10) ** -230) in ((-140,), (-139,))
    for weight, size in ((0, 1), (1, 0), (Fraction(2) ** 1100, 1), (Fraction(2) ** -1000, 1)):
        assert exponents(weight, size) is None


def test_without_noise_nothing_is_drawn():
    with pytest.raises(AssertionError, match="no noise"):
        draw_cell(
            (Fraction(1),), ScaledNorm("sum", (Fraction(0),), Fraction(1)), Grid((0,)), random.Random(0).getrandbits
        )


def test_a_mean_costs_pure_epsilon_and_no_delta(tmp_path):
    """Arrays and streams alike; what has no such noise is rounded as before."""
    records = np.random.default_rng(1).uniform(0.0, 3.0, (50, 1))
    mechanism = mean_of(0.5)
    ledger = kng.Ledger.create(tmp_path / "a.ledger", kng.Budget.pure(1), adjacency="replace", dataset="invented")
    for data in (records, kng.stream(iter([(records[:20], None), (records[20:], None)]))):
        certificate = kng.release(mechanism, data, ledger=ledger).certificate
        assert (certificate.assurance, certificate.epsilon, certificate.delta) == ("proved", 0.5, 0.0)
        assert certificate.rounding is None
    ellipse = kng.release(mean_of(0.5, norm=kng.Ellipsoid(np.eye(1))), records).certificate
    assert ellipse.assurance == "in_reals"
    with pytest.raises(ValueError, match="draws from its own law"):
        kng.release(mechanism, records, sampler=kng.chains.Exact())
