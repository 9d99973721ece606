"""What samplers promise, against laws on finitely many points where everything can be added up."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.releases.routes.sampled import SampledRoute
from kngjax.samplers.promises import EXACT, NONE, Promise

EPSILON = 0.7


def hockey_stick(law: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """sup_S μ(S) - e^ε μ'(S)."""
    return float(np.sum(np.maximum(law - math.exp(epsilon) * other, 0.0)))


def pair_of_laws(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Two laws whose ratio is e^ε at the first point and e^-ε at the last; a rare third point of mass about e^-R."""
    first = np.array([1.0 - high - low, high, low])
    second = np.array([(1.0 - high - low) * math.exp(-EPSILON), 0.0, low * math.exp(EPSILON)])
    second[1] = 1.0 - second.sum()
    return first, second


# The ratio e^ε is attained at the first point: (1 - high - low)/((1 - high - low)e^-ε).
LAW, NEIGHBOUR = pair_of_laws(low=1e-6, high=0.6)


@pytest.mark.parametrize("share", [1e-3, 0.1, 0.4])
def test_a_mixture_costs_what_it_says(share):
    """The worst mixture: ρ on the points that favour the attacker, none of it beside the neighbour."""
    epsilon, delta = Promise("mixture", share).cost(EPSILON)
    worst = 0.0
    for here in np.eye(3):
        for there in np.eye(3):
            mixed = (1 - share) * LAW + share * here
            other = (1 - share) * NEIGHBOUR + share * there
            worst = max(worst, hockey_stick(mixed, other, epsilon), hockey_stick(other, mixed, epsilon))
    assert 0.5 * delta < worst <= delta
    # One neighbour's sampler may be exact and the other's not: the larger ε is needed.
    exact_against_mixed = LAW[0] / ((1 - share) * NEIGHBOUR[0])
    np.testing.assert_allclose(epsilon, math.log(exact_against_mixed), rtol=1e-9)
    assert epsilon >= math.log(exact_against_mixed)


@pytest.mark.parametrize("share", [1e-9, 1e-3])
def test_a_truncated_search_costs_pure_epsilon(share):
    base = np.full(3, 1.0 / 3.0)
    log_range = max(math.log(np.max(base / law)) for law in (LAW, NEIGHBOUR))
    epsilon, delta = Promise("truncated", share, log_range).cost(EPSILON)
    ratios = []
    for one, two in ((LAW, NEIGHBOUR), (NEIGHBOUR, LAW)):
        for first, second in ((share, 0.0), (0.0, share), (share, share)):
            ratios.append(np.max(((1 - first) * one + first * base) / ((1 - second) * two + second * base)))
    assert delta == 0.0
    assert math.log(max(ratios)) <= epsilon
    # Attained up to the ε that the rare point has already.
    assert epsilon <= math.log(max(ratios)) + EPSILON + 1e-6


@pytest.mark.parametrize("distance", [1e-6, 0.2])
def test_the_other_proofs_cost_what_they_say(distance):
    epsilon, delta = Promise("sup_norm", distance).cost(EPSILON)
    worst = math.log((LAW[0] * (1 + distance)) / (NEIGHBOUR[0] * (1 - distance)))
    np.testing.assert_allclose(epsilon, worst, rtol=1e-12)
    assert (epsilon >= worst, delta) == (True, 0.0)

    epsilon, delta = Promise("total_variation", distance).cost(EPSILON)
    step = np.array([1.0, -1.0, 0.0]) * min(distance, NEIGHBOUR[1], 0.1)
    size = step[0]
    found = hockey_stick(LAW + step, NEIGHBOUR - step, EPSILON)
    np.testing.assert_allclose(found, (1 + math.exp(EPSILON)) * size, rtol=1e-9)
    assert (epsilon, delta) == (EPSILON, pytest.approx((1 + math.exp(EPSILON)) * distance))

    assert Promise("purified", distance).cost(EPSILON) == (pytest.approx(EPSILON + 2 * distance), 0.0)
    assert EXACT.cost(EPSILON) == (EPSILON, 0.0)


@pytest.mark.parametrize(
    "promise", [NONE, Promise("estimated", 1e-9), Promise("mixture", 1.0), Promise("sup_norm", 1.0)]
)
def test_what_is_not_proved_costs_anything(promise):
    epsilon, delta = promise.cost(EPSILON)
    assert epsilon == math.inf
    assert math.isnan(delta)


def test_costs_do_not_overflow():
    assert Promise("truncated", 0.5, 1e6).cost(1.0)[0] == pytest.approx(1e6)
    assert Promise("truncated", 0.0, 1e6).cost(1.0)[0] == pytest.approx(1.0)
    assert Promise("total_variation", 1e-9).cost(1e4)[1] == 1.0
    assert Promise("truncated", 0.1, math.inf).cost(1.0)[0] == math.inf


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "mixture", "distance": 1.5}, "between 0 and 1, got 1.5"),
        ({"kind": "mixture", "distance": math.nan}, "between 0 and 1, got nan"),
        ({"kind": "truncated", "log_range": -1.0}, "log_range must be at least 0"),
    ],
)
def test_what_it_refuses(fields, text):
    with pytest.raises(ValueError, match=text):
        Promise(**fields)


def small_problem(num_records: int, adjacency: str = "replace", mechanism: type = kng.KNG):
    rng = np.random.default_rng(4)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(0.0, 1.0), columns=1)
    built = mechanism(kng.LogisticLoss(), bounds, kng.Box(-2.0, 2.0), 1.0, adjacency)
    return built, rng.uniform(-1, 1, (num_records, 1)), rng.integers(0, 2, num_records).astype(float)


def log_densities(mechanism, grid, data) -> np.ndarray:
    with float64():
        return np.array(jax.jit(jax.vmap(mechanism.log_density, (0, None)))(grid, data))


@pytest.mark.parametrize("mechanism", [kng.KNG, kng.ExponentialMechanism])
def test_the_log_range_bounds_the_density_and_is_no_more_than_the_worst_data_need(mechanism):
    built, _, _ = small_problem(6, mechanism=mechanism)
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 41)] * 2), -1).reshape(-1, 2)
    known = built.log_range(2, 6)
    widths = []
    # All records alike in a corner, or cancelling each other.
    corners = [(np.ones(6), np.ones(6)), (np.ones(6), np.repeat([0.0, 1.0], 3)), (np.tile([1.0, -1.0], 3), np.ones(6))]
    for x, y in corners:
        data = built.prepare(x[:, None], y)
        widths.append(np.ptp(log_densities(built, grid, data)))
    assert max(widths) <= known
    assert max(widths) >= (0.8 if mechanism is kng.KNG else 0.9) * known


def test_independence_proposals_promise_a_mixture_where_records_are_few():
    built, _, _ = small_problem(6)
    certificate = SampledRoute(built, Facts(2, 6), kng.IndependenceMH(num_sweeps=4000), "").certify()
    assert certificate.promise.kind == "mixture"
    share = 0.05 * math.exp(-built.log_range(2, 6))
    left = (1 - share) ** certificate.sampler["num_sweeps"]
    np.testing.assert_allclose(certificate.delta, left + certificate.rounding_delta, rtol=1e-9)
    np.testing.assert_allclose(certificate.epsilon, 1.0 - math.log1p(-left), rtol=1e-9)
    assert not certificate.exact
    assert certificate.unproved == ()
    for text in (certificate.explain(), certificate.summary()):
        assert f"({certificate.epsilon:.6g}, {certificate.delta:.3g})-differentially private" in text
    assert "Not proved" not in certificate.explain()
    release = kng.Release._of(np.zeros(2), certificate)
    again = kng.Release.from_json(release.to_json())
    assert again == release
    assert json.loads(release.to_json())["certificate"]["proved_of_this_release"]["delta"] == certificate.delta


def test_the_minorisation_holds_on_the_chain_itself():
    """One step from the worst start moves to a cell with at least p times its mass: f ≤ q/p everywhere."""
    built, X, y = small_problem(6)
    data = built.prepare(X, y)
    share = 0.05 * math.exp(-built.log_range(2, 6))
    axis = np.linspace(-2, 2, 202)[:-1] + 2 / 201
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    density = np.exp(log_densities(built, grid, data))
    density /= density.sum() * (axis[1] - axis[0]) ** 2
    assert np.max(density) * share <= 0.05 / 16.0


@pytest.mark.slow
def test_a_release_of_few_records_has_the_certificate_of_its_route():
    built, X, y = small_problem(6)
    sampler = kng.IndependenceMH(num_sweeps=4000)
    certificate = kng.release(built, X, y, sampler=sampler).certificate
    assert certificate.promise == SampledRoute(built, Facts(2, 6), sampler, "").certify().promise


@pytest.mark.slow
def test_nothing_is_promised_where_nothing_is_known():
    """Many records, or their number private: the certificate falls back to what it says of every chain."""
    for built, X, y in (small_problem(200), small_problem(6, "add_remove")):
        certificate = kng.release(built, X, y, sampler=kng.IndependenceMH(num_sweeps=50)).certificate
        assert certificate.promise == NONE
        assert certificate.epsilon is None
        assert any("delta of this release is unknown" in line for line in certificate.unproved)
    exact = dataclasses.replace(certificate, promise=EXACT)
    assert exact.epsilon == 1.0
