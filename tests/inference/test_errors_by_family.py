"""Intervals of mechanisms other than KNG: the law of each one's error, what is summed beside it, what it costs."""

import dataclasses
import itertools
import json
import pickle
import random
from fractions import Fraction

import jax
import numpy as np
import pytest
import scipy.integrate

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.inference import mean_plans
from kngjax.inference.covariances import PublishedMoments
from kngjax.inference.intervals_from_sums import ErrorDraws
from kngjax.mechanisms.gradient_noise import NormalNoise
from kngjax.releases.release import Release
from tests.inference.test_with_intervals import largest_change

LOWER, UPPER, RESPONSES = np.array([-0.5, 0.0]), np.array([1.0, 2.0]), (-3.0, 4.0)
BOUNDS = kng.Bounds(x=(LOWER, UPPER), y=RESPONSES)
COLUMNS = kng.Bounds(x=(LOWER, UPPER), intercept=False)
BETA = np.array([0.5, 0.8, -0.4])
DELTA = 1e-6


def table(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(LOWER, UPPER, (number, 2))
    return x, np.clip(BETA[0] + x @ BETA[1:] + 0.5 * generator.standard_normal(number), *RESPONSES)


def ada_ssp(adjacency="replace", epsilon=1.0, **settings):
    return kng.AdaSSP(BOUNDS, epsilon, DELTA, adjacency, **settings)


def output(loss, ridge, epsilon=1.0, metric="identity", max_records=None):
    return kng.OutputPerturbation(loss, BOUNDS, ridge, epsilon, DELTA, "replace", metric, max_records)


def exponential(epsilon=1.0, loss=None):
    return kng.ExponentialMechanism(
        kng.SquaredLoss() if loss is None else loss, BOUNDS, kng.Box(-3.0, 3.0), epsilon, "replace"
    )


def mean(epsilon=1.0):
    return kng.KNormMechanism(COLUMNS, epsilon, "replace")


def sums(x, y):
    design = np.column_stack([np.ones(len(x)), x])
    return design.T @ design, design.T @ y


def errors_without_sampling(hessians, noise, theta):
    """With t = 0."""
    return ErrorDraws.of(hessians, noise, theta, lambda number: np.zeros((number, len(theta))), None, "", ()).draws


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_release_of_ada_ssp_keeps_the_moments_that_it_is_made_of_and_nothing_else(adjacency):
    made, (x, y) = ada_ssp(adjacency), table(400)
    released = kng.release(made, x, y)
    assert list(released.published) == released.certificate.sampler["published"]
    assert list(released.published) == ["gram", "least_eigenvalue", "moment"]
    assert "published" in released.certificate.reason
    again = kng.Release.from_json(released.to_json())
    assert again == released == pickle.loads(pickle.dumps(released))
    parts = (again.published[name] for name in ("least_eigenvalue", "moment", "gram"))
    np.testing.assert_allclose(np.asarray(jax.jit(made.estimate)(*parts)), released.value, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        released.published["moment"][0] = 0.0
    text = released.to_json().replace('"moment": [', '"other": [', 1)
    assert text != released.to_json()
    with pytest.raises(ValueError, match="something else than its certificate says"):
        kng.Release.from_json(text)
    assert not kng.release(mean(), x).published
    assert '"published"' not in kng.release(mean(), x).to_json()


def test_what_is_published_are_the_numbers_that_the_guarantee_is_of():
    """With the same bits: the noisy moments of AdaSSP, and what AdaOPS makes of its first two stages."""
    x, y = table(300)
    moments = proved_draw(ada_ssp(), Schema(3, 300))
    data = moments.prepare(x, y)
    drawn = moments.draw_all_alone(data, random.Random(5).getrandbits)
    least, moment, gram = moments.noisy_moments(data, random.Random(5).getrandbits)
    np.testing.assert_array_equal(drawn[3:], [least, *moment, *gram.ravel()])
    stages = proved_draw(kng.AdaOPS(BOUNDS, 1.0, DELTA, "replace"), Schema(3, 300))
    data = stages.prepare(x, y)
    drawn = stages.draw_all_alone(data, random.Random(5).getrandbits)
    tuned = stages.tuning(data, random.Random(5).getrandbits)
    assert [Fraction(number) for number in drawn[3:]] == [Fraction(float(tuned.ridge)), Fraction(float(tuned.gamma))]
    np.testing.assert_array_equal(drawn[:3], stages.draw_alone(data, random.Random(5).getrandbits))
    # γ is what public numbers and h, L make of each other: the same for records that lead to the same h and L.
    assert (tuned.ridge, tuned.gamma) == (
        max(stages.plan.least_curvature - (tuned.curvature - tuned.ridge), stages.least_ridge),
        dataclasses.replace(stages).tuning(data, random.Random(5).getrandbits).gamma,
    )


@pytest.mark.parametrize("power", [0, 1, 2])
def test_normal_noise_has_the_covariance_of_its_power(power):
    hessian = np.array([[5.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 2.0]])
    drawn = NormalNoise(4.0, power, 0.7).draws(np.tile(hessian, (40_000, 1, 1)), 0)
    expected = np.linalg.matrix_power(hessian + 0.7 * np.eye(3), power) / 4.0
    # Of 40,000 draws an entry has an error of 1/200 of the larger variances.
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=4.0 * expected.max() / 200.0)


def test_the_exponential_mechanism_is_normal_with_the_variance_that_quadrature_gives():
    """d = 1, |x|, |y| ≤ 1, Θ = [-2, 2]: a residual is at most 3, so Δ = 9/2 and the density ∝ exp(-ε/9·Σ½(y - xθ)²)."""
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)
    made = kng.ExponentialMechanism(kng.SquaredLoss(), bounds, kng.Box(-2.0, 2.0), 1.5, "replace")
    generator = np.random.default_rng(0)
    x, y = generator.uniform(-1.0, 1.0, 300), generator.uniform(-0.5, 0.5, 300)

    def density(theta):
        return np.exp(-1.5 / 9.0 * 0.5 * (np.sum((y - x * theta) ** 2) - np.sum(y**2)))

    mass, first, second = (
        scipy.integrate.quad(lambda t, k=k: t**k * density(t), -2.0, 2.0, points=[0.0])[0] for k in range(3)
    )
    variance = second / mass - (first / mass) ** 2
    noise = made.noise.of_error(1, {})
    drawn = noise.draws(np.full((50_000, 1, 1), x @ x), 0)[:, 0] / (x @ x)
    assert np.var(drawn) == pytest.approx(variance, rel=4.0 * np.sqrt(2.0 / 50_000))
    with pytest.raises(ValueError, match="smooth losses"):
        exponential(loss=kng.QuantileLoss(0.5)).noise.of_error(3, {})


SMOOTH = {
    "noise of the minimiser": lambda: output(kng.SquaredLoss(), 60.0, max_records=500),
    "noise of the objective": lambda: output(kng.SquaredLoss(), 900.0, 30.0, "hessian_squared", 500),
    "posterior": lambda: kng.PosteriorSample(BOUNDS, 40.0, 2.0, "add_remove", 500, allow_large_epsilon=True),
}


@pytest.mark.default_cases("noise of the minimiser", "posterior")
@pytest.mark.parametrize("name", SMOOTH)
def test_quantiles_of_the_error_hold_the_estimate_without_privacy_as_often_as_they_say(name):
    """θ̃ less the error with J = 0 holds θ̂ of least squares: half the noise would hold it 67 times in 100."""
    made, (x, y) = SMOOTH[name](), table(500)
    gram, moment = sums(x, y)
    drawn = kng.sample(made, made.prepare(x, y), key=kng.research_key(1), num_draws=500, progress=False)
    thetas = np.asarray(drawn.theta).reshape(-1, 3)
    noise = made.noise.of_error(3, {})
    errors = errors_without_sampling(np.tile(gram, (4000, 1, 1)), noise, np.zeros(3))
    # With no pull at 0: that of θ̃ is H^{-1}λθ̃.
    pulls = np.linalg.solve(gram, noise.ridge * thetas.T).T
    ends = np.quantile(errors, [0.025, 0.975], axis=0)
    away = thetas + pulls - np.linalg.solve(gram, moment)
    share = np.mean((away >= ends[0]) & (away <= ends[1]), axis=0)
    # 2000 draws, and ends from 4000: .005 and .0035.
    np.testing.assert_allclose(share, 0.95, atol=4.0 * np.hypot(0.005, 0.0035))
    np.testing.assert_allclose(noise.pull(thetas[0]), noise.ridge * thetas[0])


def test_errors_of_ada_ops_are_normal_with_the_scale_that_is_published():
    """√γ(H + λ)^½(θ̃ - θ̂_λ) with the published λ and γ: mean squares of 1 over 150 draws of three numbers."""
    made, (x, y) = kng.AdaOPS(BOUNDS, 1.0, DELTA, "replace"), table(400)
    gram, moment = sums(x, y)
    way = proved_draw(made, Schema(3, 400))
    data, bits, squares = way.prepare(x, y), random.Random(2).getrandbits, []
    for _ in range(150):
        *theta, ridge, gamma = way.draw_all_alone(data, bits)
        noise = made.noise.of_error(3, {"ridge": np.asarray(ridge), "gamma": np.asarray(gamma)})
        assert (noise.precision, noise.power, noise.ridge) == (gamma, 1, ridge)
        precision = gram + noise.ridge * np.eye(3)
        away = np.array(theta) - np.linalg.solve(precision, moment)
        squares.append(noise.precision * away @ precision @ away)
    assert np.mean(squares) == pytest.approx(3.0, abs=4.0 * np.sqrt(6.0 / 150))
    assert made.noise.of_error(3, {}).ridge > 0.0


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_moments_less_their_noise_hold_the_estimate_without_privacy_as_often_as_they_say(adjacency):
    """With J = 0: half the noise of X'X or of X'y would hold least squares far less often than .95."""
    made, (x, y) = ada_ssp(adjacency), table(1500)
    estimate = np.linalg.solve(*sums(x, y))
    data, held, theta = made.prepare(x, y), [], np.array([0.3, -2.0, 5.0])
    _, on_moment, on_matrix = made.known_deviations(3)
    for seed in range(200):
        generator = np.random.default_rng(seed)
        normals = on_matrix * generator.standard_normal((3, 3))
        published = {
            "moment": np.asarray(data.moment) + on_moment * generator.standard_normal(3),
            "gram": np.asarray(data.gram) + (normals + normals.T) / 2.0,
        }
        moments = made.released_moments(published)
        # Whatever θ̃ is, the ends are those of G^{-1}m.
        errors = errors_without_sampling(moments.grams(generator, 1000), moments.noise(theta), theta)
        ends = np.quantile(theta - errors, [0.025, 0.975], axis=0)
        held.append((estimate >= ends[0]) & (estimate <= ends[1]))
    # Ends of 1000 matrices err by .007; three coefficients of 200 draws are not independent.
    assert np.mean(held) == pytest.approx(0.95, abs=3.0 * np.sqrt(0.95 * 0.05 / 200))


def test_mechanisms_say_what_their_releases_publish():
    for made in (ada_ssp(), kng.AdaOPS(ada_ssp().bounds, 1.0, 1e-6, "replace"), exponential()):
        way = proved_draw(made, Schema(3, 100))
        assert sorted(made.noise.publishes) == (sorted(way.published) if made.noise.publishes else [])


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_sums_say_that_they_have_none_and_which_statistic_has(adjacency):
    sums = kng.KNormMechanism(kng.Bounds(([0.0], [1.0]), intercept=False), 1.0, adjacency, statistic="sum")
    with pytest.raises(ValueError, match=r"KNormMechanism .* a sum is of these records alone.*statistic='mean'"):
        kng.WithIntervals(sums)


def test_noise_of_each_moment_is_drawn_as_it_was():
    made = ada_ssp()
    _, on_moment, on_matrix = made.known_deviations(3)
    published = {"moment": np.zeros(3), "gram": np.zeros((3, 3))}
    moments = made.released_moments(published)
    # x = Bx̃ with B by hand: middles .25 and 1, half widths .75 and 1; y's half width is 3.5.
    to_own = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [1.0, 0.0, 1.0]])
    inverse, drawn = np.linalg.inv(to_own), moments.grams(np.random.default_rng(0), 20_000)
    noise = inverse @ drawn @ inverse.T
    deviations = np.full((3, 3), on_matrix / np.sqrt(2.0)) + np.diag(np.full(3, on_matrix * (1.0 - np.sqrt(0.5))))
    np.testing.assert_allclose(noise.std(axis=0), deviations, rtol=0.03)
    z = moments.noise(np.zeros(3)).draws(np.zeros((20_000, 3, 3)), 0)
    np.testing.assert_allclose((inverse @ z.T).std(axis=1), 3.5 * on_moment, rtol=0.03)


@pytest.mark.parametrize("sizes", [(1.0, 1e-7), (1e10, 1e-8), (1e6, 1e10)])
def test_intervals_of_ada_ssp_do_not_depend_on_the_units_of_columns(sizes):
    """Of columns that are equal, so that noise decides: eigenvalues of X'X in these units are not known in float64."""
    x, found = np.repeat(np.linspace(-1.0, 1.0, 9)[:, None], 2, axis=1), []
    for size in (np.ones(2), np.array(sizes)):
        bounds = kng.Bounds(x=(-size, size), y=(-1.0, 1.0))
        fit = kng.release(kng.WithIntervals(kng.AdaSSP(bounds, 1.0, DELTA, "replace"), force=True), x * size, x[:, 0])
        fields = json.loads(fit.parts[0].to_json())
        fields["value"] = [0.1, *(np.array([0.2, -0.3]) / size)]
        fields["published"] = {"gram": [[9, 0, 1], [0, -1, 4], [1, 4, 3]], "least_eigenvalue": 1.0, "moment": [1, 2, 3]}
        first, second = kng.Release.from_json(json.dumps(fields)), json.loads(fit.parts[1].to_json())
        last = kng.Release.from_json(json.dumps(second | {"value": [5.0, 6.0, 7.0]}))
        made = kng.inference.ReleaseWithIntervals((first, last), fit.making | {"cuts": None}, fit.guarantee)
        found.append([end * [1.0, *size] for end in (made.intervals().lower, made.intervals().upper)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_with_next_to_no_noise_intervals_of_ada_ssp_are_those_without_privacy():
    """Of errors whose scale grows with a feature."""
    generator = np.random.default_rng(3)
    x = generator.uniform(LOWER, UPPER, (8000, 2))
    errors = generator.standard_normal(8000) * (0.1 + 0.5 * x[:, 1])
    y = np.clip(BETA[0] + x @ BETA[1:] + errors, *RESPONSES)
    made = kng.AdaSSP(BOUNDS, 95.0, 0.01, "replace")
    found = kng.release(kng.WithIntervals(made), x, y).intervals()
    gram, moment = sums(x, y)
    theta, design = np.linalg.solve(gram, moment), np.column_stack([np.ones(len(x)), x])
    residual, inverse = y - design @ theta, np.linalg.inv(gram)
    deviations = np.sqrt(np.diag(inverse @ ((design * residual[:, None] ** 2).T @ design) @ inverse))
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, theta, atol=0.5 * deviations.max())
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * deviations, rtol=0.12)


def test_with_next_to_no_noise_intervals_of_means_are_those_without_privacy_and_noise_widens_them():
    x, _ = table(20_000, 3)
    found = kng.release(kng.WithIntervals(mean(90.0), kng.Sandwich()), x).intervals()
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, x.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * x.std(axis=0) / np.sqrt(len(x)), rtol=0.05)
    # Of 40 equal records at ε = .7: nθ̃ - Σx is Gamma(3, .7) times a point of the box of widths 1.5 and 2.
    same = np.tile([[0.25, 1.0]], (40, 1))
    few = kng.release(kng.WithIntervals(mean(), kng.Sandwich(0.3)), same)
    # Where what was released of the squares lies far below 0, they are 0.
    generator, below = np.random.default_rng(0), Release._of(np.full(2, -1e9), few.parts[1].certificate)
    errors = few._making.errors((few.parts[0], below)).draws
    drawn = generator.gamma(3.0, 1.0 / 0.7, (40_000, 1)) * generator.uniform(-1.0, 1.0, (40_000, 2)) * [1.5, 2.0] / 40.0
    np.testing.assert_allclose(
        np.quantile(errors, [0.025, 0.975], axis=0), np.quantile(drawn, [0.025, 0.975], axis=0), rtol=0.05
    )


def test_no_record_moves_the_sums_of_squares_by_more_than_the_noise_hides_and_one_by_as_much():
    making, theta = kng.WithIntervals(mean(), kng.Sandwich(0.3)).making(500), np.array([0.9, 0.2])
    corners = np.array(list(itertools.product(*zip(LOWER, UPPER, strict=True))))
    columns = mean_plans._Squares(making.mechanism, theta)
    rows, _ = columns((np.vstack([theta, corners, 9.0 * corners]), None))
    assert 0.99 < largest_change(making.summing, rows.numbers.T) / making.epsilon <= 1.0 + 1e-12
    assert making.epsilon == pytest.approx(0.3)


def test_squares_of_records_at_the_mean_are_by_themselves_and_in_their_units():
    x, _ = table(30)
    # A mean beyond the bounds is taken at them.
    theta, within = np.array([0.4, 5.0]), np.array([0.4, 2.0])
    columns = mean_plans._Squares(mean(), theta)
    np.testing.assert_allclose(mean_plans.largest_squares(theta, COLUMNS), [0.9**2, 4.0], rtol=1e-12)
    rows = columns((x, None))[0].numbers.T
    np.testing.assert_allclose(rows, (x - within) ** 2 / [0.81, 4.0], rtol=1e-12)
    assert rows[11:].tobytes() == columns((x[11:], None))[0].numbers.T.tobytes()


FAMILIES = {
    "AdaSSP": (ada_ssp, [0.95, 0.05]),
    "mean": (mean, [0.7, 0.3]),
    "output": (lambda: output(kng.PseudoHuberLoss(0.7), 40.0), [0.65, 0.3, 0.05]),
    "exponential": (exponential, [0.65, 0.3, 0.05]),
    "AdaOPS": (lambda: kng.AdaOPS(BOUNDS, 1.0, DELTA, "add_remove"), [0.65, 0.3, 0.05]),
}


@pytest.mark.default_cases("AdaSSP", "mean", "exponential")
@pytest.mark.parametrize("name", FAMILIES)
def test_everything_together_costs_the_epsilon_of_the_mechanism_by_one_debit(name, tmp_path):
    make, parts = FAMILIES[name]
    asked, (x, y) = make(), table(2000)
    plan = kng.WithIntervals(asked, kng.Sandwich(0.3))
    budget, adjacency = kng.Budget.approximate(1.5, 2.0 * DELTA), asked.adjacency
    ledger = kng.Ledger.create(tmp_path / "book", budget, adjacency=adjacency, dataset="made up")
    records = (x,) if name == "mean" else (x, y)
    released = kng.release(plan, *records, ledger=ledger)
    assert released.guarantee.epsilon == pytest.approx(1.0, abs=1e-9)
    assert released.guarantee.epsilon <= 1.0
    assert released.guarantee.delta == (0.0 if name in ("mean", "exponential") else DELTA)
    assert [part.certificate.mechanism["epsilon"] for part in released.parts] == pytest.approx(parts)
    assert all(part.certificate.assurance == "proved" for part in released.parts)
    assert len(ledger.releases()) == 1
    again = kng.inference.ReleaseWithIntervals.from_json(released.to_json())
    assert again == released
    found = released.intervals(0.9)
    assert isinstance(found, kng.inference.Interval)
    assert repr(again.intervals(0.9)) == repr(found)
    assert found.assumptions
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(plan, *records, ledger=ledger)


@pytest.mark.slow
def test_a_posterior_sample_takes_the_scale_of_its_part_of_epsilon():
    asked = kng.PosteriorSample.calibrated(BOUNDS, 4000.0, 1.0, DELTA, "add_remove", 2000)
    making = kng.WithIntervals(asked, kng.Sandwich(0.3)).making(None)
    whole = float(asked.epsilon)
    assert float(making.mechanism.epsilon) <= 0.65 * whole < float(making.mechanism.epsilon) + 1e-6
    assert float(making.mechanism.gamma) < float(asked.gamma)
    assert float(making.summing.epsilon) == pytest.approx(0.3 * whole)


def test_what_suits_no_mechanism_is_refused_in_words():
    for asked, covariance, words in (
        (mean(), kng.Sandwich(bandwidth=0.3), "no curvature to estimate"),
        (kng.KNormMechanism(COLUMNS, 1.0, "replace", statistic="sum"), kng.Sandwich(), "statistic='mean'"),
        (kng.KNG(kng.SquaredDistanceLoss(), COLUMNS, kng.Box(-2.0, 2.0), 1.0, "add_remove"), None, "n is private"),
        (exponential(loss=kng.QuantileLoss(0.5)), kng.Sandwich(), "smooth losses"),
    ):
        with pytest.raises(ValueError, match=words):
            kng.WithIntervals(asked, covariance)
    by_kng = kng.KNG(kng.SquaredDistanceLoss(), COLUMNS, kng.Box(-2.0, 2.0), 1.0, "replace")
    for asked in (by_kng, mean()):
        assert type(kng.WithIntervals(asked).making(5000)) is mean_plans.MeanPlan
    assert kng.WithIntervals(ada_ssp()).making(5000).covariance == PublishedMoments()


def refused_interval(of):
    return kng.inference.Interval.of(of)


NOT_OFFERED = {
    "standard errors without privacy": (
        lambda x, y: refused_interval(kng.owner.nonprivate.fit(kng.SquaredLoss(), exponential().intake.rows(x, y))),
        TypeError,
        "second release without a guarantee",
    ),
    "the spread of research draws": (
        lambda x, y: refused_interval(kng.sample(mean(), mean().prepare(x), key=kng.research_key(0))),
        TypeError,
        "noise for privacy",
    ),
    "the spread of repeated releases": (
        lambda x, y: refused_interval([kng.release(exponential(), x, y) for _ in range(2)]),
        TypeError,
        "costs its epsilon again",
    ),
    "numbers by themselves": (lambda x, y: refused_interval(x), TypeError, "without a certificate"),
    "matrices put in": (
        lambda x, y: kng.WithIntervals(exponential(), covariance=[np.eye(3), np.eye(3)]),
        TypeError,
        "put in without their noise",
    ),
    "private IRLS": (
        lambda x, y: kng.WithIntervals(kng.PrivateIRLS(BOUNDS, 1.0, DELTA, "replace"), kng.Sandwich()),
        ValueError,
        "law of the last of its iterates",
    ),
    "joint quantiles": (
        lambda x, y: kng.WithIntervals(kng.PrivateQuantile([0.25, 0.75], kng.Bounds(y=RESPONSES), 1.0, "replace")),
        ValueError,
        "joint quantiles",
    ),
}


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_what_is_not_offered_is_refused_with_the_reason(name):
    asked, error, words = NOT_OFFERED[name]
    with pytest.raises(error, match=words):
        asked(*table(300))


def test_a_release_without_a_plan_has_no_interval_and_says_why_and_one_of_much_noise_has_wide_ones():
    x, y = table(60)
    alone = kng.release(exponential(), x, y).intervals()
    assert isinstance(alone, kng.inference.NoInterval)
    assert "second release without a guarantee" in alone.reason
    for made in (ada_ssp(epsilon=0.1), exponential(0.1)):
        found = kng.release(kng.WithIntervals(made, force=True), x, y).intervals()
        assert np.all(np.isfinite([found.lower, found.upper]))
        assert np.all(found.upper - found.lower > 1.0)
    iterates = kng.release(kng.PrivateIRLS(BOUNDS, 5.0, DELTA, "replace"), *table(500)).intervals()
    assert isinstance(iterates, kng.inference.NoInterval)


COVERAGE = {
    "AdaSSP": (lambda: ada_ssp(epsilon=3.0, shares=(0.05, 0.475, 0.475)), 3000),
    "mean": (mean, 300),
    "output": (lambda: output(kng.PseudoHuberLoss(0.7), 120.0, 3.0), 3000),
    "exponential": (lambda: exponential(3.0), 3000),
    "AdaOPS": (lambda: kng.AdaOPS(BOUNDS, 3.0, DELTA, "add_remove"), 3000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERAGE)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """200 tables: .95 but for three standard errors of as many shares."""
    make, number = COVERAGE[name]
    plan, held = kng.WithIntervals(make(), kng.Sandwich(0.3)), []
    truth = (LOWER + UPPER) / 2.0 if name == "mean" else BETA
    for seed in range(200):
        x, y = table(number, seed)
        found = kng.release(plan, *((x,) if name == "mean" else (x, y))).intervals(0.95)
        held.append((found.lower <= truth) & (found.upper >= truth))
    assert np.mean(held) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 200)
