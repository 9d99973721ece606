"""Counts made consistent: against a solver that knows nothing of how they are found."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from kngjax.study.consistency import nearest

TABLES = {
    "flat": np.array([5.0, -3.0, 0.0, 2.0]),
    "square": np.array([[4.0, -2.0, 7.0], [-6.0, 1.0, 3.0]]),
}


def by_solver(counts, nonnegative, total, margins):
    """Least squares under these constraints by SciPy's SLSQP."""
    constraints = [] if total is None else [{"type": "eq", "fun": lambda x: x.sum() - total}]
    for axis, margin in margins.items():
        others = tuple(other for other in range(counts.ndim) if other != axis)
        constraints.append(
            {
                "type": "eq",
                # The last one follows from the others where two margins are given.
                "fun": lambda x, others=others, margin=margin: (x.reshape(counts.shape).sum(others) - margin)[
                    : len(margin) - (len(margins) > 1 and others == (0,))
                ],
            }
        )
    bounds = [(0.0, None)] * counts.size if nonnegative else None
    found = optimize.minimize(
        lambda x: np.sum((x - counts.ravel()) ** 2),
        np.full(counts.size, 1.0),
        jac=lambda x: 2.0 * (x - counts.ravel()),
        constraints=constraints,
        bounds=bounds,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # 8: no step was found that is smaller still, which the tests compare anyway.
    assert found.status in (0, 8)
    return found.x.reshape(counts.shape)


MARGINS = (
    {},
    {0: np.array([9.0, 1.0])},
    {1: np.array([2.0, 0.0, 8.0])},
    {0: np.array([9.0, 1.0]), 1: np.array([3, 2, 5.0])},
)
CASES = [
    ("flat", nonnegative, total, {}) for nonnegative, total in itertools.product((False, True), (None, 0.0, 1.0, 40.0))
] + [("square", nonnegative, None, margins) for nonnegative, margins in itertools.product((False, True), MARGINS)]


@pytest.mark.parametrize(("name", "nonnegative", "total", "margins"), CASES)
def test_they_are_the_nearest_that_are_so(name, nonnegative, total, margins):
    counts = TABLES[name]
    found = nearest(counts, nonnegative=nonnegative, total=total, margins=margins)
    np.testing.assert_allclose(found, by_solver(counts, nonnegative, total, margins), atol=1e-5)
    if total is not None:
        assert found.sum() == pytest.approx(total, abs=1e-9)
    for axis, margin in margins.items():
        np.testing.assert_allclose(found.sum(axis=1 - axis), margin, atol=1e-7)
    if nonnegative:
        assert np.min(found) >= -0.0


def test_they_are_never_farther_from_true_counts_than_what_was_released():
    random = np.random.default_rng(0)
    for _ in range(50):
        truth = random.poisson(2.0, (3, 4)).astype(float)
        noisy = truth + random.laplace(scale=3.0, size=truth.shape)
        margins = {0: truth.sum(axis=1), 1: truth.sum(axis=0)}
        found = nearest(noisy, nonnegative=True, total=truth.sum(), margins=margins)
        assert np.sum((found - truth) ** 2) <= np.sum((noisy - truth) ** 2) + 1e-9


def test_what_contradicts_itself_is_refused():
    square = TABLES["square"]
    with pytest.raises(ValueError, match=r"contradict each other, they add up to 5, 10"):
        nearest(square, nonnegative=False, total=5.0, margins={0: np.array([9.0, 1.0])})
    with pytest.raises(ValueError, match="no counts of 0 and more add up to -1"):
        nearest(square, nonnegative=True, total=None, margins={0: np.array([9.0, -1.0])})
    with pytest.raises(ValueError, match="add up to -3"):
        nearest(square, nonnegative=True, total=-3.0, margins={})
