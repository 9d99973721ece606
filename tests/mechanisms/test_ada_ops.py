"""AdaOPS: each step of its proof by brute force over neighbours, its budget by quadrature, its law, and its utility."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records
from kngjax.mechanisms.noise.calibration import posterior_sample_gamma
from kngjax.sensitivity import moments
from tests.oracles.goodness_of_fit import assert_two_samples_agree

BOUNDS = {
    1: kng.Bounds(x=([-2.0], 2.0), y=(-1.0, 1.0), intercept=False),
    2: kng.Bounds(x=([-1.0, -1.0], 1.0), y=(-1.0, 1.0), intercept=False),
}


def with_records(dimension, epsilon=1.0, delta=1e-6, adjacency="add_remove", **settings):
    return kng.AdaOPS(BOUNDS[dimension], epsilon, delta, adjacency, **settings)


def moments_of(x, y):
    values, vectors = np.linalg.eigh(x.T @ x)
    return np.maximum(values, 0.0), vectors.T @ (x.T @ y)


def random_neighbours(random, dimension):
    """X, y of D, and the record that D' has more: extremes favoured, few or many records, designs of any condition."""
    bound = float(np.asarray(BOUNDS[dimension].x_upper))
    n = int(10.0 ** random.uniform(0.0, 3.0))
    scales = 10.0 ** random.uniform(-2.0, 0.0, dimension) if random.random() < 0.5 else np.ones(dimension)
    x = bound * scales * random.choice([-1.0, 1.0, 0.5], (n, dimension))
    y = np.clip(x @ random.normal(0.0, 10.0 ** random.uniform(-1.0, 1.0), dimension), -1.0, 1.0)
    if random.random() < 0.3:
        x, y = np.repeat(x, 30, axis=0), np.repeat(y, 30)
    record = bound * random.choice([-1.0, 1.0], dimension) * (1.0 if random.random() < 0.7 else random.uniform())
    return x, y, record, random.choice([-1.0, 1.0])


def gaussian_renyi(order, first, second):
    """D_α of two normal laws (mean, precision), by the determinant formula in full dimension."""
    (mean, precision), (other, other_precision) = first, second
    mixed = order * precision + (1.0 - order) * other_precision
    if np.any(np.linalg.eigvalsh(mixed) <= 0):
        return np.inf
    away = mean - other
    # (αΣ₂ + (1-α)Σ₁)^{-1} = H₁ (αH₁ + (1-α)H₂)^{-1} H₂.
    square = away @ (precision @ np.linalg.solve(mixed, other_precision @ away))
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, precision, other_precision)]
    return 0.5 * order * square + (order * logs[1] + (1.0 - order) * logs[2] - logs[0]) / (2.0 * (order - 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2])
def test_every_step_of_the_proof_by_brute_force(dimension):
    """Random neighbours, whichever of the two was run: on the good events each stage keeps to its budget."""
    mechanism, random, largest = with_records(dimension), np.random.default_rng(dimension), 0.0
    plan = mechanism.plan(dimension)
    order, budget = float(plan.order), float(plan.budget)
    reach = float(np.sqrt(dimension) * np.asarray(BOUNDS[dimension].x_upper))
    tune = jax.jit(mechanism.tuning)
    num_good = 0
    for _ in range(250):
        x, y, record, response = random_neighbours(random, dimension)
        larger = np.vstack([x, record]), np.append(y, response)
        for run in ((x, y), larger):
            # Not seldom at the very edge of the good events.
            normals = np.minimum(random.normal(0.0, 4.0, (2, 32)), float(plan.tail))
            tuned = tune(*moments_of(*run), normals)
            changes = moments.residual_log_change(BOUNDS[dimension], tuned.curvature, dimension)
            for ridge, curvature, bound, gamma, change in zip(*map(np.asarray, (*tuned, changes)), strict=True):
                sides = []
                for columns, responses in ((x, y), larger):
                    precision = columns.T @ columns + ridge * np.eye(dimension)
                    sides.append((np.linalg.solve(precision, columns.T @ responses), precision))
                least = np.linalg.eigvalsh(sides[0][1])[0]
                # λ̃ ≤ λ_min follows from Z₁ ≤ z.
                assert curvature <= least * (1.0 + 1e-9)
                assert record @ np.linalg.solve(sides[0][1], record) <= reach**2 / curvature * (1.0 + 1e-9)
                logs = [np.log(1.0 + reach * np.linalg.norm(mean)) for mean, _ in sides]
                assert abs(logs[1] - logs[0]) <= change * (1.0 + 1e-9)
                if np.log(bound) < logs[0]:
                    continue
                num_good += 1
                assert abs(response - record @ sides[0][0]) <= bound
                scaled = [(mean, gamma * precision) for mean, precision in sides]
                spent = [gaussian_renyi(order, *scaled), gaussian_renyi(order, *scaled[::-1])]
                assert max(spent) <= budget * (1.0 + 1e-6)
                largest = max(largest, *spent)
    assert num_good > 10_000
    # Otherwise the bound would be far from what data can do, and the test could not fail.
    assert largest > 0.3 * budget


@pytest.mark.slow
@pytest.mark.parametrize("larger_was_run", [False, True])
def test_the_bounds_fail_as_seldom_as_they_may(larger_was_run):
    """λ̃ ≤ λ_min(D) and L ≥ Y + X‖θ̂_D‖ of the smaller data set, whichever was run; δ₁ = 0.2, attained where it is
    worst.

    That is where the larger one was run, whose record raises λ_min by X² and lowers ‖θ̂‖ by as much as a record can.
    """
    mechanism, num_draws = with_records(1, delta=0.5, failure_share=0.4), 40_000
    x, y = np.full((3000, 1), 2.0), np.ones(3000)
    run = (np.vstack([x, [[2.0]]]), np.append(y, -1.0)) if larger_was_run else (x, y)
    normals = np.random.default_rng(7).normal(size=(2, num_draws))
    tuned = jax.tree.map(np.asarray, mechanism.tuning(*moments_of(*run), normals))
    too_large = np.sum(tuned.curvature > 12_000.0 + tuned.ridge)
    too_small = np.sum(tuned.bound < 1.0 + 2.0 * 6000.0 / (12_000.0 + tuned.ridge))
    for failures in (too_large, too_small):
        assert stats.binom.sf(failures - 1, num_draws, 0.2) > 1e-6
        if larger_was_run:
            assert stats.binom.cdf(failures, num_draws, 0.199) > 1e-6
        else:
            assert failures < 0.15 * num_draws


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.4, 0.3)])
def test_the_composition_spends_delta_and_no_more(epsilon, shares):
    """δ of two Gaussian shifts and one posterior at the worst leverage and residual, by quadrature over all losses."""
    delta = 1e-5
    mechanism = with_records(1, epsilon, delta, shares=shares)
    plan = mechanism.plan(1)
    shift = np.hypot(4.0 / float(plan.eigenvalue_deviation), float(plan.bound_shift))
    curvature, bound = np.array([1.0, 3.0, 1e3]) * float(plan.least_curvature), 5.0
    spent = []
    for leverage in 4.0 / curvature:
        gamma = float(posterior_sample_gamma(plan.order, plan.budget, leverage, bound))
        slope = bound * np.sqrt(gamma * leverage)
        # L = log p/q of Z, N(0, 1) under D, from the two densities themselves.
        z = np.linspace(-14.0, 14.0, 8001)
        without = stats.norm.logpdf(z)
        having = stats.norm.logpdf(z, -slope / (1.0 + leverage), 1.0 / np.sqrt(1.0 + leverage))
        for p, q in ((without, having), (having, without)):
            rest = epsilon - (p - q)
            # E over the Gaussian parts of (1 - e^{rest - G})_+, G ~ N(s²/2, s²), at every z.
            inner = stats.norm.cdf(0.5 * shift - rest / shift) - np.exp(
                rest + stats.norm.logcdf(-0.5 * shift - rest / shift)
            )
            spent.append(np.trapezoid(np.exp(p) * inner, z))
    failing = 2.0 * 0.1 * delta
    assert max(spent) + failing <= delta
    assert max(spent) + failing > 0.25 * delta
    assert stats.norm.sf(float(plan.tail)) == pytest.approx(0.1 * delta, rel=1e-9)


def test_an_exchange_is_a_removal_and_an_addition():
    """(ε, δ)-DP in two steps of (ε', δ') with 2ε' = ε and (1 + e^{ε'})δ' = δ."""
    exchanged = with_records(2, 3.0, 1e-4, "replace")
    step = with_records(2, 1.5, 1e-4 / (1.0 + np.exp(1.5)), "add_remove")
    for ours, theirs in zip(exchanged.plan(2), step.plan(2), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=1e-9)
    assert exchanged.guarantee.epsilon == 3.0
    assert "half of epsilon" in exchanged.sensitivity.derivation


def by_hand(mechanism, summary, num_draws, seed):
    """The mechanism in NumPy, one draw after another, given its public plan."""
    random, d = np.random.default_rng(seed), len(summary.moment)
    plan, identity = jax.tree.map(float, mechanism.plan(d)), np.eye(len(summary.moment))
    reach = float(np.sqrt(d) * np.asarray(mechanism.bounds.x_upper))
    thetas = np.empty((num_draws, d))
    for row in thetas:
        shifted = np.linalg.eigvalsh(summary.gram)[0] - reach**2
        shifted += plan.eigenvalue_deviation * (random.normal() - plan.tail)
        lower = max(shifted, 0.0)
        ridge = max(plan.least_curvature - lower, 1e-6 * reach**2)
        precision = summary.gram + ridge * identity
        mean = np.linalg.solve(precision, summary.moment)
        leverage = reach**2 / (ridge + lower)
        inflation = np.log(1.0 + leverage) * (1.0 + (random.normal() + plan.tail) / plan.bound_shift)
        bound = (1.0 + reach * np.linalg.norm(mean)) * np.exp(inflation)
        gamma = float(_gamma_by_search(plan, leverage, bound))
        row[:] = random.multivariate_normal(mean, np.linalg.inv(gamma * precision))
    return thetas


def _gamma_by_search(plan, leverage, bound):
    """γ with D_α(D‖D') = R, from the linear equation at two values."""

    def spent(gamma):
        first = np.zeros(1), np.full((1, 1), gamma)
        second = np.full(1, bound * np.sqrt(leverage) / (1.0 + leverage)), np.full((1, 1), gamma * (1.0 + leverage))
        return gaussian_renyi(plan.order, first, second)

    low, high = spent(1e-9), spent(1.0)
    return 1e-9 + (plan.budget - low) / (high - low) * (1.0 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("num_records", [50, 5000])
def test_its_draws_are_those_by_hand(num_records):
    random = np.random.default_rng(1)
    mechanism = with_records(2, 2.0, 1e-3)
    data = mechanism.prepare(random.uniform(-1.0, 1.0, (num_records, 2)), random.uniform(-0.2, 1.0, num_records))
    ours = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=3000, num_chains=1).theta[0]
    theirs = by_hand(mechanism, data, 3000, 2)
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]):
        assert_two_samples_agree(ours @ direction, theirs @ direction)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_it_never_fails(epsilon, adjacency):
    """One record, no variation, more columns than records: some γ works, and θ is a number."""
    bounds = kng.Bounds(x=(np.full(5, -1.0), 1.0), y=(-1.0, 1.0))
    mechanism = kng.AdaOPS(bounds, epsilon, 1e-9, adjacency)
    for X in (np.zeros((1, 5)), np.ones((3, 5)), np.full((20_000, 5), 0.5)):
        data = mechanism.prepare(X, np.ones(len(X)))
        thetas = kng.sample(mechanism, data, key=kng.research_key(4), num_draws=2000, num_chains=1).theta
        assert np.all(np.isfinite(thetas))
    # Its δ is no larger at any ε: no rounding costs any.
    certificate = kng.release(mechanism, X, np.ones(len(X))).certificate
    assert (certificate.assurance, certificate.delta) == ("proved", 1e-9)


def sums_of(dimension, num_records):
    """Moments of a regression with x uniform on the box |x_j| ≤ 1, coefficients of length ½ and noise of deviation ¼.

    X'X and the error of least squares are drawn from their limit laws.
    """
    random = np.random.default_rng(5)
    few = random.uniform(-1.0, 1.0, (2000, dimension))
    gram = few.T @ few * (num_records / 2000)
    truth = np.full(dimension, 0.5 / np.sqrt(dimension))
    moment = gram @ truth + 0.25 * np.linalg.cholesky(gram) @ random.normal(size=dimension)
    exactly = np.vectorize(Fraction, [object])
    return ExactSums(num_records, exactly(gram), exactly(moment), Fraction(1))


def relative_error(mechanism, num_records):
    """The root mean square of θ - θ₀ over that of least squares, whose error is independent of the noise."""
    sums = sums_of(5, num_records)
    data = sums.summary()
    thetas = kng.sample(
        mechanism, mechanism.intake.summary_of(sums), key=kng.research_key(6), num_draws=4000, num_chains=1
    ).theta[0]
    private = np.mean(np.sum((thetas - np.linalg.solve(data.gram, data.moment)) ** 2, axis=1))
    return np.sqrt(1.0 + private / (0.25**2 * np.trace(np.linalg.inv(data.gram))))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [kng.AdaOPS, kng.AdaSSP])
def test_the_error_tends_to_that_of_least_squares(mechanism):
    bounds = kng.Bounds(x=(np.full(5, -1.0), 1.0), y=(-2.0, 2.0), intercept=False)
    errors = [relative_error(mechanism(bounds, 1.0, 1e-6, "add_remove"), n) for n in (10_000, 100_000, 10_000_000)]
    assert errors[0] < 5.0
    assert errors[1] < 1.5
    assert errors[2] < 1.01


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": (0.5, 0.5)}, "shares"),
        ({"shares": (0.5,)}, "shares"),
        ({"shares": (0.0, 0.5)}, "shares"),
        ({"failure_share": 0.5}, "failure_share"),
        ({"failure_share": 0.0}, "failure_share"),
    ],
)
def test_shares_that_it_refuses(changes, words):
    settings = {"bounds": BOUNDS[1], "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", **changes}
    with pytest.raises(ValueError, match=words):
        kng.AdaOPS(**settings)


def test_it_takes_its_own_data_alone():
    with pytest.raises(TypeError, match="prepare"):
        with_records(1).draws(Records(np.ones((3, 1)), np.ones(3)), jax.random.key(0), 1)
