"""The black-box audit: its bound against laws that are known, and AdaOPS and AdaSSP under attack."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import kngjax as kng
from audits import neighbour_search
from audits.neighbour_search import worst_neighbours
from kngjax.audit import black_box
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.data.records import Records
from kngjax.sensitivity import gradients, moments
from tests.audit.fractions import half_fraction

SURE = 1.0 - 1e-6
ADAPTIVE = [kng.AdaOPS, kng.AdaSSP]
BOUNDS = {
    1: kng.Bounds(x=([-1.0], 1.0), y=(-1.0, 1.0), intercept=False),
    2: kng.Bounds(x=([-1.0], 1.0), y=(-1.0, 1.0), intercept=True),
}
# δ so large that draws can tell: of the mass beyond which e^ε is reached, some hundred thousand draws must see some.
DELTA = 1e-2


def far_pair(dimension, adjacency="add_remove", copies=10_000):
    """Many records that determine θ, and one at the bounds that contradicts them; found by the search below."""
    # θ̂ = 1, or (½, ½): as long as y allows it to be along (1, 1), where the other record is.
    directions, levels = (np.ones((1, 1)), [1.0]) if dimension == 1 else (np.array([[1.0], [-1.0]]), [1.0, 0.0])
    x, y = np.repeat(directions, copies, axis=0), np.repeat(levels, copies)
    record = np.ones((1, 1)), np.array([-1.0])
    with_record = np.vstack([x, record[0]]), np.append(y, record[1])
    if adjacency == "add_remove":
        return with_record, (x, y)
    return with_record, (np.vstack([x, np.ones((1, 1))]), np.append(y, 1.0))


def gaussian_epsilon(delta, shift):
    """ε of N(0, 1) and N(s, 1) at δ."""
    return optimize.brentq(
        lambda e: stats.norm.cdf(shift / 2 - e / shift) - np.exp(e) * stats.norm.cdf(-shift / 2 - e / shift) - delta,
        0.0,
        50.0,
    )


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_bound_of_two_normal_laws_is_near_their_epsilon_and_below(dimension, delta):
    random, shift = np.random.default_rng(0), 1.0
    first, second = random.normal(size=(2, 40_000, dimension))
    second = second + shift / np.sqrt(dimension)
    found = epsilon_lower_bound(first, second, delta, SURE)
    if delta:
        exact = gaussian_epsilon(delta, shift)
        assert 0.5 * exact < found <= exact
    else:
        assert found > 1.2
    assert epsilon_lower_bound(first[:20_000], first[20_000:], delta, SURE) == 0.0


def test_the_bound_finds_a_difference_of_spread():
    """The logistic attack has squares: neither mean nor sign gives these laws away."""
    first, second = np.random.default_rng(1).normal(size=(2, 50_000, 2)) * np.array([1.0, 1.2])[:, None, None]
    radius = np.linspace(0.0, 6.0, 601)[1:]
    outside = np.exp(-(radius**2) / 2.88) - 0.01, np.exp(-(radius**2) / 2.0)
    exact = np.log(outside[0][outside[0] > 0] / outside[1][outside[0] > 0]).max()
    assert 0.4 * exact < epsilon_lower_bound(first, second, 0.01, SURE) <= exact


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_pure_epsilon_of_laplace_noise_is_found_nearly_and_never_exceeded(epsilon):
    mechanism = kng.KNormMechanism(kng.Bounds(x=([-1.0], 1.0), intercept=False), epsilon, "replace", kng.L1())
    pair = (np.ones((5, 1)), None), (np.vstack([np.ones((4, 1)), [[-1.0]]]), None)
    found = black_box(mechanism, *pair, key=kng.research_key(0), num_draws=100_000, confidence=SURE)
    assert found.passed, found.explain()
    assert found.delta == 0.0
    assert found.epsilon_lower_bound > 0.85 * epsilon
    twice = kng.KNormMechanism(mechanism.bounds, 2.0 * epsilon, "replace", kng.L1())
    planted = black_box(
        twice, *pair, key=kng.research_key(0), num_draws=100_000, confidence=SURE, claimed=mechanism.guarantee
    )
    assert not planted.passed
    assert "is wrong" in planted.explain()


def audited(mechanism, pair, num_draws=100_000, **settings):
    return black_box(mechanism, *pair, key=kng.research_key(1), num_draws=num_draws, confidence=SURE, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADAPTIVE)
@pytest.mark.parametrize(
    ("dimension", "epsilon"),
    [(1, 0.5), (2, 2.0), (1, 2.0), (2, 0.5)],
)
def test_additions_and_removals_stay_below_epsilon_and_half_the_noise_does_not(dimension, epsilon, kind):
    """Both orders of the pair are in every audit. Half of AdaOPS's noise: the posterior's deviations, from twice γ."""
    mechanism = kind(BOUNDS[dimension], epsilon, DELTA, "add_remove")
    pair = far_pair(dimension)
    found = audited(mechanism, pair)
    assert found.passed, found.explain()
    assert found.epsilon_lower_bound > 0.2 * epsilon
    planted = audited(_with_half_the_noise(mechanism, dimension), pair, claimed=mechanism.guarantee)
    assert not planted.passed, planted.explain()


def _with_half_the_noise(mechanism, dimension):
    """The same mechanism at the ε at which its noise is half, by its own public deviations."""

    def excess(log_epsilon):
        other = type(mechanism)(mechanism.bounds, np.exp(log_epsilon), DELTA, "add_remove", allow_large_epsilon=True)
        return float(_noise(other, dimension)) - 0.5 * float(_noise(mechanism, dimension))

    start = np.log(float(mechanism.epsilon))
    log_epsilon = optimize.brentq(excess, start, start + 2.0, rtol=1e-4)
    return type(mechanism)(mechanism.bounds, np.exp(log_epsilon), DELTA, "add_remove")


def _noise(mechanism, dimension):
    if isinstance(mechanism, kng.AdaSSP):
        return mechanism.deviations(dimension)[0]
    # 1/√γ is in proportion to √(α/R) where the leverage is small.
    plan = mechanism.plan(dimension)
    return np.sqrt(float(plan.order) / float(plan.budget))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADAPTIVE)
def test_an_exchange_stays_below_epsilon(kind):
    found = audited(kind(BOUNDS[1], 2.0, DELTA, "replace"), far_pair(1, "replace"))
    assert found.passed, found.explain()
    assert found.epsilon_lower_bound > 0.1


@pytest.fixture
def halved_sensitivities(monkeypatch):
    """X and Y as if they were half of what they are, in moments and in mechanisms; compiled programs forget it."""
    jax.clear_caches()
    originals = {name: getattr(gradients, name) for name in ("feature_radius", "response_radius")}
    for name, whole in originals.items():
        for place in (gradients, moments):
            monkeypatch.setattr(place, name, lambda *args, whole=whole: jnp.asarray(whole(*args)) / np.sqrt(2.0))
    np.testing.assert_allclose(
        moments.eigenvalue_change(BOUNDS[1], 1), 0.5 * originals["feature_radius"](BOUNDS[1], 1) ** 2
    )
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon"), list(zip(ADAPTIVE, (0.5, 2.0), strict=True)))
def test_halved_sensitivities_are_caught(kind, epsilon, halved_sensitivities):
    """X², XY and so every deviation are half of what the proof needs."""
    found = audited(kind(BOUNDS[1], epsilon, DELTA, "add_remove"), far_pair(1))
    assert not found.passed, found.explain()


def long_audits():
    """At each budget one dimension a kind, the other one at the next."""
    for number, budget in enumerate([(0.5, DELTA), (2.0, 1e-6)]):
        for kind, dimension in half_fraction(tuple(ADAPTIVE), (1, 2), odd=number % 2):
            yield *budget, kind, dimension


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "kind", "dimension"), list(long_audits()))
def test_many_draws_on_the_worst_neighbours_that_a_search_has_found(kind, dimension, epsilon, delta):
    mechanism = kind(BOUNDS[dimension], epsilon, delta, "add_remove")
    pair = worst_neighbours(mechanism, key=kng.research_key(2), progress=False)
    found = audited(mechanism, pair, num_draws=150_000)
    assert found.passed, found.explain()
    if delta == DELTA:
        assert found.epsilon_lower_bound > 0.3 * epsilon
        planted = _with_half_the_noise(mechanism, dimension)
        assert not audited(planted, pair, num_draws=150_000, claimed=mechanism.guarantee).passed


@pytest.mark.default_cases("told-add_remove", "told-replace")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("losses", ["told", "drawn"])
def test_the_search_returns_neighbours_within_the_bounds(adjacency, losses, monkeypatch):
    mechanism, tried = kng.AdaSSP(BOUNDS[2], 1.0, DELTA, adjacency), []

    def told(_, *pair, num_draws, **__):
        """Finds the third pair worst, and all finalists alike."""
        tried.append((num_draws, pair))
        return types.SimpleNamespace(epsilon_lower_bound=float(len(tried) == 3))

    if losses == "told":
        monkeypatch.setattr(neighbour_search, "black_box", told)
    first, second = worst_neighbours(
        mechanism, key=kng.research_key(3), num_candidates=12, num_draws=1000, copies=(20,), progress=False
    )
    if losses == "told":
        assert [number for number, _ in tried] == [1000] * 12 + [10_000] * 8
        assert (first, second) == tried[2][1]
    assert len(first.y) - len(second.y) == (adjacency == "add_remove")
    np.testing.assert_array_equal(first.x[: len(second.y) - 1], second.x[:-1])
    for records in (first, second):
        assert np.all(np.abs(np.column_stack([records.x, records.y])) <= 1.0)
        assert np.all(records.x[:, 0] == 1.0)


def test_what_it_refuses():
    mechanism, (first, second) = kng.AdaSSP(BOUNDS[1], 1.0, 1e-3, "add_remove"), far_pair(1, copies=3)
    settings = {"key": kng.research_key(0)}
    two_more = np.vstack([first[0], [[0.5]]]), np.append(first[1], 0.5)
    for other in (first, two_more):
        with pytest.raises(ValueError, match="no neighbours"):
            black_box(mechanism, other, first if other is first else second, **settings)
    with pytest.raises(ValueError, match="no neighbours"):
        black_box(kng.AdaSSP(BOUNDS[1], 1.0, 1e-3, "replace"), first, second, **settings)
    with pytest.raises(ValueError, match="delta"):
        black_box(mechanism, first, second, delta=1e-4, **settings)
    with pytest.raises(ValueError, match="num_draws"):
        black_box(mechanism, first, second, num_draws=10, **settings)
    with pytest.raises(ValueError, match="confidence"):
        black_box(mechanism, first, second, confidence=1.0, **settings)
    with pytest.raises(TypeError, match="Records or a pair"):
        black_box(mechanism, first, 3, **settings)
    needs_sampler = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(0.0, 1.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(TypeError, match="density_ratio"):
        black_box(needs_sampler, first, second, **settings)


@pytest.mark.slow
def test_the_order_of_records_does_not_matter_and_clipping_is_done():
    mechanism, (first, second) = kng.AdaSSP(BOUNDS[1], 1.0, 1e-3, "add_remove"), far_pair(1, copies=3)
    shuffled = Records(5.0 * first[0][::-1], 7.0 * first[1][::-1])
    found = black_box(mechanism, shuffled, second, key=kng.research_key(0), num_draws=1000)
    assert np.all(np.abs(found.pair[0].y) == 1.0)
    assert found.passed


def exact_draws_told_apart(epsilon):
    """Of a smooth loss, on the pair of `audits/figures.py`: log f/f' is .91ε for θ < 0 and less elsewhere."""
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(), kng.Box(-100.0, 1000.0), epsilon, "replace")
    pair = [(None, np.append(np.zeros(4), other)) for other in (-1e5, 1e5)]
    claimed = kng.Guarantee.pure(1.0, "replace")
    return black_box(
        mechanism, *pair, key=kng.research_key(0), sampler=kng.chains.Exact(), num_draws=40_000, claimed=claimed
    )


@pytest.mark.slow
def test_exact_draws_of_a_smooth_loss_are_told_apart_as_much_as_claimed_and_no_more():
    found = exact_draws_told_apart(1.0)
    assert found.passed
    assert found.epsilon_lower_bound > 0.7
    # Half of the noise goes beyond what is claimed.
    assert not exact_draws_told_apart(2.0).passed


def test_draws_of_a_chain_are_not_audited_as_a_black_box():
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(), kng.Box(-1.0, 1.0), 1.0, "replace")
    for sampler in (None, kng.chains.EnsembleWalk()):
        with pytest.raises(TypeError, match="audit its density"):
            black_box(mechanism, (None, np.zeros(2)), (None, np.ones(2)), key=kng.research_key(0), sampler=sampler)
