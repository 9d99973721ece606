"""Positive definite matrices given noisy numbers: their law by rejection and in closed form, and wild inputs."""

import functools

import numpy as np
import pytest
import scipy.stats

from kngjax.inference.positive_definite import BlockNoiseLaw, ChainLengths, MatrixFamily, matrices_given, start_between
from kngjax.inference.positive_definite_chains import draw_numbers

# Nearly all tests have one compiled program: three by three, six numbers in three blocks.
LENGTHS = ChainLengths(chains=64, first=10, kept=60, thinning=4)
WIDTHS = np.array([1.0, 0.5, 2.0, 1.0, 0.7, 1.5])
NOISE = BlockNoiseLaw(np.array([0, 1, 1, 2, 2, 2]), np.array([False, False, False, True, True, True]), WIDTHS, 1.0)
# Of standard errors; a few hundred statistics are compared in all.
MOST = 4.5


def symmetric(dimension):
    """Every entry on and above the diagonal is a number."""
    unit, pairs = np.eye(dimension), np.argwhere(np.triu(np.ones((dimension, dimension))))
    u = [unit[i] if i == j else (unit[i] + unit[j]) / np.sqrt(2.0) for i, j in pairs]
    v = [0.0 * unit[i] if i == j else (unit[i] - unit[j]) / np.sqrt(2.0) for i, j in pairs]
    return MatrixFamily(np.array(u), np.array(v), np.zeros((dimension, dimension)))


def entries(family, matrices):
    """Their numbers, by least squares."""
    directions = family.matrices(np.eye(len(family.u))) - family.base
    flat = directions.reshape(len(directions), -1)
    return (matrices - family.base).reshape(-1, flat.shape[1]) @ np.linalg.pinv(flat)


IDENTITY = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
# A one-hot column beside an intercept, whose square is their product, and a base.
LEVELS = MatrixFamily(
    np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1], [0.3, 0.2, 1]]),
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, -1], [0, 1, -1], [0.1, -1, 0]]),
    np.array([[4.0, 1.0, 0.0], [1.0, 6.0, 0.5], [0.0, 0.5, 3.0]]),
)
TWO = BlockNoiseLaw(np.array([0, 1, 1]), np.array([False, True, True]), np.array([1.0, 0.5, 0.8]), 1.0)
ONE = BlockNoiseLaw(np.array([0]), np.array([False]), np.array([2.0]), 1.0)
CASES = {
    "3x3": (symmetric(3), NOISE, np.array([1.0, 0.5, -1.0, 2.0, 0.3, 1.0]), IDENTITY),
    "3x3 other blocks": (
        symmetric(3),
        NOISE._replace(block=np.array([2, 1, 0, 1, 0, 1]), is_exchange=np.array([1, 0, 1, 0, 1, 0], bool)),
        np.array([4.0, 0.0, -6.0, 3.0, 1.0, 2.0]),
        5.0 * IDENTITY,
    ),
    "levels": (LEVELS, NOISE, np.array([2.0, -1.0, 1.0, 0.0, 0.5, -0.5]), np.zeros(6)),
    "2x2": (symmetric(2), TWO, np.array([1.0, 0.7, 0.2]), np.array([1.0, 0.0, 1.0])),
    "1x1": (symmetric(1), ONE, np.array([-0.5]), np.array([3.0])),
}


def drawn(family, noise, released, guess, seed=0):
    return matrices_given(released, family, noise, start_between(released, guess, family), seed, LENGTHS)


def norms_of_blocks(noise, numbers):
    scaled, found = numbers / noise.width, []
    for block in range(noise.block.max() + 1):
        part = scaled[:, noise.block == block]
        up, down = np.maximum(part, 0.0).sum(axis=1), np.maximum(-part, 0.0).sum(axis=1)
        found.append(np.maximum(up, down) if noise.is_exchange[noise.block == block][0] else up + down)
    return np.stack(found, axis=1)


def noise_by_rejection(noise, count, generator):
    """Gamma(D + 1) times points of a cube that lie in the unit ball."""
    points = generator.uniform(-1.0, 1.0, (count, len(noise.width))) * noise.width
    points = points[norms_of_blocks(noise, points).max(axis=1) <= 1.0]
    return points * generator.gamma(len(noise.width) + 1, 1.0 / noise.epsilon, (len(points), 1))


def noise_in_closed_form(noise, count, generator):
    """Gamma(D + 1) times uniform points of cross-polytopes and of hulls of differences of simplices."""
    made = np.empty((count, len(noise.width)))
    for block in range(noise.block.max() + 1):
        places = np.flatnonzero(noise.block == block)
        size = len(places)
        if noise.is_exchange[places[0]]:
            # Vandermonde: k of them are positive with probability C(L, k)²/C(2L, L).
            positives = generator.hypergeometric(size, size, size, count)
            ranks = np.argsort(generator.random((count, size)), axis=1)
            is_up = np.argsort(ranks, axis=1) < positives[:, None]
            exponentials = generator.exponential(size=(count, size))
            slack = generator.exponential(size=(2, count))
            up, down = (np.where(part, exponentials, 0.0) for part in (is_up, ~is_up))
            points = up / (up.sum(axis=1) + slack[0])[:, None] - down / (down.sum(axis=1) + slack[1])[:, None]
        else:
            exponentials = generator.exponential(size=(count, size + 1))
            signs = generator.choice([-1.0, 1.0], (count, size))
            points = signs * exponentials[:, :size] / exponentials.sum(axis=1, keepdims=True)
        made[:, places] = points * noise.width[places]
    return made * generator.gamma(len(noise.width) + 1, 1.0 / noise.epsilon, (count, 1))


def deviations(found, others):
    """Of means, in standard errors of both; of ours by chains."""
    by_chain = found.reshape(-1, LENGTHS.kept, found.shape[1]).mean(axis=1)
    variance = by_chain.var(axis=0, ddof=1) / len(by_chain) + others.var(axis=0, ddof=1) / len(others)
    return np.abs(by_chain.mean(axis=0) - others.mean(axis=0)) / np.sqrt(variance)


def deviations_of_laws(found, others):
    """Of means, and of shares beyond the others' deciles."""
    marks = np.quantile(others, [0.1, 0.5, 0.9], axis=0)
    shares = [deviations(1.0 * (found > mark), 1.0 * (others > mark)) for mark in marks]
    return np.concatenate([deviations(found, others), *shares])


def statistics(family, matrices):
    values = np.linalg.eigvalsh(matrices)
    return np.column_stack([entries(family, matrices), values, np.log(values).sum(axis=1), np.log(values[:, 0])])


@functools.cache
def by_rejection(name):
    family, noise, released, _ = CASES[name]
    kept = released - noise_by_rejection(noise, 600_000 if len(released) > 3 else 200_000, np.random.default_rng(1))
    matrices = family.matrices(kept)
    return matrices[np.linalg.eigvalsh(matrices)[:, 0] > 0.0]


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_rejection_where_noise_is_as_large_as_the_matrix(name):
    family, noise, *given = CASES[name]
    others = by_rejection(name)
    assert len(others) > 2000
    found = drawn(family, noise, *given)
    assert deviations_of_laws(statistics(family, found), statistics(family, others)).max() < MOST


def test_half_the_noise_is_another_law():
    family, noise, *given = CASES["3x3"]
    found = statistics(family, drawn(family, noise._replace(epsilon=2.0), *given))
    assert deviations_of_laws(found, statistics(family, by_rejection("3x3"))).max() > 20.0


def test_the_law_is_that_of_the_noise_where_the_matrix_dwarfs_it():
    family, noise, _, guess = CASES["3x3"]
    released = 1e6 * guess
    found = np.concatenate([entries(family, drawn(family, noise, released, guess, seed)) for seed in range(12)])
    found, others = released - found, noise_in_closed_form(noise, 100_000, np.random.default_rng(2))

    def lengths(numbers):
        norms = norms_of_blocks(noise, numbers)
        return np.column_stack([numbers, np.abs(numbers), norms, norms.max(axis=1)])

    def has_positives(numbers):
        return 1.0 * ((numbers[:, noise.is_exchange] > 0.0).sum(axis=1, keepdims=True) == np.arange(4))

    assert deviations_of_laws(lengths(found), lengths(others)).max() < MOST
    assert deviations(has_positives(found), has_positives(others)).max() < MOST
    # The longest block has length Gamma(D).
    length = norms_of_blocks(noise, found).max(axis=1)
    by_chain = length.reshape(-1, LENGTHS.kept).mean(axis=1)
    assert abs(by_chain.mean() - 6.0) < 3.5 * by_chain.std() / np.sqrt(len(by_chain))
    assert scipy.stats.kstest(length[::8], scipy.stats.gamma(6).cdf).pvalue > 1e-4


@pytest.mark.parametrize("released", [-0.5, -1e4])
def test_one_number_has_an_exponential_law_where_a_negative_one_was_released(released):
    """However unlikely that was."""
    family, noise, _, guess = CASES["1x1"]
    found = drawn(family, noise, np.array([released]), guess)[:, 0, 0]
    assert scipy.stats.kstest(found, scipy.stats.expon(scale=2.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [1e-6, 50.0])
def test_whatever_is_released_matrices_are_positive_definite(epsilon):
    generator, scales = np.random.default_rng(3), np.array([1e-8, 1.0, 1e8])
    for released in (IDENTITY, -IDENTITY, generator.normal(size=6)):
        for size in (1e-12, 1e12, 1e20):
            for unit in (np.ones(3), scales):
                by_number = np.outer(unit, unit)[np.triu_indices(3)]
                noise = NOISE._replace(epsilon=epsilon, width=WIDTHS * by_number)
                found = drawn(symmetric(3), noise, released * by_number * size / epsilon, IDENTITY * by_number)
                assert_positive_definite(found)


def assert_positive_definite(matrices):
    assert np.all(np.isfinite(matrices))
    np.testing.assert_array_equal(matrices, np.swapaxes(matrices, 1, 2))
    scale = 1.0 / np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    assert np.linalg.eigvalsh(matrices * scale[:, :, None] * scale[:, None]).min() > 1e-13


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e6])
def test_chains_leave_a_start_that_is_barely_positive_definite(size):
    for gap in (1e-8, 1e-10, 1e-12):
        start = size * np.array([1.0, 1.0 - gap, 0.3, 1.0, 0.3, 1.0])
        found = matrices_given(start, symmetric(3), NOISE, start, 0, LENGTHS)
        assert_positive_definite(found)
        last = found.reshape(LENGTHS.chains, -1, 3, 3)[:, -1]
        assert len(np.unique(last[:, 0, 0])) == LENGTHS.chains


def test_units_are_no_matter():
    family, noise, released, guess = CASES["levels"]
    found = drawn(family, noise, released, guess)
    unit, of_number = np.array([1e-8, 3.0, 1e5]), 10.0 ** np.arange(-3, 3)
    # H' = S·H·S, and numbers in other units.
    scaled = family._replace(
        u=family.u * unit / np.sqrt(of_number)[:, None],
        v=family.v * unit / np.sqrt(of_number)[:, None],
        base=family.base * np.outer(unit, unit),
    )
    other = drawn(
        scaled, noise._replace(width=WIDTHS * of_number * 7.0, epsilon=7.0), released * of_number, guess * of_number
    )
    np.testing.assert_allclose(other / np.outer(unit, unit), found, rtol=1e-6, atol=1e-9)


def test_the_same_seed_gives_the_same_draws_and_data_compile_nothing():
    family, noise, released, guess = CASES["3x3"]
    once = drawn(family, noise, released, guess)
    before = draw_numbers.plain._cache_size()
    np.testing.assert_array_equal(drawn(family, noise, released, guess), once)
    assert not np.any(drawn(family, noise, released, guess, seed=1) == once)
    drawn(*CASES["levels"])
    assert draw_numbers.plain._cache_size() == before


def test_the_start_is_as_near_to_what_was_released_as_is_safe():
    family = symmetric(3)
    guess = np.array([2.0, 0.5, 0.0, 3.0, 0.0, 1.0])
    inverse = np.linalg.inv(np.linalg.cholesky(family.matrices(guess)))
    fine = np.array([5.0, 0.1, 0.2, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(start_between(fine, guess, family), fine)
    for released in (-fine, 1e12 * np.arange(6.0), np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])):
        start = start_between(released, guess, family)
        assert np.linalg.eigvalsh(inverse @ family.matrices(start) @ inverse.T)[0] == pytest.approx(0.02, abs=1e-4)
    # Rounding hides a least eigenvalue of .5 beside one of 1e20.
    assert_positive_definite(
        family.matrices(start_between(np.array([1e20, 1e20, 0, 1e20, 0, 0.5]), guess, family))[None]
    )


def test_what_is_not_positive_definite_is_refused():
    family, noise, released, guess = CASES["3x3"]
    for start in (-guess, np.ones(6), np.full(6, np.nan)):
        with pytest.raises(ValueError, match="start must be"):
            matrices_given(released, family, noise, start, 0, LENGTHS)
    with pytest.raises(ValueError, match="guess must be"):
        start_between(released, -guess, family)
