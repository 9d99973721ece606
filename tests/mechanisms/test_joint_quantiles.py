"""The joint law of several quantiles against enumeration: its normaliser, both ways to sum it, and its draws."""

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import special

import kngjax as kng
from kngjax.mechanisms.joint_quantiles import JointLaw, log_normaliser
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_two_samples_agree

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


# Values, levels, c, and how far gaps reach: with runs of gaps apart, in part together and alone.
FAR = {
    "apart": (np.linspace(-0.9, 1.9, 12), [0.1, 0.5, 0.9], 0.2, 1.0),
    "two together": (np.linspace(-0.9, 1.9, 24), [0.3, 0.45, 0.95], 0.1, 2.0),
    "one level": (np.linspace(-0.9, 1.9, 12), [0.6], 0.3, 1.5),
    "at the ends": ([LO] * 5 + [0.2, 0.3] + [HI] * 5, [0.4, 0.7], 0.4, 1.0),
    "a heap between": ([-0.8, -0.7, -0.6, *[0.25] * 7, 1.1, 1.5], [0.2, 0.85], 0.3, 1.0),
    "a heap at a level": ([-0.8, -0.7, *[0.25] * 6, 1.1, 1.5, 1.6, 1.7], [0.4, 0.9], 0.3, 1.0),
    "one value": ([0.5] * 9, [0.2, 0.6], 0.05, 1.0),
    "one record": ([0.5], [0.3, 0.6], 0.5, 1.0),
    "no record": ([], [0.3, 0.6], 0.5, 1.0),
}


def far_problem(name):
    """The law over few gaps, the gaps of each quantile's run, and the mass of each tuple of gaps, by enumeration."""
    values, tau, rate, reach = FAR[name]
    edges = np.array([LO, *values, HI])
    gaps = [[i for i in range(len(values) + 1) if abs(i - len(values) * level) <= reach] for level in tau]
    for _ in tau:
        # Runs that meet are one.
        gaps = [
            sorted({*a, *(i for b in gaps for i in b if {j + s for j in b for s in (-1, 0, 1)} & {*a})}) for a in gaps
        ]
    masses = {}
    for chosen in itertools.combinations_with_replacement(range(len(values) + 1), len(tau)):
        shared = math.prod(math.factorial(chosen.count(gap)) for gap in set(chosen))
        volume = math.prod(edges[gap + 1] - edges[gap] for gap in chosen) / shared
        masses[chosen] = volume * math.exp(-rate * score(chosen, tau, len(values)))
    return JointLaw(edges, np.array(tau), rate, reach), gaps, masses


@pytest.mark.parametrize("name", FAR)
def test_few_gaps_have_their_own_mass_and_bound_that_of_all_others(name):
    law, gaps, masses = far_problem(name)
    inside = sum(mass for chosen, mass in masses.items() if all(i in own for i, own in zip(chosen, gaps, strict=True)))
    np.testing.assert_allclose(np.exp(law.log_normaliser), inside, rtol=1e-12)
    others = sum(masses.values()) - inside
    assert (others > 1e-12) == np.isfinite(law.log_share) or inside == 0.0
    assert others <= np.exp(law.log_normaliser + law.log_share) * (1.0 + 1e-12) or inside == 0.0


@pytest.mark.parametrize("name", FAR)
def test_draws_from_few_gaps_and_by_proposals_beyond_have_the_law_of_all(name):
    law, gaps, masses = far_problem(name)
    if math.isinf(law.log_normaliser):
        # Nothing to draw from: other gaps are asked for.
        assert all(masses[chosen] == 0.0 for chosen in itertools.product(*gaps) if chosen in masses)
        return
    random, drawn = np.random.default_rng(6), []
    while sum(map(len, drawn)) < 20_000:
        found, is_kept = law.draws(random.random((20_000, 4 * law.num_quantiles + 2)))
        drawn.append(found[is_kept])
    counts = np.searchsorted(law.edges[1:-1], np.concatenate(drawn), side="right")
    total, outside = sum(masses.values()), np.mean(np.any((counts < law.lows) | (counts > law.highs), axis=1))
    assert outside > 0.05 or len(masses) <= 3
    if len(masses) > 1:
        assert_tuples(counts, {chosen: mass / total for chosen, mass in masses.items()})


def test_what_is_not_kept_is_drawn_anew_in_its_own_place(monkeypatch):
    values, tau, rate, reach = FAR["apart"]
    tried = []

    def near(*given):
        law = JointLaw(*given, reach)
        monkeypatch.setattr(law, "draws", lambda uniforms: tried.append(len(uniforms)) or JointLaw.draws(law, uniforms))
        return law

    monkeypatch.setattr(JointLaw, "near", near)
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 4.0 * rate, "replace")
    draws, _ = mechanism.draws(mechanism.prepare(values), kng.research_key(3), 8_000)
    assert tried[0] == 8_000 > tried[1] > 0
    _, _, masses = far_problem("apart")
    total = sum(masses.values())
    counts = np.searchsorted(values, np.asarray(draws), side="right")
    assert_tuples(counts, {chosen: mass / total for chosen, mass in masses.items()})
    # No place is left as it was, and no number is there twice.
    assert np.unique(draws).size == draws.size


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_the_law_of_many_values_is_that_of_all_gaps_from_a_tenth_of_them(scale):
    random, tau = np.random.default_rng(7), np.array([0.1, 0.25, 0.5, 0.9])
    values = np.sort(np.where(random.random(20_000) < 0.1, 0.7, random.uniform(0.0, 1.0, 20_000)))
    edges, uniforms = scale * np.concatenate([[-0.5], values, [1.4]]), random.random((300, 18))
    law, all_gaps = JointLaw.near(edges, tau, 0.5), JointLaw(edges, tau, 0.5)
    assert law.num_gaps < 2_000
    np.testing.assert_allclose(law.log_normaliser, all_gaps.log_normaliser, rtol=1e-9)
    shares = [np.diff(one.cumulative, prepend=0.0) / one.cumulative[-1] for one in (law, all_gaps)]
    np.testing.assert_allclose(shares[0], shares[1][law.numbers], rtol=1e-8, atol=1e-12)
    assert np.sum(shares[1]) - np.sum(shares[1][law.numbers]) < 1e-8
    (found, is_kept), (expected, all_kept) = (one.draws(uniforms) for one in (law, all_gaps))
    assert np.all(is_kept & all_kept)
    for one, other in zip(found.T, expected.T, strict=True):
        assert_two_samples_agree(one, other)


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
