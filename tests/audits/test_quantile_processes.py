"""Audits of quantile processes: laws of all curves enumerated, curves replayed, and bugs that are seen."""

import itertools

import numpy as np
import pytest

import kngjax as kng
from audits.quantile_processes import ProcessLaws, process_loss, replayed_process
from kngjax.releases.curves import halving
from kngjax.releases.curves.halving import Halving
from kngjax.sensitivity import in_fractions

ADJACENCIES = ("replace", "add_remove")
LEVELS = (0.25, 0.5, 0.75)
COARSE = kng.draws.Lattice(data_digits=4, theta_digits=2)
NUMBERS = kng.Bounds(y=(0.0, 1.0))


def of_numbers(adjacency, epsilon=4.0, levels=LEVELS):
    """Curves without columns, on five points."""
    return Halving.of(levels, NUMBERS, kng.Box(0.0, 1.0), epsilon, kng.Adjacency.parse(adjacency), 1, 64, COARSE)


def neighbours(values, most, adjacency):
    """All pairs of data sets of these values, of `most` records at most."""
    for counts in itertools.product(range(most + 1), repeat=len(values)):
        for place in range(len(values)):
            if sum(counts) > most or counts[place] == 0:
                continue
            less = (*counts[:place], counts[place] - 1, *counts[place + 1 :])
            if adjacency == "add_remove":
                yield counts, less
            elif sum(counts) == most:
                for other in range(place):
                    yield counts, (*less[:other], less[other] + 1, *less[other + 1 :])


def worst_loss(drawn, values, most, adjacency):
    return worst_loss_of(ProcessLaws(drawn), values, most, adjacency)


def worst_loss_of(laws, values, most, adjacency):
    known = {}

    def law(counts):
        if counts not in known:
            known[counts] = laws.law(None, np.repeat(values, counts))
        return known[counts]

    return max(process_loss(law(one), law(other)) for one, other in neighbours(values, most, adjacency))


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_outcome_of_few_records_tells_neighbours_apart_by_more_than_epsilon(adjacency):
    found = worst_loss(of_numbers(adjacency), [0.1, 0.4, 0.9], 3, adjacency)
    assert found <= 4.0
    assert found > {"replace": 1.8, "add_remove": 3.1}[adjacency]


@pytest.mark.slow
@pytest.mark.parametrize("levels", [LEVELS, (0.45, 0.5, 0.55), (0.3, 0.6)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_outcome_of_more_records_does(adjacency, epsilon, levels):
    """Relative levels of .9 and .1 beside one another too: each node has the price of its own."""
    found = worst_loss(of_numbers(adjacency, epsilon, levels), [0.1, 0.4, 0.6, 0.9], 6, adjacency)
    assert found <= epsilon
    assert found > (0.45 if adjacency == "replace" else 0.6) * epsilon


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_outcome_of_lines_tells_neighbours_apart_by_more_than_epsilon(adjacency):
    """On parts of Θ with two coefficients: ties y = x'θ, records beyond the bounds, and none at all."""
    bounds, box, coarse = (
        kng.Bounds(x=([-1.0], [1.0])),
        kng.Box(-1.0, 1.0),
        kng.draws.Lattice(data_digits=3, theta_digits=1),
    )
    drawn = Halving.of((0.25, 0.5, 0.9), bounds, box, 4.0, kng.Adjacency.parse(adjacency), 2, 16, coarse)
    laws, generator, found = ProcessLaws(drawn), np.random.default_rng(0), []
    for number in (0, 1, 2, 4):
        x = generator.choice([-1.0, -0.5, 0.0, 1.0, 9.0], (number + 1, 1))
        y = generator.choice([-9.0, -1.0, 0.0, 0.5, 9.0], number + 1)
        if adjacency == "add_remove":
            others = x[1:], y[1:]
        else:
            others = np.vstack([[[-x[0, 0] or 1.0]], x[1:]]), np.append(-y[0] or 9.0, y[1:])
        one, other = laws.law(x, y), laws.law(*others)
        assert np.logaddexp.reduce(list(one.values())) == pytest.approx(0.0, abs=1e-9)
        found.append(process_loss(one, other))
    assert 0.15 * 4.0 < max(found) <= 4.0


def test_the_price_of_one_node_under_replace_is_seen_by_the_enumeration(monkeypatch):
    """Twice too cheap: a record that leaves one node may enter another."""

    def loss():
        laws = ProcessLaws(of_numbers("replace"))
        counts = (0, 3, 0, 3), (1, 3, 0, 2)
        return process_loss(*(laws.law(None, np.repeat([0.1, 0.4, 0.6, 0.9], each)) for each in counts))

    assert loss() <= 4.0
    whole = halving.budget_of
    monkeypatch.setattr(halving, "budget_of", lambda *given: whole(*given[:3], kng.Adjacency.ADD_REMOVE))
    assert loss() > 4.0
    # What is said of it follows from its parts, so that a ledger would be debited more.
    assert of_numbers("replace").guarantee.epsilon > 5.9


def curves(adjacency, levels=LEVELS, epsilon=2.0):
    bounds = kng.Bounds(x=([-1.0, 0.0], [1.0, 1.0]))
    return Halving.of(levels, bounds, kng.Box(-4.0, 4.0), epsilon, kng.Adjacency.parse(adjacency), 3, 100)


def pair(adjacency):
    """A record far beyond the bounds below all curves, for one above them, or for none."""
    generator = np.random.default_rng(0)
    x = generator.uniform([-1.0, 0.0], 1.0, (40, 2))
    y = x @ [1.0, -0.5] + generator.standard_normal(40)
    first = np.vstack([x, [-9.0, -9.0]]), np.append(y, -50.0)
    return first, (x, y) if adjacency == "add_remove" else (np.vstack([x, [9.0, 9.0]]), np.append(y, 50.0))


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_curve_betrays_the_claim_and_one_needs_all_of_it(adjacency):
    found = replayed_process(curves(adjacency), *pair(adjacency), num_draws=1, num_points=12)
    assert found.passed
    assert found.ratio > 0.999


def by_position(_, node, records, curves):
    """Groups of equal size: a record that is taken out moves others."""
    order = np.argsort(np.argsort(records.y - records.x[:, 0], kind="stable"))
    return records.at(order * 2**node.depth // max(len(records.y), 1) == node.rank)


def cheap(guarantee):
    return kng.Guarantee.bounded_range(guarantee.exact_epsilon, "replace")


def halved(original):
    return lambda loss, ranges, adjacency: [change / 2 for change in original(loss, ranges, adjacency)]


PLANTED = {
    "half the sensitivity": (in_fractions, "gradient_changes", halved(in_fractions.gradient_changes)),
    "an exchanged record at the price of one node": (kng.Guarantee, "to_replace", cheap),
    "groups by position": (Halving, "members", by_position),
}


@pytest.mark.default_cases("an exchanged record at the price of one node")
@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_seen_by_the_replay(bug, monkeypatch):
    monkeypatch.setattr(*PLANTED[bug])
    assert not replayed_process(curves("replace"), *pair("replace"), num_draws=1, num_points=12).passed


def test_laws_of_fine_lattices_are_refused():
    drawn = Halving.of(LEVELS, NUMBERS, kng.Box(0.0, 1.0), 1.0, kng.Adjacency.REPLACE, 1, 64)
    with pytest.raises(ValueError, match="fewer theta_digits"):
        ProcessLaws(drawn).law(None, np.ones(3))
