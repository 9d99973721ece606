"""Audits of the joint density of curves: laws by enumeration, and bugs that are seen."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit.joint_curves import curves_loss

EPSILON = 4.0
# Records (x, y) with x in [1/2, 1], of one column without an intercept.
VALUES = [(0.5, 0.1), (1.0, 0.3), (1.0, 0.55), (0.5, 0.4)]


@functools.cache
def target(counts, adjacency, levels=(1 / 3, 2 / 3)):
    bounds = kng.Bounds(x=([0.5], [1.0]), intercept=False)
    process = kng.QuantileProcess(levels, bounds, kng.Box(0.0, 1.0), EPSILON, adjacency, order="joint")
    x, y = np.repeat(np.array(VALUES), counts, axis=0).T
    return process._joint().target(process.prepare(x[:, None], y))


def pairs(adjacency):
    """Of two to four records, neighbours."""
    for counts in itertools.product(range(4), repeat=len(VALUES)):
        if not 2 <= sum(counts) <= 4:
            continue
        for place in range(len(VALUES)):
            more = tuple(np.add(counts, np.eye(len(VALUES), dtype=int)[place]).tolist())
            if adjacency == "add_remove":
                yield counts, more
            else:
                for other in range(place):
                    yield more, tuple(np.add(counts, np.eye(len(VALUES), dtype=int)[other]).tolist())


def worst(adjacency, change=lambda one: one, step=9, **how):
    given = itertools.islice(pairs(adjacency), 0, None, step)
    return max(curves_loss(*(change(target(one, adjacency)) for one in both), **how) for both in given)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_law_of_curves_tells_neighbours_apart_by_more_than_epsilon(adjacency):
    found = worst(adjacency)
    assert found <= EPSILON
    assert found > {"replace": 0.3, "add_remove": 0.4}[adjacency] * EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_none_of_all_does(adjacency):
    assert worst(adjacency, step=1) <= EPSILON


def at_twice_the_rate(one):
    """As if an exchanged record counted once."""
    return dataclasses.replace(one, rate=2.0 * one.rate)


def totals_of_the_data(unit, shares, sums):
    """T = S, and not integrated out."""
    return -unit * float(np.sum(np.abs(sums - shares * np.sum(sums))))


def signed(one, curves):
    """Differences of what lies below neighbouring curves, without sorting."""
    x, y = np.asarray(one.data.x)[:, 0], np.asarray(one.data.y)
    below = (y <= x * curves[:, :, :1][..., 0][:, :, None]).astype(float)
    ends = np.zeros((len(curves), 1, len(y)))
    return (np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1) @ x)[:, :, None]


def extreme_pair(adjacency):
    """Many records, and one from the highest bin more, or for one of the lowest."""
    first = (3, 0, 0, 0) if adjacency == "add_remove" else (4, 0, 0, 0)
    return target(first, adjacency), target((3, 0, 1, 0), adjacency)


@pytest.mark.parametrize("bug", ["rate", "totals"])
def test_half_the_sensitivity_and_totals_of_the_data_are_seen(bug):
    planted = {
        "rate": {"change": at_twice_the_rate},
        "totals": {"log_mass": totals_of_the_data},
    }[bug]
    assert worst("replace", **planted) > EPSILON
