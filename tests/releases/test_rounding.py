"""The rounding of outputs: no law of θ is rounded to another cell more often than stated, and Θ is not left."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.releases import rounding
from kngjax.releases.certificate import Certificate
from kngjax.releases.draw_choice import draw_for
from kngjax.releases.rounding import Rounding

MEAN = kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace", kng.Ellipsoid([[1.0]]))
OFFSETS = st.integers(0, 2**64 - 1).map(lambda number: Fraction(number, 2**64))
GRIDS = st.tuples(st.sampled_from([0.0, 0.5, -37.0, 1e9]), st.integers(-8, 12), st.integers(0, 20))


def grid_of(centre, unit, digits):
    return Rounding((centre,), (unit - digits,), (unit,))


def cell(grid, value, offset):
    return float(grid.rounded(np.array([value]), [offset])[0])


@given(GRIDS, OFFSETS, st.floats(-1e6, 1e6))
def test_values_move_towards_the_centre_by_no_more_than_a_cell(parts, offset, value):
    grid, (centre, unit, digits) = grid_of(*parts), parts
    found = cell(grid, value, offset)
    assert min(value, centre) <= found <= max(value, centre)
    width = 2.0 ** (unit - digits) * max(1.0, abs(value - centre) / 2.0**unit)
    assert abs(value - found) <= width * (1.0 + 1e-9) + 1e-6 * abs(centre)


@given(GRIDS, OFFSETS, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_rounding_is_monotone(parts, offset, one, two):
    grid = grid_of(*parts)
    low, high = sorted((one, two))
    assert cell(grid, low, offset) <= cell(grid, high, offset)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.3, -0.7, 1.3, -2.9, 11.0, 1000.1])
def test_the_share_of_offsets_that_part_two_values_is_as_stated(value):
    """Counted over 2^10 offsets, for an error as large as is assumed: against η, which is of every law of θ."""
    grid = Rounding((0.25,), (-6,), (0,))
    error = 2.0**-44 * (0.25 + max(1.0, abs(value - 0.25)))
    # The same grid and error, 2^32 times as large.
    parted = [
        cell(grid, value, Fraction(place, 2**16)) != cell(grid, value + 2.0**32 * error, Fraction(place, 2**16))
        for place in range(0, 2**16, 64)
    ]
    assert 0.0 < np.mean(parted) <= 2.0**32 * float(grid.distance) + 2.0**-9
    assert np.mean(parted) >= 0.2 * 2.0**32 * float(grid.distance)


@pytest.mark.default_cases("10000000", "1000000000")
@pytest.mark.parametrize("num_records", [10**5, 10**6, 10**7, 10**8, 10**9])
def test_noise_narrower_than_a_cell_is_covered(num_records):
    """P(θ within r of a boundary) for the Laplace law of a mean on any place of the grid, in closed form."""
    grid = Rounding.of(MEAN, 1, num_records)
    width, error, scale = 2.0 ** grid.exponents[0], 2.0**-44, 1.0 / num_records
    # Of the places x of the mean within a cell, the offset takes all as likely: F(x + r) - F(x - r), summed over the
    # boundaries and averaged over x, is 2r/h for every law. On a fixed grid the worst place counts.
    fixed = max(2.0 * laplace_mass(error, scale, shift, width) for shift in (0.0, 0.5 * width))
    averaged = np.mean([laplace_mass(error, scale, shift, width) for shift in np.linspace(0, width, 4001)[:-1]])
    if scale > width / 20:
        assert averaged <= 2.0 * error / width * 1.01
    assert 2.0 * error / width <= float(grid.distance) * 1.01
    # What a grid whose offset is known would have had to state: hundreds of times as much for 10⁹ records.
    if num_records >= 10**8:
        assert fixed > 20 * float(grid.distance)


def laplace_mass(error, scale, shift, width):
    """Σ_k P(|L - shift - k·width| ≤ error) for a Laplace law of this scale."""

    def below(x):
        return 0.5 * math.exp(x / scale) if x < 0 else 1.0 - 0.5 * math.exp(-x / scale)

    around = (shift + place * width for place in range(-3, 4))
    return sum(
        below(edge + error) - below(edge - error)
        if abs(edge) <= 2 * error
        else math.exp(-abs(edge) / scale) * math.sinh(error / scale)
        for edge in around
    )


def test_a_value_on_a_public_boundary_is_not_betrayed():
    """An atom anywhere, the worst law there is: on a grid that is known beforehand its error shows every time."""
    grid = Rounding.of(MEAN, 1, 10**9)
    width = 2.0 ** grid.exponents[0]
    for place in (0, 1, 7, -3):
        edge = grid.centre[0] + place * width
        assert not any(cell(grid, edge, u) != cell(grid, edge - 2.0**-45, u) for u in drawn(100))


def drawn(count):
    return [rounding._offset() for _ in range(count)]


def test_offsets_are_fresh_and_from_the_operating_system(monkeypatch):
    grid = Rounding.of(MEAN, 1, 100)
    assert len({float(grid(np.array([0.9]))[0]) for _ in range(50)}) > 45
    offsets = np.array([float(offset) for offset in drawn(2000)])
    assert 0.0 <= offsets.min() < 0.01 < 0.99 < offsets.max() < 1.0
    assert abs(offsets.mean() - 0.5) < 0.04
    asked = []
    monkeypatch.setattr(rounding.os, "urandom", lambda size: asked.append(size) or bytes(size))
    Rounding((0.0, 0.0), (-4, -4), (0, 0))(np.array([0.3, 0.4]))
    assert asked == [8, 8]


LOGISTIC = kng.OutputPerturbation(kng.LogisticLoss(), kng.Bounds(x=(-1.0, 1.0)), 0.01, 0.1, 1e-6, "add_remove")
RIDGE = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))


def test_cells_follow_public_noise():
    """A thousandth of it, and the unit of what float64 is assumed to have right is no smaller than it."""
    deviation = 1.0 / math.sqrt(float(LOGISTIC.gamma_for(2)))
    assert deviation > 1000.0
    grid = Rounding.of(LOGISTIC, 2)
    for exponent, unit in zip(grid.exponents, grid.units, strict=True):
        assert deviation <= 2.0**unit < 2.0 * deviation
        assert deviation <= 2.0 ** (exponent + rounding.NOISE_DIGITS) < 2.0 * deviation
    assert float(grid.distance) < 1e-9
    for counts in ((100, 200), (1000, 2000)):
        fewer, more = (Rounding.of(MEAN, 1, count).exponents[0] for count in counts)
        assert fewer >= more
    assert Rounding.of(MEAN, 1, 100).exponents[0] > Rounding.of(MEAN, 1, None).exponents[0]


def test_half_a_unit_of_the_last_place_is_within_what_is_assumed():
    """However large θ: the assumption would be void if float64 could not even write θ down so exactly."""
    grid = Rounding.of(LOGISTIC, 2)
    for value in np.concatenate([np.logspace(-3, 12, 200), [3e8, 1e300]]):
        allowed = 2.0**-44 * (abs(grid.centre[0]) + max(2.0 ** grid.units[0], abs(value - grid.centre[0])))
        assert np.spacing(value) / 2 <= allowed
    far = Rounding.of(kng.KNG(kng.SquaredDistanceLoss(), *far_bounds(), 1.0, "replace"), 1, 100)
    assert np.spacing(far.centre[0]) / 2 <= 2.0**-44 * (abs(far.centre[0]) + 2.0 ** far.units[0])


def far_bounds(centre=1e5):
    return kng.Bounds(x=([centre], [centre + 1.0]), intercept=False), kng.Box(centre, centre + 1.0)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_private_number_of_records_moves_no_grid(adjacency):
    bounds = kng.Bounds(x=(0.0, 1.0), intercept=False)
    mechanism = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box(0.0, 1.0), 1.0, adjacency)
    few, many = (Rounding.of(mechanism, 1, count) for count in (10, 10**5))
    assert (few == many) == (adjacency == "add_remove")


def test_what_no_rounding_can_hide_is_refused():
    bounds, box = kng.Bounds(x=(-1.0, 1.0)), kng.Box(-1.0, 1.0)
    sizes = [kng.KNG(kng.QuantileLoss(0.5), bounds, box, epsilon, "replace") for epsilon in (1.0, 9.0, 12.0, 20.0)]
    for mechanism in sizes[:3]:
        epsilon = float(mechanism.epsilon)
        assert Rounding.of(mechanism, 2).delta(epsilon) <= 1e-4
    with pytest.raises(ValueError, match="Take a smaller epsilon"):
        Rounding.of(sizes[3], 2)
    with pytest.raises(ValueError, match="narrow and far from 0"):
        Rounding.of(kng.KNG(kng.SquaredDistanceLoss(), *far_bounds(1e12), 1.0, "replace"), 1)


@pytest.mark.parametrize(
    "mechanism",
    [
        # Of so many facets float64 alone knows how long records are.
        kng.AdaSSP(kng.Bounds(y=(-1.0, 1.0), hull=kng.geometry.FeatureHull.powers(4, 0.0, 1.0)), 1.0, 1e-6, "replace"),
        kng.KNG(kng.SquaredLoss(), RIDGE, kng.Box(-2.0, 2.0), 1.0, "replace"),
        MEAN,
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_certificates_state_what_a_release_costs_in_all(mechanism):
    dimension = mechanism.dimension or 2
    sampler = kng.chains.Exact() if isinstance(mechanism, kng.KNG) else None
    certificate = Certificate.of(draw_for(mechanism, sampler, facts := Schema(dimension, 100)), facts)
    law = mechanism.guarantee_for(dimension)
    added = (1.0 + math.exp(law.epsilon)) * float(certificate.rounding.distance)
    assert certificate.rounding_delta == pytest.approx(added, rel=1e-9)
    assert certificate.rounding_delta >= added
    assert law.delta + added <= certificate.delta <= law.delta + added * (1.0 + 1e-9)
    assert certificate.epsilon == law.epsilon
    assert (certificate.cost.epsilon, certificate.cost.delta) == (certificate.epsilon, certificate.delta)
    assert f"{certificate.delta:.3g})-differentially private" in certificate.explain()
    fields = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert fields["proved_of_this_release"] == {"epsilon": certificate.epsilon, "delta": certificate.delta}
    assert kng.releases.Certificate.from_dict(fields) == certificate


def test_certificates_from_before_offsets_were_random_are_read():
    fields = Certificate.of(draw_for(MEAN, None, Schema(1, 100)), Schema(1, 100)).to_dict()
    fields["rounding"] = {"centre": [0.5], "exponents": [-19]}
    old = kng.releases.Certificate.from_dict(json.loads(json.dumps(fields)))
    assert old.rounding == Rounding((0.5,), (-19,))
    assert float(old.rounding.distance) == 2.0**-23
    assert "public multiples of 2^-20 of its unit" in old.explain()
