"""Audits of the joint density of curves: laws of few records by enumeration, and bugs that are seen."""

import dataclasses

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit.joint_curves import curves_loss
from kngjax.releases.curves.joint import Joint

EPSILON = 4.0
BOUNDS = kng.Bounds(x=([0.5], [1.0]), intercept=False)
# Records (x, y), one that comes, and which is exchanged for it under replace.
TWO_LOW = [(1.0, 0.01), (1.0, 0.002)], (1.0, 0.998)
SEVEN_HIGH = [(1.0, 0.998)] * 7, (1.0, 0.01)
EIGHT = (
    [(1.0, 0.998), (0.5, 0.99), (1.0, 0.002), (0.5, 0.6), (0.5, 0.45), (1.0, 0.99), (1.0, 0.3), (0.5, 0.45)],
    (1.0, 0.01),
)


def targets(pair, adjacency):
    meant, levels = kng.Adjacency.parse(adjacency), [1 / 3, 2 / 3]
    drawn = Joint.of(levels, BOUNDS, kng.Box(0.0, 1.0), EPSILON, meant, 1, norm=None, bandwidth=None)
    records, new = pair
    other = [*records[adjacency == "replace" :], new]
    made = (np.array(each).T for each in (records, other))
    return [drawn.target(drawn.prepare(x[:, None], y)) for x, y in made]


@pytest.mark.default_cases("add_remove-two")
@pytest.mark.parametrize("pair", [TWO_LOW, SEVEN_HIGH, EIGHT], ids=["two", "seven", "eight"])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_law_of_curves_tells_neighbours_apart_by_more_than_epsilon(adjacency, pair):
    assert 0.1 * EPSILON < curves_loss(*targets(pair, adjacency)) <= EPSILON


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_more_than_half_of_it_is_needed(adjacency):
    assert curves_loss(*targets(EIGHT, adjacency)) > 0.5 * EPSILON


def test_an_exchanged_record_that_counts_once_is_seen():
    twice = [dataclasses.replace(one, rate=np.asarray(2.0 * one.rate)) for one in targets(EIGHT, "replace")]
    assert curves_loss(*twice) > 1.2 * EPSILON


def totals_of_the_data(unit, shares, sums):
    """T = S, and not integrated out."""
    return -unit * float(np.sum(np.abs(sums - shares * np.sum(sums))))


def test_totals_of_the_data_are_seen():
    assert curves_loss(*targets(TWO_LOW, "add_remove"), log_mass=totals_of_the_data) > 1.05 * EPSILON


def signed(target, curves):
    """Differences of what lies below neighbouring curves, not sorted."""
    x, y = np.asarray(target.data.x)[:, 0], np.asarray(target.data.y)
    below = (y <= x * curves).astype(float)
    ends = np.zeros((len(curves), 1, len(y)))
    return (np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1) @ x)[:, :, None]


def test_signed_shares_of_curves_that_cross_are_seen_and_sorted_ones_are_no_loss():
    given = targets(SEVEN_HIGH, "add_remove")
    assert curves_loss(*given, bins=signed, may_cross=True) > 1.05 * EPSILON
    assert curves_loss(*given, may_cross=True) <= EPSILON
