"""Private quantiles: the law of one against an oracle in NumPy, its kinship with KNG, what each budget promises, and
an attack on every ε that is promised."""

import itertools
import json
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.data.records import Records
from kngjax.mechanisms import private_quantile
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

LO, HI = -1.0, 2.0
BOUNDS = kng.Bounds(y=(LO, HI))
ADJACENCIES = ("replace", "add_remove")
# Nearly all of one size, to share compiled programs.
DATA = {
    "spread": np.random.default_rng(0).uniform(-1.5, 2.5, 12),
    "ties": np.round(np.random.default_rng(1).uniform(-1.0, 2.0, 12), 0),
    "one record": np.array([0.3]),
    "one value": np.full(12, 0.5),
    "all below": np.full(12, -7.0),
    "all above": np.full(12, 7.0),
    "both ends": np.where(np.arange(12) % 3 == 0, -7.0, 7.0),
}
SEVERAL = [0.1, 0.5, 0.75]


def gap_law(values, tau, epsilon, delta):
    """Left ends, lengths and probabilities of the gaps: exp(-ε/(2Δ)|i - nτ|) times the length, one gap at a time."""
    ends = [LO, *sorted(min(max(value, LO), HI) for value in values), HI]
    lengths = np.array([right - left for left, right in itertools.pairwise(ends)])
    masses = [
        length * np.exp(-epsilon / (2.0 * delta) * abs(i - len(values) * tau)) for i, length in enumerate(lengths)
    ]
    return np.array(ends[:-1]), lengths, np.array(masses) / np.sum(masses)


@jax.jit
def log_densities(mechanism, thetas, data):
    return jax.vmap(lambda theta: mechanism.log_density(theta, data))(thetas)


def delta(tau, adjacency):
    return 1.0 if adjacency == "replace" else max(tau, 1.0 - tau)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("name", DATA)
def test_the_density_of_one_quantile_is_the_oracles(name, tau, adjacency):
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 0.7, adjacency)
    left, lengths, probabilities = gap_law(DATA[name], tau, 0.7, delta(tau, adjacency))
    points = np.concatenate([left + 0.5 * lengths, [LO - 1e-9, HI + 1e-9]])
    found = np.asarray(log_densities(mechanism, points[:, None], mechanism.prepare(DATA[name])))
    occupied = np.flatnonzero(lengths > 0)
    np.testing.assert_allclose(np.exp(found[occupied]), probabilities[occupied] / lengths[occupied], rtol=1e-12)
    assert np.all(np.isneginf(found[-2:]))


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA)
def test_draws_of_one_quantile_follow_the_oracle(name):
    tau, epsilon = 0.7, 1.0
    mechanism = kng.PrivateQuantile(tau, BOUNDS, epsilon, "add_remove")
    left, lengths, probabilities = gap_law(DATA[name], tau, epsilon, 0.7)
    draws = kng.sample(mechanism, mechanism.prepare(DATA[name]), key=kng.research_key(3), num_draws=5000).theta
    assert draws.shape == (4, 5000, 1)
    cumulative = np.concatenate([[0.0], np.cumsum(probabilities)])
    assert_same_law(draws.ravel(), lambda theta: np.interp(theta, [*left, HI], cumulative))
    # Never in a gap of length 0, where np.interp would not see it.
    cells = np.searchsorted([*left, HI], draws.ravel(), side="right") - 1
    if np.sum(lengths > 0) > 1:
        assert_cell_frequencies(np.bincount(cells, minlength=len(lengths)), probabilities)
    assert np.all(lengths[cells] > 0)


def test_a_split_budget_draws_each_quantile_at_its_part_of_epsilon():
    mechanism, values = kng.PrivateQuantile(SEVERAL, BOUNDS, 3.0, "replace", budget="split"), DATA["spread"]
    data = mechanism.prepare(values)
    draws = kng.sample(mechanism, data, key=kng.research_key(4), num_draws=5000).theta.reshape(-1, 3)
    laws = [gap_law(values, tau, 1.0, 1.0) for tau in SEVERAL]

    def cdf(theta, number):
        left, _, probabilities = laws[number]
        return np.interp(theta, [*left, HI], np.concatenate([[0.0], np.cumsum(probabilities)]))

    def largest(theta):
        return cdf(theta, 0) * cdf(theta, 1) * cdf(theta, 2)

    def smallest(theta):
        return 1.0 - (1.0 - cdf(theta, 0)) * (1.0 - cdf(theta, 1)) * (1.0 - cdf(theta, 2))

    assert_same_law(draws[:, 0], smallest)
    assert_same_law(draws[:, 2], largest)
    # The density of the sorted vector: over all orders of three values in gaps.
    theta = np.array([-0.6, 0.1, 0.15])
    gaps = np.searchsorted(np.sort(values), theta, side="right")
    density = np.array([(law[2] / np.where(law[1] > 0, law[1], np.inf))[gaps] for law in laws])
    expected = sum(density[0, a] * density[1, b] * density[2, c] for a, b, c in itertools.permutations(range(3)))
    np.testing.assert_allclose(np.exp(mechanism.log_density(theta, data)), expected, rtol=1e-12)
    nine = kng.PrivateQuantile(np.arange(1, 10) / 10, BOUNDS, 3.0, "replace", budget="split")
    with pytest.raises(ValueError, match="a sum over all their orders, computed for at most 7"):
        nine.log_density(np.linspace(0.0, 1.0, 9), data)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["split", "joint"])
def test_quantiles_come_in_increasing_order_within_the_bounds(budget):
    mechanism = kng.PrivateQuantile(SEVERAL, BOUNDS, 0.2, "replace", budget=budget)
    for name, values in DATA.items():
        draws = kng.sample(mechanism, mechanism.prepare(values), key=kng.research_key(5), num_draws=200).theta
        assert draws.shape == (4, 200, 3), name
        assert np.all(np.diff(draws, axis=-1) >= 0)
        assert np.all((draws >= LO) & (draws <= HI))
        released = kng.release(mechanism, values).value
        assert released.shape == (3,)
        assert np.all(np.diff(released) >= 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tau", "adjacency"),
    [(0.5, "add_remove"), (0.9, "replace"), (0.9, "add_remove"), (0.5, "replace")],
)
def test_it_is_kng_of_the_quantile_loss_with_an_intercept_alone(tau, adjacency):
    values = DATA["spread"]
    quantile = kng.PrivateQuantile(tau, BOUNDS, 1.3, adjacency)
    regression = kng.KNG(kng.QuantileLoss(tau), kng.Bounds(), kng.Box(LO, HI), 1.3, adjacency)
    mechanisms = [quantile, regression]
    data = [quantile.prepare(values), regression.prepare(None, np.clip(values, LO, HI))]
    if tau == 0.5:
        median_bounds = kng.Bounds(x=(LO, HI), intercept=False)
        mechanisms += [kng.KNG(kng.GeometricMedianLoss(), median_bounds, kng.Box(LO, HI), 1.3, adjacency)]
        data += [mechanisms[2].prepare(values[:, None])]
    thetas = np.random.default_rng(6).uniform(LO, HI, (50, 1))
    first, *others = (
        np.asarray(log_densities(mechanism, thetas, one)) for mechanism, one in zip(mechanisms, data, strict=True)
    )
    for other in others:
        np.testing.assert_allclose(first - other, (first - other)[0], rtol=0.0, atol=1e-12)
    draws, kng_draws = (
        kng.sample(mechanism, one, key=kng.research_key(seed), num_draws=5000).theta.ravel()
        for seed, mechanism, one in ((7, quantile, data[0]), (8, regression, data[1]))
    )
    assert_two_samples_agree(draws, kng_draws)


MECHANISMS = {
    "tau = .1": (0.1, "joint"),
    "tau = .5": (0.5, "joint"),
    "tau = .9": (0.9, "joint"),
    "split": ([0.3, 0.6], "split"),
    "joint": ([0.3, 0.6], "joint"),
}
MOST_CELLS = 8


def worst_log_ratio(mechanism, first, second):
    """max |log f_D - log f_D'| over all tuples of cells of the common refinement, in which both are constant."""
    edges = np.unique(np.clip([LO, HI, *first, *second], LO, HI))
    middles = 0.5 * (edges[1:] + edges[:-1])
    middles = np.append(middles, np.repeat(middles[-1], MOST_CELLS - middles.size))  # one shape for all pairs
    thetas = np.array(list(itertools.combinations_with_replacement(middles, mechanism.dimension)))
    here, there = (log_densities(mechanism, thetas, mechanism.prepare(values)) for values in (first, second))
    return np.max(np.abs(here - there))


def random_pair(random, adjacency):
    """Neighbours with values at both ends, in clusters, and between gaps of all sizes."""
    places = random.choice([0.0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-6, 1.0], 6)
    values = LO + (HI - LO) * places + random.choice([0.0, 1e-4], 6) * random.uniform(size=6)
    return (values[1:] if adjacency == "replace" else values), values[:-1]


def extreme_pair(name, adjacency):
    """Neighbours whose densities differ by nearly e^ε: a wide cell W holds nearly all mass, a narrow one is looked at.

    All other records lie in one place, so that in one of the two cells every count is too low and in the other too
    high. The record that comes, goes or moves between lo and hi changes the score of the one by all it can, and that
    of the other by as much in the other direction.
    """
    high = name == "tau = .9"
    common = [LO + 1e-4 if high else HI - 1e-4] * 60
    if adjacency == "replace":
        return [*common, LO], [*common, HI]
    if name == "joint":
        # W has θ_1 below both places and θ_2 between: too few records below θ_1, too many elsewhere.
        common[:30] = [HI - 0.1] * 30
    return common, [*common, HI if high or name == "tau = .5" else LO]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "name",
    ["tau = .9", "split", "joint", *(pytest.param(f"tau = {tau}", marks=pytest.mark.slow) for tau in (".1", ".5"))],
)
def test_neighbours_betray_no_more_than_epsilon_and_hardly_less(name, adjacency):
    random, (tau, budget) = np.random.default_rng(9), MECHANISMS[name]
    for epsilon in (0.5, 4.0):
        mechanism = kng.PrivateQuantile(tau, BOUNDS, epsilon, adjacency, budget=budget)
        worst = max(worst_log_ratio(mechanism, *random_pair(random, adjacency)) for _ in range(40))
        assert 0.0 < worst <= epsilon * (1.0 + 1e-9)
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 1.0, adjacency, budget=budget)
    # Of two quantiles on their own, one loses a third of its part: the two have their worst pairs at different ends.
    least = 0.82 if (name, adjacency) == ("split", "add_remove") else 0.97
    assert least < worst_log_ratio(mechanism, *extreme_pair(name, adjacency)) <= 1.0 + 1e-9


@pytest.mark.parametrize("tau", [0.75, 0.9, 0.95])
def test_the_published_constant_promises_too_much(tau):
    """Equation (3) of Reimherr and Awan (2019) divides by 2(1-τ): its density is ours at ε/(2(1-τ))."""
    published = kng.PrivateQuantile(tau, BOUNDS, 1.0 / (2.0 * (1.0 - tau)), "replace")
    factor = {0.75: 2.0, 0.9: 5.0, 0.95: 10.0}[tau]
    found = worst_log_ratio(published, *extreme_pair("tau = .9", "replace"))
    assert 0.97 * factor < found <= factor * (1.0 + 1e-9)


def test_sensitivities_by_hand():
    def value(tau, adjacency, budget="joint"):
        return kng.PrivateQuantile(tau, BOUNDS, 1.0, adjacency, budget=budget).sensitivity.value

    for tau in (0.05, 0.5, 0.9):
        assert value(tau, "replace") == pytest.approx(1.0, rel=1e-15)
        assert value(tau, "add_remove") == pytest.approx(max(tau, 1.0 - tau), rel=1e-15)
    assert value([0.1, 0.4], "replace", "split") == pytest.approx(1.0, rel=1e-15)
    assert value([0.1, 0.4], "add_remove", "split") == pytest.approx(0.9, rel=1e-15)
    assert value([0.1, 0.4], "replace") == 2.0
    # The differences are .1, .3, .6.
    assert value([0.1, 0.4], "add_remove") == pytest.approx(1.8, rel=1e-15)
    with pytest.raises(ValueError, match="these are 2 quantiles, not 3"):
        kng.PrivateQuantile([0.1, 0.4], BOUNDS, 1.0, "replace").sensitivity_for(3)


def test_the_budget_of_all_quantiles_is_epsilon():
    single, joint = (kng.PrivateQuantile(tau, BOUNDS, 2.0, "replace").guarantee for tau in (0.5, SEVERAL))
    assert single == joint == kng.Guarantee.bounded_range(2.0, kng.Adjacency.REPLACE)
    split = kng.PrivateQuantile(SEVERAL, BOUNDS, 2.0, "replace", budget="split").guarantee
    assert str(split.kind) == "composed"
    assert (split.epsilon, split.rho) == (pytest.approx(2.0), pytest.approx(3 * (2.0 / 3) ** 2 / 8))
    for epsilon, size in itertools.product(np.random.default_rng(10).uniform(0.01, 9.0, 20), range(2, 20)):
        mechanism = kng.PrivateQuantile(np.arange(1, size + 1) / 21, BOUNDS, epsilon, "replace", budget="split")
        assert size * Fraction(float(mechanism._part)) <= Fraction(epsilon)
        assert epsilon * (1.0 - 1e-12) < mechanism.guarantee.epsilon <= epsilon


def test_drawn_jointly_five_quantiles_are_twice_as_good_as_by_parts_of_epsilon():
    tau, values = np.array([0.1, 0.25, 0.5, 0.75, 0.9]), np.sort(np.random.default_rng(11).normal(size=1000))
    errors = {}
    for budget in ("joint", "split"):
        mechanism = kng.PrivateQuantile(tau, kng.Bounds(y=(-10.0, 10.0)), 1.0, "replace", budget=budget)
        draws = kng.sample(mechanism, mechanism.prepare(values), key=kng.research_key(12), num_draws=500).theta
        errors[budget] = np.mean(np.abs(np.searchsorted(values, draws) - 1000 * tau))
    assert 2.0 * errors["joint"] < errors["split"]
    assert kng.PrivateQuantile(tau, BOUNDS, 1.0, "replace").budget == "joint"


@pytest.mark.slow
def test_draws_can_be_mapped_over_data_sets_and_settings():
    random = np.random.default_rng(13)
    data_sets, keys = random.uniform(LO, HI, (5, 12)), jax.random.split(kng.research_key(14), 5)
    epsilons, levels = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), np.array([0.1, 0.2, 0.5, 0.8, 0.9])

    @jax.jit
    def one(values, key, epsilon, tau):
        mechanism = kng.PrivateQuantile(tau, BOUNDS, epsilon, "add_remove", budget="split")
        return kng.draw(mechanism, mechanism.intake.summarise(Records(jnp.ones((12, 1)), values)), key)

    for taus in (levels, np.stack([0.5 * levels, levels], axis=1)):
        mapped, succeeded = jax.vmap(one)(data_sets, keys, epsilons, taus)
        assert np.all(succeeded)
        loop = [one(*each)[0] for each in zip(data_sets, keys, epsilons, taus, strict=True)]
        np.testing.assert_allclose(mapped, loop, rtol=1e-12)
        # As a mechanism that is not traced draws, from data of its own prepare.
        mechanism = kng.PrivateQuantile(taus[0], BOUNDS, 0.5, "add_remove", budget="split")
        by_hand, _ = kng.draw(mechanism, mechanism.prepare(data_sets[0]), keys[0])
        np.testing.assert_allclose(by_hand, loop[0], rtol=1e-12)


def test_draws_from_as_many_values_share_a_program():
    numbers = []
    for tau, epsilon in ((0.3, 1.0), (0.6, 2.0)):
        mechanism = kng.PrivateQuantile(tau, BOUNDS, epsilon, "replace")
        kng.draw(mechanism, mechanism.prepare(DATA["spread"]), kng.research_key(16))
        numbers.append(private_quantile._drawn_by_parts._cache_size())
    assert numbers[0] == numbers[1] > 0


def test_the_joint_draw_says_that_it_cannot_be_compiled():
    mechanism = kng.PrivateQuantile(SEVERAL, BOUNDS, 1.0, "replace", budget="joint")
    data = mechanism.prepare(DATA["spread"])
    theta, succeeded = kng.draw(mechanism, data, kng.research_key(15))
    assert theta.shape == (3,)
    assert succeeded
    with pytest.raises(TypeError, match=r"cannot be compiled or mapped.*budget='split'"):
        jax.jit(kng.draw)(mechanism, data, kng.research_key(15))


def test_the_values_are_the_one_argument():
    mechanism = kng.PrivateQuantile(0.5, BOUNDS, 1.0, "replace")
    expected = mechanism.prepare(DATA["spread"]).values
    np.testing.assert_array_equal(expected, np.sort(np.clip(DATA["spread"], LO, HI)))
    for data in (mechanism.prepare(y=DATA["spread"]), mechanism.prepare(pd.Series(DATA["spread"]))):
        np.testing.assert_array_equal(data.values, expected)
    assert kng.release(mechanism, DATA["spread"]).value.shape == kng.release(mechanism, y=DATA["spread"]).value.shape
    with pytest.raises(ValueError, match="pass the values alone"):
        kng.release(mechanism, DATA["spread"], DATA["spread"])
    with pytest.raises(ValueError, match="pass one column"):
        kng.release(mechanism, DATA["spread"][:, None])
    with pytest.raises(ValueError, match="the data are empty"):
        kng.release(mechanism, [])
    with pytest.raises(ValueError, match="missing, NaN or infinite") as error:
        mechanism.prepare([0.25, np.nan])
    with pytest.raises(kng.ReleaseFailed):
        kng.release(mechanism, [0.25, np.nan])
    assert "0.25" not in str(error.value)
    with pytest.raises(ValueError, match="leave the sampler out"):
        kng.release(mechanism, DATA["spread"], sampler=kng.chains.Exact())
    regression = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(), kng.Box(LO, HI), 1.0, "replace")
    with pytest.raises(TypeError, match="own prepare, not Records"):
        mechanism.log_density(np.zeros(1), regression.prepare(None, DATA["spread"]))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tau": None}, ValueError, "tau is missing"),
        ({"tau": 0.0}, ValueError, "strictly between 0 and 1"),
        ({"tau": [0.5, np.nan]}, ValueError, "strictly between 0 and 1"),
        ({"tau": []}, ValueError, "strictly between 0 and 1"),
        ({"tau": [[0.1], [0.5]]}, ValueError, "one level or a list of levels"),
        ({"tau": "median"}, TypeError, "a number or a list of numbers"),
        ({"tau": [0.9, 0.1]}, ValueError, r"the levels must increase, each given once: tau=\[0.1, 0.9\]"),
        ({"tau": [0.1, 0.5, 0.5]}, ValueError, r"each given once: tau=\[0.1, 0.5\]"),
        ({"bounds": None}, ValueError, "bounds are missing"),
        ({"bounds": kng.Bounds()}, ValueError, r"give bounds=Bounds\(y=\(lower, upper\)\)"),
        ({"bounds": kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0))}, ValueError, "the values alone"),
        ({"epsilon": None}, ValueError, "epsilon is missing"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be positive"),
        ({"adjacency": None}, ValueError, "adjacency must be named"),
        ({"budget": "even"}, ValueError, "budget must be one of 'joint', 'split', got 'even'"),
    ],
)
def test_what_would_be_no_mechanism_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        kng.PrivateQuantile(**{"tau": 0.5, "bounds": BOUNDS, "epsilon": 1.0, "adjacency": "replace"} | change)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["split", "joint"])
def test_the_certificate_says_what_was_drawn_and_nothing_of_the_data(budget):
    mechanism = kng.PrivateQuantile(SEVERAL, BOUNDS, 1.0, "add_remove", budget=budget)
    release, other = (kng.release(mechanism, DATA[name]) for name in ("spread", "all above"))
    assert release.certificate == other.certificate
    assert kng.Release.from_json(release.to_json()) == release
    fields = json.loads(release.to_json())["certificate"]["mechanism"]
    assert (fields["type"], fields["tau"], fields["budget"]) == ("PrivateQuantile", SEVERAL, budget)
    assert release.certificate.exact
    text = release.certificate.explain()
    how = ("the mechanism's law on", "Lattice") if budget == "split" else ("exactly the", "order statistics")
    for words in (f"Proved: this value is one draw from {how[0]}", "0.1, 0.5, 0.75", how[1]):
        assert words in text
    assert ("2*(1 - p) in all, and with the smallest p that is 1.8" in text) == (budget == "joint")
