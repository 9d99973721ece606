"""Facts of every loss of a predictor: values by closed forms, derivatives by autodiff, declared intervals by search."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.losses.extended import TangentExtension
from tests.losses.table import CLOSED_FORMS, LOSSES, RECTANGLES, evaluated, intervals, places, problem, row, sums

every_loss = pytest.mark.parametrize("name", LOSSES)


def test_every_public_loss_of_a_predictor_is_a_row_of_the_table():
    public = {getattr(kng, name) for name in kng.__all__ if name.endswith("Loss")}
    assert {type(loss) for loss in LOSSES.values()} == {one for one in public if issubclass(one, AbstractPredictorLoss)}
    assert LOSSES.keys() == CLOSED_FORMS.keys()


@every_loss
def test_values_are_the_closed_forms(name):
    pairs = zip(*(part[:25] for part in places(name)["random"]), strict=True)
    expected = [CLOSED_FORMS[name](*pair) for pair in pairs]
    np.testing.assert_allclose(row(name)[0]["random"].values[:25], expected, rtol=1e-9, atol=1e-10)


@every_loss
def test_nothing_that_a_loss_declares_is_contradicted(name):
    assert kng.check_loss(LOSSES[name], (-4.0, 4.0), np.linspace(-2.0, 5.0, 15)) == ()


@every_loss
def test_score_and_curvature_are_the_derivatives_of_the_value(name):
    """To more digits than are asked of losses of one's own."""
    found = row(name)[0]["random"]
    np.testing.assert_allclose(found.slopes, found.scores, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.slopes_of_scores, found.curvatures, rtol=1e-10, atol=1e-12)


def test_the_capped_poisson_loss_has_its_score_as_derivative_at_its_ends_too():
    loss = kng.CappedPoissonLoss(limit=0.5)
    for end in (0.5, -12.0):
        slope = jax.grad(loss.record_value)(end, 1.0)
        np.testing.assert_allclose(slope, loss.record_score(end, 1.0), rtol=1e-6)


@every_loss
def test_sums_over_records_are_loops_in_numpy(name):
    (records, theta), (value, gradient, hessian, by_autodiff) = problem(name), row(name)[1]
    found = row(name)[0]["records"]
    by_hand = [CLOSED_FORMS[name](x @ theta, y) for x, y in zip(records.x, records.y, strict=True)]
    np.testing.assert_allclose(value, sum(by_hand), rtol=1e-9)
    np.testing.assert_allclose(gradient, sum(s * x for s, x in zip(found.scores, records.x, strict=True)), rtol=1e-11)
    np.testing.assert_allclose(by_autodiff, gradient, rtol=1e-9, atol=1e-10)
    if name != "quantile":
        products = (c * np.outer(x, x) for c, x in zip(found.curvatures, records.x, strict=True))
        np.testing.assert_allclose(hessian, sum(products), rtol=1e-11)


def test_the_sufficient_statistic_says_all_about_the_squared_loss():
    loss, (records, theta) = LOSSES["squared"], problem("squared")
    summary = loss.summarise(records)
    for of_summary, of_records in zip(sums(loss, theta, summary), row("squared")[1], strict=False):
        np.testing.assert_allclose(of_summary, of_records, rtol=1e-11)
    assert (float(summary.count), summary.dimension) == (31.0, 3)


def test_other_losses_keep_the_records_and_refuse_a_summary():
    summary = LOSSES["squared"].summarise(problem("squared")[0])
    for name in LOSSES.keys() - {"squared"}:
        records, theta = problem(name)
        assert LOSSES[name].summarise(records) is records
        with pytest.raises(TypeError, match="this loss needs the records, not a QuadraticSummary"):
            LOSSES[name].gradient(theta, summary)


@every_loss
def test_declared_intervals_hold_what_a_search_finds(name):
    loss = LOSSES[name]
    for predictor, response in RECTANGLES:
        found, place = row(name)[0][predictor, response], str((predictor, response))
        (lowest, highest), (low, high) = intervals(loss, predictor, response)
        assert lowest <= found.scores.min() + 1e-12, place
        assert found.scores.max() <= highest + 1e-12, place
        ends = found.values.min(), found.values.max()
        np.testing.assert_allclose((low, high), ends, rtol=1e-3, atol=2e-4, err_msg=place)
        assert low <= ends[0] + 1e-12, place
        assert ends[1] <= high + 1e-12, place


def test_bounded_scores_come_near_both_ends_of_their_intervals_whatever_the_predictor():
    for name in ("quantile", "smoothed", "Gaussian smoothed", "Huber", "pseudo-Huber", "logistic"):
        scores = row(name)[0]["far"].scores
        interval = LOSSES[name].score_interval((-np.inf, np.inf), None)
        np.testing.assert_allclose((scores.min(), scores.max()), interval, atol=2e-4, err_msg=name)


@pytest.mark.default_cases("Poisson", "expectile")
@pytest.mark.parametrize("name", ["Poisson", "logistic", "pseudo-Huber", "expectile"])
def test_a_loss_continued_by_its_tangents(name):
    """Convex and smooth as before, the loss itself within the ends, and its facts there are facts everywhere."""
    inner, ends, (etas, ys) = LOSSES[name], (-0.7, 1.2), places(name)["wide"]
    loss = TangentExtension(inner, *(np.array(end) for end in ends))
    found, inner_found = evaluated(loss, name)[0]["wide"], row(name)[0]["wide"]
    np.testing.assert_allclose(found.slopes, found.scores, rtol=1e-10)
    np.testing.assert_allclose(found.slopes_of_scores, found.curvatures, rtol=1e-10)
    inside = (ends[0] <= etas) & (etas <= ends[1])
    np.testing.assert_allclose(found.values[inside], inner_found.values[inside], rtol=1e-12)
    assert np.all(found.curvatures[~inside] == 0.0)
    # A tangent: what convexity says lies below the loss, with the slope at the end that is nearer.
    at_ends = [np.array([float(inner.record_score(end, y)) for y in (0.0, 1.0)])[ys.astype(int)] for end in ends]
    tangents = [CLOSED_FORMS[name](end, ys) + (etas - end) * score for end, score in zip(ends, at_ends, strict=True)]
    expected = np.where(etas < ends[0], *tangents)
    np.testing.assert_allclose(found.values[~inside], expected[~inside], rtol=1e-10, atol=1e-12)
    far = (-9.0, 9.0)
    low, high = loss.score_interval(far, (0.0, 1.0))
    assert (low, high) == inner.score_interval(ends, (0.0, 1.0))
    assert np.all((low <= found.scores) & (found.scores <= high))
    assert loss.curvature_bound(far) == inner.curvature_bound(ends)
    assert np.max(found.curvatures) <= loss.curvature_bound(far)
    least, most = loss.value_interval(far, (0.0, 1.0))
    assert least <= np.min(found.values)
    assert np.max(found.values) <= most
    unchanged = evaluated(TangentExtension(inner, np.array(-np.inf), np.array(np.inf)), name)[0]["wide"]
    np.testing.assert_allclose(unchanged.values, inner_found.values, rtol=1e-12)
    np.testing.assert_allclose(unchanged.scores, inner_found.scores, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 511, 512, 1023, 1024, 1600])
def test_moments_in_blocks_are_those_of_all_rows(count):
    random = np.random.default_rng(count)
    x, y = random.integers(-9, 10, (count, 3)), random.integers(-9, 10, count)
    summary = kng.SquaredLoss().summarise(Records(x.astype(float), y.astype(float)))
    assert float(summary.count) == count
    np.testing.assert_array_equal(summary.gram, x.T @ x)
    np.testing.assert_array_equal(summary.moment, x.T @ y)
    assert float(summary.sum_of_squares) == y @ y
