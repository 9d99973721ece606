"""Radii by fourth moments: never above what gradients are in any direction, and far beyond those of worst records."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

import kngjax as kng
from kngjax.draws import shell_draws
from kngjax.draws.shells.fourth_moments import least_curvatures, least_on_slice, lift, parabolas
from kngjax.draws.shells.matrices import certain_least, matrix, pivots
from kngjax.draws.shells.shell_certificate import certify
from kngjax.draws.shells.solutions import estimate
from tests.oracles.shell_problems import LOSSES, gradients, parts, problem, scores


def certified(loss, n=700, d=4, epsilon=4.0, side=30.0):
    side = 1.0 if loss == "Poisson" else side
    mechanism, x, y = problem(n, d, epsilon, domain=kng.Box([-side] * d, [side] * d), skew=0.2, loss=loss)
    way, records, own = parts(mechanism, x, y)
    with ctx.workprec(128), np.errstate(all="ignore"):
        plain = certify(records, way.noise, way.shape, estimate(records))
        averages = least_curvatures(records, way.shape, plain)
        better = certify(records, way.noise, way.shape, plain.theta, averages)
    return (x, y), own, plain, averages, better


@pytest.mark.parametrize("loss", LOSSES)
def test_no_radius_is_above_what_gradients_are_in_any_direction(loss):
    """Random directions, those of single records, and the axes."""
    (x, y), own, plain, averages, better = certified(loss)
    generator, shape = np.random.default_rng(5), own.region
    rows = x @ plain.factor.T
    directions = np.concatenate([generator.standard_normal((60, 4)), rows[:60], -rows[:60], np.eye(4), -np.eye(4)])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    z0 = gradients(loss, x, y, plain.theta[None])[0]
    seen = 0
    for radius, average in zip(plain.tried[:-1], averages, strict=True):
        # All shorter steps as well.
        for length in (radius, 0.6 * radius):
            steps = length * directions @ plain.factor
            thetas = plain.theta + steps
            inside = np.all((thetas >= shape.lower) & (thetas <= shape.upper), axis=1)
            slopes = ((gradients(loss, x, y, thetas) - z0) * steps).sum(axis=1) / length**2
            assert np.all(slopes[inside] >= average)
            seen += int(inside.sum()) * bool(np.isfinite(average))
    assert seen > 500
    assert max(one.least * one.radius for one in better.radii[:-1]) >= max(
        one.least * one.radius for one in plain.radii[:-1]
    )


def test_far_radii_need_no_more_records_than_moments_say():
    """Where the width of Θ enters: worst records certify next to nothing, and moments nearly the whole slope."""
    _, own, plain, averages, better = certified("pseudo-Huber", n=1000, epsilon=1.0, side=150.0)
    with ctx.workprec(128), np.errstate(all="ignore"):
        made = [shell_draws.build(one, own.gauge, own.region).log_excess for one in (plain, better)]
    assert made[0] > 2.0 * made[1]
    assert np.nanmax(averages * plain.tried[:-1]) > 1.5 * max(
        one.least * one.radius for one in plain.radii if np.isfinite(one.radius)
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_even", [False, True])
def test_parabolas_are_nowhere_above_means_of_the_slope(loss, is_even):
    generator = np.random.default_rng(6)
    number = 60
    eta = generator.uniform(-3.0, 3.0, number)
    y = generator.uniform(-3.0, 3.0, number) if loss not in ("logistic", "Poisson") else np.round(eta**2) % 2
    reach = np.exp(generator.uniform(-6.0, 2.0, number))
    a, c, b = parabolas(LOSSES[loss].verified_score(), eta, 0.0, y, reach, 0.3 * reach**2, is_even)
    assert not is_even or (np.all(c == 0.0) and np.all(b >= 0.0))
    steps = np.concatenate([np.linspace(-1.0, 1.0, 3000), np.geomspace(1e-3, 1.0, 200)])[:, None] * reach
    steps = steps[np.all(steps != 0.0, axis=1)]
    means = (scores(loss, eta + steps, y) - scores(loss, eta[None], y)) / steps
    # More than a difference of scores loses here.
    assert np.all(a + c * steps - b * steps**2 <= means + 1e-14 / np.abs(steps))


def test_least_eigenvalues_are_proved_and_close():
    generator = np.random.default_rng(7)
    for size in (1, 3, 21):
        form = generator.standard_normal((size, size))
        form = form + form.T
        bound = certain_least(form)
        with ctx.workprec(200):
            shifted = matrix(form) - arb(bound) * arb_mat(np.eye(size).tolist())
            assert pivots(shifted) is not None
        assert np.linalg.eigvalsh(form)[0] - bound < 1e-7 * size
    assert certain_least(np.full((2, 2), np.nan)) == -np.inf


def test_forms_of_the_entries_of_ee_are_bounded_over_all_directions():
    generator = np.random.default_rng(8)
    rows, columns = np.triu_indices(3)
    trace = (rows == columns) * 1.0
    e = generator.standard_normal((20_000, 3))
    e /= np.linalg.norm(e, axis=1)[:, None]
    entries = e[:, rows] * e[:, columns] * np.where(trace > 0, 1.0, np.sqrt(2.0))
    for _ in range(5):
        second, other = (generator.standard_normal((3, 3)) for _ in range(2))
        fourth = generator.standard_normal((6, 6))
        second, fourth = second + second.T + 0.0 * other, fourth @ fourth.T
        np.testing.assert_allclose(
            np.einsum("ip,pq,iq->i", entries, lift(second), entries), np.einsum("ij,jk,ik->i", e, second, e), atol=1e-12
        )
        for form in (lift(second), fourth, lift(second) - fourth):
            values = np.einsum("ip,pq,iq->i", entries, form, entries)
            bound = least_on_slice(form, trace)
            assert bound <= values.min() + 1e-12
    # Of quadratic forms alone the bound is the least eigenvalue.
    assert abs(least_on_slice(lift(second), trace) - np.linalg.eigvalsh(second)[0]) < 1e-6
