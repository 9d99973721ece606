"""The K-norm mechanism for means: its density, its noise, what it refuses, and its release."""

import itertools
import json

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

EPSILON, NUM_RECORDS, NUM_DRAWS = 1.5, 8, 6000
LOWER, UPPER = np.array([-1.0, 2.0]), np.array([1.0, 5.0])
WIDTHS = UPPER - LOWER
BOUNDS = kng.Bounds(x=(LOWER, UPPER), intercept=False)
SKEW = np.array([[1.0, -0.6], [-0.6, 2.0]])

# Name: the norm, its gauge in NumPy, and by hand its largest value over the box |v_j| ≤ (2, 3).
NORMS = {
    "default": (None, lambda v: np.max(np.abs(v) / WIDTHS, axis=-1), 1.0),
    "L1": (kng.L1(), lambda v: np.sum(np.abs(v), axis=-1), 5.0),
    "L2": (kng.L2(), lambda v: np.sqrt(np.sum(v**2, axis=-1)), np.sqrt(13.0)),
    "LInf": (kng.LInf(), lambda v: np.max(np.abs(v), axis=-1), 3.0),
    "WeightedLInf": (kng.WeightedLInf(np.array([4.0, 1.0])), lambda v: np.max(np.abs(v) / [4.0, 1.0], axis=-1), 3.0),
    "Ellipsoid": (kng.Ellipsoid(SKEW), lambda v: np.sqrt(np.einsum("...i,ij,...j", v, SKEW, v)), np.sqrt(29.2)),
}
OTHERS = ("default", "L2", "LInf", "WeightedLInf", "Ellipsoid")
every_norm = pytest.mark.parametrize("name", NORMS)


def mechanism_with(name, epsilon=EPSILON):
    return kng.KNormMechanism(BOUNDS, epsilon, "replace", NORMS[name][0])


def records(n=NUM_RECORDS, seed=0):
    return np.random.default_rng(seed).uniform(LOWER, UPPER, (n, 2))


def drawn(mechanism, seed, **settings):
    """Draws of `sample` about the mean, times n: shape (draws, 2)."""
    draws = kng.sample(
        mechanism,
        mechanism.prepare(records()),
        key=kng.research_key(seed),
        num_draws=NUM_DRAWS,
        num_chains=1,
        **settings,
    )
    return NUM_RECORDS * (draws.theta[0] - records().mean(axis=0))


@pytest.mark.slow
@every_norm
def test_the_sensitivity_is_the_largest_change_of_the_sum(name):
    mechanism, (_, gauge, by_hand) = mechanism_with(name), NORMS[name]
    assert mechanism.sensitivity.value == pytest.approx(by_hand, rel=1e-12)
    assert max(gauge(np.array(signs) * WIDTHS) for signs in itertools.product((-1, 1), repeat=2)) == pytest.approx(
        by_hand
    )
    for part in ("sum of the records", "u_j - l_j", "w = (2, 3)", f"longer than {by_hand:.6g}"):
        assert part in mechanism.sensitivity.derivation
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.rho) == (EPSILON, pytest.approx(EPSILON**2 / 2.0))


@pytest.mark.slow
@every_norm
def test_the_density_is_the_closed_form_and_has_mass_one(name):
    mechanism, (_, gauge, change) = mechanism_with(name), NORMS[name]
    data, mean = mechanism.prepare(records()), records().mean(axis=0)
    log_density = jax.jit(jax.vmap(mechanism.log_density, (0, None)))
    thetas = np.random.default_rng(1).normal(mean, 2.0, (50, 2))
    values = np.asarray(log_density(thetas, data))
    expected = -NUM_RECORDS * EPSILON / change * gauge(thetas - mean)
    np.testing.assert_allclose(values - values[0], expected - expected[0], rtol=1e-10, atol=1e-10)
    # Midpoints; beyond 30 scales of the noise there is less than e^-25 of the mass.
    reach = 30.0 * change / (NUM_RECORDS * EPSILON) / min(gauge(np.eye(2)[0]), gauge(np.eye(2)[1]))
    line = reach * (2.0 * (np.arange(600) + 0.5) / 600 - 1.0)
    cells = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2) + mean
    assert np.sum(np.exp(log_density(cells, data))) * (line[1] - line[0]) ** 2 == pytest.approx(1.0, abs=4e-3)


@pytest.mark.slow
@every_norm
def test_it_is_kng_at_twice_the_epsilon(name):
    """A location family needs no factor 2 (Reimherr and Awan 2019, Remark 4.1)."""
    norm = kng.WeightedLInf(WIDTHS) if name == "default" else NORMS[name][0]
    everywhere = kng.KNG(kng.SquaredDistanceLoss(), BOUNDS, kng.Box(-1e6, 1e6), 2.0 * EPSILON, "replace", norm)
    mechanism, thetas = mechanism_with(name), np.random.default_rng(2).normal(0.0, 3.0, (20, 2))
    ours, theirs = (
        jax.jit(jax.vmap(each.log_density, (0, None)))(thetas, each.prepare(records()))
        for each in (mechanism, everywhere)
    )
    np.testing.assert_allclose(ours - theirs, ours[0] - theirs[0], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["L1", *OTHERS])
def test_its_draws_are_those_of_kng_at_twice_the_epsilon(name):
    mechanism = mechanism_with(name)
    norm = kng.WeightedLInf(WIDTHS) if name == "default" else NORMS[name][0]
    wide = kng.KNG(kng.SquaredDistanceLoss(), BOUNDS, kng.Box(-100.0, 100.0), 2.0 * EPSILON, "replace", norm)
    ours, theirs = drawn(mechanism, 3), drawn(wide, 4, sampler=kng.chains.Exact())
    for project in (lambda v: v[:, 0], lambda v: v[:, 1], lambda v: v.sum(axis=1), NORMS[name][1]):
        assert_two_samples_agree(project(ours), project(theirs))


@pytest.mark.default_cases("default", "Ellipsoid")
@every_norm
def test_the_length_of_the_noise_is_a_gamma_variable(name):
    _, gauge, change = NORMS[name]
    assert_same_law(gauge(drawn(mechanism_with(name), 5)), stats.gamma(2, scale=change / EPSILON).cdf)


def test_with_the_l1_norm_it_is_the_laplace_mechanism():
    """Independent Laplace coordinates, all of the scale Σ_j (u_j - l_j)/(nε)."""
    noise = drawn(mechanism_with("L1"), 6)
    uniforms = stats.laplace(scale=5.0 / EPSILON).cdf(noise)
    for coordinate in uniforms.T:
        assert_same_law(coordinate, lambda value: np.clip(value, 0.0, 1.0))
    counts, _, _ = np.histogram2d(*uniforms.T, bins=6, range=[(0.0, 1.0)] * 2)
    assert_cell_frequencies(counts.ravel(), np.full(36, 1.0 / 36.0))


def test_half_of_the_noise_is_noticed():
    _, gauge, change = NORMS["default"]
    lengths = gauge(drawn(mechanism_with("default", 2.0 * EPSILON), 5))
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(lengths, stats.gamma(2, scale=change / EPSILON).cdf)


def test_records_are_clipped_and_the_mean_is_all_that_matters():
    mechanism = mechanism_with("L2")
    far = np.concatenate([records(), [[100.0, -100.0]]])
    clipped = np.concatenate([records(), [[1.0, 2.0]]])
    theta = np.array([0.3, 3.0])
    values = [mechanism.log_density(theta, mechanism.prepare(x)) for x in (far, clipped, clipped[::-1])]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


@pytest.mark.slow
def test_mechanism_and_data_are_arguments_and_can_be_mapped():
    epsilons, thetas = np.array([0.5, 2.0, 8.0]), records(5, seed=1)
    data = [mechanism_with("L2").prepare(records(seed=seed)) for seed in range(3)]
    stacked = jax.tree.map(lambda *parts: np.stack(parts), *data)

    @jax.jit
    @jax.vmap
    def both(epsilon, data):
        mechanism = kng.KNormMechanism(BOUNDS, epsilon, "replace", kng.L2())
        theta, succeeded = kng.draw(mechanism, data, kng.research_key(7))
        return theta, succeeded, jax.vmap(mechanism.log_density, (0, None))(thetas, data)

    @jax.jit
    def alone(mechanism, one):
        drawn = kng.draw(mechanism, one, kng.research_key(7))[0]
        return drawn, jax.vmap(mechanism.log_density, (0, None))(thetas, one)

    drawn_at, succeeded, values = both(epsilons, stacked)
    assert np.all(succeeded)
    for epsilon, one, theta, value in zip(epsilons, data, drawn_at, values, strict=True):
        expected, densities = alone(mechanism_with("L2", epsilon), one)
        np.testing.assert_allclose(expected, theta, rtol=1e-10)
        np.testing.assert_allclose(densities, value, rtol=1e-10)


def test_a_release_is_one_exact_draw_with_a_certificate_that_says_so():
    mechanism = mechanism_with("default")
    release = kng.release(mechanism, records())
    assert release.value.shape == (2,)
    assert kng.Release.from_json(release.to_json()) == release
    certificate = release.certificate
    assert (certificate.exact, certificate.epsilon) == (True, EPSILON)
    assert (certificate.assurance, certificate.delta, certificate.rounding) == ("proved", 0.0, None)
    assert certificate.guarantee == mechanism.guarantee
    assert json.loads(release.to_json())["certificate"]["guarantee"]["kind"] == "pure"
    text = certificate.explain()
    for part in (
        "Mechanism: KNormMechanism.",
        "Proved: this value is one draw from the mechanism's law on a public grid",
        "1.5-differential privacy, and 1.125-zCDP (rho = epsilon^2/2)",
        "w = (2, 3)",
        "K-norm noise",
        "Assumed: CPython and FLINT compute whole numbers and balls as they say, and NumPy and this processor",
        "Settings: KNormMechanism(adjacency='replace', bounds=Bounds(",
    ):
        assert part in text
    assert "Not proved" not in text
    # Nothing in it comes from the data.
    other = kng.release(mechanism, records(seed=9)).certificate
    assert (other, other.explain()) == (certificate, text)
    assert np.all(kng.release(mechanism, records()).value != release.value)


def test_the_released_mean_is_within_its_noise():
    mechanism = kng.KNormMechanism(BOUNDS, 1.0, "replace")
    x = records(100_000)
    # A gamma variable of shape 2 exceeds 25 with probability 4e-10, and |noise_j| ≤ w_j·gamma/n.
    assert np.all(np.abs(kng.release(mechanism, x).value - x.mean(axis=0)) <= 25.0 * WIDTHS / 100_000)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"adjacency": "add_remove"}, r"with add_remove n is private: use adjacency='replace', or KNG"),
        ({"adjacency": None}, "adjacency must be named"),
        ({"bounds": None}, "bounds are missing"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"epsilon": -1.0}, "epsilon must be positive"),
        ({"epsilon": 200.0}, "allow_large_epsilon=True"),
        ({"bounds": kng.Bounds(x=(0.0, 1.0))}, "neither intercept nor response"),
        ({"bounds": kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), intercept=False)}, "neither intercept nor response"),
        ({"norm": kng.WeightedLInf(np.ones(3))}, "the parts disagree about the number of coefficients"),
        (
            {"bounds": kng.Bounds(x=([0.0, 1.0], 1.0), intercept=False)},
            "same lower and upper bound, .* leave the column",
        ),
        ({"bounds": kng.Bounds(x=(1.0, 1.0), intercept=False), "norm": kng.L2()}, "same lower and upper bound"),
    ],
)
def test_what_has_no_proof_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        kng.KNormMechanism(**{"bounds": BOUNDS, "epsilon": 1.0, "adjacency": "replace"} | parts)


@pytest.mark.slow
def test_a_public_column_is_allowed_under_a_norm_that_covers_it():
    bounds = kng.Bounds(x=([0.0, 1.0], 1.0), intercept=False)
    mechanism = kng.KNormMechanism(bounds, 1.0, "replace", kng.L2())
    assert mechanism.sensitivity.value == 1.0
    assert np.all(np.isfinite(kng.release(mechanism, np.full((5, 2), 0.5)).value))
    assert kng.audit.density_ratio(mechanism, num_records=(2,), num_steps=5, resolution=9).passed


def test_data_that_do_not_fit_are_refused():
    mechanism, x = mechanism_with("L1"), records()
    with pytest.raises(ValueError, match="has no response: pass X alone"):
        mechanism.prepare(x, np.zeros(NUM_RECORDS))
    with pytest.raises(ValueError, match="has no response: pass X alone"):
        kng.release(mechanism, x, np.zeros(NUM_RECORDS))
    with pytest.raises(ValueError, match="X is missing"):
        mechanism.prepare()
    with pytest.raises(ValueError, match="the data are empty"):
        mechanism.prepare(x[:0])
    with pytest.raises(ValueError, match=r"X has 1 columns and bounds\.x is for 2"):
        mechanism.prepare(x[:, :1])
    with pytest.raises(ValueError, match="missing, NaN or infinite"):
        mechanism.prepare(np.where(x == x[0, 0], np.nan, x))
    for call in (kng.release, lambda m, x, **k: kng.sample(m, m.prepare(x), key=kng.research_key(0), **k)):
        with pytest.raises(ValueError, match="draws from its own law directly: leave the sampler out"):
            call(mechanism, x, sampler=kng.chains.Exact())
    with pytest.raises(TypeError, match="randomness comes from the operating system"):
        kng.release(mechanism, x, key=kng.research_key(0))


def test_an_open_number_of_columns_has_a_sensitivity_only_if_it_does_not_matter():
    open_bounds = kng.Bounds(x=(-1.0, 1.0), intercept=False)
    assert kng.KNormMechanism(open_bounds, 1.0, "replace").sensitivity.value == 1.0
    with pytest.raises(ValueError, match="sensitivity_for"):
        _ = kng.KNormMechanism(open_bounds, 1.0, "replace", kng.L1()).sensitivity
