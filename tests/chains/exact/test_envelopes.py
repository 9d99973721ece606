"""Envelopes of quadratic losses: nowhere below the density, with the masses that they say, whichever is drawn from."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import kngjax as kng
from kngjax.chains.exact.envelopes import exponential_product, normal_product
from kngjax.chains.exact.envelopes.base import BaseMeasureEnvelope
from kngjax.chains.exact.envelopes.exponential_product import ExponentialProduct
from kngjax.chains.exact.envelopes.normal_product import NormalProduct
from kngjax.chains.exact.envelopes.tilted import TiltedInverse, tilted_law, tilted_log_mass
from kngjax.chains.quadratic import quadratic_form
from kngjax.geometry import segments, tilts
from kngjax.geometry.tilts import num_uniforms
from tests.oracles.goodness_of_fit import assert_mean_within, assert_same_law, assert_two_samples_agree

NUM_PROPOSALS = 40_000
DOMAINS = {"l1_ball": kng.L1Ball(1.0), "l2_ball": kng.L2Ball(0.8), "box": kng.Box(-0.4, 0.6)}
NORMS = {
    "default": lambda d: None,
    "l1": lambda d: kng.L1(),
    "l2": lambda d: kng.L2(),
    "ellipsoid": lambda d: kng.Ellipsoid(np.eye(d) + 0.5),
}
ENVELOPES = ["base", "inverse", "tilted", "product"]


def regression(kind, norm, domain, d=3, n=60, epsilon=3.0, shift=0.0, seed=0):
    """A mechanism and data with correlated features, at the crossover where every envelope accepts some."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (n, d - 1))
    x[:, 1:] = 0.7 * x[:, :1] + 0.3 * x[:, 1:]
    y = np.clip(shift + 0.5 * x.sum(axis=1) + 0.3 * random.standard_normal(n), -1.0, 1.0)
    parts = (kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), DOMAINS[domain], epsilon, "replace")
    mechanism = kng.ExponentialMechanism(*parts) if kind == "exponential" else kng.KNG(*parts, norm=NORMS[norm](d))
    return mechanism, mechanism.prepare(x, y)


@jax.jit
def menu(target):
    """All envelopes of a target."""
    form, wanted = quadratic_form(target), jnp.asarray(True)
    product = ExponentialProduct if target.norm is not None else NormalProduct
    return form, {
        "base": BaseMeasureEnvelope.of(target),
        "inverse": TiltedInverse.of(target, form),
        "tilted": TiltedInverse.fit(target, form, wanted),
        "product": product.fit(target, form, wanted),
    }


@jax.jit
def proposals(target, key):
    """Of each envelope, with their log masses."""
    form, envelopes = menu(target)
    shape = (NUM_PROPOSALS, num_uniforms(target.dimension))
    made = {}
    for number, (name, envelope) in enumerate(envelopes.items()):
        key_one, key_two = jax.random.split(jax.random.fold_in(key, number))
        made[name] = envelope.propose(target, form, key_one, jax.random.uniform(key_two, shape)), envelope.log_mass
    return made


CASES = [
    *[("kng", norm, domain) for norm in NORMS for domain in DOMAINS if norm == "default" or domain == "l1_ball"],
    *[("exponential", "default", domain) for domain in DOMAINS],
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "norm", "domain"), CASES)
def test_envelopes_agree_on_the_integral_of_the_density_and_on_its_law(kind, norm, domain):
    """Acceptance times mass is ∫f whatever the envelope, and what is accepted has one law."""
    mechanism, data = regression(kind, norm, domain, shift=0.45)
    made = proposals(mechanism.target(data), kng.research_key(3))
    integrals, errors, accepted = {}, {}, {}
    uniform = np.random.default_rng(5).uniform(size=NUM_PROPOSALS)
    for name, ((theta, log_acceptance), log_mass) in made.items():
        assert np.max(log_acceptance) <= 0.0
        assert np.isfinite(log_mass)
        weights = np.exp(log_acceptance) * np.exp(log_mass)
        integrals[name], errors[name] = weights.mean(), weights.std() / np.sqrt(NUM_PROPOSALS)
        accepted[name] = np.asarray(theta)[np.log(uniform) < log_acceptance]
        assert len(accepted[name]) > 100
    for name in ENVELOPES[:-1]:
        # The product accepts the most at the crossover, and is the reference.
        assert abs(integrals[name] - integrals["product"]) < 5.3 * np.hypot(errors[name], errors["product"])
        for coordinate in range(3):
            assert_two_samples_agree(accepted[name][:, coordinate], accepted["product"][:, coordinate])
        assert_two_samples_agree(np.abs(accepted[name]).sum(axis=1), np.abs(accepted["product"]).sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "norm"),
    [("kng", "default"), ("kng", "l2"), ("exponential", "default")],
)
def test_the_integral_is_that_of_quadrature(kind, norm):
    """∫f by a product rule over the box, in two dimensions, against every mass times its acceptance."""
    mechanism, data = regression(kind, norm, "box", d=2, shift=0.45)
    target = mechanism.target(data)
    edges = np.linspace(-0.4, 0.6, 801)
    middles = 0.5 * (edges[1:] + edges[:-1])
    grid = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    gram, moment = np.asarray(data.gram), np.asarray(data.moment)
    if kind == "kng":
        scores = np.asarray(jax.vmap(target.norm)(jnp.asarray(grid @ gram - moment)))
    else:
        steps = grid - np.linalg.solve(gram, moment)
        scores = 0.5 * np.sum(steps @ gram * steps, axis=1)
    integral = np.exp(-float(target.rate) * scores).sum() * (edges[1] - edges[0]) ** 2
    for (_, log_acceptance), log_mass in proposals(target, kng.research_key(4)).values():
        assert_mean_within(np.exp(log_acceptance) * np.exp(log_mass), integral)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["default", "l1", "l2"])
def test_the_product_is_above_the_density_in_every_direction(norm):
    """-c‖y‖ ≤ the log-factors without their pull, which both are homogeneous: along rays, and at the ball's corners."""
    mechanism, data = regression("kng", norm, "l1_ball", d=4, shift=0.45)
    target = mechanism.target(data)
    form, envelopes = menu(target)
    shape = envelopes["product"].shape._replace(pull=jnp.zeros(()))
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    rays = np.concatenate([corners, np.eye(4), -np.eye(4), np.random.default_rng(0).standard_normal((2000, 4))])
    theta = form.points(jnp.asarray(rays))
    factors = np.sum(exponential_product.log_factors(form, shape, theta), axis=1)
    scores = float(target.rate) * np.asarray(jax.vmap(form.norm)(jnp.asarray(rays)))
    assert np.all(factors >= -scores)
    # And not by much: the budget is spent.
    assert np.max(-factors / scores) > 0.7


@pytest.mark.slow
def test_fits_gain_and_are_not_made_unless_wanted():
    """θ̂ outside of Θ: a tilt is better than none; the product is better than both at the crossover."""
    mechanism, data = regression("kng", "default", "l1_ball", d=12, n=700, epsilon=1.0, shift=0.0)
    far = eqx.tree_at(lambda data: data.moment, data, 2.0 * np.asarray(data.moment))
    _, envelopes = menu(mechanism.target(far))
    assert envelopes["tilted"].log_mass < envelopes["inverse"].log_mass - 1.0
    form, envelopes = menu(mechanism.target(data))
    assert envelopes["product"].log_mass < min(envelopes["inverse"].log_mass, envelopes["base"].log_mass)

    @jax.jit
    def fits(target, form, wanted):
        return ExponentialProduct.fit(target, form, wanted), TiltedInverse.fit(target, form, wanted)

    product, unwanted = fits(mechanism.target(data), form, jnp.asarray(False))
    assert np.isinf(product.log_mass)
    np.testing.assert_array_equal(unwanted.direction, 0.0)
    np.testing.assert_allclose(unwanted.log_mass, envelopes["inverse"].log_mass, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0, 1e-9, 0.2, 0.95])
@pytest.mark.parametrize("dimension", [1, 2])
def test_tilted_masses_are_those_of_quadrature(dimension, scale):
    """∫exp(-c‖y‖ - h'y) dy for ‖h‖_* = scale·c."""
    rate, direction = 1.3, np.array([1.0, -0.6])[:dimension]
    for norm in (kng.LInf(), kng.L1(), kng.L2(), None):
        size = 1.0 if norm is None else float(norm.dual(direction))
        tilt = scale * rate * direction / size

        def density(*y, norm=norm, tilt=tilt):
            y = np.array(y)
            if norm is None:
                return np.exp(-0.5 * rate * y @ y - tilt @ y)
            order = {"LInf": np.inf, "L1": 1, "L2": 2}[type(norm).__name__]
            return np.exp(-rate * np.linalg.norm(y, order) - tilt @ y)

        if dimension == 1:
            expected = integrate.quad(density, -400, 0)[0] + integrate.quad(density, 0, 400)[0]
        elif scale == 0.95:
            continue  # tails too long for the product rule; the noise below is checked there
        else:
            lattice = np.linspace(-40.0, 40.0, 1601)
            weights = np.array([[density(a, b) for b in lattice[::4]] for a in lattice[::4]])
            expected = integrate.simpson(integrate.simpson(weights, x=lattice[::4]), x=lattice[::4])
        tolerance = 0.05 if isinstance(norm, kng.LInf) else 2e-2 if dimension == 2 else 1e-6
        found = tilted_log_mass(norm, jnp.asarray(rate), jnp.asarray(tilt))
        np.testing.assert_allclose(found, np.log(expected), atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("tilts", [[0.0, 0.0, 0.0], [0.4, -0.5, 0.05], [0.0, 0.0, 0.97]])
@pytest.mark.parametrize("norm", [kng.LInf(), kng.L1(), kng.L2(), None], ids=["linf", "l1", "l2", "normal"])
def test_tilted_noise_is_plain_noise_with_weights(norm, tilts):
    """The mean of e^{h'y} under tilted noise is the ratio of the masses, as are the means of e^{h'y}·|y_1| ∧ 1."""
    rate, tilt, count = jnp.asarray(1.0), 0.5 * jnp.asarray(tilts), 200_000
    uniforms = jax.random.uniform(kng.research_key(6), (2, count, 8))
    results = []

    @jax.jit
    def noise(slope, one):
        law = tilted_law(norm, rate, slope)
        return *law.draw(one), law.log_mass

    for slope, one in ((jnp.zeros(3), uniforms[0]), (tilt, uniforms[1])):
        y, log_ratios, mass = noise(slope, one)
        assert np.max(log_ratios) <= 0.0
        # Each weight's mean is an integral against the untilted density, over its own bounded region.
        weights = np.exp(log_ratios + mass + y @ slope) * (np.abs(y).max(axis=1) < 2.0)
        results.append([weights, weights * (y[:, 0] > 0.5), weights * (np.abs(y[:, 2]) < 0.5)])
    for plain, tilted in zip(*results, strict=True):
        error = np.hypot(plain.std(), tilted.std()) / np.sqrt(count)
        assert abs(plain.mean() - tilted.mean()) < 5.3 * error
    assert np.mean(results[1][0]) > 0.0


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("tilt", [[0.0, 0.3, 0.69], [0.0], [1e-9] * 30], ids=["three", "none", "thirty"])
def test_tangents_lie_above_the_density_of_the_level(tilt):
    h = jnp.asarray(tilt)
    law = jax.jit(tilts.level_law)(jnp.asarray(1.0), h)
    heights, slopes, anchors = (np.asarray(part)[:, None] for part in (law.heights, law.slopes, law.anchors))
    at = np.linspace(-12.0, 8.0, 4001)
    density = np.asarray(tilts.level_log_density(jnp.asarray(at), jnp.asarray(1.0), h))
    assert np.all(density <= np.min(heights + slopes * (at[None] - anchors), axis=0) + 1e-9 * (1.0 + np.abs(density)))
    excess = np.exp(special.logsumexp(law.log_masses)) / integrate.simpson(np.exp(density), x=at)
    assert 1.0 <= excess < 1.05
    # Draws from tangents are accepted as often as their mass says, and have the law then.
    uniforms = jax.random.uniform(kng.research_key(9), (2000, 3))
    levels, log_ratios = jax.jit(tilts.draw_levels)(law, jnp.asarray(1.0), h, uniforms[:, :2])
    assert np.max(log_ratios) <= 0.0
    assert_mean_within(np.exp(log_ratios), 1.0 / excess)
    kept = np.asarray(levels)[np.log(uniforms[:, 2]) < log_ratios]
    sums = integrate.cumulative_simpson(np.exp(density), x=at, initial=0.0)
    assert_same_law(np.log(kept), lambda value: np.interp(value, at, sums / sums[-1]))


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "length"), [(0.0, 2.0), (1e-14, 1.0), (3.0, 0.5), (2.0, np.inf), (40.0, 7.0)])
def test_segments_are_truncated_exponentials(rate, length):
    mass = length if rate == 0 else float(-np.expm1(-rate * length) / rate)
    np.testing.assert_allclose(
        segments.log_mass(jnp.asarray(rate), jnp.asarray(length)), np.log(mass), rtol=1e-12, atol=1e-12
    )
    uniforms = jax.random.uniform(kng.research_key(7), (4000,))
    draws = segments.distance(uniforms, jnp.full(4000, rate), jnp.full(4000, length))
    law = stats.uniform(0.0, length) if rate < 1e-12 else stats.truncexpon(rate * length, scale=1.0 / rate)
    if np.isinf(length):
        law = stats.expon(scale=1.0 / rate)
    assert_same_law(draws, law.cdf)
    assert np.isneginf(segments.log_mass(jnp.asarray(rate), jnp.asarray(0.0)))


@pytest.mark.default_cases("-3.0-7.0", "9.0-0.05")
@pytest.mark.parametrize(
    ("near", "length"), [(-3.0, 7.0), (-0.1, 0.3), (2.0, 1.0), (5.9, 50.0), (9.0, 0.05), (45.0, 3.0)]
)
def test_normal_pieces_are_truncated_normals(near, length):
    uniforms = jax.random.uniform(kng.research_key(8), (2, 6000))
    ends, lengths = jnp.full(6000, near), jnp.full(6000, length)
    log_mass = jax.jit(normal_product._log_mass)(ends, lengths)[0]
    draws, log_ratios = jax.jit(normal_product._draw)(uniforms[0], ends, lengths)
    assert np.max(log_ratios) <= 0.0
    scaled = integrate.quad(lambda x: np.exp(-0.5 * x * x - near * x), 0.0, float(length), epsabs=0.0)[0]
    exact = np.log(scaled) - 0.5 * float(near) ** 2
    ratio = np.exp(exact - float(log_mass))
    if near > normal_product.FAR:
        assert_mean_within(np.exp(log_ratios), ratio)
    else:
        np.testing.assert_allclose(ratio, 1.0, rtol=1e-9)
    kept = np.asarray(draws)[np.log(uniforms[1]) < log_ratios]
    steps = (kept - float(near))[:4000]

    def cdf(step):
        lattice = np.linspace(0.0, min(float(length), 40.0 / (1.0 + abs(float(near)))), 20_001)
        density = np.exp(-0.5 * lattice**2 - float(near) * lattice)
        sums = integrate.cumulative_trapezoid(density, lattice, initial=0.0)
        return np.interp(step, lattice, sums / sums[-1])

    assert_same_law(steps, cdf)


@pytest.mark.slow
def test_a_product_is_scaled_down_for_the_rounding_of_an_ill_conditioned_inverse():
    mechanism, data = regression("kng", "default", "l1_ball", d=3)
    gram = np.diag([1.0, 1e-5, 1e5]) @ np.asarray(data.gram) @ np.diag([1.0, 1e-5, 1e5])
    ill = eqx.tree_at(lambda data: data.gram, data, gram + 0.0)
    form, envelopes = menu(mechanism.target(ill))
    if bool(form.sound):
        for (_, log_acceptance), log_mass in proposals(mechanism.target(ill), kng.research_key(9)).values():
            assert np.max(log_acceptance) <= 0.0 or np.isinf(log_mass)
    singular = eqx.tree_at(lambda data: data.gram, data, np.ones((3, 3)))
    form, envelopes = menu(mechanism.target(singular))
    assert not bool(form.sound)
    assert all(np.isinf(envelopes[name].log_mass) for name in ENVELOPES[1:])
    assert np.isfinite(envelopes["base"].log_mass)
