"""Audits of curves as location and scale: laws of all parts enumerated, parts replayed, and bugs that are seen."""

import itertools

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit.quantile_processes import (
    LocationScaleLaws,
    replayed_location_scale,
)
from kngjax.releases.curves import location_scale
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.releases.lattice.problems import WholeRecords
from kngjax.sensitivity import in_fractions
from tests.audit.test_quantile_processes import ADJACENCIES, COARSE, NUMBERS, halved, pair, worst_loss_of

EPSILON = 4.0


def of_numbers(adjacency, epsilon=EPSILON, levels=(0.3, 0.6)):
    meant = kng.Adjacency.parse(adjacency)
    return LocationScale.of(levels, NUMBERS, kng.Box(0.0, 1.0), epsilon, meant, 1, 64, COARSE)


def worst_loss(adjacency, values, most):
    return worst_loss_of(LocationScaleLaws(of_numbers(adjacency)), values, most, adjacency)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_outcome_of_few_records_tells_neighbours_apart_by_more_than_epsilon(adjacency):
    found = worst_loss(adjacency, [0.1, 0.7], 2)
    assert 0.2 * EPSILON < found <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_outcome_of_more_records_does(adjacency):
    found = worst_loss(adjacency, [0.1, 0.4, 0.9], 3)
    assert 0.35 * EPSILON < found <= EPSILON


@pytest.mark.parametrize("part", list(location_scale.SHARES))
def test_each_part_at_twice_its_price_costs_more_than_epsilon(part, monkeypatch):
    """What is said of it follows from its parts, so that a ledger would be debited more."""
    monkeypatch.setitem(location_scale.SHARES, part, 2 * location_scale.SHARES[part])
    assert of_numbers("replace").guarantee.epsilon > 1.29 * EPSILON


def curves(adjacency):
    bounds, box = kng.Bounds(x=([-1.0, 0.0], [1.0, 1.0])), kng.Box(-4.0, 4.0)
    return LocationScale.of((0.25, 0.5, 0.75), bounds, box, 2.0, kng.Adjacency.parse(adjacency), 3, 100)


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_part_betrays_the_claim_and_one_needs_all_of_it(adjacency):
    found = replayed_location_scale(curves(adjacency), *pair(adjacency), num_draws=1, num_points=12)
    assert found.passed
    assert found.ratio > 0.999


def about_the_mean(original):
    """Residuals less the mean of them: one record moves all others."""

    def standardised(made, records, location, scale):
        found = original(made, records, location, scale)
        return WholeRecords(found.x, found.y - np.mean(found.y).astype(np.int64))

    return standardised


def about_the_middle(original):
    """Sizes of residuals about their own median."""

    def scale_problem(made, records, location):
        middle = np.median(records.y - records.x @ location).astype(np.int64)
        return original(made, WholeRecords(records.x, records.y - middle), location)

    return scale_problem


PLANTED = {
    "half the sensitivity": (in_fractions, "gradient_changes", halved(in_fractions.gradient_changes)),
    "residuals about their mean": (LocationScale, "standardised", about_the_mean(LocationScale.standardised)),
    "sizes about their median": (LocationScale, "scale_problem", about_the_middle(LocationScale.scale_problem)),
}


@pytest.mark.default_cases("sizes about their median")
@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_seen_by_the_replay(bug, monkeypatch):
    monkeypatch.setattr(*PLANTED[bug])
    assert not replayed_location_scale(curves("replace"), *pair("replace"), num_draws=1, num_points=40).passed


def test_outcomes_are_all_locations_scales_and_increasing_levels():
    law = LocationScaleLaws(of_numbers("replace")).law(None, np.array([0.1, 0.9]))
    assert len(law) == 5 * 2 * len(list(itertools.combinations_with_replacement(range(5), 2)))
    assert np.logaddexp.reduce(list(law.values())) == pytest.approx(0.0, abs=1e-9)
