"""Curves of two neighbours told apart by draws alone: claims stand, much of them is needed, and bugs are seen.

Every bound holds with confidence .999, and seeds are fixed.
"""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.audit.cells import bound_by_cells
from kngjax.audit.processes_told_apart import black_box_of_process
from kngjax.releases.curves.halving import Halving
from kngjax.releases.curves.joint import Joint
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.samplers.chains import gradient_space_of_curves

NUMBERS = kng.Bounds(y=(0.0, 1.0))
# Boxes are halved until hardly a proposal is rejected: draws of few records are quicker so.
COARSE = kng.Lattice(data_digits=4, theta_digits=2, expected_proposals=1.5)
# Of few records on a coarse lattice those that enumerated laws tell apart best, for so many draws.
PAIRS = {
    "halving": {
        "replace": ([0.1, 0.1, 0.4, 0.4, 0.4], [0.1, 0.4, 0.4, 0.4, 0.9]),
        "add_remove": ([0.1, 0.9], [0.9]),
    },
    "location_scale": {
        "replace": ([0.125, 0.25, 0.375, 0.375, 0.5, 0.875], [0.0, 0.125, 0.25, 0.375, 0.375, 0.5]),
        "add_remove": ([0.0, 0.375, 0.375, 1.0], [0.0, 0.375, 0.375]),
    },
}


def exact(order, adjacency, epsilon, most=64):
    kind, levels = {"halving": (Halving, (0.25, 0.5, 0.75)), "location_scale": (LocationScale, (0.3, 0.6))}[order]
    return kind.of(levels, NUMBERS, kng.Box(0.0, 1.0), epsilon, kng.Adjacency.parse(adjacency), 1, most, COARSE)


def joint(adjacency, epsilon, levels):
    meant, box = kng.Adjacency.parse(adjacency), kng.Box(0.0, 1.0)
    return Joint.of(levels, NUMBERS, box, epsilon, meant, 1, norm=None, bandwidth=0.05)


def told_apart(made, pair, num_draws, **others):
    """The bound on ε, and the ε that is claimed."""
    first, second = ((None, np.array(numbers)) for numbers in pair)
    return black_box_of_process(made, first, second, num_draws=num_draws, **others)


# What was found of ε is .34 and .56 by halving, .11 and .24 as location and scale: three parts whose worst outcomes are
# rare together, so that one of 2,000 draws shows less of it than enumeration does (test_location_scale_curves.py).
@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "adjacency", "least"),
    [
        ("halving", "replace", 0.3),
        ("halving", "add_remove", 0.5),
        ("location_scale", "replace", 0.08),
        ("location_scale", "add_remove", 0.18),
    ],
)
def test_exact_draws_alone_tell_no_more_than_is_claimed_and_much(order, adjacency, least):
    found, claimed = told_apart(exact(order, adjacency, 6.0), PAIRS[order][adjacency], 4000)
    assert claimed == pytest.approx(6.0)
    assert least * claimed < found <= claimed


def test_few_draws_of_location_and_scale_tell_some_of_it():
    found, claimed = told_apart(exact("location_scale", "add_remove", 6.0), PAIRS["location_scale"]["add_remove"], 500)
    assert 0.1 * claimed < found <= claimed


@pytest.mark.slow
def test_curves_by_halving_with_half_of_their_noise_are_seen():
    """What claims ε = 3 and draws as for 6."""
    found, _ = told_apart(exact("halving", "add_remove", 6.0), PAIRS["halving"]["add_remove"], 4000)
    assert found > 1.05 * 3.0


@pytest.mark.slow
def test_location_and_scale_with_an_eighth_of_their_noise_are_seen():
    """What claims ε = 1 and draws as for 8.

    Half of it is not seen: of 20,000 draws the best sets of outcomes, chosen by the laws, show .87 of the claim.
    """
    found, _ = told_apart(exact("location_scale", "add_remove", 8.0), PAIRS["location_scale"]["add_remove"], 2000)
    assert found > 1.2


def about_the_median_of_the_data(original):
    """Residuals about the records' own median, and not about the released location: it jumps by one record."""

    def standardised(made, records, location, scale):
        return original(made, records, np.array([np.median(records.y).astype(np.int64)]), scale)

    return standardised


def test_residuals_about_the_median_of_the_data_are_seen(monkeypatch):
    monkeypatch.setattr(LocationScale, "standardised", about_the_median_of_the_data(LocationScale.standardised))
    heaps = [0.0] * 100 + [1.0] * 100
    found, claimed = told_apart(exact("location_scale", "replace", 2.0, 256), ([*heaps, 0.0], [*heaps, 1.0]), 400)
    assert found > 1.2 * claimed


NONE_AND_ONE = [], [0.5]


def test_joint_draws_alone_tell_no_more_than_is_claimed_and_a_third_of_it():
    found, claimed = told_apart(joint("add_remove", 2.0, (0.05, 0.2)), NONE_AND_ONE, 2000, thinning=15)
    assert claimed / 3.0 < found <= claimed == 2.0


def test_draws_of_a_chain_that_stays_where_it_is_are_refused():
    with pytest.raises(RuntimeError, match="repeat the one before"):
        told_apart(joint("add_remove", 2.0, (0.05, 0.2)), NONE_AND_ONE, 1000, thinning=1)


@pytest.mark.slow
def test_joint_draws_of_an_exchanged_record_do_not_either():
    found, claimed = told_apart(joint("replace", 4.0, (0.1, 0.9)), ([0.2], [0.8]), 4000, thinning=40)
    assert 0.1 * claimed < found <= claimed == 4.0


@pytest.mark.slow
def test_joint_curves_with_half_of_their_noise_are_seen():
    """What claims ε = 2 and draws as for 4."""
    assert told_apart(joint("add_remove", 4.0, (0.05, 0.2)), NONE_AND_ONE, 10_000, thinning=30)[0] > 2.0


@pytest.fixture
def planted(monkeypatch):
    """Plants in what is compiled, which is compiled anew then and afterwards."""

    def plant(name, change):
        monkeypatch.setattr(gradient_space_of_curves, name, change)
        jax.clear_caches()

    yield plant
    monkeypatch.undo()
    jax.clear_caches()


def test_totals_of_the_data_are_seen(planted):
    """T = S in the score and in what is released, Δ as it is."""
    weigh = gradient_space_of_curves.weigh

    def of_the_data(target, mixture, curves, totals):
        return weigh(target, mixture, curves, target.totals())

    planted("weigh", of_the_data)
    assert told_apart(joint("add_remove", 2.0, (0.05, 0.2)), NONE_AND_ONE, 500, thinning=15)[0] > 1.2 * 2.0


@pytest.mark.parametrize("atoms", [True, False])
def test_cells_bound_a_known_loss_from_below_and_nearly_reach_it(atoms):
    """Two laws that differ by a factor of 3 on a set of no simple shape."""
    generator = np.random.default_rng(0)
    odd, even = np.arange(16) % 2 == 1, np.arange(16) % 2 == 0
    laws = [np.where(odd, 3.0, 1.0) / 32.0, np.where(even, 3.0, 1.0) / 32.0]
    first, second = (generator.choice(16, 20_000, p=law)[:, None].astype(float) for law in laws)
    if not atoms:
        first, second = (one + generator.uniform(size=one.shape) for one in (first, second))
    found = bound_by_cells(first, second, 0.999)
    assert 0.8 * np.log(3.0) < found <= np.log(3.0)


def test_cells_of_equal_laws_show_nothing():
    """A bound above 0 has a probability of a thousandth."""
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, 4000, 3))
    assert bound_by_cells(first, second, 0.999) == 0.0
