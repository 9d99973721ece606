"""Sandwiches under zCDP: what they cost, who refuses them, what is summed of each record, and the noise-aware step."""

import functools
import itertools
from fractions import Fraction

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.data.records import Records
from kngjax.inference import gaussian_sums
from kngjax.inference.intervals_from_sums import interval_of_sums
from kngjax.inference.score_moments import RecordCurvature
from tests.inference.test_with_intervals import (
    BOUNDS,
    LOWER,
    RESPONSES,
    THETA,
    UPPER,
    mechanism,
    records,
    sandwich_by_hand,
    table,
)

GAUSSIAN = kng.Sandwich(noise="zcdp")
CORNERS = np.array(list(itertools.product(*zip(LOWER, UPPER, strict=True), RESPONSES)))


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", [kng.KNG, kng.ObjectivePerturbation])
def test_everything_together_has_the_rho_of_the_mechanism_and_no_more(kind, adjacency):
    """KNG's (ε²/8)-zCDP is of bounded range; of objective perturbation (ε²/2)-zCDP is what follows of pure ε."""
    made = kng.WithIntervals(mechanism(adjacency, 0.8, kind), kng.Sandwich(share=0.19, noise="zcdp"), 500).making()
    factor = 8 if kind is kng.KNG else 2
    point, budget = exactly(float(made.mechanism.epsilon)), exactly(made.budget)
    whole = Fraction(64, 100) / factor
    assert whole - Fraction(1, 10**12) < point**2 / factor + budget**2 / 2 <= whole
    assert float(point) == pytest.approx(0.72, abs=1e-12)
    assert made.summing.guarantee.exact_rho == budget**2 / 2
    together = kng.Guarantee.composed([made.mechanism.guarantee, made.summing.guarantee])
    assert together.exact_rho <= whole
    assert together.epsilon == np.inf


def test_it_is_released_by_one_debit_and_ledgers_of_pure_epsilon_refuse_it(tmp_path):
    x, y = table(300)
    plan = kng.WithIntervals(mechanism(), GAUSSIAN)
    of = {"adjacency": "replace", "dataset": "made up"}
    pure = kng.Ledger.create(tmp_path / "pure", kng.Budget.pure(50.0), **of)
    # It would fail if a value were looked at.
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(plan, x, np.full(300, np.nan), ledger=pure)
    assert pure.releases() == {}
    assert pure.read().num_rows == 1
    ledger = kng.Ledger.create(tmp_path / "zcdp", kng.Budget.zcdp(0.9), **of)
    released = kng.release(plan, x, y, ledger=ledger)
    assert released.guarantee.rho == pytest.approx(0.5, abs=1e-12)
    assert released.guarantee.epsilon == np.inf
    assert "0.5-zCDP" in released.explain()
    assert "zCDP" in released.parts[1].certificate.explain()
    assert all(part.certificate.assurance == "proved" for part in released.parts)
    assert len(ledger.releases()) == 1
    again = kng.inference.ReleaseWithIntervals.from_json(released.to_json())
    assert again == released
    assert repr(again.intervals(0.9)) == repr(released.intervals(0.9))
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(plan, x, y, ledger=ledger)


def test_it_is_never_the_default():
    """Though it would be the narrower by far."""
    made = mechanism(kind=kng.KNG)
    settings = kng.WithIntervals(made).making(3000).settings()
    assert settings["type"] == "Sandwich"
    assert settings.get("noise", "pure") == "pure"
    assert "mu" not in settings
    by_sums, by_gaussian_sums = (
        kng.preview(kng.WithIntervals(made, one), num_records=3000).width for one in (kng.Sandwich(), GAUSSIAN)
    )
    assert np.all(by_gaussian_sums < by_sums)


@pytest.mark.parametrize("loss", [kng.PseudoHuberLoss(0.7), kng.QuantileLoss(0.3), kng.SquaredLoss()])
@pytest.mark.parametrize("adjacency", list(kng.Adjacency))
def test_no_record_moves_the_sums_by_more_than_the_noise_hides(loss, adjacency):
    """In deviations, over μ; pseudo-Huber records of small and of large residuals are as far apart as that."""
    found = RecordCurvature(loss, BOUNDS, 0.4 if loss.score_is_piecewise_constant else None)
    summing = GAUSSIAN.mechanism(3, found, 0.3, adjacency)
    points = np.vstack([CORNERS, np.column_stack([CORNERS[:, :2], CORNERS[:, :2] @ THETA[1:] + THETA[0]])])
    points = np.vstack([points, [[0.25, 1.0, 4.0], [0.25, 1.0, 0.3]]])
    made = Records(np.column_stack([np.ones(len(points)), points[:, :2]]), np.clip(points[:, 2], *RESPONSES))
    rows = GAUSSIAN.columns(made, THETA, found, adjacency)
    sums = np.array([list(map(float, summing.intake.exact_sums(row[None]).moment)) for row in rows])
    changes = sums if adjacency is kng.Adjacency.ADD_REMOVE else (sums[:, None] - sums[None]).reshape(-1, 12)
    largest = np.linalg.norm(changes / summing.noise.deviations(12, None), axis=1).max()
    assert largest <= 0.3 * (1.0 + 1e-12)
    # At residuals of the bounds s is not k itself.
    assert largest > (0.29 if isinstance(loss, kng.PseudoHuberLoss) else 0.2)
    # None was shortened: c is a bound of the loss.
    np.testing.assert_allclose(summing.shortened(rows), rows, atol=1e-9)
    assert float(summing.largest) == pytest.approx({"PseudoHuberLoss": 9.0}.get(type(loss).__name__, 18.0))


@pytest.mark.parametrize(
    "loss",
    [
        kng.PseudoHuberLoss(0.5),
        kng.LogisticLoss(),
        kng.SmoothedQuantileLoss(0.5, 0.2),
        kng.SmoothedQuantileLoss(0.999, 0.2),
        kng.SmoothedQuantileLoss(0.02, 0.2, kernel="gaussian"),
        kng.HuberLoss(0.5),
        kng.ExpectileLoss(0.8),
    ],
    ids=repr,
)
def test_curvature_and_squared_score_together_stay_within_the_bound_of_the_loss(loss):
    """On a grid of residuals, over their largest there."""
    predictors, ends = np.linspace(-6.0, 6.0, 2001), (-6.0, 6.0)
    curvature, score = (
        np.array([np.asarray(jax.vmap(lambda eta, y=y, of=of: of(eta, y))(predictors)) for y in (0.0, 1.0)])
        for of in (loss.record_curvature, loss.record_score)
    )
    largest = max(abs(float(end)) for end in loss.score_interval(ends, (0.0, 1.0)))
    squares = (curvature / float(loss.curvature_bound(ends))) ** 2 + (score / largest) ** 4
    assert squares.max() <= loss.joint_bound + 1e-9
    assert squares.max() >= 0.9 * min(loss.joint_bound, 1.0)


def test_matrices_of_the_sums_are_those_of_the_records_in_their_own_units():
    made, adjacency = RecordCurvature(kng.PseudoHuberLoss(0.7), BOUNDS), kng.Adjacency.REPLACE
    some = records(200)
    summing = GAUSSIAN.mechanism(3, made, 0.3, adjacency)
    rows = GAUSSIAN.columns(some, THETA, made, adjacency)
    sums = np.array(list(map(float, summing.intake.exact_sums(rows).moment)))
    found = GAUSSIAN.matrices(sums[None], 3, made, THETA, adjacency, 200)
    x, residual = np.asarray(some.x), np.asarray(some.y) - np.asarray(some.x) @ THETA
    curvature = (1.0 + (residual / 0.7) ** 2) ** -1.5
    np.testing.assert_allclose(found.hessian[0], (x * curvature[:, None]).T @ x, rtol=1e-6)
    square = residual**2 / (1.0 + (residual / 0.7) ** 2)
    np.testing.assert_allclose(found.score[0], (x * square[:, None]).T @ x, rtol=1e-6)
    expected = GAUSSIAN.mean_sums(x, curvature, square / 0.49, BOUNDS, adjacency)
    np.testing.assert_allclose(200.0 * expected, sums, rtol=1e-6)


def test_with_next_to_no_noise_intervals_are_those_without_privacy():
    x, y = table(20_000, 3)
    found = kng.release(kng.WithIntervals(mechanism(epsilon=90.0), GAUSSIAN), x, y).intervals(0.95)
    theta, errors = sandwich_by_hand(x, y)
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, theta, atol=0.2 * errors.max())
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * errors, rtol=0.07)


def test_the_noise_that_is_drawn_again_is_that_of_the_sums():
    made = kng.WithIntervals(mechanism(), GAUSSIAN).making(500)
    drawn = GAUSSIAN.noise_draws(made.summing, np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(drawn.std(axis=0), made.summing.noise.deviations(12, None), rtol=0.03)
    # Normal: of its fourth moment over the square of the second the standard error is .035.
    assert np.all(np.abs(np.mean(drawn**4, axis=0) / np.mean(drawn**2, axis=0) ** 2 - 3.0) < 0.2)


def test_noise_of_the_sums_widens_intervals():
    made, theta = kng.WithIntervals(mechanism(), GAUSSIAN).making(1500), np.array([0.5, 0.8, -0.4])
    replace, widths = kng.Adjacency.REPLACE, []
    for mu in (0.04, 50.0):
        summing = GAUSSIAN.mechanism(3, made.curvature, mu, replace)
        rows = GAUSSIAN.columns(records(1500), theta, made.curvature, replace)
        sums = np.array(list(map(float, summing.intake.exact_sums(rows).moment)))
        given = made.mechanism, made.noise(), summing, GAUSSIAN, made.curvature
        widths.append(interval_of_sums(theta, sums, *given, 1500, 0.95))
    wide, narrow = (found.upper - found.lower for found in widths)
    assert np.all(wide > 1.1 * narrow)


def test_no_record_and_only_dropped_ones_are_released_like_any():
    """That a release failed would tell no record from one."""
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, missing="drop", missing_y="drop")
    plan, (x, y) = kng.WithIntervals(mechanism("add_remove", bounds=bounds), GAUSSIAN), table(3)
    for features, responses in ((x[:0], y[:0]), (x * np.nan, y), (x[:1], y[:1])):
        assert len(kng.release(plan, features, responses).parts) == 2


def test_units_of_columns_are_no_matter():
    """A column in cents instead of thousands has its coefficient and interval in cents, by either noise."""
    scale = np.array([1.0, 1e5, 1.0])
    wide = kng.Bounds(x=(LOWER * scale[1:], UPPER * scale[1:]), y=RESPONSES)
    loss, theta, found = kng.PseudoHuberLoss(0.7), np.array([0.5, 0.8, -0.4]), {}
    for covariance, factor in itertools.product((kng.Sandwich(), GAUSSIAN), (np.ones(3), scale)):
        curvature = RecordCurvature(loss, BOUNDS if factor[1] == 1.0 else wide)
        made = (
            mechanism()
            if factor[1] == 1.0
            else kng.ObjectivePerturbation(loss, wide, kng.Box(-6.0, 6.0), 1.0, "replace")
        )
        summing = covariance.mechanism(3, curvature, 5.0, kng.Adjacency.REPLACE)
        some = Records(np.asarray(records(1500).x) * factor, np.asarray(records(1500).y))
        rows = covariance.columns(some, theta / factor, curvature, kng.Adjacency.REPLACE)
        sums = np.array(list(map(float, summing.intake.exact_sums(rows).moment)))
        draws = sums - covariance.noise_draws(summing, np.random.default_rng(0), 100)
        matrices = covariance.matrices(draws, 3, curvature, theta / factor, made.adjacency, 1500)
        found[covariance.noise, factor[1]] = matrices.hessian / np.outer(factor, factor)
    for noise in ("pure", "zcdp"):
        assert len(found[noise, 1.0]) == 100
        np.testing.assert_allclose(found[noise, 1e5], found[noise, 1.0], rtol=1e-6, atol=1e-6)


def test_what_it_cannot_do_is_refused_in_words():
    with pytest.raises(ValueError, match="'pure' or 'zcdp'"):
        kng.Sandwich(noise="gaussian")
    huge = kng.Bounds(hull=kng.geometry.FeatureHull([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), y=RESPONSES)
    found = gaussian_sums.summing_of(RecordCurvature(kng.PseudoHuberLoss(1.0), huge), 3, 0.3, kng.Adjacency.REPLACE)
    # Of a triangle about its centre, and not of the box about it.
    assert float(found.largest) < 9.0


@functools.cache
def coverage(noise):
    plan, held = kng.WithIntervals(mechanism(), kng.Sandwich(noise=noise)), []
    for seed in range(200):
        released = kng.release(plan, *table(600, seed))
        found = released.intervals(0.95)
        if isinstance(found, kng.inference.Interval):
            held.append((found.lower <= [0.5, 0.8, -0.4]) & (found.upper >= [0.5, 0.8, -0.4]))
    return np.array(held)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    """200 tables of 600 records: .95 but for three standard errors of coverages of three coefficients."""
    held = coverage("zcdp")
    assert len(held) > 150
    assert np.mean(held) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / len(held))
