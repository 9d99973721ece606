"""Estimates with intervals: what they cost, what is summed of each record, what the intervals are, who is refused."""

import functools
import itertools
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.data.records import Records
from kngjax.inference import groups_of_records as groups
from kngjax.inference.covariances import Matrices
from kngjax.inference.intervals_from_sums import errors_of, interval_of_sums
from kngjax.inference.score_moments import RecordCurvature
from kngjax.mechanisms.expected_noise import k_norm_covariance

LOWER, UPPER, RESPONSES = np.array([-0.5, 0.0]), np.array([1.0, 2.0]), (-3.0, 4.0)
BOUNDS = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES)
THETA = np.array([0.3, -0.4, 0.7])
COVARIANCES = {
    "sandwich": kng.Sandwich(),
    "independent": kng.inference.IndependentErrors(),
    "public": kng.inference.PublicDesign([[0.0, 0.5], [1.0, 1.5], [0.2, 2.0], [-0.5, 0.1]]),
}


def pseudo_huber_score(residual, threshold):
    return -residual / np.sqrt(1.0 + (residual / threshold) ** 2)


def mechanism(adjacency="replace", epsilon=1.0, kind=kng.ObjectivePerturbation, loss=None, bounds=BOUNDS, **settings):
    loss = kng.PseudoHuberLoss(0.7) if loss is None else loss
    return kind(loss, bounds, kng.Box(-6.0, 6.0), epsilon, adjacency, **settings)


def table(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(LOWER, UPPER, (number, 2))
    y = np.clip(0.5 + x @ [0.8, -0.4] + 0.5 * generator.standard_normal(number), *RESPONSES)
    return x, y


def records(number, seed=0):
    x, y = table(number, seed)
    return Records(np.column_stack([np.ones(number), x]), y)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_everything_together_costs_the_epsilon_of_the_mechanism(name, adjacency, tmp_path):
    plan = kng.WithIntervals(mechanism(adjacency), COVARIANCES[name])
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(1.5), adjacency=adjacency, dataset="made up")
    x, y = table(300)
    released = kng.release(plan, x, y, ledger=ledger)
    parts = [exactly(float(part.certificate.mechanism["epsilon"])) for part in released.parts]
    assert sum(parts) <= 1
    assert sum(parts) > 1 - Fraction(1, 10**12)
    assert released.guarantee.epsilon == pytest.approx(1.0, abs=1e-12)
    assert len(ledger.releases()) == 1
    assert all(part.certificate.assurance == "proved" for part in released.parts)
    again = kng.inference.ReleaseWithIntervals.from_json(released.to_json())
    assert again == released
    assert repr(again.intervals(0.9)) == repr(released.intervals(0.9))
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(plan, x, y, ledger=ledger)


@pytest.mark.parametrize("loss", [kng.PseudoHuberLoss(0.7), kng.QuantileLoss(0.3), kng.SmoothedQuantileLoss(0.3, 0.5)])
def test_curvatures_and_scores_are_those_of_the_loss_and_each_record_has_its_own(loss):
    bandwidth = 0.4 if loss.score_is_piecewise_constant else None
    found = RecordCurvature(loss, BOUNDS, bandwidth)
    of, made = found.of(records(50), THETA), records(50)
    units = found.units(THETA)
    residual = np.asarray(made.y) - np.asarray(made.x) @ THETA
    if isinstance(loss, kng.PseudoHuberLoss):
        score, curvature = pseudo_huber_score(residual, 0.7), (1.0 + (residual / 0.7) ** 2) ** -1.5
    elif bandwidth is not None:
        score, curvature = (residual <= 0.0) - 0.3, (np.abs(residual) <= bandwidth) / (2.0 * bandwidth)
    else:
        below = 1.0 / (1.0 + np.exp(residual / 0.5))
        score, curvature = below - 0.3, below * (1.0 - below) / 0.5
    np.testing.assert_allclose(of[0] * units[0], curvature, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(of[1] * units[1], score**2, rtol=1e-9, atol=1e-12)
    # Another order, another number and another neighbour change nothing of a record.
    order = np.random.default_rng(1).permutation(50)
    turned = Records(np.asarray(made.x)[order][:31], np.asarray(made.y)[order][:31])
    for whole, part in zip(of, found.of(turned, THETA), strict=True):
        assert whole[order][:31].tobytes() == part.tobytes()


@pytest.mark.parametrize("adjacency", list(kng.Adjacency))
@pytest.mark.parametrize("name", COVARIANCES)
def test_no_record_moves_the_sums_by_more_than_the_noise_hides_and_one_by_as_much(name, adjacency):
    covariance, found = COVARIANCES[name], RecordCurvature(kng.PseudoHuberLoss(0.7), BOUNDS)
    summing = covariance.mechanism(3, found, 0.3, adjacency)
    corners = np.array(list(itertools.product(*zip(LOWER, UPPER, strict=True), RESPONSES)))
    # At corners w is next to 0; at residuals of 0 it is 1.
    points = np.vstack([corners, np.column_stack([corners[:, :2], corners[:, :2] @ THETA[1:] + THETA[0]])])
    made = Records(np.column_stack([np.ones(len(points)), points[:, :2]]), np.clip(points[:, 2], *RESPONSES))
    rows = covariance.columns(made, THETA, found, adjacency)
    pairs = (rows[:, None] - rows[None]).reshape(-1, rows.shape[1])
    changes = rows if adjacency is kng.Adjacency.ADD_REMOVE else pairs
    noise = summing.noise_in_fractions(rows.shape[1], 1)
    # ‖change‖ ≤ ε in units of the noise's exponent: rate times the weighted maximum.
    weights = np.array([float(weight) for weight in noise.weights]) * float(noise.scale_squared) ** 0.5
    largest = np.max(np.abs(changes) / weights)
    assert largest <= 0.3 * (1.0 + 1e-12)
    assert largest > 0.29


def sandwich_by_hand(x, y, threshold=0.7):
    design, theta = np.column_stack([np.ones(len(x)), x]), np.zeros(3)
    for _ in range(60):
        residual = y - design @ theta
        curvature = (1.0 + (residual / threshold) ** 2) ** -1.5
        step = np.linalg.solve(
            (design * curvature[:, None]).T @ design, design.T @ pseudo_huber_score(residual, threshold)
        )
        theta = theta - step
    score = pseudo_huber_score(y - design @ theta, threshold)
    inverse = np.linalg.inv((design * curvature[:, None]).T @ design)
    return theta, np.sqrt(np.diag(inverse @ ((design * (score**2)[:, None]).T @ design) @ inverse))


@pytest.mark.parametrize("name", ["sandwich", "independent"])
def test_with_next_to_no_noise_intervals_are_those_without_privacy(name):
    x, y = table(20_000, 3)
    plan = kng.WithIntervals(mechanism(epsilon=90.0), COVARIANCES[name])
    found = kng.release(plan, x, y).intervals(0.95)
    theta, errors = sandwich_by_hand(x, y)
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, theta, atol=0.2 * errors.max())
    # Of 4,000 draws quantiles are known to 2 %.
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * errors, rtol=0.07)


def test_the_noise_of_the_estimate_and_its_ridge_are_in_the_interval():
    """With H = nI, J next to none and a known z: half widths are z's quantiles over n, about θ̃ + γ(θ̃ - c)/n."""
    made = mechanism(centre=np.array([1.0, 0.0, 0.0]))
    noise, number, theta = made.noise.of_gradient(3), 500.0, np.array([2.0, 1.0, -1.0])
    matrices = Matrices(np.tile(number * np.eye(3), (4000, 1, 1)), np.tile(1e-9 * np.eye(3), (4000, 1, 1)))
    errors = errors_of(matrices, noise, theta, np.random.default_rng(0))
    pull = float(made.ridge(3)) * np.array([1.0, 1.0, -1.0]) / number
    deviation = np.sqrt(np.diag(k_norm_covariance(noise.norm, noise.rate, 3))) / number
    np.testing.assert_allclose(errors.mean(axis=0), -pull, atol=5.0 * deviation.max() / 63.0)
    np.testing.assert_allclose(errors.std(axis=0), deviation, rtol=0.1)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say_and_naive_ones_do_not():
    """200 tables of 600 records: .95 but for three standard errors of coverages of three coefficients."""
    plan, held, naive = kng.WithIntervals(mechanism(), kng.Sandwich()), [], []
    for seed in range(200):
        x, y = table(600, seed)
        released = kng.release(plan, x, y)
        found, (_theta, errors) = released.intervals(0.95), sandwich_by_hand(x, y)
        if isinstance(found, kng.inference.Interval):
            held.append((found.lower <= [0.5, 0.8, -0.4]) & (found.upper >= [0.5, 0.8, -0.4]))
        naive.append(np.abs(released.value - [0.5, 0.8, -0.4]) <= 1.96 * errors)
    assert len(held) > 150
    assert np.mean(held) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / len(held))
    assert np.mean(naive) < 0.85


def test_noise_of_the_sums_widens_intervals():
    made, theta = kng.WithIntervals(mechanism(), kng.Sandwich()).making(1500), np.array([0.5, 0.8, -0.4])
    replace, widths = kng.Adjacency.REPLACE, []
    sums = made.covariance.columns(records(1500), theta, made.curvature, replace).sum(axis=0)
    for epsilon in (made.budget, 50.0):
        summing = made.covariance.mechanism(3, made.curvature, epsilon, replace)
        given = made.mechanism, made.noise(), summing, made.covariance, made.curvature
        widths.append(interval_of_sums(theta, sums, *given, 1500, 0.95))
    wide, narrow = (found.upper - found.lower for found in widths)
    assert np.all(wide > 1.1 * narrow)


def test_where_noise_drowns_the_covariance_there_is_no_interval():
    x, y = table(60)
    released = kng.release(kng.WithIntervals(mechanism(epsilon=0.2), kng.Sandwich(), force=True), x, y)
    found = released.intervals()
    assert isinstance(found, kng.inference.NoInterval)
    assert found == released.errors == released.wald_test(np.eye(3))
    np.testing.assert_array_equal(released.middle, released.value)
    assert "noise of the covariance" in found.reason
    # Groups do not serve an estimate with a ridge.
    assert "Groups" not in found.reason


def test_groups_cost_what_one_of_them_costs_and_each_record_is_in_one():
    x, y = table(3000)
    plan = kng.WithIntervals(mechanism(kind=kng.KNG), kng.Groups(3))
    released = kng.release(plan, x, y)
    assert len(released.parts) == 3
    assert released.guarantee.epsilon == 1.0
    assert sum(part.certificate.num_records for part in released.parts) == 3000
    np.testing.assert_allclose(released.value, np.mean([part.value for part in released.parts], axis=0))
    found = released.intervals(0.9)
    # Student's quantile of 2 degrees at .95 is 2.91999.
    spread = np.std([part.value for part in released.parts], axis=0, ddof=1)
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 2.919986 * spread / np.sqrt(3.0), rtol=1e-5)
    assert kng.inference.ReleaseWithIntervals.from_json(released.to_json()).intervals(0.9).lower == pytest.approx(
        found.lower
    )
    marks = np.arange(100.0)
    lists = groups.split_records([[mark, "a"] for mark in marks], list(marks), 2, kng.Adjacency.REPLACE)
    assert all(row == [mark, "a"] for part in lists for row, mark in zip(*part, strict=True))
    for frame in (pd.DataFrame({"a": marks}), pl.DataFrame({"a": marks})):
        parts = groups.split_records(frame, frame["a"], 101, kng.Adjacency.REPLACE)
        assert [part[0].shape for part in parts] == [(1, 1)] * 100 + [(0, 1)]
    parts = groups.split_records(marks[:, None], pd.Series(marks), 7, kng.Adjacency.REPLACE)
    assert sorted(np.concatenate([part[1] for part in parts])) == marks.tolist()
    assert [len(part[1]) for part in parts] == groups.sizes(100, 7)
    assert all(np.array_equal(part[0][:, 0], part[1]) for part in parts)
    assert not np.array_equal(np.concatenate([part[1] for part in parts]), marks)


def test_under_add_remove_a_record_draws_its_own_group_whatever_the_others_are(monkeypatch):
    """With the same coins of the same records, one record less leaves all others where they are."""

    def divided(marks):
        coins = np.random.default_rng(0).integers(0, 3, 40)
        drawn = iter([int(coins[int(mark)]) for mark in marks])
        monkeypatch.setattr("secrets.randbelow", lambda number: next(drawn))
        return [set(part[1].tolist()) for part in groups.split_records(None, marks, 3, kng.Adjacency.ADD_REMOVE)]

    marks = np.arange(40.0)
    for whole, part in zip(divided(marks), divided(np.delete(marks, 5)), strict=True):
        assert whole - {5.0} == part


@pytest.mark.slow
def test_the_default_is_the_narrower_of_those_that_assume_nothing():
    """Of 12 coefficients 10,000 records have a covariance of 156 numbers in which noise drowns."""
    bounds = kng.Bounds(x=(np.full(11, -1.0), np.full(11, 1.0)), y=RESPONSES)
    made = kng.KNG(kng.PseudoHuberLoss(0.7), bounds, kng.Box(-6.0, 6.0), 1.0, "replace")
    assert kng.WithIntervals(made).making(10_000).settings()["type"] == "Groups"
    assert kng.WithIntervals(made).making(3_000_000).settings()["type"] == "Sandwich"
    with pytest.raises(ValueError, match="no intervals are expected"):
        kng.release(kng.WithIntervals(made), np.zeros((300, 11)), np.zeros(300))


def test_the_default_is_the_narrower_of_sums_and_groups():
    """Few records have sums in which noise drowns."""
    made = mechanism(kind=kng.KNG, epsilon=3.0)
    for count, kind in ((500, "Groups"), (2000, "Sandwich")):
        sums, groups = (
            kng.preview(kng.WithIntervals(made, one), num_records=count).width.max()
            for one in (kng.Sandwich(), kng.Groups())
        )
        assert (groups < sums) == (kind == "Groups")
        assert kng.WithIntervals(made).making(count).settings()["type"] == kind
    # A ridge would move all groups alike.
    assert kng.WithIntervals(mechanism()).making(1500).settings()["type"] == "Sandwich"
    with pytest.raises(ValueError, match="no intervals are expected"):
        kng.release(kng.WithIntervals(mechanism(kind=kng.KNG)), *table(60))


@pytest.mark.parametrize("name", COVARIANCES)
def test_no_record_and_only_dropped_ones_are_released_like_any(name):
    """That a release failed would tell no record from one."""
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, missing="drop", missing_y="drop")
    made = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.7), bounds, kng.Box(-6.0, 6.0), 1.0, "add_remove")
    plan, (x, y) = kng.WithIntervals(made, COVARIANCES[name]), table(3)
    for features, responses in ((x[:0], y[:0]), (x * np.nan, y), (x[:1], y[:1])):
        assert len(kng.release(plan, features, responses).parts) == 2


def test_groups_take_rows_of_lists_by_themselves():
    """A row of another form counts as missing wherever it is, so that no group fails for it."""
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, missing=0.0, missing_y=0.0)
    plan = kng.WithIntervals(kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-6.0, 6.0), 1.0, "add_remove"), kng.Groups(3))
    for row in ([1.0], "ab", None):
        assert len(kng.release(plan, [[0.1, 0.2], row], [0.0, [1.0]]).parts) == 3
    many = kng.WithIntervals(mechanism(kind=kng.KNG), kng.Groups(3))
    x, y = table(2000)
    assert len(kng.release(many, jnp.asarray(x), jnp.asarray(y)).parts) == 3
    with pytest.raises(TypeError, match="groups need tables of rows"):
        kng.release(many, x, pd.Index(y))


def test_names_of_a_frame_are_not_published():
    x, y = table(300)
    fit = kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), pd.DataFrame(x, columns=["Smith", "0.37"]), y)
    assert fit.names is None
    assert "Smith" not in fit._repr_html_() + fit.explain() + repr(fit.intervals())


def test_failures_leave_one_debit_and_no_release(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="replace", dataset="made up")
    x, y = table(100)
    plan = kng.WithIntervals(mechanism(), kng.Sandwich(), force=True)
    with pytest.raises(kng.ReleaseFailed) as failure:
        kng.release(plan, x, np.where(y > 0, np.nan, y), ledger=ledger)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    step = failure.value.__traceback__.tb_next
    while step is not None:
        held = [one for one in step.tb_frame.f_locals.values() if isinstance(one, np.ndarray | functools.partial)]
        assert held == []
        step = step.tb_next
    quadratic = mechanism(kind=kng.KNG, loss=kng.SquaredLoss())
    with pytest.raises(TypeError, match="read records twice"):
        kng.release(kng.WithIntervals(quadratic, kng.Sandwich(), force=True), kng.stream(iter([(x, y)])), ledger=ledger)
    assert ledger.releases() == {}
    with pytest.raises(ValueError, match="columns"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), x[:, :1], y, ledger=ledger)


def test_what_has_no_intervals_is_refused_in_words():
    weighted = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, weight=2.0)
    for made, words in (
        (kng.PrivateIRLS(BOUNDS, 1.0, 1e-6, "replace"), "PrivateIRLS"),
        (
            kng.KNG(kng.SquaredLoss(), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace", pointwise_sensitivity=True),
            "pointwise",
        ),
        (kng.KNG(kng.PseudoHuberLoss(1.0), weighted, kng.Box(-1.0, 1.0), 1.0, "replace"), "weights"),
        (kng.PrivateQuantile(0.5, kng.Bounds(y=RESPONSES), 1.0, "replace"), "QuantileInterval"),
    ):
        with pytest.raises(ValueError, match=words):
            kng.WithIntervals(made, kng.Sandwich())
    with pytest.raises(ValueError, match="moves every group"):
        kng.WithIntervals(mechanism(), kng.Groups(5))
    with pytest.raises(ValueError, match="records each"):
        kng.WithIntervals(mechanism(kind=kng.KNG), kng.Groups(5)).making(200)
    with pytest.raises(ValueError, match="public rows have 4 columns, and 2 of"):
        kng.WithIntervals(mechanism(), kng.inference.PublicDesign(np.ones((4, 4))))
    with pytest.raises(ValueError, match="positive number"):
        kng.WithIntervals(mechanism(kind=kng.KNG, loss=kng.QuantileLoss(0.5)), kng.Sandwich(bandwidth=0.0))
    with pytest.raises(ValueError, match="between 0 and 1"):
        kng.Sandwich(share=1.0)
    with pytest.raises(ValueError, match="leave bandwidth out"):
        kng.WithIntervals(mechanism(), kng.Sandwich(bandwidth=0.3))
    with pytest.raises(ValueError, match="needs a bandwidth"):
        kng.WithIntervals(mechanism("add_remove", kind=kng.KNG, loss=kng.QuantileLoss(0.5)), kng.Sandwich())
    with pytest.raises(TypeError, match="covariance must be"):
        kng.WithIntervals(mechanism(), "sandwich")
    with pytest.raises(TypeError, match="progress"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), *table(50), progress="yes")
    with pytest.raises(TypeError, match="neither weights nor a sampler"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), *table(50), weights=np.ones(50))


def test_kept_releases_are_joined_at_their_own_price():
    """Another version may have divided the budget otherwise: what it released says what it cost."""
    x, y = table(300)
    dear, cheap = (kng.WithIntervals(mechanism(epsilon=epsilon)) for epsilon in (2.0, 1.0))
    released = kng.release(dear, x, y)
    [joined] = cheap.planned(x, y).joined(released.parts)
    assert joined.guarantee == released.guarantee != cheap.planned(x, y).cost
