"""Private IRLS: its limit without noise, its noise by hand, what one record can do to a moment, and what it refuses."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.mechanisms.noise import matrix_noise
from kngjax.mechanisms.noise.matrix_noise import EXTRA_DEGREES
from kngjax.releases import chains
from kngjax.sensitivity import moments
from tests.oracles.goodness_of_fit import assert_same_law

SIDE = np.ones(2)
QUICK_NOISES = [("laplace", "laplace", 4), ("gaussian", "laplace", 60)]
BOUNDS = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0))
X_RADIUS, ABSOLUTE, RESPONSE = np.sqrt(3.0), 3.0, 2.0
EPSILON, DELTA = 0.8, 1e-6


def irls(**changes):
    settings = {
        "bounds": BOUNDS,
        "epsilon": EPSILON,
        "delta": DELTA,
        "adjacency": "replace",
        "iterations": 4,
        "cap": 5.0,
    }
    return kng.PrivateIRLS(**{**settings, **changes})


def table(count=400, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (count, 2))
    return x, np.clip(0.2 + x @ [0.7, -0.4] + 0.3 * generator.laplace(size=count), -2.0, 2.0)


def without_noise(**changes):
    return irls(epsilon=1e40, allow_large_epsilon=True, **changes)


def value(mechanism, x, y):
    data = mechanism.prepare(x, y)
    return kng.sample(mechanism, data, key=kng.research_key(0), num_draws=1, num_chains=1).theta[0, 0]


@pytest.mark.slow
def test_without_noise_it_is_least_absolute_deviations():
    """Against statsmodels' median regression."""
    regression = pytest.importorskip("statsmodels.regression.quantile_regression")
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    expected = regression.QuantReg(y, design).fit(0.5, p_tol=1e-13, max_iter=100_000).params
    found = value(without_noise(cap=1e9, iterations=400), x, y)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
def test_without_noise_other_powers_minimise_their_loss():
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    found = value(without_noise(cap=1e9, iterations=200, power=1.5), x, y)
    fit = optimize.minimize(lambda theta: np.sum(np.abs(y - design @ theta) ** 1.5), found + 0.1, tol=1e-14)
    np.testing.assert_allclose(found, fit.x, atol=1e-5)


@pytest.mark.slow
def test_the_first_iterate_is_least_squares():
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(value(without_noise(iterations=1), x, y), expected, rtol=1e-9)


@pytest.mark.slow
def test_blocks_of_rows_change_nothing(monkeypatch):
    x, y = table(1000)
    whole = value(without_noise(), x, y)
    monkeypatch.setattr("kngjax.mechanisms.irls._ROWS", 64)
    chains.compiled_independent_draws.plain.clear_cache()
    np.testing.assert_allclose(value(without_noise(), x, y), whole, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_record_moves_a_weighted_moment_more(adjacency):
    """All at the largest weight, at corners: every bound is held, and those in the l1 norm are attained."""
    generator = np.random.default_rng(1)
    l1_matrix, l1_moment = (float(part) for part in moments.absolute_moment_changes(BOUNDS, adjacency, 3))
    changes = {kind: irls(moment_noise=kind, matrix_noise=kind, adjacency=adjacency).changes(3) for kind in
               ("gaussian", "laplace")}  # fmt: skip
    np.testing.assert_allclose(changes["laplace"], [5.0 * l1_moment, 5.0 * l1_matrix])
    found = {"gaussian": ([], []), "laplace": ([], [])}
    rows = np.triu_indices(3)
    for _ in range(3000):
        x, z = (np.append(1.0, generator.choice([-1.0, 1.0], 2)) for _ in range(2))
        y, w = generator.choice([-2.0, 2.0], 2)
        first, second = generator.uniform(0.0, 5.0, 2) if generator.random() < 0.3 else (5.0, 5.0)
        second *= adjacency is Adjacency.REPLACE
        vector = first * x * y - second * z * w
        matrix = first * np.outer(x, x) - second * np.outer(z, z)
        found["gaussian"][0].append(np.linalg.norm(vector))
        found["gaussian"][1].append(np.linalg.norm(matrix))
        found["laplace"][0].append(np.abs(vector).sum())
        found["laplace"][1].append(np.abs(matrix[rows]).sum())
    for kind, parts in found.items():
        for change, values in zip(changes[kind], parts, strict=True):
            assert max(values) <= float(change) * (1.0 + 1e-12)
    assert max(found["laplace"][0]) > 0.99 * float(changes["laplace"][0])
    assert max(found["gaussian"][0]) > 0.99 * float(changes["gaussian"][0])


def epsilon_of_rho(rho, delta):
    """ε of ρ-zCDP at δ by the best Rényi order, by SciPy."""

    def epsilon(log_order):
        alpha = 1.0 + np.exp(log_order)
        return rho * alpha + (np.log(1.0 / (alpha * delta)) + (alpha - 1.0) * np.log1p(-1.0 / alpha)) / (alpha - 1.0)

    return optimize.minimize_scalar(epsilon, bounds=(-8.0, 12.0), method="bounded").fun


def rho_of(epsilon, delta):
    """The largest ρ that is (ε, δ)-DP by the best Rényi order."""
    return optimize.brentq(lambda rho: epsilon_of_rho(rho, delta) - epsilon, 1e-8, 10.0, xtol=1e-14)


def delta_of_shift(shift, epsilon):
    """δ at ε of a shift of N(0, 1), by SciPy (Balle and Wang 2018, Theorem 8)."""
    first, second = stats.norm.cdf(np.array([0.5, -0.5]) * shift - epsilon / shift)
    return first - np.exp(epsilon) * second


def shift_of(epsilon, delta):
    """The shift of N(0, 1) that is (ε, δ)-DP."""
    return optimize.brentq(lambda shift: delta_of_shift(shift, epsilon) - delta, 1e-4, 10.0, xtol=1e-14)


# What `noise` leaves of the budget for rounding.
LEFT = 1.0 - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "times"), [("replace", 2.0), ("add_remove", 1.0)])
def test_the_noise_of_a_zcdp_budget_by_hand(adjacency, times):
    """Gaussian parts are together as one; Laplace parts spend Σε where they are few and Σρ where they are many."""
    vector, matrix = times * 5.0 * X_RADIUS * RESPONSE, {1.0: 1.0, 2.0: np.sqrt(2.0)}[times] * 5.0 * 3.0
    shift = shift_of(EPSILON, DELTA) / np.sqrt(2 * 4)
    np.testing.assert_allclose(irls(adjacency=adjacency).noise_scales(3), [vector / shift, matrix / shift], rtol=1e-7)
    uneven = irls(adjacency=adjacency, moment_share=0.75).noise_scales(3)
    np.testing.assert_allclose(uneven, [vector / shift / np.sqrt(1.5), matrix / shift / np.sqrt(0.5)], rtol=1e-7)
    vector, matrix = times * 5.0 * ABSOLUTE * RESPONSE, times * 5.0 * 0.5 * (9.0 + 3.0)
    for iterations, each in ((4, EPSILON / 8 * LEFT), (50, np.sqrt(2.0 * rho_of(EPSILON, DELTA) / 100))):
        both = irls(adjacency=adjacency, moment_noise="laplace", matrix_noise="laplace", iterations=iterations)
        np.testing.assert_allclose(both.noise_scales(3), [vector / each, matrix / each], rtol=1e-4)
    each = np.sqrt(2.0 * rho_of(EPSILON, DELTA) / 100)
    mixed = irls(adjacency=adjacency, moment_noise="laplace", iterations=50).noise_scales(3)
    np.testing.assert_allclose(mixed.moment, vector / each, rtol=1e-4)


def test_the_noise_of_basic_composition_by_hand():
    pure = irls(accounting="basic", delta=None, moment_noise="laplace", matrix_noise="laplace")
    by_hand = np.array([2 * 5 * 3 * 2 * 8 / EPSILON, 2 * 5 * 6 * 8 / EPSILON]) / LEFT
    np.testing.assert_allclose(pure.noise_scales(3), by_hand, rtol=1e-14)
    assert (pure.guarantee.epsilon, pure.guarantee.delta) == (EPSILON, 0.0)
    np.testing.assert_allclose(pure.guarantee.rho, 8 * (EPSILON / 8) ** 2 / 2, rtol=1e-11)
    mixed = irls(accounting="basic", moment_noise="laplace").noise_scales(3)
    shift = np.sqrt(2.0) * 5.0 * 3.0 / float(mixed.matrix)
    np.testing.assert_allclose(shift, shift_of(EPSILON / 8.0, DELTA / 4.0), rtol=1e-7)


@pytest.mark.slow
def test_the_noise_of_basic_composition_of_gaussian_parts_by_hand():
    both = irls(accounting="basic").noise_scales(3)
    shifts = [2.0 * 5.0 * X_RADIUS * RESPONSE / float(both.moment), np.sqrt(2.0) * 5.0 * 3.0 / float(both.matrix)]
    np.testing.assert_allclose(shifts, shift_of(EPSILON / 8.0, DELTA / 8.0), rtol=1e-7)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("adjacency", "accounting"),
    [
        (Adjacency.REPLACE, "basic"),
        (Adjacency.ADD_REMOVE, "advanced"),
        (Adjacency.REPLACE, "advanced"),
        (Adjacency.ADD_REMOVE, "basic"),
    ],
)
def test_the_scale_of_wishart_noise_by_hand(adjacency, accounting):
    """Each part's δ at its ε by the profile of a removal; an exchange is a removal and an addition of half the ε."""
    iterations = {"basic": 4, "advanced": 50}[accounting]
    mechanism = irls(accounting=accounting, adjacency=adjacency, matrix_noise="wishart", iterations=iterations)
    noise = mechanism.noise_scales(3)
    shift = 5.0 * X_RADIUS * RESPONSE * (2.0 if adjacency is Adjacency.REPLACE else 1.0) / float(noise.moment)
    parts = {"basic": 1.0, "advanced": 0.5}[accounting] * DELTA / (2 * iterations)
    each = optimize.brentq(lambda epsilon: delta_of_shift(shift, epsilon) - parts, 1e-6, 5.0, xtol=1e-14)
    if accounting == "basic":
        np.testing.assert_allclose(each, EPSILON / 8.0, rtol=1e-6)
    if adjacency is Adjacency.REPLACE:
        each, parts = each / 2.0, parts / (1.0 + np.exp(each / 2.0))
    degrees = 3 + 1 + EXTRA_DEGREES
    profile = jax.jit(matrix_noise.wishart_log_delta, static_argnums=(2, 3))
    log_delta = float(profile(each, 5.0 * 3.0, 3, degrees, noise.matrix))
    np.testing.assert_allclose(np.exp(log_delta), parts, rtol=1e-4)


@jax.jit
def moments_of(mechanism, is_first, data):
    return mechanism._moments(jnp.zeros(3), is_first, data)


@pytest.mark.parametrize("power", [1.0, 1.5, 1.9])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_weight_is_above_the_cap(power, is_first):
    """A record on the plane has the largest weight, κ^{2-p}, and one far from it a small one."""
    mechanism = irls(power=power)
    alone = mechanism.prepare(np.ones((1, 2)), np.zeros(1))
    _, matrix = moments_of(mechanism, jnp.asarray(is_first), alone)
    np.testing.assert_allclose(matrix[0, 0], 5.0 ** (2.0 - power), rtol=1e-12)
    np.testing.assert_allclose(mechanism.changes(3)[1] / irls().changes(3)[1], 5.0 ** (1.0 - power), rtol=1e-12)
    far = mechanism.prepare(np.ones((1, 2)), np.full(1, 2.0))
    _, matrix = moments_of(mechanism, jnp.asarray(False), far)
    np.testing.assert_allclose(matrix[0, 0], 2.0 ** (power - 2.0), rtol=1e-12)


def laws(kind, noise, degrees):
    """SciPy's laws of an entry on the diagonal, of a vector, and of an entry off the diagonal."""
    if kind == "gaussian":
        return stats.norm(scale=noise), stats.norm(scale=noise / np.sqrt(2.0))
    if kind == "laplace":
        return stats.laplace(scale=noise), stats.laplace(scale=noise)
    # ZZ' less its mean; off the diagonal the difference of two such with k degrees of freedom each, halved.
    return stats.chi2(degrees, loc=-degrees * noise, scale=noise), None


@pytest.mark.slow
@pytest.mark.parametrize(("vector", "kind"), [("gaussian", "gaussian"), ("laplace", "laplace"), ("laplace", "wishart")])
def test_every_iteration_has_noise_of_its_own(vector, kind):
    """Laws of all that is drawn, by SciPy, and no correlation between iterations, or of a vector with a matrix."""
    accounting = "basic" if kind == "wishart" else "zcdp"
    bounds = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0), intercept=False)
    kinds = {"moment_noise": vector, "matrix_noise": kind, "accounting": accounting}
    mechanism = irls(bounds=bounds, iterations=3, epsilon=3.0, **kinds)
    noise, count, degrees = mechanism.noise_scales(2), 4000, 3 + EXTRA_DEGREES
    draw = jax.jit(lambda keys: jax.lax.map(lambda key: mechanism._noises(mechanism.noise_scales(2), key, 2), keys))
    vectors, matrices = (np.asarray(part) for part in draw(jax.random.split(kng.research_key(5), count)))
    np.testing.assert_allclose(matrices, np.swapaxes(matrices, -1, -2), atol=1e-12 * float(noise.matrix))
    on_diagonal, off_diagonal = laws(kind, float(noise.matrix), degrees)
    of_vector, _ = laws(vector, float(noise.moment), degrees)
    for step in range(3):
        for place in range(2):
            assert_same_law(vectors[:, step, place], of_vector.cdf)
            assert_same_law(matrices[:, step, place, place], on_diagonal.cdf)
        if off_diagonal is not None:
            assert_same_law(matrices[:, step, 0, 1], off_diagonal.cdf)
        else:
            np.testing.assert_allclose(matrices[:, step, 0, 1].std(), float(noise.matrix) * np.sqrt(degrees), rtol=0.08)
    entries = np.concatenate(
        [vectors.reshape(count, -1), matrices.reshape(count, 3, 4)[:, :, [0, 1, 3]].reshape(count, -1)], 1
    )
    correlations = np.corrcoef(entries.T) - np.eye(entries.shape[1])
    assert np.max(np.abs(correlations)) < 6.0 / np.sqrt(count)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("vector", "kind"), [("gaussian", "gaussian"), ("laplace", "laplace"), ("laplace", "wishart")])
def test_every_iteration_uses_its_noise(vector, kind):
    """Where all x are 0 the last iterate is made of the last iteration's noise alone: against NumPy's noise."""
    accounting = "basic" if kind == "wishart" else "zcdp"
    bounds = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0), intercept=False)
    kinds = {"moment_noise": vector, "matrix_noise": kind, "accounting": accounting}
    mechanism = irls(bounds=bounds, iterations=3, epsilon=3.0, **kinds)
    data = mechanism.prepare(np.zeros((4, 2)), np.ones(4))
    found = kng.sample(mechanism, data, key=kng.research_key(6), num_draws=4000, num_chains=1).theta[0]
    noise, generator, degrees = mechanism.noise_scales(2), np.random.default_rng(7), 3 + EXTRA_DEGREES
    size, count = float(noise.matrix), 20_000
    if kind == "gaussian":
        upper = generator.normal(size=(count, 3)) * np.array([1.0, np.sqrt(0.5), 1.0]) * size
    elif kind == "laplace":
        upper = generator.laplace(size=(count, 3)) * size
    else:
        normals = generator.normal(size=(count, 2, degrees))
        products = (normals @ normals.transpose(0, 2, 1) - degrees * np.eye(2)) * size
        upper = products[:, [0, 0, 1], [0, 1, 1]]
    values, directions = np.linalg.eigh(upper[:, [[0, 1], [1, 2]]])
    floor = size * {"gaussian": 1.0, "laplace": 2.0, "wishart": np.sqrt(2.0 * degrees)}[kind] * np.sqrt(4.0)
    draws = generator.normal(size=(count, 2)) if vector == "gaussian" else generator.laplace(size=(count, 2))
    along = np.einsum("nij,ni->nj", directions, draws) * float(noise.moment) / np.maximum(values, floor)
    expected = np.einsum("nij,nj->ni", directions, along)
    for one, other in zip(found.T, expected.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-6


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_the_noise_of_advanced_composition_by_hand(share):
    """Kairouz, Oh and Viswanath's formula for a hundred parts; for eight, basic composition says more."""
    settings = {"accounting": "advanced", "moment_noise": "laplace", "iterations": 50, "moment_share": share}
    noise = irls(**settings).noise_scales(3)
    one = 2 * 5 * 3 * 2 / float(noise.moment)
    other = one * (1.0 - share) / share
    squares, means = 50 * (one**2 + other**2), 50 * (one * np.tanh(one / 2) + other * np.tanh(other / 2))
    total = np.sqrt(2 * np.log(2.0 / DELTA) * squares) + means
    np.testing.assert_allclose(total, EPSILON, rtol=1e-9)
    assert total <= EPSILON
    shift = np.sqrt(2.0) * 5.0 * 3.0 / float(noise.matrix)
    np.testing.assert_allclose(shift, shift_of(other, DELTA / 2 / 50), rtol=1e-7)


@pytest.mark.slow
def test_advanced_composition_is_no_worse_for_pure_parts_and_for_few():
    settings = {"accounting": "advanced", "moment_noise": "laplace", "iterations": 50}
    noise = irls(**settings).noise_scales(3)
    both = irls(**settings, matrix_noise="laplace").noise_scales(3)
    assert float(both.moment) < 0.99 * float(noise.moment)
    few = irls(accounting="advanced", moment_noise="laplace").noise_scales(3)
    np.testing.assert_array_equal(few, irls(accounting="basic", moment_noise="laplace").noise_scales(3))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("accounting", "moment_noise", "matrix_noise", "iterations"),
    [
        pytest.param(*case, marks=[] if case[0] == "zcdp" or case[1:] in QUICK_NOISES else pytest.mark.slow)
        for case in itertools.product(
            ["zcdp", "basic", "advanced"], ["gaussian", "laplace"], ["gaussian", "laplace"], [4, 60]
        )
    ],
)
def test_the_guarantee_is_that_of_the_noise(accounting, moment_noise, matrix_noise, iterations):
    """From the noise itself, composed by SciPy's formulas: never above what is claimed, and near it under "zcdp"."""
    is_pure = (accounting, moment_noise, matrix_noise) == ("basic", "laplace", "laplace")
    delta = None if is_pure else DELTA
    kinds = {"moment_noise": moment_noise, "matrix_noise": matrix_noise}
    mechanism = irls(accounting=accounting, delta=delta, iterations=iterations, moment_share=0.4, **kinds)
    spent = [float(change / size) for change, size in zip(mechanism.changes(3), mechanism.noise_scales(3), strict=True)]
    kinds = (moment_noise, matrix_noise)
    shift = np.sqrt(iterations * sum(part**2 for part, kind in zip(spent, kinds, strict=True) if kind == "gaussian"))
    loss = iterations * sum(part for part, kind in zip(spent, kinds, strict=True) if kind == "laplace")
    guarantee = mechanism.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (EPSILON, 0.0 if is_pure else DELTA)
    rho = iterations * sum(part**2 for part in spent) / 2
    np.testing.assert_allclose(guarantee.rho, rho, rtol=1e-9)
    by_sums = loss
    if shift > 0.0:
        by_sums += optimize.brentq(lambda epsilon: delta_of_shift(shift, epsilon) - DELTA, 0.0, 9.0)
    by_rho = epsilon_of_rho(rho, DELTA)
    found = guarantee.at(delta=DELTA)
    np.testing.assert_allclose(found, min(by_sums, by_rho), rtol=1e-4)
    assert found <= EPSILON
    if accounting == "zcdp":
        assert found > (0.99 if moment_noise == matrix_noise else 0.8) * EPSILON
    if shift == 0.0:
        np.testing.assert_allclose(guarantee.at(delta=0.0), loss, rtol=1e-9)


def test_more_budget_is_less_noise_and_zcdp_the_least():
    assert irls(epsilon=1.6).noise_scales(3).matrix < irls().noise_scales(3).matrix
    assert irls().noise_scales(3).matrix < 0.5 * irls(accounting="basic").noise_scales(3).matrix
    assert irls(moment_share=0.9).noise_scales(3).moment < irls().noise_scales(3).moment


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_noise_of_a_vector_is_drawn_as_planned(kind):
    """Where all responses are 0 the vector is noise, and the matrix's noise is a part in 10³ of so many records."""
    mechanism = irls(iterations=1, moment_noise=kind, cap=1.0)
    data = mechanism.prepare(table(200_000)[0], np.zeros(200_000))
    thetas = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=1500, num_chains=1).theta[0]
    noise = float(mechanism.noise_scales(3).moment)
    law = {"gaussian": stats.norm(scale=noise), "laplace": stats.laplace(scale=noise)}[kind]
    found = thetas @ (data.x.T @ data.x)
    for coordinate in found.T:
        assert_same_law(coordinate, law.cdf)
    with pytest.raises(AssertionError):
        assert_same_law(2.0 * found[:, 0], law.cdf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repair", "matrix_noise"),
    [
        ("floor", "gaussian"),
        ("floor", "wishart"),
        ("ridge", "laplace"),
        ("floor", "laplace"),
        ("ridge", "gaussian"),
        ("ridge", "wishart"),
    ],
)
def test_it_finds_the_median_regression_of_many(matrix_noise, repair):
    x, y = table(60_000)
    accounting = "basic" if matrix_noise == "wishart" else "zcdp"
    mechanism = irls(matrix_noise=matrix_noise, accounting=accounting, repair=repair, epsilon=5.0)
    np.testing.assert_allclose(value(mechanism, x, y), [0.2, 0.7, -0.4], atol=0.1)


def test_few_records_give_noise_and_no_failure():
    x, y = table(3)
    release = kng.release(irls(), x, y)
    assert np.all(np.isfinite(release.value))
    assert kng.Release.from_json(release.to_json()) == release
    certificate = release.certificate
    assert certificate.epsilon == EPSILON
    assert certificate.delta == pytest.approx(DELTA + certificate.rounding_delta, rel=1e-12)
    assert "iterations" in release.certificate.explain()


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"accounting": "rdp"}, "accounting must be one of"),
        ({"matrix_noise": "wishart"}, "cannot be part of a zCDP budget"),
        ({"delta": None}, "delta is missing"),
        ({"accounting": "basic", "moment_noise": "laplace", "matrix_noise": "laplace"}, "leave delta out"),
        ({"iterations": 0}, "iterations must be"),
        ({"cap": -1.0}, "cap must be positive"),
        ({"power": 2.0}, "power must be"),
        ({"moment_share": 1.0}, "moment_share must be"),
        ({"bounds": kng.Bounds(x=(-SIDE, SIDE))}, "public bounds of the response"),
    ],
    ids=lambda case: "-".join(case) if isinstance(case, dict) else None,
)
def test_what_is_refused(changes, advice):
    with pytest.raises(ValueError, match=advice):
        irls(**changes)
