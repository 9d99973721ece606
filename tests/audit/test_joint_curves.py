"""Audits of the joint density of curves: laws by enumeration, and bugs that are seen."""

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
