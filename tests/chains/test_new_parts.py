"""A norm and a sampler that nobody has seen, each of few lines, are served by all that their declared facts allow."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.advice import chain
from kngjax.chains.base import AbstractChainSampler, AbstractIndependentSampler, Info
from kngjax.core.arrays import Vector, parameter
from kngjax.geometry import tilts
from kngjax.geometry.abstract_norms import AbstractAbsoluteNorm
from kngjax.releases.default_sampler import default_sampler, density_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree
from tests.statistical.problems import MECHANISMS, Quadrature, problem, records

WEIGHTS = np.array([0.5, 2.0])
LOWER, UPPER, POINTS = -2.0, 2.5, 200


class WeightedL1(AbstractAbsoluteNorm):
    """‖v‖ = Σ_j m_j |v_j|, which is ‖Sv‖_1 with S = diag(m)."""

    weights: Vector = eqx.field(converter=parameter)

    def __call__(self, vector):
        return jnp.sum(self.weights * jnp.abs(vector))

    def dual(self, vector):
        return jnp.max(jnp.abs(vector) / self.weights)

    def largest_over_l2_ball(self, dimension):
        return jnp.linalg.norm(jnp.asarray(self.weights))

    def draw_from_ball(self, key, shape, dimension):
        uniform = kng.L1().draw_from_ball(key, shape, dimension)
        return uniform / jnp.broadcast_to(self.weights, uniform.shape)

    def log_volume(self, dimension):
        return kng.L1().log_volume(dimension) - jnp.sum(jnp.log(jnp.asarray(self.weights)))

    @property
    def dimension(self):
        return self.weights.shape[-1]

    @property
    def standard(self):
        return kng.L1()

    def standardise(self, transform, inverse):
        weights, shape = jnp.asarray(self.weights), transform.shape
        scaled = transform * jnp.broadcast_to(weights[:, None], shape), inverse / jnp.broadcast_to(weights, shape)
        return *scaled, jnp.sum(jnp.log(weights))


class GroupNorm(AbstractAbsoluteNorm):
    """‖v‖ = |v_1| + ‖(v_2, ..., v_d)‖_2: declares neither chords nor tilts nor a standard form."""

    def __call__(self, vector):
        return jnp.abs(vector[0]) + jnp.linalg.norm(vector[1:])

    def dual(self, vector):
        return jnp.maximum(jnp.abs(vector[0]), jnp.linalg.norm(vector[1:]))

    def largest_over_l2_ball(self, dimension):
        return jnp.asarray(math.sqrt(2.0) if dimension > 1 else 1.0)

    def draw_from_ball(self, key, shape, dimension):
        """A share Beta(1, d - 1) of |v_1| in the norm, and the norm R^(1/d) of a uniform R."""
        share_key, size_key, sign_key, rest_key = jax.random.split(key, 4)
        share = jax.random.beta(share_key, 1.0, max(dimension - 1.0, 1e-12), shape)
        size = jax.random.uniform(size_key, shape) ** (1.0 / dimension)
        rest = jax.random.normal(rest_key, (*shape, dimension - 1))
        rest = rest / jnp.linalg.norm(rest, axis=-1, keepdims=True)
        first = share * size * jax.random.rademacher(sign_key, shape)
        return jnp.concatenate([first[..., None], ((1.0 - share) * size)[..., None] * rest], axis=-1)

    def log_volume(self, dimension):
        """2∫_0^1 (1-t)^(d-1) dt·vol(B^(d-1)) = (2/d)·vol(B^(d-1))."""
        return math.log(2.0 / dimension) + kng.L2().log_volume(dimension - 1)


class UniformRejection(AbstractIndependentSampler):
    """Draws from ν, each kept with probability exp(-c·score), for scores ≥ 0."""

    def check(self, target):
        if target.norm is None:
            raise ValueError("UniformRejection serves KNG, whose scores are nonnegative: ask for Exact()")

    def draws(self, target, key, num_draws, centre=None):
        def again(search):
            key, theta, kept, count = search
            key, point_key, coin_key = jax.random.split(key, 3)
            proposed = target.domain.draw(point_key, (num_draws,), target.dimension)
            log_share = -target.rate * jax.vmap(target.score)(proposed)
            accepted = jnp.log(jax.random.uniform(coin_key, (num_draws,))) < log_share
            new = jnp.where((accepted & ~kept)[:, None], proposed, theta)
            return key, new, kept | accepted, count + 1

        start = key, jnp.zeros((num_draws, target.dimension)), jnp.zeros(num_draws, bool), 0
        search = jax.lax.while_loop(lambda search: ~jnp.all(search[2]) & (search[3] < 100_000), again, start)
        return search[1], jnp.all(search[2])


class WalkState(NamedTuple):
    theta: jax.Array
    log_density: jax.Array


class RandomWalk(AbstractChainSampler):
    """Metropolis with normal steps of one size in all coordinates."""

    num_sweeps: int | None = eqx.field(static=True, default=600)
    num_warmup: int = eqx.field(static=True, default=200)
    size: float = eqx.field(static=True, default=0.6)

    def check(self, target):
        return None

    def noise(self, key, target, state, num_sweeps):
        step_key, threshold_key = jax.random.split(key)
        steps = self.size * jax.random.normal(step_key, (num_sweeps, target.dimension))
        return steps, jax.random.exponential(threshold_key, (num_sweeps,))

    def init(self, target, points, centre, key):
        return WalkState(points[0], target.log_density(points[0]))

    def step(self, target, state, noise):
        proposed = state.theta + noise[0]
        there = WalkState(proposed, target.log_density(proposed))
        accept = state.log_density - there.log_density < noise[1]
        state = jax.tree.map(lambda new, old: jnp.where(accept, new, old), there, state)
        return state, Info(state.log_density, accept.astype(float), jnp.asarray(1), jnp.asarray(False))

    def position(self, target, state):
        return state.theta


NORMS = {"weighted_l1": WeightedL1(WEIGHTS), "groups": GroupNorm()}
every_norm = pytest.mark.parametrize("name", NORMS)


def regression(loss: str, name: str, dimension: int = 2):
    """KNG with a new norm, and its data."""
    built, data = problem(loss, "kng", dimension)
    parts = (built.loss, built.bounds, built.domain, built.epsilon, built.adjacency)
    return kng.KNG(*parts, norm=NORMS[name]), data


def assert_follows(theta, built, data) -> None:
    first, second = Quadrature(built, data, LOWER, UPPER, POINTS).uniforms(np.asarray(theta))
    for uniform in (first, second):
        assert_same_law(uniform, lambda value: np.clip(value, 0.0, 1.0))
    counts, _, _ = np.histogram2d(first, second, bins=6, range=[(0.0, 1.0)] * 2)
    assert_cell_frequencies(counts.ravel(), np.full(36, 1.0 / 36.0))


def draws_of(built, data, sampler, number=800):
    """Independent draws: of an independent sampler, or one of each of many chains."""
    arguments = {"num_draws": 1, "num_chains": number}
    draws = kng.sample(built, data, key=kng.research_key(3), sampler=sampler, progress=False, **arguments)
    return draws.theta[:, 0]


@pytest.mark.slow
@every_norm
def test_the_new_norms_are_norms_with_uniform_draws_from_their_balls(name):
    norm = NORMS[name]
    points = np.random.default_rng(0).uniform(-2.5, 2.5, (200_000, 2))
    lengths = np.asarray(jax.vmap(norm)(jnp.asarray(points)))
    inside = lengths <= 1.0
    share = np.exp(float(norm.log_volume(2))) / 25.0
    assert abs(inside.mean() - share) < 5.3 * math.sqrt(share / 200_000)
    draws = np.asarray(norm.draw_from_ball(kng.research_key(1), (4000,), 2))
    # ‖v‖^d is uniform.
    assert_same_law(np.asarray(jax.vmap(norm)(jnp.asarray(draws))) ** 2, lambda value: np.clip(value, 0.0, 1.0))
    assert_two_samples_agree(np.abs(draws).sum(axis=1), np.abs(points[inside]).sum(axis=1))
    products = points[:200] @ points[200:400].T
    duals = np.asarray(jax.vmap(norm.dual)(jnp.asarray(points[:200])))
    assert np.all(products <= duals[:, None] * lengths[None, 200:400] * (1.0 + 1e-12))


@pytest.mark.default_cases("quantile-weighted_l1-UniformRejection")
@pytest.mark.parametrize(
    ("loss", "name", "sampler"),
    [
        ("squared", "weighted_l1", kng.chains.Exact()),
        ("squared", "groups", kng.chains.Exact()),
        ("squared", "weighted_l1", kng.chains.SliceGibbs(num_warmup=30)),
        ("quantile", "groups", kng.chains.LineGibbs(num_warmup=24)),
        ("quantile", "weighted_l1", kng.chains.LineGibbs(directions="ensemble", num_warmup=24)),
        ("quantile", "weighted_l1", UniformRejection()),
        ("pseudo_huber", "groups", UniformRejection()),
        ("pseudo_huber", "groups", RandomWalk(num_warmup=400)),
        ("pseudo_huber", "weighted_l1", kng.chains.GradientSpace(num_warmup=300)),
        ("pseudo_huber", "groups", kng.chains.EnsembleWalk(num_warmup=200)),
        ("squared", "weighted_l1", RandomWalk(num_warmup=400)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_draws_follow_the_density(loss, name, sampler):
    built, data = regression(loss, name)
    assert_follows(draws_of(built, data, sampler), built, data)


@pytest.mark.slow
def test_tilted_noise_of_a_standard_form_is_taken_where_the_estimate_lies_outside():
    """A Θ far from the estimate: with θ̂ + S^{-1}noise alone hardly a proposal would be accepted."""
    x, y = records("squared", 2)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-3.0, 3.0), columns=1)
    parts = (kng.SquaredLoss(), bounds, kng.Box(-0.4, 0.1), 30.0, "replace")
    built = kng.KNG(*parts, norm=NORMS["weighted_l1"])
    data = built.prepare(x, y)
    assert not bool(built.domain.contains(jnp.linalg.solve(data.gram, data.moment)))
    draws, succeeded = jax.jit(lambda target, key: kng.chains.Exact().draws(target, key, 2000))(
        built.target(data), kng.research_key(5)
    )
    assert succeeded
    law = Quadrature(built, data, -0.4, 0.1, POINTS)
    for uniform in law.uniforms(np.asarray(draws)):
        assert_same_law(uniform, lambda value: np.clip(value, 0.0, 1.0))


def test_what_a_norm_does_not_declare_is_refused_in_words():
    built, data = regression("squared", "groups")
    with pytest.raises(ValueError, match="not of GroupNorm"):
        kng.chains.SliceGibbs().check(built.target(data))
    for call in (
        lambda: GroupNorm().chord(jnp.ones(()), jnp.zeros(2), jnp.ones(2)),
        lambda: GroupNorm().tilted_law(jnp.ones(()), jnp.zeros(2)),
    ):
        with pytest.raises(NotImplementedError, match="GroupNorm"):
            call()
    assert chain(density_of(built, 2)) == "GradientSpace()"
    assert chain(density_of(regression("squared", "weighted_l1")[0], 2)) == "SliceGibbs()"


@pytest.mark.slow
@every_norm
def test_a_release_with_a_new_norm_has_its_certificate(name):
    built, _ = regression("squared", name)
    release = kng.release(built, *records("squared", 2), sampler=kng.chains.Exact())
    certificate = release.certificate
    assert certificate.exact
    assert certificate.mechanism["norm"]["type"] == type(NORMS[name]).__name__
    assert release.value.shape == (2,)
    # No draw in balls, for a norm that they do not know.
    assert isinstance(default_sampler(built, 2)[0], kng.chains.Exact)
    assert kng.release(built, *records("squared", 2)).certificate.sampler["type"] == "Exact"


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [RandomWalk(), UniformRejection()], ids=lambda value: type(value).__name__)
def test_a_new_sampler_serves_releases_and_pure_draws(sampler):
    # Smooth losses are released with every rounding in the proof, or by a chain that is named.
    loss = "squared" if isinstance(sampler, UniformRejection) else "pseudo_huber"
    built, data = problem(loss, "kng", 2)
    certificate = kng.release(built, *records(loss, 2), sampler=sampler, progress=False).certificate
    assert certificate.sampler["type"] == type(sampler).__name__
    assert certificate.exact == isinstance(sampler, UniformRejection)
    draw = jax.jit(jax.vmap(kng.draw, in_axes=(None, None, 0, None)))
    theta, succeeded = draw(built, data, jax.random.split(kng.research_key(4), 2000), sampler)
    assert np.all(succeeded)
    assert_follows(theta, built, data)
    if isinstance(sampler, UniformRejection):
        exponential, _ = problem("squared", "exponential", 2)
        assert isinstance(exponential, MECHANISMS["exponential"])
        with pytest.raises(ValueError, match="whose scores are nonnegative"):
            kng.release(exponential, *records("squared", 2), sampler=sampler)
        with pytest.raises(ValueError, match="no draw with all of its roundings proved is sure to serve"):
            kng.release(problem("pseudo_huber", "kng", 2)[0], *records("pseudo_huber", 2), sampler=sampler)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("norm", [kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf(WEIGHTS), kng.Ellipsoid(np.eye(2))])
def test_what_the_norms_declare_is_there(norm):
    standard = norm.standard
    assert standard.has_chords
    assert standard.has_tilts
    lower, upper = standard.chord(jnp.asarray(1.5), jnp.array([0.2, -0.1]), jnp.array([1.0, 2.0]))
    for end in (lower, upper):
        np.testing.assert_allclose(standard(jnp.array([0.2, -0.1]) + end * jnp.array([1.0, 2.0])), 1.5, rtol=1e-12)
    assert isinstance(standard.tilted_law(jnp.asarray(1.0), jnp.zeros(2)), tilts.AbstractTiltedLaw)
    transform, inverse, log_scale = norm.standardise(jnp.eye(2), jnp.eye(2))
    np.testing.assert_allclose(transform @ inverse, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(jnp.linalg.slogdet(transform)[1], log_scale, atol=1e-12)
    vector = jnp.array([0.3, -1.7])
    np.testing.assert_allclose(standard(transform @ vector), norm(vector), rtol=1e-12)
    sides = norm.box_sides(2)
    assert (sides is None) == (not isinstance(standard, kng.LInf))
    if sides is not None:
        np.testing.assert_allclose(jnp.max(jnp.abs(vector) / sides), norm(vector), rtol=1e-12)
