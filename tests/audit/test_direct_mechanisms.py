"""Audits of mechanisms whose density is normalised: exact ratios, no grid to normalise on, atoms, and jumps."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Guarantee
from kngjax.audit import density_ratio
from kngjax.audit.laws import worst_log_ratios
from kngjax.data.records import QuadraticSummary, Records
from kngjax.mechanisms.direct import AbstractDirectMechanism

NOT_ASKED = "an audit of densities asks for no sensitivity and draws nothing"
ADJACENCIES = ("replace", "add_remove")
BOUNDS = kng.Bounds(x=(-1.0, 1.0), intercept=False)
NORMS = {1: (None, kng.L1(), kng.Ellipsoid(np.array([[2.0]]))), 2: (None, kng.L1(), kng.L2(), kng.LInf())}
NORMS[2] += (kng.WeightedLInf(np.array([1.0, 2.0])), kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]])))


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "norm"), [(d, norm) for d, norms in NORMS.items() for norm in norms])
def test_the_k_norm_mechanism_spends_its_epsilon_and_no_more(dimension, norm):
    mechanism = kng.KNormMechanism(BOUNDS, 1.0, "replace", norm)
    found = density_ratio(mechanism, dimension=dimension, num_records=(3,), num_steps=20, resolution=15)
    assert found.passed, found.explain()
    assert found.ratio > 0.9
    assert np.all(np.abs(found.location) <= 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_k_norm_mechanism_with_half_the_noise_is_found_out(dimension):
    mechanism, twice = (kng.KNormMechanism(BOUNDS, epsilon, "replace") for epsilon in (1.0, 2.0))
    settings = {"dimension": dimension, "num_records": (3,), "num_steps": 20, "resolution": 15}
    found = density_ratio(mechanism, log_density=twice.log_density, **settings)
    assert not found.passed
    assert found.ratio > 1.8
    # A constant that the data do not move cancels, as it does where the grid normalises.
    shifted = density_ratio(mechanism, log_density=lambda theta, data: 7.0 + twice.log_density(theta, data), **settings)
    np.testing.assert_allclose(shifted.worst_log_ratio, found.worst_log_ratio, rtol=1e-12)


@pytest.mark.default_cases("None-add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("counted", [None, [1]])
def test_counts_spend_their_epsilon_and_half_of_their_noise_twice_as_much(adjacency, counted):
    mechanism, twice = (
        kng.GeometricMechanism(kng.Bounds(y=(0.0, 1.0)), epsilon, adjacency, counted) for epsilon in (1.0, 2.0)
    )
    settings = {"num_records": (3,), "num_steps": 10, "resolution": 15}
    found = density_ratio(mechanism, **settings)
    assert found.passed, found.explain()
    assert found.ratio > 1.0 - 1e-9
    bold = density_ratio(mechanism, log_density=twice.log_density, **settings)
    assert not bold.passed
    assert bold.ratio == pytest.approx(2.0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sums_spend_their_epsilon_and_no_more(adjacency):
    bounds = kng.Bounds(x=(-1.0, 2.0), columns=2, intercept=False)
    mechanism = kng.KNormMechanism(bounds, 1.0, adjacency, statistic="sum")
    found = density_ratio(mechanism, num_records=(3,), num_steps=20, resolution=15)
    assert found.passed, found.explain()
    assert found.ratio > 0.9


def test_a_normaliser_that_the_data_move_is_found_out():
    """On a grid it would cancel: the log-density of a direct mechanism is taken at its word."""
    mechanism = kng.KNormMechanism(BOUNDS, 1.0, "replace")
    found = density_ratio(
        mechanism,
        dimension=1,
        num_records=(3,),
        num_steps=20,
        log_density=lambda theta, data: mechanism.log_density(theta, data) + data.moment[0],
    )
    assert found.worst_log_ratio == pytest.approx(3.0, rel=0.01)


@pytest.mark.slow
def test_columns_of_different_width_away_from_zero():
    bounds = kng.Bounds(x=(np.array([1.0, -30.0]), np.array([1.1, -10.0])), intercept=False)
    found = density_ratio(kng.KNormMechanism(bounds, 1.0, "replace"), num_records=(3,), num_steps=20, resolution=15)
    assert found.passed, found.explain()
    assert found.ratio > 0.9
    lower, upper = np.array([0.9, -50.0]), np.array([1.2, 10.0])
    assert np.all((lower <= found.location) & (found.location <= upper))


class ClampedLaplace(AbstractDirectMechanism):
    """The mean of n numbers in [0, 1] plus Laplace noise, moved to the nearer end of Θ: an ε-DP law with two atoms.

    `boldness` multiplies ε in the atoms' masses alone: a planted error.
    """

    bounds: kng.Bounds
    domain: kng.Box
    epsilon: np.ndarray
    boldness: np.ndarray
    adjacency: kng.Adjacency = eqx.field(static=True)

    method = "Laplace noise."

    def __init__(self, epsilon, boldness=1.0):
        self.bounds, self.domain = kng.Bounds(x=([0.0], 1.0), intercept=False), kng.Box(0.4, 0.6)
        self.epsilon, self.boldness = np.asarray(epsilon), np.asarray(boldness)
        self.adjacency = kng.Adjacency.REPLACE

    @property
    def loss(self):
        return kng.SquaredDistanceLoss()

    @property
    def guarantee(self):
        return Guarantee.pure(float(self.epsilon), self.adjacency)

    def sensitivity_for(self, dimension):
        raise AssertionError(NOT_ASKED)

    def draws(self, data, key, num_draws):
        raise AssertionError(NOT_ASKED)

    def log_density(self, theta, data):
        rate = data.count * self.epsilon
        return jnp.log(0.5 * rate) - rate * jnp.abs(theta[0] - data.moment[0] / data.count)

    def boundary_log_masses(self, data):
        rate, mean = self.boldness * data.count * self.epsilon, data.moment[0] / data.count

        def log_tail(distance):
            tail = jnp.exp(-rate * jnp.abs(distance))
            return jnp.log(jnp.where(distance > 0, 0.5 * tail, 1.0 - 0.5 * tail))

        return jnp.stack([log_tail(mean - self.domain.lower), log_tail(self.domain.upper - mean)])


def test_atoms_are_part_of_the_law():
    honest = density_ratio(ClampedLaplace(2.0), num_records=(5,), num_steps=40)
    assert honest.passed, honest.explain()
    assert honest.ratio > 0.95
    bold = density_ratio(ClampedLaplace(2.0, boldness=1.5), num_records=(5,), num_steps=40)
    assert not bold.passed
    assert 1.4 < bold.ratio <= 1.5 * (1.0 + 1e-9)
    assert bold.location[0] in (0.4, 0.6)
    # What is given in the place of the density has no atoms.
    interior = ClampedLaplace(2.0, boldness=1.5)
    assert density_ratio(interior, num_records=(5,), num_steps=40, log_density=interior.log_density).passed


class OneQuantile(AbstractDirectMechanism):
    """The median of n numbers in [0, 1] by KNG, gap by gap, its density known up to nothing."""

    bounds: kng.Bounds
    epsilon: np.ndarray
    adjacency: kng.Adjacency = eqx.field(static=True)

    method = "A gap, and a point of it."

    @property
    def loss(self):
        return kng.QuantileLoss(0.5)

    @property
    def guarantee(self):
        return Guarantee.bounded_range(float(self.epsilon), self.adjacency)

    def sensitivity_for(self, dimension):
        raise AssertionError(NOT_ASKED)

    def draws(self, data, key, num_draws):
        raise AssertionError(NOT_ASKED)

    def log_density(self, theta, data):
        edges = jnp.sort(self.jumps(data))
        scores = jnp.abs(jnp.arange(edges.size - 1) - 0.5 * data.y.size)
        log_mass = jnp.log(jnp.sum(jnp.diff(edges) * jnp.exp(-0.5 * self.epsilon * scores)))
        return -0.5 * self.epsilon * jnp.abs(jnp.sum(data.y <= theta[0]) - 0.5 * data.y.size) - log_mass

    def jumps(self, data):
        return jnp.concatenate([jnp.array([0.0]), data.y, jnp.array([1.0])])


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_gap_between_jumps_is_looked_into(adjacency):
    """Gaps of 1e-9, ties, and records at the bounds: a grid would see none of them."""
    mechanism = OneQuantile(kng.Bounds(y=(0.0, 1.0)), np.asarray(1.5), kng.Adjacency(adjacency))
    random, size = np.random.default_rng(5), 6
    for _ in range(20):
        near = 0.3 + 1e-9 * random.integers(5, size=size + 1)
        values = np.where(random.random(size + 1) < 0.3, random.choice([0.0, 1.0, 0.5], size + 1), near)
        first, second = values[:-1], np.append(values[: size - 1], values[-1])
        if adjacency == "add_remove":
            first, second = values, values[:-1]
        edges = np.unique(np.concatenate([[0.0, 1.0], values]))
        middles = 0.5 * (edges[1:] + edges[:-1])

        def log_density(y, middles=middles, edges=edges):
            scores = np.abs(np.sum(y[:, None] <= middles, axis=0) - 0.5 * y.size)
            weights = np.exp(-0.75 * scores)
            return np.log(weights / np.sum(weights * np.diff(edges)))

        expected = np.max(np.abs(log_density(first) - log_density(second)))
        rows = [np.column_stack([np.ones_like(y), y])[None] for y in (first, second)]
        ratios, locations = worst_log_ratios(mechanism, np.array([[0.1], [0.9]]), *rows, None)
        np.testing.assert_allclose(ratios[0], expected, rtol=1e-6)
        assert 0.0 < locations[0, 0] < 1.0
    found = density_ratio(mechanism, num_records=(10,), num_steps=20)
    assert found.passed, found.explain()
    # One record more moves the number below θ less half of all by a half.
    assert found.ratio > {"replace": 0.9, "add_remove": 0.45}[adjacency]


def test_a_mechanism_without_a_formula_for_its_density_is_refused():
    class Silent(AbstractDirectMechanism):
        bounds: kng.Bounds
        epsilon: np.ndarray
        adjacency: kng.Adjacency = eqx.field(static=True)
        method = "Nobody knows."
        loss = kng.SquaredDistanceLoss()

        @property
        def guarantee(self):
            return Guarantee.pure("1", "replace")

        def sensitivity_for(self, dimension):
            raise AssertionError(NOT_ASKED)

        def draws(self, data, key, num_draws):
            raise AssertionError(NOT_ASKED)

    silent = Silent(BOUNDS, np.asarray(1.0), kng.Adjacency.REPLACE)
    assert silent.boundary_log_masses(silent.prepare(np.zeros((2, 1)))).shape == (0,)
    with pytest.raises(TypeError, match="no formula is known for the density of Silent"):
        density_ratio(silent, dimension=1, num_records=(2,))


def test_the_density_of_the_k_norm_mechanism_needs_its_own_summary():
    with pytest.raises(TypeError, match="from its own prepare, not Records"):
        kng.KNormMechanism(BOUNDS, 1.0, "replace").log_density(np.zeros(1), Records(np.zeros((2, 1)), np.zeros(2)))
    assert isinstance(kng.KNormMechanism(BOUNDS, 1.0, "replace").prepare(np.zeros((2, 1))), QuadraticSummary)
