"""Sums of float64 with their bounds against 300 digits."""

import itertools

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.core import verified
from kngjax.draws.shells import matrices, shell_records
from kngjax.draws.shells.shell_records import ShellRecords
from kngjax.losses import smooth_scores
from kngjax.losses.smooth_scores import LogisticScore, PoissonScore, PseudoHuberScore

SCORES = {
    "pseudo-Huber": PseudoHuberScore(0.3),
    "logistic": LogisticScore(),
    "quantile": LogisticScore(0.3, 0.7),
    "Poisson": PoissonScore(),
}


def some_records(n, d, seed, scale=1.0, outlier=None, name="pseudo-Huber"):
    generator = np.random.default_rng(seed)
    widths = 10.0 ** generator.uniform(-3, 3, d)
    x = generator.uniform(-1.0, 1.0, (n, d)) * widths * scale
    y = x @ generator.normal(size=d) + generator.standard_cauchy(n)
    theta = generator.normal(size=d)
    if name in ("logistic", "Poisson"):
        # Predictors of a few units.
        y, theta = np.round(np.clip(np.abs(y), 0.0, 1.0 if name == "logistic" else 9.0)), theta / widths
    if outlier is not None:
        y[0] = outlier
    return ShellRecords.of(x, y, SCORES[name]), theta


def cases(numbers):
    return [(n, d, seed) for seed in range(numbers) for n, d in ((1, 1), (7, 2), (300, 3), (150, 6))]


def assert_contains(evaluation, truth):
    """A ball that is not finite says nothing."""
    pairs = zip(evaluation.gradient, truth.gradient, strict=True)
    of_hessian = zip(evaluation.hessian.entries(), truth.hessian.entries(), strict=True)
    for ball, true in (*pairs, *of_hessian):
        assert not ball.is_finite() or abs(true - ball.mid()).upper() <= ball.rad()


def check(number, name="pseudo-Huber"):
    for n, d, seed in cases(number):
        data, theta = some_records(n, d, seed, name=name)
        evaluation = data.evaluate(theta)
        with ctx.workprec(1200):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)
        sizes = data.column_sums
        # e₀ is some γ_d of the predictors' sizes, and scores are steeper the narrower, or the larger e^η.
        steep = np.exp(np.max(data.x @ theta)) if name == "Poisson" else 1.0
        slope = 1e-15 * (d + 40) * (float(data.largest @ np.abs(theta)) + 9.0 * np.sqrt(n)) * steep
        assert all(float(ball.rad()) <= slope * size for ball, size in zip(evaluation.gradient, sizes, strict=True))


@pytest.mark.parametrize("name", SCORES)
def test_balls_of_float64_contain_what_300_digits_give(name):
    check(10, name)


@pytest.mark.parametrize("name", ["pseudo-Huber", "quantile"])
def test_balls_contain_what_cancels_in_residuals(name):
    """Predictors of a million, and responses next to them."""
    generator = np.random.default_rng(0)
    for d in (1, 3, 8):
        x, theta = generator.uniform(-1.0, 1.0, (5, d)), 1e6 * generator.normal(size=d)
        data = ShellRecords.of(x, x @ theta + 0.1 * generator.normal(size=5), SCORES[name])
        evaluation = data.evaluate(theta)
        with ctx.workprec(300):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
def test_balls_of_float64_contain_what_300_digits_give_often(name):
    check(200, name)


@pytest.mark.parametrize("name", ["pseudo-Huber", "quantile"])
def test_responses_and_features_of_any_size_are_within_the_balls(name):
    outliers, scales = (0.0, 1e30, 1e120, -1.7e308), (1.0, 1e-25, 1e25)
    for outlier, scale, seed in itertools.product(outliers, scales, range(2)):
        data, theta = some_records(30, 2, seed, scale, outlier, name)
        with np.errstate(all="ignore"):
            evaluation = data.evaluate(theta)
        with ctx.workprec(4000):
            truth = data.evaluate_in_balls([arb(float(t)) for t in theta])
        assert_contains(evaluation, truth)


def test_several_sums_at_once_are_those_of_each():
    data, _ = some_records(3000, 3, 0)
    weights = [np.random.default_rng(seed).uniform(size=data.y.shape) for seed in range(4)]
    several = data.grams(4, lambda part: [one.ravel()[part] for one in weights])
    for gram, one in zip(several, weights, strict=True):
        for first, second in zip(gram.entries(), data.weighted_gram(one).entries(), strict=True):
            assert first.overlaps(second)


@pytest.mark.parametrize("name", SCORES)
def test_points_whose_predictors_are_moved_are_within_the_balls(name):
    """Scores of other points, whose predictors differ by at most so much."""
    generator = np.random.default_rng(9)
    for moved in (1e-9, 1e-3):
        data, theta = some_records(60, 2, 3, name=name)
        wide = data.evaluate(theta, moved=moved)
        step = generator.choice([-1.0, 1.0], 2) * moved / 2.0 / data.largest * (1.0 - 1e-9)
        with ctx.workprec(300):
            assert_contains(wide, data.evaluate_in_balls([arb(float(t)) for t in theta + step]))
        assert all(one.is_finite() for one in wide.gradient)


def test_a_part_of_the_records_is_every_so_many_th():
    data, _ = some_records(3000, 3, 0)
    some = data.some(500)
    assert 500 <= some.count <= 1100
    rows = {tuple(row) for row in data.x.reshape(-1, 3).tolist()}
    assert all(tuple(row) in rows for row in some.x.reshape(-1, 3).tolist())
    assert data.some(5000) is data


@pytest.mark.parametrize("planted", ["all", "sum_error"])
def test_a_bound_that_forgets_an_error_is_found_out(planted, monkeypatch):
    """With all roundings much smaller, or without the error of sums, some ball of these does not contain the truth."""
    if planted == "all":
        for module in (verified, smooth_scores):
            monkeypatch.setattr(module, "UNIT", 2.0**-60)
    else:
        monkeypatch.setattr(shell_records, "sum_error", lambda terms: 0.0)
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
