"""Releases of ridge regressions whose noise follows the data, with every rounding in their proof."""

import math
import random
from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.core.balls import ball_of
from kngjax.mechanisms.noise.posterior_in_balls import RidgeSettings
from kngjax.mechanisms.noisy_posterior import NoisyPosterior
from kngjax.samplers.grid import cells
from kngjax.sensitivity.moments_in_fractions import SquaredRadii
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LINE = kng.Bounds(x=([-1.0], [1.0]), y=(-2.0, 2.0), intercept=False)
PLANE = kng.Bounds(x=([-1.0], [1.0]), y=(-2.0, 2.0))


def sample(bounds=PLANE, **changes):
    settings = {"regularization": 4.0, "gamma": 2.0, "adjacency": "add_remove", "max_records": 40}
    return kng.PosteriorSample(bounds, **{**settings, **changes})


def perturbed(metric, bounds=PLANE, **changes):
    settings = {"regularization": 1000.0, "epsilon": 1.0, "delta": 1e-5, "adjacency": "replace", "max_records": 40}
    return kng.OutputPerturbation(kng.SquaredLoss(), bounds, metric=metric, **{**settings, **changes})


def records(number=40):
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.2, 1.2, (number, 1))
    return x, 0.5 + x[:, 0] + 0.3 * generator.normal(size=number)


def drawer(mechanism, x, y) -> tuple[NoisyPosterior, object]:
    way = mechanism.on_grid(mechanism.admit(x, y))
    assert way is not None
    return way, way.prepare(x, y)


@pytest.mark.parametrize(
    "mechanism",
    [sample(LINE), perturbed("hessian", LINE), perturbed("hessian_squared", LINE)],
    ids=lambda mechanism: mechanism.metric + mechanism.adjacency.value,
)
@pytest.mark.parametrize("number", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_releases_of_a_line_have_the_probabilities_of_the_normal_law(mechanism, number, monkeypatch):
    """On a grid as coarse as the noise; a release draws what its way draws."""
    monkeypatch.setattr(cells, "_DIGITS", 0)
    x, y = records()
    way, sums = drawer(mechanism, x, y)
    bits = random.Random(6).getrandbits
    found = np.array([way.draw(sums, bits)[0] for _ in range(number)])
    monkeypatch.setattr("secrets.randbits", random.Random(6).getrandbits)
    released = [kng.release(mechanism, x, y) for _ in range(5)]
    assert [one.value[0] for one in released] == found[:5].tolist()
    (exponent,) = released[0].certificate.sampler["grid_exponents"]
    x, y = np.clip(x[:, 0], -1.0, 1.0), np.clip(y, -2.0, 2.0)
    squares, products = (sum(Fraction(a) * Fraction(b) for a, b in zip(x, z, strict=True)) for z in (x, y))
    with ctx.workprec(200):
        precision = ball_of(squares) + float(mechanism.regularization)
        gamma = arb(float(mechanism.gamma_for(1)))
        deviation = (1 / gamma).sqrt() / (precision if mechanism.metric == "hessian_squared" else precision.sqrt())

        def below(place):
            place = ((place - Fraction(1, 2)) * Fraction(2) ** exponent, ball_of(products) / precision)
            return float(((place[1] - ball_of(place[0])) / deviation / arb(2).sqrt()).erfc() / 2)

        places = np.round(found / 2.0**exponent).astype(int)
        assert np.all(places * 2.0**exponent == found)
        numbers = range(places.min(), places.max() + 1)
        assert len(numbers) > 4
        chances = [below(place + 1) - below(place) for place in numbers]
    counts = [np.sum(places == place) for place in numbers]
    assert_cell_frequencies(np.append(counts, 0), np.append(chances, 1.0 - sum(chances)))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_certificates_cover_every_rounding_and_cost_none(adjacency):
    mechanisms = [
        sample(regularization=100.0, adjacency=adjacency),
        kng.PosteriorSample.calibrated(PLANE, 200.0, 1.0, 1e-5, adjacency, 40),
        perturbed("hessian", adjacency=adjacency),
        perturbed("hessian_squared", adjacency=adjacency),
    ]
    for mechanism in mechanisms:
        certificate = kng.release(mechanism, *records()).certificate
        assert certificate.assurance == "exact_with_rounding"
        assert certificate.rounding is None
        assert (certificate.epsilon, certificate.delta) == (float(mechanism.epsilon), float(mechanism.delta))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_float64_finds_is_confirmed(seed):
    """Guarantees and calibrations of public settings of very different sizes."""
    generator = np.random.default_rng(seed)
    size, reach = 10.0 ** generator.uniform(-3, 6, 2)
    bounds = kng.Bounds(x=([-size], [0.3 * size]), y=(-0.7 * reach, reach), intercept=False)
    ridge, count = float(size**2 * 10.0 ** generator.uniform(1.0, 4.0)), int(10.0 ** generator.uniform(0.0, 7.0))
    adjacency, delta = ["add_remove", "replace"][seed % 2], float(10.0 ** generator.uniform(-13, -4))
    gamma = float(10.0 ** generator.uniform(-8, 0) / reach**2)
    facts = sample(LINE).admit(*records())
    settings = {"regularization": ridge, "max_records": count, "delta": delta, "adjacency": adjacency}
    posterior = kng.PosteriorSample(bounds, gamma=gamma, **settings, allow_large_epsilon=True)
    assert posterior.on_grid(facts) is not None
    for metric, factor in (("hessian", 100.0), ("hessian_squared", 3000.0)):
        ridge = max(settings["regularization"], factor * size**2)
        mechanism = perturbed(metric, bounds, **{**settings, "regularization": ridge}, epsilon=1.0)
        assert mechanism.on_grid(facts) is not None


def test_what_is_not_confirmed_is_rounded_as_before(monkeypatch):
    for name in ("posterior_sample.is_private", "output_perturbation.is_private_in_objective"):
        monkeypatch.setattr(f"kngjax.mechanisms.{name}", lambda *_: False)
    for mechanism in (sample(regularization=100.0), perturbed("hessian_squared")):
        certificate = kng.release(mechanism, *records()).certificate
        assert certificate.assurance == "exact_in_reals"
        assert certificate.delta > float(mechanism.delta)


def test_a_draw_is_the_same_where_jax_has_float32_alone():
    x, y = records()
    for make in (sample, lambda: perturbed("hessian"), lambda: perturbed("hessian_squared")):
        way, sums = drawer(make(), x, y)
        expected = way.draw(sums, random.Random(4).getrandbits).tolist()
        with jax.enable_x64(False):
            other, sums = drawer(make(), x, y)
            assert (other.noise, other.grid) == (way.noise, way.grid)
            assert other.draw(sums, random.Random(4).getrandbits).tolist() == expected


def test_records_of_a_hull_are_served_too():
    hull = kng.FeatureHull([[-1.0, -1.0], [1.0, -1.0], [0.0, 1.0]])
    mechanism = sample(kng.Bounds(y=(-2.0, 2.0), hull=hull), regularization=100.0)
    certificate = kng.release(mechanism, np.zeros((40, 2)), records()[1]).certificate
    assert certificate.assurance == "exact_with_rounding"


def test_both_names_of_one_law_draw_the_same():
    mechanism = perturbed("hessian")
    posterior = kng.PosteriorSample(PLANE, 1000.0, float(mechanism.gamma_for(2)), "replace", 40, 1e-5)
    found = []
    for one in (mechanism, posterior):
        way, sums = drawer(one, *records())
        found.append(way.draw(sums, random.Random(1).getrandbits).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("mechanism", [sample(), perturbed("hessian_squared")], ids=["posterior", "objective"])
def test_records_in_any_order_and_division_draw_the_same(mechanism):
    """Sums that float64 adds up differently in every order."""
    x, y = records()
    x[:10] *= 2.0**-30
    way, sums = drawer(mechanism, x, y)
    expected = way.draw(sums, random.Random(2).getrandbits).tolist()
    order = np.random.default_rng(0).permutation(40)
    parts = kng.stream(iter([(x[order[:13]], y[order[:13]]), (x[order[13:]], y[order[13:]])]))
    for data in ((x[order], y[order]), (parts, None)):
        assert way.draw(way.prepare(*data), random.Random(2).getrandbits).tolist() == expected


def test_bounds_of_any_size_and_few_records(monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(3).getrandbits)
    for size, number in ((2.0**50, 1), (1e-50, 1), (1.0, 0), (1e55, 3)):
        bounds = kng.Bounds(x=([-size], [size]), y=(-size, size), intercept=False)
        mechanism = sample(bounds, regularization=100.0 * size**2, gamma=0.1 / size**2)
        released = kng.release(mechanism, np.full((number, 1), size), np.full(number, size))
        assert released.certificate.assurance == "exact_with_rounding"
        assert abs(released.value[0]) < 20.0


def test_more_records_than_promised_are_refused():
    mechanism = sample(regularization=100.0, max_records=39)
    way = mechanism.on_grid(mechanism.admit(*records()))
    assert way is not None
    with pytest.raises(ValueError, match="public promise"):
        way.prepare(*records())


def test_grids_are_finer_than_the_least_noise_and_numbers_fit_float64():
    way, _ = drawer(sample(), *records())
    # γ(λ + NX²) = 2·(4 + 80).
    assert math.ldexp(1.0, way.grid.exponents[0] + 40) == pytest.approx(168.0**-0.5, rel=0.5)
    radii, tiny = SquaredRadii(Fraction(1), Fraction(1)), Fraction(1, 2**1000)
    assert NoisyPosterior.of(sample(), RidgeSettings(radii, tiny, Fraction(1), 0), 1, 2) is not None
    assert NoisyPosterior.of(sample(), RidgeSettings(radii, tiny, tiny, 0), 1, 2) is None
    assert NoisyPosterior.of(sample(), RidgeSettings(radii, tiny, Fraction(1), 0), 2, 2) is None
    assert NoisyPosterior.of(sample(), RidgeSettings(radii, 1 / tiny, 1 / tiny, 0), 1, 2) is None
