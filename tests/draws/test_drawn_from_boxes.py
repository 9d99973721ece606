"""Draws by rejection from boxes: their law without any floor, and each decision beside balls."""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from kngjax.draws.boxes import box_rejection, cover
from kngjax.draws.boxes.box_coordinates import BoxCoordinates
from kngjax.draws.boxes.record_sums import RecordSums
from kngjax.draws.grid_cells import Grid
from tests.draws.box_problems import SIZE, problem
from tests.oracles.goodness_of_fit import assert_cell_frequencies


@pytest.mark.default_cases("True")
@pytest.mark.parametrize("floored", [False, True])
def test_the_law_does_not_depend_on_the_boxes(floored, monkeypatch):
    """Without a floor, and in coordinates that are those of no record: θ_2, and θ_1 + θ_2."""
    sums, gauge, body = problem("Huber", "maximum", "l2", scale=Fraction(4))
    matrix = np.array([[1.0, 0.6], [-0.3, 0.8]])
    with np.errstate(all="ignore"):
        others = RecordSums(sums.x, sums.scores, BoxCoordinates(np.array([0.2, -0.4]), matrix))
    if not floored:
        monkeypatch.setattr(cover.Cover, "_look", lambda self, boxes: boxes)
        monkeypatch.setattr(cover.Cover, "refine", lambda self, most: None)
        monkeypatch.setattr(cover.Cover, "known", sums.over(np.zeros((1, 2)), np.zeros((1, 2))))
    found = box_rejection.cover_of(others, gauge, body)
    bits, grid = random.Random(4).getrandbits, Grid((-40, -40))
    theta = np.array([grid.values(box_rejection.draw(found, others, gauge, body, grid, bits)) for _ in range(300)])
    axis = np.linspace(-SIZE, SIZE, 301)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    gradient = np.clip(points @ sums.x.T - sums.scores.y, -0.4, 0.4) @ sums.x
    masses = np.exp(-np.max(np.abs(gradient) / gauge.scales, axis=-1)) * (np.linalg.norm(points, axis=-1) <= SIZE)
    for way in (np.array([0.0, 1.0]), np.array([1.0, 1.0])):
        edges = np.linspace(-2.5, 2.5, 41)
        chances = np.histogram(points @ way, edges, weights=masses)[0]
        assert_cell_frequencies(np.histogram(theta @ way, edges)[0], chances / chances.sum())


def test_what_float64_rejects_is_rejected_in_balls():
    """Proposals by the hundred, each decided in both ways."""
    sums, gauge, body = problem("pseudo-Huber", "maximum", dimension=2, count=500, scale=Fraction(1))
    bits = random.Random(9).getrandbits
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.shape, sums.coordinates.whole(body))
        found.refine(200)
        proposals = box_rejection.BoxProposals(sums, gauge, body, found, bits)
        rejected = 0
        for _ in range(100):
            words = np.array([[bits(64) for _ in range(3)]], np.uint64)
            chosen = proposals._choose(1)
            if not proposals._are_rejected(chosen, words)[0]:
                continue
            rejected += 1
            shares = [box_rejection.Uniform(bits, int(word), 64) for word in words[0]]
            proposal = box_rejection.BoxProposal(
                sums.coordinates, found.boxes.lower[chosen[0]], found.boxes.upper[chosen[0]], shares[:-1]
            )
            assert not proposals._is_accepted(proposal, int(proposals._weights.whole[chosen[0]]), shares[-1])
    assert rejected > 20


def test_what_lies_outside_of_the_domain_is_not_accepted():
    """In balls alone, by a last number that accepts all else: float64 rejects it before."""
    sums, gauge, body = problem("pseudo-Huber", "maximum", "l2", scale=Fraction(1))
    bits, outside = random.Random(9).getrandbits, 0
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.shape, sums.coordinates.whole(body))
        proposals = box_rejection.BoxProposals(sums, gauge, body, found, bits)
        for box in proposals._choose(100):
            *places, share = (box_rejection.Uniform(bits, word, 64) for word in (bits(64), bits(64), 1))
            proposal = box_rejection.BoxProposal(
                sums.coordinates, found.boxes.lower[box], found.boxes.upper[box], places
            )
            length = np.hypot(*(float(one.mid()) for one in proposal.place(64)))
            assert proposals._is_accepted(proposal, int(proposals._weights.whole[box]), share) == (length < SIZE)
            outside += length > SIZE
    assert 20 < outside < 80


def test_weights_are_at_least_the_masses_that_floors_allow():
    sums, gauge, body = problem("logistic", "sum", dimension=3)
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.shape, sums.coordinates.whole(body))
        found.refine(200)
        weights = box_rejection.Weights.of(found.boxes)
    with ctx.workprec(200):
        unit = arb(fmpq(2)) ** weights.exponent
        for k in range(found.boxes.floors.size):
            volume = arb(1)
            for low, high in zip(found.boxes.lower[k].tolist(), found.boxes.upper[k].tolist(), strict=True):
                volume *= arb(high) - arb(low)
            mass = volume * (arb(weights.level) - arb(float(found.boxes.floors[k]))).exp()
            assert mass <= unit * int(weights.whole[k])
    assert weights.sums[-1] == sum(weights.whole.tolist())
