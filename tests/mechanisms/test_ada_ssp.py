"""AdaSSP: its noise against the exact profile and against the paper's, its law, and that it never fails."""

import functools

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import kngjax as kng
from kngjax.mechanisms.noise.matrix_noise import symmetric_gaussian
from tests.oracles.goodness_of_fit import assert_same_law, assert_two_samples_agree

ADJACENCIES = ["add_remove", "replace"]
BOUNDS = {
    1: kng.Bounds(x=([-1.5], 1.0), y=(-0.5, 2.0), intercept=False),
    2: kng.Bounds(x=([-1.0], 2.0), y=(-1.0, 1.0), intercept=True),
}


def in_public_units(dimension, x, y):
    """Features, shape (m, d), and responses about the middle of their bounds, in half widths.

    x lies in [-1.5, 1] and y in [-0.5, 2] without an intercept, where the middle stays, and in [-1, 2] and [-1, 1]
    with one.
    """
    return (x[:, None] / 1.5, y / 2.0) if dimension == 1 else (np.column_stack([np.ones_like(x), (x - 0.5) / 1.5]), y)


def corners(dimension):
    """All extreme records within the bounds, in public units; any record's moments are among theirs or shorter."""
    bounds = BOUNDS[dimension]
    places = np.linspace(float(bounds.x_lower[0]), float(bounds.x_upper), 7)
    x, y = (part.ravel() for part in np.meshgrid(places, np.linspace(bounds.y_lower, bounds.y_upper, 5)))
    return in_public_units(dimension, x, y)


def shifts(dimension, adjacency, deviations):
    """The distances of the three parts between neighbours, in deviations of the noise: the largest of any pair.

    The eigenvalue's change is bounded by that of the larger data set, |x|², whatever the rest.
    """
    x, y = corners(dimension)
    matrix, moment = x[:, :, None] * x[:, None, :], x * y[:, None]
    least = np.sum(x**2, axis=1)
    if adjacency == "replace":
        matrix, moment = matrix[:, None] - matrix[None], moment[:, None] - moment[None]
        least = np.maximum(least[:, None], least[None])
    in_matrix = np.sqrt(np.sum(matrix**2, axis=(-1, -2)))
    in_moment = np.sqrt(np.sum(moment**2, axis=-1))
    return np.sqrt(
        (least / deviations[0]) ** 2 + (in_moment / deviations[1]) ** 2 + (in_matrix / deviations[2]) ** 2
    ).max()


def delta_by_quadrature(epsilon, shift):
    cross = epsilon / shift - 0.5 * shift
    above, _ = integrate.quad(
        lambda z: stats.norm.pdf(z) * -np.expm1(epsilon - shift * z - 0.5 * shift**2), cross, cross + 12.0, epsabs=0.0
    )
    return above


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_joint_law_of_the_three_parts_spends_delta_and_no_more(epsilon, dimension, adjacency):
    mechanism = kng.AdaSSP(BOUNDS[dimension], epsilon, 1e-6, adjacency)
    spent = delta_by_quadrature(epsilon, shifts(dimension, adjacency, np.asarray(mechanism.deviations(dimension))))
    # With replace no one exchange is worst for all three parts.
    assert (0.99e-6 if adjacency == "add_remove" else 1e-10) < spent <= 1e-6 * (1.0 + 1e-7)


@pytest.mark.parametrize("halved", [0, 1, 2])
def test_halved_noise_on_any_part_spends_more(halved):
    mechanism = kng.AdaSSP(BOUNDS[1], 1.0, 1e-6, "add_remove")
    deviations = np.array(mechanism.deviations(1)) * np.where(np.arange(3) == halved, 0.5, 1.0)
    assert delta_by_quadrature(1.0, shifts(1, "add_remove", deviations)) > 1e-5


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 1.885), (0.5, 1.698), (1.0, 1.620), (2.0, 1.534)])
def test_the_noise_is_less_than_by_the_constants_of_the_paper(epsilon, ratio):
    """√log(6/δ)/(ε/3)·Δ_j for each part there, and for every entry of the upper triangle."""
    mechanism = kng.AdaSSP(BOUNDS[2], epsilon, 1e-6, "add_remove")
    changes, deviations = np.asarray(mechanism.changes(2)), np.asarray(mechanism.deviations(2))
    np.testing.assert_allclose(np.sqrt(np.log(6e6)) / (epsilon / 3.0) * changes / deviations, ratio, atol=6e-4)


def test_the_matrix_noise_is_isotropic_in_the_frobenius_inner_product():
    """Coordinates in any orthonormal basis of the symmetric matrices are independent N(0, 1)."""
    noise, basis = np.asarray(symmetric_gaussian(jax.random.key(0), 3, 1.0, (20_000,))), []
    np.testing.assert_array_equal(noise, np.swapaxes(noise, 1, 2))
    for i in range(3):
        for j in range(i + 1):
            unit = np.zeros((3, 3))
            unit[i, j] = unit[j, i] = 1.0
            basis.append(unit / np.linalg.norm(unit))
    turned = stats.ortho_group.rvs(6, random_state=1) @ np.array(basis).reshape(6, 9)
    for coordinates in (noise.reshape(-1, 9) @ np.array(basis).reshape(6, 9).T, noise.reshape(-1, 9) @ turned.T):
        for coordinate in coordinates.T:
            assert_same_law(coordinate, stats.norm.cdf)
        assert np.abs(np.corrcoef(coordinates.T) - np.eye(6)).max() < 0.04


def by_hand(mechanism, x, y, num_draws, seed):
    """The mechanism in NumPy, its matrix noise by coordinates in an orthonormal basis of the symmetric matrices."""
    random, (features, responses) = np.random.default_rng(seed), in_public_units(2, x, y)
    gram, moments, d = features.T @ features, features.T @ responses, 2
    on_least, on_moment, on_matrix = np.asarray(mechanism.deviations(d))
    floor = on_matrix * (np.sqrt(2 * d) + np.sqrt(2 * np.log(20.0)))
    thetas = np.empty((num_draws, d))
    for row in thetas:
        least = np.linalg.eigvalsh(gram)[0] + on_least * (random.normal() + stats.norm.ppf(0.05))
        matrix = gram.copy()
        for i in range(d):
            matrix[i, i] += on_matrix * random.normal()
            for j in range(i):
                matrix[[i, j], [j, i]] += on_matrix * random.normal() / np.sqrt(2.0)
        values, vectors = np.linalg.eigh(matrix + max(2 * floor - max(least, 0), 0) * np.eye(d))
        moment = moments + on_moment * random.normal(size=d)
        row[:] = vectors @ (vectors.T @ moment / np.maximum(values, floor))
    # a + b(x - 0.5)/1.5.
    return thetas @ np.array([[1.0, 0.0], [-1.0 / 3.0, 2.0 / 3.0]])


@pytest.mark.slow
@pytest.mark.parametrize(("num_records", "shares"), [(20, (0.2, 0.3, 0.5)), (4000, (0.3, 0.65, 0.05))])
def test_its_draws_are_those_by_hand(num_records, shares):
    """Once where the ridge rules, and once where most of the noise of θ is that of the matrix."""
    x = np.random.default_rng(1).uniform(-1.0, 2.0, num_records)
    mechanism = kng.AdaSSP(BOUNDS[2], 2.0, 1e-3, "replace", shares=shares)
    data = mechanism.prepare(x[:, None], 0.5 * x)
    ours = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=4000, num_chains=1).theta[0]
    theirs = by_hand(mechanism, x, 0.5 * x, 4000, 2)
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]):
        assert_two_samples_agree(ours @ direction, theirs @ direction)


def test_the_bound_on_the_eigenvalues_of_the_noise_holds():
    """With ρ = 0.05 the bound √(2d) + √(2 log(1/ρ)) is exceeded by less than that, for every d."""
    random = np.random.default_rng(3)
    for d in (1, 2, 5, 12):
        normals = random.normal(size=(4000, d, d))
        largest = np.linalg.eigvalsh((normals + np.swapaxes(normals, 1, 2)) / 2.0)[:, -1]
        exceeded = np.sum(largest > np.sqrt(2 * d) + np.sqrt(2 * np.log(20.0)))
        assert stats.binom.sf(exceeded - 1, 4000, 0.05) > 1e-6


@functools.partial(jax.jit, static_argnames="number")
def draws(mechanism, data, key, number):
    return mechanism.draws(data, key, number)[0]


def in_other_units(intercept):
    """Records, bounds of x and of y; the same of years and thousandths, or of shares of them; scales and shifts."""
    random = np.random.default_rng(5)
    x, y = random.uniform(size=(300, 2)), random.uniform(-1.0, 1.0, 300)
    scale, shift = np.array([50.0, 1e-3]), np.array([1950.0, -2e-3]) * intercept
    wide, far = 40.0, 100.0 * intercept
    here = x, y, (np.zeros(2), np.ones(2)), (-1.0, 1.0)
    there = shift + scale * x, far + wide * y, (shift, shift + scale), (far - wide, far + wide)
    return here, there, (scale, shift, wide, far)


def made_of(x_bounds, y_bounds, intercept):
    return kng.AdaSSP(kng.Bounds(x_bounds, y_bounds, intercept), 1.0, 1e-6, "replace")


@pytest.mark.parametrize("intercept", [True, False])
def test_moments_and_noise_do_not_depend_on_units(intercept):
    """In public units, in which noise is drawn."""
    found = []
    for x, y, *bounds in in_other_units(intercept)[:2]:
        mechanism = made_of(*bounds, intercept)
        data = mechanism.prepare(x, y)
        found.append((data.gram, data.moment, mechanism.deviations(2 + intercept)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_does_not_depend_on_units(intercept):
    """Years and thousandths, or shares of them: the same draw from the same key, in the units of the columns."""
    first, second, (scale, shift, wide, far) = in_other_units(intercept)

    def draw(x, y, *bounds):
        mechanism = made_of(*bounds, intercept)
        return np.asarray(draws(mechanism, mechanism.prepare(x, y), jax.random.key(0), 1)[0])

    here, there = draw(*first), draw(*second)
    slopes = wide * here[intercept:] / scale
    np.testing.assert_allclose(there[intercept:], slopes, rtol=1e-9)
    if intercept:
        np.testing.assert_allclose(there[0], far + wide * here[0] - slopes @ shift, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_never_fails(adjacency):
    """One record, more columns than records, columns that are equal: θ is a number, and not too large a one."""
    bounds = kng.Bounds(x=(np.full(5, -1.0), 1.0), y=(-1.0, 1.0))
    mechanism = kng.AdaSSP(bounds, 0.1, 1e-9, adjacency)
    for X in (np.zeros((1, 5)), np.ones((3, 5)), np.full((20_000, 5), 0.5)):
        data = mechanism.prepare(X, np.ones(len(X)))
        thetas = kng.sample(mechanism, data, key=kng.research_key(4), num_draws=2000, num_chains=1).theta
        assert np.all(np.isfinite(thetas))
    certificate = kng.release(mechanism, X, np.ones(len(X))).certificate
    assert certificate.delta == pytest.approx(1e-9 + certificate.rounding_delta, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": (0.5, 0.5)}, "shares"),
        ({"shares": (0.5, 0.5, 0.5)}, "shares"),
        ({"shares": (0.0, 0.5, 0.5)}, "shares"),
    ],
)
def test_shares_that_it_refuses(changes, words):
    settings = {"bounds": BOUNDS[1], "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", **changes}
    with pytest.raises(ValueError, match=words):
        kng.AdaSSP(**settings)


def test_columns_that_are_too_far_from_zero_are_refused():
    with pytest.raises(ValueError, match="Subtract a public number from the column"):
        kng.AdaSSP(kng.Bounds(([1e6 - 1.0], [1e6 + 1.0]), (-1.0, 1.0)), 1.0, 1e-6, "replace")
    kng.AdaSSP(kng.Bounds(([4000.0], [4002.0]), (-1.0, 1.0)), 1.0, 1e-6, "replace")


@pytest.mark.slow
def test_the_sensitivities_are_told_with_the_noise():
    bounds = kng.Bounds(x=([-3.0], 4.0), y=(-1.0, 5.0), intercept=False)
    added, exchanged = (kng.AdaSSP(bounds, 1.0, 1e-6, adjacency).sensitivity for adjacency in ADJACENCIES)
    assert (added.value, exchanged.value) == (pytest.approx(1.0), pytest.approx(np.sqrt(2.0)))
    assert "one record more or less" in added.derivation
    assert "X'y in the l2 norm by at most 1 " in added.derivation
    assert "X'y in the l2 norm by at most 2 " in exchanged.derivation
