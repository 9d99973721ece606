"""Releases of ridge regressions whose noise follows the data, with every rounding in their proof."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.draws.choice import proved_draw
from kngjax.draws.posterior_in_balls import RidgeSettings
from kngjax.draws.ridge_posterior import NoisyPosterior
from kngjax.sensitivity.moments_in_fractions import SquaredRadii

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
    way = proved_draw(mechanism, mechanism.intake.check_schema(x, y))
    assert way is not None
    return way, way.prepare(x, y)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("kind", ["posterior", "hessian", "hessian_squared"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_float64_finds_is_confirmed(seed, kind):
    """Guarantees and calibrations of public settings of very different sizes."""
    generator = np.random.default_rng(seed)
    size, reach = 10.0 ** generator.uniform(-3, 6, 2)
    bounds = kng.Bounds(x=([-size], [0.3 * size]), y=(-0.7 * reach, reach), intercept=False)
    ridge, count = float(size**2 * 10.0 ** generator.uniform(1.0, 4.0)), int(10.0 ** generator.uniform(0.0, 7.0))
    adjacency, delta = ["add_remove", "replace"][seed % 2], float(10.0 ** generator.uniform(-13, -4))
    gamma = float(10.0 ** generator.uniform(-8, 0) / reach**2)
    facts = sample(LINE).intake.check_schema(*records())
    settings = {"regularization": ridge, "max_records": count, "delta": delta, "adjacency": adjacency}
    if kind == "posterior":
        mechanism = kng.PosteriorSample(bounds, gamma=gamma, **settings, allow_large_epsilon=True)
    else:
        ridge = max(ridge, {"hessian": 100.0, "hessian_squared": 3000.0}[kind] * size**2)
        mechanism = perturbed(kind, bounds, **{**settings, "regularization": ridge}, epsilon=1.0)
    assert proved_draw(mechanism, facts) is not None


def test_what_is_not_confirmed_is_rounded_as_before(monkeypatch):
    for name in ("is_private", "is_private_in_objective"):
        monkeypatch.setattr(f"kngjax.draws.ridge_posterior.{name}", lambda *_: False)
    for mechanism in (sample(regularization=100.0), perturbed("hessian_squared")):
        certificate = kng.certify(mechanism, *records())
        assert certificate.assurance == "in_reals"
        assert certificate.delta > float(mechanism.delta)


def test_records_of_a_hull_are_served_too():
    hull = kng.geometry.FeatureHull([[-1.0, -1.0], [1.0, -1.0], [0.0, 1.0]])
    mechanism = sample(kng.Bounds(y=(-2.0, 2.0), hull=hull), regularization=100.0)
    certificate = kng.release(mechanism, np.zeros((40, 2)), records()[1]).certificate
    assert certificate.assurance == "proved"


@pytest.mark.slow
def test_both_names_of_one_law_draw_the_same():
    mechanism = perturbed("hessian")
    posterior = kng.PosteriorSample(PLANE, 1000.0, float(mechanism.gamma_for(2)), "replace", 40, 1e-5)
    found = []
    for one in (mechanism, posterior):
        way, sums = drawer(one, *records())
        found.append(way.draw(sums, random.Random(1).getrandbits).tolist())
    assert found[0] == found[1]


def test_more_records_than_promised_are_refused():
    mechanism = sample(regularization=100.0, max_records=39)
    way = proved_draw(mechanism, mechanism.intake.check_schema(*records()))
    assert way is not None
    with pytest.raises(ValueError, match="public promise"):
        way.prepare(*records())


def test_grids_are_finer_than_the_least_noise_and_numbers_fit_float64():
    way, _ = drawer(sample(), *records())
    # γ(λ + NX²) = 2·(4 + 80).
    assert math.ldexp(1.0, way.grid.exponents[0] + 40) == pytest.approx(168.0**-0.5, rel=0.5)
    radii, tiny = SquaredRadii(Fraction(1), Fraction(1)), Fraction(1, 2**1000)
    assert NoisyPosterior.at(sample(), RidgeSettings(radii, tiny, Fraction(1), 0), 1, 2) is not None
    assert NoisyPosterior.at(sample(), RidgeSettings(radii, tiny, tiny, 0), 1, 2) is None
    assert NoisyPosterior.at(sample(), RidgeSettings(radii, tiny, Fraction(1), 0), 2, 2) is None
    assert NoisyPosterior.at(sample(), RidgeSettings(radii, 1 / tiny, 1 / tiny, 0), 1, 2) is None
