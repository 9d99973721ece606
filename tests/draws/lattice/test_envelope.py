"""Bounds of scores on the sampler's own boxes: no point of a box falls below them, whatever ties there are."""

import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.scores import RESOLUTION, WEIGHT_UNITS, QuadraticScore
from kngjax.draws.lattice.units import DomainLattice
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LINE = kng.Bounds(x=([-0.3], [0.7]), y=(-1.0, 1.0))
PLANE = kng.Bounds(x={"one": (-0.3, 0.7), "two": (0.1, 0.9)}, intercept=False)
SAMPLER = kng.draws.Lattice(data_digits=6, theta_digits=7, max_records=2**12, expected_proposals=2.0)
MECHANISMS = {
    "quantile": kng.KNG(kng.QuantileLoss(0.3), LINE, kng.L1Ball(1.0), 1.0, "replace"),
    "quantile l1": kng.KNG(kng.QuantileLoss(0.9), LINE, kng.Box(-1.0, 1.0), 1.0, "add_remove", norm=kng.L1()),
    "quantile value": kng.ExponentialMechanism(kng.QuantileLoss(0.3), LINE, kng.Box(-1.0, 1.0), 3.0, "add_remove"),
    "squared": kng.KNG(kng.SquaredLoss(), LINE, kng.L2Ball(1.0), 1.0, "replace"),
    "squared value": kng.ExponentialMechanism(kng.SquaredLoss(), LINE, kng.L1Ball(1.0), 1.0, "replace"),
    "distance value": kng.ExponentialMechanism(kng.SquaredDistanceLoss(), PLANE, kng.Box(-1.0, 1.0), 1.0, "add_remove"),
}


def tied_records(generator, mechanism, kinds, copies):
    """A few records that differ, each many times, not equally often."""
    columns = mechanism.bounds.columns
    X = generator.uniform(-0.4, 1.0, (kinds, columns))
    times = generator.integers(1, copies + 1, kinds)
    X, y = np.repeat(X, times, axis=0), np.repeat(generator.uniform(-1.2, 1.2, kinds), times)
    return mechanism.intake.records(X, y if mechanism.loss.has_response else None)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_no_point_of_a_box_falls_below_its_bound(name):
    mechanism, generator = MECHANISMS[name], np.random.default_rng(1)
    for kinds, copies in ((1, 300), (3, 200), (5, 60), (40, 1)):
        records = tied_records(generator, mechanism, kinds, copies)
        problem = SAMPLER.problem(mechanism, records)
        envelope = SAMPLER.envelope(problem)
        boxes, score = envelope._boxes, envelope._score
        matrix, inverse = score.coordinates.matrix, score.coordinates.inverse
        whole = problem.score.whole(problem.domain.low, problem.domain.high)
        # Points of boxes, their corners too, as far as they lie in Θ; and points of Θ in whichever box they lie.
        places = generator.choice(len(boxes.runs), min(len(boxes.runs), 150), replace=False)
        points = [
            matrix @ turned
            for low, high in zip(boxes.low[places], boxes.high[places], strict=True)
            for turned in (low, high, *generator.integers(low, high + 1, (4, low.size)))
        ]
        anywhere = generator.integers(problem.domain.low, problem.domain.high + 1, (200, 2))
        points = [point for point in (*points, *anywhere) if problem.domain.contains(point)]
        assert len(points) > 60
        for point in points:
            turned = inverse @ point
            (place,) = np.flatnonzero(np.all((boxes.low <= turned) & (turned <= boxes.high), axis=1))
            level = problem.score.at(point, whole.runs[0], whole.sums[0])
            assert boxes.lower[place] <= level
            assert level == score.at(point, boxes.runs[place], boxes.sums[place])


def test_every_point_lies_in_one_box():
    """Those of Θ: boxes with none may be left out."""
    mechanism = MECHANISMS["quantile"]
    sampler = kng.draws.Lattice(data_digits=4, theta_digits=5, expected_proposals=1.5)
    problem = sampler.problem(mechanism, tied_records(np.random.default_rng(0), mechanism, 4, 50))
    envelope = sampler.envelope(problem)
    boxes, coordinates = envelope._boxes, envelope._score.coordinates
    assert len(boxes.runs) > 3
    sides = [range(low, high + 1) for low, high in zip(problem.domain.low, problem.domain.high, strict=True)]
    for point in np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2):
        turned = coordinates.inverse @ point
        number = np.sum(np.all((boxes.low <= turned) & (turned <= boxes.high), axis=1))
        assert number == 1 or (number == 0 and not problem.domain.contains(point))


@pytest.mark.slow
def test_levels_of_any_size_are_drawn_by():
    """Two coefficients whose levels are beyond 2^63, as those of more records than anybody has."""
    count = 2**70
    score = QuadraticScore([[count, 0], [0, count]], [count, 0], count, weight=WEIGHT_UNITS)
    low, high = np.array([-2, -2]), np.array([3, 2])
    box = score.whole(low, high)
    assert score.at(np.array([3, 2]), box.runs[0], box.sums[0]) == 8 * count * RESOLUTION
    assert box.middle[0] > 2**63
    domain = DomainLattice((0, 0), low, high, None, 0)
    envelope = LatticeEnvelope(score, domain, Fraction(1, 2 * RESOLUTION), 2.0, 100)
    assert envelope.draw(random.Random(0).getrandbits).tolist() == [1, 0]
    # So small a rate that levels far apart are about as likely.
    envelope = LatticeEnvelope(score, domain, Fraction(1, 4 * count * RESOLUTION), 2.0, 100)
    bits = random.Random(1).getrandbits
    draws = np.array([envelope.draw(bits) for _ in range(2000)])
    masses = np.exp(-np.array([[(i - 1) ** 2 + j**2 for j in range(-2, 3)] for i in range(-2, 4)]) / 4)
    counts = np.histogram2d(*draws.T, bins=(np.arange(-2.5, 4), np.arange(-2.5, 3)))[0]
    assert_cell_frequencies(counts.ravel(), (masses / masses.sum()).ravel())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].adjacency == "add_remove"])
def test_without_records_every_point_is_as_likely(name):
    mechanism = MECHANISMS[name]
    nobody = kng.data.Records(np.zeros((0, 2)), np.zeros(0))
    assert set(lattice_law(mechanism, nobody, kng.draws.Lattice(3, 3)).scores.tolist()) == {0}
    bits = random.Random(2).getrandbits
    draws = np.array([kng.draws.Lattice(1, 1).draw(mechanism, nobody, bits) for _ in range(600)])
    counts = np.unique(draws, axis=0, return_counts=True)[1]
    assert_cell_frequencies(counts, np.full(counts.size, 1 / counts.size))
    assert counts.size == len(lattice_law(mechanism, nobody, kng.draws.Lattice(1, 1)).scores)
