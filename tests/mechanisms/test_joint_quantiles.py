"""The joint law of several quantiles against enumeration: its normaliser, both ways to sum it, and its draws."""

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import special

import kngjax as kng
from kngjax.mechanisms.joint_quantiles import JointLaw, log_normaliser
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LO, HI = -1.0, 2.0
BOUNDS = kng.Bounds(y=(LO, HI))
# Name: values, levels.
PROBLEMS = {
    "one record": ([0.5], [0.3, 0.6]),
    "three levels": ([-0.7, -0.1, 0.3, 0.35, 1.1, 1.9], [0.2, 0.5, 0.55]),
    "ties": ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], [0.1, 0.5, 0.9]),
    "all outside": ([7.0, 8.0, -9.0, 11.0, -3.0, -2.0], [0.25, 0.5, 0.75]),
    "one repeated value": ([0.5] * 6, [0.1, 0.4, 0.7]),
    "close levels share gaps": ([-0.5, -0.4, 0.1, 1.5, 1.6, 1.7], [0.49, 0.5, 0.51]),
    "one level": ([-0.7, -0.1, 0.3, 0.35, 1.1, 1.9], [0.7]),
}


MOST_TUPLES = math.comb(7 + 3 - 1, 3)  # three quantiles in the gaps of six records


@jax.jit
def log_densities(mechanism, thetas, data):
    return jax.vmap(lambda theta: mechanism.log_density(theta, data))(thetas)


def delta(tau, adjacency):
    parts = np.diff([0.0, *tau, 1.0])
    return 2.0 if adjacency == "replace" else max(1.0 - part + np.sum(parts) - part for part in parts)


def score(counts, tau, num_records):
    """Σ |(i_j - i_{j-1}) - n(τ_j - τ_{j-1})| for one tuple of counts."""
    ends, levels = [0, *counts, num_records], [0.0, *tau, 1.0]
    return sum(abs(ends[j + 1] - ends[j] - num_records * (levels[j + 1] - levels[j])) for j in range(len(tau) + 1))


def cell_law(values, tau, rate, pieces):
    """Every increasing tuple of cells, each gap cut into `pieces` cells, its probability, and the log normaliser.

    The density of the sorted vector is m! times smaller in every corner of the cube [lo, hi]^m, where all orders of
    the quantiles are equally dense: so a tuple's mass is the sum over its orders of the cells' lengths, without k!.
    """
    values = np.sort(np.clip(values, LO, HI))
    edges = np.concatenate([[LO], values, [HI]])
    gaps = [(left, right, gap) for gap, (left, right) in enumerate(itertools.pairwise(edges)) if right > left]
    cells = [
        (left + piece / pieces * (right - left), (right - left) / pieces, gap)
        for left, right, gap in gaps
        for piece in range(pieces)
    ]
    masses = {}
    for chosen in itertools.combinations_with_replacement(range(len(cells)), len(tau)):
        orders = len(set(itertools.permutations(chosen)))
        volume = orders * math.prod(cells[cell][1] for cell in chosen) / math.factorial(len(tau))
        counts = [cells[cell][2] for cell in chosen]
        masses[chosen] = volume * math.exp(-rate * score(counts, tau, len(values)))
    total = sum(masses.values())
    starts = np.array([cell[0] for cell in cells])
    return starts, {chosen: mass / total for chosen, mass in masses.items()}, math.log(total)


@pytest.mark.default_cases("three levels-replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_density_and_its_normaliser_are_those_of_the_enumeration(name, adjacency):
    values, tau = PROBLEMS[name]
    for epsilon in (0.3, 4.0):
        mechanism = kng.PrivateQuantile(tau, BOUNDS, epsilon, adjacency, budget="joint")
        data, rate = mechanism.prepare(values), epsilon / (2.0 * delta(tau, adjacency))
        starts, probabilities, log_mass = cell_law(values, tau, rate, 1)
        thetas = starts[np.array(list(probabilities))] + 1e-6
        counts = np.searchsorted(np.sort(np.clip(values, LO, HI)), thetas, side="right").tolist()
        expected = [-rate * score(count, tau, len(values)) - log_mass for count in counts]
        # All problems but two have one shape, and share a program.
        padded = np.concatenate([thetas, np.full((MOST_TUPLES - len(thetas), len(tau)), LO)])
        found = log_densities(mechanism, padded, data)[: len(thetas)]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        if len(tau) > 1:
            assert np.all(
                np.isneginf(
                    log_densities(mechanism, padded[:, ::-1], data)[: len(thetas)][thetas[:, 0] < thetas[:, -1]]
                )
            )


@pytest.mark.parametrize("name", PROBLEMS)
def test_draws_fall_into_cells_as_the_enumeration_says(name):
    values, tau = PROBLEMS[name]
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 2.0, "replace", budget="joint")
    data = mechanism.prepare(values)
    draws = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=20_000, num_chains=1).theta[0]
    # Halves of gaps: where in its gap a quantile lies is tested too, and how several lie in one.
    starts, probabilities, _ = cell_law(values, tau, 0.5, 2)
    assert_tuples(np.searchsorted(starts, draws, side="right") - 1, probabilities)


def assert_tuples(cells, probabilities):
    place = {chosen: number for number, chosen in enumerate(probabilities)}
    counts = np.zeros(len(place))
    for chosen in map(tuple, cells.tolist()):
        counts[place[chosen]] += 1
    assert_cell_frequencies(counts, list(probabilities.values()))


@pytest.mark.slow
@pytest.mark.parametrize(("num_records", "tau"), [(40, [0.05, 0.3, 0.9]), (37, [0.01, 0.02, 0.5]), (60, [0.35, 0.8])])
def test_draws_of_more_records_have_the_enumerated_gaps(num_records, tau):
    # Long enough for windows of several blocks, blocks of one, and windows that begin before the first record.
    random = np.random.default_rng(num_records)
    values = np.where(random.random(num_records) < 0.3, 0.25, random.uniform(LO, HI, num_records))
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 0.5, "add_remove", budget="joint")
    data = mechanism.prepare(values)
    draws = kng.sample(mechanism, data, key=kng.research_key(2), num_draws=50_000, num_chains=1).theta[0]
    starts, probabilities, log_mass = cell_law(values, tau, 0.25 / delta(tau, "add_remove"), 1)
    assert_tuples(np.searchsorted(starts, draws, side="right") - 1, probabilities)
    edges = np.concatenate([[LO], np.sort(values), [HI]])
    law = JointLaw(edges, np.array(tau), 0.25 / delta(tau, "add_remove"))
    np.testing.assert_allclose(law.log_normaliser, log_mass, rtol=1e-11)


@jax.jit
def log_normalisers(edges, taus, rates):
    return jax.vmap(log_normaliser)(edges, taus, rates)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("num_records", "num_quantiles"), [(7, 6), (60, 4)])
def test_the_host_and_the_compiled_program_sum_to_the_same_normaliser(num_records, num_quantiles):
    random = np.random.default_rng(3)
    taus = np.sort(random.uniform(size=(20, num_quantiles)))
    values = np.where(random.random((20, num_records)) < 0.3, 0.5, random.random((20, num_records)))
    edges, rates = (
        np.pad(np.sort(values), ((0, 0), (1, 1)), constant_values=(0.0, 1.0)),
        10 ** random.uniform(-2, 1.5, 20),
    )
    expected = [JointLaw(*parts).log_normaliser for parts in zip(edges, taus, rates.tolist(), strict=True)]
    np.testing.assert_allclose(log_normalisers(edges, taus, rates), expected, rtol=1e-12, atol=1e-11)


@pytest.mark.slow
def test_many_records_lose_no_precision():
    """Against the same sums by brute force over every pair of gaps."""
    num_records, tau, rate = 1500, np.array([0.1, 0.6]), 0.25
    edges = np.concatenate([[0.0], np.sort(np.random.default_rng(4).random(num_records)), [1.0]])
    numbers, lengths = np.arange(num_records + 1), np.log(np.diff(edges))
    first = lengths - rate * np.abs(numbers - num_records * tau[0])
    between = -rate * np.abs(numbers[:, None] - numbers[None, :] - num_records * (tau[1] - tau[0]))
    volumes = np.where(numbers[None, :] < numbers[:, None], 0.0, -np.log(2.0))
    reachable = np.where(numbers[None, :] <= numbers[:, None], between + volumes, -np.inf)
    last = lengths - rate * np.abs(num_records - numbers - num_records * (1.0 - tau[1]))
    expected = special.logsumexp(last[:, None] + reachable + first[None, :])
    np.testing.assert_allclose(JointLaw(edges, tau, rate).log_normaliser, expected, rtol=0.0, atol=1e-10)


@pytest.mark.slow
def test_the_density_can_be_compiled_and_mapped():
    values, tau = PROBLEMS["three levels"]
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 1.0, "replace", budget="joint")
    data = mechanism.prepare(values)
    thetas = np.sort(np.random.default_rng(5).uniform(LO, HI, (MOST_TUPLES, 3)), axis=1)
    one = jax.jit(lambda theta: mechanism.log_density(theta, data))
    loop = [float(one(theta)) for theta in thetas[:5]]
    np.testing.assert_allclose(log_densities(mechanism, thetas, data)[:5], loop, rtol=1e-12)
    assert np.all(np.isneginf(log_densities(mechanism, thetas[:, ::-1], data)))
