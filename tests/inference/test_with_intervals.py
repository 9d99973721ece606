"""Estimates with intervals: what they cost, what is summed of each record, what the intervals are, who is refused."""

import dataclasses
import functools
import itertools
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.data.records import Records
from kngjax.inference import interval_plans
from kngjax.inference.intervals_from_sums import ErrorDraws
from kngjax.inference.score_moments import RecordCurvature
from kngjax.inference.score_variances import Directions
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.expected_noise import k_norm_covariance

LOWER, UPPER, RESPONSES = np.array([-0.5, 0.0]), np.array([1.0, 2.0]), (-3.0, 4.0)
BOUNDS = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES)
THETA = np.array([0.3, -0.4, 0.7])
TRUTH = np.array([0.5, 0.8, -0.4])


def pseudo_huber_score(residual, threshold):
    return -residual / np.sqrt(1.0 + (residual / threshold) ** 2)


def mechanism(adjacency="replace", epsilon=1.0, kind=kng.ObjectivePerturbation, loss=None, bounds=BOUNDS, **settings):
    loss = kng.PseudoHuberLoss(0.7) if loss is None else loss
    return kind(loss, bounds, kng.Box(-6.0, 6.0), epsilon, adjacency, **settings)


def table(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(LOWER, UPPER, (number, 2))
    y = np.clip(TRUTH[0] + x @ TRUTH[1:] + 0.5 * generator.standard_normal(number), *RESPONSES)
    return x, y


def records(number, seed=0):
    x, y = table(number, seed)
    return Records(np.column_stack([np.ones(number), x]), y)


COVARIANCES = {
    "sandwich": kng.Sandwich(),
    "a share": kng.Sandwich(share=0.3),
}
# Two levels of a category beside its reference, a number, and the slopes of the number within the levels.
LEVELS = kng.Bounds(x=([0.0, 0.0, -1.0, -1.0, -1.0], [1.0, 1.0, 2.0, 2.0, 2.0]), y=RESPONSES)
OF_LEVELS = kng.Sandwich(indicators=((1, 2),), slopes=((4, 5),))


def table_of_levels(number, seed=0):
    generator = np.random.default_rng(seed)
    level, x = generator.integers(0, 3, number), generator.uniform(-1.0, 2.0, number)
    marks = level[:, None] == [1, 2]
    features = np.column_stack([marks, x, marks * x[:, None]])
    return features, np.clip(0.3 * x + marks @ [0.5, -0.5] + 0.5 * generator.standard_normal(number), *RESPONSES)


@pytest.mark.default_cases("sandwich-replace", "sandwich-add_remove", "a share-replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_everything_together_costs_the_epsilon_of_the_mechanism(name, adjacency, tmp_path):
    plan = kng.WithIntervals(mechanism(adjacency), COVARIANCES[name])
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(1.5), adjacency=adjacency, dataset="made up")
    x, y = table(2000)
    released = kng.release(plan, x, y, ledger=ledger)
    assert len(released.parts) == 3
    parts = [exactly(float(part.certificate.mechanism["epsilon"])) for part in released.parts]
    assert sum(parts) <= 1
    assert sum(parts) > 1 - Fraction(1, 10**12)
    assert float(parts[2]) == pytest.approx(0.05, abs=1e-12)
    assert released.guarantee.epsilon == pytest.approx(1.0, abs=1e-12)
    assert len(ledger.releases()) == 1
    assert all(part.certificate.assurance == "proved" for part in released.parts)
    again = kng.inference.ReleaseWithIntervals.from_json(released.to_json())
    assert again == released
    assert repr(again.intervals(0.9)) == repr(released.intervals(0.9))
    np.testing.assert_array_equal(again.errors, released.errors)
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


def largest_change(summing, columns):
    """How far one record moves exact sums, in the norm of their noise over ε: of each record beside the first."""
    alone = columns[:1]
    fewer = summing.intake.exact_sums(alone).moment
    moves = [summing.intake.exact_sums(np.vstack([alone, row])).moment - fewer for row in columns]
    if str(summing.adjacency) == "replace":
        moves = [one - other for one, other in itertools.permutations(moves, 2)]
    noise = summing.noise_in_fractions(columns.shape[1], 1)
    shares = np.array(moves).astype(float) / [float(weight) for weight in noise.weights]
    blocks = noise.blocks if isinstance(summing, BlockSums) else [("sum", (j,)) for j in range(columns.shape[1])]
    found = 0.0
    for kind, block in blocks:
        above, below = (np.maximum(sign * shares[:, list(block)], 0.0).sum(axis=1) for sign in (1, -1))
        found = max(found, (np.maximum(above, below) if kind == "exchange" else above + below).max())
    return found / float(noise.scale_squared) ** 0.5


def records_at_corners(bounds, theta):
    """Records at corners of the bounds, where w is next to 0, and with residuals of 0, where it is 1."""
    lower, upper = (np.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    ends = [np.full(len(corners), end) for end in RESPONSES]
    near = np.clip(theta[0] + corners @ theta[1:], *RESPONSES)
    return np.tile(corners, (3, 1)), np.concatenate([*ends, near])


@pytest.mark.default_cases("sandwich-replace", "levels-replace", "levels-add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", [*COVARIANCES, "levels"])
def test_no_record_moves_the_sums_by_more_than_the_noise_hides_and_one_by_as_much(name, adjacency):
    """Of H, also by records that have several levels at once, which a promise excludes; and of the variances."""
    bounds = LEVELS if name == "levels" else BOUNDS
    covariance = OF_LEVELS if name == "levels" else COVARIANCES[name]
    making = kng.WithIntervals(mechanism(adjacency, bounds=bounds), covariance, 5000).making()
    theta = THETA if name != "levels" else np.array([0.3, -0.4, 0.7, 0.1, 0.2, -0.1])
    x, y = records_at_corners(bounds, theta)
    rows = Records(np.column_stack([np.ones(len(x)), x]), y)
    curvature, square = making.curvature.of(rows, theta)
    columns = making.covariance.columns(np.asarray(rows.x), curvature, making.mechanism)
    of_hessian, of_variances = making.epsilons
    pick = np.random.default_rng(0).permutation(len(columns))[:60]
    pick = np.concatenate([pick, np.argmax(columns, axis=0), np.argmin(columns, axis=0)])
    found = largest_change(making.summing, columns[pick]) / of_hessian
    assert 0.99 < found <= 1.0 + 1e-12
    # The same of the variances, at an H of evenly spread records.
    inverse = np.linalg.inv(np.asarray(rows.x).T @ np.asarray(rows.x))
    square_unit = making.curvature.units(theta)[1]
    directions = Directions.of(inverse, np.eye(len(theta)), bounds, square_unit, making.usual)
    columns = directions.columns(np.asarray(rows.x), square, square_unit)
    found = largest_change(making.of_variances, columns[pick]) / of_variances
    assert 0.99 < found <= 1.0 + 1e-12


def sandwich_by_hand(x, y, threshold=0.7):
    design, theta = np.column_stack([np.ones(len(x)), x]), np.zeros(x.shape[1] + 1)
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


@pytest.mark.parametrize("name", ["numbers", "levels", "combinations"])
def test_with_next_to_no_noise_intervals_are_those_without_privacy(name):
    """Of errors whose scale grows with a feature."""
    x, y = table_of_levels(20_000, 3) if name == "levels" else table(20_000, 3)
    y = np.clip(y + np.abs(x[:, -1]) * np.random.default_rng(4).standard_normal(len(y)), *RESPONSES)
    made = mechanism(epsilon=90.0, bounds=LEVELS if name == "levels" else BOUNDS)
    whole = np.array([[1.0, 0.25, 1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 2.0]]) if name == "combinations" else None
    plan = kng.WithIntervals(made, OF_LEVELS if name == "levels" else None, combinations=whole)
    found = kng.release(plan, x, y).intervals(0.95, whole)
    theta, errors = sandwich_by_hand(x, y)
    if whole is not None:
        turned = np.column_stack([np.ones(len(x)), x]) @ np.linalg.inv(whole)
        # The same fit, of other coordinates.
        theta, errors = whole @ theta, deviations_in(turned, y, whole @ theta)
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, theta, atol=0.2 * errors.max())
    # Of 4,000 draws quantiles are known to 2 %.
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * errors, rtol=0.07)


def deviations_in(rows, y, theta, threshold=0.7):
    residual = y - rows @ theta
    curvature, score = (1.0 + (residual / threshold) ** 2) ** -1.5, pseudo_huber_score(residual, threshold)
    inverse = np.linalg.inv((rows * curvature[:, None]).T @ rows)
    return np.sqrt(np.diag(inverse @ ((rows * (score**2)[:, None]).T @ rows) @ inverse))


def test_the_noise_of_the_estimate_and_its_ridge_are_in_the_interval():
    """With H = nI, t next to none and a known z: half widths are z's quantiles over n, about θ̃ + γ(θ̃ - c)/n."""
    made = mechanism(centre=np.array([1.0, 0.0, 0.0]))
    noise, number, theta = made.noise.of_gradient(3), 500.0, np.array([2.0, 1.0, -1.0])
    hessians = np.tile(number * np.eye(3), (4000, 1, 1))
    errors = ErrorDraws.of(hessians, noise, theta, lambda drawn: np.full((drawn, 3), 1e-9), None, "", ()).draws
    pull = float(made.ridge(3)) * np.array([1.0, 1.0, -1.0]) / number
    deviation = np.sqrt(np.diag(k_norm_covariance(noise.norm, noise.rate, 3))) / number
    np.testing.assert_allclose(errors.mean(axis=0), -pull, atol=5.0 * deviation.max() / 63.0)
    np.testing.assert_allclose(errors.std(axis=0), deviation, rtol=0.1)


def test_sampling_errors_have_the_variances_that_are_given_and_the_correlations_of_the_inverse():
    """With next to no noise of the estimate: t_k a_k'H^{-1}a_k of each combination."""
    noise = mechanism(epsilon=1e5, allow_large_epsilon=True).noise.of_gradient(3)
    hessian, whole = (
        np.array([[5.0, 1.0, 0], [1.0, 3.0, -1], [0, -1.0, 2]]),
        np.array([[1.0, 2, 0], [0, 1, 1], [1, 0, 0]]),
    )
    hessians, t = np.tile(100.0 * hessian, (40_000, 1, 1)), np.array([0.5, 2.0, 1.0])
    drawn = ErrorDraws.of(hessians, noise, np.zeros(3), lambda n: np.tile(t, (n, 1)), whole, "", ()).draws @ whole.T
    inverse = whole @ np.linalg.inv(100.0 * hessian) @ whole.T
    wanted = inverse * np.sqrt(np.outer(t, t))
    # Of 40,000 draws a covariance has an error of 1/200 of the larger variances.
    np.testing.assert_allclose(np.cov(drawn.T), wanted, atol=4.0 * wanted.max() / 140.0)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say_and_naive_ones_do_not():
    """200 tables of 600 records: .95 but for three standard errors of coverages of three coefficients."""
    plan, held, naive = kng.WithIntervals(mechanism(), kng.Sandwich()), [], []
    for seed in range(200):
        x, y = table(600, seed)
        released = kng.release(plan, x, y)
        found, (_theta, errors) = released.intervals(0.95), sandwich_by_hand(x, y)
        held.append((found.lower <= TRUTH) & (found.upper >= TRUTH))
        naive.append(np.abs(released.value - TRUTH) <= 1.96 * errors)
    assert np.mean(held) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / len(held))
    assert np.mean(naive) < 0.85


def test_noise_of_the_sums_widens_intervals():
    """The same released numbers, with noise as their mechanisms say it is, or with next to none."""
    x, y = table(1500)
    fit = kng.release(kng.WithIntervals(mechanism()), x, y)
    making, widths = fit._making, []
    for epsilons in (making.epsilons, (50.0, making.epsilons[1]), (50.0, 50.0)):
        made = dataclasses.replace(making, epsilons=epsilons, cuts=fit.making["cuts"])
        # Draws are kept by what was released, of which the certificate says the noise.
        interval_plans._hessians.cache_clear()
        errors = made.errors(fit.parts).draws
        widths.append(np.quantile(errors, 0.975, axis=0) - np.quantile(errors, 0.025, axis=0))
    assert np.all(widths[0] > 1.03 * widths[1])
    assert np.all(widths[0].sum() > 1.05 * widths[1].sum())
    assert widths[1].sum() > widths[2].sum()


def test_where_noise_drowns_h_there_are_intervals_and_they_are_wide():
    x, y = table(60)
    released = kng.release(kng.WithIntervals(mechanism(epsilon=0.2), kng.Sandwich(), force=True), x, y)
    found = released.intervals()
    assert np.all(np.isfinite(found.lower) & np.isfinite(found.upper))
    assert np.all(found.upper - found.lower > 2.0)
    assert np.all(np.isfinite(released.errors))
    np.testing.assert_array_equal(released.middle, (found.lower + found.upper) / 2.0)


@pytest.mark.parametrize("name", COVARIANCES)
def test_no_record_and_only_dropped_ones_are_released_like_any(name):
    """That a release failed would tell no record from one."""
    bounds = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, missing="drop", missing_y="drop")
    made = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.7), bounds, kng.Box(-6.0, 6.0), 1.0, "add_remove")
    plan, (x, y) = kng.WithIntervals(made, COVARIANCES[name]), table(3)
    for features, responses in ((x[:0], y[:0]), (x * np.nan, y), (x[:1], y[:1])):
        found = kng.release(plan, features, responses)
        assert len(found.parts) == 3
        assert np.all(np.isfinite([found.intervals().lower, found.intervals().upper]))


def test_names_of_a_frame_are_not_published():
    x, y = table(1000)
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
    with pytest.raises(TypeError, match="read records several times"):
        kng.release(kng.WithIntervals(quadratic, kng.Sandwich(), force=True), kng.stream(iter([(x, y)])), ledger=ledger)
    assert ledger.releases() == {}
    with pytest.raises(ValueError, match="columns"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), x[:, :1], y, ledger=ledger)


def test_a_source_in_batches_gives_the_sums_of_the_table_to_the_bit(monkeypatch):
    """With the same bits, whatever the batches are."""
    x, y = table(2000)
    plan, found = kng.WithIntervals(mechanism(loss=kng.SquaredLoss(), kind=kng.KNG, epsilon=4.0)), []
    batches = [(x[start : start + 300], y[start : start + 300]) for start in range(0, 2000, 300)]
    for given in ((x, y), (kng.stream(batches),)):
        monkeypatch.setattr("secrets.randbits", random.Random(2).getrandbits)
        found.append(kng.release(plan, *given))
    for one, other in zip(found[0].parts, found[1].parts, strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    assert repr(found[0].intervals()) == repr(found[1].intervals())


def test_records_in_memory_give_the_same_in_any_parts_and_are_validated_once(monkeypatch):
    """Records of levels, beside bounds that have many binary digits and cut some records."""
    x, y = table_of_levels(1000)
    bounds = kng.Bounds(x=([0.0, 0.0, -0.9, -0.9, -0.9], [1.0, 1.0, 1.7, 1.7, 1.7]), y=RESPONSES)
    plan, found, validated = kng.WithIntervals(mechanism(bounds=bounds), OF_LEVELS, force=True), [], []
    rows = interval_plans.RecordColumns.rows

    def counted(*given):
        validated.append(given)
        return rows(*given)

    monkeypatch.setattr(interval_plans.RecordColumns, "rows", counted)
    for size in (10**6, 77):
        monkeypatch.setattr(interval_plans, "_ROWS", size)
        monkeypatch.setattr("secrets.randbits", random.Random(2).getrandbits)
        found.append([part.value for part in kng.release(plan, x, y).parts])
    assert len(validated) == 2
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_has_no_intervals_is_refused_in_words():
    weighted = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES, weight=2.0)
    for made, words in (
        (kng.PrivateIRLS(BOUNDS, 1.0, 1e-6, "replace"), "PrivateIRLS"),
        (
            kng.KNG(kng.SquaredLoss(), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace", pointwise_sensitivity=True),
            "pointwise",
        ),
        (kng.KNG(kng.QuantileLoss(0.5), weighted, kng.Box(-1.0, 1.0), 1.0, "replace"), "where records have weights"),
        (kng.PrivateQuantile(0.5, kng.Bounds(y=RESPONSES), 1.0, "replace"), "QuantileInterval"),
    ):
        with pytest.raises(ValueError, match=words):
            kng.WithIntervals(made, kng.Sandwich())
    for wrong in (kng.Sandwich(indicators=((1, 1),)), kng.Sandwich(slopes=((3,),)), kng.Sandwich(indicators=((-1,),))):
        with pytest.raises(ValueError, match="must be columns from 0 to 2, each at most once"):
            kng.WithIntervals(mechanism(), wrong)
    with pytest.raises(ValueError, match="positive number"):
        kng.WithIntervals(mechanism(kind=kng.KNG, loss=kng.QuantileLoss(0.5)), kng.Sandwich(bandwidth=0.0))
    for share in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            kng.Sandwich(share=share)
    with pytest.raises(ValueError, match="leave nothing for the estimate"):
        kng.WithIntervals(mechanism(), kng.Sandwich(share=0.96))
    with pytest.raises(ValueError, match="leave bandwidth out"):
        kng.WithIntervals(mechanism(), kng.Sandwich(bandwidth=0.3))
    with pytest.raises(ValueError, match="needs a bandwidth"):
        kng.WithIntervals(mechanism("add_remove", kind=kng.KNG, loss=kng.QuantileLoss(0.5)), kng.Sandwich())
    with pytest.raises(TypeError, match="covariance must be"):
        kng.WithIntervals(mechanism(), "sandwich")
    with pytest.raises(TypeError, match="progress"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), *table(2000), progress="yes")
    with pytest.raises(TypeError, match="neither weights nor a sampler"):
        kng.release(kng.WithIntervals(mechanism(), kng.Sandwich()), *table(2000), weights=np.ones(2000))


def test_kept_releases_are_joined_at_their_own_price():
    """Another version may have divided the budget otherwise: what it released says what it cost."""
    x, y = table(1000)
    dear, cheap = (kng.WithIntervals(mechanism(epsilon=epsilon)) for epsilon in (2.0, 1.0))
    released = kng.release(dear, x, y)
    [joined] = cheap.planned(x, y).joined(released.parts)
    assert joined.guarantee == released.guarantee != cheap.planned(x, y).cost


def test_a_file_of_another_version_has_no_interval_and_says_why():
    x, y = table(1000)
    released = kng.release(kng.WithIntervals(mechanism()), x, y)
    other = {"type": "SumsPlan", "covariance": {"type": "IndependentErrors", "share": 0.3}}
    found = kng.inference.ReleaseWithIntervals(released.parts, other, released.guarantee)
    assert isinstance(found.intervals(), kng.inference.NoInterval)
    assert "another version" in found.intervals().reason
    np.testing.assert_array_equal(found.middle, found.value)
