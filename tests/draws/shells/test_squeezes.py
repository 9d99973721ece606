"""Proposals that float64 refuses are those that the exact decision refuses: the same bits give the same draws."""

import random

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.draws import noises
from kngjax.draws.shells import sets_in_balls, shell_search
from kngjax.draws.shells.sets_in_balls import near_balls
from kngjax.draws.shells.solutions import enclose, refine, search
from kngjax.draws.shells.squeezes import Squeezes
from kngjax.draws.uniforms import Uniform
from tests.oracles.shell_problems import gradients, parts, problem

# Of each loss a box so wide that most proposals are refused.
WIDE = {"pseudo-Huber": (120, 2, 3.0, 100.0), "logistic": (60, 2, 2.0, 30.0), "quantile": (250, 3, 3.0, 12.0)}


def prepared(loss, domain=None, norm=None):
    n, d, epsilon, side = WIDE[loss]
    domain = kng.Box([-side] * d, [side] * d) if domain is None else domain
    mechanism, x, y = problem(n, d, epsilon, domain=domain, skew=0.1, loss=loss, norm=norm)
    way, _, own = parts(mechanism, x, y)
    return way, own, way.envelope(own.records)


def drawn(own, envelope, grid, seed, number, is_squeezed):
    bits = random.Random(seed).getrandbits
    return [shell_search.draw(own, envelope, grid, bits, is_squeezed) for _ in range(number)], bits(64)


@pytest.mark.parametrize(("loss", "norm"), [("pseudo-Huber", None), ("logistic", kng.L1()), ("logistic", kng.L2())])
def test_the_same_bits_give_the_same_draws_with_and_without(loss, norm):
    """And leave the same bits: what is refused early has drawn what it would have drawn later."""
    way, own, envelope = prepared(loss, norm=norm)
    assert drawn(own, envelope, way.grid, 5, 1, True) == drawn(own, envelope, way.grid, 5, 1, False)


@pytest.mark.slow
@pytest.mark.parametrize("ball", [kng.L1Ball, kng.L2Ball, None])
@pytest.mark.parametrize("loss", WIDE)
def test_the_same_bits_give_the_same_many_draws(loss, ball):
    way, own, envelope = prepared(loss, None if ball is None else ball(WIDE[loss][3]))
    assert drawn(own, envelope, way.grid, 6, 20, True) == drawn(own, envelope, way.grid, 6, 20, False)


class Chosen(Uniform):
    """A number whose logarithm is chosen, and known exactly."""

    def __init__(self, logarithm):
        super().__init__(lambda _: 0)
        self.logarithm = logarithm

    def ball(self, digits):
        return self.logarithm.exp()


def points(own, envelope, generator, number):
    """Points of Θ about θ₀ from near to far, and uniform on Θ."""
    certificate, shape = envelope.certificate, own.region.shape
    away = generator.standard_normal((number, own.gauge.dimension))
    sizes = np.exp(generator.uniform(-1.0, np.log(4.0 * envelope.radii[-1] + 1.0), number))
    steps = away / np.linalg.norm(away, axis=1)[:, None] * sizes[:, None]
    near = np.clip(certificate.theta + steps @ certificate.factor, shape.lower, shape.upper)
    uniform = generator.uniform(shape.lower, shape.upper, (number, own.gauge.dimension))
    return np.concatenate([near, uniform])


@pytest.mark.parametrize("loss", WIDE)
def test_no_point_at_the_edge_of_acceptance_is_refused(loss):
    """log U is next below T_g - ‖G(θ)‖, where the exact decision accepts; and next to 0, where most are refused."""
    _, own, envelope = prepared(loss)
    refused = 0
    with ctx.workprec(128), np.errstate(all="ignore"):
        squeezes, last = Squeezes.of(envelope, own.gauge), len(envelope.radii) - 1
        inverse = np.linalg.inv(envelope.certificate.factor.T)
        for theta in points(own, envelope, np.random.default_rng(7), 80):
            balls = [arb(float(t)) for t in theta]
            level = own.gauge(own.records.evaluate_in_balls(balls, with_hessian=False).gradient)
            distance = np.linalg.norm(inverse @ (theta - envelope.certificate.theta))
            number = min(int(np.searchsorted(envelope.radii, distance, side="right")) - 1, last)
            edge = arb(float(envelope.floors[number])) - level
            barely = Chosen(edge - arb(2) ** -50 * (1 + abs(edge)))
            assert not squeezes.refuse_point(near_balls(balls), number, barely)
            refused += squeezes.refuse_point(near_balls(balls), number, Chosen(arb(-1e-9)))
    assert refused > 40


@pytest.mark.parametrize("loss", WIDE)
def test_no_gradient_at_the_edge_of_acceptance_is_refused(loss):
    """What is left of log U is next below the logarithm of the determinants' ratio less the height."""
    _, own, envelope = prepared(loss)
    records, gauge, region = own
    generator, refused, tried = np.random.default_rng(8), 0, 0
    with ctx.workprec(192), np.errstate(all="ignore"):
        squeezes = Squeezes.of(envelope, gauge)
        for _ in range(12):
            number = int(generator.integers(len(envelope.heights)))
            noise = noises.draw_noise(gauge.noise, random.Random(int(generator.integers(2**32))).getrandbits)
            level = arb(float(generator.uniform(*envelope.edges[number : number + 2])))
            z = [level * one for one in gauge.direction(noise, 64)]
            near, _, is_refused = search(records, region, envelope.certificate, z)
            if is_refused:
                continue
            place, evaluation, is_refused = refine(records, region, near, z, 128)
            found = None if is_refused else enclose(records, envelope.certificate, place, evaluation, z)
            if found is None or region.contains(found.theta) is not True:
                continue
            tried += 1
            edge = found.log_ratio - arb(float(envelope.heights[number]))
            assert edge < 0
            assert not squeezes.refuse_gradient(z, edge.lower() - arb(2) ** -50, number)
            refused += squeezes.refuse_gradient(z, arb(0), number)
    assert tried > 3
    assert refused > 0


def test_slopes_towards_the_reference_are_bounded_as_formulas_have_them():
    """The bound of ‖G‖ that refuses, beside gradients by a formula of the tests' own."""
    _, own, envelope = prepared("pseudo-Huber")
    n, d, epsilon, side = WIDE["pseudo-Huber"]
    _, x, y = problem(n, d, epsilon, domain=kng.Box([-side] * d, [side] * d), skew=0.1)
    scale = float(own.gauge.scales[0].mid())
    with ctx.workprec(128), np.errstate(all="ignore"):
        squeezes, last = Squeezes.of(envelope, own.gauge), len(envelope.radii) - 1
        thetas = np.random.default_rng(9).uniform(-side, side, (60, d))
        levels = np.abs(gradients("pseudo-Huber", x, y, thetas)).max(axis=1) / scale
        for theta, level in zip(thetas, levels, strict=True):
            near = near_balls([arb(float(t)) for t in theta])
            edge = float(envelope.floors[last]) - float(level)
            assert not squeezes.refuse_point(near, last, Chosen(arb(edge - 1e-9)))
            assert squeezes.refuse_point(near, last, Chosen(arb(-1e-9)))


def test_near_points_of_a_box_are_as_near_as_they_say():
    lower, upper = np.array([-1e3, 0.1, -3.0]), np.array([-1.0, 0.3, 1e6])
    bits = random.Random(3).getrandbits
    for _ in range(50):
        point = sets_in_balls._PointOfBox(lower, upper, bits)
        near, balls = point.near(), point.balls(128)
        off = [abs(one - arb(float(middle))) for one, middle in zip(balls, near.values, strict=True)]
        assert all(one <= arb(float(error)) for one, error in zip(off, near.errors, strict=True))
