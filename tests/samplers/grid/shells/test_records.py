"""Sums of float64 with their bounds against 300 digits."""

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.samplers.grid.smooth import matrices, records
from kngjax.samplers.grid.smooth.records import PseudoHuberRecords


def some_records(n, d, seed, scale=1.0, outlier=None):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (n, d)) * 10.0 ** generator.uniform(-3, 3, d) * scale
    y = x @ generator.normal(size=d) + generator.standard_cauchy(n)
    if outlier is not None:
        y[0] = outlier
    return PseudoHuberRecords.of(x, y, 0.3), generator.normal(size=d)


def cases(numbers):
    return [(n, d, seed) for seed in range(numbers) for n, d in ((1, 1), (7, 2), (300, 3), (150, 6))]


def assert_contains(evaluation, truth):
    """A ball that is not finite says nothing."""
    pairs = zip(evaluation.gradient, truth.gradient, strict=True)
    of_hessian = zip(evaluation.hessian.entries(), truth.hessian.entries(), strict=True)
    for ball, true in (*pairs, *of_hessian):
        assert not ball.is_finite() or abs(true - ball.mid()).upper() <= ball.rad()


def check(number):
    for n, d, seed in cases(number):
        data, theta = some_records(n, d, seed)
        evaluation = data.evaluate(theta)
        with ctx.workprec(300):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)
        sizes = data.column_sums
        # e₀ is some γ_d of the predictors' sizes.
        slope = 1e-15 * (d + 40) * (float(data.largest @ np.abs(theta)) + 0.3 * np.sqrt(n))
        assert all(float(ball.rad()) <= slope * size for ball, size in zip(evaluation.gradient, sizes, strict=True))


def test_balls_of_float64_contain_what_300_digits_give():
    check(20)


def test_balls_contain_what_cancels_in_residuals():
    """Predictors of a million, and responses next to them."""
    generator = np.random.default_rng(0)
    for d in (1, 3, 8):
        x, theta = generator.uniform(-1.0, 1.0, (5, d)), 1e6 * generator.normal(size=d)
        data = PseudoHuberRecords.of(x, x @ theta + 0.1 * generator.normal(size=5), 0.3)
        evaluation = data.evaluate(theta)
        with ctx.workprec(300):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)


@pytest.mark.slow
def test_balls_of_float64_contain_what_300_digits_give_often():
    check(2000)


@pytest.mark.parametrize("outlier", [0.0, 1e30, 1e120, -1.7e308])
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_responses_and_features_of_any_size_are_within_the_balls(outlier, scale):
    for seed in range(5):
        data, theta = some_records(30, 2, seed, scale, outlier)
        with np.errstate(all="ignore"):
            evaluation = data.evaluate(theta)
        with ctx.workprec(4000):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)


def test_several_sums_at_once_are_those_of_each():
    data, _ = some_records(3000, 3, 0)
    weights = [np.random.default_rng(seed).uniform(size=data.y.shape) for seed in range(4)]
    for gram, one in zip(data.grams(weights), weights, strict=True):
        for first, second in zip(gram.entries(), data.weighted_gram(one).entries(), strict=True):
            assert first.overlaps(second)


@pytest.mark.parametrize("planted", ["residuals", "sum_error"])
def test_a_bound_that_forgets_an_error_is_found_out(planted, monkeypatch):
    """Without e₀, or without the error of sums, some ball of these does not contain the truth."""
    if planted == "sum_error":
        monkeypatch.setattr(records, "ROUNDOFF", 2.0**-60)
    else:
        monkeypatch.setattr(records, "sum_error", lambda terms: 0.0)
    with pytest.raises(AssertionError):
        check(5)


def test_eigenvalues_and_determinants_are_certain_of_every_matrix_in_the_balls():
    generator = np.random.default_rng(3)
    for d in (1, 2, 5, 12):
        for spread in (0.0, 1e-9):
            root = generator.normal(size=(d, d + 3))
            table = root @ root.T
            with ctx.workprec(128):
                balls = matrices.arb_mat(d, d, [arb(float(one), spread) for one in table.ravel()])
                least, most, log = (
                    matrices.least_eigenvalue(balls),
                    matrices.largest_eigenvalue(balls),
                    matrices.log_determinant(balls),
                )
                relative = matrices.largest_relative(balls, matrices.matrix(np.eye(d)))
            values = np.linalg.eigvalsh(table)
            assert values[0] - 3 * d * spread - 1e-7 * values[-1] <= least <= values[0]
            assert values[-1] <= most <= values[-1] * (1 + 1e-7) + 3 * d * spread
            assert most <= relative + 1e-6
            assert relative == pytest.approx(most, rel=1e-6)
            for _ in range(20):
                moved = np.triu(generator.choice([-spread, spread], (d, d)))
                other = table + moved + np.triu(moved, 1).T
                assert least <= np.linalg.eigvalsh(other)[0] + 1e-12 * values[-1]
                assert abs(np.linalg.slogdet(other)[1] - float(log.mid())) <= float(log.rad()) + 1e-12


def test_what_is_not_positive_definite_is_not_said_to_be():
    with ctx.workprec(128):
        for table in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[-1.0]]):
            form = matrices.matrix(np.array(table))
            assert not matrices.is_positive(form)
            assert not matrices.log_determinant(form).is_finite()
        close = matrices.arb_mat(1, 1, [arb(1, 1)])
        assert not matrices.is_positive(close)
        assert matrices.is_positive(matrices.arb_mat(1, 1, [arb(1, 0.99)]))
