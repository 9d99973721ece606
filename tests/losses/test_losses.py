"""Losses of one record: values by closed forms, derivatives by autodiff, declared intervals by search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import kngjax as kng
from kngjax.data.records import Records, prepare
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.losses.extended import TangentExtension

LOSSES = {
    "squared": kng.SquaredLoss(),
    "quantile": kng.QuantileLoss(0.3),
    "smoothed": kng.SmoothedQuantileLoss(0.3, 0.25),
    "Gaussian smoothed": kng.SmoothedQuantileLoss(0.3, 0.4, "gaussian"),
    "Huber": kng.HuberLoss(0.8),
    "pseudo-Huber": kng.PseudoHuberLoss(0.8),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "expectile": kng.ExpectileLoss(0.8),
}
LABELS = {"logistic": [0.0, 1.0], "Poisson": [0.0, 1.0, 2.0, 5.0]}

every_loss = pytest.mark.parametrize("name", LOSSES)


def check_loss(residual, tau):
    return residual * (tau - (residual < 0))


def smoothed_check_loss(residual, tau, bandwidth, kernel):
    """E ρ_τ(r + hZ) by quadrature, with the kink as a break point."""

    def integrand(z):
        return check_loss(residual + bandwidth * z, tau) * kernel.pdf(z)

    kink, end = -residual / bandwidth, kernel.isf(1e-16)
    return sum(integrate.quad(integrand, *pair, epsabs=1e-12)[0] for pair in ((-end, kink), (kink, end)))


CLOSED_FORMS = {
    "squared": lambda eta, y: 0.5 * (y - eta) ** 2,
    "quantile": lambda eta, y: check_loss(y - eta, 0.3),
    "smoothed": lambda eta, y: smoothed_check_loss(y - eta, 0.3, 0.25, stats.logistic),
    "Gaussian smoothed": lambda eta, y: smoothed_check_loss(y - eta, 0.3, 0.4, stats.norm),
    "Huber": lambda eta, y: special.huber(0.8, y - eta),
    "pseudo-Huber": lambda eta, y: special.pseudo_huber(0.8, y - eta),
    "logistic": lambda eta, y: np.logaddexp(0.0, eta) - y * eta,
    "Poisson": lambda eta, y: np.exp(eta) - y * eta,
    "expectile": lambda eta, y: np.where(y < eta, 0.2, 0.8) * (y - eta) ** 2,
}


def responses(name, number, random):
    return random.choice(LABELS[name], number) if name in LABELS else random.normal(scale=1.5, size=number)


def problem(name, n=31, d=3):
    random = np.random.default_rng(17)
    bounds = kng.Bounds(x=(-2.0, 2.0), intercept=True)
    records = prepare(bounds, random.uniform(-2.0, 2.0, (n, d - 1)), responses(name, n, random))
    return records, random.normal(scale=0.7, size=d)


def test_every_public_loss_of_a_predictor_is_tested_here():
    public = {getattr(kng, name) for name in kng.__all__ if name.endswith("Loss")}
    assert {type(loss) for loss in LOSSES.values()} == {one for one in public if issubclass(one, AbstractPredictorLoss)}
    assert LOSSES.keys() == CLOSED_FORMS.keys()


@jax.jit
def at_records(loss, etas, ys):
    """ℓ, its score and its curvature at each pair, then what autodiff makes of ℓ and of the score."""
    derivatives = jax.grad(loss.record_value), jax.grad(loss.record_score)
    functions = loss.record_value, loss.record_score, loss.record_curvature, *derivatives
    return [jax.vmap(function)(etas, ys) for function in functions]


@jax.jit
def sums(loss, theta, data):
    """ℓ_n, ∇ℓ_n and ∇²ℓ_n at θ, then what autodiff makes of ℓ_n."""
    return (
        loss.value(theta, data),
        loss.gradient(theta, data),
        loss.hessian(theta, data),
        jax.grad(loss.value)(theta, data),
    )


@jax.jit
def at_residuals(loss, residuals):
    """The value and the slope at each residual."""
    return jax.vmap(loss.residual_value)(residuals), jax.vmap(loss.residual_slope)(residuals)


@every_loss
def test_values_are_the_closed_forms(name):
    random = np.random.default_rng(1)
    etas, ys = random.normal(scale=1.5, size=40), responses(name, 40, random)
    values = at_records(LOSSES[name], etas, ys)[0]
    expected = [CLOSED_FORMS[name](*pair) for pair in zip(etas, ys, strict=True)]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@every_loss
def test_score_and_curvature_are_the_derivatives_of_the_value(name):
    random = np.random.default_rng(2)
    etas, ys = jnp.asarray(random.normal(scale=1.5, size=200)), jnp.asarray(responses(name, 200, random))
    _, scores, curvatures, slopes, slopes_of_scores = at_records(LOSSES[name], etas, ys)
    np.testing.assert_allclose(slopes, scores, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(slopes_of_scores, curvatures, rtol=1e-10, atol=1e-12)
    assert np.all(curvatures >= 0)


@pytest.mark.slow
@every_loss
def test_sums_over_records_are_loops_in_numpy(name):
    loss, (records, theta) = LOSSES[name], problem(name)
    value, gradient, hessian = 0.0, np.zeros(3), np.zeros((3, 3))
    _, scores, curvatures, *_ = map(np.asarray, at_records(loss, records.x @ theta, records.y))
    for x, y, score, curvature in zip(records.x, records.y, scores, curvatures, strict=True):
        value += CLOSED_FORMS[name](x @ theta, y)
        gradient += score * x
        hessian += curvature * np.outer(x, x)
    *found, by_autodiff = sums(loss, theta, records)
    np.testing.assert_allclose(found[0], value, rtol=1e-9)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-11)
    np.testing.assert_allclose(by_autodiff, gradient, rtol=1e-9, atol=1e-10)
    if name != "quantile":
        np.testing.assert_allclose(found[2], hessian, rtol=1e-11)


def test_the_sufficient_statistic_says_all_about_the_squared_loss():
    loss, (records, theta) = LOSSES["squared"], problem("squared")
    summary = loss.summarise(records)
    for of_summary, of_records in zip(sums(loss, theta, summary), sums(loss, theta, records), strict=True):
        np.testing.assert_allclose(of_summary, of_records, rtol=1e-11)
    assert (float(summary.count), summary.dimension) == (31.0, 3)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
def test_other_losses_keep_the_records_and_refuse_a_summary(name):
    records, theta = problem(name)
    assert LOSSES[name].summarise(records) is records
    summary = LOSSES["squared"].summarise(records)
    with pytest.raises(TypeError, match="this loss needs the records, not a QuadraticSummary"):
        LOSSES[name].gradient(theta, summary)


@every_loss
@pytest.mark.parametrize("predictor", [(-1.3, 0.7), (0.2, 0.9), (-3.0, -2.5)])
@pytest.mark.parametrize("response", [(0.0, 1.0), (1.0, 2.0)])
def test_declared_intervals_hold_what_a_search_finds(name, predictor, response):
    loss = LOSSES[name]
    etas = np.linspace(*predictor, 201)
    ys = np.array([0.0, 1.0]) if name == "logistic" else np.linspace(*response, 101)
    grid = [part.ravel() for part in np.meshgrid(etas, ys)]
    values, scores, *_ = map(np.asarray, at_records(loss, *grid))
    lowest, highest = loss.score_interval(predictor, response)
    assert lowest <= scores.min() + 1e-12
    assert scores.max() <= highest + 1e-12
    low, high = loss.value_interval(predictor, response)
    np.testing.assert_allclose((low, high), (values.min(), values.max()), rtol=1e-3, atol=2e-4)
    assert low <= values.min() + 1e-12
    assert values.max() <= high + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantile", "smoothed", "Gaussian smoothed", "Huber", "pseudo-Huber", "logistic"])
def test_bounded_scores_come_near_both_ends_of_their_intervals_whatever_the_predictor(name):
    loss = LOSSES[name]
    etas, ys = np.repeat([-60.0, 60.0], 2), np.tile([0.0, 1.0], 2)
    scores = np.asarray(at_records(loss, etas, ys)[1])
    interval = loss.score_interval((-np.inf, np.inf), None)
    np.testing.assert_allclose((scores.min(), scores.max()), interval, atol=2e-4)


@pytest.mark.parametrize("name", ["Poisson", "logistic", "pseudo-Huber", "expectile"])
def test_a_loss_continued_by_its_tangents(name):
    """Convex and smooth as before, the loss itself within the ends, and its facts there are facts everywhere."""
    inner, ends = LOSSES[name], (-0.7, 1.2)
    loss = TangentExtension(inner, *(np.array(end) for end in ends))
    etas, ys = (part.ravel() for part in np.meshgrid(np.linspace(-9.0, 9.0, 181), [0.0, 1.0]))
    values, scores, curvatures, slopes, slopes_of_scores = map(np.asarray, at_records(loss, etas, ys))
    np.testing.assert_allclose(slopes, scores, rtol=1e-10)
    np.testing.assert_allclose(slopes_of_scores, curvatures, rtol=1e-10)
    inner_values, inner_scores, *_ = map(np.asarray, at_records(inner, etas, ys))
    inside = (ends[0] <= etas) & (etas <= ends[1])
    np.testing.assert_allclose(values[inside], inner_values[inside], rtol=1e-12)
    assert np.all(curvatures[~inside] == 0.0)
    # A tangent: what convexity says lies below the loss, with the slope at the end that is nearer.
    at_ends = [np.asarray(at_records(inner, np.full_like(ys, end), ys)[1]) for end in ends]
    tangents = [CLOSED_FORMS[name](end, ys) + (etas - end) * score for end, score in zip(ends, at_ends, strict=True)]
    expected = np.where(etas < ends[0], *tangents)
    np.testing.assert_allclose(values[~inside], expected[~inside], rtol=1e-10, atol=1e-12)
    far = (-9.0, 9.0)
    low, high = loss.score_interval(far, (0.0, 1.0))
    assert (low, high) == inner.score_interval(ends, (0.0, 1.0))
    assert np.all((low <= scores) & (scores <= high))
    assert loss.curvature_bound(far) == inner.curvature_bound(ends)
    assert np.max(curvatures) <= loss.curvature_bound(far)
    least, most = loss.value_interval(far, (0.0, 1.0))
    assert least <= np.min(values)
    assert np.max(values) <= most
    unchanged = TangentExtension(inner, np.array(-np.inf), np.array(np.inf))
    for found, other in zip(at_records(unchanged, etas, ys), (inner_values, inner_scores), strict=False):
        np.testing.assert_allclose(found, other, rtol=1e-12)


def test_at_a_tie_the_check_loss_counts_the_record_as_below():
    assert kng.QuantileLoss(0.3).record_score(2.0, 2.0) == pytest.approx(0.7)
    data = Records(np.ones((4, 1)), np.array([1.0, 2.0, 2.0, 5.0]))
    assert float(kng.QuantileLoss(0.3).gradient(np.array([2.0]), data)[0]) == pytest.approx(3 - 4 * 0.3)


# E|Z|/2 of each kernel.
@pytest.mark.parametrize(("kernel", "half"), [("logistic", np.log(2.0)), ("gaussian", 1.0 / np.sqrt(2.0 * np.pi))])
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_smoothed_loss_tends_to_the_check_loss(tau, kernel, half):
    residuals = np.linspace(-2.0, 2.0, 41)
    distances = []
    for bandwidth in (0.1, 0.01, 0.001):
        smoothed, _ = at_residuals(kng.SmoothedQuantileLoss(tau, bandwidth, kernel), residuals)
        distances.append(np.abs(smoothed - check_loss(residuals, tau)).max())
        # Jensen: by at most h·E|Z|/2 at the kink.
        assert distances[-1] == pytest.approx(bandwidth * half, rel=1e-6)
    away = np.abs(residuals) > 0.05
    slopes = at_residuals(kng.SmoothedQuantileLoss(tau, 0.001, kernel), residuals)[1][away]
    np.testing.assert_allclose(slopes, tau - (residuals[away] < 0), atol=1e-12)


def test_the_limits_of_the_robust_losses():
    pseudo = kng.PseudoHuberLoss(0.8)
    small, large, residuals = np.linspace(-1e-3, 1e-3, 31), np.repeat([-1e5, 1e5], [15, 16]), np.linspace(-3.0, 3.0, 31)
    np.testing.assert_allclose(at_residuals(pseudo, small)[0], small**2 / 2, rtol=1e-6)
    value, slope = at_residuals(pseudo, large)
    np.testing.assert_allclose(value, 0.8 * np.abs(large) - 0.8**2, rtol=1e-9)
    np.testing.assert_allclose(slope, 0.8 * np.sign(large), rtol=1e-9)
    for wide in (kng.PseudoHuberLoss(1e6), kng.HuberLoss(1e6)):
        np.testing.assert_allclose(at_residuals(wide, residuals)[0], residuals**2 / 2, rtol=1e-9, atol=1e-15)
    # No cancellation where √(1 + q) - 1 would lose all digits.
    assert float(pseudo.residual_value(1e-9)) == pytest.approx(0.5e-18, rel=1e-12)


def test_the_logistic_loss_does_not_overflow():
    loss = kng.LogisticLoss()
    np.testing.assert_allclose(loss.record_value(800.0, 0.0), 800.0)
    np.testing.assert_allclose(loss.record_value(800.0, 1.0), 0.0, atol=1e-12)
    assert np.isfinite(loss.record_score(-800.0, 1.0))


@pytest.mark.slow
def test_the_curvature_estimate_of_the_check_loss():
    random = np.random.default_rng(3)
    x = np.concatenate([np.ones((40_000, 1)), random.uniform(-1, 1, (40_000, 1))], axis=1)
    records = Records(x, x @ [1.0, -2.0] + random.normal(scale=0.5, size=40_000))
    _, _, hessian, _ = sums(kng.QuantileLoss(0.5), np.array([1.0, -2.0]), records)
    np.testing.assert_allclose(hessian, stats.norm.pdf(0.0) / 0.5 * x.T @ x, rtol=0, atol=1500)


def test_the_expectile_loss_at_one_half_is_the_squared_loss():
    half, residuals = kng.ExpectileLoss(0.5), np.linspace(-3.0, 3.0, 31)
    np.testing.assert_allclose(jax.vmap(half.residual_value)(residuals), residuals**2 / 2, rtol=1e-12, atol=1e-15)
    # The minimiser of a constant has τ of all distances to it above: the estimate of Newey and Powell.
    y = np.random.default_rng(8).normal(size=301)
    expectile = float(kng.nonprivate.minimiser(kng.ExpectileLoss(0.8), Records(np.ones((301, 1)), y))[0])
    above, below = np.clip(y - expectile, 0.0, None).sum(), np.clip(expectile - y, 0.0, None).sum()
    assert 0.8 * above == pytest.approx(0.2 * below, rel=1e-6)


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_quantile_levels_out_of_range(tau):
    for make in (kng.QuantileLoss, kng.ExpectileLoss, lambda tau: kng.SmoothedQuantileLoss(tau, 0.1)):
        with pytest.raises(ValueError, match="tau must lie strictly between 0 and 1"):
            make(tau)


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_thresholds_and_bandwidths_out_of_range(width):
    for make in (kng.HuberLoss, kng.PseudoHuberLoss):
        with pytest.raises(ValueError, match="threshold k must be one positive and finite number"):
            make(width)
    with pytest.raises(ValueError, match="bandwidth must be one positive and finite number"):
        kng.SmoothedQuantileLoss(0.5, width)


@pytest.mark.parametrize("width", [1e-300, 0.99e-100, 1.01e100, 1e300])
def test_thresholds_and_bandwidths_whose_powers_float64_has_not(width):
    """Public, so refused in words: at such ends proofs would rest on numbers that overflow."""
    for make in (kng.HuberLoss, kng.PseudoHuberLoss):
        with pytest.raises(ValueError, match=r"threshold k must lie between 1e-100 and 1e\+100, .*got .*other units"):
            make(width)
    for kernel in ("logistic", "gaussian"):
        with pytest.raises(ValueError, match=r"bandwidth must lie between 1e-100 and 1e\+100"):
            kng.SmoothedQuantileLoss(0.5, width, kernel)


@pytest.mark.parametrize("width", [1e-100, 1e100])
def test_thresholds_and_bandwidths_up_to_the_limits(width):
    assert float(kng.HuberLoss(width).k) == float(kng.PseudoHuberLoss(width).k) == width
    assert float(kng.SmoothedQuantileLoss(0.5, width).bandwidth) == width


def test_a_kernel_that_is_none():
    for kernel in ("normal", "Gaussian", None, 1):
        # A TypeError where types are checked, as in these tests.
        with pytest.raises((TypeError, ValueError), match="kernel"):
            kng.SmoothedQuantileLoss(0.5, 0.1, kernel)


def test_the_smoothed_loss_does_not_overflow():
    for kernel in ("logistic", "gaussian"):
        loss, far = kng.SmoothedQuantileLoss(0.3, 1e-3, kernel), np.array([-1e300, -1e3, 1e3, 1e300])
        values, slopes = at_residuals(loss, far)
        np.testing.assert_allclose(values, check_loss(far, 0.3), rtol=1e-12)
        np.testing.assert_array_equal(slopes, 0.3 - (far < 0))
        np.testing.assert_array_equal(jax.vmap(loss.record_curvature, (None, 0))(0.0, far), np.zeros(4))


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (kng.LogisticLoss(), [0.0, 1.0, 2.0]),
        (kng.LogisticLoss(), [-1.0, 1.0, 1.0]),
        (kng.PoissonLoss(), [0.0, -987654.321, 1.0]),
    ],
)
def test_labels_that_a_loss_does_not_model(loss, labels):
    bounds = kng.Bounds(y=(0.0, 1e6) if isinstance(loss, kng.PoissonLoss) else None)
    mechanism = kng.KNG(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(ValueError, match="no declared level or a response that the loss has no meaning for") as caught:
        mechanism.prepare(None, labels)
    assert "987654" not in str(caught.value)


@pytest.mark.parametrize("count", [1, 511, 512, 1023, 1024, 1600])
def test_moments_in_blocks_are_those_of_all_rows(count):
    random = np.random.default_rng(count)
    x, y = random.integers(-9, 10, (count, 3)), random.integers(-9, 10, count)
    summary = kng.SquaredLoss().summarise(Records(x.astype(float), y.astype(float)))
    assert float(summary.count) == count
    np.testing.assert_array_equal(summary.gram, x.T @ x)
    np.testing.assert_array_equal(summary.moment, x.T @ y)
    assert float(summary.sum_of_squares) == y @ y


LEVELS = {
    (0, 1): [0, 1.0, True],
    (-1, 1): [-1, 1, -1.0],
    (1, 0): [1, 0, 1],
    ("no", "yes"): ["no", "yes ", "no"],
    ("0", "1"): ["0", 1, "0.0"],
}


@pytest.mark.parametrize(("levels", "cells"), LEVELS.items())
def test_declared_levels_are_mapped_cell_by_cell(levels, cells):
    loss = kng.LogisticLoss(levels)
    mapped = loss.responses(np.array(cells, dtype=object))
    np.testing.assert_array_equal(mapped[:2], [0.0, 1.0])
    np.testing.assert_array_equal(
        np.isnan(loss.responses(np.array([*cells[:2], 7, None, "x"], object))), [0, 0, 1, 1, 1]
    )


def test_responses_without_a_meaning_are_missing():
    bounds = {"x": ([0.0], [1.0])}
    X = np.full((3, 1), 0.5)
    logistic = kng.LogisticLoss((-1, 1))
    plain = kng.ObjectivePerturbation(logistic, kng.Bounds(**bounds), None, 1.0, "replace")
    np.testing.assert_array_equal(plain.prepare(X, np.array([-1, 1, 1])).y, [0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="no declared level"):
        plain.prepare(X, np.array([0, 1, 1]))
    filled = kng.ObjectivePerturbation(logistic, kng.Bounds(**bounds, missing_y=-1), None, 1.0, "replace")
    np.testing.assert_array_equal(filled.prepare(X, np.array([0, 1, -1])).y, [0.0, 1.0, 0.0])
    words = kng.ObjectivePerturbation(kng.LogisticLoss(("no", "yes")), kng.Bounds(**bounds), None, 1.0, "replace")
    np.testing.assert_array_equal(words.prepare(X, ["yes", "no", "yes"]).y, [1.0, 0.0, 1.0])
    counts = kng.KNG(kng.PoissonLoss(), kng.Bounds(y=(0.0, 9.0), missing_y=3), kng.Box(-1.0, 1.0), 1.0, "replace")
    np.testing.assert_array_equal(counts.prepare(None, np.array([-1.0, 2.5, 11.0])).y, [3.0, 2.5, 9.0])


def test_levels_and_policies_that_are_none():
    for levels in ((0, 1, 2), (1,), (), (1, 1.0), ("1", " 01")):
        with pytest.raises(ValueError, match=r"levels of LogisticLoss must be (two|all different)"):
            kng.LogisticLoss(levels)
    # Of a level that is no number every cell that is none would be an instance.
    for levels in ((0, None), (np.nan, 1), (np.inf, 1), (0, 10**400), ("1", 1)):
        with pytest.raises(TypeError, match="levels of LogisticLoss must be all text or all finite numbers"):
            kng.LogisticLoss(levels)
    parts = (None, 1.0, "replace")
    with pytest.raises(ValueError, match=r"missing_y = 0\.0 is no response of LogisticLoss"):
        kng.ObjectivePerturbation(kng.LogisticLoss((-1, 1)), kng.Bounds(missing_y=0), *parts)
    with pytest.raises(ValueError, match="'drop' is a level of LogisticLoss"):
        kng.ObjectivePerturbation(
            kng.LogisticLoss(("drop ", "keep")), kng.Bounds(missing_y="drop"), None, 1.0, "add_remove"
        )
    with pytest.raises(ValueError, match=r"missing_y = -1\.0 is no response of PoissonLoss"):
        kng.KNG(kng.PoissonLoss(), kng.Bounds(y=(-2.0, 9.0), missing_y=-1), kng.Box(-1.0, 1.0), 1.0, "replace")


NO_RESPONSES = {
    kng.LogisticLoss(): [(0.2, 0.8), (-1.0, 1.0), (0.0, 2.0), (-5.0, 5.0), (5.0, 9.0)],
    kng.LogisticLoss((-1, 1)): [(-1.0, 1.0)],
    kng.PoissonLoss(): [(-5.0, 5.0), (-5.0, -1.0), (-1e-9, 9.0)],
}


@pytest.mark.parametrize(("loss", "y"), [(loss, y) for loss, pairs in NO_RESPONSES.items() for y in pairs])
def test_bounds_with_responses_that_have_no_meaning_are_refused(loss, y):
    """Data within them would fail when the release is paid for."""
    bounds = kng.Bounds(x=([0.0], [1.0]), y=y)
    for mechanism in (kng.KNG, kng.ExponentialMechanism, kng.ObjectivePerturbation):
        with pytest.raises(ValueError, match=r"these bounds of y (are not \(0, 1\)|promise some)"):
            mechanism(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    meant = (0.0, 1.0) if isinstance(loss, kng.LogisticLoss) else (2.0, 9.0)
    kng.KNG(loss, kng.Bounds(x=([0.0], [1.0]), y=meant), kng.Box(-1.0, 1.0), 1.0, "replace")
