"""What the envelope of several curves claims, at curves and sums drawn at random and against sums over a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.samplers.exact.curves import envelope as envelopes
from kngjax.samplers.exact.curves import search
from tests.samplers.exact.curves.grid import SETTINGS, process_of, records


def sixty_records():
    """Two levels, one coefficient, of the shapes that the search's tests compile."""
    return process_of(**SETTINGS["shells"]), None, records(60)


def regression():
    """Three levels, two coefficients."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (1000, 1))
    y = np.clip(1.0 + x[:, 0] + 0.5 * random.standard_normal(1000), -3.0, 5.0)
    process = kng.QuantileProcess(
        levels=[0.25, 0.5, 0.75],
        bounds=kng.Bounds(x=([-1.0], [1.0]), y=(-3.0, 5.0)),
        domain=kng.Box(-6.0, 6.0),
        epsilon=12.0,
        adjacency="replace",
        order="joint",
        bandwidth=0.3,
    )
    return process, x, y


def test_each_solution_adds_up_the_sums_below_it():
    found = np.asarray(envelopes.multiples(jnp.array([0.2, 0.7])))
    np.testing.assert_allclose(found, [[0.8, -0.2, -0.2], [0.3, 0.3, -0.7]])


@pytest.mark.parametrize("problem", [sixty_records, pytest.param(regression, marks=pytest.mark.slow)])
def test_determinants_are_bounded_and_shells_and_pieces_bound_what_they_say(problem):
    """Curves about the fits, near and far: log det H⁰ - log det H ≤ E_j, Σ E_j ≤ E_k, and r is at least the floors."""
    process, x, y = problem()
    joint, data = process._joint(), process.prepare(x, y)
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
    random = np.random.default_rng(1)
    fits = np.asarray(envelope.certificates.point.theta)
    wide = float(np.max(target.of_one.domain.upper))
    scales = 0.5 * wide * random.uniform(size=(300, 1, 1)) ** 3
    curves = np.clip(fits + scales * random.standard_normal((300, *fits.shape)), target.of_one.domain.lower, wide)
    totals = np.asarray(target.totals()) + 10.0 ** random.uniform(0, 3, (300, 1)) * random.standard_normal(
        (300, fits.shape[1])
    )
    with float64():
        are_in_order = np.array(jax.vmap(target.are_in_order)(jnp.asarray(curves)))
        lengths, gradients, z, bounds, falls, steps = _facts(
            target, envelope, curves[are_in_order], totals[are_in_order]
        )
    assert are_in_order.sum() > 80
    np.testing.assert_allclose(gradients, z, atol=1e-6)
    assert np.all(falls <= bounds + 1e-9)
    shells = np.searchsorted(envelope.edges, lengths, side="right") - 1
    here = shells < envelopes.NUM_SHELLS
    assert here.sum() > 25
    assert np.all(bounds.sum(axis=1)[here] <= envelope.heights[shells[here]])
    # Who is not within all of a region is beyond the next floor.
    outside = np.any(steps[:, None] > envelope.radii[None], axis=2)[:, :-1]
    assert np.all(lengths[:, None] >= np.where(outside, envelope.floors[None, 1:], 0.0) - 1e-9)
    assert 0.1 < outside.mean() < 0.9


def _facts(target, envelope, curves, totals):
    """r, and of each level its gradient, z, E, log det H⁰ - log det H and the step from θ⁰."""
    certificates = jax.tree.map(jnp.asarray, envelope.certificates)

    def of_level(shift, certificate, theta, z):
        point = envelopes.evaluate(target.of_one, theta)
        fall = envelopes.log_determinant(certificate.point) - envelopes.log_determinant(point)
        step = jnp.linalg.norm((theta - certificate.point.theta) @ certificate.factor)
        return point.gradient - shift, z, search.bound_log_determinant(certificate, target.loss, z), fall, step

    def of_point(given):
        theta, total = given
        sums = target.bins(theta) - jnp.outer(target.shares, total)
        z = envelopes.multiples(jnp.asarray(target.levels)) @ sums
        length = target.rate * jnp.sum(jax.vmap(target.norm)(sums))
        return length, *jax.vmap(of_level)(target.shifts(), certificates, theta, z)

    found = jax.jit(lambda *given: jax.lax.map(of_point, given))(curves, totals)
    return [np.asarray(part) for part in found]
