"""Functions of float64 arrays beside 200 binary digits: within the proved bounds, and not far within."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.core.verified import EXP_ERROR, NEXT_TO_ZERO, SIGMOID_ERROR, UNIT, exp, sigmoid


def points(number: int) -> np.ndarray:
    """Everywhere, next to the places where one whole number of log 2 gives way to the next, and next to 0."""
    generator = np.random.default_rng(1)
    turns = (generator.integers(-1009, 1009, number) + 0.5) * math.log(2.0)
    parts = [
        generator.uniform(-700.0, 700.0, number),
        generator.uniform(-3.0, 3.0, number),
        np.clip(turns * (1.0 + generator.integers(-3, 4, number) * 2.0**-52), -700.0, 700.0),
        generator.choice([-1.0, 1.0], number) * 2.0 ** generator.uniform(-1074.0, 0.0, number),
        np.array([0.0, -0.0, -700.0, 700.0, 5e-324]),
    ]
    return np.concatenate(parts)


def true_exp(x: float) -> arb:
    return arb(x).exp()


def true_sigmoid(x: float) -> arb:
    return 1 / (1 + (-arb(x)).exp())


@pytest.mark.parametrize(
    ("function", "truth", "bound"), [(exp, true_exp, EXP_ERROR), (sigmoid, true_sigmoid, SIGMOID_ERROR)]
)
def test_errors_are_within_the_bound_and_the_bound_is_within_a_few_units(function, truth, bound):
    x, worst = points(2500), 0.0
    with ctx.workprec(200):
        for place, value in zip(x.tolist(), function(x).tolist(), strict=True):
            true = truth(place)
            error = float(abs(arb(value) - true) / true)
            assert error <= bound
            worst = max(worst, error)
    # What it is proved to stay below is not what it reaches: but one unit more in a constant is.
    assert UNIT / 2 < worst < 3 * UNIT


def test_beyond_its_ends_numbers_are_next_to_zero_or_infinite():
    below = np.array([-np.inf, -1e300, -745.0, np.nextafter(-700.0, -800.0)])
    assert np.all(exp(below) == exp(np.array([-700.0])))
    assert 0.0 < exp(np.array([-700.0]))[0] < NEXT_TO_ZERO
    assert np.all(exp(np.array([np.nextafter(700.0, 800.0), np.inf])) == np.inf)
    assert np.all(sigmoid(below) < NEXT_TO_ZERO)
    assert np.all(sigmoid(-below) == 1.0)
    assert np.all(np.isnan(exp(np.array([np.nan]))))
    assert np.all(np.isnan(sigmoid(np.array([np.nan]))))


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no extended precision here")
@pytest.mark.parametrize("function", [exp, sigmoid])
def test_errors_at_ten_million_points(function):
    """Beside 64 binary digits, whose exp balls confirm to 2^-62 at some of these points."""
    generator, one = np.random.default_rng(7), np.longdouble(1.0)
    for turn in range(10):
        x = generator.uniform(-700.0, 700.0, 1_000_000) if turn % 2 else generator.uniform(-4.0, 4.0, 1_000_000)
        true = np.exp(x.astype(np.longdouble))
        with ctx.workprec(200):
            for place, value in zip(x[:200].tolist(), true[:200], strict=True):
                high = float(value)
                ball = arb(high) + arb(float(value - np.longdouble(high)))
                assert abs(ball / arb(place).exp() - 1) < arb(2) ** -62
        if function is sigmoid:
            true = one / (one + np.exp(-x.astype(np.longdouble)))
        error = np.max(np.abs((function(x) - true) / true))
        assert error < (EXP_ERROR if function is exp else SIGMOID_ERROR) - 2.0**-60
        assert error < 4 * UNIT
