"""Levels are drawn at the frequencies of counts, of which those below 0 are none."""

import tracemalloc

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.study.synthesis.synthetic_tables import drawn_places, probabilities


def test_counts_become_probabilities_of_each_combination_of_parents():
    counts = np.array([[3.0, 1.0, -2.0], [0.0, 0.0, 0.0], [-1.0, -5.0, -2.0]])
    found = probabilities(counts)
    np.testing.assert_allclose(found, [[0.75, 0.25, 0.0], [1 / 3] * 3, [1 / 3] * 3])


@pytest.mark.parametrize("counts", [[2.0, -1.0, 6.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 7.0, 0.0, 0.0]])
def test_levels_are_drawn_as_often_as_they_were_counted(counts):
    rows, law = 20_000, probabilities(np.array(counts))
    places = drawn_places(np.array(counts), [], kng.research_key(0), rows)
    found = np.bincount(places, minlength=4) / rows
    # Five standard errors of a frequency.
    np.testing.assert_array_less(np.abs(found - law), 5 * np.sqrt(law * (1 - law) / rows) + 1e-12)


def test_each_row_is_drawn_at_its_own_levels_of_the_parents():
    counts = np.zeros((2, 3, 2))
    counts[0, :, 0] = counts[1, :, 1] = 5.0
    first, second = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 2, 2, 0])
    for seed in range(5):
        key = jax.random.fold_in(kng.research_key(0), seed)
        np.testing.assert_array_equal(drawn_places(counts, [first, second], key, 5), first)


def test_no_row_takes_memory_for_each_level():
    """A million rows of a thousand levels are some megabytes, and none are none."""
    rows, parent = 1_000_000, np.tile([0, 1], 500_000)
    counts = np.ones((2, 1000))
    counts[0, 500:] = counts[1, :500] = 0.0
    tracemalloc.start()
    places = drawn_places(counts, [parent], kng.research_key(1), rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 * rows
    np.testing.assert_array_equal(places // 500, parent)
    assert drawn_places(counts, [parent[:0]], kng.research_key(1), 0).size == 0
