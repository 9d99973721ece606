"""Noise that leans to one side, by a law that holds of every norm; and its levels, beside what they are bounded by."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.draws.quadratic.bodies import body_of
from kngjax.draws.quadratic.tilted_levels import GammaLevels, LevelsBeyond, levels_for
from kngjax.draws.quadratic.tilted_noises import about_log_mass, tilted_noise
from kngjax.draws.uniforms import Uniform, decided
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_gamma, assert_two_samples_agree

NORMS = {
    "maximum": lambda y: np.max(np.abs(y), axis=1),
    "sum": lambda y: np.sum(np.abs(y), axis=1),
    "length": lambda y: np.linalg.norm(y, axis=1),
}
# ‖h‖_* is below 1 for each norm; the tilts lean to both sides, and one to none.
TILTS = {
    "maximum": [Fraction(1, 2), Fraction(-3, 8), Fraction(0)],
    "sum": [Fraction(7, 8), Fraction(-1, 4), Fraction(0)],
    "length": [Fraction(3, 4), Fraction(-1, 2), Fraction(0)],
}
STEEP = [Fraction(99, 100), Fraction(1, 1000), Fraction(0)]


def drawn(kind, tilt, number, seed, floor=Fraction(0)):
    """So many accepted y."""
    law = tilted_noise(ScaledNorm(kind, (Fraction(1),) * len(tilt), Fraction(1)), tilt, floor)
    assert law is not None
    bits, found = random.Random(seed).getrandbits, []
    while len(found) < number:
        draw, level = law.draw(bits), Uniform(bits)

        def attempt(digits, draw=draw, level=level):
            size, doubt = -level.ball(digits).log(), draw.doubt(digits)
            assert not doubt < 0
            if not (size < doubt or size >= doubt):
                return None
            return [float(one.mid()) for one in draw.balls(digits)] if size >= doubt else ()

        if y := decided(attempt):
            found.append(y)
    return np.array(found)


@pytest.mark.parametrize(("kind", "tilt"), [*TILTS.items(), ("maximum", STEEP), ("length", STEEP), ("sum", STEEP)])
def test_norm_and_tilt_together_are_a_gamma_number(kind, tilt):
    """In polar coordinates the density is r^(k-1) exp(-r(1 + h'u)): for each u, r(1 + h'u) is of the Gamma(k) law."""
    y = drawn(kind, tilt, 300, 5)
    assert_gamma(NORMS[kind](y) + y @ list(map(float, tilt)), 3)


@pytest.mark.parametrize("kind", NORMS)
def test_mean_is_the_slope_of_the_log_mass(kind):
    """With ∫ exp(-‖y‖ - h'y) dy ∝ ∫ (1 + h'u)^-k over the unit sphere, by points of a ball, uniform by rejection."""
    tilt = np.array(list(map(float, TILTS[kind])))
    points = np.random.default_rng(1).uniform(-1.0, 1.0, (60_000, 3))
    points = points[(radii := NORMS[kind](points)) <= 1.0] / radii[radii <= 1.0][:, None]
    # E y = E r·u, with r of the mean k/(1 + h'u).
    weights = (1.0 + points @ tilt) ** -3.0
    expected = weights @ (3.0 * points / (1.0 + points @ tilt)[:, None]) / weights.sum()
    y = drawn(kind, TILTS[kind], 500, 6)
    errors = np.abs(y.mean(axis=0) - expected) / (y.std(axis=0) / np.sqrt(len(y)))
    assert np.max(errors) < 5.5


def test_levels_beyond_a_floor_leave_the_law_beyond_it():
    tilt, floor = [Fraction(5, 8), Fraction(1, 4), Fraction(0)], Fraction(8)
    with ctx.workprec(256):
        assert isinstance(levels_for([arb(float(h)) for h in tilt], floor), LevelsBeyond)
    samples = [drawn("maximum", tilt, number, 7, at) for number, at in ((600, Fraction(0)), (350, floor))]
    beyond = [y[NORMS["maximum"](y) > 8.0] for y in samples]
    assert min(map(len, beyond)) > 150
    assert_two_samples_agree(*(NORMS["maximum"](y) for y in beyond))
    assert_two_samples_agree(*(y[:, 0] for y in beyond))


CASES = [([0.5, -0.375, 0.0], 0.0), ([0.3, 0.3, 0.3], 0.0), ([0.9, 0.05, 0.01, 0.001], 0.0), ([0.625, 0.25, 0.0], 8.0)]


# Of some, products and quotients are beyond float64's numbers.
CASES += [([0.9, 0.09], 30.0), ([0.999], 0.0), ([1e-9, 0.5], 0.0), ([0.5, 1e-320, 1e-305], 0.0), ([0.5, 1e-320], 9.0)]


@pytest.mark.parametrize(("tilt", "floor"), CASES)
def test_heights_of_levels_are_the_least_that_hold(tilt, floor):
    with ctx.workprec(256):
        tilts = [arb(one) for one in tilt]
        levels = levels_for(tilts, Fraction(floor))
        places = np.concatenate([np.geomspace(1e-12, 1e12, 200), np.geomspace(1e-2, 1e3, 800)])
        doubts = [levels.doubt(tilts, arb(float(place))) for place in places]
        assert not any(doubt < 0 for doubt in doubts)
        assert min(float(doubt.mid()) for doubt in doubts) < 0.01
    assert isinstance(levels, GammaLevels | LevelsBeyond)


@pytest.mark.parametrize("kind", NORMS)
def test_about_log_mass_is_about_the_log_of_the_mass(kind):
    """Beside sums over a plane; of the maximum, exp(-‖y‖) = ∫ exp(-t) 1{‖y‖ < t} dt, with t beyond a floor."""
    tilt = np.array([0.3, -0.4])
    side = np.linspace(-160.0, 160.0, 801)
    y = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    size, lean = NORMS[kind](y), y @ tilt
    for floor in (0.0, 0.5, 3.0, 40.0):
        level = np.maximum(size, floor) if kind == "maximum" else size
        mass = np.sum(np.exp(-level - lean)) * (side[1] - side[0]) ** 2
        assert about_log_mass(kind, tilt, floor) == pytest.approx(np.log(mass), abs=0.05)


@pytest.mark.parametrize("kind", NORMS)
def test_about_log_mass_is_finite_whatever_the_data(kind):
    """Which envelope is drawn from goes by it: a failure would be an output that depends on the data."""
    below = np.nextafter(1.0, 0.0)
    for floor in (-np.inf, -1.0, 0.0, 1e-300, 1e20, 1e300, 1.7e308, np.inf, np.nan):
        for tilt in ([0.0], [below], [-below, 0.0], [0.5, -1e-300, 1e-9], [1e-5] * 40):
            assert np.isfinite(about_log_mass(kind, np.array(tilt), floor)), (tilt, floor)
        for tilt in ([1.0], [1e308, 1e308], [np.inf], [np.nan]):
            with np.errstate(over="ignore"):
                assert about_log_mass(kind, np.array(tilt), floor) == np.inf, (tilt, floor)


@pytest.mark.parametrize("floor", [Fraction(10) ** 400, Fraction(2) ** 1000, Fraction(1, 10**400)])
def test_levels_beyond_what_float64_has_are_found(floor):
    with ctx.workprec(256):
        levels = levels_for([arb(0.5), arb(-0.25)], floor)
        level = levels.draw(lambda: [arb(0.5), arb(-0.25)], random.Random(3).getrandbits)(64)
        assert level.is_finite()
        assert levels.doubt([arb(0.5), arb(-0.25)], level).upper() >= 0


@pytest.mark.parametrize("shape", [kng.Box(-1.0, 2.0), kng.L1Ball(2.0), kng.L2Ball(2.0)])
def test_estimates_of_masses_never_fail(shape):
    body = body_of(shape.exact_shape(3))
    for size, pull in itertools.product((0.0, 1e-300, 1.0, 1e200, 1.7e308, np.inf), (1.0, 1e300)):
        reaches = [size, -size, size]
        wide = body.widened(reaches, pull)
        assert isinstance(body.log_mass(reaches, pull), float)
        for one in (body.log_mass(reaches, wide), body.about_most(reaches, pull, 0.1)):
            assert np.isfinite(one) or size >= 1e200
