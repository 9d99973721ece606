"""Previews: closed forms, simulation, what they invert, and that they need no data."""

import math
from statistics import NormalDist

import matplotlib as mpl
import numpy as np
import pytest
from numpyro import distributions

import kngjax as kng
from kngjax.core import registry
from kngjax.inference import settings

ONES = kng.Bounds(y=(-1.0, 1.0))


def median(num_records, dimension=3, epsilon=1.0, **settings):
    """That of median regression on [0, 1] and Box(-20, 20), with residuals of deviation 1."""
    bounds = kng.Bounds(x=(0.0, 1.0), columns=dimension - 1)
    made = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-20.0, 20.0), epsilon, "replace")
    return kng.preview(made, num_records=num_records, **{"residual": 1.0, "simulate": False} | settings)


def test_of_a_mean_the_noise_is_exact():
    bounds = kng.Bounds(x={"age": (0, 99)}, intercept=False)
    found = kng.preview(kng.KNormMechanism(bounds, 0.5, "replace"), num_records=200)
    np.testing.assert_allclose(found.noise["age"], math.sqrt(2.0) * 99.0 / (200 * 0.5), rtol=1e-12)
    np.testing.assert_allclose(found.standard_error["age"], 99.0 / math.sqrt(12.0 * 200), rtol=1e-6)
    assert found.trusted
    assert "exact, whatever the records are" in found.explain()
    # Under add_remove one record moves Σ(θ - x) by at most 99 at an end of Θ, and ε/2 of it is left.
    added = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box(0.0, 99.0), 0.5, "add_remove")
    found = kng.preview(added, num_records=200)
    np.testing.assert_allclose(found.noise["age"], math.sqrt(2.0) * 99.0 / (200 * 0.25), rtol=1e-12)


def test_one_coefficient_of_the_squared_loss():
    made = kng.KNG(kng.SquaredLoss(), ONES, kng.Box(-1.0, 1.0), 1.0, "replace")
    found = kng.preview(made, num_records=1000, residual=distributions.Normal(0.0, 0.3))
    # Scores lie within [-2, 2]: Laplace noise of rate (1/2)/4.
    np.testing.assert_allclose(found.noise, math.sqrt(2.0) / (0.125 * 1000), rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, 0.3 / math.sqrt(1000), rtol=1e-2)


def test_a_ridge_pulls_towards_its_centre():
    """(H + γ)(θ̃ - θ̂) ≈ -b - γ(θ̂ - c): of Θ's middle, 40, it moves 40 - c by its share."""
    parts, ridge = (kng.SquaredLoss(), kng.Bounds(y=(39.0, 41.0)), kng.Box(38.5, 41.5), 1.0), 1.0 / math.expm1(0.5)
    is_moved = []
    for centre in (None, [10.0], [40.0], [45.0]):
        made = kng.ObjectivePerturbation(*parts, "replace", centre=centre)
        found = kng.preview(made, num_records=100, residual=np.float32(0.1), simulate=False)
        np.testing.assert_allclose(found.pull, ridge / (100 + ridge), rtol=1e-6)
        is_moved.append("a ridge would move" in (found.hopeless or ""))
        # By half of what is known of a number within the bounds, 2/√12.
        away = abs(40.0 - (0.0 if centre is None else centre[0]))
        assert is_moved[-1] == (away * ridge / (100 + ridge) > 0.5 * 2.0 / math.sqrt(12.0))
    assert is_moved == [True, True, False, False]


def test_quantiles_have_noise_of_ranks_over_density():
    made = kng.PrivateQuantile(0.9, kng.Bounds(y=(0.0, 10.0)), 1.0, "replace")
    found = kng.preview(made, num_records=2000, residual=2.0)
    density = NormalDist(0.0, 2.0).pdf(NormalDist(0.0, 2.0).inv_cdf(0.9))
    np.testing.assert_allclose(found.noise, math.sqrt(2.0) / 0.5 / (2000 * density), rtol=1e-2)
    np.testing.assert_allclose(found.standard_error, math.sqrt(0.09 / 2000) / density, rtol=1e-2)
    assert kng.preview(made, num_records=20, residual=2.0).hopeless is not None


def test_what_inverts_it():
    found = median(2000)
    epsilon, count = found.epsilon_for(0.5), found.num_records_for(0.5)
    np.testing.assert_allclose(median(2000, epsilon=epsilon).ratio.max(), 0.5, rtol=0.01)
    np.testing.assert_allclose(median(count).ratio.max(), 0.5, rtol=0.01)
    # Noise falls with 1/n, and the standard error with 1/√n.
    np.testing.assert_allclose(count, 2000 * (epsilon / 1.0) ** 2, rtol=0.03)


def test_the_known_disaster_is_seen_and_what_would_do(fine_previews):
    found = median(300)
    assert 0.1 < found.expected.far < 0.5
    assert "anywhere in the domain" in found.hopeless
    assert not found.trusted
    assert "would do" in found.explain()
    assert median(3000).hopeless is None
    assert median(3000).trusted
    assert median(300, epsilon=10.0).hopeless is None


def test_the_share_of_far_draws_is_that_of_quadrature(fine_previews):
    made = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(y=(-50.0, 50.0)), kng.Box(-50.0, 50.0), 0.5, "replace")
    law, count, rate = NormalDist(0.0, 0.3), 60, 0.25
    found = kng.preview(made, num_records=count, residual=0.3, simulate=False)
    theta = np.linspace(-50.0, 50.0, 200_001)
    scores = np.array([law.cdf(one) - 0.5 for one in theta])
    density = np.exp(-rate * count * np.abs(scores))
    is_far = rate * count * law.pdf(0.0) * np.abs(theta) > 18.0
    near = 2.0 / (rate * count * law.pdf(0.0))
    expected = density[is_far].sum() * 0.0005
    expected /= expected + near
    assert 0.01 < expected < 0.5
    np.testing.assert_allclose(found.expected.far, expected, rtol=0.1)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("domain", [kng.Box(-60.0, 60.0), kng.L1Ball(100.0), kng.L2Ball(60.0)], ids=str)
def test_far_shares_of_other_domains_fall_with_epsilon(domain):
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=2)
    made = kng.KNG(kng.LogisticLoss(), bounds, domain, 1.0, "replace", kng.L2())
    far = kng.preview(made, num_records=100, simulate=False).setting.far_draws
    shares = [far.share(100, epsilon) for epsilon in (1.0, 2.0, 8.0)]
    assert shares[1] == far.share(200, 1.0)
    assert 1.0 > shares[0] > shares[1] > shares[2] >= 0.0


def test_simulation_says_the_same_where_the_limit_law_holds_and_more_where_it_does_not(monkeypatch):
    made = kng.ObjectivePerturbation(kng.SquaredLoss(), ONES, kng.Box(-1.0, 1.0), 3.0, "replace")
    limit = kng.preview(made, num_records=400, simulate=False)
    drawn = kng.preview(made, num_records=400, simulate=True)
    # What is drawn has the standard error without privacy too, which is as large here and is taken off.
    np.testing.assert_allclose(limit.standard_error, limit.noise, rtol=0.1)
    np.testing.assert_allclose(drawn.noise, limit.noise, rtol=0.25)
    assert drawn.trusted
    assert "simulated" in drawn.explain()
    assert kng.preview(made, num_records=400).simulated is None
    few = kng.preview(made.at_epsilon(1.0), num_records=20)
    assert few.hopeless is not None
    assert few.simulated is None
    assert not few.trusted
    monkeypatch.setattr("kngjax.inference.previews.LIMIT_LAW_FROM", 5000.0)
    assert kng.preview(made, num_records=400).simulated is not None


def test_what_is_not_known_is_said():
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=2)
    found = kng.preview(kng.AdaOPS(bounds, 1.0, 1e-6, "replace"), num_records=1000)
    assert found.noise is None
    assert found.hopeless is None
    assert not found.trusted
    assert "not known" in repr(found)
    with pytest.raises(ValueError, match="not known"):
        found.epsilon_for()
    open_bounds = kng.KNG(kng.LogisticLoss(), kng.Bounds(x=(-1.0, 1.0)), kng.Box(-5.0, 5.0), 1.0, "replace")
    with pytest.raises(ValueError, match="number of columns open"):
        kng.preview(open_bounds, num_records=1000)
    with pytest.raises(ValueError, match="scatter"):
        median(1000, residual=None)
    with pytest.raises(ValueError, match="num_records"):
        kng.preview(open_bounds, num_records=0)


def test_designs_are_rows_functions_or_even():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 2.0]])
    given = median(1000, design=rows)
    made = median(1000, design=lambda key, count: np.clip(rows, 0.0, 1.0))
    np.testing.assert_allclose(given.noise, made.noise)
    # Columns that fill less of their bounds say less.
    narrow = median(1000, design=0.5 + 0.1 * (rows - 0.5))
    assert np.all(narrow.noise > 5 * median(1000).noise)
    with pytest.raises(ValueError, match="has 1 columns"):
        median(1000, design=rows[:, :1])
    with pytest.raises(ValueError, match="say the same"):
        median(1000, design=np.ones((4, 2)))
    even = np.diag([1.0, 1 / 12, 1 / 12])
    even[0, 1:] = even[1:, 0] = 0.5
    even[1:, 1:] += 0.25
    density = NormalDist().pdf(0.0)
    np.testing.assert_allclose(median(1000).setting.hessian, density * even, atol=0.005)


def test_curves_are_drawn():
    mpl.use("Agg")
    with pytest.raises(ValueError, match="design=rows"):
        median(2000).plot()
    axes = median(2000, design=np.random.default_rng(0).uniform(size=(200, 2))).plot()
    assert len(axes.lines) == 6
    epsilons, noise = axes.lines[0].get_data()
    np.testing.assert_allclose(noise * epsilons, (noise * epsilons)[0])


@pytest.mark.default_cases("KNG", "objective", "posterior")
@pytest.mark.parametrize("name", ["KNG", "objective", "AdaSSP", "posterior", "output"])
def test_weights_of_records_are_taken_to_be_all_the_largest(name):
    """Losses and noise are W times as large then, and W cancels; a fixed ridge is one of λ/W."""

    def pair(make):
        columns = {"x": (np.array([0.0]), np.array([1.0])), "y": (-1.0, 1.0)}
        of_weights, plain = (make(kng.Bounds(**columns, weight=weight), weight or 1.0) for weight in (4.0, None))
        return [kng.preview(one, num_records=2000, residual=0.3, simulate=False) for one in (of_weights, plain)]

    theta = kng.Box(-1.0, 1.0)
    makers = {
        "KNG": lambda bounds, _: kng.KNG(kng.SquaredLoss(), bounds, theta, 1.0, "replace"),
        "objective": lambda bounds, _: kng.ObjectivePerturbation(kng.SquaredLoss(), bounds, theta, 1.0, "replace"),
        "AdaSSP": lambda bounds, _: kng.AdaSSP(bounds, 1.0, 1e-6, "replace"),
        "posterior": lambda bounds, w: kng.PosteriorSample(bounds, 100.0 * w, 1.0 / w, "add_remove", 4000),
        "output": lambda bounds, w: kng.OutputPerturbation(
            kng.SquaredLoss(), bounds, 100.0 * w, 1.0, 1e-6, "replace", max_records=4000
        ),
    }
    found, expected = pair(makers[name])
    np.testing.assert_allclose(found.noise, expected.noise, rtol=1e-9)
    np.testing.assert_allclose(found.ratio, expected.ratio, rtol=1e-9)
    np.testing.assert_allclose(found.pull, expected.pull, rtol=1e-9, atol=1e-15)
    assert found.setting.words[:-1] == expected.setting.words
    assert "every record has the largest weight" in found.setting.words[-1]


def test_few_records_with_the_largest_weights_are_those_without(monkeypatch):
    """Of which draws come from far off, and where the objective may be curved as far as noise reaches."""

    def few(make, weight):
        bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1, weight=weight)
        return kng.preview(make(bounds), num_records=60, residual=0.3, simulate=False).expected

    loss, theta = kng.PseudoHuberLoss(0.2), kng.Box(-2.0, 2.0)
    heavy, plain = (few(lambda bounds: kng.KNG(loss, bounds, theta, 1.0, "replace"), weight) for weight in (4.0, None))
    assert 0.01 < plain.far < 0.99
    assert heavy.far == pytest.approx(plain.far, rel=1e-9)
    # So that the noise of minima is what counts.
    monkeypatch.setattr(settings, "_ERROR", 1e-3)
    heavy, plain = (
        few(lambda bounds: kng.ObjectivePerturbation(loss, bounds, theta, 2.0, "replace"), weight)
        for weight in (4.0, None)
    )
    assert plain.noise.covariance[0, 0] > 0.05
    np.testing.assert_allclose(heavy.noise.covariance, plain.noise.covariance, rtol=1e-6)


def test_a_guess_of_the_coefficients_tells_what_noise_on_squares_adds():
    bounds = kng.Bounds(x=([0.0], [4.0]), y=(-2.0, 4.0))
    options = {"num_records": 20_000, "design": np.linspace(0.0, 4.0, 200)[:, None], "residual": 0.3, "simulate": False}
    made = kng.AdaSSP(bounds, 1.0, 1e-6, "replace")
    plain, steep = (kng.preview(made, coefficients=one, **options) for one in (None, [-2.0, 1.5]))
    assert "noise of small coefficients" in plain.explain()
    assert "noise of small coefficients" not in steep.explain()
    assert "the coefficients that were guessed" in steep.explain()
    # Made-up tables have slopes of 0.
    assert kng.preview(made, coefficients=[-2.0, 1.5], **options | {"simulate": True}).simulated is None
    assert np.all(steep.noise > 1.1 * plain.noise)
    np.testing.assert_allclose(kng.preview(made, coefficients=[1.0, 0.0], **options).noise, plain.noise, rtol=1e-9)
    assert steep.epsilon_for(ratio=0.5) > plain.epsilon_for(ratio=0.5)
    squared = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-9.0, 9.0), 1.0, "replace")
    alike = [kng.preview(squared, coefficients=one, **options).noise for one in (None, [-2.0, 1.5])]
    np.testing.assert_array_equal(*alike)
    for wrong in ([1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="a guess of each of 2 numbers"):
            kng.preview(made, coefficients=wrong, **options)


LINE = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1)
ANY = kng.Box(-2.0, 2.0)
# One of each registered mechanism.
MECHANISMS = {
    "ada_ops": lambda: kng.AdaOPS(LINE, 1.0, 1e-6, "replace"),
    "ada_ssp": lambda: kng.AdaSSP(LINE, 1.0, 1e-6, "replace"),
    "exponential": lambda: kng.ExponentialMechanism(kng.SquaredLoss(), LINE, ANY, 1.0, "replace"),
    "geometric": lambda: kng.GeometricMechanism(kng.Bounds(y=(0, 3)), 1.0, "replace"),
    "private_irls": lambda: kng.PrivateIRLS(LINE, 1.0, 1e-6, "replace"),
    "k_norm": lambda: kng.KNormMechanism(kng.Bounds(x={"a": (0, 1)}, intercept=False), 1.0, "replace"),
    "kng": lambda: kng.KNG(kng.SquaredLoss(), LINE, ANY, 1.0, "replace"),
    "objective_perturbation": lambda: kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), LINE, ANY, 1.0, "replace"),
    "output_perturbation": lambda: kng.OutputPerturbation(
        kng.SquaredLoss(), LINE, 1000.0, 1.0, 1e-6, "replace", max_records=4000
    ),
    "posterior_sample": lambda: kng.PosteriorSample(LINE, 1000.0, 30.0, "add_remove", 4000),
    "private_quantile": lambda: kng.PrivateQuantile([0.25, 0.75], kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"),
    "quantile_interval": lambda: kng.QuantileInterval(0.5, kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"),
}


def test_each_registered_mechanism_is_shown():
    assert set(MECHANISMS) == set(registry.names("mechanisms"))


# The ε of a posterior sample is searched for at every γ, which takes seconds.
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one == "posterior_sample")) for one in MECHANISMS]
)
def test_every_mechanism_answers_everything_or_says_why_not(name):
    found = kng.preview(MECHANISMS[name](), num_records=2000, simulate=False)
    assert found.mechanism in found.explain()
    if found.noise is None:
        assert "not known beforehand" in found.explain()
        for ask in (found.epsilon_for, found.num_records_for):
            with pytest.raises(ValueError, match="not known beforehand"):
                ask()
        return
    # What was found serves, and half of it does not.
    wanted = 0.5 * float(found.ratio.max())
    epsilon = found.epsilon_for(wanted)
    if math.isfinite(epsilon):
        assert found._ratio_at(2000, epsilon) <= wanted < found._ratio_at(2000, epsilon / 2)
        assert epsilon > found.epsilon
    count = found.num_records_for(wanted)
    assert math.isinf(count) or found._ratio_at(count, found.epsilon) <= wanted


@pytest.mark.slow
def test_a_posterior_sample_of_much_leverage_is_made_at_no_small_epsilon():
    """One record of leverage X²/λ = 2 changes the covariance by more than a little, whatever γ is."""
    assert kng.PosteriorSample(LINE, 1.0, 1.0, "add_remove", 4000).at_epsilon(0.01) is None


@pytest.mark.slow
def test_a_posterior_sample_at_another_epsilon_is_that_of_the_largest_gamma():
    made = MECHANISMS["posterior_sample"]()
    moved = made.at_epsilon(8.0)
    assert float(moved.epsilon) == pytest.approx(8.0, rel=1e-6)
    assert float(moved.regularization) == 1000.0
    found = kng.preview(made, num_records=2000, simulate=False)
    # With γ alone: (γ(H + λI))^{-1} has no other part of ε.
    expected = float(found.ratio.max()) * math.sqrt(float(made.gamma) / float(moved.gamma))
    assert found._ratio_at(2000, 8.0) == pytest.approx(expected, rel=1e-6)
    assert "epsilon =" in found.explain()


def test_more_records_than_were_promised_are_refused():
    for name in ("posterior_sample", "output_perturbation"):
        with pytest.raises(ValueError, match="max_records"):
            kng.preview(MECHANISMS[name](), num_records=4001)
    found = kng.preview(MECHANISMS["output_perturbation"](), num_records=4000, simulate=False)
    assert math.isinf(found.num_records_for(0.9 * float(found.ratio.max())))


@pytest.mark.slow
def test_no_more_records_than_were_promised():
    made = MECHANISMS["posterior_sample"]()
    found = kng.preview(made, num_records=4000, simulate=False)
    assert math.isinf(found.num_records_for(0.9 * float(found.ratio.max())))


def test_intervals_of_quantiles_are_asked_again_at_every_number():
    made = MECHANISMS["quantile_interval"]()
    found = kng.preview(made, num_records=2000)
    again = kng.preview(made, num_records=500)
    assert found._ratio_at(500, 1.0) == pytest.approx(float(again.ratio.max()), rel=1e-9)
    assert math.isinf(found._ratio_at(10, 1.0))


def test_a_residual_that_is_no_law_is_refused_by_name():
    with pytest.raises(ValueError, match=r"residual must be a positive number.*NumPyro distribution.*not 'text'"):
        median(2000, residual="text")
