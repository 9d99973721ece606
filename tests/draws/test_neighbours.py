"""No neighbours are told apart by more than the guarantee allows, and the worst ones are by that much."""

import pytest

from kngjax.audit.grid_laws.neighbours import worst_ratios
from tests.draws.neighbours import WORST


@pytest.mark.parametrize("name", WORST)
def test_the_worst_neighbours_lose_no_more_than_is_allowed_and_hardly_less(name):
    loss, least = WORST[name]
    # Balls and fractions; but the laws of intervals and choices are floats.
    assert least <= loss() <= 1.0 + 1e-12 * (name.startswith(("choice", "interval")))


def test_no_neighbour_is_farther_than_noise_hides_and_the_worst_are_as_far():
    ratios = dict(worst_ratios())
    assert max(ratios.values()) <= 1
    assert min(ratios.values()) > 0.99
