"""No neighbours are told apart by more than the guarantee allows, and the worst ones are by that much."""

import pathlib

import pytest

from audits.grid_laws.neighbours import worst_ratios
from tests.draws.cases import all_draws
from tests.draws.neighbours import WORST

ROOT = pathlib.Path(__file__).parents[2]
# The worst pairs of each way of drawing, by name, or the test that measures them.
WORST_OF = {
    "NoisyMean": "means by K-norm noise",
    "NoisyMoments": "AdaSSP",
    "NoisyRidge": "output, squared",
    "NoisyMinimum": "output, Huber, replace",
    "QuadraticMinimum": "objective, half for the noise",
    "QuadraticDraw": "KNG, means, replace",
    "BoxDraw": "KNG, Huber",
    "ShellDraw": "KNG, pseudo-Huber, shells, replace",
    "IteratesOnGrid": "private IRLS, gaussian, moment, replace",
    "NoisyCounts": "counts, replace",
    "ExactChoice": "choice, replace",
    "ExactInterval": "interval, replace",
    "LatticeDraw": "KNG, quantile, replace",
    "NoisyPosterior": "tests/draws/test_posterior_in_balls.py",
    "NoisyAdaOPS": "tests/draws/test_ada_ops_draw.py",
    "SmoothMinimum": "tests/audit/test_objective_perturbation.py",
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_neighbours_lose_no_more_than_is_allowed_and_hardly_less(name):
    loss, least = WORST[name]
    # Balls and fractions; but the laws of intervals and choices are floats.
    assert least <= loss() <= 1.0 + 1e-12 * (name.startswith(("choice", "interval")))


def test_no_neighbour_is_farther_than_noise_hides_and_the_worst_are_as_far():
    ratios = dict(worst_ratios())
    assert max(ratios.values()) <= 1
    assert min(ratios.values()) > 0.99
    # No way of drawing is without its worst pairs.
    assert {kind.__name__ for kind in all_draws()} == set(WORST_OF)
    files = {name for name in WORST_OF.values() if name.startswith("tests/")}
    assert set(WORST_OF.values()) - files <= {*WORST, *ratios}
    assert all((ROOT / name).exists() for name in files)
