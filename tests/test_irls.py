"""Private IRLS: its limit without noise, its noise by hand, what one record can do to a moment, and what it refuses."""

import jax
import numpy as np
import pytest
from scipy import optimize, stats

import kngjax as kng
from kngjax import moments
from kngjax.accounting.guarantees import Adjacency
from tests.goodness_of_fit import assert_same_law

SIDE = np.ones(2)
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


def test_without_noise_it_is_least_absolute_deviations():
    """Against statsmodels' median regression."""
    regression = pytest.importorskip("statsmodels.regression.quantile_regression")
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    expected = regression.QuantReg(y, design).fit(0.5, p_tol=1e-13, max_iter=100_000).params
    found = value(without_noise(cap=1e9, iterations=400), x, y)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_without_noise_other_powers_minimise_their_loss():
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    found = value(without_noise(cap=1e9, iterations=200, power=1.5), x, y)
    fit = optimize.minimize(lambda theta: np.sum(np.abs(y - design @ theta) ** 1.5), found + 0.1, tol=1e-14)
    np.testing.assert_allclose(found, fit.x, atol=1e-5)


def test_the_first_iterate_is_least_squares():
    x, y = table()
    design = np.column_stack([np.ones(len(x)), x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(value(without_noise(iterations=1), x, y), expected, rtol=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, y = table(1000)
    whole = value(without_noise(), x, y)
    monkeypatch.setattr("kngjax.mechanisms.irls._ROWS", 64)
    jax.clear_caches()
    np.testing.assert_allclose(value(without_noise(), x, y), whole, rtol=1e-12)


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


def rho_of(epsilon, delta):
    """The largest ρ that is (ε, δ)-DP by the best Rényi order, by SciPy."""

    def excess(log_order, rho):
        alpha = 1.0 + np.exp(log_order)
        return rho * alpha + (np.log(1.0 / (alpha * delta)) + (alpha - 1.0) * np.log1p(-1.0 / alpha)) / (alpha - 1.0)

    def at(rho):
        best = optimize.minimize_scalar(excess, bounds=(-8.0, 12.0), args=(rho,), method="bounded")
        return best.fun - epsilon

    return optimize.brentq(at, 1e-8, 10.0, xtol=1e-14)


@pytest.mark.parametrize(("adjacency", "times"), [("replace", 2.0), ("add_remove", 1.0)])
def test_the_noise_of_a_zcdp_budget_by_hand(adjacency, times):
    rho = rho_of(EPSILON, DELTA) / (2 * 4)
    gaussian = irls(adjacency=adjacency).noise(3)
    vector, matrix = times * 5.0 * X_RADIUS * RESPONSE, {1.0: 1.0, 2.0: np.sqrt(2.0)}[times] * 5.0 * 3.0
    np.testing.assert_allclose(gaussian, [vector / np.sqrt(2.0 * rho), matrix / np.sqrt(2.0 * rho)], rtol=1e-4)
    laplace = irls(adjacency=adjacency, moment_noise="laplace", matrix_noise="laplace").noise(3)
    vector, matrix = times * 5.0 * ABSOLUTE * RESPONSE, times * 5.0 * 0.5 * (9.0 + 3.0)
    np.testing.assert_allclose(laplace, [vector / np.sqrt(2.0 * rho), matrix / np.sqrt(2.0 * rho)], rtol=1e-4)


def test_the_noise_of_basic_composition_by_hand():
    pure = irls(accounting="basic", delta=None, moment_noise="laplace", matrix_noise="laplace")
    np.testing.assert_allclose(pure.noise(3), [2 * 5 * 3 * 2 * 8 / EPSILON, 2 * 5 * 6 * 8 / EPSILON], rtol=1e-12)
    assert pure.guarantee.kind == "pure"
    mixed = irls(accounting="basic", moment_noise="laplace").noise(3)
    shift = np.sqrt(2.0) * 5.0 * 3.0 / float(mixed.matrix)
    first, second = stats.norm.cdf(np.array([0.5, -0.5]) * shift - EPSILON / 8.0 / shift)
    np.testing.assert_allclose(first - np.exp(EPSILON / 8.0) * second, DELTA / 4.0, rtol=1e-6)


def test_the_noise_of_advanced_composition_by_hand():
    noise = irls(accounting="advanced", moment_noise="laplace").noise(3)
    each = 2 * 5 * 3 * 2 / float(noise.moment)
    total = np.sqrt(2 * 8 * np.log(2.0 / DELTA)) * each + 8 * each * np.expm1(each)
    np.testing.assert_allclose(total, EPSILON, rtol=1e-9)
    assert total <= EPSILON


def test_more_budget_is_less_noise_and_zcdp_the_least():
    assert irls(epsilon=1.6).noise(3).matrix < irls().noise(3).matrix
    assert irls().noise(3).matrix < 0.5 * irls(accounting="basic").noise(3).matrix
    assert irls(moment_share=0.9).noise(3).moment < irls().noise(3).moment


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_noise_of_a_vector_is_drawn_as_planned(kind):
    """Where all responses are 0 the vector is noise, and the matrix's noise is a part in 10³ of so many records."""
    mechanism = irls(iterations=1, moment_noise=kind, cap=1.0)
    data = mechanism.prepare(table(200_000)[0], np.zeros(200_000))
    thetas = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=1500, num_chains=1).theta[0]
    noise = float(mechanism.noise(3).moment)
    law = {"gaussian": stats.norm(scale=noise), "laplace": stats.laplace(scale=noise)}[kind]
    found = thetas @ (data.x.T @ data.x)
    for coordinate in found.T:
        assert_same_law(coordinate, law.cdf)
    with pytest.raises(AssertionError):
        assert_same_law(2.0 * found[:, 0], law.cdf)


@pytest.mark.parametrize("matrix_noise", ["gaussian", "laplace", "wishart"])
@pytest.mark.parametrize("repair", ["floor", "ridge"])
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
    assert (release.certificate.epsilon, release.certificate.delta) == (EPSILON, DELTA)
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
