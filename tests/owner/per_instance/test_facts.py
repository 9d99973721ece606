"""Odds, composition, groups and generalisation against finite problems in which everything is a finite sum."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kngjax.mechanisms.noise import gaussian_profiles
from kngjax.owner.per_instance import facts

CHANCES = st.floats(1e-4, 1.0 - 1e-4)


def exact_delta(first, second, epsilon):
    """The larger direction of max_S P(S) - e^ε Q(S) on finitely many outcomes."""
    return max(np.maximum(p - np.exp(epsilon) * q, 0.0).sum(axis=-1) for p, q in ((first, second), (second, first)))


@settings(max_examples=40, deadline=None)
@given(CHANCES, CHANCES, st.floats(0.0, 3.0))
def test_odds_stay_within_the_bound(p, q, epsilon):
    """Two laws on two outcomes, their exact δ at this ε, and both events."""
    first, second = np.array([p, 1.0 - p]), np.array([q, 1.0 - q])
    delta = exact_delta(first, second, epsilon)
    for one, other in ((p, q), (1.0 - p, 1.0 - q)):
        bound = facts.log_odds_bound(epsilon, delta, min(one, other))
        assert abs(np.log(one / other)) <= bound + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 3.0), st.floats(0.0, 0.3), st.floats(0.001, 0.999))
def test_the_bound_on_odds_is_attained(epsilon, delta, q):
    bound = float(facts.log_odds_bound(epsilon, delta, q))
    p = q * np.exp(bound)
    assert p <= 1.0 + 1e-12
    first, second = np.array([p, 1.0 - p]), np.array([q, 1.0 - q])
    assert exact_delta(first, second, epsilon) <= delta + 1e-9


def test_odds_as_the_paper_has_them():
    """For events of probability δ/ε at least: log(e^ε + ε), below 2ε."""
    epsilon, delta = np.array([0.01, 0.1, 1.0]), 1e-6
    bound = facts.log_odds_bound(epsilon, delta, delta / epsilon)
    np.testing.assert_allclose(bound, np.log(np.exp(epsilon) + epsilon), rtol=1e-12)
    assert np.all(bound <= 2.0 * epsilon)
    np.testing.assert_allclose(facts.log_odds_bound(0.7, 0.0, 1e-3), 0.7)
    with pytest.raises(ValueError, match=r"probability must lie in \(0, 1\]"):
        facts.log_odds_bound(1.0, 1e-6, 0.0)


def told_or_a_coin(epsilon, delta):
    """The extreme pair of (ε, δ) laws: (told it is P, coin, coin, told it is Q)."""
    heads = (1.0 - delta) / (1.0 + np.exp(-epsilon))
    tails = (1.0 - delta) - heads
    return np.array([delta, heads, tails, 0.0]), np.array([0.0, tails, heads, delta])


def product(pairs):
    laws = [np.ones(1), np.ones(1)]
    for pair in pairs:
        laws = [np.outer(law, part).ravel() for law, part in zip(laws, pair, strict=True)]
    return laws


@pytest.mark.parametrize("slack", [1e-3, 0.05])
def test_composition_covers_the_extreme_laws(slack):
    epsilons, deltas = np.array([0.3, 0.1, 0.2, 0.3, 0.15, 0.1, 0.2, 0.25]), np.full(8, 1e-3)
    laws = product([told_or_a_coin(*one) for one in zip(epsilons, deltas, strict=True)])
    for composed in (
        facts.simple_composition(epsilons, deltas),
        facts.advanced_composition(epsilons, deltas, slack),
    ):
        assert exact_delta(*laws, float(composed.epsilon)) <= composed.delta * (1.0 + 1e-12)
    # Nothing is to be had of simple composition: at a little less ε it is false for δ = 0.
    pure = product([told_or_a_coin(one, 0.0) for one in epsilons])
    assert exact_delta(*pure, 0.999 * epsilons.sum()) > 0.0


def test_advanced_composition_is_better_for_many():
    epsilons, deltas = np.full((400, 2), 0.02), np.full((400, 2), 1e-9)
    simple, advanced = facts.simple_composition(epsilons, deltas), facts.advanced_composition(epsilons, deltas, 1e-6)
    assert advanced.epsilon.shape == (2,)
    assert np.all(advanced.epsilon < 0.5 * simple.epsilon)
    # By hand: 400·0.02·tanh(.01) + √(2·13.8155·400·.0004).
    np.testing.assert_allclose(advanced.epsilon, 0.08 + np.sqrt(2.0 * np.log(1e6) * 0.16), rtol=1e-4)
    few = facts.advanced_composition(epsilons[:2], deltas[:2], 1e-6)
    np.testing.assert_allclose(few.epsilon, 0.04)
    np.testing.assert_allclose(few.delta, 2e-9, rtol=1e-6)
    with pytest.raises(ValueError, match="slack must lie strictly between 0 and 1"):
        facts.advanced_composition(epsilons, deltas, 0.0)


@pytest.mark.slow
def test_group_privacy_of_a_gaussian_mechanism():
    """Three people move the mean by .2, .5 and .1: δ of each at its own ε, and of all at the sum."""
    shifts, epsilons = np.array([0.2, 0.5, 0.1]), np.array([0.1, 0.4, 0.02])
    deltas = np.exp(np.array(gaussian_profiles.gaussian_log_delta(epsilons, shifts)))
    group = facts.group_privacy(epsilons, deltas)
    exact = np.exp(float(gaussian_profiles.gaussian_log_delta(float(group.epsilon), float(shifts.sum()))))
    assert exact <= group.delta
    assert group.delta < 1.0
    # By hand, from the one end and from the other.
    forward = deltas[0] + deltas[1] * np.exp(0.1) + deltas[2] * np.exp(0.5)
    backward = deltas[2] + deltas[1] * np.exp(0.02) + deltas[0] * np.exp(0.42)
    np.testing.assert_allclose(group.delta, max(forward, backward), rtol=1e-12)
    np.testing.assert_allclose(group.epsilon, 0.52)


def test_a_group_of_extreme_laws_needs_the_factors():
    """P_0, P_1, P_2 on a chain for which δ_1 + δ_2 would be too little."""
    epsilon, delta = 1.0, 0.05
    p0 = np.array([0.5, 0.5])
    p1 = np.array([(p0[0] - delta) / np.e, 0.0])
    p1[1] = 1.0 - p1[0]
    p2 = np.array([max((p1[0] - delta) / np.e, 0.0), 0.0])
    p2[1] = 1.0 - p2[0]
    for one, other in ((p0, p1), (p1, p2)):
        assert exact_delta(one, other, epsilon) <= delta + 1e-12
    exact, group = exact_delta(p0, p2, 2.0 * epsilon), facts.group_privacy([epsilon] * 2, [delta] * 2)
    assert 2.0 * delta < exact <= group.delta + 1e-12


def test_moments():
    epsilon = np.array([0.1, 0.2, 0.4])
    np.testing.assert_allclose(facts.moments(epsilon, [1, 2]), [0.7 / 3.0, 0.07])
    np.testing.assert_allclose(facts.moments(epsilon, 2.0, weights=[2.0, 1.0, 1.0]), [(0.02 + 0.04 + 0.16) / 4.0])


@settings(max_examples=30, deadline=None)
@given(CHANCES, CHANCES, st.floats(0.0, 3.0))
def test_total_variation(p, q, epsilon):
    first, second = np.array([p, 1.0 - p]), np.array([q, 1.0 - q])
    assert abs(p - q) <= facts.total_variation_bound(epsilon, exact_delta(first, second, epsilon)) + 1e-12


def test_total_variation_is_attained():
    first, second = told_or_a_coin(0.8, 0.02)
    np.testing.assert_allclose(facts.total_variation_bound(0.8, 0.02), 0.5 * np.abs(first - second).sum())


# A learner of a value in {0, 1, 2} from three records of it: it draws its guess with probability in proportion to
# e^{scale·(number of records that have it)}, and loses 1 where the guess is not the record.
VALUES, RECORDS = 3, 3


def guesses(data, scale):
    weights = np.exp(scale * np.bincount(np.asarray(data, dtype=int), minlength=VALUES))
    return weights / weights.sum()


def loss(guess_law, record):
    return 1.0 - guess_law[record]


def pairs(base, scale):
    """ε, and probability, of every (W, z) with n - 1 records in W."""
    for data in itertools.product(range(VALUES), repeat=RECORDS):
        *rest, record = data
        first, second = guesses(rest, scale), guesses(data, scale)
        yield np.max(np.abs(np.log(first / second))), np.prod(base[list(data)]), record


def exact_gap(base, target, scale):
    gap = 0.0
    for data in itertools.product(range(VALUES), repeat=RECORDS):
        law, chance = guesses(data, scale), np.prod(base[list(data)])
        training = np.mean([target[record] / base[record] * loss(law, record) for record in data])
        gap += chance * (sum(target[record] * loss(law, record) for record in range(VALUES)) - training)
    return gap


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
def test_generalization(scale):
    base = np.array([0.5, 0.3, 0.2])
    epsilon, chances, _ = (np.array(part) for part in zip(*pairs(base, scale), strict=True))
    gap = exact_gap(base, base, scale)
    bound = facts.generalization_bound(epsilon, 0.0, chances)
    mean = facts.mean_generalization_bound(float(chances @ epsilon), 0.0)
    assert 0.0 < gap <= bound <= mean + 1e-15
    assert mean <= float(chances @ epsilon) + 1e-15
    # Of the right order: not a bound that nothing could exceed.
    assert bound < 8.0 * gap


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
def test_generalization_to_another_domain(scale):
    base, target = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    epsilon, chances, last = (np.array(part) for part in zip(*pairs(base, scale), strict=True))
    importance = target[last.astype(int)] / base[last.astype(int)]
    gap = abs(exact_gap(base, target, scale))
    bound = facts.cross_domain_generalization_bound(epsilon, 0.0, importance, chances)
    assert 0.0 < gap <= bound
    mean = facts.mean_generalization_bound(
        float(chances @ epsilon), 0.0, float(np.average(importance * epsilon, weights=chances))
    )
    assert bound <= mean + 1e-15
    same = facts.cross_domain_generalization_bound(epsilon, 0.0, np.ones_like(epsilon), chances)
    np.testing.assert_allclose(same, facts.generalization_bound(epsilon, 0.0, chances))


def test_generalization_with_delta():
    """At half of the pure ε, with the exact δ there."""
    base, scale = np.array([0.5, 0.3, 0.2]), 1.0
    numbers = []
    for data in itertools.product(range(VALUES), repeat=RECORDS):
        first, second = guesses(data[:-1], scale), guesses(data, scale)
        numbers.append((0.3, exact_delta(first, second, 0.3), np.prod(base[list(data)])))
    epsilon, delta, chances = (np.array(part) for part in zip(*numbers, strict=True))
    assert 0.0 < exact_gap(base, base, scale) <= facts.generalization_bound(epsilon, delta, chances)


def test_bad_numbers():
    for bad in ((-0.1, 0.0), (0.1, 1.5), (np.nan, 0.0)):
        with pytest.raises(ValueError, match="epsilon must be at least 0 and delta between 0 and 1"):
            facts.total_variation_bound(*bad)
    with pytest.raises(ValueError, match="must not be negative"):
        facts.cross_domain_generalization_bound([0.1], [0.0], [-1.0])


@pytest.mark.slow
@pytest.mark.usefixtures("in_float64")
def test_the_law_of_the_chain_of_shifts_is_what_it_says():
    """The Gaussian numbers above, by SciPy."""
    delta = stats.norm.cdf(0.1 - 0.5) - np.exp(0.1) * stats.norm.cdf(-0.1 - 0.5)
    np.testing.assert_allclose(np.exp(float(gaussian_profiles.gaussian_log_delta(0.1, 0.2))), delta, rtol=1e-12)
